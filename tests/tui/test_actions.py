"""Keys: one table for everything, and every key that does nothing says why."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import platformdirs
import pytest
from textual.command import CommandList
from textual.events import Key
from textual.pilot import Pilot

from memory_tui import manual
from memory_tui.notes.changes import ReadOnly
from memory_tui.tui import action as tui_action
from memory_tui.tui import keymap
from memory_tui.tui.action import Context
from memory_tui.tui.action_table import ACTIONS
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.key_meanings import MEANINGS, PREFIXES, letters_markdown
from memory_tui.tui.keymap import PLACES, found_by
from memory_tui.tui.navigation import NUMBERED, OVERLAYS, overlay
from memory_tui.tui.views.agents_view import AgentsView, ConnectionView
from memory_tui.tui.views.help import INDENT, written
from memory_tui.tui.views.inbox.inbox_actions import InboxActions
from memory_tui.tui.views.inbox.inbox_view import InboxView
from memory_tui.tui.views.index.index_view import IndexView
from memory_tui.tui.views.index.listings import DoctorView, Listing, SessionsView, StorageView
from memory_tui.tui.views.index.memories_view import MemoriesView
from memory_tui.tui.views.index.openclaw_index import CompareView
from memory_tui.tui.views.index.providers_view import ProvidersView
from memory_tui.tui.views.index.recalls_view import RecallsView
from memory_tui.tui.views.map_view import CandidateActions, MapView
from memory_tui.tui.views.notes.browse import BrowseView, ReaderView
from memory_tui.tui.views.notes.edit import EditView
from memory_tui.tui.views.notes.history import HistoryView
from memory_tui.tui.views.notes.note_actions import NoteActions
from memory_tui.tui.views.notes.note_pane import NotePane
from memory_tui.tui.views.notes.trust_view import RepairView, TrustView
from memory_tui.tui.views.proposals import Proposals
from memory_tui.tui.views.search.compare_profiles import SideBySideView
from memory_tui.tui.views.search.knobs import Knobs
from memory_tui.tui.views.search.lab import KnobSearchView, Report
from memory_tui.tui.views.search.saved_queries import SavedQueriesView
from memory_tui.tui.views.search.search_explain import Explainer
from memory_tui.tui.views.search.search_judge import Judge
from memory_tui.tui.views.search.search_view import SearchView
from memory_tui.tui.views.search.why_not_view import WhyNotView
from memory_tui.tui.views.search.write_config import WriteView
from memory_tui.tui.views.view import KnobHistory
from memory_tui.tui.widgets import status_bars
from memory_tui.tui.widgets.calendar import Calendar
from memory_tui.tui.widgets.edit_area import EditArea
from memory_tui.tui.widgets.file_tree import FileTree
from memory_tui.tui.widgets.index_lists import Attention, EventLog
from memory_tui.tui.widgets.note_side import AboutPane
from memory_tui.tui.widgets.query import FilterInput, FindInput, FindText, QueryInput
from memory_tui.tui.widgets.reader import Reader
from memory_tui.tui.widgets.results import HitList
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.widgets.why_pane import WhyPane
from tests.support.tui import ask, drive, make_app, press, said, sample, settled, text_of, until

NODES = {
    "everywhere": MemoryApp,
    "list": RowList,
    "notes": BrowseView,
    "browse": BrowseView,
    "tree": FileTree,
    "reader": Reader,
    "reading": ReaderView,
    "about": AboutPane,
    "find": FindInput,
    "editor": EditArea,
    "finding": FindText,
    "history": HistoryView,
    "trust": TrustView,
    "repair": RepairView,
    "search": SearchView,
    "query": QueryInput,
    "filter": FilterInput,
    "results": HitList,
    "tune": TuneStrip,
    "index": IndexView,
    "why": WhyPane,
    "whynot": WhyNotView,
    "compare": CompareView,
    "saved_queries": SavedQueriesView,
    "side_by_side": SideBySideView,
    "report": KnobSearchView,
    "inbox": InboxView,
    "proposal": InboxView,
    "knob_search": KnobSearchView,
    "write": WriteView,
    "doctor": DoctorView,
    "providers": ProvidersView,
    "storage": StorageView,
    "sessions": SessionsView,
    "recalls": RecallsView,
    "memories": MemoriesView,
    "events": EventLog,
    "attention": Attention,
    "map": MapView,
    "calendar": Calendar,
    "candidates": MapView,
    "agents": AgentsView,
    "connection": ConnectionView,
}
PARTS = (
    CandidateActions,
    Proposals,
    NotePane,
    NoteActions,
    Listing,
    InboxActions,
    Judge,
    Knobs,
    Explainer,
    KnobHistory,
    Report,
)


def test_the_manual_shows_the_table() -> None:
    found = re.search(r"<!-- letters -->\n(.*)\n<!-- /letters -->", manual.text("keys"), re.DOTALL)
    assert found is not None
    assert found[1].strip() == letters_markdown()


def test_one_key_has_one_meaning_in_every_view() -> None:
    keys = [key for meaning in MEANINGS.values() for key in meaning.keys]
    assert sorted(keys) == sorted(set(keys))
    assert not set(PREFIXES) & set(keys), "a prefix is no key of its own"
    assert {action.meaning for action in ACTIONS} - {""} == set(MEANINGS), "a meaning that nothing has"
    taken_by_terminals = {
        "ctrl+i",
        "ctrl+m",
        "ctrl+j",
        "ctrl+h",
        "ctrl+left_square_bracket",
        "ctrl+at",
        "ctrl+c",
        "ctrl+b",
    }
    assert not taken_by_terminals & set(keys)


def test_upper_case_is_wider_than_its_lower_case_or_stands_alone() -> None:
    names = {key: name for name, meaning in MEANINGS.items() for key in meaning.keys if len(key) == 1}
    pairs = {
        ("w", "W"),
        ("y", "Y"),
        ("a", "A"),
        ("e", "E"),
        ("r", "R"),
        ("n", "N"),
        ("h", "H"),
        ("l", "L"),
        ("j", "J"),
        ("k", "K"),
        ("m", "M"),
    }
    upper = {key for key in names if key.isupper()}
    assert upper == {pair[1] for pair in pairs} | {"G", "P", "V"}


def test_a_text_box_takes_letters_as_text() -> None:
    for action in ACTIONS:
        if action.where in keymap.TYPING:
            assert all(not keymap.is_letter(key) for key in keymap.keys_at(action)), action


def test_every_manual_page_names_keys_that_are_there() -> None:
    """Keys in backquotes, one or two letters long, on every page but the table of keys."""
    known = {key for meaning in MEANINGS.values() for key in meaning.keys} | {"@"}
    for page in set(manual.topics()) - {"keys"}:
        for key in re.findall(r"`([A-Za-z]|g[a-z]|z[a-z])`", manual.text(page)):
            assert key in known, (page, key)


def test_every_place_has_a_title_and_a_node_with_its_keys() -> None:
    assert set(NODES) == set(PLACES) == {action.where for action in ACTIONS}
    for action in ACTIONS:
        bound = {
            key.key
            for binding in NODES[action.where]._merged_bindings.key_to_bindings.values()
            for key in binding
            if key.action == f"app.do('{action.id}')"
        }
        keys = [key for key in keymap.keys_at(action) if not keymap.is_sequence(key)]
        assert len(bound) >= len(keys), (action.id, action.where)


def test_every_action_is_done_by_somebody() -> None:
    nodes = [*NODES.values(), EditView, *PARTS]
    for action in ACTIONS:
        assert overlay(action.id) or any(hasattr(node, f"do_{action.id}") for node in nodes), action.id


def test_every_row_of_a_view_names_its_class_and_its_place() -> None:
    for row in [*NUMBERED, *OVERLAYS]:
        module, _, name = row.target.partition(":")
        found = getattr(import_module(f"memory_tui.tui.views.{module}"), name)
        assert found is NODES[row.key]
        assert row.key == found.PLACE


def test_no_key_means_two_things_in_one_place() -> None:
    for place in PLACES:
        keys = [key for action in ACTIONS if action.where == place for key in action.keys]
        assert len(keys) == len(set(keys)), place


@pytest.mark.parametrize(
    "action",
    [a for a in ACTIONS if a.refuse(Context()) or a.refuse(Context(syncing=True))],
    ids=lambda action: f"{action.where}-{action.id}",
)
def test_refusals_are_sentences(action: tui_action.Action) -> None:
    reason = action.refuse(Context()) or action.refuse(Context(syncing=True, ready=True))
    assert reason.endswith("."), reason
    assert reason[0].isupper()
    everything = Context(
        ready=True,
        note=True,
        answer=True,
        undo=True,
        redo=True,
        tuned=True,
        zoomed=True,
        found=True,
        trail=True,
        hit=True,
        foldable=True,
        flips=True,
        agents=True,
        suggestion=True,
        deletes=True,
        moves=True,
        twin=True,
        proposal=True,
        approved=True,
        shrink=True,
        written=True,
    )
    assert action.refuse(everything) == ""


@pytest.fixture
def app(tmp_path: Path) -> MemoryApp:
    return make_app(sample(tmp_path / "notes"))


def test_an_unknown_key_says_so(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "T")
        assert said(app) == "T does nothing here. ? shows the keys of this pane."
        assert said(app) in text_of(app)

    drive(app, steps)


def test_where_letters_are_text_the_help_has_a_key_that_is_none() -> None:
    for place in keymap.TYPING:
        assert keymap.why_nothing("f9", [place]) == "f9 does nothing here. f1 shows the keys of this pane."


@pytest.mark.parametrize(
    ("keys", "key", "reason"),
    [
        ("", "t", "t works in Search (2): turn the knobs of the ranking."),
        ("3", "[", "[ works in Notes (1): the day before."),
        ("", "V", "V works in Reader (tab): mark lines, from here to where the cursor goes."),
        ("", "underscore", "No pane is enlarged; + enlarges this one."),
        ("", "E", "This terminal cannot be handed to an editor."),
        ("", "escape", "Nothing to go back to; q quits."),
        ("2", "ctrl+r", "Nothing was undone."),
    ],
)
def test_a_key_without_effect_gives_the_reason(app: MemoryApp, keys: str, key: str, reason: str) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, *keys, key)
        assert said(app) == reason

    drive(app, steps)


def test_before_a_question_the_knobs_wait(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "2", "tab", "t")
        assert said(app) == "No answer yet. Press / and ask something."
        await ask(pilot, "router")
        await press(pilot, "u")
        assert said(app) == "No knob was turned, so none is undone. Changes of notes are undone in Notes."

    drive(app, steps)


def test_read_only_writes_nothing_but_the_index(tmp_path: Path) -> None:
    refused = "Opened with --read-only: nothing is written but the index."
    app = make_app(sample(tmp_path / "notes"), read_only=True)
    state = platformdirs.user_state_path("memory-tui", appauthor=False)

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (tmp_path / "notes", state) for path in path.rglob("*.*")}

    async def steps(pilot: Pilot[int]) -> None:
        before = files()
        await press(pilot, "e")
        assert said(app) == refused
        assert "read-only" in text_of(app).splitlines()[0]
        await press(pilot, "a")
        assert said(app) == refused
        await ask(pilot, "router")
        for key in ("v", "ctrl+s"):
            app.view._said = ""  # type: ignore[union-attr]
            await press(pilot, key)
            assert said(app) == refused, key
        await press(pilot, "<")
        with pytest.raises(ReadOnly, match=refused):
            await app.jobs.write(lambda engine: engine.notes.curator.remember("kept"))
        assert files() == before

    drive(app, steps)


def test_the_sentence_goes_away(app: MemoryApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_bars, "SECONDS", 0.01)
    heard: list[str] = []
    say = status_bars.KeyHints.show_message
    monkeypatch.setattr(
        status_bars.KeyHints, "show_message", lambda hints, words: (heard.append(words), say(hints, words))
    )

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "x")
        assert heard
        await until(lambda: not said(app))
        await settled(pilot)
        assert "? Help" in text_of(app).splitlines()[-1]

    drive(app, steps)


def test_letters_are_no_keys_while_somebody_types(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "slash", *"q1")
        assert app.screen.query_one(QueryInput).value == "q1"
        hints = text_of(app).splitlines()[-1]
        assert "esc Back" in hints
        assert "q Back" not in hints

    drive(app, steps)


def test_a_click_on_a_hint_is_its_key(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        hints = text_of(app).splitlines()[-1]
        await pilot.click(status_bars.KeyHints, offset=(hints.index("Ask"), 0))
        await settled(pilot)
        assert isinstance(app.screen, SearchView)
        assert isinstance(app.focused, QueryInput)

    drive(app, steps)


def test_a_click_on_the_truth_bar_opens_what_it_reports(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await pilot.click("TruthBar", offset=(3, 0))
        await settled(pilot)
        assert isinstance(app.screen, IndexView)

    drive(app, steps)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("most written", "map"),
        ("quit", "leave_app"),
        ("exit", "leave_app"),
        ("eval", "saved_queries"),
        ("tune", "knob_search"),
    ],
)
def test_the_palette_finds_an_action_by_words_and_words_like_them(words: str, name: str) -> None:
    found = {action.id: found_by(action, words.split()) for action in ACTIONS if action.palette}
    assert found[name] == max(found.values()) > 0


def test_the_palette_finds_nothing_by_words_that_name_nothing() -> None:
    assert not any(found_by(action, ["zebra"]) for action in ACTIONS)


def test_the_palette_offers_what_works_here(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "colon")
        await until(lambda: "Look for changed files" in text_of(app))
        assert "turn the knobs" not in text_of(app).lower()
        await press(pilot, *"visual")
        commands = app.screen.query_one(CommandList)
        refusal = "(E)  Not now. This terminal cannot be handed to an editor."
        await until(lambda: [one for one in commands.options if str(one.prompt).endswith(refusal)])
        await press(pilot, "escape", "ctrl+p", *"what is indexed")
        await until(lambda: "(3)" in text_of(app) and "(r)" not in text_of(app))
        await press(pilot, "down", "enter")
        await until(lambda: isinstance(app.screen, IndexView))

    drive(app, steps)


@pytest.mark.parametrize("width", [40, 66, 90])
def test_what_a_key_does_hangs_beside_it(width: int) -> None:
    for place in PLACES:
        lines = [line.plain for line in written([place], width)]
        assert all(len(line) <= width for line in lines), place
        heading = next((at for at, line in enumerate(lines) if line == PLACES[place]), None)
        assert heading is not None or all(action.where != place or not action.keys for action in ACTIONS)
        for line in lines[heading + 1 :] if heading is not None else []:
            assert not line or line[:3].strip() or line.startswith(" " * INDENT), line
        text = " ".join(" ".join(line[INDENT:] for line in lines).split())
        assert all(action.help in text for action in ACTIONS if action.where == place and action.keys)


def test_help_is_about_the_pane_in_focus(app: MemoryApp) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "question_mark")
        assert "fold this group" in text_of(app) or "Files" in text_of(app)
        await press(pilot, "question_mark", "3", "f1")
        assert "can be deleted at any time" in text_of(app)

    drive(app, steps)


@pytest.mark.parametrize(
    ("key", "character", "name"), [("t", "t", "t"), ("plus", "+", "+"), ("alt+t", "t", "alt+t"), ("f9", None, "f9")]
)
def test_a_message_names_what_was_pressed(key: str, character: str | None, name: str) -> None:
    assert keymap.typed(Key(key, character)) == name
