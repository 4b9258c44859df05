"""Files are whole or not there, and damage to them is noticed."""

import os

import numpy as np
import pytest
import torch

from envs.files import discard, write_bytes
from shaping.tensors import read_tensors, write_tensors


def test_a_file_is_replaced_whole_or_stays(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    write_bytes(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left on device: .*result\.json"):
            write_bytes(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_followed(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("mine")
    link.symlink_to(victim)
    write_bytes(link, b"new")
    assert victim.read_text() == "mine" and not link.is_symlink() and link.read_bytes() == b"new"


def test_a_discarded_directory_is_gone_even_where_one_was_left_half_discarded(tmp_path):
    for _ in range(2):
        (tmp_path / "step-1").mkdir()
        (tmp_path / "step-1" / "file").write_text("")
        discard(tmp_path / "step-1")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("position", np.linspace(0, 0.999, 40))
def test_a_flipped_byte_of_a_file_of_tensors_changes_nothing_unnoticed(tmp_path, position):
    path, content = tmp_path / "policy.pt", {"weight": torch.arange(300.0), "bias": torch.ones(5)}
    write_tensors(path, content)
    data = bytearray(path.read_bytes())
    data[int(position * len(data))] ^= 0x40
    path.write_bytes(data)
    try:
        read = read_tensors(path)
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:  # padding and what names the archive
        assert read.keys() == content.keys() and all(torch.equal(read[name], content[name]) for name in read)
