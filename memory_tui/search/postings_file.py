"""A postings file holds where the words of an index stand, as arrays that processes share by mapping it into memory.

It lies beside the index, says of which uuid and generation it is, and can be removed at any time: what changed since is
taken from the change log. Every word has a checksum; without the file, or where one does not fit, FTS5 is asked.

Behind the header come, word by word, the steps from each slot of its chunks to the next and how often it stands in
each, both of one, two or four bytes, as the greatest needs; then the tables of each form; on the last page, where these
are.
"""

from __future__ import annotations

import bisect
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash
from msgspec import Struct, field

from memory_tui.core.cancel import Stop
from memory_tui.search.corpus import is_cut_short
from memory_tui.search.corpus_file import PAGE, Write, header_of, mapped, padding, size_of, writing
from memory_tui.source.protocol import ChunkSource
from memory_tui.source.rows import ChunkCounts, Form

LEAST = 1_000
"""Chunks from which a file is made: of fewer FTS5 reads a word in a millisecond."""
_FORMAT = 6
_KINDS = {1: "|u1", 2: "<u2", 4: "<i4"}
_PIECE = 1 << 20

Slots = npt.NDArray[np.int32]
Often = npt.NDArray[np.integer[Any]]


def path_of(index: Path) -> Path:
    """Where the file of `index` lies."""
    return index.with_name(f"{index.name}.postings")


class _Place(NamedTuple):
    """Where the tables of a form begin, how much they hold, and their checksum."""

    at: int
    chunks: int
    words: int
    letters: int
    check: int

    def arrays(self) -> Iterator[tuple[str, int, int, str]]:
        """Name, place in the file, length and type of each table."""
        at = self.at
        for name, length, kind in (
            ("rowids", self.chunks, "<i8"),
            ("lengths", self.chunks, "<i4"),
            ("begins", self.words, "<i8"),
            ("counts", self.words, "<i4"),
            ("checks", self.words, "<u8"),
            ("step_bytes", self.words, "|u1"),
            ("count_bytes", self.words, "|u1"),
            ("ends", self.words, "<i8"),
            ("hashes", self.words, "<u8"),
            ("numbers", self.words, "<i4"),
            ("letters", self.letters, "|u1"),
        ):
            yield name, at, length, kind
            at += size_of((length,), kind) + padding(size_of((length,), kind))


class _Tables(Struct, frozen=True):
    """The arrays of one form, whole words or trigrams.

    Each chunk has a rowid and a length; each word its letters, where it stands, its checksum and how many bytes its
    numbers take. The `hashes` of the words rise, and `numbers` gives the word of each.
    """

    rowids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    begins: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int32]
    checks: npt.NDArray[np.uint64]
    step_bytes: npt.NDArray[np.uint8]
    count_bytes: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.int32]
    letters: npt.NDArray[np.uint8]

    def number_of(self, word: str) -> int | None:
        """The number of a word; None where it is not here."""
        wanted = word.encode("utf-8", "surrogatepass")
        own = _hash_of(wanted)
        # One number of a view takes half the time that one of an array takes.
        hashes, numbers, letters, ends = self.hashes.data, self.numbers.data, self.letters.data, self.ends.data
        place = bisect.bisect_left(hashes, own)
        while place < len(hashes) and hashes[place] == own:
            at: int = numbers[place]
            if letters[ends[at - 1] if at else 0 : ends[at]] == wanted:
                return at
            place += 1
        return None


def _hash_of(word: bytes) -> int:
    return xxhash.xxh3_64_intdigest(word)


class SavedPostings(Struct):
    """The words of an index as they were at `generation`. May be used by several threads at once."""

    uuid: str
    generation: int
    cut: str
    _data: npt.NDArray[np.uint8]
    _tables: dict[Form, _Tables]
    _is_whole: bool = field(default=True)
    _checked: set[int] = field(default_factory=set)
    """Where words begin that have their checksum."""

    def forms(self) -> tuple[Form, ...]:
        """The forms whose words are here."""
        return tuple(self._tables)

    def size(self, form: Form) -> int:
        """How many chunks of a form there were."""
        return len(self._tables[form].rowids) if form in self._tables else 0

    def chunks(self, form: Form) -> ChunkCounts:
        """The length of each chunk of a form; the slot of a chunk is its place here."""
        tables = self._tables[form]
        return ChunkCounts(tables.rowids, tables.lengths)

    def frequencies(self, form: Form) -> dict[str, int]:
        """Every word of a form, and how many chunks held it."""
        tables = self._tables[form]
        letters, ends = tables.letters.tobytes(), tables.ends.tolist()
        starts = [0, *ends[:-1]]
        words = [letters[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)]
        return dict(zip(words, tables.counts.tolist(), strict=True))

    def is_cut_short(self) -> bool:
        """Whether another program cut off the end of the file."""
        return is_cut_short(self._data)

    def is_as_written(self) -> bool:
        """Whether every word has its checksum; reads all of the file."""
        data = self._data.data
        for tables in self._tables.values():
            sizes = tables.counts.astype(np.int64) * (tables.step_bytes + tables.count_bytes)
            words = zip(tables.begins.tolist(), sizes.tolist(), tables.checks.tolist(), strict=True)
            if any(xxhash.xxh3_64_intdigest(data[begin : begin + size]) != check for begin, size, check in words):
                return False
        return True

    def frequency(self, word: str, form: Form) -> int:
        """How many chunks held a token."""
        tables = self._tables[form]
        at = tables.number_of(word)
        return 0 if at is None else int(tables.counts[at])

    def find(self, word: str, form: Form) -> tuple[Slots, Often] | None:
        """The slots of the chunks that held a token, and how often; None where that is damaged: then nothing is."""
        tables = self._tables[form]
        if not self._is_whole:
            return None
        at = tables.number_of(word)
        if at is None:
            return np.empty(0, np.int32), np.empty(0, np.uint8)
        begin, count = int(tables.begins[at]), int(tables.counts[at])
        step, often = int(tables.step_bytes[at]), int(tables.count_bytes[at])
        found = self._data[begin : begin + count * (step + often)]
        if begin not in self._checked:
            if xxhash.xxh3_64_intdigest(found.data) != int(tables.checks[at]):
                self._is_whole = False
                return None
            self._checked.add(begin)
        steps, counts = found[: step * count].view(_KINDS[step]), found[step * count :].view(_KINDS[often])
        return steps.cumsum(dtype=np.int32), counts


def save(path: Path, store: ChunkSource, stop: Stop | None = None) -> None:
    """Write the file of `store` in one step, where that is large. Without a file nothing is lost.

    It reads every word, which takes some 0.15 microseconds for each time that one stands somewhere.
    Raises IndexUnavailable, Cancelled.
    """
    with store.snapshot():
        cut = store.words.cut()
        if not cut or store.words.size("stemmed") < LEAST:
            return
        forms: tuple[Form, ...] = ("plain", "stemmed") if cut == "unicode61" else ("stemmed",)
        header = {
            "format": _FORMAT,
            "uuid": store.uuid(),
            "generation": store.generation(),
            "cut": cut,
        }
        with contextlib.suppress(OSError), writing(path, header) as write:
            at, places = PAGE, {}
            for form in forms:
                at, places[form] = _written(write, store, form, at, stop or Stop())
            write(json.dumps(places).encode().ljust(PAGE))


def _written(write: Write, store: ChunkSource, form: Form, at: int, stop: Stop) -> tuple[int, _Place]:
    """Write what stands behind the first `at` bytes: the words of a form, and its tables; returns where they end."""
    rowids, lengths = store.words.lengths(form)
    begins, counts, checks, widths, names = [], [], [], [], []
    waiting = bytearray()
    for word, found in store.words.postings(form):
        stop.check()
        steps = np.diff(np.searchsorted(rowids, found.rowids), prepend=0)
        width = _bytes_of(steps), _bytes_of(found.counts)
        data = b"".join(
            part.astype(_KINDS[size]).tobytes() for part, size in zip((steps, found.counts), width, strict=True)
        )
        begins.append(at + len(waiting))
        counts.append(len(steps))
        checks.append(xxhash.xxh3_64_intdigest(data))
        widths.append(width)
        names.append(word.encode("utf-8", "surrogatepass"))
        # A number begins where its size divides the place.
        waiting += data + bytes(-len(data) % 4)
        if len(waiting) >= _PIECE:
            write(bytes(waiting))
            at += len(waiting)
            waiting.clear()
    write(bytes(waiting) + bytes(padding(at + len(waiting))))
    at += len(waiting) + padding(at + len(waiting))
    order = sorted(range(len(names)), key=names.__getitem__)
    letters = b"".join(names[one] for one in order)
    hashes = np.array([_hash_of(names[one]) for one in order], np.uint64)
    numbers = hashes.argsort(kind="stable")
    columns: dict[str, npt.NDArray[Any]] = {
        "rowids": rowids,
        "lengths": lengths,
        "begins": np.array(begins, np.int64)[order],
        "counts": np.array(counts, np.int32)[order],
        "checks": np.array(checks, np.uint64)[order],
        "step_bytes": np.array([widths[one][0] for one in order], np.uint8),
        "count_bytes": np.array([widths[one][1] for one in order], np.uint8),
        "ends": np.cumsum([len(names[one]) for one in order], dtype=np.int64),
        "hashes": hashes[numbers],
        "numbers": numbers,
        "letters": np.frombuffer(letters, np.uint8),
    }
    place, check = _Place(at, len(rowids), len(names), len(letters), 0), xxhash.xxh3_64()
    for name, begin, length, kind in place.arrays():
        data = columns[name].astype(kind).tobytes()
        check.update(data)
        write(data + bytes(padding(len(data))))
        at = begin + size_of((length,), kind) + padding(size_of((length,), kind))
    return at, place._replace(check=check.intdigest())


def _bytes_of(numbers: npt.NDArray[np.integer[Any]]) -> int:
    """How many bytes the greatest of `numbers` needs: one, two or four."""
    most = int(numbers.max(initial=0))
    return 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4


def load(path: Path, store: ChunkSource) -> SavedPostings | None:
    """The words by the file at `path`, as they were in some generation of `store`; None where it is of no use.

    Raises IndexUnavailable, Cancelled.
    """
    try:
        header = header_of(path)
        if header["format"] != _FORMAT or header["uuid"] != store.uuid() or header["cut"] != store.words.cut():
            return None
        if not 0 <= header["generation"] <= store.generation():
            return None
        data = mapped(path, 0, (path.stat().st_size,), "|u1")
        places = json.loads(data[-PAGE:].tobytes())
        tables = {form: _tables(data, _Place(*place)) for form, place in places.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return SavedPostings(header["uuid"], header["generation"], header["cut"], data, tables)


def _tables(data: npt.NDArray[np.uint8], place: _Place) -> _Tables:
    """The tables of a form. Raises ValueError for what is not as it was written, TypeError."""
    check, found = xxhash.xxh3_64(), {}
    for name, at, length, kind in place.arrays():
        part = data[at : at + size_of((length,), kind)]
        check.update(part.data)
        found[name] = part.view(kind)
    if check.intdigest() != place.check:
        raise ValueError("tables that are not as they were written")
    return _Tables(**found)
