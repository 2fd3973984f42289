"""A headless browser: the machine's Chromium, or Debian's, installed once where that is allowed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

import aiohttp
import pytest

from tests.support.waiting import LONG

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
_PACKAGE = "chromium-headless-shell"
_INSTALL_SECONDS = 300

_FIND_TERMINAL = """Object.defineProperty(Object.prototype, "fitAddon", {configurable: true, set(value) {
    window.page = this; Object.defineProperty(this, "fitAddon", {value, writable: true}); }});"""
"""The page's script keeps its terminal to itself: the object that gets a `fitAddon` is the one that has it."""
_READ = """(() => { const seen = window.page?.terminal.buffer.active; if (!seen) return "";
    return [...Array(seen.length).keys()].map(row => seen.getLine(row).translateToString(true)).join("\\n"); })()"""


def chromium() -> str:
    """A Chromium of this machine. Skips the test, with the reason, without one."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine; python -m tests.support.real_programs installs Debian's for root")
    return found


def installed() -> str:
    """A Chromium: of this machine, or Debian's package where apt-get may install it. Skips, with the reason, else."""
    if any(map(shutil.which, PROGRAMS)):
        return chromium()
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        pytest.skip("no Chromium, and it cannot be installed: no apt-get, or not root")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", _PACKAGE]):
        try:
            done = subprocess.run(
                ["apt-get", "-q", *words],
                env=env,
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"apt-get {words[0]} takes more than {_INSTALL_SECONDS} s")
        if done.returncode:
            pytest.skip(f"apt-get {words[0]} failed: {done.stderr.strip()[-200:]}")
    return chromium()


class Browser:
    """The browser as a process of its own, with all it starts; `address` is where it is driven."""

    def __init__(self, folder: Path) -> None:
        words = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += ["--remote-debugging-port=0", "--window-size=1000,600", f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        port = folder / "DevToolsActivePort"
        deadline = time.monotonic() + LONG
        # The port in the first line, a path in the second.
        while len(found := port.read_text().splitlines() if port.is_file() else []) < 2:
            assert time.monotonic() < deadline, "the browser does not listen"
            time.sleep(0.02)
        self.address = f"http://127.0.0.1:{found[0]}"

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(LONG)


class Page:
    """A tab, driven by the protocol of the browser's own tools."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **parameters: object) -> dict[str, object]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = json.loads((await self._socket.receive(LONG)).data)
            if answer.get("id") == self._number:
                found: dict[str, object] = answer["result"]
                return found

    async def screen(self) -> str:
        """The text of the page's terminal."""
        found = await self.call("Runtime.evaluate", expression=_READ, returnByValue=True)
        value = found["result"]
        assert isinstance(value, dict)
        return str(value.get("value", ""))

    async def until(self, pattern: str) -> str:
        """The text of the terminal once `pattern` is in it."""
        deadline = time.monotonic() + LONG
        while not re.search(pattern, shown := await self.screen()):
            assert time.monotonic() < deadline, f"{pattern} is not in:\n{shown}"
            await asyncio.sleep(0.05)
        return shown

    async def type(self, text: str) -> None:
        for letter in text:
            await self.call("Input.insertText", text=letter)

    async def escape(self) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key="Escape", code="Escape", windowsVirtualKeyCode=27)


@asynccontextmanager
async def page(browser: Browser, address: str) -> AsyncIterator[Page]:
    """The tab of `browser`, on its way to `address`."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{browser.address}/json") as answer:
            place = (await answer.json())[0]["webSocketDebuggerUrl"]
        async with session.ws_connect(place, max_msg_size=0) as socket:
            shown = Page(socket)
            await shown.call("Page.enable")
            await shown.call("Page.addScriptToEvaluateOnNewDocument", source=_FIND_TERMINAL)
            await shown.call("Page.navigate", url=address)
            yield shown
