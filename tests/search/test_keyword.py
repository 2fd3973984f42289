"""Search without vectors in the OpenClaw profiles: each keyword is looked for alone, and the best score counts."""

import re
from pathlib import Path

import apsw
import pytest

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.keywords import keywords
from memory_tui.search.rank import rank
from memory_tui.search.trace import Trace

NOTES = {
    "MEMORY.md": "The router vlan is admin-70.\nThe printer stands in the cellar.\n",
    "memory/2020-01-01.md": "Router rebooted.\nRouter firmware router vlan router.\n",
    "memory/2026-11-02.md": "Printer paper ordered; the printer jams.\n",
    "memory/cellar.md": "The cellar key hangs behind the door.\n",
    "memory/garden.md": "Roses and tomatoes were watered on Sunday.\n",
    "memory/kitchen.md": "The oven runs hot by ten degrees.\n",
}
QUESTIONS = (
    "router vlan",
    "what about the printer in the cellar?",
    "router printer cellar roses oven",
    "cellar",
    "ten degrees hotter",
    "admin-70",
)


@pytest.fixture
def ask(tmp_path):
    for path, text in NOTES.items():
        note = tmp_path / "notes" / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(text)
    engines = []

    def asked(query: str, profile: str, **changes: str) -> Trace:
        engine = Engine.open(
            Options(
                workspace=str(tmp_path / "notes"),
                index=str(tmp_path / "index.sqlite"),
                provider="none",
                changes=(("profile", profile), *changes.items()),
            )
        )
        engines.append(engine)
        engine.index.sync()
        return engine.search.search(query)

    yield asked
    for engine in engines:
        engine.close()


def reference(query: str, *, limit: int, min_score: float, results: int, constant: bool) -> list[tuple[str, float]]:
    """The documented rule, in plain SQL over a table of its own: (path, score)."""
    table = apsw.Connection(":memory:")
    table.execute("CREATE VIRTUAL TABLE notes USING fts5(text, path UNINDEXED)")
    for path, text in sorted(NOTES.items()):
        table.execute("INSERT INTO notes VALUES (?, ?)", (text, path))
    best: dict[str, float] = {}
    for word in keywords(query) or (query,):
        expression = " AND ".join(f'"{token}"' for token in re.findall(r"\w+", word))
        for path, bm25 in table.execute(
            "SELECT path, bm25(notes) FROM notes WHERE notes MATCH ? ORDER BY bm25(notes), rowid LIMIT ?",
            (expression, limit),
        ):
            score = 1.0 if constant else -bm25 / (1 - bm25)
            if path not in best or score > best[path]:
                best[path] = score
    ordered = sorted(best.items(), key=lambda item: -item[1])
    return [(path, score) for path, score in ordered if score >= min_score][:results]


@pytest.mark.parametrize("query", QUESTIONS)
@pytest.mark.parametrize("profile", ["openclaw-2026.3", "openclaw-2026.2"])
def test_each_keyword_is_asked_alone(ask, query, profile) -> None:
    trace = ask(query, profile, minScore="0.2", maxResults="3", candidateMultiplier="1")
    expected = reference(query, limit=3, min_score=0.2, results=3, constant=profile == "openclaw-2026.2")
    assert trace.mode == "keywords only"
    assert [c.chunk.path for c in trace.recalled] == [path for path, _ in expected]
    assert [c.score for c in trace.recalled] == pytest.approx([score for _, score in expected], abs=1e-9)


def test_the_trace_names_what_was_dropped(ask) -> None:
    trace = ask("what about the printer", "openclaw-2026.3")
    assert trace.plan.words == ("printer",)
    assert trace.plan.dropped == ("what", "about", "the")


def test_a_question_without_a_keyword_is_asked_whole(ask) -> None:
    trace = ask("by the", "openclaw-2026.3", minScore="0")
    assert trace.plan.fts_query == '"by" AND "the"'
    assert trace.plan.dropped == ()
    assert [c.chunk.path for c in trace.recalled] == ["memory/kitchen.md"]


def test_every_knob_is_live_on_the_same_evidence(ask, tmp_path) -> None:
    with Engine.open(
        Options(
            workspace=str(tmp_path / "notes"),
            index=str(tmp_path / "index.sqlite"),
            provider="none",
            changes=(("profile", "openclaw-2026.3"),),
        )
    ) as engine:
        engine.index.sync()
        found = engine.search.gather("router printer cellar")
        one = rank(found, engine.plan.settings.update({"query.maxResults": 1, "query.minScore": 0.0}, "test"))
        all_of = rank(found, engine.plan.settings.update({"query.maxResults": 9, "query.minScore": 0.0}, "test"))
    assert len(one.recalled) == 1
    assert len(all_of.recalled) == 4
    assert one.recalled[0].chunk == all_of.recalled[0].chunk


def test_a_question_whose_vector_points_nowhere_is_weighed_as_hybrid(tmp_path) -> None:
    """The original looks for neighbours of nothing and still gives words their share alone."""
    (tmp_path / "MEMORY.md").write_text("Зашёл в кафе §§ §§\n")
    with Engine.open(
        Options(
            workspace=str(tmp_path),
            index=str(tmp_path / "i.sqlite"),
            provider="scripted",
            changes=(("profile", "openclaw-2026.3"),),
        )
    ) as engine:
        engine.index.sync()
        found = engine.search.gather("!!")
        trace = engine.search.rank(found, engine.plan.settings)
        ours = engine.search.rank(found, engine.plan.with_profile("recommended"))
    assert found.pointless
    assert trace.mode == "hybrid"
    assert trace.recalled == ()
    assert ours.mode == "nothing"


def test_a_name_of_most_notes_tells_those_apart_that_another_word_finds(ask, tmp_path: Path) -> None:
    for at in range(11):
        note = tmp_path / "notes" / "memory" / f"m{at}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"Mira went home on tram {at}.\n")
    (tmp_path / "notes" / "memory" / "m11.md").write_text("Mira planted kohlrabi by the wall.\n")
    (tmp_path / "notes" / "memory" / "m12.md").write_text("Jonas planted kohlrabi by the wall.\n")
    trace = ask("where did Mira plant kohlrabi", "recommended")
    text = {hit.chunk.path: hit.text for hit in trace.recalled}
    assert text["memory/m11.md"] == 1.0 > text["memory/m12.md"] > 0.8
    assert trace.plan.common == trace.plan.counted == ("mira",)
    assert trace.funnel.text_matches == 2, "a word of most notes finds none by itself"
