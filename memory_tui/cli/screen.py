"""The app in this terminal; a module of its own, because the first frame waits for what is imported here."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from memory_tui import plan
from memory_tui.cli.context import engine_options, workspace_named
from memory_tui.errors import SettingError, WorkspaceError
from memory_tui.plan import Options


def open_app(args: argparse.Namespace) -> int:
    """Open the app on a workspace."""
    workspace_named(args)
    return show_app(engine_options(args), args.query or "")


def show_app(chosen: Options, query: str, suggestions: Sequence[str] = (), *, leads: bool = False) -> int:
    """Show the app in this terminal. Raises what opening it raises."""
    # What is imported stays: looking meanwhile for what does not takes a tenth of the start.
    gc.disable()
    # Textual is heavy, and no other command needs it.
    from memory_tui.tui.run import is_served, run

    gc.freeze()
    gc.enable()
    # The screen is drawn on stderr.
    terminal = is_served() or (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty())
    if not terminal or (chosen.workspace and not Path(chosen.workspace).expanduser().is_dir()):
        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        plan.plan(chosen)
    if not terminal or os.environ.get("TERM") == "dumb":
        raise SettingError(
            "This terminal cannot show the app: TERM is dumb."
            if terminal
            else "The app needs a terminal, and this is not one.",
            "Use a command such as memory-tui search; memory-tui --help lists them.",
        )
    if not (chosen.workspace or chosen.agent or chosen.config or is_served()):
        try:
            plan.plan(chosen)
        except WorkspaceError:
            # None is meant by where the program runs: a person chooses, on a screen of its own.
            from memory_tui.engine import machine
            from memory_tui.tui.machine import choose_memory

            if (folder := choose_memory(machine.memories())) is None:
                raise
            chosen = replace(chosen, workspace=str(folder))
    code = run(chosen, query, suggestions, leads=leads)
    if not (code or leads):
        from memory_tui.engine import machine

        machine.remember(plan.choose(chosen).workspace)
    return code
