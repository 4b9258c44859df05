"""Encoders: registry, invariance to the order of points, rows of a batch."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from perception.registry import _ENCODERS, available_encoders, make_encoder, register_encoder

# PyG compiles a part of its utilities by torch.jit.script, which PyTorch 2.13 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

CLOUD = (20, 4)
FLAT = ("state", "identity")  # encoders of flat observations
INVARIANT = {"pointnet": True, "centroid": True, "mlp": False}


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    return make_encoder(name, in_shape=(8,) if name in FLAT else CLOUD)


def batch(encoder_name: str, rows: int = 16) -> torch.Tensor:
    shape = (8,) if encoder_name in FLAT else CLOUD
    return 0.2 * torch.randn(rows, *shape, generator=torch.Generator().manual_seed(1))


def of_clouds() -> list[str]:
    return [name for name in available_encoders() if name not in FLAT]


@pytest.mark.parametrize(("name", "invariant"), INVARIANT.items())
def test_order_of_points(name, invariant):
    """Permuted points give the same features, but for the control: it gives clearly others."""
    encoder, clouds = make(name), batch(name)
    shuffled = clouds[:, torch.randperm(CLOUD[0], generator=torch.Generator().manual_seed(2))]
    features, again = encoder(clouds), encoder(shuffled)
    change = (again - features).norm(dim=1) / features.norm(dim=1)
    assert change.max() < 1e-5 if invariant else change.min() > 0.1


def test_the_order_is_tried_with_every_encoder_of_clouds():
    assert set(INVARIANT) == set(of_clouds())


def test_repeated_points_do_not_change_a_pointnet():
    few = batch("pointnet")[:, :5]
    encoder = make("pointnet")
    torch.testing.assert_close(encoder(few), encoder(few[:, torch.arange(20) % 5]), atol=1e-5, rtol=0)


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


@pytest.mark.parametrize("name", ["pointnet", "mlp"])
@pytest.mark.parametrize("out_features", [3, 50])
def test_number_of_features_is_a_choice(name, out_features):
    encoder = make_encoder(name, in_shape=CLOUD, out_features=out_features)
    assert encoder.out_features == out_features == encoder(batch(name)).shape[-1]


def test_a_pointnet_tells_a_puck_where_it_is():
    """After a short training the features give the centroid to 1.5 cm, in a square of 40 cm."""
    torch.manual_seed(0)
    encoder = make("pointnet")
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
    with pytest.raises(ValueError, match=r"unknown encoder 'pointnet3'.*centroid, identity, mlp, pointnet, state"):
        make_encoder("pointnet3", in_shape=CLOUD)


def test_built_ins_are_imported_when_asked_for():
    """No encoder needs torch-cluster, torch-scatter or pyg-lib, and the state encoder not even PyG."""
    script = (
        "import sys; import perception; assert 'torch' not in sys.modules and 'open3d' not in sys.modules;"
        "perception.make_encoder('state', in_shape=(8,)); assert 'torch_geometric' not in sys.modules;"
        "sys.modules.update(dict.fromkeys(['torch_cluster', 'torch_scatter', 'pyg_lib', 'torch_sparse']));"
        "clouds = [n for n in perception.available_encoders() if n not in ('state', 'identity')];"
        "[perception.make_encoder(n, in_shape=(20, 4)) for n in clouds]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
