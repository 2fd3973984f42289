"""Proposals are changes of notes that a view shows first, makes as one, takes back as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line
from memory_tui.tui import note_changes
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import find
from memory_tui.tui.note_changes import Make, Planned
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.changes import Change, Conflict
    from memory_tui.notes.curator import AppliedChange
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
    "convert": "Convert",
}
_STEPPED: Mapping[str, str] = {"undo": "Undone", "redo": "Redone"}
Done = Callable[["AppliedChange"], object]
"""Gets a change after it was made."""


class Proposals(Part):
    """What changes notes in a view, and the way back.

    `made` is called after a change was made, `stepped` after one was undone or redone. `show` says what a change does,
    `write` makes it; both run on a worker.
    """

    def __init__(
        self,
        view: View,
        made: Callable[[], object] = lambda: None,
        stepped: Callable[[], object] = lambda: None,
        show: Callable[[Change], Planned] = note_changes.planned,
        write: Callable[[Engine, Change], AppliedChange] = note_changes.applied,
    ) -> None:
        super().__init__(view)
        self._made, self._stepped, self._show, self._write = made, stepped, show, write
        self._changed = False
        self._tuning: Tuning | None = None
        """The knobs as they stood when notes were last changed here."""

    @property
    def is_last(self) -> bool:
        """Whether no knob was turned since a change was made here."""
        return self._changed and self._tuning is self.home.tuning

    def edited(self, path: str, line: int) -> None:
        """The last change is that of an editor now."""
        del path, line
        self._changed, self._tuning = True, self.home.tuning
        self._made()

    def propose(self, make: Make) -> None:
        """Plan what `make` asks of the curator, show it, and make it when it is wanted."""
        self.preview(lambda engine: self._show(make(engine.notes.curator)))

    @task("plan")
    async def preview(self, plan: Callable[[Engine], Planned], verb: str = "", then: Done | None = None) -> None:
        """Show what `plan` returns, and make it when it is wanted; the button says `verb`."""
        from memory_tui.tui.views.dialogs import Preview

        planned = await self.home.jobs.run(plan)

        verb = verb or _VERBS.get(planned.change.kind, "Do it")
        Preview(planned, verb).ask(self.view.app, lambda _yes: self.apply(planned.change, then))

    def apply(self, change: Change, then: Done | None = None) -> None:
        """Make `change`; what it did is said."""
        self._run(lambda engine: self._write(engine, change), then)

    def do_undo(self) -> None:
        """Take the last change back."""
        self.step("undo")

    def do_redo(self) -> None:
        """Make it again."""
        self.step("redo")

    def step(self, kind: str, number: int | None = None, since: float | None = None, then: Done | None = None) -> None:
        """Undo or redo the change `number`, or the next one.

        At once for one of `since` then, or of this session; an older one, or one with an effect on trust, is shown
        first.
        """
        begun = self.home.started if since is None else since

        def work(engine: Engine) -> AppliedChange | Planned:
            from memory_tui.notes.changes import Change

            outcome = note_changes.step_or_plan(engine, kind, number, begun)
            return self._show(outcome) if isinstance(outcome, Change) else outcome

        self._run(work, then, number)

    @task("write", exclusive=False)
    async def _run(
        self, work: Callable[[Engine], AppliedChange | Planned], then: Done | None, number: int | None = None
    ) -> None:
        """Do `work` and say what was done; where it only planned a step, or others changed the same lines, ask."""
        from memory_tui.notes.changes import Conflict

        outcome = await self.home.jobs.attempt(work, write=True)

        if isinstance(outcome, Planned):
            from memory_tui.tui.views.dialogs import Preview

            kind = outcome.change.kind
            following = partial(note_changes.step, kind=kind, number=number)
            Preview(outcome, _VERBS[kind]).ask(self.view.app, lambda _yes: self._run(following, then))
        elif isinstance(outcome, Conflict):
            self._resolve(outcome, then)
        elif isinstance(outcome, MemoryTuiError):
            raise outcome
        else:
            self._finish(outcome, then)

    def _resolve(self, conflict: Conflict, then: Done | None) -> None:
        """Have a person choose between the change and that of others."""
        from memory_tui.tui.views.notes.resolve import Resolve

        draft = f"Your change is kept as draft {conflict.draft}." if conflict.draft else ""
        Resolve(conflict.views[0], draft).ask(
            self.view.app,
            lambda data: self._run(partial(note_changes.resolved, conflict=conflict, data=data), then),
        )

    def _finish(self, done: AppliedChange, then: Done | None) -> None:
        kind, title = done.change.kind, one_line(done.change.title)
        way = "redo" if kind == "undo" else "undo"
        words = f"{_STEPPED[kind]}{title.removeprefix(kind.capitalize())}" if kind in _STEPPED else f"{title}: done"
        others = f"Others' changes of {one_line(', '.join(done.merged))} were kept too. " if done.merged else ""
        ledger = f"{one_line(done.untold)} " if done.untold else ""
        places = self.view.places()
        back = f"{key_of(way)} {way}es it." if find(way, places).where in places else ""
        self.view.show_message(f"{words}. {others}{ledger}{back}".rstrip())
        self._changed, self._tuning = True, self.home.tuning
        self.home.step_done(kind)
        if then is not None:
            then(done)
        (self._stepped if kind in _STEPPED else self._made)()
        self.home.jobs.refresh()
