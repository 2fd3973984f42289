"""One server for all tests of a process, and a database for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tui.shared import publish
from tests.support.postgres import Server
from tests.support.shared_index import ROSES, Home, shared_database
from tests.support.waiting import LONG


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def database(server: Server) -> str:
    return server.database()


@pytest.fixture
def team(server: Server) -> str:
    """The name of a database with a shared index that anna and bob may use."""
    return shared_database(server)


@pytest.fixture
def laptop(server: Server, team: str, tmp_path: Path) -> Home:
    """Anna's machine, whose notes bob may read."""
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(MEMORY="# Facts\n\nThe router of anna is an Omada.\n", **{"2026-03-10": ROSES})
    home.join()
    home.publish()
    publish.allow(home.access, "bob", reads=True)
    return home


@pytest.fixture
def desk(server: Server, team: str, tmp_path: Path, laptop: Home) -> Home:
    home = Home(tmp_path / "desk", server.url(team, "bob"), "bob/desk", askTimeoutMs=20_000)
    facts = "# Facts\n\nThe kettle of bob is green.\nThe roses of bob are red.\n"
    home.write(MEMORY=facts, **{"2026-03-11": "# Day\n\nBob mowed the lawn.\n"})
    home.join()
    home.publish()
    return home


@pytest.fixture(autouse=True)
def _a_patient_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who closes an engine finds that it publishes no more, however busy the machine is."""
    monkeypatch.setattr("memory_tui.shared.publish.GOODBYE_SECONDS", LONG)
