"""What is typed into a note and not saved yet, kept beside the journal so that a crash does not take it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from memory_tui.core import atomic
from memory_tui.curate.journal import KEEP_DAYS
from memory_tui.errors import EditRefused


@dataclass(frozen=True, slots=True)
class Unsaved:
    """The `text` in an editor at `at` (epoch seconds), begun on the bytes `before` of the note `path`; in `file`."""

    path: str
    at: float
    before: bytes | None
    text: str
    file: Path


class Typing:
    """Keeps what one editor holds of the note `path`, in `folder` (the journal's), instead of what it `began` with.

    Methods may be called from any thread; each names its `turn`, and one that comes after a later turn does nothing,
    so that a slow writing never brings back what was saved meanwhile.
    """

    def __init__(self, folder: Path, path: str, began: Unsaved | None = None) -> None:
        self._folder, self._path = folder / "unsaved", path
        self._file = self._folder / f"{_stem(path)}-{os.getpid()}.json"
        self._files = {self._file, began.file} if began is not None else {self._file}
        self._lock = threading.Lock()
        self._turn = 0

    def keep(self, turn: int, text: str, before: bytes | None) -> None:
        """Keep `text`, in the place of what was kept last. Raises EditRefused when the disk does not take it."""
        line = {
            "path": self._path,
            "at": time.time(),
            "text": text,
            "before": None if before is None else base64.b64encode(before).decode("ascii"),
        }
        with self._lock:
            if self._late(turn):
                return
            try:
                atomic.make_folder(self._folder)
                atomic.replace_file(self._file, json.dumps(line).encode("ascii"))
            except OSError as error:
                raise EditRefused(
                    f"What you type is not kept against a crash: {error.strerror or error}.",
                    "ctrl+s writes the note itself.",
                ) from None

    def drop(self, turn: int) -> None:
        """It is in the note, or nobody wants it. Raises EditRefused when it cannot be removed."""
        with self._lock:
            if self._late(turn):
                return
            try:
                for file in self._files:
                    atomic.remove_file(file)
            except OSError as error:
                raise EditRefused(
                    f"What was typed is still kept: {error.strerror or error}.", f"Remove it from {self._folder}."
                ) from None

    def _late(self, turn: int) -> bool:
        late = turn < self._turn
        self._turn = max(turn, self._turn)
        return late


def left(folder: Path, path: str | None = None) -> tuple[Unsaved, ...]:
    """What editors left in `folder` (the journal's), of `path` or of every note, newest first; damaged files not."""
    files = (folder / "unsaved").glob("*.json" if path is None else f"{_stem(path)}-*.json")
    found = [one for file in files if (one := _read(file)) is not None and path in (None, one.path)]
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))


def _stem(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(file: Path) -> Unsaved | None:
    try:
        fields = json.loads(file.read_bytes())
        before = fields["before"]
        one = Unsaved(
            str(fields["path"]),
            float(fields["at"]),
            None if before is None else base64.b64decode(before),
            str(fields["text"]),
            file,
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if one.at < time.time() - KEEP_DAYS * 86_400:
        with contextlib.suppress(OSError):
            atomic.remove_file(file)
        return None
    return one
