"""Transitions: replay buffers, and the reward that is composed when they are sampled."""

from agents.replay.buffer import Batch, StoredReplayBuffer
from agents.replay.hindsight import HindsightReplayBuffer
from agents.replay.shaped import ShapedReplayBuffer

__all__ = ["Batch", "HindsightReplayBuffer", "ShapedReplayBuffer", "StoredReplayBuffer"]
