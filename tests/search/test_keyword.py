"""Search without vectors in the OpenClaw profiles: each keyword is looked for alone, and the best score counts."""

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain.wording import terms_line
from tests.support.workspace import options_of

NOTES = {
    "MEMORY.md": "The router vlan is admin-70.\nThe printer stands in the cellar.\n",
    "memory/2020-01-01.md": "Router rebooted.\nRouter firmware router vlan router.\n",
    "memory/2026-11-02.md": "Printer paper ordered; the printer jams.\n",
    "memory/cellar.md": "The cellar key hangs behind the door.\n",
    "memory/garden.md": "Roses and tomatoes were watered on Sunday.\n",
    "memory/kitchen.md": "The oven runs hot by ten degrees.\n",
}


@pytest.fixture
def ask(tmp_path):
    for path, text in NOTES.items():
        note = tmp_path / "notes" / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(text)
    engines = []

    def asked(query, profile, **changes):
        engine = Engine.open(
            options_of(
                tmp_path / "notes", tmp_path / "index.sqlite", ("profile", profile), *changes.items(), provider="none"
            )
        )
        engines.append(engine)
        engine.index.sync()
        return engine.search.search(query)

    yield asked
    for engine in engines:
        engine.close()


def test_the_trace_names_what_was_dropped(ask):
    trace = ask("what about the printer", "openclaw-2026.3")
    assert trace.plan.words == ("printer",)
    assert trace.plan.dropped == ("what", "about", "the")


def test_a_question_without_a_keyword_is_asked_whole(ask):
    trace = ask("by the", "openclaw-2026.3", minScore="0")
    assert trace.plan.fts_query == '"by" AND "the"'
    assert trace.plan.dropped == ()
    assert [c.chunk.path for c in trace.recalled] == ["memory/kitchen.md"]


def test_a_question_whose_vector_points_nowhere_is_weighed_as_hybrid(tmp_path):
    """The original looks for neighbours of nothing and still gives words their share alone."""
    (tmp_path / "MEMORY.md").write_text("Зашёл в кафе §§ §§\n")
    with Engine.open(
        options_of(tmp_path, tmp_path / "i.sqlite", ("profile", "openclaw-2026.3"), provider="scripted")
    ) as engine:
        engine.index.sync()
        found = engine.search.gather("!!")
        trace = engine.search.rank(found, engine.plan.settings)
        ours = engine.search.rank(found, engine.plan.with_profile("recommended"))
    assert found.pointless
    assert trace.mode == "hybrid"
    assert trace.recalled == ()
    assert ours.mode == "nothing"


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("handle change", "form"), ("handleChange", "form"), ("retry budget", "client"), ("retry_budget", "client"),
        ("http server", "server"), ("HTTPServer2", "server"),
    ],
)  # fmt: skip
def test_names_in_code_are_found_by_their_pieces_and_by_themselves(ask, tmp_path, question, note):
    more = {"form": "`handleChange` runs twice.", "client": "Raise `retry_budget` to 5.", "server": "See HTTPServer2."}
    more |= {"talk": "We change trains, and handle luggage ourselves.", "money": "The budget of the garden is spent."}
    for name, text in more.items():
        (tmp_path / "notes" / "memory" / f"{name}.md").write_text(f"{text}\n")
    trace = ask(question, "recommended")
    assert trace.recalled[0].chunk.path == f"memory/{note}.md"
    if question == "http server":
        assert terms_line(more["server"], trace).detail == "http 1x, server 1x"
        assert not ask(question, "openclaw-2026.3").recalled, "OpenClaw knows no pieces"


def test_a_name_of_most_notes_tells_those_apart_that_another_word_finds(ask, tmp_path):
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
