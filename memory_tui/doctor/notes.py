"""Checks of the notes on disk: whether they are there, can be read, and say what day they are of."""

from __future__ import annotations

import datetime as dt
import os
import re
from typing import TYPE_CHECKING

from memory_tui.doctor.record import Check, Finding, failed, ok, skipped, warning
from memory_tui.explain.wording import plural

if TYPE_CHECKING:
    from memory_tui.engine import Engine

_DATED = re.compile(r"(?:^|/)(\d{4}-\d{2}-\d{2})(?:-[^/]*)?\.md$")


def _workspace(engine: Engine) -> Finding:
    folder = engine.workspace
    if not os.access(folder, os.R_OK | os.X_OK):
        return failed(f"{folder} cannot be read.", "Change its permissions.")
    if engine.read_only:
        return skipped(f"{folder} is only read, as asked.")
    if not os.access(folder, os.W_OK):
        return warning(f"{folder} cannot be written: notes can be searched and not edited.", "Change its permissions.")
    return ok(f"{folder} can be read and written.")


def _there(engine: Engine) -> Finding:
    rows = [row for row in engine.files() if row.state != "left out"]
    if not rows:
        return failed(
            f"There is no note in {engine.workspace}.",
            "Write MEMORY.md or memory/YYYY-MM-DD.md, or name another workspace.",
        )
    return ok(f"{plural(len(rows), 'note')}, {plural(sum(row.chunks for row in rows), 'chunk')}.")


def _curated(engine: Engine) -> Finding:
    names = [path for path in ("MEMORY.md", "memory.md") if (engine.workspace / path).exists()]
    if len(names) == 2 and not (engine.workspace / names[0]).samefile(engine.workspace / names[1]):
        return warning("There is a MEMORY.md and a memory.md; some hosts read only one of them.", "Merge them.")
    if not names:
        return warning("There is no MEMORY.md: a session starts without lasting facts.", "Promote a line with p.")
    return ok(f"{names[0]} is there.")


def _all_read(engine: Engine) -> Finding:
    status = engine.status()
    bad, left = status.freshness.failed, status.freshness.left_out
    if bad:
        return failed(
            f"{plural(len(bad), 'note')} cannot be read, for instance {bad[0].path}: {bad[0].detail}",
            "Mend or move it; memory-tui status lists them all.",
        )
    if left:
        return warning(
            f"{plural(len(left), 'path')} left out, for instance {left[0].path}: {left[0].detail}",
            "memory-tui why-file PATH tells the rule.",
        )
    return ok("Every note could be read, and nothing is left out.")


def _roots(engine: Engine) -> Finding:
    missing = [item.path for item in engine.status().freshness.left_out if "missing root" in item.detail]
    if missing:
        return warning(f"Not there: {', '.join(missing[:3])}.", "Mount it, or take it out of extraPaths or sources.")
    return ok(f"Every root is there ({1 + len(engine.plan.roots.extra)}).")


def _dates(engine: Engine) -> Finding:
    tomorrow = (dt.datetime.fromtimestamp(engine.now(), dt.UTC) + dt.timedelta(days=1)).date()
    impossible, future = [], []
    for row in engine.files():
        found = _DATED.search(row.path)
        if not found:
            continue
        try:
            day = dt.date.fromisoformat(found[1])
        except ValueError:
            impossible.append(row.path)
            continue
        if day > tomorrow:
            future.append(row.path)
    if impossible:
        return warning(f"No such day: {', '.join(impossible[:3])}. The note never ages.", "Rename it.")
    if future:
        return warning(f"Dated in the future: {', '.join(future[:3])}. It counts as new until then.", "Rename it.")
    return ok("Every date in a name is a day that was.")


CHECKS: tuple[Check, ...] = (
    Check("workspace", "notes", "The workspace can be read and written", _workspace),
    Check("notes", "notes", "There are notes", _there),
    Check("curated", "notes", "There is one MEMORY.md", _curated),
    Check("readable", "notes", "Every note can be read", _all_read),
    Check("roots", "notes", "Every root is there", _roots),
    Check("dates", "notes", "Dates in names are real", _dates),
)
