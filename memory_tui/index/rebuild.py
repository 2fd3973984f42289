"""A rebuild makes a new index beside the old one, then publishes it in one step.

It lies in a file named like the index with `.next` at the end, which only the holder of the writer lock touches, so
what a dead process left is either continued (same recipe, same index) or removed by the next writer. It is published
by copying its pages over those of the index in one transaction (SQLite's backup): readers see the old index or the new
one, whenever the power fails, and connections and files stay what they were.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
from msgspec import Struct

from memory_tui.core import atomic
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import IndexUnavailable
from memory_tui.index import abilities, embedding, index_write, integrity
from memory_tui.index.database import Rows, explained
from memory_tui.index.index_file import SIDES, is_private, kind, rebuild_of
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store
from memory_tui.providers.provider_protocol import Provider
from memory_tui.source.rows import NewNotes
from memory_tui.workspace import notes as workspace_notes


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
                atomic.remove_file(part)
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


MOST_BYTES = 256 * 1024 * 1024
"""A larger index is not copied into memory."""
_TRIAL_PAGES = 512
"""Pages copied at a time, so that other threads get their turn."""


@contextmanager
def trial(store: Store) -> Iterator[TrialCopy]:
    """A copy of `store` in memory. Raises IndexUnavailable for an index that is empty, or too large to copy."""
    size = int(store.value("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size") or 0)
    if size > MOST_BYTES:
        raise IndexUnavailable(
            f"The index has {size >> 20} MB, too much to try a change on a copy of it.",
            "Save the change and search; undo takes it back.",
        )
    connection = apsw.Connection(":memory:")
    try:
        try:
            with connection.backup("main", store.connection, "main") as backup:
                while not backup.done:
                    backup.step(_TRIAL_PAGES)
        except apsw.Error as error:
            raise explained(error, store.path) from None
        copy = Store(connection, store.path, False, abilities.OFF)
        recipe = copy.recipe()
        if recipe is None:
            raise IndexUnavailable("Nothing is indexed yet.", "Wait for the first index, or run memory-tui index.")
        yield TrialCopy(copy, recipe)
    finally:
        connection.close()


class TrialCopy(Struct, frozen=True):
    """A copy of an index that can be changed (`source.protocol.Trial`)."""

    source: Store
    recipe: Recipe

    def put(self, notes: NewNotes, provider: Provider | None) -> int:
        """Index `notes` in the copy and return how many texts lack a vector. Raises Unreadable, ProviderError."""
        from memory_tui.index.note_rows import cut

        started, store, identity = time.time(), self.source, self.recipe.identity
        known = store.known()
        new = [
            cut(workspace_notes.of_bytes(path, data, int(started * 1e9)), "memory", self.recipe, started)
            for path, data in notes.items()
            if data is not None
        ]
        texts = {chunk.hash: chunk.text for file in new for chunk in file.chunks}
        ids = store.cached(identity, list(texts)) if identity.dims else {}
        missing = [digest for digest in texts if digest not in ids]
        if missing and provider is not None and provider.identity == identity:
            vectors = provider.embed([texts[digest] for digest in missing], "document")
            ids = {**ids, **index_write.add_embeddings(store, identity, missing, vectors)}
            missing = []
        index_write.replace_files(store, new, identity.model, ids)
        index_write.remove_files(store, [known[path] for path, data in notes.items() if data is None and path in known])
        return len(missing) if identity.dims else 0
