"""Commands that ask: `search` and `get`, `why` for a query and a line or for a file, and `eval` on labelled queries."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_tui import sentences, tune
from memory_tui.backends import qmd
from memory_tui.cli.commands import at_least
from memory_tui.cli.context import opened, planned
from memory_tui.cli.output import dumps, print_json, print_lines, say, show, waiting
from memory_tui.config.settings import TUNE_KEYS, Settings
from memory_tui.engine.engine import Engine
from memory_tui.errors import LabelError, MemoryTuiError, QueryError, SettingError
from memory_tui.explain import hit_text, trace_json, why_not, wording
from memory_tui.explain.counterfactuals import remedies
from memory_tui.formatting import one_line, plural, safe, signed
from memory_tui.search.excerpts import Excerpt, excerpts
from memory_tui.search.rank import Trace
from memory_tui.shared import Standing, workspace_of
from memory_tui.workspace import notes, roots

# --- search --------------------------------------------------------------------------------------------------------

_LOSERS = 10
_OPTIONS = ("maxResults", "minScore", "maxCharacters")
"""What a line of standard input may choose for its query."""
Answer = qmd.QmdAnswer | tuple[Trace, Sequence[Excerpt]]
"""What QMD answers, or our own index: hits with what they were ranked by, and what an agent reads of each."""


def search(args: argparse.Namespace) -> int:
    """Answer one query, or a query a line of standard input."""
    plan = planned(args)
    plan.require_enabled()
    if args.stdin:
        with opened(args, plan) as engine:
            engine.index.catch_up()
            for line in sys.stdin:
                if line.strip():
                    print(dumps(_answer_to_line(engine, line.strip(), args)), flush=True)  # noqa: T201
        return 0
    if args.query is None or not args.query.strip():
        raise QueryError("There is no query.", 'For instance: memory-tui search "router vlan".')
    with opened(args, plan) as workspace_engine:
        # With a scope, which may be this workspace itself, `_answer` leaves it to be done here.
        if args.scope:
            workspace_engine.index.catch_up()
        engine, standing = workspace_engine.of_scope(args.scope)
        answer = _answer(engine, args.query, plan.settings, args)
        if args.json:
            print_json(_data(engine, answer, args.explain) | shared_data(standing))
        elif isinstance(answer, qmd.QmdAnswer):
            for remark in answer.remarks:
                say(remark.sentence)
            print_lines(qmd.qmd_lines(answer))
        else:
            if standing is not None:
                say(standing.sentence)
            _print(engine, *answer, args)
    return 0


def shared_data(standing: Standing | None) -> dict[str, Any]:
    """Return the member of an answer that tells of the shared mirror it came from; empty where it came from none."""
    return {"shared": standing.as_dict()} if standing is not None else {}


def _answer(engine: Engine, query: str, settings: Settings, args: argparse.Namespace) -> Answer:
    """Return what QMD answers where that searches, else what the index does, brought up to date for a single query."""
    # A line of standard input may choose how many hits it wants; else QMD's own limit holds.
    most = settings.whole("query.maxResults") if args.stdin else None
    if (answer := engine.backend.ask(query, most, source=args.source)) is not None:
        return answer
    if not args.stdin and not args.scope:
        engine.index.catch_up()
    trace = engine.search.search(query, settings, source=args.source)
    return trace, excerpts(trace)


def _answer_to_line(workspace_engine: Engine, line: str, args: argparse.Namespace) -> dict[str, Any]:
    """Return the answer to a line of standard input as JSON-ready data; the reason as `error` where it has none."""
    request_id: object = None
    try:
        request = _request(line)
        request_id = request.get("id")
        query = request.get("query")
        options = request.get("options") or {}
        if not isinstance(query, str) or not isinstance(options, dict):
            raise _unreadable("it has no query, or its options are no object")
        if unknown := [one_line(name, 40) for name in options if name not in _OPTIONS]:
            raise _unreadable(f"it has no option {unknown[0]!r}", f"An option is one of {', '.join(_OPTIONS)}.")
        changes = {f"query.{name}": value for name, value in options.items() if value is not None}
        settings = workspace_engine.plan.settings.update(changes, "the question")
        engine, standing = workspace_engine.of_scope(args.scope)
        answer = _answer(engine, query, settings, args)
        return {"id": request_id, **_data(engine, answer, args.explain), **shared_data(standing)}
    except MemoryTuiError as error:
        return {"id": request_id, "error": error.as_dict()}


def _request(line: str) -> dict[str, Any]:
    """Return a line of standard input as an object with `query`, and perhaps `id` and `options`. Raises QueryError.

    A line that is no JSON is the query itself.
    """
    if line[0] not in "{[":
        return {"query": line}
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        if line[0] == "[":
            # A query may begin with a bracket, as in "[2026-11-20] router".
            return {"query": line}
        raise _unreadable(f"not valid JSON: {error}") from error
    if not isinstance(request, dict):
        raise _unreadable("it is a list")
    return request


def _unreadable(why: str, next_step: str = 'Write {"id": 1, "query": "..."}.') -> QueryError:
    """Return the error for a line of standard input that is no query."""
    return QueryError(f"The query cannot be read: {why}.", next_step)


def _data(engine: Engine, answer: Answer, explain: bool) -> dict[str, Any]:
    """Return an answer as JSON-ready data; of the built-in index with why QMD did not answer, where that should have.

    With `explain` every candidate is in it.
    """
    lost_roots = engine.index.root_watch.lost()
    roots_data = [{"path": root.path, "state": root.state, "detail": root.detail} for root in lost_roots]
    if isinstance(answer, qmd.QmdAnswer):
        return {**qmd.qmd_answer(answer), "roots": roots_data}
    trace, passages = answer
    data = {**trace_json.answer(trace, passages, explain=explain), "backend": "builtin"}
    if engine.backend.is_qmd and (failure := engine.backend.fallback()):
        data["fallback"] = failure.as_dict()
    missing = _missing(trace)
    data["stale"] = bool(missing) or any(root.state != "watcher stalled" for root in lost_roots)
    data |= dict(zip(("warning", "action"), missing, strict=False))
    return data | {"roots": roots_data}


def _missing(trace: Trace) -> tuple[str, ...]:
    """Return two sentences: which notes the answer lacks as they are on disk, and what to do; empty for none."""
    if not trace.evidence.unsearchable:
        return ()
    return wording.notes_lacking(trace, "memory-tui get", by_itself=False) or ()


def _print(engine: Engine, trace: Trace, passages: Sequence[Excerpt], args: argparse.Namespace) -> None:
    """Print an answer for a person, and on standard error what should be known of it.

    A terminal gets styled hits; what is piped, explained or limited in characters is plain.
    """
    if engine.backend.is_qmd and (failure := engine.backend.fallback()):
        say(failure.sentence)
    for notice in trace.notices:
        if args.explain or not notice.not_copied:
            say(notice.sentence)
    level = trace.level if trace.recalled else None
    if level and (args.explain or level.level != "found" or level.in_part):
        say(level.sentence)
    if missing := _missing(trace):
        say(" ".join(missing))
    # What is piped stays plain.
    styled = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if styled and trace.recalled and not args.explain and args.max_characters is None:
        width = shutil.get_terminal_size((100, 24)).columns
        has_colour = "NO_COLOR" not in os.environ
        for line in hit_text.hits(trace, passages, width, colour=has_colour, full=args.full):
            sys.stdout.write(f"{line}\n")
    else:
        print_lines(_lines(trace, passages, explain=args.explain))


def _lines(trace: Trace, passages: Sequence[Excerpt], *, explain: bool) -> Iterator[str]:
    """Yield one answer: what an agent reads of each hit, and whether that is shortened."""
    if explain and trace.level is not None and trace.recalled:
        yield f"level   {trace.level.level}: {trace.level.explanation}"
    for index, passage in enumerate(passages):
        if index > 0:
            yield ""
        yield f"{passage.hit.score:.3f} {one_line(hit_text.place_of(passage))}"
        if explain:
            yield from hit_text.arithmetic(passage.hit, trace, first=index == 0)
        yield from safe(passage.text.strip("\r\n"), keep_newlines=True).split("\n")
    if trace.empty is not None:
        reason, step = map(one_line, sentences.why_empty(trace.empty, trace.rules.profile.name))
        yield f"No matches. {reason}"
        yield step
    if explain:
        yield from _losers(trace)


def _losers(trace: Trace) -> Iterator[str]:
    """Yield how many candidates there were at each step, and the first of those that lost."""
    count = trace.funnel
    nearest = f"; nearest by {trace.evidence.nearest_by}" if trace.evidence.nearest_by else ""
    yield ""
    sides = f"{count['vector_pool']} by vector + {count['text_pool']} by text"
    passed = f"{count['over_gate']} over {trace.floor:g} > {count['recalled']} recalled"
    ranking = f"(profile {trace.rules.profile.name}, {trace.rules.mode}{nearest})"
    yield f"{count['chunks']} chunks > {sides} = {count['candidates']} candidates > {passed}   {ranking}"
    for loser in trace.lost[:_LOSERS]:
        yield f"  {loser.score:.3f} {one_line(loser.citation)}  {loser.verdict.short}"
    if len(trace.lost) > _LOSERS:
        yield f"  and {len(trace.lost) - _LOSERS} more; --explain --json lists them all"


# --- get -----------------------------------------------------------------------------------------------------------


def get(args: argparse.Namespace) -> int:
    """Print a note, or some of its lines."""
    plan = planned(args)
    standing: Standing | None = None
    path, first, last = roots.named_lines(args.path)
    # A keyword of Python.
    start = getattr(args, "from")
    lines = args.lines
    if first is not None and (last or first) < first:
        raise SettingError(f"Line {last} of {path} stands before line {first}.", f"Write {path}:{last}-{first}.")
    if first is not None and start == 1:
        # A path such as MEMORY.md:3-9 names the lines, unless the options do.
        start = max(1, first)
        lines = lines or (last or first) - first + 1
    if plan.backend == "builtin" and not workspace_of(path):
        note = notes.note_lines(roots.note(plan.roots, path), start, lines)
    else:
        # A file of QMD's, and a note of somebody else, is known to an engine alone.
        with opened(args, plan) as workspace_engine:
            engine, standing = workspace_engine.of_note(path)
            note = engine.notes.get(path, start, lines)
    if start > max(1, note.total_lines):
        holds, step = "is empty", "Leave --from out."
        if note.total_lines:
            holds, step = (
                f"has {plural(note.total_lines, 'line')}",
                f"Start with a line from 1 to {note.total_lines:,}.",
            )
        raise SettingError(f"{note.path} {holds}; there is no line {start:,}.", step)
    if args.json:
        return show(args, trace_json.plain(note) | shared_data(standing))
    if standing and standing.trouble:
        say(standing.sentence)
    if not note.total_lines:
        say(f"{note.path} is empty.")
        return 0
    print_lines(safe(note.text, keep_newlines=True).removesuffix("\n").split("\n"))
    if note.cut_line:
        say(f"line {note.cut_line} is longer than {len(note.text) - 1:,} characters and was cut.")
    if note.next_from:
        say(f"line {note.next_from} to {note.total_lines} not shown; --from {note.next_from} goes on.")
    return 0


# --- why -------------------------------------------------------------------------------------------------------------

_EXAMPLE = 'For instance: memory-tui why "router vlan" MEMORY.md:3.'


def why(args: argparse.Namespace) -> int:
    """Tell why a line was, or was not, recalled, or what `--file` asks for."""
    if args.file is not None:
        return _file(args)
    if args.query is None or args.place is None:
        raise QueryError("A query and a line belong together.", f"{_EXAMPLE[:-1]}, or memory-tui why --file USER.md.")
    if not args.query.strip():
        raise QueryError("There is no query.", _EXAMPLE)
    with opened(args) as workspace_engine:
        workspace_engine.plan.require_enabled()
        workspace_engine.index.catch_up()
        engine, standing = workspace_engine.of_scope(args.scope)
        if standing is not None:
            say(standing.sentence)
        query, path, line = _query_and_line(engine, args.query, args.place)
        answer = engine.search.why(engine.search.gather(query), path, line)
        changes = remedies(answer, engine.plan.with_profile, engine.search.gather)
    data = trace_json.why(answer, changes) | shared_data(standing)
    return show(args, data, hit_text.answer(answer, changes))


def _query_and_line(engine: Engine, query: str, place: str) -> tuple[str, str, int | None]:
    """Return query, path and line (None: any). Raises NoteMissing.

    A person may give them in the other order: where `place` names no note and `query` does, they change places.
    """
    with engine.search.reader() as store:
        try:
            return query, *why_not.named(engine.plan.roots, store, place)
        except roots.NoteMissing:
            with suppress(roots.NoteMissing):
                return place, *why_not.named(engine.plan.roots, store, query)
            raise


def _file(args: argparse.Namespace) -> int:
    """Tell whether a path is part of the memory, and why."""
    with opened(args) as engine:
        membership = engine.notes.why_file(args.file)
    state = "part of the memory" if membership.included else f"left out ({membership.rule})"
    lines = [f"{membership.path}: {state}. {membership.detail}", *filter(None, [membership.index])]
    return show(args, trace_json.plain(membership), lines, 2 if membership.rule == "missing" else 0)


# --- eval ------------------------------------------------------------------------------------------------------------

FELL_SHORT = 3
"""Exit code of an evaluation whose score is below the limit that the command line sets."""


def evaluate(args: argparse.Namespace) -> int:
    """Measure recall on labelled queries, or search the knobs with `--tune`."""
    bounds = _bounds(args.fail_under)
    with opened(args) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        if args.labels is not None:
            notebook = tune.parse(_text(args.labels), args.labels)
        else:
            notebook = tune.load(tune.notebook_path(engine.plan.roots.workspace, engine.plan.own_named))
        # Each label where its line stands now.
        notebook = tune.settled(notebook, engine.notes.read)
        with waiting("Asking the labelled queries") as report:
            cases = tune.collect(engine.search.gather, notebook, report)
        if args.tune:
            return _tune(args, engine, cases)
        settings = engine.plan.settings
        with waiting("Measuring"):
            absent = tune.absent(notebook, engine.notes.read)
            card = tune.score(cases, settings)
            means = tune.means(card)
            levels = tune.level_counts(cases, settings)
        vector_notices = sentences.other_vectors(settings.word("profile"), cases[0].evidence.provider)
        notices = [*engine.notices(), *vector_notices]
    failed = [
        {"metric": name, "value": means[name], "wanted": bound, "sentence": shortfall(name, means[name], bound)}
        for name, bound in tune.missed(means, bounds).items()
    ]
    data = {**scorecard_data(card, settings, absent), "levels": trace_json.plain(levels), "failed": failed}
    data["notices"] = trace_json.plain(notices)
    lines = [*scorecard_lines(card, len(notebook.queries) - len(cases), absent)]
    lines += [level_words(levels)] if levels else []
    lines += [str(row["sentence"]) for row in failed]
    lines += [notice.message for notice in vector_notices]
    return show(args, data, lines, FELL_SHORT if failed else 0)


def _tune(args: argparse.Namespace, engine: Engine, cases: tuple[tune.Case, ...]) -> int:
    """Search the knobs by the judgments of `cases`, and show what was found; nothing is changed."""
    with waiting("Searching the knobs"):
        outcome = tune.better_settings(cases, engine.plan.settings)
    levels = tune.level_counts(cases, engine.plan.settings)
    head = {"metric": tune.METRIC, "questions": len(cases), "levels": trace_json.plain(levels)}
    data = {**head, "notices": trace_json.plain(engine.notices()), **outcome_data(outcome)}
    return show(args, data, [*outcome_lines(outcome), *([level_words(levels)] if levels else ())])


def _bounds(items: list[str]) -> dict[str, float]:
    """Return by metric the bounds that `--fail-under` names as METRIC=NUMBER. Raises SettingError."""
    bounds = {}
    for item in items:
        name, _, number = item.partition("=")
        if name not in tune.NAMES:
            raise SettingError(f"There is no metric {name!r}.", f"Choose one of {', '.join(tune.NAMES)}.")
        try:
            bounds[name] = at_least(0)(number)
        except argparse.ArgumentTypeError:
            example = "For instance --fail-under recall=0.8."
            raise SettingError(f"--fail-under takes METRIC=NUMBER, not {item!r}.", example) from None
    return bounds


def _text(path: str) -> str:
    """Return the text of a file. Raises LabelError where it cannot be read."""
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8"
        raise LabelError(f"{path} cannot be read: {reason}.", "Check the path.") from error


# --- a measurement in words ------------------------------------------------------------------------------------------

COLUMNS = ("recall", "recall@6", "mrr@10", "ndcg@10", "noise", "wrong")
"""The metrics of a table for people."""
_NAMED = 3
"""Names of notes in a sentence."""


def _row(title: str, cells: Sequence[str]) -> str:
    """Return a line of the table of metrics."""
    return f"{title:<9}" + "".join(f"{cell:>9}" for cell in cells)


def _scores(title: str, scores: tune.Scores) -> str:
    """Return a line of the table with the figures of `scores`."""
    return _row(title, [f"{scores[name]:.3f}" for name in COLUMNS])


def scorecard_lines(card: tune.Card, unjudged: int, absent: Sequence[str]) -> Iterator[str]:
    """Yield each query's metrics, and the means, as lines of a table.

    `unjudged` counts queries that have no labels, `absent` names the labelled notes that cannot be read.
    """
    without = f", {plural(unjudged, 'query')} without" if unjudged else ""
    yield f"{plural(len(card), 'query')} with labels{without}"
    if absent:
        text = ", ".join(one_line(path, 60) for path in absent[:_NAMED])
        more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
        yield f"Labels of notes and lines that cannot be read count as not found: {text}{more}."
    yield _row("", COLUMNS)
    yield from (f"{_scores('', row.scores)}  {row.query.text}" for row in card.values())
    yield _scores("mean", tune.means(card))


def level_words(counts: Mapping[str, int]) -> str:
    """Say how often levels mislead."""
    return (
        f"Levels: {counts['doubted']:,} of {plural(counts['answerable'], 'query')} with an answer doubted; "
        f"{counts['trusted']:,} of {counts['unanswerable']:,} without one answered as found."
    )


def scorecard_data(card: tune.Card, settings: Settings, absent: Sequence[str]) -> dict[str, Any]:
    """Return means, and each query with its metrics and hits."""
    queries = []
    for row in card.values():
        hits = [ref.citation for ref in row.hits]
        queries.append({"query": row.query.text, "id": row.query.id, "metrics": dict(row.scores), "hits": hits})
    knobs = {key: trace_json.plain(settings.values[key]) for key in TUNE_KEYS}
    data = {"questions": len(card), "absent": list(absent), "metrics": dict(tune.means(card))}
    return {**data, "settings": knobs, "queries": queries}


def shortfall(metric: str, value: float, bound: float) -> str:
    """Return a metric that misses what was asked of it, as a sentence."""
    return f"{metric} is {value:.6g}, {'above' if metric in tune.COSTS else 'below'} {bound:g}."


# --- a search of the knobs -----------------------------------------------------------------------------------------


def verdict(value: tune.Outcome) -> str:
    """Say in a sentence what the knob search found."""
    if isinstance(value, tune.Better):
        gain = value.held_out
        interval = f"95 % from {gain.low:.3f} to {gain.high:.3f}"
        return f"On held-out queries, {tune.METRIC} rises by {gain.mean:.3f} beyond chance ({interval})."
    if value.reason == "few labels":
        return f"No evidence: {plural(value.have, 'query')} with a correct hit; the search needs {tune.FEWEST}."
    # An interval from 0 to 0: the settings change nothing on the queries that were held out.
    if value.held_out is None or value.held_out.low == value.held_out.high == 0:
        return "No evidence: the best settings for the half that is searched gain nothing on held-out queries."
    return (
        f"No evidence: the best settings gain {signed(value.held_out.mean)} on held-out queries, which may be chance "
        f"(95 % from {signed(value.held_out.low)} to {signed(value.held_out.high)}). More labels find smaller gains."
    )


def outcome_lines(value: tune.Outcome) -> Iterator[str]:
    """Yield the verdict, the knobs to turn, before and after."""
    prefix = "    " if isinstance(value, tune.Better) else "    not: "
    yield verdict(value)
    for key, setting in value.changes.items():
        yield f"{prefix}--set {key}={json.dumps(setting)}"
    if isinstance(value, tune.Better):
        yield _row("", COLUMNS)
        yield _scores("before", value.before)
        yield _scores("after", value.after)


def outcome_data(value: tune.Outcome) -> dict[str, Any]:
    """Return what a search of the knobs found; `evidence` tells whether anything is recommended."""
    data: dict[str, Any] = {"evidence": False, "reason": "", "changes": dict(value.changes)}
    data |= {"heldOut": trace_json.plain(value.held_out), "before": None, "after": None, "sentence": verdict(value)}
    if isinstance(value, tune.Better):
        return data | {"evidence": True, "before": dict(value.before), "after": dict(value.after)}
    return data | {"reason": value.reason}
