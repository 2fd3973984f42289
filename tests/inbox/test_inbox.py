"""The inbox: what it finds in notes and what it leaves alone, and that its actions are undone like any change."""

import datetime as dt
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, EditRefused
from memory_tui.inbox import DatedNote, Suggestion, checks, digest, items_of
from memory_tui.inbox.checks import BY_KIND, InboxInputs, changes, examine
from memory_tui.notes.changes import Change, FileChange, diff_lines, to_utf8
from memory_tui.plan import Options
from memory_tui.workspace.notes import utf16_of
from tests.support.workspace import options_in, put_all, synced

TODAY = dt.date(2026, 11, 21)
TWICE = "the guest network is on VLAN 20 behind the switch in the hall, and the two cameras of the garden hang on it"
NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC).timestamp()


def note(text, path="MEMORY.md", day=None):
    return DatedNote(path, text, day)


def found(*notes, **more):
    by_kind: dict[str, list[Suggestion]] = {}
    inputs = InboxInputs(notes, TODAY, more.pop("exists", lambda _: True), **more)
    for one in examine(inputs, kinds=BY_KIND).suggestions:
        by_kind.setdefault(one.kind, []).append(one)
    return by_kind


def test_a_note_is_read_as_the_things_it_says():
    text = "# Title\n\nA paragraph\nof two lines\n- one\n  more of it\n- two\n\n```\ncode\n\nmore\n```\nlast\n"
    got = [(entry.first, entry.last, entry.fenced) for entry in items_of(note(text))]
    assert got == [(3, 4, False), (5, 6, False), (7, 7, False), (9, 13, True), (14, 14, False)]


@given(st.text(st.sampled_from("ab #-`~\n\r *1."), max_size=80))
def test_entries_are_lines_of_the_note_in_order(text):
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    last = 0
    for entry in items_of(note(text)):
        assert last < entry.first <= entry.last <= len(lines)
        assert entry.text == "\n".join(lines[entry.first - 1 : entry.last])
        assert entry.text.strip()
        last = entry.last


def test_links_that_lead_nowhere():
    there = {"memory/vlan.md", "memory/home/omada-router.md"}

    def named(text, path="memory/home/x.md"):
        return found(note(text, path), exists=there.__contains__).get("dead path", [])

    assert named("see [it](../vlan.md) and [that](omada-router.md#top) and [[vlan]]") == []
    assert named("see [it](https://example.org/a.md)") == named("see [it](gone.md)", "memory/home/README.md") == []
    assert "gone.md" in named("see [it](gone.md)")[0].reason
    for text in (
        "[[reply_to_current]] Yes, it is there.",
        "[[reply_to:481]] You are welcome.",
        "deleted [it](gone.md), that freed 9 GB",
        "to do: create [it](gone.md)",
        "`[it](gone.md)` is how a link is written",
        "```\n[it](gone.md)\n```",
        "the key lies in `/srv/.printd/key.pub` there",
    ):
        assert named(text) == [], text


def test_a_talk_and_a_line_that_names_an_error_are_left_alone():
    frame = "[Telegram Ann B id:1234567890 +6s 2026-10-01 10:53 GMT+8] " + "put it in the garage please " * 12
    assert found(note(f"{frame}[message_id: 487]\n\n- Traceback (most recent call last): was in the log\n")) == {}


def test_a_key_of_many_lines_is_all_of_them():
    key = "-----BEGIN PRIVATE KEY-----\r\nplainlookingword\r\n-----END PRIVATE KEY-----\r\n"
    [one] = found(note(f"# x\r\n\r\n{key}tea\r\n"))["secret"]
    assert (one.place.first, one.place.last, one.place.text, one.actions[0]) == (3, 5, "[secret]", "mask")
    assert "plainlookingword" not in repr(one)


def test_a_masked_difference_has_the_same_lines_without_the_secret():
    key = "-----BEGIN PRIVATE KEY-----\nplainlookingword\n-----END PRIVATE KEY-----\n"
    before = f"# x\n- wifi password: hunter2hunter2X9\n{key}tea\n"
    longer = f"{before}more\n".replace("# x", "# y").encode()
    files = (FileChange("a.md", before.encode(), longer), FileChange("b.md", None, b"password: hunter3hunter3X9\n"))
    text = "\n".join(map(str, diff_lines(Change("edit", "x", files), 9)))
    assert " - wifi password: [secret]" in text
    assert "+password: [new secret]" in text
    assert "+# y" in text
    assert not any(part in text for part in ("hunter", "plainlookingword", "PRIVATE"))


def test_a_note_that_moves_is_told_by_its_paths():
    files = [("b.md", None, b"- text\n"), ("a.md", b"- text\n", None), ("c.md", b"see a.md\n", b"see b.md\n")]
    change = Change("rename", "x", tuple(FileChange(*file) for file in files))
    shown = [str(line) for line in diff_lines(change)]
    assert shown[0] == "a.md becomes b.md, its text stays as it is"
    assert not any("- text" in line for line in shown)
    assert shown[-1] == "+see b.md"


@pytest.mark.parametrize(
    ("path", "better"),
    [
        ("memory/2026-02-30.md", "memory/undated-2026-02-30.md"),
        ("memory/2099-01-01-x.md", "memory/undated-2099-01-01-x.md"),
        ("memory/2026-11-22.md", ""),
        ("notes.md", ""),
    ],
)
def test_dates_in_names_that_cannot_be(path, better):
    fault = checks.impossible(path, TODAY)
    assert (fault[1] if fault else "") == better


def test_what_a_session_does_not_read_and_what_was_never_recalled():
    old = note("x\n", "memory/2026-01-01.md", dt.date(2026, 1, 1))
    lines = note("- first\n- second line of it\n- third\n")
    kinds = found(lines, old, over={"MEMORY.md": (2, 0)}, recalled=frozenset({"MEMORY.md"}))
    assert [(one.place.first, one.place.last) for one in kinds["over budget"]] == [(2, 3)]
    middle = found(lines, over={"MEMORY.md": (2, 2)})["over budget"]
    assert [(one.place.first, one.place.last) for one in middle] == [(2, 2)]
    assert [one.place.path for one in kinds["never recalled"]] == ["memory/2026-01-01.md"]
    assert "never recalled" not in found(old)
    assert "never recalled" not in found(old, recalled=frozenset({old.path}))


def test_the_most_pressing_come_first_and_ids_stay():
    text = "- see [it](gone.md)\n- wifi password: hunter2hunter2X9\n"
    inputs = [InboxInputs((note(begin + text),), TODAY, lambda _: False) for begin in ("", "# Title\n\n")]
    one, moved = (examine(each, kinds=BY_KIND).suggestions for each in inputs)
    assert [s.kind for s in one] == sorted((s.kind for s in one), key=list(BY_KIND).index)
    assert {s.id for s in moved} == {s.id for s in one}


def test_it_can_be_stopped_and_tells_how_far_it_is():
    steps: list[tuple[str, int, int]] = []
    examine(InboxInputs((), TODAY, lambda _: True), lambda *step: steps.append(step))
    assert steps[-1][1] == steps[-1][2] == len(steps) - 1
    with pytest.raises(Cancelled):
        examine(InboxInputs((), TODAY, lambda _: True), stopped=lambda: True)


def test_after_a_change_the_changed_note_alone_is_looked_through_again(engine, workspace, monkeypatch):
    """What all notes tell together holds nevertheless: that a long word is a part of an address, and no key."""
    looked: list[str] = []
    for finder in (checks.secret_finder, checks.instructions):
        find = finder.find
        monkeypatch.setattr(finder, "find", lambda text, *more, find=find: (looked.append(text), find(text, *more))[1])
    (workspace / "MEMORY.md").write_text("- api key: k3Jx81QmZr7Lw2Pd90aB\n")
    (workspace / "memory/2026-03-01.md").write_text("- the oak was pruned\n")
    kinds = [row.kind for row in engine.inbox.examine().suggestions]
    assert "secret" in kinds
    assert len(looked) >= 4
    looked.clear()
    assert [row.kind for row in engine.inbox.examine().suggestions] == kinds
    assert looked == []
    changed = "- the oak was pruned, see https://example.org/d/k3Jx81QmZr7Lw2Pd90aB\n"
    (workspace / "memory/2026-03-01.md").write_text(changed)
    assert "secret" not in [row.kind for row in engine.inbox.examine().suggestions]
    assert "- the oak was pruned\n" not in looked
    assert looked.count(changed) == 2, "once for secrets, once for commands"


def test_a_stop_is_heard_between_two_things_a_note_says():
    asked, notes = [], (note("- [one](a.md)\n- [two](b.md)\n"),)
    with pytest.raises(Cancelled):
        examine(InboxInputs(notes, TODAY, asked.append), stopped=lambda: bool(asked), kinds=BY_KIND)
    assert "a.md" in asked
    assert "b.md" not in asked


def test_a_paragraph_without_an_end_is_looked_at_in_parts():
    items = [*items_of(DatedNote("MEMORY.md", "no blank line between these\n" * 1_000, None))]
    assert [(item.first, item.last) for item in items][:2] == [(1, 200), (201, 400)]
    assert items[-1].last == 1_000


@pytest.fixture
def workspace(tmp_path):
    facts = {"MEMORY.md": f"# Home\n- {TWICE}\n- the domain is told of [here](domain.md)\n"}
    logs = {"memory/network.md": f"# Day\n- {TWICE}\n- more\n", "memory/2026-02-30.md": "never\n"}
    return put_all(tmp_path / "notes", facts | logs)


@pytest.fixture
def engine(workspace, tmp_path):
    with synced(options_in(tmp_path, provider="scripted", now=NOW)) as engine:
        yield engine


def of(engine, kind):
    return next(one for one in engine.inbox.examine(kinds=BY_KIND).suggestions if one.kind == kind)


def test_what_the_host_cuts_off_can_go_to_a_topic_note(engine, workspace):
    lines = [f"- fact number {n} of many that are kept here: {'abcdefgh'[n % 8] * 60}" for n in range(400)]
    (workspace / "MEMORY.md").write_text("# Home\n## Facts\n" + "\n".join(lines) + "\n")
    over = [one for one in engine.inbox.examine().suggestions if one.kind == "over budget"]
    assert len(over) == 1, "one cause is one finding"
    assert over[0].place.first > 100
    assert over[0].place.last > over[0].place.first + 100
    change = changes([over[0]], "demote", engine.notes.curator)
    assert change.paths == ("memory/moved-from-memory.md", "MEMORY.md")
    moved, kept = (file.after.decode() for file in change.files)
    assert moved.startswith("# Moved from memory\n\n## Facts\n\n- fact number 1")
    assert kept.startswith("# Home\n## Facts\n- fact number 0 ")
    assert kept.endswith("\n".join(lines[-30:]) + "\n")
    assert len(kept) < 20_000


def test_of_a_long_note_the_beginning_is_examined_which_is_said(engine, workspace):
    link = "- the domain is told of [here](domain.md)\n"
    (workspace / "memory/log.md").write_text(link + "- a day like any other\n" * 30_000 + link)
    suggestions = engine.inbox.examine(kinds=BY_KIND).suggestions
    rows = {(s.kind, s.place.first): s for s in suggestions if "log.md" in s.place.path}
    assert rows.keys() == {("long note", 1), ("dead path", 1)}
    lines = rows["long note", 1].finding.fields["lines"]
    assert 20_000 < lines < 30_000
    assert f"its first {lines:,} lines" in rows["long note", 1].reason
    change = changes([rows["dead path", 1]], "delete", engine.notes.curator)
    assert change.files[0].after.endswith(link.encode()), "what was not examined stays"


@pytest.mark.parametrize("action", ["merge", "merge other"])
def test_either_of_two_passages_is_what_was_looked_at_to_its_end(tmp_path, action):
    said = f"{TWICE}, " * 12
    (tmp_path / "memory").mkdir()
    for name in ("MEMORY", "memory/a"):
        (tmp_path / f"{name}.md").write_text(f"- {said}is on VLAN 20\n")
    with Engine.open(Options(str(tmp_path), index=str(tmp_path / "i.sqlite"), provider="none", now=NOW)) as engine:
        one = of(engine, "said twice")
        assert one.other is not None
        for place in (one.place, one.other):
            note = tmp_path / place.path
            was = note.read_text()
            note.write_text(was.replace("VLAN 20", "VLAN 30"))
            with pytest.raises(EditRefused, match="changed since"):
                changes([one], action, engine.notes.curator)
            note.write_text(was)
        assert changes([one], action, engine.notes.curator).paths


def test_lines_that_changed_since_are_not_touched(engine, workspace):
    one = of(engine, "dead path")
    (workspace / "MEMORY.md").write_text("# Home\n- x\n- something else stands here now\n")
    with pytest.raises(EditRefused, match="changed since the inbox examined it"):
        changes([one], "delete", engine.notes.curator)
    seen = replace(one, digest=digest("- something else stands here now"))
    with pytest.raises(EditRefused, match="changes no note"):
        changes([seen], "keep", engine.notes.curator)


def test_what_is_kept_or_put_off_is_not_shown_until_it_is_due(engine):
    one, other = of(engine, "dead path"), of(engine, "bad date")
    engine.inbox.decisions.keep(one)
    engine.inbox.decisions.snooze(other, NOW + 60)
    assert not {one.id, other.id} & {s.id for s in engine.inbox.examine(kinds=BY_KIND).suggestions}
    assert other.id not in engine.inbox.decisions.hidden((one, other), NOW + 61)
    assert {one.id, other.id} < {s.id for s in engine.inbox.examine(every=True, kinds=BY_KIND).suggestions}
    assert engine.inbox.decisions.hidden((one, other), NOW) == {one.id: math.inf, other.id: NOW + 60}
    assert engine.inbox.decisions.hidden((one, other), NOW + 61) == {one.id: math.inf}
    assert engine.inbox.decisions.reopen(one.id)
    assert not engine.inbox.decisions.reopen("nothing")
    assert one.id in {s.id for s in engine.inbox.examine(kinds=BY_KIND).suggestions}


def test_what_is_kept_of_a_note_stays_kept_when_its_lines_move_and_what_is_kept_of_a_line_while_it_stands():
    def ids(text, last):
        kinds = found(note(f"- token: hunter2hunter2X{text}9\n- a\n- b\n"), over={"MEMORY.md": (2, last)})
        return [kinds[kind][0].id for kind in ("over budget", "secret")]

    whole, line = ids("", 3)
    assert ids("", 2) == [whole, line]
    assert ids("Y", 3)[0] == whole
    assert ids("Y", 3)[1] != line
    copy = "".join(f"- the {thing} behind the mill is older than the road that leads to it\n" for thing in "abcdefgh")

    def of_copy(text):
        return found(note(copy, "memory/mill.md"), note(text, "memory/archive/mill.md"))["copied file"][0].id

    assert of_copy(copy) == of_copy(copy.replace("- the a", "* the a")) == of_copy(copy.partition("\n")[2])


@pytest.fixture
def run(workspace, tmp_path, command):
    where = ["--workspace", str(workspace), "--index", str(tmp_path / "c.sqlite"), "--provider", "scripted"]
    return lambda *words: command("inbox", *where, "--now", "2026-11-21T12:00:00Z", *words)[:2]


def test_the_command_lists_and_does(run, workspace, printed):
    code, out = run()
    assert code == 0
    assert "said twice" in out
    assert run("--json", "--kind", "paraphrase") == (0, "[]\n"), "a kind that is gone is no error"
    assert "merge, merge-other, keep, snooze" in out
    data = json.loads(run("--json", "--kind", "said twice")[1])
    assert [one["kind"] for one in data] == ["said twice"]
    before = (workspace / "memory/network.md").read_bytes()
    assert run("--id", data[0]["id"], "--do", "merge")[0] == 2, "nobody was there to say yes"
    assert (workspace / "memory/network.md").read_bytes() == before
    assert run("--id", data[0]["id"][:6], "--do", "merge", "--yes")[0] == 0
    assert "VLAN" not in (workspace / "memory/network.md").read_text()
    assert json.loads(run("--json", "--kind", "said twice")[1]) == []
    assert run("--id", "zzz", "--do", "keep")[0] == 2
    printed("undo", "--workspace", str(workspace), "--yes")
    assert (workspace / "memory/network.md").read_bytes() == before
    [again] = json.loads(run("--json", "--kind", "said twice")[1])
    for decided, said in (("keep", "Kept; "), ("snooze", "Put off for 7 days; ")):
        code, out = run("--id", again["id"], "--do", decided)
        assert (code, out.startswith(said)) == (0, True)
        assert json.loads(run("--json", "--kind", "said twice")[1]) == []
        assert run("--id", again["id"][:8], "--do", "reopen")[1] == f"{again['id']} is open again.\n"
        assert len(json.loads(run("--json", "--kind", "said twice")[1])) == 1
        assert run("--id", again["id"], "--do", "reopen")[0] == 2, "it is open already"
    for days in ("nan", "-1", "0", "inf", "soon"):
        assert run("--id", again["id"], "--do", "snooze", "--days", days)[0] == 2
    assert run("--id", again["id"], "--do", "merge", "--yes")[0] == 0
    (workspace / "memory/wifi.md").write_text("- wifi password: hunter2hunter2X9\n")
    [secret] = json.loads(run("--json", "--kind", "secret")[1])
    code, out = run("--id", secret["id"], "--do", "delete", "--yes")
    assert code == 0
    assert "-- wifi password: [secret]" in out
    assert "hunter2" not in out
    assert run("--do", "keep")[0] == 2
    [dead] = json.loads(run("--json", "--kind", "dead path")[1])
    assert run("--id", dead["id"], "--do", "rename")[0] == 2


@pytest.mark.parametrize(
    ("part", "times"),
    [("[", 3000), ("](a.md", 800), ("@", 20_000), ("a" + " " * 30_000 + "b ", 2)],
    ids=("brackets", "links", "signs", "blanks"),
)
def test_a_line_of_one_thing_again_and_again_is_examined_at_once(part, times):
    began = time.process_time()
    found(note(f"- so {part * times} end.\n\n{part * times}\n"))
    assert time.process_time() - began < 3


TEXT = "# Day\n\n- The plumber Grigori Müller came at ten.\n"


def _written(data):
    [file] = to_utf8("memory/a.md", data).files
    assert (file.path, file.before) == ("memory/a.md", data)
    return file.after.decode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_it_is_written_as_utf8(encoding):
    assert _written(TEXT.encode(encoding)) == TEXT


def test_what_is_utf8_stays_beside_bytes_that_are_not():
    # Two programs wrote into one log, each in its own way.
    assert _written("- Grüße\n".encode() + "- Müller\n".encode("cp1252")) == "- Grüße\n- Müller\n"
    assert _written(b"\x81") == "\x81"
    # Two accents that meet are western, and longer runs are not.
    assert _written("une page créée\n".encode("cp1252")) == "une page créée\n"
    with pytest.raises(EditRefused, match="neither UTF-8"):
        _written("# 笔记\n我们明天去成都\n".encode("gbk"))


def test_zeros_that_a_crash_left_are_no_utf16():
    data = b"# Notes\nhello world, this is fine\n" + b"\0" * 100
    assert not utf16_of(data)
    with pytest.raises(EditRefused, match="UTF-8 already"):
        _written(data)


@given(st.binary())
def test_any_bytes_are_written_or_refused(data):
    try:
        written = _written(data)
    except EditRefused:
        return
    assert written.encode() != data


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_its_words_are_found_once_it_was_converted_and_undo_puts_its_bytes_back(tmp_path, encoding):
    log = tmp_path / "notes" / "memory" / "2026-11-20.md"
    log.parent.mkdir(parents=True)
    log.write_bytes(TEXT.encode(encoding))
    options = Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "index.sqlite"), provider="none")
    with Engine.open(options) as engine:

        def found():
            engine.index.sync()
            return bool(engine.search.search("müller").recalled)

        assert not found()
        [suggestion] = [one for one in engine.inbox.examine().suggestions if one.kind == "encoding"]
        engine.notes.curator.apply(changes([suggestion], "convert", engine.notes.curator))
        assert found()
        assert not [one for one in engine.inbox.examine().suggestions if one.kind == "encoding"]
        engine.notes.curator.undo()
        assert log.read_bytes() == TEXT.encode(encoding)
