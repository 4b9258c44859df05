"""Encoders of observations, one per module; `perception.registry` imports each on first use."""

# Raw positions are of order 0.01–0.3 m and velocities of order 0.1 m/s; networks train poorly on inputs that small.
POSITION_SCALE = 10.0  # [1/m]
VELOCITY_SCALE = 5.0  # [s/m]


def check_shape(encoder: str, in_shape: tuple[int, ...], expected: str, fits: bool) -> None:
    """Check that an encoder supports an input shape.

    Args:
        encoder: Name of the encoder.
        in_shape: Input shape.
        expected: Supported shape, for the message.
        fits: Whether `in_shape` is supported.

    Raises:
        ValueError: `fits` is False; the message names the supported shape.
    """
    if not fits:
        raise ValueError(f"encoder {encoder!r} takes inputs of shape {expected}, not {tuple(in_shape)}")
