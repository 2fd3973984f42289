"""What a question names: a note by its title or file name, a line by the value that it asks for."""

from collections.abc import Iterator

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.plan import Options
from memory_tui.search.question import holds_value, value_asked
from memory_tui.search.trace import Trace

NOTES = {
    "memory/List of Plugins.md": "- Dataview\n- Templater\n- Calendar\n",
    "memory/setup.md": "# Vault\n\nThe list of plugins that break is long: plugins in the plugin list.\n",
    "memory/trip.md": "---\ntitle: The long way home\n---\n\nWe took the ferry.\n",
    "memory/network.md": "# Network\n\n| Device | Address |\n|---|---|\n| Router | 192.168.178.1 |\n",
    "memory/commands.md": "# Commands\n\nUse `ip route del` to drop a route on the router. Router ip forwarding.\n",
    "MEMORY.md": "# Memory\n\n- The way home is long.\n- Memory of the server: 64 GB.\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "memory").mkdir()
    for path, text in NOTES.items():
        (folder / path).write_text(text)
    with Engine.open(Options(workspace=str(folder), index=str(folder / "i.sqlite"), provider="builtin")) as opened:
        opened.index.sync()
        yield opened


def ask(engine: Engine, question: str, profile: str = "recommended", **changes: object) -> Trace:
    settings = engine.plan.with_profile(profile).update(changes, "test")
    return engine.search.rank(engine.search.gather(question), settings)


@pytest.mark.parametrize(
    ("question", "path", "term"),
    [
        ("List of Plugins", "memory/List of Plugins.md", "title"),
        ("list-of_plugins?", "memory/List of Plugins.md", "title"),
        ("List of Plugins.md", "memory/List of Plugins.md", "title"),
        ("memory/trip.md", "memory/trip.md", "title"),
        ("trip", "memory/trip.md", "title"),
        ("the long way home", "memory/trip.md", "title"),
        ("router ip", "memory/network.md", "value"),
        ("what is the IP of the router", "memory/network.md", "value"),
    ],
)
def test_what_a_question_names_comes_first_by_a_term_that_a_knob_turns(
    engine: Engine, question: str, path: str, term: str
) -> None:
    trace = ask(engine, question)
    assert trace.recalled[0].chunk.path == path
    assert term in {line.label for line in wording.explain(trace.recalled[0], trace)}
    assert trace.level is not None
    assert trace.level.level == "found"
    assert not any(hit.date_points for hit in ask(engine, question, dateBoost=0.0).recalled)
    assert not any(hit.date_points for hit in ask(engine, question, "openclaw-2026.3").recalled)


@pytest.mark.parametrize("question", ["which plugins break", "network router", "ip route", "?!"])
def test_a_question_that_names_nothing_gets_nothing_for_it(engine: Engine, question: str) -> None:
    assert not any(hit.date_points for hit in ask(engine, question).recalled)


def test_a_note_is_found_by_the_words_of_its_file_name_alone(engine: Engine) -> None:
    trace = ask(engine, "plugins of my list")
    assert "memory/List of Plugins.md" in [hit.chunk.path for hit in trace.recalled if hit.text_points > 0]
    server = next(hit for hit in ask(engine, "memory of the server").recalled if hit.chunk.path == "MEMORY.md")
    assert server.bm25 is not None, "by its text: every chunk of MEMORY.md is called memory"


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("nas ipv6", "nas: fe80::1ff:fe23:4567:890a"),
        ("mac of the printer", "printer | 00:1a:2b:3c:4d:5e"),
        ("Anna email", "Anna <anna@example.org>"),
        ("Telefon Ola", "Ola: +49 170 1234567"),
        ("grafana port", "Grafana listens on :3000"),
        ("wiki url", "wiki: https://wiki.example.org/start"),
    ],
)
def test_values_are_known_by_their_form(question: str, line: str) -> None:
    value = value_asked(question)
    words = [word for word in question.lower().split() if word not in ("of", "the")]
    texts = [line, line.rsplit(" ", 1)[0], f"# {words[0]} {words[-1]}\n\n{line.split()[-1]}"]
    assert holds_value(texts, value, words).tolist() == [1.0, 0.0, 1.0]


def test_who_asks_for_no_value_asks_for_none() -> None:
    assert value_asked("who reports the imports of Macon") == ""
    assert holds_value(["10.0.0.1"], "ip", ["ip"]).tolist() == [0.0], "any address is of no use"
