"""The command `why`: for a query and a line, over past questions, and for a file."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, assert_never

from memory_tui.cli.context import moment, opened
from memory_tui.cli.output import print_json, print_lines, show, waiting
from memory_tui.engine import past_questions
from memory_tui.engine.engine import Engine
from memory_tui.engine.past_questions import PastQuestions, Unreached
from memory_tui.errors import IndexUnavailable, QueryError
from memory_tui.explain import trace_json, why_not, wording
from memory_tui.explain.counterfactuals import remedies
from memory_tui.explain.why_never import (
    Asker,
    NeverClaim,
    NoOneChange,
    OneChange,
    Reached,
    StoppedTimes,
    UnreachedLines,
    WhyNever,
)
from memory_tui.formatting import plural
from memory_tui.index.store import Store
from memory_tui.openclaw import compare
from memory_tui.render import why_text
from memory_tui.sanitize import one_line
from memory_tui.workspace.roots import NoteMissing


def why(args: argparse.Namespace) -> int:
    """Tell why a line was, or was not, recalled, or what `--never` and `--file` ask for."""
    if args.file is not None:
        return _file(args)
    if args.never is not None:
        return _never(args)
    query = args.query
    if query is None or args.place is None:
        raise QueryError(
            "A query and a line belong together.", 'For instance: memory-tui why "router vlan" MEMORY.md:3.'
        )
    if not query.strip():
        raise QueryError("There is no query.", 'For instance: memory-tui why "router vlan" MEMORY.md:3.')
    with opened(args) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        with engine.search.reader() as store:
            query, path, line = _place(engine, store, query, args.place)
        answer = engine.search.why(engine.search.gather(query), path, line)
        if args.openclaw_index is not None:
            answer = why_not.against_their_index(answer, _lacks(engine, args.openclaw_index))
        saved = past_questions.saved_effect(engine)
        plan = engine.plan
        changes, questions = remedies(answer, plan.settings, plan.with_profile, engine.search.gather, saved)
        of_qmd = engine.backend.why(query, answer.place.path, line or 0)
    if args.json:
        print_json({**trace_json.why(answer, changes, questions), **({"qmd": of_qmd} if of_qmd else {})})
    else:
        print_lines([f"QMD: {of_qmd}", "The built-in index:"] if of_qmd else [])
        print_lines(why_text.answer(answer, changes, questions))
    return 0


def _place(engine: Engine, store: Store, query: str, place: str) -> tuple[str, str, int | None]:
    """Return query, path and line; where the query names the line, the two change places. Raises NoteMissing."""
    try:
        return query, *why_not.named(engine.plan.roots, store, place)
    except NoteMissing:
        with suppress(NoteMissing):
            return place, *why_not.named(engine.plan.roots, store, query)
        raise


def _lacks(engine: Engine, path: str) -> Callable[[str], str | None]:
    """Return why OpenClaw's own index cannot recall a note, as a function of the note. Raises IndexUnavailable."""
    plan = engine.plan
    database = Path(path).expanduser() if path else compare.database(plan.config)
    comparison = compare.compare_workspace(plan.roots, database, compare.wanted(plan.config, plan.settings, plan.roots))
    if isinstance(comparison, compare.IndexComparison):
        return comparison.lacks
    raise IndexUnavailable(comparison.detail, comparison.next_step)


def _never(args: argparse.Namespace) -> int:
    """Tell over past questions which gate stops a line how often, or which lines no question reached."""
    with opened(args) as engine:
        engine.index.catch_up()
        now = moment(args)
        questions = past_questions.past_questions(engine, time.time() if now is None else now, args.days)
        if not args.never:
            with waiting("Reading what was asked"):
                lines = past_questions.unreached(engine, questions)
            return show(
                args,
                lambda: {**trace_json.plain(lines), "sentence": reach(lines)},
                [reach(lines), *map(lines_place, lines.lines)],
            )
        with engine.search.reader() as store:
            place = why_not.named(engine.plan.roots, store, args.never)
        with waiting("Asking past questions") as tell:
            never = past_questions.never_of(engine, questions, *place, tell)
    return show(
        args,
        lambda: {**never_data(never), "leftOut": questions.left_out},
        [*never_lines(never), *left_out(questions)],
    )


def _file(args: argparse.Namespace) -> int:
    """Tell whether a path is part of the memory, and why."""
    with opened(args) as engine:
        verdict = engine.notes.why_file(args.file)
    state = "part of the memory" if verdict.included else f"left out ({verdict.rule})"
    lines = [f"{one_line(verdict.path)}: {state}. {one_line(verdict.detail)}", *filter(None, [verdict.index])]
    return show(args, lambda: trace_json.plain(verdict), lines, 2 if verdict.rule == "missing" else 0)


# --- past questions in words ---------------------------------------------------------------------------------------

_QUOTED = 3
"""Questions that are quoted; the others are counted."""
_BY: dict[Asker, str] = {"saved": "saved", "logged": "asked by agents", "own words": "made of its own words"}


def claim(value: NeverClaim) -> str:
    """Return what is said of a line over many questions, as a sentence."""
    match value:
        case Reached():
            return f"{plural(value.asked, 'question')} {_BY[value.asker]}: {value.recalled:,} recalled it."
        case StoppedTimes():
            quoted = ", ".join(f'"{text}"' for text in value.questions[:_QUOTED])
            more = len(value.questions) - _QUOTED
            return (
                f"{plural(len(value.questions), 'question')} stopped by {value.gate.removeprefix('excluded: ')}: "
                f"{quoted}{f' and {more} more' if more > 0 else ''}."
            )
        case OneChange():
            return (
                f"With {wording.turn(value.key, value.value)} it would be recalled for {len(value.questions):,} of "
                f"{plural(value.lost, 'question')} without it; {plural(value.moved, 'other hit')} would come or go."
            )
        case NoOneChange():
            return f"No single setting recalls it for any of {plural(value.lost, 'question')} without it."
        case _ as never:
            assert_never(never)


def never_lines(report: WhyNever) -> Iterator[str]:
    """Everything that is said of one line."""
    yield report.path if report.line is None else f"{report.path}:{report.line}"
    yield from map(claim, report.claims)


def never_data(report: WhyNever) -> dict[str, Any]:
    """Return the same as data: the claims, and the verdict of each question."""
    return {
        "path": report.path,
        "line": report.line,
        "claims": [{**trace_json.tagged(each), "sentence": claim(each)} for each in report.claims],
        "questions": [
            {**trace_json.plain(question), "verdict": trace_json.verdict(answer.fate)}
            for question, answer in report.answers
        ],
    }


def left_out(questions: PastQuestions) -> Iterator[str]:
    """Yield how many questions were not asked again; nothing where all were."""
    if questions.left_out:
        count = plural(questions.left_out, "question")
        yield f"{count} not asked again: too old, or the log masks a secret or cut them."


def reach(report: Unreached) -> str:
    """Return over what the lines were looked for, as a sentence."""
    if not report.questions and not report.reads:
        return (
            f"No question was logged in the last {plural(report.days, 'day')}, "
            "so nothing tells which lines agents got. "
            "memory-tui mcp --log-recalls writes down what they ask."
        )
    count = sum(each.last - each.first + 1 for each in report.lines)
    return (
        f"{plural(count, 'indexed line')} that nothing delivered in the last {plural(report.days, 'day')} "
        f"({plural(report.questions, 'question')}, {plural(report.reads, 'read')} of notes)."
    )


def lines_place(report: UnreachedLines) -> str:
    """Return where the lines stand."""
    return f"{report.path}:{report.first}" + (f"-{report.last}" if report.last > report.first else "")
