"""The inbox in sentences: groups by cause with their lines, and what the proposed change does to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from textual.content import Content

from memory_tui.formatting import plural
from memory_tui.inbox.checks import BY_KIND
from memory_tui.inbox.entries import Findings, Group, Suggestion
from memory_tui.notes.changes import Change
from memory_tui.notes.record import KEEP_DAYS
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact
from memory_tui.tui.note_facts import difference

_FEW, _MOST = 3, 200
"""Lines of a group that show before it is opened, and of a reason for silence that is."""
_MARKS = {"danger": BAD, "warning": WARN, "hint": MUTED}
QUIET = "quiet"
"""The key of the row that shows what was decided."""
SILENT = "silent"
"""The key of the row that shows what the checks themselves keep silent."""
CHANGES: Mapping[str, str] = {
    "mask": "put *** in the place of the secret",
    "delete": "move to the trash",
    "trash note": "move the note to the trash",
    "merge": "keep the other one, delete this one",
    "merge other": "keep this one, delete the other one",
    "overtake": "mark the older line as superseded; it stays",
    "demote": "move to a topic note",
    "rename": "rename the note",
    "archive note": "move the note to the archive",
    "restore": "bring the lines back",
    "move back": "move back to the daily note",
    "convert": "write the note as UTF-8",
}
"""What each action that changes notes does."""
DECISIONS: Mapping[str, str] = {
    "none": "this is harmless; learn that",
    "edit": "edit the line",
    "keep": "keep it as it is, never ask again",
    "snooze": "ask again later",
}
"""What each other action does."""


def single(item: Suggestion) -> Group:
    """Return a finding as a group of one."""
    return Group(item.kind, item.finding, (item,), item.actions)


def listed(
    groups: Sequence[Group], findings: Findings, hidden: Mapping[str, float], opened: Iterable[str]
) -> Iterator[Fact]:
    """Yield a row a cause and a row a line; a cause of one line is one row.

    What was decided, and what is silent, is counted, and shown where it is opened.
    """
    unfolded = set(opened)
    for group in groups:
        mark = _MARKS[BY_KIND[group.kind].severity]
        if len(group.suggestions) == 1:
            title = BY_KIND[group.kind].title
            yield Fact(f"{title}: {line(group.suggestions[0])}", f"group:{group.id}", mark, most=2)
            continue
        yield Fact(one_line(group.cause.message), f"group:{group.id}", mark, style="bold", most=2)
        items = group.suggestions if group.id in unfolded else group.suggestions[:_FEW]
        yield from (Fact(line(item), f"line:{item.id}", indent=2, most=1) for item in items)
        if len(items) < len(group.suggestions):
            more = f"{len(group.suggestions) - len(items):,} more"
            yield Fact(more, f"more:{group.id}", indent=2, style=MUTED)
    if not groups:
        yield Fact("Nothing needs a decision.", mark=GOOD)
    yield from _quiet(findings, hidden, unfolded)


def _quiet(findings: Findings, hidden: Mapping[str, float], unfolded: set[str]) -> Iterator[Fact]:
    """Yield what was decided and what is silent, each as a count that opens."""
    kept = [item for item in findings.suggestions if item.id in hidden]
    silent = sum(findings.quiet.values())
    if kept or silent:
        yield Fact("")
    if kept:
        yield Fact(f"{len(kept):,} kept or put off", QUIET, style=MUTED, does="enter shows them")
    for item in kept if QUIET in unfolded else ():
        yield Fact(f"{line(item)}  {until(hidden[item.id])}", f"line:{item.id}", indent=2, style=MUTED, most=1)
    if silent:
        yield Fact(f"{silent:,} more that need nothing", SILENT, style=MUTED, does="enter shows why")
    for reason, count in findings.quiet.items() if SILENT in unfolded else ():
        key = f"{SILENT}:{reason}"
        yield Fact(f"{count:,} {one_line(reason)}", key, indent=2, style=MUTED)
        for item in findings.silent[reason][:_MOST] if key in unfolded else ():
            yield Fact(line(item), indent=4, style=MUTED, most=1)


def line(item: Suggestion) -> str:
    """Return where a finding is, and what stands there."""
    return f"{one_line(str(item.place))}  {one_line(item.place.text or item.reason, 200)}"


def until(end: float) -> str:
    """Return how long something is left alone."""
    return "kept for good" if math.isinf(end) else f"put off until {datetime.fromtimestamp(end):%Y-%m-%d %H:%M}"


def explained(group: Group, change: Change | str | None, *, is_quiet: bool = False) -> Content:
    """Return why these lines are listed, what `d` would do, and the difference, or why nothing can be done."""
    first, action = group.suggestions[0], group.proposal
    parts: list[Content | str | tuple[str, str]] = [one_line(group.cause.message)]
    if len(group.suggestions) == 1 and (first.other is not None or not isinstance(change, Change)):
        # The difference shows the line; of two that say the same, both places are enough.
        told = not (isinstance(change, Change) and first.kind == "said twice")
        for place in filter(None, (first.place, first.other)):
            text = f"\n{safe(place.text.strip(), keep_newlines=True)}" if told else ""
            parts += ["\n", (one_line(str(place)), MUTED), text]
    parts.append("\n\n")
    if is_quiet:
        parts.append("K asks about it again.")
    elif action not in CHANGES:
        parts.append("Nothing is proposed. K keeps it as it is; enter shows what else can be done.")
    else:
        what = f"rename it to {one_line(first.new_name)}" if action == "rename" else CHANGES[action]
        every = f", all {len(group.suggestions):,}" if len(group.suggestions) > 1 else ""
        parts += [(f"d would {what}{every}\n", "bold"), _shown(change)]
        if first.kind == "secret":
            words = f"The journal keeps the text for {KEEP_DAYS} days, so that u can bring it back. "
            parts.append((f"\n\n{words}It may have been read: change the password or key as well.", WARN))
    return Content.assemble(*parts)


def _shown(change: Change | str | None) -> Content:
    if change is None:
        return Content.styled("Working it out ...", MUTED)
    return Content.styled(one_line(change), WARN) if isinstance(change, str) else difference(change)


def decided(count: int, end: float) -> str:
    """Return what became of findings that were decided about."""
    what = plural(count, "finding")
    return f"{what} {'is' if count == 1 else 'are'} {until(end) if end else 'open again'}; u takes it back."
