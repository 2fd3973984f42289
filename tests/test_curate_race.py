"""Beside a program that never stops writing every change is made at once, and no line of either side is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers_curate import hidden, workspace
from helpers_time import LONG
from race_harness import LOG, WAYS, Desk, Writer

from memory_tui.curate import journal, swap, write

ACTS = ("save", "promote", "merge", "archive", "remember", "undo", "redo")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = workspace(tmp_path / "notes")
    Desk.prepare(folder)
    return folder


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk is no part of these tests."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is how long a program waits for another one that gets no turn on a busy machine."""
    for place, name in ((swap, "WAIT_SECONDS"), (write, "DEADLINE_SECONDS"), (journal, "_LOCK_SECONDS")):
        monkeypatch.setattr(place, name, LONG)


def race(folder: Path, act: str, way: str, pause: float, times: int) -> None:
    with Writer(folder / LOG, way, pause) as writer:
        desk = Desk(folder, writer.wrote)
        for _ in range(times):
            getattr(desk, act)()
    assert writer.missing(folder) == []
    assert desk.wrong() == []
    assert hidden(folder) == []
    assert desk.curator.drafts() == ()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("act", ACTS)
def test_every_change_beside_a_writer(folder: Path, act: str, way: str) -> None:
    race(folder, act, way, 0.005, 8)


@pytest.mark.soak
@pytest.mark.parametrize("rate", [5, 20])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("act", ACTS)
def test_500_changes_beside_a_writer(folder: Path, act: str, way: str, rate: int) -> None:
    race(folder, act, way, 1 / rate, 12)
