"""Pages about the index, as rows that a worker gathers: doctor, index file, sessions, OpenClaw's own index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from memory_tui.doctor import Result, checks_of, examine
from memory_tui.engine.engine import Engine
from memory_tui.engine.status import WriterProcess
from memory_tui.formatting import minute, plural
from memory_tui.openclaw import flush
from memory_tui.openclaw.compare import FileComparison, compare_configured, objections, refusal, statements
from memory_tui.openclaw.flush import Nearness
from memory_tui.sanitize import one_line
from memory_tui.tui.listing import Listing
from memory_tui.tui.session import ReadNote
from memory_tui.tui.view import View
from memory_tui.tui.widgets.facts import BAD, GOOD, MUTED, WARN, Fact, heading

_STATES = {"failed": BAD, "no answer": BAD, "warning": WARN, "ok": GOOD, "skipped": MUTED}
"""The colour of each outcome, the worst first."""
_BAR = 20


def doctor(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield the outcomes so far, the worst first; all checks run side by side."""
    every = checks_of(engine)
    results: list[Result] = []
    yield [Fact(f"Examining {plural(len(every), 'thing')} ...", style=MUTED)]
    for result in examine(engine, every):
        results.append(result)
        left = len(every) - len(results)
        yield [*([Fact(f"{left} still run; escape stops.", style=MUTED)] if left else []), *outcomes(results)]


def outcomes(results: Sequence[Result]) -> Iterator[Fact]:
    """Yield each outcome with its evidence and what to do; what is well comes last, in one line each."""
    order = list(_STATES)
    counts = {state: sum(result.finding.state == state for result in results) for state in order}
    yield heading(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    for result in sorted(results, key=lambda row: order.index(row.finding.state)):
        finding = result.finding
        fine = finding.state in ("ok", "skipped")
        title = one_line(result.check.title)
        yield Fact(f"{title}: {one_line(finding.evidence)}" if fine else title, mark=_STATES[finding.state])
        if not fine:
            yield Fact(one_line(finding.evidence), indent=2)
            yield from [Fact(f"To do: {one_line(finding.fix)}", indent=2)] if finding.fix else []


def storage(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield files, tables and writers of the index."""
    status = engine.status()
    rows = [
        heading(f"{status.db_bytes / 1e6:.1f} MB; deleting the index loses nothing but time"),
        *(Fact(f"{file.bytes / 1e6:8.2f} MB  {_home(file.path)} ({file.what})", indent=1) for file in status.storage),
        Fact(""),
        Fact(_who(status.keeper), label="kept by"),
        Fact(_who(status.writer), label="written by"),
        Fact(
            f"{status.vector.engine}{f': {status.vector.load_error}' if status.vector.load_error else ''}",
            label="meaning",
        ),
        Fact(status.fts.engine, label="words"),
        Fact(f"{plural(status.cache.entries, 'vector')}, used {status.cache.hits:,} times", label="cache"),
        Fact(status.config_path or "none", label="configured"),
        Fact(""),
        heading("Tables"),
    ]
    yield [*rows, Fact("Measuring ...", style=MUTED)]
    yield [*rows, *(Fact(f"{size / 1e6:8.2f} MB  {name}", indent=1) for name, size in engine.search.tables())]


def _who(process: WriterProcess | None) -> str:
    if process is None:
        return "nobody at the moment"
    return f"{'this app' if process.ours else f'process {process.pid}'}, since {minute(process.since)}"


def _home(path: str) -> str:
    """Return a path, the user's own folder as ~."""
    own = os.path.expanduser("~/")  # noqa: PTH111 - a prefix of a text, with its slash
    return one_line(f"~/{path.removeprefix(own)}" if path.startswith(own) else path)


def sessions(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield every session of the agent, the one used last first."""
    rows = flush.near(engine.plan.config)
    yield [fact for row in rows for fact in _session(row)] or [
        Fact("No session of this agent has a transcript."),
        Fact("OpenClaw keeps them; for other hosts there are none here.", style=MUTED),
    ]


def _session(row: Nearness) -> Iterator[Fact]:
    decision = row.decision
    near = _BAR if decision.flush else 0
    if not decision.flush and decision.tokens is not None and decision.threshold > 0:
        near = min(_BAR, decision.tokens * _BAR // decision.threshold)
    bar = f"{'█' * near}{'░' * (_BAR - near)}"
    yield Fact(
        f"{bar} {one_line(row.session, 40)}  used {minute(row.modified)}", mark=WARN if decision.flush else MUTED
    )
    flushed = "" if row.flushed_at is None else f" Flushed last {minute(row.flushed_at)}."
    yield Fact(f"{'Flush now' if decision.flush else 'No flush'}: {one_line(decision.detail)}.{flushed}", indent=2)


def compare(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield what OpenClaw's own index is, then each file that differs from the notes on disk."""
    value = compare_configured(engine.plan.config, engine.plan.settings, engine.plan.roots)
    if value.state != "ok":
        yield [Fact(one_line(words), label=label.lower()[:11]) for label, words in refusal(value)]
        return
    differing = [file for file in value.files if file.differences or not file.compared]
    yield [
        *(Fact(one_line(words), mark=WARN) for _, words in objections(value)),
        *(Fact(_home(words), label=label.lower().removeprefix("their ")) for label, words in statements(value)),
        Fact(""),
        heading(f"{plural(len(differing), 'file')} of {len(value.files):,} differ"),
        *map(_compared, differing),
    ]


def _compared(file: FileComparison) -> Fact:
    here = "" if file.expected is None else f", {file.expected:,} here"
    what = ", ".join(file.differences) or "not compared"
    words = f"{one_line(file.path)}  {what}: {one_line(file.detail)} {plural(file.chunks, 'passage')} there{here}."
    return Fact(words, f"note:{file.path}", WARN)


class NotePage(Listing):
    """A page whose rows are about notes."""

    async def act(self, key: str) -> None:
        """Read the note, where it is on disk."""
        path = key.removeprefix("note:")
        if any(row.path == path for row in self.view.session.files):
            self.leave(ReadNote(path))
        else:
            self.notify(f"{one_line(path)} is not on disk.", markup=False)


PAGES: Mapping[str, Callable[[View], Listing]] = MappingProxyType(
    {
        "doctor": lambda view: Listing("Doctor", view, doctor),
        "storage": lambda view: Listing("The index file", view, storage),
        "sessions": lambda view: Listing("Sessions and their memory flush", view, sessions),
        "compare": lambda view: NotePage("OpenClaw's own index beside the notes", view, compare),
    }
)
"""What makes the page of a key."""
