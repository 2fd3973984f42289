"""A rebuild makes a new index beside the old one, then publishes it in one step.

It lies in a file named like the index with `.next` at the end, which only the holder of the writer lock touches, so
what a dead process left is either continued (same recipe, same index) or removed by the next writer. It is published
by copying its pages over those of the index in one transaction (SQLite's backup): readers see the old index or the new
one, whenever the power fails, and connections and files stay what they were.
"""

from __future__ import annotations

import errno
from pathlib import Path

import apsw

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.errors import IndexUnavailable
from memory_tui.index import abilities, embedding, index_write, integrity
from memory_tui.index.database import Rows, explained
from memory_tui.index.index_file import SIDES, is_private, kind, rebuild_of
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store


def cache_page(store: Store, after: int, count: int) -> Rows:
    """The next `count` kept vectors with an id above `after`: id, then every other column of embedding_cache."""
    return store.query(
        "SELECT id, provider, model, provider_key, hash, dims, updated_at, embedding FROM embedding_cache "
        "WHERE id > ? ORDER BY id LIMIT ?",
        (after, count),
    )


def carry(store: Store, rows: Rows, key: str, mark: int) -> None:
    """Keep the vectors in `rows` of `cache_page` of another index, and `mark` under `key` in `meta`."""
    with store.writing():
        store.many(
            "INSERT OR IGNORE INTO embedding_cache(provider, model, provider_key, hash, dims, updated_at, embedding) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [row[1:] for row in rows],
        )
        store.query("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, mark))


def job_rows(store: Store) -> tuple[Rows, Rows]:
    """Every row about batch jobs: of the jobs, and of the texts that wait for them."""
    return (
        store.query(
            "SELECT id, provider, model, provider_key, dims, pid, started, claimed_at, file_id, "
            "remote_id, submitted_at FROM batch_jobs ORDER BY id"
        ),
        store.query("SELECT hash, job FROM batch_texts"),
    )


def take_jobs(store: Store, jobs: Rows, texts: Rows) -> None:
    """Keep the rows of `job_rows` of another index: what was sent away is paid for."""
    with store.writing():
        store.many("INSERT OR REPLACE INTO batch_jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", jobs)
        store.many("INSERT OR IGNORE INTO batch_texts VALUES (?, ?)", texts)


def follow(store: Store, generation: int) -> None:
    """Let `store` be the successor of an index at `generation`; who followed that by its changes has to load anew."""
    with store.writing():
        store.query("DELETE FROM changes")
        store.query("UPDATE meta SET value = ? WHERE key IN ('generation', 'changes_from')", (generation,))


_OF = "beside"
_CARRIED = "carried"
_PAGES = 256
"""Pages copied between two looks at whether to stop."""
_ROWS = 256


def waits(store: Store, recipe: Recipe) -> bool:
    """Whether a rebuild after `recipe` was begun and not finished."""
    path = rebuild_of(store.path)
    if not path.exists():
        return False
    try:
        beside = Store.open(path, read_only=True, vec0=abilities.UNUSED)
    except IndexUnavailable:
        return False
    try:
        return beside.recipe() == recipe and beside.meta(_OF) == store.meta("uuid")
    except IndexUnavailable:
        return False
    finally:
        beside.close()


def begin(store: Store, recipe: Recipe, stop: Stop) -> Store:
    """The index beside `store`: the one that waits, or a new one, with every vector that `store` has kept."""
    if not waits(store, recipe):
        discard(store.path)
    beside = Store.open(rebuild_of(store.path), vec0=store.vec0.use, expected=lambda: is_private(store.path))
    if beside.recipe() is None:
        index_write.remember(beside, _OF, store.meta("uuid"))
        index_write.reset(beside, recipe)
    embedding.copy_rejected(beside, embedding.rejected_rows(store))
    after = int(beside.meta(_CARRIED) or 0)
    while not stop.is_set() and (rows := cache_page(store, after, _ROWS)):
        after = rows[-1][0]
        carry(beside, rows, _CARRIED, after)
    return beside


def publish(store: Store, beside: Store, stop: Stop) -> bool:
    """Put `beside` in the place of `store`, and remove it; False when stopped before that.

    Raises IndexUnavailable when it is not whole; then it is removed, and the old index stays.
    """
    if problems := integrity.problems(beside):
        beside.close()
        discard(store.path)
        raise IndexUnavailable(
            f"The new index is not whole ({problems[0]}); the old one stays.", "It is made again with the next sync."
        )
    take_jobs(beside, *job_rows(store))
    follow(beside, store.generation() + 1)
    beside.close()
    done = _copy(rebuild_of(store.path), store, stop)
    if done:
        # Only now: who is killed while pages are copied finds what is beside still to be of this index.
        for key in (_OF, _CARRIED):
            index_write.remember(store, key, "")
        discard(store.path)
    return done


def discard(index: Path) -> None:
    """Remove what was made beside `index`, if anything; what is not ours stays. Raises IndexUnavailable."""
    path = rebuild_of(index)
    if not (is_private(path) or kind(path) in ("nothing", "empty", "ours", "zeros")):
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
    """All pages of `source` over those of `store`, in one transaction that is rolled back when stopped."""
    try:
        made = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with store.connection.backup("main", made, "main") as copying:
                while not copying.done:
                    if stop.is_set():
                        return False
                    copying.step(_PAGES)
        finally:
            made.close()
    except apsw.Error as error:
        raise explained(error, store.path) from None
    return True
