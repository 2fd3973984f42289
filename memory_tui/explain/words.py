"""Words of a query: where they stand in a text, as the search finds them, and where those are that it does not find.

An answer may call a word absent only when neither the index nor a note on disk that waits for it holds it. Both looks
are bounded: an answer does not wait for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from memory_tui import profiles, tokens
from memory_tui.errors import MemoryTuiError
from memory_tui.index.store import Store
from memory_tui.index.sync import FileState
from memory_tui.sanitize import one_line
from memory_tui.search.evidence import Evidence
from memory_tui.search.trace import Elsewhere, QueryPlan, Trace
from memory_tui.tokens import CJK

Span = tuple[int, int]
"""Start and end of a piece of text, in characters."""

REMEMBERED = 512
"""Texts of which it is remembered where the words stand."""
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


class MatchedWords:
    """The words of one query, to be found in any text."""

    def __init__(self, plan: QueryPlan, profile: str) -> None:
        self._stemmed = profiles.get(profile).join == "OR"
        self._cut: dict[str, list[str] | None] = {
            word: None
            if plan.inside or (self._stemmed and tokens.is_cjk(word))
            else tokens.tokens(word, stemmed=self._stemmed)
            for word in plan.words
        }
        """The tokens of each word, None for one that is found as it is written."""
        self.spans = lru_cache(REMEMBERED)(self._spans)
        """Where the words stand in a text, in order and apart from each other."""

    @classmethod
    def of(cls, trace: Trace | None) -> MatchedWords:
        """Return the words that `trace` was answered by; none where no words answered."""
        if trace is None or trace.mode in ("vectors only", "nothing"):
            return cls(QueryPlan((), (), ""), profiles.OWN)
        return cls(trace.plan, trace.profile)

    def __bool__(self) -> bool:
        return any(cut is None or cut for cut in self._cut.values())

    def counts(self, text: str) -> dict[str, int]:
        """Return how often each word stands in `text`."""
        return {word: len(spans) for word, spans in self._each(text).items()}

    def _spans(self, text: str) -> tuple[Span, ...]:
        marked = bytearray(len(text))
        for spans in self._each(text).values():
            for start, end in spans:
                marked[start:end] = b"1" * (end - start)
        return tuple(run.span() for run in re.finditer(rb"1+", marked))

    def _each(self, text: str) -> dict[str, list[Span]]:
        if not self._cut:
            return {}
        # Lower case with as many characters as before; a millisecond for ten texts, and few words are found as written.
        as_written = None in self._cut.values()
        lowered = "".join(low if len(low := each.lower()) == 1 else each for each in text) if as_written else ""
        # Runs of Chinese, Japanese or Korean are found as written; beside them words end.
        plain = tokens.CJK_RUN.sub(lambda run: " " * len(run[0]), text) if self._stemmed else text
        cut, data = tokens.spans(plain, stemmed=self._stemmed), plain.encode("utf-8", "replace")
        names = [name for name, _, _ in cut]

        def phrases(words: list[str]) -> list[Span]:
            last = len(words) - 1
            starts = [at for at, name in enumerate(names) if words and name == words[0]]
            places = [(cut[at][1], cut[at + last][2]) for at in starts if names[at : at + last + 1] == words]
            # The tokenizer counts bytes.
            return [(len(data[:start].decode()), len(data[:end].decode())) for start, end in places]

        return {
            word: [match.span() for match in re.finditer(re.escape(word.lower()), lowered)]
            if words is None
            else phrases(words)
            for word, words in self._cut.items()
        }


# --- words that no chunk was found to hold -----------------------------------------------------------------------


class UnindexedTexts:
    """The texts of notes that wait to be indexed, read once for each look at the disk; `read` gives one by its path.

    Safe for several threads: what is handed out never changes.
    """

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._last: tuple[Sequence[FileState], dict[str, str]] = (), {}

    def texts(self, unsearchable: Sequence[FileState]) -> dict[str, str]:
        """Path and text in lower case of the notes among `unsearchable` that wait, as many as are looked through."""
        if unsearchable is self._last[0]:
            return self._last[1]
        texts, room = dict[str, str](), MOST_CHARACTERS
        for path in pending(unsearchable)[:MOST_NOTES]:
            try:
                text = self._read(path)[:room] if room else None
            except MemoryTuiError:
                # It was deleted, or cannot be read: then it holds nothing that could be found.
                text = ""
            if text is not None:
                texts[path] = text.lower()
                room -= len(text)
        # Only now: another question looks through all of them, or reads them itself.
        self._last = unsearchable, texts
        return texts


def pending(unsearchable: Sequence[FileState]) -> list[str]:
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
    """Return where the words of `evidence` stand that no indexed chunk was found to hold by any way of looking."""
    each = evidence.keywords.each if evidence.keywords else ()
    plans = [(side.plan, side.frequency) for side in (evidence.openclaw, evidence.recommended, *each)]
    plans += [(search.plan, search.frequency) for search in evidence.lexical.searches]
    absent = (word for plan, frequency in plans for word in plan.words if frequency.get(word, 1) == 0)
    lacking = tokens.as_asked(absent, evidence.query)[:MOST_WORDS]
    if not lacking:
        return Elsewhere()
    looks = {word: _in_texts(word, source) for word in lacking}
    looked = tuple(word for word, there in looks.items() if there is not None)
    uncut = tuple(word for word in looked if looks[word])
    parts = ((word, _part_in_texts(word, source)) for word in looked if not looks[word])
    paths, texts = pending(evidence.unsearchable), waiting.texts(evidence.unsearchable)
    holders = ((word, next((path for path in texts if word.lower() in texts[path]), "")) for word in lacking)
    return Elsewhere(
        uncut,
        tuple((word, path) for word, path in holders if path),
        len(paths),
        len(paths) - len(texts),
        looked,
        tuple((word, part) for word, part in parts if part),
        tuple(word for word in uncut if source.words.cut() and source.words.frequency([word], "plain")[0]),
    )


def holds(text: str, word: str) -> bool:
    """Return whether a reader finds `word` in `text`: letters of ASCII as a word of their own, others anywhere."""
    if not word.isascii():
        return word.casefold() in text.casefold()
    # Letters of another alphabet make one word with it; Chinese, Japanese and Korean characters do not.
    return re.search(rf"(?<![^\W{CJK}]){re.escape(word.lower())}(?![^\W{CJK}])", text.lower()) is not None


def _in_texts(word: str, source: Store) -> bool | None:
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
    parts = []
    for run in tokens.CJK_RUN.findall(word):
        pairs = [run[at : at + 2] for at in range(min(len(run) - 1, MOST_PAIRS))]
        counts = source.words.frequency(pairs, "stemmed")
        indexed = [pair if count else "\0" for pair, count in zip(pairs, counts, strict=True)]
        # A run of neighbours that are all indexed is cut out of these characters.
        parts += [joined[::2] + joined[-1] for joined in "".join(indexed).split("\0") if joined]
        parts += [pair for pair in indexed if pair != "\0"]
    by_length = sorted(dict.fromkeys(parts), key=len, reverse=True)
    likely = [*by_length[:MOST_PARTS], *by_length[-1:]]
    return next((part for part in likely if len(source.words.containing(part))), "")
