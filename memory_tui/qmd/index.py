"""QMD's index is read beside the files on disk; it is never written here."""

# ruff: noqa: PTH118
# Paths are strings: names may hold undecodable bytes.

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct, field

from memory_tui.core.formatting import plural
from memory_tui.openclaw.open_foreign import NotSeen, read_foreign
from memory_tui.qmd.folder import QmdFailure
from memory_tui.qmd.options import WantedCollection

if TYPE_CHECKING:
    import apsw

UPDATE = "Run memory-tui qmd update."
RESET = "Make it anew: memory-tui qmd reset, then memory-tui qmd update."
_SKIPPED = frozenset({"node_modules", ".git", ".cache", "vendor", "dist", "build"})
"""Folders that QMD never enters; nor any that begins with a dot."""
_MOST_BYTES = 64 << 20
_MOST_BLANK = 256
Difference = Literal["missing", "stale", "ghost", ""]
T = TypeVar("T")


class IndexedFile(Struct, frozen=True):
    """A file as QMD has it: hexadecimal SHA-256 of its text, and when it was stored (ISO)."""

    hash: str
    stored: str


class Collection(Struct, frozen=True):
    """A collection of QMD: folder, pattern, and its active documents by path below the folder."""

    name: str
    path: str
    pattern: str
    documents: Mapping[str, IndexedFile] = field(default_factory=dict)


class QmdIndex(Struct, frozen=True):
    """One state of QMD's index; `vectors` counts embedded chunks."""

    file: str
    collections: Mapping[str, Collection]
    vectors: int

    @property
    def documents(self) -> int:
        """Active documents of all collections."""
        return sum(len(one.documents) for one in self.collections.values())

    def serving(self, wanted: WantedCollection) -> Collection | None:
        """The collection with the folder and pattern of `wanted`, which may have another name."""
        same = self.collections.get(wanted.name)
        if same is not None and (same.path, same.pattern) == (wanted.path, wanted.pattern):
            return same
        return next(
            (one for one in self.collections.values() if (one.path, one.pattern) == (wanted.path, wanted.pattern)), None
        )


def read(file: Path) -> QmdIndex:
    """The index in `file`. Raises QmdFailure."""
    return _read(file, lambda connection: _index(connection, str(file)))


def _read(file: Path, read: Callable[[apsw.Connection], T]) -> T:
    import apsw

    try:
        return read_foreign(file, read)[0]
    except NotSeen as error:
        if error.state == "missing":
            raise QmdFailure("index", "QMD's index is empty or stale: it has not been made yet.", UPDATE) from None
        step = RESET if error.state == "damaged" else UPDATE
        raise QmdFailure("index", f"QMD's index cannot be read: {error.detail.rstrip('.')}.", step) from None
    except apsw.Error as error:
        raise QmdFailure("index", f"QMD's index cannot be read: {error}.", RESET) from None


def _index(connection: apsw.Connection, file: str) -> QmdIndex:
    names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"documents", "store_collections"} <= names:
        raise QmdFailure("index", f"{file} is no index of QMD 2.x: it lacks its tables.", RESET)
    documents: dict[str, dict[str, IndexedFile]] = {}
    for name, path, hashed, stored in connection.execute(
        "SELECT collection, path, hash, modified_at FROM documents WHERE active = 1"
    ):
        documents.setdefault(str(name), {})[str(path)] = IndexedFile(str(hashed), str(stored))
    rows = connection.execute("SELECT name, path, pattern FROM store_collections")
    collections = {
        str(name): Collection(str(name), str(path), str(pattern), documents.get(str(name), {}))
        for name, path, pattern in rows
    }
    # Counting all of them would read the whole table, and any tells that the texts are embedded.
    found = "content_vectors" in names and connection.execute("SELECT EXISTS(SELECT 1 FROM content_vectors)").fetchone()
    return QmdIndex(file, collections, int(found[0]) if found else 0)


def embedded(file: Path) -> int:
    """How many chunks have a vector. Raises QmdFailure."""

    def count(connection: apsw.Connection) -> int:
        found = connection.execute("SELECT count(*) FROM content_vectors").fetchone()
        return int(found[0]) if found else 0

    return _read(file, count)


def matching(file: Path, expressions: Sequence[str], collection: str, path: str) -> tuple[bool, ...]:
    """Which full-text `expressions` match one document, asked of QMD's own table. Raises QmdFailure."""

    def match(connection: apsw.Connection) -> tuple[bool, ...]:
        row = connection.execute(
            "SELECT id FROM documents WHERE collection = ? AND path = ? AND active = 1", (collection, path)
        ).fetchone()
        if row is None:
            return tuple(False for _ in expressions)
        statement = "SELECT 1 FROM documents_fts WHERE documents_fts MATCH ? AND rowid = ?"
        return tuple(connection.execute(statement, (one, row[0])).fetchone() is not None for one in expressions)

    return _read(file, match)


# --- the files on disk ---------------------------------------------------------------------------------------------


class DiskFile(Struct, frozen=True):
    """A file that belongs to a collection, by its path below the collection's folder."""

    path: str
    absolute: str
    size: int
    mtime: float


def files_of(folder: str, pattern: str) -> Iterator[DiskFile]:
    """The files that QMD takes for a collection; unreadable folders have none."""
    fits = _fitting(pattern)
    if not _is_glob(pattern):
        # Only a name in the list of the folder counts: on some file systems MEMORY.md opens memory.md too.
        candidates = [pattern] if pattern in _names(os.path.join(folder, os.path.dirname(pattern))) else []  # noqa: PTH120
        yield from _there(folder, candidates)
        return
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        below = os.path.relpath(base, folder)
        prefix = "" if below == "." else f"{below.replace(os.sep, '/')}/"
        yield from _there(
            folder, (f"{prefix}{name}" for name in sorted(names) if name[0] != "." and fits(prefix + name))
        )


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        # A folder that is not there has no files.
        return set()


def _is_glob(pattern: str) -> bool:
    return bool(re.search(r"[*?\[\]{},!]", pattern)) or "/" in pattern


def _fitting(pattern: str) -> Callable[[str], bool]:
    if pattern == "**/*.md":
        return lambda path: path.endswith(".md")
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.BRACE | glob.EXTGLOB | glob.FORCEUNIX | glob.CASE
    masks = re.split(r",(?![^{]*\})", pattern)
    return lambda path: any(glob.globmatch(path, mask.strip(), flags=flags) for mask in masks)


def _there(folder: str, paths: Iterable[str]) -> Iterator[DiskFile]:
    for path in paths:
        absolute = os.path.join(folder, path)
        try:
            status = os.lstat(absolute)
        except OSError:
            # Gone since its folder was listed.
            continue
        if os.path.isfile(absolute) and not os.path.islink(absolute):  # noqa: PTH113, PTH114
            yield DiskFile(path, absolute, status.st_size, status.st_mtime)


class QmdFile(Struct, frozen=True):
    """One file of a collection, on disk or in QMD's index; without a `difference` both have the same text."""

    collection: str
    path: str
    difference: Difference
    detail: str


def compared(collection: Collection) -> Iterator[QmdFile]:
    """Every file of a collection, the disk against the index, by the hash of its text."""
    left = dict(collection.documents)
    for found in files_of(collection.path, collection.pattern):
        row = left.pop(found.path, None)
        if row is None:
            empty = _is_blank(found)
            detail = "A blank file, which QMD leaves out." if empty else "QMD's index lacks it."
            yield QmdFile(collection.name, found.path, "" if empty else "missing", detail)
        elif (text := _hash(found)) != row.hash:
            detail = f"QMD has another text of it, stored {row.stored}." if text else "It cannot be read."
            yield QmdFile(collection.name, found.path, "stale", detail)
        else:
            yield QmdFile(collection.name, found.path, "", "")
    for path, row in left.items():
        yield QmdFile(collection.name, path, "ghost", f"QMD still answers from it, stored {row.stored}; it is gone.")


def _is_blank(found: DiskFile) -> bool:
    """Whether a file holds nothing but blanks, so that QMD leaves it out."""
    if found.size > _MOST_BLANK:
        return False
    try:
        with open(found.absolute, "rb") as file:  # noqa: PTH123
            return not file.read(_MOST_BLANK).strip()
    except OSError:
        # QMD reads it no better.
        return True


def _hash(found: DiskFile) -> str:
    """The hash that QMD gives the text, which it reads as UTF-8; empty where it cannot be read."""
    try:
        with open(found.absolute, "rb") as file:  # noqa: PTH123
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        # Whoever may not read it cannot tell whether QMD has its text.
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


class Coverage(Struct, frozen=True):
    """How well the index covers the files of the wanted collections, seen without reading a file."""

    files: int
    documents: int
    missing: tuple[str, ...]
    ghosts: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every file has a document, and no document is of a file that is gone."""
        return not self.missing and not self.ghosts and self.files == self.documents

    @property
    def behind(self) -> int:
        """How many files are not in the index as they are on disk."""
        return len(self.missing) + len(self.ghosts) + len(self.changed)

    def sentence(self) -> str:
        """What an empty answer of such an index means."""
        return (
            f"QMD's index is empty or stale: it holds {plural(self.documents, 'document')}, and "
            f"{plural(self.files, 'file')} belong{'s' if self.files == 1 else ''} to its collections."
        )


def coverage(index: QmdIndex, wanted: Sequence[WantedCollection], updated: float) -> Coverage:
    """How `index`, last brought up to date at `updated` (epoch seconds), stands to the files of `wanted`."""
    files = documents = 0
    missing, ghosts, changed = [], [], []
    for one in wanted:
        collection = index.serving(one)
        rows = collection.documents if collection is not None else {}
        there = {
            found.path: found for found in files_of(one.path, one.pattern) if found.path in rows or not _is_blank(found)
        }
        files, documents = files + len(there), documents + len(rows)
        missing += [f"{one.name}/{path}" for path in there.keys() - rows.keys()]
        ghosts += [f"{one.name}/{path}" for path in rows.keys() - there.keys()]
        changed += [
            f"{one.name}/{path}" for path in there.keys() & rows.keys() if updated and there[path].mtime > updated
        ]
    return Coverage(files, documents, tuple(sorted(missing)), tuple(sorted(ghosts)), tuple(sorted(changed)))
