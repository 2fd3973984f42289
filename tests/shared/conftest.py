"""One server for all tests of a process, and a database for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import Server
from tests.support.waiting import LONG


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """PostgreSQL with pgvector."""
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def database(server: Server) -> str:
    """The name of an empty database."""
    return server.database()


@pytest.fixture(autouse=True)
def _a_patient_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who closes an engine finds that it publishes no more, however busy the machine is."""
    monkeypatch.setattr("memory_tui.shared.publisher.GOODBYE_SECONDS", LONG)
