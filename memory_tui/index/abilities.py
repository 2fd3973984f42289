"""What this SQLite can do. It may have full-text search, trigrams and sqlite-vec.

`MEMORY_TUI_DISABLE` names abilities between commas:

fts5     full-text search. Without it vectors answer alone, and where there are none either, a chunk is found when
         it holds the letters of a word.
trigram  the tokenizer of three characters that `store.fts.tokenizer` can name. Without it unicode61 is used.
vec0     sqlite-vec. Without it numpy compares the vectors, with the same answers.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from pathlib import Path

import apsw
from msgspec import Struct

SWITCH = "MEMORY_TUI_DISABLE"
NAMES = ("fts5", "trigram", "vec0")


def _switches() -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in os.environ.get(SWITCH, "").split(","))))


def _switched_off(name: str) -> str:
    return f"switched off by {SWITCH}" if SWITCH in os.environ and name in _switches() else ""


def unknown() -> tuple[str, ...]:
    """List what MEMORY_TUI_DISABLE names without there being such an ability."""
    return tuple(name for name in _switches() if name not in NAMES)


def fts5() -> str:
    """Say what stands against full-text search; empty where it works."""
    return _switched_off("fts5") or ("" if "ENABLE_FTS5" in apsw.compile_options else "no such module: fts5")


def trigram() -> str:
    """Say what stands against full-text search by trigrams; empty where it works."""
    return _switched_off("trigram") or fts5()


def tokenizer(name: str) -> str:
    """Return how full-text search cuts words where `name` (unicode61 or trigram) is wished; empty where it cannot."""
    if fts5():
        return ""
    return name if name != "trigram" or not trigram() else "unicode61"


class Vec0Use(Struct, frozen=True):
    """Whether sqlite-vec is to be used, from the `library` that was named.

    `refused` says why that library is not loaded; then, and where none was named, the installed one serves.
    """

    enabled: bool = True
    library: str = ""
    refused: str = ""

    @property
    def path(self) -> str | None:
        """The file to load; None where there is none."""
        return self.library if self.library and not self.refused else _library()


INSTALLED, UNUSED = Vec0Use(), Vec0Use(enabled=False)


class Vec0(Struct, frozen=True):
    """Whether vec0 works; `detail` names the step that failed, or the version."""

    ready: bool
    detail: str
    use: Vec0Use


def vec0(use: Vec0Use = INSTALLED, connection: apsw.Connection | None = None) -> Vec0:
    """Say whether sqlite-vec works, tried once a process, and load it into `connection`.

    Importing the package instead would load a second SQLite (0.3 s, and two libraries that share vec0 crash).
    """
    why = _switched_off("vec0") if use.enabled else "switched off"
    path = use.path
    if why or path is None:
        return Vec0(False, why or "sqlite-vec is not installed", use)
    ready, detail = _try_out(path)
    if ready and connection is not None:
        _load(connection, path)
    return Vec0(ready, detail, use)


@functools.cache
def _library() -> str | None:
    """Return the path of the loadable file without its suffix, which SQLite adds for the system."""
    spec = importlib.util.find_spec("sqlite_vec")
    places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in Path(place).glob("vec0.*")]
    return str(files[0].with_suffix("")) if files else None


def _load(connection: apsw.Connection, path: str) -> None:
    """Load the library; its entry point is named, because SQLite guesses it from the name of the file."""
    connection.enable_load_extension(True)
    try:
        connection.load_extension(path, "sqlite3_vec_init")
    finally:
        connection.enable_load_extension(False)


@functools.cache
def _try_out(path: str) -> tuple[bool, str]:
    """Make a table, insert and ask. Returns whether that works, and the version or the step that failed."""
    steps = (
        ("create", "CREATE VIRTUAL TABLE probe USING vec0(embedding float[2] distance_metric=cosine)"),
        ("insert", "INSERT INTO probe(rowid, embedding) VALUES (7, vec_f32('[0, 1]')), (8, vec_f32('[1, 0.5]'))"),
        ("query", "SELECT rowid FROM probe WHERE embedding MATCH vec_f32('[0, 2]') AND k = 1"),
    )
    step, rows = "load", []
    try:
        with contextlib.closing(apsw.Connection(":memory:")) as connection:
            _load(connection, path)
            version = connection.execute("SELECT vec_version()").fetchall()[0][0]
            for name, sql in steps:
                step, rows = name, connection.execute(sql).fetchall()
    except apsw.NoMemError as error:
        # That is nothing SQLite is not able to.
        raise MemoryError(str(error)) from error
    except (apsw.Error, AttributeError) as error:
        return False, f"{step}: {error}"
    return (True, str(version)) if rows == [(7,)] else (False, f"query: it answered {rows}")
