"""Regression of the value head of Ṽ_g on the critics of the goal policy."""

from typing import Any

import torch

from agents.methods.encoder import encoder_info
from agents.prior.config import PriorConfig
from agents.prior.learner import HIDDEN
from agents.progress import counted
from agents.sac import SAC
from agents.sac.policy import Features
from agents.tasks import get_task
from shaping.goals import CloudGoals, StateGoals
from shaping.value import ValueEstimator


def to_estimator(model: SAC, config: PriorConfig) -> ValueEstimator:
    """Make the estimator of a pre-training (`fit_head`)."""
    learner, task = config.learner, get_task(config.task)
    # A file need not hold the goals of the pushing task.
    usual = config.goals.name == config.obs and config.goals in (StateGoals(), CloudGoals())
    estimator = ValueEstimator(
        config.obs,
        encoder_info(config).name,
        hidden=HIDDEN,
        action_dim=task.action_space.shape[0],
        gamma=learner.gamma,
        goal_speed=learner.goal_speed,
        goals=None if usual else config.goals,
    )
    return fit_head(model, estimator, learner.value_steps)


def fit_head(model: SAC, estimator: ValueEstimator, steps: int) -> ValueEstimator:
    """Copy encoder and goal policy to an estimator, and regress its value head on min Q(s, μ(s)) with hindsight.

    Args:
        model: Learner of the goal policy.
        estimator: Estimator with the same encoder and hidden layers as the policy.
        steps: Gradient steps of the regression.
    """
    estimator = estimator.to(model.device)
    actor: Any = model.actor
    policy: Any = estimator.policy
    estimator.encoder.load_state_dict(actor.features_extractor.encoder.state_dict())
    for target, source in zip(policy[:-1:2], actor.latent_pi[::2], strict=True):
        target.load_state_dict(source.state_dict())
    with torch.no_grad():
        policy[-1].weight.copy_(torch.cat([actor.mu.weight, actor.log_std.weight]))
        policy[-1].bias.copy_(torch.cat([actor.mu.bias, actor.log_std.bias]))
    estimator.encoder.eval()  # the mode in which the estimator is used
    optimizer = torch.optim.Adam(estimator.value.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in counted(range(steps), "value fit", "step"):
        batch = model.replay_buffer.sample(512)  # type: ignore[union-attr]
        with torch.no_grad():
            features = estimator.encoder(batch.observations)
            action = actor.mu(actor.latent_pi(features)).tanh()
            target = torch.cat(model.critic(Features(features), action), dim=1).amin(dim=1).clamp(0.0, 1.0)  # type: ignore[arg-type]
        loss = (estimator.value(features).squeeze(-1) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return estimator.cpu().eval()
