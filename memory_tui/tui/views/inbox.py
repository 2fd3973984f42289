"""View 4 is the inbox: what needs a decision, by cause; the change shows before one key makes it for a whole group."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.worker import Worker, get_current_worker

from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, SyncFinished
from memory_tui.formatting import one_line, plural, safe
from memory_tui.inbox import Action, Findings, Group, Suggestion, checks
from memory_tui.notes.changes import Change
from memory_tui.notes.edit import AppliedChange
from memory_tui.notes.journal import KEEP_DAYS
from memory_tui.tui import changes
from memory_tui.tui.dialogs import Choice
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact, Facts
from memory_tui.tui.first_line import FirstLine
from memory_tui.tui.keys import bindings, named
from memory_tui.tui.note_facts import difference
from memory_tui.tui.session import ReadNote, Session
from memory_tui.tui.view import View, if_answered

_REST_SECONDS, _AGAIN_SECONDS = 0.12, 0.5
"""How long the cursor rests before a change is worked out, and how soon notes are looked through again at least."""
_SHARE = 3.0
"""Looking again by itself waits this many times as long as the last look took: the machine has other things to do."""
_LATER = (("1", "until tomorrow"), ("7", "for a week"), ("30", "for a month"), ("365", "for a year"))
_Decision = Mapping[str, float]
"""Until when (epoch seconds) findings were put off before they were decided about, 0 for not at all, by id."""
_FEW, _MOST = 3, 200
"""Lines of a group that show before it is opened, and of a reason for silence that is."""
_MARKS = {"danger": BAD, "warning": WARN, "hint": MUTED}
QUIET = "quiet"
"""The key of the row that shows what was decided."""
SILENT = "silent"
"""The key of the row that shows what the checks themselves keep silent."""
CHANGES: Mapping[str, str] = {
    "mask": "replace the secret by *** in the note",
    "delete": "move {what} to the trash",
    "trash note": "move the note to the trash",
    "merge": "keep the other one, delete this one",
    "merge other": "keep this one, delete the other one",
    "overtake": "mark the older line as superseded; it stays",
    "demote": "move to a topic note",
    "rename": "rename the note to {to}",
    "archive note": "move the note to the archive",
    "restore": "bring the lines back",
    "convert": "write the note as UTF-8",
}
"""What each action that changes notes does."""
DECISIONS: Mapping[str, str] = {
    "none": "this is harmless; learn that",
    "keep": "leave it as it is, {kept}",
    "snooze": "ask again later",
}
"""What each other action does, with room for how long."""


def effect(action: Action, group: Group) -> str:
    """Return what an action does about a group, in words."""
    first = group.suggestions[0]
    what = f"all of {one_line(str(first.place))}" if len(group.suggestions) == 1 else "these whole lines"
    return {**CHANGES, **DECISIONS}[action].format(what=what, to=one_line(first.new_name), kept=until(math.inf, first))


def listed(groups: Sequence[Group], findings: Findings, hidden: _Decision, unfolded: set[str]) -> Iterator[Fact]:
    """Yield a row a cause and a row a line; a cause of one line is one row.

    What was decided, and what is silent, is counted, and shown where its key is `unfolded`.
    """
    for group in groups:
        mark = _MARKS[checks.BY_KIND[group.kind].severity]
        if len(group.suggestions) == 1:
            words = f"{checks.BY_KIND[group.kind].title}: {line(group.suggestions[0])}"
            yield Fact(words, f"group:{group.id}", mark, most=2)
            continue
        yield Fact(one_line(group.cause.message), f"group:{group.id}", mark, style="bold", most=2)
        items = group.suggestions if group.id in unfolded else group.suggestions[:_FEW]
        yield from (Fact(line(item), f"line:{item.id}", indent=2, most=1) for item in items)
        if len(items) < len(group.suggestions):
            more = f"{len(group.suggestions) - len(items):,} more"
            yield Fact(more, f"more:{group.id}", indent=2, style=MUTED, does="enter shows them")
    if not groups:
        yield Fact("Nothing needs a decision.", mark=GOOD)
    yield from _quiet(findings, hidden, unfolded)


def _quiet(findings: Findings, hidden: Mapping[str, float], unfolded: set[str]) -> Iterator[Fact]:
    """Yield what was decided and what is silent, each as a count that opens, and which checks are off."""

    def does(key: str, what: str = "them") -> str:
        """Return what enter does with the row `key`."""
        return "enter hides them" if key in unfolded else f"enter shows {what}"

    decided = [item for item in findings.suggestions if item.id in hidden]
    silent = sum(findings.quiet.values())
    yield Fact("")
    if decided:
        yield Fact(f"{len(decided):,} kept or put off", QUIET, style=MUTED, does=does(QUIET))
    for item in decided if QUIET in unfolded else ():
        yield Fact(f"{until(hidden[item.id], item)}: {line(item)}", f"line:{item.id}", indent=2, style=MUTED, most=1)
    if silent:
        yield Fact(f"{plural(silent, 'repeat')}, nothing to do", SILENT, style=MUTED, does=does(SILENT, "why"))
    for reason, count in findings.quiet.items() if SILENT in unfolded else ():
        key = f"{SILENT}:{reason}"
        yield Fact(f"{one_line(reason)}: {count:,}", key, indent=2, style=MUTED, does=does(key))
        for item in findings.silent[reason][:_MOST] if key in unfolded else ():
            yield Fact(line(item), indent=4, style=MUTED, most=1)
    for check in checks.CHECKS:
        if check.off:
            state, opposite = ("on", "off") if check.kind in unfolded else ("off", "on")
            yield Fact(f"check “{check.kind}” is {state}", check.kind, style=MUTED, does=f"enter turns it {opposite}")


def row_text(fact: Fact) -> str:
    """Return what a row is that is no finding, how many it counts, and what enter does there."""
    check = checks.BY_KIND.get(fact.key)
    words = f"This looks for what {check.title}. {fact.words}: {check.off}" if check else fact.words
    # `enter shows them` becomes a sentence.
    return safe(f"{words}. E{fact.does[1:]}.") if fact.does else ""


def line(item: Suggestion) -> str:
    """Return where a finding is, and what stands there."""
    return f"{one_line(str(item.place))}  {one_line(item.place.text or item.reason, 200)}"


def is_same(item: Suggestion, other: Suggestion) -> bool:
    """Tell whether two findings are of one kind and about lines that read the same, wherever they stand."""
    return (item.kind, item.place.text) == (other.kind, other.place.text)


def until(end: float, item: Suggestion) -> str:
    """Return how long a finding is left alone."""
    if not math.isinf(end):
        return f"put off until {datetime.fromtimestamp(end):%Y-%m-%d %H:%M}"
    # A decision holds for the lines that were `seen`; about a change in the journal, or all of a note, for good.
    return "kept until it changes" if item.seen and not item.change else "kept for good"


def explained(group: Group, change: Change | str | None, width: int = 0, *, is_quiet: bool = False) -> Content:
    """Return why these lines are listed, what `d` would do, and the difference, or why nothing can be done."""
    first, action = group.suggestions[0], group.proposal
    parts: list[Content | str | tuple[str, str]] = [one_line(group.cause.message)]
    # The difference shows the line that goes, and not one that stays elsewhere.
    is_shown = isinstance(change, Change) and (first.other is None or action in ("merge", "trash note"))
    # A group of several lines shows no place: its lines are listed.
    places = (None if is_shown else first.place, first.other) if len(group.suggestions) == 1 else ()
    for place in filter(None, places):
        parts += ["\n", (one_line(str(place)), MUTED), f"\n{safe(place.text.strip(), keep_newlines=True)}"]
    parts.append("\n\n")
    if is_quiet:
        parts.append("K asks about it again.")
    elif action not in CHANGES:
        parts.append("Nothing is proposed. K keeps it as it is; enter shows what else can be done.")
    else:
        every = f", for all {len(group.suggestions):,}" if len(group.suggestions) > 1 else ""
        parts += [(f"d would {effect(action, group)}{every}\n", "bold"), _shown(change, width)]
        if first.kind == "secret":
            words = f"Only the screen says [secret], not the note. After d the journal keeps it for {KEEP_DAYS} days. "
            parts.append((f"\n\n{words}It may have been read: change the password or key as well.", WARN))
    return Content.assemble(*parts)


def _shown(change: Change | str | None, width: int) -> Content:
    """Return the difference, or why there is no change; None is one that is still worked out."""
    if change is None:
        return Content.styled("Working it out ...", MUTED)
    return Content.styled(one_line(change), WARN) if isinstance(change, str) else difference(change, width)


class Causes(Facts):
    """The groups, of which enter says what can be done."""

    BINDINGS: ClassVar[list[BindingType]] = named("Choose", "list.open")


class InboxView(View):
    """The groups on the left or above, why and what would change beside or below them."""

    NAME = "inbox"
    FOCUS = "#inbox-list"
    BINDINGS: ClassVar[list[BindingType]] = bindings("change", "note.edit")
    BINDINGS += named("Ask again", "change.keep", action="keep(0.0)")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.findings: Findings | None = None
        self.groups: Sequence[Group] = ()
        """The causes of what is neither kept nor put off."""
        self.hidden: dict[str, float] = {}
        """Until when (epoch seconds) findings are kept or put off, by id."""
        self.unfolded: set[str] = set()
        """The keys of the rows that are opened: groups, what is counted, and checks that are off."""
        self.planned: dict[str, Change | str] = {}
        """What would be changed, or why nothing can be, by the ids of the findings."""
        self.steps: list[tuple[str, _Decision]] = []
        """What was done here, the last step last; without words for a change of notes, which the app takes back."""
        self.awaited: Collection[str] = ()
        """The ids of findings that come back, because a step was taken back: the cursor goes to them."""
        self.checking = self.due = False
        """Whether notes changed that were not looked at since, and whether a look at them waits for its time."""
        self.seconds = 0.0
        """How long the last look computed."""
        self.look: Worker[None] | None = None
        """The last look at the notes; what an earlier one finds is dropped."""
        self.begun, self.at_check = time.monotonic(), ""
        """When the view was made, and with it the first look; how far that is, as the end of a sentence."""
        self.beside: Sequence[Suggestion] = ()
        """What stood in notes that a change touched, and was not what it was about."""

    def compose(self) -> ComposeResult:
        """Lay out the causes, and beside or below them why one is listed."""
        with Container(classes="panes"):
            yield Causes(id="inbox-list")
            with VerticalScroll(id="inbox-why"):
                yield Static(id="inbox-text", markup=False)

    def on_mount(self) -> None:
        """Follow the cursor before its paint."""
        self.query_one("#inbox-why").border_title = "Before and after"
        self.watch(self.query_one("#inbox-list", Facts), "highlighted", self.explain, init=False)
        self.set_interval(1.0, self.tell_progress)
        self.draw()

    # --- looking ---------------------------------------------------------------------------------------------------

    def state_changed(self) -> None:
        """Look through the notes once the engine is open; a look that is under way goes on."""
        if self.findings is None and (self.look is None or self.look.is_finished):
            self.examine()

    def events_arrived(self, events: Sequence[Event]) -> None:
        """Look again when the index has followed a change of the notes."""
        if any(isinstance(event, SyncFinished) and (event.indexed or event.removed) for event in events):
            self.checking = True
            self.draw()
            if not self.due:
                # A look that waits is not put off: for a person who keeps writing it would never come.
                self.due = True
                self.set_timer(max(_AGAIN_SECONDS, _SHARE * self.seconds), self.examine)

    def examine(self) -> None:
        """Look through the notes on a worker thread; what was found stays until then."""
        self.due = False
        self.look = self.look_through()

    @work(thread=True, exclusive=True, group="inbox")
    def look_through(self) -> None:
        """Find out what needs a decision, and how long that took; `examined` drops it where another look has begun."""
        worker = get_current_worker()

        def tell(kind: str, done: int, count: int) -> None:
            self.at_check = f": check {done + 1} of {count}, “{checks.BY_KIND[kind].title}”" if kind else ""

        def look(engine: Engine) -> tuple[Findings, dict[str, float], float]:
            """Return the findings, until when each of the hidden ones is hidden, and the seconds it took."""
            begun = time.thread_time()
            # A check that is off looks where its row is unfolded.
            findings = engine.inbox.examine(tell, lambda: worker.is_cancelled, every=True, kinds={*self.unfolded})
            hidden = engine.inbox.decisions.hidden(findings.suggestions, engine.plan.clock())
            return findings, hidden, time.thread_time() - begun

        self.call_later(self.examined, worker, self.attempt(look))

    def tell_progress(self) -> None:
        """Say that the first look goes on, here and beside the name of the view."""
        if self.findings is None and self.look is not None and self.display:
            words = f"Looking through the notes for {time.monotonic() - self.begun:.0f} s{self.at_check}."
            self.query_one("#inbox-list", Facts).show([Fact(words, style=MUTED)])
            self.screen.query_one(FirstLine).show_count(self.NAME, "…")

    def examined(self, look: Worker[None], result: tuple[Findings, dict[str, float], float] | None) -> None:
        """Show what the last look found, and say what went with a change that was about something else."""
        if look is not self.look:
            return
        # What changed while it went on waits for the next one.
        self.checking = self.due
        self.planned.clear()
        if result is not None:
            self.findings, self.hidden, self.seconds = result
            self.tell_beside(result[0])
        self.draw()
        if self.findings is None and self.session.engine is not None:
            # The next state that is read begins another look.
            self.look = None
            self.query_one("#inbox-list", Facts).show([Fact("The notes cannot be read; 3 says why.", mark=BAD)])

    def tell_beside(self, findings: Findings) -> None:
        """Say which findings went with the last change, although it was not about them."""
        if gone := [item for item in self.beside if not any(is_same(item, other) for other in findings.suggestions)]:
            silent = ((reason, row) for reason, rows in findings.silent.items() for row in rows)
            reason = next((f", now among {reason}" for reason, row in silent if is_same(gone[0], row)), "")
            words = f"{plural(len(gone), 'other finding')} went with that change: {gone[0].place}{reason}."
            self.notify(one_line(words, 300), markup=False)
        self.beside = ()

    # --- showing ---------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Show the groups, and count them in the first line."""
        rows = self.query_one("#inbox-list", Facts)
        rows.border_title = "Inbox, checking what changed ..." if self.checking else "Inbox"
        items = self.findings.suggestions if self.findings is not None else ()
        self.groups = checks.grouped(item for item in items if item.id not in self.hidden)
        if self.findings is None or (self.checking and not self.groups):
            rows.show([Fact("Looking through the notes ...", style=MUTED)])
            return
        rows.show(listed(self.groups, self.findings, self.hidden, self.unfolded))
        backs = (group for group in self.groups if any(item.id in self.awaited for item in group.suggestions))
        if back := next(backs, None):
            # One line that came back to others has a row of its own, where that is listed.
            line_row = rows.position(f"line:{min(self.awaited)}") if len(self.awaited) == 1 else None
            rows.highlighted, self.awaited = line_row or rows.position(f"group:{back.id}"), ()
        self.session.decisions = None if self.checking else len(self.groups)
        self.screen.query_one(FirstLine).show_count(self.NAME, "…" if self.checking else len(self.groups))
        self.explain()

    @property
    def chosen(self) -> Group | None:
        """Return the group of the row under the cursor, or its line as a group of one; None on another row."""
        fact = self.query_one("#inbox-list", Facts).fact
        kind, _, name = fact.key.partition(":") if fact is not None else ("", "", "")
        if kind == "line" and self.findings is not None:
            item = next((item for item in self.findings.suggestions if item.id == name), None)
            return Group(item.kind, item.finding, (item,), item.actions) if item is not None else None
        return next((group for group in self.groups if kind == "group" and group.id == name), None)

    def explain(self) -> None:
        """Show why the row is listed, and what would change, which is worked out when the cursor rests."""
        group, text = self.chosen, self.query_one("#inbox-text", Static)
        self.refresh_bindings()
        if group is None:
            text.update(row_text(self.query_one("#inbox-list", Facts).fact or Fact("")))
            return
        # Planned changes are kept by the findings that they are about.
        key = "".join(item.id for item in group.suggestions)
        change = self.planned.get(key)
        pane, is_quiet = self.query_one("#inbox-why"), group.suggestions[0].id in self.hidden
        text.update(explained(group, change, pane.scrollable_content_region.width, is_quiet=is_quiet))
        pane.scroll_home(animate=False)
        if change is None and group.proposal in CHANGES:
            self.work_out(key, group)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of findings are there where one is under the cursor; `d` where a change is proposed."""
        group = self.chosen
        if action not in {"do", "keep", "later", "edit"}:
            return super().check_action(action, parameters)
        if group is None:
            return False
        if action == "keep":
            # "Ask again" is the action with a parameter, "Keep" the one without.
            is_hidden = group.suggestions[0].id in self.hidden
            return is_hidden if parameters else not is_hidden
        return action != "do" or group.proposal in CHANGES

    @work(thread=True, exclusive=True, group="proposal")
    def work_out(self, key: str, group: Group) -> None:
        """Find out what the change would be, once the cursor rests."""
        worker, engine = get_current_worker(), self.session.engine
        # A rest that the end of the engine cuts short.
        if engine is None or engine.index.writer.closing.wait(_REST_SECONDS) or worker.is_cancelled:
            return
        try:
            outcome: Change | str = checks.changes(group.suggestions, group.proposal, engine.notes.curator)
        except MemoryTuiError as error:
            outcome = f"{error.message} {error.next_step}"
        self.planned[key] = outcome
        self.call_later(self.explain)

    # --- acting ----------------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected, "#inbox-list")
    async def selected(self, event: OptionList.OptionSelected) -> None:
        """Open what is counted, or offer what can be done about a group or a line."""
        key, group = event.option.id or "", self.chosen
        if group is not None:
            await self.offer(group)
        elif key:
            self.unfold(key.removeprefix("more:"))
            if key in checks.BY_KIND:
                self.examine()

    def unfold(self, key: str) -> None:
        """Show what a row counts, its beginning in sight, or hide it."""
        self.unfolded ^= {key}
        self.draw()
        if key in self.unfolded:
            self.call_after_refresh(self.query_one("#inbox-list", Facts).scroll_to_highlight, top=True)

    async def offer(self, group: Group) -> None:
        """Let a person choose what is done about a group or a line."""
        first, count = group.suggestions[0], len(group.suggestions)
        offers: list[tuple[str, str]] = [(action, effect(action, group)) for action in group.actions]
        if first.id in self.hidden:
            offers = [("open", "ask about it again")]
        title = one_line(str(first.place)) if count == 1 else plural(count, "finding")
        every = "show fewer" if group.id in self.unfolded else f"show all {count:,}"
        offers.append(("read", "read the note there") if count == 1 else ("lines", every))

        deeds: dict[str, Callable[[], object]] = {
            **{action: partial(self.propose, group, action) for action in group.actions},
            "none": partial(self.decide, group, math.inf, none=True),
            "keep": partial(self.decide, group, math.inf),
            "snooze": self.action_later,
            "open": partial(self.decide, group, 0.0),
            "read": partial(self.post_message, ReadNote(first.place.path, first.place.first)),
            "lines": partial(self.unfold, group.id),
        }
        dialog = Choice(title, offers, one_line(group.cause.message))
        await self.app.push_screen(dialog, if_answered(lambda choice: deeds[choice]()))

    async def action_do(self) -> None:
        """Show the proposed change of the row or the group, and make it where that is agreed to."""
        if group := self.chosen:
            await self.propose(group, group.proposal)

    async def propose(self, group: Group, action: Action) -> None:
        """Show a change, and make it where that is agreed to."""
        plan = partial(checks.changes, group.suggestions, action)
        await changes.propose(self, plan, then=partial(self.changed, group))

    def changed(self, group: Group, applied: AppliedChange) -> None:
        """Remember that a change of notes was the last step; list no more what stands in notes that it changed."""
        self.steps.append(("", {item.id: 0.0 for item in group.suggestions}))
        # A person waits for what the change did, so the next look does not wait for the last one's length.
        self.seconds = 0.0
        paths = {file.path for file in applied.change.files}
        if self.findings is not None:
            every = self.findings.suggestions
            listed = [item for item in every if not paths & {item.place.path, (item.other or item.place).path}]
            explained_ids = {item.id for item in (*listed, *group.suggestions)}
            # Neither still listed nor what the change was about: of these `tell_beside` says whether they went.
            self.beside = [item for item in every if item.id not in explained_ids]
            self.findings = replace(self.findings, groups=tuple(checks.grouped(listed)))
            self.draw()

    def notes_changed(self) -> None:
        """Look again at once: the index follows later."""
        self.checking = True
        self.planned.clear()
        self.draw()
        self.examine()

    def action_edit(self) -> None:
        """Read the note at the line, where it can be edited."""
        if group := self.chosen:
            self.post_message(ReadNote(group.suggestions[0].place.path, group.suggestions[0].place.first))

    def action_keep(self, end: float = math.inf) -> None:
        """Leave the row or the group alone until `end`, for good without one; 0 asks about it again."""
        if group := self.chosen:
            self.decide(group, end)

    async def action_later(self) -> None:
        """Put the row or the group off."""
        group, engine = self.chosen, self.session.engine
        if group is not None and engine is not None:
            put_off = if_answered(lambda days: self.decide(group, engine.plan.clock() + float(days) * 86_400.0))
            await self.app.push_screen(Choice("Ask again", _LATER), put_off)

    def decide(self, group: Group, end: float, *, none: bool = False) -> None:
        """Leave findings alone until `end`, for good where it is infinite, open again where it is 0.

        With `none` they are harmless, which is learnt.
        """
        ends = {item.id: end for item in group.suggestions}
        became = "taken for none" if none else until(end, group.suggestions[0]) if end else "open again"
        words = f"{plural(len(ends), 'finding')} {became}"
        put = partial(self.put, ends=ends, words=f"{words}; u takes it back.", none=none)
        self.perform(put, lambda: self.record(words, ends, none=none))

    def record(self, words: str, ends: _Decision, *, none: bool) -> None:
        """Remember what was done and how findings were put off before, and show them where they belong now."""
        self.steps.append((words, {id_: self.hidden.get(id_, 0.0) for id_ in ends}))
        self.hide(ends, again=none)

    def put(self, engine: Engine, ends: _Decision, words: str, *, none: bool = False) -> str:
        """Write down until when findings are left alone, and return `words`, which say so. Raises EditRefused."""
        decisions = engine.inbox.decisions
        findings = {item.id: item for item in self.findings.suggestions} if self.findings is not None else {}
        for id_, end in ends.items():
            if end == 0:
                decisions.reopen(id_)
            elif none:
                decisions.none(findings[id_])
            elif math.isinf(end):
                decisions.keep(findings[id_])
            else:
                decisions.snooze(findings[id_], end)
        return words

    def hide(self, ends: _Decision, *, again: bool) -> None:
        """Show findings where they belong with their new `ends`; with `again` look through the notes, too."""
        self.hidden = {id_: end for id_, end in {**self.hidden, **ends}.items() if end}
        self.draw()
        if again:
            self.examine()

    def undo(self) -> bool:
        """Take the last decision back; a change of notes is the app's to take back."""
        words, ends = self.steps.pop() if self.steps else ("", {})
        self.awaited = ends.keys()
        if not words:
            return False
        put = partial(self.put, ends=ends, words=f"You took back {words}.")
        self.perform(put, partial(self.hide, ends, again=True))
        return True


VIEW = InboxView
