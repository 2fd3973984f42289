"""Evidence made by hand, for tests of ranking that need no index."""

import datetime as dt
from collections.abc import Mapping, Sequence

import numpy as np

from memory_tui.config.settings import Settings, Value, compose, find_knob
from memory_tui.search.corpus import Chunks, Files
from memory_tui.search.keyword import KeywordSide, Postings
from memory_tui.search.retrieve import Evidence, Question
from memory_tui.search.trace import QueryPlan
from memory_tui.workspace.notes import date_of

DAY = 86_400.0
NOW = 1_794_960_000.0
"""The beginning of a day."""
_ALIKE = {"question": Question("word", "word", None), "now": NOW, "generation": 1}
_ALIKE |= {"provider": "scripted", "model": "hash-256", "unsearchable": (), "notices": ()}


def evidence(
    cosines: Sequence[float] | None,
    bm25: Mapping[int, float],
    *,
    ages: Sequence[float] | None = None,
    texts: Sequence[str] | None = None,
    named: frozenset[int] = frozenset(),
) -> Evidence:
    """One chunk a file; `bm25` holds FTS5's negative rank of rows that matched, `ages` whole days (NaN: evergreen)."""
    n = len(texts) if texts is not None else len(cosines) if cosines is not None else max(bm25, default=-1) + 1
    order = sorted(bm25, key=lambda row: (bm25[row], row))
    plan = QueryPlan(("word",), (), '"word"')
    postings = Postings(np.array(order, dtype=np.int64), np.array([bm25[row] for row in order]))
    side = KeywordSide(plan, postings, {"word": 1})
    cosine = None if cosines is None else np.array(cosines, dtype=np.float64)
    nearest = np.empty(0, dtype=np.int64) if cosine is None else np.argsort(-cosine, kind="stable")[:200]
    days = np.array([np.nan] * n if ages is None else ages, dtype=np.float64)
    numbers = np.arange(n)
    today = dt.datetime.fromtimestamp(NOW, dt.UTC).date()
    dates = [str(i) if np.isnan(day) else str(today - dt.timedelta(days=int(day))) for i, day in enumerate(days)]
    paths = [f"memory/{date}.md" for date in dates]
    lines = np.ones(n, dtype=np.int32), np.full(n, 5, dtype=np.int32)
    ids = np.array([f"id{i}" for i in range(n)], object)
    refs = Chunks(numbers, numbers.astype(np.int32), *lines, ids, paths, ["memory"] * n)
    none, each = np.empty(0, dtype=np.int64), tuple(paths)
    return Evidence(
        **_ALIKE,
        refs=refs,
        files=n,
        cosine=cosine,
        nearest=nearest,
        shown=numbers,
        openclaw=side,
        recommended=side,
        embedded=0 if cosine is None else len(cosine),
        keywords=None if cosines is not None else KeywordSide(plan, each=(side,)),
        texts=dict(enumerate(texts if texts is not None else [f"text {i}" for i in range(n)])),
        notes=Files(each, ("memory",) * n, np.zeros(n, np.int64), tuple(map(date_of, paths)), each, ("",) * n),
        of_named_time=dict.fromkeys(named, 1.0),
        of_days=none,
        titled=none,
        timings={},
    )


def settings(profile: str, **changes: object) -> Settings:
    chosen = {find_knob(name).key: Value(value, "test") for name, value in changes.items()}
    return compose(profile, {}, chosen)
