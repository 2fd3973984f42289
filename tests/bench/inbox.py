"""What it costs to look for everything that the inbox lists, by phases, in seconds of CPU.

python tests/bench/inbox.py [--chunks 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from corpus import write
from measure import CHUNKS_A_NOTE, begin, show

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options


def spoil(folder: Path) -> None:
    """Give every twentieth note something that should be looked at: repeats, near repeats, secrets, dates, paths."""
    notes = sorted((folder / "memory").glob("*.md"))
    rng = random.Random(4)
    for number, note in enumerate(notes[::20]):
        said = next(line for line in rng.choice(notes).read_text().splitlines() if line.startswith("- "))
        added = (said, f"{said} indeed", f"- wifi password: hunter{number}hunterX9", f"- see [it](gone-{number}.md)")
        note.write_text(note.read_text() + f"{added[number % len(added)]}\n")
    (folder / "MEMORY.md").write_text(
        "# Facts\n"
        + "".join(f"- renew contract {number} by 2026-01-{number % 28 + 1:02} at the latest\n" for number in range(20))
    )


async def on_screen(options: Options) -> None:
    """How long the thread of the screen stalls while the inbox looks."""
    from screen import Ticker

    from memory_tui.tui.app import MemoryApp
    from memory_tui.tui.views.inbox.inbox_view import InboxView

    app = MemoryApp(lambda listener: Engine.open(options, listener))
    async with app.run_test(size=(120, 36)) as pilot:
        while app.facts is None or app.progress is not None or app.jobs.busy:
            await pilot.pause(0.02)
        ticker = Ticker()
        await asyncio.sleep(1)
        show("longest turn of the screen's thread at rest, ms", ticker.lap())
        for what in ("looks", "looks again"):
            began = time.perf_counter()
            if what == "looks":
                app.switch_mode("inbox")
                await asyncio.sleep(0.1)
            view = app.screen
            assert isinstance(view, InboxView)
            if what == "looks again":
                view.examine()
            while not view.resting:
                await asyncio.sleep(0.01)
            show(f"longest turn while it {what} ({time.perf_counter() - began:.1f} s), ms", ticker.lap(), "<= 50")
        ticker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=10_000)
    given = parser.parse_args()
    begin(__doc__)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(place / "notes", round(given.chunks / CHUNKS_A_NOTE))
        spoil(place / "notes")
        options = Options(
            workspace=str(place / "notes"), index=str(place / "index.sqlite"), changes=(("sync.watch", "off"),)
        )
        with Engine.open(options) as engine:
            report = engine.indexer.sync()
            steps: list[tuple[str, float]] = []
            began = time.process_time()
            found = engine.inbox.examine(lambda title, _done, _total: steps.append((title, time.process_time())))
            whole = time.process_time() - began
            show(
                f"looking through {report.indexed:,} notes, {report.chunks:,} chunks, CPU seconds",
                f"{whole:.2f}",
                "<= 5",
            )
            show("  reading the notes and their vectors", f"{steps[0][1] - began:.2f}")
            for (title, at), (_, after) in pairwise(steps):
                show(f"  {title}", f"{after - at:.2f}")
            began = time.process_time()
            engine.inbox.examine()
            show("  a second time", f"{time.process_time() - began:.2f}")
            show("suggestions", f"{len(found):,}")
        asyncio.run(on_screen(options))


if __name__ == "__main__":
    main()
