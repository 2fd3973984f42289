"""Makes the pictures of the README from the sample workspace: python -m screenshots.take [FOLDER]."""

from __future__ import annotations

import datetime as dt
import os
import sys
import tempfile
from pathlib import Path

os.environ["TEXTUAL_ANIMATIONS"] = "none"
os.environ["TZ"] = "UTC"

from memory_tui import demo, tune
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tune import Label, Notebook, Query
from tests.support.tui import LARGE, SMALL, Window, at_noon

TODAY = dt.date(2026, 11, 20)
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
QUESTION = "how is the omada vlan set up"
SHOTS = {
    "notes-120x36": (LARGE, "", ()),
    "search-120x36": (LARGE, QUESTION, ()),
    "search-80x24": (SMALL, QUESTION, ()),
    "why-120x36": (LARGE, QUESTION, ("right_square_bracket",)),
    "turn-120x36": (LARGE, QUESTION, ("t", "down", "right")),
    "compare-120x36": (LARGE, "Why could nobody print after the wireless change?", ("c",)),
    "promote-120x36": (LARGE, QUESTION, ("enter", "down", "p", "enter")),
    "status-120x36": (LARGE, "", ("3",)),
    "inbox-120x36": (LARGE, "", ("4",)),
}


def keep_labels(workspace: Path) -> None:
    """Keep the questions that come with the sample, as if somebody had judged their hits."""
    queries = [
        Query(query.text, tuple(Label(at.path, at.line, at.grade, at.answer) for at in query.relevant))
        for query in demo.labelled_queries(TODAY)
        if query.relevant
    ]
    tune.save(tune.notebook_path(workspace), Notebook(tuple(queries)))


def take(workspace: Path, index: Path, name: str, folder: Path) -> None:
    """Take one picture: open, ask, press, wait until nothing moves, export."""
    size, query, keys = SHOTS[name]
    options = Options(workspace=str(workspace), index=str(index), now=NOON)
    app = MemoryApp(lambda listener: Engine.open(options, at_noon(listener, NOON)), query=query)
    # The count of the inbox is on every picture, however long each takes.
    app.count_seconds = 0.1
    with Window(app, size) as window:
        window.press(*keys)
        window.settle()
        (folder / f"{name}.svg").write_text(window.picture, "utf-8")


def main() -> None:
    """Take every picture."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as place:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[name] = str(Path(place) / name)
        workspace = demo.materialize(Path(place) / "HOME" / "notes", TODAY, more=True)
        index = Path(place) / "HOME" / ".cache" / "memory-tui" / "index.sqlite"
        keep_labels(workspace)
        for name in SHOTS:
            take(workspace, index, name, folder)
            print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
