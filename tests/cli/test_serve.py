"""The app in a browser: who may see it, what a tab is, that the app answers and no process is left."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import wraps
from pathlib import Path

import aiohttp
import pytest

from memory_tui.cli import main, serve
from memory_tui.cli.serve import AppServer
from tests.support.tui import sample
from tests.support.waiting import LONG

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the app in a browser needs POSIX signals")
ECHO = """
import os, sys
os.write(1, b"__GANGLION__\\n")
def say(data): os.write(1, b"D" + len(data).to_bytes(4, "big") + data)
say(str(os.getpid()).encode() + b" " + os.environ["COLUMNS"].encode() + b"x" + os.environ["ROWS"].encode())
while head := sys.stdin.buffer.read(5):
    data = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    if b"quit" in data and "deaf" not in sys.argv:
        break
    say(data)
while "deaf" in sys.argv:
    import time; time.sleep(60)
"""
"""Speaks as Textual's web driver does, and says what it hears."""


def in_loop(test):
    @wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


@asynccontextmanager
async def served(*words):
    with serve.listening(0) as listening:
        server = AppServer([sys.executable, "-c", *(words or (ECHO,))], listening)
        running = asyncio.create_task(server.until_stopped())
        async with aiohttp.ClientSession() as session:
            yield server, session
        running.cancel()
        await asyncio.wait([running])


async def said(socket):
    data = (await socket.receive(LONG)).data
    assert isinstance(data, bytes)
    return data


async def gone(process):
    async with asyncio.timeout(LONG):
        with suppress(ProcessLookupError):
            while True:
                os.kill(process, 0)
                await asyncio.sleep(0.01)


REFUSED: list[tuple[str, dict[str, str]]] = [
    ("/", {}),
    ("/ws", {}),
    ("/wrong/", {}),
    ("/wrong/ws", {"Origin": "{here}", "Upgrade": "websocket", "Connection": "Upgrade"}),
    ("/wrong/static/js/textual.js", {}),
    ("{token}/", {"Host": "rebound.example:{port}"}),
    ("{token}/", {"Host": "127.0.0.1:1"}),
    ("{token}/", {"Origin": "http://rebound.example"}),
    ("{token}/ws", {"Origin": "http://rebound.example:{port}"}),
    ("{token}/ws", {"Origin": "null"}),
    ("{token}/ws", {}),
]


@in_loop
async def test_without_the_token_or_from_elsewhere_nothing_is_served():
    async with served() as (server, session):
        here, _, token = server.address.rstrip("/").rpartition("/")
        port = here.rpartition(":")[2]
        for path, headers in REFUSED:
            fitted = {name: value.format(here=here, port=port) for name, value in headers.items()}
            async with session.get(here + path.format(token=f"/{token}"), headers=fitted) as answer:
                assert answer.status == 403, (path, headers)
                assert token not in await answer.text()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(f"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"403"
        writer.close()


@in_loop
async def test_the_page_holds_no_word_of_the_environment_and_takes_nothing_from_elsewhere(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    async with served() as (server, session):
        async with session.get(server.address) as answer:
            text = await answer.text()
        assert f"{server.address.replace('http', 'ws')}ws" in text
        assert "secret" not in text
        assert "://" not in text.replace(f"{server.address.replace('http', 'ws')}ws", "")
        assert "content=\"default-src 'none'; connect-src ws:" in text
        for file in ("js/textual.js", "css/xterm.css", "fonts/RobotoMono-VariableFont_wght.ttf"):
            async with session.get(f"{server.address}static/{file}") as answer:
                assert answer.status == 200


@in_loop
async def test_a_tab_is_a_process_that_ends_with_it():
    async with served() as (server, session):
        origin = server.address.rpartition("/")[0].rpartition("/")[0]
        place = f"{server.address}ws?width=100&height=40"
        async with session.ws_connect(place, origin=origin) as tab, session.ws_connect(place, origin=origin) as other:
            process, size = (await said(tab)).split()
            second = int((await said(other)).split()[0])
            assert size == b"100x40"
            await tab.send_str('["stdin", "ä"]')
            assert await said(tab) == "ä".encode()
            await tab.send_str('["resize", {"width": 70, "height": 20}]')
            assert json.loads(await said(tab)) == {"type": "resize", "width": 70, "height": 20}
            await tab.close()
            await gone(int(process))
            await other.send_str('["stdin", "here"]')
            assert await said(other) == b"here"
    await gone(second)


@in_loop
async def test_a_tab_whose_app_hangs_is_killed(monkeypatch):
    monkeypatch.setattr(serve, "PATIENCE", 0.1)
    async with served(ECHO, "deaf") as (server, session):
        origin = server.address.rpartition("/")[0].rpartition("/")[0]
        async with session.ws_connect(f"{server.address}ws", origin=origin) as tab:
            process = int((await said(tab)).split()[0])
    await gone(process)


def test_the_app_in_a_tab_gets_what_serve_was_given_and_writes_only_if_allowed(tmp_path):
    def shown(*words):
        return main.parse(serve.command_of(main.parse(["serve", str(tmp_path), *words]))[4:])

    args = shown("--query", "-x y", "--port", "8000", "--profile", "openclaw-2026.3", "--set", "mmr=on", "--extra=a")
    assert (args.command, args.workspace, args.query, args.read_only) == ("open", str(tmp_path), "-x y", True)
    assert args.extra == [str(Path.cwd() / "a")]
    assert args.set == ["mmr=on"]
    assert not shown("--allow-write").read_only
    assert shown("--allow-write", "--read-only").read_only


def test_a_port_that_is_taken_is_an_error_with_a_next_step(tmp_path, printed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = printed("serve", str(tmp_path), "--port", port, code=2)
    assert (f"Port {port} cannot be used" in told, "Address already in use" in told) == (True, True)
    printed("serve", "--port", "0", code=2)


def test_without_the_extra_serve_says_how_to_get_it(monkeypatch, printed):
    monkeypatch.delitem(sys.modules, "memory_tui.cli.serve")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert "uv tool install '.[serve]'" in printed("serve", code=1)


@in_loop
async def test_the_app_in_a_tab_answers_and_ends_with_the_server(tmp_path):
    sample(tmp_path / "notes")
    words = ["serve", "notes", "--json", "--provider", "none", "--index", str(tmp_path / "index")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    server = subprocess.Popen([sys.executable, "-m", "memory_tui", *words], cwd=tmp_path, **pipes)
    try:
        address, screen = json.loads(server.stdout.readline())["url"], b""
        place, origin = f"{address}ws?width=100&height=40", address.rpartition("/")[0].rpartition("/")[0]
        async with aiohttp.ClientSession() as session, session.ws_connect(place, origin=origin) as tab:
            for shown, keys in ((b"up to date", "/omada vlan"), (b"Your agent gets 6", "j")):
                async with asyncio.timeout(LONG):
                    while shown not in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", screen):
                        screen += await said(tab)
                await tab.send_str(json.dumps(["stdin", keys]))
            assert b"read-only" in screen
            server.send_signal(signal.SIGINT)
            _, told = await asyncio.to_thread(server.communicate, timeout=LONG)
    finally:
        server.kill()
    assert (server.returncode, told) == (130, "memory-tui: stopped by ctrl+c.\n")
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running
