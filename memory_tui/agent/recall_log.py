"""What agents asked of a memory and what they got, if its owner wants that written down.

A file of JSON lines in the user's state folder (0600 in 0700), one for each workspace, never in the workspace. Secrets
in questions are masked; the text of notes is not kept, only places and scores. Beyond 2 MiB the older half is dropped.
Several processes write: each under the lock of the file, a whole line at a time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_tui.agent.prompt import SEARCH
from memory_tui.errors import IndexUnavailable
from memory_tui.index import lock
from memory_tui.settings import Scalar
from memory_tui.text import js
from memory_tui.text.secrets import find as secret_places
from memory_tui.workspace.redact import redact

MOST_BYTES = 2 << 20
MOST_QUERY = 10_000
"""Characters of a question that are kept; a longer one ends with an ellipsis."""
MASK = "***"
_TRIES, _PAUSE_SECONDS = 2500, 0.002
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class LoggedHit:
    """One hit as an agent got it: where it stood, and its scores."""

    path: str
    start_line: int
    end_line: int
    score: float
    vector_score: float
    text_score: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One recall. `at` is in epoch seconds, `ms` how long it took; `settings` are the knobs that ranking reads.

    `id` is given by `append`; `outcome` says why nothing came back, and is empty where something did. For memory_get
    `query` is the path.
    """

    tool: str
    query: str
    at: float
    client: str = ""
    agent: str = ""
    corpus: str = ""
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    provider: str = ""
    model: str = ""
    mode: str = ""
    generation: int = 0
    hits: tuple[LoggedHit, ...] = ()
    outcome: str = ""
    ms: float = 0.0
    id: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """What a log holds, the oldest first, and how many lines of it could not be understood."""

    entries: tuple[Entry, ...]
    unread: int

    def find(self, name: str) -> Entry | None:
        """The entry whose id starts with `name`, the newest where several do; `last` is the newest search."""
        fitting = [entry for entry in self.entries if (
            entry.tool == SEARCH if name == "last" else entry.id.startswith(name.lower()))]
        return fitting[-1] if fitting and name else None


def place(workspace: Path) -> Path:
    """Where the log of a workspace is; two names of one folder share it."""
    import platformdirs

    real = os.path.realpath(workspace)
    key = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    folder = platformdirs.user_state_path("memory-tui", appauthor=False) / "recalls"
    return folder / f"{Path(real).name[:40] or 'root'}-{key}.jsonl"


def append(path: Path, entry: Entry, most_bytes: int = MOST_BYTES) -> Entry:
    """Write `entry` down, with an id and without secrets; returns it as it was written.

    Raises OSError, and IndexUnavailable when another process holds the log for five seconds.
    """
    kept = dataclasses.replace(entry, id=secrets.token_hex(4), query=_masked(entry.query),
                               outcome=_masked(entry.outcome))
    line = json.dumps(_plain(kept), ensure_ascii=True).encode() + b"\n"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _held(path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
        try:
            _write(descriptor, line)
            if os.fstat(descriptor).st_size > most_bytes:
                _drop_older_half(path, descriptor)
        finally:
            os.close(descriptor)
    return kept


def _held(path: Path) -> lock.WriterLock:
    """The lock of the log; a line takes less than a millisecond. Raises IndexUnavailable after five seconds."""
    for _ in range(_TRIES):
        held = lock.WriterLock.acquire(path)
        if held is not None:
            return held
        time.sleep(_PAUSE_SECONDS)
    raise IndexUnavailable(f"Another process keeps the recall log {path} locked.", "See which memory-tui still runs.")


def _write(descriptor: int, line: bytes) -> None:
    """One line; on a new one where the last writer died in the middle of its own."""
    os.fchmod(descriptor, 0o600) if hasattr(os, "fchmod") else None
    size = os.fstat(descriptor).st_size
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            line = b"\n" + line
    while line:
        line = line[os.write(descriptor, line):]


def _drop_older_half(path: Path, descriptor: int) -> None:
    """Replace the file by its newer half; a reader sees the one or the other."""
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, size - size // 2, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as old:
        rest = old.read().partition(b"\n")[2]
    other = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o600), "wb") as new:
        new.write(rest)
    other.replace(path)


def read(path: Path) -> Log:
    """The log at `path`; empty where there is none. Raises IndexUnavailable when it cannot be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Log((), 0)
    except OSError as error:
        raise IndexUnavailable(f"The recall log {path} cannot be read: {error.strerror}.",
                               "Check the file and its folder.") from None
    found = [_entry(line) for line in data.split(b"\n") if line.strip()]
    entries = tuple(entry for entry in found if entry is not None)
    return Log(entries, len(found) - len(entries))


def clear(path: Path) -> bool:
    """Delete the log; False when there was none."""
    if not path.exists():
        return False
    with _held(path):
        path.unlink(missing_ok=True)
    return True


def _masked(text: str) -> str:
    """`text` without secrets, looked for before it is cut, so that none is cut in two."""
    text = redact(js.well_formed(text))
    for found in reversed(secret_places(text)):
        text = text[:found.start] + MASK + text[found.end:]
    return text if len(text) <= MOST_QUERY else text[:MOST_QUERY] + "…"


def _plain(entry: Entry) -> dict[str, Any]:
    return {**{f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)}, "settings": dict(entry.settings),
            "hits": [dataclasses.asdict(hit) for hit in entry.hits]}


def _entry(line: bytes) -> Entry | None:
    """A line as an entry; None when it is none. Fields that are unknown are left out."""
    try:
        item = json.loads(line)
        hits = tuple(LoggedHit(**_checked(LoggedHit, hit)) for hit in item.pop("hits", ()))
        settings = item.pop("settings", {})
        if not isinstance(settings, dict):
            return None
        return Entry(**_checked(Entry, item), hits=hits, settings=settings)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


_KINDS: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": (int, float)}


def _checked(kind: type, item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `item` that `kind` has. Raises TypeError when one is of another type."""
    return dict(_fields(kind, item))


def _fields(kind: type, item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for one in dataclasses.fields(kind):
        if one.name in item:
            wanted = _KINDS[str(one.type)]
            if not isinstance(item[one.name], wanted):
                raise TypeError(one.name)
            yield one.name, item[one.name]
