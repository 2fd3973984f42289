"""`memory-tui serve`: the app in a browser, a process of the app for each tab.

The server is textual-serve's, for one user: it answers at an address with a token, and ends with its tabs. Its own page
takes a font from elsewhere; ours, beside this module, loads nothing but what the server has.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from memory_tui import plan
from memory_tui.cancel import ENDING_SIGNALS, exit_status, report_signal
from memory_tui.cli.commands import GLOBAL
from memory_tui.cli.context import engine_options, workspace_named
from memory_tui.cli.output import dumps
from memory_tui.errors import SettingError

PATIENCE = 2.0
"""Seconds in which the app of a closed tab ends by itself, before it is killed."""
MOST_TABS = 8
"""Each tab is a process with the index open."""


def serve(args: argparse.Namespace) -> int:
    """Serve the app until a signal comes."""
    # What is wrong with workspace or configuration is said here, not in a page.
    plan.plan(engine_options(args))
    writes = bool(args.allow_write) and not args.read_only
    with listening(args.port) as opened:
        server = AppServer(command_of(args), opened)
        # Who connects from now on waits until the server answers.
        allowed = "The page may change notes and settings" if writes else "Read-only; --allow-write lets the page write"
        words = f"{server.address}\n{allowed}. Only this machine reaches it. ctrl+c ends it."
        data = dumps({"url": server.address, "readOnly": not writes})
        sys.stdout.write(f"{data if args.json else words}\n")
        sys.stdout.flush()
        number = asyncio.run(server.until_stopped())
    report_signal(number)
    return exit_status(number)


def command_of(args: argparse.Namespace) -> list[str]:
    """Return the command line of the app in a tab: the options of `serve`, --read-only unless the page may write."""
    # Without -P, Python would take modules from the folder that memory-tui was started in.
    words = [sys.executable, "-P", "-m", "memory_tui", "open"]
    for (name, *_), _ in GLOBAL:
        setting = getattr(args, name.removeprefix("--").replace("-", "_"))
        if setting is True and name not in ("--json", "--read-only"):
            words.append(name)
        elif setting and setting is not True and name != "--workspace":
            words += [f"{name}={each}" for each in (setting if isinstance(setting, list) else [setting])]
    if workspace := workspace_named(args):
        words.append(f"--workspace={workspace}")
    if args.query is not None:
        words.append(f"--query={args.query}")
    return words if args.allow_write and not args.read_only else [*words, "--read-only"]


def listening(port: int) -> socket.socket:
    """Return a socket at `port` of this machine alone, 0 for a free one. Raises SettingError."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is in use" if in_use else f"cannot be used: {error}"
        raise SettingError(f"Port {port} {why}.", "Give another one, or leave --port out for a free one.") from None


class Tab(AppService):
    """The app of one tab: the tab closes with it, and it ends with the tab."""

    async def run(self) -> None:
        """Show the app until it ends."""
        await super().run()
        await self.remote_close()

    async def stop(self) -> None:
        """End the app, which keeps as a draft what was typed and not saved; one that hangs is killed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(super().stop(), PATIENCE)
        if self._process is not None and self._process.returncode is None:
            # Its own `kill` reaps it, which asyncio then misses.
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            await self._process.wait()


class AppServer(Server):
    """Serves the app of `command` at the socket `opened`, to those who know the token in the address."""

    def __init__(self, command: list[str], opened: socket.socket) -> None:
        host, port = opened.getsockname()
        # The shell that textual-serve starts becomes the app, with a terminal that is never "dumb".
        words = f"exec env TERM=xterm-256color {shlex.join(command)}"
        super().__init__(words, host, port, "memory-tui", templates_path=Path(__file__).with_name("page"))
        self._listening = opened
        self._root = f"/{secrets.token_urlsafe(24)}/"
        self._open: set[web.WebSocketResponse] = set()
        self.address = f"{self.public_url}{self._root}"
        self._headers = {
            # The one script in the page is named by its checksum.
            "Content-Security-Policy": (
                "default-src 'none'; script-src 'self' 'sha256-B9JutF1VJCIeE2HIZUvNFUgjB98hySGrSoAg8iyoAHA='; "
                f"connect-src ws://{host}:{port}; style-src 'self' 'unsafe-inline'; font-src 'self'; "
                "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }

    async def _make_app(self) -> web.Application:
        outer = web.Application(middlewares=[self._gate])
        outer.add_subapp(self._root, await super()._make_app())
        return outer

    @web.middleware
    async def _gate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer only who knows the token, and only a page of this server: any other could have been lured here."""
        socket_asked = request.path == f"{self._root}ws"
        origins = {self.public_url} if socket_asked else {self.public_url, None}
        if request.host != self.public_url.partition("//")[2] or request.headers.get("Origin") not in origins:
            raise web.HTTPForbidden(text="This server answers only to its own page.\n")
        # Of no path at all, as in `OPTIONS *`, the token is empty.
        if not secrets.compare_digest(request.path[: len(self._root)].encode(), self._root.encode()):
            raise web.HTTPForbidden(text="The address lacks the token that memory-tui serve printed.\n")
        if len(self._open) >= MOST_TABS and (socket_asked or request.path == self._root):
            raise web.HTTPServiceUnavailable(text=f"{MOST_TABS} tabs are open. Close one, then reload this page.\n")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(self._headers)
        return answer

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run the app for the page that asks, until either of them ends."""
        opened = web.WebSocketResponse(heartbeat=15)

        async def close() -> None:
            await opened.close()

        self._open.add(opened)
        tab = Tab(
            self.command,
            write_bytes=opened.send_bytes,
            write_str=opened.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        try:
            await opened.prepare(request)
            await tab.start(to_int(request.query.get("width", ""), 80), to_int(request.query.get("height", ""), 24))
            await self._process_messages(opened, tab)
        finally:
            self._open.discard(opened)
            await asyncio.shield(tab.stop())
        return opened

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: `serve` has told the address."""

    async def until_stopped(self) -> int:
        """Serve until a signal comes; returns its number. No process is left."""
        loop = asyncio.get_running_loop()
        stopped: asyncio.Queue[int] = asyncio.Queue()
        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, stopped.put_nowait, number)
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=2 * PATIENCE)
        await runner.setup()
        await web.SockSite(runner, self._listening).start()
        try:
            return await stopped.get()
        finally:
            for opened in tuple(self._open):
                await opened.close(message=b"memory-tui serve ends")
            await runner.cleanup()
