"""Databases as OpenClaw makes them, in both layouts, for tests that read them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from memory_tui.index import schema
from memory_tui.workspace.chunking import cap_bytes, chunk_id, chunk_text
from memory_tui.workspace.notes import read
from memory_tui.workspace.roots import Roots, scan

MODEL = "text-embedding-3-small"

OWN_FILE = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files(path TEXT PRIMARY KEY, source TEXT NOT NULL DEFAULT 'memory', hash TEXT NOT NULL,
    mtime INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE chunks(id TEXT PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
    start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, hash TEXT NOT NULL, model TEXT NOT NULL,
    text TEXT NOT NULL, embedding TEXT NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE embedding_cache(provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
    hash TEXT NOT NULL, embedding TEXT NOT NULL, dims INTEGER, updated_at INTEGER NOT NULL,
    PRIMARY KEY(provider, model, provider_key, hash));
CREATE INDEX idx_embedding_cache_updated_at ON embedding_cache(updated_at);
CREATE INDEX idx_chunks_path ON chunks(path);
CREATE INDEX idx_chunks_source ON chunks(source);
CREATE VIRTUAL TABLE chunks_fts USING fts5(text, id UNINDEXED, path UNINDEXED, source UNINDEXED, model UNINDEXED,
    start_line UNINDEXED, end_line UNINDEXED);
"""
AGENT_DATABASE = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, body TEXT) STRICT;
CREATE TABLE memory_index_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE memory_index_sources(id INTEGER PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
    hash TEXT NOT NULL, mtime REAL NOT NULL, size INTEGER NOT NULL, UNIQUE(path, source)) STRICT;
CREATE TABLE memory_index_chunks(chunk_rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT 'memory', start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, hash TEXT NOT NULL,
    model TEXT NOT NULL, text TEXT NOT NULL, embedding BLOB NOT NULL, updated_at INTEGER NOT NULL) STRICT;
CREATE TABLE memory_index_chunk_provenance(chunk_id TEXT PRIMARY KEY REFERENCES memory_index_chunks(id)
    ON DELETE CASCADE, origin_class TEXT, session_kind TEXT, observed_at INTEGER, supersedes_key TEXT) STRICT;
CREATE TABLE memory_index_state(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER NOT NULL) STRICT;
CREATE TABLE memory_embedding_cache(provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
    hash TEXT NOT NULL, embedding BLOB NOT NULL, dims INTEGER, updated_at INTEGER NOT NULL,
    PRIMARY KEY(provider, model, provider_key, hash)) STRICT;
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5(text, id UNINDEXED, path UNINDEXED, source UNINDEXED,
    model UNINDEXED, start_line UNINDEXED, end_line UNINDEXED);
CREATE VIRTUAL TABLE memory_index_paths_fts USING fts5(path, source UNINDEXED);
CREATE TRIGGER memory_index_sources_revision AFTER INSERT ON memory_index_sources BEGIN
    UPDATE memory_index_state SET revision = revision + 1; END;
INSERT INTO memory_index_state VALUES(1, 0);
PRAGMA user_version = 23;
"""


@dataclass
class Row:
    """One chunk as it is to be stored; an empty `vector` is none."""

    id: str
    path: str
    start_line: int
    end_line: int
    hash: str
    text: str
    model: str = MODEL
    source: str = "memory"
    vector: tuple[float, ...] = (0.6, 0.8)


@dataclass
class Content:
    """What is to be in the database; tests change it before it is written."""

    files: dict[str, tuple[str, int]]
    """Hash and size by path."""
    chunks: list[Row]
    meta: dict[str, object]
    transcripts: list[str] = field(default_factory=list)
    cached: int = 3
    vec0: bool = True

    def chunks_of(self, path: str) -> list[Row]:
        """The rows of one note."""
        return [row for row in self.chunks if row.path == path]


def content(workspace: Path, tokens: int = 400, overlap: int = 80, **meta: object) -> Content:
    """What OpenClaw has indexed of `workspace` when it has just finished."""
    roots = Roots.open(workspace)
    files, chunks = {}, {}
    for found in scan(roots).notes:
        document = read(found)
        files[document.path] = document.hash, document.size
        for piece in cap_bytes(chunk_text(document.text, tokens, overlap), 8000):
            row = Row(
                chunk_id("memory", document.path, piece, MODEL),
                document.path,
                piece.start_line,
                piece.end_line,
                piece.hash,
                piece.text,
            )
            chunks[row.id] = row
    record = {
        "model": MODEL,
        "provider": "openai",
        "providerKey": "ab" * 32,
        "sources": ["memory"],
        "scopeHash": schema.scope_hash(roots.extra),
        "chunkTokens": tokens,
        "chunkOverlap": overlap,
        "vectorDims": 2,
        **meta,
    }
    return Content(files, list(chunks.values()), record)


def own_file(path: Path, what: Content, journal: str = "delete") -> Path:
    """Write `what` as OpenClaw 2026.3 does."""

    def encoded(vector: tuple[float, ...]) -> object:
        return json.dumps(list(vector))

    with closing(_new(path, journal, OWN_FILE)) as connection:
        _fill(connection, what, ("meta", "files", "chunks", "embedding_cache"), encoded)
    return path


def agent_database(path: Path, what: Content, journal: str = "wal") -> Path:
    """Write `what` as OpenClaw does since it has an agent database; its chunks are those of an older release."""

    def encoded(vector: tuple[float, ...]) -> object:
        return struct.pack(f"<{len(vector)}d", *vector)

    what.meta = {**what.meta, "ftsTokenizer": "unicode61", "provenanceVersion": 1}
    with closing(_new(path, journal, AGENT_DATABASE)) as connection:
        _fill(
            connection,
            what,
            ("memory_index_meta", "memory_index_sources", "memory_index_chunks", "memory_embedding_cache"),
            encoded,
        )
    return path


def _new(path: Path, journal: str, tables: str) -> apsw.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", journal)
    connection.execute(tables)
    return connection


def _fill(
    connection: apsw.Connection, what: Content, names: tuple[str, ...], encoded: Callable[[tuple[float, ...]], object]
) -> None:
    meta, files, chunks, cache = names
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO {meta}(key, value) VALUES(?, ?)", (schema.RECIPE, json.dumps(what.meta)))
    rows = [
        (path, "sessions" if path.startswith("sessions/") else "memory", digest, 1790000000000.5, size)
        for path, (digest, size) in what.files.items()
    ]
    rows += [(path, "sessions", "sqlite:1:ab", 1790000000000.5, 7) for path in what.transcripts]
    connection.executemany(f"INSERT INTO {files}(path, source, hash, mtime, size) VALUES(?, ?, ?, ?, ?)", rows)
    for row in what.chunks:
        lines = (row.id, row.path, row.source, row.start_line, row.end_line, row.hash, row.model, row.text)
        connection.execute(
            f"INSERT INTO {chunks}(id, path, source, start_line, end_line, hash, model, text, embedding, updated_at) "
            "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, 1790000000000)",
            (*lines, encoded(row.vector)),
        )
        connection.execute(
            f"INSERT INTO {chunks}_fts(id, path, source, start_line, end_line, text) VALUES(?, ?, ?, ?, ?, ?)",
            (*lines[:5], row.text),
        )
    connection.executemany(
        f"INSERT INTO {cache} VALUES('openai', ?, 'ab', ?, ?, 2, 1790000000000)",
        [(MODEL, str(n), encoded((0.6, 0.8))) for n in range(what.cached)],
    )
    if what.vec0 and schema.vec0(connection=connection).ready:
        connection.execute(f"CREATE VIRTUAL TABLE {chunks}_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[2])")
        connection.executemany(
            f"INSERT INTO {chunks}_vec VALUES(?, ?)",
            [(row.id, struct.pack("<2f", *row.vector)) for row in what.chunks if row.vector],
        )
    connection.execute("COMMIT")
