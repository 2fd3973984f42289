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
    entries: list[CuratedEntry] = []
    with engine.search.reader() as store, store.snapshot():
        annotations = store.annotations()
        for path in CURATED:
            note_trust = trust[path]
            trusted = note_trust is None or note_trust.state != "untrusted"
            chunks = [chunk for chunk in store.chunks_of(path) if chunk.rowid in annotations]
            texts = store.texts([chunk.rowid for chunk in chunks])
            for chunk in chunks:
                place = path, chunk.start_line, chunk.end_line, texts.get(chunk.rowid, "")
                annotation, score = Annotations(*annotations[chunk.rowid]), scores.get(chunk.chunk_id, 0.0)
                entries.append(CuratedEntry(*place, annotation, score, trusted))
    with_triggers = [entry for entry in entries if entry.annotations.triggers][: prompt.MOST_CANDIDATES]
    return prompt.triggered(message, with_triggers, plan.projects)
