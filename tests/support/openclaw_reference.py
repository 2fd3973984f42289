"""OpenClaw 2026.3.13 (and 2026.2.26) read straight from its documented behaviour, as slowly and plainly as it goes.

Chunks come from `workspace.chunks`, which has a plain reading of its own in its tests; everything after them is written
again here: tables in memory, loops instead of arrays, sqlite-vec for every distance. One fault is left out: a chunk
whose vector is all zeros scores 0 and not 1.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
import struct
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from memory_tui.index import schema
from memory_tui.jsstring import WHITESPACE
from memory_tui.search.keywords import keywords
from memory_tui.workspace.chunking import cap_bytes, chunk_id, chunk_text

_TOKEN = re.compile(r"[a-z0-9_]+|[^\x00-\x7f]")


def vector(text: str) -> list[float]:
    """The recorded program's embedding, in double precision."""
    found = [0.0] * 256
    units = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for token in _TOKEN.findall(units.lower()):
        if token.isspace():
            continue
        n = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")
        found[n % 256] += 1.0 if n >> 63 == 0 else -1.0
    length = math.sqrt(sum(x * x for x in found))
    return [x / length for x in found] if length else found


def cosine(a: list[float], b: list[float]) -> float:
    """In double precision; 0 for a vector of zeros."""
    length = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / length if length else 0.0


def fts_query(text: str) -> str:
    """Every run of letters, digits and underscores in quotes, joined with AND."""
    words: list[str] = []
    inside = False
    for character in text:
        if character == "_" or unicodedata.category(character)[0] in "LN":
            words[-1:] = [words[-1] + character] if inside else [*words[-1:], character]
            inside = True
        else:
            inside = False
    return " AND ".join(f'"{word}"' for word in words)


@dataclass(frozen=True)
class Row:
    """A chunk."""

    id: str
    path: str
    start: int
    end: int
    text: str
    vector: list[float] = field(repr=False)

    @property
    def place(self) -> tuple[str, int, int]:
        """What tells hits apart where the original goes by lines."""
        return self.path, self.start, self.end


@dataclass
class Hit:
    """A chunk with the scores that it was found with."""

    row: Row
    vector: float = 0.0
    text: float = 0.0
    score: float = 0.0


@dataclass(frozen=True)
class Options:
    """The settings of a search, as they are after defaults."""

    max_results: int = 6
    min_score: float = 0.35
    hybrid: bool = True
    vector_weight: float = 0.7
    text_weight: float = 0.3
    multiplier: int = 4
    decay: bool = False
    half_life: float = 30
    mmr: bool = False
    mmr_lambda: float = 0.7
    newer: bool = True
    """2026.3.13 rather than 2026.2.26."""

    @property
    def weights(self) -> tuple[float, float]:
        """Clamped and made to add up to 1."""
        a, b = min(1, max(0, self.vector_weight)), min(1, max(0, self.text_weight))
        return (a / (a + b), b / (a + b)) if a + b > 0 else (0.7, 0.3)

    @property
    def candidates(self) -> int:
        """How many each side proposes."""
        return min(200, max(1, self.max_results * self.multiplier))


class Program:
    """An index of a workspace, and searches of it."""

    def __init__(
        self, workspace: Path, files: list[tuple[str, Path]], tokens: int = 400, overlap: int = 80, *, vec: bool = True
    ) -> None:
        self.workspace = workspace
        self.vec = vec
        self.rows: dict[str, Row] = {}
        self._near: dict[str, list[Hit]] = {}
        self.database = apsw.Connection(":memory:")
        assert not vec or schema.vec0(connection=self.database).ready
        self.database.execute("CREATE TABLE vectors(row INTEGER PRIMARY KEY, id TEXT UNIQUE, v BLOB)")
        self.database.execute("CREATE VIRTUAL TABLE chunks_fts USING fts5(text, id UNINDEXED)")
        overlap = min(max(0, overlap), tokens - 1)
        for path, file in files:
            text = file.read_bytes().decode("utf-8", "replace")
            for chunk in cap_bytes(chunk_text(text, tokens, overlap), 8000):
                name = chunk_id("memory", path, chunk, "hash-256")
                self.rows[name] = Row(name, path, chunk.start_line, chunk.end_line, chunk.text, vector(chunk.text))
                self.database.execute("INSERT INTO chunks_fts VALUES(?, ?)", (chunk.text, name))
                self.database.execute(
                    "INSERT OR IGNORE INTO vectors(id, v) VALUES(?, ?)",
                    (name, struct.pack("<256f", *self.rows[name].vector)),
                )

    def keyword(self, text: str, options: Options) -> list[tuple[Row, float, float]]:
        """Chunk, bm25 and text score of what full-text search proposes."""
        query = fts_query(text)
        if not query:
            return []
        found = self.database.execute(
            "SELECT id, bm25(chunks_fts) AS rank FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank ASC LIMIT ?",
            (query, options.candidates),
        ).fetchall()
        return [(self.rows[name], rank, self.text_score(rank, options)) for name, rank in found]

    def text_score(self, rank: float, options: Options) -> float:
        """Of a bm25 rank."""
        if not options.newer:
            return 1 / (1 + max(0.0, rank))
        return -rank / (1 - rank) if rank < 0 else 1 / (1 + rank)

    def search(self, query: str, options: Options, now: float) -> list[Hit]:
        """The hits, in order."""
        query = query.strip(WHITESPACE)
        if not query:
            return []
        keyword = self.keyword(query, options) if options.hybrid else []
        near = [Hit(hit.row, hit.vector) for hit in self.near(query)[: options.candidates]]
        if not options.hybrid:
            return [hit for hit in self._scored(near, (1.0, 0.0)) if hit.score >= options.min_score][
                : options.max_results
            ]
        merged = {hit.row.id: hit for hit in near}
        for row, _, score in keyword:
            merged.setdefault(row.id, Hit(row)).text = score
        hits = self._scored(list(merged.values()), options.weights)
        if options.decay:
            for hit in hits:
                hit.score *= self.faded(hit.row.path, options.half_life, now)
        hits.sort(key=lambda hit: -hit.score)
        if options.mmr and len(hits) > 1:
            hits = diversified(hits, options.mmr_lambda)
        strict = [hit for hit in hits if hit.score >= options.min_score]
        if strict or not keyword or not options.newer:
            return strict[: options.max_results]
        floor = min(options.min_score, options.weights[1])
        places = {row.place for row, _, _ in keyword}
        return [hit for hit in hits if hit.row.place in places and hit.score >= floor][: options.max_results]

    def search_words(self, query: str, options: Options) -> list[Hit]:
        """The hits without any provider: every keyword alone, the best score of each chunk."""
        query = query.strip(WHITESPACE)
        best: dict[str, Hit] = {}
        for word in (keywords(query) or (query,)) if query else ():
            for row, _, score in self.keyword(word, options):
                hit = best.setdefault(row.id, Hit(row, text=score, score=score))
                if score > hit.score:
                    hit.text = hit.score = score
        hits = sorted(best.values(), key=lambda hit: -hit.score)
        return [hit for hit in hits if hit.score >= options.min_score][: options.max_results]

    def near(self, query: str) -> list[Hit]:
        """Every chunk with its vector score, best first; none when the question's vector is all zeros."""
        if query not in self._near:
            self._near[query] = sorted(self._all(vector(query)), key=lambda hit: -hit.vector)
        return self._near[query]

    def _all(self, asked: list[float]) -> list[Hit]:
        if not any(asked):
            return []
        if not self.vec:
            return [Hit(row, vector=cosine(row.vector, asked)) for row in self.rows.values()]
        found = self.database.execute(
            "SELECT id, vec_distance_cosine(v, ?) FROM vectors ORDER BY row", (struct.pack("<256f", *asked),)
        )
        return [Hit(self.rows[name], vector=0.0 if distance is None else 1 - distance) for name, distance in found]

    def _scored(self, hits: list[Hit], weights: tuple[float, float]) -> list[Hit]:
        for hit in hits:
            hit.score = weights[0] * hit.vector + weights[1] * hit.text
        return hits

    def faded(self, path: str, half_life: float, now: float) -> float:
        """What age leaves of the score of a note."""
        half_life = max(1, math.floor(half_life))
        named = re.search(r"(?:^|/)memory/(\d{4})-(\d{2})-(\d{2})\.md\Z", path, re.ASCII)
        born: float
        try:
            # JavaScript takes years below 100 for others, and the original refuses a day that is not what was written.
            if named is None or int(named[1]) < 100:
                raise ValueError(path)
            born = dt.datetime(*map(int, named.groups()), tzinfo=dt.UTC).timestamp()  # type: ignore[misc, arg-type]
        except ValueError:
            if named is None and (path in ("MEMORY.md", "memory.md") or path.startswith("memory/")):
                return 1.0
            born = (self.workspace / path).stat().st_mtime
        return math.exp(-(math.log(2) / half_life) * max(0.0, (now - born) / 86_400))


def diversified(hits: list[Hit], weight: float) -> list[Hit]:
    """In the order of maximal marginal relevance."""
    if weight >= 1:
        return sorted(hits, key=lambda hit: -hit.score)
    low, high = min(hit.score for hit in hits), max(hit.score for hit in hits)
    words = {id(hit): set(re.findall("[a-z0-9_]+", snippet(hit.row.text).lower())) for hit in hits}

    def value(hit: Hit) -> float:
        relevance = (hit.score - low) / (high - low) if high > low else 1.0
        return weight * relevance - (1 - weight) * max((alike(hit, other) for other in chosen), default=0.0)

    def alike(a: Hit, b: Hit) -> float:
        one, two = words[id(a)], words[id(b)]
        return len(one & two) / len(one | two) if one | two else 1.0

    chosen: list[Hit] = []
    left = list(hits)
    while left:
        best = left[0]
        for hit in left[1:]:
            if (value(hit), hit.score) > (value(best), best.score):
                best = hit
        chosen.append(best)
        left.remove(best)
    return chosen


def snippet(text: str) -> str:
    """The first 700 UTF-16 units, without half a character at the end."""
    units = text.encode("utf-16-le")[:1400]
    if units and 0xD8 <= units[-1] <= 0xDB:
        units = units[:-2]
    return units.decode("utf-16-le")


def answer(hits: list[Hit]) -> list[dict[str, Any]]:
    """Hits in the documented shape."""
    return [
        {
            "path": hit.row.path,
            "startLine": hit.row.start,
            "endLine": hit.row.end,
            "score": hit.score,
            "snippet": snippet(hit.row.text),
            "source": "memory",
        }
        for hit in hits
    ]
