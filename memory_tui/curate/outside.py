"""What another program makes of a note while it has it open: one change of the journal, from bytes to bytes.

Whose bytes they are cannot be told: an agent may have written to the note while the program had it. So the change
says what the note was before and what it was after, and names those changes of the journal that were made meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_tui.curate.journal import Entry, Journal
from memory_tui.curate.record import Change, FileChange
from memory_tui.curate.write import current, standing
from memory_tui.text.display import one_line
from memory_tui.workspace.roots import Roots, destination


@dataclass(frozen=True, slots=True)
class Lent:
    """A note as another program gets it: stored and absolute path, bytes (None: not there), mode and time (ns).

    `last` is the number of the journal's newest change, 0 for none.
    """

    path: str
    absolute: str
    before: bytes | None
    was: tuple[int, int]
    last: int


def lend(roots: Roots, journal: Journal, path: str) -> Lent:
    """The note `path` as it is now. Raises PathRefused, Unreadable, EditRefused."""
    _root, absolute, stored = destination(roots, path)
    # Before the note is read, so that a change which is made in between counts as made meanwhile.
    entries = journal.entries()
    return Lent(stored, absolute, current(roots, stored), standing(roots, stored), entries[-1].id if entries else 0)


def came_back(roots: Roots, journal: Journal, lent: Lent, program: str) -> tuple[Entry, Change] | None:
    """Write down what became of `lent` while `program` had it; None when nothing did. Only while `locked`.

    Where the journal has changes of the note from meanwhile, this one begins where the last of them ended, so that
    each takes back its own. Raises PathRefused, Unreadable, EditRefused.
    """
    after = current(roots, lent.path)
    before, others = lent.before, []
    for entry in journal.entries():
        for file in entry.files:
            if entry.id > lent.last and entry.state == "done" and file.path == lent.path:
                before = journal.text(file.after)
                others.append(entry.id)
    if after == before:
        return None
    change = Change("edit", _title(lent.path, before, after, program), (FileChange(lent.path, before, after),))
    return journal.record(change, [lent.was], _reason(others)), change


def _title(path: str, before: bytes | None, after: bytes | None, program: str) -> str:
    name = one_line(program, 40)
    if before is None:
        return f"New note {path}, made in the outside editor {name}"
    if after is None:
        return f"{path} was removed while the outside editor {name} had it open"
    return f"Edit {path} in the outside editor {name}"


def _reason(others: list[int]) -> str:
    """What a person should know of it, for the journal."""
    said = "what the note held when the editor opened and when it closed, whoever wrote it"
    if not others:
        return said
    numbers = ", ".join(map(str, dict.fromkeys(others)))
    return f"{said}; it begins where change {numbers} of this journal ended, which was made meanwhile"
