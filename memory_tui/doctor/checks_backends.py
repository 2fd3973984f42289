"""Checks of QMD and of the long-term memories, each with the command that mends its fault."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from memory_tui.backends import qmd_index, qmd_program, qmd_upkeep
from memory_tui.backends.lancedb import TableMissing, require_library
from memory_tui.doctor.examine import Check, CheckOutcome, failed, ok, skipped, warning
from memory_tui.formatting import plural
from memory_tui.locks import living

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


def _program(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    words = client.startable()
    return ok(f"{' '.join(words)}, {qmd_program.version(words, client.place)}.")


def _index(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    index = qmd_index.read(client.place.index)
    # Few workspaces have a memory.md.
    lacking = [item.name for item in client.specs if index.serving(item) is None and item.pattern != "memory.md"]
    if lacking:
        return failed(f"QMD has no collection for {', '.join(lacking)}.", qmd_index.UPDATE)
    return ok(f"{plural(index.documents, 'document')} in {plural(len(index.collections), 'collection')}.")


def _files(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    index = qmd_index.read(client.place.index)
    seen = qmd_index.coverage(index, client.specs, qmd_upkeep.state(client)["updated"])
    if not seen.behind:
        return ok(f"QMD's index has {plural(seen.files, 'file')} as they are on disk.")
    changed = f"{plural(len(seen.behind), 'file')} changed since QMD's last update"
    return warning(f"{changed}, for instance {', '.join(seen.behind[:3])}.", qmd_index.UPDATE)


def _models(engine: Engine) -> CheckOutcome:
    client = engine.backend.client
    if client.options.mode == "search":
        return skipped("memory.qmd.searchMode is search, which needs no model.")
    lacking = [item.problem for item in qmd_program.models(client.place).values() if item.problem]
    return warning(f"{'; '.join(lacking)}.", "Let QMD fetch them: qmd pull.") if lacking else ok("They are on disk.")


def _answers(engine: Engine) -> CheckOutcome:
    engine.backend.client.ask("memory", 1)
    if (before := engine.backend.fallback()) is not None:
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
    require_library()
    return ok("LanceDB is installed; it is loaded when a memory is asked for.")


def _table(engine: Engine) -> CheckOutcome:
    location = engine.memories.location
    try:
        count = len(engine.memories.table().entries())
    except TableMissing as missing:
        return warning(missing.message, missing.next_step)
    return ok(f"{plural(count, 'entry')} in {location.label} (named by {location.named_by}).")


def _model(engine: Engine) -> CheckOutcome:
    memories = engine.memories
    try:
        proof = memories.space.prove(memories.table())
    except TableMissing:
        return skipped("There is no table of memories.")
    if proof["how"] == "probed":
        return ok(f"{plural(proof['compared'], 'entry')} embedded again: mean cosine {proof['cosine']:.3f}.")
    return ok("The table says whose its vectors are." if proof["how"] == "recorded" else "No entry has a vector yet.")


def _writes(engine: Engine) -> CheckOutcome:
    memories = engine.memories
    if (busy := living(memories.lock_file)) is not None:
        since = dt.datetime.fromtimestamp(busy.since)
        return warning(
            f"Process {busy.pid} has the memories locked since {since:%Y-%m-%d %H:%M:%S}: no other can change them.",
            f"Let it end. If it hangs: kill {busy.pid}",
        )
    return ok("memory-tui may write the memories." if memories.writable else "The memories are only read.")


LTM_CHECKS: tuple[Check, ...] = (
    Check("ltm-library", "settings", "The library of the long-term memories is there", _library),
    Check("ltm-table", "settings", "The table of the long-term memories can be read", _table),
    Check("ltm-model", "settings", "The memories can be searched with this provider", _model),
    Check("ltm-writes", "settings", "The memories can be changed", _writes),
)
