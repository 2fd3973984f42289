"""The state of a workspace in sentences: three lamps, what happened; the page of doctor."""

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from memory_tui import events
from memory_tui.approval import Approval
from memory_tui.config.settings import profile_named
from memory_tui.doctor import Result, checks_of, examine
from memory_tui.engine.engine import Engine
from memory_tui.engine.sending import Forecast
from memory_tui.engine.status import Status
from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import minute, one_line, plural
from memory_tui.providers.chain import MemberState
from memory_tui.providers.registry import SMALL, SMALL_COST
from memory_tui.shared import Standing
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact
from memory_tui.tui.first_line import answers, freshness
from memory_tui.tui.session import Session

_SHOWN = 20
"""Notes that a lamp lists; more of them are counted."""
_LINKS = {"in use": GOOD, "waiting": MUTED, "passed over": MUTED, "failing": BAD, "paused": BAD, "given up": BAD}
_QUIET = frozenset({"sweep", "interval", "search", "start", "watch"})
"""Reasons of syncs that come by themselves; one that changed nothing is no news."""
_NEWS = 60
"""Events that are listed."""


# --- answered by ---------------------------------------------------------------------------------------------------


def answered_by(status: Status) -> Fact:
    """Return the lamp that says who answers."""
    who, (fine, words) = status.who, answers(status)
    # Where another one answers than was asked for, what it stands in for takes the place of its model.
    model = " ".join(filter(None, (who.answers, who.model if fine else "")))
    lost = who.fallback.source if who.fallback else who.requested
    text = f"{words}{model and ': '}{model}{'' if fine else f' instead of {lost}: {who.cause or who.standing}'}"
    return Fact(one_line(text), "lamp:answers", GOOD if fine else WARN, "answered by", style="bold")


def behind_answers(status: Status, approvals: Sequence[Approval] = ()) -> Iterator[Fact]:
    """Yield who answers instead of whom, why, each provider that was looked at, and who may get the notes."""
    who = status.who
    if not who.fine or who.standing != "ok":
        yield Fact(one_line(f"{who.sentence} {who.next_step}"), indent=2, style="" if who.fine else WARN)
    if who.retry_at:
        yield Fact(f"It is asked again at {minute(who.retry_at)}.", "retry", indent=2, does="enter asks it now")
    chosen = f"{status.requested_provider} ({status.provider_origin})"
    words = "none by name; the first that can be used answers" if status.requested_provider == "auto" else chosen
    yield Fact(words, label="asked for", indent=2)
    for link in status.links:
        if link.state != "passed over" or not link.approved:
            yield from _link(link)
    if passed := [link for link in status.links if link.state == "passed over" and link.approved]:
        yield Fact(", ".join(link.name for link in passed), label="not set up", indent=2, style=MUTED)
    if who.answers == "builtin":
        words = f"{SMALL} finds more by meaning: {SMALL_COST}"
        yield Fact(words, "page:better", label="better", indent=2, does="enter sets up a provider")
    for approval in approvals:
        words = f"{approval.provider} at {one_line(approval.host)}, since {minute(approval.at)} ({approval.how})"
        yield Fact(words, f"revoke:{approval.provider}", label="approved", indent=2, does="enter withdraws it")


def _link(link: MemberState) -> Iterator[Fact]:
    """Yield a provider of the chain: its state and what enter does, its last error, and what helps."""
    where = f" at {one_line(link.host)}" if link.host else ""
    name = ", ".join(filter(None, (f"{link.name}{where}", one_line(link.model))))
    if link.approved:
        yield Fact(f"{name}: {link.state}", f"test:{link.name}", _LINKS[link.state], indent=2, does="enter tests it")
    else:
        does = "enter shows what it would get, and asks"
        yield Fact(f"{name}: needs your approval", f"approve:{link.name}", WARN, indent=2, does=does)
    failed = f" since {minute(link.failed_at)}" if link.failed_at else ""
    if link.error and link.state != "passed over":
        yield Fact(one_line(f"{link.error}{failed}"), indent=4, style=BAD)
    if link.next_step and link.state != "passed over":
        yield Fact(one_line(link.next_step), indent=4)
    if link.next_try:
        yield Fact(f"It is asked again at {minute(link.next_try)}.", indent=4)


def sent(forecast: Forecast | None, name: str, host: str) -> str:
    """Return what a provider would get, in sentences."""
    # Without a forecast for this provider nobody counted.
    if forecast is None or forecast.provider != name:
        return f"{name} at {host} gets the texts of all notes."
    price = "" if forecast.usd is None else f", about {forecast.usd:.4f} US dollars by the list of {forecast.prices_of}"
    texts = f"{plural(forecast.send, 'text')}, about {plural(forecast.tokens, 'token')}{price}"
    kept = f"{plural(forecast.withheld, 'text')} that look like secrets are not sent."
    if not forecast.withholding:
        kept = "Texts that look like secrets are sent too: you allowed it."
    return f"{name} at {host} gets {texts}. {kept}"


# --- up to date ----------------------------------------------------------------------------------------------------


def up_to_date(session: Session, status: Status) -> Fact:
    """Return the lamp that says how far the index is behind the notes; a folder that is gone comes first."""
    is_current, state = freshness(status)
    fresh, gone = status.freshness, [root for root in status.roots if not root.readable]
    if gone:
        words, mark = gone[0].detail, BAD
    elif fresh.shrink is not None:
        words, mark = f"{fresh.shrink.missing:,} of {fresh.shrink.known:,} notes vanished at once", BAD
    elif session.progress:
        words, mark = session.progress, WARN
    else:
        failed = len(fresh.of("failed", "changed while read", "missing root"))
        words = "yes" if state == "up to date" else f"no, {state}"
        words += f": {plural(fresh.total, 'note')}, {plural(status.chunks, 'passage')}"
        words += ("; watcher on" if status.watching else "") + (f"; {failed:,} cannot be read" if failed else "")
        mark = GOOD if is_current and not failed else WARN
    return Fact(one_line(words), "lamp:fresh", mark, "up to date", style="bold")


def behind_freshness(status: Status) -> Iterator[Fact]:
    """Yield roots that are gone, notes that vanished, what keeps the index, and each note that is not in it."""
    fresh = status.freshness
    for root in status.roots:
        if root.state != "there":
            yield Fact(one_line(f"{root.detail} {root.next_step}"), mark=BAD, indent=2)
    if fresh.shrink is not None:
        reason = one_line(fresh.shrink.reason)
        words = f"They stay in the index until you agree: {reason}. If a disk is not mounted, mount it instead."
        yield Fact(words, "shrink", BAD, indent=2, does="enter forgets them")
    if not status.read_only:
        state = "paused: changes are not indexed" if status.paused else "goes on by itself"
        does = "enter goes on" if status.paused else "enter pauses"
        yield Fact(state, "pause", label="indexing", indent=2, does=does, style=WARN if status.paused else "")
    # Why it is on or off, in words; without a reason the status only repeats its state.
    detail = status.watch_detail if status.watch_detail not in ("on", "off", "") else ""
    words = f"{'on' if status.watching else 'off'}{detail and ', '}{one_line(detail)}"
    switch = "enter switches it off" if status.watching else "enter switches it on"
    yield Fact(words, "watch", label="watcher", indent=2, does=switch, style="" if status.watching else WARN)
    if writer := status.writer or status.keeper:
        who = "this app" if writer.here else f"process {writer.pid}"
        words = f"{who}, since {minute(writer.since)}{', writing now' if status.writer else ''}"
        yield Fact(words, label="kept by", indent=2)
    yield Fact(f"{status.embedded:,} of {plural(status.chunks, 'passage')}", label="meaning", indent=2)
    # The worst first.
    marks = {"failed": BAD, "changed while read": WARN, "missing root": BAD, "pending": MUTED}
    notes = [(item, mark) for state, mark in marks.items() for item in fresh.of(state)]
    for item, mark in notes[:_SHOWN]:
        yield Fact(f"{one_line(item.path)}  {item.state}: {one_line(item.detail)}", f"note:{item.path}", mark, indent=2)
    if len(notes) > _SHOWN:
        yield Fact(f"{len(notes) - _SHOWN:,} more", indent=4, style=MUTED)


# --- left out ------------------------------------------------------------------------------------------------------


def left_out(status: Status, others: Sequence[str]) -> Fact:
    """Return the lamp that says what no question finds, or only words do; `others` are files that are no memory."""
    parts = [
        (len(status.withheld), "not sent, they look like secrets"),
        (len(status.refused), "refused by the provider"),
        (len(status.in_part), "in part"),
        (sum(item.rule != "missing root" for item in status.freshness.left_out), "by a rule"),
    ]
    words = ", ".join(f"{count:,} {what}" for count, what in parts if count) or "no note"
    words += f"; {plural(len(others), 'other Markdown file')} not read as memory" if others else ""
    # What a rule leaves out is no cause to warn.
    mark = WARN if status.withheld or status.refused or status.in_part else GOOD
    return Fact(words, "lamp:left", mark, "left out", style="bold")


def behind_left_out(status: Status, others: Sequence[str]) -> Iterator[Fact]:
    """Yield each passage and path that is left out, with its reason; a rule's paths are one group each."""
    for chunk in (*status.withheld, *status.refused):
        words = f"{one_line(chunk.path)}:{chunk.start_line}-{chunk.end_line}  {one_line(str(chunk))}"
        yield Fact(words, f"note:{chunk.path}:{chunk.start_line}", WARN, indent=2)
    for part in status.in_part:
        yield Fact(f"{one_line(part.path)}  {one_line(part.detail)}", f"note:{part.path}", WARN, indent=2)
    reasons: dict[str, list[str]] = {}
    for item in status.freshness.left_out:
        reasons.setdefault(one_line(item.reason), []).append(one_line(item.path))
    reasons |= {"Not read as memory: memory-tui --whole yes reads all.": [*map(one_line, others)]} if others else {}
    for reason, paths in reasons.items():
        more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
        count = f"{plural(len(paths), 'path')}: " if len(paths) > 1 else ""
        yield Fact(f"{count}{', '.join(paths[:_SHOWN])}{more}  {reason}", mark=MUTED, indent=2)


# --- the rest ------------------------------------------------------------------------------------------------------


def notices(status: Status) -> Iterator[Fact]:
    """Yield what a person should know, each with its next step below."""
    for notice in status.notices:
        if notice.kind != "answered_otherwise":
            yield Fact(one_line(notice.message), mark=WARN)
            if notice.next_step:
                yield Fact(one_line(notice.next_step), indent=2, style=MUTED)


def mirror(state: Standing | MemoryTuiError) -> Fact:
    """Return how the mirror of a shared index stands."""
    if isinstance(state, MemoryTuiError):
        return Fact(one_line(f"{state.message} {state.next_step}"), mark=BAD, label="shared")
    return Fact(state.sentence, mark=WARN if state.trouble else GOOD, label="shared")


def statements(
    session: Session,
    unfolded: Container[str],
    approvals: Sequence[Approval] = (),
    state: Standing | MemoryTuiError | None = None,
    others: Sequence[str] = (),
) -> Iterator[Fact]:
    """Yield the whole status: the lamps, `unfolded` ones with their details, a mirror's `state`, notices, pages.

    `others` are the Markdown files of the folder that are no memory.
    """
    if (status := session.status) is None:
        yield Fact("Opening the workspace ...", style=MUTED)
        return
    lamps = (
        (answered_by(status), behind_answers(status, approvals)),
        (up_to_date(session, status), behind_freshness(status)),
        (left_out(status, others), behind_left_out(status, others)),
    )
    for lamp, details in lamps:
        yield lamp
        # Details end with an empty row, those of the last lamp only where the mirror follows.
        if lamp.key in unfolded:
            yield from details
            yield from [Fact("")] if lamp.key != "lamp:left" or state else []
    name = one_line(f"{profile_named(status.profile).title} ({status.profile_origin})")
    yield Fact(name, mark=MUTED, label="ranking")
    yield from [mirror(state)] if state else []
    if rest := list(notices(status)):
        yield from [Fact(""), *rest]
    yield Fact("")
    yield Fact("Set up a provider", "page:setup", does="address, key and model; it is tested first")
    yield Fact("What agents asked", "page:asked", does="and how well it was answered")
    yield Fact("Doctor", "page:doctor", does="checks machine, notes, index and provider")


_FOLDED = (events.FileIndexed, events.VectorsMade)
"""Events of which the newest stands for those right before it."""


def news(session: Session) -> list[Fact]:
    """Return what happened, the newest first; a start without an outcome is no row, a run of one kind is one."""
    rows: list[Fact] = []
    before: type[events.Event] | None = None
    run, provider = 0, ""
    for event in session.news:
        kind = type(event)
        # No words where the lamps say enough.
        words, mark = _EVENTS[kind](event) if kind in _EVENTS else ("", "")
        # A provider that stands as it stood is no news.
        if not words or (kind is events.ProviderChanged and provider == words):
            # What the next sync does is a run of its own.
            before = None if kind is events.SyncFinished else before
            continue
        provider = words if kind is events.ProviderChanged else provider
        run = run + 1 if kind is before and kind in _FOLDED else 1
        # The newest event of a run takes the place of the row before, and counts it.
        if run > 1:
            rows.pop()
            words = words.replace("indexed", f"indexed {run:,} notes, the last", 1)
        before = kind
        rows.append(Fact(one_line(words), mark=mark, label=time.strftime("%H:%M:%S", time.localtime(event.at))))
    # The last _NEWS rows, backwards.
    return rows[: -_NEWS - 1 : -1]


def _synced(event: events.SyncFinished) -> tuple[str, str]:
    """Return the words and colour of a sync; empty ones leave it out."""
    # What it did has rows of its own.
    if not event.error and (event.indexed or event.removed or event.failed or event.reason in _QUIET):
        return "", ""
    return (f"the sync stopped: {event.error}", BAD) if event.error else ("synced: nothing had changed", MUTED)


def _provider(event: events.ProviderChanged) -> tuple[str, str]:
    """Return the words and colour of a provider that began to answer, or failed."""
    return f"{event.name} {'answers' if event.ok else 'failed'}: {event.detail}", GOOD if event.ok else BAD


_EVENTS: Mapping[type, Callable[[Any], tuple[str, str]]] = {
    events.FileIndexed: lambda event: (f"indexed {event.path}, {plural(event.chunks, 'passage')}", GOOD),
    events.FileRemoved: lambda event: (f"forgot {event.path}", WARN),
    events.FileFailed: lambda event: (f"could not index {event.path}: {event.reason}", BAD),
    events.SyncFinished: _synced,
    events.WatchChanged: lambda event: ("the watcher is on", MUTED) if event.on else ("the watcher is off", WARN),
    events.ProviderChanged: _provider,
    events.VectorsMade: lambda event: (f"vectors for {event.done:,} of {plural(event.total, 'passage')}", MUTED),
    events.BatchNews: lambda event: (f"batch {event.stage}: {event.done:,} of {event.total:,}. {event.detail}", MUTED),
    events.IndexingPaused: lambda event: ("indexing is paused", WARN) if event.on else ("indexing goes on", MUTED),
    events.KeeperChanged: lambda event: ("" if event.here else f"process {event.pid} keeps the index current", MUTED),
    events.RootsChanged: lambda event: (event.text, BAD if event.lost else GOOD),
    events.ShrinkHeld: lambda event: (f"{event.missing:,} of {event.total:,} notes gone; kept until you agree", BAD),
    events.Noticed: lambda event: (event.text, WARN),
}
"""What each event says, in words and with its colour."""


_STATES = {"failed": BAD, "no answer": BAD, "warning": WARN, "ok": GOOD, "skipped": MUTED}
"""The colour of each outcome, the worst first."""


def doctor(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield the outcomes so far, the worst first; all checks run side by side."""
    every = checks_of(engine)
    results: list[Result] = []
    yield [Fact(f"Examining {plural(len(every), 'thing')} ...", style=MUTED)]
    for result in examine(engine, every):
        results = sorted([*results, result], key=lambda row: [check.key for check in every].index(row.check))
        left = len(every) - len(results)
        yield [*([Fact(f"{left} still run; escape stops.", style=MUTED)] if left else []), *outcomes(results)]


def outcomes(results: Sequence[Result]) -> Iterator[Fact]:
    """Yield each outcome with its evidence and what to do; what is well comes last, in one line each."""
    order = list(_STATES)
    counts = {state: sum(result.state == state for result in results) for state in order}
    yield Fact(", ".join(f"{count} {state}" for state, count in counts.items() if count), style="bold")
    for result in sorted(results, key=lambda row: order.index(row.state)):
        fine = result.state in ("ok", "skipped")
        title = one_line(result.title)
        yield Fact(f"{title}: {one_line(result.evidence)}" if fine else title, mark=_STATES[result.state])
        if not fine:
            yield Fact(one_line(result.evidence), indent=2)
            yield from [Fact(f"To do: {one_line(result.fix)}", indent=2)] if result.fix else []
