"""`memory-tui serve`: the app in a browser, a process of the app for each tab."""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import socket
import sys
from importlib.util import find_spec

from memory_tui import plan
from memory_tui.cancel import exit_status, report_signal
from memory_tui.cli.commands import GLOBAL
from memory_tui.cli.context import options, workspace_named
from memory_tui.errors import MemoryTuiError, SettingError
from memory_tui.formatting import install_extra


def command_of(args: argparse.Namespace) -> list[str]:
    """Return the command line of the app in a tab: the options of `serve`, --read-only unless the page may write."""
    # Without -P, Python would take modules from the folder that memory-tui was started in.
    words = [sys.executable, "-P", "-m", "memory_tui", "open"]
    for (name, *_), _ in GLOBAL:
        setting = getattr(args, name.removeprefix("--").replace("-", "_"))
        if not setting or name in ("--json", "--read-only", "--workspace"):
            continue
        if setting is True:
            words.append(name)
        else:
            words += [f"{name}={each}" for each in (setting if isinstance(setting, list) else [setting])]
    if workspace := workspace_named(args):
        words.append(f"--workspace={workspace}")
    if args.query is not None:
        words.append(f"--query={args.query}")
    return words if _may_write(args) else [*words, "--read-only"]


def _may_write(args: argparse.Namespace) -> bool:
    return bool(args.allow_write) and not args.read_only


def _listening(port: int) -> socket.socket:
    """Return a socket at `port` of this machine alone, 0 for a free one. Raises SettingError."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise SettingError(f"Port {port} {why}.", "Give another one, or leave --port out for a free one.") from None


def serve(args: argparse.Namespace) -> int:
    """Serve the app until a signal comes."""
    if find_spec("textual_serve") is None:
        raise MemoryTuiError("The app in a browser needs the extra serve.", f"{install_extra('serve')}.")
    # What is wrong with workspace or configuration is said here, not in a page.
    plan.plan(options(args))
    from memory_tui.cli.serve_app import AppServer

    with _listening(args.port) as listening:
        server = AppServer(command_of(args), listening)
        # Who connects from now on waits until the server answers.
        _say(args, server.address)
        number = asyncio.run(server.until_stopped())
    report_signal(number)
    return exit_status(number)


def _say(args: argparse.Namespace, address: str) -> None:
    """Print where the app is."""
    writes = _may_write(args)
    allowed = "The page may change notes and settings" if writes else "Read-only; --allow-write lets the page write"
    if args.json:
        sys.stdout.write(json.dumps({"url": address, "readOnly": not writes}) + "\n")
    else:
        sys.stdout.write(f"{address}\n{allowed}. Only this machine reaches it. ctrl+c ends it.\n")
    sys.stdout.flush()
