"""The terminal app: views over one engine, on Textual's own parts."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_tui.tui import changes as changes
    from memory_tui.tui import dialogs as dialogs
    from memory_tui.tui import editor as editor
    from memory_tui.tui import help as help
    from memory_tui.tui import note_facts as note_facts
    from memory_tui.tui import palette as palette
    from memory_tui.tui import tour as tour
else:

    def __getattr__(name: str) -> object:
        """Import a module when it is first used, as `tui.NAME`, because the first frame needs few of them."""
        if name[0] == "_":
            raise AttributeError(name)
        return import_module(f"{__name__}.{name}")
