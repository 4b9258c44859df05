"""The estimator keeps its bounds, and its file is either what was saved or one clear error."""

import pickle
from pathlib import Path

import pytest
import torch

from shaping import ValueEstimator

KINDS = {"state": ("state", {}), "pointcloud": ("pointnet", {"out_features": 32})}


def make_estimator(kind: str = "state", seed: int = 0, **settings) -> ValueEstimator:
    torch.manual_seed(seed)
    encoder, kwargs = KINDS[kind]
    return ValueEstimator(kind, encoder, kwargs, hidden=(32, 32), **settings).eval()


def observe(estimator: ValueEstimator, count: int = 64, spread: float = 0.1) -> torch.Tensor:
    return spread * torch.randn(count, *estimator.in_shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", KINDS)
def test_outputs(kind):
    seen = observe(make_estimator(kind))
    low, high = make_estimator(kind, action_dim=3).raw_value(seen).quantile(torch.tensor([0.25, 0.75])).tolist()
    estimator = make_estimator(kind, action_dim=3, bounds=(low, high))
    value, action = estimator(seen), estimator.act(seen)
    assert value.shape == (64,) and action.shape == (64, 3)
    assert (value == low).sum() == (value == high).sum() == 16, "a quarter is clipped at each end"
    assert action.abs().max() <= 1.0
    mean, log_std = estimator.action_distribution(seen)
    torch.testing.assert_close(action, mean.tanh())
    assert log_std.min() >= -20.0 and log_std.max() <= 2.0
    torch.testing.assert_close(value, estimator.raw_value(seen).clamp(low, high))


def test_outputs_lie_within_the_papers_bounds_by_default():
    """[−100, 1] (appendix)."""
    estimator = make_estimator()
    with torch.no_grad():
        estimator.value[-1].weight *= 1e5
        value, raw = estimator(observe(estimator)), estimator.raw_value(observe(estimator))
    assert raw.min() < -100.0 and raw.max() > 1.0
    torch.testing.assert_close(value, raw.clamp(-100.0, 1.0), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_are_the_same(kind, tmp_path):
    estimator = make_estimator(kind, gamma=0.97, goal_speed=0.1)
    estimator.save(tmp_path / "deep" / "estimator.pt")
    loaded = ValueEstimator.load(tmp_path / "deep" / "estimator.pt", observation=kind)
    seen = observe(estimator)
    torch.testing.assert_close(loaded(seen), estimator(seen), rtol=0, atol=0)
    torch.testing.assert_close(loaded.act(seen), estimator.act(seen), rtol=0, atol=0)
    assert loaded.fingerprint() == estimator.fingerprint()
    assert (loaded.config, loaded.goals, loaded.gamma) == (estimator.config, estimator.goals, 0.97)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["estimator.pt"], "no temporary file is left"


def test_fingerprint_sees_weights_and_configuration():
    original = make_estimator()
    assert make_estimator().fingerprint() == original.fingerprint()
    others = [make_estimator(seed=1), make_estimator(gamma=0.9), make_estimator(bounds=(0.0, 1.0)), make_estimator()]
    with torch.no_grad():
        others[-1].value[0].weight[0, 0] += 1e-6
    assert len({estimator.fingerprint() for estimator in (original, *others)}) == 5


class Trap:
    """Would leave a mark if it were unpickled."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def altered(**changes):
    def write(path: Path):
        content = torch.load(path, weights_only=True)
        torch.save({**content, **changes}, path)

    return write


def nudge_a_weight(path: Path):
    content = torch.load(path, weights_only=True)
    content["weights"]["value.0.weight"][0, 0] += 1e-6
    torch.save(content, path)


def reconfigure(**changes):
    def write(path: Path):
        content = torch.load(path, weights_only=True)
        content["config"].update(changes)
        torch.save(content, path)

    return write


def flip_a_byte(path: Path):
    data = bytearray(path.read_bytes())
    weight = torch.load(path, weights_only=True)["weights"]["value.2.weight"].numpy().tobytes()
    data[data.index(weight)] ^= 0xFF
    path.write_bytes(data)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "byte flipped": flip_a_byte,
    "text": lambda path: path.write_text("value estimator\n" * 100),
    "pickle": lambda path: path.write_bytes(pickle.dumps([1, 2])),
    "trap": lambda path: torch.save({"config": Trap(path.with_name("mark"))}, path),
    "tensor": lambda path: torch.save(torch.zeros(3), path),
    "policy weights": lambda path: torch.save(torch.nn.Linear(2, 2).state_dict(), path),
    "weight nudged": nudge_a_weight,
    "without weights": altered(weights=None),
    "other weights": altered(weights={"a": torch.zeros(2)}),
    "other format": altered(format="shaping.ValueEstimator/99"),
    "unknown encoder": reconfigure(encoder="no-such-encoder"),
    "unknown encoder argument": reconfigure(encoder_kwargs={"no_such_argument": 1}),
    "unknown setting": reconfigure(no_such_setting=1),
    "unknown observation": reconfigure(observation="depth"),
    "other widths": reconfigure(hidden=[16, 16]),
    "nonsense": reconfigure(hidden="wide", bounds=3),
}


@pytest.mark.untyped
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_one_line_that_names_it(damage, tmp_path):
    path = tmp_path / "estimator.pt"
    make_estimator().save(path)
    DAMAGE[damage](path)
    with pytest.raises(ValueError) as error:
        ValueEstimator.load(path)
    message = str(error.value)
    assert message.startswith(str(path)) and "\n" not in message and len(message) < 400
    assert not (tmp_path / "mark").exists(), "nothing in the file was executed"


def test_unknown_encoder_lists_the_known(tmp_path):
    path = tmp_path / "estimator.pt"
    make_estimator().save(path)
    DAMAGE["unknown encoder"](path)
    with pytest.raises(ValueError, match=r"no-such-encoder.*pointnet"):
        ValueEstimator.load(path)


def test_file_for_another_observation(tmp_path):
    path = tmp_path / "estimator.pt"
    make_estimator("state").save(path)
    with pytest.raises(ValueError, match="made for 'state' observations, not 'pointcloud'"):
        ValueEstimator.load(path, observation="pointcloud")


def test_missing_file_says_how_to_get_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no-such-file\.pt.*pretrain"):
        ValueEstimator.load(tmp_path / "no-such-file.pt")


def test_settings_are_checked():
    with pytest.raises(ValueError, match="low < high"):
        make_estimator(bounds=(1.0, 0.0))
    with pytest.raises(ValueError, match="plain data"):
        ValueEstimator("state", "state", {"activation": torch.relu})
