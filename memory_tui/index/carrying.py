"""What one index hands to the one that takes its place: vectors, batch jobs, and the count of its generations."""

from __future__ import annotations

from memory_tui.index.database import Rows
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
