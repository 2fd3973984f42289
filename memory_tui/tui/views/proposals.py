"""Proposals are changes of notes that a view shows first, makes as one, takes back as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_changes import Make
from memory_tui.tui.views.dialogs import Planned, Preview
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.curate.changes import Change, Conflict
    from memory_tui.curate.curator import AppliedChange
    from memory_tui.tui.tuning import Tuning

_VERBS: Mapping[str, str] = {
    "promote": "Promote",
    "demote": "Move",
    "trash": "Move to trash",
    "archive": "Archive",
    "rename": "Rename",
    "undo": "Undo",
    "redo": "Redo",
    "new": "Create",
}


def also(done: AppliedChange) -> str:
    """The sentence that tells of others' changes which are in the notes too, empty without any."""
    return f"Others' changes of {one_line(', '.join(done.merged))} were kept too. " if done.merged else ""


class Proposals(Part):
    """What changes notes in a view, and the way back; `made` is called after notes changed."""

    def __init__(self, view: View, made: Callable[[], object] = lambda: None) -> None:
        super().__init__(view)
        self._heard = made
        self._under: tuple[Tuning | None] | None = None

    @property
    def is_last(self) -> bool:
        """Whether no knob was turned since a change was made here."""
        return self._under is not None and self._under[0] is self.home.tuning

    def edited(self, path: str, line: int) -> None:
        """The last change is that of an editor now."""
        del path, line
        self._under = (self.home.tuning,)
        self._heard()

    @task("plan")
    async def propose(self, make: Make) -> None:
        """Plan what `make` asks for, show it, and make it when it is wanted."""
        planned = await self.home.jobs.run(note_changes.plan_of(make))

        preview = Preview(planned, _VERBS.get(planned.change.kind, "Do it"))
        preview.ask(self.view.app, lambda _yes: self.apply(planned.change))

    @task("write", exclusive=False)
    async def apply(self, change: Change) -> None:
        """Make `change`; what it did is said."""
        self._made(await self.home.jobs.write(note_changes.applied(change)))

    def refused(self, error: MemoryTuiError) -> str:
        """Why; where others changed the same lines, a person chooses."""
        from memory_tui.curate.changes import Conflict

        if not isinstance(error, Conflict):
            return super().refused(error)
        from memory_tui.tui.views.notes.resolve import Resolve

        conflict = error

        kept = f"Your change is kept as draft {conflict.draft}." if conflict.draft else ""
        Resolve(conflict.views[0], kept).ask(self.view.app, lambda data: self._resolve(conflict, data))
        return ""

    @task("write", exclusive=False)
    async def _resolve(self, conflict: Conflict, data: bytes) -> None:
        self._made(await self.home.jobs.write(partial(note_changes.resolved, conflict=conflict, data=data)))

    def _made(self, done: AppliedChange) -> None:
        self._under = (self.home.tuning,)
        self.view.show_message(f"{one_line(done.change.title)}: done. {also(done)}{key_of('undo')} undoes it.")
        self.home.step_done(done.change.kind)
        self._heard()
        self.home.jobs.refresh()

    # --- the journal ---------------------------------------------------------------------------------------------

    def do_undo(self) -> None:
        """Take the last change back."""
        self._journal("undo")

    def do_redo(self) -> None:
        """Make it again."""
        self._journal("redo")

    @task("write", exclusive=False)
    async def _journal(self, kind: str) -> None:
        """At once for a change of this session; an older one, or one with an effect on trust, is shown first."""
        since = self.home.started

        outcome = await self.home.jobs.write(partial(note_changes.step_or_plan, kind=kind, since=since))
        if isinstance(outcome, Planned):
            Preview(outcome, kind.capitalize()).ask(self.view.app, lambda _yes: self._step(kind))
        else:
            self._stepped(kind, outcome)

    @task("write", exclusive=False)
    async def _step(self, kind: str) -> None:
        self._stepped(kind, await self.home.jobs.write(partial(note_changes.step, kind=kind)))

    def _stepped(self, kind: str, done: AppliedChange) -> None:
        way = f"{key_of('redo')} redoes it" if kind == "undo" else f"{key_of('undo')} undoes it"
        self.view.show_message(f"{note_changes.done_words(done.change)}. {also(done)}{way}.")
        self.home.step_done(kind)
        self.home.jobs.refresh()
