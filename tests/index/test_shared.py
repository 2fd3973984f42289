"""Several apps and servers opened at once where there is no index: one makes it, and all show what there is."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp import Wire, end_all
from tests.support.waiting import LONG

NOTES = 24
LAST = f"number{NOTES - 1}"
START = 4 * LONG
"""Seconds. Seven processes load Python, numpy and Textual at once on two cores: nothing is promised of that."""
PROMISED = 3.0
"""Seconds from the keeper's end of indexing until a process shows all of it."""
HELD = """
import os, sys, time
sys.path.insert(0, os.getcwd())
from pathlib import Path
from memory_tui.index import sync, index_write as writes
sync.BATCH, real, calls, real_sync = 4, writes.replace_files, [], sync.sync
def replace_files(store, *arguments):
    calls.append(1)
    while len(calls) == 5 and not store.path.with_name("go").exists():
        time.sleep(0.02)
    return real(store, *arguments)
def synced(run):
    report, store = real_sync(run), run.store
    if report.indexed and not report.cancelled:
        end = store.path.with_name("writing")
        end.write_text(f"{os.getpid()} {time.time()}")
        end.replace(store.path.with_name("done"))
    return report
writes.replace_files, sync.sync = replace_files, synced
"""
"""Whoever indexes stops half-way until there is a file `go` beside the index, and writes when it ended to `done`."""
APP = (
    HELD
    + """
import asyncio, json
from tests.index.test_shared import starved
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
                print(json.dumps(now | {"at": time.time(), "starved": starved(os.getpid())}), flush=True)
                last = now
            await asyncio.sleep(0.1)

asyncio.run(main())
"""
)
SERVER = [sys.executable, "-c", f"{HELD}\nfrom memory_tui.cli.main import main\nsys.exit(main(sys.argv[1:]))"]


def starved(pid: int) -> dict[str, float]:
    """Seconds that each thread of process `pid` was ready to run and had no core, as the scheduler counts them.

    Empty where the kernel does not tell: then nothing is forgiven.
    """
    waits = {}
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            waits[path.parent.name] = int(path.read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            # The thread has just ended, or the kernel was built without the figure.
            continue
    return waits


@dataclass(frozen=True)
class Delay:
    """How long after the keeper's end a process showed everything, and how much of that it waited for a core.

    The promise is about what the program does, so the wait for a core is taken off: the other processes of this test,
    and of the machine, take cores too. It is the scheduler's own count for the busiest thread, not an estimate by load,
    and never more than what passed; on an idle machine it is next to nothing.
    """

    who: str
    seconds: float
    starved: float

    @property
    def own(self) -> float:
        return self.seconds - min(self.starved, self.seconds)

    def __str__(self) -> str:
        return f"{self.who}: {self.seconds:.2f} s, {self.starved:.2f} s of them without a core"

    @classmethod
    def of(cls, who: str, seconds: float, before: dict[str, float], after: dict[str, float]) -> Delay:
        # A thread that was not seen before may be an old one that the listing left out: nothing is forgiven for it.
        waits = [wait - before[thread] for thread, wait in after.items() if thread in before]
        return cls(who, seconds, max(waits, default=0.0))


class App:
    """An app in a process of its own, without a terminal, and the last that it showed."""

    def __init__(self, workspace: Path, index: Path) -> None:
        self.now: dict[str, Any] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", APP, str(workspace), str(index)], stdout=subprocess.PIPE, text=True
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.now = json.loads(line)

    @property
    def right(self) -> bool:
        now = self.now
        return (
            bool(now)
            and (now["chunks"], now["pending"], now["asked"]) == (NOTES, 0, NOTES)
            and now["recalled"] > 0
            and "HYBRID" in now["header"]
            and f" {NOTES} chunks" in now["header"]
        )

    @property
    def half(self) -> bool:
        """Whether it shows an index of a part of the notes, header and answer alike."""
        return 0 < (self.now.get("asked") or 0) < NOTES and 0 < (self.now.get("chunks") or 0) < NOTES

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join(LONG)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Server:
    """An MCP server that is asked over and over, by a thread of its own, for what the last note holds."""

    def __init__(self, workspace: Path, index: Path) -> None:
        self.answers: list[tuple[float, dict[str, Any], dict[str, float]]] = []
        """When each answer came (epoch seconds), the answer, and how long the server had waited for a core."""
        self._ended = threading.Event()
        arguments = ["mcp", "--workspace", str(workspace), "--index", str(index), "--provider", "scripted"]
        self.wire = Wire(arguments, command=SERVER)
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self.wire.greet()
            while not self._ended.wait(0.1):
                answer = self.wire.search(len(self.answers) + 1, LAST)["result"]["structuredContent"]
                self.answers.append((time.time(), answer, starved(self.wire.process.pid)))
        except (ValueError, OSError):
            # It was killed because the test is over, or it died: then it is asked for its answers in vain.
            return

    def right_at(self, end: float) -> tuple[float, dict[str, Any], dict[str, float]] | None:
        """The first answer after `end` from which on every answer holds the last note, and nothing waits."""
        later = [one for one in self.answers if one[0] >= end]
        wrong = [number for number, (_, answer, _) in enumerate(later) if not complete(answer)]
        first = wrong[-1] + 1 if wrong else 0
        return later[first] if first < len(later) else None

    def end(self) -> None:
        self._ended.set()
        self._thread.join(LONG)


def complete(answer: dict[str, Any]) -> bool:
    """Whether an answer holds the note that is indexed last, and says of none that it is missing."""
    found = [hit for hit in answer.get("results", []) if LAST in hit["snippet"]]
    return bool(found) and "empty" not in answer and not answer.get("stale") and not answer.get("partial")


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


def until(fact: Callable[[], object], what: Callable[[], object], seconds: float = LONG) -> None:
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("count", "servers", "killed"),
    [
        pytest.param(3, 1, True, id="three-killed"),
        pytest.param(5, 2, False, id="five", marks=pytest.mark.soak),
        pytest.param(5, 2, True, id="five-killed", marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(900)
def test_all_show_what_one_of_them_indexed(
    workspace: Path, tmp_path: Path, opened: Callable[[], App], count: int, servers: int, killed: bool
) -> None:
    index = tmp_path / "i" / "index.sqlite"
    keepers, done = index.with_name(f"{index.name}.keeper"), index.with_name("done")
    apps = [opened() for _ in range(count)]
    until(lambda: keepers.exists() and keepers.read_text().strip(), lambda: "nobody keeps the index", START)
    keeper = next(app for app in apps if app.process.pid == json.loads(keepers.read_text())["pid"])
    asked = [Server(workspace, index) for _ in range(servers)]
    readers = [app for app in apps if app is not keeper]
    # Half-way: something is indexed, not all of it, and everybody shows that.
    until(lambda: all(app.half for app in readers), lambda: [app.now for app in apps], START)
    until(lambda: all(server.answers for server in asked), lambda: "a server does not answer", START)
    if killed:
        keeper.process.kill()
        apps.remove(keeper)
    index.with_name("go").touch()
    until(done.exists, lambda: f"nobody indexes the rest: {[app.now for app in apps]}")
    before = {app: starved(app.process.pid) for app in apps}
    waited = {server: starved(server.wire.process.pid) for server in asked}
    end = float(done.read_text().split()[1])
    until(lambda: all(app.right for app in apps), lambda: [app.now for app in apps])
    until(
        lambda: all(server.right_at(end) for server in asked),
        lambda: json.dumps([server.answers[-1][1] for server in asked]),
    )
    delays = [Delay.of(f"app {app.process.pid}", app.now["at"] - end, before[app], app.now["starved"]) for app in apps]
    for server in asked:
        at, _, cores = server.right_at(end) or pytest.fail("no answer")
        delays.append(Delay.of(f"server {server.wire.process.pid}", at - end, waited[server], cores))
        server.end()
    told = "after the keeper's end of indexing: " + "; ".join(map(str, delays))
    print(told)
    assert all(delay.own <= PROMISED for delay in delays), told
