"""Whether an index is whole: its pages, its full-text tables, and what its rows say of each other."""

from __future__ import annotations

from memory_tui.errors import IndexUnavailable
from memory_tui.index.store import Store


def problems(store: Store) -> list[str]:
    """What is wrong with an index, in words; empty when it is whole. Costs a pass over the file."""
    try:
        found = [str(row[0]) for row in store.query("PRAGMA quick_check(5)") if row[0] != "ok"]
        return found or _counts(store)
    except IndexUnavailable as error:
        return [error.message]


def _counts(store: Store) -> list[str]:
    """Rows that do not fit each other."""
    found = []
    chunks, said = store.value("SELECT count(*) FROM chunks WHERE occurrence = 0"), store.value(
        "SELECT coalesce(sum(chunks), 0) FROM files")
    if chunks != said:
        found.append(f"{chunks} chunks, and files say {said}")
    orphans = store.value("SELECT count(*) FROM chunks WHERE file_id NOT IN (SELECT id FROM files)")
    if orphans:
        found.append(f"{orphans} chunks of no file")
    lost = store.value("SELECT count(*) FROM chunks WHERE embedding_id IS NOT NULL "
                       "AND embedding_id NOT IN (SELECT id FROM embedding_cache)")
    if lost:
        found.append(f"{lost} chunks whose vector is lost")
    if store.full_text():
        words = store.value("SELECT count(*) FROM chunks_words_docsize")
        if words != chunks:
            found.append(f"{chunks} chunks, and words of {words}")
    return found
