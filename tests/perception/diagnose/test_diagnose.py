"""The command measures real renders, writes its files, and says what to change first."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

import assets
from envs.push.env import HORIZONS
from envs.push.geometry import CAMERAS
from perception.diagnose.__main__ import main
from perception.diagnose.advice import advise
from perception.diagnose.config import DiagnoseConfig
from perception.diagnose.diagnosis import diagnose
from perception.diagnose.report import ROWS
from perception.noise import Noise
from perception.registry import register_encoder
from tests.agents.one_line import one_line

FAR_AWAY, NEARLY_FLAT = {"position": (2.84, 0.0, 3.64)}, {"position": (1.0, 0.0, 0.95)}
TURNED_AWAY = {"target": (5.0, 0.0, 0.8)}


@register_encoder("without-goal")
class WithoutGoal(torch.nn.Module):
    """Mean of the points relative to the end effector; where the goal is, is lost."""

    out_features = 2

    def __init__(self, in_shape):
        super().__init__()

    def forward(self, observation):
        return observation[..., :2].mean(dim=1)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The real command, with two cameras and whole episodes of the expert."""
    out = tmp_path_factory.mktemp("diagnosis")
    settings = DiagnoseConfig(cameras=("overhead", "oblique"), encoder="centroid", episodes=2, out=out)
    return diagnose(settings)


def diagnosed(tmp_path, monkeypatch, changed, steps=30, **settings):
    """Diagnose with cameras that were changed, and episodes that are cut short."""
    for name, changes in changed.items():
        monkeypatch.setitem(CAMERAS, name, CAMERAS[name] | changes)
    monkeypatch.setitem(HORIZONS, "push-slot", steps)
    settings = {"encoder": "centroid", "episodes": 2} | settings
    findings, advice, _ = diagnose(DiagnoseConfig(out=tmp_path, **settings))
    return findings[-1], advice


@pytest.mark.slow
def test_every_view_is_measured_on_the_same_frames(written):
    findings, advice, (picture, page) = written
    overhead, oblique, both = findings
    assert [found.name for found in findings] == ["overhead", "oblique", "overhead + oblique"]
    assert both.pixels > max(overhead.pixels, oblique.pixels) and both.points == 20
    for found in findings:
        assert 0.5 < found.seen <= 1 and 0 <= found.hidden < 0.02 and found.longest < 10
        assert 0.003 < found.error[0] < 0.012 < 0.02 < found.error[0] + found.gap[1] < 0.06
        assert found.error[0] < found.error[1] and found.gap[0] < found.gap[1]
        assert found.aliased < 0.01 and 0.001 < found.jitter < 0.005 and 0.001 < found.offset < 0.015
        assert min(found.recovered[i] for i in (0, 1, 4, 5)) > 0.8
    assert overhead.bias[0] > 0.005 and overhead.bias[0] > oblique.bias[0], "towards the camera"
    assert oblique.bias[1] < -0.002
    text = page.read_text()
    assert text.startswith(advice) and all(f"| {name} " in text for name in ROWS)
    assert "2 episodes" in text and "of the expert" in text
    image = np.asarray(Image.open(picture))
    assert image.shape[1] > 900 and np.ptp(image) > 200


@pytest.mark.parametrize("obs", ["state", "pointcloud"])
def test_an_agent_plays(tmp_path, monkeypatch, obs):
    monkeypatch.setitem(HORIZONS, "push-slot", 5)
    run = assets.path(f"policies/push-slot-1-{obs}")
    findings, _, _ = diagnose(DiagnoseConfig(run=run, episodes=2, out=tmp_path))
    assert findings[0].hidden < 0.5 and f"of the agent {run}" in (tmp_path / "diagnosis.md").read_text()


BLIND = "overhead does not see the puck in 100.0% of the frames, up to 31 in a row"


@pytest.mark.parametrize(
    ("changed", "settings", "found", "remedy"),
    [
        ({"overhead": TURNED_AWAY}, {}, BLIND, "fuse oblique (--cameras overhead oblique)"),
        (
            {"overhead": TURNED_AWAY, "oblique": TURNED_AWAY},
            {"cameras": ("overhead", "oblique")},
            "overhead + oblique does not see the puck in 100.0%",
            "move a camera, or add one",
        ),
        ({"overhead": FAR_AWAY}, {}, "overhead sees the puck with 6 pixels", "larger images"),
        ({"overhead": NEARLY_FLAT}, {}, "the centroid that overhead sees is 1", "fuse oblique"),
        ({}, {"dropped": 1.0}, "overhead loses the puck to noise in 100.0% of the frames", "a better sensor"),
        ({}, {"dropped": 0.99}, "overhead loses the puck to noise in 3", "larger images"),
        ({}, {"extrinsics_noise": (0.0, 45.0)}, "overhead loses the puck to noise in", "calibrate better"),
        ({}, {"extrinsics_noise": (0.02, 2.0)}, "calibration errors of 20 mm and 2° move the centroid", "calibrate to"),
        (
            {},
            {"depth_noise": 0.09},
            "throughout an episode, calibration errors alone by",
            "take a better sensor",
        ),
        ({}, {"dropped": 0.94, "extrinsics_noise": (0.0, 0.0)}, "noise moves the centroid by 1", "average over frames"),
        (
            {},
            {"encoder": "without-goal", "policy": "random", "episodes": 4},
            "hold a position with an R² of",
            "pre-train",
        ),
    ],
)
def test_each_advice_is_reached(tmp_path, monkeypatch, changed, settings, found, remedy):
    _, advice = diagnosed(tmp_path, monkeypatch, changed, **settings)
    assert found in advice and remedy in advice and "\n" not in advice
    assert (tmp_path / "diagnosis.png").stat().st_size > 10_000


@pytest.mark.slow
def test_where_nothing_is_to_change_that_is_said(written):
    """Of the view at once, and of everything if the features held the velocities too."""
    found = written[0][-1]
    assert written[1].startswith("nothing to change in the view of overhead + oblique; velocities are not recovered")
    assert "n-step returns" in written[1]
    for r2 in (0.95, np.nan):  # a puck that rests has no R²
        whole = dataclasses.replace(found, recovered=(1.0, 1.0, r2, r2) * 2)
        assert advise(whole, Noise()) == "nothing to change: the clouds of overhead + oblique are sufficient"


@pytest.mark.slow
def test_clouds_that_look_alike_are_named_too(written):
    alike = dataclasses.replace(written[0][0], aliased=0.021)
    assert "2.1% have a cloud like that of another state: fuse oblique" in advise(alike, Noise())


def test_fusing_the_camera_that_is_advised_helps(tmp_path, monkeypatch):
    found, advice = diagnosed(tmp_path, monkeypatch, {"overhead": TURNED_AWAY}, cameras=("overhead", "oblique"))
    assert found.hidden == 0 and "does not see" not in advice


def test_a_puck_that_is_never_seen_has_no_centroid(tmp_path, monkeypatch):
    found, _ = diagnosed(tmp_path, monkeypatch, {"overhead": TURNED_AWAY}, steps=5)
    assert found.hidden == found.lost == 1 and found.seen == 0
    assert np.isnan([*found.error, *found.bias, *found.gap, found.offset, found.jitter]).all()
    assert "| - / - " in (tmp_path / "diagnosis.md").read_text()


def test_calibration_that_is_advised_is_good_enough(tmp_path, monkeypatch):
    """The displacement is proportional to the error of the calibration."""
    kept = {"depth_noise": 0.0, "overwrite": True}
    found, _ = diagnosed(tmp_path, monkeypatch, {}, extrinsics_noise=(0.02, 2.0), **kept)
    less = 0.009 / found.offset
    found, advice = diagnosed(tmp_path, monkeypatch, {}, extrinsics_noise=(0.02 * less, 2.0 * less), **kept)
    assert found.offset == pytest.approx(0.009, rel=0.1) and "calibrat" not in advice


def test_calibration_is_blamed_for_its_own_error_alone(tmp_path, monkeypatch):
    """The noise of the depth draws the centroid to one side too, and calibration does not help against it."""
    found, advice = diagnosed(tmp_path, monkeypatch, {}, depth_noise=0.1, extrinsics_noise=(0.0, 0.0))
    assert found.offset > 0.02 and found.miscalibration == 0 and "calibrate to" not in advice
    kept = {"extrinsics_noise": (0.003, 0.3), "overwrite": True}
    one, other = (diagnosed(tmp_path, monkeypatch, {}, depth_noise=depth, **kept)[0] for depth in (0.0, 0.01))
    assert one.miscalibration == other.miscalibration == pytest.approx(np.hypot(one.offset, one.jitter))
    assert other.offset != one.offset


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cameras", "nowhere"], "--cameras: unknown camera 'nowhere'; the model has"),
        (
            ["--cameras", "overhead", "overhead"],
            "--cameras is 'overhead overhead'; name at least one, each of them once",
        ),
        (["--depth-noise", "-1"], "--depth-noise is -1.0; it must lie in [0, 0.1]"),
        (["--dropped", "2"], "--dropped is 2.0; it must lie in [0, 1]"),
        (["--extrinsics-noise", "0.001", "90"], "--extrinsics-noise: rotation is 90.0; it must lie in [0, 45]"),
        (["--episodes", "1"], "--episodes is 1; it must lie in [2, 200]"),
        (["--episodes", "201"], "--episodes is 201; it must lie in [2, 200]"),
        (["--renderer", "vulkan"], "--renderer: unknown renderer 'vulkan'; known: gl, ray"),
        (["--run", "missing"], "missing: no such run directory or checkpoint"),
        (["--run", "missing", "--policy", "expert"], "--run and --policy exclude each other"),
        (["--estimator", "missing.pt"], "missing.pt: no such file"),
        (["--encoder", "voxels"], "unknown encoder 'voxels'"),
        (["--encoder", "mlp", "--estimator", "a.pt"], "--estimator and --encoder exclude each other"),
    ],
)
def test_bad_input_ends_in_one_line(tmp_path, capsys, arguments, message):
    assert message in one_line(main, [*arguments, "--out", str(tmp_path / "new")], capsys)
    assert not (tmp_path / "new").exists()


def test_files_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "diagnosis.md").write_text("mine")
    assert "exists already; choose another --out or --overwrite" in one_line(main, ["--out", str(tmp_path)], capsys)
    assert (tmp_path / "diagnosis.md").read_text() == "mine"
