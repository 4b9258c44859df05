"""Encoders: registry, invariance to the order of points, rows of a batch."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import assets
from envs.demonstrations import load_demonstrations
from perception.encoders.dgcnn import nearest
from perception.registry import _ENCODERS, available_encoders, find_encoder, make_encoder, register_encoder

# PyG compiles a part of its utilities by torch.jit.script, which PyTorch 2.13 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

CLOUD = (20, 4)
OTHER = {"state": (8,), "identity": (8,), "rgbd_cnn": (4, 48, 48)}  # shapes of what is no cloud
INVARIANT = {
    "pointnet": True,
    "pointnet2": True,
    "dgcnn": True,
    "set_transformer": True,
    "centroid": True,
    "mlp": False,
}
LEARNED = ("pointnet", "pointnet2", "dgcnn", "set_transformer")


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    return make_encoder(name, in_shape=OTHER.get(name, CLOUD))


def batch(encoder_name: str, rows: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    if encoder_name in OTHER:
        return 0.2 * torch.randn(rows, *OTHER[encoder_name], generator=generator)
    return sum(size * torch.randn(rows, n, 4, generator=generator) for size, n in ((0.1, 1), (0.03, CLOUD[0])))


def of_clouds() -> list[str]:
    known = (name for name in available_encoders() if name not in OTHER)
    return [name for name in known if find_encoder(name).__module__.startswith("perception.")]  # not one of a test


@pytest.fixture(scope="module")
def clouds() -> torch.Tensor:
    """Real clouds: those of the shipped demonstrations."""
    paths = [assets.path("demonstrations") / f"push-slot-{grids}.hdf5" for grids in (1, 3)]
    shown = [t.observations["pointcloud"] for path in paths for t in load_demonstrations(path, "pointcloud")]
    return torch.from_numpy(np.concatenate(shown).astype(np.float32))


@torch.no_grad()
def change(encoder: nn.Module, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Length of the change of the features, relative to the features."""
    features = encoder(before)
    return (encoder(after) - features).norm(dim=1) / features.norm(dim=1)


@pytest.mark.parametrize(("name", "invariant"), INVARIANT.items())
def test_order_of_points(name, invariant):
    """Permuted points give the same features, but for the control: it gives clearly others."""
    encoder, rows = make(name), batch(name)
    shuffled = rows[:, torch.randperm(CLOUD[0], generator=torch.Generator().manual_seed(2))]
    changed = change(encoder, rows, shuffled)
    assert changed.max() < 1e-5 if invariant else changed.min() > 0.1


@pytest.mark.parametrize("name", [name for name, invariant in INVARIANT.items() if invariant])
def test_order_of_the_points_of_real_clouds(name, clouds):
    """Points of a pixel grid are often equally far from each other, and then neighbours must not follow the order."""
    encoder = make(name)
    for seed in range(5):
        order = torch.randperm(CLOUD[0], generator=torch.Generator().manual_seed(seed))
        assert change(encoder, clouds, clouds[:, order]).max() < 1e-5


def test_the_order_is_tried_with_every_encoder_of_clouds():
    assert set(INVARIANT) == set(of_clouds())


@pytest.mark.parametrize("name", ["pointnet", "pointnet2"])
def test_repeated_points_do_not_change_a_maximum(name, clouds):
    rows = torch.arange(20) ** 2 % 7  # some more often than others
    assert change(make(name), clouds[:, :7], clouds[:, rows.unique()]).max() > 0.01
    assert change(make(name), clouds[:, rows.unique()], clouds[:, rows]).max() < 1e-5


def test_points_that_are_repeated_equally_often_do_not_change_attention(clouds):
    encoder, few = make("set_transformer"), clouds[:, :5]
    assert change(encoder, few, few[:, torch.arange(20) % 5]).max() < 1e-5
    assert change(encoder, few, few[:, [0, 0, 0, 1, 2, 3, 4]]).min() > 1e-3


@pytest.mark.parametrize("name", [*LEARNED, "mlp"])
def test_features_tell_clouds_and_places_apart(name, clouds):
    """A puck elsewhere, a centimetre further, or seen from an arm that moved."""
    encoder = make(name)
    assert change(encoder, clouds[:50], clouds[50:100]).min() > 1e-3
    for shift in ([0.01] * 4, [0.01, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.01]):
        assert change(encoder, clouds, clouds + torch.tensor(shift)).min() > 1e-3


def test_neighbourhoods_move_with_a_cloud(clouds):
    """But for the last bit of the coordinates: whatever the points are relative to, they have the same neighbours."""
    moved = clouds + torch.tensor([0.3, -0.2, 0.1, 0.5])
    here, there = (nearest(10 * cloud, 6).sort(dim=-1).values for cloud in (clouds, moved))
    assert (here == there).float().mean() > 0.999
    local = make("pointnet2")
    with torch.no_grad():
        local.all.weight[:, :4] = 0  # what is left of the features are the neighbourhoods
    assert change(local, clouds, moved).median() < 1e-5


@pytest.mark.parametrize("name", LEARNED)
def test_clouds_of_any_size(name, clouds):
    """Fewer points than neighbours, one point, points in space, and labels of two objects."""
    for rows in (clouds[:, :3], clouds[:, :1], clouds.repeat(1, 3, 1)):
        assert torch.isfinite(make(name)(rows)).all()
    labelled = make_encoder(name, in_shape=(40, 8))
    assert labelled(torch.randn(2, 40, 8)).shape == (2, 64)


@pytest.mark.parametrize("name", available_encoders())
def test_rows_shapes_and_gradients(name):
    encoder, rows = make(name), batch(name).requires_grad_()
    features = encoder(rows)
    assert features.shape == (16, encoder.out_features)
    for row, expected in zip(rows, features, strict=True):
        torch.testing.assert_close(encoder(row[None])[0], expected, atol=1e-5, rtol=1e-5)
    features.square().sum().backward()
    assert torch.isfinite(rows.grad).all() and rows.grad.abs().sum() > 0
    for parameter in encoder.parameters():
        assert torch.isfinite(parameter.grad).all() and parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [*LEARNED, "rgbd_cnn", "mlp"])
@pytest.mark.parametrize("out_features", [3, 50])
def test_number_of_features_is_a_choice(name, out_features):
    encoder = make_encoder(name, in_shape=OTHER.get(name, CLOUD), out_features=out_features)
    assert encoder.out_features == out_features == encoder(batch(name)).shape[-1]


@pytest.mark.parametrize("name", LEARNED)
def test_an_encoder_tells_a_puck_where_it_is(name):
    """After a short training the features give the centroid to 1.5 cm, in a square of 40 cm."""
    torch.manual_seed(0)
    encoder = make(name)
    model = nn.Sequential(encoder, nn.Linear(encoder.out_features, 4))
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=200)

    def clouds(rows):
        centers = 0.4 * torch.rand(rows, 1, 4) - 0.2
        angle, radius = 6.28 * torch.rand(rows, 20), 0.03 * torch.rand(rows, 20).sqrt()
        offset = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
        return centers + torch.cat([offset, offset], dim=-1)

    for _ in range(200):
        rows = clouds(64)
        loss = (model(rows) - 10 * rows.mean(dim=1)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    rows = clouds(512)
    error = (model(rows) / 10 - rows.mean(dim=1)).norm(dim=-1).mean() / 2**0.5
    assert error < 0.015


@pytest.mark.parametrize("name", of_clouds())
def test_a_wrong_shape_names_the_right_one(name):
    with pytest.raises(ValueError, match=f"{name}.*points, channels"):
        make_encoder(name, in_shape=(8,))


@pytest.mark.parametrize("shape", [(8,), (20, 4), (3, 48, 48), (4, 14, 48)])
def test_a_shape_that_is_no_image_names_the_right_one(shape):
    with pytest.raises(ValueError, match=r"encoder 'rgbd_cnn' takes inputs of shape \(4, height, width\)") as error:
        make_encoder("rgbd_cnn", in_shape=shape)
    assert "\n" not in str(error.value)


def test_an_image_is_seen_by_its_colours_and_its_depth():
    """The depth is relative to its mean, so that a camera further away sees the same."""
    encoder, images = make("rgbd_cnn"), batch("rgbd_cnn").abs()
    for channel in range(4):
        other = images.clone()
        other[:, channel, 20:24, 20:24] += 0.1
        assert change(encoder, images, other).min() > 1e-3
    further = images.clone()
    further[:, 3] += 0.5
    assert change(encoder, images, further).max() < 1e-4


def test_state_scales_and_learns_nothing():
    encoder = make("state")
    torch.testing.assert_close(encoder(torch.ones(1, 8)), torch.tensor([[10.0, 10, 5, 5, 10, 10, 5, 5]]))
    assert encoder.out_features == 8 and not encoder.state_dict()
    with pytest.raises(ValueError, match=r"state.*\(8,\)"):
        make_encoder("state", in_shape=(9,))
    with pytest.raises(ValueError, match="encoder 'identity' takes inputs of shape"):
        make_encoder("identity", in_shape=CLOUD)


def test_registry():
    @register_encoder("same")
    class Identity(nn.Module):
        def __init__(self, in_shape, out_features=64):
            super().__init__()
            self.out_features = out_features

    try:
        assert isinstance(make_encoder("same", in_shape=CLOUD), Identity)
        assert "same" in available_encoders()
        for taken in ("same", "pointnet", "state"):
            with pytest.raises(ValueError, match=f"{taken}.*registered already"):
                register_encoder(taken)(type("Other", (nn.Module,), {}))
    finally:
        del _ENCODERS["same"]
    with pytest.raises(
        ValueError, match=r"unknown encoder 'pointnet3'.*centroid, dgcnn, identity, mlp, pointnet, point"
    ):
        make_encoder("pointnet3", in_shape=CLOUD)


def test_built_ins_are_imported_when_asked_for():
    """No encoder needs torch-cluster, torch-scatter or pyg-lib, and the state encoder not even PyG."""
    script = (
        "import sys; import perception; assert 'torch' not in sys.modules and 'open3d' not in sys.modules;"
        "perception.make_encoder('state', in_shape=(8,)); assert 'torch_geometric' not in sys.modules;"
        "sys.modules.update(dict.fromkeys(['torch_cluster', 'torch_scatter', 'pyg_lib', 'torch_sparse']));"
        "clouds = [n for n in perception.available_encoders() if n not in ('state', 'identity', 'rgbd_cnn')];"
        "[perception.make_encoder(n, in_shape=(20, 4)) for n in clouds]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
