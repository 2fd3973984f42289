"""The freshness check compares the notes on disk with the index."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_tui.engine.provider_setup import fallback_in, who_answers
from memory_tui.notices import Notice, notice
from memory_tui.providers.chain import NONE
from memory_tui.search.trace import Unsearchable
from memory_tui.workspace.roots import reachable

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memory_tui.core.settings import Settings
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.mass_deletion import Devices
    from memory_tui.index.store import Store
    from memory_tui.plan import Plan
    from memory_tui.providers.base import Identity, Provider
    from memory_tui.providers.chain import Chain
    from memory_tui.workspace.scan import Scan

_CHEAP_SECONDS = 0.015
"""A comparison that takes no longer than this is worth its time before every search."""
_CHEAP_NOTES = 10_000
"""More notes than this are not compared within _CHEAP_SECONDS on any machine."""
_YOUNG_SECONDS = 0.25
"""A comparison is not repeated before this has passed."""
_FIRST_SECONDS = 0.5
"""How long a search waits for the first comparison of a sync; a damaged index is examined for seconds before that."""


class FreshnessCheck:
    """The last comparison of disk and index of one plan; any thread may make another one."""

    def __init__(self, plan: Plan, chain: Chain) -> None:
        self.unsearchable: tuple[Unsearchable, ...] = ()
        """What a search could not find at the last comparison, and why."""
        self.last: Freshness | None = None
        """What the last comparison found."""
        self.devices: Devices = {}
        """The device of each root when the index was last written, as the last comparison read it."""
        self._plan = plan
        self._chain = chain
        self._lost = False
        """Whether the provider that an index would be made with does not answer."""
        self._at = 0.0
        self._cost = 0.0
        self.comparing = threading.Lock()
        """Held while disk and index are compared: a search takes what a sync finds instead of scanning too."""
        self._compared = threading.Event()
        """Cleared while a sync is about to compare for the first time."""
        self._compared.set()

    @property
    def age(self) -> float:
        """Seconds since the last comparison."""
        return time.monotonic() - self._at

    def postpone(self) -> None:
        """Count as compared now: somebody is about to compare."""
        self._at = time.monotonic()

    def await_sync(self, begin: Callable[[], Future[None]]) -> None:
        """Let a sync `begin`, which has ended when its future is done: searches wait for it instead of scanning too."""
        # Before it begins, because it may have compared before anybody hears of it.
        self._compared.clear()
        begin().add_done_callback(lambda _: self._compared.set())

    def compare(self, store: Store, seen: Scan | None = None) -> Freshness:
        """Compare disk and index, and remember what a search could not find, for the next answers."""
        from memory_tui.index import mass_deletion, schema
        from memory_tui.index.freshness import compare, recipe_for

        began = time.monotonic()
        has, roots, settings = store.recipe(), self._plan.roots, self._plan.settings
        wanted = recipe_for(roots, *self._wanted(store, has.identity)) if has is not None else None
        rebuild = schema.differences(has, wanted) if has and wanted else ()
        every = seen or reachable(roots, None if rebuild else store.known().settled)
        if rebuild and every.quiet:
            every = reachable(roots)
        self.devices = mass_deletion.from_text(store.meta(mass_deletion.KEY))
        found = compare(
            every,
            store.known(),
            settings,
            rebuild=rebuild,
            roots=roots,
            devices=self.devices,
        )
        self.unsearchable = tuple(
            [Unsearchable(f.path, f.state, f.detail, f.patient) for f in found.stale.values() if f.detail != "rebuild"]
            + [Unsearchable(left.path, "excluded", left.detail) for left in found.left_out]
        )
        self._lost = who_answers(store, self._chain, settings).standing in ("failed", "fallback failed")
        self.last, self._at = found, time.monotonic()
        if seen is None:
            self._cost = self._at - began
        elif seen.total > _CHEAP_NOTES:
            self._cost = max(self._cost, 2 * _CHEAP_SECONDS)
        self._compared.set()
        return found

    def _wanted(self, store: Store, has: Identity) -> tuple[Provider | None, Settings, Identity | None]:
        """Who would make the vectors of the next sync, the settings, and the space of them, which is `has` where
        nothing else can be told without asking.
        """
        chain, settings = self._chain, self._plan.settings
        if chain.name == NONE:
            return None, settings, None
        if chain.fallback is None and fallback_in(store, chain) is not None:
            # What another process replaced stays so until the first choice has answered.
            return chain.of_space(has), settings, has
        return chain.provider(), settings, chain.wanted(has if has.dims else None) or has

    def compare_if_cheap(self, store: Store) -> bool:
        """Compare before a search where that is cheap and was not just done; whether notes wait to be indexed."""
        if self._cost > _CHEAP_SECONDS:
            return False
        # Who comes before or while another compares takes what that finds: it is young.
        self._compared.wait(_FIRST_SECONDS)
        with self.comparing:
            if self.age < _YOUNG_SECONDS or self._cost > _CHEAP_SECONDS:
                return False
            return bool(self.compare(store).pending)

    def notices(self) -> tuple[Notice, ...]:
        """What a person has to decide, or should know, about index and disk."""
        seen, found = self.last, list[Notice]()
        if seen is not None and seen.shrink is not None:
            found.append(
                notice(
                    "notes_vanished", missing=seen.shrink.missing, known=seen.shrink.known, reason=seen.shrink.reason
                )
            )
        if seen is not None and seen.rebuild:
            found.append(notice("rebuild_waits", reasons=tuple(seen.rebuild), failed=bool(self._lost)))
        return tuple(found)
