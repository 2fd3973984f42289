"""One server for all tests of a process, and a database for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import Server


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
