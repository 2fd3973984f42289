"""Why a candidate scored what it scored: arithmetic, line by line, until it adds up to the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memory_tui import profiles
from memory_tui.explain.wording import label, ordinal
from memory_tui.search.trace import UNKNOWN_WORDS, Candidate, ChunkRef, Mode, QueryPlan, Recalled, Trace
from memory_tui.text import words

Operation = Literal["+", "x", "=", ""]


_SIDES: dict[Mode, tuple[str, str]] = {
    "hybrid": ("hybrid", "sum of both sides"),
    "vectors only": ("sum", "the vector alone"),
    "keywords only": ("sum", "the words alone"),
    "nothing": ("sum", "nothing was searched"),
}
"""What the points of the sides add up to, by what was searched."""


_NO_VECTOR = {
    UNKNOWN_WORDS: "the embedding model knows no word of the query",
    "model_mismatch": "the vectors of the index are of another model",
    "provider": "meaning-based recall is off",
}
"""Why nothing has a cosine, by the code of the notice that tells more of it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One step: `value` is added, multiplied, or the running result; None on lines that only inform."""

    label: str
    detail: str
    operation: Operation = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class TermCount:
    """How often each word of the query stands in a chunk (0: missing), and the words nobody searched for."""

    counts: dict[str, int]
    dropped: tuple[str, ...]


def count_terms(plan: QueryPlan, text: str, profile: str) -> TermCount:
    """The words of `plan` counted in `text`, by stem where the profile stems."""
    stemmed = profiles.get(profile).join == "OR"
    present: dict[str, int] = {}
    for token in words.tokens(text, stemmed=stemmed):
        present[token] = present.get(token, 0) + 1
    counts = {}
    for word in plan.words:
        if plan.inside:
            counts[word] = text.lower().count(word.lower())
            continue
        own = words.tokens(word, stemmed=stemmed)
        counts[word] = (
            text.count(word)
            if stemmed and words.is_cjk(word)
            else min((present.get(token, 0) for token in own), default=0)
        )
    return TermCount(counts, plan.dropped)


def explain(candidate: Candidate, trace: Trace) -> list[Line]:
    """The lines of arithmetic of `candidate`; applying each operation in order ends at its score."""
    lines = [_vector(candidate, trace), _text(candidate, trace), Line(*_SIDES[trace.mode], "=", candidate.hybrid)]
    lines += _age(candidate, trace)
    if candidate.date_points:
        lines.append(Line("day", f"the query names {trace.plan.day.removeprefix('-')}", "+", candidate.date_points))
    lines.append(Line("score", "", "=", candidate.score))
    lines.append(_mmr(candidate))
    lines.append(_gate(candidate, trace))
    return lines


def terms_line(text: str, trace: Trace, *, chunk: ChunkRef | None = None, say_how: bool = True) -> Line:
    """The words that stand in `text` with counts, those missing, those left out; with `say_how` what is odd about them.

    With `chunk`, what is indexed with its text counts as well: the day in its name, and the headings above it.
    """
    count = count_terms(trace.plan, text, trace.profile)
    added = chunk is not None and _indexed_with_more(trace)
    dated = (
        count_terms(trace.plan, words.indexed_form(chunk.path, (), ""), trace.profile).counts
        if chunk is not None and added
        else {}
    )
    present = [_times(word, n, dated.get(word, 0)) for word, n in count.counts.items() if n or dated.get(word)]
    missing = [word for word, n in count.counts.items() if not n and not dated.get(word)]
    parts = [", ".join(present)] if present else []
    if missing:
        # The headings above are indexed with a chunk, but not kept with it; above the first line there are none.
        below = chunk is not None and added and chunk.start_line > 1
        parts.append(f"{'not in its lines or date' if below else 'missing'}: {', '.join(missing)}")
    if count.dropped:
        parts.append(f"left out: {', '.join(count.dropped)}")
    how = _how_matched(trace) if say_how else ""
    return Line("terms", ("; ".join(parts) or "no words to look for") + (how and f"  ({how})"))


def _indexed_with_more(trace: Trace) -> bool:
    """Whether words were looked for in more than the text of a chunk."""
    return profiles.get(trace.profile).join == "OR" and not trace.plan.inside and trace.mode != "vectors only"


def _times(word: str, in_text: int, in_date: int) -> str:
    """`sunday 3x`, and how many of them stand in the day of the file's name: `sunday 1x (date)`."""
    share = f" ({in_date} in the date)" if in_text else " (date)"
    return f"{word} {in_text + in_date}x{share if in_date else ''}"


def _how_matched(trace: Trace) -> str:
    """What a person would not expect of the words that are shown; empty where there is nothing."""
    plan = trace.plan
    said = ["not searched, only counted"] if trace.mode == "vectors only" and plan.words else []
    if profiles.get(trace.profile).join == "OR" and any(len(word) == 2 and words.is_cjk(word) for word in plan.words):
        said.append("Chinese, Japanese and Korean text is matched as pairs of characters")
    return "; ".join(said)


def file_line(path: str, trace: Trace) -> Line:
    """Whether the note on disk is what was indexed, as far as the last look at the folder knows."""
    known = next((item for item in trace.unsearchable if item.path == path), None)
    return Line("file", f"{known.state}: {known.detail}" if known else "indexed as it is on disk")


def _rank(rank: int | None, pool: int) -> str:
    return f"{ordinal(rank)} of {pool}" if rank else f"not among the {pool} candidates"


def _vector(candidate: Candidate, trace: Trace) -> Line:
    part = candidate.vector
    if part.cosine is None:
        return Line("vector", _no_cosine(trace), "+", 0.0)
    steps = [f"cosine {part.cosine:.3f}"]
    if profiles.get(trace.profile).vector_score == "share":
        steps.append(f"/ best {trace.vector_scale:.3f} = {part.score:.3f}")
    elif not part.in_pool and not part.points:
        steps.append("counts 0")
    steps += [_rank(part.rank, trace.funnel.vector_pool), f"x {part.weight:.2f}"]
    return Line("vector", "  ".join(steps), "+", part.points)


def _no_cosine(trace: Trace) -> str:
    """Why a chunk has no cosine: for a cause that the answer has a notice of, or for want of vectors."""
    if trace.funnel.vector_matches:
        return "this chunk has no vector"
    codes = {notice.code for notice in trace.notices}
    otherwise = "the index has no vectors" if trace.mode == "keywords only" else "the question has no vector"
    return next((cause for code, cause in _NO_VECTOR.items() if code in codes), otherwise)


def _text(candidate: Candidate, trace: Trace) -> Line:
    part, rules = candidate.text, profiles.get(trace.profile)
    if trace.mode == "vectors only":
        return Line("text", words_off(trace), "+", 0.0)
    if part.bm25 is None:
        return Line("text", "no word matched" if rules.join == "OR" else "not all words matched", "+", 0.0)
    formula = {
        "magnitude": f"/ best {trace.text_scale:.2f} = {part.score:.3f}",
        "saturated": f"r/(1+r) = {part.score:.3f}",
        "clamped": f"always {part.score:.1f} in this release",
    }[rules.text_score]
    steps = [f"bm25 {-part.bm25:.2f}", formula, _rank(part.rank, trace.funnel.text_pool), f"x {part.weight:.2f}"]
    return Line("text", "  ".join(steps), "+", part.points)


def words_off(trace: Trace) -> str:
    """Why words were not searched where vectors answered alone."""
    on = trace.settings.on("query.hybrid.enabled")
    return "there is no full-text search" if on else "hybrid is off: words are not searched"


def _age(candidate: Candidate, trace: Trace) -> list[Line]:
    part = candidate.age
    half_life = trace.settings.whole("query.hybrid.temporalDecay.halfLifeDays")
    if part.basis == "off":
        return [Line("age", "decay is off")]
    multiplies = profiles.get(trace.profile).age == "multiply"
    operation: Operation = "x" if multiplies else "+"
    value = part.factor if multiplies else part.points
    if part.age_days is None:
        return [Line("age", "evergreen, never fades", operation, value)]
    source = "" if part.basis == "name" else " by file time"
    detail = f"{part.age_days:.0f} d old{source}, half-life {half_life} d"
    return [Line("decay" if multiplies else "recency", detail, operation, value)]


def _mmr(candidate: Candidate) -> Line:
    part = candidate.mmr
    if part is None:
        return Line("mmr", "off")
    if part.twin is None:
        return Line("mmr", "chosen first")
    return Line(
        "mmr", f"chosen {ordinal(part.place)}; shares {part.similarity:.0%} of its words with {part.twin.citation}"
    )


def _gate(candidate: Candidate, trace: Trace) -> Line:
    verdict = candidate.verdict
    floor = trace.floor if isinstance(verdict, Recalled) else getattr(verdict, "floor", trace.floor)
    sign = ">=" if candidate.score >= floor else "<"
    limit = trace.settings.whole("query.maxResults")
    place = getattr(verdict, "place", None)
    order = f"  {ordinal(place)} {'<=' if place <= limit else '>'} {limit}" if place else ""
    return Line("gate", f"{candidate.score:.3f} {sign} {floor:g}{order}  {label(verdict)}")
