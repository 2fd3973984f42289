"""Texts that a provider has refused: it is not asked for the same one at every sync.

The index remembers them by the provider's identity and the hash of the text, with the provider's reason. They are asked
for again when the text or the provider is another one, when somebody says so, and after a day. Words still find them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from memory_tui.embed.provider import Identity
from memory_tui.index.database import Rows
from memory_tui.index.store import Store

SECONDS = 86_400.0
"""How long a refusal counts: who refuses a text today may have another model tomorrow."""
_SPACE = "provider = ? AND model = ? AND provider_key = ?"
RECENT = (
    "EXISTS (SELECT 1 FROM refused r WHERE r.hash = chunks.hash AND r.provider = ? AND r.model = ? "
    "AND r.provider_key = ? AND r.at > ?)"
)
"""That the text of a chunk is not to be asked for; takes provider, model, key, and a time before which none counts."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A chunk that the provider made no vector of, why in its words, and when (epoch seconds)."""

    rowid: int
    path: str
    start_line: int
    end_line: int
    reason: str
    at: float

    def __str__(self) -> str:
        return f"refused by the provider: {self.reason}"


def note(store: Store, identity: Identity, digest: str, reason: str) -> None:
    """Remember that the text with this hash was refused now."""
    with store.writing():
        store.query(
            "INSERT OR REPLACE INTO refused VALUES(?, ?, ?, ?, ?, ?)", (*_of(identity), digest, reason, time.time())
        )


def known(store: Store, identity: Identity, hashes: Sequence[str]) -> set[str]:
    """Which of `hashes` are not to be asked for again now."""
    return {
        row[0]
        for row in store.query(
            f"SELECT hash FROM refused WHERE {_SPACE} AND at > ? AND hash IN (SELECT value FROM json_each(?))",
            (*_of(identity), since(), json.dumps(list(hashes))),
        )
    }


def since() -> float:
    """The time (epoch seconds) before which no refusal counts any more."""
    return time.time() - SECONDS


def found_in(store: Store) -> list[Refused]:
    """The chunks without a vector that were refused in the space of the index, by path and line."""
    identity = store.identity()
    if identity is None or not _any(store):
        return []
    rows = store.query(
        "SELECT c.id, f.path, c.start_line, c.end_line, r.reason, r.at FROM chunks c JOIN refused r ON r.hash = c.hash "
        "JOIN files f ON f.id = c.file_id WHERE c.embedding_id IS NULL AND c.occurrence = 0 "
        "AND r.provider = ? AND r.model = ? AND r.provider_key = ? ORDER BY f.path, c.start_line",
        _of(identity),
    )
    return [Refused(*row) for row in rows]


def forget(store: Store) -> None:
    """Ask for everything again. Mostly nothing to do."""
    if _any(store):
        with store.writing():
            store.query("DELETE FROM refused")


def tidy(store: Store) -> None:
    """Forget the refusals of texts that no note has any more, or that have a vector now. Mostly nothing to do."""
    over = (
        "hash NOT IN (SELECT hash FROM chunks) OR EXISTS (SELECT 1 FROM embedding_cache e WHERE "
        "e.provider = refused.provider AND e.model = refused.model AND e.provider_key = refused.provider_key "
        "AND e.hash = refused.hash)"
    )
    if _any(store) and store.value(f"SELECT EXISTS (SELECT 1 FROM refused WHERE {over})"):
        with store.writing():
            store.query(f"DELETE FROM refused WHERE {over}")


def rows(store: Store) -> Rows:
    """Everything that is remembered."""
    return store.query("SELECT provider, model, provider_key, hash, reason, at FROM refused")


def take(store: Store, found: Rows) -> None:
    """Remember the `rows` of another index."""
    if found:
        with store.writing():
            store.many("INSERT OR REPLACE INTO refused VALUES(?, ?, ?, ?, ?, ?)", found)


def _any(store: Store) -> bool:
    return bool(store.value("SELECT EXISTS (SELECT 1 FROM refused)"))


def _of(identity: Identity) -> tuple[str, str, str]:
    return identity.provider, identity.model, identity.key
