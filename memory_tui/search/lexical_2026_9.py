"""Lexical search is the keyword side of OpenClaw 2026.9, as in release 2026.9.6. It looks for the question, its
keywords and paths, and adds boosts.

Nothing here depends on a knob: the list of hits is evidence. Each function names the section of the specification of
the profile that it follows. JavaScript counts text in UTF-16 units, and so does this. The paths of a corpus are few and
short, so that they are looked through in memory, with the tokens and the bm25 of FTS5.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_tui import jsstring
from memory_tui import tokens as core_tokens
from memory_tui.index.store import Store
from memory_tui.search import formulas, keywords
from memory_tui.search.corpus import Corpus, Files, distinct
from memory_tui.search.evidence import NO_BOOST, Boost, Hit, KeywordSide, Lexical, Rows, TermSearch
from memory_tui.search.formulas import K1, Floats, fts5_idf, length_damping, saturated
from memory_tui.search.keyword import Matcher
from memory_tui.tokens import lowered, words_of
from memory_tui.workspace.annotations import INVALID_PROJECT, Annotations

Counts = npt.NDArray[np.int64]

LIMIT = 200
"""Hits that each list holds (sections 5, 6.6)."""
MOST_TERMS = 6
"""Keywords that are looked for one by one after the whole question (6.7)."""
ACTIVE, INACTIVE = 1.15, 0.9
"""Factors of a chunk whose projects are all active, and of one with another project (7.3)."""
_WORD_SHARE, _TEXT_SHARE, _PATH_WORD, _LENGTH_UNITS, _MOST_LENGTH = 0.45, 0.2, 0.18, 160, 0.18


# --- words (6.1, 6.7, 6.8) -----------------------------------------------------------------------------------------


def fallback_terms(query: str, *, trigram: bool) -> tuple[str, ...]:
    """Return the keywords that are looked for one by one where the whole question finds too little (6.7, 6.8)."""
    whole = jsstring.trim(query).lower()
    result = (word for word in keywords.tokens(query, trigram=trigram) if keywords.is_keyword(word))
    return tuple(word for word in dict.fromkeys(result) if word != whole)[:MOST_TERMS]


def path_words(text: str) -> list[str]:
    """Return the tokens of `text` that a path is looked through for: words with their combining marks (6.1)."""
    result: list[str] = []
    inside = False
    for character in text:
        if character == "_" or unicodedata.category(character)[0] in "LNM":
            result[-1:] = [result[-1] + character] if inside else [*result[-1:], character]
            inside = True
        else:
            inside = False
    return result


# --- the score of words (6.2) --------------------------------------------------------------------------------------


def boost(words: frozenset[str], text: str, path: str) -> Boost:
    """Return what a chunk gains over its bm25 score by those of the `words` of a question that it holds (6.2)."""
    if not words:
        return NO_BOOST
    inside = words_of(text)
    shared, folded = len(words & inside), lowered(path)
    return Boost(
        _WORD_SHARE * shared / len(words),
        _TEXT_SHARE * shared / max(1, len(inside)),
        _PATH_WORD * sum(word in folded for word in words),
        min(jsstring.utf16_len(text[:_LENGTH_UNITS]) / _LENGTH_UNITS, _MOST_LENGTH),
    )


def boosted(text_score: float, gain: Boost) -> float:
    """Return the keyword score: bm25's and its boost, 1 at most (6.2)."""
    return text_score if gain is NO_BOOST else min(1.0, text_score + (gain.query + gain.text + gain.path + gain.length))


# --- paths (6.3, 6.9) ----------------------------------------------------------------------------------------------


def plain_path(path: str) -> str:
    """Return `path` as it is compared with a question (6.3)."""
    text = jsstring.trim(path).replace("\\", "/").removeprefix("./")
    return unicodedata.normalize("NFC", text).lower()


def exact_names(path: str) -> tuple[str, str, str]:
    """Return what a question has to be to name `path`: the whole of it, its last part, that without extension (6.3)."""
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
    """Return where each of `paths` stands among them (6.9)."""
    place = {path: at for at, path in enumerate(sorted(set(paths), key=collation))}
    return np.array([place[path] for path in paths], dtype=np.int64)


@functools.cache
def _letters() -> Mapping[int, str]:
    """Return what stands for each ASCII character where letters are compared."""
    return {code: _primary(chr(code).lower()) for code in range(128)}


@functools.cache
def _cases() -> Mapping[int, str]:
    """Return what stands for each ASCII character where cases are compared."""
    return {code: "0" if chr(code).lower() == chr(code) else "1" for code in range(128)}


def _primary(character: str) -> str:
    """Return two characters, of which the first is the class of `character`."""
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
    path, start, _, chunk = hit.place
    return (
        -hit.level,
        not hit.body if hit.level else False,
        -(hit.score if hit.body else 1.0 if hit.level else hit.path_score),
        -hit.text_score,
        0.0 if hit.level else -hit.path_score,
        collation(path),
        start,
        chunk,
    )


def merged(lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Return one hit a chunk, with the best of what each list knows of it, in order K (6.5)."""
    return sorted(_united(lists).values(), key=order_k)


def _united(lists: Iterable[Sequence[Hit]]) -> dict[int, Hit]:
    result: dict[int, Hit] = {}
    for hits in lists:
        for hit in hits:
            result[hit.row] = _both(result[hit.row], hit) if hit.row in result else hit
    return result


def _both(item: Hit, other: Hit) -> Hit:
    """Return two findings of one chunk as one; of two in its text the better speaks."""
    best = max((hit for hit in (item, other) if hit.body), key=lambda hit: hit.score, default=item)
    return Hit(
        row=item.row,
        place=item.place,
        level=item.level,
        body=item.body or other.body,
        score=best.score,
        text_score=max(item.text_score, other.text_score),
        path_score=max(item.path_score, other.path_score),
        bm25=best.bm25,
        gain=best.gain,
        term=best.term,
    )


def merged_and_limited(lists: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Return `lists` as one, cut to 200 a kind; in any order where nothing is cut (6.6)."""
    if sum(map(len, lists)) <= LIMIT:
        return list(_united(lists).values())
    return limited(merged(lists))


def limited(hits: Sequence[Hit]) -> list[Hit]:
    """Return `hits`, in order K, cut to 200 a kind (6.6)."""
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
    """Return what an importance of 1 to 10 multiplies by: 0.80 to 1.25, 1 without one (7.2)."""
    return 0.75 + 0.05 * importance if importance else 1.0


def project_factor(annotations: Annotations, active: Collection[str]) -> float:
    """Return what the projects of a chunk multiply by where some are `active` (7.3)."""
    if not active or not annotations.project:
        return 1.0
    return ACTIVE if all(key in active for key in annotations.keys) else INACTIVE


def dropped(annotations: Mapping[int, Annotations]) -> frozenset[int]:
    """Return the rows that are never recalled, because nobody can tell their project (7.3)."""
    return frozenset(row for row, entry in annotations.items() if INVALID_PROJECT in entry.keys)


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
        result = set(snippet.encode("ascii").translate(_LATIN_OF_ASCII).decode("ascii").split())
    else:
        text = snippet.lower()
        result = set(_LATIN.findall(text))
        for run in _IDEOGRAPHS.findall(text):
            result.update(run)
            result.update(run[at : at + 2] for at in range(len(run) - 1))
    # Two snippets without any token are alike where they are equal: the whole text is a token of its own.
    return frozenset(result or (f"\0{jsstring.trim(snippet.lower())}",))


# --- path search (6.4) ---------------------------------------------------------------------------------------------

TRIGRAM = 3
"""Characters without which trigrams find nothing."""

Plan = tuple[tuple[str, ...], tuple[str, ...]]
"""Words that are matched, in order, and words that only have to be contained."""


class PathHit(Struct, frozen=True):
    """A file that a path search found: its place in the corpus, how exactly the question names it, and its score."""

    file: int
    level: int
    score: float


def plans(query: str, *, trigram: bool) -> list[Plan]:
    """How the paths are looked through for `query`: by its words, and by what full-text search cannot find (6.4)."""
    forms = (unicodedata.normalize("NFC", query), unicodedata.normalize("NFD", query))
    result: list[Plan] = []
    if trigram:
        result = [_split(path_words(form), lambda word: len(word) >= TRIGRAM) for form in forms]
    else:
        result.append((tuple(core_tokens.WORD.findall(query)), ()))
        for form in forms:
            plan = _split(path_words(form), str.isascii)
            if plan[1]:
                result.append(plan)
    return [plan for plan in dict.fromkeys(result) if plan[0] or plan[1]]


def _split(words: Iterable[str], matches: Callable[[str], bool]) -> Plan:
    words = list(words)
    return tuple(w for w in words if matches(w)), tuple(_folded(w) for w in words if not matches(w))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


class PathIndex:
    """The paths of `files`, but for those that were `removed`, by their places."""

    def __init__(self, files: Files, removed: frozenset[int], *, trigram: bool) -> None:
        self.paths = files.paths
        self.trigram = trigram
        self._removed = removed
        self._live = [file for file in range(len(files.paths)) if file not in removed]
        self._sources = files.sources

    def is_of(self, files: Files, removed: frozenset[int]) -> bool:
        """Return whether this holds for `files` without those that were `removed` as well: no note came or went."""
        return self.paths is files.paths and self._removed == removed

    @cached_property
    def _tokens(self) -> Mapping[int, tuple[str, ...]]:
        return {file: tuple(self._cut(self.paths[file])) for file in self._live}

    def _cut(self, text: str) -> list[str]:
        return core_tokens.trigrams(text) if self.trigram else core_tokens.tokens(text, stemmed=False)

    @cached_property
    def _files_with(self) -> Mapping[str, tuple[int, ...]]:
        result: defaultdict[str, list[int]] = defaultdict(list)
        for file, file_tokens in self._tokens.items():
            for token in dict.fromkeys(file_tokens):
                result[token].append(file)
        return {token: tuple(files) for token, files in result.items()}

    @cached_property
    def _mean(self) -> float:
        return sum(map(len, self._tokens.values())) / max(1, len(self._tokens))

    @cached_property
    def order(self) -> Counts:
        """Return where the path of each file stands among all (6.9)."""
        return path_order(self.paths)

    @cached_property
    def _contents(self) -> Mapping[int, str]:
        return {file: _folded(self.paths[file]) for file in self._live}

    @cached_property
    def _names(self) -> Mapping[str, tuple[int, ...]]:
        """Return the files by everything that names them."""
        result: defaultdict[str, list[int]] = defaultdict(list)
        for file in self._live:
            for name in dict.fromkeys(exact_names(self.paths[file])):
                result[name].append(file)
        return {name: tuple(files) for name, files in result.items()}

    def exact(self, query: str) -> dict[int, int]:
        """Return how exactly `query` names each file that it names (6.3)."""
        plain = plain_path(query)
        result = {file: exact_level(plain, exact_names(self.paths[file])) for file in self._names.get(plain, ())}
        return {file: level for file, level in result.items() if level}

    def search(self, query: str, exact_query: str, has_chunk: Callable[[int], bool]) -> list[PathHit]:
        """Return the files whose path holds `query`, or that `exact_query` names; only those that `has_chunk` (6.4)."""
        levels = self.exact(exact_query)
        result = [(plan, self._fulfilling(plan)) for plan in plans(query, trigram=self.trigram)]
        named = {file: level for file, level in levels.items() if has_chunk(file)}
        if exact_query.isascii() and result:
            named = {file: level for file, level in named.items() if file in result[0][1]}
        order = sorted(named, key=lambda file: (-named[file], self._key(file)))[:LIMIT]
        scores: dict[int, float] = dict.fromkeys(order, 0.0)
        for (matched, _), ranks in result:
            order = sorted(filter(has_chunk, ranks), key=lambda file: (ranks[file], self._key(file)))
            best = [file for file in order if file in levels][:LIMIT]
            best += [file for file in order if file not in levels][:LIMIT]
            for file in best:
                if file in levels and file not in scores:
                    continue
                path_score = float(saturated(np.array(ranks[file]))) if matched else 1.0
                scores[file] = max(scores.get(file, 0.0), path_score)
        return [PathHit(file, levels.get(file, 0), score) for file, score in scores.items()]

    def _key(self, file: int) -> tuple[bytes, str]:
        return self.paths[file].encode("utf-8", "replace"), self._sources[file]

    def _fulfilling(self, plan: Plan) -> dict[int, float]:
        """Return the files that fulfil `plan`, each with its bm25 (0 where nothing is matched)."""
        matched, contained = plan
        ranks = self._matching(matched) if matched else dict.fromkeys(self._live, 0.0)
        if not contained:
            return ranks
        return {file: rank for file, rank in ranks.items() if all(w in self._contents[file] for w in contained)}

    def _matching(self, words: Sequence[str]) -> dict[int, float]:
        """bm25 of every file that holds all `words`, added up as FTS5 does."""
        known = {word: self._frequencies(word) for word in dict.fromkeys(words)}
        every = [known[word] for word in words]
        files = set(every[0]).intersection(*every[1:])
        count = len(self._live)
        weights = [fts5_idf(len(own), count) for own in every]
        result = {}
        for file in files:
            length = length_damping(len(self._tokens[file]), self._mean)
            result[file] = -sum(
                idf * (own[file] * (K1 + 1) / (own[file] + length)) for idf, own in zip(weights, every, strict=True)
            )
        return result

    def _frequencies(self, word: str) -> dict[int, int]:
        """Return how often `word` stands in each path that holds it; one of several tokens as a phrase."""
        phrase = self._cut(word)
        if not phrase:
            return {}
        if len(phrase) == 1:
            return {file: self._tokens[file].count(phrase[0]) for file in self._files_with.get(phrase[0], ())}
        rarest = min((self._files_with.get(token, ()) for token in phrase), key=len)
        result = {}
        for file in rarest:
            path_tokens, size = self._tokens[file], len(phrase)
            count = sum(list(path_tokens[at : at + size]) == phrase for at in range(len(path_tokens) - size + 1))
            if count:
                result[file] = count
        return result


# --- one question --------------------------------------------------------------------------------------------------


class LexicalCache(Struct, frozen=True):
    """What of one corpus does not depend on the question: its paths, and what the annotations of rows say."""

    paths: PathIndex
    annotations: Mapping[int, Annotations]


_caches: WeakKeyDictionary[Corpus, LexicalCache] = WeakKeyDictionary()


def known_of(store: Store, corpus: Corpus, *, trigram: bool) -> LexicalCache:
    """Return what is known of `corpus`, worked out once; paths stay from one to the next where no note came or went."""
    cache = _caches.get(corpus)
    if cache is None or cache.paths.trigram != trigram:
        rowids = store.annotations()
        rows = corpus.rows_of(list(rowids)).tolist()
        annotations = {row: Annotations(*values) for row, values in zip(rows, rowids.values(), strict=True) if row >= 0}
        removed = _removed_files(store, corpus)
        others = (other.paths for other in list(_caches.values()))
        same = next(
            (paths for paths in others if paths.is_of(corpus.files, removed) and paths.trigram == trigram), None
        )
        cache = _caches[corpus] = LexicalCache(same or PathIndex(corpus.files, removed, trigram=trigram), annotations)
    return cache


def _removed_files(store: Store, corpus: Corpus) -> frozenset[int]:
    """Return the files of `corpus` that were removed; a note without text has no chunk either, but its path counts."""
    paths = corpus.files.paths
    empty = np.flatnonzero(np.bincount(corpus.file_of, minlength=len(paths)) == 0).tolist()
    there = store.known()
    return frozenset(file for file in empty if paths[file] not in there)


class _SearchHits(Struct, frozen=True):
    """What one search found: the best `rows` with bm25 and text score, and hits by `paths`."""

    rows: Rows
    bm25: Floats
    text: Floats
    is_matched: bool
    paths: Sequence[Hit]


def search(store: Store, matcher: Matcher, query: str, whole: KeywordSide) -> tuple[Lexical, dict[int, str]]:
    """Return all that words and paths find for `query`, in the order of the original, and the texts read by rowid.

    `whole` is what the words of the whole query found. Raises QueryError, Cancelled.
    """
    return _Search(store, matcher, query).all(whole)


class _Search:
    """One question."""

    def __init__(self, store: Store, matcher: Matcher, query: str) -> None:
        self.store, self.matcher, self.query, self.corpus = store, matcher, query, matcher.corpus
        self.seen = known_of(store, self.corpus, trigram=matcher.full_text == "trigram")
        self.levels = self.seen.paths.exact(query)
        files = self.corpus.file_of if matcher.eligible is None else self.corpus.file_of[matcher.eligible]
        self.counts = np.bincount(files, minlength=len(self.corpus.files.paths)) if len(self.corpus) else np.zeros(0)
        self.searches: list[TermSearch] = []

    def all(self, whole: KeywordSide) -> tuple[Lexical, dict[int, str]]:
        first = self.once(self.query, whole)
        each = [first, *(self.once(term, self.matcher.openclaw(term)) for term in self.terms(first))]
        rows = distinct(np.concatenate([item.rows for item in each])).tolist()
        rowids = self.corpus.rowids[rows].tolist()
        texts, words = self.store.texts(rowids), core_tokens.words_of(self.query)
        gains = {
            row: boost(words, texts.get(rowid, ""), self.corpus.path(row))
            for row, rowid in zip(rows, rowids, strict=True)
        }
        hits = limited(merged([self.hits(item, term, gains) for term, item in enumerate(each)]))
        lexical = Lexical(
            self.searches[0].plan,
            tuple(self.searches),
            tuple(hits),
            self.seen.annotations,
            self.levels,
            self.corpus.files.mtimes_ms,
            self.seen.paths.order,
        )
        return lexical, texts

    def terms(self, first: _SearchHits) -> tuple[str, ...]:
        """Return the keywords that are looked for one by one after the whole question found `first` (6.7)."""
        rows = {*first.rows.tolist(), *(hit.row for hit in first.paths)}
        if sum(int(self.corpus.file_of[row]) not in self.levels for row in rows) >= LIMIT:
            return ()
        terms = fallback_terms(self.query, trigram=self.matcher.full_text == "trigram")
        # The same words in the same order would be the same search again.
        before, again = (core_tokens.WORD.findall(text.lower()) for text in (self.query, " ".join(terms)))
        return () if rows and before == again else terms

    def once(self, query: str, side: KeywordSide) -> _SearchHits:
        """Search once: in texts, where `side` found its words, and in paths (6.2, 6.4)."""
        rows, bm25 = side.postings.rows[:LIMIT], side.postings.bm25[:LIMIT]
        matched = self.matcher.matches(query)
        paths = self.paths(query, len(self.searches))
        self.searches.append(
            TermSearch(query, side.plan, len(side.postings.rows), len(rows), len(paths), side.frequency)
        )
        return _SearchHits(rows, bm25, formulas.saturated(bm25) if matched else np.zeros(len(rows)), matched, paths)

    def hits(self, result: _SearchHits, term: int, gains: Mapping[int, Boost]) -> list[Hit]:
        """Return what one search found, with the boosts of texts, and by paths (6.2, 6.4, 6.6)."""
        hits = []
        for row, rank, score in zip(result.rows.tolist(), result.bm25.tolist(), result.text.tolist(), strict=True):
            gain, bm25 = gains[row], rank if result.is_matched else np.nan
            level = self.levels.get(int(self.corpus.file_of[row]), 0)
            hits.append(Hit(row, self.place(row), level, True, boosted(score, gain), score, 0.0, bm25, gain, term))
        return merged_and_limited([hits, result.paths])

    def paths(self, query: str, term: int) -> list[Hit]:
        """Return the first chunk of each file whose path was found (6.4)."""
        hits = []
        for hit in self.seen.paths.search(query, self.query, lambda file: bool(self.counts[file])):
            rows = np.flatnonzero(self.corpus.file_of == hit.file).tolist()
            row = min(rows, key=lambda row: self.place(row)[1:])
            score = 1.0 if hit.level else hit.score
            hits.append(Hit(row, self.place(row), hit.level, False, score, 0.0, hit.score, np.nan, NO_BOOST, term))
        hits.sort(key=order_k)
        exact = [hit for hit in hits if hit.level]
        return (exact + [hit for hit in hits if not hit.level][:LIMIT])[: 2 * LIMIT]

    def place(self, row: int) -> tuple[str, int, int, str]:
        ref = self.corpus.refs[row]
        return ref.path, ref.start_line, ref.end_line, ref.id
