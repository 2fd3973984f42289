"""What an answer says, in sentences and in sums: a verdict, what would change it, what a score is.

A sum is told line by line, with as many digits as redoing it takes. Why nothing came stands in `sentences.TABLE`.
Profiles are told apart by what they do: OpenClaw 2026.9 alone has `exact_paths`, our own alone the `join` OR.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import tokens
from memory_tui.config.settings import BY_KEY, profile_named, show
from memory_tui.explain.counterfactuals import WEIGHT, Change, Rephrased, Turn
from memory_tui.explain.why_not import holds
from memory_tui.formatting import one_line, plural
from memory_tui.providers import registry
from memory_tui.search.keyword import FEWEST_LETTERS
from memory_tui.search.lexical_2026_9 import by_words
from memory_tui.search.rank import Trace
from memory_tui.search.score import decay_factor
from memory_tui.search.trace import Candidate, ChunkRef, Hit, MeasurePart, Mode, QueryPlan
from memory_tui.sentences import LEFT_OUT, Notice, against, language_label, notice, number, ordinal, quoted


def label(fate: Notice) -> str:
    """Return what became of a line as a title: RECALLED 3rd, NEAREST 3rd, or NOT RECALLED with its gate."""
    if fate.kind != "recalled":
        return f"NOT RECALLED ({fate.brief})"
    place = ordinal(fate.fields["place"])
    return f"NEAREST {place}, kept back" if fate.fields["kept_back"] else f"RECALLED {place}"


# --- words ----------------------------------------------------------------------------------------------------------


def left_out(plan: QueryPlan, profile: str) -> tuple[Notice, ...]:
    """Return the words of a question that were not searched for, pairs of characters one by one, by reason."""
    # Our own profile, the only one that asks for any word, leaves out other words than OpenClaw.
    any_word = profile_named(profile).join == "OR"

    def reason(word: str) -> str:
        """Return why a word was left out: a key of LEFT_OUT."""
        # A pair of characters is no word, so that it can only be a common one.
        if any_word:
            return "common" if word in plan.common or tokens.is_cjk(word) else "stop word"
        if word.isdigit():
            return "number"
        return "short" if len(word) < FEWEST_LETTERS and word.isascii() and word.isalpha() else "stop word"

    words: dict[str, list[str]] = {}
    for word in plan.dropped:
        words.setdefault(reason(word), []).append(word)
    return tuple(notice("words_left_out", words=tuple(each), reason=why) for why, each in words.items())


# --- what would change it -------------------------------------------------------------------------------------------


def turn(value: Turn) -> str:
    """Return a knob at a value, in words: `half-life 50 d`, `mmr on`, `vector : text .45 : .55`."""
    if value.key == WEIGHT:
        return f"vector : text {value.value:.2f} : {1 - float(value.value):.2f}".replace("0.", ".")
    knob = BY_KEY[value.key]
    return f"{knob.label} {show(knob, value.value)}"


def change(value: Change) -> str:
    """Return a change that turns the verdict, for a list: `results 9 + minScore .20: would be recalled (6th)`."""
    then = f"would be recalled ({ordinal(value.place)})" if value.place else "would be dropped"
    return f"{' + '.join(map(turn, value.turns))}: {then}"


def change_sentence(value: Change) -> str:
    """Return what a change does, as a whole sentence."""
    what = f"Recalled as the {ordinal(value.place)}" if value.place else "No longer recalled"
    turns = " and ".join(map(turn, value.turns))
    together = " together" if len(value.turns) > 1 else ""
    moved = (("brings in", value.comes_in), ("pushes out", value.drops_out))
    also = [f"{verb} {plural(len(refs), 'other')}" for verb, refs in moved if refs]
    return f"{what} with {turns}{together}{'; it also ' + ' and '.join(also) if also else ''}."


def without(value: Change, line: int | None) -> str:
    """Return that a change sends a passage, but not the line of it that was asked about."""
    return f"With {' + '.join(map(turn, value.turns))} its passage would be sent, but not line {line} of it."


def rephrased(question: Rephrased) -> str:
    """Return a question that recalls a chunk: `add "garlic" of line 7 (2nd)`."""
    leave = f"leave out {quoted(question.left_out, len(question.left_out))}"
    add = f'add "{question.word}"' + (f" of line {question.line}" if question.line else "")
    return f"{add if question.word else leave} ({ordinal(question.place)})"


# --- the sum of a score ---------------------------------------------------------------------------------------------

Operation = Literal["+", "x", "=", ""]
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
_UNIT = {"line words": "bm25", "window meaning": "cosine", "letters": "bm25", "like words": "share"}
"""What each measure of the second stage is measured in."""


class ScoreLine(Struct, frozen=True):
    """One step: `value` is added, multiplied, or the running result; None on lines that only inform."""

    label: str
    detail: str
    operation: Operation = ""
    value: float | None = None
    digits: int = 3

    @property
    def figure(self) -> str:
        """Return the operation and the value, with as many digits as redoing the sum takes; empty without a value."""
        if self.value is None:
            return ""
        # What is below 0 is told as taken away.
        taken = self.operation == "+" and self.value < 0
        return f"{'-' if taken else self.operation} {-self.value if taken else self.value:.{self.digits}f}"


def explain(candidate: Candidate, trace: Trace) -> list[ScoreLine]:
    """Return the lines of arithmetic of `candidate`; applying each operation in order ends at its score."""
    named = candidate.level > 0
    lines = [
        ScoreLine("vector", _vector(candidate, trace), "+", candidate.vector_points),
        ScoreLine("text", _text(candidate, trace), "+", candidate.text_points),
        ScoreLine(*_SIDES[trace.rules.mode], "=", candidate.hybrid),
        *_second(candidate),
        *(_named(candidate) if named else [_age(candidate, trace)]),
    ]
    for factor in candidate.factors:
        # A note that the question names counts 1, whatever its importance: only its projects multiply that.
        if factor.term == "project" or not named:
            marker = f"{factor.term} {factor.said}" if factor.said else f"no {factor.term} marker"
            lines.append(ScoreLine("factor", marker, "x", factor.value))
    if trace.rules.profile.exact_paths and not candidate.hybrid and candidate.merit and not named:
        how = f"its score is 0; among such chunks its words place it, with {candidate.merit:.3f}"
        lines.append(ScoreLine("order", how))
    if candidate.date_points:
        plan = trace.side.plan
        title, how = "title", "the question is the title or file name of this note"
        if plan.time:
            title, how = "day", f'"{plan.time_words}" names {plan.time}, or some days before'
        elif plan.for_now:
            title, how = "now", f'"{plan.for_now}": the newest of what says the same gains most'
        elif plan.value:
            title, how = "value", f'"{plan.value}": a line holds such a value and the other words'
        lines.append(ScoreLine(title, how, "+", candidate.date_points))
    if candidate.second is not None and candidate.second.beside is not None:
        beside = f"{candidate.second.beside.citation}, which scores higher"
        lines.append(ScoreLine("next to", beside, "+", -candidate.second.lost))
    if candidate.newer:
        lines.append(ScoreLine("older", f"its value is an older one: {candidate.newer} states a newer"))
    above = "above 1, because of its factors" if round(candidate.score, 3) > 1 else ""
    lines.append(ScoreLine("score", above, "=", candidate.score))
    # As few digits as the sum can be redone with.
    for digits in range(3, 10):
        # The score itself has three digits.
        lines = [line if line.label == "score" else replace(line, digits=digits) for line in lines]
        if _redone(lines):
            break
    return [*lines, _mmr(candidate), ScoreLine("gate", f"{_gate(candidate, trace)}  {label(candidate.verdict)}")]


def _redone(lines: Sequence[ScoreLine]) -> bool:
    """Return whether the sum, redone with the digits that are shown, comes to each result that is shown."""
    running = 0.0
    for line in lines:
        value = round(line.value or 0.0, line.digits)
        if line.operation == "=":
            # Off by more than half of the last digit that is shown, and a little for floating point.
            if abs(running - value) > 0.5001 * 10.0**-line.digits:
                return False
            running = value
        elif line.operation:
            running = running * value if line.operation == "x" else running + value
    return True


def _gate(candidate: Candidate, trace: Trace) -> str:
    """Return a score beside what it had to reach, and its place beside the limit."""
    fields, most = candidate.verdict.fields, trace.settings.whole("query.maxResults")
    place = fields.get("place", 0)
    # Only a verdict that the score was too low has a floor. A rescued hit passed although it is below minScore.
    floor = trace.rules.min_score if fields.get("rescued") else fields.get("floor", trace.floor)
    order = f"  {ordinal(place)} {'<=' if place <= most else '>'} {most}" if place else ""
    return f"{against(candidate.score, floor)} {'>=' if candidate.score >= floor else '<'} {number(floor)}{order}"


def _rank(rank: int, pool: int) -> str:
    """Return a rank among the candidates of one side; 0 is none."""
    if rank and rank > pool:
        return f"{ordinal(rank)}, beyond the {pool} candidates"
    return f"{ordinal(rank)} of {pool} candidates" if rank else f"not among the {pool} candidates"


def _weight(weight: float) -> str:
    """Return that a number is multiplied by `weight`."""
    return f"x {number(round(weight, 4))}"


def _vector(candidate: Candidate, trace: Trace) -> str:
    """Return what meaning gives, and how the profile makes it of a cosine."""
    cosine, score, profile = candidate.cosine, candidate.vector, trace.rules.profile
    if cosine is None and trace.funnel["vector_matches"]:
        return "this chunk has no vector"
    if cosine is None:
        lacking = "index has no vectors" if trace.rules.mode == "keywords only" else "question has no vector"
        return _cause(trace, otherwise=f"the {lacking}")
    if not candidate.vector_points:
        how = f"cosine {cosine:.3f}  counts 0"
    elif profile.vector_score == "share" and registry.is_model(trace.evidence.provider):
        scale = trace.candidates.vector_scale
        above = f"above the notes' median {score * scale:.5f}  / best {scale:.5f}"
        how = f"cosine {cosine:.4f}, {above} = {score:.3f}"
    elif profile.vector_score == "share":
        how = f"cosine {cosine:.4f}  / best {trace.candidates.vector_scale:.4f} = {score:.3f}"
    elif floor := profile.floor_of(trace.evidence.provider):
        how = f"{floor:g} + {1 - floor:g} x cosine {cosine:.4f} = {score:.3f}"
    else:
        how = f"cosine {score:.4f}"
    return f"{how}  {_rank(candidate.vector_rank, trace.funnel['vector_pool'])}  {_weight(trace.rules.vector_weight)}"


def _cause(trace: Trace, otherwise: str) -> str:
    """Return why nothing has a cosine: the cause that the answer has a notice of, or what `otherwise` says."""
    codes = {notice.code for notice in trace.notices}
    return next((cause for code, cause in _NO_VECTOR.items() if code in codes), otherwise)


def answered_by(trace: Trace) -> tuple[str, str]:
    """Return what one question was answered by, and why not by words and vectors; empty where it was both."""
    codes = {notice.code for notice in trace.notices}
    if unknown := next((claim for claim in trace.notices if claim.kind == "language_unknown"), None):
        hardly = "the built-in table hardly knows it" if unknown.fields["known"] else _NO_VECTOR["unknown_language"]
        return language_label(unknown.fields["language"], unknown.fields["known"]), hardly
    ways: tuple[tuple[bool, str, str], ...] = (
        (trace.rules.mode == "nothing", "by nothing", _cause(trace, "no word to look for")),
        (trace.rules.mode == "keywords only", "by words only", _cause(trace, "the index has no vectors")),
        (trace.rules.mode == "vectors only", "by vectors only", _WORDS_OFF),
        ("unknown_words" in codes, "by words only", _NO_VECTOR["unknown_words"]),
        (not trace.side.plan.fts_query, "by vectors only", "no word to look for"),
        ("meaning_alone" in codes, "by vectors only", trace.side.plan.unmatched),
    )
    return next(((by, why) for is_true, by, why in ways if is_true), ("by words and vectors", ""))


def unmatched(trace: Trace) -> str:
    """Return why words gave a chunk nothing; a word that was left out may well stand in it."""
    plan = trace.side.plan
    if not plan.words:
        return "no word to look for"
    # Any word would do under our own profile, and where keywords are looked for one by one.
    if trace.rules.profile.join == "OR" or " OR " in plan.fts_query:
        return "no word that counts matched" if plan.dropped else "no word matched"
    # Of Chinese, Japanese and Korean text one word may have been searched in pieces.
    asked = tokens.as_asked(plan.words, trace.evidence.question.query)
    return "not all words matched" if len(asked) > 1 else "the word did not match"


def _text(candidate: Candidate, trace: Trace) -> str:
    """Return what words give, and how the profile makes it of bm25."""
    rules, score = trace.rules.profile, candidate.text
    if trace.rules.mode == "vectors only":
        return _WORDS_OFF
    if candidate.lexical is not None:
        return _lexical(candidate, candidate.lexical, trace)
    if candidate.bm25 is None:
        return unmatched(trace)
    relevance = -candidate.bm25
    if not score and not candidate.text_rank and rules.text_score != "magnitude":
        return f"bm25 {relevance:.4g}  not among the {trace.funnel['text_pool']} candidates, counts 0"
    if rules.text_score == "magnitude":
        how = f"bm25 {relevance:.4g}  / best {trace.candidates.text_scale:.4g} = {score:.3f}"
    elif rules.text_score == "saturated":
        how = f"bm25 {abs(relevance):.4g}  {'1' if relevance <= 0 else 'r'}/(1+r) = {score:.3f}"
    else:
        how = f"bm25 {relevance:.4g}  always {score:.1f} in this release"
    return f"{how}  {_ranked(candidate, trace)}"


def _ranked(candidate: Candidate, trace: Trace) -> str:
    """Return the rank by words, and what words weigh."""
    return f"{_rank(candidate.text_rank, trace.funnel['text_pool'])}  {_weight(trace.rules.text_weight)}"


def _lexical(candidate: Candidate, part: Hit, trace: Trace) -> str:
    """Return how the words of a chunk, or of its path, made the keyword score of OpenClaw 2026.9."""
    # Neither its text nor its path was found: that it is a candidate by words was only supposed.
    if not part.body and not part.level and not candidate.text_rank:
        return unmatched(trace)
    term = f'keyword "{part.term}" alone  ' if part.term else ""
    end = _ranked(candidate, trace)
    if not part.body and part.level:
        return "found by its path alone"
    if not part.body:
        return f"{term}words in its path {candidate.text:.3f}  {end}"
    if not candidate.text_points:
        return f"{term}looked through for its words: no points"
    named = zip(part.gain, ("words asked", "share of its words", "words in path", "length"), strict=True)
    text_score = by_words(part)
    steps = [f"{text_score:.4f} bm25", *(f"+ {gain:.4f} {name}" for gain, name in named if gain)]
    most = ", 1 at most" if text_score + sum(part.gain) > 1 else ""
    return f"{term}{'  '.join(steps)}  = {candidate.text:.3f}{most}  {end}"


_WORDS_OFF = "hybrid is off: words are not searched"


def _second(candidate: Candidate) -> list[ScoreLine]:
    """Return what the second stage found inside the chunk, and what both stages count; nothing where none ran."""
    part = candidate.second
    share = ScoreLine("base", "share of the first stage", "x", candidate.first_share)
    if part is None:
        beside = "share beside what is added, so that scores end at 1"
        return [] if candidate.first_share == 1.0 else [replace(share, detail=beside)]
    if not part.measures:
        nothing = "not among the first candidates, so the second stage adds nothing"
        return [share, ScoreLine("rerank", nothing, "+", 0.0)]
    how = " with the highest score, so it comes before others" if part.leads else ""
    lines = [ScoreLine("", f"answers the part{how}: {part.asked}")] if part.asked else []
    lines += map(_measure, part.measures)
    first, last = part.window
    where = f"line {candidate.line}" + (f", lines {first}-{last}" if last > first else "")
    total = " + ".join(f"{measure.points:.4f}" for measure in part.measures)
    detail = f"{total} = {part.score:.3f}, best at {where}  {_weight(part.weight)}"
    # The sum comes before what it is made of, because a pane of few lines ends there.
    return [share, ScoreLine("rerank", detail, "+", part.points), *lines]


def _measure(measure: MeasurePart) -> ScoreLine:
    """Return what one measure of the second stage gives, as a line that only informs."""
    title = f"{measure.name}{', left-out ones half' if measure.name == 'line words' else ''}"
    if not measure.points:
        return ScoreLine("", f"{title}: nothing")
    share = f"{_UNIT[measure.name]} {measure.value:.4g}  / best {measure.best:.4g} = {measure.share:.3f}"
    return ScoreLine("", f"{title}: {share}  {_weight(measure.weight)} = {measure.points:.4f}")


def _named(candidate: Candidate) -> list[ScoreLine]:
    """Return what a note that the question names counts, and by what it stands among such notes."""
    names = ("this note's name without its ending", "this note's name", "this note's path")
    factors = "".join(f" x {factor.value:.2f} {factor.term}" for factor in candidate.factors if factor.value != 1.0)
    age = f" x {candidate.age_factor:.3f} age" if candidate.age_factor != 1.0 else ""
    middle = (1 + min(1.0, max(0.0, candidate.hybrid))) / 2
    among = f"among notes that the question names, by (1 + {candidate.hybrid:.3f})/2 = {middle:.3f}{age}{factors}"
    how = f"the question is {names[candidate.level - 1]}: that raises its score to 1"
    return [ScoreLine("order", among), ScoreLine("path", how, "+", 1.0 - candidate.hybrid)]


def _age(candidate: Candidate, trace: Trace) -> ScoreLine:
    """Return what age takes away or adds, by what the note is aged."""
    half_life = trace.settings.whole("query.hybrid.temporalDecay.halfLifeDays")
    if candidate.age_basis == "off":
        return ScoreLine("age", "decay is off")
    days, multiplies = candidate.age_days, trace.rules.profile.age == "multiply"
    # What age adds is its weight, of that of all parts of the score, times what age leaves of 1.
    most = f"{trace.settings.number('recency.weight'):g}/{1 / trace.rules.share(trace.candidates.dated):.10g}"
    left = float(decay_factor(np.array(np.nan if days is None else days), half_life))
    weight = "" if multiplies else f"{left:.3f} x {most}  "
    if days is None:
        how = "evergreen, never fades"
    elif days < 0:
        how = f"dated {-days:,.0f} d ahead, so not aged"
    else:
        # An age of few half-lives needs more digits to be redone.
        source = " by file time" if candidate.age_basis == "mtime" else ""
        how = f"{days:.{1 if half_life >= 30 else 3}f} d old{source}, half-life {half_life} d"
    fading = "decay" if days is not None else "age"
    operation: Operation = "x" if multiplies else "+"
    value = candidate.age_factor if multiplies else candidate.age_points
    return ScoreLine(fading if multiplies else "recency", f"{weight}{how}", operation, value)


def _mmr(candidate: Candidate) -> ScoreLine:
    """Return as which the candidate was chosen for variety, and what it is most like."""
    part = candidate.mmr
    if part is None or part.twin is None:
        return ScoreLine("mmr", "off" if part is None else "chosen first")
    like = f"shares {part.similarity:.0%} of its words with {part.twin.citation}"
    return ScoreLine("mmr", f"chosen {ordinal(part.place)}; {like}")


# --- words in a text ------------------------------------------------------------------------------------------------


def sent_of(trace: Trace) -> int:
    """Return how many passages the agent gets."""
    return 0 if trace.keeps_back else len(trace.recalled)


def pipeline(trace: Trace) -> str:
    """Return how many passages are compared, how many by each side, and how many are sent, in one line."""
    count = trace.funnel
    pools = f"compared: {count['vector_pool']:,} by meaning, {count['text_pool']:,} by words"
    strong = f", {count['over_gate']:,} strong enough" if count["over_gate"] < count["candidates"] else ""
    return f"{count['candidates']:,} of {plural(count['chunks'], 'passage')} {pools}{strong}; {sent_of(trace):,} sent."


def hundredths(values: Sequence[float], total: float) -> list[int]:
    """Return `values` in hundredths that add up to those of the rounded `total`: what this adds, the largest get."""
    # All are rounded down. What is missing then goes to the largest rests; under a half all rests count alike, and the
    # largest values come first.
    floors = [math.floor(100 * value) for value in values]
    missing = round(100 * total) - sum(floors)
    by_rest = sorted(range(len(values)), key=lambda at: (min(floors[at] - 100 * values[at], -0.5), -values[at]))
    for at in by_rest[: max(0, missing)]:
        floors[at] += 1
    return floors


Span = tuple[int, int]
"""Start and end of a piece of text, in characters."""

REMEMBERED = 512
"""Texts of which it is remembered where the words stand."""


class MatchedWords:
    """The words of one query, to be found in any text."""

    def __init__(self, plan: QueryPlan, profile: str) -> None:
        # Our own profile, the only one that asks for any word (OR), is also the only one that finds words by stems.
        self._stemmed = stemmed = profile_named(profile).join == "OR"
        self._cut: dict[str, list[str] | None] = {word: tokens.tokens(word, stemmed=stemmed) for word in plan.words}
        """The tokens of each word, None for one that is found as it is written: one that may stand inside a longer
        word (`plan.inside`), and Chinese, Japanese and Korean pairs."""
        self._cut |= {word: None for word in plan.words if plan.inside or (stemmed and tokens.is_cjk(word))}
        self.spans = lru_cache(REMEMBERED)(self._spans)
        """Where the words stand in a text, in order and apart from each other."""

    @classmethod
    def of(cls, trace: Trace) -> MatchedWords:
        """Return the words that `trace` was answered by; none where no words answered."""
        plan = QueryPlan() if trace.rules.mode in ("vectors only", "nothing") else trace.side.plan
        return cls(plan, trace.rules.profile.name)

    def counts(self, text: str) -> dict[str, int]:
        """Return how often each word stands in `text`."""
        return {word: len(spans) for word, spans in self._each(text).items()}

    def _spans(self, text: str) -> tuple[Span, ...]:
        """Return where the words stand in `text`: places that overlap or touch are one."""
        marked = bytearray(len(text))
        for spans in self._each(text).values():
            for start, end in spans:
                marked[start:end] = b"1" * (end - start)
        return tuple(run.span() for run in re.finditer(rb"1+", marked))

    def _each(self, text: str) -> dict[str, list[Span]]:
        """Return by word where each stands in `text`."""
        # Letters whose lower case is longer stay, so that places are those of `text`. This takes time, so it is done
        # only where a word is found as it is written.
        as_written = None in self._cut.values()
        lowered = "".join(low if len(low := each.lower()) == 1 else each for each in text) if as_written else ""
        # Runs of Chinese, Japanese or Korean are found as written; beside them words end.
        plain = tokens.CJK_RUN.sub(lambda run: " " * len(run[0]), text) if self._stemmed else text
        words, data = tokens.spans(plain, stemmed=self._stemmed), plain.encode("utf-8", "replace")
        names = [name for _, _, name in words]

        def phrases(cut: list[str]) -> list[Span]:
            """Return where the tokens of one word follow each other."""
            last = len(cut) - 1
            starts = [at for at, name in enumerate(names) if cut and name == cut[0]]
            places = [(words[at][0], words[at + last][1]) for at in starts if names[at : at + last + 1] == cut]
            # The tokenizer counts bytes.
            return [(len(data[:start].decode()), len(data[:end].decode())) for start, end in places]

        def written(word: str) -> list[Span]:
            """Return where `word` stands as it is written, in any case, inside longer words too."""
            return [match.span() for match in re.finditer(re.escape(word.lower()), lowered)]

        return {word: written(word) if cut is None else phrases(cut) for word, cut in self._cut.items()}


class Spoken(Struct, frozen=True):
    """A word of the question, as a passage writes it, and how often."""

    word: str
    form: str
    count: int


def asked_words(trace: Trace, text: str) -> list[Spoken]:
    """Return each word of the question with its count in `text`, as the index cuts words: `set` stands in Settings."""
    # Late, because no command needs this, and to load it takes a cold search a twentieth of its time.
    from rapidfuzz.distance import Prefix

    words = MatchedWords.of(trace)
    counts, forms = words.counts(text), [text[start:end].lower() for start, end in words.spans(text)]

    def form(word: str) -> str:
        """Return how the text writes `word`: a form that begins alike, else the word itself, with the form it is in."""
        plain = word.lower()
        # The form that equals the word, else that with the longest common beginning, else one that holds it.
        best = max(forms, key=lambda run: (run == plain, Prefix.similarity(plain, run), plain in run), default=plain)
        piece = plain if tokens.is_cjk(plain) or plain not in best else f"{plain} (in {best})"
        return best if Prefix.similarity(plain, best) >= min(3, len(plain)) else piece

    return [Spoken(word, one_line(form(word), 30), count) for word, count in counts.items()]


def notes_lacking(trace: Trace, reader: str, *, by_itself: bool) -> tuple[str, str] | None:
    """Return which notes the answer lacks as they are on disk, and what to do; None where it lacks none.

    `reader` prints a note; `by_itself`: who answers indexes where the settings allow it.
    """
    pending = [item for item in trace.evidence.unsearchable if item.state == "pending"]
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


def terms_line(text: str, trace: Trace, *, chunk: ChunkRef | None = None, say_how: bool = True) -> ScoreLine:
    """Return the words in `text` with counts, those missing, those left out; to `say_how`, what is odd about them.

    With `chunk`, what is indexed with its text counts as well: its file name, the day in it, the headings above it.
    """
    plan, any_word = trace.side.plan, trace.rules.profile.join == "OR"
    words = MatchedWords(plan, trace.rules.profile.name)
    # Only our own profile indexes more than the text of a chunk.
    added = chunk is not None and any_word and not plan.inside and trace.rules.mode != "vectors only"
    counts = words.counts(text)
    in_name = words.counts(tokens.words_above(chunk.path, ())) if chunk and added else {}
    # The headings above are indexed with a chunk, but not kept with it; above the first line there are none.
    missing = "not in its lines or name" if chunk and added and chunk.start_line > 1 else "missing"
    unseen = "inside longer words, not seen"
    # The words by what is said of them; first, without a title, those that stand in the text.
    lists: dict[str, list[str]] = {"": [], missing: [], unseen: []}
    # A run of Chinese, Japanese or Korean characters is searched as its pairs.
    by_run: dict[str, list[str]] = {}
    for word in counts:
        by_run.setdefault(tokens.as_asked([word], trace.evidence.question.query)[0], []).append(word)
    for run, searched in by_run.items():
        matched = [word for word in searched if counts[word] or in_name.get(word)]
        if not matched:
            lists[unseen if holds(text, run) else missing].append(run)
        elif searched == [run]:
            named = in_name.get(run, 0)
            share = f" ({named} in the name)" if counts[run] else " (name)"
            lists[""].append(f"{run} {counts[run] + named}x{share if named else ''}")
        else:
            lists[""].append(f"{run} ({len(matched)} of {plural(len(searched), 'pair')} of characters)")
    dropped = (claim.fields for claim in left_out(plan, trace.rules.profile.name))
    lists["left out"] = [f"{', '.join(_whole(row['words'], trace))} ({LEFT_OUT[row['reason']]})" for row in dropped]
    parts = [f"{title}: {', '.join(each)}".removeprefix(": ") for title, each in lists.items() if each]
    how = []
    if say_how and plan.time:
        parts.append(f'"{plan.time_words}" is read as {plan.time}{"" if plan.time_alone else ", not searched"}')
    if say_how and trace.rules.mode == "vectors only" and plan.words:
        how.append("not searched, only counted")
    if say_how and any_word and any(len(word) == 2 and tokens.is_cjk(word) for word in plan.words):
        how.append("Chinese, Japanese and Korean text is matched as pairs of characters")
    remarks = f"  ({'; '.join(how)})" if how else ""
    return ScoreLine("terms", ("; ".join(parts) or "no words to look for") + remarks)


def _whole(dropped: Sequence[str], trace: Trace) -> list[str]:
    """Return words as a person asked them; of pairs of characters, which are no words, how many of which run."""
    runs = {word: tokens.as_asked([word], trace.evidence.question.query)[0] for word in dropped}
    pairs = Counter(run for word, run in runs.items() if run != word)
    whole = [word for word, run in runs.items() if run == word]
    return whole + [f"{plural(count, 'pair')} of characters of {run}" for run, count in pairs.items()]


def file_line(path: str, trace: Trace) -> ScoreLine:
    """Return whether the note on disk is what was indexed, as far as the last look at the folder knows."""
    waiting = next((item for item in trace.evidence.unsearchable if item.path == path), None)
    return ScoreLine("file", f"{waiting.state}: {waiting.detail}" if waiting else "indexed as it is on disk")
