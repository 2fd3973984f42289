"""The file rows of an index, kept in memory as little as looks at the disk need, and brought up to date by changes.

For a look without news only a few numbers of each row are wanted, and they have to be there at once: a process that
starts would spend as long on making whole rows as on asking the disk for the status of every note.
"""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, NamedTuple

from memory_tui.index.ticks import unmoved

if TYPE_CHECKING:
    from memory_tui.index.database import Database, Rows
    from memory_tui.workspace.walk import Settled

CHANGED = "changed"
"""State of a note that was being written to each time it was read."""
FILE = "SELECT id, path, source, hash, mtime, size, state, detail, indexed_at, chunks FROM files"
"""Reads what a FileRow holds."""
_BRIEF = "SELECT id, path, size, mtime, indexed_at, state = 'ok' AND hash <> '' FROM files"
_FEW = 64
"""So many rows are read one by one; who asks for more gets all of them read at once."""


class FileRow(NamedTuple):
    """A note as it was indexed: `mtime_ns` and `size` of the file that was read, `indexed_at` in seconds.

    `state` is ok, failed or CHANGED; `detail` says why it failed, or what is odd about the text. `hash` is empty when
    the note has to be read again whatever the disk says.
    """

    id: int
    path: str
    source: str
    hash: str
    mtime_ns: int
    size: int
    state: str
    detail: str
    indexed_at: float
    chunks: int


class Known(Mapping[str, FileRow]):
    """Every file row by path. How many there are and what is `settled` is always there, the rest is read when asked."""

    def __init__(self, database: Database) -> None:
        self.generation = -1
        """Of the index, as it is known here."""
        self.settled: Settled = {}
        """What the disk has to say of a note for its row to hold without another look."""
        self.unsettled: set[str] = set()
        """The paths of all other rows."""
        self._database = database
        self._notes: dict[str, dict[str, tuple[int, int, int]]] = {}
        self._paths: dict[int, str] = {}
        self._rows: dict[str, FileRow] | None = None
        self._asked = 0

    def load(self, generation: int) -> None:
        """Learn everything anew."""
        self.generation, self._asked, self._rows = generation, 0, None
        self._paths, self._notes = {}, {}
        self.settled, self.unsettled = self._notes, set()
        self._learn(self._database.query(_BRIEF))

    def follow(self, generation: int, ids: Sequence[int]) -> None:
        """Learn what became of the rows with these `ids`, which are all that changed."""
        self.generation, self._asked = generation, 0
        for number in ids:
            self._forget(self._paths.pop(number, ""))
        which, wanted = "WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        self._learn(self._database.query(f"{_BRIEF} {which}", wanted))
        if self._rows is not None:
            self._rows |= {row[1]: FileRow._make(row) for row in self._database.query(f"{FILE} {which}", wanted)}

    def _learn(self, rows: Rows) -> None:
        paths, notes = self._paths, self._notes
        last, names = None, {}
        for number, path, size, mtime, at, whole in rows:
            paths[number] = path
            read = round(at * 1e9)
            if whole and unmoved(mtime, read):
                folder, slash, name = path.rpartition("/")
                # Rows of one folder mostly follow each other.
                if folder != last:
                    last, names = folder, notes.setdefault(folder + slash, {})
                names[name] = size, mtime, read
            else:
                self.unsettled.add(path)

    def _forget(self, path: str) -> None:
        folder, slash, name = path.rpartition("/")
        names = self._notes.get(folder + slash, {})
        if names.pop(name, None) and not names:
            del self._notes[folder + slash]
        self.unsettled.discard(path)
        if self._rows is not None:
            self._rows.pop(path, None)

    def _all(self) -> dict[str, FileRow]:
        if self._rows is None:
            self._rows = {row[1]: FileRow._make(row) for row in self._database.query(FILE)} if self._paths else {}
        return self._rows

    def __getitem__(self, path: str) -> FileRow:
        if self._rows is None and self._paths and self._asked < _FEW:
            self._asked += 1
            rows = self._database.query(f"{FILE} WHERE path = ?", (path,))
            if not rows:
                raise KeyError(path)
            return FileRow._make(rows[0])
        return self._all()[path]

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def items(self) -> ItemsView[str, FileRow]:
        """Path and row of each note."""
        return self._all().items()

    def values(self) -> ValuesView[FileRow]:
        """The row of each note."""
        return self._all().values()
