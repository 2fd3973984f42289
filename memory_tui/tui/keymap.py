"""The keymap lists every key once: bindings, hints, help, palette, README are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from textual.binding import Binding

from memory_tui.tui.action import (
    Action,
    may_change,
    may_decide,
    may_delete,
    may_edit,
    may_move,
    may_write,
    needs_agents,
    needs_agreement,
    needs_answer,
    needs_change,
    needs_editor,
    needs_engine,
    needs_found,
    needs_hit,
    needs_no_decay,
    needs_note,
    needs_proposal,
    needs_rest,
    needs_shell,
    needs_shrink,
    needs_step,
    needs_suggestion,
    needs_trail,
    needs_tuned,
    needs_undone,
    needs_writing,
    needs_written,
    needs_zoom,
    shown,
)

BROWSE_ACTIONS: tuple[Action, ...] = (
    Action("open", ("enter",), "tree", "read this note, or fold this group", "Read", palette=False),
    Action("fold", ("h", "left"), "tree", "fold this group", palette=False),
    Action("unfold", ("l", "right"), "tree", "unfold this group", palette=False),
    Action("today", ("T",), "browse", "go to today's note, or the newest", "Today", needs_engine),
    Action("older", ("[",), "browse", "the day before", "Older", needs_engine),
    Action("newer", ("]",), "browse", "the day after", "Newer", needs_engine),
    Action("filter", ("f",), "browse", "show only files whose name holds what you type", "Filter", needs_engine),
    Action("scroll_down", ("J",), "tree", "scroll the reader without leaving the list", palette=False),
    Action("scroll_up", ("K",), "tree", "scroll the reader back", palette=False),
    Action("find", ("/",), "reader", "look for text in this note", "Find", needs_note),
    Action("next_match", ("n",), "reader", "next match", "Next", needs_found),
    Action("previous_match", ("N",), "reader", "previous match", "", needs_found),
    Action("next_chunk", ("}",), "reader", "next chunk of the note", "Chunk", needs_note),
    Action("previous_chunk", ("{",), "reader", "previous chunk of the note", "", needs_note),
    Action("select", ("V",), "reader", "mark lines, from here to where the cursor goes", "Mark", needs_note),
    Action("open", ("enter",), "reader", "follow the link in this line", "", needs_note, palette=False),
    Action("pick", ("o",), "reading", "open a note by a few letters of its name", "Open", needs_engine),
    Action("about", ("L",), "reading", "go to what is known of this note, and its links", "", needs_note),
    Action("return", ("-",), "reading", "back to where a link or a jump was followed", "", needs_trail),
    Action("open", ("enter",), "about", "follow this link", "Follow", palette=False),
    Action("to_text", ("enter", "down"), "find", "go to the match", "Text", palette=False),
    Action("to_files", ("enter", "down"), "filter", "go to the files", "Files", palette=False),
    Action(
        "why_line",
        ("w",),
        "reader",
        "why this line is, or is not, recalled for the question on screen",
        "Why",
        needs_note,
    ),
)

GLOBAL_ACTIONS: tuple[Action, ...] = (
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

INBOX_ACTIONS: tuple[Action, ...] = (
    Action(
        "open", ("enter",), "inbox", "do what is proposed: a change is shown first", "Do", may_decide, palette=False
    ),
    Action("trash", ("d",), "inbox", "move the lines, or the note, to the trash", "Trash", may_delete),
    Action(
        "move", ("m",), "inbox", "merge with its twin, or move the lines or the note as proposed", "Merge", may_move
    ),
    Action("snooze", ("s",), "inbox", "ask again in 1, 7 or 30 days", "Later", may_decide),
    Action("keep", ("x",), "inbox", "keep it as it is: never ask again", "Keep", may_decide),
    Action("undo", ("u",), "inbox", "take the last change or decision back", "Undo", may_write),
    Action("redo", ("ctrl+r",), "inbox", "make the last change that was taken back again", "", may_write),
    Action("place", ("o",), "inbox", "read the note at these lines", "Read", needs_suggestion),
    Action("filter", ("f",), "inbox", "show one kind only; esc shows all", "Kind", needs_engine),
    Action("decided", ("z",), "inbox", "show or hide what was kept or put off", "", needs_engine),
    Action("sync", ("r",), "inbox", "look again, and index changed files; esc stops it", "", needs_engine),
    Action("scroll_down", ("J",), "inbox", "scroll before and after without leaving the list", palette=False),
    Action("scroll_up", ("K",), "inbox", "scroll it back", palette=False),
    Action(
        "open",
        ("enter",),
        "proposal",
        "do what this line says, or read the note that it names",
        "Do",
        needs_suggestion,
        palette=False,
    ),
)

INDEX_ACTIONS: tuple[Action, ...] = (
    Action(
        "doctor",
        ("D",),
        "index",
        "examine machine, notes, index, provider and settings",
        "Doctor",
        needs_engine,
        palette=False,
    ),
    Action(
        "supply",
        ("v",),
        "index",
        "who makes the vectors, what they would get, and a test call",
        "Providers",
        needs_engine,
        palette=False,
    ),
    Action("reindex", ("R",), "index", "index every note anew, after asking", "Reindex", needs_rest),
    Action("watch", ("P",), "index", "switch the watcher on or off", "Watcher", needs_engine),
    Action("pause", ("p",), "index", "hold the event log still, or let it run", "Hold log"),
    Action("hold", ("z",), "index", "pause indexing after the batch under way, or let it go on", "Pause", needs_engine),
    Action("accept", ("a",), "index", "forget the notes that vanished, after asking", "", needs_shrink),
    Action(
        "storage",
        ("t",),
        "index",
        "tables, files and writers of the index, and what a rebuild costs",
        "Tables",
        needs_engine,
        palette=False,
    ),
    Action(
        "compare",
        ("c",),
        "index",
        "compare OpenClaw's own index with the notes on disk",
        "Compare",
        needs_engine,
        palette=False,
    ),
    Action(
        "recalls",
        ("A",),
        "index",
        "what agents asked; enter asks it again, with the knobs of then",
        "Recalls",
        needs_engine,
        palette=False,
    ),
    Action(
        "sessions",
        ("F",),
        "index",
        "how near each session is to its memory flush",
        "Flush",
        needs_engine,
        palette=False,
    ),
    Action("again", ("r",), "doctor", "examine everything again", "Again", needs_engine, palette=False),
    Action("try_out", ("T",), "supply", "test the provider under the cursor with one real call", "Test", needs_engine),
    Action(
        "agree",
        ("y",),
        "supply",
        "let the provider that waits for it have the notes, after asking",
        "Agree",
        needs_proposal,
    ),
    Action("revoke", ("x",), "supply", "take the agreements of this workspace back", "Revoke", needs_agreement),
    Action(
        "again",
        ("r",),
        "supply",
        "ask a provider that failed again, and look again",
        "Again",
        needs_engine,
        palette=False,
    ),
    Action("again", ("r",), "storage", "measure again", "Again", needs_engine, palette=False),
    Action("again", ("r",), "sessions", "read the sessions again", "Again", needs_engine, palette=False),
    Action(
        "open",
        ("enter",),
        "recalls",
        "ask it in the search view, with the knobs that held then: why this answer",
        "Ask again",
        needs_engine,
        palette=False,
    ),
    Action(
        "then_now", ("w",), "recalls", "show below it what it got then, and would get now", "Then and now", needs_engine
    ),
    Action(
        "filter",
        ("f",),
        "recalls",
        "show only questions that hold what you type; esc shows all",
        "Filter",
        needs_engine,
    ),
    Action("again", ("r",), "recalls", "read the log again", "Refresh", needs_engine, palette=False),
    Action("open", ("enter",), "compare", "read this note", "Read", palette=False),
    Action("agreeing", ("a",), "compare", "show or hide the files that agree", "All", needs_engine),
    Action("compare", ("c",), "compare", "look again", "Again", needs_engine, palette=False),
)

NOTE_ACTIONS: tuple[Action, ...] = (
    Action("remember", ("a",), "everywhere", "remember: add a line to today's log", "", may_write),
    Action(
        "promote",
        ("p",),
        "reader",
        "copy the item under the cursor, or the marked lines, to MEMORY.md",
        "Promote",
        may_change,
    ),
    Action("move", ("m",), "reader", "move the item, or the marked lines, to another note", "", may_change),
    Action("trash", ("d",), "reader", "move the item, or the marked lines, to the trash", "Trash", may_change),
    Action("move", ("m",), "tree", "give this note another name", "", may_change),
    Action("trash", ("d",), "tree", "move this note to the trash", "", may_change),
    Action("edit_here", ("i",), "reading", "edit the note here, or begin a log that is not there", "Write", may_edit),
    Action("new_note", ("A",), "reading", "begin a topic note", "", may_write),
    Action("archive", (), "reading", "put daily logs older than 90 days into the archive", "", may_write),
    Action("history", ("H",), "reading", "what was changed in this note, and the way back"),
    Action("undo", ("u",), "reading", "take the last change of the notes back", "", may_write),
    Action("redo", ("ctrl+r",), "reading", "make it again", "", may_write),
    Action("save", ("ctrl+s",), "editor", "save the note, with what others wrote to it meanwhile", "Save", may_write),
    Action("watch_question", ("ctrl+t",), "editor", "a question whose answer you see change while you write", "Watch"),
    Action("to_writing", ("enter", "down"), "watched", "back to the text", "Text", palette=False),
    Action("undo", ("u",), "history", "take this change back", "Undo", may_write),
    Action("redo", ("ctrl+r",), "history", "make this change again", "Redo", may_write),
    Action(
        "commit",
        ("C",),
        "history",
        "commit this note to git, where the workspace is in a repository",
        "Commit",
        may_write,
    ),
)

SEARCH_ACTIONS: tuple[Action, ...] = (
    Action("to_results", ("enter", "down"), "query", "go to the hits", "Hits", palette=False),
    Action("earlier", ("up",), "query", "an earlier question", "Earlier", palette=False),
    Action("open", ("enter",), "results", "read the note at the cited lines", "Read", needs_note),
    Action("tune", ("t",), "search", "turn the knobs of the ranking", "Tune", needs_answer),
    Action("why", ("w",), "search", "why this hit is recalled or not, and what would change that", "Why", needs_answer),
    Action(
        "apply",
        ("a",),
        "search",
        "turn the knob as the change under the cursor says (the nearest one)",
        "Apply",
        needs_change,
    ),
    Action("line", ("o",), "search", "why not another line: name it as PATH:LINE", "Other line", needs_answer),
    Action("vote", ("v",), "search", "judge this hit: right, helpful or wrong for the question", "Vote", needs_hit),
    Action("save", ("ctrl+s",), "search", "save the question in the notebook", "", needs_answer),
    Action("book", ("B",), "search", "the saved questions with their scores; enter asks one", "", needs_engine),
    Action(
        "recalls",
        ("A",),
        "search",
        "what agents asked; enter asks it again, with the knobs of then",
        "",
        needs_engine,
        palette=False,
    ),
    Action("base", ("b",), "search", "compare with the knobs as they are now, under a name", "Base", needs_answer),
    Action("scroll_down", ("J",), "results", "scroll the arithmetic without leaving the list", palette=False),
    Action("scroll_up", ("K",), "results", "scroll the arithmetic back", palette=False),
    Action("sides", ("c",), "search", "two profiles side by side on this question", "", needs_answer),
    Action(
        "noise",
        ("N",),
        "search",
        "the noise floor: what unrelated questions score, and what minScore does",
        "",
        needs_engine,
    ),
    Action("fading", ("F",), "search", "what age has taken, and what will fade in the days ahead", "", needs_answer),
    Action(
        "sweep", ("S",), "search", "look for better knobs by the saved questions, or say: no evidence", "", needs_engine
    ),
    Action(
        "write",
        ("W",),
        "search",
        "write the knobs into the configuration, shown first, or take that back",
        "",
        needs_writing,
    ),
    Action(
        "next_stage",
        (">",),
        "search",
        "list what was lost at the next stage of the funnel; esc shows all",
        "",
        needs_answer,
    ),
    Action("previous_stage", ("<",), "search", "list what was lost at the stage before", "", needs_answer),
    Action(
        "undo", ("u",), "search", "undo the last step: a knob, a change, the date or the baseline", "Undo", needs_step
    ),
    Action("redo", ("ctrl+r",), "search", "redo it", "", needs_undone),
    Action(
        "deeper",
        ("enter",),
        "why",
        "the full record of this hit, then the raw JSON; esc goes back",
        "Deeper",
        needs_answer,
    ),
    Action("apply", ("a",), "whynot", "turn the knob as the change under the cursor says", "Apply", needs_change),
    Action("undo", ("u",), "whynot", "undo the last step", "Undo", needs_step),
    Action("left_side", ("h", "left"), "sides", "put another ranking on the left", "Left"),
    Action("right_side", ("l", "right"), "sides", "put another ranking on the right", "Right"),
    Action("open", ("enter",), "sides", "read the note at the cited lines", "Read", needs_note),
    Action("undo", ("u",), "report", "undo the last step", "Undo", needs_step),
    Action("less", ("h", "left"), "noise", "a lower minScore", "Less"),
    Action("more", ("l", "right"), "noise", "a higher minScore", "More"),
    Action("apply", ("a",), "noise", "set the suggested minScore", "Apply"),
    Action("open", ("enter",), "fading", "read the note at the lines of the hit", "Read", needs_note),
    Action("apply", ("a",), "fading", "switch decay on, to see what it takes", "Decay on", needs_no_decay),
    Action("write", ("y",), "write", "write this difference, with a backup", "Write"),
    Action(
        "undo", ("u",), "write", "take back what was written last from here", "Take back", needs_written, palette=False
    ),
    Action("apply", ("a",), "sweep", "turn the knobs as found, as one step", "Apply"),
    Action("open", ("enter",), "book", "ask this question", "Ask", palette=False),
    Action("forget", ("d",), "book", "save this question no longer, after asking", "Forget"),
    Action("next_knob", ("j", "down"), "tune", "next knob", "Knob", palette=False),
    Action("previous_knob", ("k", "up"), "tune", "previous knob", palette=False),
    Action("less", ("h", "left"), "tune", "a step less", "Less", palette=False),
    Action("more", ("l", "right"), "tune", "a step more", "More", palette=False),
    Action("less_fine", ("H",), "tune", "a fine step less", palette=False),
    Action("more_fine", ("L",), "tune", "a fine step more", palette=False),
    Action(
        "reset",
        ("0",),
        "tune",
        "this knob as the app was opened or written (other digits type a value)",
        "Reset",
        palette=False,
    ),
    Action("reset_all", ("=",), "tune", "all knobs as the app was opened or written", "All", needs_tuned),
)

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "everywhere": "Everywhere",
        "list": "Every list",
        "notes": "With a note",
        "browse": "Browse (1)",
        "tree": "Files",
        "reader": "Reader",
        "reading": "Browse and reader",
        "search": "Search (2)",
        "query": "Query box",
        "filter": "Filter box",
        "find": "Find box",
        "about": "About the note",
        "editor": "Editor",
        "watched": "Watched question",
        "history": "History",
        "results": "Hits",
        "why": "Why",
        "whynot": "Why not a line",
        "book": "Saved questions",
        "sides": "Side by side",
        "report": "Reports",
        "noise": "Noise floor",
        "fading": "Fading",
        "sweep": "Better knobs",
        "write": "Writing the configuration",
        "tune": "Tune",
        "index": "Index (3)",
        "doctor": "Doctor",
        "supply": "Providers",
        "storage": "The index file",
        "sessions": "Sessions",
        "recalls": "Recalls",
        "compare": "OpenClaw's index",
        "inbox": "Inbox (4)",
        "proposal": "Before and after",
    }
)
"""Where an action can belong, and that place's title."""

ACTIONS: tuple[Action, ...] = (
    *GLOBAL_ACTIONS,
    *BROWSE_ACTIONS,
    *NOTE_ACTIONS,
    *SEARCH_ACTIONS,
    *INDEX_ACTIONS,
    *INBOX_ACTIONS,
)


def find(name: str, where: Iterable[str]) -> Action:
    """The action called `name` in the first of the places `where` that has it; any place when none has."""
    same = [action for action in ACTIONS if action.id == name]
    for place in where:
        for action in same:
            if action.where == place:
                return action
    return same[0]


def bindings(where: str) -> list[Binding]:
    """The bindings of a screen or pane; all go through the app, which says why when something cannot be done."""
    return [
        Binding(key, f"app.do('{action.id}')", action.hint or action.help, show=False, priority=action.priority)
        for action in ACTIONS
        if action.where == where
        for key in action.keys
    ]


TYPING = frozenset({"query", "filter", "find", "editor", "watched"})
"""Places where letters are text."""

LAST = ("commands", "help", "leave", "back")
"""The key hints that come last, and stay when there is little room."""


def hints(where: Iterable[str]) -> list[tuple[str, Action]]:
    """The keys that are hinted at for these places with what they do, nearest first.

    While somebody types, letters are text: then only keys with names count, and esc stands in for q.
    """
    places = list(where)
    typing = bool(TYPING & set(places))
    found = []
    taken: set[str] = set()
    for place in places:
        here = [action for action in ACTIONS if action.where == place]
        for action in here:
            keys = [key for key in action.keys if (len(key) > 1 or not typing) and key not in taken]
            if action.hint and keys and (typing or action.id != "back"):
                found.append((shown(keys[0]), action))
        taken |= {key for action in here for key in action.keys}
    return sorted(found, key=lambda pair: LAST.index(pair[1].id) if pair[1].id in LAST else -1)


def why_nothing(key: str, where: Iterable[str]) -> str:
    """Why `key` does nothing here, as a sentence that names the place where it does something."""
    places = set(where)
    for action in ACTIONS:
        if key in action.keys and action.where not in places:
            return f"{shown(key)} works in {PLACES[action.where]}: {action.help}."
    return f"{key} does nothing here. {'f1' if TYPING & places else '?'} shows the keys of this pane."


def key_table_markdown() -> str:
    """The manual's key table: one row per action, grouped by place."""
    lines = ["| Where | Keys | What they do |", "|---|---|---|"]
    for place, title in PLACES.items():
        for action in ACTIONS:
            if action.where == place and action.keys:
                keys = " ".join(f"`{shown(key)}`" for key in action.keys)
                lines.append(f"| {title} | {keys} | {action.help} |")
                title = ""
    return "\n".join(lines)
