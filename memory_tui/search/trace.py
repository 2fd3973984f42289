"""Records of a search: what stands where, what is known of a query, and every number and verdict of a candidate.

Screen, JSON and tests read this record; nothing is recomputed for display.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.index.store import ChunkRow
from memory_tui.sentences import Notice
from memory_tui.workspace.notes import Annotations
from memory_tui.workspace.roots import MEMORY

Mode = Literal["hybrid", "keywords only", "vectors only", "nothing"]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Basis = Literal["name", "front matter", "mtime", "evergreen"]
"""What a note is aged by."""
NearestBy = Literal["sqlite-vec", "numpy", ""]
"""Who found the nearest vectors; empty where none were compared."""
Table = npt.NDArray[np.void]
"""A structured array: one row a candidate, one column a number."""


class ChunkRef(Struct, frozen=True):
    """Where a chunk stands; `id` is the documented chunk id, `rowid` ours; lines are 1-based and inclusive."""

    rowid: int
    id: str
    path: str
    source: str
    start_line: int
    end_line: int

    @property
    def citation(self) -> str:
        """Return `path#Lstart-Lend`."""
        return f"{self.path}#L{self.start_line}-L{self.end_line}"

    def shown(self, texts: Mapping[int, str]) -> ChunkRef:
        """Return the place without the blank line at its end, which its note need not have; `texts` are by rowid."""
        ends_blank = self.source == MEMORY and texts.get(self.rowid, "").endswith("\n")
        return replace(self, end_line=max(self.start_line, self.end_line - 1) if ends_blank else self.end_line)


def refs_of(path: str, rows: Iterable[ChunkRow]) -> tuple[ChunkRef, ...]:
    """Return where the chunks of the note at `path` stand, in their order, without repeats."""
    firsts = (row for row in rows if not row.occurrence)
    return tuple(ChunkRef(row.rowid, row.chunk_id, path, row.source, row.start_line, row.end_line) for row in firsts)


# --- candidates ----------------------------------------------------------------------------------------------------


class MmrPart(Struct, frozen=True):
    """One choice of maximal marginal relevance: lambda x relevance - (1 - lambda) x similarity to the nearest kept."""

    relevance: float
    similarity: float
    twin: ChunkRef | None
    """The nearest that was chosen before; None for the first choice."""
    place: int
    """As which it was chosen, from 1."""


class MeasurePart(Struct, frozen=True):
    """One measure of the second stage: `value` / `best` among the first candidates = `share`, x `weight` = `points`."""

    name: str
    value: float
    best: float
    share: float
    weight: float
    points: float


class SecondPart(Struct, frozen=True):
    """What the second stage found inside a chunk; without `measures` it was not among those looked into.

    `score` is the sum of what the measures give, of which `weight` counts: `points`. It `lost` points because it
    stands `beside` a better candidate. `window` is the first and last line of the best window, 0 where nothing was
    looked into.
    """

    weight: float
    score: float
    points: float
    measures: tuple[MeasurePart, ...] = ()
    lost: float = 0.0
    beside: ChunkRef | None = None
    window: tuple[int, int] = (0, 0)
    asked: str = ""
    """The part of the question that the chunk was measured by; empty where the question is one."""
    leads: bool = False
    """Whether it has the highest score of its part, and so comes before others."""


Boost = tuple[float, float, float, float]
"""What a chunk gains over its bm25 score in OpenClaw 2026.9: by shares of the question's words and of its own, by words
in its path, and by its length."""
NO_BOOST: Boost = (0.0, 0.0, 0.0, 0.0)


class Hit(NamedTuple):
    """A chunk that words or a path found in OpenClaw 2026.9; `row` is its place in the corpus.

    `term` is the keyword that was looked for alone, empty for the whole question; it is that of the search that gave
    the `score`, which is min(1, text score + gain), or `path_score` where the text was not found (`body`). `text_score`
    is the best of any search, which the agent is told. `bm25` is FTS5's own number, NaN where nothing was matched.
    `level` is how exactly the question names its path.
    """

    row: int
    ref: ChunkRef
    term: str = ""
    level: int = 0
    body: bool = False
    score: float = 0.0
    text_score: float = 0.0
    path_score: float = 0.0
    bm25: float = np.nan
    gain: Boost = NO_BOOST


class Factor(Struct, frozen=True):
    """A term that multiplies the score beside age: `importance` or `project`, and what it was read from."""

    term: Literal["importance", "project"]
    value: float
    said: str


class Numbers(Struct, frozen=True):
    """The columns of a table of candidates that others read: what a score is made of.

    Of each side: the raw number (None: no vector, no match), its rank in the pool (0: not proposed), the score made of
    it, and weight x score. `hybrid` is the sum of both. Age multiplies by `age_factor` (OpenClaw), or adds `age_points`
    (recommended); `age_days` is None for evergreen notes. `level` tells how exactly the question names the note: 3 by
    path, 2 by name, 1 by name without extension, 0 not. `merit` orders notes that are named.
    """

    row: int
    cosine: float | None
    vector_rank: int
    vector: float
    vector_points: float
    bm25: float | None
    text_rank: int
    text: float
    text_points: float
    hybrid: float
    age_days: float | None
    age_factor: float
    age_points: float
    date_points: float
    level: int
    merit: float
    score: float


class Candidate(Numbers, frozen=True, kw_only=True):
    """One chunk that a side proposed, with every number that made its score.

    score = hybrid x age_factor x each factor; under `recommended` first_share x hybrid + second.points + age_points +
    date_points - second.lost, of which the weights add up to 1. But where the question names the note (`level`) it is
    1 x project, and `merit` orders such notes among themselves.
    """

    chunk: ChunkRef
    verdict: Notice
    """What became of it."""
    snippet: str
    line: int
    """The line of the note that answers best; 0 where no second stage looked."""
    last_line: int
    """The last line of the chunk in its note; unlike `chunk.end_line` never one that is not there."""
    first_share: float
    """What vector and text count for beside the second stage and what is added; 1 where nothing is."""
    age_basis: Basis | Literal["off"]
    mmr: MmrPart | None
    factors: tuple[Factor, ...]
    lexical: Hit | None
    """How words and paths found it in OpenClaw 2026.9."""
    annotations: Annotations
    provenance: Mapping[str, Any] | None
    """Whom OpenClaw 2026.9 takes for its author, in what kind of session, and when (epoch milliseconds)."""
    second: SecondPart | None
    copies: tuple[ChunkRef, ...] = ()
    """Where the same passage stands too; it takes one place in an answer."""
    newer: str = ""
    """The line of another hit that states the same as its best line, with a newer value; empty for none."""

    @property
    def citation(self) -> str:
        """Return where it is shown to stand, as a citation."""
        return replace(self.chunk, end_line=self.last_line).citation

    @property
    def remarks(self) -> str:
        """Return what is said of it beside its place: where it stands too, and that a newer line says otherwise."""
        count = len({copy.path for copy in self.copies} - {self.chunk.path})
        also = f"also in {count:,} other note{'' if count == 1 else 's'}" if count else ""
        older = f"an older value, newer in {self.newer}" if self.newer else ""
        return ", ".join(filter(None, (also, older)))


# --- the question ----------------------------------------------------------------------------------------------------


class Correction(Struct, frozen=True):
    """What was `asked`, and the words that are searched instead of it, or as well as it where notes hold both."""

    asked: str
    searched: tuple[str, ...]
    also: bool = False


class QuestionPart(Struct, frozen=True):
    """One of the questions that a query asks at once, and those of the words of the query that stand in it."""

    asked: str
    words: tuple[str, ...]


class QueryPlan(Struct, frozen=True):
    """What became of the words of a query: the `words` searched for, those `dropped`, and the FTS5 expression.

    `fts_query` is empty when no word is left. `time` is the days the query speaks of, in figures, and `time_words` the
    words that name them, which are not searched unless the query asks nothing but this time (`time_alone`). `inside`
    tells that words are found inside longer ones as well. `common` are those of the `dropped` that more than half of
    the chunks hold, as a person wrote them. `counted` are the same as they are matched: they find no chunk, but count
    in those that another word finds.
    """

    words: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    fts_query: str = ""
    time: str = ""
    time_words: str = ""
    inside: bool = False
    common: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    """Words that were searched otherwise than they were asked."""
    parts: tuple[QuestionPart, ...] = ()
    """What the query asks one by one; none where it asks one thing."""
    time_alone: bool = False
    for_now: str = ""
    """The words that ask how things are now, where no time is named: the newest of what says the same comes first."""
    value: str = ""
    """The word for the value that is asked for, where neither holds: a line with such a value comes first."""

    @property
    def readings(self) -> tuple[str, ...]:
        """Return what was searched otherwise than it was written, each as a clause."""
        words = (
            f'"{item.asked}" {"also " if item.also else ""}→ "{" ".join(item.searched)}"' for item in self.corrections
        )
        time = [f'"{self.time_words}" → {self.time}'] if self.time else []
        parts = [f"asked in {len(self.parts)} parts"] if self.parts else []
        now = [f'"{self.for_now}": newest first'] if self.for_now else []
        value = [f'"{self.value}": lines with a value first'] if self.value else []
        return (*words, *time, *now, *value, *parts)

    @property
    def unmatched(self) -> str:
        """Return that none of `words` was found, as a clause that says of which words it is true."""
        if not self.dropped:
            return "no word of the query was found in a note"
        common = f"; left out as too common: {', '.join(self.common)}" if self.common else ""
        return f"none of the words that count was found in a note{common}"
