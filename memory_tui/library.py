"""The names that programs may rely on; `memory-tui help library` tells of each."""

from __future__ import annotations

from memory_tui.cancel import Stop as Stop
from memory_tui.config.settings import Settings as Settings
from memory_tui.engine.engine import Engine as Engine
from memory_tui.engine.engine import open_memory as open_memory
from memory_tui.errors import Cancelled as Cancelled
from memory_tui.errors import ConfigError as ConfigError
from memory_tui.errors import EditRefused as EditRefused
from memory_tui.errors import IndexBusy as IndexBusy
from memory_tui.errors import IndexUnavailable as IndexUnavailable
from memory_tui.errors import MemoryTuiError as MemoryTuiError
from memory_tui.errors import PathRefused as PathRefused
from memory_tui.errors import ProviderError as ProviderError
from memory_tui.errors import QueryError as QueryError
from memory_tui.errors import SettingError as SettingError
from memory_tui.errors import Unreadable as Unreadable
from memory_tui.errors import WorkspaceError as WorkspaceError
from memory_tui.events import Event as Event
from memory_tui.events import IndexChanged as IndexChanged
from memory_tui.events import NotesChanged as NotesChanged
from memory_tui.events import Noticed as Noticed
from memory_tui.events import ProviderChanged as ProviderChanged
from memory_tui.events import RootsChanged as RootsChanged
from memory_tui.events import SyncFinished as SyncFinished
from memory_tui.events import SyncProgress as SyncProgress
from memory_tui.plan import Options as Options
from memory_tui.search.rank import Trace as Trace
