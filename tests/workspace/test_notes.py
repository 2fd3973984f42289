"""A note is read whole or not at all; what it says of itself: its day, week or month, its title, its annotations."""

import codecs
import datetime as dt
import hashlib
import os
import sys
import unicodedata
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_tui import jsstring
from memory_tui.errors import Unreadable
from memory_tui.inbox import DatedNote
from memory_tui.inbox.checks import InboxInputs, examine
from memory_tui.workspace.notes import (
    INVALID_PROJECT,
    ChangedWhileRead,
    NoteDate,
    date_of,
    flaws,
    note_date,
    read,
    read_annotations,
    shown_day,
    span,
    title_of,
)
from memory_tui.workspace.roots import Roots, scan
from memory_tui.workspace.scan import MAX_BYTES
from tests.support.workspace import needs_inodes, put


def only_note(workspace):
    (note,) = scan(Roots.open(workspace)).notes
    return note


def read_bytes(folder, data):
    (folder / "MEMORY.md").write_bytes(data)
    return read(only_note(folder))


@pytest.mark.parametrize(
    ("data", "text", "replaced", "nul"),
    [
        (b"", "", 0, False),
        (b"a\0b", "a\0b", 0, True),
        (b"\xff\xfe broken \xc3(", "\ufffd\ufffd broken \ufffd(", 3, False),
    ],
)
def test_any_bytes_become_text(tmp_path, data, text, replaced, nul):
    document = read_bytes(tmp_path, data)
    assert (document.text, document.replaced, document.nul) == (text, replaced, nul)
    assert document.hash == hashlib.sha256(text.encode()).hexdigest()
    assert (document.path, document.size) == ("MEMORY.md", len(data))
    assert document.mtime_ns == only_note(tmp_path).mtime_ns


def _count(error):
    assert isinstance(error, UnicodeDecodeError)
    _replaced.append(error.start)
    return "\ufffd", error.end


_replaced: list[int] = []
codecs.register_error("counting", _count)


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace") + b"\xef\xbf\xbd\xef"))
@example(b"\xef\xbf\xef\xbf\xbd")
def test_replaced_counts_what_the_decoder_replaces(tmp_path_factory, data):
    document = read_bytes(tmp_path_factory.getbasetemp(), data)
    _replaced.clear()
    assert document.text == data.decode("utf-8", "counting")
    assert document.replaced == len(_replaced)


@pytest.mark.parametrize("become", ["gone", "folder", "link", "dangling", "loop", "pipe", "folder gone", "folder link"])
@needs_inodes
def test_what_took_the_place_of_a_note_is_not_read(tmp_path, become):
    put(tmp_path, "ws/memory/sub/a.md", "out/a.md", text="secret")
    note = only_note(tmp_path / "ws")
    path = Path(note.absolute)
    path.unlink()
    match become:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(tmp_path / "out/a.md")
        case "dangling":
            path.symlink_to("nowhere")
        case "loop":
            path.symlink_to("a.md")
        case "pipe":
            os.mkfifo(path)
        case "folder gone":
            path.parent.rmdir()
        case "folder link":
            path.parent.rmdir()
            path.parent.symlink_to(tmp_path / "out")
    with pytest.raises(Unreadable) as caught:
        read(note)
    assert "memory/sub/a.md" in caught.value.message
    assert caught.value.next_step


def test_a_note_grown_past_the_limit_since_the_scan_is_not_read(tmp_path):
    put(tmp_path, "MEMORY.md")
    note = only_note(tmp_path)
    os.truncate(tmp_path / "MEMORY.md", 50 * MAX_BYTES)
    with pytest.raises(Unreadable, match="at most 33,554,432"):
        read(note)


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_note_that_is_written_to_each_time_it_is_read_is_refused(tmp_path, monkeypatch, times):
    put(tmp_path, "MEMORY.md")
    path = tmp_path / "MEMORY.md"
    note, real, left = only_note(tmp_path), os.fdopen, iter(range(times))

    def disturbed(*args, **options):
        if next(left, None) is not None:
            with path.open("a") as file:
                file.write("more\n")
        return real(*args, **options)

    monkeypatch.setattr(os, "fdopen", disturbed)
    if times == 3:
        with pytest.raises(ChangedWhileRead):
            read(note)
    assert read(note).text == "note\n" + "more\n" * times


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory/2026-01-02.md", NoteDate(date(2026, 1, 2), "name")),
        ("../notes/memory/2026-01-02.md", NoteDate(date(2026, 1, 2), "name")),
        ("memory\\2026-01-02.md", NoteDate(date(2026, 1, 2), "name")),
        ("memory/2031-12-31.md", NoteDate(date(2031, 12, 31), "name")),
        ("memory/2028-02-29.md", NoteDate(date(2028, 2, 29), "name")),
        ("memory/2026-02-30.md", NoteDate(None, "mtime")),
        ("memory/2026-13-40.md", NoteDate(None, "mtime")),
        ("memory/0026-01-02.md", NoteDate(None, "mtime")),
        ("memory/0000-01-02.md", NoteDate(None, "mtime")),
        ("memory/2026-01-02-slug.md", NoteDate(None, "evergreen")),
        ("memory/sub/2026-01-02.md", NoteDate(None, "evergreen")),
        ("memory/٢٠٢٦-01-02.md", NoteDate(None, "evergreen")),
        ("memory/2026-01-02.md\n", NoteDate(None, "evergreen")),
        ("./memory/people.md", NoteDate(None, "evergreen")),
        ("MEMORY.md", NoteDate(None, "evergreen")),
        ("memory.md", NoteDate(None, "evergreen")),
        ("docs/MEMORY.md", NoteDate(None, "mtime")),
        ("../notes/2026-01-02.md", NoteDate(None, "mtime")),
    ],
)
def test_the_date_that_ages_a_note(path, expected):
    assert note_date(path) == expected


@pytest.mark.parametrize(
    ("path", "dated"),
    [
        ("memory/2026-01-02.md", "2026-01-02"), ("memory/2026-01-02-router-swap.md", "2026-01-02"),
        ("../journal/2026-01-02 evening.md", "2026-01-02"), ("memory/x-2026-01-02.md", "2026-01-02"),
        ("memory/x_20260102.md", "2026-01-02"), ("zettel/202601021405 Pump.md", "2026-01-02"),
        ("memory/2026/01/02.md", "2026-01-02"), ("memory/2026-01/02-pump.md", "2026-01-02"),
        ("memory/2026-01-02/notes.md", "2026-01-02"), ("memory/backup-2026-02-08/2026-01-02.md", "2026-01-02"),
        ("memory/2026-01/notes-06.md", "2026-01"), ("memory/2026/01.md", "2026-01"),
        ("memory/weekly/2026-W05-review.md", "2026-W05"), ("memory/2026/KW5.md", "2026-W05"),
        ("memory/2026-W60.md", ""), ("memory/2026-02-30.md", ""), ("memory/0026-01-02.md", ""),
        ("memory/2026-01-021.md", ""), ("memory/CVE-2026-1234.md", ""), ("memory/build-12026-01-02.md", ""),
        ("memory/2026.md", ""), ("MEMORY.md", ""), ("sessions/2026-01-02.jsonl", ""),
    ],
)  # fmt: skip
def test_the_date_in_a_path(path, dated):
    assert date_of(path) == dated
    assert shown_day(path) == (date.fromisoformat(dated) if len(dated) == 10 else None)


def test_the_front_matter_dates_a_note_whose_path_names_no_day():
    text = "---\ntitle: Pump\ndate: 2026-03-07T10:00\n---\n# Pump\n"
    assert date_of("pump.md", text) == "2026-03-07"
    assert date_of("2026-03/pump.md", text) == "2026-03-07", "a day says more than its month"
    assert date_of("2026-03-01.md", text) == "2026-03-01"
    assert date_of("pump.md", "# Pump\ndate: 2026-03-07\n") == "", "a line of the text is no front matter"


@given(st.dates(date(1900, 1, 1), date(2199, 12, 31)))
def test_a_date_spans_its_days(day):
    week, month = f"{day:%G}-W{day:%V}", f"{day:%Y-%m}"
    assert span(day.isoformat()) == (day, day)
    for written in (week, month):
        assert date_of(f"notes/{written}.md") == written
        first, last = span(written)
        assert first <= day <= last
        assert (last - first).days == (6 if written == week else last.day - 1)


DAY = "memory/2026-11-18.md"


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("MEMORY.md", '---\ntitle: "Own title"\n---\n# Other\n', "Own title"),
        ("MEMORY.md", "<!-- a\n# not a heading\n-->\n# Real title\n", "Real title"),
        ("memory/a.md", "```sh\n# a comment\n```\n\n# After the program\n", "After the program"),
        ("memory/a.md", "- in a list\n  ~~~\n  # code\n  ~~~\n# Real\n", "Real"),
        ("memory/a.md", "---\nname: ferry-times\nmetadata:\n  type: reference\n---\nIt leaves at 7.\n", "ferry-times"),
        ("memory/a.md", "---\n\n# A rule is no front matter\n---\n", "A rule is no front matter"),
        ("memory/a.md", "\ufeff# **Harbour** [plan](b.md) ##\n", "Harbour plan"),
        ("memory/a.md", "**Harbour plan**\n\n- z\n", "Harbour plan"),
        ("memory/a.md", "# Note 2026-11-18\n\n## Pump\n", "Pump"),
        ("memory/a.md", "# Pump, 2026-11-18\n", "Pump, 2026-11-18"),
        ("memory/kiln.md", "# Kiln\n## State\n- [x] Hot *again*\n", "Hot again"),
        (DAY, "# 2026-11-18 (Wednesday) — Log\n\n## Session 1 — moved the pump\n", "Session 1 — moved the pump"),
        (DAY, "# Daily Log — November 18, 2026\n\n## Morning\n", "Morning"),
        (DAY, "# Mittwoch, 18. November 2026\n- Pumpe getauscht\n", "Pumpe getauscht"),
        (DAY, "# 2026年11月18日\n\n## 修了水泵\n", "修了水泵"),
        (DAY, "# 2026-11-18: the pump\n", "the pump"),
        (DAY, "# Pump moved (2026-11-18)\n", "Pump moved"),
        (DAY, "# 2026-11-18\n", ""),
        ("memory/2026-11-18-new-pump.md", "# Session: 2026-11-18 10:22:11 UTC\n- **Session Key**: a:b\n", "new pump"),
        ("memory/2026-11-18-1022.md", "# Session: 2026-11-18 10:22 UTC\n- **Source**: chat\n\nHello\n", "Hello"),
        ("memory/2026-W47-review.md", "# Week 47\n", "review"),
    ],
)
def test_a_title_is_the_first_words_that_tell(path, text, title):
    assert title_of(path, text) == title


def test_comments_that_never_close_hide_what_follows_and_are_read_once():
    assert title_of("memory/a.md", "# Open\n<!-- never closed\n" * 20_000) == "Open"
    assert title_of("memory/a.md", "<!--" * 20_000 + "\n# Hidden\n") == ""


@pytest.mark.parametrize(
    "line",
    [
        "- tea <!-- trigger: tea, oolong -->",
        "- tea <!-- trigger: tea --> <!-- importance: 10 -->   ",
        "- tea <!--IMPORTANCE : 1-->",
        "- site <!-- project: github.com/me/site; path:/home/me -->",
        "- a plain <!-- comment --> is none",
        "- triggered: nothing",
    ],
)
def test_a_good_annotation_is_no_flaw(line):
    assert flaws(f"# T\n{line}\n", "MEMORY.md") == []


@pytest.mark.parametrize(
    ("line", "path", "said"),
    [
        ("- tea <!-- trigger: tea", "MEMORY.md", "does not close on its line"),
        ("- tea <!-- trigger: tea --> and more", "MEMORY.md", "text follows it"),
        ("- tea <!-- trigger: ; , -->", "MEMORY.md", "names no phrase"),
        ("- tea <!-- importance: 11 -->", "MEMORY.md", "from 1 to 10"),
        ("- tea <!-- importance: 0 -->", "USER.md", "from 1 to 10"),
        ("- tea <!-- importance: high -->", "MEMORY.md", "from 1 to 10"),
        ("- tea <!-- importance: 5 -->", "memory/tea.md", "counts only in MEMORY.md"),
        ("- tea <!-- project: a", "memory/tea.md", "never closes, so OpenClaw never recalls"),
        ("- tea <!-- project: a;; b -->", "MEMORY.md", "a key is empty"),
        ("- tea <!-- project: a<b -->", "MEMORY.md", "a key is empty"),
        ("- tea <!-- project: a -->", "USER.md", "not read in USER.md"),
    ],
)
def test_an_annotation_without_effect_is_named_with_its_line(line, path, said):
    (found,) = flaws(f"# T\n\n{line}\n", path)
    assert found.line == 3
    assert said in found.reason


@given(st.text(alphabet="<!-> projecta;:/\n", max_size=60))
def test_an_entry_that_is_never_recalled_is_always_named(text):
    note = f"<!-- project: {text}"
    lost = read_annotations(note.split("\n"), "memory/x.md").project == INVALID_PROJECT
    assert bool([one for one in flaws(note, "memory/x.md") if "never recalls" in one.reason]) is lost


def test_the_inbox_lists_them_where_the_release_reads_annotations():
    note = DatedNote("MEMORY.md", "- tea <!-- importance: 12 -->\n", None)
    for annotated in (True, False):
        inputs = InboxInputs((note,), dt.date(2026, 11, 22), lambda _: True, annotated=annotated)
        found = [one for one in examine(inputs).suggestions if one.kind == "annotation"]
        assert [str(one.place) for one in found] == ["MEMORY.md:1"] * annotated


def test_trim_knows_the_byte_order_mark_but_not_next_line():
    assert jsstring.trim("\ufeff\u3000\u2028 a b \n\u00a0") == "a b"
    assert jsstring.trim("\x85\x1ca\x1f") == "\x85\x1ca\x1f"


def test_white_space_is_what_ecmascript_lists():
    spaces = {chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) == "Zs"}
    assert set(jsstring.WHITESPACE) == spaces | set("\t\n\v\f\r\u2028\u2029\ufeff")
