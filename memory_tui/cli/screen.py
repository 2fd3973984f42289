"""The app in this terminal; a module of its own, because the first frame waits for what is imported here."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui.errors import SettingError, WorkspaceError

if TYPE_CHECKING:
    from memory_tui.plan import Options


def open_app(args: argparse.Namespace) -> int:
    """Open the app on a workspace."""

    def options() -> Options:
        # The thread that opens the engine imports this, when the first frame is there.
        from memory_tui.cli.context import engine_options

        return engine_options(args)

    return show_app(options, args.path or args.workspace or "", args.query or "")


def show_app(
    options: Callable[[], Options], folder: str, query: str, suggestions: Sequence[str] = (), *, leads: bool = False
) -> int:
    """Show the app in this terminal, on `folder` where that is not empty. Raises what opening it raises."""
    # Textual is heavy, and no other command needs it.
    from memory_tui.tui.run import is_served, run

    # The screen is drawn on stderr.
    terminal = is_served() or (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty())
    dumb, chosen = os.environ.get("TERM") == "dumb", None
    if not terminal or not (folder and Path(folder).expanduser().is_dir()):
        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        chosen = _with_workspace(options(), asks=terminal and not dumb and not is_served())
    if not terminal or dumb:
        raise SettingError(
            "This terminal cannot show the app: TERM is dumb."
            if terminal
            else "The app needs a terminal, and this is not one.",
            "Use a command such as memory-tui search; memory-tui --help lists them.",
        )
    return run(lambda: chosen or options(), query, suggestions, leads=leads)


def _with_workspace(chosen: Options, *, asks: bool) -> Options:
    """Return `chosen` where its workspace is there; a person who named none chooses one, if it `asks`.

    Raises WorkspaceError.
    """
    from memory_tui import plan

    try:
        plan.plan(chosen)
    except WorkspaceError:
        if not asks or chosen.workspace or chosen.agent or chosen.config:
            raise
        from memory_tui.tui.machine import choose_memory

        if (folder := choose_memory()) is None:
            raise
        return replace(chosen, workspace=str(folder))
    return chosen
