"""A store in plain Python, without SQLite: dictionaries, bm25 by its formula, cosines in double precision.

It is the second store of the contract tests, and as slow as it looks. A `MemoryIndex` is written; each `MemoryStore`
reads one, from a thread of its own. Words are analysed by `core.tokens`, whose tokenizers every store shares.
"""

from __future__ import annotations

import copy
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from memory_tui.core import tokens
from memory_tui.core.errors import Cancelled, IndexDamaged, QueryError
from memory_tui.core.jsstring import sha256_hex
from memory_tui.index.index_write import NewChunk, NewFile
from memory_tui.index.schema import Recipe
from memory_tui.providers.base import Identity, Vectors
from memory_tui.source.rows import (
    ChunkPage,
    ChunkRow,
    CosineRank,
    Delta,
    Form,
    IndexedNote,
    Matches,
    NoteColumns,
    Rejected,
    RowIds,
    Withheld,
)
from memory_tui.workspace.annotations import NOTHING_SAID

TIE = 1e-6
ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
Op = Literal["add", "drop", "vector", "file"]


@dataclass(frozen=True)
class Chunk:
    """A chunk as it is stored; `vector` is None while it has none."""

    rowid: int
    note: int
    path: str
    ordinal: int
    new: NewChunk
    plain: tuple[str, ...]
    stemmed: tuple[str, ...]
    vector: Vectors | None


@dataclass
class State:
    """All of an index at one generation; never changed once readers can see it."""

    recipe: Recipe
    uuid: str
    generation: int = 0
    notes: dict[str, IndexedNote] = field(default_factory=dict)
    chunks: dict[int, Chunk] = field(default_factory=dict)
    last_rowid: int = 0
    last_note: int = 0
    log: list[tuple[int, Op, int]] = field(default_factory=list)
    log_from: int = 0
    vectors: dict[str, Vectors] = field(default_factory=dict)
    """Every vector that was made, by the hash of its text."""
    rejected: dict[str, tuple[str, float]] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)


def analysed(text: str, cut_by: str) -> tuple[str, ...]:
    """The tokens of `text` in the form `plain`."""
    if cut_by == "trigram":
        folded = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        return tuple(folded[at : at + 3] for at in range(len(folded) - 2))
    return tuple(tokens.tokens(text, stemmed=False)) if cut_by else ()


class MemoryIndex:
    """What writes; each method is one generation."""

    def __init__(self, recipe: Recipe) -> None:
        self.state = State(recipe, uuid.uuid4().hex)

    @contextmanager
    def _writing(self) -> Iterator[State]:
        state = copy.copy(self.state)
        for name in ("notes", "chunks", "log", "vectors", "rejected", "withheld"):
            setattr(state, name, copy.copy(getattr(state, name)))
        state.generation += 1
        yield state
        self.state = state

    def add(self, files: Sequence[NewFile], vectors: Mapping[str, Vectors]) -> None:
        """Put `files` in the place of what was stored of them; `vectors` maps hashes of texts to their vectors."""
        with self._writing() as state:
            state.vectors.update(vectors)
            for file in files:
                if file.path in state.notes:
                    self._drop(state, file.path)
            for file in files:
                self._add(state, file)

    def _add(self, state: State, file: NewFile) -> None:
        if file.path in state.notes:
            number = state.notes[file.path].id
        else:
            number = state.last_note = state.last_note + 1
        live = [chunk for chunk in file.chunks if not chunk.occurrence]
        state.notes[file.path] = IndexedNote(
            number,
            file.path,
            file.source,
            file.hash,
            file.mtime_ns,
            file.size,
            "ok",
            file.detail,
            file.indexed_at,
            len(live),
        )
        state.log.append((state.generation, "file", number))
        for ordinal, new in enumerate(file.chunks):
            rowid = state.last_rowid = state.last_rowid + 1
            plain = analysed(new.text, state.recipe.fts_tokenizer)
            stemmed = tuple(tokens.tokens(new.body, stemmed=True)) if not new.occurrence else ()
            vector = None if new.occurrence else state.vectors.get(new.hash)
            state.chunks[rowid] = Chunk(rowid, number, file.path, ordinal, new, plain, stemmed, vector)
            if not new.occurrence:
                state.log.append((state.generation, "add", rowid))

    def _drop(self, state: State, path: str) -> None:
        for chunk in [chunk for chunk in state.chunks.values() if chunk.path == path]:
            del state.chunks[chunk.rowid]
            state.log.append((state.generation, "drop", chunk.rowid))

    def remove(self, paths: Sequence[str]) -> None:
        """Forget notes and their chunks."""
        with self._writing() as state:
            for path in paths:
                self._drop(state, path)
                state.log.append((state.generation, "file", state.notes.pop(path).id))

    def touch(self, path: str, mtime_ns: int) -> None:
        """Give a note another modification time."""
        with self._writing() as state:
            state.notes[path] = state.notes[path]._replace(mtime_ns=mtime_ns)
            state.log.append((state.generation, "file", state.notes[path].id))

    def attach(self, vectors: Mapping[str, Vectors]) -> None:
        """Give the chunks with these hashes their vectors."""
        with self._writing() as state:
            state.vectors.update(vectors)
            for rowid, chunk in state.chunks.items():
                if chunk.vector is None and not chunk.new.occurrence and chunk.new.hash in vectors:
                    state.chunks[rowid] = replace(chunk, vector=vectors[chunk.new.hash])
                    state.log.append((state.generation, "vector", rowid))

    def reject(self, digest: str, reason: str) -> None:
        """Remember that the provider refused the text with this hash."""
        with self._writing() as state:
            state.rejected[digest] = reason, time.time()

    def withhold(self, digest: str, kind: str) -> None:
        """Remember that the text with this hash looks like a secret."""
        with self._writing() as state:
            state.withheld[digest] = kind

    def forget_log(self) -> None:
        """Forget what changed so far."""
        with self._writing() as state:
            state.log, state.log_from = [], state.generation


class MemoryStore:
    """What reads (`source.protocol.ChunkSource`)."""

    def __init__(self, index: MemoryIndex) -> None:
        self.index = index
        self.words = MemoryWords(self)
        self._fixed: State | None = None
        self._runs = False
        self._asked = False

    @property
    def state(self) -> State:
        """The state that is held, else the newest."""
        return self._fixed or self.index.state

    def interrupt(self) -> None:
        self._asked = self._runs

    def check(self) -> None:
        """Raises Cancelled when what runs was interrupted."""
        if self._asked:
            raise Cancelled

    @contextmanager
    def running(self) -> Iterator[State]:
        """Around one call: it can be interrupted, and is of one state."""
        self._runs, self._asked = True, False
        try:
            yield self.state
        finally:
            self._runs = self._asked = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self._fixed is not None:
            yield
            return
        self._fixed = self.index.state
        try:
            yield
        finally:
            self._fixed = None

    def damaged(self, what: str) -> IndexDamaged:
        return IndexDamaged(f"The index in memory is damaged ({what}).", "Make it again.")

    def uuid(self) -> str:
        return self.state.uuid

    def generation(self) -> int:
        return self.state.generation

    def identity(self) -> Identity | None:
        identity = self.state.recipe.identity
        return identity if identity.dims else None

    def known(self) -> Mapping[str, IndexedNote]:
        return self.state.notes

    def notes(self) -> NoteColumns:
        return NoteColumns.of(
            [(row.id, row.path, row.source, row.mtime_ns, row.chunks) for row in self.state.notes.values()]
        )

    def file(self, path: str) -> IndexedNote | None:
        return self.state.notes.get(path)

    def chunks_of(self, path: str) -> list[ChunkRow]:
        state = self.state
        return [
            ChunkRow(
                chunk.rowid,
                chunk.new.chunk_id,
                chunk.ordinal,
                chunk.new.occurrence,
                chunk.new.start_line,
                chunk.new.end_line,
                chunk.new.hash,
                state.recipe.identity.model,
                chunk.vector is not None,
                state.notes[path].source,
            )
            for chunk in state.chunks.values()
            if chunk.path == path
        ]

    def texts(self, rowids: Sequence[int] | RowIds) -> dict[int, str]:
        found = {int(rowid): self.state.chunks[int(rowid)].new for rowid in rowids if int(rowid) in self.state.chunks}
        if any(sha256_hex(new.text) != new.hash for new in found.values()):
            raise self.damaged("a text is not what was indexed")
        return {rowid: new.text for rowid, new in found.items()}

    def annotations(self) -> dict[int, tuple[int, str, str]]:
        said = {rowid: chunk.new.said for rowid, chunk in self.state.chunks.items()}
        return {rowid: tuple(own) for rowid, own in said.items() if own != NOTHING_SAID}

    def word_counts(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        chunks = (self.state.chunks[int(rowid)] for rowid in rowids if int(rowid) in self.state.chunks)
        return {chunk.rowid: chunk.new.words for chunk in chunks if chunk.new.words}

    def chunking(self) -> str:
        return self.state.recipe.chunking

    def page(self, after: int, count: int, *, vectors: bool = True) -> ChunkPage:
        live = [chunk for rowid, chunk in self.state.chunks.items() if rowid > after and not chunk.new.occurrence]
        return self._page(live[:count], vectors)

    def _page(self, chunks: Sequence[Chunk], vectors: bool) -> ChunkPage:
        rows = [
            (
                chunk.rowid,
                chunk.note,
                chunk.new.start_line,
                chunk.new.end_line,
                chunk.new.chunk_id,
                chunk.vector is not None,
                chunk.vector.tobytes() if chunk.vector is not None else None,
            )
            for chunk in chunks
        ]
        return ChunkPage.of(rows, self.state.recipe.identity.dims if vectors else 0)

    def delta(self, generation: int, most: int, *, vectors: bool = True) -> Delta | None:
        state = self.state
        changes = [(op, number) for at, op, number in state.log if at > generation]
        if not state.log_from <= generation <= state.generation or len(changes) > most:
            return None
        rowids = sorted({number for op, number in changes if op != "file"})
        page = self._page([state.chunks[rowid] for rowid in rowids if rowid in state.chunks], vectors)
        touched = {number for op, number in changes if op == "file"}.union(page.notes.tolist())
        notes = [note for note in state.notes.values() if note.id in touched]
        return Delta(state.generation, notes, page, [rowid for rowid in rowids if rowid not in state.chunks])

    def vectors(self, rowids: Sequence[int] | RowIds) -> Vectors:
        found = np.zeros((len(rowids), self.state.recipe.identity.dims), np.float32)
        for at, rowid in enumerate(rowids):
            chunk = self.state.chunks.get(int(rowid))
            if chunk is not None and chunk.vector is not None:
                found[at] = chunk.vector
        return found

    def _cosines(self, query: Vectors) -> dict[int, float]:
        """The cosine of every chunk that has a vector, by rowid."""
        found = {}
        with self.running() as state:
            for rowid, chunk in state.chunks.items():
                self.check()
                if chunk.vector is not None:
                    found[rowid] = math.fsum(
                        a * b for a, b in zip(chunk.vector.tolist(), query.tolist(), strict=True) if a and b
                    )
        return found

    def finds_nearest(self) -> bool:
        return True

    def nearest(self, query: Vectors, count: int) -> RowIds | None:
        zeros = {rowid for rowid, chunk in self.state.chunks.items() if chunk.vector is None or not chunk.vector.any()}
        order = sorted((-cosine, rowid) for rowid, cosine in self._cosines(query).items() if rowid not in zeros)
        if len(order) > count > 0 and order[count][0] - order[count - 1][0] < TIE:
            return None
        return np.array([rowid for _, rowid in order[:count]], np.int64)

    def standings(self, query: Vectors, rowids: Sequence[int] | RowIds) -> dict[int, CosineRank]:
        cosines, found = self._cosines(query), {}
        for rowid in {int(rowid) for rowid in rowids} & cosines.keys():
            own = cosines[rowid]
            before = [
                other
                for other, cosine in cosines.items()
                if cosine > own + TIE or (other < rowid and cosine >= own - TIE)
            ]
            found[rowid] = CosineRank(own, len(before) + 1, len(cosines))
        return found

    def rejected(self) -> list[Rejected]:
        state = self.state
        return [
            Rejected(c.rowid, c.path, c.new.start_line, c.new.end_line, *state.rejected[c.new.hash])
            for c in self._without_vector()
            if c.new.hash in state.rejected
        ]

    def withheld(self) -> list[Withheld]:
        state = self.state
        return [
            Withheld(c.rowid, c.path, c.new.start_line, c.new.end_line, state.withheld[c.new.hash])
            for c in self._without_vector()
            if c.new.hash in state.withheld
        ]

    def _without_vector(self) -> list[Chunk]:
        found = [chunk for chunk in self.state.chunks.values() if chunk.vector is None and not chunk.new.occurrence]
        return sorted(found, key=lambda chunk: (chunk.path.encode(), chunk.new.start_line))


class MemoryWords:
    """The words of a `MemoryStore` (`source.protocol.WordIndex`)."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def cut(self) -> Literal["unicode61", "trigram", ""]:
        return self._store.state.recipe.fts_tokenizer  # type: ignore[return-value]

    def missing(self) -> str:
        return ""

    def _documents(self, state: State, form: Form) -> dict[int, tuple[str, ...]]:
        if form == "plain":
            return {rowid: chunk.plain for rowid, chunk in state.chunks.items()}
        return {rowid: chunk.stemmed for rowid, chunk in state.chunks.items() if not chunk.new.occurrence}

    def _counts(
        self, documents: Mapping[int, Sequence[str]], word: str, form: Form, *, lone_is_prefix: bool
    ) -> dict[int, int]:
        """How often each document holds `word`; those that do not are left out."""
        wanted = analysed(word, self.cut()) if form == "plain" else tuple(tokens.tokens(word, stemmed=True))
        prefix = lone_is_prefix and len(word) == 1 and tokens.is_cjk(word)
        fits: Callable[[str, str], bool] = str.startswith if prefix else str.__eq__
        found = {}
        for rowid, document in documents.items():
            self._store.check()
            count = sum(
                all(map(fits, document[at : at + len(wanted)], wanted))
                for at in range(len(document) - len(wanted) + 1 if wanted else 0)
            )
            if count:
                found[rowid] = count
        return found

    def match(self, words: Sequence[str], form: Form, join: Literal["all", "any"]) -> Matches:
        if any("\0" in word for word in words):
            raise QueryError("A query cannot hold NUL characters.")
        with self._store.running() as state:
            documents = self._documents(state, form)
            counts = [self._counts(documents, word, form, lone_is_prefix=join == "any") for word in words]
            hits = [set(count) for count in counts]
            rowids = (set.intersection(*hits) if join == "all" else set.union(*hits)) if hits else set()
            n, mean = len(documents), sum(map(len, documents.values())) / max(1, len(documents))
            idf = [math.log((n - len(count) + 0.5) / (len(count) + 0.5)) for count in counts]
            scores = dict.fromkeys(rowids, 0.0)
            for rowid in rowids:
                # In FTS5's order of operations, so that equal ranks are equal to the last bit in both.
                for weight, count in zip(idf, counts, strict=True):
                    tf, length = count.get(rowid, 0), len(documents[rowid])
                    share = (tf * (1.2 + 1.0)) / (tf + 1.2 * (1 - 0.75 + 0.75 * length / mean))
                    scores[rowid] += (weight if weight > 0 else 1e-6) * share
            scores = {rowid: -score for rowid, score in scores.items()}
        order = sorted(rowids)
        return Matches(np.array(order, np.int64), np.array([scores[rowid] for rowid in order], np.float64))

    def size(self, form: Form) -> int:
        return len(self._documents(self._store.state, form))

    def frequency(self, words: Sequence[str], form: Form) -> list[int]:
        with self._store.running() as state:
            documents = self._documents(state, form)
            return [len(self._counts(documents, word, form, lone_is_prefix=True)) for word in words]

    def vocabulary(self) -> dict[str, int]:
        if self.cut() != "unicode61":
            return {}
        documents = self._documents(self._store.state, "plain").values()
        return dict(Counter(word for document in documents for word in set(document)))

    def containing(self, term: str) -> RowIds:
        wanted = term.translate(ASCII_LOWER)
        chunks = self._store.state.chunks.values()
        return np.array([c.rowid for c in chunks if wanted in c.new.text.translate(ASCII_LOWER)], np.int64)

    def originals(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        chunks = self._store.state.chunks
        firsts = {(c.note, c.new.chunk_id): c.rowid for c in chunks.values() if not c.new.occurrence}
        repeats = (chunks[int(rowid)] for rowid in rowids if int(rowid) in chunks)
        return {c.rowid: firsts[c.note, c.new.chunk_id] for c in repeats if c.new.occurrence}
