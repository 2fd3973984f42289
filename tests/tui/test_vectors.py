"""Vectors that are made after the words are indexed: how far they are stands in the first line and in the log."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui import events
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui import state
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.widgets.index_lists import EventLog, words
from memory_tui.tui.widgets.status_bars import IndexingProgress, fitted, statements
from tests.support.provider_server import Asked, Handler, Play, serving, well
from tests.support.tui import (
    LARGE,
    SMALL,
    as_the_app_runs,
    drive,
    make_app,
    press,
    rest,
    sample,
    settled,
    text_of,
    undrawn,
    until,
)
from tests.support.waiting import LONG


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.fixture
def play(gate: threading.Event) -> Iterator[Play]:
    """A provider that answers when the gate is open."""

    def answer(handler: Handler, asked: Asked) -> None:
        gate.wait(LONG)
        well(handler, asked)

    with serving(Play(usual=answer)) as server:
        yield server
        gate.set()


@pytest.mark.parametrize(
    ("table", "engine", "words"), [("true", "sqlite-vec", "vec0 256d"), ("false", "numpy", "numpy 256d")]
)
def test_the_first_line_names_who_compares_the_vectors(tmp_path: Path, table: str, engine: str, words: str) -> None:
    options = Options(
        workspace=str(sample(tmp_path / "notes")),
        index=str(tmp_path / "i.sqlite"),
        changes=(("store.vector.enabled", table),),
    )
    with Engine.open(options) as opened:
        opened.index.sync()
        status, found = opened.status(), state.gather(opened).vector
    if table == "true" and not status.vector.available:
        pytest.skip("sqlite-vec does not work here")
    assert status.vector.engine.startswith(engine)
    assert (found.words, found.ok) == (words, True)


def test_the_log_counts_the_vectors_of_a_slow_provider(tmp_path: Path, play: Play, gate: threading.Event) -> None:
    config = tmp_path / "openclaw.json"
    section = {
        "provider": "openai",
        "model": "small",
        "remote": {"baseUrl": f"{play.url}/v1", "apiKey": "sk-0123456789"},
    }
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    options = Options(
        workspace=str(sample(tmp_path / "notes")),
        config=str(config),
        index=str(tmp_path / "i.sqlite"),
        changes=(("profile", "recommended"), ("sync.watch", "false")),
    )
    heard: list[events.Event] = []

    def opener(listener: events.Listener) -> Engine:
        def both(event: events.Event) -> None:
            heard.append(event)
            listener(event)

        return Engine.open(options, both)

    app = MemoryApp(opener, name="notes")

    async def steps() -> None:
        as_the_app_runs()
        async with app.run_test(size=LARGE) as pilot:
            await until(lambda: any(isinstance(event, events.FileIndexed) for event in heard))
            gate.set()
            await until(lambda: any(isinstance(event, events.VectorsMade) for event in heard))
            await settled(pilot)
            made = [event for event in heard if isinstance(event, events.VectorsMade)]
            assert made, "the words came first"
            assert made[-1].done == made[-1].total
            await press(pilot, "3")
            shown = [line for line in text_of(app).splitlines() if "vectors  " in line]
            assert f"asked for {made[-1].total} of {made[-1].total} chunks" in text_of(app)
            assert len([line for line in shown if "asked for" in line]) == 1, "one line, which counted on"

    asyncio.run(steps())


def _tell(app: MemoryApp, *news: events.Event) -> None:
    for event in news:
        app.jobs.hear(event)


def test_one_line_a_sync_and_none_in_the_first_line_afterwards(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "3")
        _tell(app, events.VectorsMade(0, 64, 300), events.FileIndexed(0, "a.md", 3, 3), events.VectorsMade(0, 128, 300))
        await until(lambda: "VECTORS 128/300" in text_of(app).splitlines()[0])
        await rest(pilot, undrawn)
        log = app.screen.query_one(EventLog)
        assert [line[2] for line in log._lines if line[1] == "vectors"] == [
            "asked for 128 of 300 chunks; the rest is found by its words"
        ]
        assert "asked for 128 of 300" in text_of(app)
        assert words(events.FileIndexed(0, "a.md", 1, 0)) == ("indexed", "a.md  1 chunk", "good")
        _tell(
            app,
            events.SyncFinished(0, "watch", 1, 0, 0, 128, 1.0, ""),
            events.VectorsMade(0, 1, 1),
            events.SyncFinished(0, "watch", 1, 0, 0, 1, 1.0, ""),
        )
        await until(lambda: "asked for 1 of 1 chunk" in text_of(app))
        await settled(pilot)
        assert "asked for 128 of 300" in text_of(app), "that was another sync"
        assert "VECTORS" not in text_of(app)

    drive(app, steps, LARGE)


def test_both_counts_stand_in_the_first_line(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(_: Pilot[int]) -> None:
        assert app.facts is not None
        parts = statements(app.facts, IndexingProgress(12, 300, "memory/a.md", 4.0, 90.0, asked=64, lacking=1302))
        for width, said in ((SMALL[0], "vectors 64/1,302"), (160, "vectors for 64 of 1,302 chunks")):
            line = "  ".join(text for text, _ in fitted(parts, width))
            assert "INDEXING 12/300" in line
            assert said in line

    drive(app, steps)


def test_words_of_it() -> None:
    assert words(events.VectorsMade(0, 1302, 1302)) == ("vectors", "asked for 1,302 of 1,302 chunks", "muted")
