"""What the search view shows beside its list, as text at both sizes: why, votes, comparisons, measurements."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.tui import LARGE, SMALL, Steps, ask, drive, fixed_times, make_app, matches_screens, press, sample

QUESTION = "How is the VLAN on the Omada router set up?"
OPENCLAW = [("profile", "openclaw-2026.3")]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample in the user's home, so that paths on screen have the same length everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    fixed_times(monkeypatch)
    return sample(tmp_path / "notes")


async def _hits(pilot: Pilot[int]) -> None:
    await ask(pilot, QUESTION)
    await press(pilot, "j")


async def _loser(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, *"jjjjjj")


async def _record(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "w", "z", "r")


async def _why_focused(pilot: Pilot[int]) -> None:
    await _loser(pilot)
    await press(pilot, "w")


async def _other_line(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "W", *"netwrk")


async def _why_not(pilot: Pilot[int]) -> None:
    await _other_line(pilot)
    await press(pilot, "tab", *":5", "enter")


async def _vote(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "v")


async def _voted(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "v", "y", "j", "v", "n")
    await press(pilot, *"tjhhhh", "escape")


async def _book(pilot: Pilot[int]) -> None:
    await _voted(pilot)
    await ask(pilot, "Who was our dentist before Dr. Hallett?")
    await press(pilot, "v", "1", "g", "q")


async def _sides(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "c")


async def _not_proposed(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "]")


async def _base(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, *"tjhh", "b")


async def _sweep(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, "z", "s")


async def _in_a_month(pilot: Pilot[int]) -> None:
    await _hits(pilot)
    await press(pilot, *"tkk", "enter", *"30", "enter")


FADES = [*OPENCLAW, ("query.hybrid.temporalDecay.enabled", "true"), ("query.minScore", "0.25")]

VIEWS: dict[str, tuple[Steps, list[tuple[str, str]]]] = {
    "why_record": (_record, []),
    "why_focused": (_why_focused, []),
    "why_not_prompt": (_other_line, []),
    "why_not": (_why_not, []),
    "vote": (_vote, []),
    "voted": (_voted, []),
    "book": (_book, []),
    "sides": (_sides, []),
    "not_proposed": (_not_proposed, OPENCLAW),
    "baseline": (_base, []),
    "sweep": (_sweep, []),
    "in_a_month": (_in_a_month, FADES),
}


AT_ONCE = ("why_focused", "why_not_prompt", "vote", "baseline")
"""What has scrolled, and shows the same lines in a terminal that grows; what lies over a view, which is drawn later."""


@pytest.mark.parametrize(
    ("name", "sizes"),
    [(name, [SMALL, LARGE]) for name in VIEWS if name not in AT_ONCE]
    + [(name, [size]) for name in AT_ONCE for size in (SMALL, LARGE)],
)
def test_view(name: str, sizes: list[tuple[int, int]], workspace: Path) -> None:
    reach, changes = VIEWS[name]

    async def steps(pilot: Pilot[int]) -> None:
        await reach(pilot)
        await matches_screens(pilot, name, *sizes[1:])

    drive(make_app(workspace, changes=changes), steps, sizes[0])
