"""Passages are what a chunk is made of: its lines, windows of whole lines, and its letters.

They are cut once for each text and remembered, as arrays, so that a question is compared with some twenty chunks at
once.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memory_tui import tokens
from memory_tui.providers.builtin import StaticTable
from memory_tui.search.formulas import Floats

WINDOW = 100
"""Words of a window, which holds whole lines; a longer line is a window of its own."""
REMEMBERED = 12_000_000
"""Bytes of the passages that are remembered, about 6 KB a text: those of a hundred different questions."""
_MOST_WORDS, _LONGEST = 20_000, 64
"""Words whose stems and tokens are remembered, none of them longer than so many letters."""

Ids = npt.NDArray[np.int64]
Codes = npt.NDArray[np.unsignedinteger[Any]]


class Passages(NamedTuple):
    """One text, or several one behind the other, cut into lines and windows of whole lines.

    `lines` holds the 0-based number of each line that is not blank. `stems` and `ids`, the tokens, stand line by line:
    `stem_counts[i]` and `id_counts[i]` of them are of line i. Window j begins at line `window_from[j]`. `line_norm` and
    `window_norm` are the lengths of their summed token vectors, 0 without a table. `letters` are the characters that
    trigrams are cut from.
    """

    lines: Ids
    window_from: Ids
    stems: Ids
    stem_counts: Ids
    ids: npt.NDArray[np.int32]
    id_counts: Ids
    line_norm: Floats
    window_norm: Floats
    letters: Codes


class Joined(NamedTuple):
    """The passages of some texts one behind the other, and where lines, windows and letters of each begin or end."""

    passages: Passages
    lines_from: Ids
    windows_from: Ids
    letter_ends: Ids


def joined(texts: Sequence[Passages]) -> Joined:
    """Put the passages of some texts one behind the other, to be measured at once."""
    lines_from = np.cumsum([0, *(len(item.lines) for item in texts)])
    windows_from = np.cumsum([0, *(len(item.window_norm) for item in texts)])
    whole = Passages(*(np.concatenate(column) for column in zip(*texts, strict=True)))
    whole = whole._replace(window_from=whole.window_from + np.repeat(lines_from[:-1], np.diff(windows_from)))
    return Joined(whole, lines_from, windows_from, np.cumsum([len(item.letters) for item in texts]))


def stems_of(word: str) -> Sequence[str]:
    """Return the stems by which a word of a question is looked for; a pair of Chinese characters as it stands."""
    return [word] if tokens.is_cjk(word) else tokens.word_stems(word)


def places_in(keys: Ids, values: Ids) -> tuple[Ids, Ids]:
    """Return where values stand among the rising `keys`, and which of `values` those are."""
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    there = np.flatnonzero(keys[at] == values)
    return at[there], there


def stem_counts(keys: Ids, passages: Passages) -> Floats:
    """Count each stem of `keys`, hashes which rise, in each line: (keys, lines)."""
    at, there = places_in(keys, passages.stems)
    count = len(passages.stem_counts)
    lines = np.repeat(np.arange(count), passages.stem_counts)[there]
    return np.bincount(at * count + lines, minlength=len(keys) * count).reshape(len(keys), count).astype(np.float64)


# --- letters -------------------------------------------------------------------------------------------------------

_APART = re.compile(r"[\W_]+")
_ASCII_APART = bytes(at if chr(at).isalnum() else 32 for at in range(128)).ljust(256)
_CJK_FROM = 0x2E80
_SHIFT = 21
"""Bits of a character in the key of a trigram."""


def letters_of(text: str) -> str:
    """Return `text` as trigrams see it: lower case, words one space apart, a space at both ends."""
    return f" {_APART.sub(' ', text.lower()).strip()} "


def _codes_of(text: str) -> Codes:
    """Return the characters of `letters_of(text)`."""
    if text.isascii():
        return np.frombuffer(b" %b " % b" ".join(text.lower().encode().translate(_ASCII_APART).split()), np.uint8)
    return np.frombuffer(letters_of(text).encode("utf-32-le", "surrogatepass"), "<u4")


def grams_of(words: Sequence[str]) -> Ids:
    """Return the keys of the trigrams of `words`, rising, with a space at each end of a word that has ends.

    A pair of Chinese characters, which is shorter than a trigram, stands for itself.
    """
    grams: set[str] = set()
    for word in words:
        spelled = word.lower() if tokens.is_cjk(word) else letters_of(word)
        grams |= {spelled[at : at + 3] for at in range(len(spelled) - 2)} or {spelled}
    keys = (sum(ord(item) << _SHIFT * (len(gram) - 1 - at) for at, item in enumerate(gram)) for gram in grams)
    return np.array(sorted(keys), dtype=np.int64)


def gram_counts(keys: Ids, texts: Joined) -> Floats:
    """Count each trigram of `keys`, which rise, in each text: (keys, texts).

    Chinese characters and pairs of them count as trigrams too. No key holds the two spaces where texts meet.
    """
    ends, codes = texts.letter_ends, texts.passages.letters.astype(np.int64)
    # Few characters are of a key: only where three of them stand side by side is a trigram made.
    mask = (1 << _SHIFT) - 1
    used = np.zeros(max(int(codes.max(initial=0)), int(keys.max(initial=0)) & mask) + 1, np.bool_)
    for shift in (2 * _SHIFT, _SHIFT, 0):
        part = (keys >> shift) & mask
        used[part[part < len(used)]] = True
    there = used[codes]
    places = np.flatnonzero(there[:-2] & there[1:-1] & there[2:])
    built = codes[places] << 2 * _SHIFT | codes[places + 1] << _SHIFT | codes[places + 2]
    at, hit = places_in(keys, built)
    text = np.searchsorted(ends, places[hit], side="right")
    size = len(keys) * len(ends)
    counts = np.bincount(at * len(ends) + text, minlength=size).reshape(len(keys), len(ends)).astype(np.float64)
    wide = codes >= _CJK_FROM
    short = np.flatnonzero(keys < 1 << 2 * _SHIFT).tolist() if wide.any() else []
    pairs = np.where(wide[:-1] & wide[1:], codes[:-1] << _SHIFT | codes[1:], -1)
    for row in short:
        result = pairs == keys[row] if keys[row] >= 1 << _SHIFT else wide & (codes == keys[row])
        counts[row] = np.bincount(np.searchsorted(ends, np.flatnonzero(result), side="right"), minlength=len(ends))
    return counts


# --- cutting -------------------------------------------------------------------------------------------------------

_Word = tuple[tuple[int, ...], tuple[int, ...]]
"""The hashes of its stems, and its tokens."""
_words_cut: dict[str, _Word] = {}


def _cut_words(words: Iterable[str], table: StaticTable | None) -> Mapping[str, _Word]:
    """Return the stems and tokens of `words`; neither a token of FTS5 nor one of BERT reaches over a space."""
    global _words_cut  # noqa: PLW0603 - replaced, never emptied: another thread may be reading it
    # Without a table, which is a fault, nothing is remembered, so that no word is without its tokens afterwards.
    remembered = _words_cut if len(_words_cut) < _MOST_WORDS and table is not None else {}
    new = list({word for word in words if word not in remembered})
    if not new:
        return remembered
    spelled = [tokens.segmented(word) for word in new]
    # FTS5 cuts all of them in one call, which takes as long as a dozen words do.
    ends = np.cumsum([len(word.encode("utf-8", "replace")) + 1 for word in spelled])
    cut_at = tokens.stems("\n".join(spelled))
    stems: list[list[int]] = [[] for _ in new]
    starts = np.array([start for _, start, _ in cut_at], np.int64)
    for (stem, _, _), at in zip(cut_at, np.searchsorted(ends, starts, side="right").tolist(), strict=True):
        stems[at].append(hash(stem))
    ids = table.word_ids(new) if table is not None else [()] * len(new)
    cut = dict(zip(new, zip(map(tuple, stems), map(tuple, ids), strict=True), strict=True))
    if table is not None:
        remembered.update((word, entry) for word, entry in cut.items() if len(word) <= _LONGEST)
        _words_cut = remembered
    return {**remembered, **cut} if table is None or max(map(len, new)) > _LONGEST else remembered


def cut(texts: Sequence[str], table: StaticTable | None, window: int = WINDOW) -> list[Passages]:
    """Cut each of `texts` into passages; without a `table` they have no meaning. A blank text is one empty line.

    All of them at once, because numpy takes its time for each call.
    """
    split = [
        [(at, line.split()) for at, line in enumerate(text.split("\n")) if line.strip()] or [(0, [])] for text in texts
    ]
    cut_words = _cut_words((word for lines in split for _, words in lines for word in words), table)
    by_line = [[[cut_words[word] for word in words] for _, words in lines] for lines in split]
    every = [words for lines in by_line for words in lines]
    ids = np.array(list(chain.from_iterable([numbers for words in every for _, numbers in words])), np.int64)
    id_counts = np.array([sum(len(numbers) for _, numbers in words) for words in every], np.int64)
    bounds = np.concatenate([[0], np.cumsum(id_counts)])
    sums = table.sums(ids, bounds) if table is not None and len(every) else np.zeros((len(every), 1), np.float32)
    result, first = [], 0
    for text, lines, parts in zip(texts, split, by_line, strict=True):
        stems = [list(chain.from_iterable(stem for stem, _ in words)) for words in parts]
        counts, begins, filled = [len(line) for line in stems], [0], 0
        for at, count in enumerate(counts):
            if filled and filled + count > window:
                begins.append(at)
                filled = 0
            filled += count
        last = first + len(lines)
        of_lines = sums[first:last]
        line_norm, window_norm = (
            np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            for part in (of_lines, np.add.reduceat(of_lines, begins, axis=0))
        )
        result.append(
            Passages(
                np.array([number for number, _ in lines], np.int64),
                np.array(begins, np.int64),
                np.array(list(chain.from_iterable(stems)), np.int64),
                np.array(counts, np.int64),
                ids[bounds[first] : bounds[last]].astype(np.int32),
                id_counts[first:last].copy(),
                line_norm,
                window_norm,
                _codes_of(text),
            )
        )
        first = last
    return result


class _Memory(OrderedDict[tuple[bool, str], Passages]):
    """Passages by text, and their `size` in bytes."""

    size = 0


_remembered, _lock = _Memory(), threading.Lock()


def passages_of(texts: Sequence[str], table: StaticTable | None) -> list[Passages]:
    """Return the passages of `texts`, from memory where they were cut before: the least recently used are forgotten."""
    keys = [(table is not None, text) for text in texts]
    with _lock:
        answer = {key: _remembered[key] for key in keys if key in _remembered}
        for key in answer:
            _remembered.move_to_end(key)
    fresh = [key for key in dict.fromkeys(keys) if key not in answer]
    answer |= zip(fresh, cut([text for _, text in fresh], table), strict=True)
    with _lock:
        for key in fresh:
            # Another thread may have cut the same text meanwhile.
            _remembered.size += _size(answer[key]) - (_size(_remembered[key]) if key in _remembered else 0)
            _remembered[key] = answer[key]
        while _remembered.size > REMEMBERED:
            _remembered.size -= _size(_remembered.popitem(last=False)[1])
    return [answer[key] for key in keys]


def _size(passages: Passages) -> int:
    return sum(column.nbytes for column in passages)
