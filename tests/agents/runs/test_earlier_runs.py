"""Runs of versions that updated after every step are read, evaluated and compared, and not continued."""

import json
import shutil

import pytest

import assets
from agents import runs
from agents.compare import main as compare
from agents.config.presets import PRESETS
from agents.evaluate import main as evaluate
from agents.sac.guide import Guide
from agents.train import main as train
from tests.agents.one_line import one_line


@pytest.fixture
def earlier(tmp_path):
    """The shipped policy with the configuration of such a run, but for the widths of its layers."""
    directory = shutil.copytree(assets.path("policies/push-slot-1-state"), tmp_path / "run")
    name = "results/earlier/push-slot-1-state-buffer+potential+annealing+guide-seed0/config.json"
    config = json.loads(assets.path(name).read_text())
    assert config["learner"]["gradient_steps"] == 2
    config["learner"]["net_arch"] = list(runs.read_config(directory).learner.net_arch)
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    return directory


def test_the_settings_say_what_it_did(earlier):
    learner = runs.read_config(earlier).learner
    assert (learner.update_ratio, learner.block, learner.n_steps, learner.tau) == (2.0, 1, 1, 0.005)
    assert learner.target_bounds == (-2.0, 1.0)
    guide = Guide(None, None, learner.guided_share, learner.guide_noise, 0, learner.guide_decay)
    assert guide.share_at(0) == guide.share_at(10**8) == 0.5


@pytest.mark.parametrize(
    "steps, message", [(0, "update-ratio is 0"), ("two", "update_ratio is 'two'; input should be a valid number")]
)
def test_what_never_was_a_setting_is_refused(earlier, steps, message):
    path = earlier / "config.json"
    path.write_text(path.read_text().replace('"gradient_steps": 2', f'"gradient_steps": {json.dumps(steps)}'))
    with pytest.raises(ValueError, match=f"^{path}: .*{message}"):
        runs.read_config(earlier)


def test_its_policy_is_evaluated(earlier, capsys):
    evaluate([str(earlier), "--episodes", "2"])
    assert "success rate 1.00" in capsys.readouterr().out


@pytest.mark.parametrize("checkpoint", [False, True], ids=["without a checkpoint", "with one"])
def test_it_is_not_continued_and_nothing_is_written(earlier, checkpoint, capsys):
    if checkpoint:
        (earlier / "checkpoints" / "step-000010000").mkdir(parents=True)
    before = {path: path.read_bytes() if path.is_file() else None for path in earlier.rglob("*")}
    error = one_line(train, ["--resume", str(earlier), "--steps", "50000"], capsys)
    assert f"{earlier} was trained by an earlier version and cannot be continued" in error
    assert "evaluate it, or train anew with another --out" in error
    assert {path: path.read_bytes() if path.is_file() else None for path in earlier.rglob("*")} == before


def test_its_result_is_compared(earlier, tmp_path, capsys):
    """With the settings that differ from those of this version."""
    directory = earlier.rename(tmp_path / "push-slot-1-state-buffer+potential+annealing+guide-seed0")
    results = {"success_rate": 0.97, "mean_steps": 31.5, "environment_steps": 40_000, "seconds": 900.0}
    (directory / "result.json").write_text(json.dumps(results))
    (directory / "progress.csv").write_text("step,eval/success_rate\n5000,0.5\n40000,0.97\n")
    words = ["--runs", str(tmp_path), "--out", str(tmp_path / "report"), "--obs", "state", "--seeds", "1"]
    compare(words)
    printed = capsys.readouterr().out
    ratio = PRESETS["default"]["state"].learner.update_ratio
    assert "97.0" in printed and f"learner.update_ratio 2.0 ({ratio})" in printed
