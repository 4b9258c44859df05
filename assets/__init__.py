"""Models, demonstrations, pre-trained estimators and results that travel with the code."""

from importlib.resources import files
from pathlib import Path

__all__ = ["path"]


def path(*parts: str) -> Path:
    """Return where an asset lies, in a checkout as in an installed copy.

    Args:
        *parts: path below `assets/`, e.g. `"estimators/push-plane-state.pt"`; a folder may be named too.

    Raises:
        FileNotFoundError: no such asset; the message lists what its folder holds.
    """
    root = Path(str(files(__name__)))
    asset = root.joinpath(*parts)
    if not asset.exists():
        folder = next(parent for parent in asset.parents if parent.is_dir())
        present = ", ".join(sorted(entry.name for entry in folder.iterdir() if entry.name[0] not in "_."))
        where = folder.relative_to(root) if folder.is_relative_to(root) else folder
        raise FileNotFoundError(f"no asset '{asset.relative_to(root)}'; assets/{where} holds: {present or 'nothing'}")
    return asset
