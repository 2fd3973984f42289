"""The commands of every day: index, status, search, get, config, why-file, compare-index."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memory_tui.cli import provider
from memory_tui.cli.common import Declare, Run, opened, options, positive, spoken
from memory_tui.errors import QueryError, SettingError
from memory_tui.stop_signals import Stopped

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.index.sync import SyncReport
    from memory_tui.report import Question


def add(command: Declare) -> None:
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
    from memory_tui import report

    with opened(given) as engine:
        engine.plan.require_enabled()
        if hasattr(given, "dry_run"):
            return provider.dry_run(engine, as_json=hasattr(given, "json"))
        if hasattr(given, "yes"):
            report.agreed(engine.embedding.agree(how="index --yes", sync=False), as_json=hasattr(given, "json"))
        outcome = _synced(engine, accepts=hasattr(given, "accept_shrink"), force=hasattr(given, "force"))
        report.sync(engine, outcome, as_json=hasattr(given, "json"))
        return 1 if outcome.error else 0


def _synced(engine: Engine, *, accepts: bool, force: bool) -> SyncReport:
    """Bring the index up to date; whoever stops it is told what becomes of the work."""
    try:
        outcome = engine.accept_shrink() if accepts else engine.sync(force=force, reason="cli")
        return engine.sync(force=True, reason="cli") if accepts and force else outcome
    except Stopped as stopped:
        stopped.more = "What is indexed so far stays; memory-tui index goes on from there."
        raise


def _status(given: argparse.Namespace) -> int:
    from memory_tui import report

    with opened(given) as engine:
        report.status(engine.status(deep=hasattr(given, "deep")), as_json=hasattr(given, "json"))
    return 0


def _search(given: argparse.Namespace) -> int:
    from memory_tui import report

    as_json, source = hasattr(given, "json"), getattr(given, "source", "")
    with opened(given) as engine:
        engine.plan.require_enabled()
        if hasattr(given, "stdin"):
            engine.catch_up()
            for question in _questions(sys.stdin):
                report.line(engine, question, source, explain=hasattr(given, "explain"))
            return 0
        if not hasattr(given, "query"):
            raise QueryError("What is the question?", 'For instance: memory-tui search "router vlan".')
        engine.catch_up()
        report.search(engine, given.query, source, as_json=as_json, explain=hasattr(given, "explain"))
    return 0


def _questions(lines: Iterator[str] | Sequence[str]) -> Iterator[Question]:
    """Each line as a question: a JSON object with `query`, or what is asked."""
    import json

    from memory_tui.report import Question

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
    from memory_tui import report

    start = getattr(given, "start", 1)
    with opened(given) as engine:
        note = engine.get(given.path, start, getattr(given, "lines", None))
    if start > max(1, note.total_lines):
        from memory_tui.explain.wording import plural

        raise SettingError(
            f"{note.path} has {plural(note.total_lines, 'line')}; there is no line {start:,}.",
            f"Start with a line from 1 to {max(1, note.total_lines):,}.",
        )
    report.note(note, as_json=hasattr(given, "json"))
    return 0


def _config(given: argparse.Namespace) -> int:
    from memory_tui import launch, report

    report.config(launch.choose(options(given)).survey(), as_json=hasattr(given, "json"))
    return 0


def _why_file(given: argparse.Namespace) -> int:
    from memory_tui import report

    with opened(given) as engine:
        report.path(engine.why_file(given.path), as_json=hasattr(given, "json"))
    return 0


def _compare_index(given: argparse.Namespace) -> int:
    from pathlib import Path

    from memory_tui import launch, report
    from memory_tui.index import compare

    plan = launch.plan(options(given))
    path = Path(given.db).expanduser() if hasattr(given, "db") else None
    outcome = compare.compare_configured(plan.config, plan.settings, plan.roots, path)
    report.comparison(outcome, as_json=hasattr(given, "json"))
    return {"ok": 0, "missing": 2}.get(outcome.state, 1)


RUN: dict[str, Run] = {
    "index": _index,
    "status": _status,
    "search": _search,
    "get": _get,
    "config": _config,
    "why-file": _why_file,
    "compare-index": _compare_index,
}
