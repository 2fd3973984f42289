"""Every view as text at both sizes: a reviewer reads the difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from memory_tui.tui.app import MemoryApp
from memory_tui.tui.views.dialogs import Confirm
from memory_tui.tui.widgets.status_bars import WhichKey
from tests.support.tui import (
    LARGE,
    SMALL,
    Steps,
    ask,
    drive,
    fixed_times,
    is_waiting,
    make_app,
    matches_screen,
    matches_screens,
    press,
    sample,
    settled,
    undone,
    until,
)

QUESTION = "How is the VLAN on the Omada router set up?"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample in the user's home, so that paths on screen have the same length everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    fixed_times(monkeypatch)
    return sample(tmp_path / "notes")


async def _stay(_pilot: Pilot[int]) -> None:
    """The view as it opens."""


async def _folded(pilot: Pilot[int]) -> None:
    await press(pilot, "j", "j", "j", "h", "tab", "j", "j")


async def _hits(pilot: Pilot[int]) -> None:
    await ask(pilot, QUESTION)
    await press(pilot, "j")


async def _loser(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, *"jjjjjj")


async def _invited(pilot: Pilot[int]) -> None:
    await press(pilot, "2")


async def _no_match(pilot: Pilot[int]) -> None:
    await ask(pilot, "xylophone zeppelin")


async def _tuned(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, *"tjhhhh")


async def _reader(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "enter", "j")


async def _zoomed(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "w", "plus")


async def _index(pilot: Pilot[int]) -> None:
    await press(pilot, "3")


async def _reindex(pilot: Pilot[int]) -> None:
    await press(pilot, "3", "R")


async def _help(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "question_mark")


async def _filtered(pilot: Pilot[int]) -> None:
    await press(pilot, "f", *"net")


async def _filtered_out(pilot: Pilot[int]) -> None:
    await press(pilot, "f", *"zzz")


async def _find(pilot: Pilot[int]) -> None:
    await press(pilot, "tab", "f", *"backup", "enter", "n", "V", "j")


async def _pick(pilot: Pilot[int]) -> None:
    await press(pilot, "o", *"wk")


async def _about(pilot: Pilot[int]) -> None:
    await press(pilot, "g", "i")


async def _log(pilot: Pilot[int]) -> None:
    await press(pilot, "g", "t", "tab", "}")


async def _help_browse(pilot: Pilot[int]) -> None:
    await press(pilot, "?")


async def _which_key(pilot: Pilot[int]) -> None:
    await press(pilot, "g")
    await until(lambda: pilot.app.screen.query_one(WhichKey).display)
    await settled(pilot)


async def _help_find(pilot: Pilot[int]) -> None:
    await press(pilot, "?", "f", *"fade")


async def _long_message(pilot: Pilot[int]) -> None:
    app = pilot.app
    assert isinstance(app, MemoryApp)
    app.show_message("A sentence that is longer than the line it has wraps onto the next one, to its last word. " * 2)
    await settled(pilot)


VIEWS: dict[str, Steps] = {
    "browse": _stay,
    "browse_folded": _folded,
    "browse_filter": _filtered,
    "browse_filter_hides_all": _filtered_out,
    "search_invites": _invited,
    "search": _hits,
    "search_loser": _loser,
    "search_tuned": _tuned,
    "reader": _reader,
    "why_zoomed": _zoomed,
    "find": _find,
    "pick": _pick,
    "about": _about,
    "log": _log,
    "help_browse": _help_browse,
    "index": _index,
    "reindex": _reindex,
    "help": _help,
    "which_key": _which_key,
    "help_find": _help_find,
    "long_message": _long_message,
}
TINY = (60, 20)
AT_60_COLUMNS = ("browse", "search", "search_tuned", "why_zoomed", "reader", "index", "help", "which_key")
SCROLLED = ("index", "reindex", "reader", "why_zoomed", "find")
"""What has scrolled by the time it is compared, and shows the same lines in a terminal that grows."""
OVER_VIEWS = ("pick", "help", "help_browse", "help_find")
ALONE = (*SCROLLED, *OVER_VIEWS)
AT_ONCE = ("browse", "search", *ALONE)
"""What is started at each size; the first two prove that a start shows what a change of size does."""


def sizes_of(name: str) -> list[tuple[int, int]]:
    return [SMALL, LARGE, *([TINY] if name in AT_60_COLUMNS else [])]


@pytest.mark.parametrize("name", [name for name in VIEWS if name not in ALONE])
def test_view(name: str, workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await VIEWS[name](pilot)
        await matches_screens(pilot, name, *sizes_of(name)[1:])

    drive(make_app(workspace), steps, SMALL)


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name in AT_ONCE for size in sizes_of(name)[name not in ALONE :]]
)
def test_view_that_starts_at_its_size(name: str, size: tuple[int, int], workspace: Path) -> None:
    async def steps(pilot: Pilot[int]) -> None:
        await VIEWS[name](pilot)
        await matches_screens(pilot, name)

    drive(make_app(workspace), steps, size)


def test_no_match(workspace: Path) -> None:
    app = make_app(workspace, provider="none", changes=[("profile", "openclaw-2026.3")])

    async def steps(pilot: Pilot[int]) -> None:
        await _no_match(pilot)
        await matches_screens(pilot, "no_match", LARGE)

    drive(app, steps, SMALL)


def test_everything_under_min_score(workspace: Path) -> None:
    app = make_app(workspace, changes=[("profile", "openclaw-2026.3"), ("query.minScore", "0.9")])

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "wifi password for guests")
        await matches_screens(pilot, "under_min_score", LARGE)

    drive(app, steps, SMALL)


def test_keywords_only(workspace: Path) -> None:
    app = make_app(workspace, provider="none")

    async def steps(pilot: Pilot[int]) -> None:
        await _hits(pilot)
        await matches_screens(pilot, "keywords_only", LARGE)

    drive(app, steps, SMALL)


@pytest.mark.parametrize(("name", "keys"), [("empty_browse", ""), ("empty_search", "2"), ("empty_index", "3")])
def test_empty_workspace(name: str, keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes").mkdir()
    app = make_app(tmp_path / "notes")

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, *keys)
        await matches_screens(pilot, name, LARGE)

    drive(app, steps, SMALL)


@pytest.mark.parametrize("size", [(59, 24), (80, 19)])
def test_too_small(size: tuple[int, int], workspace: Path) -> None:
    app = make_app(workspace)

    async def steps(_pilot: Pilot[int]) -> None:
        matches_screen(app, "too_small")

    drive(app, steps, size)


def test_a_screen_that_changed_with_a_dialog_is_laid_out_behind_it(workspace: Path) -> None:
    """Textual drops the idle time of a screen while updates are batched, and wakes only the screen in front."""
    app = make_app(workspace)

    async def covered(pilot: Pilot[int], pane: str) -> None:
        below = app.screen
        with app.batch_update():
            below.query_one(pane).display = False
            await app.push_screen(Confirm("Title", "A question.", "Do it"))
            await until(lambda: is_waiting(below))
            assert undone(below)
        await settled(pilot)
        assert isinstance(app.screen, Confirm)
        assert app.screen is not below
        assert not undone(below)

    async def steps(pilot: Pilot[int]) -> None:
        view = app.screen
        await covered(pilot, "#files")
        assert view.query_one("#reader").region.x == 0
        await covered(pilot, "Button")

    drive(app, steps)


def test_a_screen_that_is_laid_out_behind_a_dialog_is_drawn_whole(workspace: Path) -> None:
    """Laying a screen out from the dialog in front stops its timer, whatever is still to be drawn of it."""
    app = make_app(workspace)

    async def steps(pilot: Pilot[int]) -> None:
        for pane in ("#tree", "Button"):
            below = app.screen
            await app.push_screen(Confirm("Title", "A question.", "Do it"))
            await settled(pilot)
            below._dirty_widgets.add(below.query(pane).first(Widget))
            below._screen_resized(app.size)
            await settled(pilot)
            assert not undone(below)

    drive(app, steps)
