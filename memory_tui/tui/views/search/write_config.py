"""Tuned knobs are shown as a change of the configuration before they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memory_tui.sanitize import one_line, safe
from memory_tui.tui.judging import propose_write
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.search.lab import Report
from memory_tui.tui.views.view import KnobHistory, Part, View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.config.config_patch import ConfigWrite, Patch
    from memory_tui.engine.engine import Engine
    from memory_tui.errors import MemoryTuiError
    from memory_tui.tui.home import Home
    from memory_tui.tui.tuning import Tuning, Write


class WriteView(View):
    """The difference, value by value and line by line; enter writes it, with a backup; u undoes the last write."""

    PLACE = "write"
    MORE_PLACES = ("write", "report")

    def __init__(self, below: View) -> None:
        super().__init__(below)
        self._writer = ConfigWriter(below)
        self.report = Report(self, self, "Write the knobs into the configuration")
        self.parts = (KnobHistory(self), self.report)
        self.patch: Patch | None = None

    def work(self) -> Callable[[PostPart], object] | None:
        """Read the configuration as it is now, and work out the difference."""
        engine, tuning = self.home.engine, self.home.tuning
        return propose_write(engine, tuning.settings) if engine is not None and tuning is not None else None

    def arrived(self, value: Patch) -> None:
        """The difference."""
        self.patch = value
        tuning = self.home.tuning
        last = tuning.writes[-1] if tuning is not None and tuning.writes else None
        # What would be written once more is not there any more: somebody else took it back.
        if last is not None and any(last.values.get(change.key) == change.after for change in value.changes):
            stand(self.home, lambda tuning: tuning.unwrote())

    def summary(self) -> str:
        """What to press."""
        back = f"{key_of('undo')} undoes the last write   " if self._written else ""
        return (
            f"{back}enter writes it   esc leaves it" if self.patch is not None and self.patch.files else back.rstrip()
        )

    def report_lines(self, width: int) -> Sequence[Line]:
        """Changes in words, what has no place there, then the difference of the files."""
        reply = self.patch
        if reply is None:
            return text("Reading the configuration ...", width, "muted")
        from memory_tui.config.config_patch import summary

        if not reply.changes:
            rows = text("The configuration already has these values.", width, "strong")
        else:
            rows = text(f"Into {one_line(str(reply.target))}:", width, "strong")
        for change in reply.changes:
            rows += text(f"{summary(change)}   at {one_line(change.place)}", width, "", 3)
        for key, reason in reply.left:
            rows += text(f"not written: {key}: {one_line(reason)}.", width, "warn", 3)
        for note in reply.notes if reply.changes else ():
            rows += text(one_line(note), width, "muted")
        rows.append(([], None))
        for line in reply.diff().splitlines():
            style = {"+": "good", "-": "bad", "@": "muted"}.get(line[:1], "")
            rows += text(safe(line), width, style)
        return rows

    def more_context(self) -> dict[str, bool]:
        """Whether something was written from here."""
        return {"written": self._written}

    @property
    def _written(self) -> bool:
        return bool(self.home.tuning and self.home.tuning.writes)

    def do_write(self) -> None:
        """Write it, with a backup, unless the file was changed meanwhile."""
        reply = self.patch
        if reply is None or not reply.files:
            self.show_message("There is nothing to write.")
            return
        self._writer.write(reply)
        self.back()

    def do_undo(self) -> None:
        """Take back what was written last, unless the file was changed since."""
        tuning = self.home.tuning
        if tuning is not None and tuning.writes:
            self._writer.take_back(tuning.writes[-1])


def stand(home: Home, change: Callable[[Tuning], Tuning]) -> None:
    """Another configuration is as opened from now on."""
    if home.tuning is not None:
        home.turn(change(home.tuning))


class ConfigWriter(Part):
    """Writes knobs into the configuration; it is a part of the view below, so that its tasks outlive the difference."""

    @task("configuration", exclusive=False)
    async def write(self, patch: Patch) -> None:
        """Write `patch`, with a backup."""
        name = patch.target.name
        values = {change.key: change.after for change in patch.changes}

        def work(engine: Engine) -> tuple[ConfigWrite, ...]:
            files = patch.write()
            engine.reread()
            return files

        files = await self.home.jobs.write(work)
        stand(self.home, lambda tuning: tuning.wrote(name, values, files))
        self.home.show_message(
            f"Written to {name}, with a backup. Press {key_of('save')} in the knobs, then {key_of('undo')}, to undo it."
        )

    @task("configuration", exclusive=False)
    async def take_back(self, last: Write) -> None:
        """Restore the files that were written."""

        def work(engine: Engine) -> None:
            from memory_tui.config import config_patch

            for file in reversed(last.files):
                config_patch.undo(file)
            engine.reread()

        await self.home.jobs.write(work)
        stand(self.home, lambda tuning: tuning.unwrote())
        self.home.show_message(f"Undone: {last.target} is as it was before.")

    def refused(self, error: MemoryTuiError) -> str:
        """Say why, in whatever view is in front by now."""
        self.home.show_message(sentence_of(error))
        return ""
