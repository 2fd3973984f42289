"""A rebuild makes a new index beside the old one, then publishes it in one step.

It lies in a file named like the index with `.next` at the end, which only the holder of the writer lock touches, so
what a dead process left is either continued (same recipe, same index) or removed by the next writer. It is published
by copying its pages over those of the index in one transaction (SQLite's backup): readers see the old index or the new
one, whenever the power fails, and connections and files stay what they were.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.errors import IndexUnavailable
from memory_tui.index import connections, index_write
from memory_tui.index.database import SIDES, explained, is_private, kind, rebuild_of
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store

_OF = "beside"
_PAGES = 256
"""Pages copied between two looks at whether to stop."""
_ROWS = 512
"""Vectors carried between two looks."""
_VECTOR = "provider, model, provider_key, hash, dims, updated_at, embedding"


@contextmanager
def _attached(beside: Store, store: Store) -> Iterator[None]:
    """Let statements on `beside` read the tables of `store` as those of `old`."""
    beside.query("ATTACH ? AS old", (str(store.path),))
    try:
        yield
    finally:
        beside.query("DETACH old")


def _carry_vectors(beside: Store, stop: Stop) -> None:
    """Keep every vector of the old index, and what its provider refused; what was carried before is passed over."""
    for first in range(0, 1 + int(beside.value("SELECT max(id) FROM old.embedding_cache") or 0), _ROWS):
        if stop.is_set():
            return
        with beside.writing():
            beside.query(
                f"INSERT OR IGNORE INTO embedding_cache({_VECTOR}) SELECT {_VECTOR} FROM old.embedding_cache "
                "WHERE id BETWEEN ? AND ?",
                (first, first + _ROWS - 1),
            )
    with beside.writing():
        beside.query("INSERT OR REPLACE INTO refused SELECT * FROM old.refused")


def waits(store: Store, recipe: Recipe) -> bool:
    """Say whether a rebuild after `recipe` was begun and not finished."""
    path = rebuild_of(store.path)
    if not path.exists():
        return False
    try:
        with closing(Store.open(path, read_only=True)) as beside:
            return beside.recipe() == recipe and beside.meta(_OF) == store.meta("uuid")
    except IndexUnavailable:
        return False


def begin(store: Store, recipe: Recipe, stop: Stop) -> Store:
    """Return the index beside `store`: the one that waits, or a new one, with every vector that `store` has kept."""
    if not waits(store, recipe):
        discard(store.path)
    beside = Store.open(rebuild_of(store.path), expected=lambda: is_private(store.path))
    if beside.recipe() is None:
        index_write.remember(beside, _OF, store.meta("uuid"))
        index_write.reset(beside, recipe)
    with _attached(beside, store):
        _carry_vectors(beside, stop)
    return beside


def publish(store: Store, beside: Store, stop: Stop) -> bool:
    """Put `beside` in the place of `store`, and remove it; False when stopped before that.

    Raises IndexUnavailable when it is not whole; then it is removed, and the old index stays.
    """
    if flaws := connections.problems(beside):
        beside.close()
        discard(store.path)
        raise IndexUnavailable(
            f"The new index is not whole ({flaws[0]}); the old one stays.", "It is made again with the next sync."
        )
    with _attached(beside, store), beside.writing():
        # With its jobs, because what was sent away is paid for.
        beside.query("INSERT OR REPLACE INTO batch_jobs SELECT * FROM old.batch_jobs")
        beside.query("INSERT OR IGNORE INTO batch_texts SELECT * FROM old.batch_texts")
        beside.query("UPDATE meta SET value = ? WHERE key = 'generation'", (store.generation() + 1,))
    beside.close()
    done = _copy(rebuild_of(store.path), store, stop)
    if done:
        # Only now: who is killed while pages are copied finds what is beside still to be of this index.
        index_write.remember(store, _OF, "")
        discard(store.path)
    return done


def discard(index: Path) -> None:
    """Remove what was made beside `index`, if anything; what is not ours stays. Raises IndexUnavailable."""
    path = rebuild_of(index)
    if not path.exists() or not (is_private(path) or kind(path) in ("empty", "ours", "zeros")):
        return
    # The file itself last: without it nobody could tell whose its logs are.
    for side in reversed(SIDES):
        part = path.with_name(path.name + side)
        try:
            if kind(part) != "no file":
                durable.remove_file(part)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise IndexUnavailable(
                    f"{part} cannot be removed: {error.strerror}.", "Remove it yourself; it is a half-made index."
                ) from None


def _copy(source: Path, store: Store, stop: Stop) -> bool:
    """Copy all pages of `source` over those of `store`, in one transaction that is rolled back when stopped."""
    done = False
    try:
        with (
            closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)) as new,
            store.connection.backup("main", new, "main") as copying,
        ):
            while not (copying.done or stop.is_set()):
                copying.step(_PAGES)
            done = bool(copying.done)
    except apsw.Error as error:
        raise explained(error, store.path) from None
    return done
