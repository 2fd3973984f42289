"""A preview is what the search says after the change, while nothing is changed yet."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memory_tui.core.errors import IndexUnavailable
from memory_tui.curate.changes import Change, FileChange
from memory_tui.engine.engine import Engine
from memory_tui.index import rebuild
from memory_tui.plan import Options
from tests.support.curate import workspace

QUERY = "router vlan"


@pytest.fixture(params=["scripted", "none"])
def engine(request, tmp_path):
    folder = workspace(tmp_path / "notes")
    (folder / "MEMORY.md").write_text("# Memory\n\n## Home\n- The router has a VLAN for guests.\n")
    for day in range(1, 10):
        (folder / f"memory/2026-01-0{day}.md").write_text(f"# Day {day}\n- The printer and router number {day}.\n")
    options = Options(
        workspace=str(folder), provider=request.param, now=1_768_226_700.0, changes=(("query.minScore", "0"),)
    )
    with Engine.open(options) as engine:
        engine.indexer.sync()
        yield engine


def hits(trace) -> list[tuple[str, int, float]]:
    return [(hit.chunk.path, hit.chunk.start_line, round(hit.score, 6)) for hit in trace.recalled]


@pytest.mark.parametrize(
    ("key", "query"), [("spelling.enabled", "routr vlan"), ("questionTime.enabled", "router on 2026-01-03")]
)
def test_a_preview_reads_a_question_as_the_search_does(engine, key, query):
    asked = engine.plan.asked
    with Engine.open(replace(asked, changes=(*asked.changes, (key, "false")))) as plain:
        found = plain.queries.preview(Change("edit", "", ()), query)
        assert hits(found.before) == hits(plain.queries.search(query))
        assert found.before.plan.readings == ()


def test_the_preview_is_the_answer_after_the_change(engine):
    curator = engine.notes.curator
    before = hits(engine.queries.search(QUERY))
    change = Change(
        "edit",
        "two notes and a new one",
        (
            FileChange("MEMORY.md", curator.read("MEMORY.md"), b"# Memory\n\n## Home\n- Nothing of that.\n"),
            FileChange("memory/2026-01-03.md", curator.read("memory/2026-01-03.md"), None),
            FileChange(
                "memory/vlan.md", None, b"# Router\n- VLAN 10 of the router is for the printer, 20 for guests\n"
            ),
        ),
    )
    found = engine.queries.preview(change, QUERY)
    assert hits(found.before) == before
    assert hits(engine.queries.search(QUERY)) == before
    assert found.without_vector == 0
    curator.apply(change)
    engine.indexer.sync()
    assert sorted(hits(found.after)) == sorted(hits(engine.queries.search(QUERY)))
    moves = {(move.after or move.before).chunk.path: (move.place_before, move.place_after) for move in found.moves}
    assert moves["memory/vlan.md"][0] == 0
    assert moves["memory/vlan.md"][1] > 0
    assert sum(move.after is not None for move in found.moves) == len(found.after.recalled)
    assert sum(move.before is not None for move in found.moves) == len(found.before.recalled)


def test_a_chunk_that_grew_is_the_same_hit(engine):
    text = engine.notes.curator.read("MEMORY.md")
    grown = FileChange("MEMORY.md", text, text + b"- More of the router.\n")
    found = engine.queries.preview(Change("edit", "", (grown,)), QUERY)
    assert [
        (move.place_before > 0, move.place_after > 0)
        for move in found.moves
        if (move.after or move.before).chunk.path == "MEMORY.md"
    ] == [(True, True)]


def test_a_large_index_is_not_copied(engine, monkeypatch):
    monkeypatch.setattr(rebuild, "MOST_BYTES", 1)
    with pytest.raises(IndexUnavailable, match="too much"):
        engine.queries.preview(Change("edit", "", ()), QUERY)
