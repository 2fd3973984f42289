"""Faults of OpenClaw that its profiles deliberately do not have, told where it would have answered otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memory_tui.search.trace import Mode, Notice

if TYPE_CHECKING:
    from memory_tui.profiles import Profile
    from memory_tui.search.evidence import Evidence

ZERO_VECTOR = "zero_vector"
"""A chunk whose vector is all zeros scores 1 there; told where vectors are compared, for every profile."""
EMPTIED = "openclaw_emptied"
"""Without a provider, its next sync replaces the index by an empty one (2026.2.17 to 2026.3.28)."""
FIRST = "openclaw_first_search"
"""Its first search of a new index does not wait for the sync that it starts (up to 2026.3)."""
NOT_COPIED = (ZERO_VECTOR, EMPTIED, FIRST)
"""Codes of the notices that only say what OpenClaw does otherwise."""


def not_copied(evidence: Evidence, mode: Mode, profile: Profile) -> Iterator[Notice]:
    """What OpenClaw itself would not have answered to this question."""
    if not profile.faults:
        return
    if mode == "keywords only":
        yield Notice(
            EMPTIED,
            f"{profile.title} would find nothing: without a provider its next sync leaves an empty "
            "index. Here the words are searched all the same.",
        )
    if evidence.first:
        yield Notice(
            FIRST,
            f"{profile.title} would find nothing yet: its first search of a new index does not wait "
            "for the notes to be indexed. Here it did.",
        )
