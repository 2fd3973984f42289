"""A workspace, and a disk whose other writers are never in the middle of a line."""

from pathlib import Path

import pytest

from memory_tui.notes import journal, write
from tests.support.curate import workspace
from tests.support.waiting import LONG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return workspace(tmp_path / "notes")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is how long a program is waited for that has a note open, or the lock, and gets no turn on a busy machine."""
    for place, name in ((write, "WAIT_SECONDS"), (write, "DEADLINE_SECONDS"), (journal, "_LOCK_SECONDS")):
        monkeypatch.setattr(place, name, LONG)


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the rest of a line is no part of the tests that ask for this."""
    monkeypatch.setattr(write, "HALF_SECONDS", 0.0)
