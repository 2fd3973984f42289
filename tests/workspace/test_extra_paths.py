"""Patterns of extraPaths choose notes as Node's `path.posix.matchesGlob` does, which OpenClaw asks from 2026.8 on."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_tui.config.places import ExtraPath
from memory_tui.index.schema import scope_hash
from memory_tui.workspace.roots import Roots, admitted, entries, scan, why_path
from tests.support.workspace import put

# What Node 20.20 answered.
ANSWERED = [
    ("a.md", "*.md", True),
    ("x/a.md", "*.md", False),
    ("x/a.md", "**/*.md", True),
    ("a.md", "**/*.md", True),
    (".h.md", "*.md", False),
    (".h/a.md", "**/*.md", False),
    ("x/.h.md", "**", False),
    ("x/a.md", "**", True),
    ("x/a.md", "x/**", True),
    ("x/a.md", "x/", False),
    ("a.md", "{a,b}.md", True),
    ("b.md", "{a,b}.md", True),
    ("a1.md", "a[0-9].md", True),
    ("ab.md", "a[!b].md", False),
    ("ac.md", "a[!b].md", True),
    ("ac.md", "a[^b].md", True),
    ("a.md", "?.md", True),
    ("a.md", "A.md", False),
    ("x/y/z.md", "x/*/z.md", True),
    ("x/z.md", "x/**/z.md", True),
    ("x/y/q/z.md", "x/**/z.md", True),
    ("x/yz.md", "x/**z.md", True),
    ("x/q/yz.md", "x/**z.md", False),
    ("a1.md", "a{1..3}.md", True),
    ("a5.md", "a{1..3}.md", False),
    ("a.md", "!(b).md", True),
    ("a.md", "@(a|b).md", True),
    ("b.md", "!(b).md", False),
    ("a.md", "./a.md", False),
    ("[a].md", "[[]a].md", True),
    ("a.md", "[a", False),
    ("é.md", "?.md", True),
    ("x/a.md", "*/a.md", True),
    (".x/a.md", "*/a.md", False),
    ("x/y/a.md", "{x,w}/**/*.md", True),
    ("a.md", "{a.md,}", True),
    ("a.b.md", "*.md", True),
    (".a.md", ".*", True),
    ("a.md", "***", True),
    ("x/y.md", "***", False),
    ("x/a.md", "{**/a,b}.md", True),
]


@pytest.mark.parametrize(("path", "pattern", "matches"), ANSWERED)
def test_patterns_match_as_in_node(path: str, pattern: str, matches: bool) -> None:
    assert admitted([ExtraPath("/more", pattern)])(f"/more/{path}") is matches


def test_an_entry_is_absolute_and_counts_once() -> None:
    written = [" notes ", "notes", ExtraPath("notes/"), ExtraPath("notes", "*.md"), "", "/a/../b"]
    assert entries("/ws", written) == (ExtraPath("/ws/notes"), ExtraPath("/ws/notes", "*.md"), ExtraPath("/b"))


def test_a_pattern_leaves_notes_out_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, "ws/MEMORY.md", "more/a.md", "more/b.md", "more/deep/a.md", "more/deep/c.md", "one.md", "more/x.txt")
    more = str(tmp_path / "more")
    roots = Roots.open(tmp_path / "ws", [ExtraPath(more, "*a.md"), ExtraPath(str(tmp_path / "one.md"), "nothing*")])
    assert [note.path for note in scan(roots).notes] == ["../more/a.md", "../one.md", "MEMORY.md"]
    verdict = why_path(roots, "../more/b.md")
    assert (verdict.included, verdict.rule) == (False, "pattern")
    assert "extraPaths" in verdict.detail


def test_several_entries_of_one_folder_add_up(tmp_path: Path) -> None:
    put(tmp_path, "ws/MEMORY.md", "more/a.md", "more/b.md", "more/deep/a.md", "more/deep/c.md")
    more = str(tmp_path / "more")

    def found(*extra: str | ExtraPath) -> list[str]:
        return [note.path.removeprefix("../more/") for note in scan(Roots.open(tmp_path / "ws", extra)).notes][:-1]

    assert found(ExtraPath(more, "a.md"), ExtraPath(more, "b.md")) == ["a.md", "b.md"]
    assert found(ExtraPath(more, "a.md"), ExtraPath(f"{more}/deep", "c*")) == ["a.md", "deep/c.md"]
    assert found(ExtraPath(f"{more}/deep", "c*"), ExtraPath(more, "a.md")) == ["a.md", "deep/c.md"]
    assert found(ExtraPath(more, "a.md"), f"{more}/deep") == ["a.md", "deep/a.md", "deep/c.md"]
    assert found(ExtraPath(more, "a.md"), more) == ["a.md", "b.md", "deep/a.md", "deep/c.md"]


def test_a_pattern_is_part_of_the_scope_that_an_index_was_made_for() -> None:
    plain = scope_hash(["/a", "/b"])
    assert plain == scope_hash(["/b", "/a"])
    assert plain != scope_hash(["/a", "/b"], [ExtraPath("/a"), ExtraPath("/b", "*.md")])
