"""Path search finds notes by the words of their paths, as OpenClaw 2026.9 does.

The paths of a corpus are few and short, so that they are looked through in memory, with the tokens and the bm25 of
FTS5 (section 6.4 of the profile's specification).
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from memory_tui.core import tokens
from memory_tui.search.corpus import Files, Indices
from memory_tui.search.formulas import K1, fts5_idf, length_damping, saturated
from memory_tui.search.rules_2026_9 import (
    LIMIT,
    exact_level,
    exact_names,
    path_order,
    path_words,
    plain_path,
)

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
    found: list[Plan] = []
    if trigram:
        found = [_split(path_words(form), lambda word: len(word) >= TRIGRAM) for form in forms]
    else:
        found.append((tuple(tokens.WORD.findall(query)), ()))
        for form in forms:
            plan = _split(path_words(form), str.isascii)
            if plan[1]:
                found.append(plan)
    return [plan for plan in dict.fromkeys(found) if plan[0] or plan[1]]


def _split(words: Iterable[str], matches: Callable[[str], bool]) -> Plan:
    words = list(words)
    return tuple(w for w in words if matches(w)), tuple(_folded(w) for w in words if not matches(w))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


class PathIndex:
    """The paths of `files`, but for those that are `gone`, by their places."""

    def __init__(self, files: Files, gone: frozenset[int], *, trigram: bool) -> None:
        self.paths = files.paths
        self.trigram = trigram
        self._gone = gone
        self._live = [file for file in range(len(files.paths)) if file not in gone]
        self._sources = files.sources

    def is_of(self, files: Files, gone: frozenset[int]) -> bool:
        """Whether this holds for `files` without those that are `gone` as well: no note came or went."""
        return self.paths is files.paths and self._gone == gone

    @cached_property
    def _tokens(self) -> Mapping[int, tuple[str, ...]]:
        return {file: tuple(self._cut(self.paths[file])) for file in self._live}

    def _cut(self, text: str) -> list[str]:
        return tokens.trigrams(text) if self.trigram else tokens.tokens(text, stemmed=False)

    @cached_property
    def _files_with(self) -> Mapping[str, tuple[int, ...]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for file, own in self._tokens.items():
            for token in dict.fromkeys(own):
                found[token].append(file)
        return {token: tuple(files) for token, files in found.items()}

    @cached_property
    def _mean(self) -> float:
        return sum(map(len, self._tokens.values())) / max(1, len(self._tokens))

    @cached_property
    def order(self) -> Indices:
        """Where the path of each file stands among all (6.9)."""
        return path_order(self.paths)

    @cached_property
    def _contents(self) -> Mapping[int, str]:
        return {file: _folded(self.paths[file]) for file in self._live}

    @cached_property
    def all_contents(self) -> str:
        """All paths as words are looked for in them, a line each."""
        return "\n".join(self._contents.values())

    @cached_property
    def _names(self) -> Mapping[str, tuple[int, ...]]:
        """The files by everything that names them."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for file in self._live:
            for name in dict.fromkeys(exact_names(self.paths[file])):
                found[name].append(file)
        return {name: tuple(files) for name, files in found.items()}

    def exact(self, query: str) -> dict[int, int]:
        """How exactly `query` names each file that it names (6.3)."""
        plain = plain_path(query)
        found = {file: exact_level(plain, exact_names(self.paths[file])) for file in self._names.get(plain, ())}
        return {file: level for file, level in found.items() if level}

    def search(self, query: str, exact_query: str, has_chunk: Callable[[int], bool]) -> list[PathHit]:
        """The files whose path holds `query`, or that `exact_query` names; only those that `has_chunk` (6.4)."""
        levels = self.exact(exact_query)
        found = [(plan, self._fulfilling(plan)) for plan in plans(query, trigram=self.trigram)]
        named = {file: level for file, level in levels.items() if has_chunk(file)}
        if exact_query.isascii() and found:
            named = {file: level for file, level in named.items() if file in found[0][1]}
        order = sorted(named, key=lambda file: (-named[file], self._key(file)))[:LIMIT]
        scores: dict[int, float] = dict.fromkeys(order, 0.0)
        for (matched, _), ranks in found:
            order = sorted(filter(has_chunk, ranks), key=lambda file: (ranks[file], self._key(file)))
            best = [file for file in order if file in levels][:LIMIT]
            best += [file for file in order if file not in levels][:LIMIT]
            for file in best:
                if file in levels and file not in scores:
                    continue
                own = float(saturated(np.array(ranks[file]))) if matched else 1.0
                scores[file] = max(scores.get(file, 0.0), own)
        return [PathHit(file, levels.get(file, 0), score) for file, score in scores.items()]

    def _key(self, file: int) -> tuple[bytes, str]:
        return self.paths[file].encode("utf-8", "replace"), self._sources[file]

    def _fulfilling(self, plan: Plan) -> dict[int, float]:
        """The files that fulfil `plan`, each with its bm25 (0 where nothing is matched)."""
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
        found = {}
        for file in files:
            length = length_damping(len(self._tokens[file]), self._mean)
            found[file] = -sum(
                idf * (own[file] * (K1 + 1) / (own[file] + length)) for idf, own in zip(weights, every, strict=True)
            )
        return found

    def _frequencies(self, word: str) -> dict[int, int]:
        """How often `word` stands in each path that holds it; one of several tokens as a phrase."""
        phrase = self._cut(word)
        if not phrase:
            return {}
        if len(phrase) == 1:
            return {file: self._tokens[file].count(phrase[0]) for file in self._files_with.get(phrase[0], ())}
        rarest = min((self._files_with.get(token, ()) for token in phrase), key=len)
        found = {}
        for file in rarest:
            own, size = self._tokens[file], len(phrase)
            count = sum(list(own[at : at + size]) == phrase for at in range(len(own) - size + 1))
            if count:
                found[file] = count
        return found
