"""The event loop behind calls: whoever waits is let go, and what comes too late disturbs nobody."""

from __future__ import annotations

import asyncio
import threading

import pytest

from memory_tui.core.errors import Cancelled
from memory_tui.providers import http_client as module
from memory_tui.providers.http_client import Background
from tests.support.waiting import LONG


def test_a_look_up_that_ends_after_its_caller_was_let_go_ends_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    began, goes_on, ended = threading.Event(), threading.Event(), []
    looking: list[threading.Thread] = []
    crashed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", crashed.append)

    def lookup() -> str:
        looking.append(threading.current_thread())
        began.set()
        goes_on.wait(LONG)
        return "127.0.0.1"

    async def ask() -> str:
        return await asyncio.get_running_loop().run_in_executor(None, lookup)

    def call() -> None:
        try:
            background.run(ask)
        except Cancelled:
            ended.append("cancelled")

    background = Background()
    caller = threading.Thread(target=call)
    caller.start()
    assert began.wait(LONG)
    background.close()
    caller.join(LONG)
    assert ended == ["cancelled"]
    goes_on.set()
    looking[0].join(LONG)
    assert crashed == []


def test_nobody_looks_up_for_a_caller_who_was_let_go_before(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[threading.Thread] = []
    asked: list[str] = []

    def begin(thread: threading.Thread) -> None:
        begun.append(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    future = module._Daemons().submit(asked.append, "a name")
    future.cancel()
    [thread] = begun
    thread.run()
    assert asked == []
