"""What worker threads do for the inbox: look, work out what an action would change, decide, and take it back."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_tui.tui import planning
from memory_tui.tui.bridge import Tell
from memory_tui.tui.screens.preview import Planned
from memory_tui.tui.tasks import REST, Progress

if TYPE_CHECKING:
    from memory_tui.curate.curator import Done
    from memory_tui.curate.record import Change
    from memory_tui.curate.suggestion import Action, Suggestion
    from memory_tui.engine import Engine

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Looked:
    """Everything that was found, until when (epoch seconds) some of it is put off by id, and the seconds it took."""

    found: tuple[Suggestion, ...] = ()
    hidden: Mapping[str, float] | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """That nobody is asked about `suggestion` any more before `until` (infinite: ever), decided at `at`."""

    suggestion: Suggestion
    until: float
    at: float


def look(engine: Engine) -> Callable[[Tell], Looked]:
    """Looks through the notes and tells how far it is; ends when nobody wants it any more."""

    def run(tell: Tell) -> Looked:
        begun = time.monotonic()

        def step(title: str, done: int, total: int) -> None:
            tell(Progress(f"looking for {title}", done, total) if title else None)

        def stopped() -> bool:
            tell(None)
            return False

        # A hundred thousand lines live until the look ends; to look through them for garbage would stop the screen.
        gc.disable()
        try:
            found = engine.inbox(step, stopped, every=True)
        finally:
            gc.enable()
        return Looked(found, engine.decisions.hidden(found, engine.now()), time.monotonic() - begun)

    return run


def rested(engine: Engine, one: Suggestion, action: Action) -> Callable[[Tell], Planned]:
    """What `proposed` gives, for a cursor that rests on a suggestion."""

    def run(tell: Tell) -> Planned:
        time.sleep(REST)
        tell(None)
        return proposed(engine, one, action)

    return run


def proposed(engine: Engine, one: Suggestion, action: Action) -> Planned:
    """What `action` would change, secrets masked. Raises EditRefused where the notes are not what was looked at."""
    from memory_tui.curate import inbox

    return _masked(inbox.change(one, action, engine.curator.plan), _warning(one))


def _warning(one: Suggestion) -> tuple[str, ...]:
    from memory_tui.curate.journal import KEEP_DAYS

    return (
        ()
        if one.kind != "secret"
        else (
            f"The journal keeps the text for {KEEP_DAYS} days, so that u can bring it back. What was once in a note "
            "may "
            "have been read: change the password or key as well.",
        )
    )


def _masked(change: Change, effect: tuple[str, ...] = ()) -> Planned:
    from memory_tui.curate import masked

    return Planned(change, masked.lines(change), effect)


def applied(engine: Engine, change: Change) -> Done:
    """Make `change`. Raises EditRefused where somebody changed the same lines meanwhile, and keeps no draft of it."""
    from memory_tui.curate.record import Conflict
    from memory_tui.errors import EditRefused

    try:
        return engine.curator.apply(change)
    except Conflict as conflict:
        # A draft is for what somebody wrote; this was only proposed, and will be again.
        if conflict.draft:
            engine.curator.forget_draft(conflict.draft)
        raise EditRefused(conflict.message, "It is looked at again.") from conflict


def decided(engine: Engine, one: Suggestion, days: float) -> Decision:
    """Put `one` off for `days`, for good where they are infinite, or bring it back where they are 0."""
    until = engine.now() + days * DAY_SECONDS
    if not days:
        engine.decisions.reopen(one.id)
    elif until == float("inf"):
        engine.decisions.keep(one)
    else:
        engine.decisions.snooze(one, until)
    return Decision(one, until if days else 0.0, time.time())


def taken_back(engine: Engine, since: float, last: Decision | None, before: float) -> Done | Planned | Decision:
    """Take back what was done last: the decision `last`, before which it was put off until `before`, or a change.

    A change that was made before `since` is only planned, so that nobody is surprised by it. Raises EditRefused.
    """
    entries = engine.curator.undoable()
    if last is not None and (not entries or last.at >= entries[0].at):
        if before == float("inf"):
            engine.decisions.keep(last.suggestion)
        elif before:
            engine.decisions.snooze(last.suggestion, before)
        else:
            engine.decisions.reopen(last.suggestion.id)
        return replace(last, until=before)
    return stepped(engine, "undo", since)


def stepped(engine: Engine, kind: str, since: float) -> Done | Planned:
    """Take the last change back ("undo") or make it again ("redo"); one made before `since` is only planned."""
    if planning.begun_since(engine, kind, since):
        return planning.step(engine, kind)
    return _masked(planning.stepped(engine, kind).change)
