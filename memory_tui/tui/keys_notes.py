"""The keys that change notes: in the reader, in the list, in the editor, and in the history."""

from __future__ import annotations

from memory_tui.tui.action import Action, may_change, may_edit, may_write

ACTIONS: tuple[Action, ...] = (
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
