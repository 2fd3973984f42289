"""Inbox checks are one row each. They find secrets, repeats, corrections, dead links and lost lines.
`examine` joins what has one cause, the most pressing first, and counts what it keeps silent, by the reason.

Nothing here changes a note: an action becomes a Change, which is shown and made like any other, and taken back by undo.
"""

from __future__ import annotations

import datetime as dt
import os
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.approval import cleared
from memory_tui.errors import Cancelled, EditRefused, Unreadable
from memory_tui.formatting import plural
from memory_tui.hosts import claude_code
from memory_tui.inbox import Action, DatedNote, Findings, Group, NoteItem, Passage, Suggestion, digest, items_of
from memory_tui.inbox.corrections import Corrections
from memory_tui.inbox.repeats import Repeats
from memory_tui.notes import budget
from memory_tui.notes.changes import SECRET, Change, FileChange, Lines, to_utf8
from memory_tui.notes.edit import ARCHIVE, Curator, Planner
from memory_tui.notes.history import LostNote, bring_back, lost_notes
from memory_tui.notes.promote import Spot
from memory_tui.openclaw.dreaming import dream_blocks
from memory_tui.plan import Plan
from memory_tui.secrets import finder as secret_finder
from memory_tui.secrets import instructions
from memory_tui.secrets.finder import Known
from memory_tui.sentences import Notice, notice
from memory_tui.workspace.chunking import AT_ENTRIES
from memory_tui.workspace.notes import date_of, flaws, is_overtaken, of_bytes, snapshot, span, utf16_of
from memory_tui.workspace.roots import ROOT_NOTES, Roots, scan

_MOST = 500_000
"""Characters of a note that are examined: two seconds of CPU. Notes that people write are a tenth as long."""
_EXCERPT = 300
"""Characters of a passage that a suggestion keeps."""
_OLD_DAYS = 60
"""A daily note younger than this may still be recalled."""

_LINK = re.compile(r"\]\(<?([^()>\s#]{1,1000}\.md)[^()]{0,1000}\)")
"""No part of it runs over the next beginning: a line of twenty thousand brackets would take hours."""
_CODE = re.compile(r"`[^`\n]*`")
_UPWARDS = re.compile(r"(?:\.\.?/)+")
"""How a vault writes a way to one of its notes, from wherever its top is."""
_NOT_THERE_YET = re.compile(
    r"\b(?:delete[ds]?|remove[ds]?|move[ds]?|renamed?|create[ds]?|todo|to do|was|were|old|archived)\b|~~"
    r"|gelöscht|verschoben|umbenannt|anlegen|borrad|movid|crear|удал|перемещ|создать|删除|移动|创建|削除|移動|作成",
    re.IGNORECASE,
)
"""A line with one of these says itself why what it names is not there."""


def dead(entry: NoteItem, exists: Callable[[str], bool]) -> str:
    """Return the missing note that an item links to; empty where none is. `exists` checks paths in the workspace.

    A `[[name]]` may name what is yet to be written, or a note of another vault. What lies in a folder that is not here
    is nobody's to judge, nor are paths of a machine: notes speak of projects and machines, too.
    """
    if entry.fenced or _NOT_THERE_YET.search(_LINK.sub(" ", entry.text)):
        return ""
    for target in _LINK.findall(_CODE.sub("", entry.text)):
        if "://" in target or target.startswith(("/", "~")):
            continue
        beside = os.path.normpath(f"{os.path.dirname(entry.note.path)}/{target}")  # noqa: PTH120 - a stored path
        # From the workspace, beside the note, below memory/, or from the top of a vault.
        paths = (target, beside, f"memory/{target}", _UPWARDS.sub("", target, count=1))
        folders = (os.path.dirname(path) for path in paths)  # noqa: PTH120 - a stored path
        has_folder = "/" not in target or any(map(exists, folders))
        if has_folder and not any(map(exists, paths)):
            return str(target)
    return ""


def impossible(path: str, today: dt.date) -> tuple[Notice, str] | None:
    """Return the fault of the date in a note's name and a better name; None where the date is valid, or there is none.

    The day after `today` is valid: it has begun in another time zone.
    """
    match = re.search(r"(?:^|/)(\d{4}-\d{2}-\d{2})[^/]*\.md$", path)
    if not match:
        return None
    folder, _, name = path.rpartition("/")
    better_path = f"{folder}/undated-{name}".lstrip("/")
    try:
        day = dt.date.fromisoformat(match[1])
    except ValueError:
        # No day of any calendar: it is refused below, as a year below 100 is.
        day = dt.date.min
    # OpenClaw's calendar takes years below 100 for others, so that no age comes of them.
    if day.year < 100:
        return notice("invalid_day", day=match[1]), better_path
    if day > today + dt.timedelta(days=1):
        return notice("day_ahead", days=(day - today).days), better_path
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
    """Notes that lack lines which the record saw in them."""
    cleared: frozenset[tuple[str, str]] = frozenset()
    """What a person took for no secret and no command."""


def inputs_of(plan: Plan, curator: Curator, recalled: frozenset[str] | None) -> InboxInputs:
    """Return everything that suggestions are made of; reads every note. Raises EditRefused."""
    ledger = curator.plan.trust
    workspace = os.path.realpath(plan.roots.workspace)
    folders = tuple(os.path.realpath(folder) + os.sep for folder in (workspace, *plan.roots.extra))

    def exists(path: str) -> bool:
        """Tell whether something is at a path of the workspace, or of an extra folder."""
        # Nothing outside of the folders of notes is looked for.
        real = os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118 - names may hold undecodable bytes
        return real.startswith(folders) and os.path.lexists(real)

    notes = tuple(notes_of(plan.roots))
    claude_folders = claude_code.folders(plan.roots)
    files = ledger.report(note.path for note in notes).files if ledger is not None else ()
    return InboxInputs(
        notes=[beginning(note) for note in notes],
        today=dt.datetime.fromtimestamp(plan.clock(), dt.UTC).astimezone(plan.config.time_zone).date(),
        exists=exists,
        over=_unread(plan, notes),
        recalled=recalled,
        trust={file.path: file.words for file in files if file.state in ("untrusted", "edited")},
        claude=frozenset(note.path for note in notes if claude_code.in_folders(note.path, claude_folders)),
        unlisted=claude_code.unlisted({note.path: note.text for note in notes}, claude_folders),
        annotated=ledger is not None or plan.profile.chunking == AT_ENTRIES,
        lost=lost_notes(curator.journal, curator.read, [(note.path, note.text) for note in notes]),
        cleared=cleared(plan.roots.workspace),
    )


def _unread(plan: Plan, notes: Iterable[DatedNote]) -> dict[str, tuple[int, int]]:
    """Return the first and the last line that no session reads of each curated note, by its path.

    Claude Code reads the curated note of its own memory, OpenClaw any other. A note that is read whole has none.
    """
    openclaw, claude = budget.hosts(plan.config, plan.roots.workspace)
    unread = {}
    for note in (note for note in notes if posixpath.basename(note.path) in ROOT_NOTES):
        host = claude if claude_code.is_auto_memory(plan.roots.workspace / note.path) else openclaw
        cut = budget.measure(note.text.encode("utf-8", "replace"), host).cut
        # OpenClaw without a limit puts no file into the prompt, so that it cuts none.
        if cut is not None and host.limit:
            unread[note.path] = cut.whole
    return unread


def notes_of(roots: Roots) -> Iterator[DatedNote]:
    """Yield every note that can be read, with the first day of the date that it has."""
    for note in scan(roots).notes:
        if note.source != "memory":
            continue
        try:
            data, status = snapshot(note)
        except Unreadable:
            # The list of files says so; there is nothing to suggest about what nobody can read.
            continue
        document = of_bytes(note.path, data, status.st_mtime_ns)
        date = date_of(note.path, document.text)
        day = span(date)[0] if date else None
        yield DatedNote(note.path, document.text, day, document.replaced, utf16=utf16_of(data[:_MOST]) != "")


def beginning(note: DatedNote) -> DatedNote:
    """Return a note with its first lines alone, where it is too long to be examined whole."""
    if len(note.text) <= _MOST:
        return note
    end = note.text.rfind("\n", 0, _MOST) + 1
    return replace(note, text=note.text[:end], unexamined=True)


FindingCache = dict[Hashable, tuple[Any, ...]]
"""Results of finders that read the text of one note alone, by the finder, the text's digest and its options."""


class Examination:
    """One run of the checks: the inputs, whether to stop, and the `cache` of earlier runs."""

    def __init__(self, inputs: InboxInputs, stopped: Callable[[], bool], cache: FindingCache) -> None:
        self.inputs = inputs
        self.stopped = stopped
        self.cache = cache
        self.used = FindingCache()
        """What this run took from the cache or found, which is all that the cache keeps."""
        self._split: dict[tuple[str, bool], list[str]] = {}

    @property
    def notes(self) -> Iterator[DatedNote]:
        """Yield each note. Raises Cancelled between two, as everything here that goes through them."""
        for note in self.inputs.notes:
            self.check()
            yield note

    def check(self) -> None:
        """Raise Cancelled where the run is to stop."""
        if self.stopped():
            raise Cancelled

    def once(self, find: Callable[..., tuple[Any, ...]], text: str, options: Hashable) -> tuple[Any, ...]:
        """Return what `find` finds in a text; it looks only where no earlier run did."""
        key = find, digest(text), options
        if key not in self.cache:
            self.cache[key] = find(text, options)
        self.used[key] = self.cache[key]
        return self.used[key]

    @cached_property
    def secrets(self) -> dict[str, tuple[secret_finder.Finding, ...]]:
        """Path of a note -> the secrets in it."""
        known = secret_finder.known_of((note.text for note in self.notes), self.inputs.cleared)
        result = {}
        for note in self.notes:
            # What all notes tell changes with each note, so it is left out of what is cached. It makes few findings
            # doubtful: only their notes are looked at again with it.
            findings = self.once(secret_finder.find, note.text, Known(cleared=known.cleared))
            if secret_finder.is_doubtful(note.text, findings, known):
                findings = secret_finder.find(note.text, known)
            result[note.path] = findings
        return result

    @cached_property
    def repeats(self) -> Repeats:
        """Return what notes say again."""
        return Repeats(self.inputs.notes, self.check)

    @cached_property
    def by_path(self) -> Mapping[str, DatedNote]:
        """Return each note by its path."""
        return {note.path: note for note in self.notes}

    def lines(self, path: str, first: int, last: int, *, is_masked: bool = False) -> str:
        """Return lines of a note as they are, or with its secrets masked, wherever their label stands."""
        if (path, is_masked) not in self._split:
            text = self.by_path[path].text
            if is_masked:
                text = secret_finder.covered(text, self.secrets[path], _mask)
            self._split[path, is_masked] = text.removeprefix("\ufeff").split("\n")
        return "\n".join(line.removesuffix("\r") for line in self._split[path, is_masked][first - 1 : last])

    def passage(self, path: str, first: int, last: int) -> Passage:
        """Return lines of a note, its secrets masked; of many the beginning."""
        # More lines than an excerpt has characters are not in it.
        text = self.lines(path, first, min(last, first + _EXCERPT), is_masked=True)
        return Passage(path, first, last, _excerpt(text.rstrip("\n")))


def _mask(secret: str) -> str:
    """Return a mask with as many lines as the secret, so that what follows keeps its number."""
    return SECRET + "\n" * secret.count("\n")


def _excerpt(text: str) -> str:
    """Return the beginning of a text that is too long to be kept, any other text as it is."""
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…"


class Check(Struct, frozen=True):
    """One check: the kind of its suggestions, a title for people, the actions it offers, its search, its severity.

    The first of `actions` is the proposed one. `cause` is the row of the table of sentences that tells of several with
    one cause.
    """

    kind: str
    title: str
    actions: tuple[Action, ...]
    find: Callable[[Examination], Iterator[Suggestion]]
    cause: str
    severity: Literal["danger", "warning", "hint"] = "warning"
    off: str = ""
    """Why it runs for who asks for its kind alone; empty where it always runs."""


def _of_lines(run: Examination, place: Passage, finding: Notice, twin: Passage | None = None) -> Suggestion:
    """Return a finding about lines of a note, and about its twin; `examine` adds the kind and its other actions."""
    seen = digest(run.lines(place.path, place.first, place.last))
    twin_seen = digest(run.lines(twin.path, twin.first, twin.last)) if twin is not None else ""
    return Suggestion(place, finding, seen, other=twin, other_digest=twin_seen)


def _of_note(path: str, finding: Notice, seen: str = "") -> Suggestion:
    """Return a finding about a note as a whole; a decision holds as long as the digest `seen` is the same."""
    return Suggestion(Passage(path, 1, 1, ""), finding, seen)


def _secrets(run: Examination) -> Iterator[Suggestion]:
    """Yield the secrets of notes, each with what "this is none" learns: its label and prefix, else this value alone."""
    for path, findings in run.secrets.items():
        text = run.by_path[path].text
        for secret in findings:
            value = text[secret.start : secret.end]
            place = run.passage(path, secret.line, secret.line + value.count("\n"))
            label = secret_finder.exactly(value)
            if secret.label and secret.label.prefix:
                label = secret.label.words, secret.label.prefix
            yield replace(_of_lines(run, place, notice("secret_found", sort=secret.kind)), label=label)


def _instructions(run: Examination) -> Iterator[Suggestion]:
    """Yield the lines that command the agent; "this is none" learns the line alone."""
    for note in run.notes:
        for instruction in run.once(instructions.find, note.text, run.inputs.cleared):
            number = instruction.line
            finding = notice("commands_agent", what=instruction.kind, hidden=instruction.hidden)
            label = secret_finder.exactly(run.lines(note.path, number, number))
            yield replace(_of_lines(run, run.passage(note.path, number, number), finding), label=label)


def _bad_dates(run: Examination) -> Iterator[Suggestion]:
    """Yield the notes whose name has a day that is none, or is still to come, each with a better name."""
    for note in run.notes:
        if fault := impossible(note.path, run.inputs.today):
            finding, better_path = fault
            yield replace(_of_note(note.path, finding), new_name=better_path)


def _encodings(run: Examination) -> Iterator[Suggestion]:
    """Yield the notes that are not UTF-8."""
    for note in run.notes:
        if note.utf16 or note.replaced:
            finding = notice("not_utf8", replaced=note.replaced, utf16=note.utf16)
            # With the text, because a note that was kept as it is may be written in this way again.
            yield Suggestion(run.passage(note.path, 1, 1), finding, digest(note.text))


def _repeats(kind: str) -> Callable[[Examination], Iterator[Suggestion]]:
    """Return the search of a check for repeats of one kind."""

    def find(run: Examination) -> Iterator[Suggestion]:
        """Yield each repeat of this kind, with the place that it repeats as its twin."""
        for repeat in run.repeats.by_kind[kind]:
            twin = run.passage(*repeat.twin)
            is_file = kind == "copied file"
            finding = notice("file_copied", twin=twin.path) if is_file else notice("said_twice", twin=str(twin))
            yield replace(_of_lines(run, run.passage(*repeat.lines), finding, twin), family=repeat.family)

    return find


def _corrections(run: Examination) -> Iterator[Suggestion]:
    """Yield the newer line of each correction, with the older one that is not marked yet as its twin."""
    for pair in Corrections(run.notes, run.check).pairs():
        if is_overtaken(pair.old.text):
            continue
        new, old = (run.passage(line.path, line.number, line.number) for line in (pair.new, pair.old))
        if pair.opposite:
            suggestion = _of_lines(run, new, notice("opposes", twin=str(old)), old)
            yield replace(suggestion, actions=("keep",), family=str(old))
        else:
            yield _of_lines(run, new, notice("overtakes", twin=str(old)), old)


def _dead_paths(run: Examination) -> Iterator[Suggestion]:
    """Yield the items that link to a note which is not there."""
    # The links of a README belong to its project.
    notes = (note for note in run.notes if not note.path.lower().endswith("readme.md"))
    for item in (item for note in notes for item in items_of(note)):
        run.check()
        if path := dead(item, run.inputs.exists):
            place = run.passage(item.note.path, item.first, item.last)
            yield _of_lines(run, place, notice("path_gone", path=path))


def _unlisted(run: Examination) -> Iterator[Suggestion]:
    """Yield the facts to which the index of Claude Code does not point, with the line that would."""
    return (_of_note(path, notice("unlisted", line=line)) for path, line in sorted(run.inputs.unlisted.items()))


def _over_budget(run: Examination) -> Iterator[Suggestion]:
    """Yield what no session reads of a curated note, as one suggestion."""
    for path, (first, last) in run.inputs.over.items():
        note = run.by_path[path]
        count = note.text.removesuffix("\n").count("\n") + 1
        # A last line of 0 means the end of the note, which may be examined in part only.
        end = max(first, min(last, count) if last else count)
        host = "Claude Code" if path in run.inputs.claude else "OpenClaw"
        entries = sum(first <= item.first <= end for item in items_of(note))
        finding = notice("beyond_budget", path=path, first=first, last=last, host=host, entries=entries)
        yield replace(_of_lines(run, run.passage(path, first, end), finding), family=path)


def _too_long(run: Examination) -> Iterator[Suggestion]:
    """Yield the notes of which only the beginning is examined."""
    long = (note for note in run.notes if note.unexamined)
    return (_of_note(note.path, notice("beginning_examined", lines=note.text.count("\n"))) for note in long)


def _never_recalled(run: Examination) -> Iterator[Suggestion]:
    """Yield old daily notes that no recall returned; none where the log has too few recalls."""
    if (recalled := run.inputs.recalled) is None:
        return
    for note in run.notes:
        age = (run.inputs.today - note.day).days if note.day else 0
        if age > _OLD_DAYS and note.path not in recalled and not note.path.startswith(f"{ARCHIVE}/"):
            yield Suggestion(run.passage(note.path, 1, 1), notice("never_delivered", age=age), "")


def _untrusted(run: Examination) -> Iterator[Suggestion]:
    """Yield the notes that OpenClaw does not trust, or soon will not."""
    for note in run.notes:
        if state := run.inputs.trust.get(note.path):
            # A new state is a new suggestion, though an older one was kept.
            yield _of_note(note.path, notice("not_trusted", state=state), digest(state))


def _lost(run: Examination) -> Iterator[Suggestion]:
    """Yield the lines that other programs took out of notes, masked, as a passage where the first one stood."""
    for note in run.inputs.lost:
        finding = notice(
            "lines_lost", change=note.change, lines=len(note.lines), at=note.at, gone=note.is_gone, by=note.by
        )
        text, at = secret_finder.masked("\n".join(note.lines.values()), _mask), min(note.lines)
        place = Passage(note.path, at, at, _excerpt(text))
        yield Suggestion(place, finding, f"lost {note.change}", change=note.change)


def _promoted(run: Examination) -> Iterator[Suggestion]:
    """Yield what OpenClaw promoted to a note, with the night of the nearest heading above."""
    for note in run.notes:
        for block in dream_blocks(note.text):
            if block.kind == "promotion" and block.last > block.first:
                above = note.text.split("\n")[: block.first]
                nights = [match[1] for line in above if (match := _NIGHT.match(line))]
                finding = notice("promoted_there", key=block.key, night=nights[-1] if nights else "")
                yield _of_lines(run, run.passage(note.path, block.first, block.last), finding)


_NIGHT = re.compile(r"## Promoted From Short-Term Memory \((\d{4}-\d{2}-\d{2})\)")


def _flawed(run: Examination) -> Iterator[Suggestion]:
    """Yield the annotations without effect; none where no release that reads annotations is in use."""
    for note in run.notes if run.inputs.annotated else ():
        lines = note.text.split("\n")
        # One line may repeat one flaw thousands of times.
        for flaw in dict.fromkeys(flaws(note.text, note.path)):
            place = run.passage(note.path, flaw.line, flaw.line)
            seen = digest(lines[flaw.line - 1] + flaw.reason)
            yield Suggestion(place, notice("annotation_idle", cause=flaw.reason), seen)


_LATER: tuple[Action, ...] = ("keep", "snooze")
_NONE: tuple[Action, ...] = ("none", *_LATER)
_OVERTAKEN: tuple[Action, ...] = ("overtake", "merge other", *_LATER)
_TWICE: tuple[Action, ...] = ("merge", "merge other", *_LATER)
"""Of two passages one goes: with "merge" the one at `place`, with "merge other" its twin."""
_STAY: tuple[Action, ...] = ("keep", "delete", "snooze")
_NEVER: tuple[Action, ...] = ("archive note", "trash note", *_LATER)

_OFTEN_WRONG = "most of its pairs do not conflict"
_FEW_RIGHT = "8 of 11 groups were right on other people's notes"

# Kind, title, actions, search, row of the cause, severity.
CHECKS: tuple[Check, ...] = (
    Check("secret", "looks like a secret", ("mask", "delete", *_NONE), _secrets, "secrets", "danger"),
    Check("instruction", "commands the agent", ("delete", *_NONE), _instructions, "instructions", "danger"),
    Check("lost", "removed outside memory-tui", ("restore", *_LATER), _lost, "lost_here", "danger"),
    Check("encoding", "not UTF-8, so words are not found", ("convert", *_LATER), _encodings, "encodings"),
    Check("trust", "not trusted by OpenClaw", _LATER, _untrusted, "untrusted"),
    Check("promotion", "promoted by OpenClaw", _STAY, _promoted, "promotions", "hint"),
    Check("annotation", "an annotation without effect", _LATER, _flawed, "annotations_idle"),
    Check("bad date", "an odd date in its name", ("rename", *_LATER), _bad_dates, "odd_dates"),
    Check("over budget", "cut off at session start", ("demote", *_LATER), _over_budget, "beyond_budgets"),
    Check("long note", "too long to be examined whole", _LATER, _too_long, "notes_too_long"),
    Check("copied file", "a copy of another note", ("trash note", *_LATER), _repeats("copied file"), "files_copied"),
    Check("copied block", "copied from another place", _TWICE, _repeats("copied block"), "blocks_copied"),
    Check("said twice", "said twice", _TWICE, _repeats("said twice"), "lines_twice"),
    Check("contradiction", "contradicts an older line", _OVERTAKEN, _corrections, "corrections", off=_OFTEN_WRONG),
    Check("dead path", "links to a file that is not there", _STAY, _dead_paths, "paths_gone", off=_FEW_RIGHT),
    Check("unlisted", "not in Claude Code's index", ("keep", "trash note", "snooze"), _unlisted, "unlisted_notes"),
    Check("never recalled", "never recalled so far", _NEVER, _never_recalled, "notes_never_delivered", "hint"),
)
"""Every check, the most pressing first."""

GONE = ("log beat", "near duplicate", "paraphrase", "stale date", "junk")
"""Kinds of which nothing is found any more: who asks for one is told so, and no error."""

BY_KIND: Mapping[str, Check] = {check.kind: check for check in CHECKS}


CheckProgress = Callable[[str, int, int], None]
"""Gets the kind of the check that runs, how many checks are done, and how many there are."""


def examine(
    inputs: InboxInputs,
    progress: CheckProgress = lambda *_: None,
    stopped: Callable[[], bool] = lambda: False,
    kinds: Collection[str] = (),
    cache: FindingCache | None = None,
) -> Findings:
    """Run the checks, those that are off where `kinds` names them, and join what has one cause. Raises Cancelled.

    With the same `cache` each time a note whose text did not change costs little.
    """
    run = Examination(inputs, stopped, {} if cache is None else cache)
    groups: list[Group] = []
    for done, check in enumerate(CHECKS):
        run.check()
        progress(check.kind, done, len(CHECKS))
        if not check.off or check.kind in kinds:
            groups += grouped(_counted(_completed(suggestion, check) for suggestion in check.find(run)))
    # The caller keeps the dictionary: results that this run did not use are of texts that are gone.
    run.cache.clear()
    run.cache.update(run.used)
    progress("", len(CHECKS), len(CHECKS))
    silent = {reason: tuple(_silent(run, reason, *at) for at in places) for reason, places in run.repeats.quiet.items()}
    return Findings(tuple(groups), silent)


def _silent(run: Examination, reason: str, path: str, line: int) -> Suggestion:
    """Return a finding that was kept silent, with the reason."""
    return Suggestion(run.passage(path, line, line), notice("kept_silent", reason=reason), "", kind="said twice")


def _completed(suggestion: Suggestion, check: Check) -> Suggestion:
    """Return the suggestion with the kind of its check, and the actions of the check behind its own."""
    return replace(suggestion, kind=check.kind, actions=tuple(dict.fromkeys(suggestion.actions + check.actions)))


def _counted(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """Sort suggestions by their places, each once, and count those of equal lines, which have the same id."""
    unique = {(suggestion.id, suggestion.place.first): suggestion for suggestion in suggestions}
    # How many of an id came so far. The id takes the number in, so that each of them has its own then.
    before: Counter[str] = Counter()
    counted = []
    for suggestion in sorted(unique.values(), key=lambda suggestion: (suggestion.place.path, suggestion.place.first)):
        counted.append(replace(suggestion, occurrence=before[suggestion.id]))
        before[suggestion.id] += 1
    return counted


def grouped(suggestions: Iterable[Suggestion]) -> list[Group]:
    """Join suggestions that have one cause, in the order of their first."""
    families: dict[tuple[str, str], list[Suggestion]] = defaultdict(list)
    for suggestion in suggestions:
        families[suggestion.kind, suggestion.family].append(suggestion)
    return [_group(tuple(family)) for family in families.values()]


def _group(family: tuple[Suggestion, ...]) -> Group:
    """Return suggestions of one cause as a group, with what can be done about all of them."""
    first = family[0]
    if len(family) == 1:
        return Group(first.kind, first.finding, family, first.actions)
    paths = {suggestion.place.path for suggestion in family}
    fields = {
        "count": len(family),
        "notes": len(paths),
        "path": first.place.path,
        "twin": first.other.path if first.other else "",
        "holders": len(paths | {suggestion.other.path for suggestion in family if suggestion.other}),
    }
    cause = Notice(BY_KIND[first.kind].cause, fields)
    # Where keeping is proposed for one of them, it is proposed for all.
    careful = next((suggestion.actions for suggestion in family if suggestion.actions[0] == "keep"), first.actions)
    actions = [action for action in careful if action in _FOR_MANY]
    # An action for one suggestion at a time cannot be proposed for many: then keeping is.
    if careful[0] not in _FOR_MANY:
        actions = ["keep", *(action for action in actions if action != "keep")]
    return Group(first.kind, cause, family, tuple(actions))


_FOR_MANY: Collection[Action] = (*("merge", "delete", "mask", "overtake", "none", "restore", "trash note"), *_LATER)
"""What can be done about several suggestions as one change."""


def changes(rows: Sequence[Suggestion], action: Action, curator: Curator) -> Change:
    """Return what `action` does to the notes about all of `rows`, as one change.

    Raises EditRefused where the lines changed since, nothing would, or it is for one suggestion at a time.
    """
    planner = curator.plan
    path = rows[0].place.path
    if len(rows) > 1 and action not in _FOR_MANY:
        raise EditRefused(f"{action.capitalize()} is for one suggestion at a time.", "Take the marks away first.")
    match action:
        case "trash note":
            return planner.trash(*dict.fromkeys(row.place.path for row in rows))
        case "restore":
            return bring_back(curator, [(row.place.path, row.change) for row in rows])
        case "rename":
            return planner.rename(path, rows[0].new_name)
        case "archive note":
            return planner.rename(path, f"{ARCHIVE}/{posixpath.basename(path)}")
        case "convert":
            return planner.with_trust(to_utf8(path, curator.read(path)))
    twins = [_unchanged_lines(planner, row.other, row.other_digest) for row in rows if row.other is not None]
    if action == "overtake" and twins:
        return planner.overtaken(twins)
    return _lines_changed([_unchanged_lines(planner, row.place, row.digest) for row in rows], twins, action, curator)


def _lines_changed(spots: list[Spot], twins: list[Spot], action: Action, curator: Curator) -> Change:
    """Return what `action` does to the lines at `spots`, of which `twins` say the same. Raises EditRefused.

    Of one line "merge" keeps its twin, and "merge other" the line itself; of several lines all go, since what they
    repeat stays.
    """
    planner = curator.plan
    if action == "mask":
        return planner.with_trust(_masked(spots, Known(cleared=cleared(curator.roots.workspace))))
    if action == "demote":
        return planner.demote(spots[0], "Moved from memory")
    if len(spots) == 1 and twins and action == "merge":
        return planner.merge_duplicates(keep=twins[0], others=spots)
    if len(spots) == 1 and twins and action == "merge other":
        return planner.merge_duplicates(keep=spots[0], others=twins)
    if action not in ("delete", "merge"):
        raise EditRefused(f"{action.capitalize()} changes no note.", "Choose another action.")
    files = plural(len({spot.path for spot in spots}), "note")
    title = f"Move {plural(len(spots), 'passage')} of {files} to the trash" if len(spots) > 1 else ""
    return planner.delete_lines(spots, kind="merge" if action == "merge" else "trash", title=title)


def _masked(spots: Sequence[Spot], known: Known) -> Change:
    """Return the change that puts a mask in the place of the secrets on the lines of `spots`."""
    by_path: dict[str, list[Spot]] = defaultdict(list)
    for spot in spots:
        by_path[spot.path].append(spot)
    files = []
    for path, chosen in by_path.items():
        note = chosen[0].lines()
        text = "".join(note.lines)
        numbers = {number for spot in chosen for number in range(spot.first, spot.last + 1)}
        secrets = (secret for secret in secret_finder.find(text, known) if secret.line in numbers)
        # The whole text counts as one line here, since nothing but its bytes is taken.
        after = Lines(note.bom, (secret_finder.covered(text, secrets),))
        files.append(FileChange(path, chosen[0].data, after.data))
    return Change("edit", f"Mask secrets in {plural(len(files), 'note')}", tuple(files))


def _unchanged_lines(planner: Planner, place: Passage, seen: str) -> Spot:
    """Return the lines at `place`. Raises EditRefused unless their digest is still `seen`, as the check saw them."""
    spot = planner.spot(place.path, place.first, place.last)
    if digest("\n".join(spot.texts())) != seen:
        raise EditRefused(f"{place} changed since the inbox examined it.", "Run the checks again.")
    return spot
