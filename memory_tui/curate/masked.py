"""The diff of a change with everything that looks like a secret left out, for lists that are read over a shoulder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memory_tui.curate import diff, tidy
from memory_tui.curate.diff import DiffLine
from memory_tui.curate.record import Change
from memory_tui.text import secrets

MASK = "***"


def lines(change: Change, context: int = 3) -> tuple[DiffLine, ...]:
    """What `diff.lines` gives, with secrets masked; looked for in whole notes: a key may have many lines.

    Of a note that only gets another path, the paths are told, not its text.
    """
    found: list[DiffLine] = []
    moved = tidy.moves(change)
    names = {new: old for old, new in moved.items()}
    for file in change.files:
        if file.path in names and file.before is None:
            found.append(DiffLine("file", f"{names[file.path]} becomes {file.path}, its text stays as it is"))
        elif file.path not in moved or file.after is not None:
            found += _masked(
                diff.lines(replace(change, files=(file,)), context), _texts(file.before), _texts(file.after)
            )
    return tuple(found)


def _masked(found: tuple[DiffLine, ...], before: list[str], after: list[str]) -> Iterator[DiffLine]:
    for line in found:
        texts, number = (after, line.new) if line.kind == "new" else (before, line.old)
        yield replace(line, text=texts[number - 1]) if number else line


def _texts(data: bytes | None) -> list[str]:
    """The lines of a note, as many as it has."""
    text = (data or b"").decode("utf-8", "surrogateescape")
    for found in reversed(secrets.find(text)):
        ends = text.count("\n", found.start, found.end)
        text = text[: found.start] + "\n".join([MASK] * (ends + 1)) + text[found.end :]
    whole = text.split("\n")
    # The last has no end, so what stands there is no part of one.
    return [*(line.removesuffix("\r") for line in whole[:-1]), whole[-1]]
