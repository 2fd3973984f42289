"""The app over the sample workspace: one of its own for a test that changes something, a shared one for readers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.screen import Screen

from tests.support.tui import Window, make_app, sample


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return sample(tmp_path / "notes")


@pytest.fixture
def screen(workspace: Path) -> Iterator[Window]:
    with Window(make_app(workspace)) as window:
        yield window


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """One app for the tests of a module that only read: each leaves no dialog open and no knob turned."""
    with Window(make_app(sample(tmp_path_factory.mktemp("shared") / "notes"))) as window:
        yield window


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with each layout: the cost of a key, without a clock."""
    counted: list[object] = []
    layout = Screen._refresh_layout
    monkeypatch.setattr(
        Screen, "_refresh_layout", lambda *args, **named: (counted.append(args), layout(*args, **named))
    )
    return counted
