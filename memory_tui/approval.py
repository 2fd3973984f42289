"""Approvals say which host may get the notes of a workspace, and what in them a person took for no secret.

Each approval is a file of its own, so that two processes cannot lose each other's. What is no secret was decided in the
inbox, whose decisions are kept here because the index reads them too.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import platformdirs
from msgspec import Struct, convert, to_builtins

from memory_tui import durable
from memory_tui.config.places import journal_folder
from memory_tui.errors import ApprovalUnsaved, StateUnavailable
from memory_tui.state_db import Old, ScopedRecords, Table, Tell, warn


class Approval(Struct, frozen=True):
    """`provider` at `host` may get the notes of `workspace` since `at` (epoch seconds); approved `how`."""

    workspace: str
    provider: str
    host: str
    at: float
    how: str


_DECISIONS = Table("inbox_decisions")


def decisions(folder: Path, old: Old = dict, tell: Tell = warn) -> ScopedRecords:
    """Return what was decided in the inbox of the workspace whose changes are kept in `folder`, by finding."""
    return _DECISIONS.of(str(folder), old, tell=tell)


def cleared(workspace: Path) -> frozenset[tuple[str, str]]:
    """Return what a person took for no secret and no command: labels with prefixes, and digests of values and lines.

    Empty where that cannot be read: then everything counts as found.
    """
    try:
        values = decisions(journal_folder(workspace)).read().values()
    except StateUnavailable:
        return frozenset()
    return frozenset((rows[0], rows[1]) for rows in values if isinstance(rows, list))


class Approvals:
    """The approvals of one workspace. Safe for any thread and process."""

    def __init__(self, workspace: Path, folder: Path | None = None) -> None:
        self._workspace = os.path.realpath(workspace)
        self.folder = folder or platformdirs.user_state_path("memory-tui", appauthor=False) / "consent"
        """The folder with one file for each approval."""

    def find(self, provider: str, host: str) -> Approval | None:
        """Return the approval of `provider` at `host`; None when there is none, or it cannot be read."""
        approval = _read(self._file(provider, host))
        # The hash names the file alone: somebody may have copied the approval of another host to that name.
        asked = self._workspace, provider, host
        fits = approval is not None and (approval.workspace, approval.provider, approval.host) == asked
        return approval if fits else None

    def approve(self, provider: str, host: str, how: str) -> Approval:
        """Save an approval, unless there is one; returns it. Raises ApprovalUnsaved."""
        if (earlier := self.find(provider, host)) is not None:
            return earlier
        approval = Approval(self._workspace, provider, host, time.time(), how)
        try:
            durable.make_folder(self.folder)
            durable.replace_file(self._file(provider, host), json.dumps(to_builtins(approval)).encode("ascii"))
        except OSError as error:
            step = f"Make {self.folder} writable."
            raise ApprovalUnsaved(f"The approval of {provider} cannot be saved: {error.strerror}.", step) from error
        return approval

    def every(self) -> tuple[Approval, ...]:
        """Return all approvals of this workspace, the oldest first; what cannot be read approves nobody."""
        approvals = filter(None, map(_read, self.folder.glob("*.json")))
        mine = (approval for approval in approvals if approval.workspace == self._workspace)
        return tuple(sorted(mine, key=lambda approval: (approval.at, approval.provider, approval.host)))

    def revoke(self, provider: str = "") -> tuple[Approval, ...]:
        """Delete the approvals of `provider`, or all; returns them. What it got before stays there."""
        withdrawn = tuple(approval for approval in self.every() if provider in ("", approval.provider))
        for approval in withdrawn:
            try:
                durable.remove_file(self._file(approval.provider, approval.host))
            except OSError as error:
                message = f"The approval of {approval.provider} cannot be withdrawn: {error.strerror}."
                raise ApprovalUnsaved(message, f"Delete the files in {self.folder}.") from error
        return withdrawn

    def _file(self, provider: str, host: str) -> Path:
        words = "\0".join((self._workspace, provider, host))
        return self.folder / f"{hashlib.sha256(words.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"


def _read(path: Path) -> Approval | None:
    """Return the approval in a file; None where it cannot be read, or makes no sense."""
    try:
        return convert(json.loads(path.read_bytes()), Approval)
    except (OSError, ValueError):
        return None
