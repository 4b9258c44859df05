"""Command that draws the agent's observations and the potential: ``python -m perception.visualize --out DIR``."""

import tyro

from envs.command import one_line_errors
from perception.visualize.config import OF_FILES, OF_OWN, OF_SLOT, OF_WEB, SLOT, VisualizeConfig


@one_line_errors
def main(arguments: list[str] | None = None) -> None:
    """Run the command line; invalid input is reported in one line with exit status 2."""
    config = tyro.cli(VisualizeConfig, args=arguments, prog="python -m perception.visualize")
    for name in ("combine", "radius"):
        if getattr(config, name) == ():
            raise ValueError(f"--{name} is empty; name at least one")
    for name in OF_OWN if config.task == SLOT else OF_SLOT:
        if getattr(config, name) != getattr(VisualizeConfig, name):
            raise ValueError(f"--{name} has no effect with --task {config.task}; leave it out")
    for name in OF_FILES if config.web else OF_WEB:
        if getattr(config, name) != getattr(VisualizeConfig, name):
            where = "without --web only; leave it out" if config.web else "with --web only; leave it out, or add --web"
            raise ValueError(f"--{name} has an effect {where}")
    if config.web and len(config.combine) * len(config.radius or (0.0,)) > 1:
        raise ValueError(
            "--web shows one --combine and one --radius, which can be changed on the page; give one of each"
        )
    # Imported here, so that import errors are reported in one line too.
    if config.web:
        from perception.visualize.web.page import serve

        serve(config)
        return
    if config.task == SLOT:
        from perception.visualize.pictures import visualize
    else:
        from perception.visualize.goal_map import visualize

    print("wrote " + ", ".join(str(path) for path in visualize(config)))


if __name__ == "__main__":
    main()
