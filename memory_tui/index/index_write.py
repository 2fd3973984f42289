"""Writes to an index, one transaction each, and the rebuild of one.

A rebuild makes a new index beside the old one, then publishes it in one step. It lies in a file named like the index
with `.next` at the end, which only the holder of the writer lock touches, so what a dead process left is either
continued (same recipe, same index) or removed by the next writer. It is published by copying its pages over those of
the index in one transaction (SQLite's backup): readers see the old index or the new one, whenever the power fails, and
connections and files stay what they were.
"""

from __future__ import annotations

import errno
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import apsw
import msgspec
from msgspec import Struct

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.errors import IndexUnavailable
from memory_tui.formatting import plural
from memory_tui.index.database import RECIPE, SIDES, Recipe, explained, full_text_tables, is_private, kind, rebuild_of
from memory_tui.index.store import IndexedNote, Store
from memory_tui.providers import Identity, Vectors
from memory_tui.tokens import indexed_form, words_above
from memory_tui.workspace import notes, transcripts
from memory_tui.workspace.chunking import AnnotatedChunk, Chunk, chunk_id, chunks_of
from memory_tui.workspace.notes import NOTHING_SAID, Annotations, Document, MediaDocument
from memory_tui.workspace.transcripts import Transcript

LONGEST = 200
"""Characters of a heading that count; a whole file in one `#` line would otherwise be repeated in every chunk."""


def headings_above(text: str) -> list[tuple[str, ...]]:
    """Return for each line, by its number from 1, what stands above it; entry 0 is of no line.

    That is the nearest heading of each level, outermost first, and in a table the row that names its columns.
    """
    lines = text.split("\n")
    titles = {line: (level, title[:LONGEST]) for line, level, title in notes.headings(text) if title}
    levels: dict[int, str] = {}
    above: list[tuple[str, ...]] = [()]
    for number in range(1, len(lines) + 1):
        above.append(tuple(levels.values()))
        if number in titles:
            level, title = titles[number]
            # A heading ends all of its level and below.
            levels = {outer: name for outer, name in levels.items() if outer < level} | {level: title}
    # Of lines that belong together, as those of a table, the first may name the columns.
    for first, last in notes.together(text):
        row = lines[first - 1].strip()[:LONGEST]
        for number in range(first + 1, last + 1) if row.startswith("|") else ():
            above[number] += (row,)
    return above


def cut(
    read: Document, source: str, recipe: Recipe, started: float, check: Callable[[], object] = lambda: None
) -> NewFile:
    """Return the rows of `read`, whose reading began at `started`; those of a transcript with lines of its file.

    Raises Unreadable for absurdly long lines, and what `check` raises between the chunks of a huge note.
    """
    if isinstance(read, MediaDocument):
        pieces = [AnnotatedChunk(Chunk(1, 1, read.text, read.hash), NOTHING_SAID)]
    else:
        # Only notes have annotations and entries, and those of a transcript would be somebody's words.
        plain = source == transcripts.SOURCE
        sizes = recipe.chunk_tokens, recipe.chunk_overlap
        pieces = chunks_of(read.text, read.path, recipe.chunking, sizes, recipe.chunk_bytes, plain=plain, check=check)
    check()
    # A transcript has no headings, and its lines are others than those of its file, which `lines` holds.
    lines = read.lines if isinstance(read, Transcript) else None
    above = headings_above(read.text) if lines is None else []
    occurrences: dict[str, int] = {}
    chunks = []
    for chunk, marks in pieces:
        check()
        piece = chunk
        if lines is not None:
            piece = chunk._replace(start_line=lines[chunk.start_line - 1], end_line=lines[chunk.end_line - 1])
        headings = above[chunk.start_line] if lines is None else ()
        identifier = chunk_id(source, read.path, piece, recipe.identity.model)
        # 0 for the first chunk of these lines and words, 1 and more for its repeats.
        occurrence = occurrences[identifier] = occurrences.get(identifier, -1) + 1
        chunks.append(NewChunk.of(identifier, occurrence, piece, words_above(read.path, headings), marks))
    title, dated = notes.title_of(read.path, read.text), notes.date_of(read.path, read.text)
    return NewFile(read.path, source, read.hash, read.mtime_ns, read.size, remarks(read), started, title, dated, chunks)


def remarks(read: Document) -> str:
    """Return what of a note no question matches although it was indexed, in words; empty where all of it is found."""
    # NULs may come of UTF-16 that was read as UTF-8: its bytes, one for each character, tell.
    if read.nul and notes.utf16_of(read.text.encode("latin-1", "replace")):
        return "it looks like UTF-16, so its words match no question; save it as UTF-8"
    remarks = []
    if read.replaced:
        sequences = f"{plural(read.replaced, 'byte sequence')} {'is' if read.replaced == 1 else 'are'}"
        remarks.append(f"{sequences} not UTF-8, so words with them match no question")
    if isinstance(read, Transcript) and read.skipped:
        verbs = ("is", "was") if read.skipped == 1 else ("are", "were")
        remarks.append(f"{plural(read.skipped, 'line')} {verbs[0]} not JSON and {verbs[1]} skipped")
    if read.nul:
        remarks.append("it holds NUL characters, which part words")
    return "; ".join(remarks)


class NewChunk(Struct, frozen=True):
    """A chunk to store; `body` is what stemmed full-text search sees, empty for repeats (`occurrence` > 0).

    `above` are the words of it that are not in the text. `passage` is the number of its words, the same wherever they
    stand; 0 where there are none.
    """

    chunk_id: str
    occurrence: int
    start_line: int
    end_line: int
    hash: str
    text: str
    passage: int
    above: str
    body: str
    annotations: Annotations = NOTHING_SAID

    @classmethod
    def of(cls, chunk_id: str, occurrence: int, piece: Chunk, above: str, annotations: Annotations) -> Self:
        """Return the chunk `piece` below the words `above`, with the numbers that follow from its words."""
        body = "" if occurrence else indexed_form(above, piece.text)
        place = piece.start_line, piece.end_line, piece.hash, piece.text
        words = " ".join(piece.text.split()).encode("utf-8", "replace")
        # Eight bytes of a hash fit in an integer of SQLite.
        passage = int.from_bytes(hashlib.sha256(words).digest()[:8], "big", signed=True) if words else 0
        return cls(chunk_id, occurrence, *place, passage=passage, above=above, body=body, annotations=annotations)


class NewFile(Struct, frozen=True):
    """A note to store, with everything that replaces its old rows; `indexed_at` is when its reading began."""

    path: str
    source: str
    hash: str
    mtime_ns: int
    size: int
    detail: str
    indexed_at: float
    title: str
    dated: str
    chunks: Sequence[NewChunk]
    workspace: str = ""
    first_seq: int = 0


# --- files ---------------------------------------------------------------------------------------------------------


def replace_files(store: Store, files: Sequence[NewFile], model: str, embeddings: Mapping[str, int]) -> None:
    """Put `files` in the place of what was stored of them; `embeddings` maps chunk hashes to embedding ids."""
    with store.writing():
        if replaced := [row.id for file in files if (row := store.file(file.path, file.workspace))]:
            _drop_chunks(store, replaced)
        # Above all rowids that ever were, so that none is used again.
        rowid = last_rowid = store.value("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'") or 0
        rows, bodies, annotations = [], [], []
        for file in files:
            distinct = sum(not chunk.occurrence for chunk in file.chunks)
            file_id = store.value(
                "INSERT INTO files(path, source, hash, mtime, size, state, detail, indexed_at, title, dated, chunks, "
                "workspace, first_seq) VALUES (?, ?, ?, ?, ?, 'ok', ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT(path, workspace) DO UPDATE SET first_seq = excluded.first_seq, "
                "source = excluded.source, hash = excluded.hash, mtime = excluded.mtime, size = excluded.size, "
                "state = 'ok', detail = excluded.detail, indexed_at = excluded.indexed_at, title = excluded.title, "
                "dated = excluded.dated, chunks = excluded.chunks RETURNING id",
                (
                    *(file.path, file.source, file.hash, file.mtime_ns, file.size, file.detail, file.indexed_at),
                    *(file.title, file.dated, distinct, file.workspace, file.first_seq),
                ),
            )
            for ordinal, chunk in enumerate(file.chunks):
                rowid += 1
                vector = None if chunk.occurrence else embeddings.get(chunk.hash)
                place = chunk.chunk_id, chunk.occurrence, chunk.start_line, chunk.end_line
                texts = chunk.hash, chunk.text, chunk.passage, chunk.above
                rows.append((rowid, file_id, ordinal, vector, file.indexed_at, model, *place, *texts))
                if not chunk.occurrence:
                    bodies.append((rowid, chunk.body))
                if chunk.annotations != NOTHING_SAID:
                    annotations.append((rowid, *chunk.annotations))
        store.many(
            "INSERT INTO chunks(id, file_id, ordinal, embedding_id, updated_at, model, chunk_id, occurrence, "
            "start_line, end_line, hash, text, passage, above) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        store.many("INSERT INTO annotations VALUES (?, ?, ?, ?)", annotations)
        store.query("INSERT INTO chunks_fts(rowid, text) SELECT id, text FROM chunks WHERE id > ?", (last_rowid,))
        store.many("INSERT INTO chunks_words(rowid, body) VALUES (?, ?)", bodies)
        _put_vec0(store, "c.id > ?", (last_rowid,))


def remove_files(store: Store, files: Sequence[IndexedNote]) -> None:
    """Forget `files` and their chunks; their vectors stay in the cache."""
    ids = [file.id for file in files]
    with store.writing():
        _drop_chunks(store, ids)
        store.many("DELETE FROM files WHERE id = ?", [(number,) for number in ids])


def touch_files(store: Store, files: Sequence[IndexedNote]) -> None:
    """Store state, detail, times and size of `files`, whose text is as it was."""
    with store.writing():
        store.many(
            "UPDATE files SET mtime = ?, size = ?, state = ?, detail = ?, indexed_at = ? WHERE id = ?",
            [(file.mtime_ns, file.size, file.state, file.detail, file.indexed_at, file.id) for file in files],
        )


def fail_file(store: Store, path: str, source: str, reason: str, state: str = "failed") -> None:
    """Note why a file could not be indexed; what was indexed of it before stays."""
    with store.writing():
        store.query(
            "INSERT INTO files(path, source, hash, mtime, size, state, detail, indexed_at) "
            "VALUES (?, ?, '', 0, 0, ?, ?, ?) "
            "ON CONFLICT(path, workspace) DO UPDATE SET state = excluded.state, detail = excluded.detail",
            (path, source, state, reason, time.time()),
        )


def _drop_chunks(store: Store, file_ids: Sequence[int]) -> None:
    """Take the chunks of files out of every table that knows them; their vectors stay in the cache."""
    ids = [(number,) for number in file_ids]
    live = "SELECT id FROM chunks WHERE file_id = ? AND occurrence = 0"
    # The text has to be handed back: an external-content table cannot find the words to take away by itself.
    store.many(
        "INSERT INTO chunks_fts(chunks_fts, rowid, text) SELECT 'delete', id, text FROM chunks WHERE file_id = ?", ids
    )
    store.many(f"DELETE FROM chunks_words WHERE rowid IN ({live})", ids)
    if store.finds_nearest():
        store.many(f"DELETE FROM chunks_vec WHERE rowid IN ({live})", ids)
    store.many("DELETE FROM annotations WHERE chunk IN (SELECT id FROM chunks WHERE file_id = ?)", ids)
    # The cache forgets by last use, and a vector is used for as long as a chunk has it.
    store.many(
        "UPDATE embedding_cache SET updated_at = ? WHERE id IN "
        "(SELECT embedding_id FROM chunks WHERE file_id = ? AND embedding_id > 0)",
        [(time.time(), number) for number in file_ids],
    )
    store.many("DELETE FROM chunks WHERE file_id = ?", ids)


# --- vectors -------------------------------------------------------------------------------------------------------


def add_embeddings(store: Store, identity: Identity, vectors: Mapping[str, Vectors]) -> dict[str, int]:
    """Store `vectors` of texts by hash, and return their embedding ids by hash. No chunk has them yet."""
    if not vectors:
        return {}
    now = time.time()
    with store.writing():
        ids = store.many(
            "INSERT INTO embedding_cache(provider, model, provider_key, hash, dims, updated_at, embedding) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(provider, model, provider_key, hash) DO UPDATE SET "
            "dims = excluded.dims, updated_at = excluded.updated_at, embedding = excluded.embedding RETURNING id",
            [(*identity.space, digest, identity.dims, now, vector.tobytes()) for digest, vector in vectors.items()],
        )
    return dict(zip(vectors, (row[0] for row in ids), strict=True))


def attach(store: Store, embeddings: Mapping[int, int]) -> None:
    """Give chunks (by rowid) the vector with that embedding id."""
    with store.writing():
        store.many(
            "UPDATE chunks SET embedding_id = ? WHERE id = ?", [(vector, row) for row, vector in embeddings.items()]
        )
        _put_vec0(store, "c.id IN (SELECT value FROM json_each(?))", (json.dumps(list(embeddings)),))


def attach_windows(store: Store, embeddings: Mapping[str, Sequence[int]]) -> None:
    """Give the windows of chunks (by the hash of their text) the vectors with these embedding ids."""
    rows = [(digest, place, vector) for digest, vectors in embeddings.items() for place, vector in enumerate(vectors)]
    with store.writing():
        store.many("INSERT OR REPLACE INTO windows VALUES (?, ?, ?)", rows)


_PLACES = 64
"""Vectors that vec0 makes room for at once: its usual 1,024 would be most of the index of a small workspace."""
_SPARSE = (
    "(SELECT coalesce(sum(size), 0) FROM chunks_vec_chunks) > 1.25 * (SELECT count(*) FROM chunks_vec_rowids) + 256"
)


def prepare_tables(store: Store, recipe: Recipe) -> None:
    """Have the full-text tables cut by the tokenizer of `recipe`, and vec0 hold its vectors. Mostly nothing to do.

    What stemmed search sees is not kept: its table fills as notes are cut again. vec0 is forgotten where it cannot be
    written, and filled anew once a fifth of its places is empty: it gives no place of a dropped row to another.
    """
    if store.words.cut() != recipe.fts_tokenizer:
        with store.writing():
            store.query(full_text_tables(recipe.fts_tokenizer))
    dims = recipe.identity.dims if store.vec0.ready else 0
    if store.vec0_dims() == dims and not (dims and store.value(f"SELECT {_SPARSE}")):
        return
    with store.writing():
        store.query("DELETE FROM meta WHERE key = 'vec0_dims'")
        if store.vec0.ready:
            store.query("DROP TABLE IF EXISTS chunks_vec")
        if dims:
            store.query(
                f"CREATE VIRTUAL TABLE chunks_vec USING vec0("
                f"embedding float[{dims}] distance_metric=cosine, chunk_size={_PLACES})"
            )
            store.query("INSERT INTO meta VALUES('vec0_dims', ?)", (dims,))
            _put_vec0(store, "true", ())


def _put_vec0(store: Store, condition: str, values: Sequence[int | str]) -> None:
    """Insert the vectors of the chunks (`c`) that meet an SQL `condition` into vec0, where that is used.

    Vectors of zeros are left out: they have no distance.
    """
    if store.finds_nearest():
        store.query(
            "INSERT INTO chunks_vec(rowid, embedding) SELECT c.id, e.embedding FROM chunks c "
            f"JOIN embedding_cache e ON e.id = c.embedding_id WHERE {condition} AND c.occurrence = 0 "
            "AND e.dims = (SELECT value FROM meta WHERE key = 'vec0_dims') "
            "AND e.embedding <> zeroblob(length(e.embedding))",
            values,
        )


def remember(store: Store, key: str, value: str) -> None:
    """Put `value` under `key` into the index's notes about itself; an empty one forgets it."""
    with store.writing():
        store.query("DELETE FROM meta WHERE key = ?", (key,))
        if value:
            store.query("INSERT INTO meta VALUES(?, ?)", (key, value))


_USED = "SELECT embedding_id FROM chunks WHERE embedding_id > 0 UNION ALL SELECT embedding_id FROM windows"
_ORPHANS = f"id NOT IN ({_USED})"


def prune(store: Store, most: int) -> None:
    """Forget the least recently used vectors of texts that are gone, but for `most`. Mostly nothing to do.

    To find them reads all chunks, so that is done where there are so many vectors more than chunks.
    """
    # Chunks and windows need at most one vector each: what is above their number is of texts that are gone.
    chunks, windows = "(SELECT count(*) FROM chunks)", "(SELECT count(*) FROM windows)"
    surplus = store.value(f"SELECT (SELECT count(*) FROM embedding_cache) - {chunks} - {windows}")
    any_orphan = f"SELECT EXISTS (SELECT 1 FROM embedding_cache WHERE {_ORPHANS})"
    # With `most` at 0 every orphan goes, even where vectors are fewer than chunks.
    if surplus > most or (most == 0 and store.value(any_orphan)):
        with store.writing():
            store.query(
                f"DELETE FROM embedding_cache WHERE id IN (SELECT id FROM embedding_cache WHERE {_ORPHANS} "
                "ORDER BY updated_at DESC, id DESC LIMIT -1 OFFSET ?)",
                (most,),
            )


# --- the whole -----------------------------------------------------------------------------------------------------


def reset(store: Store, recipe: Recipe) -> None:
    """Have every note read and cut again after `recipe`. Old chunks answer until then, without foreign vectors."""
    before = store.recipe()
    with store.writing():
        store.query("INSERT OR REPLACE INTO meta VALUES(?, ?)", (RECIPE, msgspec.json.encode(recipe).decode()))
        store.query("UPDATE files SET hash = ''")
        if before is None or before.identity != recipe.identity:
            store.query("UPDATE chunks SET embedding_id = NULL WHERE embedding_id IS NOT NULL")
            store.query("DELETE FROM windows")
            store.query("DELETE FROM meta WHERE key = 'vec0_dims'")


# --- a new index beside the old one ---------------------------------------------------------------------------------

_BESIDE = "beside"
_PAGES = 256
"""Pages copied between two looks at whether to stop."""
_ROWS = 512
"""Vectors carried between two looks."""
_VECTOR = "provider, model, provider_key, hash, dims, updated_at, embedding"


@contextmanager
def _attached(beside: Store, store: Store) -> Iterator[None]:
    """Let statements on `beside` read the tables of `store` as those of `old`."""
    beside.query("ATTACH ? AS old", (str(store.path),))
    try:
        yield
    finally:
        beside.query("DETACH old")


def _carry_vectors(beside: Store, stop: Stop) -> None:
    """Copy every vector of the old index, and what its provider refused; what is there already is passed over."""
    for first in range(0, 1 + int(beside.value("SELECT max(id) FROM old.embedding_cache") or 0), _ROWS):
        if stop.is_set():
            return
        with beside.writing():
            beside.query(
                f"INSERT OR IGNORE INTO embedding_cache({_VECTOR}) SELECT {_VECTOR} FROM old.embedding_cache "
                "WHERE id BETWEEN ? AND ?",
                (first, first + _ROWS - 1),
            )
    with beside.writing():
        beside.query("INSERT OR REPLACE INTO refused SELECT * FROM old.refused")


def rebuild_waits(store: Store, recipe: Recipe) -> bool:
    """Return whether a rebuild after `recipe` was begun and not finished."""
    try:
        with closing(Store.open(rebuild_of(store.path), read_only=True)) as beside:
            return beside.recipe() == recipe and beside.meta(_BESIDE) == store.meta("uuid")
    except IndexUnavailable:
        return False


def begin_rebuild(store: Store, recipe: Recipe, stop: Stop) -> Store:
    """Return the index beside `store`: the one that waits, or a new one, with every vector that `store` has kept."""
    if not rebuild_waits(store, recipe):
        discard_rebuild(store.path)
    beside = Store.open(rebuild_of(store.path), expected=lambda: is_private(store.path))
    if beside.recipe() is None:
        remember(beside, _BESIDE, store.meta("uuid"))
        reset(beside, recipe)
    with _attached(beside, store):
        _carry_vectors(beside, stop)
    return beside


def publish_rebuild(store: Store, beside: Store, stop: Stop) -> bool:
    """Put `beside` in the place of `store`, and remove it; False when stopped before that.

    Raises IndexUnavailable when it is not whole; then it is removed, and the old index stays.
    """
    if flaws := beside.problems():
        beside.close()
        discard_rebuild(store.path)
        message = f"The new index is not whole ({flaws[0]}); the old one stays."
        raise IndexUnavailable(message, "It is made again with the next sync.")
    with _attached(beside, store), beside.writing():
        # With its jobs, because what was sent away is paid for.
        beside.query("INSERT OR REPLACE INTO batch_jobs SELECT * FROM old.batch_jobs")
        beside.query("INSERT OR IGNORE INTO batch_texts SELECT * FROM old.batch_texts")
        beside.query("UPDATE meta SET value = ? WHERE key = 'generation'", (store.generation() + 1,))
    beside.close()
    done = _copy(rebuild_of(store.path), store, stop)
    if done:
        # Only now: who is killed while pages are copied finds what is beside still to be of this index.
        remember(store, _BESIDE, "")
        discard_rebuild(store.path)
    return done


def discard_rebuild(index: Path) -> None:
    """Remove what was made beside `index`, if anything; what is not ours stays. Raises IndexUnavailable."""
    path = rebuild_of(index)
    if not path.exists() or not (is_private(path) or kind(path) in ("empty", "ours", "zeros")):
        return
    # The file itself last: without it nobody could tell whose its logs are.
    for side in reversed(SIDES):
        part = path.with_name(path.name + side)
        try:
            if kind(part) != "no file":
                durable.remove_file(part)
        except OSError as error:
            if error.errno != errno.ENOENT:
                message = f"{part} cannot be removed: {error.strerror}."
                raise IndexUnavailable(message, "Remove it yourself; it is a half-made index.") from None


def _copy(source: Path, store: Store, stop: Stop) -> bool:
    """Copy all pages of `source` over those of `store`, in one transaction that is rolled back when stopped."""
    try:
        with (
            closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)) as new,
            store.connection.backup("main", new, "main") as copying,
        ):
            while not (copying.done or stop.is_set()):
                copying.step(_PAGES)
            done = bool(copying.done)
    except apsw.Error as error:
        raise explained(error, store.path) from None
    return done
