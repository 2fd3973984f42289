"""A folder of facts or of notes is a memory too, and a pattern leaves notes out; what is left out is told."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from memory_tui.cli.main import main
from memory_tui.errors import PathRefused
from memory_tui.plan import Options, plan
from memory_tui.workspace.roots import Roots, beside, located, scan, why_path
from tests.support.workspace import put


def paths(roots: Roots) -> list[str]:
    return [note.path for note in scan(roots).notes]


def planned(folder: Path, *changes: tuple[str, str]) -> Roots:
    return plan(Options(workspace=str(folder), changes=changes)).roots


def test_facts_beside_their_index_are_all_notes(tmp_path: Path) -> None:
    put(tmp_path, "project_deploy.md", "feedback_testing.md", "old/unlisted.md")
    put(tmp_path, "MEMORY.md", text="# Memory index\n- [Deploy](project_deploy.md) — how we deploy\n")
    seen = scan(planned(tmp_path))
    assert [note.path for note in seen.notes] == [
        "MEMORY.md",
        "feedback_testing.md",
        "old/unlisted.md",
        "project_deploy.md",
    ]
    assert seen.left_out == ()
    put(tmp_path, "AGENTS.md")
    assert paths(planned(tmp_path)) == ["MEMORY.md"], "in a workspace of OpenClaw they are none"
    assert beside(planned(tmp_path)) == 4


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_vault_is_a_memory_once_a_person_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
def test_patterns_leave_notes_and_folders_out(tmp_path: Path, patterns: str, left: set[str]) -> None:
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
