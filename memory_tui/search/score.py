"""Scores: the evidence of both sides becomes one number for each candidate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import count

import numpy as np
from msgspec import Struct

from memory_tui.core import profiles
from memory_tui.core.profiles import Profile, Term
from memory_tui.core.settings import TUNE_KEYS, Scalar, Settings
from memory_tui.search import formulas, rules_2026_9, second_stage
from memory_tui.search.corpus import Integers, distinct
from memory_tui.search.evidence import (
    Age,
    Evidence,
    Flags,
    KeywordSearch,
    KeywordSide,
    Lexical,
    Postings,
    Rows,
    texts_of,
)
from memory_tui.search.formulas import Floats
from memory_tui.search.passage_measures import MEASURES
from memory_tui.search.rules_2026_9 import Hit
from memory_tui.search.second_stage import SecondScores, SecondStage
from memory_tui.search.trace import ChunkRef, MeasurePart, Mode, SecondPart
from memory_tui.workspace.annotations import NOTHING_SAID


class Rules(Struct, frozen=True):
    """A profile and its knobs, resolved for one ranking."""

    profile: Profile
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

    @property
    def corrects(self) -> bool:
        """Whether words are searched in our own way, which corrects them."""
        return self.profile.join == "OR"

    @classmethod
    def of(cls, settings: Settings, mode: Mode, known: float = 1.0) -> Rules:
        """The rules in force in `mode`: without one side its weight is lost, as in the original."""
        return cls.by({key: settings.values[key].value for key in TUNE_KEYS}, mode, known)

    @classmethod
    def by(cls, values: Mapping[str, Scalar], mode: Mode, known: float = 1.0) -> Rules:
        """The rules of `values`, one for each knob that ranks; meaning counts by how much of the question is known."""
        profile = profiles.get(str(values["profile"]))
        if profile.fixed:
            # A knob that the release took away turns nothing, whoever turned it.
            values = {**values, **profile.fixed}
        vector, text = formulas.normalised_weights(
            float(values["query.hybrid.vectorWeight"]), float(values["query.hybrid.textWeight"])
        )
        if profile.second_stage:
            vector, text = known * vector, text + (1.0 - known) * vector
        one_sided = mode != "hybrid"
        if one_sided and profile.missing_side == "zero":
            vector, text = (1.0, 0.0) if mode == "vectors only" else (0.0, 1.0)
        results = int(values["query.maxResults"])
        return cls(
            profile=profile,
            vector_weight=vector,
            text_weight=text,
            results=results,
            limit=formulas.candidate_limit(
                results, int(values["query.hybrid.candidateMultiplier"]), profile.fewest_candidates
            ),
            min_score=float(values["query.minScore"]),
            half_life=float(values["query.hybrid.temporalDecay.halfLifeDays"]),
            # The original counts variety, and up to 2026.3 age, only where it merges two lists.
            decay=bool(values["query.hybrid.temporalDecay.enabled"])
            and not (one_sided and profile.age == "multiply" and not profile.fixed),
            mmr=bool(values["query.hybrid.mmr.enabled"]) and not one_sided,
            mmr_lambda=float(values["query.hybrid.mmr.lambda"]),
            recency=float(values["recency.weight"]) if profile.age == "add" else 0.0,
            date_boost=0.0 if "dateBoost" in profile.ignores else float(values["dateBoost"]),
            second_weight=float(values["secondStage.weight"]) if profile.second_stage else 0.0,
            neighbour=float(values["secondStage.neighbour"]),
        )


class Components(Struct, frozen=True):
    """What the candidates of one profile and limit bring along before any knob: arrays over `rows`, as proposed."""

    rows: Rows
    cosine: Floats
    vector_rank: Rows
    vector: Floats
    vector_scale: float
    bm25: Floats
    text_rank: Rows
    text: Floats
    text_scale: float
    days: Floats
    named: Floats
    """1 for chunks of the days that the query names, 0 for others."""
    text_matches: int
    level: Rows
    """How exactly the query names the note: 3 by its path, 2 by its name, 1 without extension, 0 not."""
    lexical: Floats
    """What orders chunks that have no points: the keyword score of a text that was found without full-text search."""
    terms: Mapping[Term, Floats]
    """What multiplies, beside age, by the name of the term."""
    in_list: Flags
    """Which rows the keyword side proposed."""
    refs: Mapping[int, ChunkRef]
    dated: bool = False
    """Whether the query names a time of which there are notes."""
    stages: tuple[SecondStage, ...] = ()
    """What the second stage measures, one for each part of the question; none under a profile without a second stage.
    """


class Scores(Struct, frozen=True):
    """What the knobs make of components: arrays of (rules, candidates)."""

    hybrid: Floats
    first: Floats
    """What of the sum of both sides counts beside the second stage and all that is added: (rules, 1)."""
    factor: Floats
    recency: Floats
    date: Floats
    total: Floats
    fresh: Floats
    """The total as it would be without age."""
    merit: Floats
    """What the order goes by: the total, but within a group of exactly named notes what their content comes to."""
    second: SecondScores | None = None
    """What the second stage gave, where one ran."""

    @property
    def part(self) -> Rows:
        """Which part of the question each candidate answers, by its number; -1 where it was not asked in parts."""
        if self.second is None or len(self.second.best) < 2:
            return np.full(self.total.shape, -1, dtype=np.int64)
        return self.second.part


def mode_of(evidence: Evidence, settings: Settings) -> Mode:
    """Which sides can answer: by what the index has, what the query gives, and whether hybrid is on."""
    return mode_by(evidence, settings.word("profile"), hybrid=settings.on("query.hybrid.enabled"))


def compares(evidence: Evidence, profile: Profile) -> bool:
    """Whether meaning counts: of a language that the table does not know, a release of OpenClaw counts it still."""
    return evidence.cosine is not None and not (evidence.known == 0.0 and profile.second_stage)


def mode_by(evidence: Evidence, name: str, *, hybrid: bool) -> Mode:
    """The same, by the name of a profile and the switch."""
    profile = profiles.get(name)
    hybrid = (hybrid or bool(profile.fixed)) and evidence.full_text
    # With a vector of zeros the original finds no neighbours, and weighs the words as in any hybrid search.
    if compares(evidence, profile) or (evidence.pointless and profile.missing_side == "zero"):
        return "hybrid" if hybrid else "vectors only"
    side = evidence.recommended if profile.join == "OR" else evidence.openclaw
    found = profile.exact_paths and evidence.lexical.hits
    return "keywords only" if side.plan.fts_query or found else "nothing"


def side_of(evidence: Evidence, mode: Mode, rules: Rules) -> KeywordSide:
    """The word side by the profile's own way of asking."""
    if rules.profile.join == "OR":
        return evidence.recommended
    if rules.profile.text_score == "boosted":
        return _listed(evidence.lexical)
    if mode == "keywords only" and evidence.keywords is not None:
        return _merged(evidence.keywords, rules)
    return evidence.openclaw


def _merged(search: KeywordSearch, rules: Rules) -> KeywordSide:
    """What the keywords found one by one: of each chunk its best score, the first of equal ones (OpenClaw)."""
    best: dict[int, tuple[float, float]] = {}
    for side in search.each:
        rows, bm25 = side.postings.rows[: rules.limit], side.postings.bm25[: rules.limit]
        scores = _text_scores(rules.profile, bm25, 0.0)
        for row, rank, score in zip(rows.tolist(), bm25.tolist(), scores.tolist(), strict=True):
            if row not in best or score > best[row][0]:
                best[row] = score, rank
    order = sorted(best, key=lambda row: -best[row][0])
    postings = Postings(np.array(order, dtype=np.int64), np.array([best[row][1] for row in order], dtype=np.float64))
    frequency = {word: count for side in search.each for word, count in side.frequency.items()}
    return KeywordSide(search.plan, postings, frequency, whole=True)


def _listed(found: Lexical) -> KeywordSide:
    """The lexical side as a word side: all its hits, with the bm25 of those whose words were matched."""
    postings = Postings(
        np.array([hit.row for hit in found.hits], dtype=np.int64), np.array([hit.bm25 for hit in found.hits])
    )
    frequency = {word: count for search in found.searches[:1] for word, count in search.frequency.items()}
    return KeywordSide(found.plan, postings, frequency, whole=True)


_NO_ROWS: Rows = np.empty(0, dtype=np.int64)


def pools(evidence: Evidence, side: KeywordSide, mode: Mode, limit: int) -> tuple[Rows, Rows]:
    """What each side proposes: the rows nearest by cosine, and those best by bm25."""
    nearest = evidence.nearest[:limit] if evidence.cosine is not None and mode != "keywords only" else _NO_ROWS
    most = 0 if mode not in ("hybrid", "keywords only") else None if side.whole else limit
    return nearest, side.postings.rows[:most]


def _text_scores(profile: Profile, bm25: Floats, best: float) -> Floats:
    if profile.text_score == "magnitude":
        return formulas.share(-bm25, best)
    return formulas.clamped(bm25) if profile.text_score == "clamped" else formulas.saturated(bm25)


def _ranks(pool: Rows, rows: Rows) -> Rows:
    """The 1-based place of each of `rows` in `pool`, 0 when it is not there; of two places the first."""
    place = dict(zip(pool[::-1].tolist(), range(len(pool), 0, -1), strict=True))
    return np.array([place.get(row, 0) for row in rows.tolist()], dtype=np.int64)


def age_of(evidence: Evidence, profile: Profile) -> Age:
    """Ages by the profile's own rule of which names carry a day."""
    if profile.exact_paths and evidence.lexical_age is not None:
        return evidence.lexical_age
    return evidence.openclaw_age if profile.age == "multiply" else evidence.recommended_age


def components(evidence: Evidence, side: KeywordSide, mode: Mode, rules: Rules) -> Components:
    """The candidates that both sides propose, with the numbers that no weight, age or gate changes."""
    nearest, matched = pools(evidence, side, mode, rules.limit)
    rows = np.array(list(dict.fromkeys([*nearest.tolist(), *matched.tolist()])), dtype=np.int64)
    profile = rules.profile
    hits = {hit.row: hit for hit in evidence.lexical.hits} if profile.exact_paths else {}
    if profile.exact_paths:
        rows = _in_tie_order(evidence, rows, hits, mode)
    computed = profile.missing_side == "computed"

    compared = compares(evidence, profile)
    cosine = evidence.cosine[rows] if compared and evidence.cosine is not None else np.full(len(rows), np.nan)
    vector_rank = _ranks(nearest, rows)
    known = ~np.isnan(cosine) & (computed | (vector_rank > 0))
    vector_scale = 1.0
    if profile.vector_score == "share" and compared and evidence.cosine is not None and len(evidence.nearest):
        vector_scale = max(float(evidence.cosine[evidence.nearest[0]]), 0.0)
    values = np.where(known, cosine, 0.0)
    lifted = formulas.lifted(values, profile.floor_of(evidence.provider))
    vector = formulas.share(values, vector_scale) if profile.vector_score == "share" else lifted

    text_rank = _ranks(matched, rows)
    every = side.postings.spread(evidence.chunks)
    bm25 = every[rows]
    text_scale = 1.0
    if profile.text_score == "magnitude":
        text_scale = max(float(-side.postings.bm25[0]), 0.0) if len(matched) else 0.0
    counted = ~np.isnan(bm25) & (computed | (text_rank > 0)) & (mode != "vectors only")
    if hits:
        text = np.array([_keyword_score(hits.get(row), mode) for row in rows.tolist()])
    else:
        text = np.where(counted, _text_scores(profile, np.where(counted, bm25, -1.0), text_scale), 0.0)

    files = evidence.file_of[rows]
    unmatched = [_unmatched(hits.get(row)) for row in rows.tolist()] if hits else np.zeros(len(rows))
    return Components(
        rows,
        cosine,
        vector_rank,
        vector,
        vector_scale,
        bm25,
        text_rank,
        text,
        text_scale,
        age_of(evidence, profile).days(files),
        np.array([file in evidence.of_named_time for file in files.tolist()], dtype=np.float64),
        int(np.count_nonzero(~np.isnan(every))),
        _levels(evidence, files, profile),
        np.array(unmatched, dtype=np.float64),
        {term: _term(term, evidence.lexical, rows) for term in profile.terms if term != "decay"},
        text_rank > 0,
        evidence.refs,
        bool(evidence.of_named_time),
        _stages(evidence, side, mode, rules, rows, (vector, text)) if profile.second_stage and len(rows) else (),
    )


def _stages(
    evidence: Evidence, side: KeywordSide, mode: Mode, rules: Rules, rows: Rows, sides: tuple[Floats, Floats]
) -> tuple[SecondStage, ...]:
    """The second stage of one search by each part of the question, kept for rankings of the same evidence."""
    # The reference is the same under all knobs, so that what was measured in a chunk stays.
    usual = (float(rules.profile.values[f"query.hybrid.{name}Weight"]) for name in ("vector", "text"))
    first = sum((weight * values for weight, values in zip(usual, sides, strict=True)), np.zeros(len(rows)))
    reference = rows[second_stage.first_of(first[None, :])[0]]
    plan = side.plan

    def stage_of(asked: str, own: Callable[[str], bool]) -> SecondStage:
        key = "second stage", mode, reference.tobytes(), asked
        found = evidence.reusable.get(key)
        if not isinstance(found, SecondStage):
            found = evidence.reusable[key] = SecondStage(
                () if mode == "vectors only" else tuple(filter(own, (*plan.words, *plan.counted))),
                () if mode == "vectors only" else plan.dropped,
                side.frequency,
                evidence.indexed,
                asked,
                reference.tolist(),
                partial(texts_of, evidence.texts, evidence.refs),
                meaning=0.0 if mode == "keywords only" else evidence.known,
            )
        return found

    # That of the whole question comes first: the level of an answer and its passages go by it.
    whole = stage_of(evidence.query, lambda _: True)
    return (whole, *(stage_of(part.asked, part.words.__contains__) for part in plan.parts))


def kept_stage(evidence: Evidence, mode: Mode) -> SecondStage | None:
    """The second stage that looked for the whole question of `evidence` in `mode`; None where none ran."""
    stages = (
        one
        for key, one in tuple(evidence.reusable.items())
        if isinstance(one, SecondStage) and isinstance(key, tuple) and key[1] == mode and key[-1] == evidence.query
    )
    return next(stages, None)


def _levels(evidence: Evidence, files: Integers, profile: Profile) -> Rows:
    """How exactly the query names the note of each row; 0 under a profile that does not ask."""
    levels = evidence.lexical.levels if profile.exact_paths else {}
    return np.array(
        [levels.get(file, 0) for file in files.tolist()] if levels else np.zeros(len(files)), dtype=np.int64
    )


def _keyword_score(hit: Hit | None, mode: Mode) -> float:
    """What the word side gives a chunk: nothing to one that only its path was found by, where the path is exact."""
    if hit is None or (hit.level and not hit.body):
        return 0.0
    if mode == "keywords only" and hit.body:
        return hit.score
    return hit.score if hit.text_score > 0 else 0.0 if hit.level else hit.path_score


def _unmatched(hit: Hit | None) -> float:
    """The keyword score of a chunk whose text was looked through, because no word of it could be matched."""
    return hit.score if hit is not None and hit.body and hit.text_score == 0 else 0.0


def _in_tie_order(evidence: Evidence, rows: Rows, hits: Mapping[int, Hit], mode: Mode) -> Rows:
    """`rows` without those that are never recalled, in the order in which equal ones stand."""
    never = rules_2026_9.dropped(evidence.lexical.said)
    rows = rows[[row not in never for row in rows.tolist()]] if never else rows
    if mode == "keywords only":

        def key(row: int) -> tuple[object, ...]:
            hit = hits[row]
            path, start, _, chunk = hit.place
            return -hit.text_score, 0.0 if hit.level else -hit.path_score, rules_2026_9.collation(path), start, chunk

        return np.array(sorted(rows.tolist(), key=key), dtype=np.int64)
    order = evidence.lexical.path_order
    if len(order):
        paths = order[evidence.file_of[rows]]
    else:
        # Of chunks that are cut otherwise nobody put the paths in order.
        paths = rules_2026_9.path_order([evidence.refs[row].path for row in rows.tolist()])
    by_words = np.array([_unmatched(hits.get(row)) for row in rows.tolist()])
    first, last = evidence.lines
    return rows[np.lexsort((last[rows], first[rows], paths, -by_words))]


def _term(term: Term, found: Lexical, rows: Rows) -> Floats:
    """What `term` multiplies each of `rows` by."""
    said = [found.said.get(row, NOTHING_SAID) for row in rows.tolist()]
    if term == "importance":
        return np.array([rules_2026_9.importance_factor(own.importance) for own in said], dtype=np.float64)
    return np.array([rules_2026_9.project_factor(own, found.active) for own in said], dtype=np.float64)


def column(values: Sequence[float]) -> Floats:
    """One value for each of the rules, to be spread over candidates."""
    return np.array(values, dtype=np.float64)[:, None]


def score(parts: Components, rules: Sequence[Rules]) -> Scores:
    """Every candidate's score under each of `rules`: (vector + text) x age factor, plus recency and a named day.

    Where a second stage runs, both sides share the score with it, and neighbours lose a little. Where something is
    added, the parts share one score, so that the most a chunk can reach is 1.
    """
    vector_weight, text_weight = column([rule.vector_weight for rule in rules]), column([r.text_weight for r in rules])
    hybrid = vector_weight * parts.vector + text_weight * parts.text
    fade = formulas.decay_factor(parts.days[None, :], column([rule.half_life for rule in rules]))
    multiplies = column([rule.decay and rule.profile.age == "multiply" for rule in rules]) > 0
    adds = column([rule.decay and rule.profile.age == "add" for rule in rules]) > 0
    factor = np.where(multiplies, fade, 1.0)
    # Evergreen notes count as fresh, so that an undated fact never loses to a dated one for want of a date.
    fresh_weight = np.where(adds, column([rule.recency for rule in rules]), 0.0)
    day_weight = column([rule.date_boost if parts.dated else 0.0 for rule in rules])
    share = 1.0 / (1.0 + fresh_weight + day_weight)
    recency, date = share * fresh_weight * fade, share * day_weight * parts.named
    base = hybrid
    if rules[0].profile.exact_paths:
        content = np.where(hybrid != 0, hybrid, parts.lexical)
        base = np.where(parts.level > 0, (1.0 + np.clip(hybrid, 0.0, 1.0)) / 2.0, content)
    merit, fresh = base * factor, base
    for values in parts.terms.values():
        merit, fresh = merit * values, fresh * values
    if not rules[0].profile.exact_paths:
        merit, fresh = share * merit + recency + date, share * fresh + date
        second = _look_into(parts, rules, hybrid, share, recency + date)
        if second is None:
            return Scores(hybrid, share, factor, recency, date, merit, fresh, merit)
        # A sum of shares is off in the sixteenth digit, and what is best at everything has to reach 1.
        total = (_both_stages(rules, share, hybrid, second.score) + recency + date - second.lost).round(12)
        # Where age only adds, it takes nothing from anybody.
        first = share * (1.0 - column([rule.second_weight for rule in rules]))
        return Scores(hybrid, first, factor, recency, date, total, total, total, second)
    # A note that the question names counts 1 whatever it holds; a chunk without points counts 0 whatever orders it.
    named, empty = parts.terms["project"], hybrid == 0
    total = np.where(parts.level > 0, named, np.where(empty, 0.0, merit))
    return Scores(hybrid, share, factor, recency, date, total, np.where(parts.level > 0, named, fresh), merit)


def _both_stages(rules: Sequence[Rules], share: Floats, first: Floats, second: Floats) -> Floats:
    weight = column([rule.second_weight for rule in rules])
    return share * (1.0 - weight) * first + share * weight * second


def _look_into(
    parts: Components, rules: Sequence[Rules], hybrid: Floats, share: Floats, added: Floats
) -> SecondScores | None:
    """What the second stage gives the first candidates by each of `rules`; None where none of them has one."""
    if not parts.stages or not any(rule.second_weight > 0 for rule in rules):
        return None
    on = column([rule.second_weight > 0 for rule in rules]) > 0
    order = second_stage.first_of(share * hybrid + added)
    inside = np.zeros(hybrid.shape, dtype=np.bool_)
    np.put_along_axis(inside, order, np.broadcast_to(on, order.shape), axis=1)
    # Few candidates are among the first under any of the rules: only these are measured and compared.
    used = distinct(order.ravel())
    rows = parts.rows[used].tolist()
    # Of a question in parts a chunk answers one, that which it answers best.
    asked = parts.stages[1:] or parts.stages
    by_part = [second_stage.shares(stage.measured(rows), inside[:, used]) for stage in asked]
    given_by = np.stack([over @ stage.weights for (over, _), stage in zip(by_part, asked, strict=True)])
    part = np.full(hybrid.shape, -1, dtype=np.int64)
    part[:, used] = np.where(inside[:, used], np.argmax(given_by, axis=0), -1)
    best = np.stack([own for _, own in by_part])
    score, lost = np.zeros(hybrid.shape), np.zeros(hybrid.shape)
    beside = np.full(hybrid.shape, -1, dtype=np.int64)
    score[:, used] = given_by.max(axis=0)
    total = (_both_stages(rules, share, hybrid, score) + added)[:, used]
    near = second_stage.neighbours([parts.refs[row] for row in rows])
    penalty = np.where(on, share * column([rule.neighbour for rule in rules]), 0.0)
    lost[:, used], twin = second_stage.spread(total, np.searchsorted(used, order), near, penalty)
    beside[:, used] = np.where(twin >= 0, used[twin], -1)
    return SecondScores(inside, score, share * column([rule.second_weight for rule in rules]), part, best, lost, beside)


def second_part(parts: Components, scores: Scores, i: int, *, leads: bool) -> SecondPart | None:
    """What the second stage made of candidate `i` by the first of the rules; None where none ran."""
    found = scores.second
    if found is None:
        return None
    weight = float(found.weight[0, 0])
    if not found.inside[0, i]:
        return SecondPart(weight, 0.0, 0.0)
    asked, own_part = parts.stages[1:] or parts.stages, int(found.part[0, i])
    stage = asked[own_part]
    row, score, lost = int(parts.rows[i]), float(found.score[0, i]), float(found.lost[0, i])
    seen, ref = stage.best(row), parts.refs[row]
    measures = []
    for measure, value, best, own in zip(
        MEASURES, seen.values, found.best[own_part, 0].tolist(), stage.weights.tolist(), strict=True
    ):
        share = value / best if best > 0 else 0.0
        if own:
            measures.append(MeasurePart(measure.name, value, best, share, own, share * own))
    return SecondPart(
        weight,
        score,
        weight * score,
        tuple(measures),
        lost,
        parts.refs[int(parts.rows[found.beside[0, i]])] if lost else None,
        ref.start_line + seen.line,
        (ref.start_line + seen.window[0], ref.start_line + seen.window[1]),
        stage.query if len(asked) > 1 else "",
        leads,
    )


LEAD = 4.0
"""More than any score or any step of variety can differ by."""


def leads(part: Rows, total: Floats, passed: Flags) -> Floats:
    """LEAD for the best of each part of a question that `passed`, else 0; no score changes by it.

    `part` is the number of the part that each candidate answers, -1 for none; arrays of (rules, candidates).
    """
    lead = np.zeros(total.shape)
    for own in range(1 + int(part.max(initial=-1))):
        there = passed & (part == own)
        rules = np.flatnonzero(there.any(axis=1))
        lead[rules, np.argmax(np.where(there, total, -np.inf), axis=1)[rules]] = LEAD
    return lead


def groups(parts: Components, merit: Floats, total: Floats) -> list[Rows]:
    """The candidates in their order before variety counts: exactly named notes by level, then all others."""
    found = []
    for level in sorted(set(parts.level.tolist()), reverse=True):
        own = np.flatnonzero(parts.level == level)
        keys = (-merit[own],) if level else (-merit[own], -total[own])
        found.append(own[np.lexsort(keys)])
    return found


def keyword_hits(evidence: Evidence, parts: Components) -> Flags:
    """Which candidates the relaxed floor takes for keyword hits: those, and all others on the very lines of one.

    OpenClaw knows its keyword hits by path and lines, and the pieces of one long line share them.
    """
    found = parts.in_list
    if found.all() or not found.any():
        return found
    places = ranges(evidence, parts.rows)
    return np.isin(places, places[found])


def ranges(evidence: Evidence, rows: Rows) -> Rows:
    """A number for each of `rows`, the same for those on the very same lines of one note."""
    columns = np.stack([column[rows] for column in (evidence.file_of, *evidence.lines)])
    return np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1)


class Similarity:
    """Jaccard similarity between token sets: shared tokens over all tokens; two empty sets are the same.

    `tokens` makes each of so many sets when it is asked for. May be used by several threads at once.
    """

    def __init__(self, count: int, tokens: Callable[[int], frozenset[str]]) -> None:
        self._count, self._make = count, tokens
        self._tokens: dict[int, frozenset[str]] = {}
        self._known: dict[int, Floats] = {}

    @cached_property
    def _sets(self) -> _Sets:
        return _Sets([self._of(i) for i in range(self._count)])

    def _of(self, i: int) -> frozenset[str]:
        found = self._tokens.get(i)
        if found is None:
            found = self._tokens[i] = self._make(i)
        return found

    def of(self, i: int, j: int) -> float:
        """The similarity of two sets, without the others being made."""
        one, other = self._tokens.get(i), self._tokens.get(j)
        if one is None or other is None:
            one, other = self._of(i), self._of(j)
        shared = len(one & other)
        union = len(one) + len(other) - shared
        return shared / union if union else 1.0

    def row(self, i: int) -> Floats:
        """The similarity of set `i` to every set; not to be changed."""
        found = self._known.get(i)
        if found is None:
            found = self._known[i] = self._sets.with_each(i)
        return found

    def among(self, own: Rows, i: int) -> Floats:
        """The similarity of the `i`-th of the sets `own` to each of them."""
        return self.row(int(own[i]))[own]


class _Sets:
    def __init__(self, tokens: Sequence[frozenset[str]]) -> None:
        number: defaultdict[str, int] = defaultdict(count().__next__)
        self._columns = [np.array([number[token] for token in items], dtype=np.int64) for items in tokens]
        # A row a token, so that the tokens of one set are whole rows to add up.
        self._holds = np.zeros((len(number), len(tokens)), dtype=np.float32)
        self._sizes = np.array([len(items) for items in tokens], dtype=np.float64)
        sets = np.repeat(np.arange(len(tokens)), [len(items) for items in tokens])
        self._holds[np.concatenate([*self._columns, _NO_ROWS]), sets] = 1.0

    def with_each(self, i: int) -> Floats:
        shared = self._holds[self._columns[i]].sum(axis=0, dtype=np.float32).astype(np.float64)
        union = self._sizes + self._sizes[i] - shared
        return np.where(union > 0, shared / np.maximum(union, 1.0), 1.0)
