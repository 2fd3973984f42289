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
from memory_tui.cli.common import Command, options, spoken
from memory_tui.cli.main import GLOBAL
from memory_tui.core.cancel import exit_status, report_signal
from memory_tui.core.errors import MemoryTuiError, SettingError
from memory_tui.core.formatting import install_extra


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", help="the workspace")
    parser.add_argument("--query", metavar="TEXT", type=spoken, help="a query to start with")
    parser.add_argument("--port", metavar="N", type=_port, help="port on this machine (default: a free one)")
    parser.add_argument("--allow-write", action="store_true", help="let the page change notes and settings, too")


def command_of(given: argparse.Namespace) -> list[str]:
    """The command line of the app in a tab: the options of `serve`, and --read-only unless the page may write."""
    # Without -P, Python would take modules from the folder that memory-tui was started in.
    words = [sys.executable, "-P", "-m", "memory_tui", "open"]
    for (name, *_), keywords in GLOBAL:
        value = getattr(given, name.removeprefix("--").replace("-", "_"), None)
        if value is None or name in ("--json", "--read-only"):
            continue
        values = value if isinstance(value, list) else [value]
        words += [name] if "action" in keywords and value is True else [f"{name}={one}" for one in values]
    if hasattr(given, "path"):
        words.append(f"--workspace={given.path}")
    if hasattr(given, "query"):
        words.append(f"--query={given.query}")
    return words if hasattr(given, "allow_write") and not hasattr(given, "read_only") else [*words, "--read-only"]


def _listening(port: int) -> socket.socket:
    """A socket at `port` of this machine alone, 0 for a free one. Raises SettingError."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise SettingError(f"Port {port} {why}.", "Give another one, or leave --port out for a free one.") from None


def _serve(given: argparse.Namespace) -> int:
    if find_spec("textual_serve") is None:
        raise MemoryTuiError("The app in a browser needs the extra serve.", f"{install_extra('serve')}.")
    if hasattr(given, "path") and hasattr(given, "workspace"):
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    # What is wrong with workspace or configuration is said here, not in a page.
    plan.plan(options(given))
    from memory_tui.cli.serve_app import AppServer

    with _listening(getattr(given, "port", 0)) as listening:
        server = AppServer(command_of(given), listening)
        # Who connects from now on waits until the server answers.
        _say(given, server.address)
        number = asyncio.run(server.until_stopped())
    report_signal(number)
    return exit_status(number)


def _say(given: argparse.Namespace, address: str) -> None:
    """Print where the app is."""
    writes = hasattr(given, "allow_write") and not hasattr(given, "read_only")
    if hasattr(given, "json"):
        sys.stdout.write(json.dumps({"url": address, "readOnly": not writes}) + "\n")
    else:
        allowed = "The page may change notes and settings" if writes else "Read-only; --allow-write lets the page write"
        sys.stdout.write(f"{address}\n{allowed}. Only this machine reaches it. ctrl+c ends it.\n")
    sys.stdout.flush()


COMMANDS: dict[str, Command] = {"serve": Command(_serve, _declare)}
