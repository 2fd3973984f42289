"""The lists of the index view. They are its status in full and its events."""

from __future__ import annotations

import calendar
import datetime as dt
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from memory_tui import events
from memory_tui.explain import wording
from memory_tui.formatting import plural
from memory_tui.providers.options import on_this_machine
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, fit_path, wrapped
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings
from memory_tui.tui.state import KEPT, Facts, Pace
from memory_tui.tui.widgets.file_tree import SIGNS
from memory_tui.tui.widgets.memory_map import sparkline
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.providers.chain import MemberState, Traffic
    from memory_tui.tui.widgets.status_bars import IndexingProgress

LABEL = 12


def statements(facts: Facts) -> list[tuple[str, str, str]]:
    """What the truth bar says, in full: label, words, style."""
    status, freshness = facts.status, facts.status.freshness
    empty = sum(row.state == "fresh" and not row.chunks for row in facts.rows)
    counts = [
        f"{freshness.fresh:,} fresh",
        f"{len(freshness.pending):,} pending",
        f"{len(facts.failed):,} failed",
        f"{len(freshness.left_out):,} left out",
        *([f"{len(status.in_part):,} of the fresh in part"] if status.in_part else []),
        *([f"{empty:,} of the fresh empty"] if empty else []),
    ]
    return [
        ("search", _search(facts), "" if facts.mode == "hybrid" and facts.lost_notes is None else "warn"),
        ("profile", f"{status.profile}  ({status.profile_origin})", ""),
        ("notes", f"{plural(freshness.total, 'note')} on disk: {', '.join(counts)}", ""),
        (
            "index",
            f"{plural(status.chunks, 'chunk')} in {plural(status.files, 'note')}, "
            f"{status.embedded:,} with a vector, {status.cache.entries:,} cached",
            "",
        ),
        ("vectors", _vectors(facts), ""),
        ("words", facts.text.detail, ""),
        ("provider", _provider(facts), "" if status.who.fine else "warn" if status.who.answers else "bad"),
        ("watcher", *_watched(facts)),
        *(
            [("indexing", f"paused: saved files wait; press {key_of('pause')} to resume", "warn")]
            if status.paused
            else []
        ),
        *([("vanished", facts.shrink, "bad")] if facts.shrink else []),
        *([("indexer", f"{facts.keeper}; this app takes over when it ends", "")] if facts.keeper else []),
        ("notes in", home(status.workspace_dir) + ("  (read-only)" if status.read_only else ""), ""),
        *([("agent", f"{status.agent_id}, of {', '.join(status.agents)}", "")] if len(status.agents) > 1 else []),
        *[(root.state, home(f"{root.detail} {root.next_step}"), "bad") for root in facts.lost if not root.readable],
        ("index file", f"{home(status.db_path)}  ({status.db_bytes / 1e6:.1f} MB)", ""),
        ("config", status.config_path or "none found: defaults", ""),
        *[("notice", f"{notice.message} {notice.next_step}", "warn") for notice in status.notices],
    ]


COVERED = {"fresh": "█", "failed": "×"}
"""Sign of a note's state; ▒ is behind."""


FEW_ANSWERS = 10
"""Questions of which each is named, because shares of so few say nothing."""


def paced(facts: Facts, pace: Pace, progress: IndexingProgress | None) -> list[tuple[str, str, str]]:
    """How far the index has come and how fast it answers: label, words, style."""
    rows: list[tuple[str, str, str]] = []
    if progress is not None and pace.rates:
        left = f", {progress.seconds_left:,.0f} s" if progress.seconds_left is not None else ""
        text = f"{pace.rates[-1]:,.0f} files a second now, {progress.total - progress.done:,} left{left}"
        rows.append(("speed", f"{_line(pace.rates)}  {text}", ""))
    if pace.answered:
        times = sorted(pace.answered)
        middle, late = times[len(times) // 2], times[min(len(times) - 1, len(times) * 95 // 100)]
        text = f"last {len(times)} questions: half under {middle:,.1f} ms, 95 % under {late:,.1f} ms"
        if len(times) < FEW_ANSWERS:
            text = f"last {plural(len(times), 'question')}: {', '.join(f'{row:,.1f}' for row in pace.answered)} ms"
        rows.append(("questions", f"{_line(pace.answered)}  {text}", ""))
    for link in facts.status.links:
        if link.traffic.calls:
            rows += _traffic(link)
    return [*rows, *_coverage(facts)]


def _traffic(link: MemberState) -> Iterator[tuple[str, str, str]]:
    """What a provider was given today and since the app was opened, and what that costs by its list price."""
    where = "nothing left this machine" if not link.host or on_this_machine(link.host) else f"sent to {link.host}"
    yield link.name, f"{where}; today {_counted(link.today, link)}", "warn" if link.today.failed else ""
    if link.today != link.traffic:
        yield "", f"since the app was opened {_counted(link.traffic, link)}", ""


def _counted(traffic: Traffic, link: MemberState) -> str:
    failed = f", {traffic.failed:,} failed" if traffic.failed else ""
    text = f"{plural(traffic.calls, 'call')}{failed}, {plural(traffic.texts, 'text')}, {traffic.bytes / 1000:,.1f} KB"
    if not link.host or on_this_machine(link.host):
        return text
    from memory_tui.providers import registry

    price = registry.price_per_million(link.name, link.model, link.host)
    if price is None:
        return f"{text}, about {plural(traffic.tokens, 'token')}, price unknown"
    usd = price * traffic.tokens / 1e6
    return (
        f"{text}, about {plural(traffic.tokens, 'token')}, {usd:.4f} US dollars by the list of {registry.PRICES_AS_OF}"
    )


def _vectors(facts: Facts) -> str:
    """How many numbers a vector has, and what compares them."""
    return f"{facts.vector.words}, {facts.vector.detail.removeprefix('numpy, ')}"


def _line(values: Sequence[float]) -> str:
    """The last values as blocks."""
    scaled = [max(1, round(value * 100)) for value in list(values)[-30:]]
    return sparkline(scaled, max(scaled))


MONTHS = 12
"""Months of which each day is drawn; older notes are counted."""


def _coverage(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """A row a month with a sign a day, the newest first: its worst note decides; then notes that are of no such day."""
    signs = {state: COVERED.get(state, "▒") for state in {row.state for row in facts.rows}}
    days: dict[tuple[int, int], dict[int, set[str]]] = {}
    for row in facts.rows:
        if row.day is not None:
            days.setdefault((row.day.year, row.day.month), {}).setdefault(row.day.day, set()).add(signs[row.state])
    drawn = sorted(days, reverse=True)[:MONTHS]
    if facts.rows:
        yield "coverage", "█ fresh  ▒ behind  × failed  · no note of this day", ""
    for year, month in drawn:
        reply = days[year, month]
        last = calendar.monthrange(year, month)[1]
        line = "".join(next((sign for sign in "×▒█" if sign in reply.get(day, ())), "·") for day in range(1, last + 1))
        bad = "×" in line or "▒" in line
        yield f"{dt.date(year, month, 1):%b %Y}", line, "warn" if bad else ""
    others = [signs[row.state] for row in facts.rows if row.day is None]
    older = [signs[row.state] for row in facts.rows if row.day and (row.day.year, row.day.month) not in drawn]
    for label, rest in (("older logs", older), ("no day", others)):
        counts = Counter(rest)
        if rest:
            named = (("█", "fresh"), ("▒", "behind"), ("×", "failed"))
            text = ", ".join(f"{counts[sign]:,} {word}" for sign, word in named if counts[sign])
            yield label, f"{plural(len(rest), 'note')}: {text}", "" if set(rest) == {"█"} else "warn"


def home(words: str) -> str:
    """`words` with the user's own folder, wherever it is named, written as ~."""
    return words.replace(f"{Path.home()}/", "~/")


def _search(facts: Facts) -> str:
    lost = facts.lost_notes
    return wording.mode(facts.mode) + (f", in what the index keeps: notes {lost.state}" if lost else "")


def _watched(facts: Facts) -> tuple[str, str]:
    """What is said of the watcher, and the style."""
    detail = facts.status.watch_detail
    if facts.status.watching:
        return ("on", "") if detail in ("on", "") else (f"on, {detail}", "warn")
    cause = "" if detail == "off" else f": {detail}"
    return f"off{cause}; {key_of('look again')} looks for changes, {key_of('pause')} on this row switches it on", "warn"


def _provider(facts: Facts) -> str:
    """Who answers: at length where it is not who was asked for."""
    who, detail = facts.status.who, facts.provider.detail
    if not who.fine:
        return f"{who.sentence} {who.next_step}".rstrip()
    model = "" if who.standing == "off" else facts.model
    return f"{who.label}{model and ', '}{model}{detail and ': '}{detail}"


class Statements(RowList):
    """One statement per row: label and words, wrapped."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = title
        self._said: list[tuple[str, str, str]] = []

    def show(self, statements: Iterable[tuple[str, str, str]]) -> None:
        """Say `statements`: label, words, style."""
        self._said = [(label, one_line(words), style) for label, words, style in statements]
        self.rows_changed(max(0, self.cursor))

    @property
    def label(self) -> str:
        """The label of the statement under the cursor."""
        return self._said[self.cursor][0] if 0 <= self.cursor < len(self._said) else ""

    def count(self) -> int:
        """Statements."""
        return len(self._said)

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the words need."""
        return len(wrapped(self._said[row][1], width - LABEL - 1))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Label and words."""
        label, words, style = self._said[row]
        part = wrapped(words, width - LABEL - 1)[line]
        return [(f" {label if line == 0 else '':<{LABEL - 1}}", "muted"), (part, style)]


class Attention(RowList):
    """Notes that are not, or not wholly, searchable as they are on disk, and paths that are no notes, each with why."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("attention"))
    PLACES: ClassVar[tuple[str, ...]] = ("attention", "list")

    def __init__(self) -> None:
        super().__init__(id="attention")
        self.border_title = "Not indexed as on disk"
        self._rows: list[tuple[str, str, str]] = []
        self._longest = 0

    def show(self, facts: Facts) -> None:
        """List what needs attention; what is left out by rule comes last."""
        key, freshness = self.key, facts.status.freshness
        self._rows = [
            *([("all notes", "unknown", facts.doubt)] if facts.doubt else []),
            *((root.path, root.state, root.detail) for root in facts.lost),
            *((item.path, "failed", item.detail) for item in facts.failed),
            *((item.path, "in part", item.detail) for item in facts.status.in_part),
            *((item.path, item.detail, "waits to be indexed") for item in freshness.pending),
            *((left.path, "left out", left.reason) for left in freshness.left_out),
        ]
        # What has nothing to say leaves its room to the state.
        self.set_class(not self._rows, "-idle")
        counts = [(len(facts.failed), "failed"), (len(freshness.pending), "pending")]
        counts += [(len(facts.status.in_part), "in part"), (len(freshness.left_out), "left out")]
        self.border_subtitle = ", ".join(f"{n:,} {word}" for n, word in counts if n)
        self._longest = max((cell_len(safe(path)) for path, _, _ in self._rows), default=0)
        self.rows_changed(key)

    def count(self) -> int:
        """Rows, or one that says that all is well."""
        return len(self._rows) or 1

    def key_of(self, row: int, /) -> Hashable:
        """The path."""
        return self._rows[row][0] if self._rows else None

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the reason needs."""
        return len(self._reason(row, width)) if self._rows else 1

    def _room(self, width: int) -> int:
        return min(self._longest, (width - 16) // 2)

    def _reason(self, row: int, width: int) -> list[str]:
        return wrapped(one_line(self._rows[row][2]), width - self._room(width) - 15)

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """State, path and reason."""
        if not self._rows:
            return [(" ✓ ", "good"), ("Every note is indexed as it is on disk.", "")]
        path, state, _ = self._rows[row]
        glyph, style = SIGNS.get(state, ("×", "muted"))
        room, reason = self._room(width), self._reason(row, width)[line]
        if line:
            return [(" " * (room + 14), ""), (reason, "muted")]
        return [
            (f" {glyph} ", style),
            (fit(state, 9), style),
            (fit(fit_path(safe(path), room), room), ""),
            (f"  {reason}", "muted"),
        ]


MARGIN = 19
"""Cells of time and kind before the words of an event."""

QUIET = frozenset({"sweep", "interval", "search"})
"""Syncs that come by themselves again and again; those that change nothing are not worth a line."""

_BATCH = {"submitted": "muted", "running": "muted", "done": "good", "failed": "bad"}


def words(event: events.Event) -> tuple[str, str, str] | None:  # noqa: C901
    """An event as (what, about what, style); None for those the truth bar shows."""
    match event:
        case events.SyncStarted() if event.total and event.reason not in QUIET:
            return "sync", f"started ({event.reason}): {plural(event.total, 'file')} to read", "muted"
        case events.FileIndexed():
            embedded = f", {event.embedded:,} embedded" if event.embedded else ""
            return "indexed", f"{event.path}  {plural(event.chunks, 'chunk')}{embedded}", "good"
        case events.FileRemoved():
            return "removed", event.path, "warn"
        case events.FileFailed():
            return "failed", f"{event.path}  {event.reason}", "bad"
        case events.SyncFinished():
            return _finished(event)
        case events.WatchChanged():
            word = "on" if event.on else "off"
            return "watcher", word if event.detail == word else f"{word}: {event.detail}", "" if event.on else "warn"
        case events.ProviderChanged():
            state = "ok" if event.ok else "failed"
            return "provider", f"{event.name} {state}  {event.detail}", "" if event.ok else "bad"
        case events.VectorsMade():
            rest = "" if event.done == event.total else "; the rest is found by its words"
            return "vectors", f"asked for {event.done:,} of {plural(event.total, 'chunk')}{rest}", "muted"
        case events.ModelFetching():
            return "model", f"{event.name}: {event.progress}", "muted"
        case events.BatchNews():
            done = f"{event.done:,} of {plural(event.total, 'text')}"
            return "batch", f"{event.stage}: {done}{event.detail and '  '}{event.detail}", _BATCH[event.stage]
        case events.IndexingPaused():
            return "indexing", "paused" if event.on else "goes on", "warn" if event.on else ""
        case events.LeaderChanged():
            return (
                "keeper",
                "this app keeps the index up to date"
                if event.here
                else f"process {event.pid} keeps the index up to date",
                "",
            )
        case events.RootsChanged():
            return "folders", event.text, "bad" if event.lost else ""
        case events.ShrinkHeld():
            body = f"{event.missing:,} of {event.total:,} notes ({event.reason})"
            return "vanished", f"{body}: kept until you agree", "bad"
        case events.Noticed() | events.BackendChanged():
            return "notice", event.text, "warn"
        case _:
            return None


def _finished(event: events.SyncFinished) -> tuple[str, str, str] | None:
    if event.error:
        return "sync", f"stopped: {event.error}", "bad"
    counts = [(event.indexed, "indexed"), (event.removed, "removed"), (event.failed, "failed")]
    parts = [f"{n:,} {word}" for n, word in counts if n]
    if event.embedded:
        parts.append(f"{plural(event.embedded, 'text')} embedded")
    if not parts and event.reason in QUIET:
        return None
    text = ", ".join(parts) or "nothing changed"
    return "sync", f"finished ({event.reason}): {text}", "muted"


_COUNTING = (events.VectorsMade, events.ModelFetching)
"""Events of which the newest takes the place of the one before."""


class EventLog(RowList):
    """The log; it follows the newest event unless it is held still or the cursor is elsewhere."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("events"))
    PLACES: ClassVar[tuple[str, ...]] = ("events", "list")

    def __init__(self) -> None:
        super().__init__(id="events")
        self._lines: list[tuple[str, str, str, str]] = []
        self.paused = False
        self._waiting: list[events.Event] = []
        self._provider: tuple[str, str, str] | None = None
        self._counting: dict[type[events.Event], int] = {}
        self._title()

    def add(self, news: Sequence[events.Event]) -> None:
        """Append `news`; while held still they wait."""
        if self.paused:
            self._waiting.extend(news)
            self._title()
            return
        follows = self.cursor in (-1, len(self._lines) - 1)
        for event in news:
            text = words(event)
            if isinstance(event, events.ProviderChanged):
                # Told after every sync; only news is worth a line.
                text, self._provider = (None if text == self._provider else text), text
            if text is not None:
                at = datetime.fromtimestamp(event.at).strftime("%H:%M:%S")
                self._write(event, (at, text[0], one_line(text[1]), text[2]))
        dropped = max(0, len(self._lines) - KEPT)
        del self._lines[:dropped]
        self._counting = {kind: at - dropped for kind, at in self._counting.items() if at >= dropped}
        self.rows_changed(len(self._lines) - 1 if follows else max(0, self.cursor - dropped))

    def _write(self, event: events.Event, line: tuple[str, str, str, str]) -> None:
        """A line more; how far the vectors of one sync are, or one download, is one line, which goes on counting."""
        counting = type(event)
        if counting in _COUNTING and (at := self._counting.get(counting)) is not None:
            self._lines[at] = line
        else:
            self._lines.append(line)
        if counting in _COUNTING:
            self._counting.setdefault(counting, len(self._lines) - 1)
        elif isinstance(event, events.SyncFinished):
            self._counting.clear()

    def hold(self) -> str:
        """Hold the log still, or let it run; says which."""
        self.paused = not self.paused
        waiting, self._waiting = self._waiting, []
        if not self.paused:
            self.add(waiting)
        self._title()
        return (
            f"The event log is paused. Press {key_of('pause')} to resume." if self.paused else "The event log is live."
        )

    def _title(self) -> None:
        self.border_title = f"Events (paused, {len(self._waiting)} waiting)" if self.paused else "Events"

    def count(self) -> int:
        """Lines so far."""
        return len(self._lines)

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the words need."""
        about = self._lines[row][2]
        return 1 if len(about) <= width - MARGIN and about.isascii() else len(wrapped(about, width - MARGIN))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Time, what, about what."""
        at, what, about, style = self._lines[row]
        head: list[Piece] = [(f" {at} ", "muted"), (fit(what, 9), style)]
        return [*(head if line == 0 else [(" " * MARGIN, "")]), (wrapped(about, width - MARGIN)[line], "")]
