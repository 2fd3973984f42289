"""Words of a query that the index does not hold, with the notes on disk that do.

An answer may call a word absent only when neither holds it. Both looks are bounded: an answer does not wait for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line
from memory_tui.search.trace import Elsewhere, Trace, Unsearchable
from memory_tui.tokens import CJK, CJK_RUN, as_asked

if TYPE_CHECKING:
    from memory_tui.index.store import Store
    from memory_tui.search.evidence import Evidence

MOST_WORDS = 8
MOST_TEXTS = 256
"""Texts that are read to see whether one of them holds a word."""
MOST_PAIRS = 64
"""Pairs of characters of one run that are looked for."""
MOST_PARTS = 3
"""Parts of a word that the texts are looked through for, the longest first."""
MOST_NOTES = 64
MOST_CHARACTERS = 2_000_000
"""Of the notes that wait, no more than this is read for one question."""


class UnindexedTexts:
    """The texts of notes that wait to be indexed, read once for each look at the disk; `read` gives one by its path.

    Safe for several threads: what is handed out never changes.
    """

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._last: tuple[Sequence[Unsearchable], dict[str, str]] = (), {}

    def texts(self, unsearchable: Sequence[Unsearchable]) -> dict[str, str]:
        """Path and text in lower case of the notes among `unsearchable` that wait, as many as are looked through."""
        if unsearchable is (last := self._last)[0]:
            return last[1]
        texts, room = dict[str, str](), MOST_CHARACTERS
        for path in pending(unsearchable)[:MOST_NOTES]:
            if room <= 0:
                break
            try:
                text = self._read(path)
            except MemoryTuiError:
                # It was deleted, or cannot be read: then it holds nothing that could be found.
                text = ""
            texts[path] = text[:room].lower()
            room -= len(text)
        # Only now: another question looks through all of them, or reads them itself.
        self._last = unsearchable, texts
        return texts


def pending(unsearchable: Sequence[Unsearchable]) -> list[str]:
    """Return paths of the notes that wait to be indexed, or were being written when they were read."""
    return [item.path for item in unsearchable if item.state in ("pending", "changed while read")]


def notes_lacking(trace: Trace, reader: str, *, by_itself: bool) -> tuple[str, str] | None:
    """Return which notes the answer lacks as they are on disk, and what to do; None where it lacks none.

    `reader` prints a note; `by_itself`: who answers indexes where the settings allow it.
    """
    pending = [item for item in trace.unsearchable if item.state == "pending"]
    if not pending:
        return None
    most, due, steps = 5, [item for item in pending if not item.patient], []
    if due and by_itself and any(trace.settings.on(f"sync.{name}") for name in ("onSearch", "watch")):
        steps.append(f"They are being indexed: ask again in a moment, or read them with {reader}.")
    elif due:
        nobody = "Nothing indexes them by itself: run" if by_itself else "Run"
        steps.append(f"{nobody} memory-tui index, or read them with {reader}.")
    if len(due) < len(pending):
        first = next(item for item in pending if item.patient)
        steps.append(f"Below the threshold, and not being indexed: {one_line(first.path)} ({one_line(first.detail)}).")
    named = ", ".join(one_line(item.path) for item in pending[:most])
    more = f" and {len(pending) - most} more" if len(pending) > most else ""
    return f"Not in this answer as on disk: {named}{more}.", " ".join(steps)


def words_elsewhere(evidence: Evidence, source: Store, waiting: UnindexedTexts) -> Elsewhere:
    """Return where the words of `evidence` stand that no indexed chunk was found to hold."""
    lacking = _lacking(evidence)
    if not lacking:
        return Elsewhere()
    looked, uncut, parts, whole = [], [], [], []
    for word in lacking:
        in_texts = _held_by_texts(word, source)
        if in_texts is None:
            continue
        looked.append(word)
        if in_texts:
            uncut.append(word)
            if source.words.cut() and source.words.frequency([word], "plain")[0]:
                whole.append(word)
        elif part := _part_in_texts(word, source):
            parts.append((word, part))
    elsewhere = Elsewhere(tuple(uncut), looked=tuple(looked), parts=tuple(parts), whole=tuple(whole))
    paths = pending(evidence.unsearchable)
    if not paths:
        return elsewhere
    texts = waiting.texts(evidence.unsearchable)
    held_by = ((word, next((path for path, text in texts.items() if word.lower() in text), "")) for word in lacking)
    return replace(
        elsewhere,
        held=tuple((word, path) for word, path in held_by if path),
        waiting=len(paths),
        unread=len(paths) - len(texts),
    )


def _lacking(evidence: Evidence) -> tuple[str, ...]:
    """The words of the question, as it was asked, that no chunk holds by any way of looking; a few of them at most."""
    sides = [evidence.openclaw, evidence.recommended, *(evidence.keywords.each if evidence.keywords else ())]
    searches = [(side.plan, side.frequency) for side in sides]
    searches += [(search.plan, search.frequency) for search in evidence.lexical.searches]
    absent = (word for plan, frequency in searches for word in plan.words if frequency.get(word, 1) == 0)
    return as_asked(absent, evidence.query)[:MOST_WORDS]


def holds(text: str, word: str) -> bool:
    """Return whether a reader finds `word` in `text`: letters of ASCII as a word of their own, others anywhere."""
    if not word.isascii():
        return word.casefold() in text.casefold()
    # Letters of another alphabet make one word with it; Chinese, Japanese and Korean characters do not.
    return re.search(rf"(?<![^\W{CJK}]){re.escape(word.lower())}(?![^\W{CJK}])", text.lower()) is not None


def _held_by_texts(word: str, source: Store) -> bool | None:
    """Return whether a text holds `word`; None where too many texts would have to be read to tell."""
    if not word.isascii():
        forms = {word, word.lower(), word.upper(), word.capitalize()}
        return any(len(source.words.containing(form)) for form in forms)
    # Full-text search of stems cuts words out of Chinese, Japanese and Korean clauses: what it lacks no text holds.
    if not source.words.cut():
        return False
    rowids = source.words.match([word], "stemmed", "any")[0]
    if any(holds(text, word) for text in source.texts(rowids[:MOST_TEXTS]).values()):
        return True
    return None if len(rowids) > MOST_TEXTS else False


def _part_in_texts(word: str, source: Store) -> str:
    """The longest part of the Chinese, Japanese or Korean characters of `word` that a text holds; else empty."""
    if not source.words.cut():
        return ""
    found = []
    for run in CJK_RUN.findall(word):
        pairs = [run[at : at + 2] for at in range(min(len(run) - 1, MOST_PAIRS))]
        known = [pair for pair, count in zip(pairs, source.words.frequency(pairs, "stemmed"), strict=True) if count]
        joined = "".join(pair if pair in known else "\0" for pair in pairs)
        found += [part for part in map(_joined, joined.split("\0")) if part] + known
    by_length = sorted(dict.fromkeys(found), key=len, reverse=True)
    likely = [*by_length[:MOST_PARTS], *by_length[-1:]]
    return next((part for part in likely if len(source.words.containing(part))), "")


def _joined(pairs: str) -> str:
    """Return the run that pairs of neighbours, written one behind the other, are cut out of."""
    return pairs[::2] + pairs[-1:]
