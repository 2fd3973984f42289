"""Read QMD's index beside the files on disk; it is never written here."""

# ruff: noqa: PTH118
# Paths are strings: names may hold undecodable bytes.

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import apsw
from msgspec import Struct

from memory_tui.backends.qmd_program import RESET, QmdFailure
from memory_tui.formatting import plural
from memory_tui.openclaw.open_foreign import NotSeen, read_foreign
from memory_tui.workspace.roots import fits_pattern

T = TypeVar("T")
UPDATE = "Run memory-tui qmd update."
_SKIPPED = frozenset({"node_modules", ".git", ".cache", "vendor", "dist", "build"})
"""Folders that QMD never enters; nor any that begins with a dot."""
_MOST_BLANK = 256


class WantedCollection(Struct, frozen=True):
    """A collection that QMD should have: its name, an absolute folder, the pattern of its files."""

    name: str
    path: str
    pattern: str
    source: str = "memory"


class Collection(Struct, frozen=True):
    """A collection of QMD, with the paths of its active documents below the folder."""

    name: str
    path: str
    pattern: str
    documents: frozenset[str]


class QmdIndex(Struct, frozen=True):
    """One state of QMD's index; `vectors` counts embedded chunks."""

    collections: Mapping[str, Collection]
    vectors: int = 0

    @property
    def documents(self) -> int:
        """Count the active documents of all collections."""
        return sum(len(item.documents) for item in self.collections.values())

    def serving(self, specs: WantedCollection) -> Collection | None:
        """Return the collection with the folder and pattern of `wanted`, which may have another name."""
        same = (specs.path, specs.pattern)
        return next((item for item in self.collections.values() if (item.path, item.pattern) == same), None)


def read(file: Path) -> QmdIndex:
    """Return the state of the index in `file`. Raises QmdFailure."""
    return _read(file, _index)


def _read(file: Path, read: Callable[[apsw.Connection], T]) -> T:
    try:
        return read_foreign(file, read)[0]
    except NotSeen as error:
        if error.state == "missing":
            raise QmdFailure("index", "QMD's index is empty or stale: it has not been made yet.", UPDATE) from None
        step = RESET if error.state == "damaged" else UPDATE
        raise QmdFailure("index", f"QMD's index cannot be read: {error.detail.rstrip('.')}.", step) from None
    except apsw.Error as error:
        raise QmdFailure("index", f"{file} is no index of QMD 2.x: {error}.", RESET) from None


def _index(connection: apsw.Connection) -> QmdIndex:
    documents: dict[str, list[str]] = {}
    for name, path in connection.execute("SELECT collection, path FROM documents WHERE active = 1"):
        documents.setdefault(str(name), []).append(str(path))
    rows = connection.execute("SELECT name, path, pattern FROM store_collections")
    collections = {
        str(name): Collection(str(name), str(path), str(pattern), frozenset(documents.get(str(name), ())))
        for name, path, pattern in rows
    }
    embeds = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'content_vectors'").fetchone()
    counted = connection.execute("SELECT count(*) FROM content_vectors").fetchone() if embeds else None
    return QmdIndex(collections, int(counted[0]) if counted else 0)


# --- the files on disk ---------------------------------------------------------------------------------------------


def files_of(folder: str, pattern: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files that QMD takes for a collection, by their path below `folder`; unreadable folders have none.

    Only a name in the list of a folder counts: on some file systems MEMORY.md opens memory.md too.
    """
    masks, deep = re.split(r",(?![^{]*\})", pattern), bool(re.search(r"[/*?\[{]", pattern))
    for base, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if deep and name not in _SKIPPED and not name.startswith(".")]
        prefix = os.path.relpath(base, folder).replace(os.sep, "/") + "/"
        for name in sorted(names):
            below, path = f"{prefix}{name}".removeprefix("./"), os.path.join(base, name)
            fits = below.endswith(".md") if pattern == "**/*.md" else fits_pattern(below, masks)
            if fits and not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield below, os.stat(path)  # noqa: PTH116


def _is_blank(path: str, size: int) -> bool:
    """Tell whether a file holds nothing but blanks, so that QMD leaves it out."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return size <= _MOST_BLANK and not file.read(_MOST_BLANK).strip()
    except OSError:
        # QMD reads it no better.
        return True


class Coverage(Struct, frozen=True):
    """How well the index covers the files of the wanted collections, seen without reading a file."""

    files: int
    documents: int
    missing: tuple[str, ...]
    ghosts: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def behind(self) -> tuple[str, ...]:
        """Return the files that are not in the index as they are on disk."""
        return self.missing + self.ghosts + self.changed

    @property
    def whole(self) -> bool:
        """Tell whether every file has a document, and no document is of a file that is gone."""
        return not self.missing and not self.ghosts

    def sentence(self) -> str:
        """Return what an empty answer of such an index means."""
        return (
            f"QMD's index is empty or stale: it holds {plural(self.documents, 'document')}, and "
            f"{plural(self.files, 'file')} belong{'s' if self.files == 1 else ''} to its collections."
        )


def coverage(index: QmdIndex, specs: Sequence[WantedCollection], updated: float) -> Coverage:
    """Return how `index`, last brought up to date at `updated` (epoch seconds), stands to the files of `wanted`."""
    files = documents = 0
    missing, ghosts, changed = [], [], []
    for item in specs:
        collection = index.serving(item)
        rows = collection.documents if collection is not None else frozenset()
        there = {
            below: status.st_mtime
            for below, status in files_of(item.path, item.pattern)
            if below in rows or not _is_blank(os.path.join(item.path, below), status.st_size)
        }
        files, documents = files + len(there), documents + len(rows)
        missing += [f"{item.name}/{path}" for path in sorted(there.keys() - rows)]
        ghosts += [f"{item.name}/{path}" for path in sorted(rows - there.keys())]
        changed += [f"{item.name}/{path}" for path in sorted(there.keys() & rows) if 0 < updated < there[path]]
    return Coverage(files, documents, tuple(missing), tuple(ghosts), tuple(changed))
