"""Connections to an index: those that read, one for each running query, and the one that writes.

Its writer checks an index that was not closed. A marker beside it holds size and modification time of the closed file;
it is taken away as soon as the index is written again. A killed process leaves none, and it fits no file that somebody
else wrote.
"""

from __future__ import annotations

import json
import mmap
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from memory_tui import durable, locks
from memory_tui.cancel import Stop
from memory_tui.durable import read_beside
from memory_tui.errors import Cancelled, IndexBusy, IndexDamaged, IndexEmpty, IndexUnavailable, MemoryTuiError
from memory_tui.index import database, index_write
from memory_tui.index.store import Store
from memory_tui.plan import Plan
from memory_tui.sentences import Notice, notice


class Readers:
    """Borrowed connections to an index; the last one waits for the next query.

    `expected` tells whether an index of ours lay at the path: then a file there that is unreadable is damaged.
    """

    def __init__(self, expected: Callable[[], bool] = lambda: False) -> None:
        self._expected = expected
        self._lock = threading.Lock()
        self._idle: Store | None = None
        self._busy: list[Store] = []
        self._closed = False

    @contextmanager
    def borrow(self, path: Path) -> Iterator[Store]:
        """Lend a connection to one thread, to an empty index while there is none. Raises Cancelled after `close`."""
        with self._lock:
            if self._closed:
                raise Cancelled
            store, self._idle = self._idle, None
        if store is None or store.path != path or store.moved:
            if store is not None:
                store.close()
            store = self._open(path)
        with self._lock:
            self._busy.append(store)
        try:
            yield store
        finally:
            with self._lock:
                self._busy.remove(store)
                # Asked before the connection may be closed.
                changed = store.frozen is not None and store.changed
                # One connection waits for the next query, if it is to an index at its path, under locks.
                if self._closed or self._idle or store.absent or store.moved or store.frozen:
                    store.close()
                else:
                    self._idle = store
        if changed:
            raise IndexBusy("The index was written while it was read without locks.", "Ask again in a moment.")

    def _open(self, path: Path) -> Store:
        """Return a new connection, to an empty index in memory while there is none."""
        with suppress(IndexEmpty):
            if path.exists() and path.stat().st_size:
                return Store.open(path, read_only=True, expected=self._expected)
        return Store.nothing(path)

    def close(self) -> None:
        """Stop the searches that run, close what nobody uses; searches that come are refused."""
        with self._lock:
            self._closed = True
            if self._idle is not None:
                self._idle.close()
            for store in self._busy:
                store.interrupt()


Outcome = TypeVar("Outcome")

_LOOK_SECONDS = 1.0
"""How often who waits for an outcome looks whether the thread still lives."""
_TIMES = 10
"""How often a writer that does not hear that it should end is interrupted: between two statements it is not."""
_ROOM_BYTES = 16 << 20
"""What a thread needs: its stack, mostly 8 MB, and memory to begin and to end in."""
_USED_UP = "Close other programs; memory or threads are used up."


class Writer:
    """A thread `engine-writer` that starts with its first job; `closing` is set as soon as it should give up.

    `open_store` opens the index; its argument is what is wrong with the file, empty mostly. A job that meets damage is
    run once more with the index that takes the place of the damaged one.
    """

    def __init__(
        self,
        open_store: Callable[[str], Store],
        close_store: Callable[[Store], None],
        on_failure: Callable[[MemoryTuiError], None],
    ) -> None:
        self.closing = Stop()
        self._open_store = open_store
        self._close_store = close_store
        self._on_failure = on_failure
        self._jobs: queue.SimpleQueue[tuple[Callable[[Store], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._quiet = threading.Condition()
        self._thread: threading.Thread | None = None
        self._store: Store | None = None

    def run(self, job: Callable[[Store], Outcome]) -> Outcome:
        """Return what `job` makes of the write connection, on the writer's thread. Raises what it raises.

        Raises IndexUnavailable when the thread ended without an answer, as it does where memory is used up.
        """
        outcome = self.submit(job)
        thread = self._thread
        while not wait([outcome], _LOOK_SECONDS).done:
            if (thread is None or not thread.is_alive()) and not outcome.done():
                raise IndexUnavailable("The index cannot be written: its thread has ended.", _USED_UP)
        return outcome.result()

    def submit(self, run: Callable[[Store], Outcome]) -> Future[Outcome]:
        """Have `run` called with the write connection; the future holds what it returns or raises."""
        outcome: Future[Outcome] = Future()
        with self._quiet:
            if self.closing.is_set():
                outcome.set_exception(Cancelled())
                return outcome
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._work, name="engine-writer", daemon=True)
                try:
                    # A thread that memory runs out for while it begins, or tells an outcome, ends with a lock in hand.
                    mmap.mmap(-1, _ROOM_BYTES).close()
                    thread.start()
                except (OSError, RuntimeError) as error:
                    why = error.strerror if isinstance(error, OSError) else error
                    raise IndexUnavailable(f"The index cannot be written: {why}.", _USED_UP) from None
                self._thread = thread
            self._waiting += 1
            # Under the lock, so that no job comes after what `close` puts last: nobody would answer it.
            self._jobs.put((run, outcome))
        return outcome

    def wait_idle(self, timeout: float) -> bool:
        """Wait until there is nothing to do; False when `timeout` seconds were not enough."""
        with self._quiet:
            return self._quiet.wait_for(lambda: self._waiting == 0, timeout)

    def close(self, timeout: float) -> None:
        """Give up what is under way and end, or be left behind after `timeout` seconds."""
        self.closing.set()
        with self._quiet:
            thread = self._thread
            self._jobs.put(None)
        if thread is None:
            return
        thread.join(timeout / 4)
        for _ in range(_TIMES):
            # A statement that writes a note of megabytes takes seconds; its whole transaction is given up.
            if (store := self._store) is not None and not self.wait_idle(0):
                store.interrupt()
            thread.join(0.75 * timeout / _TIMES)

    def _work(self) -> None:
        """Do the jobs in their order until `close` puts None; an error is the outcome of its job, and ends nothing."""
        try:
            while (job := self._jobs.get()) is not None:
                run, outcome = job
                try:
                    self.closing.check()
                    outcome.set_result(self._run(run))
                except MemoryTuiError as error:
                    with suppress(MemoryError):  # Who waits is told all the same.
                        self._on_failure(error)
                    outcome.set_exception(error)
                except BaseException as error:  # noqa: BLE001 - raised by whoever asks for the outcome
                    outcome.set_exception(error)
                finally:
                    with self._quiet:
                        self._waiting -= 1
                        self._quiet.notify_all()
        finally:
            self._let_go()

    def _run(self, run: Callable[[Store], Any]) -> object:
        """Return what `run` makes of the index, which is opened again where the file is another one or was damaged."""
        if self._store is not None and self._store.moved:
            self._let_go()
        try:
            self._store = self._store or self._open_store("")
            return run(self._store)
        except IndexUnavailable as error:
            # To open moves damage aside already: what it raises all the same is no reason to open again.
            was_open = self._store is not None
            self._let_go()
            if not was_open or not isinstance(error, IndexDamaged):
                raise
            self._store = self._open_store(error.message)
            return run(self._store)

    def _let_go(self) -> None:
        """Close the write connection, if there is one."""
        store, self._store = self._store, None
        if store is not None:
            self._close_store(store)


# --- the opening of the index by its writer ---------------------------------------------------------------------------


class IndexOpener:
    """Opens and closes the index of `plan`; `emit` hears each of `notices` once."""

    def __init__(self, plan: Plan, emit: Callable[[str], None]) -> None:
        self.path = database.resolved(plan.index)
        """Where the index is."""
        self.notices: list[Notice] = []
        self.opened = False
        self.resident = False
        """Whether this process keeps the index for as long as it runs, as app or server."""
        self._plan, self._emit = plan, emit
        self._last: tuple[int, int] | None = None
        """Device and inode of the file that was opened last."""

    @property
    def lost(self) -> bool:
        """Return whether the file that was opened last was deleted, whoever made another one in its place."""
        return self.opened and durable.file_at(self.path) != self._last

    def whole(self) -> bool:
        """Return whether the index was closed or is in use, and no rebuild of it was begun."""
        begun = database.rebuild_of(self.path).exists()
        return not begun and (_held_elsewhere(self.path) or was_closed(self.path))

    def expected(self) -> bool:
        """Return whether an index of ours lay in its place, as far as can be told: then what lies there is damaged."""
        return self.opened or bool(_marker(self.path)) or database.is_private(self.path)

    def open(self, damage: str) -> Store:
        """Return the index, made if it is not there; checked first where it was not closed, or changed since.

        `damage` is what was found wrong with the one that `close` has just closed: it is moved aside.
        Raises IndexUnavailable.
        """
        if damage:
            self._move_aside(damage)
        # First, because the look for suspicion takes away the marker that tells it.
        expected = self.expected()
        suspicion = "" if damage else self._suspicion()
        store = self._store(expected)
        if suspicion:
            store = self._checked(store, suspicion)
        self.opened = True
        return store

    def close(self, store: Store, whole: bool = True) -> None:
        """Close the index, and write its clean-shutdown marker when nobody else has it open."""
        self._last = store.identified
        moved = store.moved
        store.close()
        if whole and not moved and not _held_elsewhere(self.path):
            mark_closed(store.path)

    def _store(self, expected: bool) -> Store:
        """Open the index, and tell what became of what lay in its place."""
        first = len(self.notices)
        store = Store.open(self._plan.index, notices=self.notices, expected=lambda: expected)
        self.path, self._last = store.path, store.identified
        for report in self.notices[first:]:
            self._emit(report.sentence)
        return store

    def _suspicion(self) -> str:
        """Return why the file should be checked before it is trusted; empty for a new one and one that others use."""
        if _held_elsewhere(self.path):
            return ""
        broken = take_mark(self.path)
        if self.path.exists() and self.path.stat().st_size > 0:
            return broken
        # No file is left: it was opened before, or its marker tells that it was closed once.
        if self._last is not None or broken != UNCLOSED:
            self._report(notice("index_gone", path=str(self.path)))
        return ""

    def _checked(self, store: Store, suspicion: str) -> Store:
        """Return the index, once it was read from end to end; another one where this one is damaged."""
        # Not marked as closed whole: whoever opens it next would trust it.
        if damage := store.problems():
            self.close(store, whole=False)
            self._move_aside(f"The index {self.path} is damaged ({damage[0]}).")
            return self._store(True)
        if suspicion != UNCLOSED and (recipe := store.recipe()) is not None:
            # Whole, and yet not as it was closed: every note is read and cut again, its vectors are reused.
            index_write.reset(store, recipe)
        return store

    def _move_aside(self, why: str) -> None:
        """Move the damaged file aside, unless another process did so meanwhile. Raises IndexBusy."""
        lock = locks.WriterLock.acquire(self.path)
        if lock is None:
            raise IndexBusy(f"Another process is writing {self.path}.", "Try again when it has finished.")
        with lock:
            # Another process may have done it meanwhile: then there is another file.
            if self._last is not None and durable.file_at(self.path) == self._last:
                self._report(database.quarantine(self.path, why))

    def _report(self, notice: Notice) -> None:
        """Keep a notice for whoever asks for them, and tell it now."""
        self.notices.append(notice)
        self._emit(notice.sentence)


def condemn(error: IndexDamaged, met: tuple[int, int] | None) -> Callable[[Store], None]:
    """Return a job for the writer that has the file `met` (device, inode) moved aside, in which a reader met damage."""

    def run(store: Store) -> None:
        """Raise the error where the writer has the file open in which it was met; else do nothing."""
        # The writer takes the error for damage, moves the file aside, and runs this again, on another file then.
        if store.identified == met:
            raise error

    return run


def _held_elsewhere(index: Path) -> bool:
    """Return whether another process has `index` open to keep or to write it."""
    holders = (locks.living(index, "keeper"), locks.living(index))
    return any(holder is not None and not holder.here for holder in holders)


# --- whether an index was closed ----------------------------------------------------------------------------------

UNCLOSED = "it was not closed"
"""What `take_mark` says without a marker."""

Marker = list[int]
"""Size in bytes and modification time in nanoseconds of an index file."""


def mark_path(index: Path) -> Path:
    """Return where the marker of `index` lies."""
    return index.with_name(f"{index.name}.seal")


def mark_closed(index: Path) -> None:
    """Mark a closed index, unless that cannot be written, somebody has it open, or another program's file is there.

    Without a marker the index is checked at the next start.
    """
    path, closed = mark_path(index), _closed(index)
    with suppress(OSError):
        if closed is not None and (not path.exists() or _marker(index) is not None):
            durable.replace_file(path, json.dumps(closed).encode())


def take_mark(index: Path) -> str:
    """Take the marker away, because the index is about to be written; return what is wrong with it, if anything."""
    path, fits = mark_path(index), was_closed(index)
    try:
        # Called for its errors, which `_marker` passes over.
        read_beside(path)
        if _marker(index) is not None:
            durable.remove_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return UNCLOSED
    except OSError as error:
        return f"its marker cannot be read: {error.strerror}"
    return "" if fits else "it was changed by something else"


def was_closed(index: Path) -> bool:
    """Return whether the marker beside `index` fits it: it was closed, and was not written since."""
    marker = _marker(index)
    return bool(marker) and marker == _closed(index)


def _marker(index: Path) -> Marker | None:
    """Return what `mark_closed` wrote, [] for an empty file; None for another program's, and for none."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(read_beside(mark_path(index)) or b"[]", type=Marker)
    return None


def _closed(index: Path) -> Marker | None:
    """Return size and time of the file, None without one, or while there is a write-ahead log beside it."""
    with suppress(OSError):
        if index.with_name(f"{index.name}-wal").stat().st_size:
            return None
    with suppress(OSError):
        status = index.stat()
        return [status.st_size, status.st_mtime_ns]
    return None
