"""Adam's step without what its general form costs beside the arithmetic."""

import torch

ONE = torch.ones(())


def step(optimizer: torch.optim.Optimizer) -> None:
    """Take an optimiser's step.

    Its state stays its own, and becomes what its own `step` would make of it; that is called where it does more than
    plain Adam or somebody listens, and on a GPU unless Adam was made with ``fused=True``.
    """
    group = optimizer.param_groups[0]
    parameters = [p for p in group["params"] if p.grad is not None]
    states = [optimizer.state[p] for p in parameters]
    special = any(group.get(name) for name in ("amsgrad", "maximize", "capturable", "decoupled_weight_decay")) or (
        "step" in vars(optimizer) or optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    )
    if type(optimizer) is not torch.optim.Adam or special or len(optimizer.param_groups) > 1 or not all(states):
        optimizer.step()
        return
    steps = [state["step"] for state in states]
    if steps[0].device != parameters[0].device:
        optimizer.step()
        return
    # A number in place of the tensor would take three times as long.
    torch._foreach_add_(steps, ONE.to(steps[0].device), alpha=1.0)
    torch._fused_adam_(
        parameters,
        [p.grad for p in parameters],
        [state["exp_avg"] for state in states],
        [state["exp_avg_sq"] for state in states],
        [],
        steps,
        lr=group["lr"],
        beta1=group["betas"][0],
        beta2=group["betas"][1],
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        amsgrad=False,
        maximize=False,
    )
