"""See, search and explain the Markdown memory of OpenClaw-style agents.

Markdown files are the truth; everything else is derived, disposable and explainable. Read the package in the
order in which a memory travels through it:

    workspace -> providers -> index -> search -> explain | curate -> tune | inbox | recalls -> engine -> tui | mcp

Below stand core and config, above the command line; openclaw and hosts know the programs around it.

`__all__` is what programs may rely on (`memory-tui help library`). Each name is imported when it is asked for, so that
`import memory_tui` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_tui.core.cancel import Stop
    from memory_tui.core.errors import (
        Cancelled,
        ConfigError,
        EditRefused,
        IndexBusy,
        IndexUnavailable,
        MemoryTuiError,
        PathRefused,
        ProviderError,
        QueryError,
        SettingError,
        Unreadable,
        WorkspaceError,
    )
    from memory_tui.core.events import (
        Event,
        IndexChanged,
        NotesChanged,
        Noticed,
        ProviderChanged,
        RootsChanged,
        SyncFinished,
        SyncProgress,
    )
    from memory_tui.core.settings import Settings
    from memory_tui.engine.engine import Engine, open_memory
    from memory_tui.plan import Options
    from memory_tui.search.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "Cancelled",
    "ConfigError",
    "EditRefused",
    "Engine",
    "Event",
    "IndexBusy",
    "IndexChanged",
    "IndexUnavailable",
    "MemoryTuiError",
    "NotesChanged",
    "Noticed",
    "Options",
    "PathRefused",
    "ProviderChanged",
    "ProviderError",
    "QueryError",
    "RootsChanged",
    "SettingError",
    "Settings",
    "Stop",
    "SyncFinished",
    "SyncProgress",
    "Trace",
    "Unreadable",
    "WorkspaceError",
    "open_memory",
]

_MODULES = ("core.errors", "core.events", "core.settings", "plan", "index.connections", "search.trace", "engine.engine")
"""Where the names stand, the quickest import first."""


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """A name of `__all__`."""
    if name in __all__:
        from importlib import import_module

        for module in _MODULES:
            if (found := getattr(import_module(f"memory_tui.{module}"), name, None)) is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
