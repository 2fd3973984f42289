"""What writing the tuned knobs would change in the configuration, shown before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.text.display import one_line, safe
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Tell
from memory_tui.tui.measuring import propose_write
from memory_tui.tui.screens.report import Report
from memory_tui.tui.widgets.rows import Line, text

if TYPE_CHECKING:
    from memory_tui.tui.screens.judging import Judging
    from memory_tui.tune.patch import Patch


class WriteView(Report):
    """The difference, value by value and line by line; y writes it, with a backup, everything else leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("write"))
    PLACE = "write"
    KIND = "patch"
    TITLE = "Write the knobs into the configuration"

    def __init__(self, search: Judging) -> None:
        super().__init__(search)
        self.patch: Patch | None = None

    def work(self) -> Callable[[Tell], object] | None:
        """Read the configuration as it is now, and work out the difference."""
        engine, tuning = self.home.engine, self.home.tuning
        return propose_write(engine, tuning.settings) if engine is not None and tuning is not None else None

    def came(self, value: object) -> None:
        """The difference; or what was written."""
        from memory_tui.tune.patch import Patch

        if isinstance(value, Patch):
            self.patch = value

    def subtitle(self) -> str:
        """What to press."""
        return "y writes it   esc leaves it" if self.patch is not None and self.patch.files else ""

    def lines(self, width: int) -> Sequence[Line]:
        """Changes in words, what has no place there, then the difference of the files."""
        found = self.patch
        if found is None:
            return text("Reading the configuration ...", width, "muted")
        from memory_tui.tune.patch import summary

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

    def do_write(self) -> None:
        """Write it, with a backup, unless the file was changed meanwhile."""
        found = self.patch
        if found is None or not found.files:
            self.say("There is nothing to write.")
            return

        def write() -> str:
            found.write()
            return f"Written to {found.target}; memory-tui write-config --undo takes it back."

        self.home.bridge.tell(write)
        self.back()
