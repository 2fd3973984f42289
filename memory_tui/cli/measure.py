"""The command `eval`: measure recall on labelled queries, or search the knobs by them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from memory_tui.cli.commands import at_least
from memory_tui.cli.context import opened
from memory_tui.cli.output import show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.errors import LabelError, SettingError
from memory_tui.explain import noise
from memory_tui.explain.noise import LevelRates
from memory_tui.explain.trace_json import plain
from memory_tui.notices import other_vectors
from memory_tui.render import evaluation
from memory_tui.tune import evaluate as measures
from memory_tui.tune import judgments, knob_search
from memory_tui.tune.evaluate import Case, Scorecard, ScoreComparison
from memory_tui.tune.judgments import Notebook

FELL_SHORT = 3
"""Exit code of an evaluation whose score is below the limit that the command line sets."""


def evaluate(args: argparse.Namespace) -> int:
    """Measure, or search the knobs with `--tune`."""
    with opened(args) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        return _tune(args, engine) if args.tune else _measure(args, engine)


def _measure(args: argparse.Namespace, engine: Engine) -> int:
    floors = _floors(args.fail_under)
    notebook = _notebook(args, engine)
    absent = judgments.absent(notebook, engine.notes.read)
    settings = engine.plan.settings
    with waiting("Asking the labelled queries") as tell:
        cases = measures.collect(engine.search.gather, notebook, tell)
    with waiting("Measuring"):
        card = measures.score(cases, settings, len(notebook.queries) - len(cases), absent)
        comparison = _compared(args, engine, card, cases)
    levels = _levels(engine, cases)
    with waiting("Measuring the profiles"):
        table = measures.rivals(cases, settings, engine.plan.with_profile)
    provider = cases[0].evidence.provider if cases else ""
    vectors = [notice for rival in table for notice in other_vectors(rival.name, provider)]
    short = measures.shortfalls(card.mean, floors)
    if comparison is not None and args.baseline is not None:
        short += measures.regressions(comparison, args.tolerance)
    data = {
        **evaluation.scorecard_data(card, settings),
        "levels": plain(levels) if levels else None,
        "table": evaluation.rival_data(table),
        "failed": evaluation.shortfall_data(short),
        "comparison": evaluation.comparison_data(comparison) if comparison else None,
        "notices": plain([*dict.fromkeys((*engine.notices(), *vectors))]),
    }
    lines = [
        *evaluation.scorecard_lines(card),
        *([noise.sentence(levels)] if levels else ()),
        *evaluation.rival_lines(table),
        *(notice.message for notice in vectors),
        *(evaluation.comparison_lines(comparison) if comparison else ()),
        *map(evaluation.shortfall, short),
    ]
    return show(args, data, lines, FELL_SHORT if short else 0)


def _tune(args: argparse.Namespace, engine: Engine) -> int:
    _require_metric(args.metric)
    notebook = _notebook(args, engine)
    with waiting("Asking the labelled queries") as tell:
        cases = measures.collect(engine.search.gather, notebook, tell)
    with waiting("Searching the knobs"):
        outcome = knob_search.tune(cases, engine.plan.settings, args.metric, args.seed, presets=args.presets)
    levels = _levels(engine, cases)
    data = {
        "metric": args.metric,
        "questions": len(cases),
        "levels": plain(levels) if levels else None,
        "notices": plain(engine.notices()),
        **evaluation.outcome_data(outcome),
    }
    return show(args, data, [*evaluation.outcome_lines(outcome), *([noise.sentence(levels)] if levels else ())])


def _levels(engine: Engine, cases: tuple[Case, ...]) -> LevelRates | None:
    """Return how often the level of an answer misleads; no knob of the ranking changes it."""
    with waiting("Asking unrelated questions"):
        unrelated = tuple(noise.ask_unrelated(engine.search.gather))
    engine.search.unrelated.keep(unrelated, engine.plan.settings)
    related = [case.evidence for case in cases if case.query.relevant]
    return noise.level_rates(unrelated, related, engine.plan.settings)


def _compared(
    args: argparse.Namespace, engine: Engine, card: Scorecard, cases: tuple[Case, ...]
) -> ScoreComparison | None:
    if args.baseline is not None:
        try:
            data = json.loads(_text(args.baseline))
        except ValueError as error:
            raise LabelError(
                f"The baseline {args.baseline} is not JSON: {error}.", "Make one with memory-tui eval --json."
            ) from error
        return measures.compare(measures.restored(data), measures.by_question(card))
    if args.against is not None:
        other = measures.score(cases, engine.plan.with_profile(args.against))
        return measures.compare(measures.by_question(other), measures.by_question(card))
    return None


def _floors(items: list[str]) -> dict[str, float]:
    floors = {}
    for item in items:
        name, _, number = item.partition("=")
        _require_metric(name)
        try:
            floors[name] = at_least(0)(number)
        except argparse.ArgumentTypeError:
            raise SettingError(
                f"--fail-under takes METRIC=NUMBER, not {item!r}.", "For instance --fail-under recall=0.8."
            ) from None
    return floors


def _require_metric(name: str) -> None:
    if name not in measures.NAMES:
        raise SettingError(f"There is no metric {name!r}.", f"Choose one of {', '.join(measures.NAMES)}.")


# --- labels --------------------------------------------------------------------------------------------------------


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
