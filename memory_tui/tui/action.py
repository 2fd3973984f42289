"""An action is what keys do at a place. Where it is not possible it has a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from memory_tui.tui.key_meanings import MEANINGS, key_of, shown


class Context(Struct, frozen=True):
    """What decides whether an action can be done now; the screen fills it in."""

    ready: bool = False
    read_only: bool = False
    unwritable: str = ""
    """Why notes cannot be changed, as a sentence; empty when they can."""
    can_suspend: bool = True
    absent: bool = False
    """A log that an agent looks for, and that is not there, is under the cursor."""
    marked: bool = False
    """Rows are marked, so that the next step is for them and not for the one under the cursor."""
    note: bool = False
    """A note, or a place in one, is under the cursor."""
    answer: bool = False
    """There is a list of hits."""
    found: bool = False
    """Text was found in the note."""
    hit: bool = False
    """The cited lines are read as the hit of a question."""
    trail: bool = False
    """A link or a jump was followed."""
    foldable: bool = False
    """The note holds what OpenClaw's dreaming wrote."""
    undo: bool = False
    redo: bool = False
    tuned: bool = False
    written: bool = False
    """Knobs were written into the configuration, and that was not taken back."""
    flips: bool = False
    """It is known what would change the verdict on the hit in the why pane."""
    syncing: bool = False
    zoomed: bool = False
    agents: bool = False
    """The configuration has more than one agent."""
    proposal: bool = False
    """A provider waits for approval."""
    approved: bool = False
    """Notes may be sent to a provider elsewhere."""
    shrink: bool = False
    """So many notes vanished that they are kept until a person agrees."""
    suggestion: bool = False
    """A suggestion of the inbox is under the cursor."""
    deletes: bool = False
    """It is about lines or a note that can be deleted."""
    moves: bool = False
    """It is about something that can be merged, moved or renamed."""
    twin: bool = False
    """It is about two passages, of which either can go."""
    hints: Mapping[str, str] = MappingProxyType({})
    """Words of the key hints that are others now, by the action's id."""


OPENING = "The index is still being opened."
READ_ONLY = "Opened with --read-only: nothing is written but the index."

RULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "engine": ("ready", OPENING),
        "changes": ("not read_only", READ_ONLY),
        "found": ("found", f"No search text yet. Press {key_of('find')} in the reader to find text."),
        "foldable": ("foldable", "Nothing in this note can be folded: OpenClaw's dreaming wrote nothing into it."),
        "hit": ("hit", f"No hit is read here. Press {key_of('ask')} and ask, then enter on a hit."),
        "trail": ("trail", "You followed no link yet, so there is nothing to go back to."),
        "answer": ("answer", f"No answer yet. Press {key_of('ask')} and ask something."),
        "editor": ("can_suspend", "This terminal cannot be handed to an editor."),
        "shell": ("can_suspend", "This terminal cannot put programs into the background."),
        "suggestion": ("suggestion", "There is no suggestion under the cursor."),
        "deletes": ("deletes", "This suggestion deletes nothing. Press enter to apply it."),
        "moves": ("moves", "There is nothing to merge, move or rename here."),
        "twin": ("twin", "This suggestion is not about two passages of which one could go."),
        "undo": ("undo", "No knob was turned, so none is undone. Changes of notes are undone in Notes."),
        "redo": ("redo", "Nothing was undone."),
        "flips": ("flips", f"No change to apply. Press {key_of('why')} to see what was found."),
        "written": ("written", "This view has written nothing yet, so there is nothing to undo."),
        "rest": ("not syncing", "A sync is running already."),
        "agents": ("agents", "The configuration lists no other agent."),
        "zoomed": ("zoomed", f"No pane is enlarged; {key_of('zoom')} enlarges this one."),
        "proposal": ("proposal", "No provider needs your approval."),
        "approved": ("approved", "You approved no provider, so there is no approval to withdraw."),
        "shrink": ("shrink", "No notes vanished, so the index holds none to forget."),
    }
)
"""What has to hold: a flag of the context, which must be off after "not ", and the sentence where it is otherwise."""


def _note(context: Context) -> str:
    if context.note:
        return ""
    return (
        f"No log of this day yet. Press {key_of('edit')} to begin it."
        if context.absent
        else "There is no note under the cursor."
    )


def _note_or_log(context: Context) -> str:
    return refusal(("engine",), context) if context.absent else _note(context)


def _note_or_marks(context: Context) -> str:
    return "" if context.marked else _note(context)


def _tuned(context: Context) -> str:
    if context.tuned:
        return ""
    return f"Every knob is as {'it was written' if context.written else 'the app was opened'}."


_CHOSEN: Mapping[str, Callable[[Context], str]] = MappingProxyType(
    {
        "writable": lambda context: context.unwritable,
        "note": _note,
        "note or log": _note_or_log,
        "note or marks": _note_or_marks,
        "tuned": _tuned,
        "writing": lambda context: "" if context.written else _tuned(context),
    }
)
"""What asks two flags, or chooses its sentence."""


def refusal(needs: Sequence[str], context: Context) -> str:
    """The sentence of the first of `needs` that does not hold; empty when all do."""
    for need in needs:
        if need in _CHOSEN:
            sentence = _CHOSEN[need](context)
        else:
            flag, words = RULES[need]
            target = not flag.startswith("not ")
            sentence = "" if getattr(context, flag.removeprefix("not ")) is target else words
        if sentence:
            return sentence
    return ""


class Action(Struct, frozen=True):
    """One thing that keys do at `where`, a screen or pane: what their `meaning` (see key_meanings) comes to there.

    `meaning` is empty for what the palette alone offers, `hint` (its word in the key hints) for what help alone lists.
    `needs` names what has to hold, in the order in which it is asked. `priority` keys work while typing too.
    """

    id: str
    meaning: str
    where: str
    help: str
    hint: str = ""
    needs: tuple[str, ...] = ()
    priority: bool = False
    palette: bool = True
    also: str = ""
    """Other words that the palette and the help find it by."""

    def waits(self, context: Context) -> str:
        """That it waits for the index, as a sentence; empty when it does not."""
        if context.ready or "engine" not in self.needs:
            return ""
        return f"{OPENING} Then: {self.help}. {shown('escape')} takes it back."

    def refuse(self, context: Context) -> str:
        """Why it cannot be done now, as a sentence; empty when it can."""
        return refusal(self.needs, context)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its meaning."""
        return MEANINGS[self.meaning].keys if self.meaning else ()

    @property
    def shown_keys(self) -> str:
        """The keys as people write them."""
        return " ".join(shown(key) for key in self.keys)
