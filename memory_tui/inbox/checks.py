"""Inbox checks are one row each. They find secrets, repeats, passed days, dead paths, lost lines and
tool output. `examine` lists everything they find, most pressing first.

Nothing here changes a note: an action becomes a Change, which is shown and made like any other, and taken back by undo.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.errors import Cancelled, EditRefused
from memory_tui.formatting import plural
from memory_tui.inbox.entries import Action, DatedNote, NoteItem, Passage, Suggestion, digest, note_items
from memory_tui.notes.changes import Change, FileChange, Lines, end_of, sections, to_utf8
from memory_tui.notes.planner import ARCHIVE, move_back
from memory_tui.notes.restore import bring_back
from memory_tui.notices import Notice, notice
from memory_tui.openclaw.dreaming import dream_blocks
from memory_tui.secrets import finder as secret_finder
from memory_tui.workspace.annotations import flaws

if TYPE_CHECKING:
    from memory_tui.notes.curator import Curator
    from memory_tui.notes.planner import Planner
    from memory_tui.notes.promote import Spot
    from memory_tui.notes.restore import LostNote


Severity = Literal["danger", "warning", "hint"]

_EXCERPT = 300
"""Characters of a passage that a suggestion keeps."""
_LONG_DATA = 300
_SHORTEST = 20
"""Fewest characters of a compared item; shorter ones repeat by chance."""
_OLD_DAYS = 60
"""A daily note younger than this may still be recalled."""

_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY = r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)"
_BETWEEN = r"[\s:*_(]*(?:(?:on|the|by|at|in|for|is|to|until|till|again|due|\w{3,6}day),?[\s:*_(]*){0,3}"
_AHEAD = re.compile(
    rf"\b(?P<end>by|until|till|before){_BETWEEN}(?P<day>{_DAY})"
    r"|\b(?:due|deadline|expires?|expiring|expiry|valid|ends?|scheduled|planned|renew(?:s|al|als)?|starts?)"
    rf"{_BETWEEN}(?P<planned>{_DAY})"
    rf"|(?:截止|到期|有效期|期限|计划|計劃)[^。；\n\d]{{0,6}}(?P<before>{_DAY})"
    rf"|(?P<after>{_DAY})[^。；\n\d]{{0,6}}(?:截止|到期|之前|过期|まで|까지)",
    re.IGNORECASE,
)
"""A word that looks ahead, right beside a date."""
_PAST = re.compile(
    r"^\W*$|\b(?:was|were|had|been|did|led|ran|went|got|kept|took|held|paid|used|\w{2,}ed)\b", re.IGNORECASE
)
_CLAUSE = 500
"""The characters before a date in which its clause begins."""
_TO_COME = re.compile(r"\b(?:be|must|should|shall|will|needs?|may|can|(?<!used )to)\b", re.IGNORECASE)
"""What stands before "until 2026-01-01" tells what was where it is nothing ("Until ...: it was") or a past tense."""
_LINK = re.compile(r"\]\(<?([^()>\s#]{1,1000}\.md)[^()]{0,1000}\)|\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")
"""No part of it runs over the next beginning: a line of twenty thousand brackets would take hours."""
_CODE = re.compile(r"`[^`\n]*`")
_HOST_MARK = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+(?::.*)?")
"""What stands in double brackets where a host marks a reply, such as `reply_to_current`."""
_NOT_THERE_YET = re.compile(
    r"\b(?:delete[ds]?|remove[ds]?|move[ds]?|renamed?|create[ds]?|todo|to do|was|were|old|archived)\b|~~"
    r"|gelöscht|verschoben|umbenannt|anlegen|borrad|movid|crear|удал|перемещ|создать|删除|移动|创建|削除|移動|作成",
    re.IGNORECASE,
)
"""A line with one of these says itself why what it names is not there."""
_OUTPUT = (
    (re.compile(r"\x1b\[[0-9;]*m"), "it holds colour codes of a terminal"),
    (
        re.compile(
            r"Traceback \(most recent call last\):?[ \t]*\n\s+File|^\s+at [\w$.<>]+ ?\(.+:\d+:\d+\)"
            r"|^\s+File \"[^\"]+\", line \d+",
            re.MULTILINE,
        ),
        "it is the trace of an error",
    ),
    (
        re.compile(
            r"^(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}[^\n]*(?:INFO|WARN|ERROR|DEBUG)[^\n]*\n?){3,}", re.MULTILINE
        ),
        "it is a log of a program",
    ),
    (re.compile(r"[A-Za-z0-9+/]{200,}={0,2}"), "it holds encoded data"),
    (
        re.compile(r"(?:^(?:\$|>>>|[^\s@]+@\S+[#$]) \S[^\n]*\n(?:[^\n]+\n?){6,})", re.MULTILINE),
        "it is a session of a shell",
    ),
)


def passed(entry: NoteItem, today: dt.date) -> Notice | None:
    """Say why a date in an item of a lasting note has passed; None where it has not."""
    if entry.note.day is not None or entry.fenced:
        return None
    days = [day for year, month, number in _DATE.findall(entry.text) if (day := _day(year, month, number))]
    ahead = _ahead(entry.text) if days and max(days) < today else None
    if ahead is not None:
        return notice("day_passed", day=str(ahead), ago=(today - ahead).days)
    return None


def _ahead(text: str) -> dt.date | None:
    """Return the last day that `text` announces; None where it reports the past or names no day."""
    days = []
    for match in _AHEAD.finditer(text):
        clause = re.split(r"[.;!?(\n]", text[max(0, match.start() - _CLAUSE) : match.start()])[-1]
        if match["end"] and _PAST.search(clause) and not _TO_COME.search(clause):
            continue
        named = match["day"] or match["planned"] or match["before"] or match["after"]
        if (day := _day(*named.split("-"))) is not None:
            days.append(day)
    return max(days, default=None)


def dead(entry: NoteItem, exists: Callable[[str], bool], *, wiki: bool = True) -> str:
    """Return the missing note that an item links to; empty where none is. `exists` checks paths in the workspace.

    With `wiki` a `[[name]]` names a note that has to be there. Paths of a machine are nobody's to judge: notes speak of
    other machines, too.
    """
    if entry.fenced or _NOT_THERE_YET.search(entry.text):
        return ""
    for link, title in _LINK.findall(_CODE.sub("", entry.text)):
        if title and (not wiki or _HOST_MARK.fullmatch(title)):
            continue
        target = str(link or f"{title.strip()}.md")
        if "://" in target:
            continue
        beside = os.path.normpath(f"{os.path.dirname(entry.note.path)}/{target}")  # noqa: PTH120 - a stored path
        names: set[str] = {target, beside, f"memory/{target}", f"memory/{target.lower().replace(' ', '-')}"}
        if not any(exists(name) for name in names):
            return target
    return ""


def output(entry: NoteItem) -> str:
    """Say why an item looks like the output of a tool; empty where it does not."""
    reason = next((reason for pattern, reason in _OUTPUT if pattern.search(entry.text)), "")
    return reason or ("it is data, not words" if _is_data(entry.text) else "")


def _is_data(text: str) -> bool:
    """Tell whether a long text is JSON from one end to the other."""
    text = text.strip()
    if len(text) < _LONG_DATA or (text[0], text[-1]) not in {("[", "]"), ("{", "}")}:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def impossible(path: str, today: dt.date) -> tuple[Notice, str] | None:
    """Return the fault of the date in a note's name and a better name; None where the date is valid."""
    match = re.search(r"(?:^|/)(\d{4})-(\d{2})-(\d{2})([^/]*)\.md$", path)
    if not match:
        return None
    day = _day(match[1], match[2], match[3])
    folder, _, name = path.rpartition("/")
    better = f"{folder}/undated-{name}".lstrip("/")
    # OpenClaw's calendar takes years below 100 for others, so that no age comes of them.
    if day is None or day.year < 100:
        return notice("invalid_day", day="-".join(match.groups()[:3])), better
    if day > today + dt.timedelta(days=1):
        return notice("day_ahead", days=(day - today).days), better
    return None


def _day(year: str, month: str, number: str) -> dt.date | None:
    try:
        return dt.date(int(year), int(month), int(number))
    except ValueError:
        return None


# --- the checks ----------------------------------------------------------------------------------------------------


class InboxInputs(Struct, frozen=True):
    """What the checks read. `over` holds the first and the last line of a note that no session reads.

    `recalled` holds the paths that recalls returned, None where the log has too few recalls.
    `trust` holds what OpenClaw's ledger says of notes that it does not trust, or soon will not.
    """

    notes: Sequence[DatedNote]
    today: dt.date
    exists: Callable[[str], bool]
    over: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    recalled: frozenset[str] | None = None
    trust: Mapping[str, str] = field(default_factory=dict)
    claude: frozenset[str] = frozenset()
    """Notes of Claude Code's memory, where a `[[name]]` may name what is not written yet."""
    unlisted: Mapping[str, str] = field(default_factory=dict)
    """Facts of that memory to which its index does not point, with the line that would."""
    annotated: bool = False
    """Whether a release that reads annotations is in use: its profile is in force, or its ledger covers the notes."""
    lost: Sequence[LostNote] = ()
    """Daily notes that lack lines which the index saw in them."""


class Examination:
    """One run of the checks: the inputs, their items, whether to stop."""

    def __init__(self, inputs: InboxInputs, stopped: Callable[[], bool]) -> None:
        self.inputs = inputs
        self.stopped = stopped
        self.items = [item for note in inputs.notes for item in note_items(note)]

    @cached_property
    def outputs(self) -> dict[int, str]:
        """Number of an item in `items` -> why it looks like the output of a tool."""
        reasons = ((at, output(item)) for at, item in enumerate(self.items))
        return {at: reason for at, reason in reasons if reason}

    def memories(self) -> Iterator[NoteItem]:
        """Yield the items that do not look like the output of a tool."""
        return (item for at, item in enumerate(self.items) if at not in self.outputs)


class InboxCheck(Struct, frozen=True):
    """One check: the kind of its suggestions, a title for people, its severity, the actions it offers, its search.

    The first of `actions` is the proposed one. `find` gets the examination and this record.
    """

    kind: str
    title: str
    severity: Severity
    actions: tuple[Action, ...]
    find: Callable[[Examination, InboxCheck], Iterator[Suggestion]]


def _suggestion(check: InboxCheck, item: NoteItem, finding: Notice, other: NoteItem | None = None) -> Suggestion:
    result = Suggestion(check.kind, _passage(item), finding, check.actions, digest(item.text))
    return result if other is None else replace(result, other=_passage(other), other_digest=digest(other.text))


def _passage(item: NoteItem) -> Passage:
    return Passage(item.note.path, item.first, item.last, masked(item.text))


def masked(text: str) -> str:
    """Return the beginning of `text` without anything that looks like a secret."""
    text = secret_finder.masked_head(text, _EXCERPT + 1)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…"


def _secrets(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    known = secret_finder.known_of(note.text for note in run.inputs.notes)
    for note in run.inputs.notes:
        if run.stopped():
            raise Cancelled
        lines = note.text.split("\n")
        for match in secret_finder.find(note.text, known):
            last = match.line + note.text.count("\n", match.start, match.end)
            secret = "\n".join(line.removesuffix("\r") for line in lines[match.line - 1 : last])
            yield Suggestion(
                check.kind,
                Passage(note.path, match.line, last, masked(secret)),
                notice("secret_found", sort=match.kind),
                check.actions,
                digest(secret),
            )


def _bad_dates(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.notes:
        fault = impossible(note.path, run.inputs.today)
        if fault is not None:
            yield Suggestion(check.kind, Passage(note.path, 1, 1, ""), fault[0], check.actions, "", None, fault[1])


def _encodings(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.notes:
        if note.utf16 or note.replaced:
            # With the text, because a note that was kept as it is may be written in this way again.
            yield Suggestion(
                check.kind,
                Passage(note.path, 1, 1, masked(note.text.split("\n")[0])),
                notice("not_utf8", replaced=note.replaced, utf16=note.utf16),
                check.actions,
                digest(note.text),
            )


def _duplicates(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    groups: dict[str, list[NoteItem]] = defaultdict(list)
    for item in run.items:
        if len(item.plain) >= _SHORTEST and not item.fenced:
            groups[item.plain].append(item)
    for items in groups.values():
        keep = min(items, key=_rank)
        for item in items:
            if item is not keep:
                yield _suggestion(check, item, notice("said_twice", twin=str(_passage(keep))), keep)


def _rank(item: NoteItem) -> tuple[bool, int, str, int]:
    """Sort key: the twin in a lasting note stays, else the newest, else the first."""
    day = item.note.day
    return day is not None, -day.toordinal() if day else 0, item.note.path, item.first


def _stale_dates(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for item in run.memories():
        if finding := passed(item, run.inputs.today):
            yield _suggestion(check, item, finding)


def _dead_paths(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for item in run.memories():
        if path := dead(item, run.inputs.exists, wiki=item.note.path not in run.inputs.claude):
            yield _suggestion(check, item, notice("path_gone", path=path))


def _unlisted(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for path, line in sorted(run.inputs.unlisted.items()):
        yield Suggestion(check.kind, Passage(path, 1, 1, ""), notice("unlisted", line=line), check.actions, "")


def _over_budget(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.notes:
        if note.path not in run.inputs.over:
            continue
        first, last = run.inputs.over[note.path]
        lines = [line.removesuffix("\r") for line in note.text.split("\n")]
        end = last or max(first, len(lines) - (not lines[-1]))
        host = "Claude Code" if note.path in run.inputs.claude else "OpenClaw"
        text = "\n".join(lines[first - 1 : end])
        finding = notice("beyond_budget", path=note.path, first=first, last=last, host=host)
        yield Suggestion(check.kind, Passage(note.path, first, end, masked(text)), finding, check.actions, digest(text))


def _junk(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for at, reason in run.outputs.items():
        yield _suggestion(check, run.items[at], notice("tool_output", cause=reason))


def _never_recalled(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    from memory_tui.notes.planner import ARCHIVE

    if run.inputs.recalled is None:
        return
    for note in run.inputs.notes:
        age = (run.inputs.today - note.day).days if note.day else 0
        if age > _OLD_DAYS and note.path not in run.inputs.recalled and not note.path.startswith(f"{ARCHIVE}/"):
            place = Passage(note.path, 1, 1, masked(note.text))
            yield Suggestion(check.kind, place, notice("never_delivered", age=age), check.actions, "")


def _untrusted(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.notes:
        if text := run.inputs.trust.get(note.path):
            # A new state is a new suggestion, though an older one was kept.
            yield Suggestion(
                check.kind, Passage(note.path, 1, 1, ""), notice("not_trusted", state=text), check.actions, digest(text)
            )


def _lost(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.lost:
        finding = notice("lines_lost", change=note.change, lines=len(note.lines), at=note.at, gone=note.is_gone)
        place = Passage(note.path, 1, 1, masked("\n".join(note.lines)))
        yield Suggestion(check.kind, place, finding, check.actions, f"lost {note.change}", change=note.change)


def _promoted(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.notes:
        blocks = dream_blocks(note.text) if "openclaw-memory-promotion" in note.text else ()
        lines = note.text.split("\n")
        for block in blocks:
            if block.kind != "promotion" or block.last == block.first:
                continue
            text = "\n".join(line.removesuffix("\r") for line in lines[block.first - 1 : block.last])
            night = next((match[1] for line in reversed(lines[: block.first]) if (match := _NIGHT.match(line))), "")
            yield Suggestion(
                check.kind,
                Passage(note.path, block.first, block.last, masked(text)),
                notice("promoted_there", key=block.key, night=night),
                check.actions,
                digest(text),
            )


def _flawed(run: Examination, check: InboxCheck) -> Iterator[Suggestion]:
    for note in run.inputs.notes if run.inputs.annotated else ():
        lines = note.text.split("\n")
        # One line may repeat one flaw thousands of times.
        for flaw in dict.fromkeys(flaws(note.text, note.path)):
            line = lines[flaw.line - 1]
            place = Passage(note.path, flaw.line, flaw.line, masked(line))
            yield Suggestion(
                check.kind,
                place,
                notice("annotation_idle", cause=flaw.reason),
                check.actions,
                digest(line + flaw.reason),
            )


_NIGHT = re.compile(r"## Promoted From Short-Term Memory \((\d{4}-\d{2}-\d{2})\)")
_LATER: tuple[Action, ...] = ("keep", "snooze")
_MERGED: tuple[Action, ...] = ("merge", "merge other")
"""One of two passages goes: the one at `place`, or the other one."""
_PROMOTION: tuple[Action, ...] = ("keep", "edit", "move back", "delete", "snooze")

CHECKS: tuple[InboxCheck, ...] = (
    InboxCheck("secret", "looks like a secret", "danger", ("delete", *_LATER), _secrets),
    InboxCheck("lost", "lost lines to another program", "danger", ("restore", *_LATER), _lost),
    InboxCheck("encoding", "not UTF-8, so words are not found", "warning", ("convert", *_LATER), _encodings),
    InboxCheck("trust", "not trusted by OpenClaw", "warning", _LATER, _untrusted),
    InboxCheck("promotion", "promoted by OpenClaw", "hint", _PROMOTION, _promoted),
    InboxCheck("annotation", "an annotation without effect", "warning", _LATER, _flawed),
    InboxCheck("bad date", "an odd date in its name", "warning", ("rename", *_LATER), _bad_dates),
    InboxCheck("exact duplicate", "said twice", "warning", (*_MERGED, *_LATER), _duplicates),
    InboxCheck("stale date", "a date that has passed", "warning", ("delete", *_LATER), _stale_dates),
    InboxCheck("dead path", "names a file that is not there", "warning", ("keep", "delete", "snooze"), _dead_paths),
    InboxCheck("unlisted", "not in Claude Code's index", "warning", ("keep", "trash note", "snooze"), _unlisted),
    InboxCheck("over budget", "cut off at session start", "warning", ("demote", *_LATER), _over_budget),
    InboxCheck("junk", "looks like output of a tool", "warning", ("delete", *_LATER), _junk),
    InboxCheck(
        "never recalled", "never recalled so far", "hint", ("archive note", "trash note", *_LATER), _never_recalled
    ),
)
"""Every check, the most pressing first."""

BY_KIND: Mapping[str, InboxCheck] = MappingProxyType({check.kind: check for check in CHECKS})


CheckProgress = Callable[[str, int, int], None]
"""Gets the kind of the check that runs, how many checks are done, and how many there are."""


def examine(
    inputs: InboxInputs, progress: CheckProgress = lambda *_: None, stopped: Callable[[], bool] = lambda: False
) -> tuple[Suggestion, ...]:
    """Run every check; returns the suggestions, the most pressing first. Raises Cancelled when `stopped` says so."""
    run = Examination(inputs, stopped)
    every: dict[str, Suggestion] = {}
    for done, check in enumerate(CHECKS):
        if stopped():
            raise Cancelled
        progress(check.kind, done, len(CHECKS))
        suggestions: dict[str, Suggestion] = {}
        for suggestion in check.find(run, check):
            suggestions.setdefault(suggestion.id, suggestion)
        every |= dict(sorted(suggestions.items(), key=lambda item: (item[1].place.path, item[1].place.first)))
    progress("", len(CHECKS), len(CHECKS))
    return tuple(every.values())


def changes(suggestions: Sequence[Suggestion], action: Action, curator: Curator) -> Change:
    """What `action` does to the notes about all of `suggestions`, as one change. Raises EditRefused like `change`."""
    if len(suggestions) == 1:
        return change(suggestions[0], action, curator)
    spots = [_seen(curator.plan, row.place, row.digest) for row in suggestions if action in ("delete", "move back")]
    if action == "move back":
        return curator.plan.with_trust(move_back(spots, curator.read))
    if action != "delete":
        raise EditRefused(f"{action.capitalize()} is for one suggestion at a time.", "Take the marks away first.")
    files = plural(len({spot.path for spot in spots}), "note")
    title = f"Move {plural(len(spots), 'passage')} of {files} to the trash"
    return curator.plan.delete_lines(spots, kind="trash", title=title)


def rewritten(suggestion: Suggestion, text: str, curator: Curator) -> Change:
    """Return the change that puts `text` in the place of the last line of a suggestion. Raises EditRefused."""
    spot = _seen(curator.plan, suggestion.place, suggestion.digest)
    note = spot.lines()
    line = note.lines[spot.last - 1]
    if not text.strip() or "\n" in text or text == spot.texts()[-1]:
        raise EditRefused("The line is as it was.", "Nothing was changed.")
    lines = (*note.lines[: spot.last - 1], text + end_of(line), *note.lines[spot.last :])
    edit = Change(
        "edit", f"Edit {spot.path}:{spot.last}", (FileChange(spot.path, spot.data, Lines(note.bom, lines).data),)
    )
    return curator.plan.with_trust(edit)


def change(suggestion: Suggestion, action: Action, curator: Curator) -> Change:
    """Return what `action` does to the notes. Raises EditRefused where the lines changed since, or nothing would."""
    place, planner = suggestion.place, curator.plan
    if action == "restore":
        return bring_back(curator, place.path, suggestion.change)
    if action in ("trash note", "rename", "archive note"):
        if action == "trash note":
            return planner.trash(place.path)
        new = suggestion.new_name if action == "rename" else f"{ARCHIVE}/{posixpath.basename(place.path)}"
        return planner.rename(place.path, new)
    if action == "convert":
        return planner.with_trust(to_utf8(place.path, curator.read(place.path)))
    spot = _seen(planner, suggestion.place, suggestion.digest)
    if action == "move back":
        return planner.with_trust(move_back([spot], curator.read))
    if action in ("merge", "merge other") and suggestion.other is not None:
        other = _seen(planner, suggestion.other, suggestion.other_digest)
        survivor, duplicate = (other, spot) if action == "merge" else (spot, other)
        return planner.merge_duplicates(survivor, [duplicate])
    if action == "demote":
        return planner.demote(spot, _topic(spot))
    if action == "delete":
        return planner.delete_lines([spot], kind="trash")
    raise EditRefused(f"{action.capitalize()} changes no note.", "Choose another action.")


def _seen(planner: Planner, place: Passage, seen: str) -> Spot:
    """The lines at `place`. Raises EditRefused where they are not those that were looked at, by their digest `seen`."""
    spot = planner.spot(place.path, place.first, place.last)
    if digest("\n".join(spot.texts())) != seen:
        raise EditRefused(f"{place} changed since the inbox examined it.", "Run the checks again.")
    return spot


def _topic(spot: Spot) -> str:
    """Return the title of the topic note that lines go to: that of the heading they stand under."""
    texts = Lines.of(spot.data, spot.path).texts()
    above = [section for section in sections(texts) if section.line < spot.first and section.title]
    return above[-1].title if above else "More"
