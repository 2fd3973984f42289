"""Checks of QMD and of the long-term memories, each with the command that mends its fault."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from memory_tui.core.formatting import plural
from memory_tui.doctor.check import Check, CheckOutcome, failed, ok, skipped, warning
from memory_tui.ltm import lance
from memory_tui.ltm.lance import TableMissing
from memory_tui.ltm.vector_space import PROBED, OtherVectors
from memory_tui.qmd import index, models
from memory_tui.qmd.folder import QmdFailure

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


def _program(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    found = client.found()
    if not client.approved(found):
        return failed(
            f"{client.options.named_by} asks for QMD, and you have not agreed to run it: {found.line}",
            "Run memory-tui qmd approve.",
        )
    return ok(f"{found.line}, {client.startable().version}.")


def _index(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    known = index.read(client.place.index)
    lacking = [
        one.name for one in client.wanted if known.serving(one) is None and one.name != _ALT + client.options.agent
    ]
    if lacking:
        return failed(f"QMD has no collection for {', '.join(lacking)}.", "Run memory-tui qmd update.")
    return ok(f"{plural(known.documents, 'document')} in {plural(len(known.collections), 'collection')}.")


_ALT = "memory-alt-"
"""How the collection of memory.md begins, which few workspaces have."""


def _files(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    known = index.read(client.place.index)
    seen = index.coverage(known, client.wanted, client.place.upkeep().updated)
    if not seen.behind:
        return ok(f"QMD's index has {plural(seen.files, 'file')} as they are on disk.")
    first = (*seen.missing, *seen.ghosts, *seen.changed)[:3]
    return warning(
        f"{plural(seen.behind, 'file')} changed since QMD's last update, for instance {', '.join(first)}.",
        "Run memory-tui qmd update.",
    )


def _models(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    if not client.options.needs_vectors:
        return skipped("memory.qmd.searchMode is search, which needs no model.")
    lacking = [one.problem for one in models.models(client.place).values() if not one.ready]
    if lacking:
        return warning(f"{'; '.join(lacking)}.", "Let QMD fetch them: qmd pull.")
    return ok("Every model is on disk.")


def _answers(engine: Engine) -> CheckOutcome:
    before = engine.backend.fallback()
    try:
        engine.backend.client.ask("memory", 1)
    except QmdFailure as failure:
        return failed(failure.message, failure.next_step)
    if before is not None:
        return warning(f"QMD answers, but searches still pass it over: {before.reason}", "Run memory-tui qmd probe.")
    return ok("A question was asked and answered.")


QMD_CHECKS: tuple[Check, ...] = (
    Check("qmd-program", "settings", "QMD is there, agreed to, and of a version that works", _program),
    Check("qmd-index", "settings", "QMD has an index with every collection", _index),
    Check("qmd-files", "settings", "QMD's index has the notes as they are on disk", _files),
    Check("qmd-models", "settings", "The models of QMD's search mode are on disk", _models),
    Check("qmd-answers", "settings", "QMD answers", _answers),
)


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


LTM_CHECKS: tuple[Check, ...] = (
    Check("ltm-library", "settings", "The library of the long-term memories is there", _library),
    Check("ltm-table", "settings", "The table of the long-term memories can be read", _table),
    Check("ltm-model", "settings", "The memories can be searched with this provider", _model),
    Check("ltm-journal", "settings", "The memories can be changed", _journal),
)
