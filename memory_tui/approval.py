"""Approvals say which host may get the notes of a workspace.

Each is a file of its own, so that two processes cannot lose each other's.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import platformdirs
from msgspec import Struct, to_builtins

from memory_tui import durable
from memory_tui.errors import ApprovalUnsaved


class Approval(Struct, frozen=True):
    """`provider` at `host` may get the notes of `workspace` since `at` (epoch seconds); approved `how`."""

    workspace: str
    provider: str
    host: str
    at: float
    how: str


class Approvals:
    """The approvals of one workspace. Safe for any thread and process."""

    def __init__(self, workspace: Path, folder: Path | None = None) -> None:
        self._workspace = os.path.realpath(workspace)
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The folder with one file for each approval."""
        if self._folder is None:
            self._folder = platformdirs.user_state_path("memory-tui", appauthor=False) / "consent"
        return self._folder

    def find(self, provider: str, host: str) -> Approval | None:
        """The approval of `provider` at `host`; None when there is none, or it cannot be read."""
        return _read(self._file(provider, host), self._workspace, provider, host)

    def approve(self, provider: str, host: str, how: str) -> Approval:
        """Save an approval, unless there is one; returns it. Raises ApprovalUnsaved."""
        known = self.find(provider, host)
        if known is not None:
            return known
        made = Approval(self._workspace, provider, host, time.time(), how)
        try:
            durable.make_folder(self.folder)
            durable.replace_file(self._file(provider, host), json.dumps(to_builtins(made)).encode("ascii"))
        except OSError as error:
            raise ApprovalUnsaved(
                f"The approval of {provider} cannot be saved: {error.strerror}.",
                f"Make {self.folder} writable.",
            ) from error
        return made

    def every(self) -> tuple[Approval, ...]:
        """All approvals of this workspace, the oldest first."""
        return tuple(sorted(self._every(), key=lambda made: (made.at, made.provider, made.host)))

    def revoke(self, provider: str = "") -> tuple[Approval, ...]:
        """Delete the approvals of `provider`, or all; returns them. What it got before stays there."""
        gone = tuple(made for made in self.every() if provider in ("", made.provider))
        for made in gone:
            try:
                durable.remove_file(self._file(made.provider, made.host))
            except OSError as error:
                raise ApprovalUnsaved(
                    f"The approval of {made.provider} cannot be withdrawn: {error.strerror}.",
                    f"Delete the files in {self.folder}.",
                ) from error
        return gone

    def _every(self) -> Iterator[Approval]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            # What cannot be read approves nobody, as in `find`.
            return
        for name in names:
            made = _read(self.folder / name) if name.endswith(".json") else None
            if made is not None and made.workspace == self._workspace:
                yield made

    def _file(self, provider: str, host: str) -> Path:
        words = "\0".join((self._workspace, provider, host))
        return self.folder / f"{hashlib.sha256(words.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"


def _read(path: Path, *expected: str) -> Approval | None:
    """The approval in `path`, if its workspace, provider, host are those `expected`."""
    try:
        fields = json.loads(path.read_text("utf-8"))
        made = Approval(
            str(fields["workspace"]),
            str(fields["provider"]),
            str(fields["host"]),
            float(fields["at"]),
            str(fields["how"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made if expected in ((), (made.workspace, made.provider, made.host)) else None
