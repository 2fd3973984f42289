"""Sentences that were once untrue, each on an index where it was."""

import datetime as dt

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import hit_text, wording
from memory_tui.mcp.tools import memory_search
from tests.support.workspace import options_of

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
STILL = (("sync.watch", "false"), ("sync.onSearch", "false"), ("sync.onSessionStart", "false"))


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def opened(notes, tmp_path):
    engines: list[Engine] = []

    def made(profile, provider="none", **changes):
        options = options_of(
            notes,
            tmp_path / f"{profile}.{provider}.sqlite",
            ("profile", profile),
            *STILL,
            *((key, str(value)) for key, value in changes.items()),
            provider=provider,
            now=NOW,
        )
        engines.append(Engine.open(options))
        engines[-1].index.sync()
        return engines[-1]

    yield made
    for engine in engines:
        engine.close()


def empty(trace):
    assert trace.empty is not None
    return wording.empty(trace.empty, trace.profile)[0]


def test_a_word_that_was_left_out_says_why(notes, opened):
    for day in range(1, 11):
        (notes / "memory" / f"2026-11-{day:02}.md").write_text(f"anna and the router, ticket{day}\n")
    engine = opened("recommended", "builtin")
    trace = engine.search.search("did anna change the router for ticket3")
    text = "anna and the router, ticket3\n"
    said = wording.terms_line(text, trace).detail
    assert "anna, router (in over half of the chunks: counted with others)" in said
    assert "(stop words)" in said
    theirs = opened("openclaw-2026.3").search.search("did anna change 42 of it")
    said = wording.terms_line(text, theirs).detail
    assert "42 (numbers alone)" in said
    assert "of, it (too short)" in said


@pytest.fixture
def diary(notes):
    """Logs of three days, of which no line says a word of what is asked."""
    for day in (16, 17, 19):
        (notes / "memory" / f"2026-11-{day}.md").write_text(f"- The plumber mended tap number {day}.\n")
    (notes / "MEMORY.md").write_text("The router is an Omada ER605.\n")
    return notes


def test_an_agent_gets_the_notes_of_the_day_that_it_asks_for(diary, opened):
    """Its words stand in no note, but the day is that of a note: that is not nothing."""
    del diary
    engine = opened("recommended", "builtin")
    for question in ("what happened yesterday", "yesterday"):
        found = engine.search.search(question)
        assert found.recalled[0].chunk.path == "memory/2026-11-19.md"
        assert found.level is not None
        assert found.level.level == "nearby only"
        answer = memory_search(engine, {"query": question}).answer
        assert answer["results"][0]["path"] == "memory/2026-11-19.md"
    unrelated = engine.search.search("what happened on 2026-11-02")
    assert unrelated.level is not None
    assert unrelated.level.level == "nothing holds these words", "no note is of that day"


def test_no_hit_is_said_to_be_recalled_that_an_agent_does_not_get(diary, opened):
    del diary
    engine = opened("recommended", "builtin")
    question = "what happened on 2026-11-02"
    first = engine.search.search(question).recalled[0]
    assert memory_search(engine, {"query": question}).answer["results"] == []
    answer = engine.search.why(engine.search.gather(question), first.chunk.path, first.chunk.start_line)
    said = [*hit_text.answer(answer), *(line.detail for line in wording.explain(first, answer.trace))]
    assert wording.label(answer.fate) == "NEAREST 1st, kept back"
    assert not [line for line in said if "recalled" in line.lower()]
    assert answer.trace.count.startswith("Nearest ")
