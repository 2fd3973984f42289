"""What is shown instead of everything when the terminal is too small."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

NEEDED = (80, 24)


class TooSmall(Widget):
    """One sentence with the size needed and the size there is, the short side marked."""

    def render(self) -> Content:
        """The sentence."""
        width, height = self.app.size
        need_width, need_height = NEEDED

        def side(there: int, needed: int) -> tuple[str, str]:
            return (str(there), "bold reverse $text-error" if there < needed else "bold")

        return Content.assemble(
            f"memory-tui needs {need_width}x{need_height}; this terminal is ",
            side(width, need_width),
            "x",
            side(height, need_height),
            ".",
        )
