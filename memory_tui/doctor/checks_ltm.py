"""Checks of the long-term memories. They examine library, table, model and journal, each with the command that mends
its fault.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from memory_tui.core.formatting import plural
from memory_tui.doctor.check import Check, CheckOutcome, failed, ok, skipped, warning
from memory_tui.ltm import lance
from memory_tui.ltm.lance import TableMissing
from memory_tui.ltm.vector_space import PROBED, OtherVectors

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


def _library(_engine: Engine) -> CheckOutcome:
    lance.require()
    return ok("LanceDB is installed; it is loaded when a memory is asked for.")


def _table(engine: Engine) -> CheckOutcome:
    memories = engine.memories
    place = f"{memories.location.shown} (named by {memories.location.named_by})"
    try:
        facts = memories.table().facts()
    except TableMissing as missing:
        return warning(f"There is no table of memories in {place}.", missing.next_step)
    memories.table().page(1)
    found = f"{plural(facts.rows, 'entry')} in {place}"
    if not facts.key_declared:
        return ok(f"{found}; its id is not declared as the key, so memory-tui writes it under a lock.")
    return ok(f"{found}.")


def _model(engine: Engine) -> CheckOutcome:
    memories = engine.memories
    try:
        proof = memories.space.prove(memories.table())
    except TableMissing:
        return skipped("There is no table of memories.")
    except OtherVectors as other:
        return failed(other.message, other.next_step)
    if proof.how == "empty":
        return ok("No entry has a vector yet.")
    if proof.how == "recorded":
        return ok("The table says by which model its vectors were made, and that model answers.")
    return ok(f"{plural(proof.compared, 'entry')} of at most {PROBED} embedded again: mean cosine {proof.cosine:.3f}.")


def _journal(engine: Engine) -> CheckOutcome:
    memories = engine.memories
    if (busy := memories.journal.writer()) is not None:
        since = dt.datetime.fromtimestamp(busy.since)
        return warning(
            f"Process {busy.pid} has the memories locked since {since:%Y-%m-%d %H:%M:%S}: no other can change them.",
            f"Let it end. If it hangs: kill {busy.pid}",
        )
    changes = memories.journal.changes()
    if cut := [one for one in changes if one.state == "intent"]:
        return warning(
            f"{plural(len(cut), 'change')} of memories was cut off; the next one settles it by what the table holds.",
            "memory-tui ltm undo --list",
        )
    writes = "memory-tui may write the memories" if memories.writable else "The memories are only read"
    return ok(f"{writes}; {plural(len(changes), 'change')} in the journal.")


CHECKS: tuple[Check, ...] = (
    Check("ltm-library", "settings", "The library of the long-term memories is there", _library),
    Check("ltm-table", "settings", "The table of the long-term memories can be read", _table),
    Check("ltm-model", "settings", "The memories can be searched with this provider", _model),
    Check("ltm-journal", "settings", "The memories can be changed", _journal),
)
