"""Match the answers of the built-in index and of QMD by shared lines, with the reason for each hit that one lacks."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from memory_tui.backends.qmd import QmdAnswer
from memory_tui.backends.qmd_program import QmdFailure
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.sanitize import one_line
from memory_tui.search.evidence import Evidence


class SharedRow(Struct, frozen=True):
    """Lines that one answer or both hold, with both ranks (0: it lacks them) and why either lacks them."""

    path: str
    start_line: int
    end_line: int
    snippet: str
    builtin: int = 0
    qmd: int = 0
    why_not_builtin: str = ""
    why_not_qmd: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-ready fields."""
        place = {"path": self.path, "startLine": self.start_line, "endLine": self.end_line}
        reasons = {"whyNotBuiltin": self.why_not_builtin or None, "whyNotQmd": self.why_not_qmd or None}
        return {**place, "builtin": self.builtin or None, "qmd": self.qmd or None, **reasons}


class QmdComparison(Struct, frozen=True):
    """Both answers to `query`, by the better rank; where QMD gave none, `failure` says why and `qmd` is None."""

    query: str
    rows: tuple[SharedRow, ...]
    qmd: QmdAnswer | None = None
    failure: str = ""
    next_step: str = ""


def compare(engine: Engine, query: str, stop: Stop | None = None) -> QmdComparison:
    """Ask both; QMD is asked whoever was chosen to answer. Raises QueryError, IndexUnavailable, Cancelled."""
    evidence = engine.search.gather(query, stop)
    recalled = engine.search.rank(evidence, engine.plan.settings).recalled
    answer, failure, step = None, "", ""
    try:
        engine.backend.settle(stop or Stop())
        answer = engine.backend.client.ask(query, engine.plan.settings.whole("query.maxResults"), stop=stop)
    except QmdFailure as error:
        failure, step = error.message, error.next_step
    left, rows = list(answer.hits if answer is not None else ()), []
    for rank, hit in enumerate(recalled, 1):
        place = (hit.chunk.path, hit.chunk.start_line, hit.last_line)
        twin = next(
            (
                item
                for item in left
                if item.path == place[0] and item.start_line <= place[2] and place[1] <= item.end_line
            ),
            None,
        )
        if twin is not None:
            left.remove(twin)
        why = "" if twin or answer is None else engine.backend.client.why(answer, place[0], sum(place[1:]) // 2, stop)
        rows.append(SharedRow(*place, hit.snippet, rank, twin.rank if twin else 0, why_not_qmd=why))
    for item in left:
        why = _why_not(engine, evidence, item.path, item.start_line)
        rows.append(SharedRow(item.path, item.start_line, item.end_line, item.snippet, 0, item.rank, why))
    rows.sort(key=lambda row: min(rank for rank in (row.builtin, row.qmd) if rank))
    return QmdComparison(query, tuple(rows), answer, failure, step)


def _why_not(engine: Engine, evidence: Evidence, path: str, line: int) -> str:
    if path.startswith("qmd/"):
        return "It is outside the notes that are indexed here."
    return one_line(wording.account(engine.search.why(evidence, path, line)))
