"""Postings in memory give the bm25 of words without asking FTS5 for every match of every query.

How often a word stands in which chunk is taken from the postings file, or read when the word is first asked for (about
0.2 microseconds an occurrence), and followed by what the store says has changed. The scores are those of FTS5 to the
last bit, because the same numbers are added up in the same order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from memory_tui.core.spelling import Vocabulary
from memory_tui.core.tokens import and_query, or_query
from memory_tui.search import postings_file
from memory_tui.search.formulas import K1, fts5_idf, length_damping
from memory_tui.search.postings_file import Often, SavedPostings, Slots
from memory_tui.source.protocol import ChunkSource, WordIndex
from memory_tui.source.rows import Bm25, ChunkCounts, Flags, Form, Matches, RowIds

Join = Literal["all", "any"]

_MOST_POSTINGS = 10_000_000
"""Postings that are remembered, at 5 bytes each: the words that nobody asked for longest are read again."""
_FEW = 2_000
"""Matches of all words up to which FTS5, which goes by the rarest word, is quicker than reading frequent ones."""
_MOST_FEW = 250
"""Questions of which those matches are remembered."""
_MOST_FREQUENCIES = 50_000
"""How many counts of words are remembered; at more, all of them are forgotten."""
_MOST_CHANGES = 20_000
"""Changes that are followed; more are read anew."""
_DEAD_SHARE, _DEAD_SPARE = 0.25, 1_000
"""Of so many chunks that are gone, and more of them, the slots are given up."""
_NEW_SHARE, _NEW_SPARE = 1 / 16, 256
"""So many chunks that came since a postings file was written, and more of them, are worth another file."""


class _Chunks(Struct, frozen=True, dict=True):
    """The chunks of one form by slot, in the order of their rowids; those that are not `alive` are gone."""

    rowids: RowIds
    lengths: npt.NDArray[np.int32]
    alive: Flags

    @classmethod
    def of(cls, found: ChunkCounts) -> _Chunks:
        return cls(found.rowids, found.counts, np.ones(len(found.rowids), np.bool_))

    @cached_property
    def count(self) -> int:
        """How many are alive."""
        return int(np.count_nonzero(self.alive))

    @cached_property
    def is_whole(self) -> bool:
        return self.count == len(self.alive)

    @cached_property
    def damping(self) -> Bm25:
        """What bm25 adds to the number of times that a word stands in each chunk, for the length of the chunk."""
        mean = int(self.lengths[self.alive].sum(dtype=np.int64)) / max(1, self.count)
        lengths = self.lengths.astype(np.float64)
        return length_damping(lengths, mean or 1.0)

    def followed(self, words: WordIndex, form: Form, gone: Sequence[int]) -> _Chunks | None:
        """The chunks as they are now that `gone` are gone; None where they have to be read anew."""
        new = words.lengths(form, int(self.rowids[-1]) if len(self.rowids) else 0)
        alive = np.concatenate([self.alive, np.ones(len(new.rowids), np.bool_)])
        slots, known = _slots_of(self.rowids, np.asarray(gone, np.int64))
        alive[slots[known]] = False
        rowids, lengths = np.concatenate([self.rowids, new.rowids]), np.concatenate([self.lengths, new.counts])
        chunks = _Chunks(rowids, lengths, alive)
        if chunks.count != words.size(form):
            # Repeats of a chunk go without being told of.
            chunks = _Chunks(rowids, lengths, _slots_of(words.lengths(form).rowids, rowids)[1])
        dead = len(alive) - chunks.count
        if chunks.count != words.size(form) or dead > _DEAD_SPARE + _DEAD_SHARE * chunks.count:
            return None
        return chunks


class _Word(NamedTuple):
    """Where a word stands, among the first `seen` slots, as it was at `generation`."""

    slots: Slots
    counts: Often
    seen: int
    generation: int


class _Words(Struct):
    """The words that were asked for, by form and FTS5 expression; those asked for last stand last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    known: dict[tuple[Form, str], _Word] = field(default_factory=dict)
    postings: int = 0

    def get(self, key: tuple[Form, str]) -> _Word | None:
        with self.lock:
            found = self.known.pop(key, None)
            if found is not None:
                self.known[key] = found
            return found

    def put(self, key: tuple[Form, str], word: _Word) -> None:
        with self.lock:
            before = self.known.get(key)
            if before is not None and before.generation > word.generation:
                return
            self._forget(key)
            self.known[key] = word
            self.postings += len(word.slots)
            while self.postings > _MOST_POSTINGS and len(self.known) > 1:
                self._forget(next(iter(self.known)))

    def _forget(self, key: tuple[Form, str]) -> None:
        word = self.known.pop(key, None)
        self.postings -= len(word.slots) if word else 0


class PostingLists:
    """The full-text index of a store in memory, as it is at one `generation`.

    It never changes to whoever reads it: `refresh` returns another one, and any number of threads can ask. Each call
    gets the full-text index of a store that holds that generation, for the words that were not asked for before.
    """

    def __init__(
        self,
        uuid: str,
        generation: int,
        cut: str,
        chunks: dict[Form, _Chunks] | None = None,
        words: _Words | None = None,
        saved: SavedPostings | None = None,
    ) -> None:
        self.uuid = uuid
        self.generation = generation
        self._cut = cut
        self._chunks = chunks or {}
        self._words = words or _Words()
        self._saved = saved
        self._vocabulary: Vocabulary | None = None
        self._frequencies: dict[tuple[Form, str], int] = {}
        self._few: dict[tuple[Form, str], Matches] = {}

    @classmethod
    def of(cls, store: ChunkSource, index: Path | None = None) -> PostingLists:
        """The postings of what `store` holds, by the file beside `index` where there is one; else nothing is read yet.

        Raises IndexUnavailable, Cancelled.
        """
        with store.snapshot():
            saved = postings_file.load(postings_file.path_of(index), store) if index else None
            if saved is None:
                return cls(store.uuid(), store.generation(), store.words.cut())
            chunks = {form: _Chunks.of(saved.chunks(form)) for form in saved.forms()}
            return cls(saved.uuid, saved.generation, saved.cut, chunks, saved=saved).refresh(store)

    @property
    def mapped(self) -> bool:
        """Whether a postings file holds nearly all that is here."""
        if self._saved is None:
            return False
        sizes = [(self._saved.size(form), len(self._chunks[form].rowids)) for form in self._saved.forms()]
        return all(now - then <= _NEW_SPARE + _NEW_SHARE * then for then, now in sizes)

    def serves(self) -> bool:
        """Whether who starts now needs no other postings file than there is; reads all of it."""
        return self.mapped and self._saved is not None and self._saved.is_as_written()

    def refresh(self, store: ChunkSource) -> PostingLists:
        """The postings as they are now: these if nothing changed, else others whose making costs what changed."""
        with store.snapshot():
            is_cut_short = self._saved is not None and self._saved.is_cut_short()
            if is_cut_short or store.uuid() != self.uuid or store.words.cut() != self._cut:
                return PostingLists.of(store)
            if store.generation() == self.generation:
                return self
            delta = store.delta(self.generation, _MOST_CHANGES, vectors=False)
            if delta is None:
                return PostingLists.of(store)
            followed: dict[Form, _Chunks] = {}
            for form, chunks in list(self._chunks.items()):
                now = chunks.followed(store.words, form, delta.gone)
                if now is None:
                    return PostingLists.of(store)
                followed[form] = now
            return PostingLists(self.uuid, delta.generation, self._cut, followed, self._words, self._saved)

    def match(self, index: WordIndex, words: Sequence[str], form: Form, join: Join) -> Matches:
        """Find the chunks that hold all, or any, of `words`: `WordIndex.match`. Raises QueryError, Cancelled."""
        if not words:
            return Matches(np.empty(0, np.int64), np.empty(0))
        known = {word: self._word(index, word, form, join) for word in dict.fromkeys(words)}
        if join == "all" and len(words) > 1 and None in known.values():
            key = form, and_query(words)
            matches = self._few.get(key) or index.match(words, form, join)
            if len(matches.rowids) <= _FEW:
                if len(self._few) >= _MOST_FEW:
                    self._few = {}
                self._few[key] = matches
                return matches
        chunks = self._chunks_of(index, form)
        found = {word: self._found(index, chunks, word, form, join, own) for word, own in known.items()}
        each = [found[word] for word in words]
        return _of_all(chunks, each) if join == "all" else _of_any(chunks, each, [1.0] * len(each), len(each))

    def weighed(
        self, index: WordIndex, words: Sequence[str], form: Form, factors: Sequence[float], finding: int
    ) -> Matches:
        """Find the chunks that hold any of the first `finding` of `words`, with the bm25 of each word times its factor.

        The words behind these add to what was found. Raises QueryError, Cancelled.
        """
        chunks = self._chunks_of(index, form)
        found = [self._found(index, chunks, word, form, "any", self._word(index, word, form, "any")) for word in words]
        return _of_any(chunks, found, factors, finding)

    def size(self, index: WordIndex, form: Form) -> int:
        """Count the chunks of that form: `WordIndex.size`."""
        return self._chunks_of(index, form).count

    def frequency(self, index: WordIndex, words: Sequence[str], form: Form) -> list[int]:
        """Count the chunks that hold each word: `WordIndex.frequency`."""
        known, chunks = self._frequencies, self._chunks.get(form)
        new = [word for word in dict.fromkeys(words) if (form, word) not in known]
        counted = []
        for word in new:
            token = self._saved_token(index, word, form, "any")
            if self._saved is not None and token is not None and self._is_as_saved(form):
                known[form, word] = self._saved.frequency(token, form)
            elif chunks is not None and (own := self._word(index, word, form, "any")) is not None:
                known[form, word] = len(self._found(index, chunks, word, form, "any", own).slots)
            else:
                # Counting is ten times quicker than reading, and most words that are only counted are frequent.
                counted.append(word)
        if counted:
            known.update(zip(((form, word) for word in counted), index.frequency(counted, form), strict=True))
        if len(known) > _MOST_FREQUENCIES:
            # A thread that is counting now keeps the dictionary that it began with.
            self._frequencies = {}
        return [known[form, word] for word in words]

    def vocabulary(self, index: WordIndex) -> Vocabulary:
        """The words of the index, read when a question first needs them."""
        if self._vocabulary is None:
            if self._saved is not None and self._is_as_saved("plain"):
                self._vocabulary = Vocabulary(self._saved.frequencies("plain"))
            else:
                self._vocabulary = Vocabulary(index.vocabulary())
        return self._vocabulary

    def _chunks_of(self, index: WordIndex, form: Form) -> _Chunks:
        if form not in self._chunks:
            self._chunks[form] = _Chunks.of(index.lengths(form))
        return self._chunks[form]

    def _is_as_saved(self, form: Form) -> bool:
        """Whether the postings file holds the very chunks of a form that there are."""
        chunks = self._chunks.get(form)
        saved = self._saved.size(form) if self._saved is not None else 0
        return chunks is not None and chunks.is_whole and len(chunks.rowids) == saved

    def _saved_token(self, index: WordIndex, word: str, form: Form, join: Join) -> str | None:
        """The token that `word` is in the postings file; None where it has to be asked of FTS5."""
        return None if self._saved is None or form not in self._saved.forms() else index.token(word, form, join)

    def _word(self, index: WordIndex, word: str, form: Form, join: Join) -> _Word | None:
        """What is known of `word` without asking FTS5 for all of it, or is in the postings file."""
        known = self._words.get(_key(word, form, join))
        # What a later reader knows lacks the chunks that went between.
        if known is not None and known.generation <= self.generation:
            return known
        saved, token = self._saved, self._saved_token(index, word, form, join)
        found = None if saved is None or token is None else saved.find(token, form)
        return None if saved is None or found is None else _Word(*found, saved.size(form), saved.generation)

    def _found(
        self, index: WordIndex, chunks: _Chunks, word: str, form: Form, join: Join, known: _Word | None
    ) -> _Found:
        """Where `word` stands among the chunks that are alive, by what is `known` of it."""
        if known is None:
            known = _Word(np.empty(0, np.int32), np.empty(0, np.int32), 0, self.generation)
        if known.seen < len(chunks.rowids) or not known.seen:
            more = index.occurrences(word, form, join, int(chunks.rowids[known.seen - 1]) if known.seen else 0)
            slots, there = _slots_of(chunks.rowids, more.rowids)
            known = _Word(
                np.concatenate([known.slots, slots[there].astype(np.int32)]),
                _narrow(np.concatenate([known.counts, more.counts[there]])),
                len(chunks.rowids),
                self.generation,
            )
            self._words.put(_key(word, form, join), known)
        if chunks.is_whole:
            return _Found(known.slots, known.counts)
        alive = chunks.alive[known.slots]
        return _Found(known.slots[alive], known.counts[alive])


def _key(word: str, form: Form, join: Join) -> tuple[Form, str]:
    return form, or_query([word]) if join == "any" else and_query([word])


class _Found(NamedTuple):
    """The chunks that hold a word, by slot, and how often."""

    slots: Slots
    counts: Often

    def scores(self, chunks: _Chunks) -> Bm25:
        """bm25 of this word alone, positive."""
        return _bm25(chunks, len(self.slots), self.counts, self.slots)


def _bm25(chunks: _Chunks, frequency: int, counts: Often, slots: Slots) -> Bm25:
    """What a word that stands in `frequency` chunks adds to those in `slots`, `counts` times in each (FTS5)."""
    often, length = counts.astype(np.float64), chunks.damping.take(slots)
    # In place, because each array of a frequent word takes longer to get than to fill.
    length += often
    often *= K1 + 1
    often /= length
    often *= fts5_idf(frequency, chunks.count)
    return often


def _of_any(chunks: _Chunks, words: Sequence[_Found], factors: Sequence[float], finding: int) -> Matches:
    """The chunks that hold any of the first `finding` of `words`, with the bm25 of each word times its factor."""
    scores = np.zeros(len(chunks.rowids))
    slots = np.empty(0, np.int64)
    for number, (word, factor) in enumerate(zip(words, factors, strict=True), 1):
        scores[word.slots] += word.scores(chunks) * factor
        if number == finding:
            slots = np.flatnonzero(scores)
    return Matches(chunks.rowids[slots], -scores[slots])


def _of_all(chunks: _Chunks, words: Sequence[_Found]) -> Matches:
    slots = min((word.slots for word in words), key=len)
    for word in words:
        if word.slots is not slots:
            slots = slots[_slots_of(word.slots, slots)[1]]
    if not len(slots):
        return Matches(chunks.rowids[slots], np.empty(0))
    scores = np.zeros(len(slots))
    for word in words:
        counts = word.counts if word.slots is slots else word.counts[_slots_of(word.slots, slots)[0]]
        scores += _bm25(chunks, len(word.slots), counts, slots)
    return Matches(chunks.rowids[slots], -scores)


def _narrow(counts: Often) -> Often:
    """`counts` as bytes, where they are no greater."""
    return counts if counts.max(initial=0) > np.iinfo(np.uint8).max else counts.astype(np.uint8)


def _slots_of(sorted_numbers: RowIds | Slots, wanted: RowIds | Slots) -> tuple[npt.NDArray[np.int64], Flags]:
    """Where each of `wanted` stands in `sorted_numbers`, and whether it is there."""
    if not len(sorted_numbers):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(sorted_numbers, wanted), len(sorted_numbers) - 1)
    return at, sorted_numbers[at] == wanted
