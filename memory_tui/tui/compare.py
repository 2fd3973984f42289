"""Two rankings of one question: what each sends, in entries of two rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_tui.cancel import Stop
from memory_tui.config.settings import PROFILES, Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.formatting import one_line
from memory_tui.search.rank import Trace, can_rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import ChunkRef
from memory_tui.tui.dialogs import Dialog
from memory_tui.tui.facts import MUTED
from memory_tui.tui.hits import BAR, Row, bar, fit, rows, short_reason
from memory_tui.tui.keys import bindings, named
from memory_tui.tui.knobs import figure, same, under
from memory_tui.tui.rows import Rows
from memory_tui.tui.session import ReadNote
from memory_tui.tui.view import View

MAKE = "make"


@dataclass(frozen=True)
class Side:
    """A ranking under a name; without evidence its own index has to be asked first."""

    name: str
    settings: Settings
    evidence: Evidence | None


@dataclass(frozen=True)
class Pair:
    """A passage, and what each side makes of it; None where it is no candidate there."""

    left: Row | None
    right: Row | None
    unread: bool = False
    """Whether the side that has none reads the note not as memory."""

    @property
    def row(self) -> Row | None:
        """Return the row on the left, else the one on the right."""
        return self.left or self.right

    @property
    def order(self) -> tuple[int, int]:
        """Return what to sort by: the better place that is sent, then that on the left; 1000 is behind every place."""
        sent = [row.place for row in (self.left, self.right) if row is not None and row.sent]
        return min(sent, default=1000), self.left.place if self.left else 1000


def sides(engine: Engine, evidence: Evidence, other: dict[str, Evidence], in_force: Settings) -> list[Side]:
    """Return what the ranking in force can be compared with: the one that the app was opened with, then the profiles.

    A profile that ranks like one before it is left out; those that need another index come last. `other` holds the
    evidence of such indexes by the rules that cut them; a side whose index was not asked has None.
    """
    listed, opened = [in_force], engine.plan.settings
    here, elsewhere = list[Side](), list[Side]()
    if not same(opened, in_force):
        listed.append(opened)
        here.append(Side("as opened", opened, evidence))
    for name, profile in PROFILES.items():
        settings = engine.plan.with_profile(name)
        # Evidence that tells no rules fits those of any profile.
        if not can_rank(evidence, name) or evidence.chunking not in ("", profile.chunking):
            elsewhere.append(Side(profile.title, settings, other.get(profile.chunking)))
        elif not any(same(settings, other_settings) for other_settings in listed):
            here.append(Side(profile.title, settings, evidence))
    return [*here, *elsewhere]


def places(row: Row) -> tuple[ChunkRef, ...]:
    """Return where the text of a passage stands: a copy counts as the passage itself."""
    return row.hit.chunk, *row.hit.copies


def shared_lines(row: Row, other: Row) -> int:
    """Return how many lines two passages share in the place where they share most; 0 or less where they share none."""
    both = ((left, right) for left in places(row) for right in places(other) if left.path == right.path)
    return max((min(a.end_line, b.end_line) - max(a.start_line, b.start_line) + 1 for a, b in both), default=0)


def pairs(left: list[Row], right: list[Row], *, same_index: bool) -> list[Pair]:
    """Return what either side sends, aligned; passages of two indexes where they share most lines of a note."""

    def twin(row: Row, others: list[Row]) -> Row | None:
        """Return the passage of the other side that is the same one; None where none is."""

        def is_of_same_note(other: Row) -> bool:
            """Return whether a passage is of the note of `row`."""
            return other.hit.chunk.path == row.hit.chunk.path

        # One that is sent comes before one that shares more lines.
        def likeness(other: Row) -> tuple[bool, int, bool]:
            """Return how near a passage is to `row`, as a sort key: sent, lines that both have, the same note."""
            return other.sent, shared_lines(row, other), is_of_same_note(other)

        if same_index:
            rowids = {place.rowid for place in places(row)}
            alike = [other for other in others if rowids & {place.rowid for place in places(other)}]
            return max(alike, key=is_of_same_note, default=None)
        return max((other for other in others if shared_lines(row, other) > 0), key=likeness, default=None)

    result = [Pair(row, twin(row, right)) for row in left if row.sent]
    # By identity: equal rows are still two passages.
    paired = {id(pair.right) for pair in result}
    result += [Pair(twin(row, left), row) for row in right if row.sent and id(row) not in paired]
    return sorted(result, key=lambda pair: pair.order)


def drawn(pair: Pair, width: int) -> Content:
    """Return a passage in two rows; only what differs is coloured."""
    if (row := pair.row) is None:
        return Content("")
    # 0 on a side that does not send it.
    left_place, right_place = (side.place if side is not None and side.sent else 0 for side in (pair.left, pair.right))
    left_style, right_style, title_style = "", "", ""
    if bool(left_place) != bool(right_place):
        title_style = "bold"
        left_style, right_style = ("$success", "$error") if left_place else ("$error", "$success")
    elif left_place != right_place:
        right_style = "$warning"
    why = "not read as memory there" if pair.unread else "not found among the nearest"
    left, right = _cell(pair.left, "A", left_style, why), _cell(pair.right, "B", right_style, why)
    title = row.name
    if pair.left and pair.right and pair.left.name != pair.right.name:
        title = f"A {pair.left.name}, B {pair.right.name}"
        # One passage of A may stand in several of B, under one name.
        right += Content.styled(f"  line {pair.right.hit.chunk.start_line} on", MUTED)
    name, half = fit(Content.styled(title, title_style), width - len(row.age) - 3), (width - 3) // 2
    return Content.assemble(" ", name, " ", (row.age, MUTED), " \n   ", fit(left, half), fit(right, half))


def _cell(row: Row | None, name: str, style: str, why: str) -> Content:
    """Return what side `name`, A or B, makes of a passage: its place, score and bar, or why it is not sent, or none."""
    if row is None:
        return Content.assemble(f"{name}   ", (why, style))
    if not row.sent:
        # Only the verdicts of a score that is too low have a floor.
        floor = row.hit.verdict.fields.get("floor")
        score = figure(row.hit.score) if floor is None else under(row.hit.score, floor)
        return Content.assemble(f"{name}  – ", (score, style), f"  {short_reason(row)}")
    place = Content.styled(f"{row.place:>2} {figure(row.hit.score):>3}", f"bold {style}".strip())
    return Content.assemble(f"{name} ", place, "  ", bar(row.sums, BAR, row.scale), "  by variety" * row.varied)


def in_both(every: list[Pair]) -> tuple[int, int]:
    """Return how many passages of the left side, then of the right, the other side sends too.

    The counts differ where one passage covers two of an index that is cut otherwise.
    """
    both = [pair for pair in every if pair.left and pair.right and pair.left.sent and pair.right.sent]
    return len({id(pair.left) for pair in both}), len({id(pair.right) for pair in both})


def head(
    left: Side, right: Side, traces: tuple[Trace, Trace] | None, both: tuple[int, int] = (0, 0)
) -> Iterator[Content]:
    """Yield what is compared, how many of each side `both` send, and by whose vectors each ranks."""
    yield Content.assemble((" A ", "bold reverse"), f" {left.name}   ", (" B ", "bold reverse"), f" {right.name}")
    if traces is None:
        yield Content.styled(f"{right.name} cuts notes into other passages.", "$warning")
        return
    only = [wording.sent_of(trace) - count for trace, count in zip(traces, both, strict=True)]
    a, b = both
    shared = f"Both send {a}" if a == b else f"They cut notes otherwise: {a} of A's passages stand in {b} of B's"
    yield Content(f"{shared}; only A sends {only[0]}, only B {only[1]}.")
    for name, trace in zip("AB", traces, strict=True):
        by, why = wording.answered_by(trace)
        foreign = [notice.message for notice in trace.notices if notice.kind == "other_vectors"]
        if foreign:
            yield Content.styled(f"{name}: {one_line(foreign[0])}", "$warning")
        elif why:
            yield Content.styled(f"{name} {by.replace('vectors', 'meaning')}: {one_line(why)}.", MUTED)
        if any(hit.score < trace.settings.number("query.minScore") for hit in trace.recalled):
            yield Content.styled(f"{name} sends passages below its limit that the words found.", MUTED)


class Sides(Rows):
    """The passages; left and right are keys of the dialog, which a list would take for scrolling."""

    BINDINGS: ClassVar[list[BindingType]] = named("Read", "list.open")
    BINDINGS += named("Ranking before", "knob.less") + named("Next ranking", "knob.more")


class Compare(Dialog[None]):
    """Compares the ranking in force with another one, which left and right change; enter reads a passage."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("knob")
    FOCUS = "#sides"

    def __init__(self, view: View, evidence: Evidence, settings: Settings) -> None:
        super().__init__("Two rankings of your question")
        self.view, self.evidence, self.settings = view, evidence, settings
        self.other = dict[str, Evidence]()
        """What other indexes know, by the rules that cut them."""
        self.number = 0
        """Which of the other rankings is compared; any number, as they go round."""
        self.pairs: list[Pair] = []
        self.stop = Stop()

    def body(self) -> ComposeResult:
        """Return what is compared, and the passages."""
        yield Static("Both rankings are worked out ...", id="head", markup=False)
        yield Sides(id="sides")

    def on_mount(self) -> None:
        """Compare with the first other ranking."""
        self.compare(self.number)

    def on_unmount(self) -> None:
        """Ask no other index any more."""
        self.stop.set()

    def action_step(self, way: int) -> None:
        """Compare with another ranking."""
        self.number += way
        self.compare(self.number)

    @work(thread=True, exclusive=True, group="compare")
    def compare(self, number: int, make: bool = False) -> None:
        """Rank both sides and show them; `number` is that of the right side among the other rankings.

        Where that needs another index, it is asked if it exists or with `make`; else only its name is shown.
        """
        engine = self.view.session.engine
        if engine is None:
            return
        every = sides(engine, self.evidence, self.other, self.settings)
        left = Side(f"{self.settings.profile.title}, in force", self.settings, self.evidence)
        right = every[number % len(every)]
        profile = right.settings.profile
        # The model within the package costs nothing but the moment.
        make = make or self.evidence.provider == "builtin"
        if right.evidence is None and (make or engine.plan.index_cut_by(profile.chunking).exists()):
            answer = self.view.attempt(lambda engine: self.ask(engine, profile.name))
            if answer is not None:
                self.other[profile.chunking] = answer
            right = Side(right.name, right.settings, answer)
        a = engine.search.rank(self.evidence, left.settings)
        traces, aligned = None, list[Pair]()
        if right.evidence is not None:
            b = engine.search.rank(right.evidence, right.settings)
            traces = a, b
            # With all misses: what one side sends may be the last miss of the other.
            listed = [rows(self.evidence, a, len(a.lost)), rows(right.evidence, b, len(b.lost))]
            reads = {*self.evidence.refs.paths}, {*right.evidence.refs.paths}
            for pair in pairs(*listed, same_index=self.evidence is right.evidence):
                is_read = pair.row is None or pair.row.hit.chunk.path in reads[pair.left is not None]
                aligned.append(replace(pair, unread=not is_read))
        # A comparison that was replaced by the next one may end after it.
        if not get_current_worker().is_cancelled:
            self.call_later(self.show, left, right, traces, aligned)

    def ask(self, engine: Engine, profile: str) -> Evidence:
        """Return what the index by the rules of `profile` knows, which is made first. Raises IndexUnavailable."""
        with engine.by_profile(profile, self.stop) as other:
            return other.search.gather(self.evidence.question.query, self.stop, self.evidence.source)

    def show(self, left: Side, right: Side, traces: tuple[Trace, Trace] | None, pairs: list[Pair]) -> None:
        """Show both sides."""
        self.pairs, listing = pairs, self.query_one("#sides", Rows)
        self.query_one("#head", Static).update(Content("\n").join(head(left, right, traces, in_both(pairs))))
        width = max(20, listing.scrollable_content_region.width)
        options = [Option(drawn(pair, width), id=str(number)) for number, pair in enumerate(pairs)]
        if traces is None:
            options = [Option(Content(" enter makes an index by its rules, and asks it"), id=MAKE)]
        listing.refill(options or [Option(Content(" Neither sends anything."), disabled=True)])

    @on(OptionList.OptionSelected)
    def read(self, event: OptionList.OptionSelected) -> None:
        """Read the passage, or make the other index."""
        if event.option.id == MAKE:
            self.query_one("#head", Static).update("The other index is made and asked ...  esc stops")
            self.compare(self.number, make=True)
        elif (pair := self.pairs[event.option_index]).left is None and pair.unread:
            self.notify("The ranking in force does not read this note as memory, so Notes does not show it.")
        elif (row := pair.row) is not None:
            self.dismiss(None)
            self.view.post_message(ReadNote(row.hit.chunk.path, row.line))
