"""Lexical search is the keyword side of OpenClaw 2026.9, as in release 2026.9.6. It looks for the question, its
keywords and paths, and adds boosts.

Nothing here depends on a knob: the list of hits is evidence. Each function names the section of the specification of
the profile that it follows. JavaScript counts text in UTF-16 units, and so does this. The paths of a corpus are few and
short, so that a table of FTS5 in memory holds them.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import filterfalse
from typing import Any

import apsw
import numpy as np
from msgspec import Struct

from memory_tui import jsstring
from memory_tui import tokens as core_tokens
from memory_tui.index.database import TOKENIZERS
from memory_tui.index.store import Store
from memory_tui.search.corpus import Corpus, distinct
from memory_tui.search.keyword import LATIN, TRIGRAM, KeywordSide, Matcher, keywords
from memory_tui.search.trace import NO_BOOST, Boost, Floats, Hit
from memory_tui.tokens import lowered, words_of
from memory_tui.workspace.notes import INVALID_PROJECT, Annotations

LIMIT = 200
"""Hits that each list holds (sections 5, 6.6)."""
MOST_TERMS = 6
"""Keywords that are looked for one by one after the whole question (6.7)."""
ACTIVE, INACTIVE = 1.15, 0.9
"""Factors of a chunk whose projects are all active, and of one with another project (7.3)."""
_WORD_SHARE, _TEXT_SHARE, _PATH_WORD, _LENGTH_UNITS, _MOST_LENGTH = 0.45, 0.2, 0.18, 160, 0.18
"""What `Boost` counts (6.2): of the question's words, of the text's, each word in the path; units of a full length, and
the most that length gives."""


class Lexical(Struct, frozen=True):
    """The keyword side of OpenClaw 2026.9: what the `words` of the whole question found, None where nothing was looked
    for, and the `hits` of all its searches as one list.

    `annotations` are those of rows that have any; `active` are the keys of the projects that the agent works on.
    """

    words: KeywordSide | None = None
    hits: tuple[Hit, ...] = ()
    annotations: Mapping[int, Annotations] = {}
    levels: Mapping[int, int] = {}
    """How exactly the question names each file that it names, by file."""
    active: frozenset[str] = frozenset()
    origins: Mapping[str, str] = {}
    """Who notes are from by OpenClaw's ledger, by path."""


# --- words (6.1, 6.7, 6.8) -----------------------------------------------------------------------------------------


def path_words(text: str) -> list[str]:
    """Return the tokens of `text` that a path is looked through for: words with their combining marks (6.1)."""
    letters = (item if item == "_" or unicodedata.category(item)[0] in "LNM" else " " for item in text)
    return "".join(letters).split()


# --- the score of words (6.2) --------------------------------------------------------------------------------------


def saturated(rank: Floats) -> Floats:
    """Return r/(1+r) with r = -rank, and 1/(1+rank) for ranks that are not negative (OpenClaw from 2026.3.7)."""
    relevance = np.abs(rank)
    return np.where(rank < 0, relevance / (1.0 + relevance), 1.0 / (1.0 + relevance))


def boost(words: frozenset[str], text: str, path: str) -> Boost:
    """Return what a chunk gains over its bm25 score by those of the `words` of a question that it holds (6.2)."""
    if not words:
        return NO_BOOST
    inside = words_of(text)
    shared, folded = len(words & inside), lowered(path)
    return (
        _WORD_SHARE * shared / len(words),
        _TEXT_SHARE * shared / max(1, len(inside)),
        _PATH_WORD * sum(word in folded for word in words),
        min(jsstring.utf16_len(text[:_LENGTH_UNITS]) / _LENGTH_UNITS, _MOST_LENGTH),
    )


def by_words(hit: Hit) -> float:
    """Return the text score of the search that gave a hit its score, where `text_score` is the best of any search."""
    return hit.text_score if np.isnan(hit.bm25) else float(saturated(np.array(hit.bm25)))


# --- paths (6.3, 6.9) ----------------------------------------------------------------------------------------------


def plain_path(path: str) -> str:
    """Return `path` as it is compared with a question (6.3)."""
    return lowered(jsstring.trim(path).replace("\\", "/").removeprefix("./"))


def exact_names(path: str) -> tuple[str, str, str]:
    """Return what a question has to be to name `path`: the whole of it, its last part, that without extension (6.3)."""
    whole = plain_path(path)
    name = whole.rpartition("/")[2]
    return whole, name, name.rpartition(".")[0] or name


_SIGNS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_SPLIT = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l"}


@functools.lru_cache(maxsize=65_536)
def collation(path: str) -> tuple[object, ...]:
    """Return a key that sorts as ICU's root collation does: by letters, then accents, then lower case first (6.9)."""
    letters: list[str] = []
    # Each with the number of letters before it.
    accents: list[tuple[int, str]] = []
    cases = ""
    for character in path if path.isascii() else unicodedata.normalize("NFD", path):
        if unicodedata.combining(character):
            accents.append((len(letters), character))
            continue
        small = character.lower()
        for part in _SPLIT.get(small, small):
            letters.append(_primary(part))
            # Lower case sorts first.
            cases += "0" if small == character else "1"
        # What was split into letters sorts behind the same letters written one by one.
        if small in _SPLIT:
            accents.append((len(letters), small))
    return "".join(letters), tuple(accents), cases, path


@functools.cache
def _primary(character: str) -> str:
    """Return the class of `character`, and behind it what sorts within that class.

    The classes rise: 0 signs, 1 others, 2 digits, 3 Latin letters, 4 Korean, 5 other letters.
    """
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


def order_k(hit: Hit) -> tuple[object, ...]:
    """Return what merged hits are sorted by: order K (6.5)."""
    by_path = 1.0 if hit.level else hit.path_score
    return (
        -hit.level,
        # Of a named note those chunks come first whose text was found.
        hit.level > 0 and not hit.body,
        -(hit.score if hit.body else by_path),
        -hit.text_score,
        -by_path,
        collation(hit.ref.path),
        hit.ref.start_line,
        hit.ref.id,
    )


def merged(lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Return one hit a chunk, with the best of what each list knows of it, 200 a kind (6.5, 6.6).

    They stand in order K, or in any where nothing is cut.
    """
    result: dict[int, Hit] = {}
    for hits in lists:
        for hit in hits:
            result[hit.row] = _best_of_both(result[hit.row], hit) if hit.row in result else hit
    return list(result.values()) if len(result) <= LIMIT else limited(sorted(result.values(), key=order_k))


def _best_of_both(item: Hit, other: Hit) -> Hit:
    """Return two findings of one chunk as one.

    Its score and how that was made come from the better one that found its text, from `item` where neither did.
    """
    best = max((hit for hit in (item, other) if hit.body), key=lambda hit: hit.score, default=item)
    return item._replace(
        body=item.body or other.body,
        score=best.score,
        text_score=max(item.text_score, other.text_score),
        path_score=max(item.path_score, other.path_score),
        bm25=best.bm25,
        gain=best.gain,
        term=best.term,
    )


def limited(hits: Sequence[Hit]) -> list[Hit]:
    """Return `hits`, which are in order K, cut to what is kept (6.6).

    Of notes that are named these are 200 chunks found by text, and 200 different paths; of all others 200 chunks.
    """
    named, texts, paths = list[Hit](), 0, set[str]()
    for hit in hits:
        has_room = (texts < LIMIT or not hit.body) and (len(paths) < LIMIT or hit.ref.path in paths)
        if hit.level and has_room:
            named.append(hit)
            texts += 1 if hit.body else 0
            paths.add(hit.ref.path)
    return named + [hit for hit in hits if not hit.level][:LIMIT]


# --- factors (7.2, 7.3) --------------------------------------------------------------------------------------------


def project_factor(annotations: Annotations, active: Collection[str]) -> float:
    """Return what the projects of a chunk multiply by where some are `active` (7.3)."""
    if not active or not annotations.project:
        return 1.0
    return ACTIVE if all(key in active for key in annotations.keys) else INACTIVE


def dropped(annotations: Mapping[int, Annotations]) -> frozenset[int]:
    """Return the rows that are never recalled, because nobody can tell their project (7.3)."""
    return frozenset(row for row, entry in annotations.items() if INVALID_PROJECT in entry.keys)


# --- likeness (7.7) ------------------------------------------------------------------------------------------------

_IDEOGRAPHS = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]+"


def mmr_tokens(snippet: str) -> frozenset[str]:
    """Return what MMR compares: Latin words, Chinese, Japanese and Korean characters and pairs; else the whole text."""
    text = snippet.lower()
    result = set(LATIN.findall(text))
    for run in () if text.isascii() else re.findall(_IDEOGRAPHS, text):
        result.update(run)
        result.update(run[at : at + 2] for at in range(len(run) - 1))
    # Two snippets without any token are alike where they are equal: the whole text is a token of its own.
    return frozenset(result or (f"\0{jsstring.trim(text)}",))


# --- path search (6.4) ---------------------------------------------------------------------------------------------

Plan = tuple[tuple[str, ...], tuple[str, ...]]
"""Words that are matched, in order, and words that only have to be contained."""


def plans(query: str, *, trigram: bool) -> list[Plan]:
    """Return how paths are looked through for `query`: by its words, and by what full-text search cannot find (6.4).

    Composed and decomposed letters are looked for apart; the first plan is that of the words as they are written.
    """
    forms = (unicodedata.normalize("NFC", query), unicodedata.normalize("NFD", query))
    if trigram:
        result = [_split(path_words(form), lambda word: len(word) >= TRIGRAM) for form in forms]
    else:
        by_script = (_split(path_words(form), str.isascii) for form in forms)
        result = [(tuple(core_tokens.WORD.findall(query)), ()), *(plan for plan in by_script if plan[1])]
    return [plan for plan in dict.fromkeys(result) if plan != ((), ())]


def _split(words: Sequence[str], is_matched: Callable[[str], bool]) -> Plan:
    """Return which of `words` full-text search matches, and the others."""
    return tuple(filter(is_matched, words)), tuple(map(lowered, filterfalse(is_matched, words)))


_MATCH = "SELECT rowid, bm25(paths) FROM paths(?)"


class PathIndex:
    """The paths of all notes by their places, cut as the full-text table of the index cuts texts."""

    def __init__(self, paths: Sequence[str], cut: str) -> None:
        self._paths, self._cut, self._lock = paths, cut, threading.Lock()
        self._contents = list(map(lowered, paths))
        self._levels: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for file, path in enumerate(paths):
            for level, name in zip((3, 2, 1), exact_names(path), strict=True):
                self._levels[name].setdefault(file, level)
        self._table = apsw.Connection(":memory:")
        self._table.execute(f"CREATE VIRTUAL TABLE paths USING fts5(path, tokenize='{TOKENIZERS[cut]}')")
        self._table.executemany("INSERT INTO paths (rowid, path) VALUES (?, ?)", enumerate(paths))

    def exact(self, query: str) -> dict[int, int]:
        """Return how exactly `query` names each file: 3 its path, 2 its name, 1 that without extension (6.3)."""
        plain = plain_path(query)
        return {} if plain in ("", ".") else self._levels.get(plain, {})

    def search(self, query: str, whole: str, levels: Mapping[int, int], with_chunks: Set[int]) -> dict[int, float]:
        """Return a score for each file whose path holds `query`, or that the `whole` question names (6.4).

        `levels` tells how exactly the whole question names each file. Only files `with_chunks` are scored.
        """
        # Each plan with the files that fulfil it, and their bm25.
        result = [(plan, self._fulfilling(plan)) for plan in plans(query, trigram=self._cut == "trigram")]
        # Of a name in ASCII the words have to be found too: those are the first plan.
        by_words = next((ranks for _, ranks in result), levels) if whole.isascii() else levels
        named = [file for file in levels if file in with_chunks and file in by_words]
        # Files that are named score 0 at least, the best named first.
        scores = dict.fromkeys(sorted(named, key=lambda file: (-levels[file], self._key(file)))[:LIMIT], 0.0)
        for (matched, _), ranks in result:
            order = sorted(ranks.keys() & with_chunks, key=lambda file: (ranks[file], self._key(file)))
            best = [file for file in order if file in levels][:LIMIT]
            best += [file for file in order if file not in levels][:LIMIT]
            # What is named counts only if it is among the first 200 of these, which have a score by now.
            for file in (file for file in best if file in scores or file not in levels):
                path_score = float(saturated(np.array(ranks[file]))) if matched else 1.0
                scores[file] = max(scores.get(file, 0.0), path_score)
        return scores

    def _key(self, file: int) -> bytes:
        """Return what files of equal rank are sorted by: their paths, byte by byte."""
        return self._paths[file].encode("utf-8", "replace")

    def _fulfilling(self, plan: Plan) -> dict[int, float]:
        """Return the files that fulfil `plan`, each with its bm25 (0 where nothing is matched)."""
        matched, contained = plan
        # No path holds more words, and FTS5 takes long to read them.
        if len(matched) > core_tokens.MOST_WORDS:
            return {}
        ranks = dict.fromkeys(range(len(self._paths)), 0.0)
        if matched:
            with self._lock:
                rows: Iterable[Any] = self._table.execute(_MATCH, (core_tokens.and_query(matched),)).fetchall()
            ranks = dict(rows)
        return {file: rank for file, rank in ranks.items() if all(word in self._contents[file] for word in contained)}


_path_index = functools.lru_cache(maxsize=4)(PathIndex)
"""Paths stay from one state of an index to the next where no note came or went."""


# --- one question --------------------------------------------------------------------------------------------------


def _annotations(store: Store, corpus: Corpus) -> Mapping[int, Annotations]:
    """Return what the annotations of rows say."""
    rowids = store.annotations()
    rows = corpus.rows_of(list(rowids)).tolist()
    return {row: Annotations(*values) for row, values in zip(rows, rowids.values(), strict=True) if row >= 0}


def search(store: Store, matcher: Matcher, query: str, whole: KeywordSide) -> tuple[Lexical, dict[int, str]]:
    """Return all that words and paths find for `query`, in the order of the original, and the texts read by rowid.

    `whole` is what the words of the whole query found. Raises QueryError, Cancelled.
    """
    corpus, texts, gains = matcher.corpus, dict[int, str](), dict[int, Boost]()
    annotations = corpus.once("annotations", lambda: _annotations(store, corpus))
    index = corpus.once("paths", lambda: _path_index(corpus.files.paths, matcher.cut))
    levels, words = index.exact(query), words_of(query)
    with_chunks = {*distinct(corpus.refs.file_of[matcher.eligible]).tolist()}

    def find(text: str, side: KeywordSide, term: str = "") -> list[Hit]:
        """Search for the query or a `term` of it: in texts, where `side` found its words, and in paths (6.2, 6.4)."""
        rows = side.postings.rows[:LIMIT]
        # NaN where no word was matched, but the texts were looked through.
        bm25 = side.postings.bm25[:LIMIT] if matcher.matches(text) else np.full(len(rows), np.nan)
        rowids, files = corpus.refs.rowids[rows].tolist(), corpus.refs.file_of[rows].tolist()
        texts.update(store.texts([*{*rowids} - texts.keys()]))
        hits, scores = [], np.nan_to_num(saturated(bm25)).tolist()
        for row, rowid, file, rank, score in zip(rows.tolist(), rowids, files, bm25.tolist(), scores, strict=True):
            if row not in gains:
                gains[row] = boost(words, texts.get(rowid, ""), corpus.files.paths[file])
            hit = Hit(row, corpus.refs[row], term, levels.get(file, 0), body=True, bm25=rank, gain=gains[row])
            hits.append(hit._replace(score=min(1.0, score + sum(gains[row])), text_score=score))
        return merged([hits, _by_path(corpus, index.search(text, query, levels, with_chunks), levels, term)])

    lists = [find(query, whole)]
    # Keywords are looked for one by one where the whole question finds too little (6.7, 6.8).
    if sum(not hit.level for hit in lists[0]) < LIMIT:
        each = keywords(query, trigram=matcher.cut == "trigram")
        terms = [word for word in each if word != jsstring.trim(query).lower()][:MOST_TERMS]
        # The same words in the same order would be the same search again.
        is_same = core_tokens.WORD.findall(query.lower()) == core_tokens.WORD.findall(" ".join(terms).lower())
        if not (lists[0] and is_same):
            lists += [find(term, matcher.openclaw(term), term) for term in terms]
    hits = limited(sorted(merged(lists), key=order_k))
    return Lexical(whole, tuple(hits), annotations, levels), texts


def _by_path(corpus: Corpus, scores: Mapping[int, float], levels: Mapping[int, int], term: str) -> list[Hit]:
    """Return the first chunk of each file whose path was found (6.4)."""
    hits = []
    for file, path_score in scores.items():
        refs = {row: corpus.refs[row] for row in np.flatnonzero(corpus.refs.file_of == file).tolist()}
        row = min(refs, key=lambda row: (refs[row].start_line, refs[row].end_line, refs[row].id))
        level = levels.get(file, 0)
        score = 1.0 if level else path_score
        hits.append(Hit(row, refs[row], term, level, score=score, path_score=path_score))
    hits.sort(key=order_k)
    # All that are named count, and 200 others, but no more than 400 in all.
    return ([hit for hit in hits if hit.level] + [hit for hit in hits if not hit.level][:LIMIT])[: 2 * LIMIT]
