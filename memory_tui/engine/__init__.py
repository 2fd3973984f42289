"""The engine behind every front end. It opens a workspace, keeps its index fresh, and answers queries.

- backend: The backend decides who answers: QMD where it was chosen, else the built-in index, which is QMD's fallback.
  -> Backend
- batch_runner: The batch runner follows batch jobs beside the syncs of an engine. -> BatchRunner
- change_watch: The change watch notices what other programs change. -> WatchSwitch
- chunk_map: The chunk map is every chunk of an index on a plane by its vector. -> chunk_map
- compare_qmd: The built-in index answers beside QMD, with the reason for each hit that one of them lacks. -> compare
- connected_agents: Connected agents are the agent programs that use this memory. -> rows
- costs: The cost of an index run before it starts. -> forecast
- edit_trials: Edit trials: questions are asked of a copy of the index in which notes are changed, before anybody
  changes them. -> remedies
- engine: The engine is the one object a front end holds. -> Engine
- freshness_check: The freshness check compares the notes on disk with the index. -> FreshnessCheck
- inbox_inputs: What the inbox examines. -> view
- index_check: The index check reads an index from end to end, or asks the provider for one of its vectors anew. ->
  problems
- indexer: The indexer keeps the index up to date in the background. -> Indexer
- open_index: The index is opened by its writer. -> IndexOpener
- openclaw_answer: What OpenClaw itself gives its agent for a query, beside what the files say. -> own_answer
- past_questions: Past questions are asked again. -> past_questions
- provider_setup: The provider of an index run is tested before it replaces the one in use. -> Providers
- queries: Queries read the index over connections of their own; an index run never blocks them. -> Queries
- status: The status of a workspace. -> status
- unrelated_memory: What unrelated queries reach in one workspace, remembered for the levels of answers. ->
  UnrelatedRecords
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_tui.core.cancel import Stop
    from memory_tui.engine.engine import Engine
    from memory_tui.run_options import Options

__all__ = ["Engine", "Options", "Stop"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """The names that programs import from here; each is imported when it is asked for."""
    if name == "Engine":
        from memory_tui.engine.engine import Engine

        return Engine
    if name == "Options":
        from memory_tui.run_options import Options

        return Options
    if name == "Stop":
        from memory_tui.core.cancel import Stop

        return Stop
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
