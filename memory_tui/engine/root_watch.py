"""The root watch examines every root once a second.

A file system can hang, and with it whoever asks for it. So the examination has a thread of its own, and who wants to
know the states never waits for it: a root that does not answer is unreadable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_tui.core.cancel import Stop
from memory_tui.workspace import root_state
from memory_tui.workspace.root_state import Identity, Probe, RootState

if TYPE_CHECKING:
    from memory_tui.engine.watch_switch import WatchSwitch
    from memory_tui.workspace.roots import Roots

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
