"""The backend decides who answers: QMD where it was chosen, else the built-in index, which is QMD's fallback.

A failure is written beside QMD's index, so that it costs one search of one process, and the next ones nothing. QMD is
then left alone for half a minute, and longer after each failure, until a probe outside any search succeeds.
"""

from __future__ import annotations

import datetime as dt
import json
import queue
import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, MemoryTuiError
from memory_tui.core.formatting import plural

if TYPE_CHECKING:
    from memory_tui.approval import Approvals
    from memory_tui.core.events import Event
    from memory_tui.engine.status import Status
    from memory_tui.plan import Plan
    from memory_tui.qmd.client import QmdAnswer, QmdClient
    from memory_tui.qmd.folder import QmdFailure
    from memory_tui.workspace.notes import Document

QMD, BUILTIN = "qmd", "builtin"
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 600.0
_BUSY_SECONDS = 0.5
"""How long a search waits for an update that runs."""
_POLL_SECONDS = 0.05
_GOODBYE_SECONDS = 0.5
_PROBE = "memory"
"""What QMD is asked to see whether it is well again."""
_MOST_BYTES = 1 << 16


class BackendFallback(Struct, frozen=True):
    """Why the built-in index answers in the place of QMD, since when, and when QMD is tried again (epoch seconds)."""

    kind: str
    reason: str
    next_step: str
    since: float
    retry_at: float
    pause: float
    of: str = ""
    """The command and mode that failed; what was set otherwise since is tried at once."""

    def as_dict(self) -> dict[str, Any]:
        """The documented shape, with what this product adds."""
        return {
            "from": QMD,
            "to": BUILTIN,
            "reason": self.reason,
            "nextStep": self.next_step,
            "since": self.since,
            "retryAt": self.retry_at or None,
        }


class BackendState(Struct, frozen=True):
    """Who answers now. `behind` counts files that changed since QMD's last update, at `updated` (epoch seconds)."""

    chosen: str
    origin: str
    fallback: BackendFallback | None = None
    behind: int = 0
    updated: float = 0.0
    collections: int = 0
    vectors: bool = False
    folder: str = ""

    @property
    def answers(self) -> str:
        """Who answers: qmd or builtin."""
        return BUILTIN if self.fallback is not None else self.chosen

    @property
    def sentence(self) -> str:
        """The state in words."""
        if self.fallback is not None:
            again = self.fallback.retry_at
            when = f", again at {dt.datetime.fromtimestamp(again):%H:%M}" if again else ""
            return f"builtin because: {self.fallback.reason.rstrip('.')}{when}"
        if self.chosen == BUILTIN:
            return "builtin (chosen)" if self.origin != "default" else BUILTIN
        return f"qmd, behind ({plural(self.behind, 'file')} changed)" if self.behind else QMD

    def custom(self) -> dict[str, Any]:
        """What the documented status has below `custom`."""
        found: dict[str, Any] = {"qmd": {"collections": self.collections, "lastUpdateAt": self.updated or None}}
        if self.fallback is not None:
            found["fallback"] = {"disabled": True, "reason": self.fallback.reason}
        return found


class Backend:
    """The choice of one engine; every method may be called from any thread."""

    def __init__(self, plan: Plan, approvals: Approvals, emit: Callable[[Event], None]) -> None:
        self._plan, self._approvals, self._emit = plan, approvals, emit
        self._chosen = plan.backend
        self._stop = Stop()
        self._wishes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._resident = False
        self._booting = False
        self._wanted_at = 0.0

    @property
    def is_qmd(self) -> bool:
        """Whether QMD was chosen, whoever answers now."""
        return self._chosen == QMD

    @cached_property
    def client(self) -> QmdClient:
        """QMD, as configured."""
        from memory_tui.qmd.client import QmdClient

        return QmdClient(self._plan, self._approvals)

    def choose(self, name: str) -> None:
        """Let `name` answer from now on."""
        self._chosen = name
        if self.is_qmd and self._resident:
            self._begin()

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(
        self, query: str, most: int | None = None, session_key: str = "", source: str = "", stop: Stop | None = None
    ) -> QmdAnswer | None:
        """QMD's answer; None where the built-in index answers. Raises QueryError, Cancelled."""
        if not self.is_qmd:
            return None
        from memory_tui.qmd.folder import QmdFailure

        failed = self.fallback()
        if failed is not None:
            if not self._resident and time.time() >= failed.retry_at:
                self._probe_aside()
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
        """What can be known of a line (1-based; 0: any) in QMD's answer; empty where QMD does not answer.

        Raises QmdFailure, QueryError, Cancelled.
        """
        found = self.ask(query)
        if found is None:
            return ""
        from memory_tui.qmd import reasons

        return reasons.why(self.client, found, path, line, self._stop).sentence

    def settle(self, stop: Stop) -> None:
        """Wait a moment for an update that runs; make the index where nobody ever did. Raises QmdFailure, Cancelled."""
        from memory_tui import locks
        from memory_tui.qmd import upkeep

        client, lock = self.client, self.client.place.folder / "upkeep"
        never = not client.place.index.exists() and not client.place.upkeep().updated
        if never and self._thread is None:
            self._notice("QMD's index is made for the first time.")
            upkeep.Upkeep(client).update(stop)
            return
        waits = self._booting and client.options.wait_for_boot
        end = time.monotonic() + (client.options.update_seconds if waits else _BUSY_SECONDS)
        while time.monotonic() < end and (locks.living(lock) is not None or (waits and self._booting)):
            if stop.wait(_POLL_SECONDS):
                raise Cancelled

    def document(self, path: str) -> Document | None:
        """A file outside the workspace that QMD's hits call `qmd/collection/path`; None for every other path.

        Raises PathRefused, Unreadable.
        """
        if not self.is_qmd or not path.startswith("qmd/"):
            return None
        return self.client.document(path)

    # --- failures ----------------------------------------------------------------------------------------------------

    def fallback(self) -> BackendFallback | None:
        """Why the built-in index answers in the place of QMD, as any process found; None where QMD does."""
        try:
            with self.client.place.fallback.open("rb") as file:
                fields = json.loads(file.read(_MOST_BYTES))
            found = BackendFallback(**{name: fields[name] for name in BackendFallback.__struct_fields__})
            return found if found.of == self._of and float(found.retry_at) > 0 else None
        except (OSError, ValueError, KeyError, TypeError):
            # Nobody failed, as far as anybody knows.
            return None

    @property
    def _of(self) -> str:
        options = self.client.options
        return f"{options.mode} {options.command}"

    def _failed(self, failure: QmdFailure) -> BackendFallback:
        before, now = self.fallback(), time.time()
        pause = min(_LONGEST_PAUSE, before.pause * 2) if before else _FIRST_PAUSE
        found = BackendFallback(
            failure.kind,
            failure.message,
            failure.next_step,
            before.since if before else now,
            now + pause,
            pause,
            self._of,
        )
        self._write(found)
        if before is None or before.reason != found.reason:
            self._notice(f"QMD failed: {failure.message} The built-in index answers until {_clock(found.retry_at)}.")
        self._wishes.put("")
        return found

    def _write(self, found: BackendFallback) -> None:
        from memory_tui import durable

        try:
            durable.make_folder(self.client.place.folder)
            durable.replace_file(self.client.place.fallback, json.dumps(to_builtins(found)).encode())
        except OSError as error:
            self._notice(
                f"{self.client.place.fallback} cannot be written ({error.strerror}), so QMD is tried each time."
            )

    def recovered(self) -> None:
        """QMD is well, or was mended: it is asked again from now on, in every process. Raises QmdFailure."""
        from memory_tui import durable
        from memory_tui.core.events import BackendChanged
        from memory_tui.qmd.folder import QmdFailure

        try:
            if durable.remove_file(self.client.place.fallback):
                self._emit(BackendChanged(time.time(), "QMD answers again."))
        except OSError as error:
            raise QmdFailure(
                "index", f"{self.client.place.fallback} cannot be deleted: {error.strerror}.", "Delete it."
            ) from error

    def probe(self) -> BackendFallback | None:
        """Ask QMD something that nobody waits for; why it is still not well, None where it is. Raises Cancelled."""
        from memory_tui.qmd.folder import QmdFailure

        try:
            self.client.ask(_PROBE, 1, stop=self._stop)
            self.recovered()
        except QmdFailure as failure:
            return self._failed(failure)
        return None

    def _probe_aside(self) -> None:
        """Probe beside an answer of a process that ends soon, which waits for it half a second at most."""
        with self._lock:
            if self._thread is None:
                self._launch(self.probe)

    # --- state -------------------------------------------------------------------------------------------------------

    def state(self) -> BackendState:
        """Who answers now, and how well; looks at QMD's index and the files, starts no search."""
        if not self.is_qmd:
            return BackendState(self._chosen, self._origin)
        from memory_tui.qmd.folder import QmdFailure

        failed = self.fallback()
        found = BackendState(QMD, self._origin, failed, folder=str(self.client.place.folder))
        try:
            ready = self.client.ready(self._stop)
        except QmdFailure as failure:
            if failed is None:
                now = time.time()
                failed = BackendFallback(failure.kind, failure.message, failure.next_step, now, 0.0, 0.0)
            return replace(found, fallback=failed)
        return replace(
            found,
            behind=ready.coverage.behind,
            updated=ready.updated,
            collections=len(ready.sources),
            vectors=bool(ready.index.vectors),
        )

    def answered_by(self, failed: BackendFallback) -> str:
        """That the built-in index answered, why, and what mends it, as one line."""
        return f"The built-in index answered: {failed.reason} {failed.next_step}".strip()

    def described(self, status: Status) -> Status:
        """`status` with who answers now."""
        found = self.state()
        if found.chosen != QMD:
            return replace(status, backend_state=found.sentence)
        fallback = found.fallback.as_dict() if found.fallback else status.fallback
        return replace(
            status, backend=found.answers, backend_state=found.sentence, fallback=fallback, custom=found.custom()
        )

    @property
    def _origin(self) -> str:
        return self._plan.backend_origin if self._chosen == self._plan.backend else "the palette"

    # --- in the background -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Keep QMD up to date, and see when it is well again, for as long as this process runs."""
        self._resident = True
        if self.is_qmd:
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._booting = self.client.options.on_boot
                self._thread = threading.Thread(
                    target=self._guarded, args=(self._work,), name="qmd-upkeep", daemon=True
                )
                self._thread.start()

    def notes_changed(self) -> None:
        """Bring QMD up to date soon, because notes changed."""
        if self._thread is not None and self.is_qmd:
            self._wishes.put("update")

    def _launch(self, work: Callable[[], object]) -> None:
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
        if self.client.options.on_boot:
            if self._stop.wait(self.client.options.boot_delay):
                return
            self._update(boot=True)
        self._booting = False
        while not self._stop.is_set():
            try:
                wish = self._wishes.get(timeout=self._pause())
            except queue.Empty:
                wish = ""
            if self._stop.is_set() or not self.is_qmd:
                continue
            self._upkeep(wish)
            failed = self.fallback()
            if failed is not None and time.time() >= failed.retry_at:
                self.probe()

    def _upkeep(self, wish: str) -> None:
        from memory_tui.qmd.upkeep import Upkeep

        now, keeper = time.time(), Upkeep(self.client)
        if wish == "update":
            self._wanted_at = now
        if keeper.due(now) or (self._wanted_at and keeper.bearable(now)):
            self._update()

    def _pause(self) -> float:
        """Seconds until something may be due; a wish comes at once."""
        options, failed, now = self.client.options, self.fallback(), time.time()
        pauses = [60.0]
        if failed is not None:
            pauses.append(failed.retry_at - now)
        if self._wanted_at:
            pauses.append(max(1.0, options.debounce / 4))
        return max(_POLL_SECONDS, min(pauses))

    def _update(self, *, boot: bool = False) -> None:
        from memory_tui.core.events import BackendChanged
        from memory_tui.qmd.upkeep import Upkeep

        keeper, wanted = Upkeep(self.client), bool(self._wanted_at)
        self._wanted_at = 0.0
        try:
            if boot and not keeper.bearable(time.time()):
                return
            keeper.update(self._stop, boot=boot)
            if wanted and not self._stop.is_set():
                self._emit(BackendChanged(time.time(), "QMD was brought up to date."))
            if self.client.options.needs_vectors:
                keeper.embed(self._stop, force=False)
            failed = self.fallback()
            if failed is not None and failed.kind in ("index", "models", "approval"):
                self.probe()
            if self.client.options.server:
                self.client.serve(self.client.startable(self._stop))
        except Cancelled:
            raise
        except MemoryTuiError as failure:
            self._notice(f"QMD was not brought up to date: {failure.message} {failure.next_step}".strip())

    def _notice(self, text: str) -> None:
        from memory_tui.core.events import Noticed

        if not self._stop.is_set():
            self._emit(Noticed(time.time(), text))

    def close(self) -> None:
        """End everything, QMD's processes too; a probe that is under way has half a second."""
        thread = self._thread
        if thread is not None and not self._resident:
            thread.join(_GOODBYE_SECONDS)
        self._stop.set()
        self._wishes.put("")
        if thread is not None:
            thread.join(_GOODBYE_SECONDS)
        if "client" in self.__dict__:
            self.client.close()


def _clock(at: float) -> str:
    return f"{dt.datetime.fromtimestamp(at):%H:%M}"
