"""Several apps and servers opened at once where there is no index: one makes it, and all show what there is."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp import Wire, end_all
from tests.support.waiting import LONG

NOTES = 24
HELD = """
import os, sys, time
sys.path.insert(0, os.getcwd())
from memory_tui.index import sync_run as run, index_write as writes
run.BATCH, real, calls = 4, writes.replace_files, []
def replace_files(store, *arguments):
    calls.append(1)
    while len(calls) == 5 and not store.path.with_name("go").exists():
        time.sleep(0.02)
    return real(store, *arguments)
writes.replace_files = replace_files
"""
"""Whoever indexes stops half-way until there is a file `go` beside the index."""
APP = (
    HELD
    + """
import asyncio, json
from tests.support.tui import make_app, text_of
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp

options = Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted")
app = MemoryApp(lambda listener: Engine.open(options, listener), name="notes", query="gardens")

def seen():
    facts = app.facts
    trace = next((view.trace for view in app.views if hasattr(view, "trace")), None)
    return {
        "header": text_of(app).split("\\n")[0].strip(),
        "chunks": facts and facts.status.chunks,
        "pending": facts and len(facts.status.freshness.pending),
        "keeper": facts and facts.keeper,
        "asked": trace and trace.funnel.chunks,
        "recalled": trace and len(trace.recalled),
    }

async def main():
    async with app.run_test(size=(160, 24)):
        last = None
        while True:
            now = seen()
            if now != last:
                print(json.dumps(now), flush=True)
                last = now
            await asyncio.sleep(0.1)

asyncio.run(main())
"""
)
SERVER = [sys.executable, "-c", f"{HELD}\nfrom memory_tui.cli.main import main\nsys.exit(main(sys.argv[1:]))"]


class App:
    """An app in a process of its own, without a terminal, and the last that it showed."""

    def __init__(self, workspace: Path, index: Path) -> None:
        self.now: dict[str, Any] = {}
        self.at = 0.0
        self.process = subprocess.Popen(
            [sys.executable, "-c", APP, str(workspace), str(index)], stdout=subprocess.PIPE, text=True
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.now, self.at = json.loads(line), time.time()

    @property
    def right(self) -> bool:
        now = self.now
        return (
            bool(now)
            and (now["chunks"], now["pending"], now["asked"]) == (NOTES, 0, NOTES)
            and now["recalled"] > 0
            and now["header"].startswith("HYBRID")
            and f"{NOTES} chunks in {NOTES} files" in now["header"]
        )

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join(LONG)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    for number in range(NOTES):
        (folder / "memory" / f"{number}.md").write_text(f"note {number} about gardens and coffee number{number}\n")
    return folder


@pytest.fixture
def opened(workspace: Path, tmp_path: Path) -> Iterator[Callable[[], App]]:
    apps: list[App] = []

    def one() -> App:
        apps.append(App(workspace, tmp_path / "i" / "index.sqlite"))
        return apps[-1]

    yield one
    for app in apps:
        app.end()
    end_all()


def until(fact: Callable[[], object], what: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not fact():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


def first_answer(workspace: Path, index: Path, found: list[dict[str, Any]]) -> threading.Thread:
    """Ask a server as soon as it was started; its answer goes to `found`."""

    def ask() -> None:
        wire = Wire(
            ["mcp", "--workspace", str(workspace), "--index", str(index), "--provider", "scripted"], command=SERVER
        )
        wire.greet()
        found.append(wire.search(1, "gardens")["result"]["structuredContent"])

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("count", "servers", "killed"),
    [
        pytest.param(3, 1, True, id="three-killed"),
        pytest.param(5, 2, False, id="five", marks=pytest.mark.soak),
        pytest.param(5, 2, True, id="five-killed", marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(300)
def test_all_show_what_one_of_them_indexed(
    workspace: Path, tmp_path: Path, opened: Callable[[], App], count: int, servers: int, killed: bool
) -> None:
    index = tmp_path / "i" / "index.sqlite"
    keepers = index.with_name(f"{index.name}.keeper")
    answers: list[dict[str, Any]] = []
    apps = [opened() for _ in range(count)]
    until(lambda: keepers.exists() and keepers.read_text().strip(), lambda: "nobody keeps the index")
    keeper = next(app for app in apps if app.process.pid == json.loads(keepers.read_text())["pid"])
    threads = [first_answer(workspace, index, answers) for _ in range(servers)]
    readers = [app for app in apps if app is not keeper]
    # Half-way: something is indexed, not all of it, and everybody shows that.
    until(lambda: all(0 < (app.now.get("asked") or 0) < NOTES for app in readers), lambda: [app.now for app in apps])
    if killed:
        keeper.process.kill()
        apps.remove(keeper)
    index.with_name("go").touch()
    until(lambda: all(app.right for app in apps), lambda: [app.now for app in apps])
    spread = [app.at for app in apps]
    print(f"from the first app that was right to the last: {max(spread) - min(spread):.2f} s")
    for thread in threads:
        thread.join(LONG)
    assert len(answers) == servers
    for answer in answers:
        assert answer["results"], answer
        assert "empty" not in answer
