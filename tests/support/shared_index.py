"""Homes that share an index: a workspace, a configuration and an index of its own for each machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from memory_tui.plan import Options, plan
from memory_tui.shared import publish
from memory_tui.shared.connection import Access, access, connect, make_schema
from tests.support.postgres import Server
from tests.support.workspace import synced

ROSES = "# Garden\n\nThe roses by the gate are called Gertrude.\n\n- They get water on Fridays.\n"
"""A note of anna's."""
EVERYTHING = (publish.NOTES, publish.MEMORY, publish.SESSIONS)


def shared_database(server: Server) -> str:
    """Make a database with a shared index that anna and bob may use."""
    database = server.database()
    options = config(server.folder, server.socket_url(database), "owner/one")
    owner = access(plan(Options(workspace=str(server.folder), config=options)))
    with connect(owner) as connection:
        make_schema(connection, owner, ("anna", "bob"))
    return database


def config(folder: Path, url: str, name: str, beside: Mapping[str, object] = MappingProxyType({}), **more: Any) -> str:
    """Write a configuration with `more` of the shared index, and what is `beside` that; return its path."""
    path = folder / f"{name.replace('/', '-')}.json"
    path.write_text(json.dumps({"shared": {"url": url, "name": name, "password": "correct horse"} | more, **beside}))
    return str(path)


class Home:
    """A machine: the notes, the index and the configuration of one workspace."""

    def __init__(
        self, folder: Path, url: str, name: str, beside: Mapping[str, object] = MappingProxyType({}), **more: Any
    ) -> None:
        self.notes, self.name = folder / "notes", name
        (self.notes / "memory").mkdir(parents=True)
        places = {"workspace": str(self.notes), "index": str(folder / "index.sqlite")}
        self.options = Options(**places, config=config(folder, url, name, beside, **more))

    def write(self, **notes: str) -> None:
        for name, text in notes.items():
            path = self.notes / ("MEMORY.md" if name == "MEMORY" else f"memory/{name}.md")
            path.write_text(text, "utf-8")

    def remove(self, name: str) -> None:
        (self.notes / "memory" / f"{name}.md").unlink()

    @property
    def access(self) -> Access:
        return access(plan(self.options))

    def join(self, *kinds: str) -> None:
        """Agree that notes leave this machine, by default all of them."""
        publish.join(plan(self.options), self.access, kinds or EVERYTHING, "test")

    def publish(self) -> publish.Published:
        with synced(self.options) as engine, engine.index.reader() as store:
            return publish.publish(store, self.access, publish.consent(engine.plan, self.access))
