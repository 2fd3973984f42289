"""What unrelated queries reach in one workspace, remembered for the levels of answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_tui.core import state_db
from memory_tui.core.errors import StateUnavailable
from memory_tui.search.answer_level import WEIGHTS, UnrelatedEvidence, is_cjk

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.explain.noise import Probes

_UNRELATED = state_db.Table("unrelated_evidence")
_KEYS = {False: "words", True: "pairs"}


class UnrelatedMemory:
    """What unrelated questions reach in one workspace, for the levels of answers; for any number of threads.

    It is kept in the state database for each script of questions, with the index and the generation that it was
    measured at, and serves until the index is made anew or measured again: a note more or less hardly moves it.
    """

    def __init__(self, workspace: Path, *, writes: bool = True, path: Path | None = None) -> None:
        self._path = path or state_db.default_path()
        self._records = _UNRELATED.of(os.path.realpath(workspace), path=self._path)
        self._writes = writes
        self._read: tuple[int, Mapping[str, Any]] = (-1, {})
        self._here: dict[tuple[str, str], UnrelatedEvidence] = {}

    def of(self, query: str, uuid: str) -> UnrelatedEvidence | None:
        """What was measured for the script of `query` in the index `uuid`; None where nothing was."""
        key = _KEYS[is_cjk(query)]
        if (here := self._here.get((uuid, key))) is not None:
            return here
        try:
            changed = self._path.stat().st_mtime_ns
            if self._read[0] != changed:
                self._read = changed, self._records.read()
        except (OSError, StateUnavailable):
            return None
        found = self._read[1].get(key)
        # Sums of other weights say nothing of these.
        if not isinstance(found, dict) or found.get("uuid") != uuid or found.get("weights") != list(WEIGHTS):
            return None
        try:
            return UnrelatedEvidence(float(found["mean"]), int(found["questions"]), int(found["generation"]))
        except (KeyError, TypeError, ValueError):
            return None

    def keep(self, probes: Probes, settings: Settings) -> None:
        """Keep what the unrelated questions of `probes` reach; nothing where no second stage looked into chunks."""
        from memory_tui.explain.noise import unrelated_evidence

        found = unrelated_evidence(probes, settings)
        if found is None:
            return
        first = probes.nonsense[0].evidence
        key = _KEYS[is_cjk(first.query)]
        self._here[first.uuid, key] = found
        if self._writes:
            # Without it, other processes go by the usual values, which each level says.
            with suppress(StateUnavailable):
                self._records.put(key, {**asdict(found), "uuid": first.uuid, "weights": WEIGHTS})
