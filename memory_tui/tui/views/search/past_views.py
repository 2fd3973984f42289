"""Views of past questions. One lists lines that none reached, one asks the last week again under the present knobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import on

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.past_questions import Replayed, Unreached
    from memory_tui.explain.why_never import UnreachedLines, WhyNever

MONTH, WEEK = 30, 7
"""Days of questions that are looked at."""
STYLES = {"broken": "bad", "mended": "good", "moved": "", "unchanged": "muted"}
UNTURNED = (
    f"This asks the questions of the last week and the saved ones again, under other knobs than those of now. "
    f"{key_of('compare')} chooses another profile; {key_of('view 2')}, then {key_of('tune')} turns a single knob."
)


class UnreachedView(View):
    """Lines that nothing delivered in a month; enter reads them, `w` says below why they never come."""

    PLACE = "unreached"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="Lines that no question reached",
            waiting="Reading the log of recalls ...",
            gather=_unreached,
            lines=self._lines,
            summary=lambda found: f"{len(found.lines):,} places in {MONTH} days",
        )
        self.parts = (self.listing,)
        self._told: WhyNever | None = None

    def _lines(self, found: Unreached, width: int) -> list[Line]:
        from memory_tui.render import past_text

        written = [*text(past_text.reach(found), width, "strong"), *text("", width)]
        for one in found.lines:
            written.append(([(f" {one_line(past_text.lines_place(one))}", "")], one))
            if self._told is not None and (self._told.path, self._told.line) == (one.path, one.first):
                said = list(past_text.never(self._told))[1:]
                written += [line for words in said for line in text(one_line(words), width, "muted", 3)]
        return written

    @property
    def lines(self) -> UnreachedLines | None:
        """The lines under the cursor."""
        from memory_tui.explain.why_never import UnreachedLines

        key = self.listing.rows.key
        return key if isinstance(key, UnreachedLines) else None

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The lines under the cursor."""
        lines = self.lines
        return (lines.path, lines.first, lines.last) if lines is not None else None

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Read the lines in their note."""
        place = self.place_in_note()
        if place is None:
            self.show_message("No line is under the cursor.")
        else:
            self.read_note(place[0], place[1:])

    @task("never")
    async def do_why(self) -> None:
        """Say below the line which gates stop it over the questions of the month, and what one change would do."""
        lines = self.lines
        if lines is None:
            self.show_message("No line is under the cursor.")
            return
        self.show_message("Asking the questions of the month again ...")
        found = await self.home.jobs.attempt(lambda engine: _never(engine, lines))
        if isinstance(found, MemoryTuiError):
            self.show_message(sentence_of(found))
        else:
            self._told = found
            self.listing.show()


class Replay(Struct, frozen=True):
    """The questions under both settings, where knobs were `turned`."""

    rows: tuple[Replayed, ...]
    turned: bool = False


class ReplayView(View):
    """The questions of the last week under the knobs as opened and as they are; enter asks one in Search."""

    PLACE = "replay"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="Last week under these knobs",
            waiting="Asking the questions of the last week again ...",
            gather=self._gather,
            lines=_replayed_lines,
            summary=lambda found: f"{len(found.rows):,} questions" if found.turned else "",
        )
        self.parts = (self.listing,)

    def _gather(self, engine: Engine) -> Replay:
        """The questions under both settings; none where nothing was turned."""
        from memory_tui.engine import past_questions

        tuning = self.home.tuning
        if tuning is None or (not tuning.days and tuning.settings.values == engine.plan.settings.values):
            return Replay(())
        asked = past_questions.past_questions(engine, time.time(), WEEK)
        return Replay(past_questions.replay_under(engine, asked, tuning.settings, tuning.days), turned=True)

    def do_profile(self) -> None:
        """Choose another profile, turn the knob to it, and ask again."""
        from memory_tui.core.profiles import PROFILES
        from memory_tui.tui.views.dialogs import Picker

        tuning = self.home.tuning
        if tuning is None:
            return

        def take(name: str) -> None:
            self.home.turn(tuning.set("profile", name))
            self.listing.do_again()
            self.show_message(f"The profile is {name} now, in Search too; {key_of('undo')} there undoes it.")

        now = tuning.settings.word("profile")
        Picker("Under which profile?", [name for name in PROFILES if name != now]).ask(self.app, take)

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Ask the question under the cursor in the search view, under the knobs as they are."""
        key = self.listing.rows.key
        if not isinstance(key, str) or not key:
            self.show_message("No question is under the cursor.")
            return
        self.app.pop_screen()
        self.home.ask_for(key)


def _replayed_lines(found: Replay, width: int) -> list[Line]:
    from memory_tui.render import past_text

    if not found.turned:
        return [*text("", width), *text(UNTURNED, width, "strong")]
    written = [*text(past_text.sums(found.rows), width, "strong"), *text("", width)]
    for one in sorted(found.rows, key=lambda one: list(STYLES).index(one.outcome)):
        words = one_line(one.question.text)
        written.append(([(f" {one.outcome:<10}", STYLES[one.outcome]), (words, "strong")], one.question.text))
        if one.outcome != "unchanged":
            written += text(one_line(past_text.replayed(one)), width, "muted", 12)
    return written


def _unreached(engine: Engine) -> Unreached:
    from memory_tui.engine import past_questions

    return past_questions.unreached(engine, past_questions.past_questions(engine, time.time(), MONTH))


def _never(engine: Engine, lines: UnreachedLines) -> WhyNever:
    from memory_tui.engine import past_questions

    asked = past_questions.past_questions(engine, time.time(), MONTH)
    return past_questions.never_of(engine, asked, lines.path, lines.first)
