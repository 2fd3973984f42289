"""Whatever is pressed, clicked or resized, in any order, while notes change: the app goes on, and loses nothing."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest
from textual.errors import NoWidget
from textual.pilot import OutOfBounds, Pilot

from memory_tui.tui.key_meanings import MEANINGS, is_sequence
from memory_tui.tui.widgets.rowlist import Line, Rows
from tests.support.tui import LARGE, SMALL, drive, hurry, make_app, press, sample, settled

ENDS = ("quit", "leave", "suspend")
TASKS = (
    ("a", *"note", "enter"),
    ("4", "enter", "enter"),
    ("4", "d", "enter"),
    ("g", "t", "tab", "G", "p", "enter"),
    ("1", "enter", "d", "enter"),
    ("1", "m", *"away", "enter", "enter"),
    ("e", "end", *"more", "ctrl+s", "enter"),
    ("/", *"vlan", "enter", "down", "w"),
    ("c", "pagedown"),
    ("t", "l", "ctrl+s", "enter"),
    ("u",),
)
"""What users do most, with the key that confirms it."""
TEXTS = ("omada vlan", "MEMORY.md:8", "30", "last week", "日本", '"x', "\u202ex\u200b")
SIZES = (LARGE, SMALL, (60, 16), (200, 50), (20, 5))


@pytest.fixture(autouse=True)
def _written_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is exported goes to the folder of the test."""
    monkeypatch.chdir(tmp_path)


def keys_of_meanings() -> list[tuple[str, ...]]:
    """Each key that means something; of a sequence its letters."""
    every = [(name, key) for name, meaning in MEANINGS.items() for key in meaning.keys if name not in ENDS]
    return [tuple(key) if is_sequence(key) else (key,) for _, key in every] + [("backspace",), ("delete",)]


def struck(luck: random.Random) -> list[str]:
    """What comes next: a key, a task or some text."""
    what = luck.random()
    return [*(luck.choice(TEXTS) if what < 0.05 else luck.choice(TASKS if what < 0.25 else keys_of_meanings()))]


def content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def taken_back(place: Path, seed: int, count: int) -> None:
    """Press `count` times, waiting for the app to rest, then undo every change."""
    folder, luck = sample(place / "notes"), random.Random(seed)
    before = content(folder)
    app = make_app(folder, query="omada vlan")

    async def steps(pilot: Pilot[int]) -> None:
        for number in range(count):
            await press(pilot, *struck(luck))
            if number % 20 == 19:
                await pilot.resize_terminal(*luck.choice(SIZES))
                await settled(pilot)
        engine = app.engine
        assert engine is not None
        changed = content(folder)
        made = engine.notes.curator.undoable()
        assert made or changed == before, "what changed is in the journal"
        while engine.notes.curator.undoable():
            engine.notes.curator.undo()
        assert content(folder) == before

    drive(app, steps)


@pytest.mark.parametrize("seed", [1, 2])
def test_all_that_random_keys_changed_is_taken_back(tmp_path: Path, seed: int) -> None:
    taken_back(tmp_path, seed, 40)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(100, 110))
def test_all_that_many_random_keys_changed_is_taken_back(tmp_path: Path, seed: int) -> None:
    taken_back(tmp_path, seed, 400)


def changed_by_another(folder: Path, luck: random.Random) -> None:
    """Do to a note what other programs do: append, cut, delete, rename, write what is no text."""
    notes = sorted(folder.rglob("*.md"))
    note, what = luck.choice(notes), luck.randrange(5)
    if what == 0:
        note.write_bytes(note.read_bytes() + b"\n- from elsewhere\n")
    elif what == 1:
        note.write_bytes(note.read_bytes()[: note.stat().st_size // 2])
    elif what == 2 and len(notes) > 5:
        note.unlink()
    elif what == 3:
        note.rename(note.with_name(f"moved-{luck.randrange(100)}.md"))
    else:
        note.write_bytes(b"\xff\xfe\x00" + luck.randbytes(20))


def survived(place: Path, seed: int, count: int) -> None:
    """Press, click, resize and change notes without waiting; the app rests in the end."""
    folder, luck = sample(place / "notes"), random.Random(seed)
    app = make_app(folder, query="omada vlan", watch=True)

    async def steps(pilot: Pilot[int]) -> None:
        for _ in range(count):
            what = luck.random()
            if what < 0.87:
                hurry(pilot, *struck(luck))
            elif what < 0.9:
                changed_by_another(folder, luck)
            elif what < 0.97:
                at = luck.randrange(app.size.width), luck.randrange(app.size.height)
                # While another size is laid out nothing may stand there.
                with suppress(NoWidget, OutOfBounds):
                    await pilot.click(offset=at, times=luck.choice((1, 1, 2)))
            else:
                await pilot.resize_terminal(*luck.choice(SIZES))
            await asyncio.sleep(luck.choice((0, 0, 0.02)))
        await settled(pilot)

    drive(app, steps)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_input_ends_nothing_while_notes_change(tmp_path: Path, seed: int) -> None:
    survived(tmp_path, seed, 80)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(100, 130))
def test_much_random_input_ends_nothing_while_notes_change(tmp_path: Path, seed: int) -> None:
    survived(tmp_path, seed, 500)


def test_the_cursor_stays_on_its_row_where_another_width_takes_other_lines(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    def lines(width: int) -> list[Line]:
        # So many lines of text above the rows as a narrow list needs to wrap it.
        return [
            *(([("above", "")], None) for _ in range(400 // max(width, 10))),
            *(([(f"{n}", "")], n) for n in range(5)),
        ]

    async def steps(pilot: Pilot[int]) -> None:
        rows = Rows(id="some")
        await app.screen.mount(rows)
        rows.show(lines, "some")
        await settled(pilot)
        for key in (0, 3):
            rows.go(rows.row_of(key) or 0)
            for size in (SMALL, LARGE, (200, 50)):
                await pilot.resize_terminal(*size)
                await settled(pilot)
                assert rows.key == key
            rows.do_page_down()
            rows.do_page_up()

    drive(app, steps)
