"""Success: as `info` tells it, and as the difference of achieved and desired goals tells it."""

from shaping.success.info import IS_SUCCESS, Success, succeeded

__all__ = ["IS_SUCCESS", "Success", "succeeded"]
