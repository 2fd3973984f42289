"""The keys of the index, and of OpenClaw's own."""

from __future__ import annotations

from memory_tui.tui.action import Action, needs_engine, needs_rest

ACTIONS: tuple[Action, ...] = (
    Action("reindex", ("R",), "index", "index every note anew, after asking", "Reindex", needs_rest),
    Action("watch", ("P",), "index", "switch the watcher on or off", "Watcher", needs_engine),
    Action("pause", ("p",), "index", "hold the event log still, or let it run", "Pause"),
    Action("compare", ("c",), "index", "compare OpenClaw's own index with the notes on disk", "Compare", needs_engine,
           palette=False),
    Action("open", ("enter",), "compare", "read this note", "Read", palette=False),
    Action("agreeing", ("a",), "compare", "show or hide the files that agree", "All", needs_engine),
    Action("compare", ("c",), "compare", "look again", "Again", needs_engine, palette=False),
)
