"""sqlite-vec in one connection: found without importing its package, loaded by path, and tried before it is trusted."""

from __future__ import annotations

import functools
import importlib.util
import struct
from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_tui.index import abilities


@dataclass(frozen=True, slots=True)
class Vec0:
    """Whether vec0 works; `detail` names the step that failed, or the version."""

    ready: bool
    detail: str


OFF = Vec0(False, "switched off")


def load(connection: apsw.Connection) -> Vec0:
    """Load sqlite-vec into `connection` and try it, once a process: create a table, insert, query.

    Importing the package instead would load a second SQLite (0.3 s, and two libraries that share vec0 crash).
    """
    if abilities.switched_off("vec0"):
        return Vec0(False, f"switched off by {abilities.SWITCH}")
    path = _library()
    if path is None:
        return Vec0(False, "sqlite-vec is not installed")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(path)
    except (apsw.Error, AttributeError) as error:
        return Vec0(False, f"load: {error}")
    finally:
        if hasattr(connection, "enable_load_extension"):
            connection.enable_load_extension(False)
    return _try_out(path)


def ability() -> Vec0:
    """Whether sqlite-vec works on this machine, without a connection to load it into."""
    if abilities.switched_off("vec0"):
        return Vec0(False, f"switched off by {abilities.SWITCH}")
    path = _library()
    if path is None:
        return Vec0(False, "sqlite-vec is not installed")
    if not hasattr(apsw.Connection, "enable_load_extension"):
        return Vec0(False, "load: this SQLite cannot load extensions")
    return _try_out(path)


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
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(path)
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
