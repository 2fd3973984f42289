"""What agents asked of a memory and what they got, if its owner wants that written down.

A file of JSON lines in the user's state folder (0600 in 0700), one for each workspace, never in the workspace. Secrets
in questions are masked; the text of notes is not kept, only places and scores. Beyond 2 MiB the older half is dropped.
Several processes write: each under the lock of the file, a whole line at a time.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_tui.agent import log_file
from memory_tui.agent.prompt import SEARCH
from memory_tui.settings import Scalar
from memory_tui.text import js
from memory_tui.text.secrets import find as secret_places
from memory_tui.workspace.redact import redact

MOST_BYTES = 2 << 20
MOST_QUERY = 10_000
"""Characters of a question that are kept; a longer one ends with an ellipsis."""
MASK = "***"


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
        fitting = [
            entry
            for entry in self.entries
            if (entry.tool == SEARCH if name == "last" else entry.id.startswith(name.lower()))
        ]
        return fitting[-1] if fitting and name else None


def place(workspace: Path) -> Path:
    """Where the log of a workspace is; two names of one folder share it."""
    return log_file.place(workspace, "recalls")


def append(path: Path, entry: Entry, most_bytes: int = MOST_BYTES) -> Entry:
    """Write `entry` down, with an id and without secrets; returns it as it was written.

    Raises OSError, and IndexUnavailable when another process holds the log for five seconds.
    """
    kept = dataclasses.replace(
        entry, id=secrets.token_hex(4), query=_masked(entry.query), outcome=_masked(entry.outcome)
    )
    line = json.dumps(_plain(kept), ensure_ascii=True).encode() + b"\n"
    log_file.append(path, line, most_bytes)
    return kept


def read(path: Path) -> Log:
    """The log at `path`; empty where there is none. Raises IndexUnavailable when it cannot be read."""
    found = [_entry(line) for line in log_file.lines(path)]
    entries = tuple(entry for entry in found if entry is not None)
    return Log(entries, len(found) - len(entries))


def _masked(text: str) -> str:
    """`text` without secrets, looked for before it is cut, so that none is cut in two."""
    text = redact(js.well_formed(text))
    for found in reversed(secret_places(text)):
        text = text[: found.start] + MASK + text[found.end :]
    return text if len(text) <= MOST_QUERY else text[:MOST_QUERY] + "…"


def _plain(entry: Entry) -> dict[str, Any]:
    return {
        **{f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)},
        "settings": dict(entry.settings),
        "hits": [dataclasses.asdict(hit) for hit in entry.hits],
    }


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
