"""The search view: asking, seeing why, turning knobs, reading and copying what was found."""

from __future__ import annotations

import json
import re
import shlex
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from memory_tui.cli import main
from memory_tui.cli.main import parsed
from memory_tui.engine.engine import Engine
from memory_tui.explain.wording import explain
from memory_tui.plan import Options
from memory_tui.search.trace import QueryPlan, Recalled
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.tuning import ORIGIN
from memory_tui.tui.views.dialogs import Prompt
from memory_tui.tui.views.notes.browse import ReaderView
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.views.search.why_not_view import WhyNotView
from memory_tui.tui.widgets.query import QueryBox, QueryInput
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.results import GateRow, HitList, HitRow
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tui.widgets.why_rows import sum_rows
from tests.support.tui import (
    LARGE,
    LONG,
    NOW,
    SMALL,
    ask,
    drive,
    make_app,
    press,
    said,
    settled,
    text_of,
    until,
)

QUESTION = "How is the VLAN on the Omada router set up?"
OPENCLAW = [("profile", "openclaw-2026.3")]


def view_of(app: MemoryApp) -> SearchView:
    assert isinstance(app.screen, SearchView)
    return app.screen


def recalled(app: MemoryApp) -> list[str]:
    trace = view_of(app).trace
    assert trace is not None
    return [candidate.chunk.citation for candidate in trace.recalled]


def knob(app: MemoryApp, key: str) -> object:
    trace = view_of(app).trace
    assert trace is not None
    return trace.settings.values[key].value


async def to_knob(pilot: Pilot[int], key: str) -> None:
    """Put the strip's cursor on `key`."""
    app = pilot.app
    assert isinstance(app, MemoryApp)
    await press(pilot, "t")
    strip = app.screen.query_one(TuneStrip)
    while strip.dial is not None and strip.dial.knob.key != key:
        await press(pilot, "j")


def test_the_answer_follows_while_typing(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "slash", *"vlan")
        assert view_of(app).trace is not None
        assert recalled(app)
        assert isinstance(app.focused, QueryInput)

    drive(app, steps)


def test_a_question_from_the_command_line_is_asked(workspace: Path) -> None:
    app = make_app(workspace, query="omada vlan")

    async def steps(_pilot: Pilot[int]) -> None:
        assert recalled(app)
        assert app.screen.query_one(QueryInput).value == "omada vlan"

    drive(app, steps)


def test_losers_stand_below_the_line_with_their_reason(workspace: Path) -> None:
    app = make_app(workspace, changes=OPENCLAW)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada router vlan")
        results = app.screen.query_one(HitList)
        line = next(i for i, row in enumerate(results.rows) if isinstance(row, GateRow))
        assert all(isinstance(row, HitRow) and row.recalled for row in results.rows[:line])
        assert all(isinstance(row, HitRow) and not row.recalled for row in results.rows[line + 1 :])
        assert "not recalled: under minScore 0.35" in text_of(app)
        assert " below " in text_of(app)
        trace = view_of(app).trace
        assert trace is not None
        assert line == len(trace.recalled)

    drive(app, steps)


def test_over_the_limit_and_under_the_gate_are_two_lines(workspace: Path) -> None:
    app = make_app(workspace, changes=[*OPENCLAW, ("query.minScore", "0.1"), ("query.maxResults", "2")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada router vlan")
        results = app.screen.query_one(HitList)
        labels = [row.label for row in results.rows if isinstance(row, GateRow)]
        assert labels == ["not recalled: over the limit of 2 results", "not recalled: under minScore 0.10"]
        trace = view_of(app).trace
        assert trace is not None
        second = [i for i, row in enumerate(results.rows) if isinstance(row, GateRow)][1]
        floor = trace.floor
        for i, row in enumerate(results.rows):
            if isinstance(row, HitRow):
                candidate = (trace.recalled if row.recalled else trace.lost)[row.index]
                assert (candidate.score >= floor) == (i < second)

    drive(app, steps)


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
def test_the_arithmetic_on_screen_adds_up(workspace: Path, profile: str) -> None:
    app = make_app(workspace, changes=[("profile", profile), ("query.hybrid.temporalDecay.enabled", "true")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "what about the router on March 15?")
        trace = view_of(app).trace
        assert trace is not None
        for candidate in [*trace.recalled, *trace.lost[:5]]:
            shown = ["".join(text for text, _ in row) for row in sum_rows(explain(candidate, trace), 60)]
            total = 0.0
            for line in shown:
                found = re.search(r"  ([-+x=]) (\d[\d.]*)$", line) if len(line) == 60 else None
                operation, value = found.groups() if found else ("", "")
                if operation == "+":
                    total += float(value)
                elif operation == "-":
                    total -= float(value)
                elif operation == "x":
                    total *= float(value)
                elif operation == "=":
                    assert total == pytest.approx(float(value), abs=0.003), "\n".join(shown)
            assert total == pytest.approx(candidate.score, abs=0.003)

    drive(app, steps)


def test_a_knob_moves_the_list_without_another_search(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert app.engine is not None
        gathered = []
        real = app.engine.search.gather
        app.engine.search.gather = lambda *a, **k: gathered.append(a) or real(*a, **k)  # type: ignore[method-assign]
        await ask(pilot, QUESTION)
        before, asked = recalled(app), len(gathered)
        await to_knob(pilot, "query.hybrid.vectorWeight")
        await press(pilot, *"l" * 12)
        assert knob(app, "query.hybrid.vectorWeight") == pytest.approx(1.0)
        assert knob(app, "query.hybrid.textWeight") == pytest.approx(0.0)
        moved = recalled(app)
        assert moved != before
        await press(pilot, *"u" * 12)
        assert recalled(app) == before
        assert not view_of(app).context().undo
        await press(pilot, *["ctrl+r"] * 12)
        assert recalled(app) == moved
        await press(pilot, "equals_sign")
        assert recalled(app) == before
        assert len(gathered) == asked

    drive(app, steps)


def test_places_are_marked_against_the_baseline(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert "against A" not in text_of(app)
        best = app.screen.query_one(HitList).rows[4]
        assert isinstance(best, HitRow)
        fifth = place_of(app, best)
        await to_knob(pilot, "query.maxResults")
        await press(pilot, "h", "h")
        assert f"against A (as opened): 4 same, 2 out ({fifth} ...)" in text_of(app)
        assert "change against A (as opened)" in text_of(app)
        assert text_of(app).count(" out ") >= 2
        await press(pilot, "b", "enter")
        assert said(app) == ("Baseline B is set: results 4. The list now compares each turn with it; u undoes it.")
        await press(pilot, "l")
        assert "against B (results 4): 1 new, 4 same" in text_of(app)
        assert " new " in text_of(app)

    drive(app, steps, LARGE)


def place_of(app: MemoryApp, row: HitRow) -> str:
    """The note and first line of a hit, as the knobs name one that is gone."""
    hit = app.screen.query_one(HitList)._candidate(row)
    assert hit is not None
    return f"{hit.chunk.path}:{hit.chunk.start_line}"


@pytest.mark.parametrize("size", [SMALL, (60, 20)])
def test_a_low_strip_says_which_hit_a_turned_knob_dropped(app: MemoryApp, size: tuple[int, int]) -> None:
    """The cursor stays on the first hit, and what was dropped may be below the list."""

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_knob(pilot, "query.maxResults")
        strip = app.screen.query_one(TuneStrip)
        assert "results: " in drawn(strip)
        await press(pilot, "h")
        assert "vs A (as opened): 5 same, 1 out (" in drawn(strip)
        await press(pilot, "j")
        assert "vs A" not in drawn(strip), "a knob that was not turned says what it does"

    def drawn(strip: TuneStrip) -> str:
        return " ".join(" ".join(strip.render_line(y).text for y in range(strip.size.height)).split())

    drive(app, steps, size)


def test_the_cursor_stays_on_its_chunk_when_places_change(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "j", "j", "j")
        results = app.screen.query_one(HitList)
        hit = results.hit
        assert hit is not None
        await to_knob(pilot, "query.hybrid.vectorWeight")
        await press(pilot, *"llllllll")
        assert results.hit is not None
        assert results.hit.chunk == hit.chunk

    drive(app, steps)


def test_digits_type_a_value(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_knob(pilot, "query.maxResults")
        await press(pilot, "enter", "1")
        assert "1_" in text_of(app)
        await press(pilot, "2", "enter")
        assert len(recalled(app)) == 12
        await press(pilot, "enter", *"9999", "enter")
        assert said(app) == "query.maxResults goes from 1 to 1000; 9999 is outside."
        await press(pilot, "enter", "7", "escape")
        assert knob(app, "query.maxResults") == 12
        await press(pilot, "0")
        assert knob(app, "query.maxResults") == 6
        await press(pilot, "0")
        assert said(app) == "results is as the app was opened."
        await to_knob(pilot, "query.minScore")
        await press(pilot, "enter", "full_stop", "4", "enter")
        assert knob(app, "query.minScore") == pytest.approx(0.4)

    drive(app, steps)


def test_a_knob_that_the_profile_ignores_says_so(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_knob(pilot, "query.hybrid.candidateMultiplier")
        await press(pilot, "l")
        assert said(app) == ("candidates has no effect: recommended always looks at 60 candidates a side.")
        assert knob(app, "query.hybrid.candidateMultiplier") == 4
        await to_knob(pilot, "query.hybrid.mmr.lambda")
        await press(pilot, "l")
        assert said(app) == "mmr lambda has no effect: mmr is off."
        assert text_of(app).count("no effect") >= 2

    drive(app, steps)


def test_another_profile_brings_its_own_values(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_knob(pilot, "profile")
        await press(pilot, "l")
        newest = view_of(app).trace
        assert newest is not None
        assert newest.profile == "openclaw-2026.9"
        assert "chunking" in {notice.code for notice in newest.notices}, "these chunks are not cut as 2026.9 cuts them"
        await press(pilot, "l")
        trace = view_of(app).trace
        assert trace is not None
        assert trace.profile == "openclaw-2026.3"
        assert knob(app, "query.minScore") == pytest.approx(0.35)
        assert knob(app, "query.hybrid.vectorWeight") == pytest.approx(0.7)
        await press(pilot, "u", "u")
        assert knob(app, "profile") == "recommended"

    drive(app, steps)


def test_a_release_that_ranks_by_the_built_in_table_is_shown_with_whose_vectors_they_are(workspace: Path) -> None:
    app = make_app(workspace, provider="builtin", changes=(("profile", "openclaw-2026.3"),))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        assert ", by vectors of the built-in table" in text_of(app)
        await press(pilot, "c")
        assert "openclaw-2026.3 ranks here by vectors of the built-in table, not OpenClaw's" in text_of(app)

    drive(app, steps)


def test_a_slider_follows_the_mouse(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        strip = app.screen.query_one(TuneStrip)
        top = next(y for y, line in enumerate(text_of(app).splitlines()) if " vector  " in line and "●" in line)
        line = text_of(app).splitlines()[top]
        start = line.index("─")
        await pilot.click(offset=(start + 8, top))
        await settled(pilot)
        assert knob(app, "query.hybrid.vectorWeight") == pytest.approx(1.0)
        assert app.focused is strip
        left = text_of(app).splitlines()[top - 1].index("profile")
        for was in ("recommended", "openclaw-2026.9"):
            await pilot.click(offset=(left + 14, top - 1))
            await settled(pilot)
            assert knob(app, "profile") == was, "one click chooses the knob, the next one turns it"

    drive(app, steps, LARGE)


def test_stale_answers_are_dropped(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "2")
        assert app.engine is not None
        real, release, held = app.engine.search.gather, threading.Event(), threading.Event()

        def slow(query: str, cancel: object = None, source: str = "", **_: object) -> object:
            evidence = real(query)
            if query == "router":
                held.set()
                assert release.wait(LONG)
            return evidence

        app.engine.search.gather = slow  # type: ignore[method-assign, assignment]
        box = app.screen.query_one(QueryBox)
        box.input.value = "router"
        await until(held.is_set)
        box.input.value = "postgres"
        await until(lambda: view_of(app).trace)
        release.set()
        await settled(pilot)
        trace = view_of(app).trace
        assert trace is not None
        assert trace.query == "postgres"

    drive(app, steps)


def test_a_saved_note_is_found_without_a_key(workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "quixotic marmalade")
        new = workspace / "memory" / "2026-03-21.md"
        new.write_text("# Breakfast\n\nquixotic marmalade from the market\n", "utf-8")
        assert app.engine is not None
        app.engine.index.request_sync()
        await settled(pilot)
        assert recalled(app)[0] == "memory/2026-03-21.md#L1-L4"

    drive(app, steps)


def test_enter_opens_the_note_at_the_cited_lines(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = app.screen.query_one(HitList).hit
        assert hit is not None
        await press(pilot, "enter")
        assert isinstance(app.screen, ReaderView)
        reader = app.screen.query_one(Reader)
        assert reader.page is not None
        assert reader.page.path == hit.chunk.path
        assert reader.cursor == hit.chunk.start_line - 1
        assert reader.citation == (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line)
        await press(pilot, "escape")
        assert isinstance(app.screen, SearchView)
        assert isinstance(app.focused, HitList)

    drive(app, steps)


def test_citation_and_text_go_to_the_clipboard(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = app.screen.query_one(HitList).hit
        assert hit is not None
        await press(pilot, "y")
        assert app.clipboard == hit.chunk.citation
        assert said(app).startswith("Sent the citation to the clipboard")
        await press(pilot, "Y", "enter")
        assert app.clipboard.endswith(f"\n\n{hit.chunk.citation}\n")
        assert "VLAN" in app.clipboard
        await press(pilot, "t", "l", "escape", "Y", *"JSON", "enter")
        assert json.loads(app.clipboard)["path"] == hit.chunk.path
        assert json.loads(app.clipboard)["question"] == QUESTION
        await press(pilot, "Y", *"command", "enter")
        assert app.tuning is not None
        words = shlex.split(app.clipboard)
        given = parsed(words[1:])
        assert (words[0], given.query) == ("memory-tui", QUESTION)
        turned = {key: one.value for key, one in app.tuning.settings.values.items() if one.origin == ORIGIN}
        assert turned
        said_so = dict(one.split("=") for one in given.set)
        assert {key: float(said_so[key]) for key in turned} == turned
        assert said(app).startswith("Sent the command")
        assert said(app).endswith(f"the terminal: {app.clipboard}"), "a clipboard may be out of reach"

    drive(app, steps)


def test_the_command_that_is_copied_finds_what_the_screen_shows(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "vlan.md").write_text("# VLANs\n\nThe omada router has a VLAN for guests, set up in May.\n")
    asked = Options(
        str(workspace),
        index=str(tmp_path / "one.sqlite"),
        provider="builtin",
        now=NOW,
        extra=(str(more),),
        changes=(("profile", "openclaw-2026.3"), ("query.minScore", "0.1")),
    )
    app = MemoryApp(lambda listener: Engine.open(asked, listener), name="notes")
    shown: list[tuple[str, int, float]] = []

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_knob(pilot, "profile")
        while knob(app, "profile") != "recommended":
            await press(pilot, "l")
        await to_knob(pilot, "query.hybrid.vectorWeight")
        await press(pilot, "l", "escape", "Y", *"command", "enter")
        trace = app.screen.query_one(HitList)._trace
        assert trace is not None
        shown.extend((hit.chunk.path, hit.chunk.start_line, round(hit.score, 6)) for hit in trace.recalled)
        assert trace.profile == "recommended"

    drive(app, steps)
    assert any(path.endswith("vlan.md") for path, _, _ in shown)
    assert main.main([*shlex.split(app.clipboard)[1:], "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["results"]
    assert [(hit["path"], hit["startLine"], round(hit["score"], 6)) for hit in hits] == shown


def test_a_click_selects_and_a_second_one_opens(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        results = app.screen.query_one(HitList)
        await pilot.click(HitList, offset=(20, 5))
        await settled(pilot)
        assert results.cursor == 2
        await pilot.click(HitList, offset=(20, 5), times=2)
        await settled(pilot)
        assert isinstance(app.screen, ReaderView)

    drive(app, steps)


def test_the_why_pane_follows_the_cursor(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        trace = view_of(app).trace
        assert trace is not None
        for candidate in trace.recalled:
            assert isinstance(candidate.verdict, Recalled)
            assert f"RECALLED {candidate.verdict.place}" in str(app.screen.query_one(WhyPane).border_title)
            await press(pilot, "j")
        assert "NOT RECALLED" in str(app.screen.query_one(WhyPane).border_title)

    drive(app, steps)


def test_up_brings_back_earlier_questions(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "router")
        await ask(pilot, "postgres")
        await press(pilot, "slash", "up")
        assert app.screen.query_one(QueryInput).value == "router", "the newest stands there already"

    drive(app, steps)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_how_surely_it_was_answered_is_said_however_long_the_question_is(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "zebra?")
        first = text_of(app).split("\n")[1]
        assert "NOTHING HOLDS THESE WORDS" in first
        assert ("Nearest" in first) is (size == SMALL), "where there is room, the frame of the hits says it"
        assert "NEAREST 1st, kept back" in str(app.screen.query_one(WhyPane).border_title)
        await ask(pilot, "which aardvark was it that the zoologists of the burrow talked about")
        first = text_of(app).split("\n")[1]
        assert any(level in first for level in ("NEARBY ONLY", "NOTHING HOLDS THESE WORDS"))
        assert not {"Recalled", "Nearest"} & set(first.split()), "how many gives way before how surely"

    drive(app, steps, size)


def test_why_not_of_a_hit_that_lost_is_not_asked_about(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "W")
        assert isinstance(app.screen, Prompt), "of a hit that is recalled another line is meant"
        await press(pilot, "escape", *"jjjjjj")
        lost = app.screen.query_one(HitList).hit
        assert lost is not None
        await press(pilot, "W")
        assert isinstance(app.screen, WhyNotView)
        assert lost.chunk.path in text_of(app)

    drive(app, steps)


def test_the_frame_of_the_knobs_names_the_one_under_the_cursor_from_the_start(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t")
        strip = app.screen.query_one(TuneStrip)
        assert strip.dial is not None
        assert f"{strip.dial.knob.label}: " in str(strip.border_subtitle)
        await press(pilot, "escape")
        assert not strip.border_subtitle

    drive(app, steps, LARGE)


def test_a_question_that_cannot_be_asked_says_why(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "2")
        app.screen.query_one(QueryInput).value = "word " * 200_000
        await settled(pilot)
        assert view_of(app).trace is None
        assert app.engine is not None
        assert "1,000,000" in text_of(app) or "too long" in text_of(app).lower() or "characters" in text_of(app)

    drive(app, steps)


@pytest.mark.parametrize("query", ["?!...", '"', "AND OR NOT NEAR(", "'; DROP TABLE chunks; --", "*", "\\", "🦊"])
def test_odd_questions_get_an_answer_or_a_reason(app: MemoryApp, query: str) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "2")
        app.screen.query_one(QueryInput).value = query
        await settled(pilot)
        trace = view_of(app).trace
        assert trace is not None
        assert trace.recalled or trace.empty is not None

    drive(app, steps)


def test_what_a_question_was_read_as_is_shown_and_taken_back(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada routr last sunday")
        [spelling, time] = plan_of(app).readings
        assert spelling == '"routr" searched as "router"'
        assert time.startswith('"last sunday" read as ')
        assert 'u takes back: "routr" searched as ' in text_of(app)
        await press(pilot, "u")
        await settled(pilot)
        assert not plan_of(app).readings
        assert {"routr", "sunday"} <= set(plan_of(app).words)
        await press(pilot, "ctrl+r")
        await settled(pilot)
        assert len(plan_of(app).readings) == 2

    def plan_of(app: MemoryApp) -> QueryPlan:
        trace = view_of(app).trace
        assert trace is not None
        return trace.plan

    drive(app, steps)
