"""The inbox in sentences: groups by cause with their lines, and what the proposed change does to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from textual.content import Content

from memory_tui.formatting import plural
from memory_tui.inbox.checks import BY_KIND, grouped
from memory_tui.inbox.entries import Action, Suggestion
from memory_tui.notes.changes import Change
from memory_tui.notes.journal import KEEP_DAYS
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.note_facts import difference
from memory_tui.tui.widgets.facts import BAD, GOOD, MUTED, WARN, Fact

_FEW = 3
"""Lines of a group that show before it is opened."""
_MARKS = {"danger": BAD, "warning": WARN, "hint": MUTED}
QUIET = "quiet"
"""The key of the row that shows what was decided."""
CHANGES: Mapping[Action, str] = {
    "delete": "move to the trash",
    "trash note": "move the note to the trash",
    "merge": "keep the other one, delete this one",
    "merge other": "keep this one, delete the other one",
    "demote": "move to a topic note",
    "rename": "rename the note",
    "archive note": "move the note to the archive",
    "restore": "bring the lines back",
    "move back": "move back to the daily note",
    "convert": "write the note as UTF-8",
    "mask": "put *** in the place of the secret",
    "overtake": "mark the older line as superseded",
}
"""What each action that changes notes does."""


class Group(NamedTuple):
    """Findings with one cause, which `title` tells."""

    key: str
    title: str
    mark: str
    findings: tuple[Suggestion, ...]


def groups(findings: Iterable[Suggestion]) -> list[Group]:
    """Return findings by cause, the most pressing first."""
    return [
        Group(
            f"group:{group.id}",
            group.cause.message if group.suggestions[1:] else BY_KIND[group.kind].title,
            _MARKS[BY_KIND[group.kind].severity],
            group.suggestions,
        )
        for group in grouped(findings)
    ]


def proposal(chosen: Sequence[Suggestion]) -> Action:
    """Return the change that is proposed for findings with one cause."""
    return grouped(chosen)[0].proposal


def listed(
    shown: Sequence[Group], opened: Iterable[str], hidden: Mapping[str, float], quiet: Sequence[Suggestion]
) -> Iterator[Fact]:
    """Yield a row a group and a row a line; a group of one is one row. What was decided is counted, or shown."""
    unfolded = set(opened)
    for group in shown:
        few = len(group.findings) == 1
        if few:
            item = group.findings[0]
            yield Fact(f"{group.title}: {_line(item)}", item.id, group.mark, most=2)
            continue
        yield Fact(one_line(group.title), group.key, group.mark, style="bold")
        items = group.findings if group.key in unfolded else group.findings[:_FEW]
        for item in items:
            yield Fact(_line(item), item.id, indent=2, most=1)
        if len(items) < len(group.findings):
            yield Fact(f"{len(group.findings) - len(items):,} more", f"more:{group.key}", indent=2, style=MUTED)
    if not shown:
        yield Fact("Nothing needs a decision.", mark=GOOD)
        yield from (Fact(check.title, indent=2, style=MUTED) for check in BY_KIND.values())
    if quiet:
        unfold = QUIET in unfolded
        yield Fact("")
        yield Fact(f"{len(quiet):,} kept or put off", QUIET, style=MUTED, does="" if unfold else "enter shows them")
        if unfold:
            yield from (
                Fact(f"{_line(item)}  {until(hidden[item.id])}", item.id, indent=2, style=MUTED, most=1)
                for item in quiet
            )


def _line(item: Suggestion) -> str:
    return f"{one_line(str(item.place))}  {one_line(item.place.text or item.reason, 200)}"


def until(end: float) -> str:
    """Return how long something is left alone."""
    return "kept for good" if math.isinf(end) else f"put off until {datetime.fromtimestamp(end):%Y-%m-%d %H:%M}"


def explained(chosen: Sequence[Suggestion], change: Change | str | None, *, is_quiet: bool = False) -> Content:
    """Return why these lines are listed, what `d` would do, and the difference, or why nothing can be done."""
    first, more = chosen[0], len(chosen) - 1
    parts: list[Content | str | tuple[str, str]] = [one_line(first.reason)]
    if more:
        parts.append(f" And {more:,} more like it.")
    else:
        twice = first.kind == "said twice" and isinstance(change, Change)
        places = [first.place, first.other] if first.other is not None else [first.place]
        for place in places if first.other is not None or not isinstance(change, Change) else ():
            if place is not None:
                text = "" if twice else f"\n{safe(place.text.strip(), keep_newlines=True)}"
                parts += ["\n", (one_line(str(place)), MUTED), text]
    action = proposal(chosen)
    parts.append("\n\n")
    if is_quiet:
        parts.append("K asks about it again.")
    elif action not in CHANGES:
        parts.append("Nothing is proposed. K keeps it as it is; enter shows what else can be done.")
    else:
        what = f"rename it to {one_line(first.new_name)}" if action == "rename" else CHANGES[action]
        parts += [(f"d would {what}{f', all {len(chosen):,}' if more else ''}\n", "bold"), _shown(change)]
        if first.kind == "secret":
            words = (
                f"The journal keeps the text for {KEEP_DAYS} days, so that u can bring it back. What stood in a note "
            )
            parts.append((f"\n\n{words}may have been read: change the password or key as well.", WARN))
    return Content.assemble(*parts)


def _shown(change: Change | str | None) -> Content:
    if change is None:
        return Content.styled("Working it out ...", MUTED)
    return Content.styled(one_line(change), WARN) if isinstance(change, str) else difference(change)


def decided(count: int, end: float) -> str:
    """Return what became of findings that were decided about."""
    what = plural(count, "finding")
    return f"{what} {'is' if count == 1 else 'are'} {until(end) if end else 'open again'}; u takes it back."
