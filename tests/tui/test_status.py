"""View 3: the lamps and what stands behind them, live; providers are approved and set up; pages about the index."""

import asyncio
import dataclasses
import itertools
import json
import shutil

import pytest
from msgspec.structs import replace
from textual.app import App
from textual.widgets import Input

from memory_tui import events
from memory_tui.config.places import own_path
from memory_tui.engine.engine import Engine
from memory_tui.index.store import Withheld
from memory_tui.index.sync import Shrink
from memory_tui.providers.registry import SMALL_COST
from memory_tui.tui import first_line
from memory_tui.tui.facts import BAD, GOOD, WARN, Fact, Facts, drawn
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import Session
from memory_tui.tui.status_facts import behind_answers, behind_freshness, behind_left_out, news, statements, up_to_date
from memory_tui.tui.views.notes import index_pane
from memory_tui.workspace.roots import RootState
from tests.support.provider_server import Play, hang, refusing, serving
from tests.support.provider_server import status as refuses
from tests.support.tui import LARGE, SMALL, TINY, Window, go, make_app, sample

KEY = "sk-add-0123456789"


@pytest.fixture
def status(reader):
    known = reader.app.session.status
    assert known is not None
    return known


def session(status):
    return Session(lambda _hear: Engine.open(None), status=status)  # type: ignore[arg-type]


def words(facts):
    return "\n".join(f"{fact.label} {fact.words}" for fact in facts)


def test_the_small_model_is_offered_with_its_cost_where_the_table_answers(status):
    by_table = replace(status, who=replace(status.who, answers="builtin"))
    offer = next(fact for fact in behind_answers(by_table) if fact.label == "better")
    assert (offer.key, "local-small" in offer.words, SMALL_COST in offer.words) == ("page:better", True, True)
    by_model = replace(status, who=replace(status.who, answers="local-small"))
    assert "better" not in {fact.label for fact in behind_answers(by_model)}


def test_what_is_said_at_the_start_stays_among_what_happened(workspace):
    app = make_app(workspace)
    app.doubt = "Another demo holds unsaved text."
    with Window(app) as window:
        assert app.doubt in window.notices
        window.press("3").until(lambda: app.doubt in window.text)


def test_the_ranking_and_where_it_is_from_need_no_key(status):
    origin = "auto: OpenClaw 2026.9.6 is installed; from openclaw.json"
    shown = replace(status, profile="openclaw-2026.9", profile_origin=origin)
    assert f"ranking OpenClaw 2026.9.6 ({origin})" in words(statements(session(shown), ()))


def test_a_folder_that_is_gone_is_said_before_notes_that_vanished_and_these_before_freshness(status):
    assert up_to_date(session(status), status).mark == GOOD
    vanished = replace(status, freshness=replace(status.freshness, shrink=Shrink(30, 40, "a root is empty")))
    lamp = up_to_date(session(vanished), vanished)
    assert (lamp.mark, lamp.words) == (BAD, "30 of 40 notes vanished at once")
    assert any(fact.key == "shrink" for fact in behind_freshness(vanished))
    gone = replace(vanished, roots=(RootState(".", "/notes", "gone", "/notes is gone."),))
    assert up_to_date(session(gone), gone).words == "/notes is gone."
    busy = dataclasses.replace(session(status), progress="indexing 64 of 137")
    assert first_line.lamp(busy, narrow=True).plain == "● indexing 64", "the first line has 17 cells there"


def test_what_is_left_out_is_one_row_a_reason(status):
    held = replace(status, withheld=(Withheld(1, "memory/a.md", 3, 5, "a password"),))
    others = [f"books/{number}.md" for number in range(25)]
    said = words(behind_left_out(held, others))
    assert "25 paths: books/0.md, books/1.md, " in said
    assert "books/19.md and 5 more  Not read as memory" in said
    assert "memory/a.md:3-5  withheld: looks like a secret (a password)" in said
    assert next(behind_left_out(held, ())).mark == WARN
    assert any("1 not sent" in fact.words for fact in statements(session(held), ()))
    lamps = words(statements(session(status), (), others=others))
    assert "no note; 25 other Markdown files not read as memory" in lamps
    assert not any("not read as memory" in said for said in words(statements(session(status), ["lamp:left"])))


def test_a_start_without_an_outcome_is_no_news_and_a_run_of_notes_is_one_row(status):
    now = session(status)
    now.news.extend(
        [
            events.SyncStarted(1.0, "watch", 3),
            *(events.FileIndexed(2.0, f"memory/{name}.md", 1, 1) for name in "abc"),
            events.SyncFinished(3.0, "watch", 3, 0, 0, 3, 0.1, ""),
            events.FileIndexed(3.5, "memory/c.md", 1, 1),
            events.SyncStarted(4.0, "sweep", 0),
            events.SyncFinished(5.0, "sweep", 0, 0, 0, 0, 0.1, ""),
            events.ProviderChanged(6.0, "x", False, "refused"),
            events.ProviderChanged(7.0, "x", False, "refused"),
        ]
    )
    assert [fact.words for fact in news(now)] == [
        "x failed: refused",
        "indexed memory/c.md, 1 passage",
        "indexed 3 notes, the last memory/c.md, 1 passage",
    ]
    assert ", checked " in index_pane(now).plain, "a check without changes is no sync"
    now.news.append(events.SyncFinished(8.0, "watch", 1, 0, 0, 1, 0.1, ""))
    assert ", synced " in index_pane(now).plain


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_row_fits_its_width_and_wraps_below_its_words(width):
    fact = Fact(
        "one sentence of a provider that is long, 外婆 included, and \x1b[31mred", label="why", mark=BAD, indent=2
    )
    lines = drawn(fact, width).plain.split("\n")
    assert all(line.startswith(" " * 3) for line in lines)
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


def test_a_row_that_goes_on_does_not_begin_like_the_next_one():
    rows = [
        drawn(Fact("Doctor", does=does), 30).plain.split("\n")
        for does in ("checks the machine", "checks machine, notes and index")
    ]
    assert rows == [[" Doctor  checks the machine"], [" Doctor  checks machine,", "   notes and index"]]


@pytest.mark.parametrize("size", [TINY, SMALL, LARGE])
def test_three_lamps_stand_first_and_enter_opens_one(reader, size):
    reader.resize(*size).press("3")
    lamps = ["answered by", "up to date", "left out"]
    places = [next(at for at, line in enumerate(reader.lines[1:]) if f"● {lamp}" in line) for lamp in lamps]
    assert places == sorted(places)
    assert places[0] < 5
    assert reader.text.count("▌") == 1, "what happened has no cursor"
    reader.press("home", "enter")
    assert "asked for" in reader.text
    reader.press("enter")
    assert "asked for" not in reader.text


def test_what_happens_on_disk_shows_without_a_key(workspace):
    with Window(make_app(workspace, watch=True)) as window:
        window.press("3")
        (workspace / "memory" / "2026-03-21.md").write_text("# New\n- a walrus came by\n")
        window.until(lambda: "memory/2026-03-21.md" in window.text)
        moved = workspace.rename(workspace.parent / "elsewhere")
        window.until(lambda: "✗ up to date" in window.text)
        moved.rename(workspace)
        window.until(lambda: "● up to date" in window.text)


def test_indexing_pauses_and_goes_on(screen):
    screen.press("3", "home", "down", "enter", "down", "enter")
    screen.until(lambda: "paused: changes are not indexed" in screen.text)
    assert screen.app.session.engine is not None
    assert screen.app.session.engine.index.paused
    screen.press("enter")
    screen.until(lambda: "goes on by itself" in screen.text)


def test_notes_that_vanished_are_forgotten_when_a_person_agrees(workspace):
    with Window(make_app(workspace)) as window:
        shutil.rmtree(workspace / "memory")
        window.press("3", "i")
        window.until(lambda: "vanished at once" in window.text)
        window.press("home", "down", "enter")
        go(window, "enter forgets them").press("enter", "y")
        window.until(lambda: "vanished at once" not in window.text)
        assert any("forgotten" in said for said in window.notices)


def test_the_doctor_shows_each_check_as_it_ends_and_escape_stops_it(screen):
    go(screen.press("3"), "Doctor").burst("enter")
    screen.until(lambda: "sqlite-vec works" in screen.text or "Examining" in screen.text)
    screen.burst("escape")
    screen.until(lambda: len(screen.app.screen_stack) == 1)
    screen.press("enter")
    assert "sqlite-vec works" in screen.text
    assert "still run" not in screen.text


def test_a_provider_elsewhere_gets_the_notes_after_a_yes_and_none_after_it_is_withdrawn(workspace):
    own_path().parent.mkdir(parents=True, exist_ok=True)
    elsewhere = {"baseUrl": "http://embed.invalid/v1"}
    own_path().write_text(json.dumps({"provider": "openai-compatible", "model": "small", "remote": elsewhere}))
    with Window(make_app(workspace, provider="")) as window:
        window.press("3")
        assert "▲ answered by" in window.text
        window.press("enter")
        go(window, "enter shows what it would get").press("enter")
        assert "embed.invalid gets" in window.text
        assert "about" in window.text
        engine = window.app.session.engine
        assert engine is not None
        assert not engine.providers.approvals.every()
        window.press("y")
        window.until(engine.providers.approvals.every)
        window.until(lambda: "enter withdraws it" in window.text)
        go(window, "enter withdraws it").press("enter", "y")
        window.until(lambda: not engine.providers.approvals.every())


def test_a_provider_that_fails_and_who_takes_its_place_show_without_a_key(workspace, play):
    own_path().parent.mkdir(parents=True, exist_ok=True)
    remote = {"baseUrl": f"{play.url}/v1", "apiKey": "${EMBED_KEY}"}
    config = {"provider": "openai-compatible", "model": "small", "fallback": "builtin", "remote": remote}
    own_path().write_text(json.dumps(config))
    with Window(make_app(workspace, provider="", watch=True)) as window:
        window.press("3").until(lambda: "● answered by words + meaning: openai-compatible" in window.text)
        play.usual = refuses(401, {"error": {"message": "Incorrect API key"}})
        (workspace / "memory" / "2026-03-21.md").write_text("# New\n- a walrus came by\n")
        window.until(lambda: "▲ answered by" in window.text)
        window.until(lambda: "builtin instead of openai-compatible" in window.text)
        assert "Incorrect API key" in go(window, "instead of").press("enter").text


def test_a_provider_that_hangs_holds_no_key(workspace, play):
    own_path().parent.mkdir(parents=True, exist_ok=True)
    remote = {"baseUrl": f"{play.url}/v1", "apiKey": "${EMBED_KEY}"}
    own_path().write_text(json.dumps({"provider": "openai-compatible", "model": "small", "remote": remote}))
    with Window(make_app(workspace, provider="")) as window:
        play.usual = lambda _handler, _asked: play.ended.wait(30)
        window.burst("slash", *"omada")
        window.until(lambda: "Asking the provider" in window.text)
        window.burst("escape")
        window.until(lambda: not isinstance(window.app.focused, Input)).burst("1")
        window.until(lambda: window.app.view.id == "notes")
        play.ended.set()


@pytest.fixture
def play(monkeypatch):
    monkeypatch.setenv("EMBED_KEY", KEY)
    with serving(Play()) as server:
        yield server


@pytest.fixture
def window(tmp_path):
    """An app whose command line names another provider."""
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        yield window


def filled(window, address, variable="EMBED_KEY"):
    """Open the form for a server that speaks OpenAI's embeddings, and fill it in."""
    go(window.press("3"), "Set up a provider").press("enter", "enter")
    for text in (address, variable, "small"):
        window.press("end", "ctrl+u").type(text).press("enter")
    return window


def test_a_provider_is_tested_shown_written_used_and_taken_back(window, play):
    filled(window, f"{play.url}/v1")
    assert "answers: 256 dimensions" in window.text
    assert "EMBED_KEY" in window.text
    assert not own_path().exists()
    assert len(play.asked) == 1
    assert "omada" not in "".join(text for asked in play.asked for text in asked.texts).lower()
    window.press("y")
    window.until(lambda: window.app.session.status is not None and "openai-compatible" in window.text)
    assert KEY not in own_path().read_text()
    assert "${EMBED_KEY}" in own_path().read_text()
    window.until(lambda: "● answered by words + meaning: openai-compatible" in window.text)
    assert {asked.headers["Authorization"] for asked in play.asked} == {f"Bearer {KEY}"}
    window.press("u")
    window.until(lambda: not own_path().exists())
    window.until(lambda: "● answered by words + meaning: scripted" in window.text)


def test_a_provider_that_is_down_says_so_and_nothing_is_written(window, play):
    with refusing() as address:
        filled(window, f"{address}/v1")
    assert "cannot be reached" in window.text
    assert "Start it, or correct the address." in " ".join(window.text.replace("│", "").split())
    play.usual = refuses(401, {"error": {"message": "Incorrect API key"}})
    window.press("escape")
    filled(window, f"{play.url}/v1")
    assert "Incorrect API key" in window.text
    window.press("escape", "enter", "enter")
    assert f"{play.url}/v1" in window.text
    window.press("escape")
    filled(window, f"{play.url}/v1", variable="sk-0123")
    assert "Name the environment variable" in window.text
    assert not own_path().exists()


def test_escape_ends_a_test_that_hangs(window, play):
    go(window.press("3"), "Set up a provider").press("enter", "enter")
    for text in (f"{play.url}/v1", "", "small"):
        window.press("end", "ctrl+u").type(text)
        play.usual = hang
        window.burst("enter")
    window.until(lambda: "escape stops" in window.text)
    window.burst("escape")
    window.until(lambda: len(window.app.screen_stack) == 1)
    play.ended.set()
    assert not own_path().exists()


def test_each_kind_of_provider_has_a_line_at_every_width_and_a_whole_one_on_a_small_screen(reader):
    go(reader.resize(*TINY).press("3"), "Set up a provider").press("enter")
    rows = reader.app.screen.query_one(Rows)
    assert rows.virtual_size.height == rows.option_count
    assert "▌openai-compatible" in reader.text
    go(reader.press("escape").resize(*SMALL), "Set up a provider").press("enter")
    [row] = [line for line in reader.text.splitlines() if "local-small" in line and "MB" in line]
    assert "91 MB, no key, no compiler" in row
    assert "…" not in row
    reader.press("escape").app.call_later(reader.app.view.action_page, "better")
    reader.settle()
    assert "▌local-small" in reader.text
    reader.press("escape").resize(*LARGE)


def test_what_is_left_out_ends_with_one_blank_row(status):
    rows = [fact.words for fact in statements(session(status), ["lamp:left"])]
    assert not any(first == second == "" for first, second in itertools.pairwise(rows))


def test_rows_about_the_same_are_both_shown():
    async def count():
        app = App()
        async with app.run_test():
            await app.mount(rows := Facts())
            await rows.wait_for_refresh()
            rows.show([Fact("a", "note:x:1"), Fact("b", "note:x:1")])
            return rows.option_count, rows.position("note:x:1")

    assert asyncio.run(count()) == (2, 0)
