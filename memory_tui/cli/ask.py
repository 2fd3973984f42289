"""Commands that ask: search, get."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from memory_tui import notices
from memory_tui.backends import qmd
from memory_tui.backends.qmd import QmdAnswer
from memory_tui.cli.context import opened, planned
from memory_tui.cli.output import dumps, print_json, print_lines, say, show, tell
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError, QueryError, SettingError
from memory_tui.explain import hit_text, trace_json, wording
from memory_tui.formatting import one_line, plural, safe
from memory_tui.search.excerpts import Excerpt, excerpts
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import Trace
from memory_tui.settings import Settings
from memory_tui.shared.scope import Standing, workspace_of
from memory_tui.workspace import notes, roots

# --- search --------------------------------------------------------------------------------------------------------

_LOSERS = 10
_OPTIONS = ("maxResults", "minScore", "maxCharacters")
"""What a line of standard input may choose for its query."""
Answer = QmdAnswer | tuple[Trace, Evidence, Sequence[Excerpt]]
"""What QMD answers, or our own index: hits with what they were ranked by, and what an agent reads of each."""


def search(args: argparse.Namespace) -> int:
    """Answer one query, or a query a line of standard input."""
    plan = planned(args)
    plan.require_enabled()
    if args.stdin:
        with opened(args, plan) as engine:
            engine.index.catch_up()
            for line in sys.stdin:
                if text := line.rstrip("\r\n").strip():
                    print(dumps(_of_line(engine, text, args)), flush=True)  # noqa: T201
        return 0
    if args.query is None or not args.query.strip():
        raise QueryError("There is no query.", 'For instance: memory-tui search "router vlan".')
    with opened(args, plan) as own:
        if args.scope:
            own.index.catch_up()
        engine, standing = own.of_scope(args.scope)
        answer = _answer(engine, args.query, plan.settings, args)
        if args.json:
            print_json(_data(engine, answer, args.explain) | shared_data(standing))
        elif isinstance(answer, QmdAnswer):
            for remark in answer.remarks:
                say(remark.sentence)
            print_lines(qmd.qmd_lines(answer))
        else:
            if standing is not None:
                say(standing.sentence)
            _print(engine, *answer, args)
    return 0


def shared_data(standing: Standing | None) -> dict[str, Any]:
    """Return what an answer as JSON says of the mirror that it is of."""
    return {"shared": standing.as_dict()} if standing is not None else {}


def _answer(engine: Engine, query: str, settings: Settings, args: argparse.Namespace) -> Answer:
    most = settings.whole("query.maxResults") if args.stdin else None
    if (answer := engine.backend.ask(query, most, source=args.source)) is not None:
        return answer
    if not args.stdin and not args.scope:
        engine.index.catch_up()
    trace, evidence = engine.search.ranked(query, settings, source=args.source)
    return trace, evidence, excerpts(trace, evidence, settings.whole("query.maxCharacters"))


def _of_line(own: Engine, text: str, args: argparse.Namespace) -> dict[str, Any]:
    """Return the answer to one line, a query or an object with `query`, `id` and `options`; `error` for none."""
    number: object = None
    try:
        try:
            item = json.loads(text) if text[0] in "{[" else {"query": text}
        except (ValueError, RecursionError) as error:
            if text[0] == "{":
                raise _unreadable(f"not valid JSON: {error}") from error
            item = {"query": text}
        if not isinstance(item, dict):
            raise _unreadable("it is a list")
        number, query, chosen = item.get("id"), item.get("query"), item.get("options") or {}
        if not isinstance(query, str) or not isinstance(chosen, dict):
            raise _unreadable("it has no query, or its options are no object")
        if unknown := [one_line(name, 40) for name in chosen if name not in _OPTIONS]:
            raise _unreadable(f"it has no option {unknown[0]!r}", f"An option is one of {', '.join(_OPTIONS)}.")
        budgets = {f"query.{name}": value for name, value in chosen.items() if value is not None}
        settings = own.plan.settings.update(budgets, "the question")
        engine, standing = own.of_scope(args.scope)
        answer = _answer(engine, query, settings, args)
        return {"id": number, **_data(engine, answer, args.explain), **shared_data(standing)}
    except MemoryTuiError as error:
        return {"id": number, "error": error.as_dict()}


def _unreadable(why: str, next_step: str = 'Write {"id": 1, "query": "..."}.') -> QueryError:
    return QueryError(f"The query cannot be read: {why}.", next_step)


def _data(engine: Engine, answer: Answer, explain: bool) -> dict[str, Any]:
    """Return an answer as data; of the built-in index with what it stands in for."""
    away = roots.lost(engine.index.root_watch.states())
    lost = [{"path": root.path, "state": root.state, "detail": root.detail} for root in away]
    if isinstance(answer, QmdAnswer):
        return {**qmd.qmd_answer(answer), "roots": lost}
    trace, _, passages = answer
    failed = engine.backend.fallback() if engine.backend.is_qmd else None
    data = {**trace_json.answer(trace, passages, explain=explain), "backend": "builtin"}
    data |= {"fallback": failed.as_dict()} if failed else {}
    missing = _missing(trace)
    data["stale"] = bool(missing) or any(root["state"] != "watcher stalled" for root in lost)
    data |= dict(zip(("warning", "action"), missing, strict=False))
    return data | {"roots": lost}


def _missing(trace: Trace) -> tuple[str, ...]:
    """Return which notes the answer lacks as they are on disk, and what to do; nothing where it lacks none."""
    return wording.notes_lacking(trace, "memory-tui get", by_itself=False) or () if trace.unsearchable else ()


def _print(
    engine: Engine, trace: Trace, evidence: Evidence, passages: Sequence[Excerpt], args: argparse.Namespace
) -> None:
    """Print an answer for a person, and on standard error what should be known of it."""
    if engine.backend.is_qmd and (failed := engine.backend.fallback()) is not None:
        say(failed.sentence)
    for remark in trace.notices:
        if args.explain or not remark.not_copied:
            tell(remark)
    if (level := trace.level) and trace.recalled and (args.explain or level.level != "found" or level.in_part):
        say(level.sentence)
    if missing := _missing(trace):
        say(" ".join(missing))
    # What is piped stays plain.
    styled = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if styled and trace.recalled and not args.explain and args.max_characters is None:
        columns, colour = shutil.get_terminal_size((100, 24)).columns, "NO_COLOR" not in os.environ
        for line in hit_text.hits(trace, evidence, passages, columns, colour=colour, full=args.full):
            sys.stdout.write(f"{line}\n")
    else:
        print_lines(_lines(trace, evidence, passages, explain=args.explain))


def _lines(trace: Trace, evidence: Evidence, passages: Sequence[Excerpt], *, explain: bool) -> Iterator[str]:
    """Yield one answer: what an agent reads of each hit, and whether that is shortened."""
    if explain and trace.level is not None and trace.recalled:
        yield f"level   {trace.level.level}: {trace.level.explanation}"
    for place, part in enumerate(passages):
        yield from [""] if place else []
        yield f"{part.hit.score:.3f} {one_line(hit_text.place_of(part))}"
        if explain:
            yield from hit_text.arithmetic(part.hit, trace, evidence, first=not place)
        yield from safe(part.text.strip("\r\n"), keep_newlines=True).split("\n")
    if trace.empty is not None:
        why, *steps = map(one_line, wording.empty(trace.empty, trace.profile))
        yield from (f"No matches. {why}", *steps)
    if explain:
        yield from _losers(trace)


def _losers(trace: Trace) -> Iterator[str]:
    """Yield how many candidates there were at each step, and the first of those that lost."""
    funnel = trace.funnel
    nearest = f"; nearest by {trace.nearest_by}" if trace.nearest_by else ""
    yield ""
    yield (
        f"{funnel.chunks} chunks > {funnel.vector_pool} by vector + {funnel.text_pool} by text = "
        f"{funnel.candidates} candidates > {funnel.over_gate} over {trace.floor:g} > {funnel.recalled} recalled   "
        f"(profile {trace.profile}, {trace.mode}{nearest})"
    )
    for loser in trace.lost[:_LOSERS]:
        yield f"  {loser.score:.3f} {one_line(loser.citation)}  {notices.short_reason(loser.verdict)}"
    if len(trace.lost) > _LOSERS:
        yield f"  and {len(trace.lost) - _LOSERS} more; --explain --json lists them all"


# --- get -----------------------------------------------------------------------------------------------------------


def get(args: argparse.Namespace) -> int:
    """Print a note, or some of its lines."""
    plan, standing, (path, first, last) = planned(args), None, roots.named_lines(args.path)
    start, lines = getattr(args, "from"), args.lines
    if first is not None and (last or first) < first:
        raise SettingError(f"Line {last} of {path} stands before line {first}.", f"Write {path}:{last}-{first}.")
    if first is not None and start == 1:
        start, lines = max(1, first), lines or (last or first) - first + 1
    if plan.backend == "builtin" and not workspace_of(path):
        note = notes.note_lines(roots.note(plan.roots, path), start, lines)
    else:
        # A file of QMD's, and a note of somebody else, is known to an engine alone.
        with opened(args, plan) as own:
            engine, standing = own.of_note(path)
            note = engine.notes.get(path, start, lines)
    if start > max(1, note.total_lines):
        holds = f"has {plural(note.total_lines, 'line')}" if note.total_lines else "is empty"
        next_step = f"Start with a line from 1 to {note.total_lines:,}." if note.total_lines else "Leave --from out."
        raise SettingError(f"{note.path} {holds}; there is no line {start:,}.", next_step)
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
