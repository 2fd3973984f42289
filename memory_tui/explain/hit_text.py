"""Hit text is what a list says of a hit. It has the name of its note, its title, the words that matter, and its age."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from msgspec import Struct

from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import Flips
from memory_tui.explain.why_not import Account, WhyNot
from memory_tui.explain.wording import MatchedWords, ScoreLine, Span
from memory_tui.formatting import age_words, cells, one_line, plural, safe
from memory_tui.search.excerpts import Excerpt
from memory_tui.search.rank import Trace
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import Candidate, ChunkRef, SecondPart
from memory_tui.workspace.notes import date_of, heading_on, overtaken_in, span, telling, title_of

NAMED = 3
"""Side effects, and overtaken lines, named on a line; the others are counted."""
_WIDEST = 1_000
"""Cells of the words of a row: a query may hold a word of any length."""


def answer(value: WhyNot, changes: Flips | None = None) -> Iterator[str]:
    """Yield the verdict, its arithmetic, what would change it, and the other chunks that hold the line."""
    yield f"{wording.label(value.fate)}  {value.best.shown.citation if value.best is not None else value.place.path}"
    yield value.fate.message
    yield from filter(None, (value.place.remark, value.unsent))
    if value.best is not None:
        yield from map(_row, steps(value.best, value.trace))
    if changes is not None:
        none = changes.none.message if changes.none else ""
        without = wording.without(changes.without, value.place.line) if changes.without else ""
        yield from filter(None, (none, without))
        for change in (*changes.singles, *changes.sets):
            also = [_few(sign, refs) for sign, refs in (("+", change.comes_in), ("-", change.drops_out)) if refs]
            yield f"With {'   '.join([wording.change(change), *also])}"
        yield from (claim.message for claim in (changes.no_pair, changes.no_words) if claim is not None)
        if changes.rephrased:
            yield f"Query: {'   or '.join(map(wording.rephrased, changes.rephrased))}"
    for other in value.others:
        yield f"Also holds the line: {other.shown.citation}  {wording.label(other.fate)}"
    if value.more:
        yield f"and {plural(value.more, 'chunk')} of the note that score lower"


def _few(sign: str, refs: Sequence[ChunkRef]) -> str:
    """Return where the first of some chunks stand, behind a `sign`, and how many more there are."""
    more = f" and {len(refs) - NAMED} more" if len(refs) > NAMED else ""
    return f"{sign} {', '.join(ref.citation for ref in refs[:NAMED])}{more}"


def _row(line: ScoreLine) -> str:
    """Return a step of a sum as a line of text: label, operation and number in columns, then what it is."""
    # A figure is an operation, a space, and the number.
    number = f"{line.figure[0]} {line.figure[2:]:>7}" if line.value is not None else ""
    return f"    {line.label + ' ':<8}{number + ' ':<11}{one_line(line.detail, _WIDEST)}".rstrip()


def steps(account: Account, trace: Trace) -> list[ScoreLine]:
    """Return the lines of arithmetic and of words; for a chunk that was not proposed, what it would have scored."""
    terms = wording.terms_line(account.text, trace, chunk=account.chunk)
    if account.candidate is None:
        return [terms]
    lines = wording.explain(account.candidate, trace)
    if not account.proposed:
        # The last two lines tell of MMR and of the gate, which it never came to.
        lines = [*lines[:-2], ScoreLine("gate", f"not a candidate; as one it would have {account.candidate.score:.3f}")]
    return [*lines, terms]


def arithmetic(hit: Candidate, trace: Trace, *, first: bool) -> Iterator[str]:
    """Yield how a hit got its score; the `first` one says also how words are searched."""
    terms = wording.terms_line(trace.evidence.texts[hit.chunk.rowid], trace, chunk=hit.chunk, say_how=first)
    yield from map(_row, [*wording.explain(hit, trace), terms])


def place_of(part: Excerpt) -> str:
    """Return where a passage stands, as a citation, and what is to be known of it."""
    hit, chunk = part.hit, part.hit.chunk
    of = "" if part.is_whole else f"shortened from L{chunk.start_line}-L{hit.last_line}"
    remarks = of, hit.remarks, overtaken_words(part.text, part.lines[0])
    return ", ".join(filter(None, (f"{chunk.path}#L{part.first}-L{part.last}", *remarks)))


def overtaken_words(text: str, first: int) -> str:
    """Return which lines of a text that begins at line `first` are overtaken, in words; empty for none."""
    lines = overtaken_in(text, first)
    shown = ", ".join(map(str, lines[:NAMED])) + (", ..." if len(lines) > NAMED else "")
    return f"line{'' if len(lines) == 1 else 's'} {shown} overtaken by a newer one" if lines else ""


VECTOR, TEXT, ADDED, FADED = "█", "▒", "+", "·"
"""The parts of a score's bar; they differ in shape so that they can be told apart without colour."""


def perfect(trace: Trace) -> float:
    """Return the score that fills a bar: 1, or both weights where a release lets them add up to more."""
    return max(1.0, trace.rules.vector_weight + trace.rules.text_weight)


def score_bar(candidate: Candidate, scale: float, width: int) -> list[tuple[str, str]]:
    """Return what the score is made of: vector, text and added points, and as dots what age took away.

    Of the second stage, what words and letters give is text, and what meaning gives is vector.
    """
    factor = candidate.age_factor * candidate.first_share
    second = candidate.second or SecondPart(weight=0.0, score=0.0, points=0.0)
    meaning = sum(measure.points for measure in second.measures if "meaning" in measure.name) * second.weight
    parts = (
        (VECTOR, "vector", candidate.vector_points * factor + meaning),
        (TEXT, "text", candidate.text_points * factor + second.points - meaning - second.lost),
        (ADDED, "added", candidate.age_points + candidate.date_points),
        (FADED, "lost", candidate.hybrid * (1 - candidate.age_factor) + second.lost),
    )
    # Each part is drawn from the rounded sum before it to the rounded sum with it, so that the bar has no gaps.
    totals = accumulate(max(0.0, points) for _, _, points in parts)
    bounds = pairwise([0, *(min(width, round(total / scale * width)) for total in totals)])
    drawn = [(sign * (end - start), name) for (sign, name, _), (start, end) in zip(parts, bounds, strict=True)]
    return [*drawn, (" " * (width - sum(len(text) for text, _ in drawn)), "")]


LOOKED_AT = 4_000
"""Characters of a chunk that a row is made from."""
LONGEST = 900
"""Characters of a row's text."""
LEAD = 24
"""Characters that stay before the first matched word, so that it is read with what it belongs to."""

_FRAME = re.compile(r"[\s|:+-]*")
_ITEM = re.compile(r"\A\s*(?:(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?|>\s?)")


class HitText(Struct, frozen=True):
    """A hit in words, safe to show on one line; `marks` are where words of the query stand in `body`."""

    name: str
    title: str
    body: str
    marks: Sequence[Span]


def hit_text(candidate: Candidate, text: str, words: MatchedWords, today: dt.date, most: int = LONGEST) -> HitText:
    """Return what a list says of `candidate`, whose chunk holds `text`, as of `today`, in `most` characters."""
    lines = text[:LOOKED_AT].split("\n")
    at = candidate.line - candidate.chunk.start_line
    if not 0 <= at < len(lines) or not lines[at].strip():
        # Without a line that answers best, that with the first matched word, else the first line.
        at = next((at for at, line in enumerate(lines) if words.spans(line)), 0)
    # A heading further down names what comes after it.
    title = one_line(title_of(candidate.chunk.path, "\n".join(lines[: at + 1]), at))
    body = body_of(lines, words, at, title, most)
    return HitText(note_name(candidate.chunk, today), title, body, words.spans(body))


def note_name(chunk: ChunkRef, today: dt.date) -> str:
    """Return a short name of the note: the date of a log, else its file; with the line where the chunk begins."""
    if not (dated := date_of(chunk.path)):
        return f"{safe(chunk.path.removeprefix('memory/'))}:{chunk.start_line}"
    return date_name(dated, today) + (f":{chunk.start_line}" if chunk.start_line > 1 else "")


def day_of(evidence: Evidence) -> dt.date:
    """Return the day of a question, in the zone in which its days begin."""
    return dt.datetime.fromtimestamp(evidence.now, dt.UTC).astimezone(evidence.question.zone).date()


def date_name(dated: str, today: dt.date) -> str:
    """Return `9 Nov`, `week 45` or `Nov`, with its year where that is not within the last eleven months."""
    first, last = span(dated)
    # From a month ahead to eleven months back: there no date can be taken for that of another year.
    near = -31 < (today - first).days < 330
    name, year = ("week %V", "%G") if "W" in dated else ("%B", "%Y")
    name = f"{first.day} %b" if first == last else name
    return first.strftime(name if near else f"{name} {year}")


def body_of(lines: Sequence[str], words: MatchedWords, at: int, title: str = "", most: int = LONGEST) -> str:
    """Return the text from 0-based line `at` on, without list signs and headings, from near a matched word."""
    # Where nothing is left from that line on, all of the text.
    body = _joined(lines[at:], title, most) or _joined(lines, title, most)
    # Where the first matched word begins.
    first = next(iter(words.spans(body)), (0, 0))[0]
    # It begins with a whole word; without a space before the matched word it is left as it is.
    start = body.find(" ", first - LEAD) + 1 if first > 2 * LEAD else 0
    return f"… {body[start:]}" if 0 < start <= first else body


def _joined(lines: Sequence[str], title: str, most: int) -> str:
    """Return the lines as one, at most `most` characters.

    " / " parts a heading or an item of a list from a line before it that ends without punctuation.
    """
    parts: list[str] = []
    for line in lines:
        if sum(map(len, parts)) >= most:
            break
        if plain := _plain(line, title):
            apart = parts and parts[-1][-1].isalnum() and (heading_on(line) is not None or _ITEM.match(line))
            parts.append(f"/ {plain}" if apart else plain)
    return one_line(" ".join(parts), most)


def _plain(line: str, title: str) -> str:
    """Return a line as a sentence; nothing of a heading that is the title or a day."""
    if (heading := heading_on(line)) is not None:
        # Empty where the heading is nothing but a day.
        words = one_line(telling(heading, ""))
        return f"{words}:" if words and words != title else ""
    return "" if _FRAME.fullmatch(line) else _ITEM.sub("", line, count=1).strip().strip("|").strip()


def age_of(candidate: Candidate, today: dt.date) -> float | None:
    """Return the age as the score counts it; while it does not count, that of the date in the note's path."""
    if candidate.age_basis == "off" and (dated := date_of(candidate.chunk.path)):
        return float((today - span(dated)[0]).days)
    return candidate.age_days


def age_in_list(days: float | None) -> str:
    """Return an age in nine cells: `today`, `14 days`, `7 weeks`, `10 months`, `always`."""
    if days is None:
        return "always"
    return plural(round(days / 7), "week") if 28 <= days < 100 else age_words(days)


PLAIN = {"lost": "2", "muted": "2", "strong": "1", "match": "1;4"}
"""The styles without colour; matched words are bold and underlined, for who sees none."""
COLOURS = {**PLAIN, "vector": "34", "text": "33", "added": "32", "warn": "33", "match": "1;4;33"}
BAR, AGE, INDENT, LOST, SHORT = 14, 11, 5, 5, 2
NARROWEST, WIDEST = 40, 120


def hits(trace: Trace, passages: Sequence[Excerpt], columns: int, *, colour: bool, full: bool) -> Iterator[str]:
    """Yield what is recalled, two lines a hit, or with `full` what an agent reads of it; then the first misses."""
    codes = COLOURS if colour else PLAIN
    words, room, today = MatchedWords.of(trace), max(NARROWEST, min(WIDEST, columns)) - INDENT, day_of(trace.evidence)

    def style(text: str, name: str) -> str:
        """Return `text` in the style `name`; plain where there is no such style."""
        code = codes.get(name, "")
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def marked(text: str, name: str = "") -> str:
        """Return `text` in the style `name`, but for the words of the query in it."""
        drawn, at = "", 0
        for start, end in words.spans(text):
            drawn += style(text[at:start], name) + style(text[start:end], "match")
            at = end
        return drawn + style(text[at:], name)

    count = f"{'Nearest' if trace.keeps_back else 'Recalled'} {len(trace.recalled)} of {trace.funnel['candidates']}"
    yield style(count, "strong") + style("" if full else "; --full prints what an agent reads", "muted")
    for place, (hit, part) in enumerate(zip(trace.recalled, passages, strict=True), 1):
        row = hit_text(hit, trace.evidence.texts[hit.chunk.rowid], words, today)
        bars = "".join(style(text, kind) for text, kind in score_bar(hit, perfect(trace), BAR))
        age = style(f"{age_words(age_of(hit, today)):<{AGE}}", "muted")
        title = marked(row.title, "strong")
        lines = safe(part.text.strip("\r\n"), keep_newlines=True).split("\n") if full else [row.body]
        rows = [piece for line in lines for piece in wrapped(line, room)]
        # What is longer than SHORT lines ends with a sign that more follows.
        if not full and len(rows) > SHORT:
            rows = [*rows[: SHORT - 1], f"{wrapped(rows[SHORT - 1], room - 2)[0]} …"]
        yield ""
        yield f"{style(f'{place:>3}', 'strong')}  {hit.score:.3f} {bars} {age}  {title}"
        yield from (f"{'':{INDENT}}{marked(piece)}" for piece in rows)
        yield f"{'':{INDENT}}{style(one_line(place_of(part)), 'muted')}"
    yield from ("", style("Not recalled", "strong")) if trace.lost else ()
    for hit in trace.lost[:LOST]:
        why = style(hit.verdict.short, "warn")
        yield f"{'':{INDENT}}{hit.score:.3f}  {style(one_line(hit.citation), 'muted')}  {why}"
    if len(trace.lost) > LOST:
        yield style(f"     and {plural(len(trace.lost) - LOST, 'chunk')} more; --explain tells why", "muted")


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` cells; a word that is wider is cut, as Chinese is."""
    lines, used = [""], 0
    for word in re.findall(r"\s*\S+", text):
        if used + sum(map(cells, word)) > width and used:
            lines.append("")
            word, used = word.lstrip(), 0
        for character in word:
            if used + cells(character) > width:
                lines.append("")
                used = 0
            lines[-1] += character
            used += cells(character)
    return lines
