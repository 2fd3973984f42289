"""A diff shows a change line by line; what is printed or drawn of it hides its secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from memory_tui.formatting import plural
from memory_tui.notes.changes import Change, FileChange, moves
from memory_tui.notes.merge import changed_spans
from memory_tui.secrets.finder import MASK, masked

SECRET, NEW_SECRET = "[secret]", "[new secret]"
"""What stands for a secret, and for one that the note did not hold before; a mask that it holds stays as it is."""


class DiffLine(Struct, frozen=True):
    """A line of a diff: its text without its end, and its number before and after, 0 where it is not.

    `kind` is file, hunk, same, gone or new; `end` tells of a line end that is not LF: CRLF, or none at the last line.
    """

    kind: Literal["file", "hunk", "same", "gone", "new"]
    text: str
    old: int = 0
    new: int = 0
    end: str = ""

    def __str__(self) -> str:
        mark = {"file": "", "hunk": "", "same": " ", "gone": "-", "new": "+"}[self.kind]
        return mark + self.text + (f"  <{self.end}>" if self.end and self.kind != "same" else "")


def lines(change: Change, context: int = 3) -> tuple[DiffLine, ...]:
    """The unified diff of all notes of a change, without their secrets. Text is else as it is in the notes: make it
    safe before showing it.

    Of a note that only gets another path, the paths are told, not its text.
    """
    rows: list[DiffLine] = []
    by_path = {file.path: file for file in change.files}
    names = {new: old for old, new in moves(change.files).items() if by_path[new].after == by_path[old].before}
    # What a note loses comes before the new note that it goes to.
    for file in sorted(change.files, key=lambda each: each.before is None and each.path not in names):
        if file.path in names:
            rows.append(DiffLine("file", f"{names[file.path]} becomes {file.path}, its text stays as it is"))
        elif file.path not in names.values():
            rows += _of(file, context)
    return tuple(rows)


def text(change: Change, context: int = 3) -> str:
    """The unified diff as one text, without its secrets."""
    return "".join(f"{line}\n" for line in lines(change, context))


def brought_back(change: Change) -> tuple[str, ...]:
    """Tell how many secrets a change that restores puts where a note has masks; undoing a mask needs no word."""
    if change.kind != "restore" or not any(MASK.encode() in (file.before or b"") for file in change.files):
        return ()
    rows = lines(change, 0)
    count = sum(row.text.count(NEW_SECRET) for row in rows if row.kind == "new")
    masks = any(MASK in row.text for row in rows if row.kind == "gone")
    return (f"This brings back {plural(count, 'secret')} in the place of masks.",) if count and masks else ()


def _of(file: FileChange, context: int) -> Iterator[DiffLine]:
    before, after = _split(file.before), _split(file.after)
    marks: dict[str, str] = {}
    shown, new_shown = _texts(file.before, SECRET, marks), _texts(file.after, NEW_SECRET, marks)
    yield DiffLine("file", f"--- {file.path if file.before is not None else 'nothing'}")
    yield DiffLine("file", f"+++ {file.path if file.after is not None else 'nothing'}")
    hunks: list[list[tuple[int, int, int, int]]] = []
    for span in changed_spans(before, after):
        if hunks and span[0] - hunks[-1][-1][1] <= 2 * context:
            hunks[-1].append(span)
        else:
            hunks.append([span])
    for spans in hunks:
        start, last = max(0, spans[0][0] - context), min(len(before), spans[-1][1] + context)
        new = start + spans[0][2] - spans[0][0]
        count = last - spans[-1][1] + spans[-1][3] - new
        old = f"{start + 1 if last > start else start},{last - start}"
        yield DiffLine("hunk", f"@@ -{old} +{new + 1 if count else new},{count} @@")
        for a, b, c, d in [*spans, (last, last, new + count, new + count)]:
            for number in range(start, a):
                yield DiffLine("same", shown[number], number + 1, c - a + number + 1, before[number][1])
            for number in range(a, b):
                yield DiffLine("gone", shown[number], number + 1, 0, before[number][1])
            for number in range(c, d):
                yield DiffLine("new", new_shown[number], 0, number + 1, after[number][1])
            start = b


def _split(data: bytes | None) -> list[tuple[str, str]]:
    """The lines of a note as text, each with the name of its end when that is not LF."""
    whole = (data or b"").decode("utf-8", "surrogateescape").split("\n")
    last = whole.pop()
    parts = [(line.removesuffix("\r"), "CRLF" if line.endswith("\r") else "") for line in whole]
    return [*parts, (last, "no line end")] if last else parts


def _texts(data: bytes | None, mark: str, marks: dict[str, str]) -> list[str]:
    """The lines of a note, as many as it has; a secret that has no mark among `marks` gets this one.

    Secrets are looked for in the whole note: a key may have many lines.
    """

    def shown(secret: str) -> str:
        return "\n".join([marks.setdefault(secret, mark)] * (secret.count("\n") + 1))

    whole = masked((data or b"").decode("utf-8", "surrogateescape"), shown).split("\n")
    # The last has no end, so what stands there is no part of one.
    return [*(line.removesuffix("\r") for line in whole[:-1]), whole[-1]]
