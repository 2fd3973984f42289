"""An answer of QMD is read strictly: each row is checked before anybody sees it."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import jsstring
from memory_tui.core.sanitize import one_line
from memory_tui.qmd.folder import QmdFailure
from memory_tui.qmd.index import Collection
from memory_tui.qmd.remarks import HitsLeftOut

_URI = re.compile(r"qmd://([^/?#]+)/([^?#]+)(?:\?[^#]*)?\Z")
_LINES = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? @@[^\n]*(?:\n|\Z)")
_NUMBERED = re.compile(r"^\d+: ?", re.MULTILINE)
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MOST_BYTES = 16 << 20


class QmdHit(Struct, frozen=True):
    """One hit, number `rank` of QMD's answer; lines are 1-based and inclusive, clamped to the file as it is.

    `score` is QMD's own number, which is not comparable with any other; `path` is the stored path of the note, or
    `qmd/collection/path` outside the workspace.
    """

    rank: int
    path: str
    start_line: int
    end_line: int
    source: str
    snippet: str
    score: float
    collection: str
    below: str
    """The path below the folder of the collection."""

    @property
    def citation(self) -> str:
        """`path#Lstart-Lend`."""
        return f"{self.path}#L{self.start_line}-L{self.end_line}"

    def as_dict(self) -> dict[str, Any]:
        """The documented shape of a hit, with its rank."""
        return {
            "path": self.path,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "score": self.score,
            "rank": self.rank,
            "snippet": self.snippet,
            "source": self.source,
            "citation": self.citation,
        }


class Source(Struct, frozen=True):
    """Where hits of a collection are: the collection, what its notes are called, and the folder of the workspace."""

    collection: Collection
    source: str
    workspace: str

    def stored(self, below: str) -> str:
        """The stored path of a file of the collection."""
        absolute = os.path.normpath(os.path.join(self.collection.path, below))  # noqa: PTH118
        inside = os.path.relpath(absolute, self.workspace)
        if inside.startswith(os.pardir):
            return f"qmd/{self.collection.name}/{below}"
        return inside.replace(os.sep, "/")


def rows_of(stdout: str) -> list[Any]:
    """The rows that QMD printed: from the first line that begins with `[`. Raises QmdFailure."""
    begin = re.search(r"^\[", stdout, re.MULTILINE)
    while begin is not None:
        try:
            found, _ = json.JSONDecoder().raw_decode(stdout, begin.start())
        except (ValueError, RecursionError):
            # A line of noise may begin with a bracket as well.
            begin = re.compile(r"^\[", re.MULTILINE).search(stdout, begin.end())
            continue
        if isinstance(found, list):
            return found
        break
    if "no results found" in stdout.lower():
        return []
    shown = one_line(stdout.strip(), 80) or "nothing"
    raise QmdFailure("answer", f"QMD's answer cannot be read: it printed {shown!r}.", "Run memory-tui doctor.")


def hits(rows: Sequence[Any], sources: Mapping[str, Source]) -> list[QmdHit]:
    """The hits of checked rows, in QMD's order; `sources` by the name of the collection. Raises QmdFailure."""
    return [_hit(place, row, sources) for place, row in enumerate(rows, 1)]


def _hit(place: int, row: object, sources: Mapping[str, Source]) -> QmdHit:
    if not isinstance(row, Mapping):
        raise _refused(place, "is no object")
    file, score = row.get("file"), row.get("score")
    snippet = row.get("snippet", row.get("body", ""))
    if not isinstance(file, str) or not isinstance(snippet, str):
        raise _refused(place, "lacks file or snippet")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise _refused(place, "has no finite score")
    name, below = _located(place, file)
    source = sources.get(name)
    if source is None:
        raise _refused(place, f"is of the collection {one_line(name, 40)!r}, which was not asked")
    absolute = os.path.realpath(os.path.join(source.collection.path, below))  # noqa: PTH118
    root = os.path.realpath(source.collection.path)
    if not absolute.startswith(root.rstrip(os.sep) + os.sep):
        raise _refused(place, f"leads out of the collection {name}")
    first, last, text = _lines(snippet, absolute)
    return QmdHit(place, source.stored(below), first, last, source.source, text, float(score), name, below)


def _refused(place: int, why: str) -> QmdFailure:
    return QmdFailure("answer", f"QMD's answer cannot be used: row {place} {why}.", "Run memory-tui doctor.")


def _located(place: int, file: str) -> tuple[str, str]:
    found = _URI.match(file)
    if found is None or _HIDDEN.search(file):
        raise _refused(place, f"names no document: {one_line(file, 60)!r}")
    below = unquote(found[2])
    parts = below.split("/")
    if _HIDDEN.search(below) or os.path.isabs(below) or any(part in ("", ".", "..") for part in parts):  # noqa: PTH117
        raise _refused(place, f"has the path {one_line(below, 60)!r}")
    return unquote(found[1]), below


def _lines(snippet: str, absolute: str) -> tuple[int, int, str]:
    """First and last line, and the text. Over HTTP QMD numbers the lines from the header on, which is no line."""
    last_line = _count(absolute)
    numbered = re.match(r"\d+: (?=@@ -)", snippet)
    text = _NUMBERED.sub("", snippet) if numbered else snippet
    header = _LINES.match(text)
    if header is None:
        return 1, max(1, last_line), text
    first = min(max(1, int(header[1])), max(1, last_line))
    last = min(max(first, int(header[1]) + int(header[2] or 1) - 1), max(1, last_line))
    return first, last, text[header.end() :]


def _count(absolute: str) -> int:
    """Lines of a file as it is now, 0 where it is gone."""
    try:
        with open(absolute, "rb") as file:  # noqa: PTH123
            data = file.read(_MOST_BYTES)
    except OSError:
        # A ghost: QMD answers from a file that is gone, which the caller says of the whole index.
        return 0
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def bounded(
    found: Sequence[QmdHit], most: int, snippet: int, altogether: int
) -> tuple[list[QmdHit], HitsLeftOut | None]:
    """The hits that an agent gets: sources in turn, `most` of them, cut to `snippet` UTF-16 units and `altogether`.

    Also what the bounds took, None where nothing.
    """
    chosen = [replace(hit, snippet=jsstring.utf16_head(hit.snippet, snippet)) for hit in _in_turn(found)[:most]]
    room, kept = altogether, []
    for hit in chosen:
        text = jsstring.utf16_head(hit.snippet, room)
        if not text and hit.snippet:
            break
        kept.append(replace(hit, snippet=text))
        room -= jsstring.utf16_len(text)
    if len(kept) == len(found):
        return kept, None
    return kept, HitsLeftOut(len(kept), len(found), most, altogether)


def _in_turn(found: Sequence[QmdHit]) -> list[QmdHit]:
    """Hits of both sources one after the other, that of the best first; of one source as they are."""
    queues: dict[str, list[QmdHit]] = {}
    for hit in found:
        queues.setdefault(hit.source, []).append(hit)
    ordered = []
    while any(queues.values()):
        ordered += [queue.pop(0) for queue in queues.values() if queue]
    return ordered
