"""A note in an editor: characters that would act on the terminal are shown as stand-ins and come back when saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_tui.text.display import one_line, safe

if TYPE_CHECKING:
    from memory_tui.engine import Engine


class Draft:
    """The text `shown` of a note, LF at every line end; `text` is what an editor may show of it."""

    def __init__(self, shown: str) -> None:
        self._lines = shown.split("\n")
        self._safe = [_visible(line) for line in self._lines]
        self.text = "\n".join(self._safe)
        self.changed_characters = sum(one != other for one, other in zip(self._lines, self._safe, strict=True))
        """Lines that are not shown as they are."""

    def restored(self, text: str) -> str:
        """`text` with the lines that were left alone as they are in the note; changed ones keep what is seen."""
        if not self.changed_characters:
            return text
        from memory_tui.curate.merge import changed_spans

        new = text.split("\n")
        out: list[str] = []
        at = 0
        for first, last, start, end in changed_spans(self._safe, new):
            out += self._lines[at:first] + new[start:end]
            at = last
        return "\n".join(out + self._lines[at:])


def visible(text: str) -> str:
    """`text` safe to show; line ends become LF, and a tab stays a tab, because an editor draws it as space."""
    return text if text.isprintable() else "\n".join(map(_visible, text.replace("\r\n", "\n").split("\n")))


def _visible(line: str) -> str:
    return line if line.isprintable() else "\t".join(map(safe, line.split("\t")))


def left_over(engine: Engine) -> str:
    """What editors left unsaved, as a sentence, empty when nothing; for worker threads."""
    from memory_tui.curate.unsaved import left

    paths = dict.fromkeys(one_line(one.path) for one in left(engine.curator.journal.folder))
    return f"Typed but not saved, and kept: {', '.join(paths)}. i on the note brings it back." if paths else ""
