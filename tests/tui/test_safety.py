"""Memory text is hostile input: it is shown as typed, and none of it reaches the terminal as a command."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.search.trace import ChunkRef
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.note_page import LONGEST_LINE, make_page
from memory_tui.workspace.notes import Document
from tests.support.tui import LARGE, SMALL, ask, drive, lines_of, make_app, press, settled, text_of

ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]")
"""Characters that could act on a terminal or on the text beside them."""

HOSTILE = {
    "osc": "clipboard \x1b]52;c;aGVsbG8=\x07 title \x1b]0;owned\x07 hostile",
    "csi": "clear \x1b[2J\x1b[H move \x9b31m hostile colour",
    "dcs": "\x1bP1$r0m\x1b\\ \x90 \x98 \x9d hostile strings",
    "c0": "hostile " + "".join(map(chr, range(1, 32))) + " after",
    "c1": "hostile " + "".join(map(chr, range(127, 160))) + " after",
    "bidi": "hostile \u202eevil\u202c \u2066isolated\u2069 \u200e\u200f\u061c marks",
    "invisible": "hos\u200btile \u2060zero\ufeff width \u00ad soft",
    "lines": "hostile \u2028 line \u2029 paragraph \x0b \x0c separators",
    "nul": "hostile \x00 nul",
    "wide": "hostile 麻婆豆腐 \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301 \U000e0041\U000e0042",
}

MARKUP = [
    "[x] done",
    "[ ] open",
    "[log](a.md)",
    "bad [/closing] tag",
    "[b]bold[/b]",
    "[@click=app.quit]click[/]",
    "[[wiki]]",
    "[red]",
    "\\[escaped]",
    "[/]",
]


def paint_over(text: str) -> str:
    """What of `text` is left when frames and gutters are taken away, without white space."""
    return re.sub(r"[\s│╭╮╰╯─▌]", "", text)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    workspace = tmp_path / "notes"
    (workspace / "memory").mkdir(parents=True)
    body = "\n".join(f"## {name}\n{text}" for name, text in HOSTILE.items())
    (workspace / "MEMORY.md").write_text(f"# Hostile\n{body}\n", "utf-8")
    for i, (name, text) in enumerate(HOSTILE.items()):
        (workspace / "memory" / f"2026-03-{i + 1:02}.md").write_text(f"# {name}\n{text}\n", "utf-8")
    name = "2026-03-18-\x1b]0;owned\x07-\u202egnp.md"
    (workspace / "memory" / name).write_text("# hostile name\n\nhostile\n", "utf-8")
    (workspace / "memory" / "[b]bold[red].md").write_text("# hostile markup in a name\n\nhostile [/nope]\n", "utf-8")
    (workspace / "memory" / "latin.md").write_bytes(b"# hostile bytes\n\xff\xfe caf\xe9 hostile \x80\x9b\n")
    return workspace


def check(app: MemoryApp) -> None:
    """No strip holds a character that acts."""
    for line in lines_of(app):
        assert ACTING.search(line) is None, repr(line)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_no_hostile_byte_reaches_a_line_of_any_view(hostile: Path, size: tuple[int, int]) -> None:
    app = make_app(hostile, query="hostile \x1b]0;x\x07 \u202e")

    async def steps(pilot: Pilot[int]) -> None:
        check(app)
        await ask(pilot, "hostile")
        for _ in range(12):
            check(app)
            await press(pilot, "j")
        await press(pilot, "enter")
        check(app)
        await press(pilot, *["ctrl+d"] * 4)
        check(app)
        await press(pilot, "Y", "enter", "escape", "w", "plus")
        check(app)
        assert ACTING.search(app.clipboard.replace("\n", "")) is None
        await press(pilot, "underscore", "3")
        check(app)
        await press(pilot, "1", "g", "g")
        for _ in range(18):
            check(app)
            await press(pilot, "j")

    drive(app, steps, size)


def random_note(dice: random.Random) -> str:
    """Characters of every dangerous kind between ordinary ones."""
    kinds = [
        range(1, 0x20),
        range(0x7F, 0xA0),
        range(0x200B, 0x2010),
        range(0x2028, 0x202F),
        range(0x2060, 0x2070),
        range(0xFFF0, 0xFFFE),
        range(0xE0000, 0xE0080),
        range(0x300, 0x310),
        range(0x4E00, 0x4E20),
        range(0x41, 0x5B),
        range(0x1F600, 0x1F610),
        range(0x20, 0x30),
    ]
    return "fuzz " + "".join(chr(dice.choice(dice.choice(kinds))) for _ in range(dice.randrange(20, 400)))


@pytest.mark.parametrize("seed", range(4))
def test_random_notes_cannot_act(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    workspace = tmp_path / "notes"
    (workspace / "memory").mkdir(parents=True)
    for i in range(12):
        (workspace / "memory" / f"note-{i}.md").write_text(random_note(dice), "utf-8", newline="")
    app = make_app(workspace, query="fuzz")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "escape")
        for _ in range(12):
            check(app)
            await press(pilot, "j")
        await press(pilot, "1")
        for _ in range(12):
            check(app)
            await press(pilot, "j")

    drive(app, steps, SMALL if seed % 2 else LARGE)


def test_markup_is_shown_as_typed(tmp_path: Path) -> None:
    workspace = tmp_path / "notes"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("# markup\n" + "\n".join(MARKUP) + "\n", "utf-8")
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        shown = paint_over(text_of(app))
        for text in MARKUP:
            assert paint_over(text) in shown, text
        await ask(pilot, "markup")
        await press(pilot, "w", "plus")
        shown = paint_over(text_of(app))
        for text in MARKUP:
            assert paint_over(text) in shown, text

    drive(app, steps, (120, 60))


def test_markup_in_a_question_is_shown_as_typed(tmp_path: Path) -> None:
    workspace = tmp_path / "notes"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("# one\n\nnote\n", "utf-8")
    app = make_app(workspace, provider="none", changes=[("profile", "openclaw-2026.3")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "[/b] closing [red]")
        assert "[/b] closing [red]" in text_of(app)
        assert "No note contains" in text_of(app)

    drive(app, steps)


def test_a_note_that_is_not_utf8_says_so(hostile: Path) -> None:
    app = make_app(hostile)

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "f", *"latin", "enter")
        await settled(pilot)
        assert "are not UTF-8" in text_of(app)

    drive(app, steps)


def test_a_line_of_ten_megabytes_is_cut_and_counted() -> None:
    document = Document("MEMORY.md", "x" * 10_000_000 + "\nend", "", 0, 0, 0, False)
    page = make_page(document, [ChunkRef(1, "id", "MEMORY.md", "memory", 1, 1)])
    assert len(page.lines) == 2
    assert len(page.lines[0]) < LONGEST_LINE + 100
    assert page.lines[0].endswith("… 9,980,000 more characters in this line")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_no_hostile_byte_reaches_a_line_of_what_lies_over_the_search(
    hostile: Path, profile: str, size: tuple[int, int]
) -> None:
    app = make_app(hostile, changes=[("profile", profile), ("query.hybrid.temporalDecay.enabled", "true")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "hostile \x1b]0;x\x07 \u202e name")
        await press(pilot, "ctrl+s", "v")
        check(app)
        await press(pilot, "y", "w")
        for key in (
            *"zrzr",
            "escape",
            "escape",
            "escape",
            "c",
            "escape",
            *"gq",
            "d",
            "n",
            "escape",
            "W",
            "tab",
            "enter",
            "G",
            "escape",
            "]",
            "w",
            "escape",
            "escape",
            *"zs",
        ):
            await press(pilot, key)
            check(app)

    drive(app, steps, size)
