"""Whether an index is whole: its pages, its full-text tables, its rows, every text and every vector."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memory_tui.errors import IndexUnavailable
from memory_tui.index.database import Rows
from memory_tui.index.store import Store
from memory_tui.text.js import sha256_hex

_PAGE = 2000
_UNIT = 0.01
"""How far the length of a vector may be from 1; a flipped bit that matters takes it much further."""


def problems(store: Store) -> list[str]:
    """What is wrong with an index, in words; empty when it is whole. Costs a pass over the file."""
    try:
        found = [str(row[0]) for row in store.query("PRAGMA quick_check(5)") if row[0] != "ok"]
        return found or _counts(store) or _contents(store)
    except IndexUnavailable as error:
        return [error.message]


def _counts(store: Store) -> list[str]:
    """Rows that do not fit each other."""
    found = []
    chunks, said = (
        store.value("SELECT count(*) FROM chunks WHERE occurrence = 0"),
        store.value("SELECT coalesce(sum(chunks), 0) FROM files"),
    )
    if chunks != said:
        found.append(f"{chunks} chunks, and files say {said}")
    orphans = store.value("SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files)")
    if orphans:
        found.append(f"{orphans} chunks of no file")
    lost = store.value(
        "SELECT count(*) FROM chunks WHERE embedding_id IS NOT NULL "
        "AND embedding_id NOT IN (SELECT id FROM embedding_cache)"
    )
    if lost:
        found.append(f"{lost} chunks whose vector is lost")
    if store.full_text():
        words = store.value("SELECT count(*) FROM chunks_words_docsize")
        if words != chunks:
            found.append(f"{chunks} chunks, and words of {words}")
    return found


def _contents(store: Store) -> list[str]:
    """Texts that are not what was hashed, and vectors that are none: flipped bits inside sound pages."""
    texts = sum(
        sha256_hex(text) != digest
        for page in _pages(store, "SELECT id, text, hash FROM chunks WHERE id > ? ORDER BY id LIMIT ?")
        for _, text, digest in page
    )
    vectors = sum(
        map(_spoiled, _pages(store, "SELECT id, embedding, dims FROM embedding_cache WHERE id > ? ORDER BY id LIMIT ?"))
    )
    found = [f"{texts} chunks whose text is not what was indexed"] if texts else []
    return [*found, f"{vectors} vectors that are none"] if vectors else found


def _pages(store: Store, statement: str) -> Iterator[Rows]:
    after = 0
    while page := store.query(statement, (after, _PAGE)):
        yield page
        after = page[-1][0]


def _spoiled(page: Rows) -> int:
    """How many of these vectors have another length than they should, or numbers that are none."""
    spoiled = 0
    for dims in {row[2] for row in page}:
        blobs = [row[1] for row in page if row[2] == dims]
        whole = [blob for blob in blobs if len(blob) == 4 * dims]
        spoiled += len(blobs) - len(whole)
        vectors = np.frombuffer(b"".join(whole), np.float32).reshape(len(whole), dims).astype(np.float64)
        with np.errstate(all="ignore"):
            length = np.sqrt(np.square(vectors).sum(axis=1))
        # A text without any token has a vector of zeros.
        spoiled += int(np.count_nonzero(~((np.abs(length - 1) < _UNIT) | (length == 0))))
    return spoiled
