"""Findings: why the inbox suggests something, each kind with the evidence that its sentence is made of."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod

from msgspec import Struct

from memory_tui.formatting import plural


class InboxClaim(Struct, frozen=True):
    """A claim about a passage of a note; each kind has a checker in the tests."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """Return the claim in words."""

    @property
    def group(self) -> str:
        """Return what of its kind it belongs to, for a heading; empty where a kind is one group."""
        return ""


class SecretFound(InboxClaim, frozen=True):
    """The lines hold what looks like a secret of this sort."""

    sort: str

    @property
    def sentence(self) -> str:
        """Return what it looks like, and who may get it."""
        return f"It looks like a secret: {self.sort}. Agents can recall it, and tell it to their model."


class NotUtf8(InboxClaim, frozen=True):
    """The note looks like UTF-16 (`utf16`), or this many byte sequences of it are not UTF-8."""

    replaced: int
    utf16: bool

    @property
    def sentence(self) -> str:
        """Return what search makes of it."""
        if self.utf16:
            return "It looks like UTF-16, not UTF-8: its words match no question, here or in OpenClaw."
        pieces = f"{plural(self.replaced, 'byte sequence')} in it {'is' if self.replaced == 1 else 'are'}"
        return f"{pieces} not UTF-8: the words with them match no question; likeness alone may find them."


class NotTrusted(InboxClaim, frozen=True):
    """OpenClaw's ledger keeps the note in this state, in the words of its record."""

    state: str

    @property
    def sentence(self) -> str:
        """Return what the ledger says."""
        return f"OpenClaw's ledger says: {self.state}."


class PromotedThere(InboxClaim, frozen=True):
    """OpenClaw moved the passage of this `key` into the note; `night` (ISO) is of the heading above, empty for none."""

    key: str
    night: str = ""

    @property
    def sentence(self) -> str:
        """Say when."""
        return f"OpenClaw promoted it{f' on {self.night}' if self.night else ''}."

    @property
    def group(self) -> str:
        """Return the night."""
        return f"on {self.night}" if self.night else ""


class LinesLost(InboxClaim, frozen=True):
    """The note lacks `lines` that the index saw in it, as was found at `at` (epoch seconds); `gone` with the note."""

    change: int
    lines: int
    at: float
    gone: bool

    @property
    def sentence(self) -> str:
        """Return how many, when, and where their text is."""
        at = dt.datetime.fromtimestamp(self.at).astimezone()
        what = f"It lost {plural(self.lines, 'line')} to another program, found {at:%Y-%m-%d %H:%M}"
        return f"{what}{', and is not there any more' if self.gone else ''}. The journal has the text."


class AnnotationIdle(InboxClaim, frozen=True):
    """An annotation on the line does not do what it was written for, for this cause."""

    cause: str

    @property
    def sentence(self) -> str:
        """Return the annotation and its cause."""
        return f"{self.cause}."


class InvalidDay(InboxClaim, frozen=True):
    """The name of the note holds a day that no calendar has, or that OpenClaw's takes for another."""

    day: str

    @property
    def sentence(self) -> str:
        """Return what follows for its age."""
        return "Invalid date: this note never fades."


class DayAhead(InboxClaim, frozen=True):
    """The day in the name of the note is so many `days` ahead."""

    days: int

    @property
    def sentence(self) -> str:
        """Return how far, and what follows for its age."""
        return f"Its date is {self.days} days ahead. The note counts as new until then."


class SaidTwice(InboxClaim, frozen=True):
    """The passage `twin` (`path:line`) holds the same words."""

    twin: str

    @property
    def sentence(self) -> str:
        """Return which one does."""
        return f"{self.twin} says the same."


class SaidAlmostTwice(InboxClaim, frozen=True):
    """The passage `twin` (`path:line`) holds nearly the same words: of all letters `alike` in 100."""

    twin: str
    alike: float

    @property
    def sentence(self) -> str:
        """Return which one does."""
        return f"{self.twin} says nearly the same."


class CloseInMeaning(InboxClaim, frozen=True):
    """The chunks of both are each other's nearest outside their notes, with this cosine; their words differ."""

    twin: str
    cosine: float

    @property
    def sentence(self) -> str:
        """Return which one is, and how close."""
        return f"{self.twin} is close in meaning (cosine {self.cosine:.2f})."


class SaidOtherwise(InboxClaim, frozen=True):
    """The passage `twin` (`path:line`) of another lasting note gives `subject` the value `other`; this one `value`."""

    subject: str
    value: str
    twin: str
    other: str

    @property
    def sentence(self) -> str:
        """Return both values, and where the other one stands."""
        return f"“{self.subject}” is {self.value} here, and {self.other} in {self.twin}."


class Outdated(InboxClaim, frozen=True):
    """The log at `twin` (`path:line`), of `day` (ISO), gives `subject` the value `other`; this older line `value`."""

    subject: str
    value: str
    twin: str
    other: str
    day: str

    @property
    def sentence(self) -> str:
        """Return both values, and the day of the newer one."""
        return f"“{self.subject}” is {self.value} here, and {self.other} in {self.twin}, of {self.day}."


class DayPassed(InboxClaim, frozen=True):
    """The passage announces `day` (ISO), which was `ago` days before today."""

    day: str
    ago: int

    @property
    def sentence(self) -> str:
        """Return which day, and how long ago."""
        return f"{self.day} reads as a date to come, but it was {plural(self.ago, 'day')} ago."


class DayMoves(InboxClaim, frozen=True):
    """The passage says `words`, which mean another day each day, and its note has no date."""

    words: str

    @property
    def sentence(self) -> str:
        """Return which words."""
        return f"“{self.words}” in a note without a date means another day each time it is read."


class PathGone(InboxClaim, frozen=True):
    """The passage names `path`, where nothing is."""

    path: str

    @property
    def sentence(self) -> str:
        """Return which path."""
        return f"{self.path} is not there."


class Unlisted(InboxClaim, frozen=True):
    """The index of Claude Code's memory does not point to the note; `line` would."""

    line: str

    @property
    def sentence(self) -> str:
        """Return what follows, and the line to add."""
        return f"MEMORY.md does not point to it, so a session of Claude Code does not know of it. Add: {self.line}"


class BeyondBudget(InboxClaim, frozen=True):
    """No session of `host` reads the note at `path` from line `first` to line `last` (0: to its end)."""

    path: str
    first: int
    last: int
    host: str

    @property
    def sentence(self) -> str:
        """Return which lines."""
        until = f"to line {self.last}" if self.last else "on"
        return f"No session of {self.host} reads {self.path} from line {self.first} {until}."


class ToolOutput(InboxClaim, frozen=True):
    """The passage looks like output of a tool, for this `cause`."""

    cause: str

    @property
    def sentence(self) -> str:
        """Return what it looks like."""
        return f"It looks like output of a tool: {self.cause}."


class NeverDelivered(InboxClaim, frozen=True):
    """The note is `age` days old, and no search or read that was logged delivered anything of it."""

    age: int

    @property
    def sentence(self) -> str:
        """Return its age, and that nothing did."""
        return f"It is {self.age} days old, and no logged search or read delivered it."
