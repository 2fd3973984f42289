"""A workspace with two notes whose provider is the server of the test; loaded with `pytest_plugins`."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.providers.registry import RequestLimits
from tests.support.embed import PLACES, Time
from tests.support.provider_server import Play, serving
from tests.support.workspace import FACTS, put_all

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as server:
        yield server


@pytest.fixture
def elsewhere(play: Play, monkeypatch: pytest.MonkeyPatch) -> Play:
    """A provider elsewhere: the server on loopback is the proxy on the way to any host."""
    monkeypatch.setenv("HTTP_PROXY", play.url)
    return play


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Time that stands still, calls that wait for nothing, and answers that are given up after a moment."""
    usual, clock = plan.settings, Time()
    quick = replace(RequestLimits(), query_seconds=1.0, batch_seconds=1.0)
    monkeypatch.setattr(plan, "settings", lambda *args: replace(usual(*args), clock=clock.clock(), batches=quick))
    return clock


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    facts = {"MEMORY.md": FACTS["MEMORY.md"], "memory/2026-01-02.md": "The walrus likes cake.\n"}
    return put_all(tmp_path / "notes", facts)


@pytest.fixture
def run(tmp_path: Path, command: Run) -> Run:
    """Run a command on the workspace."""
    places = [word for name, file in PLACES.items() for word in (f"--{name}", str(tmp_path / file))]
    return partial(command, *places, "--set", "profile=recommended")
