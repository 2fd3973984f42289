"""Which notes a memory has: folders of facts, patterns that leave notes out, extra paths and their limits."""

import os
import sys
from collections.abc import Callable

import pytest

from memory_tui.cli.main import main
from memory_tui.config.places import ExtraPath
from memory_tui.errors import PathRefused
from memory_tui.index.database import scope_hash
from memory_tui.index.watch import _View
from memory_tui.plan import Options, plan
from memory_tui.workspace import scan as workspace_scan
from memory_tui.workspace.roots import Roots, admitted, beside, entries, located, scan, why_path
from tests.support.commands import Terminal
from tests.support.workspace import put, synced


def paths(roots):
    return [note.path for note in scan(roots).notes]


def planned(folder, *changes):
    return plan(Options(workspace=str(folder), changes=changes)).roots


def test_facts_beside_their_index_are_all_notes(tmp_path):
    put(tmp_path, "project_deploy.md", "feedback_testing.md", "old/unlisted.md")
    put(tmp_path, "MEMORY.md", text="# Memory index\n- [Deploy](project_deploy.md) — how we deploy\n")
    seen = scan(planned(tmp_path))
    indexed = [note.path for note in seen.notes]
    assert indexed == ["MEMORY.md", "feedback_testing.md", "old/unlisted.md", "project_deploy.md"]
    assert seen.left_out == ()
    put(tmp_path, "AGENTS.md")
    assert paths(planned(tmp_path)) == ["MEMORY.md"], "in a workspace of OpenClaw they are none"
    assert len(beside(planned(tmp_path))) == 4


def test_a_vault_is_a_memory_once_a_person_said_so(tmp_path, monkeypatch, capsys):
    vault = tmp_path / "vault"
    put(vault, "Kiln.md", "Projects/Plan.md", ".obsidian/cache.md", "node_modules/readme.md")
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    status = ["status", "--workspace", str(vault), "--index", str(tmp_path / "i.sqlite"), "--provider", "none"]
    assert main(status) == 0
    told = capsys.readouterr()
    assert "has no MEMORY.md and no memory/, but 2 notes, and none is indexed" in told.err
    assert "--whole yes" in told.err
    assert paths(planned(vault)) == []
    for answer, every in (("n\n", []), ("y\n", ["Kiln.md", "Projects/Plan.md"])):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys, "stderr", screen := Terminal())
        assert main(status) == 0
        assert ("Index them?" in screen.getvalue()) == (not every), "it is asked once"
        if every:
            assert main([*status, "--whole", "yes"]) == 0
        assert paths(planned(vault)) == every
    assert {left.path for left in scan(planned(vault)).left_out} == {".obsidian", "node_modules"}
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before
    assert main([*status, "--whole", "no"]) == 0
    assert paths(planned(vault)) == []


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("archive/", {"memory/archive", "memory/a/archive"}),
        ("memory/archive", {"memory/archive"}),
        ("*.draft.md, archive", {"memory/x.draft.md", "memory/archive", "memory/a/archive"}),
        ("memory/**/*.md", {"memory/note.md", "memory/x.draft.md", "memory/archive/old.md", "memory/a/archive/b.md"}),
        ("MEMORY.md", {"MEMORY.md"}),
        (" , ", set()),
    ],
)
def test_patterns_leave_notes_and_folders_out(tmp_path, patterns, left):
    put(tmp_path, "MEMORY.md", "memory/note.md", "memory/x.draft.md", "memory/archive/old.md", "memory/a/archive/b.md")
    every, roots = paths(planned(tmp_path)), planned(tmp_path, ("exclude", patterns))
    seen = scan(roots)
    assert {item.path for item in seen.left_out if item.rule == "excluded"} == left
    gone = {path for path in every if any(path == item or path.startswith(f"{item}/") for item in left)}
    assert {note.path for note in seen.notes} == {*every} - gone
    for path in gone:
        assert why_path(roots, path, seen).rule == "excluded"
        with pytest.raises(PathRefused, match="exclude"):
            located(roots, path)


LIMIT = 40


@pytest.fixture
def vast(tmp_path, monkeypatch):
    """A folder with one note and more files than the limit allows."""
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, str(LIMIT))
    folder = tmp_path / "vast"
    for number in range(10):
        (folder / f"d{number}").mkdir(parents=True)
        for other in range(10):
            (folder / f"d{number}" / f"{other}.txt").touch()
    (folder / "note.md").write_text("zebrafish\n")
    put(tmp_path / "notes", "MEMORY.md", text="tea\n")
    (tmp_path / "notes" / "memory").mkdir()
    put(tmp_path / "small", "other.md", text="coffee\n")
    return folder


@pytest.fixture
def listed(monkeypatch):
    """Every folder that is listed."""
    seen: list[str] = []
    plain: Callable[..., object] = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (seen.append(folder), plain(folder))[1])
    return seen


def test_what_is_too_large_is_refused_as_a_whole_and_its_neighbours_are_read(vast, listed):
    notes = vast.parent / "notes"
    roots = Roots.open(notes, [str(vast), "../small"])
    for _ in range(3):
        found = scan(roots)
        assert sorted(note.path for note in found.notes) == ["../small/other.md", "MEMORY.md"]
        (left,) = [left for left in found.left_out if left.rule == "too many"]
        assert left.path == "../vast"
        assert f"More than {LIMIT} files and folders" in left.detail
        assert workspace_scan.LIMIT_VARIABLE in left.detail
        assert not [left for left in found.left_out if left.path.startswith("../vast/")]
    assert sum(folder == str(vast) for folder in listed) == 1


def test_no_more_is_looked_at_than_the_limit(tmp_path, listed, monkeypatch):
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, "5")
    for size in (10, 100, 400):
        folder = tmp_path / str(size)
        for number in range(size):
            (folder / f"d{number}").mkdir(parents=True)
        listed.clear()
        assert workspace_scan.too_large(str(folder))
        assert len(listed) <= 6


def test_another_limit_lets_it_in(vast, monkeypatch):
    roots = Roots.open(vast.parent / "notes", [str(vast)])
    assert "../vast/note.md" not in {note.path for note in scan(roots).notes}
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, "1000")
    assert "../vast/note.md" in {note.path for note in scan(roots).notes}


def test_it_is_not_watched_and_the_status_says_why(vast, tmp_path):
    notes = vast.parent / "notes"
    assert str(vast) not in _View.of(Roots.open(notes, [str(vast)])).folders
    options = Options(workspace=str(notes), index=str(tmp_path / "i.sqlite"), provider="scripted", extra=(str(vast),))
    with synced(options) as engine:
        assert [hit.chunk.path for hit in engine.search.search("tea").recalled] == ["MEMORY.md"]
        (left,) = [left for left in engine.status().freshness.left_out if left.path == "../vast"]
        assert "More than 40 files" in left.detail


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and /sys are Linux's")
def test_the_root_of_the_disk_comes_to_an_end_and_the_systems_folders_are_not_entered(vast, listed, monkeypatch):
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, "2000")
    roots = Roots.open(vast.parent / "notes", ["/", "/proc", "/dev"])
    found = scan(roots)
    assert [note.path for note in found.notes] == ["MEMORY.md"]
    details = {os.path.normpath(roots.workspace / left.path): left.detail for left in found.left_out}
    assert "More than 2,000" in details["/"]
    assert "folder of the system" in details["/proc"]
    assert "folder of the system" in details["/dev"]
    assert not {"/proc", "/sys", "/dev"} & set(listed)


# What Node 20.20 answered.
ANSWERED = [
    ("a.md", "*.md", True), ("x/a.md", "*.md", False), ("x/a.md", "**/*.md", True), ("a.md", "**/*.md", True),
    (".h.md", "*.md", False), (".h/a.md", "**/*.md", False), ("x/.h.md", "**", False), ("x/a.md", "**", True),
    ("x/a.md", "x/**", True), ("x/a.md", "x/", False), ("a.md", "{a,b}.md", True), ("b.md", "{a,b}.md", True),
    ("a1.md", "a[0-9].md", True), ("ab.md", "a[!b].md", False), ("ac.md", "a[!b].md", True),
    ("ac.md", "a[^b].md", True), ("a.md", "?.md", True), ("a.md", "A.md", False), ("x/y/z.md", "x/*/z.md", True),
    ("x/z.md", "x/**/z.md", True), ("x/y/q/z.md", "x/**/z.md", True), ("x/yz.md", "x/**z.md", True),
    ("x/q/yz.md", "x/**z.md", False), ("a1.md", "a{1..3}.md", True), ("a5.md", "a{1..3}.md", False),
    ("a.md", "!(b).md", True), ("a.md", "@(a|b).md", True), ("b.md", "!(b).md", False), ("a.md", "./a.md", False),
    ("[a].md", "[[]a].md", True), ("a.md", "[a", False), ("é.md", "?.md", True), ("x/a.md", "*/a.md", True),
    (".x/a.md", "*/a.md", False), ("x/y/a.md", "{x,w}/**/*.md", True), ("a.md", "{a.md,}", True),
    ("a.b.md", "*.md", True), (".a.md", ".*", True), ("a.md", "***", True), ("x/y.md", "***", False),
    ("x/a.md", "{**/a,b}.md", True),
]  # fmt: skip


@pytest.mark.parametrize(("path", "pattern", "matches"), ANSWERED)
def test_patterns_match_as_in_node(path, pattern, matches):
    assert admitted([ExtraPath("/more", pattern)])(f"/more/{path}") is matches


def test_an_entry_is_absolute_and_counts_once():
    written = [" notes ", "notes", ExtraPath("notes/"), ExtraPath("notes", "*.md"), "", "/a/../b"]
    assert entries("/ws", written) == (ExtraPath("/ws/notes"), ExtraPath("/ws/notes", "*.md"), ExtraPath("/b"))


def test_a_pattern_leaves_notes_out_and_says_so(tmp_path):
    put(tmp_path, "ws/MEMORY.md", "more/a.md", "more/b.md", "more/deep/a.md", "more/deep/c.md", "one.md", "more/x.txt")
    more = str(tmp_path / "more")
    roots = Roots.open(tmp_path / "ws", [ExtraPath(more, "*a.md"), ExtraPath(str(tmp_path / "one.md"), "nothing*")])
    assert [note.path for note in scan(roots).notes] == ["../more/a.md", "../one.md", "MEMORY.md"]
    verdict = why_path(roots, "../more/b.md")
    assert (verdict.included, verdict.rule) == (False, "pattern")
    assert "extraPaths" in verdict.detail


def test_several_entries_of_one_folder_add_up(tmp_path):
    put(tmp_path, "ws/MEMORY.md", "more/a.md", "more/b.md", "more/deep/a.md", "more/deep/c.md")
    more = str(tmp_path / "more")

    def found(*extra):
        return [note.path.removeprefix("../more/") for note in scan(Roots.open(tmp_path / "ws", extra)).notes][:-1]

    assert found(ExtraPath(more, "a.md"), ExtraPath(more, "b.md")) == ["a.md", "b.md"]
    assert found(ExtraPath(more, "a.md"), ExtraPath(f"{more}/deep", "c*")) == ["a.md", "deep/c.md"]
    assert found(ExtraPath(f"{more}/deep", "c*"), ExtraPath(more, "a.md")) == ["a.md", "deep/c.md"]
    assert found(ExtraPath(more, "a.md"), f"{more}/deep") == ["a.md", "deep/a.md", "deep/c.md"]
    assert found(ExtraPath(more, "a.md"), more) == ["a.md", "b.md", "deep/a.md", "deep/c.md"]


def test_a_pattern_is_part_of_the_scope_that_an_index_was_made_for():
    plain = scope_hash(["/a", "/b"])
    assert plain == scope_hash(["/b", "/a"])
    assert plain != scope_hash(["/a", "/b"], [ExtraPath("/a"), ExtraPath("/b", "*.md")])
