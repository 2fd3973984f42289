"""The watch switch begins the watcher, examines it, begins it anew when it ended."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from memory_tui.core.events import Event, WatchChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_tui.index.watch import Named, Watcher
    from memory_tui.plan import Plan

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

            self._watcher = Watcher(
                self._plan.roots, self._plan.settings.whole("sync.watchDebounceMs") / 1000, self._changed, self._heard
            )
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

    def _heard(self, detail: str) -> None:
        self._working = detail
        self._news(detail)

    def _news(self, detail: str) -> None:
        self.detail = detail
        self._emit(WatchChanged(time.time(), self.on, detail))
