"""The keys of the files, the reader and what is known of a note."""

from __future__ import annotations

from memory_tui.tui.action import Action, needs_engine, needs_found, needs_note, needs_trail

ACTIONS: tuple[Action, ...] = (
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
