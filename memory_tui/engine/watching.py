"""Switching the watcher of one engine on and off, and telling what it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_tui.events import Event, WatchChanged

if TYPE_CHECKING:
    from memory_tui.index.watch import Named, Watcher
    from memory_tui.launch import Plan


class Watching:
    """At most one watcher; `changed` hears which paths were saved, None for any; `tell` hears what becomes of it."""

    def __init__(self, plan: Plan, changed: Callable[[Named], None], tell: Callable[[Event], None]) -> None:
        self.detail = "off"
        """What is done, in words."""
        self._plan = plan
        self._changed = changed
        self._tell = tell
        self._lock = threading.Lock()
        self._watcher: Watcher | None = None
        self._ended = False

    @property
    def on(self) -> bool:
        """Whether saved files are noticed by themselves."""
        return self._watcher is not None and self._watcher.alive

    def switch(self, on: bool) -> None:
        """Switch the watcher on or off."""
        from memory_tui.index.watch import Watcher

        self._drop()
        if on and not self._ended:
            self._watcher = Watcher(
                self._plan.roots, self._plan.settings.whole("sync.watchDebounceMs") / 1000, self._changed, self._news
            )
            self._watcher.start()
        self._news("on" if on else "switched off")

    def end(self) -> None:
        """Stop for good, and without a word."""
        self._ended = True
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    def _news(self, detail: str) -> None:
        self.detail = detail
        self._tell(WatchChanged(time.time(), self.on, detail))
