"""The commands that explain and measure: arguments, and what they do."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Declare, Run, at_least, opened, spoken
from memory_tui.errors import IndexUnavailable, LabelError, SettingError

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.tune.evaluate import Case, Comparison, Scorecard
    from memory_tui.tune.labels import Notebook

FELL_SHORT = 3
"""Exit code of an evaluation that misses what was asked of it."""


def add(command: Declare) -> None:
    """Declare the commands."""
    why = command("why", "why a line of a note was, or was not, recalled for a question")
    why.add_argument("query", type=spoken, help="the question")
    why.add_argument("place", metavar="PATH[:LINE]", help="a note, a line of it, or a citation such as PATH#L3-L9")
    why.add_argument(
        "--openclaw-index",
        nargs="?",
        const="",
        metavar="DB",
        help="also look into OpenClaw's own index (default: that of its agent)",
    )
    measured = command("eval", "measure recall, MRR, nDCG and noise on labelled questions")
    _labels(measured)
    measured.add_argument(
        "--baseline",
        metavar="FILE",
        help="JSON of an earlier eval to compare with; a mean of recall, mrr@10 or ndcg@10 below it fails",
    )
    measured.add_argument(
        "--tolerance",
        type=at_least(0),
        default=0.0,
        metavar="F",
        help="how far a mean may be below the baseline's (default: 0)",
    )
    measured.add_argument("--against", metavar="PROFILE", help="compare with the same questions under another profile")
    measured.add_argument(
        "--fail-under",
        action="append",
        metavar="METRIC=X",
        help="fail when a mean is below X (noise, wrong: above); may be repeated",
    )
    measured.add_argument("--write-qrels", metavar="FILE", help="also write the labels as TREC qrels, and FILE.topics")
    tuned = command("tune", "search the knobs by labelled questions; changes nothing, and may find no evidence")
    _labels(tuned)
    tuned.add_argument("--metric", default="ndcg@10", help="what to raise (default: ndcg@10)")
    tuned.add_argument("--seed", type=int, default=1, metavar="N", help="which half of the questions is held out")
    noise = command("noise", "what unrelated questions score, and which minScore keeps them out")
    noise.add_argument("query", nargs="?", type=spoken, help="a question whose hits are shown on the same axis")
    _labels(noise)


def _labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="labelled questions (default: the notebook of the workspace); JSON Lines, or TREC qrels with --topics",
    )
    parser.add_argument("--topics", metavar="FILE", help="the questions of qrels, a line each: id, tab, question")


def _run(given: argparse.Namespace) -> int:
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.catch_up()
        return _ASK[given.command](given, engine)


def _why(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui import report
    from memory_tui.explain import outline, place, record
    from memory_tui.explain.flips import flips
    from memory_tui.explain.rephrase import of_answer
    from memory_tui.explain.whynot import against_their_index

    path, line = place.parse(given.place)
    answer = engine.why(engine.gather(given.query), path, line)
    if hasattr(given, "openclaw_index"):
        answer = against_their_index(answer, _lacks(engine, given.openclaw_index))
    row = answer.row
    changes = None if row is None else flips(answer.evidence, engine.settings, row, engine.with_profile)
    questions = of_answer(engine.gather, answer)
    if hasattr(given, "json"):
        report.data(record.why(answer, changes, questions))
    else:
        report.text(outline.answer(answer, changes, questions))
    return 0


def _lacks(engine: Engine, path: str) -> Callable[[str], str | None]:
    """Why OpenClaw's own index cannot recall a note, as a function of the note. Raises IndexUnavailable."""
    from memory_tui.index import compare
    from memory_tui.index.their_record import TheirProblem

    plan = engine.plan
    theirs = Path(path).expanduser() if path else compare.database(plan.config)
    found = compare.compare_workspace(plan.roots, theirs, compare.wanted(plan.config, plan.settings, plan.roots))
    if isinstance(found, TheirProblem):
        raise IndexUnavailable(found.detail, found.next_step)
    return found.lacks


# --- labels --------------------------------------------------------------------------------------------------------


def _notebook(given: argparse.Namespace, engine: Engine) -> Notebook:
    """The labels that the command asks for, each where its line stands now."""
    from memory_tui.tune import notebook, trec

    if hasattr(given, "topics"):
        if not hasattr(given, "labels"):
            raise SettingError("--topics are the questions of qrels.", "Name the qrels with --labels.")
        found = trec.read(_text(given.labels), _text(given.topics))
    elif hasattr(given, "labels"):
        found = notebook.parse(_text(given.labels), given.labels)
    else:
        found = notebook.load(notebook.place(engine.workspace, engine.plan.own_named))
    return notebook.settled(found, engine.read)


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise LabelError(f"{path} cannot be read: {error}.", "Check the path.") from error


def _eval(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui import report
    from memory_tui.tune import evaluate, outline, record

    floors = _floors(getattr(given, "fail_under", []))
    found = _notebook(given, engine)
    if hasattr(given, "write_qrels"):
        _write_qrels(given.write_qrels, found)
    cases = evaluate.collect(engine.gather, found)
    card = evaluate.score(cases, engine.settings, len(found.queries) - len(cases))
    compared = _compared(given, engine, card, cases)
    short = evaluate.shortfalls(card.mean, floors)
    if compared is not None and hasattr(given, "baseline"):
        short += evaluate.regressions(compared, given.tolerance)
    if hasattr(given, "json"):
        report.data(
            {
                **record.scorecard(card, engine.settings),
                "failed": [{"metric": name, "value": value, "wanted": floor} for name, value, floor in short],
                "comparison": record.comparison(compared) if compared else None,
            }
        )
    else:
        report.text(outline.scorecard(card))
        report.text(outline.comparison(compared) if compared else ())
        report.text(outline.shortfall(*one) for one in short)
    return FELL_SHORT if short else 0


def _tune(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui import report
    from memory_tui.tune import evaluate, outline, record, sweep

    _known(given.metric)
    cases = evaluate.collect(engine.gather, _notebook(given, engine))
    found = sweep.tune(cases, engine.settings, given.metric, given.seed)
    if hasattr(given, "json"):
        report.data({"metric": given.metric, "questions": len(cases), **record.outcome(found)})
    else:
        report.text(outline.outcome(found))
    return 0


def _noise(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui import report
    from memory_tui.explain import noise, noise_lines, probes
    from memory_tui.tune import evaluate

    found = _notebook(given, engine)
    cases = evaluate.collect(engine.gather, found) if found.judged else ()
    asked = probes.ask_all(engine.gather, evaluate.probes(cases))
    floor = noise.measure(asked, engine.settings)
    hits = [hit.score for hit in engine.search(given.query).recalled] if hasattr(given, "query") else []
    if hasattr(given, "json"):
        report.data({**noise_lines.record(floor), "results": hits})
    else:
        report.text(noise_lines.lines(floor, hits))
    return 0


def _compared(given: argparse.Namespace, engine: Engine, card: Scorecard, cases: tuple[Case, ...]) -> Comparison | None:
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
        other = evaluate.score(cases, engine.with_profile(given.against))
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
    from memory_tui.tune.metrics import NAMES

    if metric not in NAMES:
        raise SettingError(f"There is no metric {metric!r}.", f"Choose one of {', '.join(NAMES)}.")
    return metric


def _write_qrels(path: str, found: Notebook) -> None:
    from memory_tui.core import atomic
    from memory_tui.tune import trec

    qrels, topics = trec.export(found)
    try:
        atomic.replace_file(Path(path), qrels.encode("utf-8"), None)
        atomic.replace_file(Path(f"{path}.topics"), topics.encode("utf-8"), None)
    except OSError as error:
        message = f"The qrels cannot be written to {path}: {error.strerror or error}."
        raise LabelError(message, "Check the path.") from error


_ASK: dict[str, Callable[[argparse.Namespace, Engine], int]] = {
    "why": _why,
    "eval": _eval,
    "tune": _tune,
    "noise": _noise,
}
RUN: dict[str, Run] = dict.fromkeys(_ASK, _run)
