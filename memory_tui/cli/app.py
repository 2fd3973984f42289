"""The commands that open the app: on a workspace, or on a copy of the sample one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_tui.cli.common import Declare, Run, moment, options, spoken
from memory_tui.errors import MemoryTuiError, SettingError

if TYPE_CHECKING:
    from memory_tui.engine import Options


def add(command: Declare) -> None:
    """Declare the commands."""
    bare = command("open", "open the app; the default, so that `memory-tui PATH` opens a workspace")
    bare.add_argument("path", nargs="?", help="the workspace")
    sample = command("demo", "open the app on a copy of the sample workspace")
    for opens in (bare, sample):
        opens.add_argument("--query", metavar="TEXT", type=spoken, help="a question to start with")


def _open(given: argparse.Namespace) -> int:
    if hasattr(given, "path") and hasattr(given, "workspace"):
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    return _run(options(given), getattr(given, "query", ""))


def _demo(given: argparse.Namespace) -> int:
    import datetime as dt
    from dataclasses import replace

    from memory_tui import demo
    from memory_tui.core import atomic
    from memory_tui.demo import folders

    if hasattr(given, "workspace") or hasattr(given, "config"):
        raise SettingError("The demo has its own workspace and configuration.", "Leave --workspace and --config out.")
    now = moment(given)
    today = dt.datetime.fromtimestamp(now).date() if now is not None else dt.date.today()
    with folders.own() as folder:
        workspace, config = demo.materialize(folder / "workspace", today), folder / "config.json"
        atomic.create_file(config, b"{}\n")
        given_here = options(given)
        # Its folder is gone when it ends, so nobody would find the marks of it again.
        changes = (("recall.marks", "false"), *given_here.changes)
        chosen = replace(given_here, workspace=str(workspace), config=str(config), changes=changes)
        if chosen.index is None:
            chosen = replace(chosen, index=str(folder / "index.sqlite"))
        return _run(chosen, getattr(given, "query", ""), demo.SUGGESTED)


def _run(chosen: Options, query: str, suggestions: Sequence[str] = ()) -> int:
    from pathlib import Path

    from memory_tui import launch

    # The screen is drawn on stderr.
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    if not terminal or (chosen.workspace and not Path(chosen.workspace).expanduser().is_dir()):
        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        launch.plan(chosen)
    if not terminal:
        raise MemoryTuiError(
            "The app needs a terminal, and this is not one.",
            "Use a command such as memory-tui search; memory-tui --help lists them.",
        )
    if os.environ.get("TERM") == "dumb":
        raise MemoryTuiError(
            "This terminal cannot show the app: TERM is dumb.",
            "Use a command such as memory-tui search, or another terminal.",
        )
    from memory_tui.tui.app import run

    return run(chosen, query, suggestions)


RUN: dict[str, Run] = {"open": _open, "demo": _demo}
