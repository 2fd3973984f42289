"""What OpenClaw itself gives its agent for a query, beside what the files say.

`own_answer` ranks the rows of OpenClaw's index by its rules; `injected` finds the curated entries whose triggers fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import profiles
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import IndexUnavailable, SettingError
from memory_tui.engine.engine import Engine
from memory_tui.engine.provider_setup import withheld_query
from memory_tui.openclaw import own_rows, trigger_recall
from memory_tui.openclaw.trigger_recall import CuratedEntry, Triggered
from memory_tui.plan import Plan
from memory_tui.search.corpus import Corpus
from memory_tui.search.evidence import Evidence
from memory_tui.search.index_in_memory import Dates
from memory_tui.search.rank import can_rank, rank
from memory_tui.search.retrieve import SearchContext, gather
from memory_tui.search.trace import Trace
from memory_tui.workspace.annotations import CURATED, Annotations


class OwnAnswer(Struct, frozen=True):
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


@contextmanager
def by_newest(engine: Engine, stop: Stop | None = None) -> Iterator[Engine]:
    """The same memory under the newest release's rules: `engine` where it has the chunks of that, else an engine on the
    index beside its own, which is made or brought up to date first.

    Raises IndexUnavailable, Cancelled.
    """
    plan = engine.plan
    if _is_newest(plan):
        yield engine
        return
    if plan.sibling is None:
        raise IndexUnavailable(
            f"The index {plan.index} is cut by other rules than those of {profiles.NEWEST}.",
            f"Leave --index out, or name another one with --profile {profiles.NEWEST}.",
        )
    asked = replace(plan.asked, changes=(*plan.asked.changes, ("profile", profiles.NEWEST)), once=False)
    with Engine.open(asked) as other, (stop or Stop()).around(other.indexer.stop):
        other.indexer.catch_up()
        yield other


def _is_newest(plan: Plan) -> bool:
    return profiles.get(plan.settings.word("profile")).chunking == profiles.get(profiles.NEWEST).chunking


def own_answer(engine: Engine, query: str, database: Path) -> OwnAnswer:
    """Ask both indexes; ours is that of the newest release's chunks, beside the one in use where that has others.

    Raises IndexUnavailable, QueryError, Cancelled."""
    # An index that was named has none beside it: then the files answer by the profile in force.
    with by_newest(engine) if engine.plan.sibling is not None else nullcontext(engine) as asked:
        ours = asked.queries.search(query)
    identity = engine.queries.on_snapshot(lambda store: store.identity())
    with own_rows.index_of(database, identity) as own:
        store, corpus = own.store, Corpus.load(own.store)
        space = corpus.identity
        provider = engine.providers.chain.of_space(space) if space is not None and space.dims else None
        if provider is not None and withheld_query(provider, query, engine.plan.settings):
            provider = None
        dates, projects = Dates.of(corpus), engine.plan.projects
        context = SearchContext(store, corpus, dates, provider, projects=projects, origins=own.origins)
        evidence = gather(query, context, engine.now())
        theirs = rank(evidence, engine.plan.with_profile(profiles.NEWEST))
    return OwnAnswer(query, theirs, ours, provider is None)


def injected(engine: Engine, message: str) -> list[Triggered]:
    """The curated entries that OpenClaw 2026.9 injects for `message`, each with its reason.

    Raises SettingError where the index was cut by another release's rules.
    """
    plan = engine.plan
    if not _is_newest(plan):
        raise SettingError(
            "Only OpenClaw 2026.9 injects entries by their triggers.", f"Use --profile {profiles.NEWEST}."
        )
    settings = plan.settings.set("query.maxResults", trigger_recall.SEARCHED, "trigger recall")
    settings = settings.set("query.minScore", 0.0, "trigger recall")
    trace = engine.queries.rank(engine.queries.gather(message, by_words=True), settings)
    scores = {hit.chunk.id: hit.score for hit in trace.recalled}
    trust = {path: engine.notes.trust_of(path) for path in CURATED}
    entries: list[CuratedEntry] = []
    with engine.queries.reader() as store, store.snapshot():
        said = store.annotations()
        for path in CURATED:
            known = trust[path]
            trusted = known is None or known.state != "untrusted"
            chunks = [chunk for chunk in store.chunks_of(path) if chunk.rowid in said]
            texts = store.texts([chunk.rowid for chunk in chunks])
            for chunk in chunks:
                place = path, chunk.start_line, chunk.end_line, texts.get(chunk.rowid, "")
                own, score = Annotations(*said[chunk.rowid]), scores.get(chunk.chunk_id, 0.0)
                entries.append(CuratedEntry(*place, own, score, trusted))
    with_triggers = [entry for entry in entries if entry.said.triggers][: trigger_recall.MOST_CANDIDATES]
    return trigger_recall.triggered(message, with_triggers, plan.projects)


def by_profile(engine: Engine, evidence: Evidence, trace: Trace) -> dict[str, Trace]:
    """The same query under each profile, that of `trace` first; by other chunks only where these are indexed."""
    found = {trace.profile: trace}
    for name in profiles.PROFILES:
        if name != trace.profile and can_rank(evidence, name):
            found[name] = engine.queries.rank(evidence, engine.plan.with_profile(name))
        elif name != trace.profile and engine.plan.sibling is not None and engine.plan.sibling.exists():
            with by_newest(engine) as other:
                found[name] = other.queries.search(evidence.query)
    return found
