"""The trust view lists what OpenClaw's ledger says of each note; one is repaired after its whole text was read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.dialogs import Confirm, LineDialog
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.file_tree import TRUST
from memory_tui.tui.widgets.rowlist import Line, RowList, Rows, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.openclaw.trust import TrustReport

APPROVAL = ("approval",)
"""The key of the row about the approval; those of notes are their paths."""
_NONE = "OpenClaw keeps no ledger of these notes. It does from 2026.8 on, in its state folder."
_WORST = ("untrusted", "edited", "ignored", "unknown", "agent", "unrecorded")
_EDITS = {
    True: "Edits made here update the ledger's hash, so that the notes stay the "
    f"agent's. {key_of('remove')} withdraws that.",
    False: "The ledger is only read: an edit of an agent's note makes it untrusted at the agent's next write. "
    "enter approves that edits made here update its hash.",
}


class TrustView(View):
    """The approval first, then a note a row, those that are not trusted first."""

    PLACE = "trust"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing: Listing[TrustReport | str] = Listing(
            self,
            title="Trust",
            waiting="Reading OpenClaw's ledger ...",
            gather=lambda engine: engine.notes.trust() or _NONE,
            lines=_lines,
            summary=lambda reply: "" if isinstance(reply, str) else plural(len(reply.files), "note"),
        )
        self.parts = (self.listing,)

    def on_screen_resume(self) -> None:
        """In front again: a note may have been repaired."""
        if self.listing.found is not None:
            self.listing.do_again()

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        """Approve, or read the note under the cursor to repair it."""
        reply, key = self.listing.found, self.listing.rows.key
        if reply is None or isinstance(reply, str):
            return
        if key == APPROVAL:
            self._ask(approved=reply.approved)
            return
        file = next((each for each in reply.files if each.path == key), None)
        if file is None:
            self.show_message("There is no note under the cursor.")
        elif file.state not in ("untrusted", "edited"):
            self.show_message(f"{one_line(file.path)} needs no repair: {file.words}.")
        else:
            self.app.push_screen(RepairView(file.path, file.words))

    def _ask(self, *, approved: bool) -> None:
        if approved:
            self.show_message(f"Edits made here update the ledger already. {key_of('remove')} withdraws that.")
            return
        if (facts := self.home.facts) is not None and facts.unwritable:
            self.show_message(facts.unwritable)
            return

        words = "memory-tui then writes OpenClaw's ledger at each edit of a note that is the agent's, and nothing else."
        Confirm("Let edits made here update OpenClaw's ledger?", words, "Approve").ask(
            self.app, lambda _yes: self._approve(lambda trust: trust.approve("trust view"))
        )

    def do_revoke(self) -> None:
        """Withdraw the approval."""
        self._approve(lambda trust: trust.withdraw())

    @task("write", exclusive=False)
    async def _approve(self, change: Callable[..., object]) -> None:
        def work(engine: Engine) -> None:
            trust = engine.notes.curator.trust
            if trust is None:
                raise EditRefused(_NONE, "Nothing was changed.")
            change(trust)

        await self.home.jobs.write(work)
        self.listing.do_again()
        self.home.jobs.refresh()


def _lines(found: TrustReport | str, width: int) -> list[Line]:
    if isinstance(found, str):
        return text(found, width, "muted")
    written = text(f"Ledger: {one_line(found.ledger)}" if found.ledger else _NONE, width, "muted")
    for sentence in filter(None, (found.problem, found.next_step, *found.remarks)):
        written += text(one_line(sentence), width, "warn")
    if found.ledger and not found.problem:
        written += _row(_EDITS[found.approved], width, "good" if found.approved else "warn", APPROVAL)
    for file in sorted(found.files, key=lambda file: (_WORST.index(file.state), file.path)):
        letter, style = TRUST[file.state]
        written += _row(f"{letter} {one_line(file.path)}: {file.words}", width, style, file.path)
    return written


def _row(words: str, width: int, style: str, key: Hashable) -> list[Line]:
    """`words` as lines of which the first is about `key`."""
    first, *rest = text(words, width, style)
    return [(first[0], key), *rest]


class RepairView(View):
    """The whole text of one note; enter asks for its name."""

    PLACE = "repair"

    def __init__(self, path: str, words: str) -> None:
        super().__init__()
        self._path, self._words = path, words
        self._seen: bytes | None = None
        self.rows = Rows(id="whole", places=("list",))

    def compose_view(self) -> Iterable[Widget]:
        """The text alone."""
        yield self.rows

    def on_mount(self) -> None:
        """Read the note."""
        super().on_mount()
        self._read()

    @task("page")
    async def _read(self) -> None:
        self._seen = await self.home.jobs.run(lambda engine: engine.notes.curator.read(self._path))
        lines = [safe(line) for line in (self._seen or b"").decode("utf-8", "replace").split("\n")]

        def write(width: int) -> list[Line]:
            written = [
                *text(f"{self._words[0].upper()}{self._words[1:]}.", width, "warn"),
                *text("Everything below goes into the agent's prompt again: read it, then press enter.", width, "head"),
            ]
            for number, line in enumerate(lines, 1):
                written += _row(line or " ", width, "", number)
            return written

        self.rows.show(write, f"Trust {one_line(self._path)} again?", plural(len(lines), "line"))

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        """Ask for the name, and repair."""
        if self._seen is None:
            return
        if (facts := self.home.facts) is not None and facts.unwritable:
            self.show_message(facts.unwritable)
            return

        def typed(name: str | None) -> None:
            if name == self._path:
                self._repair()
            elif name:
                self.show_message(f"Nothing was changed: the name is {one_line(self._path)}.")

        explained = f"Its whole text is on screen. To trust it, type its name: {one_line(self._path)}"
        self.app.push_screen(LineDialog("Trust this note again", explained, "Trust"), typed)

    @task("write", exclusive=False)
    async def _repair(self) -> None:
        seen, path = self._seen or b"", self._path
        await self.home.jobs.write(lambda engine: engine.notes.curator.repair(path, seen))
        self.app.pop_screen()
        self.home.jobs.refresh()
        self.home.show_message(f"{one_line(path)} is trusted again (agent). {key_of('undo')} undoes it.")

    def back(self) -> bool:
        """Nothing is changed."""
        self.app.pop_screen()
        return True
