"""What OpenClaw 2026.9 gives its agent: an engine under its rules, and the curated entries whose triggers fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import IndexUnavailable, SettingError
from memory_tui.openclaw import prompt
from memory_tui.openclaw.prompt import CuratedEntry, Triggered
from memory_tui.plan import Plan
from memory_tui.workspace.annotations import CURATED, Annotations


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
    request = replace(plan.options, changes=(*plan.options.changes, ("profile", profiles.NEWEST)), once=False)
    with Engine.open(request) as other, (stop or Stop()).around(other.index.stop):
        other.index.catch_up()
        yield other


def _is_newest(plan: Plan) -> bool:
    return profiles.get(plan.settings.word("profile")).chunking == profiles.get(profiles.NEWEST).chunking


def injected(engine: Engine, message: str) -> list[Triggered]:
    """Return the curated entries that OpenClaw 2026.9 injects for `message`, each with its reason.

    Raises SettingError where the index was cut by another release's rules.
    """
    plan = engine.plan
    if not _is_newest(plan):
        raise SettingError(
            "Only OpenClaw 2026.9 injects entries by their triggers.", f"Use --profile {profiles.NEWEST}."
        )
    settings = plan.settings.set("query.maxResults", prompt.SEARCHED, "trigger recall")
    settings = settings.set("query.minScore", 0.0, "trigger recall")
    trace = engine.search.rank(engine.search.gather(message, by_words=True), settings)
    scores = {hit.chunk.id: hit.score for hit in trace.recalled}
    trust = {path: engine.notes.trust_of(path) for path in CURATED}
    with engine.search.reader() as store, store.snapshot():
        annotations = {rowid: Annotations(*values) for rowid, values in store.annotations().items()}
        chunks = [
            (path, chunk)
            for path in CURATED
            for chunk in store.chunks_of(path)
            if chunk.rowid in annotations and annotations[chunk.rowid].triggers
        ][: prompt.MOST_CANDIDATES]
        texts = store.texts([chunk.rowid for _, chunk in chunks])
    entries = []
    for path, chunk in chunks:
        place = path, chunk.start_line, chunk.end_line, texts.get(chunk.rowid, "")
        state, score = trust[path], scores.get(chunk.chunk_id, 0.0)
        trusted = state is None or state.state != "untrusted"
        entries.append(CuratedEntry(*place, annotations[chunk.rowid], score, trusted))
    return prompt.triggered(message, entries, plan.projects)
