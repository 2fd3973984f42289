"""The noise floor: where nonsense scores, what minScore does about it, and when it cannot work."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tui import demo
from memory_tui.engine.engine import Engine
from memory_tui.explain.noise import UNRELATED_CHINESE, Probes, ask_all, known_items
from memory_tui.plan import Options

OPENCLAW = "openclaw-2026.3"
TODAY = dt.date(2026, 11, 20)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The sample workspace."""
    out = tmp_path_factory.mktemp("noise")
    folder = demo.materialize(out / "notes", TODAY)
    with Engine.open(
        Options(
            workspace=str(folder),
            index=str(out / "index.sqlite"),
            now=dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp(),
            changes=(("sync.onSearch", "off"),),
        )
    ) as engine:
        engine.index.sync()
        yield engine


@pytest.fixture(scope="module")
def asked(engine: Engine) -> Probes:
    return ask_all(engine.search.gather)


def test_chinese_notes_are_asked_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    for day in range(1, 9):
        note = tmp_path / "notes" / "memory" / f"2026-11-0{day}.md"
        note.write_text(f"第{day}天：路由器的设置改好了，晚饭吃了麻婆豆腐。\n", "utf-8")
    with Engine.open(Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "i.sqlite"))) as engine:
        engine.index.sync()
        totals: list[int] = []
        asked = ask_all(engine.search.gather, progress=lambda _done, total: totals.append(total))
    assert [probe.evidence.query for probe in asked.nonsense] == list(UNRELATED_CHINESE)
    assert len(set(totals)) == 1, "the total stays what it was"
    assert asked.related


def test_a_known_item_is_a_line_of_its_chunk() -> None:
    line = "the router was moved to the cellar because of the noise that it makes at night"
    texts = {1: f"# Head\n{line}\n", 2: "short", 3: ""}
    assert known_items(texts) == [(1, "the router was moved to the cellar because of the noise that")]
