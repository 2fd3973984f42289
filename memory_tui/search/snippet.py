"""The 700 characters of a chunk that an agent gets to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_tui.text import js, words

LENGTH = 700
"""UTF-16 units of a snippet (OpenClaw)."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """The text shown, and how many lines of the chunk stand before it."""

    text: str
    lines_before: int


def head(text: str) -> Snippet:
    """The first 700 UTF-16 units, never half a character (OpenClaw)."""
    return Snippet(js.utf16_head(text, LENGTH), 0)


def matches(text: str, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    """Where the words of `weights` stand in `text`, as (character, word) in order; words match by stem."""
    stem_of = {stem: word for word in weights for stem, _, _ in words.stems(word)}
    found: list[tuple[int, str]] = []
    data = text.encode("utf-8", "replace")
    byte, char = 0, 0
    for stem, start, _ in words.stems(text):
        if stem in stem_of:
            char += len(data[byte:start].decode("utf-8", "replace"))
            byte = start
            found.append((char, stem_of[stem]))
    # unicode61 sees a whole clause of Chinese as one word, so bigrams are looked up as they are.
    for gram in (word for word in weights if words.is_cjk(word)):
        at = text.find(gram)
        while at >= 0:
            found.append((at, gram))
            at = text.find(gram, at + 1)
    return sorted(found)


def window(text: str, weights: Mapping[str, float]) -> Snippet:
    """700 characters around the words that say most: the window with the greatest sum of distinct word weights."""
    if js.utf16_len(text) <= LENGTH:
        return Snippet(text, 0)
    found = matches(text, weights)
    if not found:
        return head(text)
    best, span = -1.0, (0, 0)
    held: dict[str, int] = {}
    value, end = 0.0, 0
    for i, (start, first) in enumerate(found):
        # The window moves along the words: each enters it once and leaves it once.
        while end < len(found) and (end < i or found[end][0] + len(found[end][1]) <= start + LENGTH):
            word = found[end][1]
            held[word] = held.get(word, 0) + 1
            end += 1
        # A repeated word counts a little, so that of two windows with the same words the denser one wins.
        value = sum(weights[word] for word in held) + 0.01 * (end - i)
        if value > best:
            last = found[end - 1] if end > i else (start, "")
            best, span = value, (start, last[0] + len(last[1]))
        if end > i:
            held[first] -= 1
            if not held[first]:
                del held[first]
    room = LENGTH - (span[1] - span[0])
    start = max(0, min(span[0] - room // 2, len(text) - LENGTH))
    line = text.rfind("\n", 0, span[0]) + 1
    # Begin with the line of the first word when it is near, otherwise where the room allows.
    if line >= start or span[0] - line <= room:
        start = line if span[0] - line <= room else start
    shown = js.utf16_head(text[start:], LENGTH)
    return Snippet(shown, text.count("\n", 0, start))
