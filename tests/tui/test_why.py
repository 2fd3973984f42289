"""Why, why not, and what would change it: the why pane at every depth, flips, and lines that are not listed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.geometry import Region
from textual.pilot import Pilot
from textual.scrollbar import ScrollBar
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import Flips, flips
from memory_tui.explain.why_not import row_of
from memory_tui.explain.wording import in_a_line
from memory_tui.search.evidence import later
from memory_tui.search.rank import rank
from memory_tui.search.trace import Candidate, Recalled, Trace
from memory_tui.settings import BY_KEY, TUNE_KEYS, show
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Picker, Prompt, near, path_of
from memory_tui.tui.views.notes.browse import BrowseView
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.views.search.why_not_view import WhyNotView
from memory_tui.tui.widgets import status_bars, why_rows
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.status_bars import KeyHints
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.widgets.why_pane import WhyPane
from memory_tui.tui.widgets.why_rows import Subject, rows_of
from tests.support.search import evidence, settings
from tests.support.tui import (
    LARGE,
    SMALL,
    ask,
    burst,
    drive,
    lines_of,
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


def test_the_notes_ask_which_line_is_missing(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        for pane in ("tree", "reader"):
            await press(pilot, "1", *(["tab"] if pane == "reader" else []), "W")
            assert isinstance(app.screen, BrowseView)
            assert said(app).startswith("No question was asked yet. Press / and ask;")
        await ask(pilot, QUESTION)
        await press(pilot, "1", "W")
        assert isinstance(app.screen, Prompt)
        await press(pilot, *"network.md:24", "enter")
        assert isinstance(app.screen, WhyNotView)
        assert "network.md:24" in text_of(app)
        await press(pilot, "w")
        assert said(app).startswith("This page is why."), "no other pane is named for it"
        await press(pilot, "escape")
        assert isinstance(app.screen, BrowseView)

    drive(app, steps)


def trace_of(app: MemoryApp) -> Trace:
    view = next(view for view in app.views if isinstance(view, SearchView))
    assert view.trace is not None
    return view.trace


def hit_of(app: MemoryApp) -> Candidate:
    hit = app.screen.query_one(HitList).hit
    assert hit is not None
    return hit


async def to_first_loser(pilot: Pilot[int]) -> Candidate:
    app = pilot.app
    assert isinstance(app, MemoryApp)
    while isinstance(hit_of(app).verdict, Recalled):
        await press(pilot, "j")
    return hit_of(app)


# --- flips ---------------------------------------------------------------------------------------------------------


def test_a_turned_knob_explains_the_hit_twice(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once at once, and once with everything that would change the verdict; held keys look for it once."""
    shown: list[Subject | None] = []
    show_subject = WhyPane.show
    monkeypatch.setattr(WhyPane, "show", lambda pane, subject: (shown.append(subject), show_subject(pane, subject)))
    written: list[int] = []
    around = why_rows._around_changes
    monkeypatch.setattr(why_rows, "_around_changes", lambda of, width: (written.append(width), around(of, width))[1])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "t", "j")
        shown.clear()
        written.clear()
        await press(pilot, "l")
        assert [subject is not None and subject.changes is not None for subject in shown] == [False, True]
        # What stands around the changes is written once.
        assert len(written) == 1
        shown.clear()
        await burst(pilot, *"llhhl")
        assert sum(subject is not None and subject.changes is not None for subject in shown) == 1

    drive(app, steps)


def test_only_changed_lines_of_the_pane_are_drawn(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Region, ...]] = []
    refresh = WhyPane.refresh

    def heard(pane: WhyPane, *regions: Region, **options: bool) -> WhyPane:
        drawn.append(regions)
        return refresh(pane, *regions, **options)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        pane = app.screen.query_one(WhyPane)
        subject = pane.subject
        assert subject is not None
        with monkeypatch.context() as patch:
            patch.setattr(WhyPane, "refresh", heard)
            pane.show(subject)
            assert drawn == [], "nothing is other than before"
            pane.show(replace(subject, changes=None, working="looking"))
        await settled(pilot)
        picture = text_of(app)
        pane.refresh()
        await settled(pilot)
        assert text_of(app) == picture

    drive(app, steps)


def test_a_key_draws_only_lines_that_it_changes(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Widget] = []
    for kind in (HitList, TuneStrip, ScrollBar):
        render = kind.render_line
        monkeypatch.setattr(kind, "render_line", lambda pane, y, do=render: (drawn.append(pane), do(pane, y))[1])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hits, strip = app.screen.query_one(HitList), app.screen.query_one(TuneStrip)
        bars = [pane.vertical_scrollbar for pane in (hits, app.screen.query_one(WhyPane))]

        async def count(key: str) -> dict[Widget, int]:
            await settled(pilot)
            drawn.clear()
            await press(pilot, key)
            counts = {pane: drawn.count(pane) for pane in (hits, strip, *bars)}
            picture = text_of(app)
            app.screen.refresh()
            for pane in app.screen.walk_children(Widget):
                pane.refresh()
            await settled(pilot)
            assert text_of(app) == picture, f"{key} leaves nothing out"
            return counts

        step = await count("j")
        rows = sum(hits.height_of(row, hits.inner_width) for row in (0, 1))
        assert step[hits] == rows, "the row that is left, and the next one"
        assert step[strip] == 0
        await press(pilot, "t", "j", "j", "l")
        turn = await count("l")
        assert strip.dial is not None
        assert strip.dial.knob.key == "query.minScore"
        assert turn[strip] == 1, "one knob stands on this line"
        for bar in bars:
            assert turn[bar] < bar.size.height, "the ends of a thumb at most"

    drive(app, steps)


async def scroll_to(pilot: Pilot[int], words: str) -> None:
    """Scroll the why pane through until it shows `words`."""
    pane = pilot.app.screen.query_one(WhyPane)
    pane.scroll_home(animate=False)
    await settled(pilot)
    while words not in text_of(pilot.app) and pane.scroll_offset.y < pane.max_scroll_y:
        pane.scroll_to(y=pane.scroll_offset.y + 2, animate=False, force=True, immediate=True)
        await settled(pilot)
    assert words in text_of(pilot.app), text_of(pilot.app)


@pytest.mark.parametrize("size", [(60, 20), SMALL, LARGE], ids=["60x20", "80x24", "120x36"])
def test_why_a_hit_is_recalled_begins_with_its_sum(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "w")
        pane = app.screen.query_one(WhyPane)
        assert pane.has_focus
        assert pane.scroll_offset.y == 0
        assert "cosine" in text_of(app)
        await press(pilot, *["j"] * pane.count())
        assert pane.key is not None, "the changes are below it"

    drive(app, steps, size)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_what_would_change_a_verdict_is_in_the_pane(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = await to_first_loser(pilot)
        subject = app.screen.query_one(WhyPane).subject
        assert app.engine is not None
        assert subject is not None
        row = row_of(subject.evidence, hit.chunk.rowid)
        assert row is not None
        expected = flips(subject.evidence, app.engine.plan.settings, row, app.engine.plan.with_profile)
        assert subject.changes == expected
        assert subject.working == ""
        await scroll_to(pilot, "results 7: would be")
        assert "results 7: would be recalled (7th)" in text_of(app)

    drive(app, steps, size)


@pytest.mark.parametrize(
    ("cosine", "words"),
    [
        (0.9, "No single setting on the strip would drop this hit"),
        (0.1, "No single setting on the strip would recall this line"),
    ],
)
def test_a_verdict_that_no_single_knob_turns_is_said_in_one_sentence(cosine: float, words: str) -> None:
    found = evidence([cosine], {})
    trace = rank(found, settings("openclaw-2026.3"))
    candidate = (*trace.recalled, *trace.lost)[0]
    changes = Flips(candidate.chunk, isinstance(candidate.verdict, Recalled), (), (), ())
    rows = rows_of(Subject(found, trace, candidate, changes=changes), 0, 60, packed=False)
    assert words in ["".join(piece for piece, _ in row).strip() for row, _ in rows]


@pytest.mark.parametrize("size", [(60, 20), SMALL])
def test_the_sum_of_every_hit_stands_whole_in_a_low_pane(app: MemoryApp, size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        for candidate in trace_of(app).recalled:
            await until(lambda chunk=candidate.chunk: hit_of(app).chunk == chunk)
            await settled(pilot)
            pane = app.screen.query_one(WhyPane)
            box = pane.content_region
            seen = [line[box.x : box.right].strip() for line in lines_of(app)[box.y : box.bottom]]
            # The way to the bar is another column, so what is drawn is compared without blanks.
            assert in_a_line(candidate, trace_of(app)).replace(" ", "") in "".join(seen).replace(" ", "")
            await press(pilot, "j")

    drive(app, steps, size)


@pytest.mark.parametrize("width", [58, 78])
def test_no_row_of_a_packed_pane_is_wider_than_the_pane(app: MemoryApp, width: int) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        subject = app.screen.query_one(WhyPane).subject
        assert subject is not None
        rows = ["".join(piece for piece, _ in row).rstrip() for row, _ in rows_of(subject, 0, width, packed=True)]
        assert not [row for row in rows if len(row) > width]

    drive(app, steps, (60, 20))


def test_the_sentence_of_a_change_that_enter_sets_stays_as_long_as_enter_sets_it(
    app: MemoryApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_first_loser(pilot)
        monkeypatch.setattr(status_bars, "SECONDS", 0.001)
        for leave in ("shift+tab", "enter"):
            await press(pilot, "w")
            await press(pilot, "enter")
            hints = app.screen.query_one(KeyHints)
            hints.show_message("Another sentence.")
            await until(lambda hints=hints: "Another" not in hints.message)
            assert said(app).endswith("Press enter again to set it.")
            settings = trace_of(app).settings
            await press(pilot, leave)
            await until(lambda: not said(app))
            assert (trace_of(app).settings != settings) is (leave == "enter")
            await press(pilot, "escape")

    drive(app, steps)


def test_enter_previews_then_applies_the_least_harmful_change_and_another_takes_it_back(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = await to_first_loser(pilot)
        before = trace_of(app)
        subject = app.screen.query_one(WhyPane).subject
        assert subject is not None
        nearest = subject.flips[0]
        await press(pilot, "w", "enter")
        assert trace_of(app) == before, "it is said first what the change does"
        assert said(app) == f"{wording.preview(nearest)} Press enter again to set it."
        await press(pilot, "enter")
        assert trace_of(app).settings.values[nearest.turns[0].key].value == nearest.turns[0].value
        places = [candidate.chunk for candidate in trace_of(app).recalled]
        assert nearest.place is not None
        assert places[nearest.place - 1] == hit.chunk
        assert hit_of(app).chunk == hit.chunk
        assert said(app).startswith("Set: ")
        was = nearest.turns[0].key, before.settings.values[nearest.turns[0].key].value
        await press(pilot, "u")
        assert trace_of(app).recalled == before.recalled
        assert said(app).startswith(f"Undone: {BY_KEY[was[0]].label} {show(BY_KEY[was[0]], was[1])}")
        await press(pilot, "ctrl+r")
        assert said(app).startswith("Redone: ")

    drive(app, steps)


async def to_several_changes(pilot: Pilot[int]) -> None:
    """Go to the first loser that more than one change recalls, a greater limit among them."""
    await to_first_loser(pilot)
    for _ in range(9):
        subject = pilot.app.screen.query_one(WhyPane).subject
        keys = [found.turns[0].key for found in subject.flips] if subject else []
        if len(keys) > 1 and "query.maxResults" in keys:
            return
        await press(pilot, "j")
    raise AssertionError("no loser has several changes")


def test_every_change_can_be_reached_and_applied(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_several_changes(pilot)
        hit = hit_of(app)
        await press(pilot, "w")
        pane = app.screen.query_one(WhyPane)
        assert pane.subject is not None
        found = pane.subject.flips
        assert len(found) >= 2
        while pane.key != "flip 1":
            before = pane.cursor, pane.scroll_offset.y
            await press(pilot, "j")
            assert (pane.cursor, pane.scroll_offset.y) != before
        await press(pilot, "enter", "enter")
        assert trace_of(app).settings.values[found[1].turns[0].key].value == found[1].turns[0].value
        assert hit.chunk in [candidate.chunk for candidate in trace_of(app).recalled]

    drive(app, steps, SMALL)


def test_a_click_selects_a_change_the_next_previews_it_and_another_applies_it(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await to_several_changes(pilot)
        pane = app.screen.query_one(WhyPane)
        assert pane.subject is not None
        number = next(i for i, found in enumerate(pane.subject.flips) if found.turns[0].key == "query.maxResults")
        most = int(pane.subject.flips[number].turns[0].value)
        await press(pilot, "w", "j")
        for _ in range(20):
            if pane.key == f"flip {number}":
                await press(pilot, "j")
        assert pane.key != f"flip {number}"
        for recalled in (6, 6, most):
            await scroll_to(pilot, f"results {most}: would be")
            line = next(y for y, text in enumerate(text_of(app).splitlines()) if f"results {most}: would be" in text)
            await pilot.click(offset=(pane.region.x + 12, line))
            await settled(pilot)
            assert pane.key == f"flip {number}" or recalled == most
            assert len(trace_of(app).recalled) == recalled

    drive(app, steps)


def test_flips_of_a_hit_that_was_left_are_dropped(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await strike(pilot, *"jjjjjjjjjjjj")
        await settled(pilot)
        subject = app.screen.query_one(WhyPane).subject
        assert subject is not None
        assert subject.candidate == hit_of(app)
        assert subject.changes is not None
        assert subject.changes.chunk == hit_of(app).chunk

    drive(app, steps)


def test_w_on_a_loser_names_a_word_that_recalls_it(workspace: Path) -> None:
    app = make_app(workspace, changes=OPENCLAW)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = await to_first_loser(pilot)
        await press(pilot, "w")
        subject = app.screen.query_one(WhyPane).subject
        assert subject is not None
        assert subject.questions is not None
        assert subject.changes is not None
        await press(pilot, "G")
        found = subject.questions.rephrased[0]
        assert app.engine is not None
        again = app.engine.search.rank(app.engine.search.gather(found.query), app.engine.plan.settings).recalled
        assert again[found.place - 1].chunk == hit.chunk

    drive(app, steps)


# --- depths --------------------------------------------------------------------------------------------------------


def test_zr_goes_deeper_and_escape_back(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "w", "z", "r")
        assert "the full record" in text_of(app)
        await press(pilot, "z", "r")
        pane = app.screen.query_one(WhyPane)
        shown = "".join(
            "".join(text for text, _ in pane.draw(row, 0, pane.inner_width)).rstrip() for row in range(pane.count())
        )
        assert '"cosine"' in shown
        assert pane.depth == 2
        await press(pilot, "escape", "escape")
        assert pane.depth == 0
        assert app.focused is pane
        await press(pilot, "escape")
        assert isinstance(app.focused, HitList)

    drive(app, steps)


def test_the_raw_record_is_json(workspace: Path) -> None:
    from memory_tui.tui.widgets.why_rows import rows_of

    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        subject = app.screen.query_one(WhyPane).subject
        assert subject is not None
        wide = rows_of(subject, 2, 10_000, packed=False)
        data = json.loads("".join("".join(text for text, _ in row) for row, _ in wide))
        assert data["score"] == hit_of(app).score
        assert data["verdict"]["kind"] == "recalled"
        assert len(data["flips"]) == len(subject.flips)

    drive(app, steps)


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
def test_the_formula_ends_at_the_score_of_every_candidate(workspace: Path, profile: str) -> None:
    app = make_app(
        workspace,
        changes=[
            ("profile", profile),
            ("query.hybrid.temporalDecay.enabled", "true"),
            ("query.hybrid.mmr.enabled", "true"),
        ],
    )

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "what about the router on March 15?")
        trace = trace_of(app)
        order = [*trace.recalled, *trace.lost]
        for candidate in order:
            assert f"{candidate.score:.3f} " in in_a_line(candidate, trace)

    drive(app, steps)


# --- lines that are not in the list --------------------------------------------------------------------------------


async def ask_line(pilot: Pilot[int], place: str) -> None:
    await press(pilot, "W")
    pilot.app.screen.query_one(Input).value = place
    await press(pilot, "enter")


def test_a_line_that_was_never_a_candidate_gets_its_verdict(workspace: Path) -> None:
    app = make_app(workspace, changes=[*OPENCLAW, ("query.hybrid.candidateMultiplier", "1"), ("query.maxResults", "2")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "omada router vlan")
        proposed = {candidate.chunk for candidate in [*trace_of(app).recalled, *trace_of(app).lost]}
        await ask_line(pilot, "memory/projects.md:3")
        assert isinstance(app.screen, WhyNotView)
        subject = app.screen.query_one(WhyPane).subject
        assert subject is not None
        assert subject.answer is not None
        assert subject.answer.best is not None
        assert subject.answer.best.chunk not in proposed
        assert "NOT RECALLED (not a candidate)" in text_of(app)
        assert "not a candidate; as one it would have" in text_of(app)
        assert subject.questions is not None
        await press(pilot, "escape")
        assert isinstance(app.screen, SearchView)

    drive(app, steps)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("memory/nowhere.md:3", "NOT RECALLED (no such file)"),
        ("memory/projects.md:9999", "NOT RECALLED (in no chunk)"),
        ("../../etc/passwd", "NOT RECALLED (no such file)"),
        ("memory/network.md#L30-L31", "RECALLED"),
    ],
)
def test_any_place_gets_an_answer(app: MemoryApp, place: str, words: str) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await ask_line(pilot, place)
        assert words in text_of(app)

    drive(app, steps)


def test_a_part_of_a_name_is_completed(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "W", *"netwrk")
        assert isinstance(app.screen, Prompt)
        assert "memory/network.md" in text_of(app)
        await press(pilot, "tab", *":30", "enter")
        await settled(pilot)
        assert isinstance(app.screen, WhyNotView)
        assert "memory/network.md:24-43" in text_of(app)

    drive(app, steps)


def test_a_whole_name_comes_before_names_that_it_is_a_part_of() -> None:
    paths = ["../claude/MEMORY.md", "MEMORY.md", "notes/memory.md.old.md"]
    assert near(paths)("MEMORY.md:8")[0] == "MEMORY.md:8"
    assert near(paths)("memory.md")[:2] == ["memory.md", "MEMORY.md"], "what was typed may be a note that is not there"


def test_a_line_is_found_by_words_that_stand_in_it(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await press(pilot, "W", *"drawer sticker", "enter")
        await settled(pilot)
        assert isinstance(app.screen, WhyNotView)
        assert app.screen.line_in_note() == 10, "one line has both words"
        await press(pilot, "escape", "W", *"router", "enter")
        await settled(pilot)
        assert isinstance(app.screen, Picker), "several lines have it"
        await press(pilot, *"2026", "enter")
        assert isinstance(app.screen, WhyNotView)
        await press(pilot, "escape", "W", *"omada zebra", "enter")
        await settled(pilot)
        assert "No indexed line holds all words of “omada zebra”." in text_of(app)

    drive(app, steps)


def test_part_of_one_name_is_enough() -> None:
    paths = {name: name for name in ("MEMORY.md", "memory/network.md", "memory/work/notes.md", "memory/work/net.md")}
    assert path_of("MEMORY.md", paths) == ("MEMORY.md", ""), "a whole name, though it is part of others"
    assert path_of("Network", paths) == ("memory/network.md", "")
    assert path_of("memory/gone.md", paths) == ("memory/gone.md", ""), "the engine knows why it is no note"
    assert path_of("net", paths) == ("", "2 notes have “net” in the name. W, then tab completes it.")
    assert path_of("pi-hole\x1b", paths)[1] == "No note has “pi-hole␛” in the name. / asks for words."


def test_a_change_that_recalls_a_line_is_applied_from_there(workspace: Path) -> None:
    app = make_app(workspace, changes=OPENCLAW)

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await ask_line(pilot, "memory/network.md:30")
        assert "NOT RECALLED (minScore)" in text_of(app)
        await press(pilot, "enter", "enter")
        assert "RECALLED 6th" in text_of(app)
        assert "NOT RECALLED" not in text_of(app)
        await press(pilot, "escape")
        assert "memory/network.md" in {candidate.chunk.path for candidate in trace_of(app).recalled}
        await press(pilot, "u")
        assert "memory/network.md" not in {candidate.chunk.path for candidate in trace_of(app).recalled}

    drive(app, steps)


def test_the_reader_asks_for_a_question_when_there_is_none(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        assert isinstance(app.screen, BrowseView)
        await press(pilot, "enter", "w")
        assert isinstance(app.screen, Prompt)
        await press(pilot, *"wifi", "enter")
        await until(lambda: isinstance(app.screen, WhyNotView))
        await settled(pilot)
        assert "RECALLED" in text_of(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, BrowseView)

    drive(app, steps)


def test_in_the_reader_a_line_is_asked_about_under_the_question_on_screen(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = hit_of(app)
        await press(pilot, "enter", "w")
        assert isinstance(app.screen, WhyNotView)
        assert f"{hit.chunk.path}:" in text_of(app)
        assert "RECALLED 1st" in text_of(app)

    drive(app, steps)


# --- the list is what a fresh search gives -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_after_any_turns_the_list_is_what_a_fresh_search_gives(workspace: Path, seed: int) -> None:
    app = make_app(workspace)
    choose = random.Random(seed)

    async def steps(pilot: Pilot[int]) -> None:
        assert app.engine is not None
        await ask(pilot, choose.choice([QUESTION, "why did we drop Pi-hole", "router on March 15"]))
        await press(pilot, "t")
        for _ in range(25):
            await strike(pilot, choose.choice(["j", "k", "l", "l", "h", "h", "L", "H", "u", "equals_sign"]))
        await settled(pilot)
        shown, tuning = trace_of(app), app.tuning
        assert tuning is not None
        fresh = app.engine.search.rank(later(app.engine.search.gather(shown.query), tuning.days), shown.settings)
        assert {key: shown.settings.values[key].value for key in TUNE_KEYS} == {
            key: tuning.settings.values[key].value for key in BY_KEY if key in TUNE_KEYS
        }
        for ours, theirs in ((shown.recalled, fresh.recalled), (tuple(shown.lost), tuple(fresh.lost))):
            assert [(c.chunk.id, c.score) for c in ours] == [(c.chunk.id, c.score) for c in theirs]

    drive(app, steps)


def test_why_not_another_line_begins_at_the_row_under_the_cursor(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        hit = await to_first_loser(pilot)
        await press(pilot, "W")
        assert f"{hit.chunk.path}:{hit.snippet_line}" in text_of(app)
        await press(pilot, "enter")
        view = app.screen
        assert isinstance(view, WhyNotView)
        assert hit.chunk.path.rpartition("/")[2] in text_of(app)

    drive(app, steps)


def test_another_line_is_asked_about_from_the_page_of_the_first(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        await ask_line(pilot, "memory/network.md:3")
        first = app.screen
        assert isinstance(first, WhyNotView)
        await ask_line(pilot, "memory/house.md:3")
        assert app.screen is first
        assert first.query_one(WhyPane).subject is not None
        assert "memory/house.md:" in text_of(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, SearchView)

    drive(app, steps)


def test_lines_that_are_recalled_are_named_with_their_place(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        trace = app.screen.trace if isinstance(app.screen, SearchView) else None
        assert trace is not None
        held = {
            f"{hit.chunk.path.removeprefix('memory/')}:{line}": place
            for place, hit in reversed([*enumerate(trace.recalled, 1)])
            for line in range(hit.chunk.start_line, hit.chunk.end_line + 1)
        }
        await press(pilot, "W", *"omada", "enter")
        picker = app.screen
        assert isinstance(picker, Picker)
        places = {name.split("  ")[0]: name.split("  ")[1] for name in picker._names}
        named = {line: f"hit {held[line]}" for line in places if line in held}
        assert named
        assert {line: words for line, words in places.items() if words.startswith("hit ")} == named

    drive(app, steps, LARGE)


def test_a_hit_that_a_turn_drops_comes_into_sight(app: MemoryApp) -> None:
    def dropped() -> bool:
        return any(line.split()[1:2] == ["out"] for line in text_of(app).splitlines())

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, QUESTION)
        tuning, view = app.tuning, app.screen
        assert tuning is not None
        assert isinstance(view, SearchView)
        assert view.trace is not None
        last, hits = view.trace.recalled[-1], view.query_one(HitList)
        await press(pilot, "j", "j", "j", "t")
        # So low that the hits alone fill the list.
        for lines in range(24, 18, -1):
            await pilot.resize_terminal(80, lines)
            await settled(pilot)
            if hits.size.height <= len(view.trace.recalled):
                break
        assert hits.size.height > 3
        app.turn(tuning.set("query.minScore", round(last.score + 0.001, 3)))
        await settled(pilot)
        assert dropped()
        assert hits.scroll_offset.y <= hits.cursor, "the cursor stays in sight"
        await press(pilot, "u")
        assert not dropped()

    drive(app, steps, SMALL)
