"""What agents asked, what they got, and what they would get now: recall-log."""

from __future__ import annotations

import argparse

from memory_tui import plan
from memory_tui.cli.context import options
from memory_tui.cli.output import print_lines, show
from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError
from memory_tui.explain import trace_json
from memory_tui.explain.counterfactuals import remedies
from memory_tui.recalls import recall_log, recalled_lines, rerun
from memory_tui.recalls.recall_log import Log, RecallEntry
from memory_tui.recalls.rerun import Rerun
from memory_tui.render import why_text
from memory_tui.workspace.roots import named_lines


def recalls(args: argparse.Namespace) -> int:
    """List what agents asked, or tell of one recall, or delete the log."""
    workspace = plan.choose(options(args)).workspace
    place = recall_log.recall_log_path(workspace)
    if args.clear:
        had_marks, had_log = recalled_lines.clear(workspace)
        marks = ["The marks of your own recalls are deleted."] if had_marks else []
        print_lines([*marks, "The recall log is deleted." if had_log else "There is no recall log."])
        return 0
    log = recall_log.read(place)
    if args.id is not None:
        return _recall(args, _entry(log, args.id))
    if args.why is not None:
        raise QueryError("Which recall is meant?", "Name it: memory-tui recall-log last --why PATH.")
    newest = log.entries[-args.newest :]
    data = {
        "path": str(place),
        "recalls": [{**trace_json.plain(entry), "reply": entry.reply or None} for entry in newest],
        "total": len(log.entries),
        "unread": log.unread,
        "replies": log.replies,
    }
    return show(args, data, rerun.listing(newest, log, place))


def _entry(log: Log, name: str) -> RecallEntry:
    entry = log.find(name)
    if entry is None and not log.entries:
        raise QueryError("No recall is logged.", recall_log.LOG_RECALLS)
    if entry is None:
        raise QueryError(f"No recall in the log has an id like {name!r}.", "Run memory-tui recall-log to list them.")
    return entry


def _recall(args: argparse.Namespace, entry: RecallEntry) -> int:
    """Tell of one recall what it got, what it would get now, and why a note is, or is not, in it."""
    if entry.subject == "memories":
        raise QueryError(
            f"{entry.id} asked the long-term memories, not the notes.", "memory-tui ltm search asks again."
        )
    if not entry.subject:
        raise QueryError(f"{entry.id} read {entry.query}; it asked nothing.", "Name a recall that is a search.")
    with Engine.open(options(args)) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        again = rerun.replay(entry, engine.plan.settings, engine.search.gather)
        if args.why is not None:
            return _why(args, engine, again)
        return show(args, lambda: rerun.record(again), rerun.replayed(again))


def _why(args: argparse.Namespace, engine: Engine, again: Rerun) -> int:
    path, line, _ = named_lines(args.why)
    answer = engine.search.why(again.evidence, path, line, again.settings)
    place = rerun.delivered_place(again.entry, answer.place.path, line)
    of_qmd = ""
    if again.entry.backend == "qmd":
        of_qmd = engine.backend.why(again.entry.query, answer.place.path, line or 0)
    changes, questions = None, None
    if not answer.recalled:
        changes, questions = remedies(answer, again.settings, engine.plan.with_profile, engine.search.gather, None)
    data = {
        **trace_json.why(answer, changes, questions),
        "log": {"delivered": place, "since": list(again.since)},
        **({"qmd": of_qmd} if of_qmd else {}),
    }
    lines = [rerun.delivered(place), *([f"Since then: {'; '.join(again.since)}."] if again.since else [])]
    lines += [f"QMD, asked again now: {of_qmd}"] if of_qmd else []
    return show(args, data, [*lines, *why_text.answer(answer, changes, questions)])
