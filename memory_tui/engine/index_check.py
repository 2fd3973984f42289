"""The index check reads an index from end to end, or asks the provider for one of its vectors anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_tui.search.trace import ChunkRef

if TYPE_CHECKING:
    from memory_tui.engine.search import Search
    from memory_tui.index.rows import TableSize
    from memory_tui.index.store import Store
    from memory_tui.providers.chain import Chain
    from memory_tui.search.corpus import Corpus


def problems(search: Search) -> tuple[str, ...]:
    """What is wrong with the index file, in words; reads all of it. Empty when it is whole or not there."""
    from memory_tui.index import integrity

    return search.on_snapshot(lambda store: tuple(integrity.problems(store)))


def tables(search: Search) -> tuple[TableSize, ...]:
    """Rows and bytes of each kind of table; reads the whole index file, so it can take a second."""
    from memory_tui.index import disk_usage

    return search.on_snapshot(disk_usage.tables)


def sample(search: Search) -> tuple[ChunkRef, str] | None:
    """A chunk from the middle of the index with its text; None when there is none. Raises IndexUnavailable."""
    with search.reader() as store, search.state(store) as known:
        return _sample(store, known)


def remeasured(search: Search, chain: Chain) -> tuple[str, float] | None:
    """The path of that chunk, and how like its stored vector it is when it is embedded anew, as a cosine.

    None without vectors. Raises IndexUnavailable, ProviderError.
    """
    from memory_tui.search.corpus import vectors_of
    from memory_tui.search.formulas import cosine

    with search.reader() as store, search.state(store) as known:
        corpus = known
        found = _sample(store, corpus)
        provider = chain.of_space(corpus.identity) if corpus.identity is not None else None
        if found is None or provider is None or corpus.identity != provider.identity:
            return None
        stored = vectors_of(store, corpus, corpus.rows_of([found[0].rowid]))
    if not stored.any():
        # It may have been withheld, so it must not be sent now.
        return None
    return found[0].path, float(cosine(stored, provider.embed([found[1]], "document")[0])[0])


def _sample(store: Store, corpus: Corpus) -> tuple[ChunkRef, str] | None:
    """A chunk from the middle of `corpus` with its text; None when there is none."""
    if not len(corpus):
        return None
    row = len(corpus) // 2
    rowid = int(corpus.rowids[row])
    ref = ChunkRef(
        rowid,
        corpus.chunk_id(row),
        corpus.path(row),
        corpus.files.sources[corpus.file_of[row]],
        int(corpus.start_lines[row]),
        int(corpus.end_lines[row]),
    )
    return ref, store.texts([rowid])[rowid]
