"""Commands that ask: index, status, search, get, config."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Command, opened, options, planned, positive, query_of, spoken, waiting
from memory_tui.core.cancel import Stopped
from memory_tui.core.errors import QueryError, SettingError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.index.sync import SyncReport
    from memory_tui.plan import Plan
    from memory_tui.render.as_text import StdinQuery
    from memory_tui.workspace.notes import NoteLines


def _declare_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="read every file again")
    parser.add_argument("--dry-run", action="store_true", help="show what would be sent where, and send nothing")
    parser.add_argument("--yes", action="store_true", help="approve that the provider gets the notes of this workspace")
    parser.add_argument(
        "--approve-extension",
        action="store_true",
        help="approve that the build of sqlite-vec is run which the configuration names, and say which that is",
    )
    parser.add_argument("--accept-shrink", action="store_true", help="forget notes that vanished at once")
    _declare_verbose(parser)


def _declare_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="name each file as it is indexed, on standard error")


def _declare_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--deep", action="store_true", help="also embed one text with the provider")
    parser.add_argument("--sync", action="store_true", help="index what changed first; implies --deep")
    _declare_verbose(parser)


def _declare_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", type=spoken, help="the query")
    parser.add_argument(
        "--stdin", action="store_true", help='one query, or {"id","query","options"}, a line; one JSON answer a line'
    )
    parser.add_argument("-n", "--max-results", type=positive, metavar="N", help="how many hits")
    parser.add_argument(
        "--max-characters",
        type=positive,
        metavar="N",
        help="print passages around what matched, of so many characters in all, as agents get them",
    )
    parser.add_argument("--min-score", metavar="F", help="what a hit has to score")
    parser.add_argument("--source", choices=["memory", "sessions"], help="only hits of this source")
    parser.add_argument("--full", action="store_true", help="on a terminal: the whole text of each hit")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show how each hit got its score, and why the others were dropped; with --json, add the whole trace",
    )


def _declare_get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path")
    parser.add_argument("--from", dest="start", type=positive, metavar="N", help="first line")
    parser.add_argument("--lines", type=positive, metavar="N", help="how many lines")


def _declare_why_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path")


def _declare_compare_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("db", nargs="?", metavar="DB", help="its database (default: that of OpenClaw's agent)")


def _index(given: argparse.Namespace) -> int:
    from memory_tui.cli import provider
    from memory_tui.render import as_text

    with opened(given) as engine:
        engine.plan.require_enabled()
        if hasattr(given, "dry_run"):
            return provider.dry_run(engine, as_json=hasattr(given, "json"))
        if hasattr(given, "approve_extension"):
            library, named_by = engine.indexer.opener.approve_extension("index --approve-extension")
            as_text.approved_extension(library, named_by)
        if (approved := provider.approve_for_index(engine, given)) is not None:
            as_text.approval(engine.providers.may_get(approved.provider, approved.host), as_json=hasattr(given, "json"))
        outcome = _synced(engine, accepts=hasattr(given, "accept_shrink"), force=hasattr(given, "force"))
        as_text.sync(engine, outcome, as_json=hasattr(given, "json"))
        return 1 if outcome.error or outcome.failed else 0


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
    from memory_tui.render import as_text, status_text

    with opened(given) as engine:
        first = hasattr(given, "sync")
        outcome = _synced(engine, accepts=False, force=False) if first else None
        now = engine.status(deep=first or hasattr(given, "deep"))
        status_text.status(now, as_json=hasattr(given, "json"))
        if outcome and outcome.error:
            as_text.problem(outcome.error)
    return 1 if outcome and (outcome.error or outcome.failed) else 0


def _search(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    plan = planned(given)
    plan.require_enabled()
    if hasattr(given, "stdin"):
        with opened(given, plan) as engine:
            engine.indexer.catch_up()
            for question in _questions(sys.stdin):
                source, characters = getattr(given, "source", ""), getattr(given, "max_characters", 0)
                as_text.answer_stdin_query(engine, question, source, characters, explain=hasattr(given, "explain"))
        return 0
    query = query_of(given)
    if query is None:
        raise QueryError("There is no query.", 'For instance: memory-tui search "router vlan".')
    asked = as_text.SearchCommand(
        query,
        getattr(given, "source", ""),
        as_json=hasattr(given, "json"),
        explain=hasattr(given, "explain"),
        characters=getattr(given, "max_characters", 0),
        full=hasattr(given, "full"),
        terminal=as_text.terminal_here(),
    )
    with opened(given, plan) as engine:
        if (found := engine.backend.ask(query, source=asked.source)) is not None:
            as_text.of_qmd(found, as_json=asked.as_json, explain=asked.explain)
            return 0
        engine.indexer.catch_up()
        trace, evidence = engine.queries.ranked(query, plan.settings, source=asked.source)
        as_text.write(as_text.searched(engine, asked, trace, evidence))
    return 0


def _questions(lines: Iterator[str] | Sequence[str]) -> Iterator[StdinQuery]:
    """Each line as a question: a JSON object with `query`, or what is asked."""
    import json

    from memory_tui.render.as_text import StdinQuery

    for text in lines:
        text = text.rstrip("\r\n")
        if not text.lstrip().startswith("{"):
            if text.strip():
                yield StdinQuery(None, text)
            continue
        try:
            item = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield StdinQuery(None, "", problem=f"not valid JSON: {error}")
            continue
        query, asked = item.get("query"), item.get("options") or {}
        problem = (
            "it has no query"
            if not isinstance(query, str)
            else ("" if isinstance(asked, dict) else "its options are not an object")
        )
        yield StdinQuery(item.get("id"), query if isinstance(query, str) else "", {} if problem else asked, problem)


def _get(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    plan, start = planned(given), getattr(given, "start", 1)
    note = _lines_of(given, plan, start)
    if start > max(1, note.total_lines):
        from memory_tui.core.formatting import plural

        if not note.total_lines:
            raise SettingError(f"{note.path} is empty; there is no line {start:,}.", "Leave --from out.")
        raise SettingError(
            f"{note.path} has {plural(note.total_lines, 'line')}; there is no line {start:,}.",
            f"Start with a line from 1 to {note.total_lines:,}.",
        )
    as_text.print_note(note, as_json=hasattr(given, "json"))
    return 0


def _lines_of(given: argparse.Namespace, plan: Plan, start: int) -> NoteLines:
    """The lines that are asked for; a file of QMD's is found by an engine, a note without one."""
    from memory_tui.workspace import notes, roots

    lines = getattr(given, "lines", None)
    if plan.backend == "builtin":
        return notes.note_lines(roots.note(plan.roots, given.path), start, lines)
    with opened(given, plan) as engine:
        return engine.notes.get(given.path, start, lines)


def _config(given: argparse.Namespace) -> int:
    from memory_tui import plan as plans
    from memory_tui.render import host_text

    host_text.config(plans.choose(options(given)).summary(), as_json=hasattr(given, "json"))
    return 0


def _why_file(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    with opened(given) as engine:
        verdict = engine.notes.why_file(given.path)
    as_text.print_verdict(verdict, as_json=hasattr(given, "json"))
    return 2 if verdict.rule == "missing" else 0


def _compare_index(given: argparse.Namespace) -> int:

    from memory_tui import plan as plans
    from memory_tui.openclaw import compare
    from memory_tui.render import host_text

    plan = plans.plan(options(given))
    path = Path(given.db).expanduser() if hasattr(given, "db") else None
    with waiting("Reading OpenClaw's index"):
        outcome = compare.compare_configured(plan.config, plan.settings, plan.roots, path)
    host_text.comparison(outcome, as_json=hasattr(given, "json"))
    return {"ok": 0, "missing": 2}.get(outcome.state, 1)


def _declare_inject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("message", type=spoken, help="a message to the agent")


def _inject(given: argparse.Namespace) -> int:
    from msgspec import to_builtins

    from memory_tui.engine.openclaw_answer import injected
    from memory_tui.render import as_text, host_text

    with opened(given) as engine:
        if engine.plan.settings.on("sync.onSearch"):
            engine.indexer.catch_up()
        found = injected(engine, given.message)
    if hasattr(given, "json"):
        as_text.print_json([to_builtins(one) for one in found])
    else:
        as_text.print_lines(host_text.injected(found))
    return 0


COMMANDS: dict[str, Command] = {
    "index": Command(_index, _declare_index),
    "status": Command(_status, _declare_status),
    "search": Command(_search, _declare_search),
    "get": Command(_get, _declare_get),
    "config": Command(_config),
    "why-file": Command(_why_file, _declare_why_file),
    "inject": Command(_inject, _declare_inject),
    "compare-index": Command(_compare_index, _declare_compare_index),
}
