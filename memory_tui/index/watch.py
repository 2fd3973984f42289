"""The watcher notices saved notes, and the root watch whether the folders of notes can be read.

The folder memory/ and extra folders are watched with everything below; the workspace itself is not, because it can be
somebody's home. Its root notes, extra files, and whether a folder came, went or was replaced are seen by asking for
their status at each tick. A file system can hang, and with it whoever asks for it: the examination of the roots has a
thread of its own, and who wants the states never waits for it.
"""

# ruff: noqa: PTH118, PTH206
# Paths are strings, because watchfiles speaks of them so.

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.events import Listener, NotesChanged, WatchChanged
from memory_tui.workspace.notes import modality_of
from memory_tui.workspace.roots import FOLDER, Identity, Probe, Roots, RootState, probe, root_places
from memory_tui.workspace.scan import too_large

_STEP_MS = 100
"""How long the event stream has to pause before events are handed over."""
_TICK_MS = 200
"""How often quiet time and single files are looked at."""
_PATIENCE = 5
"""Quiet times after which changes are announced although more keep coming."""
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 60.0
"""How long a watcher that failed waits before it begins anew, at first and at last."""
_NEVER_NOTES = frozenset({".git", "node_modules", ".pnpm-store", ".venv", "venv", ".tox", "__pycache__"})
"""Folders whose other files come and go in masses."""

_MODIFIED, _DELETED = 2, 3
Changes = set[tuple[int, str]]
"""What became of which absolute path: 1 added, 2 modified, 3 deleted."""
Seen = Callable[[Collection[str] | None], None]
"""Gets absolute paths that changed, None where all have to be looked at."""


class _View(Struct, frozen=True):
    """What is at the roots now: folders to watch by path and identity, and the status of single files."""

    folders: dict[str, tuple[int, int]]
    singles: dict[str, tuple[int, int, int]]

    @classmethod
    def of(cls, roots: Roots) -> _View:
        """Look at the folders to watch, and at the files that stand alone."""
        view, base = cls({}, {}), str(roots.workspace)
        # What is too large to be looked through is too large to be watched.
        extra = [path for path in roots.extra if not too_large(path)]
        places = [os.path.join(base, FOLDER), *extra, *(os.path.join(base, name) for name in roots.root_notes)]
        for path in filter(None, (*places, roots.sessions)):
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                continue
            if stat.S_ISDIR(status.st_mode):
                view.folders[path] = status.st_dev, status.st_ino
            elif stat.S_ISREG(status.st_mode):
                view.singles[path] = status.st_ino, status.st_mtime_ns, status.st_size
        return view


class Watcher:
    """Calls `changed` once notes changed and then were left alone for `quiet` seconds, while it is switched on.

    `emit` hears at once that notes changed, again each time as long has gone by while more keeps coming, and what
    becomes of the watcher. At each tick `seen` gets the paths that changed, None for any. All are called on the
    watcher's thread, which begins anew when it fails, where the system has no handles left, for instance.
    """

    def __init__(self, roots: Roots, quiet: float, changed: Callable[[], None], emit: Listener, seen: Seen) -> None:
        self.armed = threading.Event()
        """Set while changes are seen; what is saved from then on is announced."""
        self.detail = "off"
        """What is done, in words."""
        self.stalled = ""
        """Why saved files are not noticed although they should be; empty where they are."""
        self._roots, self._quiet, self._on_changed, self._emit, self._on_seen = roots, quiet, changed, emit, seen
        self._ended = False
        self._stop: Stop | None = None
        self._thread: threading.Thread | None = None
        self._changed = False
        self._first = self._last = self._announced = 0.0

    @property
    def active(self) -> bool:
        """Return whether it is switched on, whatever became of it."""
        return self._stop is not None

    @property
    def on(self) -> bool:
        """Return whether saved files are noticed by themselves."""
        return self.active and not self.stalled

    def switch(self, on: bool) -> None:
        """Switch it on or off; changes that were not announced yet are dropped."""
        self._drop()
        self.stalled, self._changed = "", False
        if on and not self._ended:
            self._stop = Stop()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="watcher", daemon=True)
        self._tell("on" if on else "switched off")
        if self._stop is not None and self._thread is not None:
            self._thread.start()

    def end(self) -> None:
        """Stop for good, without an event."""
        self._ended = True
        self._drop()

    def _drop(self) -> None:
        """Stop the thread, and wait for it a second."""
        stop, self._stop = self._stop, None
        if stop is not None and self._thread is not None:
            stop.set()
            if self._thread.is_alive():
                self._thread.join(1.0)

    def _fail(self, reason: str) -> None:
        """Report that it does not work for `reason`, or does again where that is empty."""
        if reason != self.stalled:
            self.stalled = reason
            self._tell(reason or "on")

    def _tell(self, detail: str) -> None:
        """Tell what the watcher does now."""
        self.detail = detail
        self._emit(WatchChanged(time.time(), self.on, detail))

    # --- on its thread ---------------------------------------------------------------------------------------------

    def _run(self, stop: Stop) -> None:
        """Watch until `stop`; after a failure begin again, later each time."""
        pause = _FIRST_SECONDS
        while not stop.is_set():
            try:
                self._watch(_View.of(self._roots), stop)
            except FileNotFoundError:
                # A folder went away between the look and the watch: look again.
                stop.wait(_TICK_MS / 1000)
            except Exception as error:  # noqa: BLE001 - the status tells why nothing is noticed
                self._fail(f"the watcher failed: {type(error).__name__} {error}".rstrip())
                stop.wait(pause)
                pause = min(2 * pause, _LONGEST_SECONDS)
            finally:
                self.armed.clear()

    def _watch(self, view: _View, stop: Stop) -> None:
        """Look at events and statuses until the folders to watch are others."""
        # What was saved while nobody watched is noticed by a look at everything.
        self._note_change(began=True)
        for changes in self._events(view, stop):
            if not self.armed.is_set():
                self._fail("")
                self._on_seen(None)
                self.armed.set()
            now = _View.of(self._roots)
            # A folder that is made in the place of a deleted one may get its identity: then only the deletion tells.
            replaced = now.folders != view.folders or any((_DELETED, path) in changes for path in view.folders)
            news = {path for change, path in changes if _can_matter(change, path, self._roots)}
            # A single file that came, went or changed has another status in both views, or is in one alone.
            news |= {path for path, _ in now.singles.items() ^ view.singles.items()}
            if replaced or news:
                self._note_change(began=replaced)
            self._on_seen(None if replaced else news)
            self._announce()
            if replaced:
                return
            view = now

    def _events(self, view: _View, stop: Stop) -> Iterator[Changes]:
        """Yield sets of changes, an empty one at each quiet tick."""
        if view.folders:
            # Late, because a command that asks once watches nothing.
            from watchfiles import watch

            for changes in watch(
                *view.folders,
                watch_filter=None,
                debounce=_TICK_MS,
                step=_STEP_MS,
                stop_event=stop,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                yield {(int(change), path) for change, path in changes}
        while not stop.wait(_TICK_MS / 1000):
            yield set()

    def _note_change(self, *, began: bool) -> None:
        """Note that something changed now.

        A watcher that only `began` guesses so, and emits nothing before the quiet time is over. In all other cases the
        next `_announce` emits that there are changes.
        """
        self._last = time.monotonic()
        if not self._changed:
            self._first = self._last
            self._announced = self._last if began else -math.inf
        self._changed = True

    def _announce(self) -> None:
        """Call `changed` once notes were left alone, or changed for very long; else emit that there are changes."""
        now = time.monotonic()
        settled = now - self._last >= self._quiet or now - self._first >= _PATIENCE * self._quiet
        if self._changed and settled:
            self._changed = False
            self._on_changed()
        elif self._changed and now - self._announced >= self._quiet:
            self._announced = now
            self._emit(NotesChanged(time.time()))


def _can_matter(change: int, path: str, roots: Roots) -> bool:
    """Return whether a change can concern a note: a note itself, or what came or went and may be a folder of notes."""
    is_note = path.endswith((".md", ".jsonl")) or (roots.media is not None and modality_of(path) is not None)
    return is_note or (change != _MODIFIED and _NEVER_NOTES.isdisjoint(path.split(os.sep)))


_PERIOD_SECONDS = 1.0
_ANSWER_SECONDS = 1.0
"""A root that takes longer to answer counts as unreadable until it does."""
_YOUNG_SECONDS = 0.25
"""Without a thread the roots are examined again after this, and after each comparison of disk and index."""


class RootWatch:
    """The states of the `roots` of one engine; `changed` hears of each change on one of the engine's threads.

    Its argument is whether the notes have to be scanned again, because a root came back or is another one now.
    """

    def __init__(self, roots: Roots, watcher: Watcher, changed: Callable[[bool], None], closing: Stop) -> None:
        self._roots, self._watcher, self._changed, self._closing = roots, watcher, changed, closing
        self._thread = threading.Thread(target=self._run, name="engine-roots", daemon=True)
        self._lock = threading.Lock()
        self._probes: tuple[Probe, ...] = ()
        self._examined = -math.inf
        self._pending: tuple[RootState, float] | None = None
        """The root that is being examined, and since when."""
        self.comparison: tuple[Collection[str], Collection[str]] = (), ()
        """Of the last comparison of disk and index: roots where notes are missing on another device, and all roots
        where there were notes. The next look at the states examines the roots again.
        """
        self._examined_for: object = None
        """The `comparison` that was the last when the roots were examined last."""
        self._reported: tuple[RootState, ...] | None = None
        self._identities: dict[str, Identity] = {}

    def start(self) -> None:
        """Examine the roots once a second from now on."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the end, after the engine began to close."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    def states(self) -> tuple[RootState, ...]:
        """Return the state of each root: as last examined while the thread runs, else examined with each comparison."""
        old = self._examined_for is not self.comparison or time.monotonic() - self._examined > _YOUNG_SECONDS
        if old and not self._thread.is_alive():
            self._examine()
        states = {root.path: root for root, _ in self._probes}
        moved, _ = self.comparison
        for root, identity in self._probes:
            if root.path in moved and identity is not None and root.readable:
                detail = f"{root.absolute} is on another device than before: was something mounted or unmounted?"
                states[root.path] = replace(root, state="another device", detail=detail)
        if (pending := self._pending) is not None:
            root, since = pending
            if time.monotonic() - since > _ANSWER_SECONDS:
                states[root.path] = root.unreadable("its file system does not answer")
        if reason := self._watcher.stalled:
            detail = f"Saved files are not noticed: {reason}."
            for path, root in states.items():
                if root.state == "there":
                    states[path] = replace(root, state="watcher stalled", detail=detail)
        return tuple(states.values())

    def lost(self) -> list[RootState]:
        """Return the roots that are not there; what cannot be read comes first, and the workspace before others."""
        away = (root for root in self.states() if root.state != "there")
        return sorted(away, key=lambda root: (root.readable, not root.main))

    def review(self) -> None:
        """Report what changed since the last time; for any thread, once a second."""
        with self._lock:
            states = self.states()
            # Whoever asked before this thread began saw what was so then, which may be so no more.
            before = self._reported or tuple(replace(root, state="there", detail="") for root in states)
            self._reported = states
            # A root that has another identity than before was replaced.
            identities = {root.path: identity for root, identity in self._probes if identity is not None}
            replaced = any(self._identities.get(path, key) != key for path, key in identities.items())
            self._identities |= identities
        if states != before or replaced:
            readable = {root.path for root in before if root.readable}
            came_back = any(root.readable and root.path not in readable for root in states)
            self._changed(replaced or came_back)

    def _examine(self) -> None:
        """Ask for each root whether it can be read."""
        probes: list[Probe] = []
        self._examined_for = self.comparison
        _, indexed = self.comparison
        for path, absolute in root_places(self._roots).items():
            # Told before the look, because a file system that hangs never comes back from it.
            self._pending = RootState(path, absolute), time.monotonic()
            result = probe(path, absolute, expected=path in indexed)
            # The workspace comes first. What is to be said of memory/ is said of it where it cannot be read itself.
            if result is not None and (path != FOLDER or probes[0][0].readable):
                probes.append(result)
        self._probes, self._pending, self._examined = tuple(probes), None, time.monotonic()

    def _run(self) -> None:
        """Examine the roots once a second until the engine closes."""
        while True:
            self._examine()
            self.review()
            if self._closing.wait(_PERIOD_SECONDS):
                return
