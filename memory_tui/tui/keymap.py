"""The keymap lists every key once: bindings, hints, help, palette, README are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from textual.binding import Binding

from memory_tui.tui.action import Action, shown
from memory_tui.tui.navigation import NUMBERED, OVERLAYS, NumberedView, OverlayView

ENGINE = ("engine",)
NOTE = ("note",)
ANSWER = ("answer",)
WRITABLE = ("writable", "engine")
CHANGE = ("writable", "note")
DECIDE = ("writable", "suggestion")


def opening(place: str, keys: str = "") -> list[Action]:
    """The actions that open overlays at `place`: by `keys` in their order, or from the palette alone without keys."""
    found = {
        opener.key or row.key: Action(
            row.key,
            (opener.key,) if opener.key else (),
            place,
            opener.help or row.help,
            opener.hint,
            row.needs,
            palette=row.openers[0] is opener,
        )
        for row in OVERLAYS
        for opener in row.openers
        if opener.place == place
    }
    return [found[key] for key in keys] if keys else list(found.values())


def renewing() -> list[Action]:
    """What r does in each overlay that can be worked out again."""
    return [
        Action("again", ("r",), row.key, row.renew[0], row.renew[1], ENGINE, palette=False)
        for row in OVERLAYS
        if row.renew[0]
    ]


BROWSE_ACTIONS: tuple[Action, ...] = (
    Action("open", ("enter",), "tree", "read this note, or fold this group", "Read", palette=False),
    Action("fold", ("h", "left"), "tree", "fold this group", palette=False),
    Action("unfold", ("l", "right"), "tree", "unfold this group", palette=False),
    Action("today", ("T",), "browse", "go to today's note, or the newest", "Today", ENGINE),
    Action("older", ("[",), "browse", "the day before", "Older", ENGINE),
    Action("newer", ("]",), "browse", "the day after", "Newer", ENGINE),
    Action("filter", ("f",), "browse", "show only files whose name holds what you type", "Filter", ENGINE),
    Action("scroll_down", ("J",), "tree", "scroll the reader without leaving the list", palette=False),
    Action("scroll_up", ("K",), "tree", "scroll the reader back", palette=False),
    Action("find", ("/",), "reader", "look for text in this note", "Find", NOTE),
    Action("next_match", ("n",), "reader", "next match", "Next", ("found",)),
    Action("previous_match", ("N",), "reader", "previous match", "", ("found",)),
    Action("next_chunk", ("}",), "reader", "next chunk of the note", "Chunk", NOTE),
    Action("previous_chunk", ("{",), "reader", "previous chunk of the note", "", NOTE),
    Action("select", ("V",), "reader", "mark lines, from here to where the cursor goes", "Mark", NOTE),
    Action("open", ("enter",), "reader", "follow the link in this line", "", NOTE, palette=False),
    Action("pick", ("o",), "reading", "open a note by a few letters of its name", "Open", ENGINE),
    Action("about", ("L",), "reading", "go to this note's facts and links", "", NOTE),
    Action("return", ("-",), "reading", "back to where you followed a link or jumped", "", ("trail",)),
    Action("open", ("enter",), "about", "follow this link", "Follow", palette=False),
    Action("to_text", ("enter", "down"), "find", "go to the match", "Text", palette=False),
    Action("to_files", ("enter", "down"), "filter", "go to the files", "Files", palette=False),
    Action(
        "why_line",
        ("w",),
        "reader",
        "why this line is, or is not, recalled for the question on screen",
        "Why",
        NOTE,
    ),
)

GLOBAL_ACTIONS: tuple[Action, ...] = (
    Action("help", ("?", "f1"), "everywhere", "what the keys and signs of this pane mean", "Help"),
    Action("ask", ("/",), "everywhere", "ask the memory: go to the query box", "Ask", ENGINE),
    Action("browse", ("1",), "everywhere", "the notes by day, and a reader", ""),
    Action("search", ("2",), "everywhere", "ask, see why, tune", ""),
    Action("index", ("3",), "everywhere", "what is indexed, what is not, and what happened", ""),
    Action("inbox", ("4",), "everywhere", "what in the notes needs attention, with before and after", ""),
    Action("commands", (":", "ctrl+p"), "everywhere", "find a command by name", "Cmd", palette=False),
    Action("next_pane", ("tab",), "everywhere", "next pane", "", palette=False),
    Action("previous_pane", ("shift+tab",), "everywhere", "previous pane", palette=False),
    Action("zoom", ("+",), "everywhere", "enlarge this pane to the whole screen"),
    Action("unzoom", ("_",), "everywhere", "back to all panes", needs=("zoomed",)),
    Action("jump", ("ctrl+o",), "everywhere", "label each pane with a letter; press one to go there", palette=False),
    Action("sync", ("r",), "everywhere", "look for changed files and index them", "Sync", ("rest", "engine")),
    Action(
        "agent",
        ("@",),
        "everywhere",
        "go to another agent of the configuration: its notes, settings and index",
        "",
        ("agents", "engine"),
    ),
    *opening("everywhere"),
    Action("theme", (), "everywhere", "choose a theme: the colours, dark or light"),
    Action("redraw", ("ctrl+l",), "everywhere", "draw the screen again"),
    Action(
        "suspend", ("ctrl+z",), "everywhere", "put the app into the background (fg brings it back)", needs=("shell",)
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
    Action(
        "edit",
        ("e",),
        "notes",
        "open the note in $VISUAL or $EDITOR at this line",
        "Edit",
        ("writable", "editor", "note"),
    ),
    Action("cite", ("y",), "notes", "copy the citation: path#Lfirst-Llast", "Cite", NOTE),
    Action("copy", ("Y",), "notes", "copy the text with its citation", "", NOTE),
)

INBOX_ACTIONS: tuple[Action, ...] = (
    Action("open", ("enter",), "inbox", "do what is proposed: a change is shown first", "Do", DECIDE, palette=False),
    Action(
        "trash",
        ("d",),
        "inbox",
        "move the lines, or the note, to the trash",
        "Trash",
        ("writable", "suggestion", "deletes"),
    ),
    Action(
        "move",
        ("m",),
        "inbox",
        "merge with its twin, or move the lines or the note as proposed",
        "Merge",
        ("writable", "suggestion", "moves"),
    ),
    Action("snooze", ("s",), "inbox", "ask again in 1, 7 or 30 days", "Later", DECIDE),
    Action("keep", ("x",), "inbox", "keep it as it is and never ask again", "Keep", DECIDE),
    Action("undo", ("u",), "inbox", "undo the last change or decision", "Undo", WRITABLE),
    Action("redo", ("ctrl+r",), "inbox", "redo the last undone change", "", WRITABLE),
    Action("place", ("o",), "inbox", "read the note at these lines", "Read", ("suggestion",)),
    Action("filter", ("f",), "inbox", "show one kind only; esc shows all", "Kind", ENGINE),
    Action("decided", ("z",), "inbox", "show or hide what was kept or put off", "", ENGINE),
    Action("sync", ("r",), "inbox", "look again, and index changed files; esc stops it", "", ENGINE),
    Action("scroll_down", ("J",), "inbox", "scroll the before and after without leaving the list", palette=False),
    Action("scroll_up", ("K",), "inbox", "scroll it back", palette=False),
    Action(
        "open",
        ("enter",),
        "proposal",
        "run this line's action, or read its note",
        "Do",
        ("suggestion",),
        palette=False,
    ),
)

INDEX_ACTIONS: tuple[Action, ...] = (
    *opening("index", "Dv"),
    Action("reindex", ("R",), "index", "index every note anew, after asking", "Reindex", ("rest", "engine")),
    Action("watch", ("P",), "index", "switch the watcher on or off", "Watcher", ENGINE),
    Action("pause", ("p",), "index", "pause or resume the event log", "Hold log"),
    Action("hold", ("z",), "index", "pause indexing after the current batch, or resume it", "Pause", ENGINE),
    Action("accept", ("a",), "index", "forget the notes that vanished, after asking", "", ("shrink",)),
    *opening("index", "tcAF"),
    Action("try_out", ("T",), "supply", "test the provider under the cursor with one real call", "Test", ENGINE),
    Action(
        "agree",
        ("y",),
        "supply",
        "approve this provider (asks first)",
        "Agree",
        ("proposal",),
    ),
    Action("revoke", ("x",), "supply", "withdraw this workspace's approvals (asks first)", "Revoke", ("agreed",)),
    Action(
        "open",
        ("enter",),
        "recalls",
        "ask it again in Search, with the knobs of that time",
        "Ask again",
        ENGINE,
        palette=False,
    ),
    Action("then_now", ("w",), "recalls", "show below it the hits of that time and of now", "Then and now", ENGINE),
    Action(
        "filter",
        ("f",),
        "recalls",
        "show only questions that hold what you type; esc shows all",
        "Filter",
        ENGINE,
    ),
    Action("open", ("enter",), "compare", "read this note", "Read", palette=False),
    Action("agreeing", ("a",), "compare", "show or hide the files that agree", "All", ENGINE),
    Action("compare", ("c",), "compare", "look again", "Again", ENGINE, palette=False),
    *renewing(),
)

NOTE_ACTIONS: tuple[Action, ...] = (
    Action("remember", ("a",), "everywhere", "remember: add a line to today's log", "", WRITABLE),
    Action(
        "promote",
        ("p",),
        "reader",
        "copy the item under the cursor, or the marked lines, to MEMORY.md",
        "Promote",
        CHANGE,
    ),
    Action("move", ("m",), "reader", "move the item, or the marked lines, to another note", "", CHANGE),
    Action("trash", ("d",), "reader", "move the item, or the marked lines, to the trash", "Trash", CHANGE),
    Action("move", ("m",), "tree", "give this note another name", "", CHANGE),
    Action("trash", ("d",), "tree", "move this note to the trash", "", CHANGE),
    Action(
        "edit_here",
        ("i",),
        "reading",
        "edit the note here, or begin a missing log",
        "Write",
        ("writable", "note or log"),
    ),
    Action("new_note", ("A",), "reading", "begin a topic note", "", WRITABLE),
    Action("archive", (), "reading", "put daily logs older than 90 days into the archive", "", WRITABLE),
    *opening("reading"),
    Action("undo", ("u",), "reading", "undo the last change of the notes", "", WRITABLE),
    Action("redo", ("ctrl+r",), "reading", "redo it", "", WRITABLE),
    Action("save", ("ctrl+s",), "editor", "save the note; other writers' lines stay", "Save", WRITABLE),
    Action("watch_question", ("ctrl+t",), "editor", "watch how your edit changes a question's answer", "Watch"),
    Action("to_writing", ("enter", "down"), "watched", "back to the text", "Text", palette=False),
    Action("undo", ("u",), "history", "undo this change", "Undo", WRITABLE),
    Action("redo", ("ctrl+r",), "history", "redo this change", "Redo", WRITABLE),
    Action(
        "commit",
        ("C",),
        "history",
        "commit this note to git, where the workspace is in a repository",
        "Commit",
        WRITABLE,
    ),
)

SEARCH_ACTIONS: tuple[Action, ...] = (
    Action("to_results", ("enter", "down"), "query", "go to the hits", "Hits", palette=False),
    Action("earlier", ("up",), "query", "an earlier question", "Earlier", palette=False),
    Action("open", ("enter",), "results", "read the note at the cited lines", "Read", NOTE),
    Action("tune", ("t",), "search", "turn the knobs of the ranking", "Tune", ANSWER),
    Action("why", ("w",), "search", "why this hit is or is not recalled, and what would change that", "Why", ANSWER),
    Action(
        "apply",
        ("a",),
        "search",
        "apply the change under the cursor, or the nearest",
        "Apply",
        ("answer", "flips"),
    ),
    Action("line", ("o",), "search", "why another line is not recalled: type PATH:LINE", "Other line", ANSWER),
    Action(
        "vote", ("v",), "search", "judge this hit: right, helpful or wrong for the question", "Vote", ("answer", "note")
    ),
    Action("save", ("ctrl+s",), "search", "save this query", "", ANSWER),
    *opening("search", "BA"),
    Action("base", ("b",), "search", "name the knobs of now as the baseline to compare with", "Base", ANSWER),
    Action("scroll_down", ("J",), "results", "scroll the arithmetic without leaving the list", palette=False),
    Action("scroll_up", ("K",), "results", "scroll the arithmetic back", palette=False),
    *opening("search", "cNFSW"),
    Action(
        "next_stage",
        (">",),
        "search",
        "list the chunks the next stage dropped; esc shows all",
        "",
        ANSWER,
    ),
    Action("previous_stage", ("<",), "search", "list the chunks the stage before dropped", "", ANSWER),
    Action(
        "undo", ("u",), "search", "undo the last step: a knob, a change, the date or the baseline", "Undo", ("undo",)
    ),
    Action("redo", ("ctrl+r",), "search", "redo it", "", ("redo",)),
    Action(
        "deeper",
        ("enter",),
        "why",
        "the full record of this hit, then the raw JSON; esc goes back",
        "Deeper",
        ANSWER,
    ),
    Action("apply", ("a",), "whynot", "apply the change under the cursor", "Apply", ("answer", "flips")),
    Action("undo", ("u",), "whynot", "undo the last step", "Undo", ("undo",)),
    Action("left_side", ("h", "left"), "sides", "put another ranking on the left", "Left"),
    Action("right_side", ("l", "right"), "sides", "put another ranking on the right", "Right"),
    Action("open", ("enter",), "sides", "read the note at the cited lines", "Read", NOTE),
    Action("undo", ("u",), "report", "undo the last step", "Undo", ("undo",)),
    Action("less", ("h", "left"), "noise", "a lower minScore", "Less"),
    Action("more", ("l", "right"), "noise", "a higher minScore", "More"),
    Action("apply", ("a",), "noise", "set the suggested minScore", "Apply"),
    Action("open", ("enter",), "fading", "read the note at the lines of the hit", "Read", NOTE),
    Action("apply", ("a",), "fading", "switch decay on, to see what would fade", "Decay on", ("no decay",)),
    Action("write", ("y",), "write", "write this difference, with a backup", "Write"),
    Action("undo", ("u",), "write", "undo the last write of this view", "Take back", ("written",), palette=False),
    Action("apply", ("a",), "sweep", "apply the settings found, as one step", "Apply"),
    Action("open", ("enter",), "book", "ask this question", "Ask", palette=False),
    Action("forget", ("d",), "book", "delete this saved query (asks first)", "Forget"),
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
        "reset this knob to its value at opening or last write (other digits type a value)",
        "Reset",
        palette=False,
    ),
    Action("reset_all", ("=",), "tune", "reset all knobs to their values at opening or last write", "All", ("tuned",)),
)


def _titles(rows: Iterable[NumberedView | OverlayView]) -> dict[str, str]:
    return {row.key: row.title for row in rows}


def _group(name: str) -> list[OverlayView]:
    return [row for row in OVERLAYS if row.group == name]


PLACES: Mapping[str, str] = MappingProxyType(
    {
        "everywhere": "Everywhere",
        "list": "Every list",
        "notes": "With a note",
        **_titles(NUMBERED[:1]),
        "tree": "Files",
        "reader": "Reader",
        "reading": "Browse and reader",
        **_titles(NUMBERED[1:2]),
        "query": "Query box",
        "filter": "Filter box",
        "find": "Find box",
        "about": "About the note",
        "editor": "Editor",
        "watched": "Watched question",
        **_titles(_group("notes")),
        "results": "Hits",
        "why": "Why",
        "whynot": "Why not a line",
        **_titles(_group("search")),
        "report": "Reports",
        **_titles(_group("report")),
        "tune": "Tune",
        **_titles(NUMBERED[2:3]),
        **_titles(_group("index")),
        **_titles(NUMBERED[3:]),
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
