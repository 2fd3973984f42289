"""The curator of a plan: whose notes, by whose clock, within whose budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_tui.curate.curator import Curator
    from memory_tui.launch import Plan

_READ_ONLY = "memory-tui was started with --read-only."


def curator(plan: Plan, changed: Callable[[tuple[str, ...]], None] | None = None) -> Curator:
    """What changes the notes of `plan`; `changed` is called after each change with its paths."""
    from memory_tui.curate import budget
    from memory_tui.curate.curator import Curator

    now = plan.now
    return Curator(
        plan.roots,
        read_only=_READ_ONLY if plan.read_only else "",
        changed=changed,
        clock=time.time if now is None else lambda: now,
        hosts=budget.hosts(plan.config),
    )
