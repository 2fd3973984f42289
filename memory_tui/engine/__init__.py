"""The engine behind every front end. It opens a workspace, keeps its index fresh, and answers queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_tui.core.cancel import Stop
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Options

__all__ = ["Engine", "Options", "Stop"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """The names that programs import from here; each is imported when it is asked for."""
    if name == "Engine":
        from memory_tui.engine.engine import Engine

        return Engine
    if name == "Options":
        from memory_tui.plan import Options

        return Options
    if name == "Stop":
        from memory_tui.core.cancel import Stop

        return Stop
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
