"""Claims: each statement of an explanation as a value that carries its evidence.

A sentence is a function of its claim (`wording.claim`), and each kind of claim has a checker in the tests, which tries
it by brute force on an index. What became of a line is a claim as well (`verdicts`), as is the reason for an empty
answer, a change that turns a verdict, and a doubt about minScore.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memory_tui.search.trace import EmptyReason, NothingMatched

# --- words of a question -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AbsentWords:
    """No text holds any of `words`: an ASCII word as a word of its own, another one anywhere.

    `indexed` tells that this is said of the indexed notes alone, because others wait.
    """

    words: tuple[str, ...]
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class InvisibleToTokenizer:
    """Texts hold each of `words`, but inside of what the tokenizer of `profile` takes for one longer word.

    With `part_of` they are parts of words of the question, which no text holds as a whole.
    """

    words: tuple[str, ...]
    profile: str
    part_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingNoteHolds:
    """The note at `path` waits to be indexed, and its text on disk holds `word`."""

    word: str
    path: str


@dataclass(frozen=True, slots=True)
class NotLookedThrough:
    """Of `waiting` notes that wait to be indexed `unread` were not read for the words of the question."""

    waiting: int
    unread: int


@dataclass(frozen=True, slots=True)
class NoChunkHoldsAll:
    """No chunk was found to hold all the words of the question, which are all needed, and meaning proposed none."""


@dataclass(frozen=True, slots=True)
class NoChunkMatches:
    """No chunk was found to hold a word of the question, and meaning proposed none."""


WordClaim = AbsentWords | InvisibleToTokenizer | WaitingNoteHolds | NotLookedThrough | NoChunkHoldsAll | NoChunkMatches


def of_empty(reason: EmptyReason, profile: str) -> tuple[EmptyReason | WordClaim, ...]:
    """What an empty answer under `profile` says, claim by claim."""
    return tuple(_of_words(reason, profile)) if isinstance(reason, NothingMatched) else (reason,)


def _of_words(reason: NothingMatched, profile: str) -> Iterator[WordClaim]:
    elsewhere = reason.elsewhere
    waits: WordClaim | None = None
    if elsewhere.held:
        waits = WaitingNoteHolds(*elsewhere.held[0])
    elif elsewhere.unread:
        waits = NotLookedThrough(elsewhere.waiting, elsewhere.unread)
    held = {word for word, _ in elsewhere.held}
    missing = dict.fromkeys(word for word in reason.missing if word in elsewhere.looked)
    unseen = tuple(word for word in missing if word in elsewhere.uncut)
    absent = tuple(word for word in missing if word not in unseen and word not in held)
    parts = [(word, part) for word, part in elsewhere.parts if word in absent]
    if absent:
        yield AbsentWords(absent, waits is not None)
    if unseen:
        yield InvisibleToTokenizer(unseen, profile)
    elif parts:
        yield InvisibleToTokenizer(tuple(part for _, part in parts), profile, tuple(word for word, _ in parts))
    if not absent and not unseen:
        yield NoChunkHoldsAll() if reason.join == "AND" else NoChunkMatches()
    if waits is not None:
        yield waits
