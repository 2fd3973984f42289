"""Unrelated questions are asked in the language of the notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain.noise import UNRELATED, UNRELATED_CHINESE, ask_unrelated
from memory_tui.plan import Options


@pytest.mark.parametrize(
    ("text", "questions"),
    [("路由器的设置改好了，晚饭吃了麻婆豆腐。", UNRELATED_CHINESE), ("The router stands in the cellar.", UNRELATED)],
)
def test_notes_are_asked_in_their_language(tmp_path: Path, text: str, questions: tuple[str, ...]) -> None:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    for day in range(1, 9):
        (tmp_path / "notes" / "memory" / f"2026-11-0{day}.md").write_text(f"{day} {text}\n", "utf-8")
    with Engine.open(Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "i.sqlite"))) as engine:
        engine.index.sync()
        assert [evidence.query for evidence in ask_unrelated(engine.search.gather)] == list(questions)
