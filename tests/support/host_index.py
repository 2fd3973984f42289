"""Databases as OpenClaw makes them, in both layouts, for tests that read them."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_tui.index import schema
from memory_tui.workspace.notes import read
from memory_tui.workspace.roots import Roots, scan

MODEL = "text-embedding-3-small"

OWN_FILE = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files(path TEXT PRIMARY KEY, source TEXT NOT NULL DEFAULT 'memory', hash TEXT NOT NULL,
    mtime INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE chunks(id TEXT PRIMARY KEY, path TEXT NOT NULL, text TEXT NOT NULL);
"""
AGENT_DATABASE = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, body TEXT) STRICT;
CREATE TABLE memory_index_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE memory_index_sources(id INTEGER PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
    hash TEXT NOT NULL, mtime REAL NOT NULL, size INTEGER NOT NULL, UNIQUE(path, source)) STRICT;
CREATE TABLE memory_index_chunks(chunk_rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL,
    text TEXT NOT NULL) STRICT;
CREATE TABLE memory_index_state(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER NOT NULL) STRICT;
CREATE TRIGGER memory_index_sources_revision AFTER INSERT ON memory_index_sources BEGIN
    UPDATE memory_index_state SET revision = revision + 1; END;
INSERT INTO memory_index_state VALUES(1, 0);
PRAGMA user_version = 23;
"""


@dataclass
class Content:
    """What is to be in the database; tests change it before it is written."""

    files: dict[str, tuple[str, int]]
    """Hash and size by path."""
    meta: dict[str, object]


def content(workspace: Path, **meta: object) -> Content:
    """What OpenClaw has indexed of `workspace` when it has just finished, each note as one chunk."""
    roots = Roots.open(workspace)
    files = {found.path: (read(found).hash, read(found).size) for found in scan(roots).notes}
    record = {
        "model": MODEL,
        "provider": "openai",
        "providerKey": "ab" * 32,
        "sources": ["memory"],
        "scopeHash": schema.scope_hash(roots.extra),
        "chunkTokens": 400,
        "chunkOverlap": 80,
        "vectorDims": 2,
        **meta,
    }
    return Content(files, record)


def own_file(path: Path, what: Content, journal: str = "delete") -> Path:
    """Write `what` as OpenClaw 2026.3 does."""
    return _filled(path, what, journal, OWN_FILE, ("meta", "files", "chunks"))


def agent_database(path: Path, what: Content, journal: str = "wal") -> Path:
    """Write `what` as OpenClaw does since it has an agent database, as an older release of those."""
    what.meta = {**what.meta, "ftsTokenizer": "unicode61", "provenanceVersion": 1}
    names = "memory_index_meta", "memory_index_sources", "memory_index_chunks"
    return _filled(path, what, journal, AGENT_DATABASE, names)


def _filled(path: Path, what: Content, journal: str, tables: str, names: tuple[str, str, str]) -> Path:
    meta, files, chunks = names
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", journal)
        connection.execute(tables)
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO {meta}(key, value) VALUES(?, ?)", (schema.RECIPE, json.dumps(what.meta)))
        for name, (digest, size) in what.files.items():
            row = name, digest, 1790000000000.5, size
            connection.execute(f"INSERT INTO {files}(path, hash, mtime, size) VALUES(?, ?, ?, ?)", row)
            connection.execute(f"INSERT INTO {chunks}(id, path, text) VALUES(?, ?, 'some text')", (digest + name, name))
        connection.execute("COMMIT")
    return path
