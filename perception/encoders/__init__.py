"""Encoders of observations, one a file; `perception.registry` imports each when it is first asked for."""

# Raw positions are of order 0.01–0.3 m and velocities of order 0.1 m/s, which train badly.
POSITION_SCALE = 10.0  # [1/m]
VELOCITY_SCALE = 5.0  # [s/m]


def check_shape(encoder: str, in_shape: tuple[int, ...], expected: str, fits: bool) -> None:
    """Refuse an input shape that an encoder is not made for.

    Raises:
        ValueError: It does not fit; the message names the shape that does.
    """
    if not fits:
        raise ValueError(f"encoder {encoder!r} takes inputs of shape {expected}, not {tuple(in_shape)}")
