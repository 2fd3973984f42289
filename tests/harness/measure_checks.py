"""Checkers of what is said of measurements: levels of answers, minScore, tuning; each is measured again, one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from memory_tui.core import tokens
from memory_tui.core.errors import ProviderError
from memory_tui.core.settings import Settings
from memory_tui.explain import noise, why_not
from memory_tui.providers.builtin import static_table
from memory_tui.search import second_stage
from memory_tui.search.answer_level import AnswerLevel
from memory_tui.search.passages import IRREGULAR, stems_of
from memory_tui.search.rank import rank
from memory_tui.search.second_stage import CANDIDATES
from memory_tui.tune import evaluate, knob_search
from memory_tui.tune.evaluate import QueryChange, Rival, Shortfall
from memory_tui.tune.judgments import Label, Query
from memory_tui.tune.knob_search import Better, NoEvidence
from tests.harness.claims import Case, Measured, World, checks, open_world

KINDS = {
    noise.LevelRates,
    AnswerLevel,
    Better,
    evaluate.Measured,
    evaluate.ScoreComparison,
    NoEvidence,
    QueryChange,
    Rival,
    Shortfall,
}
_HAIR = 1e-4


# --- levels of answers ---------------------------------------------------------------------------------------------


@checks(AnswerLevel)
def _level(claim: AnswerLevel, case: Case) -> None:
    """The share of the question that one piece of a text holds, word by word, and by the likest word of it."""
    signals, settings = claim.signals, case.settings
    near = signals.closeness if signals.cosine is None else signals.cosine
    alone = signals.cosine is None and not signals.pairs
    like = 5.5 if alone else 9 + 12 * (0.125 if signals.cosine is None else near)
    evidence = 3 * signals.window + like * signals.closeness + 7.5 * signals.rarest
    above = evidence - claim.unrelated.mean
    letters = [one for one in case.evidence.query if one.isalnum()]
    assert signals.pairs == (2 * sum(map(tokens.is_cjk, letters)) > len(letters))
    likely_as_not = 1.85 if signals.pairs else 6.5 if alone else 8.8
    odds = math.exp((1.6 if signals.pairs else 1.0) * (above - likely_as_not))
    assert abs(claim.likelihood - odds / (1 + odds)) < 1e-9
    assert (claim.doubt_below, claim.nothing_below) == tuple(
        settings.number(f"answer.{name}Below") for name in ("doubt", "nothing")
    )
    assert (claim.level == "found") == (claim.likelihood >= claim.doubt_below)
    if claim.level == "nothing holds these words":
        assert claim.likelihood < claim.nothing_below
    held, like = shares_held(case)
    assert signals.coverage <= held + _HAIR, (signals.coverage, held)
    assert signals.rarest <= rarest_held(case) + _HAIR, (signals.rarest, rarest_held(case))
    assert signals.closeness <= like + _HAIR, ("no window holds more than its chunk", signals.closeness, like)
    if len(pool(case)) <= CANDIDATES:
        assert abs(signals.coverage - held) < _HAIR, (signals.coverage, held)
        assert abs(signals.rarest - rarest_held(case)) < _HAIR, (signals.rarest, rarest_held(case))
        assert signals.closeness >= held_by_line(case) - _HAIR, "a window holds what one of its lines does"


def idf_of(case: Case) -> dict[str, float]:
    """The weight of each stem of the question, by how many chunks the index finds its word in, by path or text."""
    side, count = why_not.side_of(case.evidence, case.settings), case.evidence.indexed
    found = {}
    for word in words_of(case):
        holding = side.frequency.get(word, 0)
        found |= dict.fromkeys(stems_of(word), math.log(1 + (count - holding + 0.5) / (holding + 0.5)))
    return found


def rarity_of(case: Case) -> dict[str, float]:
    """The weight of each stem by the place of its word in the table's vocabulary, where that can be read."""
    idf = idf_of(case)
    try:
        found, table = {}, second_stage.passage_table()
    except ProviderError:
        return idf
    for word in words_of(case):
        places = list(table.line_ids(word))
        known = len(places) == 1 and places[0] > 995
        rare = min(12.5, 2.3 + math.log(places[0] - 995)) ** 2 / 12.5 if known else 12.5
        found |= {stem: idf[stem] if tokens.is_cjk(word) else rare for stem in stems_of(word)}
    return found


def stems(text: str) -> list[str]:
    """The stems of a text, with its pairs of Chinese characters; of an irregular form those of its word."""
    return [IRREGULAR.get(one, one) for one in tokens.tokens(tokens.segmented(text), stemmed=True)]


def words_of(case: Case) -> list[str]:
    """The words that tell passages apart: those searched for, and those left out because most chunks hold them."""
    plan = case.trace.plan
    return [*plan.words, *(word for word in plan.dropped if word in plan.common or tokens.is_cjk(word))]


def shares_held(case: Case) -> tuple[float, float]:
    """The greatest share of the question that a chunk holds: in its words, and with like words counted."""
    idf = idf_of(case)
    mass = sum(idf.values()) or 1.0
    rarity = rarity_of(case)
    rare = sum(rarity.values()) or 1.0
    word_of = {stem: word for word in words_of(case) for stem in stems_of(word)}
    best, best_like = 0.0, 0.0
    for row in pool(case):
        text = case.world.texts[case.evidence.refs[row].rowid]
        own = set(stems(text))
        best = max(best, sum(value for stem, value in idf.items() if stem in own) / mass)
        likest = sum(value * (1.0 if stem in own else likeness(word_of[stem], text)) for stem, value in rarity.items())
        best_like = max(best_like, likest / rare)
    return best, best_like


def rarest_held(case: Case) -> float:
    """How rare the rarest word of the question is that a chunk holds."""
    own = {stem for row in pool(case) for stem in stems(case.world.texts[case.evidence.refs[row].rowid])}
    return max((value for stem, value in rarity_of(case).items() if stem in own), default=0.0) / 12.5


def held_by_line(case: Case) -> float:
    rarity = rarity_of(case)
    lines = [line for row in pool(case) for line in case.world.texts[case.evidence.refs[row].rowid].split("\n")]
    held = [sum(value for stem, value in rarity.items() if stem in set(stems(line))) for line in lines]
    return max(held, default=0.0) / (sum(rarity.values()) or 1.0)


def likeness(word: str, text: str) -> float:
    """The greatest cosine of a token of `text` with a word."""
    table = static_table()
    if tokens.is_cjk(word):
        return 0.0
    ids = [one for line in text.split("\n") for one in table.line_ids(line)]
    rows = table.rows(np.array(ids, dtype=np.int64)).astype(float)
    own = table.rows(np.array(table.line_ids(word), dtype=np.int64)).astype(float).sum(axis=0)
    if not len(rows) or not own.any():
        return 0.0
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(own)
    return max(0.0, float(np.max(rows @ own / np.where(lengths > 0, lengths, 1.0))))


def pool(case: Case) -> list[int]:
    """The rows of all candidates."""
    known = {one.chunk.rowid for one in (*case.trace.recalled, *case.trace.lost)}
    return [row for row in range(case.evidence.chunks) if case.evidence.refs[row].rowid in known]


@checks(noise.LevelRates)
def _rates(claim: noise.LevelRates, case: Measured) -> None:
    assert case.asked is not None
    opened = case.settings.update({"query.minScore": 0.0, "query.hybrid.mmr.enabled": False}, "harness")
    here = noise.unrelated_evidence(case.asked.nonsense, opened)
    counts = []
    for part in (case.asked.nonsense, case.asked.related):
        levels = [rank(replace(one.evidence, unrelated=here), opened).level for one in part]
        counts.append((sum(one is not None and one.level == "found" for one in levels), len(part)))
    (false, unrelated), (right, related) = counts
    assert (claim.unrelated, claim.related) == (unrelated, related)
    assert abs(claim.false_recalls - false / unrelated) < 1e-9
    assert abs(claim.doubted - (1 - right / related)) < 1e-9


# --- tuning --------------------------------------------------------------------------------------------------------


@dataclass
class TuneCase(Case):
    """Saved questions measured under `settings` and under `other` ones; `metric` was tuned."""

    cases: tuple[evaluate.Case, ...] = ()
    other: Settings | None = None
    metric: str = "ndcg@10"
    name: str = ""
    known: dict[int, tuple[Settings, dict[str, evaluate.Scores]]] = field(default_factory=dict)
    """By the identity of settings, which stay: their scores."""

    def scores(self, settings: Settings) -> dict[str, evaluate.Scores]:
        """By question, by whole rankings."""
        if id(settings) not in self.known:
            engine, found = self.world.engine, {}
            for one in self.cases:
                trace = rank(engine.search.gather(one.query.text), settings)
                found[one.query.text] = evaluate.measure(one.query, [hit.chunk for hit in trace.recalled])
            self.known[id(settings)] = settings, found
        return self.known[id(settings)][1]

    def mean(self, settings: Settings, name: str, part: Any = None) -> float:
        scores = self.scores(settings)
        chosen = [scores[one.query.text][name] for one in (self.cases if part is None else part)]
        return sum(chosen) / len(chosen)


@checks(QueryChange)
def _query_change(claim: QueryChange, case: TuneCase) -> None:
    assert case.other is not None
    before, after = case.scores(case.settings)[claim.text], case.scores(case.other)[claim.text]
    for name in evaluate.NAMES:
        assert abs(claim.before[name] - before[name]) < 1e-9
        assert abs(claim.after[name] - after[name]) < 1e-9
    assert claim.broke == (after["recall"] < before["recall"])


@checks(evaluate.Measured)
def _measured(claim: evaluate.Measured, case: TuneCase) -> None:
    """The hits are those of the whole ranking; their metrics are counted line by line."""
    engine, query = case.world.engine, claim.query
    hits = [hit.chunk for hit in rank(engine.search.gather(query.text), case.settings).recalled]
    assert [hit.citation for hit in claim.hits] == [hit.citation for hit in hits]
    right = {(one.path, one.line) for one in query.relevant}
    held = [{one for one in right if one[0] == hit.path and hit.start_line <= one[1] <= hit.end_line} for hit in hits]
    for depth in evaluate.DEPTHS:
        found = set().union(*held[:depth])
        assert abs(claim.scores[f"recall@{depth}"] - len(found) / len(right)) < 1e-9
    first = next((place for place, own in enumerate(held[:10], 1) if own), 0)
    assert abs(claim.scores["mrr@10"] - (1 / first if first else 0.0)) < 1e-9
    assert claim.scores["noise"] == sum(not own for own in held)


@checks(evaluate.ScoreComparison)
def _comparison(claim: evaluate.ScoreComparison, case: TuneCase) -> None:
    """Means of whole rankings, and intervals that resampling with another generator finds too."""
    assert case.other is not None
    texts = [one.query.text for one in case.cases]
    before, after = case.scores(case.settings), case.scores(case.other)
    assert sorted(one.text for one in claim.changes) == sorted(texts)
    assert claim.missing == 0
    draw = random.Random(7)
    for name, gain in claim.gains.items():
        differences = [after[text][name] - before[text][name] for text in texts]
        count = len(differences)
        assert abs(gain.mean - sum(differences) / count) < 1e-9
        assert abs(claim.after[name] - claim.before[name] - gain.mean) < 1e-9
        means = sorted(sum(draw.choices(differences, k=count)) / count for _ in range(2000))
        spread = means[1949] - means[49]
        assert abs(gain.low - means[49]) <= 0.15 * spread + 1e-9
        assert abs(gain.high - means[1949]) <= 0.15 * spread + 1e-9


@checks(Rival)
def _rival(claim: Rival, case: TuneCase) -> None:
    engine, own = case.world.engine, case.settings
    plain = claim.name == "plain bm25"
    settings = evaluate.plain_words(engine.plan.with_profile("recommended")) if plain else None
    settings = settings or (own if claim.name == own.word("profile") else engine.plan.with_profile(claim.name))
    for name, mean in claim.means.items():
        assert abs(mean.mean - case.mean(settings, name)) < 1e-9
        assert mean.low - 1e-9 <= mean.mean <= mean.high + 1e-9
        assert abs(claim.gains[name].mean - (case.mean(own, name) - case.mean(settings, name))) < 1e-9


@checks(Shortfall)
def _shortfall(claim: Shortfall, case: TuneCase) -> None:
    assert abs(case.mean(case.settings, claim.metric) - claim.value) < 1e-9
    assert claim.value > claim.bound if claim.metric in evaluate.COSTS else claim.value < claim.bound


@checks(Better)
def _better(claim: Better, case: TuneCase) -> None:
    _, held_out = knob_search.split(case.cases, 1)
    assert claim.settings.values == case.settings.update(dict(claim.changes), knob_search.ORIGIN).values or all(
        claim.settings.values[key].value == value for key, value in claim.changes.items()
    )
    for name in (claim.metric, "recall"):
        assert abs(claim.before[name] - case.mean(case.settings, name, held_out)) < 1e-9
        assert abs(claim.after[name] - case.mean(claim.settings, name, held_out)) < 1e-9
    assert claim.metric == case.metric
    assert 0 < claim.held_out.low <= claim.held_out.mean <= claim.held_out.high
    rise = claim.after[claim.metric] - claim.before[claim.metric]
    assert claim.held_out.mean <= rise + 1e-9, "chance is taken off"


@checks(NoEvidence)
def _no_evidence(claim: NoEvidence, case: TuneCase) -> None:
    have = sum(bool(one.query.relevant) for one in case.cases)
    assert claim.have == have
    assert claim.needed == 20
    if claim.reason == "few labels":
        assert have < claim.needed
        assert claim.held_out is None
        assert not claim.changes
    elif claim.reason == "within chance":
        assert claim.held_out is not None
        assert claim.held_out.low <= 0
        wide = (claim.held_out.high - claim.held_out.low) / 2
        assert abs(claim.missed - wide * 2.8 / 1.96) < 1e-9
    else:
        assert not claim.changes


# --- the memories that produce them --------------------------------------------------------------------------------


@dataclass
class Notebook:
    """Labelled questions about notes that are told apart by one word each."""

    folder: Path
    queries: tuple[Query, ...] = field(default=())


def labelled(folder: Path, count: int) -> Notebook:
    """`count` notes, of which each second answers a question of its own."""
    (folder / "memory").mkdir(parents=True)
    found = []
    for number in range(count):
        path = f"memory/2026-{1 + number % 9:02}-{1 + number % 27:02}-{number}.md"
        (folder / path).write_text(f"the router{number} of anna stands on shelf {number}, and the vlan is {number}\n")
        if number % 2:
            found.append(Query(f"which shelf has router{number}", (Label(path, 1),)))
    return Notebook(folder, tuple(found))


def made(place: Path) -> Iterator[tuple[object, Case]]:
    """Levels and minScore over odd and over plain notes; tuning with few labels, with a fault to find, with none."""
    from tests.harness.claims import adversarial

    questions = adversarial(place / "odd")
    world = open_world("odd", place / "odd", place / "odd.sqlite", "recommended", "builtin", questions)
    try:
        yield from levels(world)
    finally:
        world.engine.close()
    book = labelled(place / "plain", 44)
    for profile, provider in (("openclaw-2026.3", "none"), ("openclaw-2026.3", "builtin"), ("recommended", "builtin")):
        index = place / f"{profile}.{provider}.sqlite"
        world = open_world("plain", book.folder, index, profile, provider, [])
        try:
            yield from floors(world)
            if provider != "none":
                yield from tuned(world, book)
        finally:
            world.engine.close()


def levels(world: World) -> Iterator[tuple[AnswerLevel, Case]]:
    for question in world.questions:
        evidence = world.engine.search.gather(question)
        trace = rank(evidence, world.engine.plan.settings)
        if trace.level is not None:
            yield trace.level, Case(world, evidence, world.engine.plan.settings, trace)


def floors(world: World) -> Iterator[tuple[object, Measured]]:
    asked = noise.ask_all(world.engine.search.gather)
    settings = world.engine.plan.settings
    rates, evidence = noise.level_rates(asked, settings), asked.nonsense[0].evidence
    if rates is not None:
        yield rates, Measured(world, evidence, settings, rank(evidence, settings), asked=asked)


def tuned(world: World, book: Notebook) -> Iterator[tuple[object, TuneCase]]:
    engine, good = world.engine, world.engine.plan.settings
    cases = tuple(evaluate.Case.of(query, engine.search.gather(query.text)) for query in book.queries)
    bad = good.update({"query.maxResults": 3, "query.minScore": 0.93}, "harness")
    evidence = cases[0].evidence

    def of(settings: Settings, chosen: tuple[evaluate.Case, ...] = cases, **more: Any) -> TuneCase:
        return TuneCase(world, evidence, settings, rank(evidence, settings), cases=chosen, **more)

    yield knob_search.tune(cases[:6], good), of(good, cases[:6])
    for settings in (bad, good):
        yield knob_search.tune(cases, settings), of(settings)
    before, after = (evaluate.score(cases, one) for one in (good, bad))
    compared = evaluate.compare(evaluate.by_question(before), evaluate.by_question(after))
    yield compared, of(good, other=bad)
    for row in after.rows[:4]:
        yield row, of(bad)
    for change in compared.changes[:3]:
        yield change, of(good, other=bad)
    for rival in evaluate.rivals(cases[:4], bad, engine.plan.with_profile):
        yield rival, of(bad, cases[:4])
    for short in evaluate.shortfalls(after.mean, {"recall": 1.0, "noise": 0.0, "ndcg@10": 1.0}):
        yield short, of(bad)
