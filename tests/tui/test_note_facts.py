"""What is said of notes and their changes, without an app."""

import datetime as dt
import json
import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui import recall_log
from memory_tui.engine.engine import Engine
from memory_tui.engine.notes import FileRow
from memory_tui.notes import budget
from memory_tui.notes.changes import Change, FileChange, merge
from memory_tui.notes.journal import OTHERS, Author, JournalEntry, RecordedNote
from memory_tui.notes.links import NoteLink, NoteLinks
from memory_tui.plan import Options
from memory_tui.recall_log import LoggedHit, RecallEntry
from memory_tui.tui import note_facts
from memory_tui.tui.changes import conflict_rows, resolved
from memory_tui.tui.editor import command, restored, visible
from memory_tui.tui.reader import NotePage, runs
from memory_tui.tui.views.history import Run, joined, versions
from tests.support.transcripts import claude, claude_file, claude_said
from tests.support.tui import NOW, TODAY

LINES = st.lists(
    st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=8), max_size=12
)


def row(path, *, title="", state="fresh", detail="", source="memory"):
    name = path.rpartition("/")[2][:10]
    day = dt.date.fromisoformat(name) if name[:4].isdigit() else None
    return FileRow(path, source, state, detail, 1, 100, 0.0, day, "", title)


def test_one_rule_says_how_often_a_note_was_recalled_or_since_when_never(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace, now = engine.plan.roots.workspace, engine.plan.clock()
    log, hit = recall_log.recall_log_path(workspace), LoggedHit("often.md", 1, 2, 0.5, 0.5, 0.5)
    for day in range(20, 0, -1):
        at, hits = now - day * 86_400.0, (hit,) if day < 6 else ()
        recall_log.append_recall(log, RecallEntry("memory_search", "router", at, hits=hits))
    result = {"results": [{"path": "idle.md", "startLine": 1, "endLine": 2, "snippet": "the kiln fires at dawn"}]}
    lines = [claude_said("user", "kiln?", now - 900.0, cwd=str(workspace))]
    for number in range(5):
        lines += claude(
            f"c{number}",
            "mcp__memory__memory_search",
            {"query": "kiln"},
            now - 800.0 + number,
            text=json.dumps(result),
            cwd=str(workspace),
        )
    os.utime(claude_file(tmp_path, lines), (now - 900.0, now - 900.0))
    use = note_facts.recall_uses(engine)
    since, day = dt.date.fromtimestamp(now - 20 * 86_400.0), dt.date.fromtimestamp(now - 3 * 86_400.0)
    assert [use(f"{name}.md", None) for name in ("often", "idle", "other")] == [
        "recalled 5 times, often",
        "recalled 5 times, unused",
        f"never recalled since {since}",
    ]
    assert use("other.md", day) == f"never recalled since {day}"
    file, words = row("idle.md", title="Kiln"), use("idle.md", None)
    assert note_facts.matches(file, "unused kiln", words)
    assert not note_facts.matches(file, "often", words)
    assert not note_facts.matches(file, "5", words), "how often is no day"


def test_the_curated_note_comes_first_then_topics_then_days_from_the_newest_then_sessions():
    paths = [
        "memory/2026-03-01.md",
        "memory/b.md",
        "sessions/s.jsonl",
        "MEMORY.md",
        "memory/2026-03-02.md",
        "memory/a.md",
    ]
    files = [row(path, source="sessions" if path.startswith("sessions") else "memory") for path in paths]
    listed = [file.path for file in note_facts.ordered(files)]
    assert listed == [
        "MEMORY.md",
        "memory/a.md",
        "memory/b.md",
        "memory/2026-03-02.md",
        "memory/2026-03-01.md",
        "sessions/s.jsonl",
    ]


def test_a_row_has_state_day_and_title_once():
    rows = [
        (row("memory/2026-03-05.md", title="Router day"), "   5 Mar  Router day"),
        (row("memory/2024-03-05.md", title="Router day"), "   5 Mar 24  Router day"),
        (row("memory/2026-03-05-router.md", title="Router day"), "   5 Mar  Router day"),
        (row("memory/2026-03-05-kiln.md", title="Router day"), "   5 Mar kiln  Router day"),
        (row("memory/archive/2026-03-05.md", title="Router day"), "   5 Mar archive  Router day"),
        (row("memory/2026/03/2026-03-05.md", title="Router day"), "   5 Mar  Router day"),
        (row("MEMORY.md", title="MEMORY.md"), "  MEMORY.md"),
        (row("MEMORY.md", title="MEMORY.md - Kit's memory"), "  MEMORY.md  Kit's memory"),
        (row("memory/network.md", title="Network"), "  network.md"),
        (row("memory/network.md", title="Home", state="pending", detail="new"), "+ network.md  Home"),
        (row("memory/network.md", title="Home", state="pending", detail="changed"), "~ network.md  Home"),
        (row("memory/network.md", title="Home", state="failed", detail="too large"), "! network.md  Home"),
        (row("memory/network.md", title="\x1b[31mred"), "  network.md  ␛[31mred"),
    ]
    assert [note_facts.list_row(file, TODAY, 60).plain for file, _ in rows] == [words for _, words in rows]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (30, "  …/graduation-candidates.md"),
        (34, "  archive/graduation-candidates.md"),
        (20, "  …/graduation-cand…"),
        (26, "  …/graduation-candidates"),
    ],
)
def test_a_name_that_fills_its_row_keeps_its_ending_whole_or_loses_it(width, shown):
    file = row("memory/archive/graduation-candidates.md", title="Candidates for graduation")
    assert note_facts.list_row(file, TODAY, width).plain == shown


@given(st.text(max_size=60), st.integers(5, 40))
def test_a_row_fits_its_list(title, width):
    assert note_facts.list_row(row("memory/2026-03-05.md", title=title), TODAY, width).cell_length <= width


def test_a_filter_looks_for_every_word_in_path_day_and_title():
    file, fits = row("memory/2026-03-05.md", title="Router day"), {"": True, "5 mar": True, "03-05 ROUTER": True}
    fits["3 mar"] = False
    assert {letters: note_facts.matches(file, letters) for letters in fits} == fits


@given(LINES, st.integers(1, 12), st.integers(10, 60))
def test_a_part_of_a_long_note_holds_its_line_and_whole_lines(lines, line, most):
    text = "\n".join(lines)
    first, part = note_facts.window(text, line, most)
    shown = part.split("\n")
    assert len(part) <= most or len(shown) == 1
    assert lines[first - 1 : first - 1 + len(shown)] == shown or not lines
    assert first <= max(1, min(line, len(lines)))
    assert min(line, len(lines) or 1) <= first + len(shown) - 1


@given(LINES, LINES, st.integers(0, 11))
def test_the_cursor_stays_on_its_line_when_lines_come_above_or_below(lines, more, at):
    lines = lines or [""]
    at = min(at, len(lines) - 1)
    before = NotePage("a.md", "\n".join(lines))
    if len(more) != 0:
        above = note_facts.line_after(before, NotePage("a.md", "\n".join([*more, *lines])), at + 1)
        assert [*more, *lines][above - 1] == lines[at]
    below = note_facts.line_after(before, NotePage("a.md", "\n".join([*lines, *more])), at + 1)
    assert below == at + 1


def test_a_size_has_two_digits():
    words = {840: "840 B", 3_930: "3.9 KB", 51_200: "51 KB", 2_569_000: "2.6 MB"}
    assert {size: note_facts.size_words(size) for size in words} == words


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=6), st.integers(8, 60))
def test_the_strip_keeps_its_first_part_and_fits(parts, width):
    strip = note_facts.strip([(words, "") for words in parts], width)
    assert strip.cell_length <= width
    whole = note_facts.strip([(parts[0], "")], 1_000).plain
    assert strip.plain.startswith(whole[: min(4, width - 2)])


def test_links_count_a_note_once():
    back = [NoteLink("memory/log.md", line, 0, 1, "citation", "x", "a.md", 0) for line in (3, 9, 12)]
    out = [NoteLink("a.md", 1, 0, 1, "wiki", "network", "memory/network.md", 0)]
    out.append(NoteLink("a.md", 2, 0, 1, "wiki", "nowhere", "", 0))
    assert note_facts.link_rows(NoteLinks(tuple(out), tuple(back))) == [
        ("memory/network.md:1", "→ memory/network.md"),
        ("a.md:2", "✗ line 2: no note is at nowhere"),
        ("memory/log.md:3", "← memory/log.md  3 times"),
    ]


@pytest.fixture
def engine(tmp_path):
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    opened = Engine.open(Options(workspace=str(notes), index=str(tmp_path / "index"), provider="none", now=NOW))
    yield opened
    opened.close()


@pytest.mark.parametrize(("hours", "words"), [(13, "today"), (40, "1 day"), (60, "2 days")])
def test_a_transcript_has_the_age_that_a_search_counts_in_every_zone(engine, hours, words):
    file = FileRow("sessions/s.jsonl", "sessions", "fresh", "", 1, 100, NOW - hours * 3_600, None, "", "")
    assert note_facts.age(engine.plan, file) == words


@pytest.mark.parametrize("size", [19_000, 21_000, 51_000])
def test_the_band_is_what_the_host_cuts_out(engine, size):
    text = "".join(f"- fact {number} of many that are worth knowing\n" for number in range(2_000))[:size]
    (engine.plan.roots.workspace / "MEMORY.md").write_text(text)
    page = note_facts.page(engine, "MEMORY.md")
    cut = budget.measure(text.encode(), engine.notes.curator.plan.hosts[0]).cut
    if cut is None:
        assert not page.unread
        assert not page.rulers
    else:
        # The line in which a cut falls is read in part.
        assert page.unread == range(cut.line + (cut.column > 1), cut.until_line)
        words = f"OpenClaw skips lines {page.unread.start}-{page.unread.stop - 1}, Claude 201 on"
        assert page.parts[0][0] == words
        assert len(words) < 46, "at 80x24 it is not cut"
        # Neither end of the cut is the end of a line here.
        assert page.rulers == {
            page.unread.start: f"OpenClaw stops in line {cut.line}",
            page.unread.stop: f"OpenClaw reads on in line {cut.until_line}",
        }


def test_the_first_steps_name_two_keys_for_each_host(engine, monkeypatch, tmp_path):
    words = note_facts.first_steps(engine.plan).plain
    assert "Connect an agent" in words
    assert " a " in words
    assert " 6 " in words
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "codex" / "memories"
    folder.mkdir(parents=True)
    with_codex = Engine.open(Options(workspace=str(folder), index=str(tmp_path / "codex.index"), provider="none"))
    try:
        assert "memory of Codex" in note_facts.first_steps(with_codex.plan).plain
    finally:
        with_codex.close()


def test_a_difference_names_the_note_once_and_marks_lines():
    change = Change(
        "edit", "Edit a.md", (FileChange("a.md", b"one\ntwo\n", b"one\n\x1bthree\n"),), ("Trust: it goes.",)
    )
    assert note_facts.difference(change).plain.split("\n") == [
        "Trust: it goes.",
        "a.md",
        "   1   one",
        "   2 - two",
        "   2 + ␛three",
    ]
    wide = Change("edit", "Edit a.md", (FileChange("a.md", b"", b"words " * 8 + b"words\n"),))
    assert note_facts.difference(wide, 40).plain.split("\n")[1:3] == [
        f"   1 + {'words ' * 4}words",
        f"       {'words ' * 3}words",
    ]


def test_a_new_note_and_one_that_goes_have_their_name():
    files = (FileChange("new.md", None, b"x\n"), FileChange("old.md", b"y\n", None))
    lines = note_facts.difference(Change("edit", "t", files)).plain.split("\n")
    assert lines == ["old.md goes", "   1 - y", "new.md", "   1 + x"]


def test_each_side_of_a_conflict_can_be_taken():
    merged = merge(b"a\nb\nc\n", b"a\nmine\nc\n", b"a\ntheirs\nc\nnew\n")
    assert resolved(merged.hunks, ["mine"]) == b"a\nmine\nc\nnew\n"
    assert resolved(merged.hunks, ["theirs"]) == b"a\ntheirs\nc\nnew\n"
    assert resolved(merged.hunks, ["both"]) == b"a\ntheirs\nmine\nc\nnew\n"
    rows = [str(option.prompt) for option in conflict_rows(merged.hunks, ["mine"])]
    assert rows == ["Place 1  [mine]   theirs    both ", "  before b", "  mine   mine", "  theirs theirs"]


@given(st.text(max_size=80))
def test_what_was_not_touched_in_the_editor_stays_as_it_is(text):
    text = text.replace("\r", "")
    assert restored(text, visible(text)) == text
    assert restored(text, visible(text) + "\nmore") == text + "\nmore"


def test_an_editor_opens_at_the_line():
    words = {
        "vim": ["vim", "+7", "a.md"],
        "code -n": ["code", "-n", "--wait", "--goto", "a.md:7"],
        "hx": ["hx", "a.md:7"],
        "zed": ["zed", "--wait", "a.md:7"],
        "notepad.exe": ["notepad.exe", "a.md"],
        "'broken": ["'broken", "+7", "a.md"],
        "": ["vi", "+7", "a.md"],
    }
    assert {editor: command("a.md", 7, {"EDITOR": editor}) for editor in words} == words


def test_the_exact_text_of_before_is_the_first_choice():
    entry = JournalEntry(12, 0.0, "done", "edit", "Edit a.md", (RecordedNote("a.md", "x", "y"),))
    assert versions(entry, "") == [("a.md", "a.md exactly as it was before this")]
    made = JournalEntry(13, 0.0, "done", "new", "New note b.md", (RecordedNote("b.md", None, "x"),))
    assert versions(made, "") == [("b.md", "b.md goes, for it was not there before this")]


def test_a_busy_writer_is_one_row_whose_text_of_before_is_that_of_its_first_change():
    def by(host, at, path, before, after):
        return JournalEntry(
            at, 60.0 * at, "done", OTHERS, "t", (RecordedNote(path, before, after),), author=Author(host, "", "")
        )

    mine = JournalEntry(9, 540.0, "done", "edit", "Edit a.md", (RecordedNote("a.md", "u", "v"),))
    busy = [by("Codex", at, "a.md", str(at), str(at + 1)) for at in (8, 7, 6)]
    two = [by("Codex", 5, "b.md", "x", "y"), by("somebody", 4, "b.md", "w", "x")]
    own, run, *others = joined([mine, *busy, *two])
    assert (own, others) == (mine, two)
    assert isinstance(run, Run)
    assert run.parts == tuple(busy)
    assert run.files == (RecordedNote("a.md", "6", "9"),)
    assert run.title.startswith("Codex changed a.md 3 times since ")


@given(st.sets(st.integers(1, 30)))
def test_runs_hold_every_line_once(lines):
    spans = runs(lines)
    assert [line for first, last in spans for line in range(first, last + 1)] == sorted(lines)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(spans))
