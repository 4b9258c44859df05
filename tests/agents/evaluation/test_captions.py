"""Text in frames."""

import numpy as np
import pytest

from agents.evaluation.captions import captioned


@pytest.mark.parametrize("shape", [(480, 640, 3), (64, 300, 3), (1000, 500, 3)])
@pytest.mark.parametrize("brightness", [0, 255])
def test_text_stands_at_the_lower_edge_and_leaves_the_rest_alone(shape, brightness):
    frame = np.full(shape, brightness, np.uint8)
    written = captioned(frame, "episode 12, step 345: success")
    assert written.shape == shape and written.dtype == np.uint8 and (frame == brightness).all()
    rows, columns = (written != brightness).any(axis=2).nonzero()
    assert rows.min() > 0.6 * shape[0] and rows.max() > 0.9 * shape[0] and columns.max() < shape[1] - 1
    band = written[rows.min() :, : columns.max()]
    assert band.min() < 10 and band.max() > 245, "bright on dark, on any ground"


def test_other_text_is_another_frame():
    texts = ("episode 1, step 0", "episode 1, step 1", "episode 2, step 0", "episode 1, step 1: success")
    assert len({captioned(np.zeros((480, 640, 3), np.uint8), text).tobytes() for text in texts}) == 4


def test_no_frame_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match='render_mode="rgb_array"'):
        captioned(None, "episode 1")
