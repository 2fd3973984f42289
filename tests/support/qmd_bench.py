"""A workspace with notes, a stub of QMD that a configuration names, engines whose backend is QMD."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_tui.backends import qmd
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.events import Event
from memory_tui.plan import Options
from tests.support.qmd_stub import QmdStub
from tests.support.workspace import put_all

NOTES = {
    "MEMORY.md": "# Memory\n\n- Alice prefers dark roast\n- Router VLAN 41 is for guests\n",
    "memory/2026-11-01.md": "# Day\n\nRouter firmware updated\n",
    "memory/garden.md": "# Garden\n\nTomatoes need water\n",
}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder, folder / "W"
        put_all(self.workspace, NOTES)
        self.stub = QmdStub(folder / "bin")
        self.events: list[Event] = []
        self.qmd_index = folder / "index.sqlite.qmd" / "xdg-cache" / "qmd" / "index.sqlite"

    def options(self, command: str = "", **settings: Any) -> Options:
        changes = {"qmd.command": command or str(self.stub.program), "qmd.limits.timeoutMs": 20_000, **settings}
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in changes.items()}
        place = {"workspace": str(self.workspace), "index": str(self.folder / "index.sqlite")}
        return Options(**place, provider="none", backend="qmd", changes=tuple(texts.items()))

    @contextmanager
    def engine(self, command: str = "", **settings: Any) -> Iterator[Engine]:
        with Engine.open(self.options(command, **settings), self.events.append) as engine:
            yield engine

    def updated(self, **settings: Any) -> None:
        with self.engine(**settings) as engine:
            qmd.update(engine.backend.client, Stop())
