"""The action table lists what can be done at each place. A row names the meaning of its key and what it needs."""

from __future__ import annotations

from memory_tui.tui.action import Action
from memory_tui.tui.navigation import OVERLAYS

ENGINE = ("engine",)
NOTE = ("note",)
ANSWER = ("answer",)
OWN = ("changes", "engine")
WRITABLE = ("writable", "engine")
CHANGE = ("writable", "note")
LISTED = ("note or marks",)
MARKED = ("writable", *LISTED)
DECIDE = ("writable", "suggestion")


def opening(place: str, *meanings: str) -> list[Action]:
    """The actions that open overlays at `place`, those of `meanings` in their order or all."""
    reply = {
        opener.meaning or row.key: Action(
            row.key,
            opener.meaning,
            place,
            opener.help or row.help,
            opener.hint,
            row.needs,
            palette=row.openers[0] is opener,
            also=row.also,
        )
        for row in OVERLAYS
        for opener in row.openers
        if opener.place == place
    }
    return [reply[meaning] for meaning in meanings] if meanings else list(reply.values())


def renewing() -> list[Action]:
    """What r does in each overlay that can be worked out again."""
    return [
        Action("again", "look again", row.key, row.renew[0], row.renew[1], ENGINE, palette=False)
        for row in OVERLAYS
        if row.renew[0]
    ]


BROWSE_ACTIONS: tuple[Action, ...] = (
    Action("open", "do", "tree", "read this note, or fold this group", "Read", palette=False),
    Action("remember", "remember", "tree", "add a line to today's log", "Add line", WRITABLE, palette=False),
    Action("fold", "less", "tree", "fold this group", palette=False),
    Action("unfold", "more", "tree", "unfold this group", palette=False),
    Action("today", "go today", "browse", "go to today's note, or the newest", "Today", ENGINE),
    Action("older", "one before", "browse", "the day before", "Older", ENGINE),
    Action("newer", "one after", "browse", "the day after", "", ENGINE),
    Action("filter", "find", "browse", "show only files whose name holds what you type", "Filter", ENGINE),
    Action("scroll_down", "scroll down", "tree", "scroll the reader without leaving the list", palette=False),
    Action("scroll_up", "scroll up", "tree", "scroll the reader back", palette=False),
    Action("find", "find", "reader", "look for text in this note", "Find", NOTE),
    Action("next_match", "next match", "reader", "next match", "Next", ("found",)),
    Action("previous_match", "previous match", "reader", "previous match", "", ("found",)),
    Action("next_chunk", "next chunk", "reader", "next chunk of the note", "Chunk", NOTE),
    Action("previous_chunk", "previous chunk", "reader", "previous chunk of the note", "", NOTE),
    Action("select", "mark range", "reader", "mark lines, from here to where the cursor goes", "Mark", NOTE),
    Action("open", "do", "reader", "follow the link in this line; fold or unfold a block", "", NOTE, palette=False),
    Action("fold", "less", "reader", "fold what OpenClaw's dreaming wrote", "", ("note", "foldable")),
    Action("unfold", "more", "reader", "unfold what OpenClaw's dreaming wrote", "", ("note", "foldable")),
    Action("pick", "open note", "reading", "open a note by a few letters of its name", "Open", ENGINE),
    Action("line", "why line", "reading", "why another line is not recalled: its place, or words", "", ENGINE),
    Action("about", "go about", "reading", "go to this note's facts and links", "", NOTE),
    Action("return", "return", "reading", "back to where you followed a link or jumped", "", ("trail",)),
    Action("open", "do", "about", "follow this link", "Follow", palette=False),
    Action("to_text", "do", "find", "go to the match", "Text", palette=False),
    Action("to_text", "down", "find", "go to the match", palette=False),
    Action("to_files", "do", "filter", "go to the files", "Files", palette=False),
    Action("to_files", "down", "filter", "go to the files", palette=False),
    Action(
        "why_line",
        "why",
        "reader",
        "why this line is, or is not, recalled for the query on screen",
        "Why",
        NOTE,
    ),
)

GLOBAL_ACTIONS: tuple[Action, ...] = (
    Action("help", "help", "everywhere", "what the keys and signs of this pane mean", "Help"),
    Action("ask", "ask", "everywhere", "ask the memory: go to the query box", "Ask"),
    Action("browse", "view 1", "everywhere", "the notes by day, and a reader", ""),
    Action("search", "view 2", "everywhere", "ask, see why, tune", ""),
    Action("index", "view 3", "everywhere", "what is indexed, what is not, and what happened", "", also="searchable"),
    Action(
        "inbox",
        "view 4",
        "everywhere",
        "what in the notes needs attention, with before and after",
        "",
        also="contradictions conflict disagree duplicates secrets stale findings",
    ),
    Action(
        "map",
        "view 5",
        "everywhere",
        "the memory by days; what nobody recalls",
        also="calendar day with the most written recalled busiest never",
    ),
    Action(
        "agents",
        "view 6",
        "everywhere",
        "which agents use this memory, what they get; connect one",
        also="claude codex openclaw mcp questions asked",
    ),
    Action("commands", "commands", "everywhere", "find a command by name", "Cmd", palette=False),
    Action("next_pane", "next pane", "everywhere", "next pane", "", palette=False),
    Action("previous_pane", "previous pane", "everywhere", "previous pane", palette=False),
    Action("zoom", "zoom", "everywhere", "enlarge this pane to the whole screen"),
    Action("unzoom", "unzoom", "everywhere", "back to all panes", needs=("zoomed",)),
    Action("narrower", "narrower", "everywhere", "make this pane narrower"),
    Action("wider", "wider", "everywhere", "make this pane wider; each view remembers it"),
    Action("jump", "jump", "everywhere", "label each pane with a letter; press one to go there", palette=False),
    Action("sync", "look again", "everywhere", "look for changed files and index them", "Sync", ("rest", "engine")),
    Action(
        "agent",
        "agent",
        "everywhere",
        "go to another agent of the configuration: its notes, settings and index",
        "",
        ("agents", "engine"),
    ),
    Action("backend", "", "everywhere", "answer from QMD, or from the built-in index again", "", ENGINE),
    *opening("everywhere"),
    Action(
        "poor",
        "show poor",
        "everywhere",
        "what agents asked that was answered poorly: nearby only, nothing found, no answer",
        "",
        ENGINE,
    ),
    Action("first_steps", "", "everywhere", "first steps: ask, see why, turn, promote and undo, inbox"),
    Action("theme", "show theme", "everywhere", "choose a theme: the colours, dark or light", also="color bright"),
    Action("redraw", "redraw", "everywhere", "draw the screen again"),
    Action("suspend", "suspend", "everywhere", "put the app into the background (fg brings it back)", needs=("shell",)),
    Action("back", "back", "everywhere", "one step back", "Back", palette=False),
    Action("leave", "leave", "everywhere", "one step back, then quit", "Back", palette=False),
    Action("leave_app", "quit", "everywhere", "quit at once", priority=True, also="exit close leave"),
    Action("down", "down", "list", "next row", palette=False),
    Action("up", "up", "list", "previous row", palette=False),
    Action("top", "first", "list", "first row", palette=False),
    Action("bottom", "last", "list", "last row", palette=False),
    Action("page_down", "page down", "list", "half a page down", palette=False),
    Action("page_up", "page up", "list", "half a page up", palette=False),
    Action("edit_here", "edit", "notes", "edit the note here, at this line", "Edit", ("writable", "note or log")),
    Action(
        "own_editor",
        "editor",
        "notes",
        "open the note in your own editor ($VISUAL or $EDITOR) at this line",
        "",
        ("writable", "editor", "note"),
    ),
    Action("cite", "cite", "notes", "copy the citation, of all that is marked: path#Lfirst-Llast", "Cite", LISTED),
    Action("copy", "copy", "notes", "copy as: text with citation, citation, Markdown, JSON, command", "", LISTED),
)

INBOX_ACTIONS: tuple[Action, ...] = (
    Action("open", "do", "inbox", "show what is proposed, then do it; else read the note", "Do", DECIDE, palette=False),
    Action(
        "trash",
        "remove",
        "inbox",
        "move the lines, or the note, to the trash",
        "Trash",
        ("writable", "suggestion", "deletes"),
    ),
    Action(
        "move",
        "move",
        "inbox",
        "merge with its twin, move, move back, convert or restore, as proposed",
        "Move",
        ("writable", "suggestion", "moves"),
    ),
    Action(
        "move_other",
        "move other",
        "inbox",
        "merge the other way round: this stays, its twin goes",
        "",
        ("writable", "suggestion", "twin"),
    ),
    Action("edit_entry", "edit", "inbox", "edit the entry or line; where that is not offered, the note", "", DECIDE),
    Action("snooze", "later", "inbox", "ask again in 1, 7 or 30 days", "Later", DECIDE),
    Action("keep", "never", "inbox", "keep it as it is and never ask again", "Never", DECIDE),
    Action("undo", "undo", "inbox", "undo the last change or decision", "Undo", WRITABLE),
    Action("redo", "redo", "inbox", "redo the last undone change", "", WRITABLE),
    Action("mark", "mark", "inbox", "mark this suggestion; the next step is for all that are marked", "Mark", DECIDE),
    Action("mark_all", "mark all", "inbox", "mark every suggestion of this kind, or none", "", DECIDE),
    *opening("inbox"),
    Action("source", "go source", "inbox", "read the note at these lines", "Read", ("suggestion",)),
    Action("filter", "find", "inbox", "show one kind only; esc shows all", "Kind", ENGINE),
    Action("decided", "show all", "inbox", "show or hide what was kept or put off", "", ENGINE),
    Action("sync", "look again", "inbox", "look again, and index changed files; esc stops it", "", ENGINE),
    Action("scroll_down", "scroll down", "inbox", "scroll the before and after", palette=False),
    Action("scroll_up", "scroll up", "inbox", "scroll it back", palette=False),
    Action(
        "open",
        "do",
        "proposal",
        "run this line's action, or read its note",
        "Do",
        ("suggestion",),
        palette=False,
    ),
)

INDEX_ACTIONS: tuple[Action, ...] = (
    *opening("index", "go doctor", "go providers"),
    Action(
        "reindex", "rebuild", "index", "rebuild the index of every note (asks first)", "Reindex", ("rest", "engine")
    ),
    Action("watch", "", "index", "switch the watcher on or off", "Watcher", ENGINE),
    Action("open", "do", "attention", "read this note", "Read", palette=False),
    Action("pause", "pause", "events", "pause or resume the event log", "Pause"),
    Action(
        "hold",
        "pause",
        "index",
        "pause or resume indexing; on the row of the watcher, switch it on or off",
        "Pause",
        ENGINE,
    ),
    Action("accept", "do", "index", "forget the notes that vanished (asks first)", "", ("shrink",)),
    *opening("index", "go tables", "compare", "go flush"),
    Action(
        "open", "do", "providers", "approve the provider that needs it (asks first)", "Approve", ("changes", "proposal")
    ),
    Action(
        "revoke",
        "remove",
        "providers",
        "withdraw this workspace's approvals (asks first)",
        "Revoke",
        ("changes", "approved"),
    ),
    Action(
        "open",
        "do",
        "recalls",
        "ask it again in Search, with the knobs used then",
        "Ask again",
        ENGINE,
        palette=False,
    ),
    Action("open", "do", "memories", "show the whole text, or less of it", "Text", ENGINE, palette=False),
    Action("search_entries", "ask", "memories", "search the long-term memories", "Search", ENGINE),
    Action("forget", "remove", "memories", "forget this memory", "Forget", OWN),
    Action("undo", "undo", "memories", "undo the last change of memories", "Undo", OWN),
    Action("promote", "promote", "memories", "copy this memory to MEMORY.md, after a preview", "Promote", WRITABLE),
    Action("filter", "find", "memories", "show only memories that hold what you type", "Filter", ENGINE),
    Action("next_category", "one after", "memories", "the next category alone", "Category", ENGINE),
    Action("previous_category", "one before", "memories", "the category before", "", ENGINE),
    Action("then_now", "compare", "recalls", "show the hits of then and of now below it", "Then and now", ENGINE),
    Action(
        "poor",
        "show poor",
        "recalls",
        "show only what was answered poorly, or all again",
        "Poor",
        ENGINE,
        palette=False,
    ),
    Action(
        "filter",
        "find",
        "recalls",
        "show only rows that hold what you type: a word, an agent, “nearby”, “nothing”; esc shows all",
        "Filter",
        ENGINE,
    ),
    Action("open", "do", "compare", "read this note", "Read", palette=False),
    Action("agreeing", "show all", "compare", "show or hide the files that agree", "All", ENGINE),
    Action("compare", "look again", "compare", "look again", "Again", ENGINE, palette=False),
    *renewing(),
)

MAP_ACTIONS: tuple[Action, ...] = (
    Action(
        "layer",
        "show layer",
        "map",
        "what the calendar counts: recalled, written, never recalled, findings",
        "Layer",
    ),
    Action("open", "do", "calendar", "read the note of this day", "Read", palette=False),
    Action("left", "less", "calendar", "a day with a note, a week before", palette=False),
    Action("right", "more", "calendar", "a day with a note, a week after", palette=False),
    Action("down", "down", "calendar", "the next day with a note", palette=False),
    Action("up", "up", "calendar", "the day with a note before", palette=False),
    Action("most", "next match", "calendar", "the day with the most, then the next most", "Most"),
    Action("before_most", "previous match", "calendar", "back towards the day with the most"),
    Action("earlier", "one before", "calendar", "the month before"),
    Action("later", "one after", "calendar", "the month after"),
    Action("open", "do", "candidates", "read this note", "Read", palette=False),
    Action("mark", "mark", "candidates", "mark this note", "Mark", palette=False),
    Action("mark_all", "mark all", "candidates", "mark every note of this list, or none", "All", palette=False),
    Action("move", "move", "candidates", "move the marked logs to the archive, after a preview", "Archive", WRITABLE),
    Action(
        "promote",
        "promote",
        "candidates",
        "copy what the marked logs are recalled for to MEMORY.md, after a preview",
        "Promote",
        WRITABLE,
    ),
    Action("undo", "undo", "map", "undo the last change of the notes", "", WRITABLE),
    Action("redo", "redo", "map", "redo it", "", WRITABLE),
)

NOTE_ACTIONS: tuple[Action, ...] = (
    Action(
        "remember",
        "remember",
        "everywhere",
        "remember: add a line to today's log",
        "",
        WRITABLE,
        also="new write append note",
    ),
    Action(
        "promote",
        "promote",
        "reader",
        "copy the item under the cursor, or the marked lines, to MEMORY.md",
        "Promote",
        CHANGE,
    ),
    Action("move", "move", "reader", "move the item, or the marked lines, to another note", "", CHANGE),
    Action("trash", "remove", "reader", "move the item, or the marked lines, to the trash", "Trash", CHANGE),
    Action("mark", "mark", "tree", "mark this note, or every note of this group", "Mark", palette=False),
    Action("mark_all", "mark all", "tree", "mark every note of this group, or none", "", palette=False),
    Action("promote", "promote", "tree", "copy what the marked notes, or this one, say to MEMORY.md", "", MARKED),
    Action("leave", "leave", "tree", "quit", "Quit", palette=False),
    Action("move", "move", "tree", "give this note another name; archive the marked logs", "", MARKED),
    Action("trash", "remove", "tree", "move this note, or the marked ones, to the trash", "", MARKED),
    Action(
        "edit_here", "edit", "reading", "edit the note here, or begin a missing log", "", ("writable", "note or log")
    ),
    Action("new_note", "new note", "reading", "begin a topic note", "", WRITABLE),
    Action("archive", "", "reading", "put daily logs older than 90 days into the archive", "", WRITABLE),
    *opening("reading"),
    Action("undo", "undo", "reading", "undo the last change of the notes", "", WRITABLE),
    Action("redo", "redo", "reading", "redo it", "", WRITABLE),
    Action("save", "save", "editor", "save the note; other writers' lines stay", "Save", WRITABLE),
    Action("find_text", "find text", "editor", "find text in this note", "Find"),
    Action("next_match", "do", "finding", "next place", "Next", palette=False),
    Action("next_match", "find text", "finding", "next place", palette=False),
    Action("next_match", "down", "finding", "next place", palette=False),
    Action("previous_match", "up", "finding", "place before", "Previous", palette=False),
    Action(
        "open",
        "do",
        "history",
        "restore the note as it was at this change; shows the difference first",
        "Restore",
        WRITABLE,
        palette=False,
    ),
    Action("undo", "undo", "history", "undo this change", "Undo", WRITABLE),
    Action("redo", "redo", "history", "redo this change", "Redo", WRITABLE),
    Action(
        "open",
        "do",
        "trust",
        "on a note that is not trusted: read it whole, then trust it again; on the first row: approve",
        "Repair",
        ENGINE,
        palette=False,
    ),
    Action("revoke", "remove", "trust", "withdraw the approval: the ledger is only read", "Withdraw", WRITABLE),
    Action("open", "do", "repair", "type the note's name to trust it again", "Trust", WRITABLE, palette=False),
)

SEARCH_ACTIONS: tuple[Action, ...] = (
    Action("to_results", "do", "query", "go to the hits", "Hits", ENGINE, palette=False),
    Action("to_results", "down", "query", "go to the hits", needs=ENGINE, palette=False),
    Action("earlier", "up", "query", "an earlier query", "Earlier", palette=False),
    Action("open", "do", "results", "read the note at the cited lines", "Read", NOTE),
    Action("mark", "mark", "results", "mark this hit for what is done next", "Mark", palette=False),
    Action("mark_all", "mark all", "results", "mark every hit that the same gate let pass or stopped", palette=False),
    Action("tune", "tune", "search", "turn the knobs of the ranking", "Tune", ANSWER),
    Action("why", "why", "search", "why this hit is or is not recalled, and what would change that", "Why", ANSWER),
    Action("line", "why line", "search", "why another line is not recalled: its place, or words", "Why not", ANSWER),
    Action(
        "vote",
        "judge",
        "search",
        "judge this hit: right, helpful or wrong",
        "Judge",
        ("changes", "answer", "note"),
    ),
    Action("save", "save", "search", "save this query", "", ("changes", *ANSWER)),
    Action(
        "promote",
        "promote",
        "results",
        "copy the lines of the marked hits, or of this one, to MEMORY.md, after a preview",
        "",
        CHANGE,
    ),
    *opening("search", "go queries"),
    Action("base", "baseline", "search", "set the current knobs as the baseline to compare with", "Base", ANSWER),
    Action("scroll_down", "scroll down", "results", "scroll the arithmetic without leaving the list", palette=False),
    Action("scroll_up", "scroll up", "results", "scroll the arithmetic back", palette=False),
    *opening("search", "compare", "show better"),
    *opening("tune"),
    Action(
        "next_stage",
        "one after",
        "search",
        "list the chunks the next stage dropped; esc shows all",
        "",
        ANSWER,
    ),
    Action("previous_stage", "one before", "search", "list the chunks the stage before dropped", "", ANSWER),
    Action(
        "undo",
        "undo",
        "search",
        "undo the last step: a reading, a knob, a change, date, baseline",
        "Undo",
        ("undo",),
    ),
    Action("redo", "redo", "search", "redo it", "", ("redo",)),
    Action(
        "apply",
        "do",
        "why",
        "say what the change under the cursor does; again applies it",
        "Apply",
        ("answer", "flips"),
    ),
    Action("down", "down", "why", "the next change; where there is none, a line further", "Next", palette=False),
    Action(
        "deeper",
        "show record",
        "why",
        "the full record of this hit, then the raw JSON; esc goes back",
        "Deeper",
        ANSWER,
    ),
    Action("why", "why", "whynot", "say that this page is why, and what else it tells", palette=False),
    Action("line", "why line", "whynot", "why another line is not recalled: its place, or words", "Why not", ENGINE),
    Action("undo", "undo", "whynot", "undo the last step", "Undo", ("undo",)),
    Action("left_side", "less", "side_by_side", "put another ranking on the left", "Left"),
    Action("right_side", "more", "side_by_side", "put another ranking on the right", "Right"),
    Action("open", "do", "side_by_side", "read the note at the cited lines, or make the index a profile needs", "Read"),
    Action("undo", "undo", "report", "undo the last step", "Undo", ("undo",)),
    Action("write", "do", "write", "write this difference, with a backup", "Write"),
    Action("undo", "undo", "write", "undo the last write of this view", "Undo", ("written",), palette=False),
    Action("apply", "do", "knob_search", "apply the settings found, as one step", "Apply"),
    Action("open", "do", "saved_queries", "ask this query", "Ask", palette=False),
    Action("forget", "remove", "saved_queries", "delete this saved query (asks first)", "Forget", OWN),
    Action("next_knob", "down", "tune", "next knob", "Knob", palette=False),
    Action("previous_knob", "up", "tune", "previous knob", palette=False),
    Action("less", "less", "tune", "a step less", "Less", palette=False),
    Action("more", "more", "tune", "a step more", "More", palette=False),
    Action("less_fine", "less fine", "tune", "a fine step less", palette=False),
    Action("more_fine", "more fine", "tune", "a fine step more", palette=False),
    Action(
        "reset",
        "reset",
        "tune",
        "reset this knob to its value at opening or last write",
        "Reset",
        palette=False,
    ),
    Action("type_value", "do", "tune", "type a value: digits, then enter", "Set", palette=False),
    Action("reset_all", "reset all", "tune", "reset all knobs to opening or last write", "All", ("tuned",)),
    Action("undo", "undo", "tune", "undo the last turn, or the step before", "Undo", ("undo",), palette=False),
)


AGENT_ACTIONS: tuple[Action, ...] = (
    Action("open", "do", "agents", "connect this agent: shows the difference of its files first", "Connect", ENGINE),
    Action("disconnect", "remove", "agents", "disconnect this agent: shows the difference first", "Disconnect", ENGINE),
    *opening("agents"),
    Action("again", "look again", "agents", "ask the server of each connected agent", "Check", ENGINE, palette=False),
    Action("write", "do", "connection", "write this difference, with a backup of each file", "Write", OWN),
)

ACTIONS: tuple[Action, ...] = (
    *GLOBAL_ACTIONS,
    *BROWSE_ACTIONS,
    *NOTE_ACTIONS,
    *SEARCH_ACTIONS,
    *INDEX_ACTIONS,
    *INBOX_ACTIONS,
    *MAP_ACTIONS,
    *AGENT_ACTIONS,
)
