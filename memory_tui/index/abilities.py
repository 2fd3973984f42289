"""What this SQLite can do. It may have full-text search, trigrams and sqlite-vec.

`MEMORY_TUI_DISABLE` names abilities between commas:

fts5     full-text search. Without it vectors answer alone, and where there are none either, a chunk is found when
         it holds the letters of a word.
trigram  the tokenizer of three characters that `store.fts.tokenizer` can name. Without it unicode61 is used.
vec0     sqlite-vec. Without it numpy compares the vectors, with the same answers.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import struct
from pathlib import Path

import apsw
from msgspec import Struct
from msgspec.structs import replace

SWITCH = "MEMORY_TUI_DISABLE"
NAMES = ("fts5", "trigram", "vec0")


def switched_off(name: str) -> bool:
    """Whether MEMORY_TUI_DISABLE takes the ability `name` away."""
    return name in _named()


def unknown() -> tuple[str, ...]:
    """What MEMORY_TUI_DISABLE names without there being such an ability."""
    return tuple(name for name in _named() if name not in NAMES)


def fts5() -> str:
    """Empty when full-text search works, otherwise what stands against it."""
    return _because("fts5") or _try("CREATE VIRTUAL TABLE probe USING fts5(body, content='', contentless_delete=1)")


def trigram() -> str:
    """Empty when full-text search can cut words into trigrams, otherwise what stands against it."""
    return _because("trigram") or fts5() or _try("CREATE VIRTUAL TABLE probe USING fts5(body, tokenize='trigram')")


def tokenizer(wanted: str) -> str:
    """How full-text search cuts words when `wanted` (unicode61 or trigram) is asked for; empty where there is none."""
    if fts5():
        return ""
    return wanted if wanted != "trigram" or not trigram() else "unicode61"


def _named() -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in os.environ.get(SWITCH, "").split(","))))


def _because(name: str) -> str:
    return f"switched off by {SWITCH}" if switched_off(name) else ""


def _in_memory() -> apsw.Connection:
    """A database to try things out. Raises MemoryError, because that is nothing SQLite is not able to."""
    try:
        return apsw.Connection(":memory:")
    except apsw.NoMemError as error:
        raise MemoryError(str(error)) from error


@functools.cache
def _try(statement: str) -> str:
    connection = _in_memory()
    try:
        connection.execute(statement)
        connection.execute("INSERT INTO probe(rowid, body) VALUES (7, 'route 66')")
        found = connection.execute("SELECT rowid FROM probe WHERE probe MATCH 'route'").fetchall()
    except apsw.Error as error:
        return str(error)
    finally:
        connection.close()
    return "" if found == [(7,)] else f"a trial answered {found}"


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
    """Whether vec0 works; `detail` names the step that failed, or the version. `use` is what was wished."""

    ready: bool
    detail: str
    use: Vec0Use = UNUSED


OFF = Vec0(False, "switched off")
_ENTRY = "sqlite3_vec_init"
"""Named, because SQLite guesses it from the name of the file, which may be any."""


def load(connection: apsw.Connection, use: Vec0Use = INSTALLED) -> Vec0:
    """Load sqlite-vec into `connection` and try it, once a process: create a table, insert, query.

    Importing the package instead would load a second SQLite (0.3 s, and two libraries that share vec0 crash).
    """
    path = _path(use)
    if isinstance(path, Vec0):
        return path
    try:
        connection.enable_load_extension(True)
        connection.load_extension(path, _ENTRY)
    except (apsw.Error, AttributeError) as error:
        return Vec0(False, f"load: {error}", use)
    finally:
        if hasattr(connection, "enable_load_extension"):
            connection.enable_load_extension(False)
    return replace(_try_out(path), use=use)


def ability(use: Vec0Use = INSTALLED) -> Vec0:
    """Whether sqlite-vec works on this machine, without a connection to load it into."""
    path = _path(use)
    if isinstance(path, Vec0):
        return path
    if not hasattr(apsw.Connection, "enable_load_extension"):
        return Vec0(False, "load: this SQLite cannot load extensions", use)
    return replace(_try_out(path), use=use)


def _path(use: Vec0Use) -> str | Vec0:
    """The library to load, or why there is none."""
    if switched_off("vec0"):
        return Vec0(False, f"switched off by {SWITCH}", use)
    return use.path or Vec0(False, "sqlite-vec is not installed", use)


@functools.cache
def _library() -> str | None:
    """Path of the loadable file without its suffix, which SQLite adds for the system."""
    spec = importlib.util.find_spec("sqlite_vec")
    places = spec.submodule_search_locations if spec else None
    found = [file for place in places or () for file in Path(place).glob("vec0.*")]
    return str(found[0].with_suffix("")) if found else None


@functools.cache
def _try_out(path: str) -> Vec0:
    step = "load"
    connection = _in_memory()
    try:
        connection.enable_load_extension(True)
        connection.load_extension(path, _ENTRY)
        (version,) = connection.execute("SELECT vec_version()").fetchone() or ("",)
        step = "create"
        connection.execute("CREATE VIRTUAL TABLE probe USING vec0(embedding float[2] distance_metric=cosine)")
        step = "insert"
        connection.execute("INSERT INTO probe(rowid, embedding) VALUES (7, ?)", (struct.pack("2f", 0.0, 1.0),))
        step = "query"
        query = "SELECT rowid, distance FROM probe WHERE embedding MATCH ? AND k = 1"
        rows = connection.execute(query, (struct.pack("2f", 0.0, 2.0),)).fetchall()
    except (apsw.Error, AttributeError) as error:
        return Vec0(False, f"{step}: {error}")
    finally:
        connection.close()
    if len(rows) != 1 or rows[0][0] != 7 or not -1e-6 < float(rows[0][1] or 0) < 1e-6:
        return Vec0(False, f"query: it answered {rows}")
    return Vec0(True, str(version))
