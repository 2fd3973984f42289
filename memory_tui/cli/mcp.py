"""The command `mcp`: the server for an agent, or its entry in a host's configuration.

An agent waits for its start: the memory is opened by the server, behind its first answer.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from memory_tui import plan
from memory_tui.cli.context import options, passed_on
from memory_tui.cli.output import print_lines
from memory_tui.errors import MemoryTuiError, SettingError
from memory_tui.hosts import connection
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.mcp.server import serve
from memory_tui.plan import Plan

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


def mcp(args: argparse.Namespace) -> int:
    """Serve until standard input ends, or print the entry of a client."""
    if args.print_config is not None:
        if args.print_config not in connection.CLIENTS:
            raise SettingError(
                f"There is no entry for {args.print_config!r}.", f"Choose one of {', '.join(connection.CLIENTS)}."
            )
        print_lines(connection.entry(args.print_config, passed_on(args)).split("\n"))
        return 0
    if sys.stdin.isatty():
        sys.stderr.write(
            "memory-tui: an agent starts this and speaks MCP to it; --print-config prints the entry for "
            "yours. Ctrl+C ends it.\n"
        )
    choices = _choices(args)
    serve(
        ServedMemory(
            lambda: _engine(args),
            ServerOptions(
                citations=args.citations,
                session_key=args.session_key,
                max_injected_chars=args.max_chars,
                log=args.log_recalls or None,
                prompts=not args.no_prompts,
                resources=not args.no_resources,
                entries=choices is not None and choices.recalls_entries,
                allow_write=args.allow_write,
                disabled=choices.config.disabled if choices is not None else "",
            ),
        )
    )
    return 0


def _engine(args: argparse.Namespace) -> Engine:
    # Imported while the server already answers.
    from memory_tui.engine.engine import Engine

    return Engine.open(options(args))


def _choices(args: argparse.Namespace) -> Plan | None:
    """Return what is decided before the memory is opened; None where it is wrong, which the first question tells."""
    try:
        return plan.choose(options(args))
    except MemoryTuiError:
        return None
