"""The connection view shows the files that connecting an agent changes, before they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import safe
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.rowlist import Line, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.hosts.connection import HostConnection
    from memory_tui.hosts.wiring import Host, Scope


class ConnectionPlan(Struct, frozen=True):
    """What is to be written: how many files, the lines of the difference, what writes them."""

    files: int
    lines: tuple[str, ...]
    write: Callable[[], object]
    done: str
    """What is said when it is written."""


Planning = tuple[str, "Callable[[Engine], ConnectionPlan]"]
"""The title of a plan, and what works it out on a worker thread."""


def connecting(host: Host, scope: Scope, project: Path, log: bool) -> Planning:
    """Connect an agent program to this memory."""

    def plan(engine: Engine) -> ConnectionPlan:
        from memory_tui.engine import connected_agents
        from memory_tui.hosts import connection

        wiring = connected_agents.wiring_of(engine.plan, host, scope, project, log=log)
        files = connection.planned(host, wiring)
        return ConnectionPlan(
            sum(file.now != file.then for file in files),
            (*filter(None, (host.loss(),)), *connection.difference(files)),
            lambda: connection.connect(host, wiring, files),
            f"{host.title} is connected. {host.after}",
        )

    return f"Connect {host.title}", plan


def disconnecting(made: HostConnection) -> Planning:
    """Remove a connection, and leave the files as they were."""
    from memory_tui.hosts.wiring import host

    title = host(made.host).title

    def plan(_engine: Engine) -> ConnectionPlan:
        from memory_tui.hosts import connection

        files = connection.restorations(made)
        return ConnectionPlan(
            sum(file.now != file.then for file in files),
            tuple(connection.difference(files)),
            lambda: connection.disconnect(made, files),
            f"{title} is disconnected.",
        )

    return f"Disconnect {title}", plan


class ConnectionView(View):
    """The difference, line by line; enter writes it, with a backup of every file."""

    PLACE = "connection"

    def __init__(self, below: View, planning: Planning, changed: Callable[[], None]) -> None:
        super().__init__(below)
        title, plan = planning
        self._writer = ConnectionWriter(below, changed)
        self.listing = Listing(
            self,
            title=title,
            waiting="Reading the files of the agent ...",
            gather=plan,
            lines=_lines,
            summary=_summary,
        )
        self.parts = (self.listing,)

    def do_write(self) -> None:
        """Write the files, then go back and have the agent's server answer."""
        found = self.listing.found
        if found is None:
            self.show_message("The difference is not known yet.")
            return
        self._writer.write(found)
        self.back()


class ConnectionWriter(Part):
    """Writes the files, then calls `changed`; a part of the view below, so that its task outlives the difference."""

    def __init__(self, view: View, changed: Callable[[], None]) -> None:
        super().__init__(view)
        self._changed = changed

    @task("connection", exclusive=False)
    async def write(self, plan: ConnectionPlan) -> None:
        """Write all files of `plan`, or none."""
        await self.home.jobs.write(lambda _engine: plan.write())
        self.view.show_message(plan.done)
        self._changed()


def _summary(plan: ConnectionPlan) -> str:
    return f"{plural(plan.files, 'file')}   enter writes   esc leaves" if plan.files else "nothing to write"


def _lines(plan: ConnectionPlan, width: int) -> list[Line]:
    if not plan.lines:
        return text("The files hold these entries already. Press enter to have its server answer.", width)
    written: list[Line] = []
    for line in plan.lines:
        style = {"+": "good", "-": "bad", "@": "muted"}.get(line[:1], "")
        written += text(safe(line), width, style)
    return written
