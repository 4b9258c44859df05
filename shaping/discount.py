"""Schedule of the learner's discount; the γ of Φ and of the shaped reward is constant."""

from __future__ import annotations


def linear_annealing(step: int, total_steps: int, gamma: float) -> float:
    """Return the learner's discount after `step` environment steps.

    γ̄(step) = γ · min(step / total_steps, 1)          (paper, section "Guiding Exploration by …")

    With γ̄ = 0 the agent follows the potential greedily; with γ̄ = γ the optimal policies are those of the task.

    Args:
        step: Environment steps taken so far [steps], ≥ 0.
        total_steps: Steps after which γ̄ reaches γ [steps]; 0 disables annealing, and γ is returned.
        gamma: Discount γ of the task, in [0, 1].

    Raises:
        ValueError: An argument is outside its range.
    """
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma is {gamma}; give a discount in [0, 1]")
    if step < 0 or total_steps < 0:
        raise ValueError(f"step is {step}, total_steps is {total_steps}; give 0 or more steps")
    if step >= total_steps:
        return gamma
    return gamma * step / total_steps
