"""The view Search by its keys: asking, why, remedies, the ranking, judging, comparing, any line."""

import re
import threading

import pytest
from textual import events
from textual.widgets import Input, OptionList, Static

from memory_tui.config.places import own_path
from memory_tui.errors import Cancelled
from memory_tui.tui import saved
from memory_tui.tui.any_line import lines_holding
from memory_tui.tui.reader import Reader
from memory_tui.tui.views import search
from memory_tui.tui.views.notes import NotesView
from memory_tui.tui.views.search import LONGEST, SearchView
from memory_tui.tune import Label
from tests.support.tui import LARGE, QUESTION, SMALL, TINY, Window, make_app, sample
from tests.support.waiting import LONG


def view(window: Window) -> SearchView:
    return window.app.query_one(SearchView)


def listed(window: Window) -> list[str]:
    return [str(option.prompt) for option in window.app.query_one("#search-list", OptionList).options]


def level(window: Window) -> str:
    return str(window.app.query_one("#level", Static).content)


def test_the_answer_stands_in_frames(reader):
    reader.ask().matches("search", SMALL, LARGE)


def test_a_miss_shows_its_first_remedy_without_scrolling(reader):
    reader.ask().press("right_square_bracket").matches("search_miss", SMALL, LARGE)


def test_a_worker_is_given_nothing_that_takes_long_to_write_down(reader):
    reader.press("slash").burst(*"omada vlan")
    descriptions = [worker.description for worker in reader.app.workers]
    reader.settle().press("enter")
    assert all(len(words) < 200 for words in descriptions), descriptions


def test_an_empty_box_offers_questions(workspace):
    with Window(make_app(workspace, suggestions=[QUESTION, "where is the stopcock"])) as window:
        window.press("2", "down", "enter")
        assert window.app.query_one("#query", Input).value == "where is the stopcock"
        assert " ✓ Found: " in level(window)


def test_the_newest_letters_are_answered(reader):
    reader.press("slash").type("omada").type(" vlan")
    answer = view(reader).answer
    assert answer is not None
    assert answer.trace.evidence.question.query == "omada vlan"
    assert answer.evidence.question.query == "omada vlan"
    reader.burst("enter", "slash", "ctrl+u", *"stopcoc", "backspace", "c", "k", "enter")
    assert reader.settle().app.query_one("#query", Input).value == "stopcock", "each key is done before the next"


def test_an_answer_that_takes_long_is_said_to_be_waited_for(screen, monkeypatch):
    search, ready = screen.app.session.engine.search, threading.Event()
    gather = search.gather
    monkeypatch.setattr(search, "gather", lambda *args, **named: ready.wait(LONG) and gather(*args, **named))
    screen.burst("slash", *"omada")
    screen.until(lambda: "Asking your notes" in screen.text)
    ready.set()
    screen.until(lambda: "Your agent gets 6 of" in screen.text)


def test_a_question_that_another_one_replaced_is_ranked_no_further(reader: Window) -> None:
    search, engine = view(reader.ask()), reader.app.session.engine
    answer = search.answer
    assert answer is not None
    assert engine is not None
    answer.request.stop.set()
    with pytest.raises(Cancelled):
        search.ranked(engine, answer.request, answer.evidence, None, answer.replay)


def test_a_paste_of_a_megabyte_is_cut_before_the_box_gets_it(reader):
    reader.press("slash")
    reader.app.post_message(events.Paste("omada vlan\nset " * 70_000))
    assert len(reader.settle().app.query_one("#query", Input).value) <= LONGEST
    assert view(reader).answer is not None
    reader.press("ctrl+u").app.post_message(events.Paste("omada vlan\nset"))
    assert reader.settle().app.query_one("#query", Input).value == "omada vlan set", "once, and all lines"
    reader.press("escape")


def test_what_no_note_holds_is_said_with_a_way_on(workspace):
    for note in workspace.rglob("*.md"):
        note.unlink()
    (workspace / "MEMORY.md").write_text("# MEMORY\n\nThe router is an Omada.\n", "utf-8")
    with Window(make_app(workspace, changes=[("profile", "openclaw-2026.3"), ("query.minScore", "0.99")])) as window:
        window.ask("zebra stripes")
        text = " ".join(listed(window))
        assert "minScore" in text
        assert "recommended" in text


def test_a_word_that_was_read_otherwise_is_taken_back(reader):
    reader.ask("the omda vlan")
    assert '"omda" →' in level(reader)
    reader.press("u")
    assert "→" not in level(reader)
    reader.press("u")
    assert '"omda" →' in level(reader)


def test_the_deciding_line_stands_second(reader):
    reader.ask()
    for _ in range(3):
        reader.press("down")
        passage = view(reader).query_one(Reader)
        assert passage.scroll_offset.y == min(passage.max_scroll_y, max(0, passage.cursor_row - 1))
        assert passage.line == view(reader).row.line  # type: ignore[union-attr]


def test_the_whole_sum_takes_the_place_of_the_three_and_the_list_is_walked_on(reader):
    reader.ask().press("s")
    assert "bm25" in reader.text
    assert "both" in reader.text
    first = str(view(reader).query_one("#steps", Static).content)
    reader.press("down")
    assert view(reader).row.place == 2
    assert str(view(reader).query_one("#steps", Static).content) != first
    assert " s Close " in reader.lines[-1]
    reader.press("tab")
    assert view(reader).query_one("#whole").has_focus
    reader.press("s")
    assert "bm25" not in reader.text
    assert " s Sum " in reader.lines[-1]
    assert " esc Back " in reader.press("tab").lines[-1], "who reads the passage"
    assert " Back " not in reader.press("escape").lines[-1]


def test_the_cursor_stays_at_the_ends_of_a_list(reader):
    reader.ask().press("up")
    assert view(reader).row.place == 1
    reader.press("end", "down")
    assert view(reader).hits.highlighted == len(listed(reader)) - 1


def test_more_opens_what_is_weaker(reader):
    reader.ask().press("end")
    count = len(listed(reader))
    assert "more, weaker" in listed(reader)[-1]
    assert reader.lines[-1].startswith("⏎ Open ")
    more = int(listed(reader)[-1].split()[0])
    assert f"enter lists {more} weaker passages. W asks about any line." in reader.text
    reader.press("enter")
    assert len(listed(reader)) > count
    assert "more, weaker" not in listed(reader)[-1]


def test_one_pane_at_a_time_where_there_is_room_for_one(workspace):
    with Window(make_app(workspace), TINY) as window:
        window.ask()
        assert "The agent reads" not in window.text
        window.press("enter")
        assert "The agent reads" in window.text
        assert " 2 ." not in window.text
        window.press("escape").matches("search")
        window.press("right_square_bracket").until(lambda: view(window).remedies).press("enter")
        assert "gets 7" in window.text
        assert len(listed(window)) > 7, "who tried a remedy sees where the passage went"


def test_an_index_made_anew_under_the_screen_is_asked_again(reader):
    before = listed(reader.ask())
    engine = reader.app.session.engine
    assert engine is not None
    engine.index.sync(force=True)
    assert listed(reader.settle()) == before
    reader.press("right_square_bracket", "enter")
    assert "tried" in level(reader)
    reader.press("u")


def test_a_remedy_is_tried_and_taken_back(reader):
    reader.ask()
    before = listed(reader)
    # In one go: enter waits for what it is to try.
    reader.burst("right_square_bracket", "enter")
    assert view(reader.settle()).row.sent
    assert "tried" in level(reader)
    assert reader.notices[-1].startswith("You try 7 results")
    assert reader.app.session.tried
    reader.press("u")
    assert listed(reader) == before
    assert not reader.app.session.tried


def test_a_word_more_is_a_remedy_too(reader):
    reader.ask().press("right_square_bracket", "tab", "end")
    remedy = view(reader).remedies[-1]
    assert remedy.text.endswith("to the question")
    reader.press("enter")
    assert reader.app.query_one("#query", Input).value.startswith(f"{QUESTION} ")
    assert reader.notices[-1] == f"You try {remedy.text}. u takes it back."
    assert remedy.text.startswith('"')
    reader.press("u")
    assert reader.app.query_one("#query", Input).value == QUESTION


def test_of_an_answer_that_is_kept_back_only_what_sends_a_passage_is_offered(tmp_path):
    with Window(make_app(sample(tmp_path / "notes", more=True), provider="builtin")) as window:
        window.ask("gym membership cancelled").press("right_square_bracket")
        assert view(window).remedies == []
        assert "gone" not in window.text
        window.press(*["down"] * 6)
        assert view(window).row.place == 7
        assert "Probably no note answers. A score compares passages only" in window.text
        assert "would be sent with" not in window.text
        assert "This passage is not sent" in window.text, "nobody asked about one of its lines"
        assert "and the agent gets" not in window.text
        assert " in, " not in window.press("t").text, "no step lets in what is kept back"


def test_the_keys_over_the_remedies_are_those_that_try_one_from_there(reader):
    reader.ask().press(*["down"] * 6)
    assert "] then enter tries it" in reader.text
    assert "▌7 results" not in reader.text
    reader.press("right_square_bracket", "s", "escape")
    assert "] then enter tries it" in reader.text
    reader.press("right_square_bracket")
    assert f"Line {view(reader).row.line} would be sent with:   enter tries it; tab ↓ more" in reader.text
    assert "▌7 results" not in reader.text, "the arrow keys walk the list"
    reader.press("tab")
    assert "tab ↓ more" not in reader.text
    assert "▌7 results" in reader.text
    assert reader.lines[-1].startswith("⏎ Try esc Back ")
    assert view(reader).row.place == 7
    reader.press("enter")
    assert "tried" in level(reader)
    reader.press("u")


def test_enter_tries_what_would_send_a_line_that_was_asked_about(reader):
    miss = next(row for row in view(reader.ask()).answer.rows if not row.sent)
    reader.press("W").type(f"{miss.hit.chunk.path}:{miss.line}").press("enter")
    reader.until(lambda: "enter tries it; tab ↓ more" in reader.text)
    reader.press("enter")
    assert view(reader.settle()).row.sent
    assert "tried" in level(reader)
    reader.press("u")


def test_the_key_that_takes_back_is_said_of_what_it_takes_back_first(reader):
    reader.ask("the omda vlan")
    assert '"omda" → "omada"  u undoes' in level(reader)
    reader.press(*["down"] * 6, "right_square_bracket").until(lambda: "enter tries it" in reader.text)
    reader.press("enter")
    assert reader.notices[-1].endswith("u takes it back.")
    assert '"omda" → "omada"' in level(reader)
    assert "u undoes" not in level(reader)
    reader.press("u")
    assert '"omda" → "omada"  u undoes' in level(reader)


def test_a_line_is_added_to_the_log_from_here(reader):
    reader.ask().press("a").until(lambda: "Add to today's log" in reader.text)
    reader.press("escape")
    assert reader.app.view is view(reader)


def test_each_bracket_goes_to_the_next_miss_and_the_list_is_walked_on_from_there(reader):
    reader.ask().press("right_square_bracket")
    first = view(reader).row
    reader.press("right_square_bracket")
    second = view(reader).row
    assert second.place == first.place + 1
    assert reader.lines[-1].startswith("⏎ Try ")
    assert view(reader).row.place == second.place
    reader.press("down")
    assert view(reader).row.place == second.place + 1
    assert reader.lines[-1].startswith("⏎ Read ")
    reader.press("escape")


def test_what_would_have_a_passage_sent_is_worked_out_once(reader, monkeypatch):
    asked = []
    flips = search.flips
    monkeypatch.setattr(search, "flips", lambda *args: asked.append(args) or flips(*args))
    reader.ask("where is the stopcock").press(*["down"] * 6)
    asked.clear()
    reader.press("down", "right_square_bracket", "s", "escape")
    assert len(asked) == 1
    assert view(reader).remedies


def test_a_knob_moves_the_list_and_says_what_steps_do(reader):
    reader.ask()
    before = listed(reader)
    reader.press("t", "home").until(lambda: "‹ OpenClaw" in reader.text)
    reader.press(*["down"] * 4, "wait").until(lambda: "in, " in reader.text)
    assert "half-life" in reader.text
    reader.press("down", "right")
    assert "7 results instead of 6" in reader.text
    assert len([row for row in listed(reader) if row.startswith("──")]) == 1
    assert listed(reader) != before
    reader.press("u", "escape")
    assert listed(reader) == before
    reader.resize(*SMALL).press("end", "t", "right")
    assert view(reader).hits.scroll_offset.y == 0
    reader.press("u", "escape")
    assert any(line.startswith("▌") for line in reader.lines), "the row that is explained is in sight again"
    reader.resize(*LARGE)


def test_presses_of_one_knob_are_taken_back_as_one(reader):
    reader.ask().press("t", "home", "down", "right", "right", "right", "left", "down", "right")
    turned = [settings.values for settings in reader.app.session.tried]
    assert len(turned) == 2
    reader.press("u")
    assert [settings.values for settings in reader.app.session.tried] == turned[:1]
    reader.press("right", "u", "u")
    assert reader.notices[-1] == "You took back the turn of “words : meaning”."
    assert not reader.app.session.tried
    assert not reader.press("right", "left").app.session.tried, "it is back where it was"
    reader.press("escape")


def test_enter_goes_to_the_deciding_line_and_escape_back_to_the_passages_that_led_there(reader):
    reader.ask().press("down")
    row = view(reader).row
    notes = reader.press("enter").app.query_one(NotesView)
    assert reader.app.view is notes
    assert (notes.reader.page.path, notes.reader.line) == (row.hit.chunk.path, row.line)
    reader.press("escape")
    assert reader.app.view.id == "search"
    assert view(reader).hits.has_focus
    assert view(reader).row is row
    reader.press("enter", "right_square_bracket")
    assert reader.app.view.id == "search"
    miss = view(reader).row
    assert miss is not None
    assert not miss.sent
    reader.press("1", "enter", "escape")
    assert reader.app.view.id == "notes", "a note that was chosen in the list goes back to the list"


def test_a_ranking_is_written_after_its_difference_and_taken_back(screen):
    screen.ask().press("d")
    assert "configured one" in screen.notices[-1]
    screen.press("t", "down", "right", "d")
    assert "words : meaning .65 : .35 (now .60 : .40)   at " in screen.text
    assert "textWeight" in screen.text
    screen.press("escape", *["down"] * 4, "right", "d")
    assert "7 results instead of 6   at " in screen.text
    screen.press("y")
    assert "textWeight" in own_path().read_text("utf-8")
    screen.press("u")
    assert not own_path().exists() or "textWeight" not in own_path().read_text("utf-8")


def test_a_ranking_of_openclaw_has_its_own_terms(workspace):
    decay = "query.hybrid.temporalDecay.enabled"
    with Window(make_app(workspace, changes=[("profile", "openclaw-2026.3"), (decay, "true")])) as window:
        window.ask("omada")
        assert "ranking: OpenClaw 2026.3.13" in level(window)
        window.press("end")
        rows = view(window).answer.rows  # type: ignore[union-attr]
        assert any(part.name == "age takes" for row in rows for part in row.sums)


def test_a_judgment_marks_the_row_measures_rankings_and_is_taken_back(screen):
    chunk = view(screen.ask()).row.hit.chunk
    saved.edited(screen.app.session.engine, saved.judged("the stopcock", chunk, Label(chunk.path, chunk.start_line)))
    screen.press("m", "enter")
    assert listed(screen)[0][3] == "✓"
    screen.press("t", "down", "right").until(lambda: "This question: 1 useful, 0 wrong, " in screen.text)
    assert "order 1.00 of 1." in screen.text, "what is measured is not cut"
    screen.press("S").until(lambda: "1 useful, 5 not judged of 6 sent" in screen.text)
    assert "▲ ▼ more, fewer of its useful lines" in screen.text
    screen.press("escape").until(lambda: "2 saved questions, each: " in screen.text)
    screen.resize(*SMALL).until(lambda: re.search(r"order 1?\.\d\d of 1\.", screen.text))
    screen.resize(*LARGE).press("u", "escape").ask("where is the stopcock").press("u")
    assert screen.notices[-1].startswith("You took back “✓ It answers the question” of ")
    assert screen.notices[-1].endswith(f", for “{QUESTION}”.")
    assert listed(screen.ask())[0][3] == " "


def test_a_saved_question_is_asked_again_and_forgotten(screen):
    screen.ask().press("S").until(lambda: "Save “" in screen.text)
    screen.press("enter").until(lambda: "not judged" in screen.text)
    screen.press("escape").ask("where is the stopcock").press("S", "end", "enter")
    assert screen.app.query_one("#query", Input).value == QUESTION
    screen.press("t", "down", "S", "end", "enter")
    assert view(screen).hits.has_focus
    assert not view(screen).knobs.display, "who asks another question turns no knob"
    screen.press("t", "slash", "enter", "t")
    assert view(screen).knobs.has_focus
    screen.press("escape").press("S", "x", "y").until(lambda: "not judged" not in screen.text)
    assert "Find better knobs" not in screen.text


def test_two_rankings_are_compared_and_a_passage_of_either_is_read(reader):
    reader.ask().press("t", "c").until(lambda: "cuts notes into other passages" in reader.text)
    reader.press("enter").until(lambda: "Both send" in reader.text)
    first = reader.text
    reader.press("right").until(lambda: reader.text != first)
    reader.press("left", "enter")
    assert reader.app.view.id == "notes"


def test_a_comparison_that_another_one_replaced_is_not_shown(reader, monkeypatch):
    search, ready = reader.ask().app.session.engine.search, threading.Event()
    rank, first = search.rank, []

    def slowly(evidence, settings):
        if not first or threading.get_ident() in first:
            first.append(threading.get_ident())
            ready.wait(LONG)
        return rank(evidence, settings)

    monkeypatch.setattr(search, "rank", slowly)
    reader.burst("c")
    reader.until(lambda: first)
    reader.burst("right")
    reader.until(lambda: "Both rankings are worked out" not in reader.text and " B " in reader.text)
    second = str(reader.app.screen.query_one("#head", Static).content)
    ready.set()
    assert str(reader.settle().app.screen.query_one("#head", Static).content) == second
    reader.press("escape")


def test_what_is_said_of_a_copy_leaves_the_passage_in_sight(workspace):
    with Window(make_app(workspace), toasts=True) as window:
        window.ask()
        for size in (SMALL, LARGE):
            window.resize(*size).burst("y")
            window.until(lambda: "clipboard" in window.text).settle()
            assert max(toast.size.height for toast in window.app.query("Toast")) <= 4, size
            assert f"#L{view(window).row.line}" in window.text, size
            assert {toast.region.bottom for toast in window.app.query("Toast")} == {size[1] - 2}, (
                "over no ranking or key"
            )


def test_a_line_that_is_no_candidate_has_the_pane_of_the_others(workspace):
    few = [("profile", "openclaw-2026.3"), ("query.hybrid.candidateMultiplier", "1"), ("query.minScore", "0")]
    with Window(make_app(workspace, changes=few)) as window:
        window.ask().press("W").type("MEMORY.md:1").press("enter").until(lambda: "▌ – " in window.text)
        window.press("s").until(lambda: "not a candidate" in window.text).press("s", "right_square_bracket")
        assert "Line 1 would be sent with" in window.text


def test_the_line_under_the_cursor_of_a_note_is_asked_about_once_there_is_a_question(screen):
    screen.press("1", "down", "W")
    assert screen.notices[-1].startswith("Type a question, then enter: it says why ")
    screen.type("omada vlan").press("enter").until(
        lambda: view(screen).place is not None and view(screen).line_asked[0]
    )
    assert view(screen).row.hit.chunk.path == view(screen).place.path


def test_who_comes_back_to_a_note_finds_the_line_that_was_read(screen):
    screen.ask().press("1", "down", "enter", "down", "down", "W")
    assert screen.app.view.id == "search"
    screen.press("escape", "1")
    notes = screen.app.query_one(NotesView)
    assert (notes.is_reading, notes.reader.line) == (True, 3)
    assert not screen.press("1").app.query_one(NotesView).is_reading, "the same key again leads to the list"
    assert not screen.press("2", "1").app.query_one(NotesView).is_reading


def test_a_copy_says_how_another_line_is_copied(reader):
    reader.ask().press("y")
    row = view(reader).row
    assert reader.notices[-1].endswith(
        f"#L{row.line}\ntab goes to the lines around it: y copies another, space marks more."
    )
    reader.press("tab", "down", "y")
    assert reader.notices[-1].rstrip().endswith(f"#L{row.line + 1}")


def test_a_question_that_is_asked_again_begins_with_its_first_passage(reader):
    reader.ask().press("down", "down", "slash", "enter")
    assert view(reader).row.place == 1


def test_a_passage_that_a_knob_takes_from_the_list_leaves_the_cursor_on_the_first(reader):
    reader.ask().press("end", "up", "t", "home", "down")
    assert any("Your agent gets these 6; left: " in reader.press("right").text for _ in range(9))
    assert view(reader).row.place == 1
    reader.press("u", "escape")
    assert view(reader).row.place == 1
    assert "; left: " not in reader.text
    assert "Why it is 1st" in reader.text


def test_down_goes_from_the_words_of_a_line_to_the_second_one(reader):
    reader.ask().press("W").type("omada").press("down")
    rows = reader.app.screen.query_one("#lines", OptionList)
    assert (rows.has_focus, rows.highlighted) == (True, 1)
    reader.press("escape")


def test_a_line_that_is_sent_is_named_and_shown_as_sent(reader):
    reader.ask()
    first, reads = view(reader).row, reader.app.query_one("#reads", Static).content
    line = first.line + 1
    reader.press("down", "W").type(f"{first.hit.chunk.path}:{line}").press("enter")
    reader.until(lambda: view(reader).row.hit.chunk == first.hit.chunk)
    assert view(reader).query_one(Reader).line == line
    assert reader.app.query_one("#reads", Static).content == reads, "the agent reads what it read before"
    reader.press("down")
    assert view(reader).query_one(Reader).line == view(reader).row.line
    reader.press("W").type("omada").press("enter").until(lambda: len(reader.app.screen_stack) == 1)


def test_a_note_that_alone_ends_so_is_named_without_its_folder(reader):
    for name in ("people.md", "memory/people.md"):
        places = lines_holding(reader.app.session.engine, f"{name}:3")
        assert [(place.path, place.line) for place in places] == [("memory/people.md", 3)], name


def test_a_file_that_is_no_memory_is_said_to_be_there_by_its_line(tmp_path):
    workspace = sample(tmp_path / "notes")
    (workspace / "USER.md").write_text("# User\n\nThe omada vlan of the user\n")
    with Window(make_app(workspace)) as window:
        window.press("2").ask().press("W").type("USER.md:3")
        assert "USER.md is there, but not read as memory." in window.text
        assert "extraPaths" in window.text
        window.press("enter")
        assert "USER.md is there" in window.text, "no line of another note is taken for it"
        window.press("escape", "c").until(lambda: "cuts notes into other passages" in window.text)
        window.press("enter").until(lambda: "not read as memory there" in window.text)
        pairs = window.app.screen.pairs
        window.press(*["down"] * next(n for n, pair in enumerate(pairs) if pair.unread), "enter")
        assert window.app.screen.pairs == pairs, "the comparison stays"
        assert "does not read this note as memory" in window.notices[-1]


def test_neither_a_number_nor_a_mark_stands_behind_a_passage(reader):
    page = view(reader.ask()).reader
    assert page.numbers[-1] == view(reader).row.hit.last_line
    assert all(number not in page.page.unread or text for number, text in zip(page.numbers, page.seen, strict=True))


def test_the_ranking_stands_in_its_line_as_soon_as_a_knob_is_taken_back(reader, monkeypatch):
    reader.ask().press("t", "home", "down", "right")
    monkeypatch.setattr(view(reader), "rank", lambda *_: None)
    reader.press("u")
    assert reader.lines[-2].startswith(" Ranking ")
    monkeypatch.undo()
    reader.press("right", "left")
    view(reader).steps.append(("another thing", lambda: None))
    reader.press("right", "u", "u", "escape")
    assert reader.notices[-1] == "You took back another thing."


def test_the_title_over_the_knobs_has_the_cells_of_the_pane(reader):
    reader.ask().press("t")
    assert "…" not in reader.lines[3]
    reader.press("escape")
