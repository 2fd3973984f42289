"""OpenClaw's own rows are copied into a private index, which answers as OpenClaw does.

The copy is temporary; OpenClaw's database is only read.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import apsw
import numpy as np

from memory_tui.core.errors import IndexUnavailable
from memory_tui.index import index_write, schema
from memory_tui.index.abilities import UNUSED
from memory_tui.index.index_write import NewChunk, NewFile
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store
from memory_tui.openclaw import host_index, open_foreign
from memory_tui.openclaw.host_index import HostIdentity
from memory_tui.providers.provider_protocol import Identity
from memory_tui.workspace.annotations import Annotations
from memory_tui.workspace.chunking_2026_9 import VERSION

_MOST_CHUNKS = 200_000


class _Row(NamedTuple):
    """A chunk as OpenClaw has it; `vector` is float64, little-endian, empty without one."""

    source: str
    path: str
    chunk_id: str
    start_line: int
    end_line: int
    hash: str
    text: str
    vector: bytes
    said: Annotations


class OwnRows(NamedTuple):
    """A private index of OpenClaw's rows, and whom they say each note is from, by path."""

    store: Store
    origins: Mapping[str, str]


class _Rows(NamedTuple):
    """Everything that a search of 2026.9 reads; chunks in the order of their rows."""

    identity: HostIdentity | None
    files: Mapping[tuple[str, str], tuple[str, float, int]]
    chunks: Sequence[_Row]
    origins: Mapping[str, str]


@contextmanager
def index_of(database: Path, identity: Identity | None) -> Iterator[OwnRows]:
    """Open a private index with the rows of OpenClaw's `database`; it is gone at the end.

    Vectors come along where `identity` has their model and length. Raises IndexUnavailable.
    """
    try:
        rows, _ = open_foreign.read_foreign(database, _read)
    except open_foreign.NotSeen as error:
        raise IndexUnavailable(error.detail, error.next_step) from None
    except (ValueError, TypeError) as error:
        raise IndexUnavailable(
            f"Rows of {database} make no sense: {error}.", "It was left as it is; let OpenClaw index again."
        ) from None
    with TemporaryDirectory(prefix="memory-tui-rows-") as folder:
        store = Store.open(Path(folder) / "rows.sqlite", vec0=UNUSED)
        with closing(store):
            _fill(store, rows, _space(rows, identity))
            yield OwnRows(store, rows.origins)


def _read(connection: apsw.Connection) -> _Rows:
    names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    needed = {host_index.CHUNKS_2026_9, host_index.FILES_2026_9, host_index.ANNOTATIONS}
    if not needed <= names:
        raise IndexUnavailable(
            "This is no index of OpenClaw 2026.9.", "Its own answer is computed for an agent database alone."
        )
    (count,) = connection.execute(f"SELECT count(*) FROM {host_index.CHUNKS_2026_9}").fetchall()[0]
    if int(str(count)) > _MOST_CHUNKS:
        raise IndexUnavailable(f"It has more than {_MOST_CHUNKS:,} chunks.", "Its own answer is not computed.")
    meta = connection.execute("SELECT value FROM memory_index_meta WHERE key = ?", (schema.RECIPE,)).fetchone()
    files = connection.execute(f"SELECT source, path, hash, mtime, size FROM {host_index.FILES_2026_9}")
    found = {(str(source), str(path)): (str(digest), float(at), int(size)) for source, path, digest, at, size in files}
    chunks = connection.execute(
        f"SELECT c.source, c.path, c.id, c.start_line, c.end_line, c.hash, c.text, c.embedding, a.importance, "
        f"a.triggers, a.project_key FROM {host_index.CHUNKS_2026_9} c "
        f"LEFT JOIN {host_index.ANNOTATIONS} a ON a.chunk_id = c.id ORDER BY c.chunk_rowid"
    )
    rows = [
        _Row._make((*row, bytes(vector or b""), Annotations(importance or 0, triggers or "", project or "")))
        for *row, vector, importance, triggers, project in chunks
    ]
    origins = {}
    if host_index.PROVENANCE in names:
        origins = {
            str(path): str(origin)
            for path, origin in connection.execute(
                f"SELECT c.path, p.origin_class FROM {host_index.CHUNKS_2026_9} c "
                f"JOIN {host_index.PROVENANCE} p ON p.chunk_id = c.id WHERE c.source = 'memory'"
            )
        }
    return _Rows(None if meta is None else host_index.identity(meta[0], []), found, rows, origins)


def _space(rows: _Rows, identity: Identity | None) -> Identity:
    """The space of the vectors that can be compared, without dimensions where there are none."""
    theirs = rows.identity
    if theirs is None or identity is None or (theirs.model, theirs.vector_dims) != (identity.model, identity.dims):
        return Identity(*schema.KEYWORDS_ONLY, "", 0)
    return identity


def _fill(store: Store, rows: _Rows, space: Identity) -> None:
    tokenizer = (rows.identity.fts_tokenizer if rows.identity else "") or "unicode61"
    recipe = Recipe(space, ("memory", "sessions"), "", 400, 80, 8000, tokenizer, chunking=VERSION)
    index_write.reset(store, recipe)
    index_write.prepare_full_text(store, tokenizer)
    vectors = {row.hash: np.frombuffer(row.vector, "<f8") for row in rows.chunks if row.vector} if space.dims else {}
    vectors = {digest: vector for digest, vector in vectors.items() if len(vector) == space.dims}
    ids = {}
    if vectors:
        matrix = np.stack(list(vectors.values())).astype(np.float32)
        ids = index_write.add_embeddings(store, space, list(vectors), matrix)
    by_file: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in rows.chunks:
        by_file[row.source, row.path].append(row)
    now = time.time()
    for (source, path), chunks in by_file.items():
        digest, mtime, size = rows.files.get((source, path), ("", 0.0, 0))
        new = [
            NewChunk(row.chunk_id, 0, row.start_line, row.end_line, row.hash, row.text, "", row.said) for row in chunks
        ]
        file = NewFile(path, source, digest, int(mtime * 1e6), size, "", now, new)
        index_write.replace_files(store, [file], space.model, ids)
