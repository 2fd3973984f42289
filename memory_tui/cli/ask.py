"""Commands that ask: index, search, explain, measure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli import provider
from memory_tui.cli.common import Declare, Run, at_least, opened, options, positive, question_of, spoken
from memory_tui.core.errors import IndexUnavailable, LabelError, QueryError, SettingError
from memory_tui.core.stop_signals import Stopped

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.index.sync import SyncReport
    from memory_tui.render.as_text import Question
    from memory_tui.tune.evaluate import Case, Comparison, Scorecard
    from memory_tui.tune.judgments import Notebook


def add_daily(command: Declare) -> None:
    """Declare the commands."""
    index = command("index", "bring the index up to date")
    index.add_argument("--force", action="store_true", help="read every file again")
    index.add_argument("--dry-run", action="store_true", help="show what would be sent where, and send nothing")
    index.add_argument("--yes", action="store_true", help="agree that the provider gets the notes of this workspace")
    index.add_argument("--accept-shrink", action="store_true", help="forget notes that vanished all at once")
    status = command("status", "what is indexed, by what, and what is missing")
    status.add_argument("--deep", action="store_true", help="also embed one text with the provider")
    search = command("search", "ask a question")
    search.add_argument("query", nargs="?", type=spoken, help="the question")
    search.add_argument(
        "--stdin", action="store_true", help='one question, or {"id","query","options"}, a line; one JSON answer a line'
    )
    search.add_argument("-n", "--max-results", type=positive, metavar="N", help="how many hits")
    search.add_argument("--min-score", metavar="F", help="what a hit has to score")
    search.add_argument("--source", choices=["memory", "sessions"], help="only hits of this source")
    search.add_argument(
        "--explain",
        action="store_true",
        help="show the arithmetic of each hit and who lost why; with --json, add the whole trace",
    )
    get = command("get", "print a note, or some of its lines")
    get.add_argument("path")
    get.add_argument("--from", dest="start", type=positive, metavar="N", help="first line")
    get.add_argument("--lines", type=positive, metavar="N", help="how many lines")
    command("config", "every value of the configuration, where it is from and what it does; nothing is changed")
    why = command("why-file", "why a path is, or is not, part of the memory")
    why.add_argument("path")
    compared = command("compare-index", "what OpenClaw's own index holds of the notes; it is only read")
    compared.add_argument("db", nargs="?", metavar="DB", help="its database (default: that of OpenClaw's agent)")


def _index(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    with opened(given) as engine:
        engine.plan.require_enabled()
        if hasattr(given, "dry_run"):
            return provider.dry_run(engine, as_json=hasattr(given, "json"))
        if hasattr(given, "yes"):
            as_text.agreed(engine.providers.approve(how="index --yes", sync=False), as_json=hasattr(given, "json"))
        outcome = _synced(engine, accepts=hasattr(given, "accept_shrink"), force=hasattr(given, "force"))
        as_text.sync(engine, outcome, as_json=hasattr(given, "json"))
        return 1 if outcome.error else 0


def _synced(engine: Engine, *, accepts: bool, force: bool) -> SyncReport:
    """Bring the index up to date; whoever stops it is told what becomes of the work."""
    try:
        outcome = (
            engine.indexer.sync(reason="accept", accept_shrink=True)
            if accepts
            else engine.indexer.sync(force=force, reason="cli")
        )
        return engine.indexer.sync(force=True, reason="cli") if accepts and force else outcome
    except Stopped as stopped:
        stopped.more = "What is indexed so far stays; memory-tui index goes on from there."
        raise


def _status(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    with opened(given) as engine:
        as_text.status(engine.status(deep=hasattr(given, "deep")), as_json=hasattr(given, "json"))
    return 0


def _search(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    as_json, source = hasattr(given, "json"), getattr(given, "source", "")
    with opened(given) as engine:
        engine.plan.require_enabled()
        if hasattr(given, "stdin"):
            engine.indexer.catch_up()
            for question in _questions(sys.stdin):
                as_text.line(engine, question, source, explain=hasattr(given, "explain"))
            return 0
        query = question_of(given)
        if query is None:
            raise QueryError("What is the question?", 'For instance: memory-tui search "router vlan".')
        engine.indexer.catch_up()
        as_text.search(engine, query, source, as_json=as_json, explain=hasattr(given, "explain"))
    return 0


def _questions(lines: Iterator[str] | Sequence[str]) -> Iterator[Question]:
    """Each line as a question: a JSON object with `query`, or what is asked."""
    import json

    from memory_tui.render.as_text import Question

    for text in lines:
        text = text.rstrip("\r\n")
        if not text.lstrip().startswith("{"):
            if text.strip():
                yield Question(None, text)
            continue
        try:
            item = json.loads(text)
        except ValueError as error:
            yield Question(None, "", problem=f"not valid JSON: {error}")
            continue
        query, asked = item.get("query"), item.get("options") or {}
        problem = (
            "it has no query"
            if not isinstance(query, str)
            else ("" if isinstance(asked, dict) else "its options are not an object")
        )
        yield Question(item.get("id"), query if isinstance(query, str) else "", {} if problem else asked, problem)


def _get(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    start = getattr(given, "start", 1)
    with opened(given) as engine:
        note = engine.notes.get(given.path, start, getattr(given, "lines", None))
    if start > max(1, note.total_lines):
        from memory_tui.core.formatting import plural

        if not note.total_lines:
            raise SettingError(f"{note.path} is empty; there is no line {start:,}.", "Leave --from out.")
        raise SettingError(
            f"{note.path} has {plural(note.total_lines, 'line')}; there is no line {start:,}.",
            f"Start with a line from 1 to {note.total_lines:,}.",
        )
    as_text.note(note, as_json=hasattr(given, "json"))
    return 0


def _config(given: argparse.Namespace) -> int:
    from memory_tui import plan as plans
    from memory_tui.render import as_text

    as_text.config(plans.choose(options(given)).survey(), as_json=hasattr(given, "json"))
    return 0


def _why_file(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    with opened(given) as engine:
        as_text.path(engine.notes.why_file(given.path), as_json=hasattr(given, "json"))
    return 0


def _compare_index(given: argparse.Namespace) -> int:
    from pathlib import Path

    from memory_tui import plan as plans
    from memory_tui.openclaw import compare
    from memory_tui.render import as_text

    plan = plans.plan(options(given))
    path = Path(given.db).expanduser() if hasattr(given, "db") else None
    outcome = compare.compare_configured(plan.config, plan.settings, plan.roots, path)
    as_text.comparison(outcome, as_json=hasattr(given, "json"))
    return {"ok": 0, "missing": 2}.get(outcome.state, 1)


RUN_DAILY: dict[str, Run] = {
    "index": _index,
    "status": _status,
    "search": _search,
    "get": _get,
    "config": _config,
    "why-file": _why_file,
    "compare-index": _compare_index,
}

FELL_SHORT = 3
"""Exit code of an evaluation that misses what was asked of it."""


def add_measures(command: Declare) -> None:
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
        engine.indexer.catch_up()
        return _ASK[given.command](given, engine)


def _why(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui.explain import trace_json, why_not
    from memory_tui.explain.counterfactuals import flips, of_answer
    from memory_tui.explain.why_not import against_their_index
    from memory_tui.render import as_text

    if question_of(given) is None:
        raise QueryError("What is the question?", 'For instance: memory-tui why "router vlan" MEMORY.md:3.')
    path, line = why_not.parse(given.place)
    answer = engine.queries.why(engine.queries.gather(given.query), path, line)
    if hasattr(given, "openclaw_index"):
        answer = against_their_index(answer, _lacks(engine, given.openclaw_index))
    row = answer.row
    changes = None if row is None else flips(answer.evidence, engine.plan.settings, row, engine.plan.with_profile)
    questions = of_answer(engine.queries.gather, answer)
    if hasattr(given, "json"):
        as_text.data(trace_json.why(answer, changes, questions))
    else:
        as_text.text(as_text.answer(answer, changes, questions))
    return 0


def _lacks(engine: Engine, path: str) -> Callable[[str], str | None]:
    """Why OpenClaw's own index cannot recall a note, as a function of the note. Raises IndexUnavailable."""
    from memory_tui.openclaw import compare
    from memory_tui.openclaw.host_index import TheirProblem

    plan = engine.plan
    theirs = Path(path).expanduser() if path else compare.database(plan.config)
    found = compare.compare_workspace(plan.roots, theirs, compare.wanted(plan.config, plan.settings, plan.roots))
    if isinstance(found, TheirProblem):
        raise IndexUnavailable(found.detail, found.next_step)
    return found.lacks


# --- labels --------------------------------------------------------------------------------------------------------


def _notebook(given: argparse.Namespace, engine: Engine) -> Notebook:
    """The labels that the command asks for, each where its line stands now."""
    from memory_tui.tune import judgments

    if hasattr(given, "topics"):
        if not hasattr(given, "labels"):
            raise SettingError("--topics are the questions of qrels.", "Name the qrels with --labels.")
        found = judgments.read(_text(given.labels), _text(given.topics))
    elif hasattr(given, "labels"):
        found = judgments.parse(_text(given.labels), given.labels)
    else:
        found = judgments.load(judgments.place(engine.plan.roots.workspace, engine.plan.own_named))
    return judgments.settled(found, engine.notes.read)


def _text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise LabelError(f"{path} cannot be read: {error}.", "Check the path.") from error


def _eval(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui.render import as_text, evaluation
    from memory_tui.tune import evaluate

    floors = _floors(getattr(given, "fail_under", []))
    found = _notebook(given, engine)
    if hasattr(given, "write_qrels"):
        _write_qrels(given.write_qrels, found)
    cases = evaluate.collect(engine.queries.gather, found)
    card = evaluate.score(cases, engine.plan.settings, len(found.queries) - len(cases))
    compared = _compared(given, engine, card, cases)
    short = evaluate.shortfalls(card.mean, floors)
    if compared is not None and hasattr(given, "baseline"):
        short += evaluate.regressions(compared, given.tolerance)
    if hasattr(given, "json"):
        as_text.data(
            {
                **evaluation.scorecard_data(card, engine.plan.settings),
                "failed": [{"metric": name, "value": value, "wanted": floor} for name, value, floor in short],
                "comparison": evaluation.comparison_data(compared) if compared else None,
            }
        )
    else:
        as_text.text(evaluation.scorecard_lines(card))
        as_text.text(evaluation.comparison_lines(compared) if compared else ())
        as_text.text(evaluation.shortfall(*one) for one in short)
    return FELL_SHORT if short else 0


def _tune(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui.render import as_text, evaluation
    from memory_tui.tune import evaluate, knob_search

    _known(given.metric)
    cases = evaluate.collect(engine.queries.gather, _notebook(given, engine))
    found = knob_search.tune(cases, engine.plan.settings, given.metric, given.seed)
    if hasattr(given, "json"):
        as_text.data({"metric": given.metric, "questions": len(cases), **evaluation.outcome_data(found)})
    else:
        as_text.text(evaluation.outcome_lines(found))
    return 0


def _noise(given: argparse.Namespace, engine: Engine) -> int:
    from memory_tui.explain import noise
    from memory_tui.render import as_text
    from memory_tui.tune import evaluate

    found = _notebook(given, engine)
    cases = evaluate.collect(engine.queries.gather, found) if found.judged else ()
    asked = noise.ask_all(engine.queries.gather, evaluate.probes(cases))
    floor = noise.measure(asked, engine.plan.settings)
    query = question_of(given)
    hits = [hit.score for hit in engine.queries.search(query).recalled] if query is not None else []
    if hasattr(given, "json"):
        as_text.data({**as_text.record(floor), "results": hits})
    else:
        as_text.text(as_text.lines(floor, hits))
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
    from memory_tui.tune.metrics import NAMES

    if metric not in NAMES:
        raise SettingError(f"There is no metric {metric!r}.", f"Choose one of {', '.join(NAMES)}.")
    return metric


def _write_qrels(path: str, found: Notebook) -> None:
    from memory_tui.core import atomic
    from memory_tui.tune import judgments

    qrels, topics = judgments.export(found)
    written = ""
    for target, text in ((f"{path}.topics", topics), (path, qrels)):
        try:
            atomic.replace_file(Path(target), text.encode("utf-8"), None)
        except OSError as error:
            message = f"{target} cannot be written: {error.strerror or error}.{written}"
            raise LabelError(message, "Check the path.") from error
        written = f" {target} is written."


_ASK: dict[str, Callable[[argparse.Namespace, Engine], int]] = {
    "why": _why,
    "eval": _eval,
    "tune": _tune,
    "noise": _noise,
}
RUN_MEASURES: dict[str, Run] = dict.fromkeys(_ASK, _run)
