"""The commands `why`, for a query and a line, over past questions, for a file; and `eval`, on labelled queries."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memory_tui.cli.commands import at_least
from memory_tui.cli.context import moment, opened
from memory_tui.cli.output import show, waiting
from memory_tui.engine import past_questions
from memory_tui.engine.engine import Engine
from memory_tui.engine.past_questions import Unreached
from memory_tui.errors import LabelError, QueryError, SettingError
from memory_tui.explain import trace_json, why_not, wording
from memory_tui.explain.counterfactuals import remedies
from memory_tui.explain.trace_json import plain
from memory_tui.explain.why_never import Asker, NeverClaim, OneChange, Reached, StoppedTimes, WhyNever
from memory_tui.formatting import plural
from memory_tui.notices import other_vectors
from memory_tui.render import evaluation, hit_text
from memory_tui.tune import evaluate as measures
from memory_tui.tune import judgments, knob_search
from memory_tui.tune.evaluate import Case, Scorecard, ScoreComparison
from memory_tui.tune.judgments import Notebook
from memory_tui.workspace.roots import NoteMissing

# --- why -----------------------------------------------------------------------------------------------------------

_EXAMPLE = 'For instance: memory-tui why "router vlan" MEMORY.md:3.'


def why(args: argparse.Namespace) -> int:
    """Tell why a line was, or was not, recalled, or what `--never` and `--file` ask for."""
    if args.file is not None:
        return _file(args)
    if args.never is not None:
        return _never(args)
    if args.query is None or args.place is None:
        raise QueryError("A query and a line belong together.", _EXAMPLE)
    if not args.query.strip():
        raise QueryError("There is no query.", _EXAMPLE)
    with opened(args) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        query, path, line = _place(engine, args.query, args.place)
        answer = engine.search.why(engine.search.gather(query), path, line)
        saved = past_questions.saved_effect(engine)
        plan = engine.plan
        changes, questions = remedies(answer, plan.settings, plan.with_profile, engine.search.gather, saved)
        of_qmd = engine.backend.why(query, answer.place.path, line or 0)
    data = {**trace_json.why(answer, changes, questions), **({"qmd": of_qmd} if of_qmd else {})}
    head = [f"QMD: {of_qmd}", "The built-in index:"] if of_qmd else []
    return show(args, data, [*head, *hit_text.answer(answer, changes, questions)])


def _place(engine: Engine, query: str, place: str) -> tuple[str, str, int | None]:
    """Return query, path and line; where the query names the line, the two change places. Raises NoteMissing."""
    with engine.search.reader() as store:
        try:
            return query, *why_not.named(engine.plan.roots, store, place)
        except NoteMissing:
            with suppress(NoteMissing):
                return place, *why_not.named(engine.plan.roots, store, query)
            raise


def _file(args: argparse.Namespace) -> int:
    """Tell whether a path is part of the memory, and why."""
    with opened(args) as engine:
        verdict = engine.notes.why_file(args.file)
    state = "part of the memory" if verdict.included else f"left out ({verdict.rule})"
    lines = [f"{verdict.path}: {state}. {verdict.detail}", *filter(None, [verdict.index])]
    return show(args, plain(verdict), lines, 2 if verdict.rule == "missing" else 0)


# --- past questions ------------------------------------------------------------------------------------------------

_QUOTED = 3
"""Questions that are quoted; the others are counted."""
_BY: dict[Asker, str] = {"saved": "saved", "logged": "asked by agents", "own words": "made of its own words"}


def _never(args: argparse.Namespace) -> int:
    """Tell over past questions which gate stops a line how often, or which lines no question reached."""
    with opened(args) as engine:
        engine.index.catch_up()
        now = moment(args)
        questions = past_questions.past_questions(engine, time.time() if now is None else now, args.days)
        if not args.never:
            with waiting("Reading what was asked"):
                lines = past_questions.unreached(engine, questions)
            sentence = reach(lines)
            places = [f"{at.path}:{at.first}" + (f"-{at.last}" if at.last > at.first else "") for at in lines.lines]
            return show(args, {**plain(lines), "sentence": sentence}, [sentence, *places])
        with engine.search.reader() as store:
            place = why_not.named(engine.plan.roots, store, args.never)
        with waiting("Asking past questions") as tell:
            never = past_questions.never_of(engine, questions, *place, tell)
    data = {
        "path": never.path,
        "line": never.line,
        "claims": [{**trace_json.tagged(each), "sentence": claim(each)} for each in never.claims],
        "questions": [
            {**plain(question), "verdict": trace_json.verdict(answer.fate)} for question, answer in never.answers
        ],
        "leftOut": questions.left_out,
    }
    count = plural(questions.left_out, "question")
    rest = [f"{count} not asked again: too old, or the log masks a secret or cut them."] if questions.left_out else []
    return show(args, data, [*never_lines(never), *rest])


def claim(value: NeverClaim) -> str:
    """Return what is said of a line over many questions, as a sentence."""
    if isinstance(value, Reached):
        return f"{plural(value.questions, 'question')} {_BY[value.asker]}: {value.recalled:,} recalled it."
    if isinstance(value, StoppedTimes):
        quoted = ", ".join(f'"{text}"' for text in value.questions[:_QUOTED])
        more = len(value.questions) - _QUOTED
        stopped = f"{plural(len(value.questions), 'question')} stopped by {value.gate.removeprefix('excluded: ')}"
        return f"{stopped}: {quoted}{f' and {more} more' if more > 0 else ''}."
    lost = plural(value.lost, "question")
    if isinstance(value, OneChange):
        return (
            f"With {wording.turn(value.key, value.value)} it would be recalled for {len(value.questions):,} of "
            f"{lost} without it; {plural(value.moved, 'other hit')} would come or go."
        )
    return f"No single setting recalls it for any of {lost} without it."


def never_lines(report: WhyNever) -> Iterator[str]:
    """Yield everything that is said of one line."""
    yield report.path if report.line is None else f"{report.path}:{report.line}"
    yield from map(claim, report.claims)


def reach(report: Unreached) -> str:
    """Return over what the lines were looked for, as a sentence."""
    days = f"in the last {plural(report.days, 'day')}"
    if not report.questions and not report.reads:
        log = "memory-tui mcp --log-recalls writes down what they ask."
        return f"No question was logged {days}, so nothing tells which lines agents got. {log}"
    count = sum(each.last - each.first + 1 for each in report.lines)
    counts = f"({plural(report.questions, 'question')}, {plural(report.reads, 'read')} of notes)"
    return f"{plural(count, 'indexed line')} that nothing delivered {days} {counts}."


# --- eval ----------------------------------------------------------------------------------------------------------

FELL_SHORT = 3
"""Exit code of an evaluation whose score is below the limit that the command line sets."""


def evaluate(args: argparse.Namespace) -> int:
    """Measure recall on labelled queries, or search the knobs with `--tune`."""
    floors = _floors(args.fail_under)
    if args.metric not in measures.NAMES:
        raise _no_metric(args.metric)
    with opened(args) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        notebook = _notebook(args, engine)
        with waiting("Asking the labelled queries") as tell:
            cases = measures.collect(engine.search.gather, notebook, tell)
        if args.tune:
            return _tune(args, engine, cases)
        settings = engine.plan.settings
        with waiting("Measuring"):
            absent = judgments.absent(notebook, engine.notes.read)
            card = measures.score(cases, settings, len(notebook.queries) - len(cases), absent)
            levels = measures.level_counts(cases, settings)
            comparison = _compared(args, card)
        with waiting("Measuring the profiles"):
            table = measures.rivals(cases, settings, engine.plan.with_profile)
        notices = engine.notices()
    provider = cases[0].evidence.provider if cases else ""
    vectors = [notice for rival in table for notice in other_vectors(rival.name, provider)]
    short = measures.shortfalls(card.mean, floors)
    if comparison is not None:
        short += measures.regressions(comparison, args.tolerance)
    data = {
        **evaluation.scorecard_data(card, settings),
        "levels": plain(levels),
        "table": evaluation.rival_data(table),
        "failed": evaluation.shortfall_data(short),
        "comparison": evaluation.comparison_data(comparison) if comparison else None,
        "notices": plain([*dict.fromkeys((*notices, *vectors))]),
    }
    lines = [
        *evaluation.scorecard_lines(card),
        *([evaluation.levels(levels)] if levels else ()),
        *evaluation.rival_lines(table),
        *(notice.message for notice in vectors),
        *(evaluation.comparison_lines(comparison) if comparison else ()),
        *map(evaluation.shortfall, short),
    ]
    return show(args, data, lines, FELL_SHORT if short else 0)


def _tune(args: argparse.Namespace, engine: Engine, cases: tuple[Case, ...]) -> int:
    with waiting("Searching the knobs"):
        outcome = knob_search.tune(cases, engine.plan.settings, args.metric, args.seed)
    levels = measures.level_counts(cases, engine.plan.settings)
    data = {
        "metric": args.metric,
        "questions": len(cases),
        "levels": plain(levels),
        "notices": plain(engine.notices()),
        **evaluation.outcome_data(outcome),
    }
    return show(args, data, [*evaluation.outcome_lines(outcome), *([evaluation.levels(levels)] if levels else ())])


def _compared(args: argparse.Namespace, card: Scorecard) -> ScoreComparison | None:
    """Return the difference to an earlier measurement; None where none is named."""
    if args.baseline is None:
        return None
    try:
        before = measures.restored(json.loads(_text(args.baseline)))
    except ValueError as error:
        raise LabelError(
            f"The baseline {args.baseline} is not JSON: {error}.", "Make one with memory-tui eval --json."
        ) from error
    return measures.compare(before, measures.by_question(card))


def _floors(items: list[str]) -> dict[str, float]:
    floors = {}
    for item in items:
        name, _, number = item.partition("=")
        if name not in measures.NAMES:
            raise _no_metric(name)
        try:
            floors[name] = at_least(0)(number)
        except argparse.ArgumentTypeError:
            example = "For instance --fail-under recall=0.8."
            raise SettingError(f"--fail-under takes METRIC=NUMBER, not {item!r}.", example) from None
    return floors


def _no_metric(name: str) -> SettingError:
    return SettingError(f"There is no metric {name!r}.", f"Choose one of {', '.join(measures.NAMES)}.")


def _notebook(args: argparse.Namespace, engine: Engine) -> Notebook:
    """Return the labels that the command asks for, each where its line stands now."""
    if args.labels is not None:
        notebook = judgments.parse(_text(args.labels), args.labels)
    else:
        notebook = judgments.load(judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named))
    return judgments.settled(notebook, engine.notes.read)


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise LabelError(f"{path} cannot be read: {error}.", "Check the path.") from error
