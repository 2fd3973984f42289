"""Changes of notes as the screen asks for them, run on a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.sanitize import one_line, safe
from memory_tui.tui.key_meanings import key_of

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.changes import Change, Conflict
    from memory_tui.notes.curator import AppliedChange, Curator
    from memory_tui.notes.diff import DiffLine
    from memory_tui.notes.git import Commit
    from memory_tui.notes.journal import JournalEntry, Typing, Unsaved
    from memory_tui.notes.planner import Planner
    from memory_tui.notes.promote import Spot


class Planned(Struct, frozen=True):
    """A change that can be made: its diff, what it means for the budget, and what a person should know of it."""

    change: Change
    lines: Sequence[DiffLine]
    effect: Sequence[str] = ()


class Draft:
    """The text `shown` of a note, LF at every line end; `text` is what an editor may show of it."""

    def __init__(self, shown: str) -> None:
        self._lines = shown.split("\n")
        self._safe = [_visible(line) for line in self._lines]
        self.text = "\n".join(self._safe)
        self.changed_characters = sum(row != other for row, other in zip(self._lines, self._safe, strict=True))
        """Lines that are not shown as they are."""

    def restored(self, text: str) -> str:
        """`text` with the lines that were left alone as they are in the note; changed ones keep what is seen."""
        if not self.changed_characters:
            return text
        from memory_tui.notes.merge import changed_spans

        new = text.split("\n")
        out: list[str] = []
        at = 0
        for first, last, start, end in changed_spans(self._safe, new):
            out += self._lines[at:first] + new[start:end]
            at = last
        return "\n".join(out + self._lines[at:])


def whole(engine: Engine, paths: Sequence[str]) -> list[tuple[tuple[str, int, int], str]]:
    """Path, first and last line of each of the notes `paths`, with its text. Raises MemoryTuiError."""
    texts = {path: engine.notes.read(path).text.removesuffix("\n") for path in paths}
    return [((path, 1, text.count("\n") + 1), visible(text)) for path, text in texts.items()]


def visible(text: str) -> str:
    """`text` safe to show; line ends become LF, and a tab stays a tab, because an editor draws it as space."""
    return text if text.isprintable() else "\n".join(map(_visible, text.replace("\r\n", "\n").split("\n")))


def _visible(line: str) -> str:
    return line if line.isprintable() else "\t".join(map(safe, line.split("\t")))


def goes_on_at_end(path: str, line: int) -> bool:
    """Whether an editor begins at the end of a note: a log goes on there, unless a person came from a `line` of it."""
    from memory_tui.index.index_write import is_daily

    return line <= 1 and is_daily(path)


def left_over(engine: Engine) -> str:
    """What editors left unsaved, as a sentence, empty when nothing; for worker threads."""
    from memory_tui.notes.journal import left

    paths = dict.fromkeys(one_line(row.path) for row in left(engine.notes.curator.journal))
    return (
        f"Unsaved text is kept for {', '.join(paths)}. Press {key_of('edit')} on the note to continue." if paths else ""
    )


class Carry(Struct, frozen=True):
    """Lines `first` to `last` of the note `path` on their way to another note; `last` None means the whole item.

    The numbers are of the lines that were `seen`. Promote goes to the curated note, demote to the topic note `target`,
    below the heading `to` or the fitting one.
    """

    kind: Literal["promote", "demote"]
    path: str
    first: int
    last: int | None
    seen: Sequence[str]
    target: str = ""
    to: str = ""
    move: bool = False

    def moved(self) -> Carry:
        """The same with the lines moved instead of copied, or the other way round."""
        return replace(self, move=not self.move)


def spot_of(plan: Planner, path: str, first: int, last: int | None, seen: Sequence[str]) -> Spot:
    """The lines that a person meant on a page with the lines `seen`, wherever others have moved them since."""
    from memory_tui.notes.changes import ShownLines
    from memory_tui.tui.note_page import shown_line

    return plan.spot(path, first, last, ShownLines(seen, shown_line))


def carried(engine: Engine, carry: Carry) -> Planned:
    """What `carry` would do. Raises EditRefused and the like."""
    plan = engine.notes.curator.plan
    spot = spot_of(plan, carry.path, carry.first, carry.last, carry.seen)
    if carry.kind == "promote":
        change = plan.promote(spot, to=carry.to, move=carry.move, target=carry.target)
    else:
        change = plan.demote(spot, carry.target, to=carry.to, move=carry.move)
    return planned(change)


def headings(engine: Engine, carry: Carry) -> list[str]:
    """The headings that the lines could go below, the best first."""
    plan = engine.notes.curator.plan
    reply = plan.choices(spot_of(plan, carry.path, carry.first, carry.last, carry.seen), carry.target)
    return [section.title for section in reply if section.title]


def planned(change: Change) -> Planned:
    """A change with its diff."""
    from memory_tui.notes import diff

    return Planned(change, diff.lines(change))


def restoring(engine: Engine, entry: JournalEntry | Commit, path: str, *, lost_lines: bool) -> Planned:
    """What bringing back the note `path` as it was at `entry` would do; before it, where `entry` is about a loss.

    With `lost_lines` it only gets the lines that it lacks. Raises EditRefused.
    """
    from memory_tui.notes.git import Commit
    from memory_tui.notes.journal import LOST
    from memory_tui.notes.restore import to_version

    if isinstance(entry, Commit):
        ref = f"git:{entry.hash}"
    else:
        ref = f"before-{entry.id}" if entry.kind == LOST else str(entry.id)
    return planned(to_version(engine.notes.curator, path, ref, lost_lines=lost_lines))


Make = Callable[["Curator"], "Change"]


def applied(engine: Engine, change: Change) -> AppliedChange:
    """Make `change`."""
    return engine.notes.curator.apply(change)


def step(engine: Engine, kind: str, number: int | None = None) -> AppliedChange:
    """Take a change back ("undo") or make it again ("redo"); without `number` the one that is next.

    What others wrote since stays where it does not touch. Raises Conflict where it does.
    """
    curator = engine.notes.curator
    return (curator.undo if kind == "undo" else curator.redo)(number, merging=True)


def step_or_plan(engine: Engine, kind: str, number: int | None, since: float) -> AppliedChange | Change:
    """Do `step` where that surprises nobody; else only return what it would change.

    A change of before `since` is not stepped over unseen, and neither is one that does something to the trust of a note
    in OpenClaw's ledger. Raises EditRefused when there is nothing to do.
    """
    from memory_tui.errors import EditRefused

    curator = engine.notes.curator
    entries = curator.undoable() if kind == "undo" else curator.redoable()
    entry = next((entry for entry in entries if number in (None, entry.id)), None)
    if entry is None:
        raise EditRefused(
            "Nothing is left to undo." if kind == "undo" else "Nothing is left to redo.",
            f"{key_of('go history')} shows what was changed.",
        )
    change = curator.preview(kind, entry.id)
    return change if entry.at < since or change.notes else step(engine, kind, entry.id)


class Opened(Struct, frozen=True):
    """A note as an editor begins with it: its bytes, how they are shown, what keeps the typing, what was left of it.

    `beginning` is what is proposed for a note that is not there.
    """

    before: bytes | None
    shown: str
    typing: Typing
    left: Unsaved | None
    beginning: str = ""


def opened(engine: Engine, path: str, most: int) -> Opened:
    """A note for an editor; with what was typed and not saved last time, the bytes are those that it was begun on.

    Raises EditRefused for more than `most` bytes.
    """
    from memory_tui.errors import EditRefused
    from memory_tui.notes.changes import editor_text
    from memory_tui.notes.journal import Typing, left

    data = engine.notes.curator.read(path)
    if data is not None and len(data) > most:
        raise EditRefused(
            f"{path} has {len(data):,} bytes, too many to edit here.",
            f"{key_of('editor')} opens it in your own editor.",
        )
    journal = engine.notes.curator.journal
    reply = next(iter(left(journal, path)), None)
    if reply is not None and reply.text == Draft(editor_text(data, path)).text:
        reply = None
    before = reply.before if reply is not None else data
    beginning = engine.notes.curator.plan.beginning(path) if before is None else ""
    return Opened(before, editor_text(before, path), Typing(journal, path, reply), reply, beginning)


def standing(engine: Engine, path: str, before: bytes | None, text: str) -> list[tuple[str, str]]:
    """What saving `text` means for the prompt, with the line where each file is cut, and for trust: words and style."""
    data, curator = text.encode("utf-8", "replace"), engine.notes.curator
    reply = engine.notes.prompt(path, data)
    words: list[tuple[str, str]] = []
    if reply is not None and any(file.path == path for file in reply.files):
        others = [file for file in reply.files if file.path != path and file.taken < file.used]
        new = next(file for file in reply.files if file.path == path)
        words.append((new.sentence, "bad" if new.taken < new.used else "warn" if new.remark else ""))
        words.append((reply.sentence, ""))
        words += [(file.sentence, "bad") for file in others]
    elif path == curator.plan.memory():
        words += [(row.sentence, "bad" if row.cut else "") for row in curator.plan.budget(data)]
    if curator.trust is not None:
        effects = curator.trust.effects([(path, before, data)])
        words[2:2] = [(effect, "warn") for effect in effects if "changes nothing" not in effect]
    return words


class OutsideChange(Struct, frozen=True):
    """What another program did to a note meanwhile: a sentence, and the rows (from 0) of the text being typed where."""

    words: str = ""
    rows: frozenset[int] = frozenset()


def outside(engine: Engine, path: str, before: bytes | None, text: str) -> OutsideChange:
    """What another program changed in the note since it was `before`, for the `text` being typed."""
    from difflib import SequenceMatcher

    from memory_tui.notes.changes import editor_text

    now = engine.notes.curator.read(path)
    if now == before:
        return OutsideChange()
    if now is None:
        return OutsideChange("another program took the note away")
    old, new = (editor_text(data, path).split("\n") for data in (before, now))
    moves = [item for item in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if item[0] != "equal"]
    # From the first to the last line that differs, as they stand on disk; a line that is gone has only its place.
    first, last = moves[0][3] + 1 if moves else 1, max([moves[-1][4], moves[0][3] + 1]) if moves else 1
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    # Where lines came in, the one above them is marked.
    changed = {row for _, start, end, _, _ in moves for row in (range(start, end) or (max(start - 1, 0),))}
    same = SequenceMatcher(None, old, text.split("\n"), autojunk=False).get_matching_blocks()
    rows = frozenset(here + row - start for start, here, size in same for row in changed if start <= row < start + size)
    return OutsideChange(f"another program wrote {lines}", rows)


def saved(engine: Engine, path: str, before: bytes | None, text: str, draft: int = 0) -> AppliedChange:
    """Write what an editor made of a note that it opened as `before`, with what others wrote since.

    `draft` is what an earlier attempt of this editor left in the journal, 0 for nothing. A note that is begun ends
    with a line end, so that what an agent appends stands on a line of its own. Raises Conflict when both changed the
    same lines.
    """
    curator = engine.notes.curator
    if before is None and not text.endswith("\n"):
        text += "\n"
    return curator.apply(curator.plan.edit(path, before, text), draft=draft)


def resolved(engine: Engine, conflict: Conflict, data: bytes) -> AppliedChange:
    """Write what somebody chose between their own change and that of others, with what others wrote since.

    Raises Conflict when others changed the same lines again.
    """
    return engine.notes.curator.resolve(conflict, data)


def forgotten(engine: Engine, draft: int) -> None:
    """Do without the draft that an editor left in the journal."""
    engine.notes.curator.forget_draft(draft)
