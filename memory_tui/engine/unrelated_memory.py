"""What unrelated queries reach in one workspace, remembered for the levels of answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui import state_db
from memory_tui.core import profiles
from memory_tui.core.errors import StateUnavailable
from memory_tui.search.level import USUAL, WEIGHTS, ByKind, Kind, UnrelatedEvidence

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.search.evidence import Evidence

_UNRELATED = state_db.Table("unrelated_evidence")
_GROWN = 1.5
"""By how much the chunks grow or shrink before it is measured again; less hardly moves it."""


class UnrelatedRecords:
    """What unrelated questions reach in one workspace, for the levels of answers; for any number of threads.

    It is kept in the state database for each kind of evidence, with the index, the generation and the number of
    chunks that it was measured at. It serves until the index is made anew or measured again.
    """

    def __init__(self, workspace: Path, *, writes: bool = True, path: Path | None = None) -> None:
        self._path = path or state_db.default_path()
        self._records = _UNRELATED.of(os.path.realpath(workspace), path=self._path)
        self._writes = writes
        self._read: tuple[int, Mapping[str, Any]] = (-1, {})
        self._here: dict[tuple[str, Kind], UnrelatedEvidence] = {}

    def of(self, uuid: str) -> ByKind:
        """What was measured in the index `uuid`."""
        kinds: tuple[Kind, ...] = tuple(USUAL)
        kept = self._kept()
        found = {kind: self._here.get((uuid, kind)) or _measured(kept, kind, uuid) for kind in kinds}
        return {kind: one for kind, one in found.items() if one is not None}

    def is_due(self, uuid: str, chunks: int, settings: Settings) -> bool:
        """Whether an index of so many `chunks` should be measured: it never was, or its size is another by half.

        Never under a profile that tells no levels.
        """
        if not profiles.get(settings.word("profile")).second_stage:
            return False
        measured = [one.chunks for one in self.of(uuid).values()]
        return chunks > 0 and not any(chunks <= _GROWN * then and then <= _GROWN * chunks for then in measured)

    def _kept(self) -> Mapping[str, Any]:
        """The records of this workspace by kind; none where they cannot be read."""
        try:
            changed = self._path.stat().st_mtime_ns
            if self._read[0] != changed:
                self._read = changed, self._records.read()
        except (OSError, StateUnavailable):
            return {}
        return self._read[1]

    def measure(self, ask: Callable[[str], Evidence], settings: Settings) -> None:
        """Ask the unrelated questions, and keep what they reach. Raises what `ask` raises."""
        from memory_tui.explain.noise import ask_unrelated

        self.keep(tuple(ask_unrelated(ask)), settings)

    def keep(self, asked: Sequence[Evidence], settings: Settings) -> None:
        """Keep what the unrelated questions `asked` reach; nothing where no second stage looked into chunks."""
        from memory_tui.explain.noise import unrelated_evidence

        for kind, found in unrelated_evidence(asked, settings).items():
            uuid = asked[0].uuid
            self._here[uuid, kind] = found
            if self._writes:
                # Without it, other processes go by the usual values, which each level says.
                with suppress(StateUnavailable):
                    self._records.put(kind, {**to_builtins(found), "kind": kind, "uuid": uuid, "weights": WEIGHTS})


def _measured(kept: Mapping[str, Any], kind: Kind, uuid: str) -> UnrelatedEvidence | None:
    """What the records `kept` say of a kind of evidence in the index `uuid`; None where they do not."""
    found = kept.get(kind)
    # Sums of other weights, or of another kind of evidence, say nothing of these.
    expected = {"kind": kind, "uuid": uuid, "weights": list(WEIGHTS)}
    if not isinstance(found, dict) or not expected.items() <= found.items():
        return None
    try:
        mean, *counts = (found[name] for name in ("mean", "questions", "generation", "chunks"))
        return UnrelatedEvidence(float(mean), *map(int, counts))
    except (KeyError, TypeError, ValueError):
        return None
