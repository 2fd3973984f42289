"""See, search and explain the Markdown memory of OpenClaw-style agents.

Markdown files are the truth; everything else is derived, disposable and explainable. Read the package in the
order in which a memory travels through it:

    workspace -> providers -> index -> source -> search -> explain | notes -> tune | inbox | recalls -> engine
    engine -> render | doctor | demo -> tui | mcp -> cli

Below stand core and config; openclaw and hosts know the programs around it, qmd and ltm other memories beside it.
`plan` puts what was asked for and the configuration together, `approval` keeps what a person
agreed to, `notices` are what an answer or an index lacks; `manual` holds the pages of help.

`__all__` is what programs may rely on (`memory-tui help library`). Each name is imported when it is asked for, so that
`import memory_tui` stays quick.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.2.0"

_EXPORTS = {
    "core.errors": (
        "Cancelled",
        "ConfigError",
        "EditRefused",
        "IndexBusy",
        "IndexUnavailable",
        "MemoryTuiError",
        "PathRefused",
        "ProviderError",
        "QueryError",
        "SettingError",
        "Unreadable",
        "WorkspaceError",
    ),
    "core.events": (
        "Event",
        "IndexChanged",
        "NotesChanged",
        "Noticed",
        "ProviderChanged",
        "RootsChanged",
        "SyncFinished",
        "SyncProgress",
    ),
    "core.settings": ("Settings",),
    "plan": ("Options",),
    "core.cancel": ("Stop",),
    "search.trace": ("Trace",),
    "engine.engine": (
        "Engine",
        "open_memory",
    ),
}
"""Module -> the names that it gives; `__init__.pyi` says the same to type checkers."""

__all__ = [name for names in _EXPORTS.values() for name in names]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """A name of `__all__`."""
    for module, names in _EXPORTS.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"memory_tui.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
