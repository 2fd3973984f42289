"""The keys of the index, of what lies over it, and of OpenClaw's own index."""

from __future__ import annotations

from memory_tui.tui.action import (
    Action,
    needs_agreement,
    needs_engine,
    needs_proposal,
    needs_rest,
    needs_shrink,
)

ACTIONS: tuple[Action, ...] = (
    Action("doctor", ("D",), "index", "examine machine, notes, index, provider and settings", "Doctor", needs_engine,
           palette=False),
    Action("supply", ("v",), "index", "who makes the vectors, what they would get, and a test call", "Providers",
           needs_engine, palette=False),
    Action("reindex", ("R",), "index", "index every note anew, after asking", "Reindex", needs_rest),
    Action("watch", ("P",), "index", "switch the watcher on or off", "Watcher", needs_engine),
    Action("pause", ("p",), "index", "hold the event log still, or let it run", "Hold log"),
    Action("hold", ("z",), "index", "pause indexing after the batch under way, or let it go on", "Pause", needs_engine),
    Action("accept", ("a",), "index", "forget the notes that vanished, after asking", "", needs_shrink),
    Action("storage", ("t",), "index", "tables, files and writers of the index, and what a rebuild costs", "Tables",
           needs_engine, palette=False),
    Action("compare", ("c",), "index", "compare OpenClaw's own index with the notes on disk", "Compare", needs_engine,
           palette=False),
    Action("recalls", ("A",), "index", "what agents asked; enter asks it again, with the knobs of then", "Recalls",
           needs_engine, palette=False),
    Action("sessions", ("F",), "index", "how near each session is to its memory flush", "Flush", needs_engine,
           palette=False),

    Action("again", ("r",), "doctor", "examine everything again", "Again", needs_engine, palette=False),

    Action("try_out", ("T",), "supply", "test the provider under the cursor with one real call", "Test", needs_engine),
    Action("agree", ("y",), "supply", "let the provider that waits for it have the notes, after asking", "Agree",
           needs_proposal),
    Action("revoke", ("x",), "supply", "take the agreements of this workspace back", "Revoke", needs_agreement),
    Action("again", ("r",), "supply", "ask a provider that failed again, and look again", "Again", needs_engine,
           palette=False),

    Action("again", ("r",), "storage", "measure again", "Again", needs_engine, palette=False),
    Action("again", ("r",), "sessions", "read the sessions again", "Again", needs_engine, palette=False),

    Action("open", ("enter",), "recalls", "ask it in the search view, with the knobs that held then: why this answer",
           "Ask again", needs_engine, palette=False),
    Action("then_now", ("w",), "recalls", "show below it what it got then, and would get now", "Then and now",
           needs_engine),
    Action("filter", ("f",), "recalls", "show only questions that hold what you type; esc shows all", "Filter",
           needs_engine),
    Action("again", ("r",), "recalls", "read the log again", "Refresh", needs_engine, palette=False),

    Action("open", ("enter",), "compare", "read this note", "Read", palette=False),
    Action("agreeing", ("a",), "compare", "show or hide the files that agree", "All", needs_engine),
    Action("compare", ("c",), "compare", "look again", "Again", needs_engine, palette=False),
)
