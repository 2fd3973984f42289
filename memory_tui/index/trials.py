"""Small trials of what an index needs of SQLite on this machine: made in memory, thrown away, answered in words."""

from __future__ import annotations

import struct

import apsw

from memory_tui.index import vec0
from memory_tui.index.abilities import switched_off


def sqlite() -> tuple[str, bool]:
    """The SQLite in use, and whether it is new enough for every table here (3.43, contentless_delete)."""
    version = apsw.sqlite_lib_version()
    return version, tuple(map(int, version.split(".")[:2])) >= (3, 43)


def nearest() -> str:
    """Make a vec0 table, put three vectors in and ask for the nearest; empty when that works, else why it does not."""
    if switched_off("vec0"):
        return "it is switched off by MEMORY_TUI_DISABLE"
    connection = apsw.Connection(":memory:")
    try:
        state = vec0.load(connection)
        if not state.ready:
            return state.detail
        connection.execute("CREATE VIRTUAL TABLE probe USING vec0(embedding float[4] distance_metric=cosine)")
        for at in range(3):
            vector = struct.pack("4f", *(1.0 if i == at else 0.1 for i in range(4)))
            connection.execute("INSERT INTO probe(rowid, embedding) VALUES (?, ?)", (at + 1, vector))
        found = connection.execute(
            "SELECT rowid FROM probe WHERE embedding MATCH ? ORDER BY distance LIMIT 1",
            (struct.pack("4f", 0.0, 1.0, 0.0, 0.0),),
        ).fetchall()
    except apsw.Error as error:
        return str(error)
    finally:
        connection.close()
    return "" if found == [(2,)] else f"the nearest of three vectors should be the second, and it answered {found}"
