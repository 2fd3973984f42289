"""Statements about an answer and its passages: level, rows, verdict, sums, remedies. Plain functions of a trace."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from textual.content import Content

from memory_tui.backends.qmd import QmdAnswer, QmdHit
from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import WEIGHT, Change, Rephrased
from memory_tui.explain.hit_text import age_in_list, age_of, day_of, hit_text, perfect, steps
from memory_tui.explain.why_not import Account
from memory_tui.explain.wording import MatchedWords, Spoken, hundredths, sent_of
from memory_tui.formatting import age_words, one_line, plural, safe
from memory_tui.openclaw.prompt import citation
from memory_tui.search.excerpts import Excerpt, excerpts
from memory_tui.search.rank import Trace
from memory_tui.search.retrieve import Evidence
from memory_tui.search.second_stage import CANDIDATES, LIKE
from memory_tui.search.trace import Candidate
from memory_tui.sentences import Notice, ordinal, quoted
from memory_tui.tokens import as_asked
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact, cut, drawn
from memory_tui.tui.knobs import FLOOR, HALF_LIFE, PROFILE, RESULTS, figure, shown, turn, under
from memory_tui.tui.rows import short_path
from memory_tui.tune import Query
from memory_tui.workspace.notes import date_of

WORDS, MEANING, AGE = "█", "▒", "░"
BESIDE = "beside a better one"
BAR, AGE_CELLS, LEAD = 8, 9, 8
"""Cells of a row: its bar, its age, and what stands before the bar."""
OLDER = "older value · "
"""What leads the text of a row of which a newer line states another value."""
LONGEST = 160
"""Characters of a row's text."""
FEWEST, MOST, TOP = 6, 24, 3
"""Cells of the name of what a remedy has drop out, and how many of the first are told by their place."""
UNSEEN = "Only the best {} get a second look, line by line, which gives up to {}. "
"""Why a passage has less than it may."""
AGAIN = "The best {} get a second look, line by line: so words can give more than {}."
"""Why a sum has more of words than they weigh."""
SUM = "s shows the sum"
PLAIN = (RESULTS, WEIGHT, HALF_LIFE, FLOOR, PROFILE)
"""The knobs that need no manual, the plainest first."""
ZERO = re.compile(r"(?<![\w.])0(?=\.\d+(?!\.?\w))")
"""The zero before a share, which is written `.65`."""
NOW = re.compile(r" \((?:now|was) [^)]*\)| instead of \d+")
"""What a remedy says of the ranking in force."""
GRADES: Mapping[int, str] = {0: "✗", 1: "~", 2: "✓"}
"""The sign of how a person judged a passage."""
STEPS: Mapping[str, str] = {
    **{"vector": "meaning", "text": "words", "hybrid": "both", "recency": "age", "decay": "age"},
    **{"base": "1st look", "rerank": "2nd look", "next to": "beside", "mmr": "variety", "gate": "sent"},
}
"""What the sum calls a step."""
LIKES = {"like words": ("a faint likeness to them", "words like them"), "letters": ("pieces of them",) * 2}
LIKES["line words"] = ("common ones",) * 2
"""What a passage without the words has, by the measure of the second look that gives most; the second from LIKE on:
below it no single word need be like one of the question."""
LEVELS: Mapping[str, tuple[str, str, str]] = {
    "found": ("✓", GOOD, "Found"),
    "in part": ("~", WARN, "In part"),
    "nearby only": ("?", WARN, "Perhaps not answered"),
    "nothing holds these words": ("✗", BAD, "Not answered"),
}
"""The sign, style and words of how well the notes answer."""
SHARES = ((0.995, "all"), (0.65, "most of"), (0.35, "half of"), (0.05, "some of"), (0.0, "none of"))
"""What the share of a question that the best lines hold is called, each from a value on."""


# --- sums -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A part of a score: its name, its points, the glyph and style that stand for it, and its figure in the sum."""

    name: str
    points: float
    glyph: str = ""
    style: str = ""
    figure: str = ""


def looks(hit: Candidate) -> list[tuple[float, float]]:
    """Return two pairs, for words and for meaning: the points of the first look and of the second, not yet weighed."""
    measures = hit.second.measures if hit.second else ()
    meaning = sum(measure.points for measure in measures if "meaning" in measure.name)
    return [(hit.text_points, sum(measure.points for measure in measures) - meaning), (hit.vector_points, meaning)]


def parts(hit: Candidate) -> list[Part]:
    """Return words, meaning and age, then what else counts; they add up to the score, and so do their figures."""
    weight = hit.second.weight if hit.second else 0.0
    words, meaning = (first * hit.first_share + second * weight for first, second in looks(hit))
    # The score so far: each factor multiplies what the ones before it left.
    so_far = hit.hybrid * hit.first_share
    # Of a note that the question names (`level` above 0) neither age nor factors count.
    taken = 0.0 if hit.level else so_far * (hit.age_factor - 1)
    so_far += taken
    always = [
        Part("words", words, WORDS, "$success"),
        Part("meaning", meaning, MEANING, "$primary"),
        Part("age takes" if taken else "age", hit.age_points + taken, AGE, "$warning"),
    ]
    beside = Part(BESIDE, -(hit.second.lost if hit.second else 0.0))
    others = [Part("named by the question", hit.date_points, AGE, "$warning"), beside]
    for factor in () if hit.level else hit.factors:
        others.append(Part(f"its {factor.term}", so_far * (factor.value - 1)))
        so_far *= factor.value
    # What no part explains so far: the question lifts a note that it names, or the release has a rule of its own.
    gap = hit.score - sum(part.points for part in (*always, *others))
    others.append(Part("named by the question" if hit.level else "rules of this release", gap))
    # A part that would be rounded to 0.00 is left out.
    told = [*always, *(part for part in others if abs(part.points) >= 0.005)]
    # In whole hundredths, rounded so that they add up to the score as it is shown.
    figures = hundredths([part.points for part in told], hit.score)
    return [replace(part, figure=figure(units / 100)) for part, units in zip(told, figures, strict=True)]


def bar(sums: Sequence[Part], width: int, scale: float = 1.0) -> Content:
    """Return a bar of `width` cells, which `scale` points fill; what takes points away shortens it from the right."""
    # The cells of the sum with what is taken away: no piece goes on behind them.
    full = min(width, max(0, round(sum(part.points for part in sums) / scale * width)))
    pieces = []
    points, end = 0.0, 0
    for part in sums:
        if part.glyph:
            points += max(0.0, part.points)
            # Rounded from the sum so far, so that the pieces add up to the whole bar.
            start, end = end, min(full, round(points / scale * width))
            pieces.append((part.glyph * (end - start), part.style))
    content = Content.assemble(*pieces)
    return content.pad_right(max(0, width - content.cell_length))


# --- rows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Row:
    """A passage ready for the list; its prompts are made once for each width, as a rule on a worker."""

    hit: Candidate
    place: int
    """Counted from 1 as it is ranked; 0 for no candidate."""
    sent: bool
    name: str
    """The day or path of the note, and its title."""
    body: str
    """The beginning of the text, in one line."""
    age: str
    sums: list[Part] = field(hash=False)
    """The parts of its score, as `parts` returns them."""
    scale: float = 1.0
    """The score that fills the bar."""
    marks: tuple[tuple[int, int], ...] = ()
    """Where words of the question begin and end in `body`."""
    grade: int | None = None
    """How a person judged it for the question; None for not at all."""
    passage: Excerpt | None = None
    """What the agent reads of it; None where it is not sent."""
    varied: bool = False
    """Whether variety puts it before one of a higher score."""
    fate: str = ""
    """Why it is no candidate, in a sentence; its numbers are those that it would have as one."""
    made: dict[tuple[int, int], Content] = field(default_factory=dict, hash=False)
    """What `drawn` returned, by width and lines."""

    @property
    def line(self) -> int:
        """Return the line of the note that decided, else the first of its chunk."""
        return self.hit.line or self.hit.chunk.start_line

    def drawn(self, width: int, lines: int) -> Content:
        """Return one or two lines of exactly `width` cells; one for what is not sent."""
        shape = width, lines if self.sent else 1
        if shape not in self.made:
            self.made[shape] = self._prompt(*shape)
        return self.made[shape]

    def _prompt(self, width: int, lines: int) -> Content:
        """Return the row: place, grade, score, bar, name and age, then the text, in the same line or below."""
        grade = GRADES[min(2, self.grade)] if self.grade is not None else " "
        floor = self.hit.verdict.fields.get("floor")
        # What is too weak must not seem to reach the limit; a third digit takes a cell of the bar.
        score = figure(self.hit.score) if floor is None else under(self.hit.score, floor)[:4]
        front = Content.assemble(f" {self.place or '–':>2}{grade}", (score, "bold"), " ")
        lead = front + bar(self.sums, BAR, self.scale).truncate(LEAD + BAR - front.cell_length) + " "
        # The age of a note of a later day is longer.
        age = Content.styled(f" {self.age:>{AGE_CELLS}}", MUTED)
        room = width - lead.cell_length - age.cell_length
        older = (OLDER if self.hit.newer else "", "$warning")
        body = marked(self.body, self.marks)
        if lines == 1:
            return Content.assemble(lead, fit(Content.assemble(older, f"{self.name} · ", body), room), age)
        title = fit(Content.styled(self.name, "bold" if self.sent else ""), room)
        return Content.assemble(lead, title, age, "\n", " " * LEAD, fit(Content.assemble(older, body), width - LEAD))


def fit(content: Content, width: int) -> Content:
    """Return exactly `width` cells."""
    return content.truncate(max(1, width), ellipsis=True, pad=True)


def marked(text: str, spans: Sequence[tuple[int, int]]) -> Content:
    """Return a text in which the words of the question stand out."""
    content = Content(text)
    for start, end in spans:
        content = content.stylize("bold $success", start, end)
    return content


def rows(
    evidence: Evidence, trace: Trace, most: int, saved: Query | None = None, asked: Account | None = None
) -> list[Row]:
    """Return the rows of what is recalled, of the `most` best others, and of the chunk that a person `asked` about.

    A `saved` question tells how a person judged them. What is no candidate has no place in the ranking: 0.
    """
    words, scale = MatchedWords.of(trace), perfect(trace)
    read = {excerpt.hit.chunk.rowid: excerpt for excerpt in (() if trace.keeps_back else excerpts(trace))}
    result: list[Row] = []
    listed = [*enumerate([*trace.recalled, *trace.lost[:most]], 1)]
    if asked is not None and asked.candidate is not None and asked.chunk not in [hit.chunk for _, hit in listed]:
        # A miss that is not listed has its place behind those that are; what no search proposed has none.
        misses = [hit.chunk for hit in trace.lost] if asked.proposed else []
        place = len(trace.recalled) + misses.index(asked.chunk) + 1 if asked.chunk in misses else 0
        listed.append((place, asked.candidate))
    for place, hit in listed:
        source = evidence.texts.get(hit.chunk.rowid, asked.text if asked else "")
        text = hit_text(hit, source, words, day_of(evidence), LONGEST)
        # A log of this workspace is called by its day, any other note by its path: an archive has the same days again.
        path = hit.chunk.path.removeprefix("memory/").removesuffix(".md")
        is_log = "/" not in path and date_of(hit.chunk.path)
        name = one_line(f"{text.name.partition(':')[0] if is_log else short_path(safe(path))} {text.title}")
        sent = hit.verdict.kind == "recalled" and not trace.keeps_back and place > 0
        age = age_in_list(age_of(hit, day_of(evidence)))
        row = Row(hit, place, sent, name, text.body, age, parts(hit), scale, tuple(text.marks))
        # Places count from 1, so the slice begins behind this passage.
        varied = sent and hit.mmr is not None and any(hit.score < later.score for later in trace.recalled[place:])
        fate = asked.fate.message if asked and not place else ""
        grade = saved.grade(hit.chunk) if saved is not None else None
        result.append(replace(row, grade=grade, passage=read.get(hit.chunk.rowid), varied=varied, fate=fate))
    return result


def other_cut(trace: Trace) -> str:
    """Return a warning where the release that ranks cuts notes otherwise, so that its own answer differs, else ""."""
    is_other = any(notice.kind == "cut_otherwise" for notice in trace.notices)
    return f"{trace.settings.profile.title} cuts notes otherwise" if is_other else ""


def heading(trace: Trace) -> str:
    """Return the title of the list."""
    sent = sent_of(trace)
    if trace.keeps_back:
        return "The nearest, which your agent does not get"
    if sent > 1:
        return f"Your agent gets {'about' if other_cut(trace) else 'these'} {sent}"
    return "Your agent gets this" if sent else "Nothing is sent"


def divider(trace: Trace) -> str:
    """Return what parts the passages that are sent from the others; a reason only where it is that of them all."""
    if trace.keeps_back:
        return "your agent gets none of these: probably no note answers"
    words = "your agent does not get these"
    lost = trace.candidates.table[len(trace.recalled) :]
    if (lost["passed"] & ~lost["displaced"]).all():
        return f"{words}: it takes {trace.settings.whole(RESULTS)}"
    floors = set(lost["bar"].tolist())
    if len(floors) == 1 and not lost["passed"].any() and all(hit.score >= max(floors) for hit in trace.recalled):
        return f"{words}: they score under {figure(max(floors))}"
    return words


# --- the line above -------------------------------------------------------------------------------------------------


def _level_sentence(trace: Trace) -> tuple[str, str]:
    """Return in a sentence whether the notes answer, and its style; an empty one where nothing can be said."""
    # By what it was searched is said where that was not both words and meaning.
    by, why = wording.answered_by(trace)
    limits = "" if by == "by words and vectors" else by.replace("vectors", "meaning").rstrip(")")
    # "MOSTLY WORDS (French)" becomes "meaning hardly knows French".
    for label, clause in (("MOSTLY WORDS (", "meaning hardly knows "), ("WORDS ONLY (", "meaning does not know ")):
        limits = limits.replace(label, clause)
    if (level := trace.level) is None:
        return f"{limits[:1].upper()}{limits[1:]}." if limits else "", ""
    held, kind = level.signals.held, "in part" if level.in_part else level.level
    share = next(words for least, words in SHARES if held >= least)
    reason = f"{share} your words"
    if why == trace.side.plan.unmatched:
        # No word is in a note, so what is held are words that are only like them.
        like = "" if share == "none of" or (level.signals.lacks and not level.signals.has) else ", only like ones"
        limits, reason = "", f"none of your {'main ' * bool(trace.side.plan.dropped)}words{like}"
        kind = "in part" if kind == "found" else kind
    elif kind == "found":
        reason += "" if limits or trace.side.plan.readings else " or like ones"
        kind = kind if held >= SHARES[1][0] else "in part"
    elif held >= level.doubt_below:
        # Words alone would do, so it is meaning that lowered the level.
        reason = "some words match, the subject does not"
    elif share != "none of":
        reason = f"only {reason}"
    if kind == "nearby only" and any(hit.date_points and trace.side.plan.time for hit in trace.recalled[:1]):
        kind, reason = "in part", f"the time matches; {reason}"
    sign, style, words = LEVELS[kind]
    return f"{sign} {words}: {', '.join(filter(None, (level.in_part or reason, limits)))}.", style


def level_line(trace: Trace, width: int, ranking: str = "", tried: Sequence[object] = ()) -> Content:
    """Return whether the notes answer, what the agent gets, and at the right by which ranking, or what was read.

    No key is told for that where it first takes back something else that was `tried`.
    """
    sent, cut = sent_of(trace), other_cut(trace)
    head, style = _level_sentence(trace)
    number = f"{'about ' if cut else ''}{sent or 'nothing'}"
    of_all = f"{number} of {trace.funnel['candidates']:,} found" if sent else number
    # Sentences for the left and words for the right end, each from the longest on: the first pair that fits is shown.
    gets = [f"Your agent gets {count}." for count in (of_all, number)]
    gets += [f"Agent gets {number}.", *[f"{number} sent."] * (width < 60)]
    ends = [(end, MUTED) for end in (f"{ranking}   c compares", ranking, ranking.removeprefix("ranking: ")) if ranking]
    if cut or trace.side.plan.readings:
        # How words were read, which a key undoes, is said before all that is sent, which the list shows too.
        one, *more = [cut] if cut else trace.side.plan.readings
        key = "c compares" if cut else "" if tried else "u undoes"
        short = f"{one_line(one.partition(' → ')[0], 30)} read otherwise" * (not cut)
        words = ["; ".join([one, *more]), *[f"{one} and {len(more)} more"] * bool(more), short]
        ends = [(f"{one_line(end)}  {key}".strip(), WARN) for end in words]
        gets += [f"{number} sent.", ""] * (not cut)
    # A verdict without its reason leaves room for a word that was read otherwise.
    heads = [(head, each) for each in gets] + [(f"{head.partition(':')[0]}.", "")] * bool(trace.side.plan.readings)
    for end, style_of_end in (*ends, ("", "")):
        for head, sentence in heads:
            left = Content.assemble(" ", (head, f"bold {style}".rstrip()), " " if head else "", sentence)
            room = width - left.cell_length - 1
            if Content(end).cell_length + 2 * bool(end) <= room:
                return Content.assemble(left.pad_right(room - Content(end).cell_length), (end, style_of_end), " ")
    return left.truncate(width, ellipsis=True)


# --- verdict --------------------------------------------------------------------------------------------------------


def _words_clause(row: Row, spoken: Sequence[Spoken], trace: Trace) -> str:
    """Return which words of the question a passage has and lacks, to follow "It"; `spoken` counts each in its text."""
    if not spoken:
        return "is found by its meaning"
    forms = [word.form for word in spoken if word.count]
    # Scripts without spaces are searched by pairs of characters: only the longest form that holds them is a word.
    holds = [form for form in forms if not any(form != longer and form in longer for longer in forms)]
    # Of a word that was read otherwise a person is told both: what was typed, and what was searched instead.
    fixed = [(f'"{each.asked}" (read as "{" ".join(each.searched)}")', each) for each in trace.side.plan.corrections]
    typed = {word: both for both, each in fixed if not each.also for word in each.searched}
    absent = as_asked((word.word for word in spoken if not word.count), trace.evidence.question.query)
    lacks = list(dict.fromkeys(typed.get(word, f'"{one_line(word, 30)}"') for word in absent))
    # Empty where nothing is like the words.
    like = (most := _most_like(row)) and f", only {most}"
    if not holds and row.hit.text_points > 0:
        return "has the words in its headings or its date"
    if not holds:
        return f"has none of the words {'that count' if trace.side.plan.dropped else 'you asked for'}{like}"
    if not lacks:
        # By what its best window holds; of a passage that nobody looked into nothing is known.
        held = {part.name: part.value for part in row.hit.second.measures} if row.hit.second else {}
        return f"has the words you asked for{', but not together' * (held.get('like words', 1.0) < SHARES[0][0])}"
    return f"has {quoted(holds, 3)}, but not {' or '.join(lacks[:2])}{' and more' if len(lacks) > 2 else ''}"


def _most_like(row: Row) -> str:
    """Return the measure of the second look that gives most to a passage without the words; empty where none does."""
    measures = row.hit.second.measures if row.hit.second and row.sums[0].points >= 0.005 else ()
    likes = ((part.points, LIKES[part.name][part.value >= LIKE]) for part in measures if part.name in LIKES)
    return max(likes, default=(0, ""))[1]


def verdict(row: Row, trace: Trace, spoken: Sequence[Spoken]) -> str:
    """Return why a passage stands where it stands, in one or two sentences."""
    named = "is named by the question and " if row.hit.level else ""
    near = "; meaning gives most of its score" if row.sums[1].points > row.hit.score / 2 else ""
    # What the second look would add to a passage that it did not see.
    missed = row.hit.second.weight if row.hit.second and not row.hit.second.measures else 0.0
    unseen = UNSEEN.format(CANDIDATES, figure(missed)) if missed > row.hit.score and not row.sent else ""
    match row.hit.verdict:
        case _ if row.fate:
            return row.fate
        case _ if trace.keeps_back:
            reason = "Probably no note answers. A score compares passages only with each other. "
        case Notice("recalled") if row.hit.second and row.hit.second.leads:
            reason = "It fits one part of the question best, so it comes before others. "
        case Notice("recalled") if trace.level is not None and (trace.level.in_part or trace.level.level != "found"):
            reason = "A score compares passages only with each other. "
        case Notice("recalled", {"rescued": True}):
            reason = "It is sent although it is weak, because of its words. "
        case Notice("recalled", {"relaxed": True}):
            reason = "Nothing is strong enough, so its words are enough. "
        case Notice("beyond_limit", {"place": place, "limit": limit}):
            reason = f"It is {ordinal(place)}{'' if unseen else f', and the agent gets {limit}'}. "
        case Notice("below_min_score", {"floor": floor}):
            reason = f"It scores {under(row.hit.score, floor)}, and under {figure(floor)} is too weak. "
        case Notice("lowered_by_decay", {"floor": floor, "age_days": days}):
            reason = f"Its age of {age_in_list(days)} pressed it under {figure(floor)}. "
        case Notice("displaced_by_mmr", {"twin": twin}):
            reason = f"It says much the same as {one_line(twin.path)}:{twin.start_line}. "
        case _:
            reason = ""
    newer = f" {one_line(row.hit.newer)} states a newer value." if row.hit.newer else ""
    return f"{reason}{unseen}It {named}{_words_clause(row, spoken, trace)}{near}.{newer}"


def short_reason(row: Row) -> str:
    """Return why a passage is not sent, in two or three words."""
    verdict = row.hit.verdict
    if "floor" in verdict.fields:
        return f"under {figure(verdict.fields['floor'])}{' by age' * (verdict.kind == 'lowered_by_decay')}"
    return "kept back" if verdict.kind == "recalled" else verdict.short


def within(text: str, width: int, lines: int) -> Content:
    """Return as much of `text` as so many `lines` hold, with a mark where it goes on."""
    folded = Content(text).wrap(max(1, width))
    shown = cut(folded, lines, width)
    return Content(text) if shown is folded else Content("\n").join(shown)


# --- the sums -------------------------------------------------------------------------------------------------------


def sums(row: Row, trace: Trace, spoken: Sequence[Spoken], width: int, key: str = SUM) -> Content:
    """Return the sums with what they are made of, a line of at most `width` cells each, and what a `key` shows."""
    counts = "  ".join(f"{word.form} {word.count}x" for word in spoken if word.count) or _most_like(row)
    words = wording.unmatched(trace) if counts and row.sums[0].points < 0.005 else counts
    meaning = "the closest of all" * (row.hit.vector_rank == 1)
    details = {"words": words, "meaning": meaning, "age": _age(row), "beside": "of its note"}
    wide = max(9, *(len(part.name) for part in row.sums))
    lines = []
    for part in row.sums:
        lead = Content.assemble(f"{part.name:<{wide}} ", (f"{part.figure:>4}  ", "bold"), bar([part], 10))
        lines.append(lead + Content.styled(f"  {details.get(part.name.split()[0], '')}", MUTED))
    # The pane has six lines: with five parts there is none for the rule.
    if key and len(lines) < 5:
        lines.append(Content.styled(f"{'':{wide + 1}}────".ljust(width - len(key)) + key, MUTED))
    # Of the same passages as are counted above the list.
    place = f"{ordinal(row.place)} of {trace.funnel['candidates']:,}" if row.place else "as a candidate"
    score = Content.styled(f"{'score':<{wide}} {figure(row.hit.score):>4}", "bold")
    hint = "   m marks it right or wrong" * bool(key)
    total = Content.assemble(score, f"  {place}", (hint * (score.cell_length + len(place + hint) + 2 <= width), MUTED))
    return Content("\n").join(line.truncate(width, ellipsis=True) for line in (*lines, total))


def _age(row: Row) -> str:
    """Return the age that counts, in words."""
    days = row.hit.age_days
    if row.hit.age_basis == "off" or days is None:
        return "does not count" if row.hit.age_basis == "off" else "always counts as new"
    # A note that is dated ahead is "in 3 days".
    return age_words(days) + " old" * (days >= 1)


def sums_in_a_line(row: Row, width: int) -> Content:
    """Return the sums in one line of at most `width` cells, with bars where there is room for them."""
    score = Content.assemble("score ", (figure(row.hit.score), "bold"))
    for bar_cells in (6, 3, 0):
        line = Content(" ") + Content("  ").join([*(_sum(part, bar_cells) for part in row.sums), score])
        if line.cell_length <= width:
            break
    room = width - line.cell_length
    key = Content.styled(f"{SUM:>{room}}" if room > len(SUM) + 1 else "", MUTED)
    return line + key if room >= 0 else fit(line, width)


def _sum(part: Part, cells: int) -> Content:
    """Return one side of a sum: its name, its figure, and its bar of up to `cells`."""
    drawn = bar([part], cells).rstrip() if cells and part.glyph else Content("")
    return Content.assemble(f"{part.name} ", (part.figure, "bold"), " " if drawn else "", drawn)


def long_sum(row: Row, trace: Trace, spoken: Sequence[Spoken], text: str, width: int) -> Content:
    """Return what makes each sum, then every step with what it takes to redo it by hand, and what the answer lacks."""
    hit, second = row.hit, row.hit.second
    # What no search proposed has a fate.
    every = steps(Account(hit.chunk, hit.verdict, hit, not row.fate, text), trace)
    why = AGAIN.format(CANDIDATES, figure(trace.rules.text_weight)) if second and second.measures else ""
    rows = [Fact("How they come about", style="bold")]
    shares = ("first look", hit.first_share), ("second look", second.weight if second else 0.0)
    # How words and meaning come about where there were two looks; of what else counts a step below tells.
    whole = 1 / trace.rules.share(trace.candidates.dated)
    for part, points in zip(row.sums, looks(hit), strict=False) if hit.first_share != 1.0 else ():
        each = [(*share, figure(made, every[0].digits)) for share, made in zip(shares, points, strict=True)]
        # A weight is that of the knob, beside 1 for the rest.
        terms = " + ".join(f"{name} {made} x {share * whole:.4g}/{whole:.4g}" for name, share, made in each if share)
        rows.append(Fact(f"{terms} = {figure(part.points, 3)}", label=part.name))
    for step in [*every, wording.file_line(hit.chunk.path, trace)]:
        words = f"{step.figure:<10}{one_line(step.detail.replace(' stage', ' look'))}"
        rows.append(Fact(words, label=STEPS.get(step.label, step.label) or " "))
    rows += [Fact(f"{notice.message} {notice.next_step}", style=WARN) for notice in trace.notices]
    # An empty `why` wraps to one blank line, which is left out.
    head = [*Content(why).wrap(width), sums(row, trace, spoken, width, key=""), Content()][not why :]
    # Every number as in the sums above, without its zero.
    return Content("\n").join([*head, *(drawn(fact._replace(words=ZERO.sub("", fact.words)), width) for fact in rows)])


def reads(row: Row, line: int, width: int) -> Content:
    """Return the line above the text: whether the agent does not get `line`, and where it reads what it gets."""
    chunk, excerpt = row.hit.chunk, row.passage
    head = Content.styled("The agent reads  " if excerpt else "What it says  ", "bold")
    whole = chunk.start_line, row.hit.last_line
    of_whole = "" if excerpt is None or excerpt.is_whole else f"  of {citation('', *whole)[1:]}"
    lines = whole if excerpt is None else excerpt.lines
    if excerpt is not None and excerpt.leaves_out(line):
        # What a person acts on is not what a long name cuts off.
        head, of_whole = Content.styled(f"Line {line} is not sent; this is:  ", "bold $warning"), ""
    place = short_path(citation(safe(chunk.path), *lines), width - head.cell_length - len(of_whole))
    return Content.assemble(head, place, (of_whole, MUTED))


# --- answers of QMD -------------------------------------------------------------------------------------------------


def qmd_row(hit: QmdHit, width: int, lines: int) -> Content:
    """Return a hit of QMD in one or two lines; its score is QMD's own, so it has no bar."""
    lead = Content.assemble(f" {hit.rank:>2} ", (f"{hit.score:.2f}", "bold"), "  ")
    name = f"{safe(hit.path.removeprefix('memory/'))}:{hit.start_line}"
    body = Content(one_line(hit.snippet[:300]))
    if lines == 1:
        return fit(Content.assemble(lead, f"{name} · ", body), width)
    title = fit(Content.assemble(lead, (name, "bold")), width)
    return Content.assemble(title, "\n", " " * LEAD, fit(body, width - LEAD))


def qmd_level(answer: QmdAnswer, trace: Trace) -> Content:
    """Return what stands above an answer of QMD."""
    count = plural(len(answer.hits), "passage")
    words = f" Your agent gets {count} from QMD; the built-in index would send {sent_of(trace)}. "
    return Content.assemble(words, (" ".join(one_line(remark.sentence) for remark in answer.claims), "$warning"))


# --- remedies -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remedy:
    """What would have a passage sent, and its price; trying it sets a ranking or asks another question."""

    text: str
    """What to turn or to ask."""
    place: str
    """As the how manieth the passage would be sent: `3rd`."""
    out: Sequence[tuple[int, str]]
    """The places, 0 for none, and the names of what drops out, the first first."""
    remedy: Change | Rephrased

    def effect(self, width: int) -> Content:
        """Return the price in `width` cells: a name loses its end, then what drops out is counted."""
        # What drops out of the first places is told by its place.
        best = next((f"the {ordinal(place)}" for place, _ in self.out if 0 < place <= TOP), "")
        # Three wordings of what drops out: all counted, the best named by its place, a single one by its name.
        every = f"drops {plural(len(self.out), 'passage') if self.out else 'nothing'}"
        drops = count = f"drops {best}{f' and {len(self.out) - 1} more' * (len(self.out) > 1)}" if best else every
        if len(self.out) == 1:
            [(_, name)] = self.out
            lead = f"drops {best}, " if best else "drops "
            room = max(FEWEST, min(MOST, width - len(f"as {self.place}; {lead}")))
            drops = f"{lead}{Content(name).truncate(room, ellipsis=True)}"
        # From the longest on. Another question has no price: of what drops out there nothing is known.
        prices = (f"; {drops}", f"; {count}", f"; {every}") if isinstance(self.remedy, Change) else ("",)
        ways = [Content.styled(f"as {self.place}{price}", MUTED) for price in prices]
        return next((way for way in ways if way.cell_length <= width), ways[-1])

    def drawn(self, width: int) -> Content:
        """Return a line of exactly `width` cells; what there is now gives way to the effect of the remedy."""
        for text in (self.text, NOW.sub("", self.text)):
            price = self.effect(width - len(text) - 2)
            if price.cell_length <= width - len(text) - 2:
                break
        return fit(Content(f" {text}"), width - price.cell_length - 1) + " " + price


def turns(change: Change) -> str:
    """Return what a change turns."""
    return " and ".join(turn(knob.key, knob.value, knob.was) for knob in change.turns)


def remedies(
    changes: Sequence[Change], questions: Sequence[Rephrased], names: Mapping[int, tuple[int, str]], most: int = 6
) -> list[Remedy]:
    """Return up to `most` changes that have a passage sent, the plainest first, then the questions that do.

    `names` tells the place and the name of each listed passage by its rowid.
    """

    def cost(change: Change) -> tuple[bool, bool, bool, int, int, int]:
        """Return the sort key: is the first lost, a manual needed, do others drop out, how many knobs, plainness."""
        # PLAIN has the knobs that need no manual, the plainest first; any other one ranks behind them.
        ranks = [PLAIN.index(turn.key) if turn.key in PLAIN else len(PLAIN) for turn in change.turns]
        loses = any(names.get(ref.rowid, (0, ""))[0] == 1 for ref in change.drops_out)
        return loses, max(ranks) == len(PLAIN), bool(change.drops_out), len(ranks), max(ranks), change.place or 0

    # A value that reads as the one in force tells nobody what to turn.
    legible = [each for each in changes if all(shown(t.key, t.value) != shown(t.key, t.was) for t in each.turns)]
    result = []
    for change in sorted(legible or changes, key=cost)[:most]:
        out = sorted(names.get(ref.rowid, (0, one_line(ref.path))) for ref in change.drops_out)
        result.append(Remedy(turns(change), ordinal(change.place or 0), out, change))
    for question in sorted(questions, key=lambda each: (not each.word, each.place)):
        added = f'"{question.word}" added to the question'
        words = added if question.word else f"the question without {quoted(question.left_out)}"
        result.append(Remedy(one_line(words), ordinal(question.place), (), question))
    return result
