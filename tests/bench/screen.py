"""How quickly the screen answers: first frame, a turned knob, the About pane, the app at rest, stalls during work.

python tests/bench/screen.py [PART ...] [--chunks 10000] [--files 1000] [--many 5000] [--large]

Parts: start knob about rest work pictures index. `--large` is 98,000 chunks, and 25,000 notes for the pane and the
app at rest.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from corpus import questions, write
from measure import (
    CHUNKS_A_NOTE,
    LARGE,
    Cost,
    Watched,
    begin,
    cost_of,
    cost_of_process,
    installed,
    middle,
    program,
    python,
    ratio,
    share,
    show,
    spread,
)

from memory_tui.engine.engine import UPKEEP_SECONDS, Engine
from memory_tui.plan import Options


class Terminal:
    """The app in a process of its own on a terminal of 120 by 36."""

    def __init__(self, place: Path, *arguments: str) -> None:
        environment = {**installed(place), "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
        self.began = time.perf_counter()
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.execve(sys.executable, program(*arguments), environment)
        ioctl(self.terminal, TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.watched = Watched(self.child)
        self._seen = b""

    def _read(self, seconds: float) -> bool:
        """Whether something came within `seconds`; it is kept until `forget`."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        self._seen += os.read(self.terminal, 65536)
        return True

    def forget(self) -> None:
        """Wait from now on for what is drawn from now on."""
        while self._read(0):
            pass
        self._seen = b""

    def wait_for(self, text: str) -> float:
        """Seconds since the start when `text` is on the screen."""
        while text.encode() not in self._seen:
            if not self._read(120):
                raise SystemExit(f"{text!r} does not appear")
        return time.perf_counter() - self.began

    def press(self, key: str) -> tuple[float, float]:
        """Seconds from the key to the end of the first redrawing, and to that of all that follows from it."""
        began = first = last = time.perf_counter()
        os.write(self.terminal, key.encode())
        drawn = False
        while self._read(0.15):
            now = time.perf_counter()
            drawn = drawn or (last != began and now - last > 0.008)
            last = now
            first = first if drawn else now
        return first - began, last - began

    def until(self, key: str, text: str) -> float:
        """Seconds from the key until `text` is on the screen."""
        self.forget()
        began = time.perf_counter()
        os.write(self.terminal, key.encode())
        self.wait_for(text)
        return time.perf_counter() - began

    def settled(self, quiet: int = 4) -> float:
        """Milliseconds of CPU until now, when the app has used none for `quiet` tenths of a second."""
        last, still = self.watched.cpu(), 0
        while still < quiet:
            end = time.monotonic() + 0.1
            while (left := end - time.monotonic()) > 0:
                self._read(left)
            now = self.watched.cpu()
            still = still + 1 if now == last else 0
            last = now
        return last

    def wait_for_later_work(self) -> float:
        """Have the unrelated questions asked, which a new index waits for, and no key; then as `settled`."""
        began = time.monotonic()
        while time.monotonic() - began < UPKEEP_SECONDS + 1:
            self._read(0.2)
        return self.settled()

    def end(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.terminal)


def starting(place: Path, workspace: Path, index: Path, times: int) -> None:
    found: list[Cost] = []
    imports: list[Cost] = []
    for number in range(times + (times > 1)):
        cost = cost_of_process(python("-c", "import textual.app"), installed(place))[0]
        app = Terminal(place, str(workspace), "--index", str(index))
        wall = app.wait_for("Notes") * 1000
        frame = Cost(app.watched.cpu(), wall)
        app.end()
        # In the first of several rounds modules are compiled.
        if number or times == 1:
            imports.append(cost)
            found.append(frame)
    base, frame = share(imports, 0.5), share(found, 0.5)
    show("textual.app imported, ms", base)
    show("first frame, ms", frame, f"{ratio(frame.cpu, base.cpu, 'that import')}; <= 1.3 x it and 150")


def turning(place: Path, workspace: Path, index: Path, times: int) -> None:
    app = Terminal(place, str(workspace), "--index", str(index), "--query", questions(1)[0])
    app.wait_for("Recalled")
    app.wait_for_later_work()
    for key in ("\x1b", "t", "j", "j"):
        app.press(key)
    before, own = app.settled(), app.watched.screen()
    for step in range(times):
        app.press("l" if step % 20 < 10 else "h")
        after = app.settled()
    show("one knob key, to the settled screen, ms of CPU", f"{(after - before) / times:.1f}", "<= 45")
    show("  of which the screen's thread", f"{(app.watched.screen() - own) / times:.1f}", "<= 25")
    presses = [app.press("l" if step % 20 < 10 else "h") for step in range(times)]
    lists, panes = ([seconds * 1000 for seconds in column] for column in zip(*presses, strict=True))
    show("  to the redrawn list, by the clock, p50 (p95) ms", spread(lists), "<= 33 on a machine at rest")
    show("  to the last change that would turn the verdict", spread(panes))
    before = app.settled()
    for _ in range(times):
        app.press("j")
        after = app.settled()
    show("one step down the knobs, ms of CPU", f"{(after - before) / times:.1f}")
    resident, private = app.watched.memory()
    show("the app after that: MB resident, and private", f"{resident:.0f}, {private:.0f}", "<= 280 at 98,000 chunks")
    app.end()


def resting(place: Path, workspace: Path, index: Path, seconds: float) -> None:
    app = Terminal(place, str(workspace), "--index", str(index))
    app.wait_for("Notes")
    started = app.settled()
    before = app.wait_for_later_work()
    show("what follows a start, ms of CPU, once: unrelated questions in a new index", f"{before - started:.0f}")
    began, before = time.monotonic(), app.watched.cpu()
    while time.monotonic() - began < seconds:
        app._read(0.2)
    spent = (app.watched.cpu() - before) / 1000 * 60 / (time.monotonic() - began)
    show("the app at rest, seconds of CPU a minute", f"{spent:.2f}", "<= 0.5")
    app.end()


def about(workspace: Path, index: Path) -> None:
    """What the pane beside a note tells, worked out for MEMORY.md while notes are watched, as in the app."""
    from memory_tui.tui import note_info
    from memory_tui.tui.note_page import make_page

    with Engine.open(Options(workspace=str(workspace), index=str(index))) as engine:
        engine.index.sync()
        engine.index.watcher.switch(True)
        while engine.index.watched_state is None:
            time.sleep(0.05)
        page = make_page(engine.notes.read("MEMORY.md"), ())
        count = engine.status().files
        show(
            f"About pane of MEMORY.md, {count:,} files, first look, ms",
            cost_of(lambda: note_info.gather(engine, page, frozenset())),
            "<= 20",
        )
        show("  next looks, ms", middle(lambda: note_info.gather(engine, page, frozenset()), 9), "<= 20")


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
        while not await asyncio.to_thread(engines[0].index.writer.wait_idle, 0.2) or time.perf_counter() - began < 0.5:
            await asyncio.sleep(0)
        ticker.stop()
        gaps = ticker.gaps
        took = time.perf_counter() - began
    show(f"longest turn of the screen's thread in {took:.1f} s of indexing, ms", longest(gaps), "<= 50")


def longest(gaps: list[Cost]) -> Cost:
    """The longest by CPU, and by the clock."""
    return Cost(max(gap.cpu for gap in gaps), max(gap.wall for gap in gaps))


class Ticker:
    """How long the screen's thread is busy before a task that wants it every 5 ms has its turn.

    By the clock a busy machine makes every turn longer; the CPU of this thread is what the app does to itself.
    """

    def __init__(self) -> None:
        self.gaps: list[Cost] = []
        self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0.005)
            now, spent = time.perf_counter(), time.thread_time()
            self.gaps.append(Cost((spent - cpu) * 1000, (now - wall - 0.005) * 1000))
            wall, cpu = now, spent

    def lap(self) -> Cost:
        """The longest turn since the last call."""
        gaps, self.gaps = self.gaps or [Cost(0, 0)], []
        return longest(gaps)

    def stop(self) -> None:
        self._task.cancel()


async def at_rest(app) -> None:
    """Until no job runs and the queue of the screen is empty."""
    quiet = 0
    while quiet < 5:
        await asyncio.sleep(0.01)
        view = app.screen
        quiet = 0 if app.jobs.busy or view.message_queue_size else quiet + 1


async def working(workspace: Path, index: Path, count: int) -> None:
    """Stalls while flips, metrics of `count` labelled questions, noise floor and knobs are worked out."""
    from textual import events

    from memory_tui.tui.app import MemoryApp
    from memory_tui.tune import judgments
    from memory_tui.tune.judgments import Label, Notebook, Query

    options = Options(workspace=str(workspace), index=str(index), changes=(("sync.watch", "off"),))
    with Engine.open(options) as engine:
        asked = list(dict.fromkeys(questions(10 * count)))[:count]
        tops = [engine.search.search(question).recalled[0].chunk for question in asked]
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
            show(f"longest turn, {what} ({time.perf_counter() - began:.1f} s), ms", ticker.lap(), "<= 50")

        await asyncio.sleep(1)
        show("longest turn of the screen's thread while nothing happens, ms", ticker.lap())
        await measure(f"walking down {count} hits with their flips", *"j" * count)
        await measure(f"first turn: {count} questions are asked", "t", "j", "l")
        await measure(f"{count} turns, measured on {count} questions", *"lh" * (count // 2))
        await measure("searching the knobs", "escape", *"zs")
        ticker.stop()


async def drawing(workspace: Path, index: Path, times: int) -> None:
    """What a key and each picture cost the screen's thread at 200 by 50, with curve, plots and first steps shown."""
    from textual import events
    from textual.widget import Widget

    from memory_tui.recalls import recalled_lines
    from memory_tui.tui.app import MemoryApp
    from memory_tui.tune import judgments
    from memory_tui.tune.judgments import Label, Notebook, Query

    options = Options(workspace=str(workspace), index=str(index), changes=(("sync.watch", "off"),))
    with Engine.open(options) as engine:
        asked = list(dict.fromkeys(questions(10 * times)))[: max(3, times)]
        tops = [engine.search.search(question).recalled[0].chunk for question in asked]
    book = Notebook(tuple(Query(q, (Label(top.path, top.start_line, 2),)) for q, top in zip(asked, tops, strict=True)))
    judgments.save(judgments.notebook_path(workspace), book)
    spans = [(top.path, top.start_line, top.end_line) for top in tops]
    recalled_lines.append(recalled_lines.marks_path(workspace), spans, time.time())
    app = MemoryApp(lambda listener: Engine.open(options, listener), query=asked[0])
    app.do_first_steps()

    async with app.run_test(size=(200, 50)) as pilot:
        while getattr(app.screen, "trace", None) is None:
            await pilot.pause(0.01)
        app.screen.query_one("#results").focus()
        await at_rest(app)
        ticker = Ticker()

        async def press(*keys: str) -> list[Cost]:
            found = []
            # What ran before, such as a picture drawn nine times, is no turn of these keys.
            await asyncio.sleep(0.02)
            for key in keys:
                ticker.lap()
                app.post_message(events.Key(key, key if len(key) == 1 else None))
                await asyncio.sleep(0.05)
                await at_rest(app)
                found.append(ticker.lap())
            return found

        async def keys(what: str, *wanted: str) -> None:
            found = await press(*wanted)
            show(f"longest turn after a key, {what}, ms", share(found, 0.5), "<= 50")
            show("  95 of 100", share(found, 0.95), "<= 50")

        def picture(what: str, selector: str) -> None:
            widget = app.screen.query_one(selector, Widget)
            region = widget.size.region
            show(
                f"picture alone, {what}, ms",
                middle(lambda: (widget.refresh(), widget.render_lines(region)), 9),
                "<= 50",
            )

        await keys("walking down the hits", *"j" * times)
        await keys("marking a hit", *["space"] * times)
        picture("list of hits", "#results")
        await press("escape", "t", "j", "j")
        await asyncio.sleep(0.3)
        await at_rest(app)
        await keys("turning a knob", *"lh" * (times // 2 or 1))
        await press("slash", "end")
        await keys("typing into the question", *("x", "backspace") * (times // 2 or 1))
        await press("enter")
        await press("escape", "5")
        picture("calendar", "Calendar")
        await keys("in the calendar", *"hl" * (times // 2 or 1))
        await press("1")
        picture("list of notes with recalls", "#tree")
        await keys("walking down the notes", *"j" * times)
        await press("3")
        picture("state of the index", "#state")
        ticker.stop()


PARTS = ("start", "knob", "about", "rest", "work", "pictures", "index")


def indexed(place: Path, name: str, notes: int) -> tuple[Path, Path]:
    """A workspace of so many notes, and its index."""
    workspace, index = place / name, place / f"{name}.sqlite"
    if not workspace.exists():
        write(workspace, notes, 1000 if name == "many" else 4000)
        with Engine.open(Options(workspace=str(workspace), index=str(index))) as engine:
            engine.index.sync()
    return workspace, index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1000, help="notes that are indexed while the screen is watched")
    parser.add_argument("--many", type=int, default=5_000, help="notes for the About pane and the app at rest")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    begin(__doc__)
    chunks, many = (LARGE, 25_000) if given.large else (given.chunks, given.many)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ["XDG_CONFIG_HOME"] = str(place / "config")
        notes = round(chunks / CHUNKS_A_NOTE)
        runs: dict[str, Callable[[], None]] = {
            "start": lambda: starting(place, *indexed(place, "small", 20), max(1, given.times // 4)),
            "knob": lambda: turning(place, *indexed(place, "large", notes), given.times),
            "about": lambda: about(*indexed(place, "many", many)),
            "rest": lambda: resting(place, *indexed(place, "many", many), 1.5 * given.times),
            "work": lambda: asyncio.run(working(*indexed(place, "large", notes), 2 * given.times)),
            "pictures": lambda: asyncio.run(drawing(*indexed(place, "large", notes), given.times)),
            "index": lambda: asyncio.run(stalling(write(place / "fresh", given.files), place / "fresh.sqlite")),
        }
        for part in given.parts or PARTS:
            runs[part]()


if __name__ == "__main__":
    main()
