"""Makes the pictures of the README from the sample workspace: python -m screenshots.take [FOLDER]."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import sys
import tempfile
from pathlib import Path

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from memory_tui import demo
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tune import judgments
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.support.tui import settled

TODAY = dt.date(2026, 11, 20)
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
QUESTION = "how is the omada vlan set up"
SHOTS = {
    "browse-120x36": ((120, 36), "", ()),
    "promote-120x36": ((120, 36), "", ("g", "t", "tab", "G", "k", "p")),
    "search-120x36": ((120, 36), QUESTION, ("down", "down")),
    "why-120x36": ((120, 36), QUESTION, (*"jjjjjjj", "w")),
    "sides-120x36": ((120, 36), "Why could nobody print after the wireless change?", ("c",)),
    "noise-120x36": ((120, 36), QUESTION, ("t", "k", "l", "escape", "z", "n")),
    "search-80x24": ((80, 24), QUESTION, ("down",)),
    "tune-120x36": ((120, 36), QUESTION, ("t", "l", "j", "j", *"lllll")),
    "index-120x36": ((120, 36), "", ("3",)),
    "inbox-120x36": ((120, 36), "", ("4",)),
}


def keep_labels(workspace: Path) -> None:
    """The questions that come with the sample, as if somebody had judged their hits."""
    queries = [
        Query(found.text, tuple(Label(at.path, at.line, at.grade, at.answer) for at in found.relevant))
        for found in demo.labelled_queries(TODAY)
        if found.relevant
    ]
    judgments.save(judgments.notebook_path(workspace), Notebook(tuple(queries)))


async def take(workspace: Path, index: Path, name: str, folder: Path) -> None:
    """One picture: open, ask, press, wait until nothing moves, export."""
    size, query, keys = SHOTS[name]

    def opener(listener):  # noqa: ANN001, ANN202
        options = Options(workspace=str(workspace), index=str(index), now=NOON)
        return Engine.open(options, listener)

    app = MemoryApp(opener, name="demo", query=query)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        app.save_screenshot(f"{name}.svg", path=str(folder))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as place:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[name] = str(Path(place) / name)
        workspace = demo.materialize(Path(place) / "HOME" / "notes", TODAY, more=True)
        index = Path(place) / "HOME" / ".cache" / "memory-tui" / "index.sqlite"
        keep_labels(workspace)
        # The first one loads the model, which the time that it shows would say.
        asyncio.run(take(workspace, index, "search-80x24", folder))
        for name in SHOTS:
            asyncio.run(take(workspace, index, name, folder))
            print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
