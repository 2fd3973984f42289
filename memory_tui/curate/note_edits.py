"""Candidate edits: small changes of a note by which one of its lines may come to be found, smallest first."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import tokens
from memory_tui.core.formatting import plural
from memory_tui.curate.changes import FENCE, HEADING, Change, FileChange, Lines, block_at, sections
from memory_tui.curate.merge import changed_spans

EditKind = Literal["alias", "heading", "own note", "day"]
"""Words behind the line; a heading above it; a note of its own; the log of the day that the question names."""
NoteLine = tuple[str, int]
"""A line of a note: its stored path and its number."""
_ALIASES, _TITLE = 3, 4
"""How many words are tried one at a time, and how many a heading of the line's own words has."""
_SHORT = 2
_LANGUAGE = "en"


class NoteEdit(Struct, frozen=True):
    """One edit for the sake of the line that `was` there, which afterwards is line `line` of the note `path`.

    `words` are what it adds; those of `words_at` stand on that line of the note already, 0 for words of the question.
    `size` is how many characters it adds, takes away or moves. `moved` lines go to another note, (0, 0) for none.
    Of a pair `first` is the edit that is made before, in the same step: the words behind the line.
    """

    kind: EditKind
    change: Change
    path: str
    line: int
    words: tuple[str, ...]
    words_at: int
    size: int
    was: NoteLine
    moved: tuple[int, int] = (0, 0)
    first: NoteEdit | None = None


class EditedLine(Struct, frozen=True):
    """A line that is asked about: its number `line` in the note at `path`, whose bytes are `data`.

    `asked` are the words of the question that count, `day` the one that it names.
    """

    path: str
    data: bytes
    line: int
    asked: tuple[str, ...]
    day: dt.date | None = None


def candidates(wanted: EditedLine, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
    """The edits worth trying, smallest first; none for a line that is not there, or is blank.

    `current` gives the bytes of a note by its stored path, None where there is none. Raises EditRefused for a note
    that is not edited line by line.
    """
    made = _edits_of(wanted)
    if made is None:
        return []
    return sorted([*made.aliases(), *made.others(current)], key=lambda one: one.size)


def pairs(wanted: EditedLine, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
    """Two of the candidate edits in one, smallest first: words behind the line, with a new place or heading for it.

    Raises EditRefused, as `candidates` does.
    """
    made, found = _edits_of(wanted), []
    for alias in made.aliases() if made is not None else ():
        after = _behind(wanted, alias)
        found += [_both(alias, then, wanted) for then in (after.others(current) if after else ())]
    return sorted(found, key=lambda one: one.size)


def is_part(small: NoteEdit, edit: NoteEdit) -> bool:
    """Whether `edit` is `small` with more words, or the same."""
    return (small.kind, small.path) == (edit.kind, edit.path) and set(small.words) <= set(edit.words)


def with_fewer_words(wanted: EditedLine, edit: NoteEdit, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
    """`edit` with one of the words left out that it puts behind the line or above it.

    An edit that loses its only word goes, so that of a pair the other one stays; none for a single word.
    """
    if edit.first is None:
        made = _edits_of(wanted)
        return made.fewer(edit) if made is not None else []
    found = []
    for first in (*with_fewer_words(wanted, edit.first, current), *((None,) if len(edit.first.words) == 1 else ())):
        then = _behind(wanted, first)
        found += [_both(first, one, wanted) if first else one for one in (then.like(edit, current) if then else [])]
    then = _behind(wanted, edit.first)
    found += [_both(edit.first, one, wanted) for one in (then.fewer(edit) if then else [])]
    return [*found, edit.first] if edit.kind == "heading" and len(edit.words) == 1 else found


def _behind(wanted: EditedLine, first: NoteEdit | None) -> _Edits | None:
    """The edits of the note after `first`. They are of what the line says, not of what was just put behind it."""
    made = _edits_of(wanted)
    if first is None or made is None:
        return made
    after = _edits_of(replace(wanted, data=first.change.files[0].after or b""))
    if after is not None:
        after.own = made.own
    return after


def _both(first: NoteEdit, then: NoteEdit, wanted: EditedLine) -> NoteEdit:
    """`then`, which was made of the note after `first`, as one change of the note as it is."""
    files = tuple(replace(file, before=wanted.data) if file.path == wanted.path else file for file in then.change.files)
    title = f"{first.change.title}, and {then.change.title[0].lower()}{then.change.title[1:]}"
    change = Change("edit", title, files, (*first.change.notes, *then.change.notes))
    return replace(then, change=change, size=first.size + then.size, first=first)


def _edits_of(wanted: EditedLine) -> _Edits | None:
    note = Lines.of(wanted.data, wanted.path)
    texts = note.texts()
    if not 1 <= wanted.line <= len(texts) or not texts[wanted.line - 1].strip():
        return None
    return _Edits(wanted, note, texts)


class _Edits:
    def __init__(self, wanted: EditedLine, note: Lines, texts: list[str]) -> None:
        self.wanted, self.note, self.texts = wanted, note, texts
        self.text = texts[wanted.line - 1]
        self.first, self.last = block_at(texts, wanted.line)
        held = {word.lower() for word in tokens.WORD.findall("\n".join(texts[self.first - 1 : self.last]))}
        self.lacking = tuple(word for word in dict.fromkeys(wanted.asked) if word.lower() not in held)
        self.own = _own_words(self.text)

    def aliases(self) -> list[NoteEdit]:
        """Words of the question behind the line."""
        if _is_fenced(self.texts, self.wanted.line) or self.text.lstrip().startswith("|"):
            return []
        tried: list[tuple[str, ...]] = [(word,) for word in self.lacking[:_ALIASES]]
        tried += [self.lacking] if len(self.lacking) > 1 else []
        return [self._alias(words) for words in tried]

    def _alias(self, words: tuple[str, ...]) -> NoteEdit:
        added, at = f" ({', '.join(words)})", self.wanted.line
        lines = list(self.note.lines)
        body, end = lines[at - 1].rstrip("\r\n"), lines[at - 1][len(lines[at - 1].rstrip("\r\n")) :]
        lines[at - 1] = f"{body.rstrip()}{added}{end}"
        title = f"Add {added.strip()} to line {at} of {self.wanted.path}"
        return self._edit("alias", title, Lines(self.note.bom, tuple(lines)), at, words, 0, len(added))

    def fewer(self, edit: NoteEdit) -> list[NoteEdit]:
        """`edit`, of words behind the line or above it, with one of them left out; none for a single word."""
        words = edit.words
        if len(words) < 2 or edit.kind not in ("alias", "heading"):
            return []
        fewer = [words[:at] + words[at + 1 :] for at in range(len(words))]
        return [self._alias(one) if edit.kind == "alias" else self._heading(one, edit.words_at) for one in fewer]

    def like(self, edit: NoteEdit, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
        """The edit that does the same as `edit`, which was made of another text of the line."""
        if edit.kind == "heading":
            return [self._heading(edit.words, edit.words_at)]
        return [one for one in self.others(current) if (one.kind, one.path) == (edit.kind, edit.path)]

    def others(self, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
        """Every edit that leaves the words of the line as they are."""
        return [*self.headings(), *self.own_note(current), *self.of_day(current)]

    def headings(self) -> list[NoteEdit]:
        """A heading above the block of the line: of its own words that are asked, of its own words, of all asked."""
        if HEADING.match(self.text) or _is_fenced(self.texts, self.wanted.line):
            return []
        asked = {word.lower() for word in self.wanted.asked}
        tried = [
            (tuple(word for word in self.own if word.lower() in asked), self.wanted.line),
            (self.own[:_TITLE], self.wanted.line),
            (tuple(dict.fromkeys(self.wanted.asked)), 0),
        ]
        return [self._heading(words, at) for words, at in dict.fromkeys(tried) if words]

    def _heading(self, words: tuple[str, ...], words_at: int) -> NoteEdit:
        section = [one for one in sections(self.texts) if one.line < self.first][-1]
        level = min(6, max(2, section.level + 1))
        gap = [""] if self.first > 1 and self.texts[self.first - 2].strip() else []
        added = [*gap, f"{'#' * level} {' '.join(words)}", ""]
        title = f'Heading "{" ".join(words)}" above line {self.first} of {self.wanted.path}'
        below = section.last - self.last
        notes = (f"{plural(below, 'line')} behind it then stand below this heading too.",) if below > 0 else ()
        return self._edit(
            "heading",
            title,
            self.note.insert(self.first, added),
            self.wanted.line + len(added),
            words,
            words_at,
            sum(len(line) + 1 for line in added),
            notes,
        )

    def own_note(self, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
        """The block in a note of its own, whose name has no day, so that it does not age."""
        words = self.own[:_TITLE]
        name = "-".join(re.findall(r"\w+", " ".join(words).casefold()))[:60].strip("-")
        path = f"memory/{name}.md"
        if not name or HEADING.match(self.text) or current(path) is not None:
            return []
        return [self._moved("own note", path, None, f"# {' '.join(words)}", words, self.wanted.line)]

    def of_day(self, current: Callable[[str], bytes | None]) -> list[NoteEdit]:
        """The block in the log of the day that the question names."""
        day = self.wanted.day
        if day is None or HEADING.match(self.text) or self.wanted.path.endswith(f"{day.isoformat()}.md"):
            return []
        path = f"memory/{day.isoformat()}.md"
        return [self._moved("day", path, current(path), f"# {day.isoformat()}", (day.isoformat(),), 0)]

    def _moved(
        self, kind: EditKind, path: str, before: bytes | None, heading: str, words: tuple[str, ...], words_at: int
    ) -> NoteEdit:
        block, target = self.texts[self.first - 1 : self.last], Lines.of(before, path)
        gap = [""] if target.lines and target.texts()[-1].strip() and not block[0].lstrip().startswith("-") else []
        lines = [*gap, *block] if target.lines else [heading, "", *block]
        after = target.insert(len(target.lines) + 1, lines)
        files = (
            FileChange(path, before, after.data),
            FileChange(self.wanted.path, self.wanted.data, self.note.delete(self.first, self.last).data),
        )
        begin = len(target.lines) + len(lines) - len(block)
        what = f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"
        change = Change("edit", f"Move {what} of {self.wanted.path} to {path}", files)
        size = 2 * sum(len(text) + 1 for text in block) + (0 if target.lines else len(heading) + 2)
        line = begin + self.wanted.line - self.first + 1
        was = self.wanted.path, self.wanted.line
        return NoteEdit(kind, change, path, line, words, words_at, size, was, (self.first, self.last))

    def _edit(
        self,
        kind: EditKind,
        title: str,
        after: Lines,
        line: int,
        words: tuple[str, ...],
        words_at: int,
        size: int,
        notes: tuple[str, ...] = (),
    ) -> NoteEdit:
        path = self.wanted.path
        change = Change("edit", title, (FileChange(path, self.wanted.data, after.data),), notes)
        return NoteEdit(kind, change, path, line, words, words_at, size, (path, self.wanted.line))


def _own_words(text: str) -> tuple[str, ...]:
    """The words of a line that say something, as they are spelled there."""
    stops = tokens.stop_words(_LANGUAGE)
    found: dict[str, str] = {}
    for word in tokens.WORD.findall(text):
        if (len(word) > _SHORT or tokens.is_cjk(word)) and word.lower() not in stops and not word.isdigit():
            found.setdefault(word.lower(), word)
    return tuple(found.values())


def _is_fenced(texts: Sequence[str], line: int) -> bool:
    """Whether a line stands in fenced code, or is a fence."""
    inside = False
    for text in texts[:line]:
        fence = FENCE.match(text) is not None
        inside = inside != fence
    return inside or FENCE.match(texts[line - 1]) is not None


def origins(change: Change, edit: NoteEdit | None = None) -> dict[NoteLine, NoteLine]:
    """Where each line of the changed notes stood before; lines that are new are missing."""
    found: dict[NoteLine, NoteLine] = {}
    for file in change.files:
        if file.after is None:
            continue
        old, new = Lines.of(file.before, file.path).texts(), Lines.of(file.after, file.path).texts()
        at = 0
        for first, last, start, end in [*changed_spans(old, new), (len(old), len(old), len(new), len(new))]:
            behind = start - first
            found |= {(file.path, old_at + behind + 1): (file.path, old_at + 1) for old_at in range(at, first)}
            if last - first == end - start:
                found |= {(file.path, start + i + 1): (file.path, first + i + 1) for i in range(last - first)}
            at = last
    if edit is not None:
        found[edit.path, edit.line] = edit.was
    if edit is not None and edit.moved[0]:
        source, line = edit.was
        first, last = edit.moved
        found |= {(edit.path, edit.line + at - line): (source, at) for at in range(first, last + 1)}
    return found
