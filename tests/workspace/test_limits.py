"""An extra path that holds a whole disk is refused with a sentence, counted once, and never watched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.index.watch import _View
from memory_tui.plan import Options
from memory_tui.workspace import scan as workspace_scan
from memory_tui.workspace.roots import Roots, scan

LIMIT = 40


@pytest.fixture
def vast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one note and more files than the limit allows."""
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, str(LIMIT))
    folder = tmp_path / "vast"
    for number in range(10):
        (folder / f"d{number}").mkdir(parents=True)
        for other in range(10):
            (folder / f"d{number}" / f"{other}.txt").touch()
    (folder / "note.md").write_text("zebrafish\n")
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    (tmp_path / "notes" / "MEMORY.md").write_text("tea\n")
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "other.md").write_text("coffee\n")
    return folder


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every folder that is listed."""
    seen: list[str] = []
    plain: Callable[..., object] = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (seen.append(folder), plain(folder))[1])
    return seen


def test_what_is_too_large_is_refused_as_a_whole_and_its_neighbours_are_read(vast: Path, listed: list[str]) -> None:
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


def test_no_more_is_looked_at_than_the_limit(
    tmp_path: Path, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, "5")
    for size in (10, 100, 400):
        folder = tmp_path / str(size)
        for number in range(size):
            (folder / f"d{number}").mkdir(parents=True)
        listed.clear()
        assert workspace_scan.too_large(str(folder))
        assert len(listed) <= 6


def test_another_limit_lets_it_in(vast: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = Roots.open(vast.parent / "notes", [str(vast)])
    assert "../vast/note.md" not in {note.path for note in scan(roots).notes}
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, "1000")
    assert "../vast/note.md" in {note.path for note in scan(roots).notes}


def test_it_is_not_watched_and_the_status_says_why(vast: Path, tmp_path: Path) -> None:
    notes = vast.parent / "notes"
    assert str(vast) not in _View.of(Roots.open(notes, [str(vast)])).folders
    options = Options(workspace=str(notes), index=str(tmp_path / "i.sqlite"), provider="scripted", extra=(str(vast),))
    with Engine.open(options) as engine:
        engine.index.sync()
        assert [hit.chunk.path for hit in engine.search.search("tea").recalled] == ["MEMORY.md"]
        (left,) = [left for left in engine.status().freshness.left_out if left.path == "../vast"]
        assert "More than 40 files" in left.detail


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and /sys are Linux's")
def test_the_root_of_the_disk_comes_to_an_end_and_the_systems_folders_are_not_entered(
    vast: Path, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(workspace_scan.LIMIT_VARIABLE, "2000")
    roots = Roots.open(vast.parent / "notes", ["/", "/proc", "/dev"])
    found = scan(roots)
    assert [note.path for note in found.notes] == ["MEMORY.md"]
    details = {os.path.normpath(roots.workspace / left.path): left.detail for left in found.left_out}
    assert "More than 2,000" in details["/"]
    assert "folder of the system" in details["/proc"]
    assert "folder of the system" in details["/dev"]
    assert not {"/proc", "/sys", "/dev"} & set(listed)
