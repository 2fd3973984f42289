"""How quickly a long note opens and scrolls, how long the screen stalls meanwhile, and how soon a change is found.

python tests/bench/reading.py [--megabytes 10] [--chinese]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from corpus import write
from measure import CHUNKS_A_NOTE, begin, show
from screen import Terminal, Ticker

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options

WORDS = ["router", "vlan", "backup", "the", "of", "a", "moved", "switch", "access", "point", "was", "seen", "guest"]
MARK = "Beginning of the long note"


def long_note(megabytes: float, chinese: bool) -> str:
    """A note of about that size: headings, items of many lengths, code."""
    dice = random.Random(7)
    words = [*WORDS, "外婆的机票是几点的", "路由器的访客网络"] if chinese else WORDS
    lines, size = [f"# {MARK}"], 0
    while size < megabytes * 1e6:
        line = " ".join(dice.choices(words, k=dice.choice([0, 4, 8, 16, 40])))
        kind = dice.random()
        lines.append(f"## {line[:60]}" if kind < 0.05 else f"- {line} `code` **strong**" if kind < 0.8 else line)
        size += len(lines[-1].encode()) + 1
    return "\n".join(lines) + "\n"


def on_a_terminal(place: Path, workspace: Path, index: Path, times: int) -> None:
    opening: list[float] = []
    spent: list[float] = []
    for number in range(times):
        app = Terminal(place, str(workspace), "--index", str(index), "--provider", "none")
        app.wait_for("Small note")
        app.press("o")
        for letter in "big":
            app.press(letter)
        before = app.settled()
        opening.append(app.until("\r", MARK) * 1000)
        spent.append(app.settled() - before)
        if number < times - 1:
            app.end()
    show("enter on the note until it is read, ms of CPU", f"{statistics.median(spent):.0f}")
    show("  to its first frame, by the clock", f"{statistics.median(opening):.0f}", "<= 300 on a machine at rest")
    for what, keys in (
        ("j", ["j"] * 12 * times),
        ("half a page", ["\x04"] * 12 * times),
        ("end and top", ["G", "gg"] * 2 * times),
    ):
        app.press("gg")
        before = app.settled()
        drawn = [app.press(key)[0] * 1000 for key in keys]
        cpu = (app.settled() - before) / len(keys)
        show(f"  {what}: a key, ms of CPU", f"{cpu:.1f}", f"<= 33; by the clock {statistics.median(drawn):.0f}")
    app.end()


async def in_process(workspace: Path, index: Path) -> None:
    """The longest time in which the screen's thread did nothing else, while the note is opened."""
    from memory_tui.tui.app import MemoryApp
    from memory_tui.tui.views.notes.browse import BrowseView

    app = MemoryApp(
        lambda listener: Engine.open(Options(workspace=str(workspace), index=str(index), provider="none"), listener)
    )
    async with app.run_test(size=(120, 36)) as pilot:
        while app.facts is None or app.progress is not None or app.jobs.busy:
            await pilot.pause(0.02)
        view = app.screen
        assert isinstance(view, BrowseView)
        ticker = Ticker()
        view.go_to("memory/big.md")
        while not view.pane.shows("memory/big.md") or not view.pane.reader.page.whole:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        ticker.stop()
    show("longest turn of the screen's thread while it opens, ms", ticker.lap(), "<= 50")


async def promoting(workspace: Path, index: Path) -> None:
    """From the key that confirms a promote until a search finds the line in the curated note."""
    from memory_tui.tui.app import MemoryApp
    from memory_tui.tui.views.dialogs import Preview
    from memory_tui.tui.views.notes.browse import BrowseView

    options = Options(workspace=str(workspace), index=str(index))
    app = MemoryApp(lambda listener: Engine.open(options, listener))
    times = []
    async with app.run_test(size=(120, 36)) as pilot:
        while app.facts is None or app.engine is None or app.progress is not None or app.jobs.busy:
            await pilot.pause(0.02)
        engine, view = app.engine, app.screen
        assert isinstance(view, BrowseView)
        path = "memory/0000.md"
        view.go_to(path, 1)
        while not view.pane.shows(path):
            await asyncio.sleep(0.01)
        view.pane.reader.focus()
        while app.focused is not view.pane.reader:
            await asyncio.sleep(0.01)
        marked = [line for line, text in enumerate(view.pane.reader.page.lines, 1) if "zzquux" in text]
        for line in marked:
            view.pane.reader.go_to_line(line)
            word = view.pane.reader.page.lines[line - 1].split()[1]
            view.actions.do_promote()
            while not isinstance(app.screen, Preview):
                await asyncio.sleep(0.01)
            began = time.perf_counter()
            await pilot.press("y")

            def found(word: str = word) -> bool:
                trace = engine.queries.search(word)
                return any(hit.chunk.path == "MEMORY.md" for hit in trace.recalled)

            while not await asyncio.to_thread(found):
                await asyncio.sleep(0.005)
            times.append((time.perf_counter() - began) * 1000)
            while app.jobs.busy:
                await asyncio.sleep(0.01)
    show(
        "a confirmed promote to its being searchable, median ms",
        f"{statistics.median(times):.0f}",
        "<= 1500 (debounce) + 200",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--chinese", action="store_true")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    begin(__doc__)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        workspace, index = place / "notes", place / "index.sqlite"
        (workspace / "memory").mkdir(parents=True)
        (workspace / "MEMORY.md").write_text("# Small note\n", "utf-8")
        (workspace / "memory" / "big.md").write_text(long_note(given.megabytes, given.chinese), "utf-8")
        with Engine.open(Options(workspace=str(workspace), index=str(index), provider="none")) as engine:
            engine.indexer.sync()
        on_a_terminal(place, workspace, index, given.times)
        asyncio.run(in_process(workspace, index))
        many, index = write(place / "many", round(given.chunks / CHUNKS_A_NOTE)), place / "many.sqlite"
        lines = [f"- zzquux{chr(97 + i)} is a line to promote" for i in range(given.times)]
        (many / "memory" / "0000.md").write_text("# Lines\n" + "\n".join(lines) + "\n", "utf-8")
        (many / "MEMORY.md").write_text("# Memory\n\n- first\n", "utf-8")
        with Engine.open(Options(workspace=str(many), index=str(index))) as engine:
            engine.indexer.sync()
        asyncio.run(promoting(many, index))


if __name__ == "__main__":
    main()
