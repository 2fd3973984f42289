"""What OpenClaw injects for a message, on the screen."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from memory_tui.tui.views.notes.browse import ReaderView
from memory_tui.tui.views.search.injected_view import InjectedView
from tests.support.tui import LARGE, ask, drive, lines_of, make_app, press, said, settled, text_of

NOTES = """# Facts
- The service code of the boiler is 4711. <!-- trigger: boiler; heating fault -->
- Rome in May with Wei <!-- trigger: trip planning hotel -->
- The site is built by Hugo <!-- trigger: boiler --> <!-- project: site -->
- Wei plays the bassoon <!-- trigger: music -->
"""


def test_the_entries_stand_with_their_sums_and_reasons(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text(NOTES)
    app = make_app(folder, provider="none", changes=(("profile", "openclaw-2026.9"),))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "The boiler fails on our trip")
        await press(pilot, "z", "i")
        assert isinstance(app.screen, InjectedView)
        shown = text_of(app)
        assert "1 injected of 4 entries with triggers" in shown
        assert ".850 for boiler + 0.2 x" in shown
        assert "not injected: Its project site is not active" in shown
        line = next(at for at, row in enumerate(lines_of(app)) if "below the line of 0.65 ──" in row)
        below = "\n".join(lines_of(app)[line:])
        assert "Rome in May" in below
        assert "The service code" not in below
        assert "not injected: No trigger has a word of the message." in below.split("bassoon")[1]
        # Another message, in the same place.
        await press(pilot, "enter")
        await press(pilot, "ctrl+u", *"music", "enter")
        await settled(pilot)
        assert "1 injected of 4" in text_of(app)
        assert lines_of(app).index(next(row for row in lines_of(app) if "bassoon" in row)) < 6
        await press(pilot, "j", "enter")
        await settled(pilot)
        assert isinstance(app.screen, ReaderView)

    drive(app, steps, LARGE)


def test_another_release_injects_nothing_and_the_view_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text(NOTES)
    app = make_app(folder, provider="none", changes=(("profile", "openclaw-2026.3"),))

    async def steps(pilot: Pilot[int]) -> None:
        await ask(pilot, "boiler")
        await press(pilot, "z", "i")
        assert "Only OpenClaw 2026.9 injects entries by their triggers. Use --profile openclaw-2026.9." in text_of(app)
        assert not said(app)

    drive(app, steps, LARGE)
