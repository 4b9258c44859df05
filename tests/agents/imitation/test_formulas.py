"""Rewards of the baselines against their formulas, written out for single transitions."""

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from agents.imitation import dril as dril_module
from agents.imitation.adril import ROUND, AdRIL
from agents.imitation.cloning import EDGE, clone, log_likelihood
from agents.imitation.expert import Embedding, Pairs, expert_pairs
from agents.imitation.gail import GAIL, PENALTY, discriminator_loss, make_discriminator
from agents.imitation.pwil import BANDWIDTH, MARGIN, PWIL, SCALE
from agents.replay import ShapedReplayBuffer
from agents.replay.rewards import Rows
from tests.agents.imitation.test_learning import all_rows, of_random
from tests.agents.imitation.toy import HORIZON, Identity, Reach, episodes, make

EMBEDDING = Embedding(Identity(), torch.device("cpu"))


@pytest.fixture(scope="module")
def shown():
    env = Reach()
    return episodes(env, env.expert, 3)


def test_the_absorbing_state_follows_every_demonstration(shown):
    pairs = expert_pairs(shown, EMBEDDING)
    size = shown.size()
    np.testing.assert_array_equal(pairs.features[:size, :2], shown.observations[:size, 0])
    np.testing.assert_array_equal(pairs.actions[:size], shown.actions[:size, 0])
    assert not pairs.features[:size, 2].any() and len(pairs.actions) == size + 3
    assert pairs.features[size:].tolist() == [[0, 0, 1]] * 3 and not pairs.actions[size:].any()


def test_gail_is_the_log_odds_of_the_discriminator(shown):
    gamma = 0.9
    reward = GAIL(expert_pairs(shown, EMBEDDING), EMBEDDING, gamma, seed=0)
    rows = all_rows(shown)
    assert rows.terminal.sum() == 3
    for row, found in enumerate(reward(rows)):
        x = np.concatenate([shown.observations[row, 0], [0.0], shown.actions[row, 0]]).astype(np.float32)
        d, absorbing = (
            torch.sigmoid(reward.discriminator(torch.from_numpy(v)[None]).double()).item()
            for v in (x, np.array([0, 0, 1, 0, 0], np.float32))
        )
        expected = np.log(d) - np.log(1 - d)
        if shown.dones[row, 0]:  # γ r + γ² r + … of the absorbing state
            expected += sum(gamma**k * (np.log(absorbing) - np.log(1 - absorbing)) for k in range(1, 400))
        assert found == pytest.approx(expected, abs=1e-5)


def test_the_discriminators_loss():
    torch.manual_seed(0)
    discriminator = make_discriminator(4).eval()
    expert, agent, share = torch.randn(6, 4), torch.randn(6, 4), torch.rand(6, 1)
    loss = 0.0
    for e, a, s in zip(expert, agent, share, strict=True):
        d_expert, d_agent = (torch.sigmoid(discriminator(x[None])).item() for x in (e, a))
        x = (s * e + (1 - s) * a).clone().requires_grad_()
        discriminator(x[None]).sum().backward()
        loss += (-np.log(d_expert) - np.log(1 - d_agent) + PENALTY * (x.grad**2).sum().item()) / 6
    assert discriminator_loss(discriminator, expert, agent, share).item() == pytest.approx(loss, rel=1e-5)


def test_spectral_normalisation_bounds_the_slope():
    """Layers of norm 1 with ReLU between them cannot be steeper than 1."""
    torch.manual_seed(0)
    discriminator = make_discriminator(5)
    for layer in (discriminator[0], discriminator[2]):
        layer.parametrizations.weight.original.data *= 7
    for _ in range(50):
        discriminator(torch.randn(2, 5))  # power iterations
    x, y = torch.randn(500, 5), torch.randn(500, 5)
    slope = (discriminator.eval()(x) - discriminator(y)).abs()[:, 0] / (x - y).norm(dim=1)
    assert slope.max() <= 1.001


def test_pwil_consumes_the_nearest_atoms(shown):
    """Against lists from which atoms are deleted, over several episodes in two environments."""
    expert = expert_pairs(shown, EMBEDDING)
    reward = PWIL(expert, EMBEDDING, HORIZON, num_envs=2)
    atoms = np.concatenate([shown.observations[: shown.size(), 0], shown.actions[: shown.size(), 0]], axis=1)
    atoms = atoms.astype(np.float64)
    mean, deviation = atoms.mean(axis=0), atoms.std(axis=0, ddof=1)
    whole = [[list((atom - mean) / deviation), 1 / len(atoms)] for atom in atoms]
    left = [[[a, w] for a, w in whole] for _ in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(60):
        seen, actions = rng.uniform(-1, 1, (2, 2, 2)).astype(np.float32)
        dones = rng.random(2) < 0.05
        found = reward.collect(seen, actions, dones)
        for env in range(2):
            x = (np.concatenate([seen[env], actions[env]]).astype(np.float64) - mean) / deviation
            weight, cost = 1 / HORIZON - MARGIN, 0.0
            while weight > 0 and left[env]:
                nearest = min(left[env], key=lambda entry: np.linalg.norm(np.array(entry[0]) - x))
                distance = np.linalg.norm(np.array(nearest[0]) - x)
                if weight >= nearest[1]:
                    cost, weight = cost + nearest[1] * distance, weight - nearest[1]
                    left[env].remove(nearest)
                else:
                    cost, nearest[1] = cost + weight * distance, nearest[1] - weight
                    weight = 0
            assert found[env] == pytest.approx(SCALE * np.exp(-BANDWIDTH * HORIZON / 2 * cost), rel=1e-5)
            if dones[env]:
                left[env] = [[a, w] for a, w in whole]


def test_the_likelihood_is_that_of_a_tanh_gaussian():
    torch.manual_seed(0)
    mean, log_std, actions = torch.randn(20, 2), torch.randn(20, 2) - 1, torch.rand(20, 2) * 2 - 1
    actions[0] = torch.tensor([1.0, -1.0])  # clamped
    policy = TransformedDistribution(Independent(Normal(mean, log_std.exp()), 1), TanhTransform())
    expected = policy.log_prob(actions.clamp(-EDGE, EDGE))
    torch.testing.assert_close(log_likelihood(mean, log_std, actions), expected, rtol=1e-4, atol=1e-4)


def test_cloning_descends_the_mean_of_minus_the_likelihood(shown):
    model = make("bc")
    seen, actions = torch.from_numpy(shown.observations[:20, 0]), torch.from_numpy(shown.actions[:20, 0])
    mean, log_std, _ = model.actor.get_action_dist_params(seen)
    loss = clone(model.actor, seen, actions)
    assert loss == pytest.approx(-log_likelihood(mean, log_std, actions).mean().item(), rel=1e-5)
    losses = [clone(model.actor, seen, actions) for _ in range(100)]
    assert losses[-1] < loss - 0.5 and all(p.grad is None for p in model.actor.parameters())


def test_dril_is_the_variance_over_dropout_masks(shown, monkeypatch):
    """Masks are drawn anew for every pass, so the same seed gives the same variance."""
    monkeypatch.setattr(dril_module, "ITERATIONS", 20)
    reward = make("dril", demonstrations=3).replay_buffer.reward
    pairs = Pairs(reward.expert.features[:7], reward.expert.actions[:7])
    torch.manual_seed(5)
    found = reward.uncertainty(pairs)
    torch.manual_seed(5)
    repeated = [part.repeat_interleave(5, dim=0) for part in (pairs.features, pairs.actions)]
    mean, log_std = reward.ensemble(repeated[0]).chunk(2, dim=1)
    densities = log_likelihood(mean, log_std.clamp(-20, 2), repeated[1]).double().exp().detach().numpy()
    assert found.numpy() == pytest.approx(np.var(densities.reshape(7, 5), axis=1, ddof=1), rel=1e-6)
    reward.ensemble.eval()  # without dropout all passes agree
    assert reward.uncertainty(pairs).abs().max() == 0.0


def test_dril_s_reward_is_the_sign_of_threshold_minus_variance(shown, monkeypatch):
    """The threshold is the 98 % quantile of the demonstrated pairs, of which this one rejects some."""
    monkeypatch.setattr(dril_module, "ITERATIONS", 0)
    model = make("dril", demonstrations=3)
    reward, gamma = model.replay_buffer.reward, 0.97
    reward.threshold = None
    torch.manual_seed(5)
    reward.prepare()
    torch.manual_seed(5)
    assert reward.threshold == pytest.approx(np.quantile(reward.uncertainty(reward.expert).numpy(), 0.98), rel=1e-6)
    rows = all_rows(shown)
    pairs = Pairs(*(torch.cat([part, end]) for part, end in zip(*with_absorbing_state(shown), strict=True)))
    for quantile in (0.3, 0.7):
        torch.manual_seed(6)
        variance = reward.uncertainty(pairs).numpy()
        reward.threshold = float(np.quantile(variance, quantile))
        *signs, absorbing = (1.0 if v <= reward.threshold else -1.0 for v in variance)
        forever = sum(gamma**k * absorbing for k in range(1, 1500))
        expected = [sign + forever * end for sign, end in zip(signs, rows.terminal, strict=True)]
        torch.manual_seed(6)
        assert reward(rows) == pytest.approx(expected, abs=1e-4) and {-1.0, 1.0} == set(signs)


def with_absorbing_state(shown):
    """Features and actions of all rows, and of one absorbing state."""
    seen, actions = (torch.from_numpy(part[: shown.size(), 0]) for part in (shown.observations, shown.actions))
    features = torch.cat([seen, torch.zeros(len(seen), 1)], dim=1)
    return (features, actions), (torch.tensor([[0.0, 0.0, 1.0]]), torch.zeros(1, 2))


def test_dril_accepts_most_of_what_was_demonstrated(monkeypatch):
    monkeypatch.setattr(dril_module, "ITERATIONS", 2000)
    reward = make("dril", demonstrations=3).replay_buffer.reward
    before = reward.threshold
    reward.prepare()  # does nothing once it is prepared
    assert reward.threshold == before
    assert (reward.uncertainty(reward.expert) <= reward.threshold).float().mean() > 0.8


@pytest.mark.parametrize("collected", [100, ROUND, ROUND + 1, 3 * ROUND - 7])
def test_adril_counts_rounds_and_episodes(collected, shown):
    env, gamma = Reach(), 0.9
    buffer = ShapedReplayBuffer(4 * ROUND, env.observation_space, env.action_space, device="cpu")
    some = episodes(env, of_random(), 40)
    for row in range(collected):
        buffer.put(some.row(row % some.size()))
    reward, rows = AdRIL(3, gamma), all_rows(buffer)
    ended = buffer.dones[:collected].sum()
    now = int(np.ceil(collected / ROUND))
    for row, found in enumerate(reward(rows)):
        expected = -1 / max(ended, 1) if int(np.ceil((row + 1) / ROUND)) < now else 0.0
        if buffer.dones[row, 0] and not buffer.timeouts[row, 0]:
            expected /= 1 - gamma
        assert found == pytest.approx(expected, rel=1e-5)
    shown.demonstrated = True
    of_expert = reward(all_rows(shown))
    assert set(of_expert.round(5)) == {np.float32(1 / 3).round(5), np.float32(10 / 3).round(5)}


def test_batches_of_the_expert_and_of_the_agent_alternate(shown):
    env = Reach()
    buffer = episodes(env, of_random(), 3, seed=100)
    buffer.set_demonstrations(shown, alternate=True)
    demonstrated = {tuple(row) for row in shown.observations[: shown.size(), 0]}
    for index in range(6):
        batch = buffer.sample(8)
        assert [tuple(row) in demonstrated for row in batch.observations.numpy()] == [index % 2 == 0] * 8


def test_the_reward_learns_once_per_batch_from_the_agents_rows(shown):
    class Learns:
        def __init__(self):
            self.seen = []

        def learn(self, rows):
            self.seen.append(rows)

        def __call__(self, rows):
            return np.zeros(len(rows.rows), np.float32)

    buffer, reward = episodes(Reach(), of_random(), 3), Learns()
    buffer.reward, buffer.n_steps = reward, 3
    buffer.set_demonstrations(shown, 0.25)
    batch = buffer.sample(8)
    (rows,) = reward.seen
    assert isinstance(rows, Rows) and rows.buffer is buffer and len(rows.rows) == 6
    np.testing.assert_array_equal(batch.observations[:6], rows.observations)
