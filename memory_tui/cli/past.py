"""Commands that explain: why, why-never."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Command, moment, opened, positive, query_of, spoken, waiting
from memory_tui.core.errors import IndexUnavailable, QueryError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.source.protocol import ChunkSource

MONTH = 30


def _declare_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=spoken, help="the query")
    parser.add_argument("place", metavar="PATH[:LINE]", help="a note, a line of it, or a citation such as PATH#L3-L9")
    parser.add_argument(
        "--openclaw-index",
        nargs="?",
        const="",
        metavar="DB",
        help="also look into OpenClaw's own index (default: that of its agent)",
    )


def _declare_why_never(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place",
        nargs="?",
        metavar="PATH[:LINE]",
        help="a note or a line of it; without one all lines that none reached",
    )
    _days(parser, MONTH)


def _days(parser: argparse.ArgumentParser, usual: int) -> None:
    parser.add_argument("--days", type=positive, metavar="N", help=f"of how many days (default: {usual})")


def _why(given: argparse.Namespace) -> int:
    from memory_tui.engine import past_questions
    from memory_tui.explain import trace_json
    from memory_tui.explain.rephrase import remedies
    from memory_tui.explain.why_not import against_their_index
    from memory_tui.render import as_text

    if query_of(given) is None:
        raise QueryError("There is no query.", 'For instance: memory-tui why "router vlan" MEMORY.md:3.')
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        with engine.queries.reader() as store:
            path, line = _place(given, engine, store)
        answer = engine.queries.why(engine.queries.gather(given.query), path, line)
        if hasattr(given, "openclaw_index"):
            answer = against_their_index(answer, _lacks(engine, given.openclaw_index))
        plan = engine.plan
        saved = past_questions.saved_effect(engine)
        changes, questions = remedies(answer, plan.settings, plan.with_profile, engine.queries.gather, saved)
        theirs = engine.backend.why(given.query, answer.place.path, line or 0)
    if hasattr(given, "json"):
        as_text.print_json({**trace_json.why(answer, changes, questions), **({"qmd": theirs} if theirs else {})})
    else:
        as_text.print_lines([f"QMD: {theirs}", "The built-in index:"] if theirs else [])
        as_text.print_lines(as_text.answer(answer, changes, questions))
    return 0


def _place(given: argparse.Namespace, engine: Engine, store: ChunkSource) -> tuple[str, int | None]:
    """The path and the line that were typed; where the query names them, query and place change places.

    Raises NoteMissing.
    """
    from memory_tui.explain import why_not
    from memory_tui.workspace.roots import NoteMissing

    try:
        return why_not.named(engine.plan.roots, store, given.place)
    except NoteMissing:
        with suppress(NoteMissing):
            place = why_not.named(engine.plan.roots, store, given.query)
            given.query, given.place = given.place, given.query
            return place
        raise


def _lacks(engine: Engine, path: str) -> Callable[[str], str | None]:
    """Why OpenClaw's own index cannot recall a note, as a function of the note. Raises IndexUnavailable."""
    from memory_tui.openclaw import compare

    plan = engine.plan
    theirs = Path(path).expanduser() if path else compare.database(plan.config)
    found = compare.compare_workspace(plan.roots, theirs, compare.wanted(plan.config, plan.settings, plan.roots))
    if isinstance(found, compare.IndexComparison):
        return found.lacks
    raise IndexUnavailable(found.detail, found.next_step)


def _why_never(given: argparse.Namespace) -> int:
    from memory_tui.engine import past_questions
    from memory_tui.explain import why_not
    from memory_tui.render import as_text, past_text

    with opened(given) as engine:
        engine.indexer.catch_up()
        asked = past_questions.past_questions(engine, _now(given), getattr(given, "days", MONTH))
        if not hasattr(given, "place"):
            with waiting("Reading what was asked"):
                found = past_questions.unreached(engine, asked)
            if hasattr(given, "json"):
                as_text.print_json(past_text.unreached_data(found))
            else:
                as_text.print_lines([past_text.reach(found), *map(past_text.lines_place, found.lines)])
            return 0
        with engine.queries.reader() as store:
            place = why_not.named(engine.plan.roots, store, given.place)
        with waiting("Asking past questions") as tell:
            told = past_questions.never_of(engine, asked, *place, tell)
    if hasattr(given, "json"):
        as_text.print_json({**past_text.never_data(told), "leftOut": asked.left_out})
    else:
        as_text.print_lines([*past_text.never(told), *past_text.left_out(asked)])
    return 0


def _now(given: argparse.Namespace) -> float:
    now = moment(given)
    return time.time() if now is None else now


COMMANDS: dict[str, Command] = {
    "why": Command(_why, _declare_why),
    "why-never": Command(_why_never, _declare_why_never),
}
