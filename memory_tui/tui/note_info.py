"""What is known of a note besides its text. That is recalls, budget, links and changes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.notes.git import Commit, History
from memory_tui.sanitize import one_line
from memory_tui.tui.state import Aging

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import FileRow
    from memory_tui.notes.diff import DiffLine
    from memory_tui.notes.journal import JournalEntry
    from memory_tui.notes.links import LinkIndex, NoteLink
    from memory_tui.recalls.recall_log import RecallEntry
    from memory_tui.recalls.recalled_lines import Marks, Span
    from memory_tui.search.trace import Trace
    from memory_tui.tui.note_page import Page
    from memory_tui.workspace.roots import Roots

Target = tuple[str, int]
"""A note and a line in it."""


class Statement(Struct, frozen=True):
    """One statement: `label` and `words`; those about a link lead to `target`. `head` rows begin a section."""

    label: str
    words: str
    style: str = ""
    target: Target | None = None
    head: bool = False


class About(Struct, frozen=True):
    """What the reader marks and the pane beside it tells; `rules` stand above rows (from 0), `unread` is dimmed."""

    path: str
    rows: tuple[Statement, ...] = ()
    recalled: Collection[int] = ()
    unread: range = range(0)
    rules: Mapping[int, str] = field(default_factory=dict)
    links: Mapping[int, tuple[Target, ...]] = field(default_factory=dict)


MOST_LINKS = 50
"""Links of one kind that are listed."""


def of_file(file: FileRow, aging: Aging, lines: int, state: str) -> list[Statement]:
    """What the list tells of a note, in words."""
    return [
        Statement(
            "state",
            f"{state}: {file.detail}" if file.detail and file.detail != state else state,
            "good" if state == "fresh" else "bad" if state == "failed" else "warn",
        ),
        Statement("size", f"{plural(file.size, 'byte')}, {plural(lines, 'line')}"),
        Statement("index", plural(file.chunks, "chunk")),
        Statement("age", _age(file, aging)),
        *([Statement("day", f"{file.day:%A, %d %B %Y}")] if file.day and len(file.dated) == len("2026-03-07") else []),
        *([Statement("from", one_line(file.source))] if file.source != "memory" else []),
    ]


def _age(file: FileRow, aging: Aging) -> str:
    days, factor = aging.days(file), aging.factor(file)
    if days is None:
        return "evergreen, never fades"
    words = plural(int(days), "day")
    if factor is None:
        return f"{words}; decay is off"
    what = (
        f"score × {factor:.3f}"
        if aging.rule == "multiply"
        else (f"being recent adds {factor * aging.bonus:.3f} of {aging.bonus:.3f}")
    )
    return f"{words}: {what}, half after {aging.half_life:g} d"


def gather(engine: Engine, page: Page, here: frozenset[int]) -> About:
    """What is known of the note on `page`; `here` are lines recalled since the app started.

    Reads the disk, so for worker threads only.
    """
    rows, recalled = _recalls(engine, page)
    if (trust := engine.notes.trust_of(page.path)) is not None:
        rows.insert(0, Statement("trust", trust.words, "" if trust.state in ("agent", "unrecorded") else "warn"))
    rows[:0] = _claude(engine, page)
    text, marked = _marks(engine, page, here)
    rows += text
    budget = _budget(engine, page)
    rows += _prompt(engine, page.path)
    roots, state = engine.plan.roots, engine.index.watched_state
    links = _link_index(roots).about(page.path, state)
    out = [link for link in links.links if link.target != page.path or link.target_line]
    rows += [*budget.rows, *_linked(out, links.back)]
    leads: dict[int, tuple[Target, ...]] = defaultdict(tuple)
    for link in out:
        if link.target:
            leads[link.line] += ((link.target, link.target_line or 1),)
    return replace(budget, rows=tuple(rows), recalled=recalled | marked, links=leads)


def _claude(engine: Engine, page: Page) -> list[Statement]:
    """What the front matter of a fact of Claude Code's memory says."""
    from memory_tui.hosts import claude_code

    roots = engine.plan.roots
    fact = claude_code.fact_of("\n".join(page.lines[:40]))
    if fact is None or not claude_code.in_folders(page.path, claude_code.folders(roots)):
        return []
    return [Statement("type", fact.type or "none that Claude Code knows"), Statement("about", fact.description)]


@lru_cache(maxsize=4)
def _link_index(roots: Roots) -> LinkIndex:
    """The links of a workspace, kept so that only what changed is read again."""
    from memory_tui.notes.links import LinkIndex

    return LinkIndex(roots)


def _linked(out: Sequence[NoteLink], back: Sequence[NoteLink]) -> Iterator[Statement]:
    """Links from the note and to it; each once."""
    if out:
        yield Statement("", "Links", head=True)
    for link in {(link.target or link.written, link.target_line): link for link in out}.values():
        if link.target:
            line = f":{link.target_line}" if link.target_line else ""
            yield Statement("→", one_line(f"{_short(link.target)}{line}"), "link", (link.target, link.target_line or 1))
        else:
            yield Statement("×", one_line(f"{link.written}  no such note"), "bad")
    if back:
        yield Statement("", "Linked from", head=True)
    for link in back[:MOST_LINKS]:
        yield Statement("←", one_line(f"{_short(link.source)}:{link.line}"), "link", (link.source, link.line))
    if len(back) > MOST_LINKS:
        yield Statement("", f"and {len(back) - MOST_LINKS:,} more", "muted")


def _short(path: str) -> str:
    return path.removeprefix("memory/")


def _budget(engine: Engine, page: Page) -> About:
    """Where the hosts cut the curated note, if this is it: what is marked in the reader, and rows about it."""
    plan = engine.notes.curator.plan
    if page.path != plan.memory():
        return About(page.path)
    rows: list[Statement] = []
    rules: dict[int, str] = {}
    unread = range(0)
    for budget in plan.budget(engine.notes.curator.read(page.path)):
        name = "OpenClaw" if budget.host.name == "openclaw" else "Claude Code"
        cut = budget.cut
        state = f"{cut.lost:,} are cut out, {cut.lines}" if cut else "all of it is read"
        rows.append(
            Statement(
                name.split()[0], f"{budget.used:,} of {budget.limit:,} {budget.unit}, {state}", "bad" if cut else ""
            )
        )
        if cut is None:
            continue
        # The line in which a cut falls is read in part, so the rule stands below it.
        first = cut.line - 1 + (cut.column > 1)
        last = cut.until_line - 1 if cut.until_line else len(page.lines)
        rules[first] = f"{name} stops here: {cut.lost:,} {budget.unit} unread"
        if cut.until_line:
            rules[last] = f"{name} reads on here"
        if budget.host.name == "openclaw" or not unread:
            unread = range(first, last)
    return About(page.path, tuple(rows), unread=unread, rules=rules)


def _prompt(engine: Engine, path: str) -> Iterator[Statement]:
    """What OpenClaw 2026.9 puts into the prompt of the note `path`, and of all files together."""
    reply = engine.notes.prompt()
    new = next((file for file in reply.files if file.path == path), None) if reply else None
    if reply is None or new is None:
        return
    yield Statement("prompt", new.sentence, "bad" if new.taken < new.used else "warn" if new.remark else "")
    yield Statement("", reply.sentence, "bad" if any(file.taken < file.used for file in reply.files) else "")


def _recalls(engine: Engine, page: Page) -> tuple[list[Statement], frozenset[int]]:
    """How often agents were given lines of the note, and which; as the lines were counted then."""
    from memory_tui.recalls import recall_log

    place = recall_log.recall_log_path(engine.plan.roots.workspace)
    try:
        entries = _logged(str(place), _state(place))
    except MemoryTuiError as error:
        return [Statement("recalled", error.message, "bad")], frozenset()
    except OSError:
        words = "nothing yet" if engine.plan.settings.on("recall.log") else "not logged (recall.log is off)"
        return [Statement("recalled", words)], frozenset()
    reply = [(entry, hit) for entry in entries for hit in entry.hits if hit.path == page.path]
    lines = frozenset(line for _, hit in reply for line in range(hit.lines[0], hit.lines[1] + 1))
    if not reply:
        return [Statement("recalled", "never, as far as the log goes back")], lines
    times = len({entry.id for entry, _ in reply})
    last = max(entry.at for entry, _ in reply)
    by = ", ".join(sorted({one_line(entry.client, 20) or "an agent" for entry, _ in reply}))
    return [
        Statement("recalled", f"{plural(times, 'time')}, last {datetime.fromtimestamp(last):%Y-%m-%d %H:%M}, by {by}")
    ], lines


def _marks(engine: Engine, page: Page, here: frozenset[int]) -> tuple[list[Statement], frozenset[int]]:
    """Which lines of the note a person's questions recalled, by the record and since the app was opened."""
    from memory_tui.recalls import recalled_lines

    place = recalled_lines.marks_path(engine.plan.roots.workspace)
    try:
        reply = _marked(str(place), _state(place))
    except MemoryTuiError as error:
        return [Statement("here", error.message, "bad")], here
    except OSError:
        reply = recalled_lines.Marks()
    lines = reply.lines.get(page.path, frozenset()) | here
    rows = []
    if page.path in reply.last:
        last = f"last {datetime.fromtimestamp(reply.last[page.path]):%Y-%m-%d %H:%M}"
        rows.append(Statement("here", f"{plural(len(lines), 'line')} recalled by your questions, {last}"))
    elif here:
        rows.append(Statement("here", f"{plural(len(here), 'line')} recalled since the app started"))
    if reply.unread:
        rows.append(
            Statement("", f"{plural(reply.unread, 'line')} of the record of your recalls could not be read", "warn")
        )
    return rows, lines


def _state(place: Path) -> tuple[int, int]:
    """Time and size: two lines that are added at once have one time."""
    status = place.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=2)
def _marked(place: str, _state: tuple[int, int]) -> Marks:
    """The record of recalled lines, read again only when it has changed."""
    from memory_tui.recalls import recalled_lines

    return recalled_lines.read(Path(place))


@lru_cache(maxsize=2)
def _logged(place: str, _state: tuple[int, int]) -> tuple[RecallEntry, ...]:
    """The recall log, read again only when it has changed."""
    from memory_tui.recalls import recall_log

    return recall_log.read(Path(place)).entries


class Past(Struct, frozen=True):
    """The changes and commits of a note, newest first, and which changes can be taken back or made again.

    `trouble` is what git said where it could not be asked; `repository` whether the workspace is in one.
    """

    entries: tuple[JournalEntry | Commit, ...] = ()
    undoable: frozenset[int] = frozenset()
    redoable: frozenset[int] = frozenset()
    repository: bool = False
    trouble: str = ""


def past(engine: Engine, path: str | None) -> Past:
    """What is known of `path`, of every note without one."""
    curator = engine.notes.curator
    drafts = [entry for entry in curator.drafts() if path is None or path in entry.paths]
    commits, repository, trouble = _commits(engine, path)
    every: list[JournalEntry | Commit] = [*curator.history(path), *drafts, *commits]
    return Past(
        tuple(sorted(every, key=lambda entry: -entry.at)),
        frozenset(entry.id for entry in curator.undoable()),
        frozenset(entry.id for entry in curator.redoable()),
        repository,
        trouble,
    )


def _commits(engine: Engine, path: str | None) -> tuple[Sequence[Commit], bool, str]:
    git = History(engine.plan.roots.workspace)
    if path is None or git.top() is None:
        return (), False, ""
    try:
        return git.log(path), True, ""
    except EditRefused as error:
        return (), True, error.message


def difference(engine: Engine, entry: JournalEntry | Commit, path: str | None) -> Sequence[DiffLine]:
    """What a change or a commit did, below what the journal says of it. Raises EditRefused when a text is gone."""
    from memory_tui.notes import diff
    from memory_tui.notes.diff import DiffLine

    if isinstance(entry, Commit):
        return tuple(_parsed(History(engine.plan.roots.workspace).diff(path or "", entry.hash)))
    text = [DiffLine("hunk", f"{entry.reason[0].upper()}{entry.reason[1:]}.")] if entry.reason else []
    return *text, *diff.lines(engine.notes.curator.journal.change_of(entry))


def _parsed(text: str) -> Iterator[DiffLine]:
    """git's unified diff as lines; its own head of names and modes is left out."""
    from memory_tui.notes.diff import DiffLine

    old = new = 0
    inside = False
    for line in text.split("\n"):
        if hunk := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line):
            old, new, inside = int(hunk[1]), int(hunk[2]), True
            yield DiffLine("hunk", line)
        elif not inside:
            if line.startswith(("--- ", "+++ ")):
                yield DiffLine("file", line)
        elif line.startswith("diff --git "):
            inside = False
        elif line[:1] == "-":
            yield DiffLine("gone", line[1:], old)
            old += 1
        elif line[:1] == "+":
            yield DiffLine("new", line[1:], 0, new)
            new += 1
        elif line[:1] == " ":
            yield DiffLine("same", line[1:], old, new)
            old, new = old + 1, new + 1


class Marking:
    """What was recalled since the app started, by note."""

    def __init__(self) -> None:
        self._lines: dict[str, set[int]] = {}
        self._last: tuple[Span, ...] = ()

    def lines(self, path: str) -> frozenset[int]:
        """The lines (from 1) of the note `path`."""
        return frozenset(self._lines.get(path, ()))

    def clear(self) -> None:
        """Know nothing."""
        self._lines.clear()
        self._last = ()

    def took(self, trace: Trace) -> bool:
        """Mark what an answer gave; False when it is what the last one gave."""
        spans = tuple((hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line) for hit in trace.recalled)
        for path, first, last in spans:
            self._lines.setdefault(path, set()).update(range(first, last + 1))
        new = bool(spans) and spans != self._last
        self._last = spans or self._last
        return new

    def writing(self, engine: Engine) -> Callable[[], str] | None:
        """What writes the last answer down, for a worker thread; it returns what went wrong. None where not wanted."""
        if engine.plan.read_only or not engine.plan.settings.on("recall.marks"):
            return None
        workspace, spans, at = engine.plan.roots.workspace, self._last, engine.plan.clock()
        return lambda: _write(workspace, spans, at)


def _write(workspace: Path, spans: tuple[Span, ...], at: float) -> str:
    from memory_tui.recalls import recalled_lines

    try:
        recalled_lines.append(recalled_lines.marks_path(workspace), spans, at)
    except OSError as error:
        return f"The marks of this answer last until the app is closed: {error.strerror or error}."
    except MemoryTuiError as error:
        return f"The marks of this answer last until the app is closed: {error.message} {error.next_step}"
    return ""
