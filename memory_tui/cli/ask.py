"""Commands that ask: search, get."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from memory_tui.cli.context import opened, planned
from memory_tui.cli.output import dumps, print_json, print_lines, say, show, tell
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError, QueryError, SettingError
from memory_tui.explain import absent_words, trace_json
from memory_tui.formatting import plural
from memory_tui.plan import Plan
from memory_tui.render import hit_text, qmd_text, why_text
from memory_tui.sanitize import one_line, safe
from memory_tui.search.evidence import Evidence
from memory_tui.search.excerpts import Excerpt, excerpts
from memory_tui.search.trace import Trace
from memory_tui.workspace import notes, roots
from memory_tui.workspace.notes import NoteLines

# --- search --------------------------------------------------------------------------------------------------------


def search(args: argparse.Namespace) -> int:
    """Answer one query, or a query a line of standard input."""
    plan = planned(args)
    plan.require_enabled()
    if args.stdin:
        with opened(args, plan) as engine:
            engine.index.catch_up()
            for query in _queries(sys.stdin):
                print(dumps({"id": query.id, **_answered(engine, query, args)}), flush=True)  # noqa: T201
        return 0
    if args.query is None or not args.query.strip():
        raise QueryError("There is no query.", 'For instance: memory-tui search "router vlan".')
    with opened(args, plan) as engine:
        if (answer := engine.backend.ask(args.query, source=args.source)) is not None:
            for remark in () if args.json else answer.remarks:
                say(remark.sentence)
            data = {**qmd_text.answer(answer, explain=args.explain), "roots": []}
            return show(args, data, qmd_text.lines(answer, explain=args.explain))
        engine.index.catch_up()
        trace, evidence = engine.search.ranked(args.query, plan.settings, source=args.source)
        passages = excerpts(trace, evidence, args.max_characters) if args.max_characters else None
        if args.json:
            print_json(_by_builtin(engine, trace, args.explain, passages))
            return 0
        _remarks(engine, trace, explain=args.explain)
        if _is_styled() and not (args.explain or passages) and trace.recalled:
            columns, colour = shutil.get_terminal_size((100, 24)).columns, "NO_COLOR" not in os.environ
            for line in hit_text.hits(trace, evidence, columns, colour=colour, full=args.full):
                sys.stdout.write(f"{line}\n")
            return 0
        print_lines(_lines(trace, evidence, passages or (), explain=args.explain))
    return 0


def _is_styled() -> bool:
    """Return whether standard output is a terminal that shows styles: what is piped stays plain."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _remarks(engine: Engine, trace: Trace, *, explain: bool) -> None:
    """Print beside an answer what a person should know of it."""
    if engine.backend.is_qmd and (failed := engine.backend.fallback()) is not None:
        say(engine.backend.answered_by(failed))
    for remark in trace.notices:
        if explain or not remark.not_copied:
            tell(remark)
    if trace.level is not None and trace.recalled and (explain or trace.level.level != "found"):
        say(trace.level.sentence)
    if missing := _missing(trace):
        say(" ".join(missing))


def _lines(trace: Trace, evidence: Evidence, passages: Iterable[Excerpt], *, explain: bool) -> Iterator[str]:
    """Yield one answer: its hits, or the passages of them that a budget of characters allows."""
    rows = [(p.hit, p.first, p.last, p.text) for p in passages]
    rows = rows or [(hit, hit.chunk.start_line, hit.last_line, hit.snippet.strip("\n")) for hit in trace.recalled]
    if explain and trace.level is not None and trace.recalled:
        yield f"level   {trace.level.level}: {trace.level.explanation}"
    for place, (hit, first, last, text) in enumerate(rows):
        yield from [""] if place else []
        yield f"{hit.score:.3f} {one_line(f'{hit.chunk.path}#L{first}-L{last}')}"
        if explain:
            yield from why_text.arithmetic(hit, trace, evidence, first=not place)
        yield from safe(text, keep_newlines=True).split("\n")
    for place, line in enumerate(why_text.empty(trace)):
        yield line if place else f"No matches. {line}"
    if explain:
        yield from why_text.losers(trace)


def _by_builtin(engine: Engine, trace: Trace, explain: bool, passages: Iterable[Excerpt] | None) -> dict[str, Any]:
    """Return the answer of the built-in index as data, with what it stands in for."""
    failed = engine.backend.fallback() if engine.backend.is_qmd else None
    answer = {**trace_json.answer(trace, explain=explain), "backend": "builtin"}
    answer |= {"fallback": failed.as_dict()} if failed else {}
    missing, lost = _missing(trace), _lost(engine)
    answer["stale"] = missing is not None or any(root["state"] != "watcher stalled" for root in lost)
    if missing is not None:
        answer["warning"], answer["action"] = missing
    if passages is not None:
        answer["passages"] = [*map(trace_json.passage, passages)]
    return answer | {"roots": lost}


def _missing(trace: Trace) -> tuple[str, str] | None:
    """Return which notes the answer lacks as they are on disk, and what to do; None where it lacks none."""
    return absent_words.notes_lacking(trace, "memory-tui get", by_itself=False) if trace.unsearchable else None


def _lost(engine: Engine) -> list[dict[str, str]]:
    """Return the roots whose notes cannot be read, or are not watched."""
    away = roots.lost(engine.index.root_watch.states())
    return [{"path": root.path, "state": root.state, "detail": root.detail} for root in away]


class _StdinQuery(NamedTuple):
    """One query of `search --stdin`: `options` of OpenClaw's memory_search; `problem` says why it cannot run."""

    id: object
    query: str
    options: Mapping[str, Any] = MappingProxyType({})
    problem: str = ""


def _queries(lines: Iterable[str]) -> Iterator[_StdinQuery]:
    """Yield each line as a query: a JSON object with `query`, or the text itself."""
    for text in lines:
        text = text.rstrip("\r\n")
        if not text.lstrip().startswith("{"):
            if text.strip():
                yield _StdinQuery(None, text)
            continue
        try:
            item = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield _StdinQuery(None, "", problem=f"not valid JSON: {error}")
            continue
        query, chosen = item.get("query"), item.get("options") or {}
        if not isinstance(query, str):
            yield _StdinQuery(item.get("id"), "", problem="it has no query")
        elif not isinstance(chosen, dict):
            yield _StdinQuery(item.get("id"), query, problem="its options are not an object")
        else:
            yield _StdinQuery(item.get("id"), query, chosen)


_KEYS = {name: f"query.{name}" for name in ("maxResults", "minScore", "maxCharacters")}


def _answered(engine: Engine, query: _StdinQuery, args: argparse.Namespace) -> dict[str, Any]:
    """Return the answer as data, or `error`; a budget of the query's own goes before that of the command line."""
    try:
        if query.problem:
            raise QueryError(f"The query cannot be read: {query.problem}.", 'Write {"id": 1, "query": "..."}.')
        changes = {key: query.options[name] for name, key in _KEYS.items() if query.options.get(name) is not None}
        settings = engine.plan.settings.update(changes, "the question")
        most = settings.whole("query.maxResults")
        if (answer := engine.backend.ask(query.query, most, source=args.source)) is not None:
            return {**qmd_text.answer(answer, explain=args.explain), "roots": _lost(engine)}
        trace, evidence = engine.search.ranked(query.query, settings, source=args.source)
        characters = args.max_characters
        if query.options.get("maxCharacters") is not None:
            characters = settings.whole("query.maxCharacters")
        passages = excerpts(trace, evidence, characters) if characters else None
        return _by_builtin(engine, trace, args.explain, passages)
    except MemoryTuiError as error:
        return {"error": error.as_dict()}


# --- get -----------------------------------------------------------------------------------------------------------


def get(args: argparse.Namespace) -> int:
    """Print a note, or some of its lines."""
    plan = planned(args)
    note = _note(args, plan)
    if args.start > max(1, note.total_lines):
        if not note.total_lines:
            raise SettingError(f"{note.path} is empty; there is no line {args.start:,}.", "Leave --from out.")
        raise SettingError(
            f"{note.path} has {plural(note.total_lines, 'line')}; there is no line {args.start:,}.",
            f"Start with a line from 1 to {note.total_lines:,}.",
        )
    if args.json or note.total_lines:
        show(args, lambda: trace_json.plain(note), safe(note.text, keep_newlines=True).removesuffix("\n").split("\n"))
    if args.json:
        return 0
    if not note.total_lines:
        say(f"{note.path} is empty.")
    if note.cut_line:
        say(f"line {note.cut_line} is longer than {len(note.text) - 1:,} characters and was cut.")
    if note.next_from:
        say(f"line {note.next_from} to {note.total_lines} not shown; --from {note.next_from} goes on.")
    return 0


def _note(args: argparse.Namespace, plan: Plan) -> NoteLines:
    """Return the lines; a file of QMD's is found by an engine, a note without one."""
    if plan.backend == "builtin":
        return notes.note_lines(roots.note(plan.roots, args.path), args.start, args.lines)
    with opened(args, plan) as engine:
        return engine.notes.get(args.path, args.start, args.lines)
