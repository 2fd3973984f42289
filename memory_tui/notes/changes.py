"""A change of notes, file by file, and its diff. It holds the bytes before and the bytes after.

Bytes that are not UTF-8 stand for themselves (surrogateescape). Lines are counted from 1, and only a line feed ends
one, as everywhere in this program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.notes.merge import Merge, changed_spans, matching
from memory_tui.secrets.finder import MASK, masked
from memory_tui.workspace.notes import headings, name_beside, telling, utf16_of


class FileChange(Struct, frozen=True):
    """One note, by its stored path: its bytes before and after, None where it is not there.

    `mode` and `mtime_ns` are for a note that is made, 0 for the usual; one that is there keeps its mode.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0
    mtime_ns: int = 0

    def reverse(self) -> FileChange:
        """Return what takes it back."""
        return replace(self, before=self.after, after=self.before)


def moves(files: Sequence[FileChange]) -> dict[str, str]:
    """Return the new path of each note that goes while one of the same name comes, or while one comes and one goes."""
    new = [file.path for file in files if file.before is None and file.after is not None]
    old = [file.path for file in files if file.before is not None and file.after is None]
    if len(new) == len(old) == 1:
        return {old[0]: new[0]}
    by_name = {path.rpartition("/")[2]: path for path in new}
    return {path: by_name[name] for path in old if (name := path.rpartition("/")[2]) in by_name}


class Change(Struct, frozen=True):
    """One or several notes that change together. `title` is a sentence; `notes` are what a person should know of it.

    Neither holds what looks like a secret: they go into lists, messages and the journal.
    `kind` is capture, edit, new, promote, demote, merge, delete, archive, trash, rename, restore,
    session, undo or redo.
    """

    kind: str
    title: str
    files: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    of: int = 0
    """The change that an undo takes back, or a redo makes again; 0 for any other kind."""

    def __post_init__(self) -> None:
        force_setattr(self, "title", masked(self.title))
        force_setattr(self, "notes", tuple(map(masked, self.notes)))

    @property
    def paths(self) -> tuple[str, ...]:
        """The stored paths of the notes it changes."""
        return tuple(file.path for file in self.files)

    @property
    def end(self) -> str:
        """Where what it adds to the end of its first note will stand, as a sentence."""
        first = self.files[0]
        if first.before is None:
            return f"It makes the note {first.path}."
        lines = editor_text(first.before, first.path).split("\n")
        heading = masked(telling(sections(lines)[-1].title, name_beside(first.path)))
        return f"It goes to the end of {first.path}" + (f", under “{heading}”." if heading else ".")


class ThreeWay(Struct, frozen=True):
    """A note that somebody else changed too: what both started from, theirs on disk now, mine that was not written."""

    path: str
    base: bytes | None
    mine: bytes | None
    other: bytes | None
    merge: Merge


class ReadOnly(EditRefused):
    """Nothing may be written: the program was asked not to, or the note or its folder does not allow it."""

    code = "read_only"


class Busy(EditRefused):
    """Another program has the note open for writing, or another memory-tui is changing notes."""

    code = "busy"
    exit_status = 1


class Unfinished(EditRefused):
    """A change that an error of the disk cut off. The journal has its texts; the next start or change settles it."""

    code = "unfinished"
    exit_status = 1


class NothingToChange(EditRefused):
    """The note is already as it should become."""

    code = "nothing_to_change"


class Conflict(EditRefused):
    """Somebody else changed the same lines. `view` shows all three texts; `draft` is where the journal keeps mine.

    `change` is what was to be made, of all its notes.
    """

    code = "conflict"
    exit_status = 1

    def __init__(self, message: str, next_step: str, view: ThreeWay, draft: int = 0, *, change: Change) -> None:
        super().__init__(message, next_step)
        self.view, self.draft, self.change = view, draft, change


BOM = "\ufeff"
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]")
"""What an editor cannot show or takes for the end of a line, and bytes that are not UTF-8."""
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)")


class Lines(Struct, frozen=True):
    """A note: whether it begins with a byte order mark, and its lines, each with its end."""

    bom: bool
    lines: tuple[str, ...]

    @classmethod
    def of(cls, data: bytes | None, path: str = "The note") -> Lines:
        """The lines of a note, none for one that is not there. Raises EditRefused for UTF-16 and UTF-32."""
        data = data or b""
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            step = "The inbox writes it as UTF-8; it can be moved and deleted as a whole."
            raise EditRefused(f"{path} is UTF-16, which is shown but not edited line by line.", step)
        text = data.decode("utf-8", "surrogateescape")
        bom = text.startswith(BOM)
        lines = text[bom:].split("\n")
        last = lines.pop()
        return cls(bom, (*(line + "\n" for line in lines), *([last] if last else [])))

    @property
    def data(self) -> bytes:
        """The note as bytes."""
        return ((BOM if self.bom else "") + "".join(self.lines)).encode("utf-8", "surrogateescape")

    @property
    def end(self) -> str:
        """The line end that most lines have."""
        windows = sum(line.endswith("\r\n") for line in self.lines)
        return "\r\n" if windows * 2 > sum(line.endswith("\n") for line in self.lines) else "\n"

    def texts(self) -> list[str]:
        """All lines without their ends."""
        return [bare(line) for line in self.lines]

    def insert(self, before: int, texts: Iterable[str]) -> Lines:
        """A copy with `texts` in front of line `before`, which may be one behind the last."""
        at = before - 1
        end = end_of(self.lines[at - 1]) or self.end if at else self.end
        head = list(self.lines[:at])
        if head and not end_of(head[-1]):
            head[-1] += end
        return Lines(self.bom, (*head, *(text + end for text in texts), *self.lines[at:]))

    def delete(self, first: int, last: int) -> Lines:
        """A copy without lines `first` to `last`; of two blank lines that would meet, one goes too."""
        above, below = self.lines[: first - 1], self.lines[last:]
        if below and not below[0].strip() and (not above or not above[-1].strip()):
            below = below[1:]
        elif not below and above and end_of(self.lines[-1]) == "":
            # The note had no line end at its end, and has none now.
            above = (*above[:-1], bare(above[-1]))
        return Lines(self.bom, above + below)

    def check(self, first: int, last: int, path: str) -> None:
        """Raises EditRefused unless these lines are there."""
        if first == last == len(self.lines) + 1 and (not self.lines or end_of(self.lines[-1])):
            raise EditRefused(f"Line {first} of {path} is empty: the text ends above it.", "Choose lines with text.")
        if not 1 <= first <= last <= len(self.lines):
            step = "Look at the note again; it may have changed."
            raise EditRefused(f"{path} has {len(self.lines)} lines, so there are no lines {first} to {last}.", step)


class ShownLines(Struct, frozen=True):
    """The `lines` of a note as a person saw them; `show` makes of a line what they saw of it."""

    lines: Sequence[str]
    show: Callable[[str], str]

    def now_at(self, first: int, last: int, note: Lines) -> tuple[int, int] | None:
        """Where lines `first` to `last` stand in `note`, which others may have changed since.

        None where one of them is another one now, or lines came between them.
        """
        now = [self.show(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) for text in note.texts()]
        moved = 0
        for a, b, _, d in changed_spans(self.lines, now):
            if b < first:
                moved = d - b
            elif a < last:
                return None
        return first + moved, last + moved


def bare(line: str) -> str:
    """A line without its end."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def end_of(line: str) -> str:
    """The end of a line: CR LF, LF or nothing."""
    return line[len(bare(line)) :]


def editor_text(data: bytes | None, path: str = "The note") -> str:
    """A note as an editor shows it: no byte order mark, LF at every line end, U+FFFD for what cannot be shown."""
    lines = Lines.of(data, path)
    return _ODD.sub("\ufffd", "".join(bare(line) + "\n"[: len(end_of(line))] for line in lines.lines))


_BY_EDITOR = "Save it as UTF-8 in the editor that wrote it."
_ESCAPED = re.compile("[\udc80-\udcff]+")
"""Bytes that are not UTF-8."""
MOST_ACCENTS = 3
"""Letters with accents and quotation marks that meet in a language of Windows-1252; those of other alphabets go on."""
_WESTERN = {0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
"""What Windows-1252 makes of each byte that is not UTF-8; of five that it does not know, what Latin-1 does."""


def to_utf8(path: str, data: bytes | None) -> Change:
    """Write a note as UTF-8. What is UTF-8 in it stays; other bytes are read as UTF-16 or as Windows-1252.

    Raises EditRefused where that cannot be, or nothing would change.
    """
    data, codec = data or b"", utf16_of(data or b"")
    try:
        text = data.decode(codec) if codec else data.decode("utf-8", "surrogateescape")
    except UnicodeDecodeError as error:
        raise EditRefused(f"{path} is not whole {codec.upper()}: {error.reason}.", _BY_EDITOR) from error
    if not codec and max(map(len, _ESCAPED.findall(text)), default=0) > MOST_ACCENTS:
        raise EditRefused(f"{path} is neither UTF-8, UTF-16 nor Windows-1252.", _BY_EDITOR)
    after = (text if codec else text.translate(_WESTERN)).encode()
    if after == data:
        raise EditRefused(f"{path} is UTF-8 already.", "Run the checks again.")
    return Change("convert", f"Write {path} as UTF-8", (FileChange(path, data, after),))


def edited(data: bytes | None, text: str, path: str = "The note") -> bytes:
    """The note `data` after somebody changed what `editor_text` gave to `text`.

    Lines that were left alone keep every byte; a changed line keeps its end and what was shown as U+FFFD, where that
    is still in it; a new line gets the end of the line above.
    """
    old = Lines.of(data, path)
    if text == editor_text(data, path):
        return data or b""
    new = text.replace("\r\n", "\n").split("\n")
    unended = new.pop()
    target = [(line, True) for line in new] + ([(unended, False)] if unended else [])
    before = [(_ODD.sub("\ufffd", bare(line)), bool(end_of(line))) for line in old.lines]
    out: list[str] = []
    at = 0
    for a, b, c, d in changed_spans(before, target):
        out += old.lines[at:a]
        for number, (line, ended) in enumerate(target[c:d]):
            was = old.lines[a + number] if a + number < b else ""
            end = (end_of(was) or (end_of(out[-1]) if out else "") or old.end) if ended else ""
            out.append(_with_odd_bytes(bare(was), line) + end)
        at = b
    return Lines(old.bom, (*out, *old.lines[at:])).data


def _with_odd_bytes(was: str, line: str) -> str:
    """`line` with what `was` holds for each U+FFFD that was shown for it and is still there."""
    if not _ODD.search(was) or "\ufffd" not in line:
        return line.encode("utf-8", "replace").decode() if not line.isascii() else line
    letters = list(line)
    for a, b, count in matching(_ODD.sub("\ufffd", was), line):
        letters[b : b + count] = was[a : a + count]
    return "".join(letters)


class Section(Struct, frozen=True):
    """A heading and what stands below it up to the next one. `line` is the heading's, 0 for the top of the note.

    `last` is the last line of its own body; `level` is 1 to 6, 0 for the top.
    """

    line: int
    level: int
    title: str
    last: int


def sections(texts: Sequence[str]) -> list[Section]:
    """Return the headings of a note in order, the top of the note first."""
    rows = [(0, 0, ""), *headings("\n".join(texts))]
    ends = [line - 1 for line, _, _ in rows[1:]] + [len(texts)]
    return [Section(*row, last) for row, last in zip(rows, ends, strict=True)]


def block_at(texts: Sequence[str], line: int) -> tuple[int, int]:
    """The lines that belong together with `line`: a list item with what is indented below it, or a paragraph."""
    if not texts[line - 1].strip() or HEADING.match(texts[line - 1]):
        return line, line
    first = last = line
    item = ITEM.match(texts[line - 1])
    indent = len(item[1]) if item else 0
    while not item and first > 1 and texts[first - 2].strip() and not HEADING.match(texts[first - 2]):
        first -= 1
        if above := ITEM.match(texts[first - 1]):
            item, indent = above, len(above[1])
    while last < len(texts) and texts[last].strip() and not HEADING.match(texts[last]):
        deeper = len(texts[last]) - len(texts[last].lstrip()) > indent
        if (item and not deeper) or (not item and ITEM.match(texts[last])):
            break
        last += 1
    return first, last


# --- the diff --------------------------------------------------------------------------------------------------------

SECRET, NEW_SECRET, EARLIER_SECRET = "[secret]", "[new secret]", "[earlier secret]"
"""What stands for a secret, and for one that the note did not hold just before, or that comes back.

A mask that it holds stays as it is."""


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


def diff_lines(change: Change, context: int = 3) -> tuple[DiffLine, ...]:
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
            rows += _diff_of(file, context, EARLIER_SECRET if change.kind in ("undo", "restore") else NEW_SECRET)
    return tuple(rows)


def diff_text(change: Change) -> str:
    """The unified diff as one text, without its secrets."""
    return "".join(f"{line}\n" for line in diff_lines(change))


def brought_back(change: Change) -> tuple[str, ...]:
    """Tell how many secrets a change that restores puts where a note has masks; undoing a mask needs no word."""
    if change.kind != "restore" or not any(MASK.encode() in (file.before or b"") for file in change.files):
        return ()
    rows = diff_lines(change, 0)
    count = sum(row.text.count(EARLIER_SECRET) for row in rows if row.kind == "new")
    masks = any(MASK in row.text for row in rows if row.kind == "gone")
    return (f"This brings back {plural(count, 'secret')} in the place of masks.",) if count and masks else ()


def _diff_of(file: FileChange, context: int, mark: str) -> Iterator[DiffLine]:
    """Yield the unified diff of one file, in which secrets are masked and lines keep their numbers."""
    before, after = _split(file.before), _split(file.after)
    marks: dict[str, str] = {}
    shown, new_shown = _masked_lines(file.before, SECRET, marks), _masked_lines(file.after, mark, marks)
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


def _masked_lines(data: bytes | None, mark: str, marks: dict[str, str]) -> list[str]:
    """The lines of a note, as many as it has; a secret that has no mark among `marks` gets this one.

    Secrets are looked for in the whole note: a key may have many lines.
    """

    def shown(secret: str) -> str:
        return "\n".join([marks.setdefault(secret, mark)] * (secret.count("\n") + 1))

    whole = masked((data or b"").decode("utf-8", "surrogateescape"), shown).split("\n")
    # The last has no end, so what stands there is no part of one.
    return [*(line.removesuffix("\r") for line in whole[:-1]), whole[-1]]
