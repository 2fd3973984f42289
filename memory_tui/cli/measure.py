"""Commands that measure recall: eval, tune."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Command, at_least, opened, waiting
from memory_tui.core.errors import LabelError, SettingError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.explain.noise import LevelRates
    from memory_tui.tune.evaluate import Case, Scorecard, ScoreComparison
    from memory_tui.tune.judgments import Notebook

FELL_SHORT = 3
"""Exit code of an evaluation whose score is below the limit that the command line sets."""


def _declare_eval(parser: argparse.ArgumentParser) -> None:
    _labels(parser)
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="JSON of an earlier eval to compare with; a mean of recall, mrr@10 or ndcg@10 below it fails",
    )
    parser.add_argument(
        "--tolerance",
        type=at_least(0),
        default=0.0,
        metavar="F",
        help="how far a mean may be below the baseline's (default: 0)",
    )
    parser.add_argument("--against", metavar="PROFILE", help="compare with the same queries under another profile")
    parser.add_argument(
        "--fail-under",
        action="append",
        metavar="METRIC=X",
        help="fail when a mean is below X (noise, wrong: above); may be repeated",
    )
    parser.add_argument("--write-qrels", metavar="FILE", help="also write the labels as TREC qrels, and FILE.topics")


def _declare_tune(parser: argparse.ArgumentParser) -> None:
    _labels(parser)
    parser.add_argument("--metric", default="ndcg@10", help="what to raise (default: ndcg@10)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which half of the queries is held out")
    parser.add_argument("--presets", action="store_true", help="choose from a few whole presets, for few judgments")


def _labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="labelled queries (default: the notebook of the workspace); JSON Lines, or TREC qrels with --topics",
    )
    parser.add_argument("--topics", metavar="FILE", help="the queries of qrels, a line each: id, tab, query")


def _run(given: argparse.Namespace) -> int:
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        return _ASK[given.command](given, engine)


# --- labels --------------------------------------------------------------------------------------------------------


def _notebook(given: argparse.Namespace, engine: Engine) -> Notebook:
    """The labels that the command asks for, each where its line stands now."""
    from memory_tui.tune import judgments

    if hasattr(given, "topics"):
        if not hasattr(given, "labels"):
            raise SettingError("--topics are the queries of qrels.", "Name the qrels with --labels.")
        found = judgments.read(_text(given.labels), _text(given.topics))
    elif hasattr(given, "labels"):
        found = judgments.parse(_text(given.labels), given.labels)
    else:
        found = judgments.load(judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named))
    return judgments.settled(found, engine.notes.read)


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise LabelError(f"{path} cannot be read: {error}.", "Check the path.") from error


def _eval(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui.explain import noise
    from memory_tui.explain.trace_json import plain
    from memory_tui.notices import other_vectors
    from memory_tui.render import as_text, evaluation
    from memory_tui.tune import evaluate, judgments

    floors = _floors(getattr(given, "fail_under", []))
    found = _notebook(given, engine)
    absent = judgments.absent(found, engine.notes.read)
    if hasattr(given, "write_qrels"):
        _write_qrels(given.write_qrels, found)
    with waiting("Asking the labelled queries") as tell:
        cases = evaluate.collect(engine.queries.gather, found, tell)
    with waiting("Measuring"):
        card = evaluate.score(cases, engine.plan.settings, len(found.queries) - len(cases), absent)
        compared = _compared(given, engine, card, cases)
    levels = _levels(engine, cases)
    with waiting("Measuring the profiles"):
        table = evaluate.rivals(cases, engine.plan.settings, engine.plan.with_profile)
    provider = cases[0].evidence.provider if cases else ""
    vectors = [one for rival in table for one in other_vectors(rival.name, provider)]
    short = evaluate.shortfalls(card.mean, floors)
    if compared is not None and hasattr(given, "baseline"):
        short += evaluate.regressions(compared, given.tolerance)
    if hasattr(given, "json"):
        as_text.print_json(
            {
                **evaluation.scorecard_data(card, engine.plan.settings),
                "levels": as_text.plain_levels(levels),
                "table": evaluation.rival_data(table),
                "failed": evaluation.shortfall_data(short),
                "comparison": evaluation.comparison_data(compared) if compared else None,
                "notices": plain([*dict.fromkeys((*engine.notices(), *vectors))]),
            }
        )
    else:
        as_text.print_lines(evaluation.scorecard_lines(card))
        as_text.print_lines([noise.sentence(levels)] if levels else ())
        as_text.print_lines(evaluation.rival_lines(table))
        as_text.print_lines(notice.message for notice in vectors)
        as_text.print_lines(evaluation.comparison_lines(compared) if compared else ())
        as_text.print_lines(map(evaluation.shortfall, short))
    return FELL_SHORT if short else 0


def _tune(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui.explain import noise
    from memory_tui.render import as_text, evaluation
    from memory_tui.tune import evaluate, knob_search

    _known(given.metric)
    notebook, presets = _notebook(given, engine), hasattr(given, "presets")
    with waiting("Asking the labelled queries") as tell:
        cases = evaluate.collect(engine.queries.gather, notebook, tell)
    with waiting("Searching the knobs"):
        found = knob_search.tune(cases, engine.plan.settings, given.metric, given.seed, presets=presets)
    levels = _levels(engine, cases)
    if hasattr(given, "json"):
        told = {"metric": given.metric, "questions": len(cases), "levels": as_text.plain_levels(levels)}
        told["notices"] = as_text.plain_notices(engine)
        as_text.print_json({**told, **evaluation.outcome_data(found)})
    else:
        as_text.print_lines(evaluation.outcome_lines(found))
        as_text.print_lines([noise.sentence(levels)] if levels else ())
    return 0


def _levels(engine: Engine, cases: tuple[Case, ...]) -> LevelRates | None:
    """How often the level of an answer misleads; no knob of the ranking changes it."""
    from memory_tui.explain import noise
    from memory_tui.tune import evaluate

    with waiting("Asking unrelated questions") as tell:
        asked = noise.ask_all(engine.queries.gather, evaluate.probes(cases), tell)
    engine.queries.unrelated.keep(asked.nonsense, engine.plan.settings)
    return noise.level_rates(asked, engine.plan.settings)


def _compared(
    given: argparse.Namespace, engine: Engine, card: Scorecard, cases: tuple[Case, ...]
) -> ScoreComparison | None:
    import json

    from memory_tui.tune import evaluate

    if hasattr(given, "baseline"):
        try:
            data = json.loads(_text(given.baseline))
        except ValueError as error:
            raise LabelError(
                f"The baseline {given.baseline} is not JSON: {error}.", "Make one with memory-tui eval --json."
            ) from error
        return evaluate.compare(evaluate.restored(data), evaluate.by_question(card))
    if hasattr(given, "against"):
        other = evaluate.score(cases, engine.plan.with_profile(given.against))
        return evaluate.compare(evaluate.by_question(other), evaluate.by_question(card))
    return None


def _floors(items: list[str]) -> dict[str, float]:
    floors = {}
    for item in items:
        name, _, value = item.partition("=")
        try:
            floors[_known(name)] = at_least(0)(value)
        except argparse.ArgumentTypeError:
            raise SettingError(
                f"--fail-under takes METRIC=NUMBER, not {item!r}.", "For instance --fail-under recall=0.8."
            ) from None
    return floors


def _known(metric: str) -> str:
    from memory_tui.tune.evaluate import NAMES

    if metric not in NAMES:
        raise SettingError(f"There is no metric {metric!r}.", f"Choose one of {', '.join(NAMES)}.")
    return metric


def _write_qrels(path: str, found: Notebook) -> None:
    from memory_tui import durable
    from memory_tui.tune import judgments

    qrels, topics = judgments.export(found)
    written = ""
    for target, text in ((f"{path}.topics", topics), (path, qrels)):
        try:
            durable.replace_file(Path(target), text.encode("utf-8"), None)
        except OSError as error:
            message = f"{target} cannot be written: {error.strerror or error}.{written}"
            raise LabelError(message, "Check the path.") from error
        written = f" {target} is written."


_ASK: dict[str, Callable[[argparse.Namespace, Engine], int]] = {
    "eval": _eval,
    "tune": _tune,
}

COMMANDS: dict[str, Command] = {
    "eval": Command(_run, _declare_eval),
    "tune": Command(_run, _declare_tune),
}
