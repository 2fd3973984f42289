"""Contradictions: which lines are a pair, which are left alone, and how a person mends them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.inbox.checks import changes, rewritten
from memory_tui.inbox.contradictions import pairs
from memory_tui.inbox.entries import DatedNote, NoteItem, note_items
from memory_tui.plan import Options
from memory_tui.workspace.notes import shown_day

PLANTED = Path(__file__).with_name("contradictions")
TODAY = dt.date(2026, 11, 21)


def items(notes: dict[str, str]) -> list[NoteItem]:
    return [item for path, text in notes.items() for item in note_items(DatedNote(path, text, shown_day(path)))]


def shown(notes: dict[str, str]) -> list[tuple[str, str, str]]:
    """Subject and both values of each pair."""
    return [(older.subject, older.value, newer.value) for older, newer, _ in pairs(items(notes), TODAY)]


def test_four_of_five_that_are_shown_are_worth_a_look() -> None:
    notes = {path.relative_to(PLANTED).as_posix(): path.read_text("utf-8") for path in PLANTED.rglob("*.md")}
    found = {
        (f"{older.item.note.path}:{older.item.first}", f"{newer.item.note.path}:{newer.item.first}")
        for older, newer, _ in pairs(items(notes), TODAY)
    }
    worth = {tuple(pair) for pair in json.loads((PLANTED / "labels.json").read_text("utf-8"))["planted"]}
    assert len(found & worth) / len(found) >= 0.8
    assert len(found & worth) / len(worth) >= 0.8


@pytest.mark.parametrize(
    ("lasting", "log", "values"),
    [
        ("- Lead: Priya", "- Lead: Marcus", ("lead", "Priya", "Marcus")),
        (
            "- **Lead**: Priya Raman, payments",
            "- lead: Marcus Boyle since today.",
            ("lead", "Priya Raman", "Marcus Boyle"),
        ),
        ("- `ttl` = 3600", "- Decision: `ttl` = 900", ("ttl", "3600", "900")),
        ("- The wiki is on heron.", "- The wiki is now on otter.", ("wiki", "heron", "otter")),
        ("- Stand-up: 09:30", "- Stand-up moved from 09:30 to 09:45", ("stand-up", "09:30", "09:45")),
        ("- 负责人：王芳", "- 负责人：李娜", ("负责人", "王芳", "李娜")),
        ("- NAS: 10.0.0.8", "- NAS: 10.0.0.9", ("nas", "10.0.0.8", "10.0.0.9")),
    ],
)
def test_a_newer_log_contradicts_a_lasting_note(lasting: str, log: str, values: tuple[str, str, str]) -> None:
    assert shown({"MEMORY.md": f"{lasting}\n", "memory/2026-11-12.md": f"{log}\n"}) == [values]
    assert shown({"MEMORY.md": f"{lasting}\n", "memory/2026-05-12.md": f"{log}\n"}) == [], "that is history"
    assert shown({"MEMORY.md": f"{lasting}\n", "memory/2026-12-12.md": f"{log}\n"}) == [], "that is no day yet"


@pytest.mark.parametrize(
    ("lasting", "log"),
    [
        ("- Lead: Priya Raman", "- Lead: Priya"),
        ("- Lead: Marcus since 2026-11-15", "- Lead: Priya"),
        ("- Lead: Marcus (before that Priya)", "- Lead: Priya"),
        ("- Lead: Priya", "- Lead: maybe Marcus?"),
        ("- Lead: Priya", "- Lead: Marcus was away all day"),
        ("- Lunch: Soup", "- Lunch: Bread"),
        ("- Boiler: 1.4 bar", "- Boiler: 1.2 bar"),
        ("- Channel: 6", "- Channel moved from 1 to 11"),
        ("  - Lead: Priya", "- Lead: Marcus"),
        ("- Lead: Priya", "- Lead: Marcus\n\n- Lead: Anna\n- Lead: Bob\n- Lead: Eve"),
        ("```\nLead: Priya\n```", "- Lead: Marcus"),
    ],
)
def test_what_is_no_contradiction(lasting: str, log: str) -> None:
    assert shown({"MEMORY.md": f"{lasting}\n", "memory/2026-11-12.md": f"{log}\n"}) == []


def test_the_newest_log_counts_and_logs_alone_where_no_lasting_note_speaks() -> None:
    notes = {"memory/2026-11-01.md": "- Lead: Priya\n", "memory/2026-11-10.md": "- Lead: Marcus\n"}
    assert shown(notes) == [("lead", "Priya", "Marcus")]
    assert shown({**notes, "MEMORY.md": "- Lead: Marcus\n"}) == []
    assert shown({**notes, "MEMORY.md": "- Lead: Priya\n"}) == [("lead", "Priya", "Marcus")]
    talk = {
        "memory/2026-11-01.md": "- John: Hello, you there\n",
        "memory/2026-11-10.md": "- John: Goodbye, all of you\n",
    }
    assert shown(talk) == []


def test_two_lasting_notes_disagree_unless_they_are_of_two_things() -> None:
    assert shown({"MEMORY.md": "- Router: Archer\n", "memory/net.md": "- Router: Omada\n"}) == [
        ("router", "Archer", "Omada")
    ]
    assert shown({"memory/anna.md": "- Doctor: Wu\n", "memory/bob.md": "- Doctor: Lind\n"}) == []
    assert shown({"MEMORY.md": "## A\n- Owner: Wu\n## B\n- Owner: Lind\n"}) == []


def test_the_older_line_is_mended_or_gives_way_and_undo_brings_it_back(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("# Facts\n\n- Lead: Priya\n- Tea at four\n")
    (tmp_path / "memory/2026-11-12.md").write_text("- Lead: Marcus\n")
    now = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC).timestamp()
    with Engine.open(Options(str(tmp_path), index=str(tmp_path / "i.sqlite"), provider="none", now=now)) as engine:
        [one] = [one for one in engine.notes.examine() if one.kind == "stale fact"]
        assert one.reason == "“lead” is Priya here, and Marcus in memory/2026-11-12.md:1, of 2026-11-12."
        curator = engine.notes.curator
        curator.apply(rewritten(one, "- Lead: Marcus", curator))
        assert not [one for one in engine.notes.examine() if one.kind == "stale fact"]
        curator.undo()
        [again] = [one for one in engine.notes.examine() if one.kind == "stale fact"]
        curator.apply(changes([again], "merge", curator))
        assert (tmp_path / "MEMORY.md").read_text() == "# Facts\n\n- Tea at four\n"
        assert (tmp_path / "memory/2026-11-12.md").read_text() == "- Lead: Marcus\n"
