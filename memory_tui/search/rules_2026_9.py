"""Rules of OpenClaw 2026.9 as pure functions, as in release 2026.9.6. They cover words, paths, boosts, merged lists and
factors.

Each function names the section of the specification of the profile that it follows. JavaScript counts text in UTF-16
units, and so does this.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memory_tui.core import jsstring
from memory_tui.core.tokens import lowered
from memory_tui.search.formulas import Floats
from memory_tui.workspace.annotations import INVALID_PROJECT, Annotations

Counts = npt.NDArray[np.int64]

LIMIT = 200
"""Hits that each list holds (sections 5, 6.6)."""
MOST_TERMS = 6
"""Keywords that are looked for one by one after the whole question (6.7)."""
ACTIVE, INACTIVE = 1.15, 0.9
"""Factors of a chunk whose projects are all active, and of one with another project (7.3)."""
_WORD_SHARE, _TEXT_SHARE, _PATH_WORD, _LENGTH_UNITS, _MOST_LENGTH = 0.45, 0.2, 0.18, 160, 0.18
_ROUNDING = 1e-12
_LONG = 160
"""Characters from which a text gains the most for its length, however they count."""


# --- words (6.1, 6.7, 6.8) -----------------------------------------------------------------------------------------


def fallback_terms(query: str, *, trigram: bool) -> tuple[str, ...]:
    """The keywords that are looked for one by one where the whole question finds too little (6.7, 6.8)."""
    from memory_tui.core import keywords

    whole = jsstring.trim(query).lower()
    found = (word for word in keywords.tokens(query, trigram=trigram) if keywords.is_keyword(word))
    return tuple(word for word in dict.fromkeys(found) if word != whole)[:MOST_TERMS]


def path_words(text: str) -> list[str]:
    """The tokens of `text` that a path is looked through for: words with their combining marks (6.1)."""
    found: list[str] = []
    inside = False
    for character in text:
        if character == "_" or unicodedata.category(character)[0] in "LNM":
            found[-1:] = [found[-1] + character] if inside else [*found[-1:], character]
            inside = True
        else:
            inside = False
    return found


# --- the score of words (6.2) --------------------------------------------------------------------------------------


class Boost(NamedTuple):
    """What a chunk gains over its bm25 score: shares of the question's words, words in its path, length."""

    asked: float
    held: float
    path: float
    length: float


NO_BOOST = Boost(0.0, 0.0, 0.0, 0.0)


def boosts(
    asked: int, shared: Sequence[int], texts: Sequence[str], distinct: Sequence[int], path_hits: Sequence[int]
) -> list[Boost]:
    """What `asked` words gain each of `texts`, of so many `distinct` words, which has `shared` of them, and
    `path_hits` of them in its path (6.2).
    """
    if not asked:
        return [NO_BOOST] * len(texts)
    units = [size if (size := len(text)) > _LONG else jsstring.utf16_len(text) for text in texts]
    common = np.array(shared, dtype=np.int64)
    columns = (
        _WORD_SHARE * common / asked,
        _TEXT_SHARE * common / np.maximum(distinct, 1),
        _PATH_WORD * np.array(path_hits, dtype=np.float64),
        np.minimum(np.array(units, dtype=np.int64) / _LENGTH_UNITS, _MOST_LENGTH),
    )
    return list(map(Boost._make, zip(*(column.tolist() for column in columns), strict=True)))


def words_in_text(asked: Collection[str], text: str) -> int:
    """How many of the words `asked` are words of `text` (6.2)."""
    if not asked:
        return 0
    # With an end on both sides every word stands between two characters.
    plain = f" {lowered(text)} "
    # Most words stand in few texts.
    return sum([word in plain and _holds(plain, word) for word in asked])


def bounded_boost(
    asked: int, shared: Counts, distinct: Counts, path_hits: Counts, units: Counts, *, least: bool = False
) -> Floats:
    """The most, or the `least`, that `asked` words can gain chunks whose texts are not read (6.2).

    Of each is given how many of the words it has at most (or at least), how many different ones (0: not known), how
    many stand in its path, and its length.
    """
    share = np.minimum(1.0, shared / np.maximum(distinct, 1))
    known = np.where(distinct > 0, share, 0.0 if least else 1.0)
    length = np.minimum(units / _LENGTH_UNITS, _MOST_LENGTH)
    found = _WORD_SHARE * shared / asked + _TEXT_SHARE * known + _PATH_WORD * path_hits + length
    # The parts of a boost are added up in another order.
    rounded: Floats = found - _ROUNDING if least else found + _ROUNDING
    return rounded


def _holds(text: str, word: str) -> bool:
    """Whether `word` is one of the words of `text`, which neither begins nor ends with a word."""
    size, at = len(word), text.find(word)
    while at >= 0:
        before, after = text[at - 1], text[at + size]
        # What `\w` matches, at a tenth of the cost.
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            return True
        at = text.find(word, at + 1)
    return False


def boosted(text_score: float, gain: Boost) -> float:
    """The keyword score: bm25's and its boost, 1 at most (6.2)."""
    return text_score if gain is NO_BOOST else min(1.0, text_score + (gain.asked + gain.held + gain.path + gain.length))


def words_in_path(asked: Iterable[str], path: str) -> int:
    """How many of the words `asked` stand in `path` (6.2)."""
    folded = lowered(path)
    return sum(word in folded for word in asked)


# --- paths (6.3, 6.9) ----------------------------------------------------------------------------------------------


def plain_path(path: str) -> str:
    """`path` as it is compared with a question (6.3)."""
    text = jsstring.trim(path).replace("\\", "/").removeprefix("./")
    return unicodedata.normalize("NFC", text).lower()


def exact_names(path: str) -> tuple[str, str, str]:
    """What a question has to be to name `path`: the whole of it, its last part, that without extension (6.3)."""
    whole = plain_path(path)
    name = whole.rpartition("/")[2]
    dot = name.rfind(".")
    return whole, name, name[:dot] if dot > 0 else name


def exact_level(query: str, names: tuple[str, str, str]) -> int:
    """How exactly `query`, by `plain_path`, names a file with `names`: 3 its path, 2 its name, 1 its stem, 0 not."""
    if query in ("", "."):
        return 0
    whole, name, stem = names
    if query == whole:
        return 3
    if "/" in query:
        return 0
    return 2 if query == name else 1 if query == stem else 0


_SIGNS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_SPLIT = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l"}


@functools.lru_cache(maxsize=65_536)
def collation(path: str) -> tuple[object, ...]:
    """A key that sorts paths as ICU's root collation does: letters, then accents, then lower case first (6.9)."""
    if path.isascii():
        return path.translate(_letters()), (), path.translate(_cases()), path
    letters: list[str] = []
    accents: list[tuple[int, str]] = []
    cases: list[str] = []
    for character in unicodedata.normalize("NFD", path):
        if unicodedata.combining(character):
            accents.append((len(letters), character))
            continue
        small = character.lower()
        for part in _SPLIT.get(small, small):
            letters.append(_primary(part))
            cases.append("0" if small == character else "1")
        if small in _SPLIT:
            accents.append((len(letters), small))
    return "".join(letters), tuple(accents), "".join(cases), path


def path_order(paths: Sequence[str]) -> Counts:
    """Where each of `paths` stands among them (6.9)."""
    place = {path: at for at, path in enumerate(sorted(set(paths), key=collation))}
    return np.array([place[path] for path in paths], dtype=np.int64)


@functools.cache
def _letters() -> Mapping[int, str]:
    """What stands for each ASCII character where letters are compared."""
    return {code: _primary(chr(code).lower()) for code in range(128)}


@functools.cache
def _cases() -> Mapping[int, str]:
    """What stands for each ASCII character where cases are compared."""
    return {code: "0" if chr(code).lower() == chr(code) else "1" for code in range(128)}


def _primary(character: str) -> str:
    """Two characters, of which the first is the class of `character`."""
    at = _SIGNS.find(character)
    if at >= 0:
        return f"0{chr(at)}"
    if character.isdigit():
        return f"2{unicodedata.digit(character, 0)}"
    if character.isascii():
        return f"{3 if character.isalpha() else 0}{character}"
    if "\u30a1" <= character <= "\u30f6":
        # Katakana sorts with hiragana.
        return f"5{chr(ord(character) - 0x60)}"
    if "\u1100" <= character <= "\u11ff" or "\uac00" <= character <= "\ud7af":
        return f"4{character}"
    return f"{5 if character.isalpha() else 1}{character}"


# --- lists of hits (6.5, 6.6) --------------------------------------------------------------------------------------


class Hit(NamedTuple):
    """A chunk that words or a path found; `row` is its place in the corpus.

    `score` is the keyword score, `bm25` FTS5's own number (NaN where nothing was matched). `level` is how exactly the
    question names its path. `body` tells whether its text was found, `term` which search gave the score.
    """

    row: int
    place: tuple[str, int, int, str]
    """Path, first and last line, id."""
    level: int
    body: bool
    score: float
    text_score: float
    path_score: float
    bm25: float
    gain: Boost
    term: int

    @property
    def keyword_score(self) -> float:
        """What merged hits are sorted by (6.5)."""
        return self.score if self.body else 1.0 if self.level else self.path_score

    def order(self, *, body_first: bool = True) -> tuple[object, ...]:
        """Order K (6.5)."""
        path, start, _, chunk = self.place
        return (
            -self.level,
            not self.body if self.level and body_first else False,
            -self.keyword_score,
            -self.text_score,
            0.0 if self.level else -self.path_score,
            collation(path),
            start,
            chunk,
        )


def merged(lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """One hit a chunk, with the best of what each list knows of it, in order K (6.5)."""
    return sorted(_united(lists).values(), key=Hit.order)


def _united(lists: Iterable[Sequence[Hit]]) -> dict[int, Hit]:
    found: dict[int, Hit] = {}
    for hits in lists:
        for hit in hits:
            found[hit.row] = _both(found[hit.row], hit) if hit.row in found else hit
    return found


def _both(one: Hit, other: Hit) -> Hit:
    """Two findings of one chunk as one; of two in its text the better speaks."""
    best = max((hit for hit in (one, other) if hit.body), key=lambda hit: hit.score, default=one)
    return Hit(
        row=one.row,
        place=one.place,
        level=one.level,
        body=one.body or other.body,
        score=best.score,
        text_score=max(one.text_score, other.text_score),
        path_score=max(one.path_score, other.path_score),
        bm25=best.bm25,
        gain=best.gain,
        term=best.term,
    )


def merged_and_limited(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """`lists` as one, cut to 200 a kind; in any order where nothing is cut (6.6)."""
    if sum(map(len, lists)) <= LIMIT:
        return list(_united(lists).values())
    return limited(merged(lists))


def limited(hits: Sequence[Hit]) -> list[Hit]:
    """`hits`, in order K, cut to 200 a kind (6.6)."""
    exact: list[Hit] = []
    bodies, paths = 0, set[str]()
    for hit in hits:
        if not hit.level or (hit.body and bodies >= LIMIT):
            continue
        if hit.place[0] not in paths and len(paths) >= LIMIT:
            continue
        bodies += hit.body
        paths.add(hit.place[0])
        exact.append(hit)
    return exact + [hit for hit in hits if not hit.level][:LIMIT]


# --- factors (7.2, 7.3) --------------------------------------------------------------------------------------------


def importance_factor(importance: int) -> float:
    """What an importance of 1 to 10 multiplies by: 0.80 to 1.25, 1 without one (7.2)."""
    return 0.75 + 0.05 * importance if importance else 1.0


def project_factor(said: Annotations, active: Collection[str]) -> float:
    """What the projects of a chunk multiply by where some are `active` (7.3)."""
    if not active or not said.project:
        return 1.0
    return ACTIVE if all(key in active for key in said.keys) else INACTIVE


def dropped(said: Mapping[int, Annotations]) -> frozenset[int]:
    """The rows that are never recalled, because nobody can tell their project (7.3)."""
    return frozenset(row for row, own in said.items() if INVALID_PROJECT in own.keys)


# --- likeness (7.7) ------------------------------------------------------------------------------------------------

_LATIN = re.compile(r"[a-z0-9_]+")
_LATIN_OF_ASCII = (
    bytes(code if chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(128)).lower().ljust(256)
)
"""ASCII characters in lower case, those of no Latin word as blanks: cutting by it takes a third of the time."""
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]+")


def mmr_tokens(snippet: str) -> frozenset[str]:
    """What MMR compares: Latin words, Chinese, Japanese and Korean characters and their pairs; else the text itself."""
    if snippet.isascii():
        found = set(snippet.encode("ascii").translate(_LATIN_OF_ASCII).decode("ascii").split())
    else:
        text = snippet.lower()
        found = set(_LATIN.findall(text))
        for run in _IDEOGRAPHS.findall(text):
            found.update(run)
            found.update(run[at : at + 2] for at in range(len(run) - 1))
    # Two snippets without any token are alike where they are equal: the whole text is a token of its own.
    return frozenset(found or (f"\0{jsstring.trim(snippet.lower())}",))
