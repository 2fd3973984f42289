"""Notices about opening or reading an index, each with its evidence."""

from __future__ import annotations

from memory_tui.core.errors import MemoryTuiError
from memory_tui.notices import Notice


class OnSharedFiles(Notice, frozen=True):
    """The index at `path` lies on a file system, `system`, that other machines can write to."""

    path: str
    system: str
    code = "index"

    @property
    def message(self) -> str:
        """What that costs."""
        return (
            f"The index {self.path} lies on a file system that other machines can write to ({self.system}): it is kept "
            "without a write-ahead log, so searches can wait for a moment while it is written."
        )

    @property
    def next_step(self) -> str:
        """Another disk."""
        return "Name a file on a local disk with --index to avoid that."


class KeptElsewhere(Notice, frozen=True):
    """The index at `path` cannot be written, for `why`; it is in `place` for now."""

    path: str
    why: str
    place: str
    code = "index"

    @property
    def message(self) -> str:
        """Why, and where it is."""
        return f"The index {self.path} cannot be written ({self.why}); it is kept in {self.place} for now."


class NotCopied(Notice, frozen=True):
    """What the index at `path` holds could not be taken over into the one at `place`, for `why`."""

    path: str
    place: str
    why: str
    code = "index"

    @property
    def message(self) -> str:
        """Why, and what makes it again."""
        return (
            f"The index {self.path} could not be copied to {self.place} ({self.why}); it is made again from the notes."
        )


class IndexGone(Notice, frozen=True):
    """The index at `path`, which was there, is deleted or empty."""

    path: str
    code = "index"

    @property
    def message(self) -> str:
        """What makes it again."""
        return f"The index {self.path} was deleted or emptied; memory-tui rebuilds it from the notes."


class MovedAside(Notice, frozen=True):
    """The index at `path` was of no use, for `why`, a sentence; it has the name `kept` now."""

    path: str
    why: str
    kept: str
    code = "index"

    @property
    def message(self) -> str:
        """Why, where it is, and what makes it again."""
        return f"{self.why} It is kept as {self.kept}; memory-tui rebuilds it from the notes."


class IndexNotUsed(Notice, frozen=True):
    """Who wanted to read or write the index at `path` met `error`, of the code of its kind."""

    path: str
    error: str
    said: str
    remedy: str
    code = "index"

    @classmethod
    def of(cls, path: str, error: MemoryTuiError) -> IndexNotUsed:
        """What `error` tells."""
        return cls(path, error.code, error.message, error.next_step)

    @property
    def message(self) -> str:
        """As the error says it."""
        return self.said

    @property
    def next_step(self) -> str:
        """As the error says it."""
        return self.remedy
