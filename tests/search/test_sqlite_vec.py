"""sqlite-vec finds the nearest for a command, as numpy does for app and server, and without the library."""

import json
import random
from typing import Any

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json
from memory_tui.index import database
from memory_tui.index.database import Vec0
from tests.support.workspace import options_in, put_all, synced

pytestmark = pytest.mark.skipif(not database.vec0().ready, reason="sqlite-vec does not work here")
WORDS = ("router", "vlan", "garden", "rose", "printer", "paper", "bread", "sourdough", "deploy", "postgres", "咖啡")
WORDS += tuple(f"word{number}" for number in range(50))
QUERIES = ("router vlan", "where is the printer", "rose garden in spring", "咖啡", "nothing of the kind", "..., !!!")
NOTES = 260
"""More than a search has candidates, so that most are not among the nearest."""


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Notes of which each has its own words, some are alike, and one has a vector of zeros."""
    texts = {"memory/zero.md": "!!!\n"}
    for number in range(NOTES):
        picked = random.Random(number // 40 if number > 240 else number).choices(WORDS, k=12)
        texts[f"memory/{number:03}.md"] = f"{' '.join(picked)}\n"
    return put_all(tmp_path_factory.mktemp("place") / "notes", texts)


def options(notes, *, once=True, index="index.sqlite"):
    place = {"index": str(notes.parent / index)}
    return options_in(notes.parent, "minScore=0", **place, provider="builtin", once=once, now=1_795_000_000.0)


def answers(engine, source=""):
    return [engine.search.search(q, source=source) for q in QUERIES]


def without_times(trace):
    """The whole record but for its time, who found the nearest, and the count of writes."""
    told: dict[str, Any] = json.loads(json.dumps(trace_json.trace(trace)))
    del told["timings"], told["nearestBy"], told["generation"]
    return told


@pytest.mark.parametrize("library", [True, False])
def test_the_answers_are_those_of_numpy(notes, monkeypatch, library):
    with Engine.open(options(notes)) as engine:
        engine.index.catch_up()
        by_vec0 = answers(engine)
        assert engine.status().vector.engine.startswith("sqlite-vec v")
        with engine.search.reader() as store, engine.search.state(store, once=True) as known:
            assert known.dims == 0, "no vector is kept in memory"
        assert "sqlite-vec" in {trace.evidence.nearest_by for trace in by_vec0}
        of_one_source = answers(engine, "memory")
    if not library:
        monkeypatch.setattr(database, "load_vec0", lambda connection: Vec0(False, "not installed"))
    index = "index.sqlite" if library else "without.sqlite"
    with Engine.open(options(notes, once=not library, index=index)) as engine:
        engine.index.catch_up()
        by_numpy = answers(engine)
        assert {trace.evidence.nearest_by for trace in by_numpy} == {"numpy", ""}
        assert [*map(without_times, by_numpy)] == [*map(without_times, by_vec0)]
        assert [*map(without_times, answers(engine, "memory"))] == [*map(without_times, of_one_source)]


def test_an_index_that_grows_is_followed(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    with synced(options(notes)) as engine:
        for number in range(3):
            (notes / "MEMORY.md").write_text("router vlan\n" * (number + 1))
            engine.index.sync()
            trace = engine.search.search("router vlan")
            assert trace.evidence.nearest_by == "sqlite-vec"
            assert [hit.chunk.end_line for hit in trace.recalled] == [number + 2]
        engine.index.sync(force=True)
        assert engine.search.search("router vlan").evidence.nearest_by == "sqlite-vec"
