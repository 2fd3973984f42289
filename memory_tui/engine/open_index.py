"""The index is opened for writing: found, checked, replaced where it is damaged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_tui.core.errors import IndexBusy, IndexDamaged
from memory_tui.index import locks

if TYPE_CHECKING:
    from memory_tui.index import integrity
    from memory_tui.index.store import Store
    from memory_tui.plan import Plan


class IndexOpener:
    """Opens and closes the index of `plan`; `tell` hears each of `notices` once."""

    def __init__(self, plan: Plan, tell: Callable[[str], None]) -> None:
        from memory_tui.index import index_file

        self.path = index_file.find(plan.index)
        """Where the index is; another folder than planned when that one cannot be written."""
        self.notices: list[str] = []
        self.opened = False
        self._plan = plan
        self._tell = tell
        self._last: tuple[int, int] | None = None
        self._sealed: integrity.Seal | None = None

    def open(self, damage: str) -> Store:
        """The index, made if it is not there; checked first where it was not closed, or changed since.

        `damage` is what was found wrong with the one that `close` has just closed: it is moved aside.
        Raises IndexUnavailable.
        """
        from memory_tui.index import integrity

        if damage:
            self._move_aside(damage)
        sealed = integrity.is_beside(self.path)
        worry = "" if damage else self._worry()
        store = self._store(lambda: sealed or self.expected())
        if worry:
            store = self._doubted(store, worry)
        self._sweep()
        self.opened = True
        return store

    def close(self, store: Store, whole: bool = True) -> None:
        """Close the index, and seal it when nobody else has it open."""
        from memory_tui.index import integrity

        self._last = store.identified
        moved = store.moved
        store.close()
        if whole and not moved and not self._shared():
            integrity.put(store.path, self._sealed)
        self._sealed = None

    def condemn(self, error: IndexDamaged, met: tuple[int, int] | None) -> Callable[[Store], None]:
        """A job for the writer that has the file `met` (device, inode) moved aside, in which a reader met damage."""

        def run(store: Store) -> None:
            if store.identified == met:
                raise error

        return run

    def _doubted(self, store: Store, worry: str) -> Store:
        """The index, once it was read from end to end; another one where this one is damaged."""
        from memory_tui.index import index_write, integrity

        problems = [worry] if worry == integrity.DAMAGED else integrity.problems(store)
        if problems:
            self.close(store, whole=False)
            self._move_aside(f"The index {self.path} is damaged ({problems[0]}).")
            return self._store(lambda: True)
        if worry != integrity.UNCLOSED and (recipe := store.recipe()) is not None:
            # Whole, and yet not as it was closed: every note is read and cut again, its vectors are reused.
            index_write.reset(store, recipe)
        return store

    def expected(self) -> bool:
        """Whether an index of ours lay in its place, as far as can be told: then what lies there is that, damaged."""
        from memory_tui.index import index_file, integrity

        return self.opened or integrity.is_beside(self.path) or index_file.is_private(self.path)

    def _store(self, expected: Callable[[], bool]) -> Store:
        from memory_tui.index.store import Store

        said = len(self.notices)
        store = Store.open(
            self._plan.index,
            use_vec0=self._plan.settings.on("store.vector.enabled"),
            notices=self.notices,
            expected=expected,
        )
        self.path = store.path
        for text in self.notices[said:]:
            self._tell(text)
        return store

    def _worry(self) -> str:
        """Why the file should be checked before it is trusted; empty for a new one and one that others use."""
        from memory_tui.index import integrity

        path = self.path
        there = path.exists() and path.stat().st_size > 0
        if self._shared():
            return ""
        broken, self._sealed = integrity.take(path)
        if there:
            return broken
        if self._last is not None or broken != integrity.UNCLOSED:
            self._say(f"The index {path} was deleted or emptied; it is made again from the notes.")
        return ""

    def _sweep(self) -> None:
        """Remove the oldest of what was moved aside, once for each engine, and say so."""
        from memory_tui.index import integrity

        if not self.opened:
            for text in integrity.sweep(self.path, time.time()):
                self._tell(text)

    def _shared(self) -> bool:
        """Whether another process has the index open to keep or to write it."""
        others = (locks.living(self.path, "keeper"), locks.living(self.path))
        return any(who is not None and not who.ours for who in others)

    def _move_aside(self, why: str) -> None:

        from memory_tui.index import index_file

        with self._held():
            # Another process may have done it meanwhile: then there is another file.
            if self._last is not None and index_file.file_at(self.path) == self._last:
                kept = index_file.move_aside(self.path)
                self._say(f"{why} It was kept as {kept}, and is made again from the notes.")

    def _held(self) -> locks.WriterLock:
        held = locks.WriterLock.acquire(self.path)
        if held is None:
            raise IndexBusy(f"Another process is writing {self.path}.", "Try again when it has finished.")
        return held

    def _say(self, text: str) -> None:
        self.notices.append(text)
        self._tell(text)
