"""What OpenClaw 2026.9 injects for a message: curated entries whose triggers fit, each with its reason."""

from __future__ import annotations

from memory_tui.core import profiles
from memory_tui.core.errors import SettingError
from memory_tui.engine.engine import Engine
from memory_tui.openclaw import trigger_recall
from memory_tui.openclaw.trigger_recall import CuratedEntry, Triggered
from memory_tui.workspace.annotations import CURATED, Annotations


def injected(engine: Engine, message: str) -> list[Triggered]:
    """Decide it for `message`, from the index. Raises SettingError where it was cut by another release's rules."""
    plan = engine.plan
    if profiles.get(plan.settings.word("profile")).chunking != profiles.get(profiles.NEWEST).chunking:
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
