"""The host index is OpenClaw's own SQLite index, which is only read.

Everything is read at once into a value, in short slices; the database is closed again before anybody looks at it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import apsw
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.index import schema
from memory_tui.openclaw import open_foreign

T = TypeVar("T")
Era = Literal["own file", "agent database"]
Failure = Literal["missing", "locked", "damaged", "unknown schema", "unreadable"]
"""Every way in which their index can be out of reach; a comparison has the state ok."""
Key = tuple[str, str]
"""Source (memory or sessions) and stored path of a file."""


class HostProblem(Struct, frozen=True):
    """Why their index cannot be compared; an unknown schema is shown by the names of its `tables`."""

    path: str
    state: Failure
    detail: str
    next_step: str
    tables: tuple[str, ...] = ()


class HostIdentity(Struct, frozen=True):
    """What they recorded to have made the index with; empty or None where they did not."""

    provider: str
    model: str
    provider_key: str
    sources: tuple[str, ...]
    scope_hash: str
    chunk_tokens: int | None
    chunk_overlap: int | None
    vector_dims: int | None
    fts_tokenizer: str
    chunking_version: int | None
    provenance_version: int | None

    @property
    def embeds(self) -> bool:
        """Whether chunks are meant to have vectors."""
        return bool(self.provider) and self.provider != schema.KEYWORDS_ONLY[0]


class HostFile(NamedTuple):
    """A file row: SHA-256 of the text (empty when it waits to be indexed again), size in bytes."""

    hash: str
    size: int


class HostChunk(NamedTuple):
    """A chunk row: whether it holds an embedding, and whether the vec0 table has it (None without that table)."""

    chunk_id: str
    start_line: int
    end_line: int
    hash: str
    model: str
    embedded: bool
    in_vec0: bool | None


class HostCounts(Struct, frozen=True):
    """How much is in their index; None for a table that is not there.

    `sources` maps a source to its files, `embedded` counts chunks with an embedding, `vectors` rows of the vec0
    table of `vector_dims`, `keyword_rows` those of the full-text table, `cached` embeddings in the cache.
    """

    sources: Mapping[str, int]
    files: int
    chunks: int
    embedded: int
    vectors: int | None
    vector_dims: int | None
    keyword_rows: int | None
    cached: int | None


class HostIndex(Struct, frozen=True):
    """Their whole index at one moment; `revision` counts its changes, where they count them."""

    path: str
    era: Era
    identity: HostIdentity | None
    files: Mapping[Key, HostFile]
    chunks: Mapping[Key, tuple[HostChunk, ...]]
    counts: HostCounts
    revision: int | None
    user_version: int
    remarks: tuple[str, ...]


def identity(text: object, remarks: list[str]) -> HostIdentity | None:
    """The record in `text`; what cannot be understood is told in `remarks`."""
    try:
        fields = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        remarks.append(f"Its record of how it was made ({schema.RECIPE}) cannot be understood.")
        return None

    def checked(name: str, kind: type[T]) -> T | None:
        value = fields.get(name)
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        if value is not None:
            remarks.append(f"Its record says {json.dumps(value)[:40]} as {name}, which cannot be.")
        return None

    sources: list[Any] = checked("sources", list) or []
    return HostIdentity(
        provider=checked("provider", str) or "",
        model=checked("model", str) or "",
        provider_key=checked("providerKey", str) or "",
        sources=tuple(map(str, sources)),
        scope_hash=checked("scopeHash", str) or "",
        chunk_tokens=checked("chunkTokens", int),
        chunk_overlap=checked("chunkOverlap", int),
        vector_dims=checked("vectorDims", int),
        fts_tokenizer=checked("ftsTokenizer", str) or "",
        chunking_version=checked("chunkingVersion", int),
        provenance_version=checked("provenanceVersion", int),
    )


_Tables = Mapping[str, set[str]]

_SLICE = 1000
NEWEST_CHUNKING, NEWEST_PROVENANCE, _NEWEST_AGENT_SCHEMA = 5, 1, 23
"""The newest that is known here (OpenClaw 2026.9.6)."""


class _Layout(NamedTuple):
    era: Era
    meta: str
    files: str
    chunks: str
    cache: str
    fts: str
    vec0: str


_LAYOUTS = (
    _Layout(
        "agent database",
        "memory_index_meta",
        "memory_index_sources",
        "memory_index_chunks",
        "memory_embedding_cache",
        "memory_index_chunks_fts",
        "memory_index_chunks_vec",
    ),
    _Layout("own file", "meta", "files", "chunks", "embedding_cache", "chunks_fts", "chunks_vec"),
)
_META = {"key", "value"}
_FILES = {"path", "hash", "mtime", "size"}
_CHUNKS = {"id", "path", "start_line", "end_line", "hash", "model", "text", "embedding", "updated_at"}
_REBUILD_VECTORS, _CLEAN = "memory_vector_rebuild_v1", "clean"
_STATE = "memory_index_state"


_DIMS = re.compile(r"float\s*\[\s*(\d+)\s*\]", re.IGNORECASE)


def find(candidates: Sequence[Path]) -> Path:
    """The first of `candidates` that holds an index of a known schema, else the first that exists, else the last."""
    there = [path for path in candidates if path.exists()]
    for path in there:
        try:
            tables, _ = open_foreign.read_foreign(path, _tables)
        except open_foreign.NotSeen:
            # Why is told when it is opened.
            continue
        if _layout(tables) is not None:
            return path
    return (there or list(candidates[-1:]))[0]


def open_index(path: Path) -> HostIndex | HostProblem:
    """Their index at `path`, or why it cannot be read; the file, its time and its folder stay as they are."""
    try:
        found, copied = open_foreign.read_foreign(path, lambda connection: _read(connection, str(path)))
    except open_foreign.NotSeen as problem:
        return HostProblem(str(path), problem.state, problem.detail, problem.next_step)
    if copied and isinstance(found, HostIndex):
        return replace(found, remarks=(*found.remarks, _CUT_OFF))
    return found


_CUT_OFF = "A program ended without finishing to write it; shown is what OpenClaw will find at its next start."


def _read(connection: apsw.Connection, path: str) -> HostIndex | HostProblem:
    tables = _tables(connection)
    layout = _layout(tables)
    if layout is None:
        return _unknown(path, tables, _strange(connection, tables))
    try:
        return _Reading(connection, layout, tables).whole(path)
    except apsw.SQLError as error:
        return _unknown(path, tables, f"has tables that cannot be read as OpenClaw's ({error})")


def _tables(connection: apsw.Connection) -> _Tables:
    """Names of the tables and the columns of those that could be ours to read."""
    known = {name for layout in _LAYOUTS for name in layout[1:4]}
    names = [
        str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    ]
    return {
        name: {str(column) for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        if name in known
        else set()
        for name in names
    }


def _layout(tables: _Tables) -> _Layout | None:
    """The layout whose tables are there with every column that is needed."""
    for layout in _LAYOUTS:
        needed = (layout.meta, _META), (layout.files, _FILES), (layout.chunks, _CHUNKS)
        if all(columns <= tables.get(table, set()) for table, columns in needed):
            return layout
    return None


def _strange(connection: apsw.Connection, tables: _Tables) -> str:
    if connection.pragma("application_id") == schema.APPLICATION_ID:
        return "is memory-tui's own index, not OpenClaw's"
    if not tables:
        return "is an empty database"
    if any(layout.chunks in tables for layout in _LAYOUTS):
        return "has tables with other columns than those of OpenClaw up to 2026.9"
    return "holds no memory index of OpenClaw"


def _unknown(path: str, tables: _Tables, what: str) -> HostProblem:
    return HostProblem(path, "unknown schema", f"{path} {what}.", "It was left as it is.", tuple(tables))


class _Reading:
    """One pass through their tables."""

    def __init__(self, connection: apsw.Connection, layout: _Layout, tables: _Tables) -> None:
        self._connection = connection
        self._layout = layout
        self._tables = tables
        self._remarks: list[str] = []

    def whole(self, path: str) -> HostIndex:
        """Everything that is compared."""
        identity = self._identity()
        files, chunks = self._files(), self._chunks()
        version = int(self._value("PRAGMA user_version"))
        self._remark_on_newer(identity, version)
        counts = self._counts(files, [chunk for rows in chunks.values() for chunk in rows])
        return HostIndex(
            path, self._layout.era, identity, files, chunks, counts, self._revision(), version, tuple(self._remarks)
        )

    def _value(self, sql: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - whatever the column holds
        row = self._connection.execute(sql, values).fetchone()
        return row[0] if row else None

    def _count(self, table: str) -> int | None:
        return int(self._value(f'SELECT count(*) FROM "{table}"')) if table in self._tables else None

    def _pages(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of `sql` without their first column, the rowid by which a slice is asked for."""
        after: Any = -(1 << 63)
        while rows := self._connection.execute(
            f"{sql} WHERE t.rowid > ? ORDER BY t.rowid LIMIT {_SLICE}", (after,)
        ).fetchall():
            yield from (row[1:] for row in rows)
            after = rows[-1][0]

    def _source(self, table: str) -> str:
        return _text("t.source") if "source" in self._tables[table] else "'memory'"

    def _files(self) -> dict[Key, HostFile]:
        table = self._layout.files
        rows = self._pages(
            f"SELECT t.rowid, {self._source(table)}, {_text('t.path')}, {_text('t.hash')}, "
            f"{_whole('t.size')} FROM {table} t"
        )
        return {(source, path): HostFile(digest, size) for source, path, digest, size in rows}

    def _chunks(self) -> dict[Key, tuple[HostChunk, ...]]:
        table, stored = self._layout.chunks, f"{self._layout.vec0}_rowids"
        in_vec0 = f"EXISTS (SELECT 1 FROM {stored} v WHERE v.id = t.id)" if stored in self._tables else "NULL"
        # An empty embedding is [] as JSON and nothing as a BLOB; its length is known without reading it.
        rows = self._pages(
            f"SELECT t.rowid, {self._source(table)}, {_text('t.path')}, {_text('t.id')}, {_whole('t.start_line')}, "
            f"{_whole('t.end_line')}, {_text('t.hash')}, {_text('t.model')}, "
            f"coalesce(octet_length(t.embedding), 0) > 2, {in_vec0} FROM {table} t"
        )
        chunks: dict[Key, list[HostChunk]] = defaultdict(list)
        for source, path, *values, embedded, vector in rows:
            listed = None if vector is None else bool(vector)
            chunks[source, path].append(HostChunk._make((*values, bool(embedded), listed)))
        return {key: tuple(sorted(rows, key=lambda chunk: chunk[1:3])) for key, rows in chunks.items()}

    def _counts(self, files: Mapping[Key, HostFile], chunks: Sequence[HostChunk]) -> HostCounts:
        layout = self._layout
        definition = str(self._value("SELECT sql FROM sqlite_schema WHERE name = ?", (layout.vec0,)) or "")
        dims = _DIMS.search(definition)
        return HostCounts(
            sources=dict(Counter(source for source, _ in files)),
            files=len(files),
            chunks=len(chunks),
            embedded=sum(chunk.embedded for chunk in chunks),
            vectors=self._count(f"{layout.vec0}_rowids"),
            vector_dims=int(dims[1]) if dims else None,
            keyword_rows=self._count(f"{layout.fts}_docsize"),
            cached=self._count(layout.cache),
        )

    def _revision(self) -> int | None:
        if _STATE not in self._tables:
            return None
        revision = self._value(f"SELECT revision FROM {_STATE} WHERE id = 1")
        return revision if isinstance(revision, int) else None

    def _meta(self, key: str) -> Any:  # noqa: ANN401
        return self._value(f"SELECT value FROM {self._layout.meta} WHERE key = ?", (key,))

    def _identity(self) -> HostIdentity | None:
        if self._meta(_REBUILD_VECTORS) not in (None, "", _CLEAN, json.dumps(_CLEAN)):
            self._remarks.append("It is marked to have its vectors rebuilt: vec0 missed a change.")
        text = self._meta(schema.RECIPE)
        return None if text is None else identity(text, self._remarks)

    def _remark_on_newer(self, identity: HostIdentity | None, version: int) -> None:
        newer = [
            f"{what} {number}"
            for what, number, newest in (
                ("chunking version", identity and identity.chunking_version, NEWEST_CHUNKING),
                ("provenance version", identity and identity.provenance_version, NEWEST_PROVENANCE),
                ("schema version", version, _NEWEST_AGENT_SCHEMA),
            )
            if number and number > newest
        ]
        if newer:
            self._remarks.append(f"It was written by a newer OpenClaw than memory-tui knows ({', '.join(newer)}).")


def _text(column: str) -> str:
    """SQLite columns hold whatever was put there."""
    return f"coalesce(CAST({column} AS TEXT), '')"


def _whole(column: str) -> str:
    return f"coalesce(CAST({column} AS INTEGER), 0)"
