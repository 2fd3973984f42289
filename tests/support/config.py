"""Fixtures for configurations of OpenClaw in a home of their own; loaded with `pytest_plugins`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[object], Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nothing in it, which no variable leads away from."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "xdg"))
    return folder


@pytest.fixture
def write(home: Path) -> Write:
    """Write a configuration, as text or as data, where OpenClaw keeps it."""

    def go(content: object) -> Path:
        path = home / ".openclaw" / "openclaw.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return go
