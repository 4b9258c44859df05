"""Videos are whole or not there."""

import contextlib
import resource

import imageio_ffmpeg
import numpy as np
import pytest

from perception.video import SUFFIXES, open_video

NOISE = np.random.default_rng(0).integers(0, 256, (40, 128, 128, 3), np.uint8)  # frames that do not compress


@contextlib.contextmanager
def largest_file(size):
    """Let no file grow beyond that many bytes, in this process and those it starts."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def write(path, count):
    with open_video(path) as append:
        for frame in NOISE[:count]:
            append(frame)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_video_takes_the_place_of_another_when_it_is_whole(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"before")
    with open_video(path) as append:
        for frame in NOISE[:5]:
            append(frame)
        assert path.read_bytes() == b"before"
    assert imageio_ffmpeg.count_frames_and_secs(path) == (5, 0.25)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [2, 40])
def test_a_full_disk_is_one_error_that_names_the_file(suffix, count, tmp_path, capfd):
    """Few frames are written when the encoder ends, many before."""
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"before")
    with largest_file(5000), pytest.raises(OSError, match=f"a{suffix}") as refused:
        write(path, count)
    assert "\n" not in str(refused.value) and "FFMPEG" not in str(refused.value)
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == b"before"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_where_no_file_can_be_is_said_before_the_first_frame(suffix, tmp_path):
    (tmp_path / f"folder{suffix}").mkdir()
    for path in (tmp_path / f"folder{suffix}", tmp_path / "nowhere" / f"a{suffix}"):
        with pytest.raises((OSError, ValueError), match=str(path)), open_video(path):
            raise AssertionError("began")
    assert [path.name for path in tmp_path.iterdir()] == [f"folder{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_frames_that_end_in_an_error_leave_no_file(suffix, tmp_path, capfd):
    for count in (0, 3):
        with pytest.raises(KeyError, match="drawn"), open_video(tmp_path / f"a{suffix}") as append:
            for frame in NOISE[:count]:
                append(frame)
            raise KeyError("drawn")
    assert not list(tmp_path.iterdir()) and capfd.readouterr() == ("", "")
