"""The change watch notices what other programs change. It watches notes, their folders and the index.

A file system can hang, and with it whoever asks for it. So the examination of the roots has a thread of its own, and
who wants to know the states never waits for it: a root that does not answer is unreadable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui import locks
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import IndexOutdated
from memory_tui.index.connections import Readers
from memory_tui.workspace import root_state
from memory_tui.workspace.incremental import FullScan
from memory_tui.workspace.root_state import Identity, Probe, RootState

if TYPE_CHECKING:
    from pathlib import Path

    from memory_tui.core.events import Event
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.index.watch import Named, Watcher
    from memory_tui.notices import Notice
    from memory_tui.openclaw.agent_sessions import SessionCopies
    from memory_tui.plan import Plan
    from memory_tui.workspace.roots import Roots
    from memory_tui.workspace.scan import Scan

_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 60.0
"""How long a watcher that was begun anew is left alone when it fails again, at first and at last."""


class WatchSwitch:
    """At most one watcher; `changed` hears which paths were saved, None for any; `emit` hears what becomes of it."""

    def __init__(self, plan: Plan, changed: Callable[[Named], None], emit: Callable[[Event], None]) -> None:
        self.detail = "off"
        """What is done, in words."""
        self._plan = plan
        self._changed = changed
        self._emit = emit
        self._lock = threading.Lock()
        self._watcher: Watcher | None = None
        self._ended = False
        self.stalled = ""
        """Why saved files are not noticed although they should be; empty where they are."""
        self._late = False
        self._working = "on"
        """How saved files are noticed where they are, in words."""
        self._wait, self._again_at = _FIRST_SECONDS, 0.0

    @property
    def on(self) -> bool:
        """Whether saved files are noticed by themselves."""
        return self._watcher is not None and self._watcher.alive and not self.stalled

    @property
    def wanted(self) -> bool:
        """Whether it was switched on, whatever became of it."""
        return self._watcher is not None

    def examine(self) -> None:
        """See whether the watcher works, and report when it does not, or does again.

        One sign that is late is not enough: a process that was stopped itself has heard nothing either. Call it once
        a second.
        """
        watcher = self._watcher
        late, self._late = self._late, watcher is not None and watcher.silent
        reason = (watcher.dead if watcher else "") or ("the watcher does not answer" if late and self._late else "")
        if reason != self.stalled:
            self.stalled = reason
            self._news(reason or self._working)

    def revive(self) -> None:
        """Begin anew with a watcher that `examine` found dead; after each failure later than after the one before."""
        watcher, now = self._watcher, time.monotonic()
        if watcher is None or not (self.stalled and watcher.dead) or now < self._again_at:
            return
        self._wait = min(2 * self._wait, _LONGEST_SECONDS)
        self._again_at = now + self._wait
        self.switch(True)

    def switch(self, on: bool) -> None:
        """Switch the watcher on or off."""
        self._drop()
        self.stalled, self._late, self._working = "", False, "on"
        if on and not self._ended:
            from memory_tui.index.watch import Watcher

            quiet = self._plan.settings.whole("sync.watchDebounceMs") / 1000
            self._watcher = Watcher(self._plan.roots, quiet, self._changed, self._heard, self._waits)
            self._watcher.start()
        # The watcher may have had something to say by now.
        self._news(self._working if on else "switched off")

    def end(self) -> None:
        """Stop for good, without an event."""
        self._ended = True
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    def _waits(self) -> None:
        """Notes are not as they were indexed, and will not be before whoever writes them rests."""
        from memory_tui.core.events import NotesChanged

        self._emit(NotesChanged(time.time()))

    def _heard(self, detail: str) -> None:
        self._working = detail
        self._news(detail)

    def _news(self, detail: str) -> None:
        from memory_tui.core.events import WatchChanged

        self.detail = detail
        self._emit(WatchChanged(time.time(), self.on, detail))


_PERIOD_SECONDS = 1.0
_SILENT_SECONDS = 1.0
"""A root that takes longer to answer counts as unreadable until it does."""


class RootWatch:
    """The states of the `roots` of one engine; `changed` hears of each change on one of the engine's threads.

    Its argument is whether the notes have to be scanned again, because a root came back or is another one now.
    """

    def __init__(self, roots: Roots, watcher: WatchSwitch, changed: Callable[[bool], None], closing: Stop) -> None:
        self._roots = roots
        self._watcher = watcher
        self._changed = changed
        self._closing = closing
        self._thread = threading.Thread(target=self._run, name="engine-roots", daemon=True)
        self._lock = threading.Lock()
        self._probes: tuple[Probe, ...] | None = None
        self._asked: tuple[RootState, float] | None = None
        """The root that is being examined, and since when."""
        self._expected: frozenset[str] = frozenset()
        self._moved: frozenset[str] = frozenset()
        self._devices: dict[str, int] = {}
        """The device of each root when its notes were last seen where they should be."""
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
        """The state of each root: as last examined while the thread runs, else examined now."""
        if not self._thread.is_alive():
            self._examine()
        probes, asked = self._probes or (), self._asked
        states = {one.root.path: self._state(one) for one in probes}
        if asked is not None and time.monotonic() - asked[1] > _SILENT_SECONDS:
            states[asked[0].path] = root_state.silent(asked[0])
        reason = self._watcher.stalled
        return root_state.stalled(states.values(), reason) if reason else tuple(states.values())

    def record_comparison(self, moved: Collection[str], expected: Collection[str]) -> None:
        """Disk and index were compared: notes are missing at the roots `moved`; at `expected` ones there were notes."""
        self._moved, self._expected = frozenset(moved), frozenset(expected)
        for one in self._probes or ():
            if one.identity is not None and one.root.path not in self._moved:
                self._devices[one.root.path] = one.identity[0]

    def review(self) -> None:
        """Report what changed since the last time; for any thread, once a second."""
        with self._lock:
            states = self.states()
            before, self._reported = self._reported, states
            identities = {one.root.path: one.identity for one in self._probes or () if one.identity is not None}
            others = any(self._identities.get(path, key) != key for path, key in identities.items())
            self._identities.update(identities)
        if before is None:
            # Whoever asked before this thread began saw what was so then, which may be so no more.
            before = tuple(replace(root, state="there", detail="") for root in states)
        if states != before or others:
            self._changed(others or _came_back(before, states))

    def _state(self, one: Probe) -> RootState:
        root = one.root
        if one.identity is None or not root.readable:
            return root
        device = self._devices.get(root.path, one.identity[0])
        return root_state.elsewhere(root) if root.path in self._moved or device != one.identity[0] else root

    def _examine(self) -> None:
        def begin(root: RootState) -> None:
            self._asked = root, time.monotonic()

        self._probes = tuple(root_state.probe(self._roots, self._expected, begin))
        self._asked = None
        for one in self._probes:
            if one.identity is not None:
                self._devices.setdefault(one.root.path, one.identity[0])

    def _run(self) -> None:
        while True:
            self._examine()
            self._watcher.revive()
            self._watcher.examine()
            self.review()
            if self._closing.wait(_PERIOD_SECONDS):
                return


def _came_back(before: tuple[RootState, ...], now: tuple[RootState, ...]) -> bool:
    """Whether any root can be read that could not, or is there for the first time."""
    lost = {root.path for root in before if not root.readable}
    known = {root.path for root in before}
    return any(root.readable and (root.path in lost or root.path not in known) for root in now)


Mark = tuple[str, int]
"""Which index it is (its uuid), and its generation; of no index ("", 0)."""

_SHARE = 4
"""While another process writes, what follows from a change may take this part of the time."""


class IndexChanges:
    """Return what is known of the index at `path`, and whether it still holds."""

    def __init__(self, path: Callable[[], Path]) -> None:
        self._path = path
        self._readers = Readers()
        self._lock = threading.Lock()
        self._known: Mark | None = None
        self.cost = 0.0
        """How many seconds it last took to find out everything about it."""
        self._due = 0.0

    def begin(self, store: Store | None) -> None:
        """Before the first read: whatever becomes of `store` (None: there is no index) from now on is a change.

        Later reads are no reason to count it as known: what an earlier one read would stay as it was.
        """
        with self._lock:
            if self._known is None:
                self._known = _mark(store)

    @property
    def mark(self) -> Mark | None:
        """What the index was last known to be; None before anything was read."""
        return self._known

    def mark_known(self, store: Store) -> None:
        """This process wrote what `store` holds, and told so itself: that is no change by another one."""
        self._known = _mark(store)

    def differs(self, store: Store) -> bool:
        """Whether another process wrote `store` since anything was known of it."""
        return self._known is not None and self._known != _mark(store)

    def changed(self) -> bool:
        """Whether the index is not what it was known to be; True once for each change. One query.

        Raises IndexUnavailable.
        """
        now = time.monotonic()
        if now < self._due and locks.living(self._path()) is not None:
            return False
        try:
            with self._readers.borrow(self._path()) as store:
                mark = _mark(store)
        except IndexOutdated:
            # Who opens it to write brings it up to date, and tells what changes then.
            return False
        if mark == self._known:
            return False
        self._known, self._due = mark, now + _SHARE * self.cost
        return True

    def begun(self) -> bool:
        """Whether anybody has begun to index. Raises IndexUnavailable."""
        try:
            with self._readers.borrow(self._path()) as store:
                return store is not None and store.recipe() is not None
        except IndexOutdated:
            return True

    def close(self) -> None:
        """Let the index go."""
        self._readers.close()


def _mark(store: Store | None) -> Mark:
    if store is None or store.identified is None:
        return "", 0
    return str(store.meta("uuid") or ""), store.generation()


_MOST = 200
"""More paths than this are not scanned one by one."""


class SessionWatch:
    """Follows the sessions in the host's database, where they are searched; any thread may call `follow`.

    What cannot be read stands among `notices`, and `tell` hears it once.
    """

    def __init__(self, plan: Plan, notices: list[Notice], tell: Callable[[str], None]) -> None:
        self._copies: SessionCopies | None = None
        self._notices, self._tell = notices, tell
        self._lock = threading.Lock()
        if plan.roots.sessions:
            from memory_tui.openclaw import agent_sessions

            self._copies = agent_sessions.copies_of(plan)

    def follow(self) -> bool:
        """Bring the transcripts up to date; whether something was said meanwhile."""
        copies = self._copies
        if copies is None:
            return False
        with self._lock:
            before, changed = copies.problem, copies.refresh()
            if copies.problem != before:
                self._notices[:] = [notice for notice in self._notices if notice != before]
                if copies.problem:
                    self._notices.append(copies.problem)
                    self._tell(copies.problem.sentence)
        return changed


class Scanner:
    """The scans of the syncs of one engine; any thread may call `mark_changed`, the writer scans.

    A scan is incremental only after one that is reliable: after a sync that failed, was stopped or left anything
    undone, the next scan is full.
    """

    def __init__(self, roots: Roots, sessions: SessionWatch | None = None) -> None:
        self._roots = roots
        self._sessions = sessions
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._everything = True
        self._last: FullScan | None = None
        self._reliable: FullScan | None = None
        self._incremental = False
        self._paths: set[str] = set()

    def mark_changed(self, paths: Collection[str] | None) -> None:
        """Have the next scan read these absolute paths; everything for None."""
        with self._lock:
            if paths is None or len(self._named) + len(paths) > _MOST:
                self._everything = True
                self._named.clear()
            elif not self._everything:
                self._named.update(paths)

    def scan(self, store: Store) -> Scan:
        """The scan of a sync that begins. Raises WorkspaceError."""
        if self._sessions is not None and self._sessions.follow():
            self.mark_changed(None)
        with self._lock:
            everything, self._everything = self._everything, False
            self._paths, self._named = self._named, set()
        before, self._reliable = self._reliable, None
        return self._scan(store, None if everything else before)

    def rescan(self, store: Store) -> Scan:
        """The same scan after what it found was indexed. Raises WorkspaceError.

        A full scan is full the second time: what it found, and what was not indexed of that, is nowhere written down.
        """
        return self._scan(store, self._last if self._incremental else None)

    def rely_on_last(self, store: Store, freshness: Freshness) -> None:
        """Base the next scan on the last one, if by `freshness` every note of it is indexed, and nothing else is."""
        last, self._last = self._last, None
        whole = not (freshness.pending or freshness.of("missing root") or freshness.rebuild or freshness.shrink)
        if last is not None and whole and last.scan.total == len(store.known()):
            self._reliable = last

    def _scan(self, store: Store, before: FullScan | None) -> Scan:
        known, self._last = store.known(), None
        incremental = before and before.updated(self._roots, self._paths, known.unsettled, known.settled)
        self._incremental = incremental is not None
        self._last = incremental or FullScan.of(self._roots, known.settled)
        return self._last.scan


_TICK_SECONDS = 0.5
SWEEP_SECONDS = 60.0
"""How often a watcher is backed up by a full scan: events get lost, and mounts come and go."""


class EngineClock:
    """Calls `tick` twice a second on a thread of its own, until `stop` is set."""

    def __init__(self, tick: Callable[[], None], stop: Stop) -> None:
        self._tick = tick
        self._stop = stop
        self._swept = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="engine-clock", daemon=True)

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the end, after `stop` was set."""
        if self._thread.is_alive():
            self._thread.join(timeout)

    def sweep_due(self, watching: bool) -> bool:
        """Whether it is time to scan for what the watcher missed; True once each time."""
        now = time.monotonic()
        if not watching or now - self._swept < SWEEP_SECONDS:
            return False
        self._swept = now
        return True

    def _run(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            self._tick()
