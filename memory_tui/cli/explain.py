"""The commands `why`, for a query and a line or for a file, and `eval`, on labelled queries, with what it prints."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_tui.cli.ask import shared_data
from memory_tui.cli.commands import at_least
from memory_tui.cli.context import opened
from memory_tui.cli.output import say, show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.errors import LabelError, QueryError, SettingError
from memory_tui.explain import hit_text, trace_json, why_not
from memory_tui.explain.counterfactuals import remedies
from memory_tui.explain.trace_json import plain
from memory_tui.formatting import one_line, plural, signed
from memory_tui.notices import other_vectors
from memory_tui.settings import TUNE_KEYS, Settings
from memory_tui.tune import evaluate as measures
from memory_tui.tune import judgments, knob_search
from memory_tui.tune.evaluate import COSTS, Case, LevelCounts, Scorecard, Scores, Shortfall
from memory_tui.tune.knob_search import Better, Outcome
from memory_tui.workspace.roots import NoteMissing

# --- why -----------------------------------------------------------------------------------------------------------


COLUMNS = ("recall", "recall@6", "mrr@10", "ndcg@10", "noise", "wrong")
"""The metrics of a table for people."""
_NAMED = 3
"""Names of notes in a sentence."""


def _row(title: str, cells: Sequence[str]) -> str:
    return f"{title:<9}" + "".join(f"{cell:>9}" for cell in cells)


def _scores(title: str, scores: Scores) -> str:
    return _row(title, [f"{scores[name]:.3f}" for name in COLUMNS])


# --- a measurement -------------------------------------------------------------------------------------------------


def scorecard_lines(value: Scorecard) -> Iterator[str]:
    """Yield each query's metrics, and the means."""
    without = f", {plural(value.unjudged, 'query')} without" if value.unjudged else ""
    yield f"{plural(len(value.rows), 'query')} with labels{without}"
    if value.absent:
        text = ", ".join(one_line(path, 60) for path in value.absent[:_NAMED])
        more = f" and {len(value.absent) - _NAMED} more" if len(value.absent) > _NAMED else ""
        yield f"Labels of notes and lines that cannot be read count as not found: {text}{more}."
    yield _row("", COLUMNS)
    yield from (f"{_scores('', row.scores)}  {row.query.text}" for row in value.rows)
    yield _scores("mean", value.mean)


def level_words(counts: LevelCounts) -> str:
    """Say how often levels mislead."""
    return (
        f"Levels: {counts.doubted:,} of {plural(counts.answerable, 'query')} with an answer doubted; "
        f"{counts.trusted:,} of {counts.unanswerable:,} without one answered as found."
    )


def scorecard_data(value: Scorecard, settings: Settings) -> dict[str, Any]:
    """Return means, and each query with its metrics and hits."""
    rows = [
        {
            "query": row.query.text,
            "id": row.query.id,
            "metrics": dict(row.scores),
            "hits": [ref.citation for ref in row.hits],
        }
        for row in value.rows
    ]
    return {
        "questions": len(value.rows),
        "absent": list(value.absent),
        "metrics": dict(value.mean),
        "settings": {key: plain(settings.values[key]) for key in TUNE_KEYS},
        "queries": rows,
    }


def shortfall(missed: Shortfall) -> str:
    """Return a metric that misses what was asked of it, as a sentence."""
    side = "above" if missed.metric in COSTS else "below"
    return f"{missed.metric} is {missed.value:.6g}, {side} {missed.bound:g}."


# --- a search of the knobs -----------------------------------------------------------------------------------------


def verdict(value: Outcome) -> str:
    """Say in a sentence what the knob search found."""
    gain = value.held_out
    if isinstance(value, Better):
        sure = f"95 % from {value.held_out.low:.3f} to {value.held_out.high:.3f}"
        return f"On held-out queries, {value.metric} rises by {value.held_out.mean:.3f} beyond chance ({sure})."
    if value.reason == "few labels":
        return f"No evidence: {plural(value.have, 'query')} with a correct hit; the search needs {value.needed}."
    if gain is None or not (gain.low or gain.high):
        return "No evidence: the best settings for the half that is searched gain nothing on held-out queries."
    return (
        f"No evidence: the best settings gain {signed(gain.mean)} on held-out queries, "
        f"which may be chance (95 % from {signed(gain.low)} to {signed(gain.high)}). More labels find smaller gains."
    )


def outcome_lines(value: Outcome) -> Iterator[str]:
    """Yield the verdict, the knobs to turn, before and after."""
    better = isinstance(value, Better)
    yield verdict(value)
    for key, setting in value.changes.items():
        yield f"{'    ' if better else '    not: '}--set {key}={json.dumps(setting)}"
    if isinstance(value, Better):
        yield _row("", COLUMNS)
        yield _scores("before", value.before)
        yield _scores("after", value.after)


def outcome_data(value: Outcome) -> dict[str, Any]:
    """Return what a search of the knobs found; `evidence` tells whether anything is recommended."""
    better = value if isinstance(value, Better) else None
    return {
        "evidence": better is not None,
        "reason": "" if isinstance(value, Better) else value.reason,
        "changes": dict(value.changes),
        "heldOut": plain(value.held_out),
        "before": dict(better.before) if better else None,
        "after": dict(better.after) if better else None,
        "sentence": verdict(value),
    }


_EXAMPLE = 'For instance: memory-tui why "router vlan" MEMORY.md:3.'


def why(args: argparse.Namespace) -> int:
    """Tell why a line was, or was not, recalled, or what `--file` asks for."""
    if args.file is not None:
        return _file(args)
    if args.query is None or args.place is None:
        raise QueryError("A query and a line belong together.", _EXAMPLE)
    if not args.query.strip():
        raise QueryError("There is no query.", _EXAMPLE)
    with opened(args) as own:
        own.plan.require_enabled()
        own.index.catch_up()
        engine, standing = own.of_scope(args.scope)
        if standing is not None:
            say(standing.sentence)
        query, path, line = _place(engine, args.query, args.place)
        answer = engine.search.why(engine.search.gather(query), path, line)
        plan = engine.plan
        changes, questions = remedies(answer, plan.settings, plan.with_profile, engine.search.gather)
    data = trace_json.why(answer, changes, questions) | shared_data(standing)
    return show(args, data, hit_text.answer(answer, changes, questions))


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


# --- eval ----------------------------------------------------------------------------------------------------------

METRIC = "ndcg@10"
"""What a search of the knobs is to raise."""
FELL_SHORT = 3
"""Exit code of an evaluation whose score is below the limit that the command line sets."""


def evaluate(args: argparse.Namespace) -> int:
    """Measure recall on labelled queries, or search the knobs with `--tune`."""
    floors = _floors(args.fail_under)
    with opened(args) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        if args.labels is not None:
            notebook = judgments.parse(_text(args.labels), args.labels)
        else:
            notebook = judgments.load(judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named))
        # Each label where its line stands now.
        notebook = judgments.settled(notebook, engine.notes.read)
        with waiting("Asking the labelled queries") as tell:
            cases = measures.collect(engine.search.gather, notebook, tell)
        if args.tune:
            return _tune(args, engine, cases)
        settings = engine.plan.settings
        with waiting("Measuring"):
            absent = judgments.absent(notebook, engine.notes.read)
            card = measures.score(cases, settings, len(notebook.queries) - len(cases), absent)
            levels = measures.level_counts(cases, settings)
        vectors = other_vectors(settings.word("profile"), cases[0].evidence.provider) if cases else ()
        notices = [*engine.notices(), *vectors]
    short = measures.shortfalls(card.mean, floors)
    data = {
        **scorecard_data(card, settings),
        "levels": plain(levels),
        "failed": [
            {"metric": each.metric, "value": each.value, "wanted": each.bound, "sentence": shortfall(each)}
            for each in short
        ],
        "notices": plain(notices),
    }
    lines = [*scorecard_lines(card), *([level_words(levels)] if levels else ()), *map(shortfall, short)]
    lines += [notice.message for notice in vectors]
    return show(args, data, lines, FELL_SHORT if short else 0)


def _tune(args: argparse.Namespace, engine: Engine, cases: tuple[Case, ...]) -> int:
    with waiting("Searching the knobs"):
        outcome = knob_search.tune(cases, engine.plan.settings, METRIC)
    levels = measures.level_counts(cases, engine.plan.settings)
    data = {
        "metric": METRIC,
        "questions": len(cases),
        "levels": plain(levels),
        "notices": plain(engine.notices()),
        **outcome_data(outcome),
    }
    return show(args, data, [*outcome_lines(outcome), *([level_words(levels)] if levels else ())])


def _floors(items: list[str]) -> dict[str, float]:
    floors = {}
    for item in items:
        name, _, number = item.partition("=")
        if name not in measures.NAMES:
            raise SettingError(f"There is no metric {name!r}.", f"Choose one of {', '.join(measures.NAMES)}.")
        try:
            floors[name] = at_least(0)(number)
        except argparse.ArgumentTypeError:
            example = "For instance --fail-under recall=0.8."
            raise SettingError(f"--fail-under takes METRIC=NUMBER, not {item!r}.", example) from None
    return floors


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8"
        raise LabelError(f"{path} cannot be read: {reason}.", "Check the path.") from error
