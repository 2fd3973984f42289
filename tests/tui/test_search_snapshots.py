"""A few pictures of what lies beside and over the list of hits, for what text cannot show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.tui import LARGE, Steps, ask, fixed_times, make_app, press, sample, settled

QUESTION = "How is the VLAN on the Omada router set up?"
OPENCLAW = [("profile", "openclaw-2026.3")]


async def _flips(pilot: Pilot[int]) -> None:
    await ask(pilot, QUESTION)
    await press(pilot, "v", "y", "j", "v", "n", *"jjjjj", "w")


async def _sides(pilot: Pilot[int]) -> None:
    await ask(pilot, QUESTION)
    await press(pilot, "c")


@pytest.mark.parametrize(
    ("name", "size", "steps"),
    [
        ("flips", LARGE, _flips),
        ("sides", LARGE, _sides),
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
    app = make_app(sample(tmp_path / "notes"), changes=[] if name == "flips" else OPENCLAW)

    async def before(pilot: Pilot[int]) -> None:
        await settled(pilot)
        await steps(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before), name
