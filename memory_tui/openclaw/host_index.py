"""The host index is OpenClaw's own SQLite index, which is only read.

Everything is read at once into a value; the database is closed again before anybody looks at it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.index import schema
from memory_tui.openclaw import open_foreign

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


class HostIdentity(Struct, frozen=True, rename="camel"):
    """What they recorded to have made the index with; empty or None where they did not."""

    provider: str = ""
    model: str = ""
    provider_key: str = ""
    sources: tuple[str, ...] = ()
    scope_hash: str = ""
    chunk_tokens: int | None = None
    chunk_overlap: int | None = None
    vector_dims: int | None = None
    fts_tokenizer: str = ""
    chunking_version: int | None = None
    provenance_version: int | None = None

    @property
    def embeds(self) -> bool:
        """Tell whether chunks are meant to have vectors."""
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
    embedded: int
    in_vec0: int | None


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
    chunks: Mapping[Key, Sequence[HostChunk]]
    counts: HostCounts
    revision: int | None
    user_version: int
    remarks: tuple[str, ...]


NEWEST_CHUNKING, NEWEST_PROVENANCE, _NEWEST_AGENT_SCHEMA = 5, 1, 23
"""The newest that is known here (OpenClaw 2026.9.6)."""
_COLUMNS = (
    {"key", "value"},
    {"path", "hash", "mtime", "size"},
    {"id", "path", "start_line", "end_line", "hash", "model", "text", "embedding", "updated_at"},
)
_NEWER = ("memory_index_meta", "memory_index_sources", "memory_index_chunks", "memory_embedding_cache")
_LAYOUTS: tuple[tuple[Era, tuple[str, ...]], ...] = (
    ("agent database", _NEWER),
    ("own file", ("meta", "files", "chunks", "embedding_cache")),
)
"""The tables of record, files, chunks and cache in each layout; those of words and vectors are named after chunks."""
_STATE = "memory_index_state"
_DIMS = re.compile(r"float\s*\[\s*(\d+)\s*\]", re.IGNORECASE)
_CUT_OFF = "A program ended without finishing to write it; shown is what OpenClaw will find at its next start."


def find(candidates: Sequence[Path]) -> Path:
    """Return the first of `candidates` that holds an index of a known schema, else the first that exists, or the last.

    Why one cannot be read is told when it is opened.
    """
    there = [path for path in candidates if path.exists()]
    for path in there:
        try:
            if open_foreign.read_foreign(path, _layout)[0] is not None:
                return path
        except open_foreign.NotSeen:
            continue
    return (there or list(candidates[-1:]))[0]


def open_index(path: Path) -> HostIndex | HostProblem:
    """Return their index at `path`, or why it cannot be read; the file, its time and its folder stay as they are."""
    try:
        index, copied = open_foreign.read_foreign(path, lambda connection: _read(connection, str(path)))
    except open_foreign.NotSeen as problem:
        return HostProblem(str(path), problem.state, problem.detail, problem.next_step)
    if copied and isinstance(index, HostIndex):
        return replace(index, remarks=(*index.remarks, _CUT_OFF))
    return index


def _layout(connection: apsw.Connection) -> tuple[Era, tuple[str, ...]] | None:
    """Return the layout whose tables are there with every column that is needed."""
    columns = "SELECT CAST(name AS TEXT) FROM pragma_table_info(?)"
    for era, tables in _LAYOUTS:
        pairs = zip(_COLUMNS, tables[:3], strict=True)
        if all(needed <= {name for (name,) in connection.execute(columns, (table,))} for needed, table in pairs):
            return era, tables
    return None


def _read(connection: apsw.Connection, path: str) -> HostIndex | HostProblem:
    listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    tables, layout = tuple(str(name) for (name,) in listed), _layout(connection)
    if layout is not None:
        try:
            return _whole(connection, path, tables, *layout)
        except apsw.SQLError as error:
            what = f"has tables that cannot be read as OpenClaw's ({error})"
    elif connection.pragma("application_id") == schema.APPLICATION_ID:
        what = "is memory-tui's own index, not OpenClaw's"
    elif not tables:
        what = "is an empty database"
    elif {"memory_index_chunks", "chunks"} & {*tables}:
        what = "has tables with other columns than those of OpenClaw up to 2026.9"
    else:
        what = "holds no memory index of OpenClaw"
    return HostProblem(path, "unknown schema", f"{path} {what}.", "It was left as it is.", tables)


def _whole(
    connection: apsw.Connection, path: str, tables: Sequence[str], era: Era, layout: tuple[str, ...]
) -> HostIndex:
    meta, files_table, chunks_table, cache = layout
    vec0, remarks = f"{chunks_table}_vec", list[str]()

    def value(sql: str, *bindings: str) -> Any:  # noqa: ANN401 - whatever the column holds
        return connection.execute(sql, bindings).get

    def count(table: str) -> int | None:
        return int(value(f'SELECT count(*) FROM "{table}"')) if table in tables else None

    def source(table: str) -> str:
        has = value("SELECT count(*) FROM pragma_table_info(?) WHERE name = 'source'", table)
        return _text("source") if has else "'memory'"

    # Each table is fetched whole, so that a lock lasts no longer than SQLite needs.
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {source(files_table)}, {_text('path')}, {_text('hash')}, {_whole_number('size')} FROM {files_table}"
    ).fetchall()
    files = {(name, file): HostFile(digest, size) for name, file, digest, size in rows}
    in_vec0 = f"EXISTS (SELECT 1 FROM {vec0}_rowids v WHERE v.id = t.id)" if f"{vec0}_rowids" in tables else "NULL"
    # An empty embedding is [] as JSON and nothing as a BLOB; its length is known without reading it.
    rows = connection.execute(
        f"SELECT {source(chunks_table)}, {_text('path')}, {_text('id')}, {_whole_number('start_line')} AS first, "
        f"{_whole_number('end_line')} AS last, {_text('hash')}, {_text('model')}, "
        f"coalesce(octet_length(embedding), 0) > 2, {in_vec0} FROM {chunks_table} t ORDER BY first, last, t.rowid"
    ).fetchall()
    chunks: dict[Key, list[HostChunk]] = {}
    for row in rows:
        chunks.setdefault((row[0], row[1]), []).append(HostChunk._make(row[2:]))
    if str(value(f"SELECT value FROM {meta} WHERE key = 'memory_vector_rebuild_v1'") or "").strip('"') not in (
        "",
        "clean",
    ):
        remarks.append("It is marked to have its vectors rebuilt: vec0 missed a change.")
    identity = _identity(value(f"SELECT value FROM {meta} WHERE key = ?", schema.RECIPE), remarks)
    version = int(connection.pragma("user_version"))
    _remark_on_newer(identity, version, remarks)
    dims = _DIMS.search(str(value("SELECT sql FROM sqlite_schema WHERE name = ?", vec0) or ""))
    revision = value(f"SELECT revision FROM {_STATE} WHERE id = 1") if _STATE in tables else None
    counts = HostCounts(
        sources=dict(Counter(name for name, _ in files)),
        files=len(files),
        chunks=sum(map(len, chunks.values())),
        embedded=sum(chunk.embedded for items in chunks.values() for chunk in items),
        vectors=count(f"{vec0}_rowids"),
        vector_dims=int(dims[1]) if dims else None,
        keyword_rows=count(f"{chunks_table}_fts_docsize"),
        cached=count(cache),
    )
    revision = revision if isinstance(revision, int) else None
    return HostIndex(path, era, identity, files, chunks, counts, revision, version, tuple(remarks))


def _identity(text: object, remarks: list[str]) -> HostIdentity | None:
    """Return the record in `text`; that it cannot be understood is told in `remarks`."""
    try:
        return msgspec.json.decode(text, type=HostIdentity, strict=False) if isinstance(text, str) else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        remarks.append(f"Its record of how it was made ({schema.RECIPE}) cannot be understood.")
        return None


def _remark_on_newer(identity: HostIdentity | None, version: int, remarks: list[str]) -> None:
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
        remarks.append(f"It was written by a newer OpenClaw than memory-tui knows ({', '.join(newer)}).")


def _text(column: str) -> str:
    """Return SQL for a column as text: SQLite columns hold whatever was put there."""
    return f"coalesce(CAST({column} AS TEXT), '')"


def _whole_number(column: str) -> str:
    return f"coalesce(CAST({column} AS INTEGER), 0)"
