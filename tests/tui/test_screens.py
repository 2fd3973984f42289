"""What every view has in common: text screens, room, colours, widths, layouts; and pictures for colours."""

import re

import pytest
from rich.cells import cell_len
from textual.theme import BUILTIN_THEMES

from memory_tui.events import IndexChanged
from tests.support.tui import LARGE, NOW, QUESTION, SMALL, TINY, Window, after, make_app, sample

VIEWS = {"notes": "1", "search": "2", "status": "3", "inbox": "4", "history": "5", "agents": "6"}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The app with every view open and a question asked; read it, and leave it so."""
    with Window(make_app(sample(tmp_path_factory.mktemp("asked") / "notes"))) as window:
        window.press(*"13456").ask(QUESTION)
        yield window


@pytest.mark.parametrize("name", ["status", "inbox", "history", "agents"])
def test_the_screens_of_a_view(asked, name):
    asked.press(VIEWS[name]).matches(f"view_{name}", SMALL, LARGE)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_no_fuller_than_a_person_reads(asked, name):
    for size in (SMALL, LARGE):
        lines = asked.press(VIEWS[name]).resize(*size).lines
        assert all(cell_len(line) == size[0] for line in lines), "borders are straight"
        footer = lines[-1].strip()
        hints = asked.app.query_one("Footer").query("FooterKey")
        assert len(hints) <= 8, footer
        assert cell_len(footer) <= 64 or size == LARGE, footer
        body = "\n".join(re.sub(r"^(\W*)\d+  ", r"\1", line) for line in lines[1:-1])
        dates = re.sub(r"\d{4}-\d\d-\d\d|\d+ (?:days?|weeks?|months?|Mar|Feb|Jan|Dec|Nov|Oct)\b", "", body)
        assert len(re.findall(r"\d[\d.,:]*", dates)) <= 90
        inked = sum(not cell.isspace() for line in lines for cell in line)
        assert size == SMALL or inked <= 0.48 * size[0] * size[1], f"{inked / size[0] / size[1]:.0%} ink at {size}"


def test_every_size_has_room_for_the_cursor(asked):
    for size in (TINY, (50, 30), (20, 5), (1, 1), (200, 60), LARGE):
        for key in VIEWS.values():
            asked.press(key).resize(*size)
            assert len(asked.lines) == size[1]


@pytest.mark.parametrize("view", ["search", "notes"])
def test_a_step_lays_out_nothing(asked, layouts, view):
    asked.resize(*LARGE).press(VIEWS[view], "down")
    layouts.clear()
    asked.press("down", "up", "j")
    assert layouts == []


def test_a_letter_lays_out_nothing(asked, layouts):
    asked.resize(*LARGE).press("slash")
    layouts.clear()
    asked.press("s", "backspace", *"omada")
    counted = [*layouts]
    # The tests after this one have the app as it was, whatever was counted.
    asked.ask()
    assert counted == [], "a letter in the place of the question, none left, and a new one"


def test_what_the_engine_does_lays_out_nothing(asked, layouts):
    asked.press("2")
    layouts.clear()
    asked.app.hear(IndexChanged(NOW))
    asked.settle()
    assert layouts == []


def test_a_knob_lays_out_nothing(asked, layouts):
    asked.resize(*LARGE).press("2", "t", "down")
    layouts.clear()
    asked.press("right", "left")
    assert layouts == []
    asked.press("u", "escape")


def test_a_view_that_was_hidden_while_the_window_shrank_is_drawn_for_it(asked):
    asked.resize(*LARGE).press("1", "2").resize(*TINY).press("1")
    shown = asked.text
    assert shown == asked.resize(TINY[0], TINY[1] + 1).resize(*TINY).text
    asked.resize(*LARGE)


def test_every_theme_draws_every_view(asked):
    first = asked.app.theme
    for theme in sorted(BUILTIN_THEMES):
        asked.app.theme = theme
        asked.press("2")
        assert QUESTION in asked.text
    asked.app.theme = first
    asked.settle()


def test_without_colour_the_cursor_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        window.ask()
        for key in VIEWS.values():
            window.press(key)
            parts = [part for strip in window.strips for part in strip if part.style is not None]
            colours = {colour for part in parts for colour in (part.style.color, part.style.bgcolor)}
            assert all(colour is None or colour.is_default for colour in colours), key
            assert any(part.style.reverse and len(part.text.strip()) > 3 for part in parts), "tab or cursor"


WIDE = (
    ("memory/日本語のメモ帳-とても長い名前のファイル.md", "日本語のメモ: omada ルーター"),
    ("memory/cafe\u0301.md", "e\u0301crit: omada cafe\u0301"),
    ("memory/👩\u200d👩\u200d👧-family.md", "👩\u200d👩\u200d👧 omada ❤️ 👍🏽 1️⃣ 🇩🇪 ⚠️"),
    ("memory/한국어-노트.md", "한국어 omada 공유기"),
)


@pytest.mark.parametrize("size", [TINY, SMALL, LARGE], ids=str)
def test_borders_stay_straight_beside_wide_and_joined_characters(tmp_path, size):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    for path, text in WIDE:
        (tmp_path / "notes" / path).write_text(f"# {text}\n\n- {text}\n", "utf-8")
    with Window(make_app(tmp_path / "notes"), size) as window:
        for keys in ("1", "2", "3", "4"):
            window.ask("omada") if keys == "2" else window.press(keys)
            assert [line for line in window.lines if cell_len(line) != size[0]] == []


def test_no_note_reaches_the_terminal_as_it_is(tmp_path):
    workspace = sample(tmp_path / "notes")
    evil = "\x1b]52;c;ZXZpbA==\x07 \x9b31m \u202eevil [bold]x[/bold] [/closing] omada"
    (workspace / "memory" / "2026-03-19-a.md").write_text(f"# {evil}\n\n- {evil}\n", "utf-8")
    with Window(make_app(workspace)) as window:
        for key in (*VIEWS.values(), "2"):
            window.ask("evil omada") if key == "2" else window.press(key)
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", "".join(window.lines)), key
        assert "[bold]x[/bold]" in window.text
        assert "[/closing] omada" in window.text


ASKED = ("slash", *("space" if letter == " " else letter for letter in QUESTION), "enter")


@pytest.mark.parametrize(
    ("name", "size", "keys"),
    [
        ("notes", LARGE, ()),
        ("reader", SMALL, ("enter", "down")),
        ("search", LARGE, ASKED),
        ("status", LARGE, ("3",)),
        ("inbox", LARGE, ("4",)),
        ("help", SMALL, ("question_mark",)),
        ("knobs", LARGE, (*ASKED, "t")),
        ("phone", (50, 30), (*ASKED, "enter")),
    ],
)
def test_picture(name, size, keys, tmp_path, snap_compare):
    app = make_app(sample(tmp_path / "notes"))
    assert snap_compare(app, terminal_size=size, run_before=after(*keys)), name


def test_picture_in_light_colours(tmp_path, monkeypatch, snap_compare):
    monkeypatch.setenv("COLORFGBG", "0;15")
    assert snap_compare(make_app(sample(tmp_path / "notes")), terminal_size=LARGE, run_before=after("2"))


def test_picture_without_colours(tmp_path, monkeypatch, snap_compare):
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(make_app(sample(tmp_path / "notes")), terminal_size=SMALL, run_before=after(*ASKED))
