"""Findings: why the inbox suggests something, each kind with the evidence that its sentence is made of."""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from dataclasses import dataclass

from memory_tui.core.formatting import plural


class InboxClaim(ABC):
    """A claim about a passage of a note; each kind has a checker in the tests."""

    __slots__ = ()

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The claim in words."""

    @property
    def group(self) -> str:
        """What of its kind it belongs to, for a heading; empty where a kind is one group."""
        return ""


@dataclass(frozen=True, slots=True)
class SecretFound(InboxClaim):
    """The lines hold what looks like a secret of this sort."""

    sort: str

    @property
    def sentence(self) -> str:
        """What it looks like, and who may get it."""
        return f"It looks like a secret: {self.sort}. Agents can recall it, and providers may get it."


@dataclass(frozen=True, slots=True)
class NotTrusted(InboxClaim):
    """OpenClaw's ledger keeps the note in this state, in the words of its record."""

    state: str

    @property
    def sentence(self) -> str:
        """What the ledger says."""
        return f"OpenClaw's ledger says: {self.state}."


@dataclass(frozen=True, slots=True)
class PromotedThere(InboxClaim):
    """OpenClaw moved the passage of this `key` into the note; `counted` is what it kept of it, empty for nothing.

    `night` (ISO) is that of the heading above, empty without one.
    """

    key: str
    counted: str
    night: str = ""

    @property
    def sentence(self) -> str:
        """When, and what it counted."""
        said = f"OpenClaw promoted it{f' on {self.night}' if self.night else ''}"
        return f"{said}{f': {self.counted}' if self.counted else '; it keeps no counts of it'}."

    @property
    def group(self) -> str:
        """The night."""
        return f"on {self.night}" if self.night else ""


@dataclass(frozen=True, slots=True)
class LinesLost(InboxClaim):
    """The note lacks `lines` that the index saw in it, as was found at `at` (epoch seconds); `gone` with the note."""

    change: int
    lines: int
    at: float
    gone: bool

    @property
    def sentence(self) -> str:
        """How many, when, and where their text is."""
        at = dt.datetime.fromtimestamp(self.at).astimezone()
        what = f"It lost {plural(self.lines, 'line')} to another program, found {at:%Y-%m-%d %H:%M}"
        return f"{what}{', and is not there any more' if self.gone else ''}. The journal has the text."


@dataclass(frozen=True, slots=True)
class AnnotationIdle(InboxClaim):
    """An annotation on the line does not do what it was written for, for this cause."""

    cause: str

    @property
    def sentence(self) -> str:
        """The annotation and its cause."""
        return f"{self.cause}."


@dataclass(frozen=True, slots=True)
class InvalidDay(InboxClaim):
    """The name of the note holds a day that no calendar has, or that OpenClaw's takes for another."""

    day: str

    @property
    def sentence(self) -> str:
        """What follows for its age."""
        return "Invalid date: this note never fades."


@dataclass(frozen=True, slots=True)
class DayAhead(InboxClaim):
    """The day in the name of the note is so many `days` ahead."""

    days: int

    @property
    def sentence(self) -> str:
        """How far, and what follows for its age."""
        return f"Its date is {self.days} days ahead. The note counts as new until then."


@dataclass(frozen=True, slots=True)
class SaidTwice(InboxClaim):
    """The passage `twin` (`path:line`) holds the same words."""

    twin: str

    @property
    def sentence(self) -> str:
        """Which one does."""
        return f"{self.twin} says the same."


@dataclass(frozen=True, slots=True)
class SaidAlmostTwice(InboxClaim):
    """The passage `twin` (`path:line`) holds nearly the same words: of all letters `alike` in 100."""

    twin: str
    alike: float

    @property
    def sentence(self) -> str:
        """Which one does."""
        return f"{self.twin} says nearly the same."


@dataclass(frozen=True, slots=True)
class CloseInMeaning(InboxClaim):
    """The chunks of both are each other's nearest outside their notes, with this cosine; their words differ."""

    twin: str
    cosine: float

    @property
    def sentence(self) -> str:
        """Which one is, and how close."""
        return f"{self.twin} is close in meaning (cosine {self.cosine:.2f})."


@dataclass(frozen=True, slots=True)
class SaidOtherwise(InboxClaim):
    """The passage `twin` (`path:line`) of another lasting note gives `subject` the value `other`; this one `value`."""

    subject: str
    value: str
    twin: str
    other: str

    @property
    def sentence(self) -> str:
        """Both values, and where the other one stands."""
        return f"“{self.subject}” is {self.value} here, and {self.other} in {self.twin}."


@dataclass(frozen=True, slots=True)
class Outdated(InboxClaim):
    """The log at `twin` (`path:line`), of `day` (ISO), gives `subject` the value `other`; this older line `value`."""

    subject: str
    value: str
    twin: str
    other: str
    day: str

    @property
    def sentence(self) -> str:
        """Both values, and the day of the newer one."""
        return f"“{self.subject}” is {self.value} here, and {self.other} in {self.twin}, of {self.day}."


@dataclass(frozen=True, slots=True)
class DayPassed(InboxClaim):
    """The passage announces `day` (ISO), which was `ago` days before today."""

    day: str
    ago: int

    @property
    def sentence(self) -> str:
        """Which day, and how long ago."""
        return f"{self.day} reads as a date to come, but it was {plural(self.ago, 'day')} ago."


@dataclass(frozen=True, slots=True)
class DayMoves(InboxClaim):
    """The passage says `words`, which mean another day each day, and its note has no date."""

    words: str

    @property
    def sentence(self) -> str:
        """Which words."""
        return f"“{self.words}” in a note without a date means another day each time it is read."


@dataclass(frozen=True, slots=True)
class PathGone(InboxClaim):
    """The passage names `path`, where nothing is."""

    path: str

    @property
    def sentence(self) -> str:
        """Which path."""
        return f"{self.path} is not there."


@dataclass(frozen=True, slots=True)
class Unlisted(InboxClaim):
    """The index of Claude Code's memory does not point to the note; `line` would."""

    line: str

    @property
    def sentence(self) -> str:
        """What follows, and the line to add."""
        return f"MEMORY.md does not point to it, so a session of Claude Code does not know of it. Add: {self.line}"


@dataclass(frozen=True, slots=True)
class BeyondBudget(InboxClaim):
    """No session reads the note at `path` from line `first` to line `last` (0: to its end)."""

    path: str
    first: int
    last: int

    @property
    def sentence(self) -> str:
        """Which lines."""
        until = f"to line {self.last}" if self.last else "on"
        return f"No session reads {self.path} from line {self.first} {until}."


@dataclass(frozen=True, slots=True)
class ToolOutput(InboxClaim):
    """The passage looks like output of a tool, for this `cause`."""

    cause: str

    @property
    def sentence(self) -> str:
        """What it looks like."""
        return f"It looks like output of a tool: {self.cause}."


@dataclass(frozen=True, slots=True)
class NeverDelivered(InboxClaim):
    """The note is `age` days old, and no search or read that was logged delivered anything of it."""

    age: int

    @property
    def sentence(self) -> str:
        """Its age, and that nothing did."""
        return f"It is {self.age} days old, and no logged search or read delivered it."
