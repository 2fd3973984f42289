"""What agents get where nothing holds what they asked: no hits, unless they want the nearest."""

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.mcp.tools import memory_search
from tests.support.tui import NOW, sample
from tests.support.workspace import options_of


@pytest.fixture
def memory(tmp_path):
    options = options_of(
        sample(tmp_path / "notes"), tmp_path / "index.sqlite", ("profile", "recommended"), provider="builtin", now=NOW
    )
    with Engine.open(options) as opened:
        opened.index.sync()
        yield opened


FOREIGN = {"query": "cuneiform plutonium stoichiometry of Etruscan Gilgamesh"}


def test_a_question_that_no_note_holds_gives_no_hits_unless_asked_for(memory):
    answer = memory_search(memory, FOREIGN).answer
    held = answer["answerLevel"]
    assert held["level"] == "nothing holds these words"
    assert answer["results"] == []
    assert held["nearest"] > 0
    nearest = memory_search(memory, {**FOREIGN, "nearest": True}).answer
    assert len(nearest["results"]) == held["nearest"]
    assert "nearest" not in nearest["answerLevel"]
