"""Write an answer of QMD as lines of text or as JSON-ready data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui.formatting import plural
from memory_tui.sanitize import one_line, safe

if TYPE_CHECKING:
    from memory_tui.backends.qmd import QmdAnswer


def answer(value: QmdAnswer, *, explain: bool) -> dict[str, Any]:
    """Return what `search --json` prints of an answer of QMD."""
    data: dict[str, Any] = {
        "results": [hit.as_dict() for hit in value.hits],
        "backend": "qmd",
        "provider": "qmd",
        "model": "qmd",
        "mode": value.mode,
        "fallback": None,
        "empty": to_builtins(value.empty),
        "notices": [
            {"code": "qmd", "kind": item.kind, "message": item.sentence, "nextStep": ""} for item in value.remarks
        ],
    }
    return {**data, "trace": value.trace()} if explain else data


def lines(value: QmdAnswer, *, explain: bool) -> Iterator[str]:
    """Yield the hits by QMD's rank, with its number where the answer is to be explained."""
    for hit in value.hits:
        yield f"#{hit.rank} {one_line(hit.as_dict()['citation'])}"
        if explain:
            yield f"    QMD's own score, not comparable: {hit.score:g}; collection {one_line(hit.collection)}"
        yield safe(hit.snippet, keep_newlines=True).strip("\n")
        yield ""
    if not value.hits:
        yield f"No matches. {value.empty.sentence if value.empty is not None else ''}".rstrip()
    if explain:
        updated = f"{dt.datetime.fromtimestamp(value.updated):%Y-%m-%d %H:%M:%S}" if value.updated else "never"
        yield f"QMD {value.mode}, {value.ms:.0f} ms, collections {', '.join(value.collections) or 'none'}"
        yield f"QMD's index as of {updated}; {plural(value.behind, 'file')} changed since"
