"""Replay buffers, and rewards that are computed when transitions are sampled."""

from agents.replay.buffer import Batch, StoredReplayBuffer
from agents.replay.hindsight import HindsightReplayBuffer
from agents.replay.shaped import ShapedReplayBuffer

__all__ = ["Batch", "HindsightReplayBuffer", "ShapedReplayBuffer", "StoredReplayBuffer"]
