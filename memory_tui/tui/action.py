"""An action has keys, a place where they work, a reason when it is not possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_SHOWN = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup"}


def shown(key: str) -> str:
    """A key as people write it."""
    return _SHOWN.get(key, key)


@dataclass(frozen=True, slots=True)
class Context:
    """What decides whether an action can be done now; the screen fills it in."""

    ready: bool = False
    read_only: bool = False
    unwritable: str = ""
    """Why notes cannot be changed, as a sentence; empty when they can."""
    can_suspend: bool = True
    absent: bool = False
    """A log that an agent looks for, and that is not there, is under the cursor."""
    note: bool = False
    """A note, or a place in one, is under the cursor."""
    answer: bool = False
    """There is a list of hits."""
    found: bool = False
    """Text was found in the note."""
    trail: bool = False
    """A link or a jump was followed."""
    undo: bool = False
    redo: bool = False
    tuned: bool = False
    written: bool = False
    """Knobs were written into the configuration, and that was not taken back."""
    ages: bool = False
    """Decay is on: age counts."""
    flips: bool = False
    """It is known what would change the verdict on the hit in the why pane."""
    syncing: bool = False
    zoomed: bool = False
    agents: bool = False
    """The configuration has more than one agent."""
    proposal: bool = False
    """A provider waits for the person's word."""
    agreed: bool = False
    """Notes may be sent to a provider elsewhere."""
    shrink: bool = False
    """So many notes vanished that they are kept until a person agrees."""
    suggestion: bool = False
    """A suggestion of the inbox is under the cursor."""
    deletes: bool = False
    """It is about lines or a note that can be deleted."""
    moves: bool = False
    """It is about something that can be merged, moved or renamed."""


Refusal = Callable[[Context], str]
"""Why an action cannot be done now, as a sentence; empty when it can."""


def always(context: Context) -> str:
    """Nothing is needed."""
    del context
    return ""


def needs_engine(context: Context) -> str:
    """The index has to be open."""
    return "" if context.ready else "The index is still being opened."


def needs_note(context: Context) -> str:
    """A note has to be under the cursor."""
    if context.note:
        return ""
    return "This log is not there yet: i begins it." if context.absent else "There is no note under the cursor."


def needs_found(context: Context) -> str:
    """Something has to be looked for in the reader."""
    return "" if context.found else "Nothing was looked for; / in the reader looks for text."


def needs_trail(context: Context) -> str:
    """A link or a jump has to have been followed."""
    return "" if context.trail else "No link was followed, so there is no way back to go."


def needs_answer(context: Context) -> str:
    """There has to be an answer."""
    return "" if context.answer else "There is no answer yet: press / and ask something."


def needs_editor(context: Context) -> str:
    """A note that may be edited, and a terminal to hand over."""
    if context.unwritable:
        return context.unwritable
    if not context.can_suspend:
        return "This terminal cannot be handed to an editor."
    return needs_note(context)


def may_write(context: Context) -> str:
    """Notes that may be changed."""
    return context.unwritable or needs_engine(context)


def may_change(context: Context) -> str:
    """A note that may be changed."""
    return context.unwritable or needs_note(context)


def may_edit(context: Context) -> str:
    """A note that may be changed, or a log that can be begun."""
    return may_write(context) if context.absent else may_change(context)


def needs_suggestion(context: Context) -> str:
    """A suggestion under the cursor."""
    return "" if context.suggestion else "There is no suggestion under the cursor."


def may_decide(context: Context) -> str:
    """A suggestion that may be decided about."""
    return context.unwritable or needs_suggestion(context)


def may_delete(context: Context) -> str:
    """A suggestion about something that can be deleted."""
    return may_decide(context) or ("" if context.deletes else "It is not about deleting: enter does what is proposed.")


def may_move(context: Context) -> str:
    """A suggestion about something that can be merged, moved or renamed."""
    return may_decide(context) or ("" if context.moves else "There is nothing to merge, move or rename here.")


def needs_step(context: Context) -> str:
    """A step that can be undone."""
    return "" if context.undo else "No knob has been turned: nothing to undo."


def needs_change(context: Context) -> str:
    """A change that is known to turn the verdict."""
    return needs_answer(context) or ("" if context.flips else "There is no change to apply: w shows what was found.")


def needs_no_decay(context: Context) -> str:
    """Decay that is off."""
    return "Decay is on already: this is what it takes." if context.ages else ""


def needs_undone(context: Context) -> str:
    """A step that was undone."""
    return "" if context.redo else "Nothing was undone."


def needs_tuned(context: Context) -> str:
    """A knob that was turned."""
    if context.tuned:
        return ""
    return f"Every knob is as {'it was written' if context.written else 'the app was opened'}."


def needs_writing(context: Context) -> str:
    """Knobs that were turned, or written before, and files that may be written."""
    return context.unwritable or ("" if context.written else needs_tuned(context))


def needs_written(context: Context) -> str:
    """Knobs that were written."""
    return "" if context.written else "Nothing was written from here, so there is nothing to take back."


def needs_hit(context: Context) -> str:
    """A hit under the cursor."""
    return needs_answer(context) or needs_note(context)


def needs_rest(context: Context) -> str:
    """No sync that runs."""
    return "A sync is running already." if context.syncing else needs_engine(context)


def needs_agents(context: Context) -> str:
    """More than one agent."""
    if not context.agents:
        return "The configuration lists no other agent."
    return needs_engine(context)


def needs_zoom(context: Context) -> str:
    """A pane that was enlarged."""
    return "" if context.zoomed else "No pane is enlarged; + enlarges this one."


def needs_shell(context: Context) -> str:
    """A terminal with job control."""
    return "" if context.can_suspend else "This terminal cannot put programs into the background."


def needs_proposal(context: Context) -> str:
    """A provider that waits for the person's word."""
    return "" if context.proposal else "No provider waits for your word."


def needs_agreement(context: Context) -> str:
    """An agreement that can be taken back."""
    return "" if context.agreed else "No provider elsewhere may get these notes, so nothing can be taken back."


def needs_shrink(context: Context) -> str:
    """Notes that vanished and are kept."""
    return "" if context.shrink else "No notes are kept back: nothing vanished at once."


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that keys do: `where` names the screen or pane it belongs to, `hint` its word in the key hints.

    `hint` is empty for keys that help alone lists. `refuse` tells why not. `priority` keys work while typing too.
    """

    id: str
    keys: tuple[str, ...]
    where: str
    help: str
    hint: str = ""
    refuse: Refusal = always
    priority: bool = False
    palette: bool = True

    @property
    def shown_keys(self) -> str:
        """The keys as people write them."""
        return " ".join(shown(key) for key in self.keys)
