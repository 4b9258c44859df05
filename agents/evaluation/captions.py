"""Captions in video frames."""

from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

MARGIN = 4  # around the text [pixels]


def captioned(frame: Any, text: str) -> np.ndarray:
    """Return the frame with a line of white text on black at its lower edge.

    Args:
        frame: Image from `render`, shape (height, width, 3), uint8.
        text: ASCII text, because Pillow's default font has no other characters.

    Raises:
        ValueError: `frame` is None.
    """
    if frame is None:
        raise ValueError('the environment renders no frames; make it with render_mode="rgb_array"')
    image = Image.fromarray(frame)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=max(10, min(image.height // 24, image.width // 32)))
    corner = (MARGIN, image.height - MARGIN)
    left, top, right, bottom = draw.textbbox(corner, text, font, anchor="ld")
    draw.rectangle((left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN), fill="black")
    draw.text(corner, text, font=font, fill="white", anchor="ld")
    return np.asarray(image)
