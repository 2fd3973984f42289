"""What SQLite can do on this machine, tried once; and the one switch that takes an ability away, to see what is left.

`MEMORY_TUI_DISABLE` names abilities between commas:

fts5     full-text search. Without it vectors answer alone, and where there are none either, a chunk is found when
         it holds the letters of a word.
trigram  the tokenizer of three characters that `store.fts.tokenizer` can name. Without it unicode61 is used.
vec0     sqlite-vec. Without it numpy compares the vectors, with the same answers.
"""

from __future__ import annotations

import functools
import os

import apsw

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


@functools.cache
def _try(statement: str) -> str:
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(statement)
        connection.execute("INSERT INTO probe(rowid, body) VALUES (7, 'route 66')")
        found = connection.execute("SELECT rowid FROM probe WHERE probe MATCH 'route'").fetchall()
    except apsw.Error as error:
        return str(error)
    finally:
        connection.close()
    return "" if found == [(7,)] else f"a trial answered {found}"
