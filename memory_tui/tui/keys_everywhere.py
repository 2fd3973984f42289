"""The keys that work everywhere, in every list, and with a note under the cursor."""

from __future__ import annotations

from memory_tui.tui.action import (
    Action,
    needs_agents,
    needs_editor,
    needs_engine,
    needs_note,
    needs_rest,
    needs_shell,
    needs_zoom,
)

ACTIONS: tuple[Action, ...] = (
    Action("help", ("?", "f1"), "everywhere", "what the keys and signs of this pane mean", "Help"),
    Action("ask", ("/",), "everywhere", "ask the memory: go to the query box", "Ask", needs_engine),
    Action("browse", ("1",), "everywhere", "the notes by day, and a reader", ""),
    Action("search", ("2",), "everywhere", "ask, see why, tune", ""),
    Action("index", ("3",), "everywhere", "what is indexed, what is not, and what happened", ""),
    Action("inbox", ("4",), "everywhere", "what in the notes should be looked at, with before and after", ""),
    Action("commands", (":", "ctrl+p"), "everywhere", "find any command by its name", "Cmd", palette=False),
    Action("next_pane", ("tab",), "everywhere", "next pane", "", palette=False),
    Action("previous_pane", ("shift+tab",), "everywhere", "previous pane", palette=False),
    Action("zoom", ("+",), "everywhere", "enlarge this pane to the whole screen"),
    Action("unzoom", ("_",), "everywhere", "back to all panes", refuse=needs_zoom),
    Action(
        "jump", ("ctrl+o",), "everywhere", "show a letter on every pane, and go to the one you press", palette=False
    ),
    Action("sync", ("r",), "everywhere", "look for changed files and index them", "Sync", needs_rest),
    Action(
        "agent",
        ("@",),
        "everywhere",
        "go to another agent of the configuration: its notes, settings and index",
        "",
        needs_agents,
    ),
    Action("doctor", (), "everywhere", "examine machine, notes, index, provider and settings", "", needs_engine),
    Action("supply", (), "everywhere", "who makes the vectors, what they would get, and a test call", "", needs_engine),
    Action(
        "storage",
        (),
        "everywhere",
        "tables, files and writers of the index, and what a rebuild costs",
        "",
        needs_engine,
    ),
    Action("sessions", (), "everywhere", "how near each session is to its memory flush", "", needs_engine),
    Action(
        "recalls", (), "everywhere", "what agents asked; enter asks it again, with the knobs of then", "", needs_engine
    ),
    Action(
        "compare",
        (),
        "everywhere",
        "compare OpenClaw's own index with the notes on disk; it is only read",
        "",
        needs_engine,
    ),
    Action("theme", (), "everywhere", "choose a theme: the colours, dark or light"),
    Action("redraw", ("ctrl+l",), "everywhere", "draw the screen again"),
    Action(
        "suspend", ("ctrl+z",), "everywhere", "put the app into the background (fg brings it back)", refuse=needs_shell
    ),
    Action("back", ("escape",), "everywhere", "one step back", "Back", palette=False),
    Action("leave", ("q",), "everywhere", "one step back, then quit", "Back", palette=False),
    Action("leave_app", ("ctrl+q",), "everywhere", "quit at once", priority=True),
    Action("down", ("j", "down"), "list", "next row", palette=False),
    Action("up", ("k", "up"), "list", "previous row", palette=False),
    Action("top", ("g", "home"), "list", "first row", palette=False),
    Action("bottom", ("G", "end"), "list", "last row", palette=False),
    Action("page_down", ("ctrl+d", "pagedown"), "list", "half a page down", palette=False),
    Action("page_up", ("ctrl+u", "pageup"), "list", "half a page up", palette=False),
    Action("edit", ("e",), "notes", "open the note in $VISUAL or $EDITOR at this line", "Edit", needs_editor),
    Action("cite", ("y",), "notes", "copy the citation: path#Lfirst-Llast", "Cite", needs_note),
    Action("copy", ("Y",), "notes", "copy the text with its citation", "", needs_note),
)
