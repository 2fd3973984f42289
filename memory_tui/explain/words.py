"""Words of a query: where they stand in a text, as the search finds them, and what an answer lacks."""

from __future__ import annotations

import re
from functools import lru_cache

from memory_tui import profiles, tokens
from memory_tui.sanitize import one_line
from memory_tui.search.trace import QueryPlan, Trace
from memory_tui.tokens import CJK

Span = tuple[int, int]
"""Start and end of a piece of text, in characters."""

REMEMBERED = 512
"""Texts of which it is remembered where the words stand."""


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


def holds(text: str, word: str) -> bool:
    """Return whether a reader finds `word` in `text`: letters of ASCII as a word of their own, others anywhere."""
    if not word.isascii():
        return word.casefold() in text.casefold()
    # Letters of another alphabet make one word with it; Chinese, Japanese and Korean characters do not.
    return re.search(rf"(?<![^\W{CJK}]){re.escape(word.lower())}(?![^\W{CJK}])", text.lower()) is not None
