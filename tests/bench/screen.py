"""How quickly the screen answers: first frame, a turned knob, and the longest stall while work is going on.

python tests/bench/screen.py [--chunks 10000] [--files 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from corpus import questions, write

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options


def show(what: str, value: str, goal: str = "") -> None:
    print(f"{what:<62}{value:>16}   {goal}")


def seconds_of(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


class Terminal:
    """The app in a process of its own on a terminal of 120 by 36."""

    def __init__(self, *arguments: str) -> None:
        self.began = time.perf_counter()
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, "-m", "memory_tui", *arguments])
        ioctl(self.terminal, TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))

    def wait_for(self, text: str) -> float:
        """Seconds since the start when `text` is on the screen."""
        seen = b""
        while text.encode() not in seen:
            if not select.select([self.terminal], [], [], 60)[0]:
                raise SystemExit(f"{text!r} does not appear")
            seen += os.read(self.terminal, 65536)
        return time.perf_counter() - self.began

    def press(self, key: str) -> tuple[float, float]:
        """Seconds from the key to the end of the first redrawing, and to that of all that follows from it."""
        began = first = last = time.perf_counter()
        os.write(self.terminal, key.encode())
        drawn = False
        while select.select([self.terminal], [], [], 0.15)[0]:
            os.read(self.terminal, 65536)
            now = time.perf_counter()
            drawn = drawn or (last != began and now - last > 0.008)
            last = now
            first = first if drawn else now
        return first - began, last - began

    def until(self, key: str, text: str) -> float:
        """Seconds from the key until `text` is on the screen."""
        began = time.perf_counter()
        os.write(self.terminal, key.encode())
        self.wait_for(text)
        return time.perf_counter() - began

    def end(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.terminal)


def first_frame(workspace: Path, index: Path) -> float:
    """Seconds from starting the process to the first frame."""
    app = Terminal(str(workspace), "--index", str(index))
    elapsed = app.wait_for("Notes")
    app.end()
    return elapsed


def starting(workspace: Path, index: Path) -> None:
    frames, imports = [], []
    for _ in range(7):
        imports.append(seconds_of("import textual.app"))
        frames.append(first_frame(workspace, index))
    frame, base = statistics.median(frames) * 1000, statistics.median(imports) * 1000
    show("first frame, ms", f"{frame:.0f}", f"<= {1.3 * base + 150:.0f}")
    show("  import textual.app in a process of its own, ms", f"{base:.0f}", f"frame is {frame / base:.2f} x")


def turning(workspace: Path, index: Path) -> None:
    app = Terminal(str(workspace), "--index", str(index), "--query", questions(1)[0])
    app.wait_for("Recalled 6")
    for key in ("\x1b", "t", "j", "j"):
        app.press(key)
    presses = [app.press("l" if step % 20 < 10 else "h") for step in range(60)]
    app.end()
    lists, panes = ([seconds * 1000 for seconds in column] for column in zip(*presses, strict=True))
    show("key press on a knob to the redrawn list, median ms", f"{statistics.median(lists):.1f}", "<= 33")
    show("  p95", f"{sorted(lists)[int(len(lists) * 0.95)]:.1f}")
    show("  to the last change that would turn the verdict, median ms", f"{statistics.median(panes):.1f}")


async def stalling(workspace: Path, index: Path) -> None:
    from memory_tui.tui.app import MemoryApp

    engines = []

    def opener(listener):
        engines.append(Engine.open(Options(workspace=str(workspace), index=str(index)), listener))
        return engines[0]

    app = MemoryApp(opener)
    async with app.run_test(size=(120, 36)) as pilot:
        while not engines:
            await pilot.pause(0.01)
        ticker = Ticker()
        began = time.perf_counter()
        while (
            not await asyncio.to_thread(engines[0].indexer.writer.wait_idle, 0.2) or time.perf_counter() - began < 0.5
        ):
            await asyncio.sleep(0)
        ticker.stop()
        gaps = ticker.gaps
        took = time.perf_counter() - began
    show(f"longest stall of the screen's thread in {took:.1f} s of indexing, ms", f"{max(gaps):.1f}", "<= 50")
    show("  median", f"{statistics.median(gaps):.2f}")


class Ticker:
    """How late the screen's thread comes back to a task that wants it every 5 ms."""

    def __init__(self) -> None:
        self.gaps: list[float] = []
        self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            self.gaps.append((now - last - 0.005) * 1000)
            last = now

    def lap(self) -> tuple[float, float]:
        """The longest and the median gap since the last call, in milliseconds."""
        gaps, self.gaps = self.gaps or [0.0], []
        return max(gaps), statistics.median(gaps)

    def stop(self) -> None:
        self._task.cancel()


async def at_rest(app) -> None:
    """Until no job runs and the queue of the screen is empty."""
    quiet = 0
    while quiet < 5:
        await asyncio.sleep(0.01)
        view = app.screen
        quiet = 0 if app.jobs.busy or view.message_queue_size else quiet + 1


async def working(workspace: Path, index: Path) -> None:
    """Stalls while flips, metrics of 40 labelled questions, noise floor and a search of the knobs are worked out."""
    from textual import events

    from memory_tui.tui.app import MemoryApp
    from memory_tui.tune import judgments
    from memory_tui.tune.judgments import Label, Notebook, Query

    options = Options(workspace=str(workspace), index=str(index), changes=(("sync.watch", "off"),))
    with Engine.open(options) as engine:
        asked = list(dict.fromkeys(questions(400)))[:40]
        tops = [engine.queries.search(question).recalled[0].chunk for question in asked]
    book = Notebook(tuple(Query(q, (Label(top.path, top.start_line, 2),)) for q, top in zip(asked, tops, strict=True)))
    judgments.save(judgments.notebook_path(workspace), book)
    app = MemoryApp(lambda listener: Engine.open(options, listener), query=asked[0])

    async with app.run_test(size=(120, 36)) as pilot:
        while getattr(app.screen, "trace", None) is None:
            await pilot.pause(0.01)
        app.screen.query_one("#results").focus()
        await at_rest(app)
        ticker = Ticker()

        async def measure(what: str, *keys: str, pause: float = 0.03) -> None:
            ticker.lap()
            began = time.perf_counter()
            for key in keys:
                app.post_message(events.Key(key, key if len(key) == 1 else None))
                await asyncio.sleep(pause)
            await at_rest(app)
            longest, median = ticker.lap()
            show(
                f"longest stall, {what} ({time.perf_counter() - began:.1f} s), ms",
                f"{longest:.1f}",
                f"<= 50, median {median:.2f}",
            )

        await asyncio.sleep(1)
        show("longest stall while nothing happens, ms", f"{ticker.lap()[0]:.1f}")
        await measure("walking down 40 hits with their flips", *"j" * 40)
        await measure("first turn: 40 questions are asked", "t", "j", "l")
        await measure("40 turns, measured on 40 questions", *"lh" * 20)
        await measure("noise floor", "escape", "N")
        await measure("searching the knobs", "escape", "S")
        await measure("fading of 40 questions", "escape", "F")
        ticker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1000)
    given = parser.parse_args()
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        small = write(place / "small", 20)
        large = write(place / "large", given.chunks // 4 + 1)
        for workspace in (small, large):
            index = str(place / f"{workspace.name}.sqlite")
            with Engine.open(Options(workspace=str(workspace), index=index)) as engine:
                engine.indexer.sync()
        starting(small, place / "small.sqlite")
        turning(large, place / "large.sqlite")
        os.environ["XDG_CONFIG_HOME"] = str(place / "config")
        asyncio.run(working(large, place / "large.sqlite"))
        asyncio.run(stalling(write(place / "fresh", given.files), place / "fresh.sqlite"))


if __name__ == "__main__":
    main()
