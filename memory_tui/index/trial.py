"""A copy of an index in memory, to see what a change of notes would do to answers; the index itself is only read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import apsw

from memory_tui.embed.provider import Provider
from memory_tui.errors import IndexUnavailable
from memory_tui.index import vec0, writes
from memory_tui.index.cutting import cut
from memory_tui.index.database import explained
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store
from memory_tui.workspace import document

MOST_BYTES = 256 * 1024 * 1024
"""A larger index is not copied into memory."""
_PAGES = 512
"""Pages copied at a time, so that other threads get their turn."""


@contextmanager
def trial(store: Store) -> Iterator[Store]:
    """A copy of `store` that can be changed. Raises IndexUnavailable for an index that is too large to copy."""
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
                    backup.step(_PAGES)
        except apsw.Error as error:
            raise explained(error, store.path) from None
        yield Store(connection, store.path, False, vec0.OFF)
    finally:
        connection.close()


def put(store: Store, notes: Mapping[str, bytes | None], recipe: Recipe, provider: Provider | None) -> int:
    """Index `notes` in a trial: bytes by stored path, None for one that goes; returns how many texts lack a vector.

    Vectors come from those that are kept, and from `provider` when there is one. Raises Unreadable, ProviderError.
    """
    started = time.time()
    known = store.known()
    new = [
        cut(document.of_bytes(path, data, int(started * 1e9)), "memory", recipe, started)
        for path, data in notes.items()
        if data is not None
    ]
    texts = {chunk.hash: chunk.text for file in new for chunk in file.chunks}
    ids = store.cached(recipe.identity, list(texts)) if recipe.identity.dims else {}
    missing = [digest for digest in texts if digest not in ids]
    if missing and provider is not None and provider.identity == recipe.identity:
        vectors = provider.embed([texts[digest] for digest in missing], "document")
        ids = {**ids, **writes.add_embeddings(store, recipe.identity, missing, vectors)}
        missing = []
    writes.replace_files(store, new, recipe.identity.model, ids)
    writes.remove_files(store, [known[path] for path, data in notes.items() if data is None and path in known])
    return len(missing) if recipe.identity.dims else 0
