"""Changes of notes: shown first, made on a worker thread, taken back by one key; conflicts are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import one_line, plural, safe
from memory_tui.notes.changes import Change, Conflict, Lines, NothingToChange, ShownLines, ThreeWay
from memory_tui.tui.dialogs import Choice, Confirm, Dialog, Line, dialog_width
from memory_tui.tui.keys import bindings
from memory_tui.tui.note_facts import difference, ordered
from memory_tui.tui.reader import Reader, shown_line
from memory_tui.tui.rows import Rows
from memory_tui.tui.view import View, if_answered

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.changes import Hunk
    from memory_tui.notes.edit import AppliedChange, Curator
    from memory_tui.notes.journal import JournalEntry
    from memory_tui.notes.promote import Spot

PATIENCE = 2.0
"""Seconds that keys typed ahead wait for a question that is being prepared: a slow disk does not hold them longer."""
_LONG = 1_000
"""Characters from which on a line may be cut into passages."""
_DEEDS = {
    "promote": "Promote",
    "trash": "Move to the trash",
    "archive": "Archive",
    "rename": "Rename",
    "undo": "Take back",
    "redo": "Make it again",
    "new": "Create",
    "restore": "Restore",
}
Plan: TypeAlias = "Callable[[Curator], Change]"
Spots: TypeAlias = "Callable[[Curator], list[Spot]]"
Deed: TypeAlias = "Callable[[Curator], AppliedChange]"
Then: TypeAlias = "Callable[[AppliedChange], object]"


async def ahead(view: View, work: Coroutine[Any, Any, None]) -> None:
    """Do `work`, which ends with a dialog on the screen; keys typed meanwhile wait, and go into the dialog."""
    worker = view.run_worker(work, group="plan", exclusive=True)
    # Shielded, because the work goes on when the keys have waited long enough.
    await in_time(asyncio.shield(worker.wait()))
    if not worker.is_finished:
        view.notify("This takes a while; a question comes by itself.", markup=False)


async def in_time(awaited: Awaitable[object]) -> None:
    """Let keys typed ahead wait for what the key before them needs, but not for ever."""
    with suppress(TimeoutError):
        await asyncio.wait_for(awaited, PATIENCE)


def is_writable(view: View) -> bool:
    """Return whether notes may be changed; else say why not."""
    if view.session.engine is None:
        view.notify("The index is being opened; try again in a moment.", markup=False)
    elif view.session.read_only:
        view.notify("memory-tui was started with --read-only. Start without it to write.", markup=False)
    return not view.session.read_only


async def propose(view: View, plan: Plan, *, then: Then | None = None) -> None:
    """Show what `plan` would change, and make it where that is agreed to."""
    if is_writable(view):
        await ahead(view, _proposed(view, plan, then))


class ShownPart(ShownLines, frozen=True):
    """The lines of a passage, from number `top` on; their place alone is looked at, as another may say the same."""

    top: int = 1

    def now_at(self, first: int, last: int, note: Lines) -> tuple[int, int] | None:
        """Return `first` and `last` where these lines of `note` still read as they did on the screen; else None."""
        seen, now = self.lines[first - self.top : last + 1 - self.top], note.texts()[first - 1 : last]
        # What is on the screen is the safe form of a line, or, of a long one, a passage that is a piece of it.
        now = [self.show(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) for text in now]
        same = [old == new or (len(new) > _LONG and old in new) for old, new in zip(seen, now, strict=False)]
        # Fewer pairs than lines: the passage or the note ends before `last`.
        return (first, last) if all(same) and len(same) == last + 1 - first else None


def spots_of(reader: Reader) -> Spots:
    """Return what finds the marked or selected lines when it is called, else the item under the cursor.

    Lines of a whole note are found where they stand by then; those of a passage only where they stood.
    """
    path, seen = reader.page.path, ShownLines(reader.seen, shown_line)
    # Only a passage of the search view has a line that decided.
    if reader.decided:
        seen = ShownPart(reader.seen, shown_line, reader.top)
    # Without an end the whole item at this line is meant.
    lines: Sequence[tuple[int, int | None]] = [(reader.line, None)]
    if reader.marked or not reader.selection.is_empty:
        lines = reader.chosen
    return lambda curator: [curator.plan.spot(path, first, last, seen) for first, last in lines]


async def overtake(view: View, reader: Reader, then: Then | None = None) -> None:
    """Ask what holds now, and propose the line that says so and overtakes the chosen one, which stays."""
    spots = spots_of(reader)

    async def supersede(text: str) -> None:
        """Propose the line `text` in the place of the one that is meant."""
        await propose(view, lambda curator: curator.plan.supersede(text, spots(curator)[0]), then=then)

    if is_writable(view):
        line = Line("What holds now?", "The older line stays, marked as superseded.")
        await view.app.push_screen(line, if_answered(supersede))


async def promote(view: View, reader: Reader, then: Then) -> None:
    """Ask below which heading of the curated note the chosen lines go; where that is their note, to which other one."""
    engine, path, spots = view.session.engine, reader.page.path, spots_of(reader)
    if engine is None or not is_writable(view):
        return
    if path == engine.notes.curator.plan.memory():
        await _ask_target(view, path, spots, then)
    else:
        await ahead(view, _ask_heading(view, path, spots, then))


async def _ask_heading(view: View, path: str, spots: Spots, then: Then, *, move: bool = False) -> None:
    """Ask below which heading a fact is copied, or moved as a row of the list says; several are copied unasked."""
    if (reply := await asyncio.to_thread(view.attempt, lambda engine: _sections(engine, spots))) is None:
        return
    facts, titles = reply
    if len(facts) > 1 or not titles:
        places = [(fact.path, fact.first, fact.last) for fact in facts]
        await propose(view, lambda curator: curator.plan.promote_all(places), then=then)
        return
    options = [(f"#{title}", f"{'fits best: ' * (title == titles[0])}{one_line(title)}") for title in titles]
    others = [("new", "a new heading"), ("move", "move instead of copy"), ("note", "move to another note")]

    async def chosen(answer: str | None) -> None:
        """Act on the choice, `new`, `move`, `note` or # and a heading; None where the dialog was closed."""
        if answer == "new":
            await view.app.push_screen(Line("The new heading", explanation="It is made at the end."), below)
        elif answer == "move":
            await ahead(view, _ask_heading(view, path, spots, then, move=True))
        elif answer == "note":
            await _ask_target(view, path, spots, then)
        elif answer:
            await below(answer[1:])

    async def below(title: str | None) -> None:
        """Propose the lines below the heading `title`; None where the dialog was closed."""
        if title:
            await propose(view, lambda curator: curator.plan.promote(facts[0], to=title, move=move), then=then)

    way, words = ("Move", "The lines leave this note.") if move else ("Promote", "A copy that names its source.")
    await view.app.push_screen(
        Choice(f"{way} {facts[0]} below which heading?", options + others * (not move), words), chosen
    )


def _sections(engine: Engine, spots: Spots) -> tuple[list[Spot], Sequence[str]]:
    """Return the facts that are meant and the headings they could go below, the best first. Raises EditRefused."""
    curator = engine.notes.curator
    facts = spots(curator)
    # Called for its error alone: lines without text cannot be promoted, which is said before a heading is asked for.
    for fact in facts:
        fact.facts()
    from memory_tui.hosts import codex

    is_one = len(facts) == 1 and not codex.is_memory(engine.plan.roots.workspace)
    return facts, curator.plan.choices(facts[0]) if is_one else ()


async def _ask_target(view: View, path: str, spots: Spots, then: Then) -> None:
    """Ask to which other note the lines of `path` are moved, and propose that; daily logs are no target."""

    async def move(target: str | None) -> None:
        """Propose to move the lines to the note `target`; None where the dialog was closed."""
        if target:
            await propose(view, lambda curator: curator.plan.demote(_run(spots(curator)), target), then=then)

    async def chosen(target: str | None) -> None:
        """Move to the note that was chosen, or ask for the title of a new one."""
        if target == "new":
            await view.app.push_screen(Line("Move to a new note", "What is it about?"), move)
        else:
            await move(target)

    files = [row for row in ordered(view.session.files) if row.path != path and not row.day]
    options = [("new", Content("a new note")), *((row.path, Content(one_line(row.path))) for row in files)]
    await view.app.push_screen(Choice("Move these lines to which note?", options), chosen)


def _run(spots: Sequence[Spot]) -> Spot:
    """Return the only one of `spots`. Raises EditRefused for several, because a move takes lines in a row."""
    if len(spots) > 1:
        raise EditRefused("The marked lines do not stand together.", "Move one run of lines after the other.")
    return spots[0]


async def _proposed(view: View, plan: Plan, then: Then | None) -> None:
    """Work out the change on a worker thread, then ask about it; a refusal was said by `attempt`."""
    if change := await asyncio.to_thread(view.attempt, lambda engine: plan(engine.notes.curator)):
        await ask(view, change, lambda curator: curator.apply(change), then)


async def ask(view: View, change: Change, deed: Deed, then: Then | None = None) -> None:
    """Show `change`, and do `deed` where that is agreed to."""
    text = await asyncio.to_thread(difference, change, dialog_width(view.app.size.width))
    # What is typed into a window that was opened meanwhile is no answer to this question.
    while view.app.screen is not view.screen:
        await asyncio.sleep(0.1)
    question = Confirm(one_line(change.title), text, _DEEDS.get(change.kind, "Make this change"))
    await view.app.push_screen(question, if_answered(lambda _: make(view, deed, then)))


def make(view: View, deed: Deed, then: Then | None = None, same: Callable[[], object] = lambda: None) -> None:
    """Change notes on a worker thread, and say what was done; `then` gets the change that was made.

    `same` is called where there is nothing to change, because the notes have it already.
    """

    def work() -> None:
        """Make the change, and hand what became of it to the screen's thread."""
        if (engine := view.session.engine) is None:
            return
        try:
            done = deed(engine.notes.curator)
        except Conflict as conflict:
            view.call_later(_show_conflict, view, conflict, then, same)
        except MemoryTuiError as error:
            if isinstance(error, NothingToChange):
                view.call_later(same)
            view.refuse(error)
        else:
            view.call_later(finish, view, done, then)

    view.run_worker(work, thread=True, group="write")


def finish(view: View, done: AppliedChange, then: Then | None) -> None:
    """Say what was done and how to take it back."""
    entry = done.entry
    view.session.made.append(entry)
    others = f" What others wrote to {one_line(', '.join(done.merged))} stays." if done.merged else ""
    words = f"{what_became(done)}{others} u takes it back."
    title = f"“{one_line(done.change.title.partition(': ')[-1])}”"
    if entry.undoes or entry.redoes:
        words = f"You took back {title}.{others}" if entry.undoes else f"You made {title} again.{others}"
    view.notify(words, markup=False)
    # Its own view shows a change by `then`; one that is taken back may be of any view.
    for listener in view.screen.query(View):
        if listener is not view or entry.undoes:
            listener.notes_changed()
    if then is not None:
        then(done)


def what_became(done: AppliedChange) -> str:
    """Return which notes a change made, changed, renamed or took away, in a sentence."""
    change = done.change
    paths = [file.path for file in change.files if file.after is not None] or change.paths
    notes = plural(len(paths), "note") if len(paths) > 1 else one_line(paths[0])
    first, last = change.files[0], change.files[-1]
    if change.kind == "rename":
        # The new name is the first of its files and the old name the last; between are notes whose links follow.
        notes, became = one_line(last.path), f"is now called {one_line(paths[0])}"
    elif first.after is None:
        became = "are gone" if len(paths) > 1 else "is gone"
    elif len(paths) > 1 or change.kind == "restore":
        became = "are changed" if len(paths) > 1 else "is restored"
    else:
        became = "is changed" if first.before is not None else "is new"
    return f"{notes} {became}."


# --- taking back ----------------------------------------------------------------------------------------------------


async def take_back(
    view: View, kind: Literal["undo", "redo"] = "undo", number: int | None = None, then: Then | None = None
) -> None:
    """Take back a change of notes, the last one without `number`, or with `redo` make it again.

    Anything but the last change of this screen is shown first, and so is what changes the trust of a note.
    """
    if is_writable(view):
        await ahead(view, _step(view, kind, number, then))


async def _step(view: View, kind: Literal["undo", "redo"], number: int | None, then: Then | None) -> None:
    """Take back this screen's last change at once, unless it has a warning; show any other step first."""
    planned = await asyncio.to_thread(view.attempt, lambda engine: _next_step(engine, kind, number))
    if planned is None:
        return
    entry, change = planned

    def deed(curator: Curator) -> AppliedChange:
        """Take the change back or make it again; what others wrote since is merged."""
        return (curator.undo if kind == "undo" else curator.redo)(entry.id, merging=True)

    if number is None and entry.id != view.session.last_change:
        change = replace(change, notes=("u asks first: this is not the last change that you made here.", *change.notes))
    if kind == "undo" and entry.id == view.session.last_change and not change.notes:
        make(view, deed, then)
    else:
        await ask(view, change, deed, then)


def _next_step(engine: Engine, kind: str, number: int | None) -> tuple[JournalEntry, Change]:
    """Return the entry `number` of those that can be taken back or made again, else the last, and what that changes.

    Raises EditRefused where there is none.
    """
    curator = engine.notes.curator
    if (entry := next((entry for entry in curator.stack(kind) if number in (None, entry.id)), None)) is None:
        raise EditRefused("Nothing is left to take back.", "5 lists what was changed.")
    return entry, curator.preview(kind, entry.id)


# --- conflicts ------------------------------------------------------------------------------------------------------

Side = Literal["mine", "theirs", "both"]
_NEXT: dict[Side, Side] = {"mine": "theirs", "theirs": "both", "both": "mine"}
"""The side that enter takes after each; its keys are the sides as they are listed."""


async def _show_conflict(view: View, conflict: Conflict, then: Then | None, same: Callable[[], object]) -> None:
    """Have a person resolve a conflict, and make the change with the text that comes of it."""

    def resolve(data: bytes | None) -> None:
        """Make the change with the note as it was resolved to; None where the dialog was closed."""
        if data is None:
            view.notify(f"Nothing was written. {one_line(conflict.next_step)}", markup=False, timeout=12)
        else:
            make(view, lambda curator: curator.resolve(conflict, data), then, same)

    await view.app.push_screen(Resolve(conflict.view), resolve)


class Resolve(Dialog[bytes]):
    """Shows what two sides wrote to the same lines; enter takes the other side, and saving answers with the bytes."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("text.save")
    FOCUS = "Rows"

    def __init__(self, view: ThreeWay) -> None:
        super().__init__(f"{one_line(view.path)} also changed on disk")
        self.hunks = view.merge.hunks
        self.sides: list[Side] = ["mine"] * len(view.merge.conflicts)

    def body(self) -> ComposeResult:
        """Return a sentence and the lines of both."""
        count = len(self.sides)
        how = f"You and another program changed the same lines in {plural(count, 'place')}. enter takes another side."
        yield Static(Content(how if count else "The changes are in different lines; saving keeps both."))
        yield Rows(*conflict_rows(self.hunks, self.sides))

    @on(OptionList.OptionSelected)
    def take(self, event: OptionList.OptionSelected) -> None:
        """Take the next side for a conflict."""
        number = int(event.option.id or 0)
        self.sides[number] = _NEXT[self.sides[number]]
        self.query_one(Rows).refill(conflict_rows(self.hunks, self.sides))

    def action_save(self) -> None:
        """Answer with the note as it was chosen."""
        self.dismiss(resolved(self.hunks, self.sides))


def conflict_rows(hunks: Sequence[Hunk], sides: Sequence[Side]) -> Iterator[Option]:
    """Yield a row for each conflict, with the lines of both sides below; lines that are not taken are struck."""
    conflicts = [hunk for hunk in hunks if hunk.side == "conflict"]
    for number, (hunk, side) in enumerate(zip(conflicts, sides, strict=True)):
        words = "  ".join(f"[{name}]" if name == side else f" {name} " for name in _NEXT)
        yield Option(Content.assemble((f"Place {number + 1}  ", "bold"), words), id=str(number))
        texts: list[tuple[Side | Literal["before"], tuple[bytes, ...], str]] = [
            ("before", hunk.base, "$foreground-muted"),
            ("mine", hunk.mine, "$success"),
            ("theirs", hunk.other, "$warning"),
        ]
        for name, lines, style in texts:
            # What was there before is never struck, and with "both" neither is a side.
            lost = " strike" if name not in (side, "before") and side != "both" else ""
            for line in lines or (b"(nothing)",):
                text = safe(line.decode("utf-8", "replace").rstrip("\r\n"))
                row = Content.assemble((f"  {name:<7}", "$foreground-muted"), (text, style + lost))
                yield Option(row, disabled=True)


def resolved(hunks: Sequence[Hunk], sides: Sequence[Side]) -> bytes:
    """Return the note with `sides` for its conflicts, in order; elsewhere both changes stay."""
    next_sides = iter(sides)
    lines: list[bytes] = []
    for hunk in hunks:
        side = next(next_sides) if hunk.side == "conflict" else None
        if side is None:
            lines += hunk.lines
        elif side == "both":
            other = list(hunk.other)
            # At the end of a note the last line may lack its end, and would run into the next one.
            if other and hunk.mine and not other[-1].endswith(b"\n"):
                other[-1] += b"\n"
            lines += [*other, *hunk.mine]
        else:
            lines += hunk.mine if side == "mine" else hunk.other
    return b"".join(lines)
