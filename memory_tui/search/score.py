"""Scores: the evidence of both sides becomes one number for each candidate.

Profiles are told apart by what they do. Our own alone asks for any word (`join` OR), has a `second_stage`, gives copies
`one_place`, and computes what a side gives that did not propose a chunk (`missing_side`). OpenClaw 2026.9 alone has
`exact_paths` and `fixed` values.

A row is a chunk's place in the index, a candidate's number its place in the table of candidates. "Rules" are several
settings that are ranked by at once: arrays are (rules, candidates) or, for what all candidates share, (rules, 1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.settings import PROFILES, TUNE_KEYS, Profile, Scalar, Settings
from memory_tui.search import lexical_2026_9, second_stage
from memory_tui.search.corpus import Ages, by_own_rule, distinct
from memory_tui.search.keyword import ALIKE, KeywordSide, Postings
from memory_tui.search.question import holds_value
from memory_tui.search.retrieve import Evidence, candidate_limit, first_shown
from memory_tui.search.second_stage import CANDIDATES, SecondStage
from memory_tui.search.trace import Flags, Floats, Hit, Mode, QueryPlan, Rows, Table
from memory_tui.workspace.notes import NOTHING_SAID, note_date, note_date_2026_9

LOOKED_AT = 40
"""How many of the first candidates are compared by their values (now-images)."""
UNDATED = 0.5
"""How new a line without a day is: less than the newest that has one, which was written down later (planted pairs)."""
MODEL_SHARE = 0.1
"""What a language model counts beside everything else. More gains nothing on FAQs (.883/.832; at .3 .875/.830, at 0
.864/.816; by the table .832/.798) and costs three pairs' chats their order (.747/.683; at .3 .659 of nDCG; by the table
.727/.686). A fourth pair was kept aside: .739/.720, by the table .746/.727."""


class Rules(Struct, frozen=True):
    """A profile and its knobs, resolved for one ranking of some evidence; `mode` tells which sides answer."""

    profile: Profile
    mode: Mode
    vector_weight: float
    text_weight: float
    limit: int
    results: int
    min_score: float
    half_life: float
    decay: bool
    mmr: bool
    mmr_lambda: float
    recency: float
    date_boost: float
    second_weight: float
    """Share of the second stage in the score."""
    neighbour: float
    """What a candidate beside a better one loses."""
    doubt_below: float
    nothing_below: float

    def share(self, dated: bool) -> float:
        """Return what both stages count for beside what age and a named day, where there is a `dated` note, add."""
        return 1.0 / (1.0 + self.recency + (self.date_boost if dated else 0.0))

    @classmethod
    def of(cls, evidence: Evidence, values: Mapping[str, Scalar]) -> Rules:
        """Return the rules of `values`, one for each knob that ranks or tells the level of an answer.

        The weight of a side that does not answer is lost, unless the profile gives it to the other. Meaning counts by
        how much of the question is known, and by MODEL_SHARE more where a language model compares.
        """
        profile = PROFILES[str(values["profile"])]
        mode = mode_of(evidence, profile, hybrid=bool(values["query.hybrid.enabled"]))
        if profile.fixed:
            # A knob that the release took away turns nothing, whoever turned it.
            values = {**values, **profile.fixed}
        weights = [min(1.0, max(0.0, float(values[f"query.hybrid.{side}Weight"]))) for side in ("vector", "text")]
        # Of two zeros OpenClaw makes these.
        vector, text = (weight / sum(weights) for weight in weights) if sum(weights) > 0 else (0.7, 0.3)
        second = float(values["secondStage.weight"]) if profile.second_stage else 0.0
        # What the table does not know of the question is left to words.
        if profile.second_stage:
            text += (1.0 - evidence.question.known_share) * vector
            vector *= evidence.question.known_share
        if evidence.closest is not None and profile.second_stage and mode != "keywords only":
            # The vector gets MODEL_SHARE of the score, all else shares the rest as before: these weights come to that.
            first = (1.0 - MODEL_SHARE) * (1.0 - second)
            second *= 1.0 - MODEL_SHARE
            vector = (first * vector + MODEL_SHARE) / (1.0 - second)
            text = first * text / (1.0 - second)
        if mode != "hybrid" and profile.missing_side == "zero":
            vector, text = (1.0, 0.0) if mode == "vectors only" else (0.0, 1.0)
        results = int(values["query.maxResults"])
        # The original counts variety, and up to 2026.3 age, only where it merges two lists.
        ages = mode == "hybrid" or profile.age == "add" or bool(profile.fixed)
        decay = ages and bool(values["query.hybrid.temporalDecay.enabled"])
        return cls(
            profile=profile,
            mode=mode,
            vector_weight=vector,
            text_weight=text,
            results=results,
            limit=candidate_limit(results, int(values["query.hybrid.candidateMultiplier"]), profile.fewest_candidates),
            min_score=float(values["query.minScore"]),
            half_life=float(values["query.hybrid.temporalDecay.halfLifeDays"]),
            decay=decay,
            mmr=mode == "hybrid" and bool(values["query.hybrid.mmr.enabled"]),
            mmr_lambda=float(values["query.hybrid.mmr.lambda"]),
            recency=float(values["recency.weight"]) if decay and profile.age == "add" else 0.0,
            date_boost=0.0 if "dateBoost" in profile.ignores else float(values["dateBoost"]),
            second_weight=second,
            neighbour=float(values["secondStage.neighbour"]),
            doubt_below=float(values["answer.doubtBelow"]),
            nothing_below=float(values["answer.nothingBelow"]),
        )


def _columns(floats: str, integers: str, flags: str) -> list[tuple[str, str]]:
    """Return columns for numpy: each name with its type."""
    names_of = {"f8": floats, "i8": integers, "?": flags}
    return [(name, kind) for kind, names in names_of.items() for name in names.split()]


_SCORED = _columns(
    "vector_points text_points hybrid age_factor age_points date_points fresh merit score second lost",
    "part beside",
    "inside",
)
SCORED = np.dtype(_SCORED)
"""What the knobs make of a candidate.

`fresh` is the score as it would be without age; `merit` is what the order goes by: within a group of named notes what
their content comes to. `part` is the part of the question that it answers, -1 where that is one. The second stage
looked `inside`; it `lost` points because it stands `beside` a better candidate (-1 for none).
"""
_BROUGHT = _columns(
    "cosine vector bm25 text age_days named ordering importance project",
    "row file first_line last_line vector_rank text_rank level",
    "",
)
_FATE = _columns("bar relevance similarity", "place twin chosen", "passed keyword rescued faded displaced leads")
CANDIDATE = np.dtype([*_BROUGHT, *_SCORED, *_FATE])
"""A candidate: what it brings along before any knob, what the knobs make of it, what became of it.

`named` is 1 for chunks of the days that the query names, or for the newest that says the same; `ordering` orders
chunks without points: the keyword score of a text that was looked through. Its score had to reach `bar`; `keyword`
tells that the relaxed floor lets it through, `faded` that it would have reached the bar without its age. `place` is
1-based among those that passed, else 0. Those `displaced` would be recalled but for variety, which put it in order as
number `chosen` (0: not); `twin` is the one chosen before that is most like it, -1 for none.
"""


class Candidates(Struct, frozen=True):
    """What the sides propose under one profile and limit; `table` has the numbers that no other knob changes."""

    table: Table
    vector_scale: float
    """What cosines were divided by."""
    text_scale: float
    """What negative bm25 was divided by; 1 under a rule that divides by nothing."""
    text_matches: int
    """How many chunks the word side found in all."""
    dated: bool = False
    """Whether the query names a time of which there are notes, or asks for now where some say the same."""
    stages: tuple[SecondStage, ...] = ()
    """What the second stage measures: stages[0] the whole question, stages[1 + n] its part number n, where it has
    parts. None under a profile without a second stage."""
    texts: Sequence[str] = ()
    """The text of each candidate, where a second stage measures it."""


def over_best(values: Floats, best: float) -> Floats:
    """Return each value divided by the query's best, negative ones as 0: lists of any scale can be added (max-norm)."""
    return np.maximum(values, 0.0) / best if best > 0 else np.zeros_like(values)


def decay_factor(age_days: Floats, half_life_days: float | Floats) -> Floats:
    """Return exp(-ln 2 / half-life x max(0, age)); 1 where the age is not known (OpenClaw temporal decay)."""
    factor = np.exp(-math.log(2) / half_life_days * np.maximum(0.0, age_days))
    return np.where(np.isnan(age_days), 1.0, factor)


def tuned(settings: Settings) -> dict[str, Scalar]:
    """Return the values that `settings` give to the knobs that rank, and to those of the level of an answer."""
    return {key: settings.values[key].value for key in (*TUNE_KEYS, "answer.doubtBelow", "answer.nothingBelow")}


def compares(evidence: Evidence, profile: Profile) -> bool:
    """Return whether meaning counts: for our own profile not in a language of which the table knows nothing."""
    return evidence.cosine is not None and not (evidence.question.known_share == 0.0 and profile.second_stage)


def mode_of(evidence: Evidence, profile: Profile, *, hybrid: bool) -> Mode:
    """Return which sides can answer: by what the index has, what the query gives, and whether `hybrid` is on.

    Our own profile alone asks for any word (OR), the releases of OpenClaw for all.
    """
    hybrid = hybrid or bool(profile.fixed)
    # With a vector of zeros the original finds no neighbours, and weighs the words as in any hybrid search.
    if compares(evidence, profile) or (evidence.question.pointless and profile.missing_side == "zero"):
        return "hybrid" if hybrid else "vectors only"
    side = evidence.recommended if profile.join == "OR" else evidence.openclaw
    has_words = bool(side.plan.fts_query) or (profile.exact_paths and len(evidence.lexical.hits) > 0)
    return "keywords only" if has_words else "nothing"


def side_of(evidence: Evidence, rules: Rules) -> KeywordSide:
    """Return the word side by the profile's own way of asking: any word (OR) is that of `recommended` alone."""
    if rules.profile.join == "OR":
        return evidence.recommended
    if rules.profile.text_score == "boosted":
        # All hits of the lexical side, with the bm25 of those whose words were matched.
        hits = evidence.lexical.hits
        postings = Postings(np.array([hit.row for hit in hits], np.int64), np.array([hit.bm25 for hit in hits]))
        return replace(evidence.lexical.words or KeywordSide(), postings=postings, whole=True)
    if rules.mode == "keywords only" and evidence.keywords is not None:
        return _merged(evidence.keywords, rules)
    return evidence.openclaw


def _merged(search: KeywordSide, rules: Rules) -> KeywordSide:
    """Return what the keywords found one by one: of each chunk its best score, the first of equal ones (OpenClaw)."""
    # The score and the bm25 of each row.
    best = dict[int, tuple[float, float]]()
    for side in search.each:
        rows, bm25 = side.postings.rows[: rules.limit], side.postings.bm25[: rules.limit]
        # The releases of OpenClaw that look for keywords divide by no best score.
        scores = _text_scores(rules.profile, bm25, 0.0)
        for row, rank, score in zip(rows.tolist(), bm25.tolist(), scores.tolist(), strict=True):
            if row not in best or score > best[row][0]:
                best[row] = score, rank
    # Rows, the best score first.
    order = sorted(best, key=lambda row: -best[row][0])
    postings = Postings(np.array(order, np.int64), np.array([best[row][1] for row in order], np.float64))
    frequency = {word: count for side in search.each for word, count in side.frequency.items()}
    return KeywordSide(search.plan, postings, frequency, whole=True)


_NO_ROWS: Rows = np.empty(0, dtype=np.int64)


def _text_scores(profile: Profile, bm25: Floats, best: float) -> Floats:
    """Return the text score of each bm25 by the profile's rule; `best` is the best -bm25 of the query."""
    if profile.text_score == "magnitude":
        return over_best(-bm25, best)
    # OpenClaw up to 2026.3.2: always 1, because FTS5 ranks are negative.
    clamped = np.asarray(1.0 / (1.0 + np.maximum(0.0, bm25)), np.float64)
    return clamped if profile.text_score == "clamped" else lexical_2026_9.saturated(bm25)


def _ranks(pool: Rows, rows: Rows, chunks: int) -> Rows:
    """Return the 1-based place of each of `rows` in `pool`, 0 when it is not there; of two places the first."""
    place = np.zeros(chunks, np.int64)
    # From the last to the first: what is written later stays.
    place[pool[::-1]] = np.arange(len(pool), 0, -1)
    return place[rows]


def ages_of(evidence: Evidence, profile: Profile) -> Ages:
    """Return ages by the profile's own rule of which names carry a day."""
    notes, now = evidence.notes, evidence.now
    if profile.exact_paths:
        # Transcripts age too, and times are cut to milliseconds.
        return Ages(notes, now, None, lambda path, _: note_date_2026_9(path), unit_ns=1_000_000)
    if profile.age == "multiply":
        # 2026.3 looks for a transcript in the workspace, where none is.
        return Ages(notes, now, None, lambda path, _: note_date(path), "evergreen")
    return Ages(notes, now, evidence.question.zone, by_own_rule)


def candidates_of(evidence: Evidence, side: KeywordSide, rules: Rules) -> Candidates:
    """Return the candidates that both sides propose, with the numbers that no weight, age or gate changes."""
    profile, mode = rules.profile, rules.mode
    nearest = evidence.nearest if evidence.cosine is not None and mode != "keywords only" else _NO_ROWS
    matched = side.postings.rows if mode in ("hybrid", "keywords only") else _NO_ROWS
    named = _NO_ROWS
    if profile.one_place:
        # The row that is shown has the first rank of all that it stands for.
        nearest, matched = (first_shown(evidence.shown, pool, rules.limit) for pool in (nearest, matched))
        named = evidence.shown[np.concatenate([evidence.of_days, evidence.titled])]
    else:
        nearest = nearest[: rules.limit]
        matched = matched if side.whole else matched[: rules.limit]
    rows = np.array(list(dict.fromkeys([*nearest.tolist(), *matched.tolist(), *named.tolist()])), dtype=np.int64)
    # OpenClaw 2026.9 has one list of hits by words and by paths, which bring their own scores; it is empty else.
    hits = {hit.row: hit for hit in evidence.lexical.hits} if profile.exact_paths else {}
    rows = _in_tie_order(evidence, rows, hits, mode) if profile.exact_paths else rows
    refs = evidence.refs
    table = np.zeros(len(rows), CANDIDATE)
    table["row"], table["file"] = rows, refs.file_of[rows]
    table["first_line"], table["last_line"] = refs.first_lines[rows], refs.last_lines[rows]
    table["vector_rank"], table["text_rank"] = (_ranks(pool, rows, len(refs)) for pool in (nearest, matched))
    compared = evidence.cosine if compares(evidence, profile) else None
    table["cosine"] = np.nan if compared is None else compared[rows]
    vector_scale = _vector_scores(evidence, profile, table, compared)
    # By row of the index, NaN where no word matched. FTS5's bm25 is negative, and the best comes first.
    bm25_by_row = np.full(len(refs), np.nan)
    bm25_by_row[side.postings.rows] = side.postings.bm25
    table["bm25"] = bm25 = bm25_by_row[rows]
    best = float(-side.postings.bm25[0]) if len(matched) else 0.0
    text_scale = max(best, 0.0) if profile.text_score == "magnitude" else 1.0
    if hits:
        table["text"] = [_keyword_score(hits.get(row), mode) for row in rows.tolist()]
        table["ordering"] = [_unmatched(hits.get(row)) for row in rows.tolist()]
    else:
        # Where the missing side is "computed", the text of what the vector side alone proposed counts as well.
        proposed = (table["text_rank"] > 0) | (profile.missing_side == "computed")
        counts = ~np.isnan(bm25) & proposed & (mode != "vectors only")
        # -1 stands in for a bm25 that does not count; its score is replaced by 0.
        table["text"] = np.where(counts, _text_scores(profile, np.where(counts, bm25, -1.0), text_scale), 0.0)
    table["age_days"] = ages_of(evidence, profile).days(table["file"])
    table["named"] = [evidence.of_named_time.get(file, 0.0) for file in table["file"].tolist()]
    table["importance"] = table["project"] = 1.0
    if profile.exact_paths:
        table["level"] = [evidence.lexical.levels.get(file, 0) for file in table["file"].tolist()]
        notes = [evidence.lexical.annotations.get(row, NOTHING_SAID) for row in rows.tolist()]
        # What multiplies a score by its entry's markers (7.2, 7.3 of the profile's specification).
        table["importance"] = [0.75 + 0.05 * entry.importance if entry.importance else 1.0 for entry in notes]
        table["project"] = [lexical_2026_9.project_factor(entry, evidence.lexical.active) for entry in notes]
    texts = [evidence.texts[rowid] for rowid in refs.rowids[rows].tolist()] if profile.second_stage else []
    stages: tuple[SecondStage, ...] = ()
    if texts:
        # By the values of the profile: the same under all knobs, so that measures stay.
        vector, text = (float(profile.values[f"query.hybrid.{name}Weight"]) for name in ("vector", "text"))
        order = np.argsort(-(vector * table["vector"] + text * table["text"]), kind="stable")
        stages = _stages(evidence, side, mode, order[:CANDIDATES], table["row"], texts)
        _name(evidence, side.plan, stages[0], table, order, texts)
    matches = int(np.count_nonzero(~np.isnan(bm25_by_row)))
    dated = bool(evidence.of_named_time) or bool(table["named"].any())
    return Candidates(table, vector_scale, text_scale, matches, dated, stages, texts)


def _vector_scores(evidence: Evidence, profile: Profile, table: Table, compared: Floats | None) -> float:
    """Fill in `vector`, what meaning gives each candidate, and return by what the cosines were divided.

    `compared` has the cosine of every row, None where meaning does not count. Where a language model compares, the
    nearest window is put in the place of the chunk's `cosine`.
    """
    with_vector = ~np.isnan(table["cosine"])
    # Unless the missing side is "computed", a cosine counts only where the vector side proposed the chunk.
    if profile.missing_side != "computed":
        with_vector &= table["vector_rank"] > 0
    values = np.where(with_vector, table["cosine"], 0.0)
    if profile.vector_score == "cosine":
        # As if a cosine of 0 were the floor; what is exactly 0 has no vector, or one of zeros, and stays 0.
        floor = profile.floor_of(evidence.provider)
        table["vector"] = np.where(values != 0, floor + (1 - floor) * values, 0.0)
        return 1.0
    scale, closest = 1.0, evidence.closest
    if compared is not None and closest is not None:
        table["cosine"] = closest.cosine[table["row"]]
        values = np.where(with_vector, table["cosine"] - closest.median, 0.0)
        scale = closest.best - closest.median
    elif compared is not None and len(evidence.nearest):
        scale = max(float(compared[evidence.nearest[0]]), 0.0)
    table["vector"] = over_best(values, scale)
    return scale


def _name(evidence: Evidence, plan: QueryPlan, stage: SecondStage, table: Table, order: Rows, texts: list[str]) -> None:
    """Fill in `named`, from 0 to 1, by what the query asks for.

    Where it asks for a value, candidates that hold one count 1. Where it asks for now, those that say the same count by
    how new they are. Where it asks for neither, notes count 1 whose title or name it is. `order` has the candidates of
    a ranking without knobs, best first: only the first of them are looked at.
    """
    if plan.value:
        first = order[:LOOKED_AT]
        table["named"][first] = holds_value([texts[at] for at in first.tolist()], plan.value, plan.words)
    elif plan.for_now:
        newest = np.flatnonzero(np.isin(table["row"], evidence.shown[evidence.of_days]))
        first = distinct(np.append(order[:CANDIDATES], newest))
        held = stage.held_by_lines([texts[at] for at in first.tolist()])
        table["named"][first] = newness(held, table["age_days"][first])
    elif len(evidence.titled):
        table["named"][np.isin(table["row"], evidence.shown[evidence.titled])] = 1.0


def newness(held: Floats, age_days: Floats) -> Floats:
    """Return how new each candidate is among those that say the same: the newest 1, the next a half, the third a third.

    They say the same whose best line has `held` about as much as the best of all. Others are 0, and all on one day.
    By equal steps an older one that says it in fewer words came first (now-images whole, and with two values each).
    """
    result = np.zeros(len(held))
    alike = held >= ALIKE * held.max(initial=0.0)
    ages = age_days[alike]
    # The oldest day comes first; what has none (NaN) comes last.
    days, number = np.unique(np.floor(-ages), return_inverse=True)
    dated = np.count_nonzero(~np.isnan(days))
    # `number` is the place of a day from the oldest on, so the newest is divided by 1.
    if dated and len(days) > 1:
        result[alike] = np.where(np.isnan(ages), UNDATED, 1.0 / np.maximum(dated - number, 1))
    return result


def _stages(
    evidence: Evidence, side: KeywordSide, mode: Mode, first: Rows, rows: Rows, texts: Sequence[str]
) -> tuple[SecondStage, ...]:
    """Return the second stage of the whole question, and behind it that of each of its parts, if it has any.

    `first` are the numbers in `rows` and `texts` of the candidates that a ranking without knobs has first. What is made
    is kept for other rankings of the same evidence.
    """
    plan = side.plan if mode != "vectors only" else QueryPlan(parts=side.plan.parts)
    searched = *plan.words, *plan.counted
    # The level of an answer goes by the whole question.
    questions = [(evidence.question.query, searched)]
    questions += [(part.asked, tuple(word for word in searched if word in part.words)) for part in plan.parts]
    stages = list[SecondStage]()
    for query, words in questions:
        # All that decides what is measured; no knob does.
        key = "second stage", mode, rows[first].tobytes(), query
        if key not in evidence.reusable:
            evidence.reusable[key] = SecondStage(
                query,
                words=words,
                left_out=plan.dropped,
                frequency=side.frequency,
                chunks=len(evidence.refs),
                reference={int(rows[at]): texts[at] for at in first.tolist()},
                meaning=0.0 if mode == "keywords only" else evidence.question.known_share,
            )
        stages.append(evidence.reusable[key])
    return tuple(stages)


def _keyword_score(hit: Hit | None, mode: Mode) -> float:
    """Return what the word side gives a chunk: nothing where its path alone was found, and is exact."""
    if hit is None or (hit.level and not hit.body):
        return 0.0
    if hit.text_score > 0 or (mode == "keywords only" and hit.body):
        return hit.score
    return 0.0 if hit.level else hit.path_score


def _unmatched(hit: Hit | None) -> float:
    """Return the keyword score of a chunk whose text was looked through, as no word could be matched; 0 for others."""
    return hit.score if hit is not None and hit.body and hit.text_score == 0 else 0.0


def _in_tie_order(evidence: Evidence, rows: Rows, hits: Mapping[int, Hit], mode: Mode) -> Rows:
    """Return `rows` without those that are never recalled, in the order in which rows of equal score stand.

    `hits` are those of the lexical side, by row.
    """
    never = lexical_2026_9.dropped(evidence.lexical.annotations)
    rows = rows[[row not in never for row in rows.tolist()]] if never else rows

    def order(row: int) -> tuple[object, ...]:
        """Return what rows of equal score are sorted by: words, where they alone answer, then path and lines."""
        hit, ref = hits.get(row), evidence.refs[row]
        place = lexical_2026_9.collation(ref.path), ref.start_line
        if hit is not None and mode == "keywords only":
            return -hit.text_score, 0.0 if hit.level else -hit.path_score, *place, ref.id
        return -_unmatched(hit), *place, ref.end_line

    return np.array(sorted(rows.tolist(), key=order), dtype=np.int64)


def column(values: Sequence[float]) -> Floats:
    """Return `values`, one for each of the rules, as (rules, 1), which numpy spreads over candidates."""
    return np.array(values, dtype=np.float64)[:, None]


def score(candidates: Candidates, rules: Sequence[Rules]) -> Table:
    """Return every candidate's score under each of `rules`, which have one profile: SCORED of (rules, candidates).

    That is (vector + text) x age factor, plus recency and a named day. Where a second stage runs, both sides share the
    score with it, and neighbours lose a little. Where something is added, the parts share one score, so that the most
    a chunk can reach is 1.
    """
    table, profile, dated = candidates.table, rules[0].profile, candidates.dated
    scored = np.zeros((len(rules), len(table)), SCORED)
    scored["part"], scored["beside"] = -1, -1
    scored["vector_points"] = column([rule.vector_weight for rule in rules]) * table["vector"]
    scored["text_points"] = column([rule.text_weight for rule in rules]) * table["text"]
    scored["hybrid"] = hybrid = scored["vector_points"] + scored["text_points"]
    fade = decay_factor(table["age_days"][None, :], column([rule.half_life for rule in rules]))
    multiplies = column([rule.decay and profile.age == "multiply" for rule in rules]) > 0
    scored["age_factor"] = factor = np.where(multiplies, fade, 1.0)
    share = column([rule.share(dated) for rule in rules])
    # Evergreen notes count as fresh, so that an undated fact never loses to a dated one for want of a date.
    scored["age_points"] = share * column([rule.recency for rule in rules]) * fade
    scored["date_points"] = share * column([rule.date_boost if dated else 0.0 for rule in rules]) * table["named"]
    second = column([rule.second_weight for rule in rules])
    if profile.exact_paths:
        _score_named(table, scored)
    elif not candidates.stages or not second.any():
        scored["merit"] = scored["score"] = share * (hybrid * factor) + scored["age_points"] + scored["date_points"]
        scored["fresh"] = share * hybrid + scored["date_points"]
    else:
        added = scored["age_points"] + scored["date_points"]
        order, used = _look_into(candidates, scored, share * hybrid + added, second > 0)
        total = share * (1.0 - second) * hybrid + share * second * scored["second"]
        penalty = np.where(second > 0, share * column([rule.neighbour for rule in rules]), 0.0)
        # Neighbours are looked for among `used` alone: so the order is given as places in that list, and what is
        # returned is led back to candidates.
        places = np.searchsorted(used, order)
        lost, twin = second_stage.spread((total + added)[:, used], places, table[used], penalty)
        scored["lost"][:, used] = lost
        scored["beside"][:, used] = np.where(twin >= 0, used[twin], -1)
        # A sum of shares is off in the sixteenth digit, and what is best at everything has to reach 1.
        total = (total + scored["age_points"] + scored["date_points"] - scored["lost"]).round(12)
        # Where age only adds, it takes nothing from anybody.
        scored["merit"] = scored["fresh"] = scored["score"] = total
    return scored


def _score_named(table: Table, scored: Table) -> None:
    """Fill in the scores of OpenClaw 2026.9, which puts the notes first that the question names (section 7.3)."""
    is_named, hybrid = table["level"] > 0, scored["hybrid"]
    content = np.where(hybrid != 0, hybrid, table["ordering"])
    base = np.where(is_named, (1.0 + np.clip(hybrid, 0.0, 1.0)) / 2.0, content)
    scored["merit"] = merit = base * scored["age_factor"] * table["importance"] * table["project"]
    # A note that the question names counts 1 whatever it holds; a chunk without points counts 0 whatever orders it.
    scored["score"] = np.where(is_named, table["project"], np.where(hybrid == 0, 0.0, merit))
    scored["fresh"] = np.where(is_named, table["project"], base * table["importance"] * table["project"])


def _look_into(candidates: Candidates, scored: Table, first: Floats, on: Flags) -> tuple[Rows, Rows]:
    """Fill in what the second stage gives by each of the rules where it is `on` (rules, 1).

    `first` is the score of the first stage (rules, candidates). Returns the candidates that are looked into: best
    first by each of the rules, which is (rules, k), and those of all rules once, rising.
    """
    order = np.argsort(-first, axis=1, kind="stable")[:, :CANDIDATES]
    inside = np.zeros(first.shape, dtype=np.bool_)
    np.put_along_axis(inside, order, np.broadcast_to(on, order.shape), axis=1)
    # Of all candidates only those are measured that are among the first under some rule.
    used = distinct(order.ravel())
    rows = candidates.table["row"][used].tolist()
    texts = [candidates.texts[at] for at in used.tolist()]
    # stages[0] is the whole question, which counts where it has no parts. Of several parts a chunk answers the one that
    # it answers best.
    stages = candidates.stages[1:] or candidates.stages
    # Of each stage (rules, used): the share of each measure times the weight of that measure, added up.
    by_part = [second_stage.shares(stage.measure(rows, texts), inside[:, used]) @ stage.weights for stage in stages]
    scored["inside"] = inside
    if len(stages) > 1:
        scored["part"][:, used] = np.where(inside[:, used], np.argmax(by_part, axis=0), -1)
    scored["second"][:, used] = np.max(by_part, axis=0)
    return order, used
