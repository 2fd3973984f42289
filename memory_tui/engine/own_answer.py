"""OpenClaw's own answer is that of its rows by its rules; it stands beside ours, which is that of the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memory_tui.core import profiles
from memory_tui.engine.engine import Engine
from memory_tui.engine.provider_setup import withheld_question
from memory_tui.openclaw import own_rows
from memory_tui.search.corpus import Corpus
from memory_tui.search.index_in_memory import Dates
from memory_tui.search.rank import rank
from memory_tui.search.retrieve import SearchContext, gather
from memory_tui.search.trace import Trace


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """Both answers to `query`; `by_words` tells that OpenClaw's vectors were not compared."""

    query: str
    theirs: Trace
    ours: Trace
    by_words: bool

    @property
    def same(self) -> bool:
        """Whether both recall the same lines in the same order."""
        return _lines(self.theirs) == _lines(self.ours)


def _lines(trace: Trace) -> list[tuple[str, int, int]]:
    return [(hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line) for hit in trace.recalled]


def own_answer(engine: Engine, query: str, database: Path) -> OwnAnswer:
    """Ask both indexes. Raises IndexUnavailable, QueryError, Cancelled."""
    ours = engine.queries.rank(engine.queries.gather(query), engine.plan.settings)
    identity = engine.queries.on_snapshot(lambda store: store.identity())
    with own_rows.index_of(database, identity) as store:
        corpus = Corpus.load(store)
        space = corpus.identity
        provider = engine.providers.chain.of_space(space) if space is not None and space.dims else None
        if provider is not None and withheld_question(provider, query, engine.plan.settings):
            provider = None
        context = SearchContext(store, corpus, Dates.of(corpus), provider, projects=engine.plan.projects)
        evidence = gather(query, context, engine.now())
        theirs = rank(evidence, engine.plan.with_profile(profiles.NEWEST))
    return OwnAnswer(query, theirs, ours, provider is None)
