"""A workspace, and a disk whose other writers are never in the middle of a line."""

from pathlib import Path

import pytest

from memory_tui.notes import write
from tests.support.curate import workspace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return workspace(tmp_path / "notes")


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the rest of a line is no part of the tests that ask for this."""
    monkeypatch.setattr(write, "HALF_SECONDS", 0.0)
