"""What each change of notes makes of their bytes."""

import datetime as dt
import difflib
import os
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.errors import EditRefused
from memory_tui.notes import edit, promote
from memory_tui.notes.changes import (
    Change,
    FileChange,
    Lines,
    ShownLines,
    block_at,
    diff_lines,
    diff_text,
    edited,
    editor_text,
    sections,
)
from memory_tui.notes.promote import Spot
from tests.support.curate import curator, workspace

NOW = dt.datetime(2026, 1, 12, 14, 5)
LOG = b"# 2026-01-11 (Sunday)\n\n- 09:00 bread\n"
PIECE = st.one_of(st.binary(max_size=5), st.sampled_from([b"- a", b"# h", b"\xff", b"\xe9t\xe9", "日本".encode(), b""]))
NOTE = (
    st.tuples(
        st.sampled_from([b"", b"\xef\xbb\xbf"]),
        st.lists(
            st.tuples(PIECE.map(lambda data: data.replace(b"\n", b"")), st.sampled_from([b"\n", b"\r\n"])), max_size=7
        ),
        PIECE.map(lambda data: data.replace(b"\n", b"")),
    )
    .map(lambda parts: parts[0] + b"".join(line + end for line, end in parts[1]) + parts[2])
    .filter(lambda data: not data.startswith((b"\xff\xfe", b"\xfe\xff")))
)


def after(change, path=""):
    return next(file.after for file in change.files if path in ("", file.path))


@given(NOTE)
def test_lines_and_editor_give_back_every_byte(data):
    assert Lines.of(data).data == data
    assert edited(data, editor_text(data)) == data


@given(NOTE, st.data())
def test_an_edited_line_leaves_all_others_as_they_were(data, draw):
    lines = editor_text(data).split("\n")
    at = draw.draw(st.integers(0, len(lines) - 1))
    new = edited(data, "\n".join([*lines[:at], *([lines[at] + "+x"]), *lines[at + 1 :]]))
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    old_lines, new_lines = data[len(bom) :].split(b"\n"), new[len(bom) :].split(b"\n")
    assert new.startswith(bom)
    assert len(new_lines) == len(old_lines)
    assert [i for i, (a, b) in enumerate(zip(old_lines, new_lines, strict=True)) if a != b] == [at]


def test_what_an_editor_takes_for_a_line_end_is_not_shown_as_one():
    data = "a\rb\x0bc\x85d\u2028e\x1b[0m\r\r\n".encode()
    assert len(editor_text(data).splitlines()) == 1
    assert edited(data, editor_text(data).replace("c", "C")) == data.replace(b"c", b"C")
    # Without a line feed a carriage return ends nothing, not even the note.
    assert edited(b"a\r", "a\ufffdx") == b"a\rx"


def test_bytes_that_are_not_utf8_stay_in_a_changed_line():
    data = b"caf\xe9 one\r\nna\xefve\n"
    assert editor_text(data) == "caf\ufffd one\nna\ufffdve\n"
    assert edited(data, "caf\ufffd two\nna\ufffdve\nnew\n") == b"caf\xe9 two\r\nna\xefve\nnew\n"


def test_utf16_is_refused():
    with pytest.raises(EditRefused, match="UTF-16"):
        editor_text("hello".encode("utf-16"))


def test_a_block_is_an_item_with_what_is_below_it_or_a_paragraph():
    texts = ["# A", "para", "goes on", "- one", "  more", "  - deep", "- two", "", "last"]
    assert [block_at(texts, n) for n in range(1, 10)] == [
        (1, 1), (2, 3), (2, 3), (4, 6), (4, 6), (6, 6), (7, 7), (8, 8), (9, 9),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "log", "made"),
    [
        ("milk", None, b"# 2026-01-12\n\n- 14:05 milk\n"),
        ("milk", b"", b"# 2026-01-12\n\n- 14:05 milk\n"),
        ("milk", LOG, LOG + b"- 14:05 milk\n"),
        ("milk", b"* **08:00** - x\r\n", b"* **08:00** - x\r\n* **14:05** - milk\r\n"),
        ("milk", b"+ x\n", b"+ x\n+ 14:05 milk\n"),
        ("a\nb\n\nc", b"- x\n", b"- x\n- 14:05 a\n  b\n\n  c\n"),
        ("milk", b"# day\n", b"# day\n\n- 14:05 milk\n"),
        ("milk", b"words", b"words\n\n- 14:05 milk\n"),
        ("milk", b"- x\n  more", b"- x\n  more\n- 14:05 milk\n"),
        ("milk", b"- x\n\n", b"- x\n\n- 14:05 milk\n"),
        ("- milk", b"- x\n", b"- x\n- 14:05 milk\n"),
        ("2024. was dry", b"- x\n", b"- x\n- 14:05 2024. was dry\n"),
        ("-5 degrees", b"- x\n", b"- x\n- 14:05 -5 degrees\n"),
    ],
)
def test_an_entry_is_written_as_the_others_are(text, log, made):
    assert after(edit.capture(text, NOW, log)) == made


@pytest.mark.parametrize("text", [" \n\t", "- "])
def test_nothing_is_nothing_to_remember(text):
    with pytest.raises(EditRefused, match="nothing to remember"):
        edit.capture(text, NOW, LOG)


def test_a_topic_has_a_path_in_any_script():
    assert edit.topic_path("Home Network!") == "memory/home-network.md"
    assert edit.topic_path("../读书 笔记") == "memory/读书-笔记.md"
    with pytest.raises(EditRefused):
        edit.topic_path("../..")


MEMORY = b"""# Memory

## Family
- Theo is allergic to cashew nuts.

## Home network
- Router: Omada ER605, admin VLAN 10.
- Access points are in the hall.

## Notes
- Misc.
"""
DAY = "memory/2026-01-12.md"


def spot(data, first, last=None):
    return Spot(DAY, data, first, last or first)


@pytest.mark.parametrize(
    ("data", "to", "into", "part"),
    [
        (
            b"- 09:12 The guest VLAN of the Omada router is 30\n",
            "",
            MEMORY,
            "hall.\n- The guest VLAN of the Omada router is 30 @\n\n## No",
        ),
        (b"- Quarterly zebra\n", "", MEMORY, "- Misc.\n- Quarterly zebra @\n"),
        (b"- zebra\n", "", MEMORY[: MEMORY.index(b"\n## Notes")], "hall.\n\n## Notes\n- zebra @\n"),
        (b"- zebra\n", "family", MEMORY, "nuts.\n- zebra @"),
        (b"- zebra\n", "network", MEMORY, "hall.\n- zebra @"),
        (b"- zebra\n", "## Animals", MEMORY, "- Misc.\n\n## Animals\n- zebra @\n"),
        (b"* 09:00 one\n  more\n    - deep\n* two\n", "home", MEMORY, "hall.\n- one @\n  more\n    - deep\n- two @\n"),
        (b"- one\n", "", None, "# MEMORY\n- one @\n"),
        (b"one\ntwo\n", "", b"", "- one @\n  two\n"),
    ],
)
def test_a_line_goes_below_the_heading_that_is_named_or_shares_its_words(data, to, into, part):
    change = promote.promote(Spot(DAY, data, 1, data.count(b"\n")), "MEMORY.md", into, to=to)
    assert part.replace("@", f"(from {DAY})") in after(change, "MEMORY.md").decode()
    assert len(change.files) == 1
    new = set(re.findall(b"^## (.*)$", after(change) or b"", re.MULTILINE)) - set(re.findall(b"## (.*)", into or b""))
    assert change.notes == tuple(f"The heading {title.decode()} is new." for title in new)


def test_of_equal_headings_the_one_that_fits_is_meant():
    into = b"# M\n\n## Books\n- zebra tales\n\n## books\n- camper repair guide\n"
    change = promote.promote(spot(b"- a guide to the camper\n", 1), "MEMORY.md", into, to="Books")
    assert after(change, "MEMORY.md").startswith(into[:-1] + b"\n- a guide to the camper")


def test_moving_takes_the_lines_away_and_keeps_line_ends():
    into = MEMORY.replace(b"\n", b"\r\n")
    change = promote.promote(spot(b"# x\r\n- one\r\n- two", 3), "MEMORY.md", into, to="Family", move=True)
    assert [file.path for file in change.files] == ["MEMORY.md", DAY]
    assert after(change, DAY) == b"# x\r\n- one"
    assert b"nuts.\r\n- two (from memory/2026-01-12.md)\r\n\r\n" in after(change, "MEMORY.md")


def test_headings_and_blank_lines_are_not_promoted_and_a_copy_or_move_loses_nothing():
    data = b"# 2026-01-12\n\n## Home\n\n- one\n\n## Work\nplain\n```\n# a comment\n```\n\n## Empty\n"
    copied = promote.promote(spot(data, 1, 13), "MEMORY.md", b"")
    assert after(copied).startswith(b"- one (from memory/2026-01-12.md)\n- plain (from memory/2026-01-12.md)\n")
    assert b"a comment" in after(copied), "what only looks like a heading is kept"
    moved = promote.promote(spot(data, 1, 5), "MEMORY.md", b"", move=True)
    assert after(moved, DAY).startswith(b"# 2026-01-12\n")
    assert b"one" not in after(moved, DAY)
    assert b"## Work\nplain\n" in after(moved, DAY)
    assert moved.notes == ("Nothing is left below the heading Home, so it goes too.",)
    with pytest.raises(EditRefused, match="blank"):
        spot(data, 2, 2).facts()


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 3), (3, 3)])
def test_headings_alone_are_not_promoted(first, last):
    with pytest.raises(EditRefused, match="A heading alone cannot be promoted"):
        promote.promote(spot(b"# 2026-01-12\n\n## Home\n- one\n", first, last), "MEMORY.md", MEMORY)


FENCE = "```\n# x\n\ny\n```\n\n"
A_TO_D, D = f"## A\na\n\n## P\nown\n\n### B\n- b\n\n### C\nc\n\n{FENCE}", "## D\n- d\n- e\n- f\n"
LONG = f"# M\n\n{A_TO_D}{D}"


@pytest.mark.parametrize(
    ("first", "last", "left", "gone"),
    [
        # The parent stays, and is repeated; a section goes whole where most is not more than what is to go.
        (
            10,
            13,
            "## A\na\n\n## P\nown\n\n## D\n- d\n- e\n- f\n",
            "## P\n\n" + LONG[LONG.index("### B") : LONG.index("\n\n## D")],
        ),
        (4, 6, LONG[LONG.index("## D") :], LONG[LONG.index("## A") : LONG.index("\n\n## D")]),
        # Part of a larger one goes below its heading; a fence goes whole.
        (16, 18, LONG[LONG.index("## A") :].replace(FENCE, ""), "## P\n\n### C\n\n" + FENCE.strip()),
        (22, 22, LONG[LONG.index("## A") :].replace("- d\n", ""), "## D\n\n- d"),
    ],
)
def test_sections_move_whole_and_as_they_are(first, last, left, gone):
    change = promote.demote(Spot("MEMORY.md", LONG.encode(), first, last), "memory/x.md", b"# X\n")
    assert after(change, "MEMORY.md").decode() == "# M\n\n" + left
    assert after(change, "memory/x.md").decode().rstrip() == f"# X\n\n{gone}"
    assert diff_text(change).startswith("--- memory/x.md"), "no note is new"
    assert change.notes[0].startswith("Lines ")


@given(st.lists(st.sampled_from(["# a", "## b", "### c", "- d", "e", "", "```", "  f"]), min_size=1), st.data())
def test_a_line_that_moves_keeps_its_headings(texts, data):
    def owned(lines):
        above, rows = {0: []}, []
        parts = {part.line: part for part in sections(lines)[1:]}
        for number, line in enumerate(lines, 1):
            if part := parts.get(number):
                above = {level: title for level, title in above.items() if level < part.level} | {part.level: line}
            elif line.strip():
                rows.append((tuple(above[level] for level in sorted(above) if level > 1), line))
        return Counter(rows)

    texts = [*texts, "- z"]
    first = data.draw(st.integers(1, len(texts)))
    note = "\n".join(texts).encode()
    change = promote.demote(Spot("m.md", note, first, data.draw(st.integers(first, len(texts)))), "x.md", b"")
    moved, left = (after(change, path).decode().split("\n") for path in ("x.md", "m.md"))
    assert owned(moved) + owned(left) == owned(texts)


def test_deleting_closes_the_gap_and_counts_a_line_once(tmp_path):
    plan = curator(workspace(tmp_path / "notes")).plan
    data = b"a\n\nb\n\nc\nd\n"
    assert after(plan.delete_lines([Spot("x.md", data, 3, 3)])) == b"a\n\nc\nd\n"
    assert after(plan.delete_lines([Spot("x.md", data, 5, 6), Spot("x.md", data, 6, 6), Spot("x.md", data, 1, 1)])) == (
        b"b\n\n"
    )


def test_only_old_daily_logs_are_archived_and_none_twice(tmp_path):
    folder = workspace(tmp_path / "notes")
    one = curator(folder, clock=lambda: dt.datetime(2025, 4, 1, 12, tzinfo=dt.UTC).timestamp(), zone=dt.UTC)
    (folder / "memory" / "archive" / "memory").mkdir(parents=True)
    for name in ("2025-01-01", "2025-02-01", "2025-03-01", "topic", "archive/memory/2025-01-01"):
        (folder / f"memory/{name}.md").write_bytes(name.encode())
        os.utime(folder / f"memory/{name}.md", ns=(7, 7))
    change = one.plan.archive(40)
    assert [(f.path, f.before, f.after, f.mtime_ns) for f in change.files] == [
        ("memory/archive/memory/2025-02-01.md", None, b"2025-02-01", 7),
        ("memory/2025-02-01.md", b"2025-02-01", None, 0),
    ]
    assert "is there already" in change.notes[0]
    with pytest.raises(EditRefused, match="older than 99"):
        one.plan.archive(99)


HEADINGS = {"T": "# T", "A": "## A", "B": "## B", "C": "### C", "D": "#### D"}
TEXTS = st.lists(st.sampled_from([*HEADINGS.values(), "- a", "b", "", "```", "#in code"]), max_size=14)


def visible(texts):
    return Counter(text for text in texts if text.strip())


def left(text, *gone, kept=()):
    return promote.without(Lines.of(text.encode()), gone, kept)[0].data.decode()


@pytest.mark.parametrize(
    ("text", "gone", "wanted"),
    [
        ("# T\n\n## A\n- a\n\n## B\n- b\n", (4,), "# T\n\n## B\n- b\n"),
        ("# T\n\n## A\n\n- a\n\n## B\n- b\n", (5,), "# T\n\n## B\n- b\n"),
        ("# T\n\n- t\n\n## A\n- a\n", (6,), "# T\n\n- t\n"),
        ("# T\n\n- t\n\n## A\n- a", (6,), "# T\n\n- t"),
        ("# T\r\n\r\n- t\r\n\r\n## A\r\n- a\r\n", (6,), "# T\r\n\r\n- t\r\n"),
        ("# T\n## A\n### C\n- a\n## B\n- b\n", (4,), "# T\n## B\n- b\n"),
        ("# T\n## A\n- own\n### C\n- a\n", (5,), "# T\n## A\n- own\n"),
        ("# T\n## A\n- own\n### C\n- a\n", (3,), "# T\n## A\n### C\n- a\n"),
        ("# T\n- a\n", (2,), "# T\n"),
        ("## T\n- a\n### B\n- b\n", (2, 4), "## T\n"),
    ],
)
def test_a_heading_goes_with_the_last_line_below_it_and_titles_and_what_was_empty_stay(text, gone, wanted):
    assert left(text, *gone) == wanted


@given(TEXTS, st.data())
def test_only_headings_without_anything_below_go(texts, data):
    note = Lines.of("".join(f"{text}\n" for text in texts).encode())
    gone = set(data.draw(st.lists(st.integers(1, len(texts)), max_size=6))) if texts else set()
    after, notes = promote.without(note, gone)
    titles = [note.removeprefix("Nothing is left below the heading ").partition(",")[0] for note in notes]
    rest = iter(texts)
    assert all(line in rest for line in after.texts()), "a line moved"
    lost = visible(texts) - visible(after.texts())
    assert lost == visible(texts[number - 1] for number in gone) + Counter(HEADINGS[title] for title in titles)
    if not gone:
        assert after == note


def test_a_merge_within_one_note_keeps_the_heading_of_what_stays(tmp_path):
    plan = curator(workspace(tmp_path / "notes")).plan
    data = b"# T\n\n## A\n- x\n\n## B\n- x\n"
    change = plan.delete_lines([Spot("a.md", data, 4, 4)], keep=Spot("a.md", data, 7, 7))
    assert change.files[0].after == b"# T\n\n## B\n- x\n"
    chunk = plan.delete_lines([Spot("a.md", data, 4, 4)], keep=Spot("a.md", data, 3, 3))
    assert chunk.files[0].after == b"# T\n\n## A\n\n## B\n- x\n"
    with pytest.raises(EditRefused, match="kept and deleted"):
        plan.merge_duplicates(plan.spot("MEMORY.md", 4), [plan.spot("MEMORY.md", 4)])


@given(NOTE, NOTE, st.integers(0, 3))
def test_a_diff_holds_what_it_takes_to_make_the_change(before, now, context):
    found = diff_lines(Change("edit", "", (FileChange("x.md", before, now),)), context)
    old, new = (data.decode("utf-8", "surrogateescape").split("\n") for data in (before, now))
    # A line end is no part of a line; a carriage return at the end of the note is none.
    old[:-1], new[:-1] = ([line.removesuffix("\r") for line in lines[:-1]] for lines in (old, new))
    for line in found:
        if line.kind in ("same", "gone"):
            assert old[line.old - 1] == line.text
        if line.kind in ("same", "new"):
            assert new[line.new - 1] == line.text
    gone, made = {line.old for line in found if line.kind == "gone"}, {x.new for x in found if x.kind == "new"}
    assert [x for n, x in enumerate(before.split(b"\n"), 1) if n not in gone and (x or n < len(old))] == [
        x for n, x in enumerate(now.split(b"\n"), 1) if n not in made and (x or n < len(new))
    ]


def test_a_diff_has_the_hunks_of_difflib():
    before = b"".join(b"line %d\n" % n for n in range(40))
    now = before.replace(b"line 5\n", b"five\n").replace(b"line 9\n", b"").replace(b"line 30\n", b"line 30\nmore\n")
    theirs = list(difflib.unified_diff(before.decode().splitlines(), now.decode().splitlines(), lineterm=""))
    ours = diff_text(Change("edit", "", (FileChange("x.md", before, now),))).splitlines()
    assert ours[2:] == theirs[2:]
    assert re.search("CRLF", diff_text(Change("edit", "", (FileChange("x.md", b"a\r\n", b"a\n"),))))


@given(
    before=st.lists(st.sampled_from(["- a", "- b", "", "## c", "- dé", "\ttab"]), min_size=1, max_size=12),
    data=st.data(),
)
def test_lines_that_were_seen_are_found_where_they_stand_now_or_not_at_all(before, data):
    first = data.draw(st.integers(1, len(before)))
    last = data.draw(st.integers(first, len(before)))
    meant = [f"- meant {number}" for number in range(first, last + 1)]
    seen = [*before[: first - 1], *meant, *before[last:]]
    above = data.draw(st.lists(st.sampled_from(["- new", "- a", ""]), max_size=5))
    kept = data.draw(st.integers(0, first - 1))
    now = [*above, *seen[kept : first - 1], *meant, *data.draw(st.lists(st.just("- below"), max_size=3))]
    note = Lines.of("".join(f"{line}\r\n" for line in now).encode())
    shown = ShownLines(seen, lambda line: line)
    found = shown.now_at(first, last, note)
    assert note.texts()[found[0] - 1 : found[1]] == meant
    changed = data.draw(st.integers(0, len(meant) - 1))
    other = [*meant[:changed], "- rewritten", *meant[changed + 1 :]]
    assert shown.now_at(first, last, Lines.of("\n".join([*above, *other]).encode())) is None
    if len(meant) > 1:
        split = "\n".join([*seen[: first - 1], meant[0], "- between", *meant[1:]])
        assert shown.now_at(first, last, Lines.of(split.encode())) is None
