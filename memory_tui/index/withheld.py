"""Texts that are not sent to a provider elsewhere, because they look like a secret.

The index remembers their hashes and of which kind each is, so that nobody has to wonder why a chunk has no vector, and
nobody looks at them twice. They stay findable by their words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_tui.index.store import Store
from memory_tui.text import secrets


@dataclass(frozen=True, slots=True)
class Manner:
    """How texts get to a provider: how many a call, whether notes are findable by their words before the provider is
    asked (`later`), and whether what looks like a secret is `withheld` from it.
    """

    texts: int = 64
    later: bool = False
    withheld: bool = False


HERE = Manner()
"""A provider that takes no time."""
SLOW = Manner(later=True)
"""A model on this machine."""
SERVER = Manner(256, later=True)
"""One that text is sent to; of what it gets at once it makes requests of at most 8,000 bytes."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """A chunk that is not sent to the provider, because it looks like a secret of that `kind`."""

    rowid: int
    path: str
    start_line: int
    end_line: int
    kind: str

    def __str__(self) -> str:
        return f"withheld: looks like a secret ({self.kind})"


def found_in(store: Store) -> list[Withheld]:
    """The chunks of `store` that have no vector because they look like secrets, by path and line."""
    rows = store.query(
        "SELECT c.id, f.path, c.start_line, c.end_line, w.kind FROM chunks c JOIN withheld w ON w.hash = c.hash "
        "JOIN files f ON f.id = c.file_id WHERE c.embedding_id IS NULL AND c.occurrence = 0 "
        "ORDER BY f.path, c.start_line"
    )
    return [Withheld(*row) for row in rows]


def _known(store: Store, hashes: Sequence[str]) -> set[str]:
    rows = store.query(
        "SELECT hash FROM withheld WHERE hash IN (SELECT value FROM json_each(?))", (json.dumps(list(hashes)),)
    )
    return {row[0] for row in rows}


def sendable(store: Store, texts: Mapping[str, str], digests: Sequence[str]) -> list[str]:
    """Those of `digests` whose text in `texts` may be sent; the others are remembered."""
    known = _known(store, digests)
    found = {
        digest: "; ".join(kinds)
        for digest in digests
        if digest not in known and (kinds := secrets.kinds(texts[digest]))
    }
    if found:
        with store.writing():
            store.many("INSERT OR REPLACE INTO withheld VALUES(?, ?)", list(found.items()))
    return [digest for digest in digests if digest not in known and digest not in found]


def forgive(store: Store) -> None:
    """Forget what was withheld, because it no longer is. Mostly nothing to do."""
    if store.value("SELECT EXISTS (SELECT 1 FROM withheld)"):
        with store.writing():
            store.query("DELETE FROM withheld")


def tidy(store: Store) -> None:
    """Forget the withheld texts that no note has any more. Mostly nothing to do."""
    gone = "hash NOT IN (SELECT hash FROM chunks)"
    if store.value(f"SELECT EXISTS (SELECT 1 FROM withheld WHERE {gone})"):
        with store.writing():
            store.query(f"DELETE FROM withheld WHERE {gone}")
