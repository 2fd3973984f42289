"""The app over the sample workspace, which most screens need."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_tui.tui.app import MemoryApp
from tests.support.tui import make_app, sample


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return sample(tmp_path / "notes")


@pytest.fixture
def app(workspace: Path) -> MemoryApp:
    return make_app(workspace)
