"""A verdict says what became of a line of a note: recalled, or the first gate that stopped it.

The order of the gates is the way of a line: disk, index, the pools of both sides, then the gates of ranking.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memory_tui.search.trace import Verdict

# --- on the way into the index -------------------------------------------------------------------------------------


class OutsideRoots(Struct, frozen=True):
    """The file lies where no notes are read."""

    detail: str


class Excluded(Struct, frozen=True):
    """The file lies below a root, but `rule` leaves it out: symlink, not markdown, duplicate, folder, ..."""

    rule: str
    detail: str


class NoSuchFile(Struct, frozen=True):
    """Nothing is at that path."""

    detail: str


class UnreadableFile(Struct, frozen=True):
    """The note is there, but could not be read, is too big, or could not be indexed."""

    rule: Literal["unreadable", "too big", "failed"]
    detail: str


class ChangedSinceIndexed(Struct, frozen=True):
    """The line as it is on disk is in no indexed chunk, for the note is `change`: new, changed or rebuild."""

    change: str


class InNoChunk(Struct, frozen=True):
    """No chunk holds line `line` (None: any line) of a note of `lines` lines."""

    line: int | None
    lines: int


# --- on the way into a pool ----------------------------------------------------------------------------------------


class WordsOff(Struct, frozen=True):
    """Words did not count, for `cause`: hybrid search is off, or there is no full-text search."""

    cause: str


class NoWord(Struct, frozen=True):
    """The query has no word to search for; `dropped` are the words left out."""

    dropped: tuple[str, ...]


class NotMatched(Struct, frozen=True):
    """Full-text search did not match: of `words` the chunk lacks `absent`, and `nowhere` occur in no chunk at all.

    `join` AND needs all of them, OR any. Of those that it lacks the text holds the letters of `hidden`, but inside
    what the tokenizer takes for a longer word.
    """

    words: tuple[str, ...]
    absent: tuple[str, ...]
    nowhere: tuple[str, ...]
    join: Literal["AND", "OR"]
    hidden: tuple[str, ...] = ()


class OutsideTextPool(Struct, frozen=True):
    """The words matched, but `rank` by bm25 is beyond the `pool` best; `edge` is the bm25 of the last that got in."""

    rank: int
    pool: int
    bm25: float
    edge: float


TextGate = WordsOff | NoWord | NotMatched | OutsideTextPool


class NoVector(Struct, frozen=True):
    """There was no cosine to go by, for `cause`; `text` tells why its words did not propose it either."""

    cause: str
    text: TextGate


class ModelMismatch(Struct, frozen=True):
    """Index and query were embedded by different models, so only words counted, and `text` stopped those."""

    detail: str
    text: TextGate


class OutsideVectorPool(Struct, frozen=True):
    """By cosine it is number `rank` of `of`, but only the `pool` nearest are candidates; the last of them has `edge`.

    `text` tells why its words did not propose it either.
    """

    rank: int
    of: int
    pool: int
    cosine: float
    edge: float
    text: TextGate


class UnreadableProject(Struct, frozen=True):
    """OpenClaw 2026.9 never recalls the chunk: a project marker of its entry does not close, or names no project."""


# --- after everything ----------------------------------------------------------------------------------------------


class LostInTheirIndex(Struct, frozen=True):
    """By the notes on disk it would be recalled as number `place`, but OpenClaw's own index does not hold it."""

    place: int
    detail: str


class NotDelivered(Struct, frozen=True):
    """A logged search ranked it as number `place`, but only the first `delivered` hits went out to the agent.

    `most_characters` is the bound on snippets that stopped it; 0 where none did.
    """

    place: int
    delivered: int
    most_characters: int


FileGate = OutsideRoots | Excluded | NoSuchFile | UnreadableFile | ChangedSinceIndexed | InNoChunk
PoolGate = (
    NoVector | ModelMismatch | OutsideVectorPool | WordsOff | NoWord | NotMatched | OutsideTextPool | UnreadableProject
)
Fate = FileGate | PoolGate | Verdict | LostInTheirIndex | NotDelivered
