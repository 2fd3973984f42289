"""Errors are values. Each has a code, a sentence for a person, and the next step.

The sentence stands where the error is raised; here is what callers and programs tell apart. What is no failure, and yet
to be told, is a notice: those sentences stand in `sentences.py`.

MemoryTuiError
 +-- WorkspaceError      the folder of notes is missing or cannot be read
 +-- PathRefused         a path outside the roots, or one that is not a note
 +-- Unreadable          a note that is there but cannot be read or cut into chunks
 +-- ConfigError         a configuration file that cannot be understood; knows line and column
 |    +-- ConfigUnsaved  one that the disk did not let be written
 +-- SettingError        a value that no knob accepts
 +-- QueryError          a question that cannot be asked
 +-- LabelError          labelled questions that cannot be read, written or used
 +-- EditRefused         a change of notes that is not made, and why
 |    +-- EditFailed     the disk, not the reason of a person, is why
 +-- IndexUnavailable    the index file cannot be opened, written or trusted
 |    +-- IndexDamaged   what is in it makes no sense; it is moved aside and made again
 |    +-- IndexRefused   what lies in its place is not ours, and stays as it is
 |    +-- IndexEmpty     nothing is in it yet
 |    +-- IndexBusy      another process is writing it
 +-- StateUnavailable    the state database cannot be read or written
 +-- ProviderError       text could not be turned into vectors
 +-- Cancelled           somebody no longer wants the answer
"""

from __future__ import annotations


class MemoryTuiError(Exception):
    """An expected failure: `code` for programs, `message` and `next_step` for people."""

    code = "error"
    exit_status = 1

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def as_dict(self) -> dict[str, str]:
        """The error as JSON-ready fields: code, message, nextStep."""
        return {"code": self.code, "message": self.message, "nextStep": self.next_step}


class WorkspaceError(MemoryTuiError):
    """The workspace is missing, is not a folder, or cannot be read."""

    code = "workspace"
    exit_status = 2


class PathRefused(MemoryTuiError):
    """A path that is not a note inside the workspace's roots."""

    code = "path_refused"
    exit_status = 2


class Unreadable(MemoryTuiError):
    """One note that is there but cannot be read or cut into chunks; the others are not affected."""

    code = "unreadable"


class ConfigError(MemoryTuiError):
    """A configuration file that cannot be understood; `line` and `column` are 1-based, 0 when unknown."""

    code = "config"
    exit_status = 2

    def __init__(self, message: str, next_step: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message, next_step)
        self.line = line
        self.column = column


class ConfigUnsaved(ConfigError):
    """A configuration file that the disk did not let be written; it is as it was, unless the message says otherwise."""

    exit_status = 1


class SettingError(MemoryTuiError):
    """A value that the knob of that name does not accept, or a knob that does not exist."""

    code = "setting"
    exit_status = 2


class QueryError(MemoryTuiError):
    """A question that cannot be asked, for instance a megabyte of text."""

    code = "query"
    exit_status = 2


class LabelError(MemoryTuiError):
    """Labelled questions that cannot be read or written, or that do not say enough."""

    code = "labels"
    exit_status = 2


class EditRefused(MemoryTuiError):
    """A change of notes that is not made; nothing was written, or what was written is taken back.

    But for notes.changes.Unfinished, which says that the next start settles it.
    """

    code = "edit_refused"
    exit_status = 2


class EditFailed(EditRefused):
    """A change of notes that the disk refused; nothing was written, or what was written is taken back."""

    exit_status = 1


class IndexUnavailable(MemoryTuiError):
    """The index file cannot be opened, written or trusted."""

    code = "index"


class IndexDamaged(IndexUnavailable):
    """What is in the index file makes no sense; it is moved aside and made again from the notes."""

    code = "index_damaged"


class IndexRefused(IndexUnavailable):
    """What lies in the place of the index, or beside it, is not ours, or cannot be an index; it stays as it is."""

    code = "index_refused"
    exit_status = 2


class IndexEmpty(IndexUnavailable):
    """Somebody is about to make the index, and nothing is in it yet."""

    code = "index_empty"


class IndexOutdated(IndexUnavailable):
    """The index has the tables of an older version; whoever opens it to write brings them up to date."""

    code = "index_outdated"


class IndexBusy(IndexUnavailable):
    """Another process is writing the index, and what was asked for has to wait for it."""

    code = "index_busy"


class StateUnavailable(MemoryTuiError):
    """The state database cannot be read or written."""

    code = "state_unavailable"


class ProviderError(MemoryTuiError):
    """Text could not be turned into vectors."""

    code = "provider"


class ApprovalMissing(MemoryTuiError):
    """Nobody said yes to what needs a yes, so it was not approved."""

    code = "consent"


class ApprovalUnsaved(MemoryTuiError):
    """An approval, or its withdrawal, could not be written down."""

    code = "consent"


class Cancelled(MemoryTuiError):
    """The work was stopped because nobody waits for its answer any more."""

    code = "cancelled"

    def __init__(self) -> None:
        super().__init__("Stopped before it was finished.")
