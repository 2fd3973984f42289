"""The engine behind every front end: it opens a workspace, keeps its index fresh, answers queries.

- batch_runner: The batch runner follows batch jobs beside the syncs of an engine. -> BatchRunner
- change_watch: The change watch notices what other programs do to notes, to their folders, to the index. ->
  WatchSwitch
- costs: The cost of an index run before it starts: texts, hosts, tokens, price. -> forecast
- engine: The engine is the one object a front end holds: it opens a workspace, keeps its index, answers queries. ->
  Engine
- freshness_check: The freshness check compares the notes on disk with the index. -> FreshnessCheck
- inbox_inputs: What the inbox examines: notes on disk, their chunks, what recalls returned. -> view
- index_check: The index check reads an index from end to end, or asks the provider for one of its vectors anew. ->
  problems
- indexer: The indexer keeps the index up to date in the background. -> Indexer
- injected: What OpenClaw 2026.9 injects for a message: curated entries whose triggers fit, each with its
  reason. -> injected
- open_index: The index is opened for writing: found, checked, replaced where it is damaged. -> IndexOpener
- own_answer: OpenClaw's own answer is that of its rows by its rules; it stands beside ours, which is that of the files.
  -> own_answer
- provider_setup: The provider of an index run is tested before it replaces the one in use. -> Providers
- queries: Queries read the index over connections of their own; an index run never blocks them. -> Queries
- status: The status of a workspace: index, files, provider, why a file is in or out. -> status
"""

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
