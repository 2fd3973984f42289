"""The command `mcp`: the server for an agent, or its entry in the configuration of any MCP client.

An agent waits for its start: the memory is opened by the server, behind its first answer.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from memory_tui import plan
from memory_tui.cli.context import engine_options, passed_on
from memory_tui.cli.output import print_json, say
from memory_tui.config import load as configuration
from memory_tui.errors import MemoryTuiError
from memory_tui.hosts import registry
from memory_tui.mcp.server import ServedMemory, ServerOptions, serve

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


def mcp(args: argparse.Namespace) -> int:
    """Serve until standard input ends, or print the entry of a client."""
    if args.print_config:
        program, *words = registry.command()
        entry = {"type": "stdio", "command": program, "args": [*words, "mcp", *passed_on(args)]}
        print_json({"mcpServers": {registry.SERVER: entry}})
        return 0
    if sys.stdin.isatty():
        say("an agent starts this and speaks MCP to it; memory-tui connect writes its entry. Ctrl+C ends it.")
    try:
        choices = plan.choose(engine_options(args))
    except MemoryTuiError:
        # What is wrong, the answer to the first question tells.
        choices = None
    server = ServerOptions(
        citations=args.citations,
        session_key=args.session_key,
        max_injected_chars=args.max_chars,
        log=args.log_recalls or None,
        entries=choices is not None and choices.recalls_entries,
        allow_write=args.allow_write and not args.read_only,
        disabled=choices.config.disabled if choices is not None else "",
        shared=choices is not None and bool(configuration.own(choices.config).value("shared.url")),
    )

    def engine() -> Engine:
        # Imported while the server already answers.
        from memory_tui.engine.engine import Engine

        return Engine.open(engine_options(args))

    serve(ServedMemory(engine, server))
    return 0
