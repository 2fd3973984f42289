"""Which files are notes, why the others are not, and which paths an agent may read."""

import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.errors import PathRefused, WorkspaceError
from memory_tui.workspace import notes as workspace_notes
from memory_tui.workspace.roots import NoteMissing, Roots, locate, named_lines, scan, why_path
from memory_tui.workspace.scan import MAX_BYTES
from tests.support.workspace import needs_inodes, put


def found(workspace, *extra):
    return [note.path for note in scan(Roots.open(workspace, extra)).notes]


def reasons(workspace, *extra):
    return {left.path: left.rule for left in scan(Roots.open(workspace, extra)).left_out}


def test_what_the_real_program_leaves_out_has_a_reason(oracle_workspace):
    assert reasons(oracle_workspace) == {
        "memory/UPPER.MD": "not markdown",
        "memory/notes.markdown": "not markdown",
        "memory/notes.txt": "not markdown",
        "memory/link.md": "symlink",
        "memory/linkdir": "symlink",
        "memory/dangling.md": "symlink",
    }


def test_extra_paths_are_notes_or_folders_wherever_they_are(tmp_path, monkeypatch):
    workspace, home = tmp_path / "ws", tmp_path / "home"
    put(tmp_path, "ws/MEMORY.md", "notes/x.md", "notes/deep/y.md", "home/z.md", "ws/docs/in.md", "one.md", "one.txt")
    monkeypatch.setenv("HOME", str(home))
    extra = (" ../notes ", "", "~/z.md", "docs", str(tmp_path / "one.md"), "../one.txt", "../gone", "docs")
    assert found(workspace, *extra) == [
        "../home/z.md", "../notes/deep/y.md", "../notes/x.md", "../one.md", "MEMORY.md", "docs/in.md",
    ]  # fmt: skip
    assert reasons(workspace, *extra) == {
        "../gone": "missing root", "../one.txt": "not markdown", "memory": "missing root",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "duplicates"),
    [
        (["memory"], {"memory"}), (["memory/sub"], {"memory/sub"}), (["memory/a.md"], {"memory/a.md"}),
        (["MEMORY.md"], {"MEMORY.md"}), (["."], set()), (["other/in", "other"], {"other/in"}),
        (["other/in/c.md", "other"], set()), (["other", "other/in/c.md"], {"other/in/c.md"}),
        (["linked/sub"], {"linked/sub"}), (["linked/a.md"], {"linked/a.md"}),
        (["inner/c.md", "other"], {"other/in/c.md"}),
    ],
)  # fmt: skip
@needs_inodes
def test_a_note_reached_twice_is_kept_once(tmp_path, extra, duplicates):
    put(tmp_path, "MEMORY.md", "memory/a.md", "memory/sub/b.md", "other/in/c.md")
    (tmp_path / "linked").symlink_to("memory")
    (tmp_path / "inner").symlink_to("other/in")
    paths = found(tmp_path, *extra)
    assert len({Path(tmp_path, path).resolve() for path in paths}) == len(paths)
    assert {"MEMORY.md", "memory/a.md", "memory/sub/b.md"} <= set(paths)
    assert {path for path, rule in reasons(tmp_path, *extra).items() if rule == "duplicate"} == duplicates


@needs_inodes
def test_hard_links_are_notes_of_their_own(tmp_path):
    put(tmp_path, "MEMORY.md", "memory/a.md")
    (tmp_path / "memory.md").hardlink_to(tmp_path / "MEMORY.md")
    (tmp_path / "memory/b.md").hardlink_to(tmp_path / "memory/a.md")
    assert found(tmp_path) == ["MEMORY.md", "memory.md", "memory/a.md", "memory/b.md"]


@needs_inodes
def test_the_workspace_may_be_a_link_but_nothing_below_it(tmp_path):
    put(tmp_path, "real/MEMORY.md", "real/memory/a.md", "elsewhere/secret.md")
    (tmp_path / "ws").symlink_to("real")
    (tmp_path / "real/memory/loop").symlink_to("..")
    (tmp_path / "real/memory/out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "real/memory.md").symlink_to("MEMORY.md")
    (tmp_path / "real/linked").symlink_to(tmp_path / "elsewhere")
    workspace = tmp_path / "ws"
    assert found(workspace, "linked") == ["MEMORY.md", "memory/a.md"]
    links = ["memory/loop", "memory/out", "memory.md", "linked"]
    assert reasons(workspace, "linked") == dict.fromkeys(links, "symlink")


@needs_inodes
def test_pipes_and_sockets_are_never_opened(tmp_path, monkeypatch):
    put(tmp_path, "memory/a.md")
    os.mkfifo(tmp_path / "memory/pipe.md")
    os.mkfifo(tmp_path / "MEMORY.md")
    os.mkfifo(tmp_path / "extra.md")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path / "memory")
        server.bind("socket.md")
        assert found(tmp_path, "extra.md") == ["memory/a.md"]
        pipes = ["MEMORY.md", "extra.md", "memory/pipe.md", "memory/socket.md"]
        assert reasons(tmp_path, "extra.md") == dict.fromkeys(pipes, "not a file")


@needs_inodes
def test_huge_files_are_left_out_unread(tmp_path):
    put(tmp_path, "memory/limit.md", "memory/over.md")
    os.truncate(tmp_path / "memory/limit.md", MAX_BYTES)
    os.truncate(tmp_path / "memory/over.md", MAX_BYTES + 1)
    assert found(tmp_path) == ["memory/limit.md"]
    (left,) = scan(Roots.open(tmp_path)).left_out
    assert (left.path, left.rule) == ("memory/over.md", "too big")
    assert "33,554,433" in left.detail


def test_five_hundred_levels(tmp_path):
    deep = "memory/" + "d/" * 500 + "note.md"
    put(tmp_path, deep)
    assert found(tmp_path) == [deep]
    assert workspace_notes.read(scan(Roots.open(tmp_path)).notes[0]).text == "note\n"


@needs_inodes
@pytest.mark.parametrize(
    "name",
    ["two\nlines.md", "n" * 252 + ".md", "[b] (1).md", "\x1b[31m.md", "back\\slash.md", "%2e%2e.md", " .md", ".md"],
)
def test_any_name_is_found_and_read_back_by_its_stored_path(tmp_path, name):
    put(tmp_path, "memory/" + name)
    roots = Roots.open(tmp_path)
    (note,) = scan(roots).notes
    assert note.path == "memory/" + name
    assert locate(roots, note.path) == note
    assert workspace_notes.read(note).text == "note\n"
    assert why_path(roots, note.path).included


@pytest.mark.skipif(sys.platform != "linux", reason="file systems of other systems refuse such names")
def test_names_that_are_not_utf8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/memory/d\xe9"
    Path(os.fsdecode(folder)).mkdir(parents=True)
    for name in (b"caf\xe9.md", b"caf\xe8.md"):
        Path(os.fsdecode(folder + b"/" + name)).write_text("note\n")
    Path(os.fsdecode(folder + b"/x\xff.txt")).write_text("no note\n")
    roots = Roots.open(tmp_path)
    seen = scan(roots)
    assert [note.path for note in seen.notes] == ["memory/d\\xe9/caf\\xe8.md", "memory/d\\xe9/caf\\xe9.md"]
    assert [left.path for left in seen.left_out] == ["memory/d\\xe9/x\\xff.txt"]
    for note in seen.notes:
        assert workspace_notes.read(note).text == "note\n"
        assert locate(roots, note.path) == note
        assert why_path(roots, note.path).included
        assert why_path(roots, note.absolute).path == note.path


@pytest.mark.skipif(sys.platform != "linux", reason="file systems of other systems normalise names")
def test_two_names_stored_alike(tmp_path):
    put(tmp_path, "memory/caf\\xe9.md")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/memory/caf\xe9.md")).write_text("other\n")
    seen = scan(Roots.open(tmp_path))
    assert [note.path for note in seen.notes] == ["memory/caf\\xe9.md"]
    assert [(left.path, left.rule) for left in seen.left_out] == [("memory/caf\\xe9.md", "duplicate")]


def test_workspaces_that_cannot_be_opened(tmp_path):
    put(tmp_path, "file.md")
    wrong = {"gone": "no folder", "file.md": "not a folder", "file.md/x": "not a folder", "a\0b": "null"}
    for path, words in wrong.items():
        with pytest.raises(WorkspaceError, match=words) as caught:
            scan(Roots.open(tmp_path / path))
        assert caught.value.next_step


@pytest.fixture
def mixed(tmp_path):
    put(
        tmp_path, "real/MEMORY.md", "real/memory/a.md", "real/memory/sub/b.md", "real/memory/c.txt", "real/USER.md",
        "real/memory-evil/x.md", "real/other/o.md", "notes/n.md", "notes-evil/e.md", "secret.md", "real/memory/UP.MD",
    )  # fmt: skip
    (tmp_path / "real/memory/empty").mkdir()
    (tmp_path / "ws").symlink_to("real")
    (tmp_path / "real/memory/link.md").symlink_to("a.md")
    (tmp_path / "real/memory/out").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to("real/other")
    return Roots.open(tmp_path / "ws", ["../notes", "../single.md", "../linked"])


@pytest.mark.parametrize(
    ("path", "rule", "words"),
    [
        ("MEMORY.md", "included", "root note"),
        ("memory/a.md", "included", "below memory/"),
        ("../notes/n.md", "included", "extraPaths"),
        ("../real/memory/a.md", "included", "read as memory/a.md"),
        ("memory/c.txt", "not markdown", "end in .md"),
        ("memory/UP.MD", "not markdown", "small letters"),
        ("memory/link.md", "symlink", "not followed"),
        ("memory/out/secret.md", "symlink", "below memory/out"),
        ("memory/none.md", "missing", "no such file"),
        ("../single.md", "missing root", "nothing"),
        ("memory", "folder", "2 of the notes"),
        ("memory/empty", "folder", "no note"),
        ("memory-evil/x.md", "outside", "extraPaths"),
        ("/etc/hostname", "outside", "extraPaths"),
        ("a\0b", "unreadable", "null"),
        ("x" * 5000, "unreadable", "name too long."),
        ("", "folder", "notes"),
    ],
)
@needs_inodes
def test_why(mixed, path, rule, words):
    verdict = why_path(mixed, path)
    assert (verdict.rule, verdict.included) == (rule, rule == "included")
    assert words in verdict.detail


@needs_inodes
def test_why_says_when_the_last_scan_is_older_than_the_file(mixed):
    before = scan(mixed)
    put(mixed.workspace, "memory/new.md")
    assert "last scanned" in why_path(mixed, "memory/new.md", before).detail
    assert why_path(mixed, "memory/new.md").included


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/a.md", "./memory/sub/b.md", "memory/../MEMORY.md", " memory/a.md\n", "../notes/n.md"]
)
@needs_inodes
def test_notes_can_be_read(mixed, path):
    note = locate(mixed, path)
    assert note in scan(mixed).notes
    assert locate(mixed, note.absolute) == note
    assert workspace_notes.read(note).text == "note\n"


@pytest.mark.parametrize(
    "path",
    [
        "", " ", ".", "..", "/", "~", "memory", "memory/", "../notes", "memory/c.txt", "memory/UP.MD", "USER.md",
        "other/o.md", "../secret.md", "memory/../../secret.md", "../notes/../secret.md", "../notes-evil/e.md",
        "memory-evil/x.md", "../linked/o.md",
        "/etc/passwd", "~/x.md", "memory/link.md", "memory/out/secret.md", "memory/out/ws/memory/a.md", "memory/a.md\0",
        "MEMORY.md\0.md", "%2e%2e/secret.md", "memory\\..\\..\\secret.md", "memory/" + "x" * 5000 + ".md", "\ud800.md",
        "file:///etc/passwd.md", "//etc/x.md",
    ],
)  # fmt: skip
@needs_inodes
def test_everything_else_is_refused(mixed, path):
    with pytest.raises(PathRefused) as caught:
        locate(mixed, path)
    assert not isinstance(caught.value, NoteMissing)
    assert caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize(
    "path", ["memory.md", "memory/none.md", "memory/a.md/b.md", "../notes/none.md", "../single.md"]
)
@needs_inodes
def test_an_allowed_place_with_nothing_there(mixed, path):
    with pytest.raises(NoteMissing):
        locate(mixed, path)


@needs_inodes
def test_a_folder_or_a_pipe_is_no_note(mixed):
    (mixed.workspace / "memory/folder.md").mkdir()
    os.mkfifo(mixed.workspace / "memory/pipe.md")
    for path in ("memory/folder.md", "memory/pipe.md"):
        with pytest.raises(PathRefused, match="not a regular file"):
            locate(mixed, path)


NAMES = st.sampled_from(["..", ".", "memory", "a.md", "", "MEMORY.md", "/", "out", "ws"])


@given(st.text() | st.lists(NAMES).map("/".join))
@needs_inodes
def test_no_text_leads_out(tmp_path_factory, text):
    base = tmp_path_factory.getbasetemp() / "contained"
    if not base.exists():
        put(base, "ws/memory/a.md", "ws/MEMORY.md", "a.md", "MEMORY.md", "memory/a.md")
        (base / "ws/memory/out").symlink_to("../..")
    try:
        path = locate(Roots.open(base / "ws"), text).absolute
    except PathRefused:
        return
    assert Path(path).resolve() in {(base / "ws/memory/a.md").resolve(), (base / "ws/MEMORY.md").resolve()}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("memory/a.md", ("memory/a.md", None, None)),
        ("memory/a.md:12", ("memory/a.md", 12, None)),
        ("memory/a.md:12-24", ("memory/a.md", 12, 24)),
        ("MEMORY.md#L3-L9", ("MEMORY.md", 3, 9)),
        ("MEMORY.md#L3-9", ("MEMORY.md", 3, 9)),
        ("a#L7", ("a", 7, None)),
        ("C:/notes/a.md", ("C:/notes/a.md", None, None)),
        ("memory/a:b.md", ("memory/a:b.md", None, None)),
        ("", ("", None, None)),
        (f"a.md:{'9' * 5000}", (f"a.md:{'9' * 5000}", None, None)),
    ],
)
def test_lines_as_they_are_typed(typed, meant):
    assert named_lines(typed) == meant
