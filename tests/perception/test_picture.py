"""Pictures are whole or not there."""

import os

import imageio.v2 as imageio
import pytest
from matplotlib.figure import Figure

from perception.picture import write_picture


def test_a_picture_has_its_size(tmp_path):
    write_picture(Figure(figsize=(3, 2)), tmp_path / "a.png", dpi=50)
    assert imageio.imread(tmp_path / "a.png").shape == (100, 150, 4)


def test_a_full_disk_leaves_the_picture_before(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    (tmp_path / "a.png").write_bytes(b"before")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: .*a\.png"):
            write_picture(Figure(), tmp_path / "a.png")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]
