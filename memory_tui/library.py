"""The names that programs may rely on; `memory-tui help library` tells of each."""

from __future__ import annotations

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine, open_memory
from memory_tui.errors import (
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
from memory_tui.events import (
    Event,
    IndexChanged,
    NotesChanged,
    Noticed,
    ProviderChanged,
    RootsChanged,
    SyncFinished,
    SyncProgress,
)
from memory_tui.plan import Options
from memory_tui.search.trace import Trace
from memory_tui.settings import Settings

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
