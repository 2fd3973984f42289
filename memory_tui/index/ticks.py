"""What times of files can tell, and what they cannot."""

from __future__ import annotations

TICK_NS = 20_000_000
"""Longest step of a file system's clock: a note saved twice within it can have one modification time for both."""
SKEW_NS = 2_000_000_000
"""A time further ahead than this was set by somebody, it is not the tick of a save."""


def unmoved(mtime_ns: int, read_ns: int) -> bool:
    """Whether a note saved at `mtime_ns` and read at `read_ns` would have another time, had it been saved since."""
    return not -TICK_NS < mtime_ns - read_ns < SKEW_NS
