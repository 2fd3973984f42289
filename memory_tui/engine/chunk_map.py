"""The chunk map is every chunk of an index on a plane by its vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui.explain import landscape as landscapes
from memory_tui.search.corpus import vectors_of

if TYPE_CHECKING:
    from memory_tui.engine.queries import Queries


def chunk_map(queries: Queries, query: str = "") -> landscapes.Landscape | None:
    """Every chunk by its vector, in named groups, with the point of `query`; None without vectors.

    Reads texts and works for seconds on a large memory. Raises QueryError, Cancelled, IndexUnavailable.
    """
    with queries.reader() as store:
        with queries.state(store) as known:
            corpus = known.corpus
            rows = corpus.has_vector.nonzero()[0]
            if corpus.identity is None or not len(rows):
                return None
            vectors, rowids = vectors_of(store, corpus, rows), corpus.rowids[rows]
        asked = queries.embedded(query, corpus.identity, by_words=False).vector if query.strip() else None
        found = landscapes.landscape(rowids, vectors, asked)
        some = landscapes.sampled(found.groups, int(found.groups.max()) + 1)
        texts = store.texts([int(rowids[at]) for own in some.values() for at in own])
    spoken = [[texts.get(int(rowids[at]), "") for at in own] for own in some.values()]
    places = [(corpus.path(at), int(corpus.start_lines[at]), int(corpus.end_lines[at])) for at in rows.tolist()]
    return replace(found, names=landscapes.names(spoken), places=places)
