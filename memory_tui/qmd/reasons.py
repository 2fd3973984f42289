"""Reasons say why QMD's answer lacks a line. They say what can be known, and invent nothing."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_tui.core.cancel import Stop
from memory_tui.core.formatting import plural
from memory_tui.qmd import index
from memory_tui.qmd.client import terms
from memory_tui.qmd.index import Collection
from memory_tui.qmd.remarks import OutOfScope

if TYPE_CHECKING:
    from memory_tui.qmd.answer import QmdHit
    from memory_tui.qmd.client import QmdAnswer, QmdClient

_DEEPEST = 200
"""How far down QMD's own ranking a note is looked for."""
# --- what can be known ---------------------------------------------------------------------------------------------


class QmdReason(Struct, frozen=True):
    """What can be known of a line in QMD's answer: a claim with its sentence."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The claim as a sentence."""


class QmdDenies(QmdReason, frozen=True):
    """Whoever asks in the chat `session_key` is not let in."""

    session_key: str

    @property
    def sentence(self) -> str:
        """As the answer says it."""
        return OutOfScope(self.session_key).sentence


class QmdGives(QmdReason, frozen=True):
    """The hit at `rank` is of the note `path` and holds its line `line`, any where that is 0."""

    path: str
    line: int
    rank: int

    @property
    def sentence(self) -> str:
        """At which rank."""
        return f"QMD has it at rank {self.rank}."


class InNoCollection(QmdReason, frozen=True):
    """The note `path` belongs to none of the collections `names`."""

    path: str
    names: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Which there are."""
        return f"It is in no collection of QMD: {', '.join(self.names)}."


class NotYetInQmd(QmdReason, frozen=True):
    """QMD's index lacks the note `below` of `collection`, which is on disk."""

    collection: str
    below: str

    @property
    def sentence(self) -> str:
        """What brings it there."""
        return "It changed since QMD's last update: QMD's index lacks the note. Run memory-tui qmd update."


class OlderInQmd(QmdReason, frozen=True):
    """QMD's index holds the note `below` of `collection` as it was; `detail` is the difference, a sentence."""

    collection: str
    below: str
    detail: str

    @property
    def sentence(self) -> str:
        """The difference, and what brings it there."""
        return f"It changed since QMD's last update: {self.detail} Run memory-tui qmd update."


class OtherPassage(QmdReason, frozen=True):
    """QMD gives one passage a note: of the note `path` lines `first` to `last`, at `rank`."""

    path: str
    first: int
    last: int
    rank: int

    @property
    def sentence(self) -> str:
        """Which lines."""
        return f"QMD gives one passage a note, and of this one lines {self.first} to {self.last} (rank {self.rank})."


class NoWordForQmd(QmdReason, frozen=True):
    """The question `query` has no word that has to match."""

    query: str

    @property
    def sentence(self) -> str:
        """What QMD does then."""
        return "The question has no word that QMD looks for, and QMD searches nothing then."


class QmdLacksWords(QmdReason, frozen=True):
    """The note `below` of `collection` holds none of `words`, each of which the question asks for."""

    collection: str
    below: str
    words: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The sentence with the words, and with what QMD asks of a note."""
        first, *others = self.words
        more = f" (nor {', '.join(others)})" if others else ""
        return f"The note lacks the word {first}{more}, and QMD gives only notes that hold every word of the question."


class RuledOut(QmdReason, frozen=True):
    """The note `below` of `collection` holds `word`, which the question rules out."""

    collection: str
    below: str
    word: str

    @property
    def sentence(self) -> str:
        """The sentence with the word."""
        return f"The note holds {self.word}, which the question rules out."


class BelowQmdsLimit(QmdReason, frozen=True):
    """QMD has the note `path` at `rank`, and gives `given` hits."""

    path: str
    rank: int
    given: int

    @property
    def sentence(self) -> str:
        """The sentence with the rank and the number of hits."""
        return f"QMD has the note at rank {self.rank}, and only {plural(self.given, 'hit')} are given."


class QmdDoesNotSay(QmdReason, frozen=True):
    """The note `path` is not among the first `ranked` of QMD, which gives no reason."""

    path: str
    ranked: int

    @property
    def sentence(self) -> str:
        """That nothing is known."""
        return "QMD does not say."


# --- how they are found --------------------------------------------------------------------------------------------


def why(client: QmdClient, found: QmdAnswer, path: str, line: int, stop: Stop | None = None) -> QmdReason:
    """Why line `line` (1-based; 0 for any) of the note `path` is not among the hits `found`, or that it is.

    Raises QmdFailure, Cancelled.
    """
    if isinstance(found.empty, OutOfScope):
        return QmdDenies(found.empty.session_key)
    for hit in found.hits:
        if hit.path == path and (not line or hit.start_line <= line <= hit.end_line):
            return QmdGives(path, line, hit.rank)
    state = client.ready(stop)
    collections = [one.collection for one in state.sources.values()]
    home = _home(client, collections, path)
    if home is None:
        return InNoCollection(path, tuple(one.name for one in collections))
    collection, below = home
    if reason := _outdated(collection, below):
        return reason
    if shown := next((hit for hit in found.hits if hit.path == path), None):
        return OtherPassage(path, shown.start_line, shown.end_line, shown.rank)
    if found.mode == "search" and (lacking := _lacking(client, found.query, collection, below)):
        return lacking
    return _deeper(client.ranked(found.query, _DEEPEST, stop), path, len(found.hits))


def _home(client: QmdClient, collections: list[Collection], path: str) -> tuple[Collection, str] | None:
    """The collection that a stored path belongs to, and its path there."""
    if path.startswith("qmd/"):
        name, _, below = path.removeprefix("qmd/").partition("/")
        return next(((one, below) for one in collections if one.name == name), None)
    absolute = os.path.join(client.options.workspace, path)  # noqa: PTH118
    for collection in collections:
        below = os.path.relpath(absolute, collection.path).replace(os.sep, "/")
        known = below in collection.documents or any(
            file.path == below for file in index.files_of(collection.path, collection.pattern)
        )
        if known and not below.startswith("../"):
            return collection, below
    return None


def _outdated(collection: Collection, below: str) -> QmdReason | None:
    if below not in collection.documents:
        return NotYetInQmd(collection.name, below)
    state = next((one for one in index.compared(collection) if one.path == below), None)
    return OlderInQmd(collection.name, below, state.detail) if state is not None and state.difference else None


def _lacking(client: QmdClient, query: str, collection: Collection, below: str) -> QmdReason | None:
    """The parts of the question that the note does not satisfy, as QMD's own full-text table says."""
    parts = terms(query)
    if not any(not part.negated for part in parts):
        return NoWordForQmd(query)
    held = index.matching(client.place.index, [part.expression for part in parts], collection.name, below)
    absent = tuple(part.words for part, holds in zip(parts, held, strict=True) if not part.negated and not holds)
    if absent:
        return QmdLacksWords(collection.name, below, absent)
    unwanted = next((part.words for part, holds in zip(parts, held, strict=True) if part.negated and holds), "")
    return RuledOut(collection.name, below, unwanted) if unwanted else None


def _deeper(ranked: list[QmdHit], path: str, given: int) -> QmdReason:
    below = next((hit for hit in ranked if hit.path == path), None)
    return QmdDoesNotSay(path, len(ranked)) if below is None else BelowQmdsLimit(path, below.rank, given)
