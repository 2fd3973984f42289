"""`memory-tui serve`: the app in a browser, a process of the app for each tab.

The server is textual-serve's, for one user: it answers at an address with a token, and ends with its tabs. Its own page
takes a font from elsewhere; ours, beside this module, loads nothing but what the server has.
"""

from __future__ import annotations

import argparse
import asyncio
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
from textual_serve.server import Server

from memory_tui import plan
from memory_tui.cancel import ENDING_SIGNALS, exit_status, report_signal
from memory_tui.cli.context import engine_options, passed_on
from memory_tui.cli.output import dumps
from memory_tui.errors import SettingError

PATIENCE = 2.0
"""Seconds in which the app of a closed tab ends by itself, before it is killed."""


def serve(args: argparse.Namespace) -> int:
    """Serve the app until a signal comes."""
    # What is wrong with workspace or configuration is said here, not in a page.
    plan.plan(engine_options(args))
    with listening(args.port) as opened:
        server = AppServer(command_of(args), opened)
        # Who connects from now on waits until the server answers.
        allowed = "Read-only; --allow-write lets the page write" if args.read_only else "The page may change notes"
        words = f"{server.address}\n{allowed}. Only this machine reaches it. ctrl+c ends it."
        data = dumps({"url": server.address, "readOnly": args.read_only})
        sys.stdout.write(f"{data if args.json else words}\n")
        sys.stdout.flush()
        number = asyncio.run(server.until_stopped())
    report_signal(number)
    return exit_status(number)


def command_of(args: argparse.Namespace) -> list[str]:
    """Return the command line of the app in a tab: the options of `serve`, read-only unless the page may write."""
    # `passed_on` reads both: the app in the tab knows --read-only, and no --allow-write.
    args.read_only, args.allow_write = args.read_only or not args.allow_write, False
    # Without -P, Python would take modules from the folder that memory-tui was started in.
    words = [sys.executable, "-P", "-m", "memory_tui", "open", *passed_on(args)]
    return [*words, f"--query={args.query}"] if args.query is not None else words


def listening(port: int) -> socket.socket:
    """Return a socket at `port` of this machine alone, 0 for a free one. Raises SettingError."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise SettingError(f"Port {port} cannot be used: {error}.", "Leave --port out for a free one.") from None


class AppServer(Server):
    """Serves the app of `command` at the socket `opened`, to those who know the token in the address."""

    def __init__(self, command: list[str], opened: socket.socket) -> None:
        host, port = opened.getsockname()
        # The shell that textual-serve starts becomes the app, with a terminal that is never "dumb".
        words = f"exec env TERM=xterm-256color {shlex.join(command)}"
        super().__init__(words, host, port, "memory-tui", templates_path=Path(__file__).with_name("page"))
        self._listening, self._root = opened, f"/{secrets.token_urlsafe(24)}/"
        self.address = f"{self.public_url}{self._root}"
        self._tabs: set[web.WebSocketResponse] = set()

    async def _make_app(self) -> web.Application:
        """Put the app of textual-serve below the secret path, behind `_gate`."""
        outer = web.Application(middlewares=[self._gate])
        outer.add_subapp(self._root, await super()._make_app())
        return outer

    @web.middleware
    async def _gate(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer only who knows the token, and only a page of this server: any other could have been lured here."""
        # A page opens the socket by script, which always says its origin; a person who follows a link says none.
        origins = {self.public_url} if request.path == f"{self._root}ws" else {self.public_url, None}
        if request.host != self.public_url.partition("//")[2] or request.headers.get("Origin") not in origins:
            raise web.HTTPForbidden(text="This server answers only to its own page.\n")
        # Of no path at all, as in `OPTIONS *`, the token is empty.
        if not secrets.compare_digest(request.path[: len(self._root)].encode(), self._root.encode()):
            raise web.HTTPForbidden(text="The address lacks the token that memory-tui serve printed.\n")
        return await handler(request)

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        """Run the app until it or its tab ends. It keeps as a draft what was not saved; one that hangs is killed."""
        app, process = app_service._task, app_service._process
        assert app is not None and process is not None  # noqa: PT018
        self._tabs.add(websocket)
        messages = asyncio.create_task(super()._process_messages(websocket, app_service))
        try:
            await asyncio.wait({app, messages}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            messages.cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(app_service.stop(), PATIENCE)
            if process.returncode is None:
                # Its own `kill` reaps it, which asyncio then misses.
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                await process.wait()
            self._tabs.discard(websocket)
            await websocket.close()

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: `serve` has told the address."""

    async def until_stopped(self) -> int:
        """Serve until a signal comes; returns its number. No process is left."""
        stopped: asyncio.Queue[int] = asyncio.Queue()
        for number in ENDING_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stopped.put_nowait, number)
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=2 * PATIENCE)
        await runner.setup()
        await web.SockSite(runner, self._listening).start()
        try:
            return await stopped.get()
        finally:
            for tab in tuple(self._tabs):
                await tab.close()
            await runner.cleanup()
