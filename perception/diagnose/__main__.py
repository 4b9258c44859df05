"""Command that measures what is in the clouds of cameras: ``python -m perception.diagnose --out DIR``."""

import tyro

from envs.command import one_line_errors
from perception.diagnose.config import DiagnoseConfig


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Run the command line; invalid input is reported in one line with exit status 2."""
    config = tyro.cli(DiagnoseConfig, args=arguments, prog="python -m perception.diagnose")
    # Imported here, so that import errors are reported in one line too.
    from perception.diagnose.diagnosis import diagnose
    from perception.diagnose.report import findings_table

    findings, advice, written = diagnose(config)
    print(f"{findings_table(findings)}\n\n{advice}\nwrote {', '.join(map(str, written))}")


if __name__ == "__main__":
    main()
