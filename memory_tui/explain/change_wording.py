"""Sets of changes in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_tui.core.formatting import plural
from memory_tui.core.settings import BY_KEY, Scalar, show
from memory_tui.explain.wording import ordinal, turn

if TYPE_CHECKING:
    from memory_tui.explain.counterfactuals import ChangeSet, Flip, KnobTurn, SavedEffect

WEIGHT = "query.hybrid.vectorWeight"


def turned(found: Flip | ChangeSet) -> str:
    """What is set, for a list: `results 9`, `results 9 + minScore .20`."""
    return " + ".join(turn(one.key, one.value) for one in _turns(found))


def preview(found: Flip | ChangeSet) -> str:
    """What setting it does besides, as a sentence: `results 8: 1 other hit in, 0 out; 26 saved ...`."""
    effects = _moved(len(found.comes_in), len(found.drops_out))
    return f"{turned(found)}: {'; '.join(filter(None, (effects, saved(found.saved))))}."


def _moved(comes: int, goes: int) -> str:
    if not comes and not goes:
        return "no other hit moves"
    return f"{plural(comes, 'other hit')} in, {goes:,} out"


def _turns(found: Flip | ChangeSet) -> tuple[Flip | KnobTurn, ...]:
    return (found,) if not hasattr(found, "turns") else found.turns


def change_set(found: ChangeSet) -> str:
    """A set of changes, for a list: `results 9 + minScore .20: would be recalled (9th)`."""
    return f"{turned(found)}: would be recalled ({ordinal(found.place)})"


def change_set_sentence(found: ChangeSet) -> str:
    """What a set of changes does, as a whole sentence."""
    turns = " and ".join(turn(one.key, one.value) for one in found.turns)
    also = [
        f"{verb} {plural(len(refs), 'other')}"
        for verb, refs in (("brings in", found.comes_in), ("pushes out", found.drops_out))
        if refs
    ]
    return f"Recalled as the {ordinal(found.place)} with {turns} together{'; it also ' if also else ''}" + (
        f"{' and '.join(also)}."
    )


def accepted(found: Flip | ChangeSet) -> str:
    """How far each knob may go, as a clause: `any results from 7 to 12`; empty where none may go further."""
    far = [_far(one.key, *one.accepted) for one in _turns(found) if one.accepted[0] != one.accepted[1]]
    return f"any {', '.join(far)}" if far else ""


def _far(key: str, low: Scalar, high: Scalar) -> str:
    knob = BY_KEY[key]
    name = "vector weight" if key == WEIGHT else knob.label
    return f"{name} from {show(knob, low)} to {show(knob, high)}"


def saved(effect: SavedEffect | None) -> str:
    """What a change does to saved questions, as a clause: `26 saved questions: 1 mended, 0 broken`; empty of none."""
    if effect is None:
        return ""
    return f"{plural(effect.asked, 'saved question')}: {len(effect.mended):,} mended, {len(effect.broken):,} broken"
