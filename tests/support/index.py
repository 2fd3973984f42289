"""A workspace with an index of its own, and providers that count, fail or answer wrongly."""

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from memory_tui import events
from memory_tui.cancel import Stop
from memory_tui.config.settings import Settings
from memory_tui.errors import ProviderError
from memory_tui.index.store import Store
from memory_tui.index.sync import SyncReport, SyncRun, sync
from memory_tui.providers import Identity, fingerprint
from memory_tui.providers.builtin import Scripted
from memory_tui.sentences import Notice
from memory_tui.workspace.roots import Roots, scan


class Counting(Scripted):
    """The scripted provider, with a record of each call; it fails while `broken` holds a reason."""

    def __init__(self, model: str = "") -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.broken = ""
        self._model = model

    @property
    def identity(self) -> Identity:
        real, model = super().identity, self._model
        key = fingerprint(provider=real.provider, model=model)
        return Identity(real.provider, model, key, real.dims) if model else real

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]

    def embed(self, texts, kind):
        if self.broken:
            raise ProviderError(self.broken)
        self.calls.append(list(texts))
        return super().embed(texts, kind)


class Answering(Counting):
    """Answers with what it is told to, whatever it is asked."""

    def __init__(self, answer: np.ndarray) -> None:
        super().__init__()
        self.answer = answer

    def embed(self, texts, kind):
        return self.answer


class Memory:
    """Notes in `folder`, an index in `path`, and all events of its syncs."""

    def __init__(self, folder: Path, path: Path, *, extra: tuple[str, ...] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.extra = extra
        self.notices: list[Notice] = []
        self.events: list[events.Event] = []
        self.provider: Counting | None = Counting()
        self.settings = Settings.defaults().set("profile", "recommended", "test")
        self.cancel = Stop()
        self.store = Store.open(path, notices=self.notices)

    @property
    def roots(self) -> Roots:
        return Roots.open(self.folder, self.extra)

    def write(self, path: str, text: str | bytes) -> Path:
        note = self.folder / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(text.encode() if isinstance(text, str) else text)
        return note

    def sync(self, *, force: bool = False, listener: events.Listener | None = None, accept: bool = False) -> SyncReport:
        more = {"provider": self.provider, "stop": self.cancel, "force": force, "accept_shrink": accept}
        listener = listener or self.events.append
        return sync(SyncRun(self.store, self.roots, self.settings, scan(self.roots), listener=listener, **more))

    def told(self, kind: type[events.Event]) -> list[events.Event]:
        return [event for event in self.events if isinstance(event, kind)]


def run_sql(path: Path, sql: str, *bindings: Any) -> list[Any]:
    """What the statements give in the file at `path`, over a connection of their own."""
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql, bindings).fetchall()


def text_of(lines: int, word: str = "line") -> str:
    """Lines of about 40 characters, each different."""
    return "".join(f"{word} number {i} of a note about {word}{i}\n" for i in range(lines))


def integrity(store: Store) -> list[str]:
    """What SQLite and FTS5 find wrong with an index file."""
    problems = [row[0] for row in store.query("PRAGMA integrity_check") if row[0] != "ok"]
    for table in ("chunks_fts", "chunks_words"):
        store.query(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    return problems
