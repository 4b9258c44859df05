"""Entry point that builds a pushing task with the named observation; simulator and Open3D are imported on use."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

ENVIRONMENT = "envs.push.env:PushEnv"
# Other observations than the state are wrappers of packages that depend on envs, so they are imported by name on use.
OBSERVATIONS = {
    "state": None,
    "pointcloud": "perception.observation:PointCloudObservation",
    "rgbd": "perception.rgbd:RGBDObservation",
}
IDS = {"PushSlot": "PushSlot-v0", "PushPlane": "PushPlane-v0"}  # Gymnasium's names of robosuite's environments
# Success speeds of the slot task, by observation (paper, table 2); an image shows no velocity, as a cloud [m/s]
SUCCESS_SPEEDS = {"state": 0.02, "pointcloud": 0.1, "rgbd": 0.1}


def make_push(task: str, obs: str = "state", perception: dict[str, Any] | None = None, **kwargs: Any) -> gym.Env:
    """Build a pushing task with the named observation; entry point of `gymnasium.make`.

    Args:
        task: "push-slot" or "push-plane".
        obs: "state", "pointcloud" or "rgbd".
        perception: Arguments of `PointCloudObservation` (cameras, renderer, …) or `RGBDObservation` (camera, width, …).
        **kwargs: Arguments of `PushEnv`.

    Raises:
        ValueError: Unknown task or observation, or `perception` for the state.
    """
    if obs not in OBSERVATIONS:
        raise ValueError(f"unknown observation {obs!r}; known observations: {', '.join(OBSERVATIONS)}")
    if perception and OBSERVATIONS[obs] is None:
        raise ValueError(
            f"perception is {perception}; it describes cameras and needs obs='pointcloud' or 'rgbd', not {obs!r}"
        )
    if task == "push-slot" and kwargs.get("success_speed") is None:
        kwargs["success_speed"] = SUCCESS_SPEEDS[obs]
    if obs != "state":
        kwargs.setdefault("goal_speed", 0.0)  # a cloud or an image holds no velocity, so neither do its goals
    create: Any = load_env_creator(ENVIRONMENT)
    env = create(task, **kwargs)
    wrapper = OBSERVATIONS[obs]
    if wrapper is None:
        return env
    wrap: Any = load_env_creator(wrapper)
    return wrap(env, **(perception or {}))


def gymnasium_arguments(env_args: Mapping[str, Any], obs: str) -> dict[str, Any] | None:
    """Return the arguments of `gymnasium.make` for the pushing task that robomimic's `env_args` describe.

    Args:
        env_args: Description of the environment, as `envs.push.playback.describe_environment` gives it.
        obs: Observation of the environment; any name that it does not have means the state.

    Returns:
        Arguments; None if it is no pushing task.
    """
    if env_args.get("env_name") not in IDS:
        return None
    kwargs = env_args.get("env_kwargs") or {}
    settings = {key: kwargs[key] for key in ("grids", "success_speed", "goal_speed", "puck") if key in kwargs}
    return {"id": IDS[env_args["env_name"]], "obs": obs if obs in OBSERVATIONS else "state", **settings}
