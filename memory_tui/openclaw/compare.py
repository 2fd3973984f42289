"""Compare OpenClaw's own index with the notes on disk and with what the configuration asks for."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, get_args

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.config.model import Config
from memory_tui.errors import Unreadable
from memory_tui.index import schema
from memory_tui.index.index_write import on_lines_of_file
from memory_tui.openclaw import open_foreign
from memory_tui.sanitize import one_line
from memory_tui.settings import Settings
from memory_tui.workspace import chunking_2026_9
from memory_tui.workspace.chunking import MAX_INPUT_BYTES, Chunk, chunk_id
from memory_tui.workspace.notes import Document
from memory_tui.workspace.roots import REPAIRED, ROOT_NOTES_2026_9, Roots, read, scan
from memory_tui.workspace.scan import LeftOut, NoteFile

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
    table of `vector_dims`, `keyword_rows` those of the full-text table.
    """

    sources: Mapping[str, int]
    files: int
    chunks: int
    embedded: int
    vectors: int | None
    vector_dims: int | None
    keyword_rows: int | None


class HostIndex(Struct, frozen=True):
    """Their whole index at one moment."""

    path: str
    era: Era
    identity: HostIdentity | None
    files: Mapping[Key, HostFile]
    chunks: Mapping[Key, Sequence[HostChunk]]
    counts: HostCounts
    remarks: tuple[str, ...]


NEWEST_CHUNKING, NEWEST_PROVENANCE, _NEWEST_AGENT_SCHEMA = 5, 1, 23
"""The newest that is known here (OpenClaw 2026.9.6)."""
_COLUMNS = (
    {"key", "value"},
    {"path", "source", "hash", "mtime", "size"},
    {"id", "path", "source", "start_line", "end_line", "hash", "model", "text", "embedding", "updated_at"},
)
_LAYOUTS: Mapping[Era, tuple[str, ...]] = {
    "agent database": ("memory_index_meta", "memory_index_sources", "memory_index_chunks"),
    "own file": ("meta", "files", "chunks"),
}
"""The tables of record, files and chunks in each layout; those of words and vectors are named after chunks."""
_DIMS = re.compile(r"float\s*\[\s*(\d+)\s*\]", re.IGNORECASE)
_CUT_OFF = "A program ended without finishing to write it; shown is what OpenClaw will find at its next start."


def open_index(path: Path) -> HostIndex | HostProblem:
    """Return their index at `path`, or why it cannot be read; the file, its time and its folder stay as they are."""
    try:
        index, copied = open_foreign.read_foreign(path, lambda connection: _read(connection, str(path)))
    except open_foreign.NotSeen as problem:
        return HostProblem(str(path), problem.state, problem.detail, problem.next_step)
    if copied and isinstance(index, HostIndex):
        return replace(index, remarks=(*index.remarks, _CUT_OFF))
    return index


def _layout(connection: apsw.Connection) -> Era | None:
    """Return the layout whose tables are there with every column that is needed."""
    columns = "SELECT CAST(name AS TEXT) FROM pragma_table_info(?)"
    for era, tables in _LAYOUTS.items():
        pairs = zip(_COLUMNS, tables, strict=True)
        if all(needed <= {name for (name,) in connection.execute(columns, (table,))} for needed, table in pairs):
            return era
    return None


def _read(connection: apsw.Connection, path: str) -> HostIndex | HostProblem:
    listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    tables, era = tuple(str(name) for (name,) in listed), _layout(connection)
    if era is not None:
        try:
            return _whole(connection, path, tables, era)
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


def _whole(connection: apsw.Connection, path: str, tables: Sequence[str], era: Era) -> HostIndex:
    meta, files_table, chunks_table = _LAYOUTS[era]
    vec0, remarks = f"{chunks_table}_vec", list[str]()

    def value(sql: str, *bindings: str) -> Any:  # noqa: ANN401 - whatever the column holds
        return connection.execute(sql, bindings).get

    def count(table: str) -> int | None:
        return int(value(f'SELECT count(*) FROM "{table}"')) if table in tables else None

    # Each table is fetched whole, so that a lock lasts no longer than SQLite needs.
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {_text('source')}, {_text('path')}, {_text('hash')}, {_whole_number('size')} FROM {files_table}"
    ).fetchall()
    files = {(name, file): HostFile(digest, size) for name, file, digest, size in rows}
    in_vec0 = f"EXISTS (SELECT 1 FROM {vec0}_rowids v WHERE v.id = t.id)" if f"{vec0}_rowids" in tables else "NULL"
    # An empty embedding is [] as JSON and nothing as a BLOB; its length is known without reading it.
    rows = connection.execute(
        f"SELECT {_text('source')}, {_text('path')}, {_text('id')}, {_whole_number('start_line')} AS first, "
        f"{_whole_number('end_line')} AS last, {_text('hash')}, {_text('model')}, "
        f"coalesce(octet_length(embedding), 0) > 2, {in_vec0} FROM {chunks_table} t ORDER BY first, last, t.rowid"
    ).fetchall()
    chunks: dict[Key, list[HostChunk]] = {}
    for row in rows:
        chunks.setdefault((row[0], row[1]), []).append(HostChunk._make(row[2:]))
    rebuild = value(f"SELECT value FROM {meta} WHERE key = 'memory_vector_rebuild_v1'")
    if str(rebuild or "").strip('"') not in ("", "clean"):
        remarks.append("It is marked to have its vectors rebuilt: vec0 missed a change.")
    identity = _identity(value(f"SELECT value FROM {meta} WHERE key = ?", schema.RECIPE), remarks)
    _remark_on_newer(identity, int(connection.pragma("user_version")), remarks)
    dims = _DIMS.search(str(value("SELECT sql FROM sqlite_schema WHERE name = ?", vec0) or ""))
    counts = HostCounts(
        sources=dict(Counter(name for name, _ in files)),
        files=len(files),
        chunks=sum(map(len, chunks.values())),
        embedded=sum(chunk.embedded for items in chunks.values() for chunk in items),
        vectors=count(f"{vec0}_rowids"),
        vector_dims=int(dims[1]) if dims else None,
        keyword_rows=count(f"{chunks_table}_fts_docsize"),
    )
    return HostIndex(path, era, identity, files, chunks, counts, tuple(remarks))


def _identity(text: object, remarks: list[str]) -> HostIdentity | None:
    """Return the record in `text`; that it cannot be understood is told in `remarks`."""
    try:
        return msgspec.json.decode(text, type=HostIdentity, strict=False) if isinstance(text, str) else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        remarks.append(f"Its record of how it was made ({schema.RECIPE}) cannot be understood.")
        return None


def _remark_on_newer(identity: HostIdentity | None, version: int, remarks: list[str]) -> None:
    known = {"schema version": (version, _NEWEST_AGENT_SCHEMA)}
    if identity is not None:
        known |= {
            "chunking version": (identity.chunking_version or 0, NEWEST_CHUNKING),
            "provenance version": (identity.provenance_version or 0, NEWEST_PROVENANCE),
        }
    if newer := [f"{what} {number}" for what, (number, newest) in known.items() if number > newest]:
        remarks.append(f"It was written by a newer OpenClaw than memory-tui knows ({', '.join(newer)}).")


def _text(column: str) -> str:
    """Return SQL for a column as text: SQLite columns hold whatever was put there."""
    return f"coalesce(CAST({column} AS TEXT), '')"


def _whole_number(column: str) -> str:
    return f"coalesce(CAST({column} AS INTEGER), 0)"


Difference = Literal["missing", "stale", "extra", "other model", "other chunking", "without vector"]
DIFFERENCES: tuple[Difference, ...] = get_args(Difference)

Standing = Literal["current", "stale", "paused"]
"""OpenClaw answers from it, makes it again by itself, or answers nothing until a person runs its command."""

_FIXED_SIZES = "400/80"
"""Chunk tokens and overlap from 2026.8 on, whatever the configuration says."""
_LOCAL_BYTES = 2048
"""The longest input of the providers local and gemini (but for its embedding-2), in UTF-8 bytes."""
_NOTES = "memory"
_SELF_MENDED = {"metadata_missing", "provenance", "chunking_version"}
"""Parts of the identity that OpenClaw mends by itself."""


class FileComparison(Struct, frozen=True):
    """A file of the disk or of the index; without `differences` it is the same, if it was `compared` at all.

    `expected` counts the chunks that memory-tui cuts it into at the index's sizes, None when that was not tried;
    `detail` holds a sentence for each difference.
    """

    path: str
    source: str
    differences: tuple[Difference, ...]
    detail: str
    compared: bool
    chunks: int
    expected: int | None
    embedded: int
    models: tuple[str, ...]


Wanted = Mapping[str, str]
"""What the configuration asks of an index now, by the code of the part; what it leaves to OpenClaw is not there."""


class Mismatch(Struct, frozen=True):
    """A part of the identity, `code` as OpenClaw names it, that is not what the configuration asks for."""

    code: str
    theirs: str
    wanted: str


class IndexComparison(Struct, frozen=True):
    """An index against the disk: the whole, and `files` by path; `summary` counts files by difference."""

    state: Literal["ok"]
    path: str
    era: Era
    identity: HostIdentity | None
    mismatches: tuple[Mismatch, ...]
    consequence: str
    standing: Standing
    counts: HostCounts
    on_disk: int
    summary: Mapping[str, int]
    remarks: tuple[str, ...]
    files: tuple[FileComparison, ...]


def database(config: Config) -> Path:
    """Return where OpenClaw keeps the index of the agent of `config`: the first that holds one, else the first file.

    Why one cannot be read is told when it is opened.
    """
    places_of_it = (places.agent_database(config.agent.id), config.store_path)
    there = [path for path in places_of_it if path.exists()]
    for path in there:
        with contextlib.suppress(open_foreign.NotSeen):
            if open_foreign.read_foreign(path, _layout)[0] is not None:
                return path
    return (there or [config.store_path])[0]


def wanted_of(config: Config, settings: Settings, roots: Roots) -> Wanted:
    """Return what `config` asks of OpenClaw's index; nothing, when it is not OpenClaw's."""
    if config.kind != "openclaw":
        return {}
    # Without a list, sources follow from other settings of newer versions.
    listed, sources = config.value("sources"), tuple[str, ...]()
    if "sources" in config.entries and isinstance(listed, tuple):
        allowed = config.value("experimental.sessionMemory")
        sources = tuple(str(source) for source in listed if source != "sessions" or allowed) or (_NOTES,)
    wanted = {
        "model": config.model,
        "provider": "" if config.provider == "auto" else config.provider,
        "sources": ", ".join(sorted(sources)),
        "scope": schema.scope_hash(roots.extra, roots.patterns, roots.media),
        "chunking": f"{settings.whole('chunking.tokens')}/{settings.whole('chunking.overlap')}",
        "fts_tokenizer": settings.word("store.fts.tokenizer"),
    }
    return {code: value for code, value in wanted.items() if value}


def compare_configured(
    config: Config, settings: Settings, roots: Roots, path: Path | None = None
) -> IndexComparison | HostProblem:
    """Compare the index of the configuration's agent, or the one at `path`. Raises WorkspaceError."""
    return compare_workspace(roots, path or database(config), wanted_of(config, settings, roots), config.agent.id)


def compare_workspace(
    roots: Roots, path: Path, wanted: Wanted | None = None, agent: str = "main"
) -> IndexComparison | HostProblem:
    """Compare the index at `path` with the notes on disk now, or say why it cannot be read. Raises WorkspaceError."""
    index = open_index(path)
    if isinstance(index, HostProblem):
        return index
    if index.identity is not None and index.identity.chunking_version is not None:
        # The notes as that release reads them.
        roots = replace(roots, root_notes=ROOT_NOTES_2026_9, never=REPAIRED)
    seen = scan(roots)
    files = [_of_disk(note, index) for note in seen.notes]
    left = {item.path: item for item in seen.left_out}
    on_disk = {(note.source, note.path) for note in seen.notes}
    files += [_of_index_alone(key, left, index) for key in (index.files.keys() | index.chunks.keys()) - on_disk]
    files.sort(key=lambda file: (file.path, file.source))
    counts = Counter(difference for file in files for difference in file.differences)
    mismatches = tuple(_mismatches(index, wanted or {}))
    standing: Standing = "current"
    if mismatches:
        # The first part that differs decides.
        mended = index.era == "own file" or mismatches[0].code in _SELF_MENDED
        standing = "stale" if mended else "paused"
    when = "sync" if index.era == "own file" else "search"
    consequences = {
        "current": "",
        "stale": f"OpenClaw indexes everything again at its next {when}.",
        "paused": "OpenClaw pauses its searches: they return nothing until you run "
        f"openclaw memory status --index --agent {agent}.",
    }
    return IndexComparison(
        state="ok",
        path=index.path,
        era=index.era,
        identity=index.identity,
        mismatches=mismatches,
        consequence=consequences[standing],
        standing=standing,
        counts=index.counts,
        on_disk=len(seen.notes),
        summary={
            "same": sum(file.compared and not file.differences for file in files),
            **{difference: counts[difference] for difference in DIFFERENCES},
            "not compared": sum(not file.compared for file in files),
        },
        remarks=(*index.remarks, *_remarks(index, bool(counts["other chunking"]))),
        files=tuple(files),
    )


def _of_disk(note: NoteFile, index: HostIndex) -> FileComparison:
    """Compare a note on disk with what the index has of it."""
    key = note.source, note.path
    chunks = index.chunks.get(key, ())
    if note.source != _NOTES and index.era != "own file":
        return _file(key, chunks, {}, note="OpenClaw keeps what was said in its own database from 2026.7 on.")
    if key not in index.files:
        lacking = "OpenClaw's index lacks it."
        if chunks:
            lacking = f"OpenClaw's index has {len(chunks)} chunks of it, but no row for the file."
        elif note.path == "memory.md" and index.era == "agent database":
            lacking = "OpenClaw's index lacks it: memory.md in small letters is not read from 2026.4.23 on."
        return _file(key, chunks, {"missing": lacking})
    try:
        document = read(note)
    except Unreadable as error:
        return _file(key, chunks, {}, note=f"It cannot be compared: {error.message}")
    row, identity = index.files[key], index.identity
    details: dict[Difference, str] = {}
    if row.hash != document.hash:
        other = f"OpenClaw has indexed another text of it: {row.size:,} bytes, on disk are {document.size:,}."
        details["stale"] = other if row.hash else "OpenClaw has marked it to be indexed again."
    if identity is None:
        return _file(key, chunks, details)
    if strange := {chunk.model for chunk in chunks} - {identity.model}:
        details["other model"] = f"Chunks of the model {', '.join(sorted(strange))} are not searched any more."
    expected = None
    if "stale" not in details and identity.chunking_version in (None, NEWEST_CHUNKING):
        expected = _cut(document, note.source, identity)
        if detail := _other_chunking(expected, chunks, identity.model):
            details["other chunking"] = detail
    if identity.embeds and (detail := _without_vector(chunks)):
        details["without vector"] = detail
    return _file(key, chunks, details, expected=None if expected is None else len(expected))


def _of_index_alone(key: tuple[str, str], left_out: Mapping[str, LeftOut], index: HostIndex) -> FileComparison:
    """Say why the index has a file that is no note on disk."""
    source, path = key
    chunks = index.chunks.get(key, ())
    if source != _NOTES:
        return _file(key, chunks, {}, note="A transcript, which is not among the sources here, or gone.")
    above = [path, *(str(folder) for folder in PurePosixPath(path).parents)]
    left = next((left_out[name] for name in above if name in left_out), None)
    extra = "It is in OpenClaw's index, but not among the notes on disk."
    if left is not None and left.rule == "unreadable":
        return _file(key, chunks, {}, note=f"It cannot be compared: {left.path}: {left.detail}")
    if left is not None:
        extra = f"It is in OpenClaw's index, but not a note here ({left.rule}): {left.detail}"
    elif path == "USER.md":
        extra = "It is in OpenClaw's index; OpenClaw reads USER.md from 2026.8 on, memory-tui does not."
    return _file(key, chunks, {"extra": extra})


def _file(
    key: tuple[str, str],
    chunks: Sequence[HostChunk],
    details: Mapping[Difference, str],
    *,
    expected: int | None = None,
    note: str = "",
) -> FileComparison:
    return FileComparison(
        path=key[1],
        source=key[0],
        differences=tuple(details),
        detail=" ".join(filter(None, (*details.values(), note))),
        compared=not note,
        chunks=len(chunks),
        expected=expected,
        embedded=sum(chunk.embedded for chunk in chunks),
        models=tuple(sorted({chunk.model for chunk in chunks})),
    )


def _cut(document: Document, source: str, identity: HostIdentity) -> dict[str, Chunk] | None:
    """Return each chunk by its id that the OpenClaw of `identity` would make; None without its sizes."""
    newest, sizes = identity.chunking_version == NEWEST_CHUNKING, (identity.chunk_tokens, identity.chunk_overlap)
    if not newest and None in sizes:
        return None
    gemini = identity.provider == "gemini" and identity.chunking_version is None
    small = identity.provider == "local" or (gemini and not identity.model.endswith("gemini-embedding-2-preview"))
    limit = _LOCAL_BYTES if small else MAX_INPUT_BYTES
    rules, tokens, overlap = chunking_2026_9.VERSION if newest else "", sizes[0] or 0, sizes[1] or 0
    chunks = chunking_2026_9.chunks_of(
        document.text, document.path, rules, (tokens, overlap), limit, plain=source != _NOTES
    )
    lines = on_lines_of_file(document, [each.chunk for each in chunks])
    return {chunk_id(source, document.path, piece, identity.model): piece for piece in lines}


def _other_chunking(expected: Mapping[str, Chunk] | None, chunks: Sequence[HostChunk], model: str) -> str:
    """Say how the chunks of an unchanged note differ from those expected; empty where they do not."""
    if expected is None:
        return ""
    lines = {(piece.start_line, piece.end_line, piece.hash) for piece in expected.values()}
    stored = {(chunk.start_line, chunk.end_line, chunk.hash) for chunk in chunks}
    if lines != stored:
        return (
            f"Its text is cut otherwise: {len(chunks)} chunks instead of {len(expected)}, "
            f"{len(lines & stored)} of them alike."
        )
    # The model is a part of the id, and another model is a difference of its own.
    others = sum(chunk.chunk_id not in expected for chunk in chunks if chunk.model == model)
    return f"The ids of {others} chunks are not the documented ones." if others else ""


def _without_vector(chunks: Sequence[HostChunk]) -> str:
    bare = sum(not chunk.embedded for chunk in chunks)
    unlisted = sum(chunk.embedded and chunk.in_vec0 == 0 for chunk in chunks)
    sentences = [
        f"{bare} of {len(chunks)} chunks have no vector, so only their words can be found." if bare else "",
        f"{unlisted} of {len(chunks)} chunks are not in the vec0 table, which sqlite-vec searches." if unlisted else "",
    ]
    return " ".join(filter(None, sentences))


def _mismatches(index: HostIndex, wanted: Wanted) -> Iterator[Mismatch]:
    """Yield the parts that are not as wanted, in the order in which OpenClaw looks at them."""
    identity = index.identity
    if identity is None:
        yield Mismatch("metadata_missing", "none", schema.RECIPE)
        return
    due: dict[str, object] = {**wanted}
    if index.era == "own file":
        due.pop("fts_tokenizer", None)
    else:
        due["chunking"] = _FIXED_SIZES
        if identity.chunking_version is not None:
            due |= {"provenance": NEWEST_PROVENANCE, "chunking_version": NEWEST_CHUNKING}
        if identity.embeds and identity.vector_dims and index.counts.vector_dims:
            due["vector_dims"] = index.counts.vector_dims
    recorded: dict[str, object] = {
        "provenance": identity.provenance_version,
        "chunking_version": identity.chunking_version,
        "model": identity.model,
        "provider": identity.provider,
        "sources": ", ".join(sorted(identity.sources)),
        "scope": identity.scope_hash,
        "chunking": f"{identity.chunk_tokens}/{identity.chunk_overlap}",
        # An index without one was made before there was a choice.
        "fts_tokenizer": identity.fts_tokenizer or due.get("fts_tokenizer"),
        "vector_dims": identity.vector_dims,
    }
    for code, value in recorded.items():
        if code in due and value != due[code]:
            yield Mismatch(code, str(value), str(due[code]))


def _remarks(index: HostIndex, cut_otherwise: bool) -> Iterator[str]:
    """Yield what stands against the whole, in sentences."""
    identity, counts = index.identity, index.counts
    if identity is None:
        yield "Without a record of how it was made its chunks and vectors cannot be judged."
    elif identity.chunking_version not in (None, NEWEST_CHUNKING):
        yield (
            f"Its chunks are counted, not compared: they are cut by OpenClaw's chunking version "
            f"{identity.chunking_version}, and memory-tui cuts by version {NEWEST_CHUNKING}."
        )
    elif identity.fts_tokenizer and cut_otherwise:
        yield "OpenClaw 2026.4.15 or later wrote it, which cuts Chinese, Japanese and Korean into smaller chunks."
    if counts.keyword_rows is None or counts.keyword_rows < counts.chunks:
        yield f"Only {counts.keyword_rows or 0:,} of {counts.chunks:,} chunks are in its full-text table."
    if identity is not None and identity.embeds and counts.vectors is None:
        yield "It has no vec0 table, so OpenClaw compares vectors one by one."
    dims = {identity.vector_dims if identity else None, counts.vector_dims} - {None}
    if len(dims) > 1:
        yield f"Its record says {identity and identity.vector_dims} dimensions, its vec0 table {counts.vector_dims}."


# --- in words --------------------------------------------------------------------------------------------------------


_ERAS: Mapping[str, str] = {
    "own file": "a file of its own, as OpenClaw had it before 2026.7",
    "agent database": "tables in the agent's database, as OpenClaw has it from 2026.7",
}


def statements(value: IndexComparison | HostProblem) -> Iterator[tuple[str, str]]:
    """Yield label and words of everything that is known of the whole index, or of why it cannot be compared."""
    if isinstance(value, HostProblem):
        yield "Their index", value.path
        yield "State", f"{value.state}: {value.detail} {value.next_step}".rstrip()
        if value.tables:
            yield "Tables", ", ".join(value.tables)
        return
    identity, counts = value.identity, value.counts
    yield "Their index", value.path
    yield "Layout", _ERAS[value.era]
    if identity is not None:
        version = f", version {identity.chunking_version}" if identity.chunking_version else ""
        yield "Provider", identity.provider or "unknown"
        yield "Model", identity.model or "unknown"
        yield "Sources", ", ".join(identity.sources)
        yield "Chunking", f"{identity.chunk_tokens} tokens, overlap {identity.chunk_overlap}{version}"
    vectors = "no vec0 table" if counts.vectors is None else f"{counts.vectors:,} in vec0 ({counts.vector_dims} dims)"
    words = "no full text" if counts.keyword_rows is None else f"{counts.keyword_rows:,} in full text"
    yield "State", value.standing
    yield "Chunks", f"{counts.chunks:,}, {counts.embedded:,} with a vector, {vectors}, {words}"
    yield "Files", ", ".join(f"{n:,} {word}" for word, n in value.summary.items() if n) or "none"


def objections(value: IndexComparison) -> Iterator[tuple[str, str]]:
    """Yield label and words of what is not as configured, and of what a person has to know besides."""
    for mismatch in value.mismatches:
        yield "Not as configured", f"{mismatch.code} is {mismatch.theirs}, wanted: {mismatch.wanted}"
    for sentence in (*([value.consequence] if value.consequence else []), *value.remarks):
        yield "Notice", sentence


def compared(value: IndexComparison | HostProblem) -> Iterator[str]:
    """Yield what OpenClaw's own index holds of the notes; of one that cannot be compared, its tables."""
    if not isinstance(value, IndexComparison):
        yield from [f"Tables: {', '.join(value.tables)}"] if value.tables else []
        return
    for label, text in statements(value):
        yield f"{label + ':':<16}{one_line(text)}"
    for label, text in objections(value):
        yield f"{label}: {one_line(text)}"
    for file in value.files:
        if file.differences or not file.compared:
            yield f"  {', '.join(file.differences) or 'not compared'}: {file.path}  {one_line(file.detail)}"
