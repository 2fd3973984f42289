"""The app in a browser: a process of the app for each tab, at an address that only this user knows.

The page's terminal is textual-serve's script. Its server is not used: it starts a shell, waits without end for a
process that hangs, takes a font from elsewhere, asks for no token. A tab speaks with its process as Textual's web
driver does: a letter (D for what a terminal would get, M for JSON about the tab), four bytes of length, the bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui import plan
from memory_tui.cli.common import Command, options, spoken
from memory_tui.cli.main import GLOBAL
from memory_tui.core import stop_signals
from memory_tui.core.errors import MemoryTuiError, SettingError
from memory_tui.core.formatting import install_extra
from memory_tui.core.sanitize import one_line

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HOST = "127.0.0.1"
PATIENCE = 2.0
"""Seconds in which the app of a closed tab ends by itself, before it is killed."""
READY = b"__GANGLION__\n"
"""What Textual's web driver writes before its first packet."""
MOST_TABS = 8
"""Each tab is a process with the index open."""
MOST_SIZE = 1_000
MOST_SAID = 64 << 10

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>memory-tui</title>
<link rel="stylesheet" href="static/css/xterm.css">
<script src="static/js/textual.js"></script>
<script nonce="{nonce}">
addEventListener("load", () => setTimeout(() => document.querySelector(".xterm-helper-textarea")?.focus()));
</script>
<style>
@font-face {{ font-family: "Roboto Mono"; src: url("static/fonts/RobotoMono-VariableFont_wght.ttf"); }}
@font-face {{ font-family: "Roboto Mono"; font-style: italic;
  src: url("static/fonts/RobotoMono-Italic-VariableFont_wght.ttf"); }}
body {{ margin: 0; background: #121212; overflow: hidden; }}
.textual-terminal {{ width: 100vw; height: 100vh; }}
.ended {{ display: none; position: fixed; inset: auto 0 0 0; padding: 8px; background: #fff; color: #000;
  font: 15px monospace; z-index: 10; }}
body.-closed .ended {{ display: block; }}
</style>
</head>
<body>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="15"></div>
<div class="ended" role="status">The app has ended. Reload this page to open it again.</div>
</body>
</html>
"""


class Tab:
    """The app of one tab of a browser, as a process: `command` is its command line."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, width: int, height: int) -> None:
        """Start the app for a terminal of that size."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
                "TEXTUAL_COLOR_SYSTEM": "truecolor",
                "TERM": "xterm-256color",
                "COLUMNS": str(width),
                "ROWS": str(height),
            },
            # A ctrl+c in the terminal of the server is the server's: it lets each app end in order.
            start_new_session=True,
        )

    async def show(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Hand to `send` what the app draws, until it ends; why it could not start, too."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said = asyncio.create_task(process.stderr.read())
        while (line := await process.stdout.readline()) not in (READY, b""):
            pass
        with suppress(asyncio.IncompleteReadError):
            while line:
                kind = await process.stdout.readexactly(1)
                data = await process.stdout.readexactly(int.from_bytes(await process.stdout.readexactly(4), "big"))
                if kind == b"D":
                    # The tab may be gone: what the app still draws is read all the same, so that it can end.
                    with suppress(ConnectionError):
                        await send(data)
        words = [one_line(row) for row in (await said)[-MOST_SAID:].decode("utf-8", "replace").splitlines()]
        for row in words:
            sys.stderr.write(f"{row}\n")
        if not line:
            with suppress(ConnectionError):
                await send("\r\n".join(words[-2:] or ["The app could not be started."]).encode())

    async def hear(self, message: str) -> None:
        """Pass on what the page sends: keys, its size, whether it has the focus. What makes no sense is dropped."""
        try:
            kind, *more = json.loads(message)
            if kind == "stdin":
                await self._send(b"D", str(more[0]).encode("utf-8", "replace"))
            elif kind == "resize":
                width, height = (_size(more[0][name], 1) for name in ("width", "height"))
                await self._tell({"type": "resize", "width": width, "height": height})
            elif kind in ("focus", "blur"):
                await self._tell({"type": kind})
        except (ValueError, TypeError, LookupError, RecursionError):
            return

    async def stop(self) -> None:
        """End the app; what was typed and not saved it keeps as a draft."""
        process = self._process
        if process is None:
            return
        await self._tell({"type": "quit"})
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE)
        # It leads a group: what it started goes with it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    async def _tell(self, about: dict[str, object]) -> None:
        await self._send(b"M", json.dumps(about).encode())

    async def _send(self, kind: bytes, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(kind + len(data).to_bytes(4, "big") + data)
            await self._process.stdin.drain()


class AppServer:
    """Serves the app of `command` at `port` of this machine, to those who know the token in the address."""

    def __init__(self, command: list[str], port: int) -> None:
        self._command = command
        self._hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
        self._token = secrets.token_urlsafe(24)
        self._open: set[web.WebSocketResponse] = set()
        self.address = f"http://{self._hosts[0]}/{self._token}/"

    def application(self) -> web.Application:
        """The web application."""
        from aiohttp import web

        logging.getLogger("aiohttp.server").addFilter(_is_ours)
        made = web.Application(middlewares=[self._gate()])
        made.router.add_get("/{token}/", self._page)
        made.router.add_get("/{token}/ws", self._tab)
        found = find_spec("textual_serve")
        assert found is not None
        assert found.origin is not None
        made.router.add_static(f"/{self._token}/static", Path(found.origin).with_name("static"))
        made.on_shutdown.append(self._close)
        return made

    def _gate(self) -> Middleware:
        from aiohttp import web

        @web.middleware
        async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
            """Answer only who knows the token, and only a page of this server: any other could have been lured here."""
            # Of no path at all, as in `OPTIONS *`, the token is empty.
            token, origin = request.path.partition("/")[2].partition("/")[0], request.headers.get("Origin")
            if request.host not in self._hosts or (origin is not None and origin != f"http://{request.host}"):
                raise web.HTTPForbidden(text="This server answers only to its own page.\n")
            if not secrets.compare_digest(token.encode(), self._token.encode()):
                raise web.HTTPForbidden(text="The address lacks the token that memory-tui serve printed.\n")
            return await handler(request)

        return gate

    async def _page(self, request: web.Request) -> web.Response:
        from aiohttp import web

        place, nonce = f"ws://{request.host}", secrets.token_urlsafe(12)
        rules = (
            f"default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
            f"font-src 'self'; img-src 'self' data:; connect-src {place}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return web.Response(
            text=PAGE.format(socket=f"{place}/{self._token}/ws", nonce=nonce),
            content_type="text/html",
            headers={
                "Content-Security-Policy": rules,
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            },
        )

    async def _tab(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import WSMsgType, web

        if "Origin" not in request.headers:
            raise web.HTTPForbidden(text="This server answers only to its own page.\n")
        opened = web.WebSocketResponse(heartbeat=15)
        await opened.prepare(request)
        if len(self._open) >= MOST_TABS:
            await opened.send_bytes(f"{MOST_TABS} tabs are open. Close one, then reload this page.".encode())
            await opened.close()
            return opened
        self._open.add(opened)
        tab = Tab(self._command)
        shown: asyncio.Task[None] | None = None
        try:
            await tab.start(_size(request.query.get("width"), 80), _size(request.query.get("height"), 24))
            shown = asyncio.create_task(tab.show(opened.send_bytes))
            shown.add_done_callback(lambda _: asyncio.ensure_future(opened.close()))
            async for message in opened:
                if message.type == WSMsgType.TEXT:
                    await tab.hear(message.data)
        finally:
            self._open.discard(opened)
            await asyncio.shield(tab.stop())
            if shown is not None:
                await shown
        return opened

    async def _close(self, _application: web.Application) -> None:
        for opened in tuple(self._open):
            await opened.close(message=b"memory-tui serve ends")


def _is_ours(record: logging.LogRecord) -> bool:
    """Return whether a record of aiohttp's log tells more than that a client sent what is no request."""
    from aiohttp.http_exceptions import HttpProcessingError

    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def _size(asked: object, usual: int) -> int:
    """A width or a height that the page said, within reason."""
    with suppress(ValueError, TypeError):
        return min(max(int(str(asked)), 1), MOST_SIZE)
    return usual


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
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise SettingError(f"Port {port} {why}.", "Give another one, or leave --port out for a free one.") from None
    return made


def _serve(given: argparse.Namespace) -> int:
    if any(find_spec(name) is None for name in ("aiohttp", "textual_serve")):
        raise MemoryTuiError(
            "The app in a browser needs the extra serve.",
            f"{install_extra('serve')}.",
        )
    if hasattr(given, "path") and hasattr(given, "workspace"):
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    # What is wrong with workspace or configuration is said here, not in a page.
    plan.plan(options(given))
    with _listening(getattr(given, "port", 0)) as listening:
        server = AppServer(command_of(given), listening.getsockname()[1])
        number = asyncio.run(_until_stopped(server, listening, partial(_say, given, server.address)))
    stop_signals.report(number)
    return stop_signals.exit_status(number)


def _say(given: argparse.Namespace, address: str) -> None:
    """Print where the app is, once it answers there."""
    writes = hasattr(given, "allow_write") and not hasattr(given, "read_only")
    if hasattr(given, "json"):
        sys.stdout.write(json.dumps({"url": address, "readOnly": not writes}) + "\n")
    else:
        allowed = "The page may change notes and settings" if writes else "Read-only; --allow-write lets the page write"
        sys.stdout.write(f"{address}\n{allowed}. Only this machine reaches it. ctrl+c ends it.\n")
    sys.stdout.flush()


async def _until_stopped(server: AppServer, listening: socket.socket, say: Callable[[], None]) -> int:
    """Serve until a signal comes; returns its number. No process is left."""
    from aiohttp import web

    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    numbers: list[int] = []

    def stop(number: int) -> None:
        numbers.append(number)
        stopped.set()

    for number in stop_signals.ENDING:
        loop.add_signal_handler(number, stop, number)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=2 * PATIENCE)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    say()
    await stopped.wait()
    await runner.cleanup()
    return numbers[0]


COMMANDS: dict[str, Command] = {"serve": Command(_serve, _declare)}
