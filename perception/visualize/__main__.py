"""Draw what the agent sees: ``python -m perception.visualize --out DIR``."""

import sys

import tyro

from perception.visualize.config import VisualizeConfig


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input ends it with one line and status 2."""
    config = tyro.cli(VisualizeConfig, args=arguments, prog="python -m perception.visualize")
    try:
        # Here, so that what cannot be imported ends in one line too.
        from perception.visualize.pictures import visualize

        written = visualize(config)
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from error
    print("wrote " + ", ".join(str(path) for path in written))


if __name__ == "__main__":
    main()
