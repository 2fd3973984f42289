"""The table of hosts: a row each; what a row names stands in the file of the host."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from memory_tui.errors import SettingError
from memory_tui.hosts import claude_code, codex, openclaw
from memory_tui.hosts.wiring import FileEdit, Scope, ServerStart, Wiring


class Host(Struct, frozen=True):
    """A row: `edits` plans the files of a connection, `variables` are what the server gets (None: all)."""

    name: str
    title: str
    edits: Callable[[Wiring], tuple[FileEdit, ...]]
    after: str
    """What a person does so that the host reads its files again, as a sentence."""
    client: str
    """How the name begins by which the host introduces itself to a server."""
    loss: Callable[[], str] = str
    """Says what the host does without while it is connected, as sentences; `str()` is empty, for nothing."""
    variables: tuple[str, ...] | None = None
    scopes: tuple[Scope, ...] = ("user", "project")

    def start(self, wiring: Wiring) -> ServerStart:
        """Return what the host starts once it is connected."""
        return ServerStart(wiring.server(), self.variables)


def host(name: str) -> Host:
    """Return the row of the host `name`. Raises SettingError."""
    if name not in HOSTS:
        raise SettingError(f"There is no host {name!r}.", f"Choose one of {', '.join(HOSTS)}.")
    return HOSTS[name]


_ROWS = (
    Host(
        "openclaw",
        "OpenClaw",
        openclaw.edits,
        "Restart the gateway: openclaw gateway restart.",
        "openclaw",
        openclaw.loss,
        scopes=("user",),
    ),
    Host(
        "claude-code",
        "Claude Code",
        claude_code.edits,
        "Start Claude Code again; in a project it asks once whether you trust the folder.",
        "claude",
    ),
    Host(
        "codex",
        "Codex",
        codex.edits,
        "Start Codex again; it asks once about new hooks.",
        "codex",
        variables=codex.VARIABLES,
    ),
)
HOSTS = {row.name: row for row in _ROWS}
