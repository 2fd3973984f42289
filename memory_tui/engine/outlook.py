"""What of the notes on disk the index knows, as it was last looked at, and what a person should be told of that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memory_tui.embed.chain import NONE
from memory_tui.engine.supply import fallback_in
from memory_tui.search.trace import Notice, Unsearchable
from memory_tui.workspace.roots import Scan, reachable

if TYPE_CHECKING:
    from memory_tui.embed.chain import Chain
    from memory_tui.embed.provider import Identity, Provider
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.launch import Plan
    from memory_tui.settings import Settings

_CHEAP_SECONDS = 0.015
"""A look that takes no longer than this is worth its time before every search."""
_YOUNG_SECONDS = 0.25
"""A look is not repeated before this has passed."""


class Outlook:
    """The last look at disk against the index of one plan; any thread may take another one."""

    def __init__(self, plan: Plan, chain: Chain) -> None:
        self.unsearchable: tuple[Unsearchable, ...] = ()
        """What a search could not find at the last look, and why."""
        self.seen: Freshness | None = None
        """What the last look found."""
        self._plan = plan
        self._chain = chain
        self._at = 0.0
        self._cost = 0.0

    @property
    def age(self) -> float:
        """Seconds since the last look."""
        return time.monotonic() - self._at

    def put_off(self) -> None:
        """Count as looked at now: somebody is about to look."""
        self._at = time.monotonic()

    def look(self, store: Store, seen: Scan | None = None) -> Freshness:
        """Compare disk and index, and remember what a search could not find, for the next answers."""
        from memory_tui.index import schema, shrink, sync
        from memory_tui.index.freshness import compare

        began = time.monotonic()
        has, roots, settings = store.recipe(), self._plan.roots, self._plan.settings
        wanted = sync.recipe_for(roots, *self._wanted(store, has.identity)) if has is not None else None
        rebuild = schema.differences(has, wanted) if has and wanted else ()
        every = seen or reachable(roots, None if rebuild else store.settled())
        if rebuild and every.quiet:
            every = reachable(roots)
        found = compare(
            every,
            store.known(),
            settings,
            rebuild=rebuild,
            roots=roots,
            devices=shrink.from_text(store.meta(shrink.KEY)),
        )
        self.unsearchable = tuple(
            [Unsearchable(f.path, f.state, f.detail, f.patient) for f in found.stale.values() if f.detail != "rebuild"]
            + [Unsearchable(left.path, "excluded", left.detail) for left in found.left_out]
        )
        self.seen, self._at = found, time.monotonic()
        if seen is None:
            self._cost = self._at - began
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

    def glance(self, store: Store) -> bool:
        """Look before a search where that is cheap and was not just done; whether notes wait to be indexed."""
        if self._plan.once or self.age < _YOUNG_SECONDS or self._cost > _CHEAP_SECONDS:
            return False
        return bool(self.look(store).pending)

    def doubts(self) -> tuple[Notice, ...]:
        """What a person has to decide, or should know, about index and disk."""
        seen, found = self.seen, []
        if seen is not None and seen.shrink is not None:
            found.append(
                Notice(
                    "shrink",
                    f"{seen.shrink.reason}; they stay in the index until you agree.",
                    "Bring them back, or run memory-tui index --accept-shrink.",
                )
            )
        if seen is not None and seen.rebuild:
            found.append(
                Notice(
                    "rebuild",
                    f"The index was made otherwise ({'; '.join(seen.rebuild)}); it answers until a new one is whole.",
                    "Run memory-tui index.",
                )
            )
        return tuple(found)
