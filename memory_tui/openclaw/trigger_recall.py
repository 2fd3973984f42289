"""Trigger recall is what OpenClaw 2026.9 puts before the agent for a message, because a note's trigger fits.

The arithmetic is the documented one (release 2026.9.6, active memory): a phrase score and a little of the search score.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct

from memory_tui.core import jsstring
from memory_tui.workspace.annotations import Annotations

LINE = 0.65
"""An entry that scores less is not injected."""
MOST, MOST_UNITS, MOST_CANDIDATES, SEARCHED = 3, 1800, 512, 24
"""Entries injected, UTF-16 units of them, candidates by triggers, candidates by search."""
_PHRASE_SHARE, _SEARCH_SHARE = 0.8, 0.2
_ONE_WORD, _OVERLAP_SHARE, _COUNT_SHARE, _ENOUGH = 0.85, 0.8, 0.2, 2
_WORD = re.compile(r"\w+")

Outcome = Literal[
    "injected", "no phrase fits", "below the line", "untrusted", "other project", "more than three fit", "no room"
]


class CuratedEntry(Struct, frozen=True):
    """A curated entry: where it stands, its text, its annotations, its search score (0 where search does not find it).

    `trusted` tells that it is the owner's or the agent's.
    """

    path: str
    start_line: int
    end_line: int
    text: str
    said: Annotations
    search: float = 0.0
    trusted: bool = True


class Triggered(Struct, frozen=True):
    """A candidate: its best phrase and that score, the match that decides, and what becomes of it."""

    entry: CuratedEntry
    phrase: str
    phrase_score: float
    match: float
    outcome: Outcome

    @property
    def reason(self) -> str:
        """Why it is injected, or is not."""
        path = self.entry.path
        match self.outcome:
            case "injected":
                return f"{self.match:.3f} is over the line of {LINE}."
            case "no phrase fits":
                return "No trigger has a word of the message."
            case "below the line":
                return f"{self.match:.3f} is below the line of {LINE}."
            case "untrusted":
                return f"OpenClaw's ledger calls {path} untrusted: memory-tui openclaw trust --repair {path}."
            case "other project":
                return f"Its project {self.entry.said.project} is not active: --active-project."
            case "more than three fit":
                return f"{MOST} entries that fit better are injected."
            case "no room":
                return f"It does not fit into {MOST_UNITS:,} characters with those that fit better."


def phrase_score(message: str, phrase: str) -> float:
    """Score how well the trigger `phrase` fits `message`: one word by being there, more by how many of them are."""
    wanted, there = _words(phrase), set(_words(message))
    if not wanted:
        return 0.0
    overlap = sum(word in there for word in dict.fromkeys(wanted))
    count = len(dict.fromkeys(wanted))
    if count == 1:
        return _ONE_WORD if overlap else 0.0
    return _OVERLAP_SHARE * overlap / count + _COUNT_SHARE * min(1.0, overlap / _ENOUGH)


def triggered(message: str, entries: Iterable[CuratedEntry], active: Collection[str] = ()) -> list[Triggered]:
    """Decide what is injected for `message`; every entry with triggers, the best match first.

    `active` are the keys of the projects that the agent works on.
    """
    scored = []
    for entry in entries:
        if entry.said.triggers:
            best = max(entry.said.triggers.split("; "), key=lambda phrase: phrase_score(message, phrase))
            score = phrase_score(message, best)
            match = _PHRASE_SHARE * score + _SEARCH_SHARE * min(1.0, max(0.0, entry.search))
            scored.append((entry, best, score, match))
    found: list[Triggered] = []
    taken, units = 0, 0
    for entry, best, score, match in sorted(scored, key=lambda item: (not item[2], -item[3])):
        size = jsstring.utf16_len(entry.text)
        outcome: Outcome = "injected"
        if not score:
            outcome = "no phrase fits"
        elif match < LINE:
            outcome = "below the line"
        elif not entry.trusted:
            outcome = "untrusted"
        elif any(key not in active for key in entry.said.keys):
            outcome = "other project"
        elif taken >= MOST:
            outcome = "more than three fit"
        elif units + size > MOST_UNITS:
            outcome = "no room"
        else:
            taken, units = taken + 1, units + size
        found.append(Triggered(entry, best, score, match, outcome))
    return found


def _words(text: str) -> list[str]:
    """The words of `text` in lower case that are longer than one character."""
    return [word for word in _WORD.findall(text.lower()) if len(word) > 1]
