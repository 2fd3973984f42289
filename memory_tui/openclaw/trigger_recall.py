"""Trigger recall is what OpenClaw 2026.9 puts before the agent for a message, because a note's trigger fits.

The arithmetic is the documented one (release 2026.9.6, active memory): a phrase score and a little of the search score.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from msgspec import Struct, field

from memory_tui import jsstring
from memory_tui.workspace.annotations import Annotations

LINE = 0.65
"""An entry that scores less is not injected."""
MOST, MOST_UNITS, MOST_CANDIDATES, SEARCHED = 3, 1800, 512, 24
"""Entries injected, UTF-16 units of them, candidates by triggers, candidates by search."""
_PHRASE_SHARE, _SEARCH_SHARE = 0.8, 0.2
_ONE_WORD, _OVERLAP_SHARE, _COUNT_SHARE, _ENOUGH = 0.85, 0.8, 0.2, 2
_WORD = re.compile(r"\w+")


class CuratedEntry(Struct, frozen=True):
    """A curated entry: where it stands, its text, its annotations, its search score (0 where search does not find it).

    `trusted` tells that it is the owner's or the agent's.
    """

    path: str
    start_line: int
    end_line: int
    text: str
    annotations: Annotations = field(name="said")
    search: float = 0.0
    trusted: bool = True


class Triggered(Struct, frozen=True):
    """A candidate: its best phrase and that score, the match that decides, and what becomes of it."""

    entry: CuratedEntry
    phrase: str
    phrase_score: float
    match: float
    outcome: str

    @property
    def reason(self) -> str:
        """Say why it is injected, or is not."""
        path, project = self.entry.path, self.entry.annotations.project
        return {
            "injected": f"{self.match:.3f} is over the line of {LINE}.",
            "no phrase fits": "No trigger has a word of the message.",
            "below the line": f"{self.match:.3f} is below the line of {LINE}.",
            "untrusted": f"OpenClaw's ledger calls {path} untrusted: memory-tui openclaw trust --repair {path}.",
            "other project": f"Its project {project} is not active: --active-project.",
            "more than three fit": f"{MOST} entries that fit better are injected.",
            "no room": f"It does not fit into {MOST_UNITS:,} characters with those that fit better.",
        }[self.outcome]


def phrase_score(message: str, phrase: str) -> float:
    """Score how well the trigger `phrase` fits `message`: one word by being there, more by how many of them are."""
    words = _words(phrase)
    count, overlap = len(words), len(words & _words(message))
    if count < 2:
        return _ONE_WORD if overlap else 0.0
    return _OVERLAP_SHARE * overlap / count + _COUNT_SHARE * min(1.0, overlap / _ENOUGH)


def triggered(message: str, entries: Iterable[CuratedEntry], active: Collection[str] = ()) -> list[Triggered]:
    """Decide what is injected for `message`; every entry with triggers, the best match first.

    `active` are the keys of the projects that the agent works on.
    """
    scored = []
    for entry in entries:
        if entry.annotations.triggers:
            best = max(entry.annotations.triggers.split("; "), key=lambda phrase: phrase_score(message, phrase))
            score = phrase_score(message, best)
            match = _PHRASE_SHARE * score + _SEARCH_SHARE * min(1.0, max(0.0, entry.search))
            scored.append((entry, best, score, match))
    decided: list[Triggered] = []
    taken, units = 0, 0
    for entry, best, score, match in sorted(scored, key=lambda item: (not item[2], -item[3])):
        size = jsstring.utf16_len(entry.text)
        hindrances = {
            "no phrase fits": not score,
            "below the line": match < LINE,
            "untrusted": not entry.trusted,
            "other project": any(key not in active for key in entry.annotations.keys),
            "more than three fit": taken >= MOST,
            "no room": units + size > MOST_UNITS,
        }
        outcome = next((name for name, there in hindrances.items() if there), "injected")
        if outcome == "injected":
            taken, units = taken + 1, units + size
        decided.append(Triggered(entry, best, score, match, outcome))
    return decided


def _words(text: str) -> set[str]:
    """Return the words of `text` in lower case that are longer than one character."""
    return {word for word in _WORD.findall(text.lower()) if len(word) > 1}
