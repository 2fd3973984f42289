"""Passages are what a chunk is made of. They are its lines, windows of whole lines, and its letters.

They are cut once for each text and remembered, as arrays, so that a question is compared with thirty chunks at once.
"""

from __future__ import annotations

import functools
import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from memory_tui.core import tokens
from memory_tui.core.spelling import ENGLISH, GERMAN
from memory_tui.search.formulas import Floats

WINDOW = 100
"""Words of a window, which holds whole lines; a longer line is a window of its own."""
REMEMBERED = 12_000_000
"""Bytes of the passages that are remembered, about 6 KB a text: those of a few hundred different questions."""

Ids = npt.NDArray[np.int64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Small = npt.NDArray[np.signedinteger[Any]]


class TokenTable(Protocol):
    """A static table of token vectors, as the built-in provider has: a text means the sum of its tokens."""

    def __hash__(self) -> int: ...

    def ids(self, text: str) -> Sequence[int]:
        """The token ids of `text`."""

    def line_ids(self, text: str) -> Sequence[int]:
        """The token ids of `text`, with END_OF_LINE where one is."""

    def word_ids(self, words: Sequence[str]) -> Sequence[Sequence[int]]:
        """The token ids of each of `words`, none of which holds a space."""

    def sums(self, ids: Ids, bounds: Ids) -> npt.NDArray[np.float32]:
        """The summed vectors of `ids` from each of `bounds` to the next, float32 (len(bounds) - 1, dimensions)."""

    def rows(self, ids: Ids) -> npt.NDArray[np.float32]:
        """The vectors of `ids`, float32 (n, dimensions)."""


class Passages(Struct, frozen=True):
    """A text cut into lines and windows of whole lines.

    `lines` holds the 0-based number of each line that is not blank. `stems` and `ids`, the tokens, stand line by line:
    `stem_counts[i]` and `id_counts[i]` of them are of line i. Window j is made of the lines from `window_from[j]` to
    the one before `window_from[j + 1]`. `line_norm` and `window_norm` are the lengths of their summed token vectors, 0
    without a table. `letters` are the characters that trigrams are cut from.
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

    @property
    def size(self) -> int:
        """Bytes that its arrays take."""
        return sum(getattr(self, name).nbytes for name in self.__struct_fields__)


def stem_keys(stems: Sequence[str]) -> Ids:
    """One number for each of `stems`, the same as long as the process lives; of 64 bits, so that none meet."""
    return np.fromiter(map(hash, stems), np.int64, len(stems))


_IRREGULAR = """
become became, begin began begun, bite bit bitten, blow blew blown, break broke broken, bring brought, build built,
buy bought, catch caught, child children, choose chose chosen, come came, deal dealt, dig dug, draw drew drawn, drink
drank drunk, drive drove driven, eat eaten, fall fell fallen, feed fed, feel felt, fight fought, find found, flee
fled, fly flew flown, foot feet, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got
gotten, give gave given, go goes went gone, grow grew grown, hang hung, hear heard, hold held, keep kept, know knew
known, lead led, leave left, lend lent, lose lost, make made, man men, mean meant, meet met, mouse mice, pay paid,
ride rode ridden, ring rang rung, run ran, say said, see saw seen, seek sought, sell sold, send sent, shake shook
shaken, shoot shot, show shown, sing sang sung, sink sank sunk, sit sat, sleep slept, slide slid, speak spoke spoken,
spend spent, spin spun, stand stood, steal stole stolen, stick stuck, strike struck, swear swore sworn, sweep swept,
swim swam swum, swing swung, take took taken, teach taught, tear tore torn, tell told, think thought, throw threw
thrown, tooth teeth, understand understood, wake woke woken, wear wore worn, weep wept, win won, woman women, write
wrote written
"""
"""English words whose forms share no stem, the word first; without those that are more often another word ("rose")."""


def _irregular() -> dict[str, str]:
    every = [tokens.tokens(group, stemmed=True) for group in _IRREGULAR.split(",")]
    return {form: word for word, *forms in every for form in forms}


IRREGULAR = _irregular()
"""The stem of an English word by that of each form that has another one."""


def stems_in(text: str) -> list[str]:
    """The stems of a text as full-text search sees them, but those of irregular forms are those of their words."""
    return [IRREGULAR.get(stem, stem) for stem in tokens.tokens(text, stemmed=True)]


def stems_of(word: str) -> list[str]:
    """The stems by which a word of a question is looked for; a pair of Chinese characters is one as it stands."""
    return [word] if tokens.is_cjk(word) else stems_in(word)


class _Parts(Struct, frozen=True):
    """What `count` words are cut into, one word behind the other: word i has `values[ends[i]:ends[i + 1]]`.

    Behind them both arrays may have room.
    """

    values: Ids
    ends: Ids
    count: int

    def followed_by(self, more: _Parts) -> _Parts:
        """These, and `more`, in arrays of their own with room for as many again."""
        words, parts = self.count + more.count, int(self.ends[self.count] + more.ends[more.count])
        values, ends = np.empty(2 * parts, np.int64), np.empty(2 * words + 1, np.int64)
        values[: self.ends[self.count]] = self.values[: self.ends[self.count]]
        ends[: self.count + 1] = self.ends[: self.count + 1]
        return _Parts(values, ends, self.count).grown(more)

    def grown(self, more: _Parts) -> _Parts:
        """These, and `more`, in the same arrays where they have room; once, because a second time overwrites it."""
        words, old = self.count + more.count, int(self.ends[self.count])
        new = old + int(more.ends[more.count])
        if words >= len(self.ends) or new > len(self.values):
            return self.followed_by(more)
        self.values[old:new] = more.values[: new - old]
        self.ends[self.count + 1 : words + 1] = more.ends[1 : more.count + 1] + old
        return _Parts(self.values, self.ends, words)

    def spread(self, words: Ids) -> tuple[Ids, Ids]:
        """The parts of `words` in their order, and where each word begins among them, with the end."""
        first, counts = self.ends[words], self.ends[words + 1] - self.ends[words]
        begins = np.concatenate([[0], np.cumsum(counts)])
        return self.values[np.repeat(first - begins[:-1], counts) + np.arange(begins[-1])], begins


_NOTHING = _Parts(np.zeros(0, np.int64), np.zeros(2, np.int64), 1)
"""One word without parts."""


class _Vocabulary(Struct):
    """The numbers of words, and the stems and tokens of all words in that order; a line end is word 0, of no parts."""

    numbers: dict[str, int] = field(default_factory=lambda: {"\n": 0})
    stems: _Parts = _NOTHING
    ids: _Parts = _NOTHING


class _Words:
    """Stems and tokens of texts. They are put together from those of their words, most of which are cut once.

    Neither a token of FTS5 nor one of BERT reaches over a space. Safe to call from several threads: numbers stay what
    they are, and a full memory is replaced, not emptied.
    """

    def __init__(self, table: TokenTable | None) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._known = _Vocabulary()
        self._characters = 0

    def of(self, text: str) -> tuple[tuple[Ids, Ids], tuple[Ids, Ids]]:
        """The stems and the token ids of `text`, each with where its lines begin among them."""
        words = text.replace("\t", " ").replace("\r", " ").replace("\n", " \n ").split(" ")
        known = self._known
        found = np.fromiter(map(known.numbers.get, words, itertools.repeat(-1)), np.int64, len(words))
        absent = np.flatnonzero(found < 0)
        # Who knows a number finds its parts: they are there first.
        stems, ids = self._with_new(known, words, found, absent) if len(absent) else (known.stems, known.ids)
        lines = np.concatenate([[0], np.flatnonzero(found == 0)])
        (stem, stem_from), (token, id_from) = stems.spread(found), ids.spread(found)
        return (stem, stem_from[lines]), (token, id_from[lines])

    def _with_new(self, known: _Vocabulary, words: Sequence[str], found: Ids, absent: Ids) -> tuple[_Parts, _Parts]:
        """The parts of all words, after the words at `absent` have got their numbers in `found`; long ones are not
        remembered.
        """
        numbers = known.numbers
        wanted = [words[at] for at in absent.tolist()]
        with self._lock:
            # Another thread may have cut some of them meanwhile.
            new = [word for word in dict.fromkeys(wanted) if word not in numbers]
            short = [word for word in new if len(word) <= tokens.LONGEST_REMEMBERED]
            more_stems, more_ids = self._cut(short)
            known.stems = stems = known.stems.grown(more_stems)
            known.ids = ids = known.ids.grown(more_ids)
            numbers.update(zip(short, itertools.count(len(numbers))))
            self._characters += sum(map(len, short))
            if self._characters > tokens.REMEMBERED_CHARACTERS:
                self._forget()
        long = [word for word in new if len(word) > tokens.LONGEST_REMEMBERED]
        here = dict(zip(long, itertools.count(stems.count)))
        if long:
            more_stems, more_ids = self._cut(long)
            stems, ids = stems.followed_by(more_stems), ids.followed_by(more_ids)
        found[absent] = [here[word] if word in here else numbers[word] for word in wanted]
        return stems, ids

    def _cut(self, words: Sequence[str]) -> tuple[_Parts, _Parts]:
        stems = _stems_of_each(words)
        if self._table is None or not words:
            return stems, _Parts(np.zeros(0, np.int64), np.zeros(len(words) + 1, np.int64), len(words))
        found = self._table.word_ids(words)
        ends = np.array([0, *itertools.accumulate(map(len, found))], np.int64)
        return stems, _Parts(
            np.fromiter(itertools.chain.from_iterable(found), np.int64, int(ends[-1])), ends, len(words)
        )


def _stems_of_each(words: Sequence[str]) -> _Parts:
    """The keys of the stems of `words`, cut in one call, which takes as long as a dozen words do."""
    spelled = words if (plain := "".join(words).isascii()) else list(map(tokens.segmented, words))
    found = tokens.stems("\n".join(spelled))
    # Where each word begins among the bytes, a line end behind each.
    lengths = map(len, spelled if plain else (word.encode("utf-8", "replace") for word in spelled))
    bounds = np.cumsum([0, *(length + 1 for length in lengths)])
    starts = np.fromiter((start for _, start, _ in found), np.int64, len(found))
    stems = [IRREGULAR.get(stem, stem) for stem, _, _ in found]
    return _Parts(stem_keys(stems), np.searchsorted(starts, bounds), len(words))


@functools.lru_cache(maxsize=2)
def _words(table: TokenTable | None) -> _Words:
    return _Words(table)


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


def grams_of(words: Sequence[str]) -> Ids:
    """The keys of the trigrams of `words`, rising."""
    return np.array(sorted({gram_key(gram) for word in words for gram in word_grams(word.lower())}), dtype=np.int64)


def pairs_beside(query: str, words: Sequence[str]) -> list[str]:
    """Each two of `words` that stand beside each other in `query`.

    Their trigrams hold the space between them, so that what is written in the same order tells more.
    """
    every, asked = letters_of(query).split(), {word.lower() for word in words}
    return [f"{a} {b}" for a, b in itertools.pairwise(every) if a in asked and b in asked]


_ASCII_APART = bytes(at if chr(at).isalnum() else 32 for at in range(128)).ljust(256)


def _letter_codes(text: str) -> Codes:
    """The characters of `letters_of(text)`."""
    if text.isascii():
        words = text.lower().encode().translate(_ASCII_APART).split()
        return np.frombuffer(b" %b " % b" ".join(words), np.uint8)
    return np.frombuffer(letters_of(text).encode("utf-32-le", "surrogatepass"), dtype="<u4")


def gram_counts(wanted: Ids, texts: Sequence[Codes]) -> Floats:
    """How often each of the `wanted` keys, which rise, stands among the trigrams of each text: (wanted, texts).

    Chinese characters and pairs of them count as trigrams too.
    """
    found = np.zeros((len(wanted), len(texts)))
    if not len(wanted) or not texts:
        return found
    # No wanted trigram holds the two spaces at which one text meets the next.
    codes: Codes = np.concatenate(texts)
    ends = np.cumsum([len(one) for one in texts])
    # Characters that no wanted key has count 0, the others from 1 in their order, so that few numbers are compared.
    mask = (1 << _SHIFT) - 1
    parts = np.stack([wanted >> 2 * _SHIFT, (wanted >> _SHIFT) & mask, wanted & mask])
    used = np.flatnonzero(np.bincount(parts.ravel()))
    used = used[used > 0]
    # Few different characters make small numbers, which are quick to go through.
    number: Small = np.zeros(
        max(int(codes.max()), int(parts.max())) + 1, np.int32 if (len(used) + 1) ** 3 < 1 << 31 else np.int64
    )
    number[used] = np.arange(1, len(used) + 1)
    base, own = len(used) + 1, number[parts]
    numbers = number.take(codes)
    pairs = numbers[:-1] * base + numbers[1:]
    # More characters make a greater key.
    singles, doubles = np.searchsorted(wanted, [1 << _SHIFT, 1 << 2 * _SHIFT]).tolist()
    two = own[0] * base + own[1]
    begins = np.zeros(base * base, np.bool_)
    begins[two[doubles:]] = True
    places = np.flatnonzero(begins.take(pairs[:-1]))
    count = functools.partial(_counts, ends=ends, most=base**3)
    found[doubles:] = count((two * base + own[2])[doubles:], pairs[places] * base + numbers[places + 2], places)
    if doubles and (wide := codes >= _CJK_FROM).any():
        alone, both = np.flatnonzero(wide), np.flatnonzero(wide[:-1] & wide[1:])
        found[:singles] = count(own[2][:singles], numbers[alone], alone)
        found[singles:doubles] = count((own[1] * base + own[2])[singles:doubles], pairs[both], both)
    return found


def _counts(wanted: Small, keys: Small, places: Ids, ends: Ids, most: int) -> Floats:
    """How often each of `wanted` is among the `keys` of each text: (wanted, texts).

    Keys are below `most` and stand at `places`, which rise; the texts end at `ends`.
    """
    if not len(wanted):
        return np.zeros((0, len(ends)))
    at = _places_in(wanted, keys, most)
    hit = np.flatnonzero(at >= 0)
    # Places rise, and so do the texts that they are in.
    text = np.repeat(np.arange(len(ends)), np.diff(np.searchsorted(places[hit], ends), prepend=0))
    counts = np.bincount(at[hit] * len(ends) + text, minlength=len(wanted) * len(ends))
    return counts.reshape(len(wanted), len(ends)).astype(np.float64)


_FEW_KEYS = 1 << 16
"""Keys up to which a table of all of them is quicker than a search."""


def _places_in(wanted: Small, keys: Small, most: int) -> Small:
    """The place of each of `keys`, which are below `most`, among those `wanted`, which rise; -1 where it is none."""
    if most <= _FEW_KEYS:
        place = np.full(most, -1, np.int64)
        place[wanted] = np.arange(len(wanted))
        return place.take(keys)
    at = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    return np.where(wanted[at] == keys, at, -1)


def cut(texts: Sequence[str], table: TokenTable | None, window: int = WINDOW) -> list[Passages]:
    """The passages of each of `texts`; without a `table` they have no meaning. A blank text is one empty line.

    All of them at once, because numpy takes its time for each call.
    """
    if not texts:
        return []
    every = [text.split("\n") for text in texts]
    lines = [[at for at, line in enumerate(one) if line.strip()] or [0] for one in every]
    # From each line of all texts to the next one there; between the lines of one text nothing stands.
    first = [0, *itertools.accumulate(map(len, every))]
    bounds = np.array([first[text] + at for text, own in enumerate(lines) for at in own], dtype=np.int64)
    (stems, stem_from), (ids, id_from) = _words(table).of("\n".join(texts))
    stem_from, id_from = np.append(stem_from[bounds], len(stems)), np.append(id_from[bounds], len(ids))
    stem_counts, id_counts = np.diff(stem_from), np.diff(id_from)
    words = stem_counts.tolist()
    begin = [0, *itertools.accumulate(map(len, lines))]
    windows = [_windows(words[begin[text] : begin[text + 1]], window) for text in range(len(texts))]
    window_begins = [begin[text] + at for text, own in enumerate(windows) for at in own[:-1]]
    line_norm, window_norm = _lengths(table, ids, id_from, np.array(window_begins, dtype=np.int64))
    found, seen = [], 0
    for text, (own, window_from) in enumerate(zip(lines, windows, strict=True)):
        a, b = begin[text], begin[text + 1]
        (stem, stem_end), (token, token_end) = stem_from[[a, b]].tolist(), id_from[[a, b]].tolist()
        found.append(
            Passages(
                np.array(own, dtype=np.int64),
                np.array(window_from, dtype=np.int64),
                stems[stem:stem_end].copy(),
                stem_counts[a:b].copy(),
                ids[token:token_end].astype(np.int32),
                id_counts[a:b].copy(),
                line_norm[a:b].copy(),
                window_norm[seen : seen + len(window_from) - 1].copy(),
                _letter_codes(texts[text]),
            )
        )
        seen += len(window_from) - 1
    return found


@functools.cache
def _function_words() -> tuple[Ids, Ids]:
    """The stems of function words that German and English do not share, rising; 1 for German ones, -1 for English."""
    german, english = (stem_keys([stem for word in own for stem in stems_of(word)]) for own in (GERMAN, ENGLISH))
    sides = dict.fromkeys(german.tolist(), 1) | dict.fromkeys(english.tolist(), -1)
    shared = set(german.tolist()) & set(english.tolist())
    keys = sorted(sides.keys() - shared)
    return np.array(keys, np.int64), np.array([sides[key] for key in keys])


def is_german(texts: Sequence[Passages]) -> bool:
    """Whether `texts` hold more German function words than English ones."""
    stems = np.concatenate([*(one.stems for one in texts), np.empty(0, dtype=np.int64)])
    keys, sides = _function_words()
    at = np.minimum(np.searchsorted(keys, stems), len(keys) - 1)
    return bool(sides[at[keys[at] == stems]].sum() > 0)


def _windows(words: Sequence[int], most: int) -> list[int]:
    """Where windows begin, and the end, for lines of so many `words`: a line that would be too much begins one."""
    found, filled = [0], 0
    for at, count in enumerate(words):
        if filled and filled + count > most:
            found.append(at)
            filled = 0
        filled += count
    return [*found, len(words)]


def _lengths(table: TokenTable | None, ids: Ids, id_from: Ids, window_from: Ids) -> tuple[Floats, Floats]:
    """How long the summed vectors of lines and of windows are."""
    if table is None:
        return np.zeros(len(id_from) - 1), np.zeros(len(window_from))
    lines = table.sums(ids, id_from)
    windows = np.add.reduceat(lines, window_from, axis=0)
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
    """Passages by text, at most `most` bytes of them, the least recently used forgotten first.

    May be used by several threads at once.
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._size = 0
        self._known: OrderedDict[tuple[bool, str], Passages] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str], table: TokenTable | None) -> list[Passages]:
        """The passages of `texts`; there is one table, or none."""
        keys = [(table is not None, text) for text in texts]
        with self._lock:
            found = {key: self._known[key] for key in keys if key in self._known}
            for key in found:
                self._known.move_to_end(key)
        fresh = [key for key in dict.fromkeys(keys) if key not in found]
        found |= zip(fresh, cut([text for _, text in fresh], table), strict=True)
        with self._lock:
            for key in fresh:
                # Another thread may have cut the same text meanwhile.
                before = self._known.get(key)
                self._known[key] = found[key]
                self._size += found[key].size - (before.size if before is not None else 0)
            while self._size > self._most:
                self._size -= self._known.popitem(last=False)[1].size
        return [found[key] for key in keys]
