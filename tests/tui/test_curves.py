"""Curves say what was measured: the points are where the numbers are, and the words repeat them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from textual.pilot import Pilot

from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain.decay import ahead
from memory_tui.search.evidence import later
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.judging import CURVE_DAYS, CURVE_STRIDE, STEPS
from memory_tui.tui.views.search.fading_view import FadingView
from memory_tui.tui.widgets.curves import Curve, Curves, Picture, dotted
from memory_tui.tui.widgets.index_lists import paced
from memory_tui.tui.widgets.status_bars import IndexingProgress
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tune import evaluate, judgments
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.support.tui import LARGE, ask, drive, make_app, press, sample, settled, text_of, until


def engine_of(app: MemoryApp) -> Engine:
    assert app.engine is not None
    return app.engine


QUESTION = "How is the VLAN on the Omada router set up?"
SHARES = st.floats(0, 1)


@given(st.lists(st.tuples(SHARES, st.floats(-1, 2)), min_size=1, max_size=6), st.integers(2, 40), st.integers(2, 12))
def test_every_point_has_its_dot_and_every_dot_its_place(
    points: list[tuple[float, float]], width: int, height: int
) -> None:
    found = dotted(points, width, height, 0.0, 1.0)
    assert all(0 <= x < width and 0 <= y < height for x, y in found)
    for x, y in points:
        column, row = round(x * (width * 2 - 1)), round((1 - min(max(y, 0.0), 1.0)) * (height * 4 - 1))
        assert found[column // 2, row // 4], "the dot of a point that was given"


def test_a_straight_line_is_drawn_straight() -> None:
    assert sorted(dotted([(0, 0), (1, 0)], 4, 2, 0.0, 1.0)) == [(x, 1) for x in range(4)]
    assert set(dotted([(0, 1), (1, 0)], 4, 1, 0.0, 1.0)) == {(x, 0) for x in range(4)}


def test_a_picture_is_drawn_in_time(tmp_path: Path) -> None:
    """Four curves of thirty points on a large screen: of the 50 ms of a frame, in processor time, the best of ten."""
    widget = Curves("any")
    points = [(at / 30, at % 7 / 7) for at in range(31)]
    picture = Picture([Curve(points, sign) for sign in "ABCD"], 0, 1, [(0, "a")], ["words"], level=(0.5, "half"))
    spent = []
    for _ in range(10):
        begin = time.thread_time()
        widget._cells(picture, 194, 30)
        spent.append(time.thread_time() - begin)
    assert min(spent) < 0.05


def test_the_curves_of_fading_are_the_rankings_of_the_days_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(
        sample(tmp_path),
        changes=[
            ("profile", "openclaw-2026.3"),
            ("query.minScore", "0.25"),
            ("query.hybrid.temporalDecay.enabled", "true"),
        ],
    )

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.resize_terminal(*LARGE)
        await ask(pilot, QUESTION)
        await press(pilot, "z", "f")
        view = app.screen
        assert isinstance(view, FadingView)
        assert view.faded is not None
        engine = engine_of(app)
        evidence, settings = engine.queries.gather(QUESTION), engine.plan.settings
        assert list(view.faded.ahead) == ahead(evidence, settings, CURVE_DAYS, CURVE_STRIDE)
        for one in view.faded.ahead:
            day, score = one.scores[5]
            trace = engine.queries.rank(later(evidence, day), settings)
            assert {c.chunk.id: c.score for c in (*trace.recalled, *trace.lost)}[one.chunk.id] == score
            if one.leaves is not None:
                trace = engine.queries.rank(later(evidence, one.leaves), settings)
                assert one.chunk.id not in {hit.chunk.id for hit in trace.recalled}
        shown = text_of(app)
        assert "minScore 0.25" in shown
        assert "180 days" in shown
        leaving = next(one for one in view.faded.ahead if one.leaves)
        assert f"leaves in about {leaving.leaves} days" in shown

    drive(app, steps)


def test_the_curve_of_a_knob_is_measured_and_its_mark_moves_with_the_key(tmp_path: Path) -> None:
    workspace = sample(tmp_path)
    book = Notebook((Query(QUESTION, (Label("memory/network.md", 3, 2),)),))
    judgments.save(judgments.notebook_path(workspace), book)
    app = make_app(workspace)

    def ndcg(settings: Settings) -> float:
        cases = evaluate.collect(engine_of(app).queries.gather, book)
        return evaluate.score(cases, settings).mean["ndcg@10"]

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.resize_terminal(*LARGE)
        await ask(pilot, QUESTION)
        assert not pilot.app.screen.query_one("#knob-curve").display
        await press(pilot, "t")
        curves = app.screen.query_one("#knob-curve", Curves)
        knobs = app.screen.knobs  # type: ignore[attr-defined]
        await until(lambda: len(knobs._points) > STEPS)
        await settled(pilot)
        assert isinstance(app, MemoryApp)
        dial, tuning = app.screen.query_one(TuneStrip).dial, app.tuning
        assert dial is not None
        assert tuning is not None
        for share in (0.0, 0.5, 1.0):
            expected = ndcg(tuning.set(dial.knob.key, dial.at_share(share)).settings)
            assert knobs._points[share] == pytest.approx(expected)
        picture = curves.picture
        assert picture is not None
        assert picture.here is not None
        assert f"gives {ndcg(tuning.settings):.2f}" in text_of(app)
        await press(pilot, "l")
        moved = curves.picture
        assert moved is not None
        assert moved.here is not None
        assert moved.here[0] > picture.here[0], "the mark moved with the key"
        assert len(moved.curves[0].points) >= len(picture.curves[0].points), "the curve was not begun anew"
        await press(pilot, "j")
        await until(lambda: len(knobs._points) > STEPS)
        await press(pilot, "escape")
        assert not curves.display

    drive(app, steps)


def test_the_index_view_says_how_fast_it_is_and_what_it_covers(tmp_path: Path) -> None:
    app = make_app(sample(tmp_path))

    async def steps(pilot: Pilot[int]) -> None:
        await pilot.resize_terminal(*LARGE)
        for question in (QUESTION, "restic lock"):
            await ask(pilot, question)
        await press(pilot, "3")
        assert app.facts is not None
        rows = {label: words for label, words, _ in paced(app.facts, app.pace, None)}
        assert "last 2 questions: " in rows["questions"]
        assert "half under" not in rows["questions"], "shares of two say nothing"
        app.pace.answered.extend([5.0] * 10)
        assert (
            "last 12 questions: half under " in dict(row[:2] for row in paced(app.facts, app.pace, None))["questions"]
        )
        days = {row.day for row in app.facts.rows if row.day is not None}
        for day in days:
            assert rows[f"{day:%b %Y}"][day.day - 1] == "█"
        assert sum(words.count("█") for label, words in rows.items() if label[-4:].isdecimal()) == len(days)
        assert rows["no day"] == "8 notes: 8 fresh"
        own = rows["scripted"]
        assert own.startswith("nothing left this machine; today ")
        assert f"{app.facts.status.links[0].today.texts} texts" in own, "what was indexed and asked"
        assert "speed" not in rows, "nothing is being indexed"
        app.pace.rates.extend([10.0, 40.0, 20.0])
        progress = IndexingProgress(12, 300, "memory/a.md", 20.0, 90.0)
        speed = {label: words for label, words, _ in paced(app.facts, app.pace, progress)}["speed"]
        assert speed == "▂█▄  20 files a second now, 288 left, 90 s"
        log = next(row for row in app.facts.rows if row.day is not None)
        assert log.day is not None
        behind = replace(app.facts, rows=(replace(log, state="failed"), *app.facts.rows))
        found = {label: words for label, words, _ in paced(behind, app.pace, None)}
        assert found[f"{log.day:%b %Y}"][log.day.day - 1] == "×", "the worst note of a day decides"

    drive(app, steps)
