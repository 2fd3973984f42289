"""Status bars stand in every view. Tabs and the truth bar are above, key hints below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from memory_tui.explain import wording
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line
from memory_tui.tui.action import Action, Context
from memory_tui.tui.draw import fit_path, wrapped
from memory_tui.tui.key_meanings import MEANINGS, PREFIXES, key_of
from memory_tui.tui.keymap import LAST, hints
from memory_tui.tui.navigation import NUMBERED, NumberedView
from memory_tui.tui.state import Facts
from memory_tui.tui.widgets.first_steps import FirstSteps


class BarStatement(Struct, frozen=True):
    """A statement in a long and a short form; those of low `weight` are shortened, then dropped, first."""

    long: str
    short: str
    weight: int
    style: str = ""


class IndexingProgress(Struct, frozen=True):
    """How far a sync is; `rate` in files a second, `seconds_left` None before there is an estimate.

    `rebuilding` tells that the old index answers until the new one is whole. Of `lacking` chunks, which are found by
    their words already, the provider was asked for `asked`, at a `pace` in words. `fetching` says which model is
    downloaded, and how far that is.
    """

    done: int = 0
    total: int = 0
    path: str = ""
    rate: float = 0.0
    seconds_left: float | None = None
    rebuilding: bool = False
    asked: int = 0
    lacking: int = 0
    pace: str = ""
    fetching: str = ""


DROPPED_LATER = 30
"""By how much weight a statement outlives being shortened."""


LOST: Mapping[str, tuple[str, str]] = {
    "keywords only": ("meaning-based recall is off", "no search by meaning"),
    "vectors only": ("keyword search is off", "no search by words"),
}
"""What a reduced mode cannot do, at length and in short."""


def opening(name: str) -> list[BarStatement]:
    """What is said while the index is being opened."""
    return [BarStatement(" OPENING ", " OPENING ", 99, "$body on $panel"), BarStatement(name, name, 50)]


def statements(facts: Facts, progress: IndexingProgress | None) -> list[BarStatement]:
    """Every statement of the truth bar, in order."""
    parts = [*_backend(facts), *_mode_beside(facts, progress), *_lost(facts)]
    if facts.doubt:
        doubt = f"as last known: {one_line(facts.doubt, 80)}"
        parts.append(BarStatement(doubt, "as last known", 92, "$bad"))
    return [*parts, *_working(progress), *_amiss(facts, progress), *_counted(facts, progress), *_means(facts)]


def _mode_beside(facts: Facts, progress: IndexingProgress | None) -> list[BarStatement]:
    """What searches of the index go by; while QMD answers that means nothing, but what happens to notes does."""
    usual = progress is None and facts.lost_notes is None
    return (
        [] if usual and facts.status.custom is not None and facts.status.backend == "qmd" else [_mode(facts, progress)]
    )


def _backend(facts: Facts) -> Iterator[BarStatement]:
    """Who answers, where QMD was chosen; where it fails, what follows is about the index that stands in for it."""
    status = facts.status
    if status.custom is None:
        return
    if status.backend == "qmd":
        behind = status.backend_state.removeprefix("qmd").lstrip(", ")
        colour = "$warn-ground" if behind else "$good-ground"
        yield BarStatement(f" QMD {behind}".rstrip() + " ", " QMD ", 99, f"bold $body on {colour}")
        return
    yield BarStatement(" NOT QMD ", " NOT QMD ", 99, "bold $body on $warn-ground")
    yield BarStatement(one_line(status.backend_state, 100), one_line(status.backend_state, 32), 93, "$warn")


def _working(progress: IndexingProgress | None) -> Iterator[BarStatement]:
    """How far indexing is."""
    if progress is None:
        return
    yield BarStatement(fit_path(one_line(progress.path), 40), "", 30, "$quiet")
    if left := _left(progress):
        yield BarStatement(left, left.rpartition(", ")[2], 60, "$quiet")
    if progress.lacking and progress.total:
        query, lacking = f"{progress.asked:,}", f"{progress.lacking:,}"
        yield BarStatement(f"vectors for {query} of {lacking} chunks", f"vectors {query}/{lacking}", 72, "$quiet")
        if progress.pace:
            yield BarStatement(progress.pace, progress.pace.rpartition(", ")[2], 61, "$quiet")
    if progress.fetching:
        yield BarStatement(f"fetching {one_line(progress.fetching, 60)}", "fetching a model", 73, "$quiet")


def _amiss(facts: Facts, progress: IndexingProgress | None) -> Iterator[BarStatement]:
    """What is otherwise than a person may expect."""
    status, provider = facts.status, facts.provider
    if status.paused:
        yield BarStatement(
            f"indexing paused; press {key_of('view 3')}, then {key_of('pause')} to resume", "paused", 88, "$warn"
        )
    if facts.shrink:
        yield BarStatement(facts.shrink.partition(":")[0], "notes vanished", 87, "$bad")
    if facts.index_moved:
        moved = f"index in a temporary place, {fit_path(one_line(status.db_path), 40)}"
        yield BarStatement(moved, "temporary index", 81, "$warn")
    if facts.keeper:
        yield BarStatement(f"indexed by {facts.keeper}", "indexed elsewhere", 38, "$quiet")
    if not provider.ok:
        yield BarStatement(
            one_line(status.who.line, 110), one_line(status.who.line, 56), 84, "$warn" if status.who.answers else "$bad"
        )
    # While the first vectors are made nothing is lost; what the provider cannot do stands before it.
    if facts.mode in LOST and status.chunks and progress is None:
        yield BarStatement(*LOST[facts.mode], 83, "$warn")


def _counted(facts: Facts, progress: IndexingProgress | None) -> Iterator[BarStatement]:
    """What the index holds, and what it does not hold yet."""
    status = facts.status
    there = f"{plural(status.chunks, 'chunk')} in {plural(status.files, 'note')}"
    if facts.lost_notes is not None:
        there = f"the index keeps {there}"
    yield BarStatement(there, plural(status.chunks, "chunk"), 75)
    if status.freshness.pending and progress is None and not _stale(facts):
        pending = f"{len(status.freshness.pending)} behind"
        yield BarStatement(pending, pending, 85, "$warn")
    if facts.failed and facts.lost_notes is None:
        yield BarStatement(f"{len(facts.failed)} failed", f"{len(facts.failed)} failed", 86, "$bad")
    seen = not (facts.doubt or facts.lost_notes or facts.failed or facts.shrink)
    if seen and status.chunks and progress is None and not status.freshness.pending:
        yield BarStatement("fresh", "fresh", 79, "$good")


def _means(facts: Facts) -> Iterator[BarStatement]:
    """By what means notes are searched, watched, ranked."""
    status = facts.status
    for health, weight in ((facts.vector, 40), (facts.text, 35)):
        style = "$quiet" if health.ok else "$bad"
        short = health.words if health.ok else f"{health.words}: {one_line(health.detail, 24)}"
        yield BarStatement(short, short, weight if health.ok else 82, style)
    if facts.provider.ok:
        yield BarStatement(facts.provider.words, facts.provider.words, 45, "$quiet")
    yield _watch(facts)
    if len(status.agents) > 1:
        agent = f"agent {status.agent_id}"
        yield BarStatement(f"{agent} in {Path(status.workspace_dir).name}", agent, 80)
    if status.read_only:
        yield BarStatement("read-only", "read-only", 76, "$warn")
    yield _ranked(facts)


def _ranked(facts: Facts) -> BarStatement:
    """The profile on screen, and what connected agents get: the same ranking, or another one."""
    profile = f"profile {facts.status.profile}"
    other = next((agent for agent in facts.agents if agent.differing), None)
    if other is None:
        titles = " and ".join(dict.fromkeys(agent.title for agent in facts.agents))
        return BarStatement(f"{profile}, as {titles} gets" if titles else profile, profile, 70, "$mark")
    gets = f"{other.title} gets profile {other.profile}"
    if other.profile == facts.status.profile:
        gets = f"{other.title} gets other results: {other.difference} differ"
    # So short that it stands beside the tabs of 80 columns.
    return BarStatement(f"{profile}; {gets}", "agent differs", 84, "$warn")


WORDS: Mapping[str, tuple[str, str]] = {
    "gone": ("NOTES GONE", "gone"),
    "unreadable": ("NOTES UNREADABLE", "unreadable"),
    "another device": ("NOTES ON ANOTHER DEVICE", "on another device"),
    "watcher stalled": ("", "watcher stalled"),
}
"""What is said of a root: of the workspace in place of what searches go by, and of any root after its name."""


def _lost(facts: Facts) -> list[BarStatement]:
    """What is to be said of roots; a watcher that stalled is said once, for all of them."""
    lost = [root for root in facts.lost if not root.readable]
    if not lost:
        return []
    if lost[0].main:
        return [BarStatement(one_line(lost[0].detail), fit_path(one_line(lost[0].absolute), 30), 91, "$bad")]
    named = [f"{fit_path(one_line(root.path), 30)} {WORDS[root.state][1]}" for root in lost]
    short = named[0] + (f" and {len(named) - 1} more" if len(named) > 1 else "")
    return [BarStatement(", ".join(named), short, 91, "$bad")]


def _watch(facts: Facts) -> BarStatement:
    """Whether saved files are noticed, and how."""
    if stalled := next((root for root in facts.lost if root.state == "watcher stalled"), None):
        return BarStatement(f"watcher stalled: {one_line(stalled.detail, 80)}", "watcher stalled", 89, "$bad")
    if not facts.status.watching:
        return BarStatement("not watching", "not watching", 80, "$warn")
    if facts.status.watch_detail in ("on", ""):
        return BarStatement("watching", "watching", 42, "$quiet")
    why = one_line(facts.status.watch_detail.removeprefix("polling "), 60)
    return BarStatement(f"watching by polling: {why}", "watching by polling", 77, "$warn")


def _left(progress: IndexingProgress) -> str:
    """`45 files a second, 20 s left`; only for work that takes a while."""
    seconds = progress.seconds_left
    if seconds is None or seconds < 2:
        return ""
    left = f"{seconds:,.0f} s left" if seconds < 120 else f"{seconds / 60:,.0f} min left"
    return f"{progress.rate:,.0f} files a second, {left}"


def _stale(facts: Facts) -> bool:
    return bool(facts.status.freshness.pending) and not facts.status.watching


def _mode(facts: Facts, progress: IndexingProgress | None) -> BarStatement:
    if (lost := facts.lost_notes) is not None:
        text = f" {WORDS[lost.state][0]} "
        return BarStatement(text, text, 99, "bold $body on $bad-ground")
    if progress is not None:
        word = "REBUILDING" if progress.rebuilding else "INDEXING"
        text = (
            f" {word} {progress.done}/{progress.total} "
            if progress.total
            else f" VECTORS {progress.asked:,}/{progress.lacking:,} "
        )
        return BarStatement(text, text, 99, "bold $body on $busy-ground")
    # What searches would go by means nothing while nothing is indexed.
    empty = not facts.status.chunks and facts.status.freshness.total
    if facts.mode in ("keywords only", "vectors only") and not empty:
        word = wording.mode(facts.mode)
        return BarStatement(f" {word} ", f" {word} ", 99, "bold $body on $warn-ground")
    if _stale(facts):
        text = f" STALE  {plural(len(facts.status.freshness.pending), 'file')} changed, r indexes "
        return BarStatement(text, text, 99, "bold $body on $warn-ground")
    if empty:
        return BarStatement(" NOTHING INDEXED ", " NOTHING INDEXED ", 99, "bold $body on $warn-ground")
    if facts.mode == "nothing":
        return BarStatement(" NO SEARCH ", " NO SEARCH ", 99, "bold $body on $bad-ground")
    colour = "$warn-ground" if facts.lost or facts.doubt else "$good-ground"
    return BarStatement(f" {wording.mode(facts.mode)} ", f" {wording.mode(facts.mode)} ", 99, f"bold $body on {colour}")


def fitted(parts: Sequence[BarStatement], width: int) -> list[tuple[str, str]]:
    """(text, style) of the statements that fit `width` cells, two blanks apart; the weightiest always stay."""
    drawn = {i: part.long for i, part in enumerate(parts)}
    steps = sorted(
        [(part.weight, i, part.short) for i, part in enumerate(parts)]
        + [(part.weight + DROPPED_LATER, i, "") for i, part in enumerate(parts)]
    )

    def length() -> int:
        texts = [text for text in drawn.values() if text]
        return sum(map(cell_len, texts)) + 2 * (len(texts) - 1) + 1

    for _, i, text in steps:
        if length() <= width:
            break
        drawn[i] = text
    return [(text, parts[i].style) for i, text in drawn.items() if text]


LETTERS = 80
"""Cells of the screen below which a tab is its number with the first letter."""


class TabLine(Widget):
    """The tabs of the numbered views, the one in front reversed; a click goes there."""

    def __init__(self) -> None:
        super().__init__()
        self._front = ""
        self._badges: Mapping[str, str] = {}

    def show(self, front: str, badges: Mapping[str, str]) -> None:
        """Mark the tab of the mode `front`, and put `badges` beside their tabs."""
        if (front, badges) != (self._front, self._badges):
            self._front, self._badges = front, dict(badges)
            self.refresh(layout=True)

    def _tabs(self) -> list[tuple[str, str]]:
        """The keys and texts of the tabs."""
        short = self.app.size.width < LETTERS
        return [(row.key, self._text(row, short=short)) for row in NUMBERED]

    def _text(self, row: NumberedView, *, short: bool) -> str:
        badge = self._badges.get(row.key, "")
        if short:
            return f" {row.keys}{row.label[0]}{badge} "
        return f" {row.keys} {row.label}{badge and ' '}{badge} "

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as the tabs."""
        del container, viewport
        return sum(cell_len(text) for _, text in self._tabs())

    def render(self) -> Content:
        """The tabs side by side."""
        return Content.assemble(*[(text, "bold reverse" if key == self._front else "") for key, text in self._tabs()])

    async def on_click(self, event: events.Click) -> None:
        """Go to the view of the tab."""
        left = 0
        for key, text in self._tabs():
            left += cell_len(text)
            if event.x < left:
                await self.app.run_action(f"do('{key}')")
                return


class TruthBar(Widget):
    """One line; a click opens the index view, which shows the same in full."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._parts = opening(name)

    def show(self, facts: Facts | None, progress: IndexingProgress | None) -> None:
        """Say what `facts` are; nothing changes before the first ones."""
        if facts is not None and (parts := statements(facts, progress)) != self._parts:
            self._parts = parts
            self.refresh()

    def render(self) -> Content:
        """The statements that fit."""
        pieces = fitted(self._parts, self.size.width)
        blank = ("  ", "")
        return Content.assemble(*[piece for pair in pieces for piece in (pair, blank)])

    async def on_click(self, event: events.Click) -> None:
        """Open what the line reports."""
        event.stop()
        await self.app.run_action("do('index')")


SECONDS = 3.0


class KeyHints(Widget):
    """Clickable key hints; an action that cannot be done now is dim. A sentence covers them for a moment."""

    def __init__(self) -> None:
        super().__init__()
        self._places: tuple[str, ...] = ()
        self._actions: list[tuple[str, Action]] = []
        self._situation = Context()
        self._dialog: Sequence[tuple[str, str]] | None = None
        self._message = self._standing = ""
        self._timer: Timer | None = None

    def cover(self, dialog: Sequence[tuple[str, str]] | None) -> None:
        """Hint at the keys of a `dialog`, because those of the view behind it do nothing then; None ends that."""
        if dialog != self._dialog:
            self._dialog = dialog
            self._redraw()

    def show(self, places: Sequence[str], context: Context) -> None:
        """Hint at the keys of `places`, nearest first."""
        if (where := tuple(places)) != self._places or context != self._situation:
            now = context.hints
            self._places = where
            actions = [(key, replace(row, hint=now.get(row.id, row.hint))) for key, row in hints(where)]
            if (actions, context) != (self._actions, self._situation):
                self._actions, self._situation = actions, context
                self.refresh()

    def show_message(self, sentence: str) -> None:
        """Show `sentence` for three seconds a line."""
        self._message = one_line(sentence)
        if self._timer is not None:
            self._timer.stop()
        lines = len(wrapped(self._message, max(8, self.size.width - 2)))
        self._timer = self.set_timer(SECONDS * max(1, lines), self._unsay)
        self._redraw()

    def stand(self, sentence: str) -> None:
        """Show `sentence` until it is another one, or an empty one; what `show_message` says covers it for a moment."""
        if sentence or self._standing:
            self._standing = one_line(sentence)
            self._redraw()

    def _unsay(self) -> None:
        self._message = ""
        self._redraw()

    def _redraw(self) -> None:
        """Draw the line anew; the panes give way only to a sentence of more lines."""
        self.refresh(layout=self.get_content_height(self.size, self.size, self.size.width) != self.size.height)

    @property
    def message(self) -> str:
        """The sentence shown now, if any."""
        return self._message or (self._standing if self._dialog is None else "")

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line of hints; as many as a sentence needs."""
        del container, viewport
        return len(wrapped(self.message, max(8, width - 2))) if self.message else 1

    def render(self) -> Content:
        """The sentence, or as many hints as fit."""
        if self.message:
            lines = wrapped(self.message, max(8, self.size.width - 2))
            return Content.styled("\n".join(f" {line}" for line in lines), "bold $body on $warn-ground")
        if self._dialog is not None:
            drawn = [(f" {key}", f" {word} ") for key, word in self._dialog]
            while sum(len(key) + len(word) for key, word in drawn) > self.size.width and len(drawn) > 1:
                del drawn[-2]
            return Content.assemble(*[piece for key, word in drawn for piece in ((key, "bold $key"), word)])
        parts: list[Content] = []
        for key, action in self._kept():
            off = bool(action.refuse(self._situation))
            parts.append(
                Content.assemble(
                    (f" {key}", "$faint" if off else "bold $key"), " ", (f"{action.hint} ", "$faint" if off else "")
                )
            )
        return Content("").join(parts)

    def _kept(self) -> list[tuple[str, Action]]:
        """The hints that fit. What cannot be done now gives way first, then those before the last ones, from the right.

        Without colour nothing is dim, so only what can be done is hinted at.
        """
        plain = self.app.no_color
        rest = [row for row in self._actions if not (plain and row[1].refuse(self._situation))]
        while sum(map(_width, rest)) > self.size.width:
            near = [i for i, (_, action) in enumerate(rest) if action.id not in LAST]
            if not near:
                break
            refused = [i for i in near if rest[i][1].refuse(self._situation)]
            del rest[(refused or near)[-1]]
        return rest

    async def on_click(self, event: events.Click) -> None:
        """Do what the hint under the mouse says."""
        left = 0
        for hint in self._kept():
            left += _width(hint)
            if event.x < left:
                await self.app.run_action(f"do('{hint[1].id}')")
                return


def _width(hint: tuple[str, Action]) -> int:
    key, action = hint
    return len(key) + len(action.hint) + 3


WAIT_SECONDS = 0.4
"""How long a prefix waits before it lists what may follow."""


class WhichKey(Widget):
    """What may follow a prefix, listed when the second letter does not come at once."""

    def __init__(self) -> None:
        super().__init__()
        self.display = False
        self._prefix = ""
        self._found: Mapping[str, Action] = {}
        self._situation = Context()
        self._timer: Timer | None = None

    def wait(self, prefix: str, found: Mapping[str, Action], context: Context) -> None:
        """List `found`, second letter -> action, in a moment."""
        self.leave()
        self._prefix, self._found, self._situation = prefix, found, context
        self._timer = self.set_timer(WAIT_SECONDS, self._list)

    def _list(self) -> None:
        # A timer that ran out calls back a message later: the second letter may have come meanwhile.
        if self._prefix:
            self.border_title = f"{self._prefix}  {PREFIXES[self._prefix]} ..."
            self.display = True
            self.refresh(layout=True)

    def leave(self) -> str:
        """Take the list away, for good; returns the prefix that waited, empty without one."""
        if self._timer is not None:
            self._timer.stop()
        self.display = False
        prefix, self._prefix = self._prefix, ""
        return prefix

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A line an action."""
        del container, viewport, width
        return max(1, len(self._found))

    def render(self) -> Content:
        """Second letters with what they do; what cannot be done now is dim."""
        lines = []
        for letter, action in self._found.items():
            off = bool(action.refuse(self._situation))
            words = (MEANINGS[action.meaning].words, "$faint" if off else "")
            lines.append(Content.assemble((f" {letter}  ", "$faint" if off else "bold $key"), words))
        return Content("\n").join(lines) if lines else Content(" nothing here")

    def on_click(self, event: events.Click) -> None:
        """Take the letter of the line that is clicked, as if it were typed."""
        at, letters = event.get_content_offset(self), list(self._found)
        if at is not None and at.y < len(letters):
            self.app.post_message(events.Key(letters[at.y], letters[at.y]))


STEP_STYLES = {"key": "bold $key", "": ""}
LOW = 30
"""Rows of a screen from which a step says why, too."""


class StepsPane(Widget):
    """The step that somebody new should do now, below the view; nothing where nobody is led."""

    def __init__(self) -> None:
        super().__init__()
        self.display = False
        self._steps: FirstSteps | None = None

    def show(self, steps: FirstSteps | None) -> None:
        """Show the step of `steps`; nothing without any."""
        if steps != self._steps:
            self._steps = steps
            self.display = steps is not None
            self.border_title = steps.head() if steps is not None else ""
            self.refresh(layout=True)

    def _lines(self, width: int) -> list[tuple[str, str]]:
        lines = self._steps.lines(low=self.app.size.height < LOW) if self._steps is not None else []
        return [(part, role) for text, role in lines for part in wrapped(text, max(8, width))]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the step needs."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """Why, and how."""
        lines = self._lines(self.size.width or self.app.size.width)
        return Content("\n").join(Content.styled(text, STEP_STYLES[role]) for text, role in lines)


NEEDED = (60, 20)


class TooSmall(Widget):
    """One sentence with the size needed and the size there is, the short side marked."""

    def render(self) -> Content:
        """The sentence."""
        width, height = self.app.size
        need_width, need_height = NEEDED

        def side(there: int, needed: int) -> tuple[str, str]:
            return (str(there), "bold reverse $bad" if there < needed else "bold")

        return Content.assemble(
            f"memory-tui needs {need_width}x{need_height}; this terminal is ",
            side(width, need_width),
            "x",
            side(height, need_height),
            ".",
        )
