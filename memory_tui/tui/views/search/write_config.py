"""Tuned knobs are shown as a change of the configuration before they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.binding import BindingType

from memory_tui.core.sanitize import one_line, safe
from memory_tui.tui.judging import propose_write
from memory_tui.tui.keymap import bindings
from memory_tui.tui.views.search.lab import Report
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, text
from memory_tui.tui.workers import Tell

if TYPE_CHECKING:
    from memory_tui.config.config_write import Written
    from memory_tui.core.errors import MemoryTuiError
    from memory_tui.engine.engine import Engine
    from memory_tui.tui.tuning import Tuning
    from memory_tui.tune.config_patch import Patch

T = TypeVar("T")


class WriteView(Report):
    """The difference, value by value and line by line; y writes it, with a backup, and u takes the last write back."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("write"))
    PLACE = "write"
    KIND = "patch"
    TITLE = "Write the knobs into the configuration"

    def __init__(self, below: View) -> None:
        super().__init__(below)
        self.patch: Patch | None = None

    def work(self) -> Callable[[Tell], object] | None:
        """Read the configuration as it is now, and work out the difference."""
        engine, tuning = self.home.engine, self.home.tuning
        return propose_write(engine, tuning.settings) if engine is not None and tuning is not None else None

    def came(self, value: object) -> None:
        """The difference; or what was written."""
        from memory_tui.tune.config_patch import Patch

        if not isinstance(value, Patch):
            return
        self.patch = value
        tuning = self.home.tuning
        last = tuning.writes[-1] if tuning is not None and tuning.writes else None
        # What would be written once more is not there any more: somebody else took it back.
        if last is not None and any(last.values.get(change.key) == change.after for change in value.changes):
            self._stand(lambda tuning: tuning.unwrote())

    def subtitle(self) -> str:
        """What to press."""
        back = "u takes back what was written   " if self.more_context()["written"] else ""
        return f"{back}y writes it   esc leaves it" if self.patch is not None and self.patch.files else back.rstrip()

    def lines(self, width: int) -> Sequence[Line]:
        """Changes in words, what has no place there, then the difference of the files."""
        found = self.patch
        if found is None:
            return text("Reading the configuration ...", width, "muted")
        from memory_tui.tune.config_patch import summary

        if not found.changes:
            rows = text("Nothing differs from what is written already.", width, "strong")
        else:
            rows = text(f"Into {one_line(str(found.target))}:", width, "strong")
        for change in found.changes:
            rows += text(f"{summary(change)}   at {one_line(change.place)}", width, "", 3)
        for key, reason in found.left:
            rows += text(f"not written: {key}: {one_line(reason)}.", width, "warn", 3)
        for note in found.notes if found.changes else ():
            rows += text(one_line(note), width, "muted")
        rows.append(([], None))
        for line in found.diff().splitlines():
            style = {"+": "good", "-": "bad", "@": "muted"}.get(line[:1], "")
            rows += text(safe(line), width, style)
        return rows

    def more_context(self) -> dict[str, bool]:
        """Whether something was written from here."""
        return {**super().more_context(), "written": bool(self.home.tuning and self.home.tuning.writes)}

    def do_write(self) -> None:
        """Write it, with a backup, unless the file was changed meanwhile."""
        found = self.patch
        if found is None or not found.files:
            self.say("There is nothing to write.")
            return
        name = found.target.name
        values = {change.key: change.after for change in found.changes}

        def write(engine: Engine) -> tuple[Written, ...]:
            files = found.write()
            engine.reread()
            return files

        def written(files: tuple[Written, ...]) -> None:
            self._stand(lambda tuning: tuning.wrote(name, values, files))
            self.search.home.tell(f"Written to {name}, with a backup. W and then u takes it back.")

        self._do(write, written)
        self.back()

    def do_undo(self) -> None:
        """Take back what was written last, unless the file was changed since."""
        tuning = self.home.tuning
        if tuning is None or not tuning.writes:
            return
        last = tuning.writes[-1]

        def restore(engine: Engine) -> None:
            from memory_tui.config import config_write

            for file in reversed(last.files):
                config_write.undo(file)
            engine.reread()

        def restored(_: None) -> None:
            self._stand(lambda tuning: tuning.unwrote())
            self.search.home.tell(f"Taken back: {last.target} is as it was before.")

        self._do(restore, restored)

    def _do(self, work: Callable[[Engine], T], then: Callable[[T], None]) -> None:
        """Do `work` in the background, and `then` though this view is left; none replaces another."""
        bridge = self.search.home.jobs
        bridge.writes += 1
        self.search.run(f"write {bridge.writes}", work, then, self._refused)

    def _refused(self, error: MemoryTuiError) -> None:
        self.search.home.tell(f"{error.message} {error.next_step}".strip())

    def _stand(self, change: Callable[[Tuning], Tuning]) -> None:
        """Another configuration is as opened from now on."""
        home = self.search.home
        if home.tuning is not None:
            home.turn(change(home.tuning))
