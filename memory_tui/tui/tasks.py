"""What worker threads do for the search view: each takes `tell`, with which it reports as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.errors import MemoryTuiError
from memory_tui.tui.bridge import Tell

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.explain.flips import Flips
    from memory_tui.explain.rephrase import Rephrased
    from memory_tui.explain.whynot import WhyNot
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Candidate
    from memory_tui.settings import Settings

REST = 0.08
"""Seconds that a cursor rests on a hit before its flips are looked for."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total`, and what is being done."""

    what: str
    done: int = 0
    total: int = 0

    @property
    def words(self) -> str:
        """`asking unrelated questions 12 of 48`."""
        return f"{self.what} {self.done} of {self.total}" if self.total else self.what


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is known so far of a line: the verdict, what would change it, and the words to add (None: not looked for).

    `working` names what is still being looked for, `problem` why something could not be.
    """

    answer: WhyNot
    changes: Flips | None = None
    questions: tuple[Rephrased, ...] | None = None
    working: str = ""
    problem: str = ""


def find_flips(engine: Engine, evidence: Evidence, settings: Settings, rowid: int) -> Callable[[Tell], Flips | None]:
    """Tells the flips of the chunk `rowid` after each knob; returns all of them, None when the chunk is not there."""

    def run(tell: Tell) -> Flips | None:
        from memory_tui.explain.flips import one_by_one
        from memory_tui.explain.proposed import row_of

        time.sleep(REST)
        tell(None)
        row = row_of(evidence, rowid)
        found: Flips | None = None
        if row is not None:
            for found in one_by_one(evidence, settings, row, engine.with_profile):
                tell(found)
        return found

    return run


def find_questions(
    engine: Engine, evidence: Evidence, days: int, settings: Settings, hit: Candidate, text: str
) -> Callable[[Tell], tuple[Rephrased, ...]]:
    """Returns the questions that recall a hit that lost: with a word added, or without those that it lacks."""

    def run(tell: Tell) -> tuple[Rephrased, ...]:
        from memory_tui.explain.proposed import side_of
        from memory_tui.explain.rephrase import rephrase
        from memory_tui.explain.whynot import absent
        from memory_tui.search.evidence import later

        def ask(query: str) -> Evidence:
            tell(None)
            return later(engine.gather(query), days)

        plan = side_of(evidence, settings).plan
        lacks = absent(plan, text) if hit.text.bm25 is None and " AND " in plan.fts_query else ()
        return rephrase(ask, evidence, settings, text, hit.chunk.rowid, lacks)

    return run


def inquire(
    engine: Engine, asked: Evidence | str, days: int, settings: Settings, path: str, line: int | None
) -> Callable[[Tell], Inquiry]:
    """Tells the verdict on a line, then each change as it is found; returns them with the words to add.

    `asked` is a question, or its evidence where it has been asked already.
    """

    def run(tell: Tell) -> Inquiry:
        from memory_tui.explain.flips import one_by_one
        from memory_tui.search.evidence import later

        evidence = later(engine.gather(asked) if isinstance(asked, str) else asked, days)
        answer = engine.why(evidence, path, line, settings)
        found = Inquiry(answer, working="looking for what would change it")
        tell(found)
        row = answer.row
        if row is not None:
            for changes in one_by_one(answer.evidence, settings, row, engine.with_profile):
                found = Inquiry(answer, changes, working=found.working)
                tell(found)
        return _with_questions(engine, found, days, tell)

    return run


def _with_questions(engine: Engine, found: Inquiry, days: int, tell: Tell) -> Inquiry:
    from memory_tui.explain.rephrase import of_answer
    from memory_tui.search.evidence import later

    def ask(query: str) -> Evidence:
        tell(Inquiry(found.answer, found.changes, working="looking for a word to add"))
        return later(engine.gather(query), days)

    try:
        return Inquiry(found.answer, found.changes, of_answer(ask, found.answer))
    except MemoryTuiError as error:
        if error.code == "cancelled":
            raise
        # The verdict stands without the words.
        return Inquiry(found.answer, found.changes, problem=error.message)
