"""The view Notes: what is listed and read, and every way to change a note and take it back."""

import time
from pathlib import Path

import pytest
from textual.widgets import TextArea

from memory_tui.engine.notes import Past
from memory_tui.notes.journal import JournalEntry, left
from memory_tui.tui.reader import Reader
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import ReadNote
from memory_tui.tui.views import history
from memory_tui.tui.views.notes import NotesView
from tests.support.curate import entries
from tests.support.tui import LARGE, SHORTEST, SMALL, TINY, Window, make_app, sample

LOG = "memory/2026-03-20.md"
"""The newest log of the sample workspace."""


def text_of(window):
    return window.app.query_one("#notes-text", Reader)


def notes(window):
    view = window.app.view
    assert isinstance(view, NotesView)
    return view


def read(window, path, line=1):
    """Show a line of a note, as another view asks for it."""
    window.app.post_message(ReadNote(path, line))
    return window.settle().until(lambda: notes(window).page.path == path).settle()


def curator(window):
    engine = window.app.session.engine
    assert engine is not None
    return engine.notes.curator


def sync(window):
    """Bring the index up to date, and wait until the screen says so."""
    assert window.app.session.engine is not None
    window.app.session.engine.index.request_sync()
    return window.settle().until(lambda: not window.app.session.status.freshness.stale).settle()  # type: ignore[union-attr]


def test_the_note_under_the_cursor_is_read(reader):
    listed = reader.press("1", "home").app.query_one("#notes-list", Rows)
    assert notes(reader).page.path == "MEMORY.md"
    reader.press("down")
    assert listed.highlighted_option is not None
    assert notes(reader).page.path == listed.highlighted_option.id == text_of(reader).page.path


@pytest.mark.parametrize("size", [TINY, SMALL, LARGE])
def test_every_size_has_its_screen(reader, size):
    read(reader, "memory/network.md", 9)
    reader.resize(*size)
    reader.matches("notes", size)
    reader.press("escape").resize(*LARGE)


@pytest.fixture(scope="module")
def unusual(tmp_path_factory):
    """One app over notes with long lines, many lines and a line that is overtaken, for tests that only read."""
    workspace = sample(tmp_path_factory.mktemp("unusual") / "notes")
    (workspace / "memory/long.md").write_text(f"# Long\n- {'many words ' * 40}\n- the line below\n")
    (workspace / "memory/old.md").write_text(
        "# Old\n\n- (superseded 2026-03-08) the router is an ER605\n- the router is an ER7206\n"
    )
    (workspace / "memory/huge.md").write_text("".join(f"- entry {number} of many\n" for number in range(1, 60_001)))
    (workspace / "MEMORY.md").write_text("".join(f"- fact {number} to remember\n" for number in range(3_000)))
    with Window(make_app(workspace)) as window:
        yield window


def test_down_goes_to_the_next_line_of_a_note_and_y_copies_what_is_highlighted(unusual):
    read(unusual, "memory/long.md").press("down", "down", "y")
    assert "- the line below" in unusual.notices[-1]
    unusual.press("up", "y")
    assert "many words" in unusual.app.clipboard


def test_under_70_cells_one_pane_is_in_front(reader):
    reader.press("1", "escape", "home").resize(*TINY)
    assert "Home network" in reader.text
    assert not text_of(reader).is_on_screen
    reader.press("enter")
    assert text_of(reader).is_on_screen
    assert not reader.app.query_one("#notes-list").is_on_screen
    reader.press("escape").resize(*LARGE)


def test_a_filter_leaves_what_has_the_words(reader):
    reader.press("1", "f").type("router")
    paths = {option.id for option in reader.app.query_one("#notes-list", Rows).options}
    titles = {row.path: row.title for row in reader.app.session.files}
    assert paths == {path for path, title in titles.items() if "router" in f"{path} {title}".casefold()}
    assert paths
    reader.press("escape")
    assert len(reader.app.query_one("#notes-list", Rows).options) == len(titles)


def test_a_line_is_copied_with_its_citation(reader):
    read(reader, "memory/network.md", 3).press("y")
    line = text_of(reader).document.get_line(2)
    assert reader.app.clipboard == f"{line}\n\nmemory/network.md#L3"
    reader.press("Y")
    assert reader.app.clipboard == "memory/network.md#L3"
    reader.press("space", "space", "y", "escape")
    assert reader.app.clipboard.endswith("memory/network.md#L3-L4")


def test_words_are_looked_for_in_the_text(reader):
    read(reader, "memory/network.md").press("f").type("vlan").press("enter")
    first = text_of(reader).line
    assert "vlan" in text_of(reader).text_of(first, first).casefold()
    reader.press("f", "enter")
    assert text_of(reader).line > first
    reader.press("escape")


def test_a_line_that_says_it_is_overtaken_is_struck(unusual):
    text = text_of(read(unusual, "memory/old.md"))
    is_struck = [any(getattr(span.style, "strike", None) for span in text.get_line(row).spans) for row in range(4)]
    assert is_struck == [False, False, True, False]


def test_links_lead_to_notes(reader):
    read(reader, "MEMORY.md").press("b")
    assert "→ memory/network.md" in reader.text
    reader.press("down", "down", "enter")
    assert notes(reader).page.path != "MEMORY.md"
    reader.press("escape")


def test_a_written_day_of_the_calendar_opens_its_note(reader):
    reader.press("1", "home", "colon").type("calendar").press("enter")
    assert "Written days" in reader.text
    reader.press("enter")
    newest = max(row.day for row in reader.app.session.files if row.day is not None)
    assert str(newest) in notes(reader).page.path
    reader.press("escape")


def test_a_note_is_shown_as_it_would_be_printed(reader):
    read(reader, "memory/network.md").press("v")
    assert "## " not in reader.text
    reader.press("escape", "escape")


def test_an_agents_line_above_moves_neither_cursor_nor_text(screen, workspace):
    read(screen, "memory/network.md", 20)
    note, before = workspace / "memory/network.md", text_of(screen)
    words, above = before.text_of(20, 20), before.cursor_row - before.scroll_offset.y
    note.write_text("Two lines\nwere put above.\n" + note.read_text())
    (workspace / "memory/aaa.md").write_text("# A new note\n")
    sync(screen)
    assert text_of(screen).line == 22
    assert text_of(screen).text_of(22, 22) == words
    assert text_of(screen).cursor_row - text_of(screen).scroll_offset.y == above
    highlighted = screen.app.query_one("#notes-list", Rows).highlighted_option
    assert highlighted is not None
    assert highlighted.id == "memory/network.md"


def test_a_note_that_vanishes_under_the_cursor_is_said(screen, workspace):
    read(screen, "memory/network.md", 5)
    (workspace / "memory/network.md").unlink()
    sync(screen)
    assert notes(screen).page.problem
    assert "memory/network.md" in screen.text
    assert "This note is gone. 5 History brings it back." in screen.text
    screen.press("e", "p", "x")
    assert not (workspace / "memory/network.md").exists()


def test_of_a_huge_note_the_part_around_the_line_is_shown(unusual):
    read(unusual, "memory/huge.md", 41_000)
    assert "41000  - entry 41000 of many" in unusual.text
    assert "E opens all" in unusual.text
    unusual.press("x")
    assert "Only a part" in unusual.notices[-1]


def test_what_the_agent_never_reads_is_a_band_with_rulers(unusual):
    unread = notes(read(unusual, "MEMORY.md")).page.unread
    assert f"OpenClaw skips lines {unread.start}-{unread.stop - 1}, Claude " in unusual.text
    read(unusual, "MEMORY.md", unread.start)
    assert f"── OpenClaw stops in line {unread.start - 1} ──" in unusual.text
    assert f"{unread.start}░ - fact" in unusual.text
    assert f"{unread.start - 1}  - fact" in unusual.text


def test_a_folder_without_notes_offers_no_key_of_a_note_and_says_two_and_the_first_works(tmp_path):
    (tmp_path / "notes").mkdir()
    with Window(make_app(tmp_path / "notes"), SMALL) as window:
        assert "No notes in" in window.text
        assert not [words for words in ("Edit", "Promote", "Copy") if words in window.lines[-1]]
        # In one go, as somebody types who has read it.
        window.burst("a", *"the kiln is hot", "enter")
        window.settle().until(lambda: notes(window).page.text).settle()
        assert "the kiln is hot" in window.text
        assert "the kiln is hot" in (tmp_path / "notes" / LOG).read_text()
        assert "Promote" in window.lines[-1]


def test_promoting_is_shown_made_and_taken_back_by_one_key(screen, workspace):
    before = (workspace / "MEMORY.md").read_bytes()
    log = next(row.path for row in screen.app.session.files if row.path == LOG)
    line = next(at for at, text in enumerate((workspace / log).read_text().split("\n"), 1) if text.startswith("- "))
    read(screen, log, line).press("p")
    assert "fits best" in screen.text
    screen.press("enter")
    assert f"(from {log})" in screen.text.replace("\n", " ") or "(from" in screen.text
    assert (workspace / "MEMORY.md").read_bytes() == before
    screen.press("y").until(lambda: (workspace / "MEMORY.md").read_bytes() != before)
    assert f"(from {log})" in (workspace / "MEMORY.md").read_text()
    screen.settle().press("u").until(lambda: (workspace / "MEMORY.md").read_bytes() == before).settle()
    assert screen.notices[-1].startswith(f"You took back “Promote {log}:{line} to MEMORY.md, ")


def test_lines_of_the_curated_note_move_to_another(screen, workspace):
    words = (workspace / "MEMORY.md").read_text().split("\n")[6]
    read(screen.resize(*TINY), "MEMORY.md", 7).press("p")
    assert "Move these lines to which note?" in screen.text
    screen.press("enter").type("The cellar").press("enter")
    assert "y yes   n no" in screen.text
    screen.press("y")
    screen.until((workspace / "memory/the-cellar.md").exists).settle()
    assert words in (workspace / "memory/the-cellar.md").read_text()
    assert words not in (workspace / "MEMORY.md").read_text()
    screen.press("u").until(lambda: words in (workspace / "MEMORY.md").read_text()).settle()
    assert screen.notices[-1] == "You took back “Move MEMORY.md:7-7 to memory/the-cellar.md”."


def test_a_newer_line_overtakes_the_one_under_the_cursor(screen, workspace):
    note = workspace / "memory/people.md"
    before = note.read_text()
    number = next(at for at, text in enumerate(before.split("\n"), 1) if text.startswith("- "))
    line = before.split("\n")[number - 1]
    read(screen, "memory/people.md", number).press("o").type("Ines moved to Porto").press("enter")
    assert "(superseded " in screen.text
    assert note.read_text() == before
    screen.press("y").until(lambda: note.read_text() != before).settle()
    assert note.read_text().split("\n")[number - 1] == f"- (superseded {Path(LOG).stem}) {line.removeprefix('- ')}"
    assert f"Ines moved to Porto (supersedes memory/people.md:{number})" in (workspace / LOG).read_text()
    assert screen.app.view.page.path == LOG
    screen.press("u").until(lambda: note.read_text() == before).settle()
    assert "Porto" not in (workspace / LOG).read_text()
    assert screen.app.view.page.path == "memory/people.md"


def test_the_deciding_line_of_a_passage_is_promoted_and_overtaken(screen, workspace):
    screen.ask().press("escape", "p")
    assert "Promote memory/2026-03-06.md:4 below which heading?" in screen.text
    screen.press("enter")
    assert "(from" in screen.text
    screen.press("n", "o").type("It is an ER8411 now").press("enter")
    assert "(supersedes " in screen.text
    note = workspace / "memory/2026-03-06.md"
    note.write_text(f"- another line\n{note.read_text()}")
    assert "changed after you saw them" in screen.press("escape", "p").notices[-1]


def test_equal_headings_are_one_place_to_promote_to(screen, workspace):
    curated = workspace / "MEMORY.md"
    curated.write_text(f"{curated.read_text()}\n## Of two\n- a\n\n## Of two\n- the camper brakes\n")
    read(screen, LOG, 6).press("p").until(lambda: "below which" in screen.text)
    places = [place for place, _ in screen.app.screen.options]
    assert len(set(places)) == len(places)
    assert [place for place in places if "Of two" in place] == ["#Of two"]
    note, line = workspace / LOG, (workspace / LOG).read_text().split("\n")[5]
    screen.press(*["down"] * places.index("move"), "enter").until(lambda: f"Move {LOG}:6 below which" in screen.text)
    assert "move instead of copy" not in screen.text
    screen.press(*["down"] * places.index("#Of two"), "enter", "y").until(lambda: line not in note.read_text())
    assert line.removeprefix("- ") in curated.read_text().partition("## Of two")[2]


def test_marked_lines_go_and_come_back(screen, workspace):
    note = workspace / "memory/people.md"
    before = note.read_text()
    lines = before.split("\n")
    read(screen, "memory/people.md", 3).press("space", "space", "x", "y")
    screen.until(lambda: note.read_text() != before).settle()
    assert lines[2] not in note.read_text().split("\n")
    screen.press("u").until(lambda: note.read_text() == before)


def test_notes_marked_in_the_list_go_together(screen, workspace):
    screen.press("1", "home", "down", "space", "space")
    marked = sorted(notes(screen).marked)
    assert len(marked) == 2
    screen.press("x")
    assert "Move 2 notes to the trash" in screen.text
    screen.press("y").until(lambda: not any((workspace / path).exists() for path in marked)).settle()
    screen.press("u").until(lambda: all((workspace / path).exists() for path in marked))


def test_an_older_change_is_shown_before_it_is_taken_back(screen, workspace):
    curator(screen).remember("written by a command")
    screen.press("u")
    assert "Take back? y yes" in screen.text
    assert "written by a command" in (workspace / LOG).read_text()
    screen.press("y").until(lambda: "written by a command" not in (workspace / LOG).read_text())


def test_a_new_note_is_shown_and_made(screen, workspace):
    screen.press("n").type("The pottery wheel").press("enter")
    assert "+ # The pottery wheel" in screen.text
    screen.press("y").until((workspace / "memory/the-pottery-wheel.md").exists).settle()
    screen.until(lambda: notes(screen).page.path == "memory/the-pottery-wheel.md")


def test_a_renamed_note_takes_its_links_along(screen, workspace):
    read(screen, "memory/network.md").press("R")
    box = screen.app.screen.query_one("Input")
    box.value = "memory/house-network.md"  # type: ignore[attr-defined]
    screen.press("enter", "y").until((workspace / "memory/house-network.md").exists).settle()
    assert screen.notices[-1].startswith("memory/network.md is now called memory/house-network.md.")
    assert "memory/house-network.md" in (workspace / "MEMORY.md").read_text()
    screen.press("u").until((workspace / "memory/network.md").exists).settle()
    assert screen.notices[-1] == "You took back “Rename memory/network.md to memory/house-network.md”."


def test_a_promotion_is_offered_where_there_is_something_to_promote(screen):
    read(screen, "memory/network.md").press("escape")
    assert "p Promote" in screen.lines[-1]
    screen.press("home").until(lambda: notes(screen).page.path == "MEMORY.md").settle()
    assert "p Promote" not in screen.lines[-1]
    assert "p Move" in screen.press("enter").lines[-1], "single lines go to another note"
    assert "p Promote" in read(screen, "memory/network.md").lines[-1]
    read(screen, "MEMORY.md", 7).press("escape", "colon").type("promote").press("enter")
    assert "Move these lines to which note?" in screen.text


def test_the_editor_opens_where_the_note_was_read(screen):
    read(screen, LOG, 4).press("escape", "e")
    assert screen.app.screen.query_one("#editor-text", TextArea).cursor_location == (3, 0)


def test_nothing_is_changed_while_read_only(workspace):
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}
    with Window(make_app(workspace, read_only=True)) as window:
        for key in ("e", "p", "x", "a", "n", "R", "u", "E"):
            read(window, "memory/people.md", 3).press(key)
            assert "--read-only" in window.notices[-1], key
            assert len(window.app.screen_stack) == 1, key
    assert before == {path: path.read_bytes() for path in workspace.rglob("*.md")}


def edit(window, path, text):
    """Open the editor at the start of a note, and type."""
    read(window, path, 2).press("e")
    area = window.app.screen.query_one("#editor-text", TextArea)
    area.move_cursor((0, 0))
    window.type(text)
    return area


def test_the_editor_saves_what_was_typed_and_says_what_it_means(screen, workspace):
    note = workspace / "MEMORY.md"
    before = note.read_text().rstrip("\n")
    note.write_text(before)
    edit(screen, "MEMORY.md", "Hello ")
    screen.until(lambda: "After saving: " in screen.text)
    assert "not saved yet" in screen.text
    assert "OpenClaw reads 20,000 characters at most" in screen.text
    # What an agent appends stands on a line of its own.
    screen.press("ctrl+s").until(lambda: note.read_text() == f"Hello {before}\n").settle()
    assert screen.app.screen_stack[-1].query("#notes-text")
    assert not left(curator(screen).journal)
    screen.press("u").until(lambda: note.read_text() == before)


def test_other_lines_that_an_agent_wrote_meanwhile_stay(screen, workspace):
    note = workspace / "memory/people.md"
    before = note.read_text()
    edit(screen, "memory/people.md", "Hello ")
    note.write_text(before + "- the agent's line\n")
    screen.press("ctrl+s").until(lambda: note.read_text() == f"Hello {before}- the agent's line\n")


@pytest.mark.parametrize(("keys", "first"), [((), "Hello "), (("enter",), "An agent: "), (("enter", "enter"), "both")])
def test_a_conflict_is_shown_and_each_side_can_be_taken(screen, workspace, keys, first):
    note = workspace / "memory/people.md"
    before = note.read_text()
    edit(screen, "memory/people.md", "Hello ")
    note.write_text("An agent: " + before)
    screen.press("ctrl+s").until(lambda: "also changed on disk" in screen.text)
    assert "[mine]" in screen.text
    assert note.read_text().startswith("An agent: ")
    screen.press(*keys, "ctrl+s")
    both = f"An agent: {before.split(chr(10))[0]}\nHello {before}"
    screen.until(lambda: note.read_text() == (both if first == "both" else first + before))
    screen.until(lambda: not screen.app.screen.query("#editor-text"))
    assert not entries(curator(screen), state="draft")


def test_who_leaves_a_conflict_has_the_text_still(screen, workspace):
    note = workspace / "memory/people.md"
    area = edit(screen, "memory/people.md", "Hello ")
    note.write_text("An agent: " + note.read_text())
    screen.press("ctrl+s").until(lambda: "also changed on disk" in screen.text).press("escape")
    assert area.text.startswith("Hello ")
    assert "is kept as draft" in screen.notices[-1]
    assert entries(curator(screen), state="draft")
    screen.press("escape", "y", "5").until(lambda: "not written, kept" in screen.text)
    screen.press("r").until(lambda: "people.md as you typed it" in screen.text)
    screen.press("enter", "y").until(lambda: note.read_text().startswith("Hello ")).settle()


def test_leaving_the_editor_asks_before_it_throws_text_away(screen, workspace):
    before = (workspace / "memory/people.md").read_text()
    edit(screen, "memory/people.md", "Hello ")
    screen.press("escape")
    assert "Leave without saving?" in screen.text
    screen.press("escape")
    assert screen.app.screen.query("#editor-text")
    screen.press("escape", "y")
    assert len(screen.app.screen_stack) == 1
    assert (workspace / "memory/people.md").read_text() == before
    screen.until(lambda: not left(curator(screen).journal))


def test_what_was_typed_when_the_app_ended_is_offered_again(workspace):
    with Window(make_app(workspace)) as window:
        read(window, "memory/people.md", 2).press("e")
        window.app.screen.query_one("#editor-text", TextArea).move_cursor((0, 0))
        window.burst(*"Hello ")
        window.until(lambda: "not saved yet" in window.text)
        assert "is kept" in notes(window).leaving()
    with Window(make_app(workspace)) as window:
        window.until(lambda: any("Unsaved text is kept for memory/people.md" in words for words in window.notices))
        window.until(lambda: "unsaved text" in window.text)
        assert "unsaved text, e goes on with it" in read(window, "memory/people.md").text
        window.press("e")
        area = window.app.screen.query_one("#editor-text", TextArea)
        assert area.text.startswith("Hello ")
        (workspace / "memory/people.md").write_text(area.text)
        window.press("ctrl+s").until(lambda: window.notices[-1].endswith("Nothing was written."))
        window.until(lambda: len(window.app.screen_stack) == 1 and not left(curator(window).journal))
        window.until(lambda: "unsaved text" not in window.text)


def test_a_long_paste_is_one_text(screen):
    from textual.events import Paste

    area = edit(screen, "memory/people.md", "")
    begun, before = time.monotonic(), len(area.text)
    screen.app.post_message(Paste("word \x1b[31m" * 10_000))
    screen.until(lambda: len(area.text) > 90_000).settle()
    assert "\x1b" not in area.text
    assert len(area.text) - before == 100_000, "once"
    assert time.monotonic() - begun < 60


def test_your_own_editor_needs_a_terminal(reader):
    assert "no terminal" in read(reader, "memory/people.md").press("E").notices[-1]
    reader.press("escape")


def test_a_text_of_before_comes_back_to_the_letter(screen, workspace):
    note = workspace / "memory/people.md"
    before = note.read_text()
    edit(screen, "memory/people.md", "Hello ")
    screen.press("ctrl+s").until(lambda: note.read_text() != before).settle()
    note.write_text(note.read_text() + "- an agent's line\n")
    read(screen, "memory/people.md").press("h")
    assert "Changes of memory/people.md alone" in screen.text
    assert "Edit memory/people.md" in screen.text
    assert "This note did not change yet" in read(screen, "MEMORY.md").press("h").text
    # The oldest change is meant, whether or not the agent's line was seen by then.
    read(screen, "memory/people.md").press("h", "end", "r")
    assert "exactly as it was before" in screen.text
    screen.press("enter", "y").until(lambda: note.read_text() == before)


def test_a_change_of_the_list_is_taken_back_and_made_again(screen, workspace):
    curator(screen).remember("the first")
    curator(screen).remember("the second")
    log = workspace / LOG
    screen.press("5").until(lambda: "the second" in screen.text)
    screen.press("down", "enter", "r", "end", "enter")
    assert "Take back? y yes" in screen.text
    screen.press("enter")
    assert "the first" in log.read_text(), "only y writes"
    screen.press("y").until(lambda: "the first" not in log.read_text()).settle()
    assert "the second" in log.read_text()
    row = next(
        at
        for at, option in enumerate(screen.app.query_one("#history-list", Rows).options)
        if "first" in str(option.prompt) and "Undo" not in str(option.prompt)
    )
    screen.app.query_one("#history-list", Rows).highlighted = row
    screen.settle().press("r", "end", "enter")
    assert "Make it again? y yes" in screen.text
    screen.press("y").until(lambda: "the first" in log.read_text()).settle()
    screen.press("down", "down", "u").until(lambda: "the first" not in log.read_text()).settle()
    assert "the second" in log.read_text(), "u takes the last change back, wherever the cursor is"


def test_a_change_shows_the_end_of_its_title_where_the_list_is_narrow():
    titles = [
        f"Promote memory/2026-11-17.md:4-9 to MEMORY.md, Home network and lab ({end})" for end in ("cables", "keys")
    ]
    changes = [JournalEntry(at, 60.0 * at, "done", "promote", title, ()) for at, title in enumerate(titles, 1)]
    _, *options = history.rows(Past(), changes, 58)
    for title, option in zip(titles, options, strict=True):
        lines = str(option.prompt).split("\n")
        assert " ".join(map(str.strip, lines)).endswith(f"memory-tui: {title}")
        assert max(map(len, lines)) <= 58
        assert lines[1].startswith("       "), "below its words"


def test_lines_that_another_program_took_out_can_be_brought_back(screen, workspace):
    log = workspace / LOG
    before = log.read_text()
    log.write_text(before.split("\n")[0] + "\n")
    sync(screen).press("5").until(lambda: f"somebody changed {LOG}" in screen.text)
    screen.press("r", "down", "enter").until(lambda: "y yes   n no" in screen.text)
    screen.press("y").until(lambda: log.read_text().strip() == before.strip())


def test_notes_that_others_removed_come_back_at_once_and_are_told_of_once(screen, workspace):
    was = {path: path.read_bytes() for path in sorted((workspace / "memory").glob("2026-03-1*.md"))}
    for path in was:
        path.unlink()
    sync(screen).press("5").until(lambda: f"removed {len(was)} notes" in screen.text)
    screen.press("f", "f").until(lambda: "What changed, removed" in screen.text)
    screen.press("r").until(lambda: f"all {len(was)} notes exactly" in screen.text)
    screen.press("enter", "y").until(lambda: all(path.exists() for path in was)).settle()
    assert {path: path.read_bytes() for path in was} == was
    screen.press("f").until(lambda: "What changed, by memory-tui" in screen.text)
    assert f"Restore {len(was)} notes as they were before" in screen.text
    engine = screen.app.session.engine
    assert engine is not None
    screen.until(lambda: engine.notes.news() == "")
    (workspace / LOG).write_text("- overwritten\n")
    screen.until(lambda: engine.notes.news() == f"Since you last looked: 1 change of {LOG} by somebody.")


def test_a_record_that_cannot_be_read_is_told_in_its_place(screen):
    engine = screen.app.session.engine
    assert engine is not None
    database = engine.notes.curator.journal.database
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()
    database.mkdir()
    screen.press("5").until(lambda: "The journal cannot be used" in screen.text)
    sync(screen).settle()
    assert "No note changed yet" not in screen.text
    assert sum("journal cannot be used" in words for words in screen.notices) <= 1, screen.notices


def test_what_another_program_changed_is_taken_back_and_the_reader_says_whose_a_line_is(screen, workspace):
    note = workspace / "memory/people.md"
    before = note.read_text()
    read(screen, "memory/people.md")
    note.write_text(before.replace("\n\n", "\n\n- an agent's line\n", 1))
    sync(screen).until(lambda: "- an agent's line" in screen.text)
    screen.press("j", "j").until(lambda: "line 3: " in screen.text)
    assert "by somebody" in screen.text
    screen.press("5").until(lambda: "changed memory/people.md" in screen.text)
    screen.until(lambda: "Nobody knows who made it." in screen.text)
    assert "␊" not in screen.text
    assert "The author of 1 change is unknown" in screen.text
    screen.press("r", "end", "enter").until(lambda: "Take back:" in screen.text)
    screen.press("y").until(lambda: note.read_text() == before)


def test_the_list_stands_on_the_log_after_a_line_was_added_from_another_note(screen):
    read(screen, "MEMORY.md").press("a").type("the gate was oiled").press("enter")
    screen.until(lambda: notes(screen).page.path == LOG).settle()
    assert notes(screen).rows.highlighted == notes(screen).rows.position(LOG)
    screen.press("5").until(lambda: f"you: Add to {LOG}: the gate" in screen.text)
    screen.until(lambda: "By you." in screen.text)


def test_changes_by_others_are_counted_beside_history_until_it_is_opened(workspace):
    app = make_app(workspace)
    app.count_seconds = SHORTEST
    with Window(app) as window:
        window.until(lambda: app.unseen is not None).press("5", "2")
        (workspace / LOG).write_text("- overwritten\n")
        sync(window).until(lambda: "5 History (1)" in window.lines[0])
        assert window.notices[-1] == f"Since you last looked: 1 change of {LOG} by somebody. 5 History lists it."
        (workspace / "memory/people.md").unlink()
        sync(window).until(lambda: "5 History (2)" in window.lines[0])
        assert "6 Agents" in window.resize(*SMALL).lines[0], "the lamp makes room"
        assert "History (" not in window.press("5").lines[0]


@pytest.mark.parametrize(("key", "words"), [("x", "to the trash"), ("R", "Rename the note"), ("e", "After saving:")])
def test_a_key_right_behind_an_arrow_is_about_the_note_that_the_arrow_came_to(reader, key, words):
    rows = notes(reader.press("1", "home")).rows
    reader.burst("down", "down", key)
    reader.until(lambda: words in reader.text).settle()
    path = rows.highlighted_option.id
    assert rows.highlighted == 2
    assert notes(reader).path == path
    assert path in reader.text
    reader.press("escape")


def test_a_line_that_begins_a_log_is_the_one_that_is_shown(workspace):
    (workspace / LOG).unlink()
    with Window(make_app(workspace)) as window:
        window.press("a").type("the gate was oiled").press("enter")
        window.until(lambda: notes(window).page.path == LOG and "the gate was oiled" in window.text).settle()
        reader = notes(window).reader
        assert "the gate was oiled" in reader.seen[reader.line - notes(window).page.first]


def test_end_and_home_go_through_the_note_and_an_empty_line_is_said_to_be_empty(reader):
    reader.press("1", "home", "down", "enter")
    text = reader.app.view.query_one("#notes-text")
    assert reader.press("end").app.focused is text
    last = text.text.count("\n") + 1
    assert text.line == last
    empty = text.seen.index("") + 1
    text.go(empty)
    assert "These lines are blank." in reader.press("p").notices[-1]
    assert reader.press("home").app.view.query_one("#notes-text").line == 1
    reader.press("escape")


def test_a_note_that_fits_has_no_piece_of_a_scrollbar(workspace):
    (workspace / "memory" / "long.md").write_text("a line\n" * 90)
    (workspace / "memory" / "longer.md").write_text("a line\n")
    with Window(make_app(workspace)) as window:
        for name, has_bar in (("long", True), ("longer", False), ("long", True)):
            window.app.view.post_message(ReadNote(f"memory/{name}.md"))
            bar = window.settle().app.screen.query_one("#notes-text", Reader).vertical_scrollbar
            assert (bar.window_virtual_size > bar.window_size) is has_bar, name
            assert has_bar or bar.window_virtual_size == bar.window_size
