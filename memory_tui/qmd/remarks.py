"""Remarks are what a person should know of one answer of QMD. They say why it is empty, and what it leaves out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from msgspec import Struct

from memory_tui.core.formatting import plural


class QmdRemark(Struct, frozen=True):
    """A claim about one answer of QMD, with its sentence."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The claim as a sentence."""


# --- why there is no hit -------------------------------------------------------------------------------------------


class BlankForQmd(QmdRemark, frozen=True):
    """The question is empty, or made of blanks."""

    @property
    def sentence(self) -> str:
        """That nothing was asked."""
        return "There is nothing to search for."


class OutOfScope(QmdRemark, frozen=True):
    """The rules of memory.qmd.scope keep the chat `session_key` out."""

    session_key: str

    @property
    def sentence(self) -> str:
        """Which rules."""
        return "memory.qmd.scope does not let this chat ask QMD."


class NothingOfSource(QmdRemark, frozen=True):
    """None of QMD's collections `names` holds notes of `source`, which alone was asked for."""

    source: str
    names: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Which source."""
        return f"None of QMD's collections holds {self.source}, so QMD was not asked."


class NoRequiredWord(QmdRemark, frozen=True):
    """The question `query` has no word that has to match."""

    query: str

    @property
    def sentence(self) -> str:
        """What QMD does then."""
        return "The question has no word that QMD looks for, and QMD searches nothing then."


class NoneHoldsEveryWord(QmdRemark, frozen=True):
    """No note that QMD has of the collections `names` holds all of `words` and none of `ruled_out`."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    ruled_out: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What QMD's search requires."""
        if self.ruled_out:
            without = " or ".join(self.ruled_out)
            return f"No note without {without} holds every other word of the question, which QMD's search requires."
        if len(self.words) == 1:
            return f"No note holds the word {self.words[0]}, which QMD's search requires."
        return "No note holds every word of the question, which QMD's search requires."


class NothingNear(QmdRemark, frozen=True):
    """QMD gave no row of the collections `names` for the question `query`, which was asked by meaning."""

    names: tuple[str, ...]
    query: str

    @property
    def sentence(self) -> str:
        """That there is none."""
        return "QMD found nothing near the question."


# --- what else there is to know ------------------------------------------------------------------------------------


class HitsLeftOut(QmdRemark, frozen=True):
    """Of `found` hits `given` are within the bounds: `most` hits, `altogether` UTF-16 units of text."""

    given: int
    found: int
    most: int
    altogether: int

    @property
    def sentence(self) -> str:
        """How many are not."""
        return f"{plural(self.found - self.given, 'hit')} left out by the bounds on hits and characters."


class AskedAsTyped(QmdRemark, frozen=True):
    """The question went to QMD as one typed search, because its model named `model` is not on disk."""

    model: Literal["generate"]

    @property
    def sentence(self) -> str:
        """As which command."""
        return "vsearch ran as query 'vec: …' --no-rerank, because QMD's generation model is not on disk."


class FilesChangedSince(QmdRemark, frozen=True):
    """So many `files` differ from what QMD read in its update at `updated` (epoch seconds)."""

    files: int
    updated: float

    @property
    def sentence(self) -> str:
        """How many, and what brings them in."""
        return f"{plural(self.files, 'file')} changed since QMD's last update: memory-tui qmd update."
