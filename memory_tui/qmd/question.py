"""A question is taken apart as QMD takes it apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_tui.core.tokens import is_cjk

_HYPHENATED = re.compile(r"[^\W_][\w'-]*-[^\W_][\w'-]*\Z")
_DOTTED = re.compile(r"\w+(?:\.\w+)+\Z")
_PART = re.compile(r'(-?)"([^"]*)"?|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a question as QMD asks for it: its words, the full-text expression, and whether it must not match."""

    words: str
    expression: str
    negated: bool = False


def terms(query: str) -> list[Term]:
    """The parts of `query` by QMD's rule: all must match, a word as the beginning of one; those with `-` must not."""
    found = []
    for part in _PART.finditer(query):
        if part[3] is None:
            phrase = " ".join(filter(None, map(_clean, part[2].split())))
            found += [Term(part[2], f'"{phrase}"', bool(part[1]))] if phrase else []
            continue
        negated, word = part[3].startswith("-"), part[3].removeprefix("-")
        found += [Term(word, expression, negated) for expression in _expressions(word)]
    return found


def _expressions(word: str) -> Iterator[str]:
    if _HYPHENATED.match(word):
        yield f'"{" ".join(filter(None, map(_clean, word.split("-"))))}"'
    elif _DOTTED.match(word):
        yield from (f'"{_clean(piece)}"*' for piece in word.split(".") if _clean(piece))
    elif is_cjk(word):
        # QMD stores such text with a blank around each character, and asks for the characters in a row.
        yield f'"{" ".join(letter for letter in word if letter.isalnum())}"'
    elif cleaned := _clean(word):
        yield f'"{cleaned}"*'


def _clean(word: str) -> str:
    return "".join(letter for letter in word if letter.isalnum() or letter in "'_").lower()
