"""The world: pushing tasks in robosuite, their Gymnasium adapter, expert and demonstrations."""

import gymnasium as gym

gym.register("PushSlot-v0", entry_point="envs.goal_env:make_push", kwargs={"task": "push-slot"})
gym.register("PushPlane-v0", entry_point="envs.goal_env:make_push", kwargs={"task": "push-plane"})
