"""Evidence made by hand, for tests of ranking that need no index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memory_tui import profiles
from memory_tui.search.corpus import DAY_SECONDS
from memory_tui.search.evidence import Age, Evidence, KeywordSearch, KeywordSide, Postings
from memory_tui.search.trace import Basis, Chunks, QueryPlan
from memory_tui.settings import Settings, Value

DAY = 86_400.0
NOW = 1_795_000_000.0


def evidence(
    cosines: Sequence[float] | None,
    bm25: Mapping[int, float],
    *,
    ages: Sequence[float] | None = None,
    texts: Sequence[str] | None = None,
    named: frozenset[int] = frozenset(),
) -> Evidence:
    """One chunk a file; `bm25` holds FTS5's negative rank of the rows that matched, `ages` days (NaN: evergreen)."""
    n = len(texts) if texts is not None else len(cosines) if cosines is not None else max(bm25, default=-1) + 1
    order = sorted(bm25, key=lambda row: (bm25[row], row))
    plan = QueryPlan(("word",), (), '"word"')
    side = KeywordSide(
        plan, Postings(np.array(order, dtype=np.int64), np.array([bm25[row] for row in order])), {"word": 1}
    )
    cosine = None if cosines is None else np.array(cosines, dtype=np.float64)
    nearest = np.empty(0, dtype=np.int64) if cosine is None else np.argsort(-cosine, kind="stable")[:200]
    days = np.array([np.nan] * n if ages is None else ages, dtype=np.float64)
    age = Age(GivenAges(days), 0.0)
    numbers, paths = np.arange(n), [f"memory/{i}.md" for i in range(n)]
    lines = np.ones(n, dtype=np.int32), np.full(n, 5, dtype=np.int32)
    refs = Chunks(
        numbers, numbers.astype(np.int32), *lines, numbers, [f"id{i}" for i in range(n)], paths, ["memory"] * n
    )
    return Evidence(
        query="word",
        now=NOW,
        generation=1,
        provider="scripted",
        model="hash-256",
        refs=refs,
        pool=numbers,
        files=n,
        cosine=cosine,
        nearest=nearest,
        embedded=0 if cosine is None else len(cosine),
        openclaw=side,
        recommended=side,
        keywords=None if cosines is not None else KeywordSearch(plan, (side,)),
        pointless=False,
        full_text=True,
        texts=dict(enumerate(texts if texts is not None else [f"text {i}" for i in range(n)])),
        openclaw_age=age,
        recommended_age=age,
        of_named_time=named,
        unsearchable=(),
        notices=(),
        timings={},
    )


class GivenAges:
    """Files that were changed so many `days` ago, NaN for evergreen ones."""

    def __init__(self, days: np.ndarray) -> None:
        self._days = days

    def seconds(self, files: np.ndarray) -> np.ndarray:
        return -self._days[files] * DAY_SECONDS

    def basis(self, file: int) -> Basis:
        return "evergreen" if np.isnan(self._days[file]) else "name"


def settings(profile: str, **changes: object) -> Settings:
    """Settings of `profile`; keyword `minScore=0` for the key that ends so."""
    from memory_tui.settings import find_knob

    chosen = {find_knob(name).key: Value(value, "test") for name, value in changes.items()}  # type: ignore[arg-type]
    return profiles.compose(profile, {}, chosen)
