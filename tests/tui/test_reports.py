"""Reports over the search view: the noise floor, what fades, better knobs; and the date knob."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui import demo
from memory_tui.config import config_patch
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.trace import Trace
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.search.lab import KnobSearchView
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tune import evaluate, judgments, knob_search
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.support.tui import (
    LARGE,
    NOW,
    SMALL,
    ask,
    drive,
    make_app,
    press,
    said,
    sample,
    settled,
    text_of,
    until,
)

QUESTION = "what about the router and the omada vlan"
FADES = [("profile", "openclaw-2026.3"), ("query.hybrid.temporalDecay.enabled", "true"), ("query.minScore", "0.25")]


def engine_of(app: MemoryApp) -> Engine:
    assert app.engine is not None
    return app.engine


def trace_of(app: MemoryApp) -> Trace:
    view = next(view for view in app.views if isinstance(view, SearchView))
    assert view.trace is not None
    return view.trace


@pytest.mark.parametrize("days", [30, -14])
def test_the_date_knob_shows_what_a_search_on_that_day_gives(workspace: Path, days: int) -> None:
    app = make_app(workspace, changes=FADES)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t", "k", "k")
        await press(pilot, "enter", *str(days), "enter")
        assert app.tuning is not None
        assert app.tuning.days == days
        shown = trace_of(app)
        options = Options(
            workspace=str(workspace),
            index=str(workspace.parent / "index.sqlite"),
            provider="scripted",
            now=NOW + days * 86_400,
            changes=(("sync.watch", "false"), *FADES),
        )
        with Engine.open(options) as then:
            fresh = then.search.search(QUESTION)
        for ours, theirs in ((shown.recalled, fresh.recalled), (tuple(shown.lost), tuple(fresh.lost))):
            assert [(c.chunk.id, c.score, c.age_days) for c in ours] == [
                (c.chunk.id, pytest.approx(c.score), pytest.approx(c.age_days)) for c in theirs
            ]
        assert f" on {'2026-04-19' if days == 30 else '2026-03-06'}" in text_of(app)
        await press(pilot, "u")
        assert app.tuning.days == 0

    drive(app, steps)


# --- better knobs --------------------------------------------------------------------------------------------------


def test_few_labels_are_no_evidence(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "z", "s")
        assert isinstance(app.screen, KnobSearchView)
        assert "No evidence: 0 queries with a correct hit" in text_of(app)
        await press(pilot, "enter")
        assert said(app) == "No evidence for other settings, so there is nothing to apply."

    drive(app, steps)


def test_the_search_of_the_knobs_says_what_the_engine_found(workspace: Path) -> None:
    from tests.support.tui import TODAY

    labelled = [
        Query(query.text, tuple(Label(label.path, label.line, label.grade) for label in query.relevant))
        for query in demo.labelled_queries(TODAY)
        if query.relevant
    ]
    book = Notebook(tuple(labelled[:24]))
    judgments.save(judgments.notebook_path(workspace), book)
    app = make_app(workspace, changes=[("profile", "openclaw-2026.3")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "z", "s")
        view, engine = app.screen, engine_of(app)
        assert isinstance(view, KnobSearchView)
        expected = knob_search.tune(evaluate.collect(engine.search.gather, book), engine.plan.settings)
        assert view.outcome == expected
        await press(pilot, "enter")
        assert app.tuning is not None
        if isinstance(expected, knob_search.Better):
            assert app.tuning.settings == expected.settings
        else:
            assert app.tuning.settings == engine.plan.settings

    drive(app, steps)


# --- writing -------------------------------------------------------------------------------------------------------


@pytest.fixture
def configured(workspace: Path, tmp_path: Path) -> tuple[MemoryApp, Path]:
    """The app under an openclaw.json with a comment in it."""
    file = tmp_path / "openclaw.json"
    file.write_text(
        "{\n  // mine\n  agents: {defaults: {workspace: "
        + f'"{workspace}"'
        + ", memorySearch: {query: {maxResults: 6}}}},\n}\n",
        "utf-8",
    )
    options = Options(
        workspace=str(workspace),
        index=str(tmp_path / "index.sqlite"),
        provider="scripted",
        now=NOW,
        config=str(file),
        changes=(("sync.watch", "false"),),
    )
    return MemoryApp(lambda listener: Engine.open(options, listener), name="notes"), file


def test_tuned_knobs_are_written_after_showing_the_difference(configured: tuple[MemoryApp, Path]) -> None:
    app, file = configured
    before = file.read_text("utf-8")

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t", "ctrl+s")
        assert said(app) == "Every knob is as the app was opened."
        assert app.tuning is not None
        app.turn(app.tuning.set("query.maxResults", 8).set("query.minScore", 0.2))
        await settled(pilot)
        await press(pilot, "t", "ctrl+s")
        assert "results 6 -> 8" in text_of(app)
        assert "minScore .35 -> .20" in text_of(app)
        await press(pilot, "escape")
        assert file.read_text("utf-8") == before
        await press(pilot, "t", "ctrl+s", "enter")
        assert isinstance(app.screen, SearchView)
        await until(lambda: said(app).startswith("Written to "))
        after = file.read_text("utf-8")
        assert "// mine" in after
        assert "maxResults: 8" in after
        assert "minScore" in after
        assert "watch" not in after

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_what_was_written_is_as_opened_until_it_is_taken_back(
    configured: tuple[MemoryApp, Path], size: tuple[int, int]
) -> None:
    app, file = configured
    before = file.read_text("utf-8")

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert app.tuning is not None
        app.turn(app.tuning.set("query.maxResults", 8))
        await settled(pilot)
        await press(pilot, "t", "ctrl+s", "u")
        assert said(app) == "This view has written nothing yet, so there is nothing to undo."
        await press(pilot, "enter")
        written = "Written to openclaw.json, with a backup. Press ctrl+s in the knobs, then u, to undo it."
        await until(lambda: said(app) == written)
        assert not app.tuning.tuned
        assert app.tuning.baseline.title == "as written to openclaw.json"
        if size == LARGE:
            assert "as written to openclaw.json" in text_of(app)
        assert "8*" not in text_of(app)
        assert app.engine is not None
        assert app.engine.plan.with_profile("openclaw-2026.2").whole("query.maxResults") == 8
        await press(pilot, "t", *"jjjjjj")
        app.turn(app.tuning.set("query.maxResults", 5))
        await press(pilot, "equals_sign")
        assert app.tuning.settings.whole("query.maxResults") == 8
        await press(pilot, "escape", "t", "ctrl+s")
        assert "already has these values" in text_of(app)
        await press(pilot, "u")
        await until(lambda: said(app) == "Undone: openclaw.json is as it was before.")
        assert file.read_text("utf-8") == before
        assert app.engine.plan.with_profile("openclaw-2026.2").whole("query.maxResults") == 6
        assert app.tuning.baseline.title == "as opened"
        await until(lambda: "results 6 -> 8" in text_of(app))
        await press(pilot, "escape")
        assert "8*" in text_of(app)

    drive(app, steps, size)


def test_a_profile_is_written_with_the_knobs_and_is_as_opened_then(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert app.tuning is not None
        assert app.engine is not None
        app.turn(app.tuning.to(app.engine.plan.with_profile("openclaw-2026.3")))
        app.turn(app.tuning.set("query.minScore", 0.2))
        await settled(pilot)
        await press(pilot, "t", "ctrl+s")
        assert "profile auto -> openclaw-2026.3" in text_of(app)
        await press(pilot, "enter")
        await until(
            lambda: said(app) == "Written to config.json, with a backup. Press ctrl+s in the knobs, then u, to undo it."
        )
        assert not app.tuning.tuned
        await press(pilot, "t", "ctrl+s")
        assert "already has these values" in text_of(app)
        await press(pilot, "u")
        await until(lambda: said(app) == "Undone: config.json is as it was before.")
        assert app.tuning.tuned

    drive(app, steps)


def test_a_write_that_was_taken_back_elsewhere_is_noticed(configured: tuple[MemoryApp, Path]) -> None:
    app, _ = configured

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert app.tuning is not None
        app.turn(app.tuning.set("query.maxResults", 8))
        await settled(pilot)
        await press(pilot, "t", "ctrl+s", "enter")
        assert app.tuning.written
        written = config_patch.last()
        assert written is not None
        config_patch.undo(written)
        await press(pilot, "t", "ctrl+s")
        await until(lambda: "results 6 -> 8" in text_of(app))
        assert app.tuning.tuned
        assert not app.tuning.writes
        await press(pilot, "u")
        assert said(app) == "This view has written nothing yet, so there is nothing to undo."

    drive(app, steps)


def test_a_file_changed_after_it_was_written_is_not_taken_back(configured: tuple[MemoryApp, Path]) -> None:
    app, file = configured

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert app.tuning is not None
        app.turn(app.tuning.set("query.maxResults", 8))
        await settled(pilot)
        await press(pilot, "t", "ctrl+s", "enter")
        changed = file.read_text("utf-8").replace("// mine", "// theirs")
        file.write_text(changed, "utf-8")
        await press(pilot, "t", "ctrl+s", "u")
        await until(lambda: "was changed after memory-tui wrote it" in said(app))
        assert file.read_text("utf-8") == changed
        assert app.tuning.written, "what was written still holds"

    drive(app, steps)


def test_a_configuration_changed_meanwhile_is_left_alone(configured: tuple[MemoryApp, Path]) -> None:
    app, file = configured

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert app.tuning is not None
        app.turn(app.tuning.set("query.maxResults", 8))
        await settled(pilot)
        await press(pilot, "t", "ctrl+s")
        changed = file.read_text("utf-8").replace("// mine", "// theirs")
        file.write_text(changed, "utf-8")
        await press(pilot, "enter")
        assert file.read_text("utf-8") == changed
        assert "changed" in said(app)

    drive(app, steps)
