"""The built-in index answers beside QMD, matched by shared lines, with the reason for each hit that one lacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.core.cancel import Stop
from memory_tui.core.sanitize import one_line
from memory_tui.qmd import index, options, reasons
from memory_tui.qmd.answer import QmdHit
from memory_tui.qmd.folder import QmdFailure

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.qmd.answer import QmdHit
    from memory_tui.qmd.client import QmdAnswer
    from memory_tui.qmd.index import QmdFile
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Trace


CUT = 6
"""Hits that recall is counted over, as many as an agent gets."""


class OwnHit(Struct, frozen=True):
    """A hit of the built-in index, number `rank`; lines are 1-based and inclusive."""

    rank: int
    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str


class SharedRow(Struct, frozen=True):
    """Lines that one answer or both hold: each hit, None with the reason where an answer lacks it."""

    builtin: OwnHit | None
    qmd: QmdHit | None
    why_not_builtin: str = ""
    why_not_qmd: str = ""

    @property
    def hit(self) -> OwnHit | QmdHit:
        """Either of the two."""
        found = self.builtin or self.qmd
        assert found is not None
        return found


def matched(ours: Sequence[OwnHit], theirs: Sequence[QmdHit]) -> list[SharedRow]:
    """Every hit of both, those with shared lines in one row; by the better rank."""
    left = list(theirs)
    rows = []
    for hit in ours:
        twin = next((other for other in left if _overlap(hit, other)), None)
        if twin is not None:
            left.remove(twin)
        rows.append(SharedRow(hit, twin))
    rows += [SharedRow(None, other) for other in left]
    return sorted(rows, key=lambda row: (min(one.rank for one in (row.builtin, row.qmd) if one), row.builtin is None))


def _overlap(one: OwnHit, other: QmdHit) -> bool:
    return one.path == other.path and one.start_line <= other.end_line and other.start_line <= one.end_line


class Measures(Struct, frozen=True):
    """How one backend did over labelled questions: means of hit@1, recall@6 and reciprocal rank, and empty answers."""

    questions: int = 0
    hit_at_1: float = 0.0
    recall_at_6: float = 0.0
    mrr: float = 0.0
    empty: int = 0


def first_right(hits: Sequence[OwnHit | QmdHit], right: Mapping[str, set[int]]) -> int:
    """The rank (1-based) of the first hit that holds a line of `right`, by path; 0 for none.

    A path whose lines are unknown (none) is right as a whole.
    """
    return next((rank for rank, hit in enumerate(hits, 1) if _held(hit, right)), 0)


def _held(hit: OwnHit | QmdHit, right: Mapping[str, set[int]]) -> set[tuple[str, int]]:
    """The right lines that a hit holds; line 0 stands for a whole note."""
    lines = right.get(hit.path)
    if lines is None:
        return set()
    return {(hit.path, line) for line in lines or {0} if not line or hit.start_line <= line <= hit.end_line}


class Tally(Struct):
    """Sums over questions; `add` counts one answer."""

    labelled: int = 0
    asked: int = 0
    empty: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def add(self, hits: Sequence[OwnHit | QmdHit], right: Mapping[str, set[int]]) -> None:
        """Count an answer; `right` are the lines that answer the question by path, empty where it has no labels."""
        self.asked += 1
        self.empty += not hits
        if not right:
            return
        self.labelled += 1
        wanted = sum(len(lines or {0}) for lines in right.values())
        seen = {at for hit in hits[:CUT] for at in _held(hit, right)}
        first = first_right(hits, right)
        for at, value in enumerate((first == 1, len(seen) / wanted, 1 / first if first else 0.0)):
            self.sums[at] += value

    def measures(self) -> Measures:
        """The means over what was labelled."""
        count = self.labelled or 1
        hit, recall, rank = (total / count for total in self.sums)
        return Measures(self.asked, hit, recall, rank, self.empty)


class QmdComparison(Struct, frozen=True):
    """Both answers to `query`; where QMD gave none, `failure` says why and `qmd` is None."""

    query: str
    builtin: tuple[OwnHit, ...]
    qmd: QmdAnswer | None
    rows: tuple[SharedRow, ...]
    failure: str = ""
    next_step: str = ""

    @property
    def qmd_hits(self) -> tuple[QmdHit, ...]:
        """QMD's hits."""
        return self.qmd.hits if self.qmd is not None else ()


def compare(engine: Engine, query: str, stop: Stop | None = None, *, explained: bool = True) -> QmdComparison:
    """Ask both; QMD is asked whoever was chosen to answer. Raises QueryError, IndexUnavailable, Cancelled."""
    evidence = engine.search.gather(query, stop)
    trace = engine.search.rank(evidence, engine.plan.settings)
    ours = own_hits(trace)
    try:
        engine.backend.settle(stop or Stop())
        theirs = engine.backend.client.ask(query, engine.plan.settings.whole("query.maxResults"), stop=stop)
    except QmdFailure as failure:
        rows = tuple(matched(ours, ()))
        return QmdComparison(query, ours, None, rows, failure.message, failure.next_step)
    rows = tuple(matched(ours, theirs.hits))
    if explained:
        rows = tuple(_explained(engine, evidence, theirs, row, stop) for row in rows)
    return QmdComparison(query, ours, theirs, rows)


def own_hits(trace: Trace) -> tuple[OwnHit, ...]:
    """What the built-in index recalls."""
    return tuple(
        OwnHit(place, hit.chunk.path, hit.chunk.start_line, hit.last_line, hit.score, hit.snippet)
        for place, hit in enumerate(trace.recalled, 1)
    )


def _explained(engine: Engine, evidence: Evidence, theirs: QmdAnswer, row: SharedRow, stop: Stop | None) -> SharedRow:
    from memory_tui.explain import wording

    if row.builtin is None and row.qmd is not None:
        if row.qmd.path.startswith("qmd/"):
            return replace(row, why_not_builtin="It is outside the notes that are indexed here.")
        found = engine.search.why(evidence, row.qmd.path, row.qmd.start_line)
        return replace(row, why_not_builtin=one_line(wording.account(found)))
    if row.qmd is None and row.builtin is not None:
        middle = (row.builtin.start_line + row.builtin.end_line) // 2
        reason = reasons.why(engine.backend.client, theirs, row.builtin.path, middle, stop)
        return replace(row, why_not_qmd=reason.sentence)
    return row


def why_both(engine: Engine, query: str, path: str, line: int | None, stop: Stop | None = None) -> tuple[str, str]:
    """Why a line (None: any line of the note) is or is not in each answer: the built-in index's, then QMD's.

    Raises QueryError, IndexUnavailable, Cancelled.
    """
    from memory_tui.explain import wording

    ours = engine.search.why(engine.search.gather(query, stop), path, line)
    client = engine.backend.client
    try:
        asked = client.ask(query, engine.plan.settings.whole("query.maxResults"), stop=stop)
        theirs = reasons.why(client, asked, ours.place.path, line or 0, stop).sentence
    except QmdFailure as failure:
        theirs = f"{failure.message} {failure.next_step}".rstrip()
    return one_line(wording.account(ours)), one_line(theirs)


# --- over saved queries --------------------------------------------------------------------------------------------


class SavedRow(Struct, frozen=True):
    """A saved query: the rank of the first right hit of each (0: none of its hits is right), and how many hits."""

    query: str
    labelled: bool
    builtin: int
    qmd: int
    builtin_hits: int
    qmd_hits: int


class SavedComparison(Struct, frozen=True):
    """Both over the saved queries; where QMD fails, `failure` says why, and the queries after it were not asked."""

    rows: tuple[SavedRow, ...]
    queries: int
    builtin: Measures
    qmd: Measures
    failure: str = ""
    next_step: str = ""

    @property
    def labelled(self) -> int:
        """Queries with a right line."""
        return sum(row.labelled for row in self.rows)


def compare_saved(engine: Engine, stop: Stop, progress: Callable[[int, int], None]) -> SavedComparison:
    """Ask both every saved query; `progress` is called with done and total.

    Raises LabelError, QueryError, IndexUnavailable, Cancelled.
    """
    from memory_tui.tune import judgments

    book = judgments.load(judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named))
    queries = judgments.settled(book, engine.notes.read).queries
    ours, theirs = Tally(), Tally()
    rows: list[SavedRow] = []
    failure = next_step = ""
    for done, query in enumerate(queries):
        progress(done, len(queries))
        found = compare(engine, query.text, stop, explained=False)
        if found.failure:
            failure, next_step = found.failure, found.next_step
            break
        right: dict[str, set[int]] = {}
        for label in query.relevant:
            right.setdefault(label.path, set()).add(label.line)
        ours.add(found.builtin, right)
        theirs.add(found.qmd_hits, right)
        firsts = [first_right(hits, right) for hits in (found.builtin, found.qmd_hits)]
        counts = len(found.builtin), len(found.qmd_hits)
        rows.append(SavedRow(query.text, bool(right), firsts[0], firsts[1], *counts))
    return SavedComparison(tuple(rows), len(queries), ours.measures(), theirs.measures(), failure, next_step)


# --- an index of somebody else -------------------------------------------------------------------------------------


class QmdIndexComparison(Struct, frozen=True):
    """An index of QMD against the files on disk: of each collection the files that differ, and how many agree."""

    path: str
    collections: tuple[str, ...]
    documents: int
    vectors: int
    same: int
    files: tuple[QmdFile, ...]

    @property
    def summary(self) -> dict[str, int]:
        """Files by difference."""
        names = ("missing", "stale", "ghost")
        return {"same": self.same, **{name: sum(file.difference == name for file in self.files) for name in names}}


def their_indexes(agent: str) -> Iterator[Path]:
    """Where OpenClaw, then the user, keeps an index of QMD."""
    yield options.openclaw_folder(agent) / "xdg-cache" / "qmd" / "index.sqlite"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    yield Path(cache) / "qmd" / "index.sqlite"


def compare_their_index(engine: Engine, named: str) -> QmdIndexComparison:
    """The index at `named`, or OpenClaw's, or the user's; only read. Raises QmdFailure."""
    places = [Path(named).expanduser()] if named else list(their_indexes(engine.plan.agent.id))
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        looked = " and ".join(map(str, places))
        raise QmdFailure("index", f"There is no index of QMD at {looked}.", "Name one: --their-index FILE.")
    known = index.read(file)
    found = [one for collection in known.collections.values() for one in index.compared(collection)]
    return QmdIndexComparison(
        str(file),
        tuple(known.collections),
        known.documents,
        index.embedded(file),
        sum(not one.difference for one in found),
        tuple(sorted((one for one in found if one.difference), key=lambda one: (one.collection, one.path))),
    )
