"""Passages by a budget of characters: what they hold, what they cost, what they never repeat."""

import itertools

import pytest

from memory_tui.explain import trace_json
from memory_tui.plan import Options
from memory_tui.search.excerpts import excerpts
from tests.support.tui import NOW, sample
from tests.support.workspace import options_in, put_all, synced

QUESTIONS = ("How is the VLAN on the Omada router set up?", "router", "who installed the fibre", "backup restic")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    place = tmp_path_factory.mktemp("excerpts")
    notes = sample(place / "notes")
    long = [f"Line {at} of the long log speaks of nothing at all, {'word ' * 12}." for at in range(120)]
    long[60] = "The zeppelin lands at the mill on the third of May."
    texts = ["\n".join(long) + "\n"] * 2 + ["word " * 2000 + "harpsichord " + "word " * 400]
    put_all(notes / "memory", {f"2026-01-0{day}.md": text for day, text in enumerate(texts, 5)})
    with synced(options_in(place, provider="builtin", now=NOW)) as opened:
        yield opened


def given(engine, question, characters, **changes):
    values = {f"query.{name}": value for name, value in {"maxCharacters": characters, **changes}.items()}
    settings = engine.plan.with_profile("recommended").update(values, "test")
    return excerpts(engine.search.search(question, settings))


def test_the_line_that_answers_comes_with_what_stands_around_it(engine):
    first = given(engine, "when does the zeppelin land", 2100)[0]
    assert "zeppelin" in first.text
    assert len(first.text) >= 600
    assert first.first < 61 < first.last


_LEADING = ("## Plumber", "## Plumber\n", "Plumber:", "**Plumber:**", "| Plumber |\n|---|", "Plumber\n\n---\n")


def test_a_line_that_leads_to_another_comes_with_it_or_not_at_all(tmp_path):
    """Wherever a chunk ends, and however little is left of the budget."""
    for number, (leading, days) in enumerate(itertools.product(_LEADING, (0, 5, 25))):
        before = "".join(f"- Day {at} of {number}, rain, and the plumber's cat in the yard.\n" for at in range(days))
        fact = f"Call 555 0{number} before noon, and say that it is about valve {number} under the stairs. " * 3
        (tmp_path / f"{number}.md").write_text(f"# Plumber\n{before}{leading}\n{fact.strip()}\n## Boat\nSold.\n")
    (tmp_path / "MEMORY.md").write_text("# Pay the plumber of the harbour\n\n")
    options = Options(str(tmp_path), extra=(str(tmp_path),), index=str(tmp_path / "i"), provider="builtin", now=NOW)
    with synced(options) as opened:
        budgets = ((1000, 1), (2000, 2), (9000, 6), (90_000, 50))
        parts = [part for room, most in budgets for part in given(opened, "plumber", room, maxResults=most)]
    leads = {*"\n".join(_LEADING).split("\n"), "# Plumber", "## Boat"} - {"Plumber"}
    lasts = {part.text.split("\n")[-1]: part.hit.line == part.last for part in parts}
    assert all(lasts[line] for line in leads & lasts.keys()), "only a line that decided may lead to nothing"
    assert any(last.startswith("Call") for last in lasts)
    assert "# Pay the plumber of the harbour" in lasts, "nothing follows it"


def test_what_another_note_repeats_is_given_once(engine):
    found = given(engine, "when does the zeppelin land", 6000)
    assert sum("zeppelin" in one.text for one in found) == 1


def test_a_line_too_long_is_given_where_it_matched(engine):
    found = given(engine, "harpsichord", 2100)
    assert any("harpsichord" in one.text for one in found)
    assert sum(len(one.text) + 1 for one in found) <= 2100


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("characters", [0, 60, 120, 700, 9000])
def test_no_budget_leaves_a_hit_out(engine, question, characters):
    settings = engine.plan.with_profile("recommended").set("query.maxCharacters", characters, "test")
    trace = engine.search.search(question, settings)
    found = excerpts(trace)
    assert [one.hit for one in found] == list(trace.recalled)
    assert all(one.text for one in found)
    assert not characters or sum(len(one.text) for one in found) <= characters
    assert not [one for one in found if one.leaves_out(one.hit.line)], "each holds the line that decided"


@pytest.mark.parametrize("characters", [0, 2500, 3600])
def test_a_line_that_any_passage_holds_is_sent(tmp_path, characters):
    """Where chunks overlap, another hit of the note may send what this one leaves out."""
    lines = [f"Line {at} of the long log speaks of the garden, {'word ' * 12}." for at in range(120)]
    for at in range(3, 120, 9):
        lines[at] = f"Trombone {at} is kept in the attic."
    (tmp_path / "MEMORY.md").write_bytes("\r\n".join([*lines, ""]).encode())
    changes = (("query.maxCharacters", str(characters)), ("query.minScore", "0"))
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "i"), provider="builtin", now=NOW, changes=changes)
    with synced(options) as engine:
        trace = engine.search.search("trombone attic")
        parts = excerpts(trace)
        assert len(parts) > 2
        assert not any(part.text.endswith("\r") for part in parts)
        for line in range(1, 121):
            why = engine.search.why(trace.evidence, "MEMORY.md", line)
            sent = any(first <= line <= last for first, last in (part.lines for part in parts))
            assert trace_json.why(why)["sent"] == sent, line
            assert bool(why.unsent) == (why.recalled and not sent), line


def test_without_a_second_stage_they_are_the_snippets(engine):
    evidence = engine.search.gather("router")
    engine.search.rank(evidence, engine.plan.with_profile("recommended"))
    trace = engine.search.rank(evidence, engine.plan.with_profile("openclaw-2026.3"))
    assert [one.text for one in excerpts(trace)] == [hit.snippet for hit in trace.recalled]
