"""The keys of the inbox."""

from __future__ import annotations

from memory_tui.tui.action import (
    Action,
    may_decide,
    may_delete,
    may_move,
    may_write,
    needs_engine,
    needs_suggestion,
)

ACTIONS: tuple[Action, ...] = (
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
