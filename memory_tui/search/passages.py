"""Passages are what a chunk is made of: its lines, windows of whole lines, its letters.

They are cut once for each text and remembered, as arrays, so that a question is compared with thirty chunks at once.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from memory_tui.core import tokens
from memory_tui.search.formulas import Floats

WINDOW = 100
"""Words of a window, which holds whole lines; a longer line is a window of its own."""
REMEMBERED = 2_000
"""Texts whose passages are remembered, about 13 KB each."""

Ids = npt.NDArray[np.int64]


class TokenTable(Protocol):
    """A static table of token vectors, as the built-in provider has: a text means the sum of its tokens."""

    def ids(self, text: str) -> Sequence[int]:
        """The token ids of `text`."""

    def rows(self, ids: Ids) -> npt.NDArray[np.float32]:
        """The vectors of `ids`, float32 (n, dimensions)."""


@dataclass(frozen=True, slots=True)
class Passages:
    """A text cut into lines and windows of whole lines.

    `lines` holds the 0-based number of each line that is not blank. Line i has the stems
    `stems[stem_from[i]:stem_from[i + 1]]` and the tokens `ids[id_from[i]:id_from[i + 1]]`; window j is made of the
    lines from `window_from[j]` to the one before `window_from[j + 1]`. `line_norm` and `window_norm` are the lengths of
    their summed token vectors, 0 without a table. `grams` are the keys of the text's trigrams, rising, each as often
    as `gram_counts` says; `length` is how many characters they were cut from.
    """

    lines: Ids
    window_from: Ids
    stems: Ids
    stem_from: Ids
    ids: Ids
    id_from: Ids
    line_norm: Floats
    window_norm: Floats
    grams: Ids
    gram_counts: Floats
    length: int


def stem_keys(stems: Sequence[str]) -> Ids:
    """One number for each of `stems`, the same as long as the process lives; of 64 bits, so that none meet."""
    return np.fromiter(map(hash, stems), np.int64, len(stems))


def stems_of(word: str) -> list[str]:
    """The stems by which a word of a question is looked for; a pair of Chinese characters is one as it stands."""
    return [word] if tokens.is_cjk(word) else tokens.tokens(word, stemmed=True)


_APART = re.compile(r"[\W_]+")
_CJK_FROM = 0x2E80
_SHIFT = 21
"""Bits of a character."""


def letters_of(text: str) -> str:
    """`text` as trigrams see it: lower case, words one space apart, a space at both ends."""
    return f" {_APART.sub(' ', text.lower()).strip()} "


def word_grams(word: str) -> list[str]:
    """The trigrams of a word, with a space at each of its ends; a word of Chinese characters has no ends.

    A pair of such characters, which is shorter than a trigram, stands for itself.
    """
    spelled = word if tokens.is_cjk(word) else letters_of(word)
    return [spelled[at : at + 3] for at in range(len(spelled) - 2)] or [spelled]


def gram_key(gram: str) -> int:
    """The key of one to three characters."""
    key = 0
    for character in gram:
        key = key << _SHIFT | ord(character)
    return key


def _gram_keys(letters: str) -> tuple[Ids, Floats]:
    codes = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    found = [codes[:-2] << 2 * _SHIFT | codes[1:-1] << _SHIFT | codes[2:]]
    wide = codes >= _CJK_FROM
    if wide.any():
        found += [codes[wide], (codes[:-1] << _SHIFT | codes[1:])[wide[:-1] & wide[1:]]]
    keys, counts = np.unique(np.concatenate(found), return_counts=True)
    return keys, counts.astype(np.float64)


def cut(text: str, table: TokenTable | None, window: int = WINDOW) -> Passages:
    """The passages of `text`; without a `table` they have no meaning. A blank text is one empty line."""
    every = text.split("\n")
    lines = [at for at, line in enumerate(every) if line.strip()] or [0]
    found = tokens.stems(tokens.segmented(text))
    line_bytes = [0]
    for line in tokens.segmented(text).split("\n"):
        line_bytes.append(line_bytes[-1] + len(line.encode("utf-8", "replace")) + 1)
    starts = np.array([start for _, start, _ in found], dtype=np.int64)
    stem_from = np.append(np.searchsorted(starts, [line_bytes[at] for at in lines]), len(found))
    window_from = _windows(np.diff(stem_from).tolist(), window)
    ids: list[int] = []
    id_from = [0]
    for at in lines:
        ids += table.ids(every[at]) if table is not None else ()
        id_from.append(len(ids))
    line_norm, window_norm = _lengths(table, np.array(ids, dtype=np.int64), id_from, window_from)
    letters = letters_of(text)
    return Passages(
        np.array(lines, dtype=np.int64),
        np.array(window_from, dtype=np.int64),
        stem_keys([stem for stem, _, _ in found]),
        stem_from.astype(np.int64),
        np.array(ids, dtype=np.int64),
        np.array(id_from, dtype=np.int64),
        line_norm,
        window_norm,
        *_gram_keys(letters),
        len(letters),
    )


def _windows(words: Sequence[int], most: int) -> list[int]:
    """Where windows begin, and the end, for lines of so many `words`: a line that would be too much begins one."""
    found, filled = [0], 0
    for at, count in enumerate(words):
        if filled and filled + count > most:
            found.append(at)
            filled = 0
        filled += count
    return [*found, len(words)]


def _lengths(
    table: TokenTable | None, ids: Ids, id_from: Sequence[int], window_from: Sequence[int]
) -> tuple[Floats, Floats]:
    """How long the summed vectors of lines and of windows are."""
    if table is None:
        return np.zeros(len(id_from) - 1), np.zeros(len(window_from) - 1)
    lines = sums(table.rows(ids), np.array(id_from))
    windows = np.add.reduceat(lines, window_from[:-1], axis=0)
    line, whole = (np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64)) for part in (lines, windows))
    return line, whole


def sums(values: npt.NDArray[np.floating], bounds: Ids) -> npt.NDArray[np.floating]:
    """The sum of `values` from each of `bounds` to the next, along the first axis; 0 where there is none."""
    # The row of zeros is what bounds at the very end point at.
    padded = np.concatenate([values, np.zeros((1, *values.shape[1:]), dtype=values.dtype)])
    found = np.add.reduceat(padded, bounds[:-1], axis=0)
    found[bounds[:-1] == bounds[1:]] = 0
    return found


class PassageMemory:
    """Passages by text, the least recently used forgotten first. May be used by several threads at once."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._known: OrderedDict[tuple[bool, str], Passages] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, text: str, table: TokenTable | None) -> Passages:
        """The passages of `text`; there is one table, or none."""
        key = table is not None, text
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found
        made = cut(text, table)
        with self._lock:
            self._known[key] = made
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return made
