"""Decide who answers: QMD where it was chosen, else the built-in index, which is QMD's fallback.

A failure is kept for every process, so that it costs one search of one process, and the next ones nothing. QMD is
then left alone for half a minute, and longer after each failure, until a probe outside any search succeeds.
"""

from __future__ import annotations

import datetime as dt
import threading
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
from memory_tui.backends.qmd import QmdAnswer, QmdClient, QmdFailure
from memory_tui.cancel import Stop
from memory_tui.engine.status import Status
from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.events import BackendChanged, Event, Noticed
from memory_tui.formatting import plural
from memory_tui.plan import Plan
from memory_tui.workspace.notes import Document

QMD, BUILTIN = "qmd", "builtin"
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 600.0
_BUSY_SECONDS, _POLL_SECONDS, _GOODBYE_SECONDS = 0.5, 0.05, 0.5
"""How long a search waits for an update that runs, how often it looks, how long an end waits."""
_TICK_SECONDS = 1.0
_PROBE = "memory"
"""What QMD is asked to see whether it is well again."""


class BackendFallback(Struct, frozen=True):
    """Why the built-in index answers in the place of QMD, since when, and when QMD is tried again (epoch seconds).

    `of` is the command and mode that failed; what was set otherwise since is tried at once.
    """

    kind: str
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
        return {
            "from": QMD,
            "to": BUILTIN,
            "reason": self.reason,
            "nextStep": self.next_step,
            "since": self.since,
            "retryAt": self.retry_at or None,
        }


class Backend:
    """The choice of one engine; every method may be called from any thread."""

    def __init__(self, plan: Plan, approvals: Approvals, emit: Callable[[Event], None]) -> None:
        self._plan, self._approvals, self._emit = plan, approvals, emit
        self._chosen = plan.backend
        self._stop, self._lock = Stop(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._resident = self._booting = self._changed = False

    @property
    def is_qmd(self) -> bool:
        """Tell whether QMD was chosen, whoever answers now."""
        return self._chosen == QMD

    @cached_property
    def client(self) -> QmdClient:
        """Return QMD, as configured."""
        return QmdClient(self._plan, self._approvals)

    def choose(self, name: str) -> None:
        """Let `name` answer from now on."""
        self._chosen = name
        if self._resident:
            self.start()

    # --- asking ---

    def ask(
        self, query: str, most: int | None = None, session_key: str = "", source: str = "", stop: Stop | None = None
    ) -> QmdAnswer | None:
        """Return QMD's answer; None where the built-in index answers. Raises QueryError, Cancelled."""
        if not self.is_qmd:
            return None

        failed = self.fallback()
        if failed is not None:
            if not self._resident and time.time() >= failed.retry_at:
                # Beside an answer of a process that ends soon, which waits for it half a second at most.
                self._launch(self.probe)
            return None
        both = Stop(self._stop, *filter(None, [stop]))
        try:
            self.settle(both)
            limit = self._plan.settings.whole("query.maxResults") if most is None else most
            return self.client.ask(query, limit, session_key, source, both)
        except QmdFailure as failure:
            self._failed(failure)
            return None

    def why(self, query: str, path: str, line: int) -> str:
        """Return what can be known of a line (1-based; 0: any) in QMD's answer; empty where QMD does not answer.

        Raises QmdFailure, QueryError, Cancelled.
        """
        answer = self.ask(query)
        return self.client.why(answer, path, line, self._stop) if answer is not None else ""

    def settle(self, stop: Stop) -> None:
        """Wait a moment for an update that runs; make the index where nobody ever did. Raises QmdFailure, Cancelled."""
        client = self.client
        if self._thread is None and not client.place.index.exists() and not qmd.state(client)["updated"]:
            self._notice("QMD's index is made for the first time.")
            qmd.update(client, stop)
            return
        waits = self._booting and client.options.values["update.waitForBootSync"]
        end = time.monotonic() + (client.options.seconds("update.updateTimeoutMs") if waits else _BUSY_SECONDS)
        lock = client.place.folder / "upkeep"
        while time.monotonic() < end and (locks.living(lock) is not None or (waits and self._booting)):
            if stop.wait(_POLL_SECONDS):
                raise Cancelled

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
            # Nobody failed, as far as anybody knows.
            return None
        return failed if failed.of == self._of else None

    @property
    def _of(self) -> str:
        return f"{self.client.options.mode} {self.client.options.values['command']}"

    def _failed(self, failure: QmdFailure) -> BackendFallback:
        before, now = self.fallback(), time.time()
        pause = min(_LONGEST_PAUSE, before.pause * 2) if before else _FIRST_PAUSE
        since = before.since if before else now
        failed = BackendFallback(failure.kind, failure.message, failure.next_step, since, now + pause, pause, self._of)
        self.client.place.remember("fallback", msgspec.to_builtins(failed))
        if before is None or before.reason != failed.reason:
            again = dt.datetime.fromtimestamp(failed.retry_at)
            self._notice(f"QMD failed: {failure.message} The built-in index answers until {again:%H:%M:%S}.")
        return failed

    def recovered(self) -> None:
        """Ask QMD again from now on, in every process: it is well, or was mended."""
        if self.client.place.remembered("fallback"):
            self.client.place.remember("fallback", None)
            self._emit(BackendChanged(time.time(), "QMD answers again."))

    def probe(self) -> BackendFallback | None:
        """Ask QMD something that nobody waits for; why it is still not well, None where it is. Raises Cancelled."""
        try:
            self.client.ask(_PROBE, 1, stop=self._stop)
        except QmdFailure as failure:
            return self._failed(failure)
        self.recovered()
        return None

    # --- state ---

    def described(self, status: Status) -> Status:
        """Return `status` with who answers now; looks at QMD's index and the files, starts no search."""
        if not self.is_qmd:
            origin = self._plan.backend_origin if self._chosen == self._plan.backend else "the palette"
            return replace(status, backend_state=BUILTIN if origin == "default" else f"{BUILTIN} (chosen)")

        failed = self.fallback()
        custom: dict[str, float | None] = {"collections": 0, "lastUpdateAt": None}
        sentence = QMD
        try:
            ready = self.client.ready(self._stop)
            custom = {"collections": len(ready.sources), "lastUpdateAt": ready.updated or None}
            if behind := len(ready.coverage.behind):
                sentence = f"{QMD}, behind ({plural(behind, 'file')} changed)"
        except QmdFailure as failure:
            failed = failed or BackendFallback(failure.kind, failure.message, failure.next_step, time.time(), 0.0, 0.0)
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

    # --- in the background ---

    def start(self) -> None:
        """Keep QMD up to date, and see when it is well again, for as long as this process runs."""
        self._resident = True
        if self.is_qmd and self._thread is None:
            self._booting = bool(self.client.options.values["update.onBoot"])
            self._launch(self._work)

    def notes_changed(self) -> None:
        """Bring QMD up to date soon, because notes changed."""
        self._changed = True

    def _launch(self, work: Callable[[], object]) -> None:
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._guarded, args=(work,), name="qmd", daemon=True)
                self._thread.start()

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Cancelled:
            return
        except MemoryTuiError as error:
            self._notice(f"{error.message} {error.next_step}".strip())

    def _work(self) -> None:
        options, startup = self.client.options, str(self.client.options.values["update.startup"] or "")
        if self._booting and startup != "off":
            usual = 120_000 if startup == "delayed" else 0
            if self._stop.wait(options.seconds("update.startupDelayMs", usual)):
                return
            self._update(boot=True)
        self._booting = False
        while not self._stop.wait(_TICK_SECONDS):
            if self.is_qmd:
                self._update()
                failed = self.fallback()
                if failed is not None and time.time() >= failed.retry_at:
                    self.probe()

    def _update(self, *, boot: bool = False) -> None:

        client, changed = self.client, self._changed
        if not qmd.due(client, soon=boot or changed):
            return
        self._changed = False
        try:
            qmd.update(client, self._stop, boot=boot)
            if changed and not self._stop.is_set():
                self._emit(BackendChanged(time.time(), "QMD was brought up to date."))
            if client.options.mode != "search":
                qmd.embed(client, self._stop, force=False)
            failed = self.fallback()
            if failed is not None and failed.kind in ("index", "models", "approval"):
                self.probe()
        except Cancelled:
            raise
        except MemoryTuiError as failure:
            self._notice(f"QMD was not brought up to date: {failure.message} {failure.next_step}".strip())

    def _notice(self, text: str) -> None:
        if not self._stop.is_set():
            self._emit(Noticed(time.time(), text))

    def close(self) -> None:
        """End everything, QMD's processes too; a probe that is under way has half a second."""
        thread = self._thread
        if thread is not None and not self._resident:
            thread.join(_GOODBYE_SECONDS)
        self._stop.set()
        if thread is not None:
            thread.join(_GOODBYE_SECONDS)
