"""Claims: each statement of an explanation as a value that carries its evidence.

A sentence is a function of its claim (`wording.claim`), and each kind of claim has a checker in the tests, which tries
it by brute force on an index. What became of a line is a claim as well (`verdicts`), as is the reason for an empty
answer, a change that turns a verdict, and a doubt about minScore.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from memory_tui.core import profiles
from memory_tui.core.settings import Scalar
from memory_tui.search.trace import EmptyReason, NothingMatched, QueryPlan, Verdict

SwitchedGate = Literal["decay", "mmr"]
"""A gate of ranking that a setting switches off."""
LeftOutReason = Literal["common", "stop word", "number", "short"]
"""Why a word is not searched for: over half of the chunks hold it, a list names it, OpenClaw takes it for none."""

# --- words of a question -------------------------------------------------------------------------------------------


class AbsentWords(Struct, frozen=True):
    """No text holds any of `words`: an ASCII word as a word of its own, another one anywhere.

    `indexed` tells that this is said of the indexed notes alone, because others wait.
    """

    words: tuple[str, ...]
    indexed: bool = False


class InvisibleToTokenizer(Struct, frozen=True):
    """Texts hold each of `words`, but inside what the tokenizer of `profile` takes for one longer word.

    With `part_of` they are parts of words of the question, each of which it takes for one word that no text holds.
    """

    words: tuple[str, ...]
    profile: str
    part_of: tuple[str, ...] = ()


class SearchedInPieces(Struct, frozen=True):
    """Texts hold each of `words` as a word of its own, but `profile` looks for its pieces, none of which is one."""

    words: tuple[str, ...]
    profile: str


class WaitingNoteHolds(Struct, frozen=True):
    """The note at `path` waits to be indexed, and its text on disk holds `word`."""

    word: str
    path: str


class NotLookedThrough(Struct, frozen=True):
    """Of `waiting` notes that wait to be indexed `unread` were not read for the words of the question."""

    waiting: int
    unread: int


class NoChunkHoldsAll(Struct, frozen=True):
    """No chunk was found to hold all the words of the question, which are all needed, and meaning proposed none."""


class NoChunkMatches(Struct, frozen=True):
    """No chunk was found to hold a word of the query, and meaning proposed none."""


WordClaim = (
    AbsentWords
    | InvisibleToTokenizer
    | SearchedInPieces
    | WaitingNoteHolds
    | NotLookedThrough
    | NoChunkHoldsAll
    | NoChunkMatches
)


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
    hidden = tuple(word for word in unseen if word not in elsewhere.whole)
    if hidden:
        yield InvisibleToTokenizer(hidden, profile)
    if in_pieces := tuple(word for word in unseen if word in elsewhere.whole):
        yield SearchedInPieces(in_pieces, profile)
    elif parts and not hidden:
        yield InvisibleToTokenizer(tuple(part for _, part in parts), profile, tuple(word for word, _ in parts))
    if not absent and not unseen:
        yield NoChunkHoldsAll() if reason.join == "AND" else NoChunkMatches()
    if waits is not None:
        yield waits


# --- what alone stopped a line, what no knob does -------------------------------------------------------------------


class StoppedByAlone(Struct, frozen=True):
    """With `gate` switched off, and nothing else changed, the line would be recalled as number `place`."""

    gate: SwitchedGate
    place: int


class StillLostWithout(Struct, frozen=True):
    """With `gate` switched off, and nothing else changed, the line would not be recalled either, for `then`."""

    gate: SwitchedGate
    then: Verdict


class SearchedRange(Struct, frozen=True):
    """The values of one knob that were tried: from `low` to `high` by `step`, or `choices` by name."""

    key: str
    low: float
    high: float
    step: float
    choices: tuple[str, ...] = ()


class NoSingleKnob(Struct, frozen=True):
    """No value in `ranges`, one knob at a time, recalls the chunk, or loses it where it is `recalled` now."""

    recalled: bool
    ranges: tuple[SearchedRange, ...]


class NoPair(Struct, frozen=True):
    """No two of `points`, each a knob at a value, recall the chunk together, where they are of different knobs."""

    points: tuple[tuple[str, Scalar], ...]


class NoRephrasing(Struct, frozen=True):
    """The question with one of `words` of the chunk added does not recall it, nor does `shorter`, empty for none."""

    words: tuple[str, ...]
    shorter: str = ""


class WordsLeftOut(Struct, frozen=True):
    """Words of the question that were not searched for, and why: they stand in over half of the chunks, say nothing."""

    words: tuple[str, ...]
    reason: LeftOutReason


LineClaim = StoppedByAlone | StillLostWithout | NoSingleKnob | NoPair | NoRephrasing | WordsLeftOut
"""The claims about a line, besides its verdict."""

GATE_SWITCHES: Mapping[SwitchedGate, str] = MappingProxyType(
    {"decay": "query.hybrid.temporalDecay.enabled", "mmr": "query.hybrid.mmr.enabled"}
)
"""The setting that switches a gate of ranking off."""


def left_out(plan: QueryPlan, profile: str) -> tuple[WordsLeftOut, ...]:
    """The words of a question that were not searched for, pairs of characters one by one, with the reasons."""
    reasons: dict[LeftOutReason, list[str]] = {}
    for word in plan.dropped:
        reasons.setdefault(_reason(word, plan, profile), []).append(word)
    return tuple(WordsLeftOut(tuple(words), reason) for reason, words in reasons.items())


def _reason(word: str, plan: QueryPlan, profile: str) -> LeftOutReason:
    # Late, because the tokenizer imports SQLite, and the screen shows its first frame before that.
    from memory_tui.core import keywords, tokens

    if profiles.get(profile).join == "OR":
        return "common" if word in plan.common or tokens.is_cjk(word) else "stop word"
    if word.isdigit():
        return "number"
    return "short" if len(word) < keywords.FEWEST_LETTERS and word.isascii() and word.isalpha() else "stop word"
