"""Long-term memories on the screen: read first, written once a person agrees, each change undone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.backends.lancedb import TableLocation
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui import signals
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.index.memories_view import MemoriesView
from tests.backends.conftest import TEXTS, bytes_of, damage
from tests.support.tui import LARGE, SMALL, ask, drive, matches_screens, press, sample, settled, text_of, until


def app_on(copied: Path) -> MemoryApp:
    options = Options(
        workspace=str(sample(copied.parent / "notes")),
        index=str(copied.parent / "index.sqlite"),
        provider="builtin",
        memories=str(copied),
        changes=(("sync.watch", "false"),),
    )
    return MemoryApp(lambda listener: Engine.open(options, listener), name="notes")


async def shown(pilot: Pilot[int], *parts: str) -> str:
    await until(lambda: all(part in text_of(pilot.app) for part in parts))
    await settled(pilot)
    return text_of(pilot.app)


def test_entries_are_listed_searched_changed_and_undone(copied: Path) -> None:
    before = bytes_of(copied)
    app = app_on(copied)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "m")
        listed = await shown(pilot, TEXTS[0], "4 entries, only read")
        assert isinstance(app.screen, MemoriesView)
        assert listed.index(TEXTS[3]) < listed.index(TEXTS[0])
        await press(pilot, "/", *"tabs", "enter")
        await shown(pilot, "for: tabs", "0.595")
        await press(pilot, "g", "g", "enter")
        await shown(pilot, "distance 0.6")
        await press(pilot, "]")
        await shown(pilot, "No entry is near enough", "Its category is fact, not preference.")
        assert bytes_of(copied) == before
        await press(pilot, "escape", "g", "g", "j", "d")
        await shown(pilot, "Write these memories?")
        assert bytes_of(copied) == before
        await press(pilot, "y")
        await shown(pilot, "3 entries")
        await press(pilot, "u")
        await shown(pilot, "4 entries")
        await press(pilot, "f", *"router", "enter")
        await until(lambda: TEXTS[0] not in text_of(app))

    drive(app, steps, LARGE)


def test_the_screens(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableLocation, "label", property(lambda _: "~/.openclaw/memory/lancedb"))
    app = app_on(copied)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "m")
        await shown(pilot, TEXTS[0], "4 entries, only read")
        await matches_screens(pilot, "memories_list", LARGE)
        await pilot.resize_terminal(*SMALL)
        await press(pilot, "/", *"tabs", "enter")
        await shown(pilot, "for: tabs")
        await press(pilot, "g", "g", "j", "enter")
        await shown(pilot, "distance")
        await matches_screens(pilot, "memories_search", LARGE)

    drive(app, steps, SMALL)


def test_an_entry_becomes_a_line_of_memory_md_and_may_go(copied: Path) -> None:
    app = app_on(copied)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "m")
        await shown(pilot, TEXTS[3])
        await press(pilot, "g", "g", "p")
        await shown(pilot, "from LanceDB 00000000")
        await press(pilot, "enter")
        await shown(pilot, "Forget the entry, too?")
        await press(pilot, "y")
        await shown(pilot, "Write these memories?")
        await press(pilot, "y")
        await shown(pilot, "3 entries")

    drive(app, steps, LARGE)
    assert f"- {TEXTS[3]} (from LanceDB 00000000)" in (copied.parent / "notes" / "MEMORY.md").read_text()


def test_a_damaged_table_is_a_sentence_and_the_app_goes_on(copied: Path) -> None:
    damage(copied)
    app = app_on(copied)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "m")
        await shown(pilot, "is damaged")
        await press(pilot, "escape", "2")
        assert not isinstance(app.screen, MemoriesView)
        await ask(pilot, "router")
        assert "1 " in text_of(app)

    drive(app, steps, LARGE)


LOUD = """
import os, sys
from memory_tui.tui import signals
with signals.screen_alone():
    os.write(2, b"thread 'lance' panicked\\n")
    print("drawn", file=sys.__stderr__, flush=True)
    os.write(1, b"while ")
os.write(1, b"after ")
"""


@pytest.mark.skipif(os.name != "posix", reason="descriptors are moved on POSIX alone")
def test_what_a_library_says_is_kept_off_the_screen_and_said_afterwards() -> None:
    import subprocess

    done = subprocess.run([sys.executable, "-c", LOUD], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode() == "drawn\nwhile thread 'lance' panicked\nafter "
    assert signals._screen == []
