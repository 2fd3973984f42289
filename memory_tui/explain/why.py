"""Why a chunk has its score: arithmetic that adds up line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_tui.core import profiles, tokens
from memory_tui.core.formatting import plural
from memory_tui.explain import wording
from memory_tui.explain.absent_words import holds
from memory_tui.explain.score_lines import (
    Operation,
    ScoreLine,
    divided,
    fewest,
    lifted,
    made_of,
    neighbour_lines,
    product_shown,
    rounded,
    same,
    second_lines,
)
from memory_tui.explain.wording import label
from memory_tui.notices import Notice, against, language_label, number, ordinal
from memory_tui.search.formulas import left_by_age
from memory_tui.search.trace import Candidate, ChunkRef, Factor, Mode, QueryPlan, Recalled, Trace

_SIDES: dict[Mode, tuple[str, str]] = {
    "hybrid": ("hybrid", "sum of both sides"),
    "vectors only": ("sum", "the vector alone"),
    "keywords only": ("sum", "the words alone"),
    "nothing": ("sum", "nothing was searched"),
}
"""What the points of the sides add up to, by what was searched."""


_NO_VECTOR = {
    "unknown_words": "the embedding model knows no word of the query",
    "unknown_language": "the built-in table does not know this language",
    "model_mismatch": "the vectors of the index are of another model",
    "provider": "meaning-based recall is off",
}
"""Why nothing has a cosine, by the code of the notice that tells more of it."""


class Digits(Struct, frozen=True):
    """How many decimals each number of a candidate's sum needs, so that a reader who redoes it gets what stands there.

    `total` is for the sum of both sides and what age and day do to it, `points` for what the sides give.
    """

    total: int
    points: int

    @classmethod
    def of(cls, candidate: Candidate, trace: Trace) -> Digits:
        """The fewest that do, from 3 on."""
        multiplies = profiles.get(trace.profile).age == "multiply"
        named = is_named(candidate)

        def score(digits: int) -> bool:
            hybrid = 1.0 if named else rounded(candidate.hybrid, digits) * rounded(candidate.first_share, digits)
            if (second := candidate.second) is not None:
                hybrid += rounded(second.points, digits) - rounded(second.lost, digits)
            if not multiplies:
                hybrid += rounded(candidate.age_points, digits)
            elif not named:
                hybrid *= rounded(candidate.age_factor, digits)
            for factor in _counted(candidate):
                hybrid *= rounded(factor.value, digits)
            return same(hybrid + rounded(candidate.date_points, digits), candidate.score, 3)

        def hybrid(digits: int) -> bool:
            both = rounded(candidate.vector_points, digits) + rounded(candidate.text_points, digits)
            return same(both, candidate.hybrid, total)

        total = fewest(3, score)
        return cls(total, fewest(total, hybrid))


def is_named(candidate: Candidate) -> bool:
    """Whether the question names its note, so that what it holds counts only among such notes."""
    return candidate.level > 0


def _counted(candidate: Candidate) -> list[Factor]:
    """What multiplies the score beside age: of a named note its projects alone."""
    return [one for one in candidate.factors if one.term == "project" or not is_named(candidate)]


class TermCount(Struct, frozen=True):
    """How often each word of the query stands in a chunk (0: missing), and the words nobody searched for."""

    counts: dict[str, int]
    dropped: tuple[str, ...]


def count_terms(plan: QueryPlan, text: str, profile: str) -> TermCount:
    """The words of `plan` counted in `text`, by stem where the profile stems."""
    stemmed = profiles.get(profile).join == "OR"
    present: dict[str, int] = {}
    for token in tokens.tokens(text, stemmed=stemmed):
        present[token] = present.get(token, 0) + 1
    counts = {}
    for word in plan.words:
        if plan.inside:
            counts[word] = text.lower().count(word.lower())
            continue
        own = tokens.tokens(word, stemmed=stemmed)
        counts[word] = (
            text.count(word)
            if stemmed and tokens.is_cjk(word)
            else min((present.get(token, 0) for token in own), default=0)
        )
    return TermCount(counts, plan.dropped)


def explain(candidate: Candidate, trace: Trace) -> list[ScoreLine]:
    """The lines of arithmetic of `candidate`; applying each operation in order ends at its score."""
    digits = Digits.of(candidate, trace)
    lines = [
        _vector(candidate, trace, digits.points),
        _text(candidate, trace, digits.points),
        ScoreLine(*_SIDES[trace.mode], "=", candidate.hybrid, digits.total),
    ]
    lines += second_lines(candidate, digits.total)
    lines += _named(candidate, digits.total) if is_named(candidate) else _age(candidate, trace, digits.total)
    lines += [
        ScoreLine(
            "factor", f"{one.term} {one.said}" if one.said else f"no {one.term} marker", "x", one.value, digits.total
        )
        for one in _counted(candidate)
    ]
    ordered_by_words = profiles.get(trace.profile).exact_paths and not candidate.hybrid and candidate.merit
    if ordered_by_words and not is_named(candidate):
        how = f"its score is 0; among such chunks its words place it, with {candidate.merit:.3f}"
        lines.append(ScoreLine("order", how))
    if candidate.date_points:
        day = f'"{trace.plan.time_words}" names {trace.plan.time}'
        lines.append(ScoreLine("day", day, "+", candidate.date_points, digits.total))
    lines += neighbour_lines(candidate, digits.total)
    above = "above 1, because of its factors" if round(candidate.score, 3) > 1 else ""
    lines.append(ScoreLine("score", above, "=", candidate.score))
    lines.append(_mmr(candidate))
    lines.append(_gate(candidate, trace))
    return lines


def _named(candidate: Candidate, digits: int) -> list[ScoreLine]:
    """What a note that the question names counts, and by what it stands among such notes."""
    names = ("this note's name without its ending", "this note's name", "this note's path")
    how = f"the question is {names[candidate.level - 1]}"
    factors = "".join(f" x {one.value:.2f} {one.term}" for one in candidate.factors if one.value != 1.0)
    age = f" x {candidate.age_factor:.3f} age" if candidate.age_factor != 1.0 else ""
    middle = (1 + min(1.0, max(0.0, candidate.hybrid))) / 2
    return [
        ScoreLine(
            "order",
            f"among notes that the question names, by (1 + {candidate.hybrid:.3f})/2 = {middle:.3f}{age}{factors}",
        ),
        ScoreLine("path", f"{how}: that raises its score to 1", "+", 1.0 - candidate.hybrid, digits),
    ]


def terms_line(text: str, trace: Trace, *, chunk: ChunkRef | None = None, say_how: bool = True) -> ScoreLine:
    """The words that stand in `text` with counts, those missing, those left out; with `say_how` what is odd about them.

    With `chunk`, what is indexed with its text counts as well: the day in its name, and the headings above it.
    """
    count = count_terms(trace.plan, text, trace.profile)
    added = chunk is not None and _indexed_with_more(trace)
    dated = (
        count_terms(trace.plan, tokens.indexed_form(chunk.path, (), ""), trace.profile).counts
        if chunk is not None and added
        else {}
    )
    present: list[str] = []
    missing: list[str] = []
    unseen: list[str] = []
    for run, own in _by_run(count.counts, trace).items():
        held = [word for word in own if count.counts[word] or dated.get(word)]
        if not held:
            (unseen if holds(text, run) else missing).append(run)
        elif own == [run]:
            present.append(_times(run, count.counts[run], dated.get(run, 0)))
        else:
            present.append(f"{run} ({len(held)} of {plural(len(own), 'pair')} of characters)")
    parts = [", ".join(present)] if present else []
    if missing:
        # The headings above are indexed with a chunk, but not kept with it; above the first line there are none.
        below = chunk is not None and added and chunk.start_line > 1
        parts.append(f"{'not in its lines or date' if below else 'missing'}: {', '.join(missing)}")
    if unseen:
        parts.append(f"inside longer words, not seen: {', '.join(unseen)}")
    if dropped := [_left_out(one, trace) for one in wording.left_out(trace.plan, trace.profile)]:
        parts.append(f"left out: {', '.join(dropped)}")
    if say_how and trace.plan.time:
        searched = "" if trace.plan.time_alone else ", not searched"
        parts.append(f'"{trace.plan.time_words}" is read as {trace.plan.time}{searched}')
    how = _how_matched(trace) if say_how else ""
    return ScoreLine("terms", ("; ".join(parts) or "no words to look for") + (how and f"  ({how})"))


def _left_out(claim: Notice, trace: Trace) -> str:
    return wording.with_reason(_whole(claim.fields["words"], trace), claim.fields["reason"])


def _whole(dropped: Sequence[str], trace: Trace) -> list[str]:
    """Words as a person asked them; of pairs of characters, which are no words, how many of which run."""
    whole = {word: tokens.as_asked([word], trace.query)[0] for word in dropped}
    pairs = Counter(run for word, run in whole.items() if run != word)
    return [word for word, run in whole.items() if run == word] + [
        f"{plural(count, 'pair')} of characters of {run}" for run, count in pairs.items()
    ]


def _by_run(counts: Mapping[str, int], trace: Trace) -> dict[str, list[str]]:
    """The words as they stand in the question, each with the words, or pairs of characters, that were searched for."""
    found: dict[str, list[str]] = {}
    for word in counts:
        found.setdefault(tokens.as_asked([word], trace.query)[0], []).append(word)
    return found


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
    if profiles.get(trace.profile).join == "OR" and any(len(word) == 2 and tokens.is_cjk(word) for word in plan.words):
        said.append("Chinese, Japanese and Korean text is matched as pairs of characters")
    return "; ".join(said)


def file_line(path: str, trace: Trace) -> ScoreLine:
    """Whether the note on disk is what was indexed, as far as the last look at the folder knows."""
    known = next((item for item in trace.unsearchable if item.path == path), None)
    return ScoreLine("file", f"{known.state}: {known.detail}" if known else "indexed as it is on disk")


def _rank(rank: int, pool: int) -> str:
    if rank and rank > pool:
        return f"{ordinal(rank)}, beyond the {pool} candidates"
    return f"{ordinal(rank)} of {pool}" if rank else f"not among the {pool} candidates"


def _vector(candidate: Candidate, trace: Trace, digits: int) -> ScoreLine:
    if candidate.cosine is None:
        return ScoreLine("vector", _no_cosine(trace), "+", 0.0, digits)
    score, weight = product_shown(candidate.vector, candidate.vector_weight, candidate.vector_points, digits)
    profile = profiles.get(trace.profile)
    if not candidate.vector_points:
        steps = [f"cosine {candidate.cosine:.3f}", "counts 0"]
    elif profile.vector_score == "share":
        steps = divided("cosine", candidate.cosine, trace.vector_scale, score, 3)
    elif floor := profile.floor_of(trace.provider):
        steps = lifted(candidate.cosine, floor, score)
    else:
        steps = [f"cosine {score}"]
    steps += [_rank(candidate.vector_rank, trace.funnel.vector_pool), f"x {weight}"]
    return ScoreLine("vector", "  ".join(steps), "+", candidate.vector_points, digits)


def _no_cosine(trace: Trace) -> str:
    """Why a chunk has no cosine: for a cause that the answer has a notice of, or for want of vectors."""
    if trace.funnel.vector_matches:
        return "this chunk has no vector"
    codes = {notice.code for notice in trace.notices}
    otherwise = "the index has no vectors" if trace.mode == "keywords only" else "the question has no vector"
    return next((cause for code, cause in _NO_VECTOR.items() if code in codes), otherwise)


def answered_by(trace: Trace) -> tuple[str, str]:
    """What one question was answered by, whatever searches go by, and why not by both; empty where it was both."""
    codes = {notice.code for notice in trace.notices}
    if unknown := next((one for one in trace.notices if one.kind == "language_unknown"), None):
        hardly = "the built-in table hardly knows it" if unknown.fields["known"] else _NO_VECTOR["unknown_language"]
        return language_label(**unknown.fields), hardly
    match trace.mode:
        case "hybrid" if "unknown_words" in codes:
            return "by words only", _NO_VECTOR["unknown_words"]
        case "hybrid" if not trace.plan.fts_query:
            return "by vectors only", "no word to look for"
        case "hybrid" if "meaning_alone" in codes:
            return "by vectors only", trace.plan.unmatched
        case "hybrid":
            return "by words and vectors", ""
        case "keywords only":
            cause = next((cause for code, cause in _NO_VECTOR.items() if code in codes), "the index has no vectors")
            return "by words only", cause
        case "vectors only":
            return "by vectors only", words_off(trace)
        case "nothing":
            return "by nothing", next(
                (cause for code, cause in _NO_VECTOR.items() if code in codes), "no word to look for"
            )


def _unmatched(trace: Trace, join: str) -> str:
    """Why words gave a chunk nothing; a word that was left out may well stand in it."""
    plan = trace.plan
    if not plan.words:
        return "no word to look for"
    if join == "OR" or " OR " in plan.fts_query:
        return "no word that counts matched" if plan.dropped else "no word matched"
    # Of Chinese, Japanese and Korean text one word may have been searched in pieces.
    return "not all words matched" if len(tokens.as_asked(plan.words, trace.query)) > 1 else "the word did not match"


def _text(candidate: Candidate, trace: Trace, digits: int) -> ScoreLine:
    rules = profiles.get(trace.profile)
    if trace.mode == "vectors only":
        return ScoreLine("text", words_off(trace), "+", 0.0, digits)
    if candidate.lexical is not None:
        return _lexical(candidate, trace, digits)
    if candidate.bm25 is None:
        return ScoreLine("text", _unmatched(trace, rules.join), "+", 0.0, digits)
    relevance = -candidate.bm25
    score, weight = product_shown(candidate.text, candidate.text_weight, candidate.text_points, digits)
    if not candidate.text and not candidate.text_rank and rules.text_score != "magnitude":
        outside = f"not among the {trace.funnel.text_pool} candidates, counts 0"
        return ScoreLine("text", f"bm25 {made_of((relevance,), 2, lambda r: r[0] > 0)[0]}  {outside}", "+", 0.0, digits)
    if rules.text_score == "magnitude":
        steps = divided("bm25", relevance, trace.text_scale, score, 2)
    elif rules.text_score == "saturated" and relevance <= 0:
        steps = [f"bm25 {-relevance:g}", f"1/(1+r) = {score}"]
    elif rules.text_score == "saturated":
        places = len(score.partition(".")[2])
        (own,) = made_of((relevance,), 2, lambda r: same(r[0] / (1 + r[0]), float(score), places))
        steps = [f"bm25 {own}", f"r/(1+r) = {score}"]
    else:
        steps = [
            f"bm25 {made_of((relevance,), 2, lambda r: r[0] > 0)[0]}",
            f"always {candidate.text:.1f} in this release",
        ]
    steps += [_rank(candidate.text_rank, trace.funnel.text_pool), f"x {weight}"]
    return ScoreLine("text", "  ".join(steps), "+", candidate.text_points, digits)


def _lexical(candidate: Candidate, trace: Trace, digits: int) -> ScoreLine:
    """How the words of a chunk, or of its path, made the keyword score of OpenClaw 2026.9."""
    found = candidate.lexical
    if found is None:
        raise ValueError("a candidate that words did not find")
    score, weight = product_shown(candidate.text, candidate.text_weight, candidate.text_points, digits)
    term = [f'keyword "{found.term}" alone'] if found.term else []
    end = [_rank(candidate.text_rank, trace.funnel.text_pool), f"x {weight}"]
    if not found.body and not found.level and not candidate.text_rank:
        return ScoreLine(
            "text", _unmatched(trace, profiles.get(trace.profile).join), "+", candidate.text_points, digits
        )
    if not found.body:
        steps = ["found by its path alone"] if found.level else [*term, f"words in its path {score}", *end]
        return ScoreLine("text", "  ".join(steps), "+", candidate.text_points, digits)
    if not candidate.text_points:
        return ScoreLine("text", "  ".join([*term, "looked through for its words: no points"]), "+", 0.0, digits)
    places = max(4, len(score.partition(".")[2]) + 1)
    gains = (found.asked, found.held, found.path_words, found.length)
    named = zip(gains, ("words asked", "share of its words", "words in path", "length"), strict=True)
    steps = [f"{found.text_score:.{places}f} bm25", *(f"+ {gain:.{places}f} {name}" for gain, name in named if gain)]
    steps.append(f"= {score}{', 1 at most' if found.text_score + sum(gains) > 1 else ''}")
    return ScoreLine("text", "  ".join([*term, *steps, *end]), "+", candidate.text_points, digits)


def words_off(trace: Trace) -> str:
    """Why words were not searched where vectors answered alone."""
    on = trace.settings.on("query.hybrid.enabled")
    return "there is no full-text search" if on else "hybrid is off: words are not searched"


def _age(candidate: Candidate, trace: Trace, digits: int) -> list[ScoreLine]:
    half_life = trace.settings.whole("query.hybrid.temporalDecay.halfLifeDays")
    if candidate.age_basis == "off":
        return [ScoreLine("age", "decay is off")]
    multiplies = profiles.get(trace.profile).age == "multiply"
    operation: Operation = "x" if multiplies else "+"
    value = candidate.age_factor if multiplies else candidate.age_points
    weight, most = "", trace.settings.number("recency.weight") * candidate.share
    shown = f"{value:.{digits}f}"
    if not multiplies:
        # What age adds is a weight times what age leaves of 1.
        shown, most_shown = product_shown(
            left_by_age(candidate.age_days, half_life), most, candidate.age_points, digits
        )
        weight = f"{shown} x {most_shown}  "
    if candidate.age_days is None:
        return [
            ScoreLine("age" if multiplies else "recency", f"{weight}evergreen, never fades", operation, value, digits)
        ]
    source = "" if candidate.age_basis == "name" else " by file time"
    old = _days(candidate.age_days, half_life, shown)
    return [
        ScoreLine(
            "decay" if multiplies else "recency",
            f"{weight}{old}{source}, half-life {half_life} d",
            operation,
            value,
            digits,
        )
    ]


def _days(age_days: float, half_life: float, factor: str) -> str:
    """An age with as many decimals as it takes to get at `factor` by the half-life."""
    if age_days < 0:
        return f"dated {-age_days:,.0f} d ahead, so not aged"
    places = len(factor.partition(".")[2])
    digits = fewest(0, lambda n: same(left_by_age(rounded(age_days, n), half_life), float(factor), places))
    return f"{age_days:.{digits}f} d old"


def _mmr(candidate: Candidate) -> ScoreLine:
    part = candidate.mmr
    if part is None:
        return ScoreLine("mmr", "off")
    if part.twin is None:
        return ScoreLine("mmr", "chosen first")
    return ScoreLine(
        "mmr", f"chosen {ordinal(part.place)}; shares {part.similarity:.0%} of its words with {part.twin.citation}"
    )


def _gate(candidate: Candidate, trace: Trace) -> ScoreLine:
    verdict = candidate.verdict
    floor = floor_of(candidate, trace)
    sign = ">=" if candidate.score >= floor else "<"
    limit = trace.settings.whole("query.maxResults")
    place = getattr(verdict, "place", None)
    order = f"  {ordinal(place)} {'<=' if place <= limit else '>'} {limit}" if place else ""
    return ScoreLine("gate", f"{against(candidate.score, floor)} {sign} {number(floor)}{order}  {label(verdict)}")


def floor_of(candidate: Candidate, trace: Trace) -> float:
    """What the score of `candidate` had to reach."""
    verdict = candidate.verdict
    if isinstance(verdict, Recalled) and verdict.rescued:
        return trace.settings.number("query.minScore")
    return float(getattr(verdict, "floor", trace.floor))


def in_a_line(candidate: Candidate, trace: Trace) -> str:
    """The whole arithmetic as one formula: `.40 x 0.854 + .60 x 0.818 = 0.832 + 0.020 recency = 0.852 >= 0.35`.

    With a second stage it begins with the sum of both sides, so that its end is seen on a narrow screen.
    """
    digits = Digits.of(candidate, trace)
    sides = " + ".join(
        " x ".join(reversed(product_shown(*side, digits.points)))
        for side in (
            (candidate.vector, candidate.vector_weight, candidate.vector_points),
            (candidate.text, candidate.text_weight, candidate.text_points),
        )
    )
    formula = f"{sides} = {candidate.hybrid:.{digits.total}f}"
    more = ""
    if candidate.first_share != 1.0:
        formula = f"{candidate.hybrid:.{digits.total}f}"
        more += f" x {candidate.first_share:.{digits.total}f} base"
    if (second := candidate.second) is not None:
        more += f" + {second.points:.{digits.total}f} rerank"
        more += f" - {second.lost:.{digits.total}f} neighbour" if second.lost else ""
    if is_named(candidate):
        formula = f"named by the question: {1:.{digits.total}f}"
    elif profiles.get(trace.profile).age == "multiply" and candidate.age_factor != 1.0:
        more += f" x {candidate.age_factor:.{digits.total}f} age"
    for one in _counted(candidate):
        if one.value != 1.0:
            more += f" x {one.value:.{digits.total}f} {one.term}"
    if candidate.age_points >= 0.0005:
        more += f" + {candidate.age_points:.{digits.total}f} recency"
    if candidate.date_points:
        more += f" + {candidate.date_points:.{digits.total}f} day"
    floor = floor_of(candidate, trace)
    last = against(candidate.score, floor)
    # The sum alone is not enough where it seems to lie on the other side of what it had to reach.
    if more or (float(formula.rpartition(" ")[2]) >= floor) != (candidate.score >= floor):
        more += f" = {last}"
    place = getattr(candidate.verdict, "place", None)
    limit = trace.settings.whole("query.maxResults")
    order = f"  {ordinal(place)}, limit {limit}" if place else ""
    return f"{formula}{more} {'>=' if candidate.score >= floor else '<'} {number(floor)}{order}"
