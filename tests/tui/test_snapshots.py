"""A few pictures, for what text cannot show: colours, frames, focus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.tui import LARGE, SMALL, Steps, ask, fixed_times, make_app, press, sample, settled

QUESTION = "How is the VLAN on the Omada router set up?"


async def _browse(pilot: Pilot[int]) -> None:
    await press(pilot, "j")


async def _search(pilot: Pilot[int]) -> None:
    await ask(pilot, QUESTION)
    await press(pilot, "j")


async def _tune(pilot: Pilot[int]) -> None:
    await _search(pilot)
    await press(pilot, *"tjllll")


async def _reader(pilot: Pilot[int]) -> None:
    await _search(pilot)
    await press(pilot, "enter", "j", "j")


@pytest.mark.parametrize(
    ("name", "size", "steps"),
    [
        ("browse", LARGE, _browse),
        ("search", LARGE, _search),
        ("search_small", SMALL, _search),
        ("tune", LARGE, _tune),
        ("reader", SMALL, _reader),
    ],
)
def test_picture(
    name: str,
    size: tuple[int, int],
    steps: Steps,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snap_compare: Callable[..., bool],
) -> None:
    fixed_times(monkeypatch)
    app = make_app(sample(tmp_path / "notes"))

    async def before(pilot: Pilot[int]) -> None:
        await settled(pilot)
        await steps(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before), name


def test_picture_without_vectors_in_light_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Callable[..., bool]
) -> None:
    monkeypatch.setenv("TEXTUAL_THEME", "memory-light")
    fixed_times(monkeypatch)
    app = make_app(sample(tmp_path / "notes"), provider="none")

    async def before(pilot: Pilot[int]) -> None:
        await settled(pilot)
        await _search(pilot)

    assert snap_compare(app, terminal_size=LARGE, run_before=before)
