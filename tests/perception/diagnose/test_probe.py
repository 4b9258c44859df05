"""The probe recovers what the features hold, on episodes that it has not seen."""

import numpy as np
import pytest
import torch

import assets
from perception.diagnose.probe import BATCH, RIDGE, features, load_encoder, recovered

EPISODE = np.repeat(np.arange(10), 60)


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(600, 5)) * [1, 10, 0.1, 1, 3] + 2


def test_linear_targets_are_recovered_and_noise_is_not():
    rng, inputs = drawn()
    targets = np.stack([inputs @ [1, -1, 20, 0, 2] + 7, rng.normal(size=600), np.full(600, 3.0)], axis=1)
    linear, noise, constant = recovered(inputs, targets, EPISODE)
    assert linear > 0.999 and -0.1 < noise < 0.05 and np.isnan(constant)


def test_the_fit_is_that_of_augmented_least_squares():
    rng, inputs = drawn(1)
    target, fitted = rng.normal(size=600) + inputs[:, 0], EPISODE % 2 == 0
    x = (inputs - inputs[fitted].mean(0)) / inputs[fitted].std(0)
    y = target - target[fitted].mean()
    rows = np.concatenate([x[fitted] / np.sqrt(fitted.sum()), np.sqrt(RIDGE) * np.eye(5)])
    weights = np.linalg.lstsq(rows, np.append(y[fitted] / np.sqrt(fitted.sum()), np.zeros(5)), rcond=None)[0]
    left = y[~fitted]
    expected = 1 - ((left - x[~fitted] @ weights) ** 2).sum() / ((left - left.mean()) ** 2).sum()
    assert recovered(inputs, target[:, None], EPISODE)[0] == pytest.approx(expected)


def test_what_is_right_in_the_fitted_episodes_only_is_not_recovered():
    rng, inputs = drawn(2)
    target = np.where(EPISODE % 2 == 0, inputs[:, 0], rng.normal(size=600))
    assert recovered(inputs, target[:, None], EPISODE)[0] < 0.1


def test_a_feature_that_does_not_vary_does_no_harm():
    _, inputs = drawn(3)
    padded = np.concatenate([inputs, np.full((600, 1), 0.7)], axis=1)
    np.testing.assert_allclose(recovered(padded, inputs, EPISODE), recovered(inputs, inputs, EPISODE), atol=1e-9)


def test_encoders_by_file_and_by_name():
    clouds = np.random.default_rng(0).normal(size=(4, 20, 4)).astype(np.float32)
    shipped = assets.path("estimators/push-plane-pointcloud.pt")
    found = features(load_encoder(shipped, None, (20, 4), 0), clouds)
    assert found.shape == (4, 64) and found.dtype == float
    one, again, other = (features(load_encoder(shipped, "pointnet", (20, 4), seed), clouds) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1 and np.abs(one - found).max() > 0.1
    assert torch.is_grad_enabled()


def test_clouds_are_encoded_in_batches():
    clouds, sizes = np.random.default_rng(0).normal(size=(2 * BATCH + 5, 20, 4)).astype(np.float32), []
    encoder = load_encoder(assets.path("estimators/push-plane-pointcloud.pt"), None, (20, 4), 0)
    encoder.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    found = features(encoder, clouds)
    assert sizes == [BATCH, BATCH, 5] and len(found) == len(clouds)
    np.testing.assert_allclose(found[-9:], features(encoder, clouds[-9:]), atol=1e-6)


@pytest.mark.parametrize(
    ("file", "encoder", "shape", "message"),
    [
        ("state", None, (20, 4), "made for 'state' observations, not 'pointcloud'"),
        ("pointcloud", None, (20, 6), r"made for clouds of shape \(20, 4\), not \(20, 6\)"),
        ("pointcloud", "voxels", (20, 4), "unknown encoder 'voxels'; known: "),
        ("pointcloud", "state", (20, 4), "encoder 'state' takes inputs of shape"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(file, encoder, shape, message):
    with pytest.raises(ValueError, match=message):
        load_encoder(assets.path(f"estimators/push-plane-{file}.pt"), encoder, shape, 0)
