"""The views that are opened over any other one, and left with esc."""

from __future__ import annotations

from textual.app import App


class Doors(App[int]):
    """Their `do_` methods; each view is loaded when it is first wanted."""

    def do_doctor(self) -> None:
        """Examine everything."""
        from memory_tui.tui.screens.doctor import DoctorView

        self.push_screen(DoctorView())

    def do_supply(self) -> None:
        """Who makes the vectors."""
        from memory_tui.tui.screens.supply import SupplyView

        self.push_screen(SupplyView())

    def do_storage(self) -> None:
        """The index file."""
        from memory_tui.tui.screens.storage import StorageView

        self.push_screen(StorageView())

    def do_sessions(self) -> None:
        """Sessions and their flush."""
        from memory_tui.tui.screens.sessions import SessionsView

        self.push_screen(SessionsView())

    def do_recalls(self) -> None:
        """What agents asked."""
        from memory_tui.tui.screens.recalls import RecallsView

        self.push_screen(RecallsView())

    def do_compare(self) -> None:
        """OpenClaw's own index against the notes."""
        from memory_tui.tui.screens.compare import CompareView

        self.push_screen(CompareView())
