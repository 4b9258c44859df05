"""One sentence that says what to change first, from what was found about a view."""

from collections.abc import Callable, Iterable

import numpy as np

from envs.push.geometry import CAMERAS
from envs.push.success import SUCCESS_DISTANCE
from perception.diagnose.findings import Findings
from perception.noise import Noise

RARE = 0.01  # share of frames without the puck, or with a cloud like that of another state, that does no harm
TOLERATED = SUCCESS_DISTANCE / 2  # error of the centroid that does not decide about a success [m]
RECOVERED = 0.9  # R² from which on a part of the state counts as recovered from the features


def advise(found: Findings, noise: Noise) -> str:
    """Return the first of these that applies, in one sentence: what was found, and what to change.

    1. More than 1 % of the frames do not show the puck, or have a cloud like that of another state.
    2. With noise, more than 1 % of the frames do not show it.
    3. Fewer pixels than points see the puck (median).
    4. The centroid is more than 1 cm off (median).
    5. The error of the calibration alone moves the centroid by more than 1 cm (root mean square).
    6. Noise moves it by more than 1 cm (root mean square), from frame to frame and throughout an episode.
    7. A position is recovered from the features with an R² below 0.9.
    8. Velocities are recovered with a mean R² below 0.9; the cameras cannot change that.

    Args:
        found: What was found about the view.
        noise: Noise of its cameras.
    """
    sentences = (rule(found, noise) for rule in RULES)
    return next(filter(None, sentences), f"nothing to change: the clouds of {found.name} are sufficient")


def _blind(found: Findings, noise: Noise) -> str | None:
    if max(found.hidden, found.aliased) <= RARE:
        return None
    return (
        f"{found.name} does not see the puck in {found.hidden:.1%} of the frames, up to {found.longest} in a row, and "
        f"{found.aliased:.1%} have a cloud like that of another state: {_another_view(found.cameras)}"
    )


def _lost(found: Findings, noise: Noise) -> str | None:
    if found.lost <= RARE:
        return None
    remedy = "move the camera nearer, take larger images or a better sensor" if noise.dropped else "calibrate better"
    return f"{found.name} loses the puck to noise in {found.lost:.1%} of the frames: {remedy}"


def _coarse(found: Findings, noise: Noise) -> str | None:
    if found.pixels >= found.points:
        return None
    return (
        f"{found.name} sees the puck with {found.pixels:.0f} pixels, fewer than the {found.points} points of a cloud: "
        'move it nearer, or take larger images (perception={"width": 256, "height": 256})'
    )


def _off(found: Findings, noise: Noise) -> str | None:
    if not found.error[0] > TOLERATED:
        return None
    return (
        f"the centroid that {found.name} sees is {_mm(found.error[0])} from the puck's centre, by "
        f"({_mm(found.bias[0])}, {_mm(found.bias[1])}) on average: {_another_view(found.cameras)}"
    )


def _uncalibrated(found: Findings, noise: Noise) -> str | None:
    if not found.miscalibration > TOLERATED:
        return None
    less = TOLERATED / found.miscalibration
    return (
        f"calibration errors of {_mm(noise.position)} and {noise.rotation:.2g}° move the centroid by "
        f"{_mm(found.miscalibration)}: calibrate to {_mm(less * noise.position)} and {less * noise.rotation:.2g}°"
    )


def _unsteady(found: Findings, noise: Noise) -> str | None:
    total = float(np.hypot(found.offset, found.jitter))
    if not total > TOLERATED:
        return None
    moved = f"noise moves the centroid by {_mm(total)}"
    if found.offset > found.jitter:
        return (
            f"{moved}, {_mm(found.offset)} throughout an episode, calibration errors alone by "
            f"{_mm(found.miscalibration)}: move the camera nearer, or take a better sensor"
        )
    return (
        f"{moved}, {_mm(found.jitter)} from frame to frame: move the camera nearer, take a better sensor, or average "
        "over frames"
    )


def _lossy(found: Findings, noise: Noise) -> str | None:
    worst = _least(found.recovered[i] for i in (0, 1, 4, 5))
    if not worst < RECOVERED:
        return None
    return (
        f"the encoder's features hold a position with an R² of {worst:.2f} only: pre-train it "
        "(python -m agents.pretrain --obs pointcloud), or take another --encoder"
    )


def _motionless(found: Findings, noise: Noise) -> str | None:
    known = [value for value in (found.recovered[i] for i in (2, 3, 6, 7)) if np.isfinite(value)]
    if not known or np.mean(known) >= RECOVERED:
        return None
    return (
        f"nothing to change in the view of {found.name}; velocities are not recovered (mean R² {np.mean(known):.2f}), "
        "since a cloud shows none: keep n-step returns (--learner.n-steps 3, the default for clouds), or stack frames"
    )


RULES: tuple[Callable[[Findings, Noise], str | None], ...] = (
    _blind,
    _lost,
    _coarse,
    _off,
    _uncalibrated,
    _unsteady,
    _lossy,
    _motionless,
)


def _another_view(cameras: tuple[str, ...]) -> str:
    unused = [camera for camera in CAMERAS if camera not in cameras]
    if not unused:
        return "move a camera, or add one (envs/push/geometry.py)"
    return f"fuse {unused[0]} (--cameras {' '.join((*cameras, unused[0]))})"


def _least(values: Iterable[float]) -> float:
    return min((value for value in values if np.isfinite(value)), default=np.nan)


def _mm(metres: float) -> str:
    return f"{1000 * metres:.2g} mm"
