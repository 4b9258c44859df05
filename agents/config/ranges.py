"""Ranges of the settings of trainings and of pre-training; the upper ends are far above any use."""

from envs.ranges import MANY, SEED, Range

_LEARNER: dict[str, Range] = {
    "learner.learning_rate": (0, 1),
    "learner.batch_size": (1, 10**6),
    "learner.learning_starts": (0, MANY),
    "learner.gamma": (0, 1, "(]"),
}
TRAIN: dict[str, Range] = {
    "seed": SEED,
    "steps": (1, MANY),
    "num_envs": (1, 1024),
    "threads": (1, 1024),
    "stop_at_success": (0, 1),
    "checkpoint_every": (1, MANY),
    **_LEARNER,
    "learner.update_ratio": (1e-3, 1000),
    "learner.block": (1, 10**6),
    "learner.n_steps": (1, 1000),
    "learner.tau": (0, 1, "(]"),
    "learner.actor_tau": (0, 1, "(]"),
    "learner.guide_decay": (0, MANY),
    "learner.buffer_size": (1, MANY),
    "learner.annealing_steps": (0, MANY),
    "learner.reward_scale": (-1e6, 1e6),
    "learner.target_bounds": (-1e6, 1e6),
    "learner.demonstration_share": (0, 1, "()"),
    "learner.guided_share": (0, 1),
    "learner.guide_noise": (0, 100),
    "learner.net_arch": (1, 8192),
    "potential.radius": (0, 100, "(]"),
    "potential.beta": (0, 1),
    "potential.terminal": (-100, 100),
    "potential.spacing": (0, 100),
    "evaluation.every": (1, MANY),
    "evaluation.episodes": (1, 10**6),
    "evaluation.final_episodes": (1, 10**6),
}
PRETRAIN: dict[str, Range] = {
    "seed": SEED,
    "steps": (1, MANY),
    "episodes": (1, 10**6),
    "evaluate_every": (1, MANY),
    **_LEARNER,
    "learner.gradient_steps": (1, 1000),
    "learner.relabelled": (0, 1),
    "learner.nearby": (0, 1),
    "learner.nearby_steps": (0, MANY),
    "learner.goal_speed": (0, 100),
    "learner.success_speed": (0, 100, "(]"),
    "learner.value_steps": (1, MANY),
}
TEMPERATURE = (1e-30, 1e6)  # of an adapted one at its start; a fixed one may be 0
