"""What one question was answered by stands beside it, in words that are true of that question."""

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.explain.wording import answered_by, terms_line
from memory_tui.tokens import as_asked
from tests.support.tui import NOW, SMALL, Window, make_app
from tests.support.workspace import options_of

CHINESE = "喜欢什么书"
UNKNOWN = "the embedding model knows no word of the query"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n\n- 喜欢读书\n- the router is an Omada\n")
    (folder / "memory" / "2026-03-19.md").write_text("# Thursday\n\n- vlan for the printer\n- 喜欢乌龙茶\n")
    return folder


@pytest.mark.parametrize(
    ("question", "provider", "changes", "by"),
    [
        ("omada router", "builtin", {}, ("by words and vectors", "")),
        (CHINESE, "builtin", {}, ("WORDS ONLY (Chinese)", "the built-in table does not know this language")),
        (CHINESE, "builtin", {"profile": "openclaw-2026.3"}, ("by words only", UNKNOWN)),
        ("omada router", "none", {}, ("by words only", "the index has no vectors")),
        ("omada router", "scripted", {"query.hybrid.enabled": "false"}, ("by vectors only", "hybrid is off")),
        ("dentist appointment", "builtin", {}, ("by vectors only", "no word of the query was found in a note")),
        ("?", "none", {}, ("by nothing", "no word to look for")),
    ],
)
def test_each_question_says_what_answered_it(tmp_path, notes, question, provider, changes, by):
    options = options_of(notes, tmp_path / "index.sqlite", *changes.items(), provider=provider, now=NOW)
    with Engine.open(options) as engine:
        engine.index.sync()
        mode, reason = answered_by(engine.search.search(question))
    assert mode == by[0]
    assert reason.startswith(by[1])


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
@pytest.mark.parametrize("question", [CHINESE, "麻婆豆腐要放什么酱？", "学校で何を食べましたか", "한국어 좋아하는 책"])
def test_no_pair_of_characters_is_called_a_word(tmp_path, notes, profile, question):
    options = options_of(notes, tmp_path / "index.sqlite", ("profile", profile), provider="builtin", now=NOW)
    with Engine.open(options) as engine:
        engine.index.sync()
        trace = engine.search.search(question)
        why = engine.search.why(engine.search.gather(question), "MEMORY.md", 3)
    said = [wording.sentence(why.fate), terms_line("喜欢读书", trace).detail]
    said += wording.empty(trace.empty, trace.profile) if trace.empty is not None else []
    runs = set(as_asked(trace.plan.words, question))
    for pair in set(trace.plan.words) - runs:
        for sentence in said:
            for run in runs:
                sentence = sentence.replace(run, "")
            assert f'"{pair}"' not in sentence, sentence
            assert f" {pair} " not in f"{sentence},".replace(",", " ").replace(";", " "), sentence


def test_the_mode_of_the_question_stands_beside_it(notes):
    with Window(make_app(notes, provider="builtin"), SMALL) as window:
        assert "WORDS ONLY" not in window.ask("omada router").text
        window.press("slash", "ctrl+u").type(CHINESE).press("enter")
        assert "WORDS ONLY" in window.text
        assert "喜欢读书" in window.text
