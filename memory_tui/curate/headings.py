"""Which heading of a note a text belongs below: by the words it shares with each section, or by a name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_tui.curate.lines import ITEM, Section, sections
from memory_tui.text.words import function_words, segmented, stop_words, tokens

CATCH_ALL = "Notes"
"""The heading that is made when nothing fits."""
ENOUGH = 0.12
"""A section that shares less of a text's weight than this does not fit it."""
_TITLE_COUNTS = 3
_LEAD_COUNTS = 2
_LEAD = 3
"""Words with which an item begins."""
_NAMED = 75.0
"""rapidfuzz's score from which a typed name means a heading."""
_LOOSE = re.compile(r"(notes?|misc\w*|other|general|inbox|various|sonstiges|divers)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Choice:
    """A section and how much of the text's weight of words it shares, 0 to 1."""

    section: Section
    score: float


def ranked(texts: Sequence[str], block: str, heading: str = "") -> list[Choice]:
    """The sections of a note that `block` could go below, the best first, equal ones in the order of the note.

    A word counts by how few sections have it (inverse document frequency), once a section, more in a title, and still
    more there when it is of the `heading` that the block stood below; "Morning" in a text is no such sign. A word
    with which both the block and an item of the section begin says what they are about.
    """
    found = [section for section in sections(texts) if section.line]
    # A note's own title holds everything, so it says nothing about a place in it.
    if len(found) > 1 and found[0].level == 1 and sum(s.level == 1 for s in found) == 1:
        found = found[1:]
    words = [_words((section.title,)) for section in found]
    bodies = [_words(texts[section.line : section.last]) for section in found]
    spread = Counter(word for own, body in zip(words, bodies, strict=True) for word in own | body)
    above = _words((heading,))
    wanted = _words((block,)) | above
    weight = {word: math.log(1 + len(found) / (1 + spread[word])) for word in wanted}
    total = sum(weight.values()) or 1.0

    begins = _leads((block,))
    leads = [begins & _leads(texts[section.line : section.last]) for section in found]

    def counts(word: str, title: set[str], lead: set[str]) -> int:
        return (
            (_TITLE_COUNTS if word in title else 1)
            * (_TITLE_COUNTS if word in title & above else 1)
            * (_LEAD_COUNTS if word in lead else 1)
        )

    scores = [
        sum(weight[word] * counts(word, own, lead) for word in wanted & (own | body)) / total
        for own, body, lead in zip(words, bodies, leads, strict=True)
    ]
    choices = [Choice(section, min(1.0, score)) for section, score in zip(found, scores, strict=True)]
    return sorted(choices, key=lambda choice: -choice.score)


def best(texts: Sequence[str], block: str, heading: str = "") -> Section | None:
    """The section that fits `block`, else one for odds and ends; None when the note has neither."""
    choices = ranked(texts, block, heading)
    if choices and choices[0].score >= ENOUGH:
        return choices[0].section
    return next(
        (c.section for c in sorted(choices, key=lambda c: c.section.line) if _LOOSE.fullmatch(c.section.title)), None
    )


def named(texts: Sequence[str], title: str) -> Section | None:
    """The section that somebody means by `title`, by fuzzy match; None when no heading is like it."""
    from rapidfuzz import fuzz, process, utils

    found = [section for section in sections(texts) if section.line]
    same = next((section for section in found if section.title.casefold() == title.strip().casefold()), None)
    if same is not None:
        return same
    hit = process.extractOne(
        title,
        [section.title for section in found],
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        score_cutoff=_NAMED,
    )
    return found[hit[2]] if hit else None


def _leads(texts: Iterable[str]) -> set[str]:
    """The stems of the words with which list items begin."""
    items = (line[found.end() :] for text in texts for line in text.split("\n") if (found := ITEM.match(line)))
    return _words(" ".join(re.findall(r"\w+", item)[:_LEAD]) for item in items)


def _words(texts: Iterable[str]) -> set[str]:
    """The stems of texts, Chinese, Japanese and Korean as bigrams, without function words, letters and numbers."""
    text = segmented("\n".join(texts)).encode("utf-8", "replace").decode()
    stops = function_words() | stop_words("en")
    plain = " ".join(
        word
        for word in re.findall(r"\w+", text.lower())
        if word not in stops and len(word) > 1 and not word.isdecimal()
    )
    return set(tokens(plain, stemmed=True))
