"""The scopes of a shared index, each with its mirror on this machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cancel import Stop
from memory_tui.config import load as configuration
from memory_tui.engine.index import Index
from memory_tui.errors import IndexUnavailable, MemoryTuiError
from memory_tui.formatting import install_extra
from memory_tui.plan import Plan
from memory_tui.shared.scope import Scope, workspace_of
from memory_tui.shared.states import Record, Standing

if TYPE_CHECKING:
    from memory_tui.shared.connection import Access
    from memory_tui.shared.mirror import Mirror


KEPT_SECONDS = 10.0
"""How often a mirror that is kept is brought up to date where no notice comes."""


class Scopes:
    """What a workspace of this `plan` and `index` asks of a shared index, of which nothing is imported before that."""

    def __init__(self, plan: Plan, index: Index) -> None:
        self._plan, self._index = plan, index
        self._mirrors: dict[Path, Mirror] = {}
        self._lock = threading.Lock()

    @property
    def configured(self) -> bool:
        """Return whether there is a shared index."""
        return bool(self._value("shared.url"))

    def _value(self, key: str) -> object:
        return configuration.own(self._plan.config).value(key)

    @property
    def kept(self) -> str:
        """Return the scope that is mirrored all the time; empty for none."""
        return str(self._value("shared.mirror.scope") or "") if self.configured else ""

    @property
    def told(self) -> str:
        """Return the scope of which the status tells: the kept one, else the one asked last. Raises MemoryTuiError."""
        asked = self._records() if self.configured and not self.kept else ()
        return next((record.scope for record in asked), self.kept)

    @property
    def known(self) -> list[str]:
        """Return the other workspaces that mirrors on this machine hold; waits for no server. Raises MemoryTuiError."""
        return sorted({name for record in self._records() for name in record.workspaces} - {self._access().name})

    def _records(self) -> list[Record]:
        """Return what is known of the mirrors on this machine, the newest first."""
        access = self._access()
        from memory_tui.shared.mirror import complete, folder

        return [*complete(folder(access)).values()]

    def stop(self) -> None:
        """End all fetching that goes on behind."""
        with self._lock:
            for mirror in self._mirrors.values():
                mirror.stop.set()

    def mirror(self, scope: str, patience: Stop | None = None) -> tuple[Path, Standing]:
        """Return the index that answers for `scope`, and how it stands.

        Waits for the shared index no longer than shared.askTimeoutMs or `patience`. Raises MemoryTuiError.
        """
        access = self._access()
        mirror = self._mirror(access, scope)
        return mirror.path, mirror.within(access.timeout_ms / 1000, patience or Stop())

    def keep(self, stop: Stop) -> None:
        """Bring the mirror that is kept up to date at each notice, and now and then, until `stop`.

        Whoever asks is told of a failure.
        """
        while not stop.is_set():
            try:
                self.mirror(self.kept)
                from memory_tui.shared.mirror import await_news

                await_news(self._access(), KEPT_SECONDS, stop)
            except MemoryTuiError:
                stop.wait(KEPT_SECONDS)

    def fill(self, scope: str) -> Standing:
        """Bring the mirror of `scope` up to date, however long that takes. Raises MemoryTuiError."""
        mirror = self._mirror(self._access(), scope)
        mirror.refresh()
        return mirror.within(0, Stop())

    def holding(self, shown: str) -> str:
        """Return the scope to ask for a note of somebody else, `owner/name:path`, which is the one asked last that has
        its workspace; empty for a note of one's own. Raises MemoryTuiError.
        """
        name = workspace_of(shown)
        if not name or not self.configured or (self._plan.roots.workspace / shown).exists():
            return ""
        return next((record.scope for record in self._records() if name in record.workspaces), name)

    def _access(self) -> Access:
        try:
            from memory_tui.shared.connection import access
        except ModuleNotFoundError:
            raise MemoryTuiError("A shared index needs the extra postgres.", f"{install_extra('postgres')}.") from None
        return access(self._plan)

    def _mirror(self, access: Access, text: str) -> Mirror:
        from memory_tui.shared.mirror import Mirror

        plan = self._plan
        with self._index.reader_or_empty() as store:
            recipe = store.recipe()
        if recipe is None:
            raise IndexUnavailable(
                "Nothing is indexed here yet, so nobody knows how notes are cut.", f"{plan.index_command}."
            )
        most = self._value("shared.mirror.maxChunks")
        mirror = Mirror(access, Scope.of(text, access.name), recipe, most if isinstance(most, int) else 0)
        with self._lock:
            return self._mirrors.setdefault(mirror.path, mirror)
