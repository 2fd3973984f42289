"""QMD on the screen: who answers, its hits, both answers side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.search.qmd_view import CompareQmdView
from memory_tui.tui.widgets.why_pane import WhyPane
from tests.support.qmd_bench import Bench
from tests.support.tui import LARGE, SMALL, ask, drive, press, said, settled, text_of, truth, until


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.updated()
    return made


def app_of(options: Options) -> MemoryApp:
    return MemoryApp(lambda listener: Engine.open(options, listener), name="W")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_first_line_begins_with_qmd_and_its_hits_stand_above_the_index(bench: Bench, size: tuple[int, int]) -> None:
    app = app_of(bench.options(**{"sync.watch": False}))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "Router VLAN")
        assert truth(app).startswith("QMD")
        shown = text_of(app)
        assert "1 QMD MEMORY.md:4-4" in shown
        assert "for comparison: the built-in index" in shown
        assert shown.index("1 QMD") < shown.index("for comparison")
        assert "QMD's own score, not comparable: 0." in app.screen.query_one(WhyPane)._said
        await ask(pilot, "Which VLAN for guests")
        assert "No note holds every word of the question" in text_of(app)
        await press(pilot, "z", "q")
        assert isinstance(app.screen, CompareQmdView)
        shown = " ".join(text_of(app).replace("│", " ").split())
        assert "not QMD: The note lacks the word Which" in shown
        assert "both recall 0, only builtin 1, only QMD 0" in shown or size == SMALL

    drive(app, steps, size)


def test_a_failure_is_on_the_first_line_and_the_palette_chooses_the_index(bench: Bench) -> None:
    bench.stub.behave(search={"error": "Error: boom", "status": 1})
    app = app_of(bench.options(**{"sync.watch": False}))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "Router VLAN")
        await until(lambda: truth(app).startswith("NOT QMD"))
        assert "builtin because: QMD search fai" in truth(app)
        assert "1 QMD" not in text_of(app)
        await pilot.app.run_action("do('backend')")
        await settled(pilot)
        assert said(app) == "The built-in index answers from now on."
        assert "QMD" not in truth(app)
        bench.stub.behave()
        app.engine.backend.recovered()  # type: ignore[union-attr]
        await pilot.app.run_action("do('backend')")
        await settled(pilot)
        assert truth(app).startswith("QMD")
        assert "1 QMD MEMORY.md:4-4" in text_of(app)

    drive(app, steps)


def test_a_program_that_a_file_names_is_shown_before_it_is_run(bench: Bench, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text(json.dumps({"memory": {"qmd": {"command": str(bench.stub.program)}}}))
    options = Options(
        workspace=str(bench.workspace),
        config=str(config),
        index=str(tmp_path / "index.sqlite"),
        provider="none",
        changes=(("sync.watch", "false"),),
    )
    app = app_of(options)

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.app.run_action("do('backend')")
        await settled(pilot)
        shown = text_of(app)
        assert "Run QMD?" in shown
        assert "openclaw.json" in shown
        await press(pilot, "n")
        assert not app.engine.backend.is_qmd  # type: ignore[union-attr]
        await pilot.app.run_action("do('backend')")
        await settled(pilot)
        await press(pilot, "y")
        assert app.engine.backend.is_qmd  # type: ignore[union-attr]

    drive(app, steps)
