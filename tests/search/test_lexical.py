"""Lexical search of OpenClaw 2026.9 reads few texts, and finds what it would find with all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search import lexical
from memory_tui.search.evidence import Rows
from memory_tui.search.lexical import _Found, _Search

WORDS = ("deploy", "router", "café", "cafe", "snake_case", "snake", "case", "the", "Ärger", "naïve", "q̇", "喜欢", "x1")
"""Words that full-text search and OpenClaw cut in the same way, and some that they do not."""
PLAIN = ("deploy", "router", "snake", "case", "x1")
QUESTIONS = (
    "deploy the router",
    "deploy cafe snake",
    "snake_case café",
    "router 喜欢 naïve",
    "what did the deploy of x1 do to the router in case of Ärger",
    "q deploy",
    "n3 deploy router",
    "deploy memory router",
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    rng, folder = random.Random(3), tmp_path_factory.mktemp("notes")
    (folder / "memory").mkdir()
    for number in range(700):
        choice = WORDS if number % 2 else PLAIN
        words = (rng.choice((*choice, f"w{rng.randrange(400)}")) for _ in range(rng.randint(1, 40)))
        text = "".join(f"{word}{rng.choice(' _.-' if rng.random() < 0.1 * (number % 2) else ' ')}" for word in words)
        (folder / "memory" / f"n{number}.md").write_text(f"{text}\n")
    options = Options(
        workspace=str(folder),
        index=str(folder.parent / f"{folder.name}.sqlite"),
        provider="scripted",
        changes=(("sync.watch", "false"), ("profile", "openclaw-2026.9")),
    )
    with Engine.open(options) as opened:
        opened.index.sync()
        yield opened


@pytest.mark.parametrize("question", QUESTIONS)
def test_leaving_texts_unread_changes_no_hit(engine: Engine, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time no text is known, the second time those that were read."""
    found = [engine.search.gather(question).lexical.hits for _ in range(2)]

    def every(_self: _Search, found: list[_Found]) -> Rows:
        return np.unique(np.concatenate([one.rows for one in found]))

    monkeypatch.setattr(lexical._Search, "needed", every)
    whole = engine.search.gather(question).lexical.hits
    assert len(whole) >= 100
    assert repr(found[0]) == repr(found[1]) == repr(whole)


def test_few_texts_are_read_once_they_are_known(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    found, needed, plain = set[int](), set[int](), _Search.needed

    def noted(self: _Search, every: list[_Found]) -> Rows:
        rows = plain(self, every)
        found.update(*(one.rows.tolist() for one in every))
        needed.update(rows.tolist())
        return rows

    for question in QUESTIONS:
        engine.search.gather(question)
    monkeypatch.setattr(_Search, "needed", noted)
    engine.search.gather("router w7 w8 x1 case snake")
    assert len(found) > 400
    assert len(needed) < 0.8 * len(found)
