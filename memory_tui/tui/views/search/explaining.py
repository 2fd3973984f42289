"""Explaining a line on a worker thread: the verdict, then what would change it, told as it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import MemoryTuiError
from memory_tui.tui.workers import PostPart

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.explain.counterfactuals import Flips, Rephrasings
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Candidate
    from memory_tui.settings import Settings
    from memory_tui.tune.evaluate import Case


class Inquiry(Struct, frozen=True):
    """What is known so far of a line: the verdict, what would change it, and the words to add (None: not looked for).

    `working` names what is still being looked for, `problem` why something could not be.
    """

    answer: WhyNot
    changes: Flips | None = None
    questions: Rephrasings | None = None
    working: str = ""
    problem: str = ""


def find_flips(
    engine: Engine, evidence: Evidence, settings: Settings, rowid: int, cases: Sequence[Case] = ()
) -> Callable[[PostPart], Flips | None]:
    """Returns what would turn the verdict on the chunk `rowid`, knob by knob; None when the chunk is not there."""

    def run(post: PostPart) -> Flips | None:
        from memory_tui.explain.counterfactuals import flips
        from memory_tui.explain.why_not import row_of
        from memory_tui.tune.evaluate import saved_effect

        row = row_of(evidence, rowid)
        post(None)
        if row is None:
            return None
        return flips(evidence, settings, row, engine.plan.with_profile, saved_effect(cases, settings))

    return run


def find_questions(
    engine: Engine, evidence: Evidence, days: int, settings: Settings, hit: Candidate, text: str
) -> Callable[[PostPart], Rephrasings]:
    """Returns the questions that recall a hit that lost: with a word added, or without those that it lacks."""

    def run(post: PostPart) -> Rephrasings:
        from memory_tui.explain.counterfactuals import rephrase
        from memory_tui.explain.why_not import absent, side_of
        from memory_tui.search.evidence import later

        def ask(query: str) -> Evidence:
            post(None)
            return later(engine.search.gather(query), days)

        plan = side_of(evidence, settings).plan
        lacks = absent(plan, text) if hit.bm25 is None and " AND " in plan.fts_query else ()
        return rephrase(ask, evidence, settings, text, hit.chunk, lacks)

    return run


def inquire(
    engine: Engine,
    asked: Evidence | str,
    days: int,
    settings: Settings,
    place: tuple[str, int | None],
    cases: Sequence[Case] = (),
) -> Callable[[PostPart], Inquiry]:
    """Tells the verdict on the line at `place`, then the changes found so far; returns them with the words to add.

    `asked` is a question, or its evidence where it has been asked already; changes are tried on `cases`, too.
    """

    def run(post: PostPart) -> Inquiry:
        from memory_tui.explain.counterfactuals import flips
        from memory_tui.search.evidence import later
        from memory_tui.tune.evaluate import saved_effect

        evidence = later(engine.search.gather(asked) if isinstance(asked, str) else asked, days)
        answer = engine.search.why(evidence, *place, settings)
        reply = Inquiry(answer, working="looking for what would change it")
        post(reply)
        if answer.row is not None:
            saved = saved_effect(cases, settings)
            changes = flips(answer.evidence, settings, answer.row, engine.plan.with_profile, saved)
            reply = replace(reply, changes=changes)
            post(reply)
        return _with_questions(engine, reply, days, post)

    return run


def _with_questions(engine: Engine, found: Inquiry, days: int, post: PostPart) -> Inquiry:
    from memory_tui.explain.counterfactuals import of_answer
    from memory_tui.search.evidence import later

    def ask(query: str) -> Evidence:
        post(replace(found, working="looking for a word to add"))
        return later(engine.search.gather(query), days)

    try:
        return replace(found, questions=of_answer(ask, found.answer), working="")
    except MemoryTuiError as error:
        if error.code == "cancelled":
            raise
        # The verdict stands without the words.
        return replace(found, problem=error.message, working="")
