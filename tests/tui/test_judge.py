"""Judging on screen: votes, saved questions, metrics before and after, baselines, two rankings side by side."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.trace import Recalled, Trace
from memory_tui.tui import judging
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.notes.browse import ReaderView
from memory_tui.tui.views.search.compare_profiles import SideBySideView, recalled
from memory_tui.tui.views.search.saved_queries import SavedQueriesView
from memory_tui.tui.views.search.search_judge import Vote
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.widgets.query import FunnelLine, cuts, lost_at, stages
from memory_tui.tui.widgets.results import HitList, HitRow, OutsideRow
from memory_tui.tui.widgets.rowlist import Rows
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tune import evaluate, judgments
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.support.tui import (
    LARGE,
    LONG,
    NOW,
    ask,
    drive,
    make_app,
    press,
    said,
    settled,
    strike,
    text_of,
    until,
)

QUESTION = "How is the VLAN on the Omada router set up?"
OPENCLAW = [("profile", "openclaw-2026.3")]


def search_of(app: MemoryApp) -> SearchView:
    return next(view for view in app.views if isinstance(view, SearchView))


def trace_of(app: MemoryApp) -> Trace:
    trace = search_of(app).trace
    assert trace is not None
    return trace


def engine_of(app: MemoryApp) -> Engine:
    assert app.engine is not None
    return app.engine


def saved(workspace: Path) -> Notebook:
    return judgments.load(judgments.notebook_path(workspace))


# --- votes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "grade", "sign"), [("y", 2, "1✓"), ("2", 2, "1✓"), ("1", 1, "1½"), ("n", 0, "1✗")])
def test_a_vote_is_saved_and_shown(app: MemoryApp, workspace: Path, key: str, grade: int, sign: str) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = trace_of(app).recalled[0]
        await press(pilot, "v")
        assert isinstance(app.screen, Vote)
        await press(pilot, key)
        query = saved(workspace).find(QUESTION)
        assert query is not None
        assert query.grade(hit.chunk) == grade
        label = query.labels[0]
        text = (workspace / label.path).read_text("utf-8").split("\n")
        assert label.answer in text[label.line - 1]
        assert label.answer
        assert f"  {sign} " in text_of(app)

    drive(app, steps)


def test_the_line_that_is_judged_is_the_one_that_why_calls_the_best(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        for hit in trace_of(app).recalled:
            await press(pilot, "v", "y")
            query = saved(workspace).find(QUESTION)
            assert query is not None
            lines = [label.line for label in query.labels if label.path == hit.chunk.path]
            assert hit.second is not None
            assert hit.second.line in lines
            assert f"line {hit.second.line} of {hit.chunk.path}" in said(app)
            await press(pilot, "j")

    drive(app, steps)


def test_the_judge_says_what_enter_does(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "v")
        assert "enter: answers it" in text_of(app)
        await press(pilot, "tab", "tab")
        assert "enter: wrong" in text_of(app)
        await press(pilot, "enter")
        query = saved(workspace).find(QUESTION)
        assert query is not None
        assert query.labels[0].grade == 0

    drive(app, steps)


def test_another_vote_replaces_the_first_and_minus_takes_it_back(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        chunk = trace_of(app).recalled[0].chunk
        await press(pilot, "v", "y", "v", "n")
        query = saved(workspace).find(QUESTION)
        assert query is not None
        assert query.grade(chunk) == 0
        await press(pilot, "v", "-")
        query = saved(workspace).find(QUESTION)
        assert query is not None
        assert query.labels == ()

    drive(app, steps)


def test_quick_votes_are_all_saved(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await strike(pilot, "v", "y", "j", "v", "n", "j", "v", "1", "j", "v", "y")
        await settled(pilot)
        query = saved(workspace).find(QUESTION)
        assert query is not None
        grades = [query.grade(candidate.chunk) for candidate in trace_of(app).recalled[:4]]
        assert grades == [2, 0, 1, 2]

    drive(app, steps)


def test_a_vote_whose_writing_was_overtaken_is_shown_all_the_same(
    app: MemoryApp, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        real, release, begun = judgments.edit, threading.Event(), []

        def edit(*args: object) -> Notebook:
            begun.append(args)
            if len(begun) == 1:
                assert release.wait(LONG)
            return real(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(judgments, "edit", edit)
        await strike(pilot, "v", "y")
        await until(lambda: begun)
        await strike(pilot, "j", "v", "n")
        await until(lambda: search_of(app).judge.evaluation.query(QUESTION))
        release.set()
        await settled(pilot)
        query, evaluation = saved(workspace).find(QUESTION), search_of(app).judge.evaluation
        assert query is not None
        for found in (query.grade, lambda chunk: evaluation.grade(QUESTION, chunk)):
            assert [found(candidate.chunk) for candidate in trace_of(app).recalled[:2]] == [2, 0]

    drive(app, steps)


def test_labels_written_by_another_program_meanwhile_stay(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        other = Query("another question", (Label("MEMORY.md", 3, 2),))
        judgments.save(judgments.notebook_path(workspace), Notebook((other,)))
        await press(pilot, "v", "y")
        assert {query.text for query in saved(workspace).queries} == {"another question", QUESTION}

    drive(app, steps)


def test_a_notebook_that_cannot_be_written_is_told_and_the_vote_is_kept_for_later(
    app: MemoryApp, workspace: Path
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        place = judgments.notebook_path(workspace)
        place.parent.mkdir(parents=True)
        await ask(pilot, QUESTION)
        place.mkdir()
        await press(pilot, "v", "y")
        assert "labels" in said(app)
        place.rmdir()
        await press(pilot, "j", "v", "n")
        query = saved(workspace).find(QUESTION)
        assert query is not None
        assert sorted(label.grade for label in query.labels) == [0, 2]

    drive(app, steps)


def test_a_question_without_an_answer_can_be_said_to_have_none(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "How deep is the Mariana Trench?")
        await press(pilot, "v", "x")
        query = saved(workspace).find("How deep is the Mariana Trench?")
        assert query is not None
        assert query.unanswerable

    drive(app, steps)


def test_ctrl_s_saves_the_question(app: MemoryApp, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "slash", "ctrl+s")
        assert saved(workspace).find(QUESTION) == Query(QUESTION)
        assert said(app).startswith("Query saved. Press v to mark the hits that answer it.")
        await press(pilot, "down", "v", "y", "j", "v", "n", "slash", "ctrl+s")
        assert said(app).startswith("Query saved, with 2 judged hits."), "what was judged is known"
        await press(pilot, "down", "v", "x", "slash", "ctrl+s")
        assert said(app).startswith("Query saved, as one that the notes do not answer.")

    drive(app, steps)


# --- measuring -----------------------------------------------------------------------------------------------------


def write_labels(workspace: Path) -> Notebook:
    """Three questions with their answers, and one that has none."""
    found = Notebook(
        (
            Query(QUESTION, (Label("memory/network.md", 38, 2), Label("memory/2026-03-06.md", 3, 1))),
            Query("Why did we drop Pi-hole?", (Label("memory/network.md", 36, 2),)),
            Query("wifi password for guests", (Label("MEMORY.md", 21, 1),)),
            Query("How deep is the Mariana Trench?", unanswerable=True),
        )
    )
    judgments.save(judgments.notebook_path(workspace), found)
    return found


def test_the_metrics_on_screen_are_those_of_the_evaluation(workspace: Path) -> None:
    book = write_labels(workspace)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t", "j", *"llllllllll")
        view, engine, tuning = search_of(app), engine_of(app), app.tuning
        assert tuning is not None
        cases = evaluate.collect(engine.search.gather, book)
        expected = evaluate.compare(
            evaluate.by_question(evaluate.score(cases, engine.plan.settings)),
            evaluate.by_question(evaluate.score(cases, tuning.settings)),
        )
        assert view.judge.evaluation.compared == expected
        assert "4 judged, A > now: nDCG" in text_of(app), "which is old, and which is new"
        assert "  ".join(judging.words(expected)[:3]) in text_of(app)

    drive(app, steps)


def test_what_breaks_is_counted_and_named(workspace: Path) -> None:
    write_labels(workspace)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t")
        engine, tuning = engine_of(app), app.tuning
        assert tuning is not None
        app.turn(tuning.set("query.maxResults", 1))
        await settled(pilot)
        compared = search_of(app).judge.evaluation.compared
        assert compared is not None
        assert compared.broke
        assert f"{len(compared.broke)} broke" in text_of(app)
        await press(pilot, "escape", "g", "q")
        assert isinstance(app.screen, SavedQueriesView)
        assert "mean, A > now: nDCG " in text_of(app)
        assert text_of(app).count("broke ") >= len(compared.broke)
        assert engine.plan.settings.whole("query.maxResults") == 6

    drive(app, steps)


def test_questions_are_asked_once_however_often_knobs_turn(workspace: Path) -> None:
    write_labels(workspace)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        engine, asked = engine_of(app), []
        real = engine.search.gather
        engine.search.gather = lambda *a, **k: asked.append(a[0]) or real(*a, **k)  # type: ignore[method-assign]
        await press(pilot, "t", "j", "l", "l", "h", "L", "u")
        assert len(asked) == 4

    drive(app, steps)


def test_turning_while_questions_are_asked_does_not_ask_them_again(workspace: Path) -> None:
    write_labels(workspace)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        engine, asked, release = engine_of(app), [], threading.Event()
        real = engine.search.gather

        def slow(query: str, *rest: object) -> object:
            asked.append(query)
            assert release.wait(LONG)
            return real(query, *rest)  # type: ignore[arg-type]

        engine.search.gather = slow  # type: ignore[method-assign, assignment]
        await strike(pilot, "t", "j")
        await until(lambda: asked)
        await strike(pilot, *"llhl")
        release.set()
        await settled(pilot)
        assert len(asked) == 4
        compared = search_of(app).judge.evaluation.compared
        assert compared is not None
        assert len(compared.changes) == 4

    drive(app, steps)


def test_the_book_runs_and_forgets_questions(workspace: Path) -> None:
    write_labels(workspace)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "g", "q", "j", "enter")
        assert isinstance(app.screen, SearchView)
        assert trace_of(app).query == "Why did we drop Pi-hole?"
        await press(pilot, "g", "q", "d", "y")
        assert QUESTION not in {query.text for query in saved(workspace).queries}
        assert len(saved(workspace).queries) == 3
        rows = app.screen.query_one(Rows)
        assert rows.count() == 4

    drive(app, steps)


def test_the_heading_of_many_saved_queries_stays_in_sight(workspace: Path) -> None:
    book = Notebook(tuple(Query(f"question number {number}") for number in range(80)))
    judgments.save(judgments.notebook_path(workspace), book)
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "g", "q")
        head = next(line for line in text_of(app).splitlines() if " judged " in line)
        rows = app.screen.query_one(Rows)
        for keys in (("G",), ("k",) * 60, ("ctrl+u",), ("g", "g")):
            await press(pilot, *keys)
            seen = text_of(app).splitlines()
            assert seen.index(head) == 2, "above the rows, wherever they are scrolled"
            assert any(line.rstrip("│▁▂▃▄▅▆▇█ ").endswith(str(rows.key)) for line in seen), "the row of the cursor too"

    drive(app, steps)


def test_flips_say_what_labels_say_of_their_side_effects(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        last = trace_of(app).recalled[-1].chunk
        book = Notebook((Query(QUESTION, (Label(last.path, last.end_line, 2),)),))
        judgments.save(judgments.notebook_path(workspace), book)
        search_of(app).judge.read_notebook()
        await settled(pilot)
        while isinstance(search_of(app).query_one(HitList).hit.verdict, Recalled):  # type: ignore[union-attr]
            await press(pilot, "j")
        pane, said = app.screen.query_one(WhyPane), list[str]()
        # What would recall a line a little further down takes the last hit away.
        for _ in range(5):
            shown = [piece for row in range(pane.count()) for piece, _ in pane.draw(row, 0, pane.inner_width)]
            said.append(" ".join(" ".join(shown).split()))
            await press(pilot, "j")
        assert any("1 of them marked right" in one for one in said)

    drive(app, steps)


# --- side by side --------------------------------------------------------------------------------------------------


def test_two_profiles_stand_side_by_side(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "c")
        view, engine = app.screen, engine_of(app)
        assert isinstance(view, SideBySideView)
        evidence = engine.search.gather(QUESTION)
        for side, profile in (("left", "recommended"), ("right", "openclaw-2026.3")):
            expected = engine.search.rank(evidence, engine.plan.with_profile(profile)).recalled
            shown = sorted(
                (getattr(pair, side) for pair in view._pairs if recalled(getattr(pair, side))),
                key=lambda candidate: candidate.verdict.place,
            )
            assert [(c.chunk, c.score) for c in shown] == [(c.chunk, c.score) for c in expected]
        await press(pilot, "l")
        assert "recommended | openclaw-2026.2" in text_of(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, ReaderView)
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, SearchView)

    drive(app, steps)


def test_the_release_that_cuts_notes_otherwise_stands_beside(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own index is made when a person asks for it, and asked by itself once it is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = Options(str(workspace), provider="none", now=NOW, changes=(("sync.watch", "false"),))

    def sides(view: SideBySideView) -> list[str]:
        return [side.name for side in view.sides]

    async def first(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "c")
        view = app.screen
        assert isinstance(view, SideBySideView)
        assert "openclaw-2026.9" not in sides(view)
        await press(pilot, "g", "g", "enter")
        assert isinstance(app.screen, SideBySideView), "nothing was opened"
        assert "recommended | openclaw-2026.9" in text_of(app)
        newest = Engine.open(replace(options, changes=(("profile", "openclaw-2026.9"),)))
        with newest:
            expected = [(hit.chunk, hit.score) for hit in newest.search.search(QUESTION).recalled]
        shown = [pair.right for pair in view._pairs if pair.right is not None and recalled(pair.right)]
        shown.sort(key=lambda hit: hit.verdict.place)
        assert [(hit.chunk, hit.score) for hit in shown] == expected != []
        for pair in view._pairs:
            if pair.left is not None and pair.right is not None:
                assert pair.left.chunk.path == pair.right.chunk.path
                assert pair.left.chunk.start_line <= pair.right.chunk.end_line
                assert pair.right.chunk.start_line <= pair.left.chunk.end_line

    async def second(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "c")
        assert "recommended | openclaw-2026.9" in text_of(app)

    for steps in (first, second):
        app = MemoryApp(lambda listener: Engine.open(options, listener), name="notes")
        drive(app, steps)


def test_undo_takes_back_a_baseline(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t", "j", "l", "b", "enter")
        assert app.tuning is not None
        assert app.tuning.baseline.name == "B"
        await press(pilot, "u")
        assert app.tuning.baseline.name == "A"
        assert app.tuning.compared

    drive(app, steps)


def test_a_baseline_gets_the_name_that_is_typed(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "b", "ctrl+u", *"before", "enter")
        assert app.tuning is not None
        assert app.tuning.baseline.title == "before"

    drive(app, steps)


# --- the funnel ----------------------------------------------------------------------------------------------------


def test_a_stage_lists_what_was_lost_there(workspace: Path) -> None:
    app = make_app(workspace, changes=[*OPENCLAW, ("query.maxResults", "3")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada router vlan")
        results, trace = app.screen.query_one(HitList), trace_of(app)
        found = cuts(trace)
        assert found[0] == "pool"
        assert "minScore" in found
        for cut in found:
            await press(pilot, "]")
            if cut == "pool":
                listed = [row for row in results.rows if isinstance(row, OutsideRow)]
                assert len(listed) == trace.funnel.chunks - trace.funnel.candidates
            else:
                assert [row.index for row in results.rows if isinstance(row, HitRow)] == lost_at(trace, cut)
        await press(pilot, "escape")
        assert sum(isinstance(row, HitRow) for row in results.rows) == trace.funnel.candidates

    drive(app, steps)


def test_a_click_on_a_stage_lists_it_and_another_lists_all(workspace: Path) -> None:
    app = make_app(workspace, changes=OPENCLAW)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada router vlan")
        funnel = app.screen.query_one(FunnelLine)
        at = text_of(app).splitlines()[funnel.region.y].index("over 0.35")
        await pilot.click(offset=(at, funnel.region.y))
        await settled(pilot)
        results = app.screen.query_one(HitList)
        assert [row.index for row in results.rows if isinstance(row, HitRow)] == lost_at(trace_of(app), "minScore")
        await pilot.click(offset=(at, funnel.region.y))
        await settled(pilot)
        assert any(isinstance(row, HitRow) and row.recalled for row in results.rows)

    drive(app, steps, LARGE)


def test_every_stage_and_every_time_are_in_the_line_at_120_columns(workspace: Path) -> None:
    app = make_app(workspace, changes=OPENCLAW)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada router vlan")
        line = text_of(app).splitlines()[app.screen.query_one(FunnelLine).region.y]
        for stage in stages(trace_of(app), short=True):
            assert stage.text.split()[0] in line
        for name in ("embed", "text", "vector", "rank"):
            assert f"{name} " in line

    drive(app, steps, LARGE)
