"""QMD answers in the place of the index where it was chosen; the index is its fallback.

A failure of QMD is kept for every process, so that it costs one search of one process. QMD is then left alone for half
a minute, and longer after each failure.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import locks
from memory_tui.approval import Approvals
from memory_tui.backends import qmd
from memory_tui.backends.qmd import QmdAnswer, QmdClient, QmdFailure, QmdRemark
from memory_tui.cancel import Stop
from memory_tui.config import config_keys
from memory_tui.engine.status import Status
from memory_tui.events import Event, Noticed
from memory_tui.formatting import plural
from memory_tui.plan import Plan
from memory_tui.workspace.notes import Document

QMD, BUILTIN = "qmd", "builtin"
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 600.0
_MOST_QUERY = 50_000
"""Characters of the longest question that QMD gets, as of the built-in index."""


class BackendFallback(Struct, frozen=True):
    """Why the built-in index answers in the place of QMD, since when, and when QMD is tried again (epoch seconds).

    `of` is the command and mode that failed; what was set otherwise since is tried at once.
    """

    reason: str
    next_step: str
    since: float
    retry_at: float
    pause: float
    of: str = ""

    @property
    def sentence(self) -> str:
        """Return that the built-in index answered, why, and what mends it, as one line."""
        return f"The built-in index answered: {self.reason} {self.next_step}".strip()

    def as_dict(self) -> dict[str, Any]:
        """Return the documented shape, with what this product adds."""
        why = {"reason": self.reason, "nextStep": self.next_step}
        return {"from": QMD, "to": BUILTIN, **why, "since": self.since, "retryAt": self.retry_at or None}


class Backend:
    """The choice of one engine; every method may be called from any thread."""

    def __init__(self, plan: Plan, approvals: Approvals, emit: Callable[[Event], None]) -> None:
        self._plan, self._approvals, self._emit = plan, approvals, emit
        self.is_qmd = plan.backend == QMD
        """Whether QMD was chosen, whoever answers now."""
        self._stop = Stop()

    @cached_property
    def client(self) -> QmdClient:
        """Return QMD, as configured."""
        return QmdClient(self._plan, self._approvals)

    def refusal(self, session_key: str) -> QmdAnswer | None:
        """Return the answer without hits for a chat that `memory.qmd.scope` denies, whoever would answer; else None."""
        key = f"{config_keys.QMD}scope"
        rule = qmd.denial(self._plan.backend_value(key), session_key) if self.is_qmd else ""
        if not rule:
            return None
        # A scope that was set on the command line stands in no file; else the last place is the one that counts.
        entry = None if key in self._plan.backend_values else self._plan.config.entries.get(key)
        place = entry.places[-1] if entry is not None else key
        sentence = f"{rule} of {place} denies this chat the notes. Ask in a chat that it allows."
        return QmdAnswer(self.client.options.mode, empty=QmdRemark("out-of-scope", sentence))

    def ask(self, query: str, most: int | None = None, source: str = "", stop: Stop | None = None) -> QmdAnswer | None:
        """Return QMD's answer; None where the built-in index has to answer. Raises Cancelled.

        That is where QMD was not chosen, has failed, or cannot answer such a question, as one about transcripts.
        """
        if not self.is_qmd or source == "sessions" or not query.strip() or len(query) > _MOST_QUERY:
            return None
        before = self.fallback()
        if before is not None and time.time() < before.retry_at:
            return None
        # Ends with the caller's `stop`, and when the engine is closed.
        both = Stop(self._stop, *filter(None, [stop]))
        try:
            self._bring_up_to_date(both)
            limit = self._plan.settings.whole("query.maxResults") if most is None else most
            answer = self.client.ask(query, limit, both)
        except QmdFailure as failure:
            self._failed(failure, before)
            return None
        if before is not None:
            self.recovered()
        return answer

    def _bring_up_to_date(self, stop: Stop) -> None:
        """Have QMD read the files that changed, unless that was done just now, or is left to a person.

        Raises QmdFailure, Cancelled.
        """
        client = self.client
        # An interval of 0 leaves updates to a person.
        never = client.options.values["update.interval"] in ("0", 0)
        young = time.time() - client.updated < client.options.seconds("update.debounceMs")
        if young or never or not client.place.owned or locks.living(client.lock) is not None:
            return
        if not client.updated or client.coverage().behind:
            # The vectors may take minutes, which a question does not wait for.
            qmd.update(client, stop, vectors=False)

    def document(self, path: str) -> Document | None:
        """Return a file outside the workspace that QMD's hits call `qmd/collection/path`; None for every other path.

        Raises PathRefused, Unreadable.
        """
        return self.client.document(path) if self.is_qmd and path.startswith("qmd/") else None

    # --- failures ---

    def fallback(self) -> BackendFallback | None:
        """Return why the built-in index answers in the place of QMD, as any process found; None where QMD does."""
        try:
            failed = msgspec.convert(self.client.place.remembered("fallback"), BackendFallback)
        except msgspec.ValidationError:
            # Nothing is remembered, so QMD has not failed.
            return None
        return failed if failed.of == self._of else None

    @property
    def _of(self) -> str:
        """Return what a failure is of: the mode and command that were asked."""
        return f"{self.client.options.mode} {self.client.options.values['command']}"

    def _failed(self, failure: QmdFailure, before: BackendFallback | None) -> None:
        """Remember for every process that QMD failed, as it did `before` perhaps, and tell a reason that is new."""
        now = time.time()
        pause = min(_LONGEST_PAUSE, before.pause * 2) if before else _FIRST_PAUSE
        since = before.since if before else now
        failed = BackendFallback(failure.message, failure.next_step, since, now + pause, pause, self._of)
        self.client.place.remember("fallback", msgspec.to_builtins(failed))
        if before is None or before.reason != failed.reason:
            again = dt.datetime.fromtimestamp(failed.retry_at)
            text = f"QMD failed: {failure.message} The built-in index answers until {again:%H:%M:%S}."
            self._emit(Noticed(now, text))

    def recovered(self) -> None:
        """Ask QMD again from now on, in every process: it is well, or was mended."""
        self.client.place.remember("fallback", None)

    # --- state ---

    def described(self, status: Status) -> Status:
        """Return `status` with who answers now; looks at QMD's index and the files, starts no search."""
        if not self.is_qmd:
            chosen = self._plan.backend_origin != "default"
            return replace(status, backend_state=f"{BUILTIN} (chosen)" if chosen else BUILTIN)
        failed = self.fallback()
        custom: dict[str, float | None] = {"collections": 0, "lastUpdateAt": None}
        sentence = QMD
        try:
            ready = self.client.ready(self._stop)
            custom = {"collections": len(ready.collections), "lastUpdateAt": self.client.updated or None}
            if behind := ready.coverage.behind:
                sentence = f"{QMD}, behind ({plural(behind, 'file')} changed)"
        except QmdFailure as failure:
            # Met by this look alone and remembered by nobody: no time is set for another try.
            failed = failed or BackendFallback(failure.message, failure.next_step, time.time(), retry_at=0.0, pause=0.0)
        if failed is None:
            return replace(status, backend=QMD, backend_state=sentence, custom={QMD: custom})
        when = f", again at {dt.datetime.fromtimestamp(failed.retry_at):%H:%M}" if failed.retry_at else ""
        return replace(
            status,
            backend=BUILTIN,
            backend_state=f"{BUILTIN} because: {failed.reason.rstrip('.')}{when}",
            fallback=failed.as_dict(),
            custom={QMD: custom, "fallback": {"disabled": True, "reason": failed.reason}},
        )

    def close(self) -> None:
        """End QMD's processes."""
        self._stop.set()
