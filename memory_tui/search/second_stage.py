"""The second stage looks into the first candidates: at their lines, windows and letters. By that it tells their score,
and whether the notes hold what was asked.

A chunk of 400 tokens is a coarse unit: one line that answers is drowned by twenty that do not. So the first candidates
of a ranking are measured again: by the words of their best line, by the meaning of their best window, by the trigrams
they share with the question, which find compounds, inflections, misspellings, and by how much of the question a window
holds, where a word that is missing counts as much as the nearest one is like it. Each measure is divided by the best
among those candidates (max-norm), weighted, added up. A candidate beside a better one of the same note answers with
nearly the same text, and loses a little.

Passages follow Callan (1994), bm25 Robertson and Zaragoza (2009) with Lucene's idf, trigrams McNamee and Mayfield
(2004), variety Carbonell and Goldstein (1998).
"""

from __future__ import annotations

import math
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import accumulate, chain, compress, pairwise
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui import tokens
from memory_tui.errors import ProviderError
from memory_tui.providers.builtin import REMEMBERED_CHARACTERS, StaticTable, static_table
from memory_tui.search.corpus import one_blas_thread, places_in
from memory_tui.search.keyword import lucene_idf, okapi_bm25
from memory_tui.search.trace import Flags, Floats, Rows, Table
from memory_tui.workspace.notes import heading_on

Integers = npt.NDArray[np.integer[Any]]
CANDIDATES = 20
"""How many of the first candidates are looked into; more give no better answers (FAQs, chats, German XQuAD)."""


# --- passages -------------------------------------------------------------------------------------------------------

WINDOW = 100
"""Words of a window, which holds whole lines; a longer line is a window of its own. With 130 chats lose .008 of nDCG,
with 70 more of the FAQs and of MemoryBank is doubted."""
REMEMBERED = 2_000
"""Texts whose passages are remembered, about 6 KB each: those of a hundred different questions."""

Codes = npt.NDArray[np.unsignedinteger[Any]]
Number = TypeVar("Number", bound=np.generic)


class Passages(NamedTuple):
    """One text, or several one behind the other, cut into lines and windows of whole lines.

    `lines` holds the 0-based number of each line that is not blank. `stems` and `ids`, the tokens, stand line by line:
    `stem_counts[i]` and `id_counts[i]` of them are of line i. Window j begins at line `window_from[j]`. `line_norm` and
    `window_norm` are the lengths of their summed token vectors, 0 without a table. `letters` are the characters that
    trigrams are cut from, `letter_counts[i]` of them of line i. Line i stands `under[i]` lines below its heading: 0 is
    a heading itself, -1 a line under none.
    """

    lines: Rows
    window_from: Rows
    stems: Rows
    stem_counts: Rows
    ids: npt.NDArray[np.int32]
    id_counts: Rows
    line_norm: Floats
    window_norm: Floats
    letters: Codes
    letter_counts: Rows
    under: Rows


class Joined(NamedTuple):
    """The passages of some texts one behind the other, and where lines, windows and letters of each begin or end."""

    passages: Passages
    lines_from: Rows
    windows_from: Rows
    letter_ends: Rows


def joined(texts: Sequence[Passages]) -> Joined:
    """Put the passages of some texts one behind the other, to be measured at once."""
    lines_from = _bounds([len(item.lines) for item in texts])
    windows_from = _bounds([len(item.window_norm) for item in texts])
    whole = Passages(*(np.concatenate(column) for column in zip(*texts, strict=True)))
    # Windows begin at lines of their own text, which begins at one of `lines_from`.
    whole = whole._replace(window_from=whole.window_from + np.repeat(lines_from[:-1], np.diff(windows_from)))
    return Joined(whole, lines_from, windows_from, np.cumsum([len(item.letters) for item in texts]))


def stem_counts(keys: Rows, passages: Passages) -> Floats:
    """Return how often each of `keys`, which are hashes of stems, stands in each line: (keys, lines).

    A match has a place in the flat table of (keys, stems), which tells its key and its stem, and so its line.
    """
    count = len(passages.stem_counts)
    at, there = np.divmod(np.flatnonzero(passages.stems == keys[:, None]), max(1, len(passages.stems)))
    lines = np.searchsorted(np.cumsum(passages.stem_counts), there, side="right")
    # Counted by their place in another flat table, that of (keys, lines).
    return np.bincount(at * count + lines, minlength=len(keys) * count).reshape(len(keys), count).astype(np.float64)


# --- letters -------------------------------------------------------------------------------------------------------

# Everything but letters, figures and line ends becomes a space; bytes from 128 on never occur in ASCII.
_ASCII_APART = bytes(at if chr(at).isalnum() or chr(at) == "\n" else 32 for at in range(128)).ljust(256)
_CJK_FROM = 0x2E80
_SHIFT = 21
"""Bits of a character in the key of a trigram."""
_SIEVE = 4096
"""Slots of the table by which most trigrams of a text are passed over; a power of two."""


def _codes_of(text: str, lines: Iterable[int]) -> tuple[Codes, Rows]:
    """Return the characters of `tokens.letters_of(text)`, and how many of them each of `lines` has, its space included.

    One byte a character in ASCII, else four.
    """
    plain = text.isascii()
    spelled = text.lower().encode().translate(_ASCII_APART).decode() if plain else tokens.APART.sub(" ", text.lower())
    rows = spelled.split("\n")
    cut = [" ".join(rows[at].split()) for at in lines]
    whole = f" {' '.join(filter(None, cut))} "
    encoding, width = ("ascii", "u1") if plain else ("utf-32-le", "<u4")
    codes = np.frombuffer(whole.encode(encoding, "surrogatepass"), width)
    counts = np.array([len(part) + 1 if part else 0 for part in cut], np.int64)
    # What no line accounts for is the space before all of them, two in a text without a letter: of the first line.
    counts[0] += len(codes) - int(counts.sum())
    return codes, counts


def grams_of(word: str) -> set[int]:
    """Return the keys of the trigrams of `word`, with a space at each end of a word that has ends.

    A pair of Chinese characters, which is shorter than a trigram, stands for itself.
    """
    codes = [*map(ord, word.lower() if tokens.is_cjk(word) else tokens.letters_of(word))]
    grams = zip(codes, codes[1:], codes[2:], strict=False) if len(codes) > 2 else [codes]
    return {reduce(lambda key, code: key << _SHIFT | code, gram) for gram in grams}


def gram_places(keys: Rows, letters: Codes) -> tuple[Rows, Rows]:
    """Return which trigrams of `keys`, which rise, stand in `letters`, and where each of them begins."""

    # A trigram's key is its three characters, _SHIFT bits each.
    def mixed(a: Integers, b: Integers, c: Integers) -> Integers:
        """Return the slots of trigrams, each made of the low bits of all three characters."""
        return (a << 4 ^ b << 2 ^ c) & (_SIEVE - 1)

    # The key is made only where the slot is one of a key that is looked for, which few are.
    may_be = np.zeros(_SIEVE, np.bool_)
    may_be[mixed(*(keys >> shift & (1 << _SHIFT) - 1 for shift in (2 * _SHIFT, _SHIFT, 0)))] = True
    low = letters.astype(np.uint16)
    places = np.flatnonzero(may_be.take(mixed(low[:-2], low[1:-1], low[2:])))
    first, second, third = (letters[places + offset].astype(np.int64) for offset in range(3))
    grams, there = places_in(keys, first << 2 * _SHIFT | second << _SHIFT | third)
    return grams, places[there]


def gram_counts(keys: Rows, grams: tuple[Rows, Rows], texts: Joined) -> Floats:
    """Return counts of (keys, texts): how often each trigram of `keys`, which rise, stands in each text.

    `grams` are the places of `gram_places` in the letters of all texts; no key holds the two spaces where texts meet.
    Chinese characters and pairs of them count too: their keys are shorter.
    """
    numbers, places = grams
    ends, size = texts.letter_ends, (len(keys), len(texts.letter_ends))
    # Each match as its place in the flat table of (keys, texts).
    flat = numbers * len(ends) + np.searchsorted(ends, places, side="right")
    counts = np.bincount(flat, minlength=len(keys) * len(ends)).reshape(size).astype(np.float64)
    # Keys of one or two characters, which no trigram has.
    short = np.flatnonzero(keys < 1 << 2 * _SHIFT).tolist()
    if not short:
        return counts
    codes = texts.passages.letters.astype(np.int64)
    is_cjk = codes >= _CJK_FROM
    pairs = np.where(is_cjk[:-1] & is_cjk[1:], codes[:-1] << _SHIFT | codes[1:], -1)
    for number in short:
        is_pair = keys[number] >= 1 << _SHIFT
        there = np.flatnonzero(pairs == keys[number] if is_pair else is_cjk & (codes == keys[number]))
        counts[number] = np.bincount(np.searchsorted(ends, there, side="right"), minlength=len(ends))
    return counts


def spelled_alike(words: Flags, grams: tuple[Rows, Rows], passages: Passages) -> Floats:
    """Return what each word shares with the word of each window that is spelled most alike: (words, windows).

    That is Dice's coefficient of their trigrams, 0 below LEAST_ALIKE. `words` are (words, trigrams): which trigrams
    each has, none for a pair of characters, which is like nothing.
    """
    numbers, places = grams
    # A word begins behind each space. Where two texts meet two spaces follow one another, with a word of no letter
    # between them.
    begins = np.flatnonzero(passages.letters == ord(" ")) + 1
    lengths = np.diff(begins) - 1
    # A trigram may begin with the space before its word.
    word_at = np.searchsorted(begins, places + 2, side="right") - 1
    of_asked, there = np.divmod(np.flatnonzero(words[:, numbers]), max(1, len(numbers)))
    # Each match as its place in the flat table of (words asked, words of the texts). These rise: words one after the
    # other, and places as the letters stand. So equal ones stand together, and their number is what is shared.
    pairs = of_asked * len(lengths) + word_at[there]
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    shared = np.diff(first, append=len(pairs))
    asked, word = np.divmod(pairs[first], len(lengths))
    dice = np.minimum(2.0 * shared / np.maximum(words.sum(axis=1)[asked] + lengths[word], 1), 1.0)
    near = dice >= LEAST_ALIKE
    # Where the letters of each window begin.
    starts = _bounds(passages.letter_counts)[passages.window_from]
    windows = np.searchsorted(starts, begins[word[near]], side="right") - 1
    alike = np.zeros((len(words), len(starts)))
    np.maximum.at(alike, (asked[near], windows), dice[near])
    return alike


# --- cutting -------------------------------------------------------------------------------------------------------


def _hashes(words: list[str]) -> list[tuple[int, ...]]:
    """Return for each of `words` the hashes of its stems."""
    spelled = [tokens.segmented(word) for word in words]
    # FTS5 cuts all of them in one call, which takes as long as a dozen words do.
    # In bytes, where each word ends with the line feed behind it.
    ends = np.cumsum([len(word.encode("utf-8", "replace")) + 1 for word in spelled])
    cut_at = tokens.spans("\n".join(spelled))
    numbers = np.searchsorted(ends, [start for start, _, _ in cut_at], side="right").tolist()
    stems: list[list[int]] = [[] for _ in words]
    for (_, _, stem), number in zip(cut_at, numbers, strict=True):
        stems[number].append(hash(stem))
    return list(map(tuple, stems))


class _Words:
    """The stems and the token ids of words by number: each word is cut once, because neither reaches over a space."""

    def __init__(self, table: StaticTable | None) -> None:
        self._table, self._lock = table, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        """Begin anew, with the line end alone: number 0, which has neither stems nor ids."""
        self._numbers = {"\n": 0}
        self._characters = 0
        self._cuts = [(np.empty(0, np.int64), np.zeros(2, np.int64))] * 2
        """Of stems and of ids all numbers, and where those of each word begin; behind what is used there is room."""

    def of(self, text: str) -> list[tuple[Rows, Rows]]:
        """Return the stems of `text`, and its ids, each with how many are of each line."""
        words = text.replace("\t", " ").replace("\r", " ").replace("\n", " \n ").split(" ")
        with self._lock:
            if self._characters > REMEMBERED_CHARACTERS:
                self._forget()
            if fresh := [*set(words).difference(self._numbers)]:
                self._learn(fresh)
            places = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
            cuts = self._cuts
        # A line ends at word number 0, which has no stem: so it may as well begin the next line.
        lines = np.append(0, np.flatnonzero(places == 0))
        result = []
        for numbers, starts in cuts:
            counts = starts[places + 1] - starts[places]
            # The stems (or ids) of word i stand in `numbers` from starts[i] to starts[i + 1]. `at` are the places of
            # those of all words of the text, one behind the other: what `arange` counts on through the text, moved for
            # each word to where its own begin.
            at = np.repeat(starts[places + 1] - np.cumsum(counts), counts) + np.arange(counts.sum())
            result.append((numbers[at], np.add.reduceat(counts, lines)))
        return result

    def _learn(self, fresh: list[str]) -> None:
        """Cut words that are new."""
        known = len(self._numbers)
        ids = self._table.word_ids(fresh) if self._table else [()] * len(fresh)
        cuts = []
        for (numbers, starts), by_word in zip(self._cuts, (_hashes(fresh), ids), strict=True):
            used = int(starts[known])
            ends = used + np.cumsum([len(of_word) for of_word in by_word])
            numbers = _with(numbers, used, np.fromiter(chain.from_iterable(by_word), np.int64))
            cuts.append((numbers, _with(starts, known + 1, ends)))
        self._cuts = cuts
        self._numbers.update(zip(fresh, range(known, known + len(fresh)), strict=True))
        self._characters += sum(map(len, fresh))


def _with(values: Rows, used: int, more: Rows) -> Rows:
    """Return `values`, of which so many are `used`, with `more` behind them: in place where there is room.

    Who reads them meanwhile looks at what was used.
    """
    if used + len(more) > len(values):
        values = np.append(values[:used], np.zeros(used + len(more), np.int64))
    values[used : used + len(more)] = more
    return values


_words = cache(_Words)


def cut(texts: Sequence[str], table: StaticTable | None, window: int = WINDOW) -> list[Passages]:
    """Cut each of `texts` into passages; without a `table` they have no meaning. A blank text is one empty line.

    All of them at once, because numpy takes its time for each call.
    """
    if not texts:
        return []
    rows = [text.split("\n") for text in texts]
    lines = [[number for number, line in enumerate(of_text) if line.strip()] or [0] for of_text in rows]
    firsts = accumulate(map(len, rows), initial=0)
    # The numbers of the lines that are not blank, counted through all texts. Blank ones have no token: to leave out
    # their counts is enough, and all tokens stay one behind the other.
    filled = [first + number for first, of_text in zip(firsts, lines, strict=False) for number in of_text]
    # Of stems and of ids: those of all texts, and how many each line has.
    of_lines = _words(table).of("\n".join(texts))
    (stems, stem_counts), (ids, id_counts) = ((numbers, counts[filled]) for numbers, counts in of_lines)
    stems_from, ids_from = _bounds(stem_counts), _bounds(id_counts)
    lines_from = _bounds(list(map(len, lines)))
    # Of each text the first line of each window; below, `window_starts` counts lines through all texts.
    windows = [_windows(counts.tolist(), window) for counts in _parts(stem_counts, lines_from)]
    windows_from = _bounds(list(map(len, windows)))
    # The sum of the token vectors of each line.
    with one_blas_thread():
        sums = table.sums(ids, ids_from) if table is not None else np.zeros((len(filled), 1), np.float32)
    window_starts = np.concatenate(windows) + np.repeat(lines_from[:-1], np.diff(windows_from))
    line_norm, window_norm = (
        np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        for vectors in (sums, np.add.reduceat(sums, window_starts, axis=0))
    )
    # In the order of the fields of Passages, each with where those of each text begin.
    columns = (
        *((stems, stems_from[lines_from]), (stem_counts, lines_from)),
        *((ids.astype(np.int32), ids_from[lines_from]), (id_counts, lines_from)),
        *((line_norm, lines_from), (window_norm, windows_from)),
    )
    parts = (_parts(column, bounds) for column, bounds in columns)
    result = []
    for text, of_text, numbers, *cut_columns in zip(texts, rows, lines, windows, *parts, strict=True):
        under = _under([of_text[number] for number in numbers])
        result.append(Passages._make([np.array(numbers, np.int64), *cut_columns, *_codes_of(text, numbers), under]))
    return result


def _bounds(counts: Sequence[int] | Rows) -> Rows:
    """Return where each of some groups begins that stand one behind the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _parts(column: npt.NDArray[Number], bounds: Rows) -> list[npt.NDArray[Number]]:
    """Return copies of `column` from each of `bounds` to the next: what is remembered must not hold all of it."""
    return [column[first:last].copy() for first, last in pairwise(bounds.tolist())]


def _windows(counts: Sequence[int], most: int) -> Rows:
    """Return the first line of each window: lines that have `counts` of words fill one up to `most`."""
    starts, used = [0], 0
    for at, count in enumerate(counts):
        if used and used + count > most:
            starts.append(at)
            used = 0
        used += count
    return np.array(starts, np.int64)


def _under(lines: Sequence[str]) -> Rows:
    """Return how many lines below its heading each line stands: 0 for a heading, -1 for a line under none."""
    numbers = np.arange(len(lines))
    is_heading = ["#" in line and heading_on(line) is not None for line in lines]
    # Of each line the number of the last heading up to it.
    last_heading = np.maximum.accumulate(np.where(is_heading, numbers, -1))
    return np.where(last_heading < 0, -1, numbers - last_heading)


_remembered, _lock = OrderedDict[tuple[bool, str], Passages](), threading.Lock()


def passages_of(texts: Sequence[str], table: StaticTable | None) -> list[Passages]:
    """Return the passages of `texts`, from memory where they were cut before: the least recently used are forgotten."""
    keys = [(table is not None, text) for text in texts]
    with _lock:
        answer = {key: _remembered[key] for key in keys if key in _remembered}
    fresh = [key for key in dict.fromkeys(keys) if key not in answer]
    answer |= zip(fresh, cut([text for _, text in fresh], table), strict=True)
    with _lock:
        for key, passages in answer.items():
            _remembered[key] = passages
            _remembered.move_to_end(key)
        while len(_remembered) > REMEMBERED:
            _remembered.popitem(last=False)
    return [answer[key] for key in keys]


# --- the weight of words ---------------------------------------------------------------------------------------------

# Something is always nearest, so a score that is relative to the best hit says nothing of a question that no note
# answers. What does: the share of the question that one window holds, in its words or in like ones, each word weighed
# by how rare it is. A word that the built-in table knows whole weighs by its rarity in the language, and is like
# another by their cosine; any other word weighs by its rarity in the notes, and is like one that has the same letters.
# Of Chinese, Japanese and Korean pairs of characters are words, of Vietnamese pairs of syllables. Where the table knows
# the words, a window that is far in meaning holds less. No score and no knob of the ranking changes the level.

SYLLABIC = 0.9
"""How much of such a pair that of two syllables is: more of them are of common words (Vietnamese XQuAD)."""
KANA = 0.7
"""How much of a pair of characters one in a Japanese question is: more of them hold sentences together (JSQuAD by
whole articles, JaQuAD)."""
LACKING = 0.5
"""The weight of words of which a window has nothing, and of half a word more, from which on it answers in part: so are
8 to 26 % of right answers, and 42 % and more of the wrong ones that are found (XQuAD, MemoryBank, FriendsQA, FAQs)."""
LIKE = 0.6
"""From this on a word of a window is as good as one that was asked (XQuAD, MemoryBank, FriendsQA, FAQs)."""
FUNCTION_PAIRS = 1.0, 0.7, 0.4
"""What a pair weighs with none, one or two characters or syllables that hold sentences together (Chinese XQuAD)."""
_FUNCTION_CHARACTERS = frozenset(
    "我你您他她它们的了着过得地吗呢吧啊是有在被把给让用到去来做说想要能会可以和与或但因为所如果也都就还又再才只什么哪个些怎样多少几谁何时候"
    "年月日天这那一不上下里中曾经对从向于之其此为以及并名字叫次"
)
_HIRAGANA = range(0x3040, 0x30A0)
_JAPANESE = re.compile("[\u3040-\u30ff]")


def pair_weight(pair: str) -> float:
    """Return what a pair of characters weighs beside one that holds no sentence together."""
    return FUNCTION_PAIRS[sum(c in _FUNCTION_CHARACTERS or ord(c) in _HIRAGANA for c in pair)]


MEANING = 0.5
"""How much of what the table knows a window loses that is as far as can be in meaning (chats, FriendsQA, FAQs)."""


class AnswerSignals(Struct, frozen=True):
    """What the best window of the first candidates has of a question.

    It holds the share `held` of the question's weight. Of that weight, `known` is the share of words that the table
    knows whole, `pairs` that of pairs of characters. `cosine` is that of the nearest window, None where no meaning was
    compared. Where it holds the words `has` alone, and nothing like the others, which weigh much, those are what it
    `lacks`; else both are empty.
    """

    held: float
    known: float
    pairs: float
    cosine: float | None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Return what counts: the share that is held, less what the nearest window lacks in meaning; never below 0."""
        return max(0.0, self.held - (0.0 if self.cosine is None else MEANING * self.known * (1.0 - self.cosine)))


# --- measures -------------------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """One way of looking into a chunk: its name, its weight among the measures, and what it goes by."""

    name: str
    weight: float
    by: Literal["words", "meaning"]


MEASURES = (
    Measure("line words", 0.10, "words"),
    Measure("window meaning", 0.15, "meaning"),
    Measure("letters", 0.15, "words"),
    Measure("like words", 0.20, "words"),
)
"""A fifth more or less of one weight costs at most .005 of nDCG (FAQs, chats, MemoryBank)."""
LEAST_ALIKE = 0.5
"""Less alike in their letters are words that have nothing to do with each other (German and Russian XQuAD)."""
LEFT_OUT = 0.4
"""How much a word that the search leaves out counts in a line, beside one that is searched (FAQs, chats; .3 to .6
alike, there and on MemoryBank, XQuAD and FriendsQA). "She" in a line tells who is spoken of, although no note is found
by it."""
ABOVE = 0.5
"""How much of its idf a word counts in a line whose heading alone holds it (FAQs, chats, the sample)."""
_COMMONEST = 995
"""Before it the vocabulary of BERT holds single characters; behind it words, the most frequent first."""
_ZIPF, _RAREST = 2.3, 12.5
"""-ln of the share of the most frequent word, and of a word that the vocabulary does not hold."""


Measured = tuple[list[float], int, list[int]]
"""What a question finds in a text: a value by each measure, the number of its best line, from 0, and the first and last
line of its best window."""


class _Inside(NamedTuple):
    """What a question finds in every line and every window of some texts.

    `lines` and `windows` are bm25, one for each line or window, and so are the cosines. `held` is the share of the
    question that a window holds or is like, `by_word` (words, windows) how much of each word. `answering` is the bm25
    of lines with the words of their headings. `grams` tell where the trigrams of the question stand.
    """

    lines: Floats
    answering: Floats
    line_cosine: Floats
    windows: Floats
    window_cosine: Floats
    held: Floats
    by_word: Floats
    grams: tuple[Rows, Rows]


class SecondStage:
    """How one question, or a part of it, measures chunks.

    `words` are searched, `left_out` are not and count in lines alone; `frequency` tells in how many of `chunks` each
    stands. Of the `reference`, the texts by row that a ranking without knobs has first, are the idf of trigrams and the
    mean lengths. `meaning` is how much of the question the table knows: at 0 words alone count, as they do where there
    is a `problem` with the table.
    """

    def __init__(
        self,
        query: str,
        *,
        words: Sequence[str],
        left_out: Sequence[str],
        frequency: Mapping[str, int],
        chunks: int,
        reference: Mapping[int, str],
        meaning: float,
    ) -> None:
        self.query = query
        self.problem, self._vocabulary = "", None
        try:
            # Whatever provider the index is made with: it compares lines in microseconds.
            self._vocabulary = static_table()
        except ProviderError as error:
            self.problem = error.message if meaning else ""
        # Here an entry is a stem of the question: its hash in `_keys`, which rise, and in the same order its word, idf,
        # and whether it is a pair of characters. `_share` and `_known`, of `_weigh`, are in that order too.
        by_key = {hash(stem): word for word in words for stem in tokens.word_stems(word)}
        self._keys = np.array(sorted(by_key), np.int64)
        self._words = [by_key[key] for key in self._keys.tolist()]
        self._idf = np.array([lucene_idf(frequency.get(word, 0), chunks) for word in self._words])
        self._pairs = np.array([tokens.is_cjk(word) for word in self._words], np.bool_)
        self._weigh(chunks)
        self._syllables = _syllables_of(query, frequency, chunks)
        # The table knows Chinese characters by hardly more than that they are some: pairs of them have no direction.
        compared = [query, *("" if tokens.is_cjk(word) else word for word in self._words)]
        vectors = self._vocabulary.vectors(compared) if self._vocabulary is not None and meaning else None
        self._vectors = vectors if vectors is not None and vectors[0].any() else None
        """The unit vectors of the question and of each of its words."""
        written = {word for word in tokens.WORD.findall(query.lower()) if not tokens.is_cjk(word)}
        others = {hash(stem) for word in written.intersection(left_out) for stem in tokens.word_stems(word)}
        self._stems = np.concatenate([self._keys, np.array(sorted(others - set(by_key)), np.int64)])
        """The stems of the words, which rise, and those of others behind them."""
        grams = {word: grams_of(word) for word in words}
        # `_grams` are the keys of all trigrams of the words, rising; `_spelled` (words, trigrams) tells which each has.
        self._grams = np.array(sorted(set().union(*grams.values())), np.int64)
        spelled = [set() if tokens.is_cjk(word) else grams[word] for word in self._words]
        marks = np.array([[gram in of_word for gram in self._grams.tolist()] for of_word in spelled], np.bool_)
        self._spelled = marks.reshape(len(spelled), len(self._grams))
        counts = {"words": 1.0 if words else 0.0, "meaning": meaning if self._vectors is not None else 0.0}
        raw = np.array([measure.weight * counts[measure.by] for measure in MEASURES])
        self.weights: Floats = np.asarray(raw / raw.sum() if raw.any() else raw, dtype=np.float64)
        self._reference = reference
        self._remembered = dict[int, Measured]()

    def _weigh(self, chunks: int) -> None:
        """Set `_share`, what each word is of the question, by its rarity in the language, or else in the notes.

        `_known` marks the words whose rarity in the language is known.
        """
        rarity = np.array([self._rarity_of(word) for word in self._words])
        self._known = rarity > 0
        weights = np.array([pair_weight(word) if tokens.is_cjk(word) else 1.0 for word in self._words])
        # A word that no chunk holds weighs as the rarest of the language.
        by_notes = _RAREST * self._idf / lucene_idf(0, chunks) * weights
        share = np.where(self._known, rarity, by_notes)
        # An answer holds what was said, not that it was (MemoryBank, whose doubted fall by a fifth; chats).
        saying = tokens.words_by_use()["says"]["en"].split("|")
        # Of strings numpy's own `isin` would import masked arrays first, for 10 ms.
        says = np.array([word in saying for word in self._words], np.bool_)
        share[says & ~says.all()] = 0.0
        self._share = share / (float(share.sum()) or 1.0)

    def _rarity_of(self, word: str) -> float:
        """Return how rare a word is in the language, up to _RAREST; 0 where the table does not know it as one word.

        In few notes most words are rare; the table's vocabulary, in order of frequency, tells "kohlrabi" from "talk".
        """
        ids = self._vocabulary.ids(word) if self._vocabulary is not None and word.isascii() else ()
        rank = ids[0] - _COMMONEST if len(ids) == 1 else 0
        if rank <= 0:
            return 0.0
        # By Zipf's law the share of a word in texts falls with its rank. Squared, common words weigh less still.
        rarity = min(_RAREST, _ZIPF + math.log(rank))
        return rarity**2 / _RAREST

    def measure(self, rows: Sequence[int], texts: Sequence[str]) -> Floats:
        """Return the measures of the `texts` of `rows`: (rows, measures). What was measured before is remembered.

        The first call measures the reference too, whose means and idf all later ones go by.
        """
        new = {row: text for row, text in zip(rows, texts, strict=True) if row not in self._remembered}
        is_first = not self._remembered
        if is_first:
            new = {**self._reference, **new}
        if new:
            whole = joined(passages_of([*new.values()], self._vocabulary))
            counts = stem_counts(self._stems, whole.passages)
            if is_first:
                self._take_means(whole, counts)
            inside = self._inside(whole.passages, counts)
            grams = gram_counts(self._grams, inside.grams, whole)
            if is_first:
                self._look_at_reference(whole, inside, grams)
            self._remembered.update(zip(new, self._measured(whole, inside, grams), strict=True))
        values = [self._remembered[row][0] for row in rows]
        return np.array(values, dtype=np.float64).reshape(len(rows), len(MEASURES))

    def _take_means(self, whole: Joined, counts: Floats) -> None:
        """Set mean lengths and the idf of words that are not searched, by the reference, which is first in `whole`."""
        count = len(self._reference)
        lines = int(whole.lines_from[count])
        stems = float(whole.passages.stem_counts[:lines].sum())
        # A mean of 0, of texts without any word, would divide by nothing: it is 1.
        self._line_length = stems / max(1, lines) or 1.0
        self._window_length = stems / max(1, int(whole.windows_from[count])) or 1.0
        self._letters_length = float(whole.letter_ends[count - 1]) / count or 1.0
        holding = (counts[len(self._keys) :, :lines] > 0).sum(axis=1).tolist()
        self._others_idf = np.array([LEFT_OUT * lucene_idf(number, lines) for number in holding])

    def _look_at_reference(self, whole: Joined, inside: _Inside, grams: Floats) -> None:
        """Set the idf of trigrams, and what the best window holds, by the reference, which is first in `whole`."""
        count = len(self._reference)
        holding = (grams[:, :count] > 0).sum(axis=1).tolist()
        self._grams_idf = np.array([lucene_idf(number, count) for number in holding])
        known, pairs = (float(self._share[words].sum()) for words in (self._known, self._pairs))
        pairs *= KANA if _JAPANESE.search(self.query) else 1.0
        if len(self._syllables[0]):
            known, pairs = 0.0, SYLLABIC
        windows = int(whole.windows_from[count])
        held, cosine = (float(values[:windows].max(initial=0.0)) for values in (inside.held, inside.window_cosine))
        has = lacks = tuple[str, ...]()
        if held and not pairs:
            best = inside.by_word[:, int(inside.held[:windows].argmax())]
            weighs = self._share > 0
            # What the window lacks, and the weight of half a word more.
            lacking = float(self._share[best < LIKE].sum()) + 0.5 / max(1, int(np.count_nonzero(weighs)))
            if lacking > LACKING:
                has, lacks = (self._as_asked(weighs & flags) for flags in (best >= LIKE, best < LIKE))
        self._signals = AnswerSignals(held, known, pairs, None if self._vectors is None else cosine, has, lacks)

    def _as_asked(self, flags: Flags) -> tuple[str, ...]:
        """Return the marked words in the order in which they stand in the question."""
        return tuple(sorted(compress(self._words, flags), key=lambda word: (self.query.lower().find(word), word)))

    @property
    def signals(self) -> AnswerSignals:
        """Return what the best window of the reference has of the question."""
        # The first call of `measure` looks at the reference, even without texts.
        self.measure((), ())
        return self._signals

    def places(self, row: int, text: str) -> tuple[int, tuple[int, int]]:
        """Return the best line of `row`, whose chunk holds `text`, and the first and last line of its best window."""
        self.measure([row], [text])
        _, line, (first, last) = self._remembered[row]
        return line, (first, last)

    def held_by_lines(self, texts: Sequence[str]) -> Floats:
        """Return what the best line of each of `texts` holds of the words that do not only ask, by their idf."""
        whole = joined(passages_of(texts, self._vocabulary))
        idf = np.where(list(map(tokens.only_asks, self._words)), 0.0, self._idf)
        lines = idf @ (stem_counts(self._keys, whole.passages) > 0)
        return np.asarray(np.maximum.reduceat(lines, whole.lines_from[:-1]), dtype=np.float64)

    def _inside(self, passages: Passages, by_stem: Floats) -> _Inside:
        """Return what the question finds in `passages`; `by_stem` counts stems in lines: (stems, lines)."""
        starts = passages.window_from
        lengths = passages.stem_counts.astype(np.float64)
        # The stems of words that are searched stand before those of others.
        counts, others = np.split(by_stem, [len(self._keys)])
        lines = okapi_bm25(counts, self._idf, lengths, self._line_length)
        lines += okapi_bm25(others, self._others_idf, lengths, self._line_length)
        in_windows = np.add.reduceat(counts, starts, axis=1)
        windows = okapi_bm25(in_windows, self._idf, np.add.reduceat(lengths, starts), self._window_length)
        with one_blas_thread():
            line_cosine, window_cosine, like = self._meaning(passages)
        grams = gram_places(self._grams, passages.letters)
        spelled = spelled_alike(self._spelled, grams, passages)
        alike = np.maximum(like * self._known[:, None], spelled)
        by_word = np.where(in_windows > 0, 1.0, alike)
        held = self._share @ by_word
        # Keys and shares of pairs of syllables: a question of these, as in Vietnamese, is held as far as its pairs are.
        keys, share = self._syllables
        if len(keys):
            pairs, places = places_in(keys, _pair_keys(passages.stems))
            line_of = np.repeat(np.arange(len(lengths)), passages.stem_counts)[places]
            together = np.zeros((len(keys), len(starts)))
            together[pairs, np.searchsorted(starts, line_of, side="right") - 1] = 1.0
            held = share @ together
        # Of each line the counts of its heading's line; a line under none (-1) has its own.
        in_heading = counts[:, np.arange(len(lengths)) - np.maximum(passages.under, 0)] > 0
        answering = lines + ABOVE * self._idf @ ((counts == 0) & in_heading)
        return _Inside(lines, answering, line_cosine, windows, window_cosine, held=held, by_word=by_word, grams=grams)

    def _meaning(self, passages: Passages) -> tuple[Floats, Floats, Floats]:
        """Return the cosine of every line and window with the question, 0 for negative ones and without meaning, and
        the greatest cosine of any token of a window with each word of the question: (words, windows).

        A line is the sum of the vectors of its tokens, and a window the sum of its lines.
        """
        ids, starts = passages.ids, passages.window_from
        if self._vectors is None or self._vocabulary is None or not len(ids):
            count = len(passages.window_norm)
            return np.zeros(len(passages.line_norm)), np.zeros(count), np.zeros((len(self._keys), count))
        # A token stands in many chunks, but is compared once. Both arrays are by token id: whether it stands in these
        # passages, and the column of `products` that is its own.
        stands, place = np.zeros(len(self._vocabulary.q), np.bool_), np.empty(len(self._vocabulary.q), np.int64)
        stands[ids] = True
        used = np.flatnonzero(stands)
        place[used] = np.arange(len(used))
        rows = self._vocabulary.q.take(used, axis=0).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        products = np.zeros((len(self._vectors), len(used) + 1), np.float32)
        # Row 0 is of the question, the others are of its words; a column is of a token in `used`, and one more, of
        # zeros, of no token. Many rows are multiplied by few: the other way round takes BLAS twice the time.
        products[:, :-1] = (rows @ self._vectors.T).T
        # With the question a token counts by its vector, which is `scale` times its row; with a word by its cosine.
        products[0, :-1] *= self._vocabulary.scale[used]
        products[1:, :-1] /= np.where(lengths > 0, lengths, 1.0)
        # Where a line or a window has no token, reduceat gives what stands there: another one's, or the 0 at the end.
        at, bounds = np.append(place[ids], len(used)), _bounds(passages.id_counts)
        dots = np.add.reduceat(products[0][at], bounds[:-1]).astype(np.float64)
        dots[passages.id_counts == 0] = 0.0
        like = np.maximum.reduceat(products[1:].take(at, axis=1), bounds[starts], axis=1).astype(np.float64)
        like[:, np.add.reduceat(passages.id_counts, starts) == 0] = 0.0
        # The sums of lines, and behind them those of windows; so are the lengths below.
        dots = np.append(dots, np.add.reduceat(dots, starts))
        norms = np.append(passages.line_norm, passages.window_norm)
        cosines = np.maximum(np.divide(dots, norms, out=np.zeros(len(dots)), where=norms > 0), 0.0)
        lines, windows = np.split(cosines, [len(passages.line_norm)])
        return lines, windows, np.maximum(like, 0.0)

    def _measured(self, texts: Joined, inside: _Inside, grams: Floats) -> Iterator[Measured]:
        """Return what is remembered of each text, whose trigrams of the question are counted in `grams`."""
        passages, starts = texts.passages, texts.passages.window_from
        by_line, by_window = texts.lines_from[:-1], texts.windows_from[:-1]
        sizes = np.diff(texts.letter_ends, prepend=0).astype(np.float64)
        # In the order of MEASURES.
        values = [
            np.maximum.reduceat(inside.lines, by_line),
            np.maximum.reduceat(inside.window_cosine, by_window),
            okapi_bm25(grams, self._grams_idf, sizes, self._letters_length),
            np.maximum.reduceat(inside.held, by_window),
        ]
        # A heading answers nothing where there is another line: those have its words, and no cosine takes away 2. Less
        # still does a line without a letter, which has none of the characters; a first one has a space.
        dull = np.where(passages.letter_counts < 2, 2, passages.under == 0)
        answering = np.where(dull, 0.0, inside.answering)
        line = best_of_each(answering, inside.line_cosine - 2.0 * dull, texts.lines_from)
        window = best_of_each(inside.windows, inside.window_cosine, texts.windows_from)
        # The last line of each window.
        ends = np.append(starts[1:], len(passages.lines)) - 1
        bounds = passages.lines[np.stack([starts[window], ends[window]], axis=1)]
        return zip(np.stack(values, axis=1).tolist(), passages.lines[line].tolist(), bounds.tolist(), strict=True)


def _pair_keys(stems: Rows) -> Rows:
    """Return a number of each two stems that follow one another."""
    return np.asarray((stems[:-1] * 1_000_003) ^ stems[1:], dtype=np.int64)


def _syllables_of(query: str, frequency: Mapping[str, int], chunks: int) -> tuple[Rows, Floats]:
    """Return the pairs of syllables of `query` as numbers, which rise, and the share of each; none where it has words.

    A syllable of Vietnamese stands in every other note: what was asked are the words, which mostly are two.
    """
    pairs = tokens.syllable_pairs(query)
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0)
    weights = [FUNCTION_PAIRS[sum(word in tokens.stop_words("vi") for word in pair.split())] for pair in pairs]
    share = np.array([lucene_idf(frequency.get(pair, 0), chunks) for pair in pairs]) * np.array(weights)
    # Each syllable counts by its first stem, or as it is without one; the key of a pair is made of both.
    stems = [[hash(next(iter(tokens.word_stems(word)), word)) for word in pair.split()] for pair in pairs]
    keys = np.array([int(_pair_keys(np.array(pair))[0]) for pair in stems], np.int64)
    order = np.argsort(keys)
    return keys[order], (share / (float(share.sum()) or 1.0))[order]


def best_of_each(words: Floats, meaning: Floats, bounds: Rows) -> Rows:
    """Return the passage that answers best among those from each of `bounds` to the next; of equal ones the first.

    Each text has the passages from one of `bounds` to the next. What counts is `words` over the best of the text, plus
    `meaning`, which is a cosine.
    """
    counts, top = np.diff(bounds), np.maximum.reduceat(words, bounds[:-1])
    # Of each passage its words over the best of its text.
    over = np.divide(words, np.repeat(top, counts), out=np.zeros_like(words), where=np.repeat(top > 0, counts))
    over += meaning
    # All that are the best of their text; the first of them from each bound on is taken.
    best = np.flatnonzero(over == np.repeat(np.maximum.reduceat(over, bounds[:-1]), counts))
    return np.asarray(best[np.searchsorted(best, bounds[:-1])], dtype=np.int64)


def shares(values: Floats, inside: Flags) -> Floats:
    """Return `values` (candidates, measures) over the best of those `inside` (rules, candidates), 0 for others.

    The result is (rules, candidates, measures).
    """
    within = np.where(inside[:, :, None], values[None, :, :], 0.0)
    best = within.max(axis=1, initial=0.0)[:, None, :]
    return np.asarray(np.divide(within, best, out=np.zeros_like(within), where=best > 0), dtype=np.float64)


def spread(scores: Floats, order: Rows, table: Table, penalty: Floats) -> tuple[Floats, Rows]:
    """Return what neighbours of better candidates lose, and the better one of each (-1 for none).

    Both are (rules, candidates). `order` (rules, k) are the candidates that are looked at; those that touch or overlap
    in one note by the `table` are neighbours; `penalty` is (rules, 1). From the best down, each takes the
    penalty off its neighbours, which lose it once; no score falls below 0. Of equal ones the earlier is first.
    """
    lost, twin = np.zeros_like(scores), np.full(scores.shape, -1, dtype=np.int64)
    first, last, file = (table[name][order] for name in ("first_line", "last_line", "file"))
    # Of each rule, whether one begins at the latest on the line behind the end of another; both ways they touch.
    follows = first[:, :, None] <= last[:, None, :] + 1
    near = follows & follows.swapaxes(1, 2) & (file[:, :, None] == file[:, None, :])
    near &= ~np.eye(order.shape[1], dtype=np.bool_)
    if not near.any():
        return lost, twin
    rules, raw = np.arange(len(scores)), np.take_along_axis(scores, order, axis=1)
    # `value` falls as points are taken off, `of` is the better one that took them (-1: none), and `waiting` are those
    # whose turn to take has not come. The best of these is picked by all rules at once.
    value, of = raw.copy(), np.full(order.shape, -1, dtype=np.int64)
    waiting = np.asarray(near.any(axis=2))
    most = np.minimum(penalty, np.maximum(raw, 0.0))
    while waiting.any():
        pick = np.argmax(np.where(waiting, value, -np.inf), axis=1)
        waiting[rules, pick] = False
        hit = near[rules, pick] & waiting & (of < 0)
        of = np.where(hit, order[rules, pick][:, None], of)
        value = np.where(hit, raw - most, value)
    np.put_along_axis(lost, order, np.where(of >= 0, most, 0.0), axis=1)
    np.put_along_axis(twin, order, of, axis=1)
    return lost, twin
