"""Compare the notes in OpenClaw's own index with those on disk, and how it was made with what the configuration asks.

Its chunks are counted and its vectors left alone: whether a note is missing, stale or extra is told by its files.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import apsw
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.config.config_file import Config
from memory_tui.config.settings import Settings
from memory_tui.errors import Unreadable
from memory_tui.index.database import APPLICATION_ID, RECIPE, scope_hash
from memory_tui.openclaw import open_foreign
from memory_tui.openclaw.agent_sessions import record_of
from memory_tui.workspace.roots import REPAIRED, ROOT_NOTES_2026_9, Roots, read, scan
from memory_tui.workspace.scan import LeftOut, NoteFile

Era = Literal["own file", "agent database"]
Failure = Literal["missing", "locked", "damaged", "unknown schema", "unreadable"]
"""Every way in which their index can be out of reach; a comparison has the state ok."""
Difference = Literal["missing", "stale", "extra", "not compared"]
Standing = Literal["current", "stale", "paused"]
"""OpenClaw answers from it, makes it again by itself, or answers nothing until a person runs its command."""
Wanted = Mapping[str, str]
"""What the configuration asks of an index now, by the code of the part; what it leaves to OpenClaw is not there."""

_LAYOUTS: Mapping[Era, tuple[str, str, str]] = {
    "agent database": ("memory_index_meta", "memory_index_sources", "memory_index_chunks"),
    "own file": ("meta", "files", "chunks"),
}
"""The tables of record, files and chunks in each layout."""
_COLUMNS = ({"key", "value"}, {"path", "source", "hash", "size"}, {"id"})
_ERAS: Mapping[Era, str] = {
    "own file": "a file of its own, as OpenClaw had it before 2026.7",
    "agent database": "tables in the agent's database, as OpenClaw has it from 2026.7",
}
_NEWEST_SCHEMA, _NEWEST_CHUNKING, _NEWEST_PROVENANCE = 23, 5, 1
"""The newest that is known here (OpenClaw 2026.9.6)."""
_FIXED_SIZES = "400/80"
"""Chunk tokens and overlap from 2026.8 on, whatever the configuration says."""
_NOTES = "memory"
_SELF_MENDED = {"metadata_missing", "provenance", "chunking_version"}
"""Parts of the identity that OpenClaw mends by itself."""
_CUT_OFF = "A program ended without finishing to write it; shown is what OpenClaw will find at its next start."


class HostProblem(Struct, frozen=True):
    """Why their index cannot be compared."""

    path: str
    state: Failure
    detail: str
    next_step: str


class FileDifference(Struct, frozen=True):
    """A note that differs on disk and in the index, with a sentence."""

    path: str
    difference: Difference
    detail: str


class Mismatch(Struct, frozen=True):
    """A part of the identity, `code` as OpenClaw names it, that is not what the configuration asks for."""

    code: str
    theirs: str
    wanted: str


class IndexComparison(Struct, frozen=True):
    """An index against the disk: the whole, and the `files` that differ; `summary` counts all notes."""

    state: Literal["ok"]
    path: str
    era: Era
    provider: str
    model: str
    chunks: int
    mismatches: tuple[Mismatch, ...]
    standing: Standing
    consequence: str
    summary: Mapping[str, int]
    remarks: tuple[str, ...]
    files: tuple[FileDifference, ...]


class _Index(NamedTuple):
    """Their index at one moment: the record of how it was made, hash and size of each note, the count of chunks."""

    era: Era
    record: Mapping[str, object]
    files: Mapping[str, tuple[str, int]]
    chunks: int
    version: int


# --- reading ---------------------------------------------------------------------------------------------------------


def _layout(connection: apsw.Connection) -> Era | None:
    """Return the layout whose tables are there with every column that is needed; None for no layout of OpenClaw.

    An index of memory-tui itself, which has tables of these names, is told by its application id.
    """
    if connection.pragma("application_id") == APPLICATION_ID:
        return None
    query = "SELECT CAST(name AS TEXT) FROM pragma_table_info(?)"
    for era, tables in _LAYOUTS.items():
        columns = [{name for (name,) in connection.execute(query, (table,))} for table in tables]
        if all(needed <= there for needed, there in zip(_COLUMNS, columns, strict=True)):
            return era
    return None


def _read(connection: apsw.Connection) -> _Index | None:
    """Return OpenClaw's index in the database of `connection`; None where it holds none."""
    if (era := _layout(connection)) is None:
        return None
    meta, files, chunks = _LAYOUTS[era]
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT coalesce(CAST(path AS TEXT), ''), coalesce(CAST(hash AS TEXT), ''), coalesce(CAST(size AS INTEGER), 0) "
        f"FROM {files} WHERE source = ?",
        (_NOTES,),
    ).fetchall()
    text = connection.execute(f"SELECT value FROM {meta} WHERE key = ?", (RECIPE,)).get
    record = record_of(text) if isinstance(text, str) else {}
    count: Any = connection.execute(f"SELECT count(*) FROM {chunks}").get
    notes = {path: (digest, size) for path, digest, size in rows}
    return _Index(era, record, notes, count, int(connection.pragma("user_version")))


def database(config: Config) -> Path:
    """Return where OpenClaw keeps the index of the agent of `config`: the first that holds one, else the first file.

    Why one cannot be read is told when it is opened.
    """
    existing = [path for path in (places.agent_database(config.agent.id), config.store_path) if path.exists()]
    for path in existing:
        with contextlib.suppress(open_foreign.NotSeen):
            if open_foreign.read_foreign(path, _layout) is not None:
                return path
    return existing[0] if existing else config.store_path


# --- comparing -------------------------------------------------------------------------------------------------------


def wanted_of(config: Config, settings: Settings, roots: Roots) -> Wanted:
    """Return what `config` asks of OpenClaw's index; an empty mapping when it is not OpenClaw's configuration."""
    if config.kind != "openclaw":
        return {}
    # Without a list, sources follow from other settings of newer versions.
    sources: tuple[str, ...] = ()
    configured = config.value("sources")
    if "sources" in config.entries and isinstance(configured, tuple):
        with_sessions = config.value("experimental.sessionMemory")
        sources = tuple(str(source) for source in configured if source != "sessions" or with_sessions) or (_NOTES,)
    wanted = {
        "model": config.model,
        "provider": "" if config.provider == "auto" else config.provider,
        "sources": ", ".join(sorted(sources)),
        "scope": scope_hash(roots.extra, roots.patterns, roots.media),
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
    """Compare the index at `path` with the notes on disk now, or say why it cannot be read. Raises WorkspaceError.

    `wanted` is what a configuration asks of the index, None for nothing; `agent` is named in the command that mends it.
    The file, its time and its folder stay as they are.
    """
    try:
        index, copied = open_foreign.read_or_copy(path, _read)
    except open_foreign.NotSeen as problem:
        return HostProblem(str(path), problem.state, problem.detail, problem.next_step)
    if index is None:
        unknown = f"{path} holds no memory index of OpenClaw that memory-tui knows."
        return HostProblem(str(path), "unknown schema", unknown, "It was left as it is.")
    if "chunkingVersion" in index.record:
        # The notes as that release reads them.
        roots = replace(roots, root_notes=ROOT_NOTES_2026_9, never=REPAIRED)
    seen = scan(roots)
    notes = {note.path: note for note in seen.notes if note.source == _NOTES}
    left_out = {item.path: item for item in seen.left_out}
    files = [difference for note in notes.values() if (difference := _of_disk(note, index)) is not None]
    same = len(notes) - len(files)
    files += [_of_index_alone(path, left_out) for path in index.files.keys() - notes.keys()]
    mismatches = tuple(_mismatches(index, wanted or {}))
    standing: Standing = "current"
    if mismatches:
        # The first part that differs decides.
        mends_itself = index.era == "own file" or mismatches[0].code in _SELF_MENDED
        standing = "stale" if mends_itself else "paused"
    consequences = {
        "current": "",
        "stale": f"OpenClaw indexes everything again at its next {'sync' if index.era == 'own file' else 'search'}.",
        "paused": "OpenClaw pauses its searches: they return nothing until you run "
        f"openclaw memory status --index --agent {agent}.",
    }
    remarks = [_CUT_OFF] if copied else []
    chunking = index.record.get("chunkingVersion")
    if index.version > _NEWEST_SCHEMA or (isinstance(chunking, int) and chunking > _NEWEST_CHUNKING):
        remarks.append("It was written by a newer OpenClaw than memory-tui knows.")
    return IndexComparison(
        state="ok",
        path=str(path),
        era=index.era,
        provider=str(index.record.get("provider", "")),
        model=str(index.record.get("model", "")),
        chunks=index.chunks,
        mismatches=mismatches,
        standing=standing,
        consequence=consequences[standing],
        summary={"same": same, **Counter(file.difference for file in files)},
        remarks=tuple(remarks),
        files=tuple(sorted(files, key=lambda file: file.path)),
    )


def _of_disk(note: NoteFile, index: _Index) -> FileDifference | None:
    """Return how a note on disk differs from what the index has of it; None where it does not."""
    if note.path not in index.files:
        lacking = "OpenClaw's index lacks it."
        if note.path == "memory.md" and index.era == "agent database":
            lacking = "OpenClaw's index lacks it: memory.md in small letters is not read from 2026.4.23 on."
        return FileDifference(note.path, "missing", lacking)
    try:
        document = read(note)
    except Unreadable as error:
        return FileDifference(note.path, "not compared", error.message)
    digest, size = index.files[note.path]
    if digest == document.hash:
        return None
    changed = f"OpenClaw has indexed another text of it: {size:,} bytes, on disk are {document.size:,}."
    return FileDifference(note.path, "stale", changed if digest else "OpenClaw has marked it to be indexed again.")


def _of_index_alone(path: str, left_out: Mapping[str, LeftOut]) -> FileDifference:
    """Say why the index has a file that is no note on disk; `left_out` are those that a scan passes over."""
    path_and_folders = [path, *map(str, PurePosixPath(path).parents)]
    omission = next((left_out[name] for name in path_and_folders if name in left_out), None)
    if omission is not None and omission.rule == "unreadable":
        return FileDifference(path, "not compared", f"{omission.path}: {omission.detail}")
    reason = "It is in OpenClaw's index, but not among the notes on disk."
    if omission is not None:
        reason = f"It is in OpenClaw's index, but not a note here ({omission.rule}): {omission.detail}"
    elif path == "USER.md":
        reason = "It is in OpenClaw's index; OpenClaw reads USER.md from 2026.8 on, memory-tui does not."
    return FileDifference(path, "extra", reason)


def _mismatches(index: _Index, wanted: Wanted) -> Iterator[Mismatch]:
    """Yield the parts of the record that are not as wanted, in the order in which OpenClaw looks at them."""
    record = index.record
    if not record:
        yield Mismatch("metadata_missing", "none", RECIPE)
        return
    # Only what the release that made the index compares: older ones know no tokenizer, newer ones fix the chunks.
    expected: dict[str, object] = {**wanted}
    if index.era == "own file":
        expected.pop("fts_tokenizer", None)
    else:
        expected["chunking"] = _FIXED_SIZES
        if "chunkingVersion" in record:
            expected |= {"provenance": _NEWEST_PROVENANCE, "chunking_version": _NEWEST_CHUNKING}
    sources = record.get("sources")
    recorded: dict[str, object] = {
        "provenance": record.get("provenanceVersion"),
        "chunking_version": record.get("chunkingVersion"),
        "model": record.get("model"),
        "provider": record.get("provider"),
        "sources": ", ".join(sorted(map(str, sources if isinstance(sources, list) else ()))),
        "scope": record.get("scopeHash"),
        "chunking": f"{record.get('chunkTokens')}/{record.get('chunkOverlap')}",
        # An index without one was made before there was a choice.
        "fts_tokenizer": record.get("ftsTokenizer") or expected.get("fts_tokenizer"),
    }
    for code, value in recorded.items():
        if code in expected and value != expected[code]:
            yield Mismatch(code, str(value), str(expected[code]))


def statements(value: IndexComparison | HostProblem) -> Iterator[tuple[str, str]]:
    """Yield label and words of everything that is known of the index and the notes that differ, or why nothing is."""
    yield "Their index", value.path
    if isinstance(value, HostProblem):
        yield "State", f"{value.state}: {value.detail} {value.next_step}"
        return
    yield "Layout", _ERAS[value.era]
    yield "Made by", f"{value.provider or 'an unknown provider'}, {value.model or 'an unknown model'}"
    counts = ", ".join(f"{count:,} {word}" for word, count in value.summary.items() if count)
    yield "Notes", f"{counts or 'none'}; {value.chunks:,} chunks"
    yield "State", f"{value.standing}. {value.consequence}".rstrip()
    for mismatch in value.mismatches:
        yield "Not as wanted", f"{mismatch.code} is {mismatch.theirs}, wanted: {mismatch.wanted}"
    yield from (("Notice", remark) for remark in value.remarks)
    yield from ((file.difference.capitalize(), f"{file.path}  {file.detail}") for file in value.files)
