"""Where words of a query stand that the index does not hold.

An answer may call a word absent only when neither holds it. Both looks are bounded: an answer does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.tokens import as_asked
from memory_tui.search.trace import Elsewhere, Unsearchable

if TYPE_CHECKING:
    from memory_tui.search.evidence import Evidence
    from memory_tui.source.protocol import ChunkSource

MOST_WORDS = 8
MOST_NOTES = 64
MOST_CHARACTERS = 2_000_000
"""Of the notes that wait, no more than this is read for one question."""


class UnindexedTexts:
    """The texts of notes that wait to be indexed, read once for each look at the disk; `read` gives one by its path."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._of: Sequence[Unsearchable] = ()
        self._texts: dict[str, str] = {}

    def texts(self, unsearchable: Sequence[Unsearchable]) -> dict[str, str]:
        """Path and text in lower case of the notes among `unsearchable` that wait, as many as are looked through."""
        if unsearchable is not self._of:
            self._of, self._texts, room = unsearchable, {}, MOST_CHARACTERS
            for path in pending(unsearchable)[:MOST_NOTES]:
                if room <= 0:
                    break
                try:
                    text = self._read(path)
                except MemoryTuiError:
                    # It was deleted, or cannot be read: then it holds nothing that could be found.
                    text = ""
                self._texts[path] = text[:room].lower()
                room -= len(text)
        return self._texts


def pending(unsearchable: Sequence[Unsearchable]) -> list[str]:
    """Paths of the notes that wait to be indexed, or were being written when they were read."""
    return [item.path for item in unsearchable if item.state in ("pending", "changed while read")]


def words_elsewhere(evidence: Evidence, source: ChunkSource, waiting: UnindexedTexts) -> Elsewhere:
    """Where the words of `evidence` stand that no indexed chunk was found to hold."""
    lacking = _lacking(evidence)
    if not lacking:
        return Elsewhere()
    # In ASCII a word is what stands between blanks and signs; other scripts have words that no tokenizer cuts out.
    uncut = tuple(word for word in lacking if not word.isascii() and len(source.words.containing(word)))
    paths = pending(evidence.unsearchable)
    if not paths:
        return Elsewhere(uncut)
    texts = waiting.texts(evidence.unsearchable)
    found = ((word, next((path for path, text in texts.items() if word.lower() in text), "")) for word in lacking)
    return Elsewhere(uncut, tuple((word, path) for word, path in found if path), len(paths), len(paths) - len(texts))


def _lacking(evidence: Evidence) -> tuple[str, ...]:
    """The words of the question, as it was asked, that no chunk holds by any way of looking; a few of them at most."""
    sides = [evidence.openclaw, evidence.recommended, *(evidence.keywords.each if evidence.keywords else ())]
    absent = (word for side in sides for word in side.plan.words if side.frequency.get(word, 1) == 0)
    return as_asked(absent, evidence.query)[:MOST_WORDS]
