"""What is ranked at once is what is gathered whole and then ranked."""

import random

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json
from tests.support.workspace import options_of

QUERIES = ("garden roses", "oak", "who planted the tomato beside the garden", "zebra")
PROFILES = ("recommended", "openclaw-2026.3")


@pytest.fixture
def engine(tmp_path):
    notes, some = tmp_path / "notes" / "memory", random.Random(4)
    notes.mkdir(parents=True)
    for number in range(150):
        words = " ".join(some.choices(["rose", "roses", "oak", "garden", "tomato", "planted", f"word{number}"], k=40))
        (notes / f"{number}.md").write_text(f"# Note {number}\n{words}\n")
    options = options_of(
        notes.parent, tmp_path / "i.sqlite", ("sync.onSearch", "false"), provider="builtin", now=1_795_000_000.0
    )
    with Engine.open(options) as opened:
        opened.index.sync()
        yield opened


def record(trace):
    found = trace_json.trace(trace)
    del found["timings"]
    return found


@pytest.mark.parametrize("mmr", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_answer_is_that_of_all_texts(engine, profile, mmr):
    settings = engine.plan.with_profile(profile).set("query.hybrid.mmr.enabled", mmr, "test")
    for query in QUERIES:
        trace, evidence = engine.search.ranked(query, settings)
        assert record(trace) == record(engine.search.rank(engine.search.gather(query), settings))
        assert len(evidence.texts) >= len(trace.lost)


def test_a_closed_engine_still_tells_who_lost(engine):
    trace, _ = engine.search.ranked("garden roses", engine.plan.settings)
    engine.close()
    assert [one.chunk.path for one in trace.lost]
