"""Commands that serve agents. They start the MCP server and list what agents recalled."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING

from memory_tui.cli.common import Command, options, passed_on, positive
from memory_tui.core.errors import MemoryTuiError, QueryError, SettingError
from memory_tui.workspace.roots import named_lines

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Choices
    from memory_tui.recalls.recall_log import Log, RecallEntry
    from memory_tui.recalls.rerun import Rerun


def _declare_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--citations",
        choices=["auto", "on", "off"],
        help="whether hits name their source (default: memory.citations; auto: in direct chats)",
    )
    parser.add_argument("--session-key", metavar="KEY", help="the session that auto goes by, like agent:main:main")
    parser.add_argument(
        "--max-chars",
        type=positive,
        metavar="N",
        help="most characters of snippets in one answer (default: recall.maxInjectedChars)",
    )
    parser.add_argument(
        "--log-recalls",
        action="store_true",
        help="write down what agents ask and get, on this machine only (or recall.log=true)",
    )
    parser.add_argument(
        "--allow-write",
        action="store_true",
        help="let the agent store and forget long-term memories, where plugins.slots.memory or --memories names them",
    )
    parser.add_argument("--no-prompts", action="store_true", help="offer no prompts (some hosts make tools of them)")
    parser.add_argument("--no-resources", action="store_true", help="offer no resources (the same)")
    parser.add_argument(
        "--print-config",
        nargs="?",
        const="claude-code",
        metavar="CLIENT",
        help="print the entry for claude-code, codex or openclaw, and serve nothing",
    )


def _declare_recall_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="one recall, by the start of its id, or last")
    parser.add_argument("--why", metavar="PATH[:LINE]", help="why that recall did, or did not, find this note")
    parser.add_argument("-n", "--newest", type=positive, metavar="N", help="how many are listed (default: 20)")
    parser.add_argument(
        "--clear", action="store_true", help="delete the log of this workspace, and the marks of your own recalls"
    )


# --- the server ----------------------------------------------------------------------------------------------------


def _mcp(given: argparse.Namespace) -> int:
    if hasattr(given, "print_config"):
        return _print_config(given)
    if sys.stdin.isatty():
        sys.stderr.write(
            "memory-tui: an agent starts this and speaks MCP to it; --print-config prints the entry for "
            "yours. Ctrl+C ends it.\n"
        )
    from memory_tui.mcp.host import ServedMemory, ServerOptions
    from memory_tui.mcp.server import serve

    def open_memory() -> Engine:
        from memory_tui.engine.engine import Engine

        return Engine.open(options(given))

    serve(
        ServedMemory(
            open_memory,
            ServerOptions(
                citations=getattr(given, "citations", None),
                session_key=getattr(given, "session_key", ""),
                max_injected_chars=getattr(given, "max_chars", None),
                log=True if hasattr(given, "log_recalls") else None,
                prompts=not hasattr(given, "no_prompts"),
                resources=not hasattr(given, "no_resources"),
                entries=(chosen := _chosen(given)) is not None and chosen.recalls_entries,
                allow_write=hasattr(given, "allow_write"),
                disabled=chosen.config.disabled if chosen is not None else "",
            ),
        )
    )
    return 0


def _chosen(given: argparse.Namespace) -> Choices | None:
    """What is decided before the memory is opened; None where something is wrong, which the first question tells."""
    from memory_tui import plan

    try:
        return plan.choose(options(given))
    except MemoryTuiError:
        return None


def _print_config(given: argparse.Namespace) -> int:
    from memory_tui.hosts import connection
    from memory_tui.render import as_text

    if given.print_config not in connection.CLIENTS:
        raise SettingError(
            f"There is no entry for {given.print_config!r}.", f"Choose one of {', '.join(connection.CLIENTS)}."
        )
    as_text.print_lines(connection.entry(given.print_config, passed_on(given)).split("\n"))
    return 0


# --- the log -------------------------------------------------------------------------------------------------------


def _recall_log(given: argparse.Namespace) -> int:
    from memory_tui import plan
    from memory_tui.explain.trace_json import plain
    from memory_tui.recalls import recall_log, recalled_lines
    from memory_tui.render import as_text

    workspace = plan.choose(options(given)).workspace
    place = recall_log.recall_log_path(workspace)
    if hasattr(given, "clear"):
        had_marks, had_log = recalled_lines.clear(workspace)
        marks = ["The marks of your own recalls are deleted."] if had_marks else []
        as_text.print_lines([*marks, "The recall log is deleted." if had_log else "There is no recall log."])
        return 0
    log = recall_log.read(place)
    if hasattr(given, "id"):
        return _one(given, _found(log, given.id))
    if hasattr(given, "why"):
        raise QueryError("Which recall is meant?", "Name it: memory-tui recall-log last --why PATH.")
    newest = log.entries[-getattr(given, "newest", 20) :]
    if hasattr(given, "json"):
        told = [{**plain(entry), "reply": entry.reply or None} for entry in newest]
        counts = {"total": len(log.entries), "unread": log.unread, "replies": log.replies}
        as_text.print_json({"path": str(place), "recalls": told, **counts})
    else:
        as_text.print_lines(recalled_lines.listing(newest, log, place))
    return 0


def _found(log: Log, name: str) -> RecallEntry:
    from memory_tui.recalls.recall_log import LOG_RECALLS

    entry = log.find(name)
    if entry is None and not log.entries:
        raise QueryError("No recall is logged.", LOG_RECALLS)
    if entry is None:
        raise QueryError(f"No recall in the log has an id like {name!r}.", "Run memory-tui recall-log to list them.")
    return entry


def _one(given: argparse.Namespace, entry: RecallEntry) -> int:
    """One recall: what it got, what it would get now, and why a note is, or is not, in it."""
    from memory_tui.recalls import recalled_lines, rerun
    from memory_tui.render import as_text

    if entry.asked == "memories":
        raise QueryError(
            f"{entry.id} asked the long-term memories, not the notes.", "memory-tui ltm search asks again."
        )
    if not entry.asked:
        raise QueryError(f"{entry.id} read {entry.query}; it asked nothing.", "Name a recall that is a search.")
    from memory_tui.engine.engine import Engine

    with Engine.open(options(given)) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        found = rerun.replay(entry, engine.plan.settings, engine.queries.gather)
        if hasattr(given, "why"):
            return _why(given, engine, found)
        if hasattr(given, "json"):
            as_text.print_json(recalled_lines.record(found))
        else:
            as_text.print_lines(recalled_lines.replayed(found))
    return 0


def _why(given: argparse.Namespace, engine: Engine, found: Rerun) -> int:
    from memory_tui.explain import trace_json
    from memory_tui.explain.rephrase import remedies
    from memory_tui.recalls import recalled_lines, rerun
    from memory_tui.render import as_text

    path, line, _ = named_lines(given.why)
    ranked = engine.queries.why(found.evidence, path, line, found.settings)
    answer = rerun.as_delivered(found, ranked)
    delivered = rerun.delivered_line(found.entry, answer.place.path, line)
    said: tuple[rerun.RecallClaim, ...] = (delivered, found.remade)
    asked_qmd = found.entry.backend == "qmd"
    of_qmd = engine.backend.why(found.entry.query, answer.place.path, line or 0) if asked_qmd else ""
    ask = functools.partial(engine.queries.gather, now=rerun.clock_of(found.entry))
    # What went out from behind the limit needs no remedy.
    is_lost = not answer.recalled or ranked.recalled
    changes, questions = (
        remedies(answer, found.settings, engine.plan.with_profile, ask, None) if is_lost else (None, None)
    )
    if hasattr(given, "json"):
        log = {
            "delivered": delivered.place,
            "rebuilt": isinstance(found.remade, rerun.Rebuilt),
            "impossible": recalled_lines.obstacle(found.remade) or None,
            "claims": [{**trace_json.tagged(one), "sentence": recalled_lines.claim(one)} for one in said],
        }
        qmd = {"qmd": of_qmd} if of_qmd else {}
        as_text.print_json({**trace_json.why(answer, changes, questions), "log": log, **qmd})
    else:
        theirs = [f"QMD, asked again now: {of_qmd}"] if of_qmd else []
        as_text.print_lines([*map(recalled_lines.claim, said), *theirs, *as_text.answer(answer, changes, questions)])
    return 0


COMMANDS: dict[str, Command] = {
    "mcp": Command(_mcp, _declare_mcp),
    "recall-log": Command(_recall_log, _declare_recall_log),
}
