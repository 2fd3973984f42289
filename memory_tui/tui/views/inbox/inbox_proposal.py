"""A proposal of the inbox in words. It says why, by which key, and with which change."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field

from memory_tui.formatting import plural
from memory_tui.inbox.checks import BY_KIND
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, fit_path, wrap, wrapped
from memory_tui.tui.judging import JobProgress
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_changes import Planned
from memory_tui.tui.widgets.note_side import MARKS, shown_text
from memory_tui.tui.widgets.rowlist import Line, RowList, text

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.inbox.checks import Severity
    from memory_tui.inbox.entries import Action, Passage, Suggestion
    from memory_tui.notes.changes import Change
    from memory_tui.notes.curator import AppliedChange

FOLLOW_SECONDS, ASKED_EVERY = 10.0, 0.1
"""How long a look waits at most for the index to follow a change of notes, and how often it asks who wants it."""

SIGNS: Mapping[Severity, tuple[str, str]] = MappingProxyType(
    {"danger": ("!", "bad"), "warning": ("?", "warn"), "hint": ("○", "muted")}
)
"""The sign of each severity and its style; the words of the check always stand with it."""

MEANING: Mapping[Action, str] = MappingProxyType(
    {
        "delete": "remove",
        "trash note": "remove",
        "merge": "move",
        "merge other": "move other",
        "demote": "move",
        "rename": "move",
        "archive note": "move",
        "restore": "move",
        "move back": "move",
        "convert": "move",
        "edit": "edit",
        "keep": "never",
        "snooze": "later",
    }
)
"""What the key of each action means."""

VERBS: Mapping[Action, str] = MappingProxyType(
    {
        "delete": "Move to trash",
        "trash note": "Move to trash",
        "merge": "Keep one",
        "merge other": "Keep one",
        "demote": "Move",
        "rename": "Rename",
        "archive note": "Archive",
        "restore": "Restore",
        "move back": "Move back",
        "convert": "Convert",
    }
)
"""What the button says that makes the change."""

HINTS: Mapping[Action, str] = MappingProxyType(
    {action: VERBS[action] for action, meaning in MEANING.items() if meaning == "move"} | {"merge": "Merge"}
)
"""What the hint at the key of "move" says, by the action that is offered."""

BRING_BACK = "bring back"
"""What can be done about a suggestion that was kept or put off."""
READ = "read"
"""What enter does where no change is proposed: keeping something for good has a key of its own."""


class Shown(Struct, frozen=True):
    """A suggestion with what is known of its proposal: the change, or why there is none; `until` where it is put off.

    `refused` is why nothing can be done now, empty where it can.
    """

    suggestion: Suggestion
    planned: Planned | None = None
    problem: str = ""
    until: float = 0.0
    refused: str = ""


def changes_notes(action: Action) -> bool:
    """Whether an action makes a change that can be shown."""
    return action in VERBS


def entered(one: Suggestion) -> str:
    """What enter does about `one`: the change that is proposed, else reading it."""
    return READ if one.actions[0] == "keep" else one.actions[0]


def words(one: Suggestion, action: Action) -> str:
    """What `action` does about `one`."""
    lines = "this line" if one.place.first == one.place.last else "these lines"
    return {
        "delete": f"move {lines} to the trash",
        "trash note": "move the note to the trash",
        "merge": f"keep {one.other}, and delete {lines}",
        "merge other": f"keep {one.place}, and delete {one.other}",
        "demote": f"move {lines} to a topic note",
        "rename": f"call it {one.new_name}",
        "archive note": "move the note to the archive",
        "restore": "bring them back, beside what is there now",
        "move back": "take it out of MEMORY.md, and back to its daily note",
        "convert": "write the note as UTF-8; what is neither that nor UTF-16 is read as Windows-1252",
        "edit": "edit this entry; its marker stays" if one.kind == "promotion" else f"edit {lines}",
        "keep": "accept it as it is" if one.kind == "promotion" else "keep it as it is, and never ask again",
        "snooze": "ask again later",
    }[action]


def put_off(until: float) -> str:
    """`kept for good`, or `put off until 2026-03-27 14:00`."""
    if math.isinf(until):
        return "kept for good"
    return f"put off until {datetime.fromtimestamp(until, UTC).astimezone():%Y-%m-%d %H:%M}"


def title(shown: Shown | None) -> str:
    """What the frame says: the kind in words."""
    return "Before and after" if shown is None else f"Before and after: {BY_KIND[shown.suggestion.kind].title}"


def written(shown: Shown, width: int) -> Sequence[Line]:
    """Reason, places with what stands there, what is proposed, what that changes, and what else can be done."""
    row = shown.suggestion
    return [
        *text(one_line(row.reason), width),
        *(text(f"It is {put_off(shown.until)}.", width, "muted") if shown.until else ()),
        *_texts(shown, width),
        *_proposed(shown, width),
        *_difference(shown, width),
        *_others(shown, width),
    ]


def _shows_difference(shown: Shown) -> bool:
    return not shown.until and changes_notes(shown.suggestion.actions[0])


def _texts(shown: Shown, width: int) -> Iterator[Line]:
    """The places, each with what stands there, unless the difference shows it or both say the same."""
    row = shown.suggestion
    if row.other is None:
        yield from _place(row.place, width, "", said=not _shows_difference(shown))
    else:
        yield from _place(row.place, width, "this", said=row.kind != "exact duplicate")
        yield from _place(row.other, width, "that", said=row.kind != "exact duplicate")


def _place(place: Passage, width: int, which: str, *, said: bool) -> Iterator[Line]:
    label = f" {which} " if which else " "
    key: Hashable = ("place", place.path, place.first, place.last)
    yield [(label, "muted"), (fit_path(safe(str(place)), width - len(label) - 1), "link")], key
    for line in safe(place.text, keep_newlines=True).split("\n") if said else ():
        if line.strip():
            yield from text(line, width, "", 3)


def _proposed(shown: Shown, width: int) -> Iterator[Line]:
    """What enter does, or why nothing can be done."""
    if shown.refused:
        yield from text(shown.refused, width, "warn")
    elif shown.until:
        yield from _action("enter", "bring it back into the queue", BRING_BACK, width)
    else:
        first = entered(shown.suggestion)
        line = "read the note there" if first == READ else words(shown.suggestion, shown.suggestion.actions[0])
        yield from _action("enter", line, first, width)


def _others(shown: Shown, width: int) -> Iterator[Line]:
    if not shown.refused and not shown.until:
        yield [], None
        for action in shown.suggestion.actions[entered(shown.suggestion) != READ :]:
            yield from _action(key_of(MEANING[action]), words(shown.suggestion, action), action, width)


def _action(key: str, sentence: str, action: str, width: int) -> Iterator[Line]:
    line = one_line(sentence)
    style = "strong" if key == "enter" else ""
    for number, (start, end) in enumerate(wrap(line, width - 8)):
        lead = f" {key if number == 0 else '':<6}"
        yield [(lead, "mark"), (line[start:end], style)], (action,) if number == 0 else None


def _difference(shown: Shown, width: int) -> Iterator[Line]:
    if not _shows_difference(shown):
        return
    if shown.problem:
        yield from text(shown.problem, width, "warn")
    elif shown.planned is None:
        yield from text("Working it out ...", width, "muted")
    else:
        yield from diff_lines(shown.planned, width, shown.suggestion.place.path)
        for line in shown.planned.effect:
            yield from text(line, width, "warn")


def diff_lines(planned: Planned, width: int, path: str) -> Iterator[Line]:
    """The difference with - and + in front, wrapped; a note is named unless it is only the one at `path`."""
    for line in planned.lines:
        if line.kind == "file" and planned.change.paths == (path,):
            continue
        mark, style = MARKS[line.kind]
        end = f"  <{line.end}>" if line.end and line.kind != "same" else ""
        lead = f" {mark} " if mark else " "
        for number, (start, stop) in enumerate(wrap(said := shown_text(line) + end, width - len(lead) - 1)):
            pieces: list[Piece] = [(lead if number == 0 else " " * len(lead), style), (said[start:stop], style)]
            yield pieces, None


DAY_SECONDS = 86_400.0


class Findings(Struct, frozen=True):
    """Everything that was found, until when (epoch seconds) some of it is put off by id, and the seconds it took."""

    found: tuple[Suggestion, ...] = ()
    hidden: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def open(self) -> list[Suggestion]:
        """What is neither kept nor put off."""
        return [row for row in self.found if row.id not in self.hidden]


class DecisionRecord(Struct, frozen=True):
    """Until when (epoch seconds, infinite: ever, 0: not at all) suggestions are put off, decided at `at` as one."""

    until: Mapping[Suggestion, float]
    at: float

    @property
    def words(self) -> str:
        """What it is about."""
        first = next(iter(self.until))
        return one_line(str(first.place)) if len(self.until) == 1 else plural(len(self.until), "suggestion")


def examination(engine: Engine, *, changed: bool = False) -> Callable[[Callable[[object], None]], Findings]:
    """Looks through the notes and tells how far it is; ends when nobody wants it any more.

    Where notes were just `changed`, the index follows first: some of what is found, it finds in the index.
    """

    def run(tell: Callable[[object], None]) -> Findings:
        waits_until = time.monotonic() + (FOLLOW_SECONDS if changed else 0.0)
        while time.monotonic() < waits_until and not engine.index.writer.wait_idle(ASKED_EVERY):
            tell(None)
        begun = time.monotonic()

        def step(title: str, done: int, total: int) -> None:
            tell(JobProgress(f"looking for {title}", done, total) if title else None)

        def stopped() -> bool:
            tell(None)
            return False

        reply = engine.notes.examine(step, stopped, every=True)
        return Findings(reply, engine.notes.decisions.hidden(reply, engine.plan.clock()), time.monotonic() - begun)

    return run


def proposed(engine: Engine, chosen: Sequence[Suggestion], action: Action) -> Planned:
    """What `action` would change, secrets masked. Raises EditRefused where the notes are not what was looked at."""
    from memory_tui.inbox import checks

    return masked(checks.changes(chosen, action, engine.notes.curator), _warning(chosen[0]))


def entry_of(engine: Engine, one: Suggestion) -> str:
    """The last line of a suggestion, to be edited. Raises EditRefused."""
    return engine.notes.curator.plan.spot(one.place.path, one.place.first, one.place.last).texts()[-1]


def rewritten(engine: Engine, one: Suggestion, words: str) -> Planned:
    """What putting `words` in the place of the last line would change. Raises EditRefused."""
    from memory_tui.inbox import checks

    return masked(checks.rewritten(one, words, engine.notes.curator))


def _warning(one: Suggestion) -> tuple[str, ...]:
    from memory_tui.notes.journal import KEEP_DAYS

    return (
        ()
        if one.kind != "secret"
        else (
            f"The journal keeps the text for {KEEP_DAYS} days, so that {key_of('undo')} can bring it back. What was "
            "once in a note may have been read: change the password or key as well.",
        )
    )


def masked(change: Change, effect: tuple[str, ...] = ()) -> Planned:
    """A change with its diff, secrets masked, and what is to be known of its `effect`."""
    from memory_tui.notes import diff

    return Planned(change, diff.masked_lines(change), effect)


def applied(engine: Engine, change: Change) -> AppliedChange:
    """Make `change`. Raises EditRefused where somebody changed the same lines meanwhile, and keeps no draft of it."""
    from memory_tui.errors import EditRefused
    from memory_tui.notes.changes import Conflict

    try:
        return engine.notes.curator.apply(change)
    except Conflict as conflict:
        # A draft is for what somebody wrote; this was only proposed, and will be again.
        if conflict.draft:
            engine.notes.curator.forget_draft(conflict.draft)
        raise EditRefused(conflict.message, "It is open again.") from conflict


def decided(engine: Engine, chosen: Sequence[Suggestion], days: float) -> DecisionRecord:
    """Put suggestions off for `days`, for good where they are infinite, or bring them back where they are 0."""
    until = engine.plan.clock() + days * DAY_SECONDS if days else 0.0
    return _set(engine, dict.fromkeys(chosen, until))


def _set(engine: Engine, until: Mapping[Suggestion, float]) -> DecisionRecord:
    """Have suggestions put off as `until` says."""
    decisions = engine.notes.decisions
    for row, end in until.items():
        if not end:
            decisions.reopen(row.id)
        elif math.isinf(end):
            decisions.keep(row)
        else:
            decisions.snooze(row, end)
    return DecisionRecord(until, time.time())


def undecided(engine: Engine, last: DecisionRecord, before: Mapping[Suggestion, float]) -> DecisionRecord | None:
    """Take the decision `last` back, before which all was put off as `before` says; None where a change came after."""
    entries = engine.notes.curator.undoable()
    return _set(engine, before) if not entries or last.at >= entries[0].at else None


_ROOMY = 70
"""Cells from which on place and reason fit on one line."""
_PLACE = 34


class Suggestions(RowList):
    """A line for each kind, and each night of promotions, then its suggestions; sentences where there are none."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="suggestions")
        self._rows: Sequence[Piece | Suggestion] = ()
        self.hidden: Mapping[str, float] = {}

    def show(self, found: Sequence[Suggestion], hidden: Mapping[str, float], sentences: Sequence[Piece]) -> None:
        """List `found`, of which those in `hidden` are put off, then `sentences` with their styles.

        The cursor stays on its suggestion; where that is gone it goes to the next.
        """
        self.marks.keep(row.id for row in found)
        keep = self._next({row.id for row in found})
        self.hidden = hidden
        self._rows = [*self._grouped(found), *sentences]
        self.rows_changed(keep)

    def stand_on(self, wanted: Iterable[str]) -> None:
        """Put the cursor on the first suggestion of `wanted`, by id, that is listed."""
        rows = (self.row_of(item) for item in wanted)
        row = next((row for row in rows if row is not None), None)
        if row is not None:
            self.cursor = row

    def _next(self, known: set[str]) -> Hashable:
        """The suggestion under the cursor, or the nearest after, else before it, that is still there."""
        at = max(0, self.cursor)
        order = [*self._rows[at:], *reversed(self._rows[:at])]
        return next((row.id for row in order if not isinstance(row, tuple) and row.id in known), None)

    def _grouped(self, found: Sequence[Suggestion]) -> Iterable[Piece | Suggestion]:
        by_kind: dict[str, dict[str, list[Suggestion]]] = {}
        for row in found:
            kind, group = ("", "") if row.id in self.hidden else (row.kind, row.group)
            by_kind.setdefault(kind, {}).setdefault(group, []).append(row)
        for kind, check in BY_KIND.items():
            sign, style = SIGNS[check.severity]
            # The newest night first.
            for group, new in sorted(by_kind.get(kind, {}).items(), reverse=True):
                yield f" {sign} {check.title}{group and ' '}{group}: {len(new):,}", style
                yield from new
        if rest := by_kind.get("", {}).get(""):
            yield f" z kept or put off: {len(rest):,}", "muted"
            yield from rest

    @property
    def chosen(self) -> list[Suggestion]:
        """The suggestions that are marked, else the one under the cursor."""
        marked = [row for row in self._rows if not isinstance(row, tuple) and row.id in self.marks]
        return marked or [row for row in (self.suggestion,) if row is not None]

    def kind_of(self, row: int, /) -> Hashable:
        """The heading that a suggestion stands below."""
        item = self._rows[row]
        if isinstance(item, tuple):
            return None
        return ("", "") if item.id in self.hidden else (item.kind, item.group)

    @property
    def suggestion(self) -> Suggestion | None:
        """What is under the cursor."""
        row = self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else ("", "")
        return None if isinstance(row, tuple) else row

    def count(self) -> int:
        """Heads, suggestions and sentences."""
        return len(self._rows)

    def key_of(self, row: int, /) -> Hashable:
        """The id of a suggestion."""
        item = self._rows[row]
        return None if isinstance(item, tuple) else item.id

    def height_of(self, row: int, width: int, /) -> int:
        """Two lines for a suggestion where the list is narrow."""
        item = self._rows[row]
        return len(wrapped(item[0], width - 2)) if isinstance(item, tuple) else 1 if width >= _ROOMY else 2

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """The place, and the reason beside or below it."""
        item = self._rows[row]
        if isinstance(item, tuple):
            return [(("" if line == 0 else " ") + wrapped(item[0], width - 2)[line], item[1])]
        sign, style = SIGNS[BY_KIND[item.kind].severity]
        reason = put_off(self.hidden[item.id]) if item.id in self.hidden else item.reason
        if line:
            return [(fit(f"     {one_line(reason)}", width), "muted")]
        roomy = width >= _ROOMY
        place = fit_path(safe(str(item.place)), (_PLACE if roomy else width - 4) - 1)
        lead = [
            (" ■ " if item.id in self.marks else "   ", "mark"),
            (f"{sign} ", style),
            (fit(place, _PLACE) if roomy else place, ""),
        ]
        return [*lead, (fit(one_line(reason), width - _PLACE - 5), "muted")] if roomy else lead
