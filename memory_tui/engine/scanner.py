"""What a sync looks at: everything, or only what the watcher has named since everything was looked at and indexed."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

from memory_tui.workspace.again import Picture

if TYPE_CHECKING:
    from memory_tui.index.freshness import Freshness
    from memory_tui.index.store import Store
    from memory_tui.workspace.roots import Roots, Scan

_MOST = 200
"""More paths than this are not looked at one by one."""


class Looking:
    """The looks of the syncs of one engine; any thread may `name` what changed, the writer looks.

    Only a picture that was kept lets the next look be a small one: of a sync that failed, was stopped or left anything
    undone there is none, and everything is looked at again.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._everything = True
        self._picture: Picture | None = None
        self._kept: Picture | None = None
        self._near = False
        self._paths: set[str] = set()

    def name(self, paths: Collection[str] | None) -> None:
        """Have the next look go to these absolute paths; to everything for None."""
        with self._lock:
            if paths is None or len(self._named) + len(paths) > _MOST:
                self._everything = True
                self._named.clear()
            elif not self._everything:
                self._named.update(paths)

    def first(self, store: Store) -> Scan:
        """The look of a sync that begins. Raises WorkspaceError."""
        with self._lock:
            everything, self._everything = self._everything, False
            self._paths, self._named = self._named, set()
        before, self._kept = self._kept, None
        return self._look(store, None if everything else before)

    def again(self, store: Store) -> Scan:
        """The same look after what it found was indexed. Raises WorkspaceError.

        A look at everything is one again: what it found, and what was not indexed of that, is nowhere written down.
        """
        return self._look(store, self._picture if self._near else None)

    def keep(self, store: Store, freshness: Freshness) -> None:
        """Rely on the last look, if by `freshness` every note of it is indexed, and nothing else is."""
        picture, self._picture = self._picture, None
        whole = not (freshness.pending or freshness.of("missing root") or freshness.rebuild or freshness.shrink)
        if picture is not None and whole and picture.scan.total == len(store.known()):
            self._kept = picture

    def _look(self, store: Store, before: Picture | None) -> Scan:
        known, self._picture = store.known(), None
        near = before and before.again(self._roots, self._paths, known.unsettled, known.settled)
        self._near = near is not None
        self._picture = near or Picture.taken(self._roots, known.settled)
        return self._picture.scan
