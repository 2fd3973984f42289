"""A terminal shows hits as the screen does. A hit takes two lines, with bar, title and marked words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from memory_tui.core.formatting import age_words, plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.explain.matched_words import MatchedWords, Span
from memory_tui.render.hit_text import age_of, hit_text
from memory_tui.render.score_bar import perfect, score_bar
from memory_tui.search.evidence import Evidence
from memory_tui.search.trace import Candidate, Trace

COLOURS = {"vector": "34", "text": "33", "added": "32", "lost": "2", "muted": "2", "strong": "1", "warn": "33"}
MATCH = "1;4;33"
"""Matched words are bold and underlined as well, for who sees no colour."""
PLAIN = {"lost": "2", "muted": "2", "strong": "1", "match": "1;4"}
"""What is left of the styles without colour."""
BAR, AGE, INDENT, LOST = 14, 11, 5, 5
NARROWEST, WIDEST = 40, 120


def hits(trace: Trace, evidence: Evidence, columns: int, *, colour: bool, full: bool) -> Iterator[str]:
    """What is recalled, two lines a hit, or with `full` its whole snippet; then the first of what is not."""
    page = _Page(
        trace, evidence, max(NARROWEST, min(WIDEST, columns)), {**COLOURS, "match": MATCH} if colour else PLAIN
    )
    yield page.style(f"Recalled {len(trace.recalled)} of {len(trace.recalled) + len(trace.lost)}", "strong")
    for place, hit in enumerate(trace.recalled, 1):
        yield ""
        yield from page.hit(place, hit, full=full)
    if trace.lost:
        yield ""
        yield page.style("Not recalled", "strong")
        for hit in trace.lost[:LOST]:
            yield page.miss(hit)
        if len(trace.lost) > LOST:
            yield page.style(f"     and {plural(len(trace.lost) - LOST, 'chunk')} more; --explain tells why", "muted")


class _Page:
    """The rows of one answer, `width` columns wide."""

    def __init__(self, trace: Trace, evidence: Evidence, width: int, colours: Mapping[str, str]) -> None:
        self._trace, self._evidence, self._width, self._colours = trace, evidence, width, colours
        self._words = MatchedWords.of(trace)
        self._scale = perfect(trace)

    def style(self, text: str, name: str) -> str:
        code = self._colours.get(name, "")
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def _marked(self, text: str, spans: Sequence[Span], style: str = "") -> str:
        drawn, at = "", 0
        for start, end in spans:
            if start < len(text):
                drawn += self.style(text[at:start], style) + self.style(text[start : min(end, len(text))], "match")
                at = min(end, len(text))
        return drawn + self.style(text[at:], style)

    def hit(self, place: int, hit: Candidate, *, full: bool) -> Iterator[str]:
        chunk = hit.chunk
        told = hit_text(hit, self._evidence.texts.get(chunk.rowid, hit.snippet), self._words, self._trace.now)
        bar = "".join(self.style(text, kind) for text, kind in score_bar(hit, self._scale, BAR))
        age = f"{age_words(age_of(hit, self._trace.now)):<{AGE}}"
        title = self._marked(told.title, told.title_marks, "strong")
        yield f"{self.style(f'{place:>3}', 'strong')}  {hit.score:.3f} {bar} {self.style(age, 'muted')}  {title}"
        room = self._width - INDENT
        lines = (
            safe(hit.snippet, keep_newlines=True).strip("\n").split("\n")
            if full
            else textwrap.wrap(told.body, room, max_lines=2, placeholder=" …")
        )
        for line in lines:
            for part in textwrap.wrap(line, room) or [""]:
                yield f"{'':{INDENT}}{self._marked(part, self._words.spans(part))}"
        yield f"{'':{INDENT}}{self.style(one_line(chunk.citation), 'muted')}"

    def miss(self, hit: Candidate) -> str:
        from memory_tui.explain import wording

        why = self.style(wording.reason(hit.verdict), "warn")
        return f"{'':{INDENT}}{hit.score:.3f}  {self.style(one_line(hit.chunk.citation), 'muted')}  {why}"
