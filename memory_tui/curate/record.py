"""What a change of notes is: bytes before and after, file by file; and what it says when it cannot be made."""

from __future__ import annotations

from dataclasses import dataclass

from memory_tui.curate.merge import Merge
from memory_tui.errors import EditRefused
from memory_tui.text.secrets import masked


@dataclass(frozen=True, slots=True)
class FileChange:
    """One note, by its stored path: its bytes before and after, None where it is not there.

    `mode` and `mtime_ns` are for a note that is made, 0 for the usual; one that is there keeps its mode.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """One or several notes that change together. `title` is a sentence; `notes` are what a person should know of it.

    Neither holds what looks like a secret: they go into lists, messages and the journal.
    `kind` is capture, edit, new, promote, demote, merge, delete, archive, trash, rename, undo or redo.
    """

    kind: str
    title: str
    files: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", masked(self.title))
        object.__setattr__(self, "notes", tuple(map(masked, self.notes)))

    @property
    def paths(self) -> tuple[str, ...]:
        """The stored paths of the notes it changes."""
        return tuple(file.path for file in self.files)


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """A note that somebody else changed too: what both started from, theirs on disk now, mine that was not written."""

    path: str
    base: bytes | None
    mine: bytes | None
    theirs: bytes | None
    merge: Merge

    @property
    def merged(self) -> bytes | None:
        """Both changes in one text, None where they touch."""
        return self.merge.merged


class ReadOnly(EditRefused):
    """Nothing may be written: the program was asked not to, or the note or its folder does not allow it."""

    code = "read_only"


class Busy(EditRefused):
    """Another program has the note open for writing, or another memory-tui is changing notes."""

    code = "busy"
    exit_status = 1


class Unfinished(EditRefused):
    """A change that an error of the disk cut off. The journal has its texts; the next start or change settles it."""

    code = "unfinished"
    exit_status = 1


class NothingToChange(EditRefused):
    """The note is already as it should become."""

    code = "nothing_to_change"


class Conflict(EditRefused):
    """Somebody else changed the same lines. `views` show all three texts; `draft` is where the journal keeps mine.

    `change` is what was to be made, of all its notes; `undoes` and `redoes` as for an entry of the journal.
    """

    code = "conflict"
    exit_status = 1

    def __init__(
        self,
        message: str,
        next_step: str,
        views: tuple[ThreeWay, ...],
        draft: int = 0,
        *,
        change: Change,
        undoes: int = 0,
        redoes: int = 0,
    ) -> None:
        super().__init__(message, next_step)
        self.views, self.draft = views, draft
        self.change, self.undoes, self.redoes = change, undoes, redoes
