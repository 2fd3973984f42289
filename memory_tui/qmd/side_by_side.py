"""Two answers side by side are matched by the lines they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from memory_tui.qmd.answer import QmdHit

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
