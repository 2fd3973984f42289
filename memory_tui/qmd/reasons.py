"""Reasons say why QMD's answer lacks a line: what can be known, nothing invented."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.core.cancel import Stop
from memory_tui.core.formatting import plural
from memory_tui.core.tokens import is_cjk
from memory_tui.qmd import index
from memory_tui.qmd.index import Collection

if TYPE_CHECKING:
    from memory_tui.qmd.answer import QmdHit
    from memory_tui.qmd.client import QmdAnswer, QmdClient

_DEEPEST = 200
"""How far down QMD's own ranking a note is looked for."""
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


def why(client: QmdClient, found: QmdAnswer, path: str, line: int, stop: Stop | None = None) -> str:
    """Why line `line` (1-based; 0 for any) of the note `path` is not among the hits `found`, or that it is.

    Raises QmdFailure, Cancelled.
    """
    if found.denied:
        return found.denied
    for hit in found.hits:
        if hit.path == path and (not line or hit.start_line <= line <= hit.end_line):
            return f"QMD has it at rank {hit.rank}."
    state = client.ready(stop)
    collections = [one.collection for one in state.sources.values()]
    home = _home(client, collections, path)
    if home is None:
        names = ", ".join(one.name for one in collections)
        return f"It is in no collection of QMD: {names}."
    collection, below = home
    if reason := _outdated(collection, below):
        return reason
    if shown := next((hit for hit in found.hits if hit.path == path), None):
        return (
            f"QMD gives one passage a note, and of this one lines {shown.start_line} to {shown.end_line} "
            f"(rank {shown.rank})."
        )
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


def _outdated(collection: Collection, below: str) -> str:
    if below not in collection.documents:
        return "It changed since QMD's last update: QMD's index lacks the note. Run memory-tui qmd update."
    state = next((one for one in index.compared(collection) if one.path == below), None)
    if state is not None and state.difference:
        return f"It changed since QMD's last update: {state.detail} Run memory-tui qmd update."
    return ""


def _lacking(client: QmdClient, query: str, collection: Collection, below: str) -> str:
    """The first part of the question that the note does not satisfy, as QMD's own full-text table says."""
    parts = terms(query)
    if not any(not part.negated for part in parts):
        return "The question has no word that QMD looks for, and QMD searches nothing then."
    held = index.matching(client.place.index, [part.expression for part in parts], collection.name, below)
    absent = [part.words for part, holds in zip(parts, held, strict=True) if not part.negated and not holds]
    if absent:
        more = f" (nor {', '.join(absent[1:])})" if absent[1:] else ""
        return (
            f"The note lacks the word {absent[0]}{more}, and QMD gives only notes that hold every word of the question."
        )
    unwanted = next((part.words for part, holds in zip(parts, held, strict=True) if part.negated and holds), "")
    return f"The note holds {unwanted}, which the question rules out." if unwanted else ""


def _deeper(ranked: list[QmdHit], path: str, given: int) -> str:
    below = next((hit for hit in ranked if hit.path == path), None)
    if below is None:
        return "QMD does not say."
    return f"QMD has the note at rank {below.rank}, and only {plural(given, 'hit')} are given."
