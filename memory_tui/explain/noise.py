"""The noise floor: the scores of unrelated queries beside those of the notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import profiles, tokens
from memory_tui.core.settings import Settings
from memory_tui.explain import wording
from memory_tui.explain.reranking import Reranking
from memory_tui.explain.verdicts import AboveRight, BelowNoise, Doubt, Inseparable, KeywordHitsShut, RelativeScores
from memory_tui.explain.why_not import subset
from memory_tui.search.answer_level import ByKind, Kind, UnrelatedEvidence, is_cjk
from memory_tui.search.evidence import Evidence
from memory_tui.search.formulas import Floats
from memory_tui.search.rank import rank
from memory_tui.search.score import Rules
from memory_tui.search.trace import Candidate

UNRELATED = (
    "How deep is the Mariana Trench?",
    "When did the Byzantine Empire fall?",
    "Which gases make up Jupiter?",
    "Who painted the ceiling of the Sistine Chapel?",
    "How do emperor penguins survive the winter?",
    "What causes a solar eclipse?",
    "Which treaty ended the Thirty Years' War?",
    "How are cuneiform tablets dated?",
    "What is the melting point of tungsten?",
    "Who composed the opera Boris Godunov?",
    "How do volcanic islands form?",
    "Why did the dodo become extinct?",
    "How long is the Amazon river?",
    "What did Viking shields look like?",
    "Which dynasty built the Great Wall?",
    "How do honeybees tell each other where nectar is?",
    "What is the half-life of plutonium?",
    "Who discovered the moons of Saturn?",
    "How were Roman aqueducts levelled?",
    "Which whales sing the longest songs?",
    "What is the plot of the Epic of Gilgamesh?",
    "How do glaciers carve fjords?",
    "When was the printing press invented?",
    "What language did the Etruscans speak?",
)
"""General knowledge that nobody's notes are about."""
UNRELATED_CHINESE = (
    "马里亚纳海沟有多深？",
    "拜占庭帝国是什么时候灭亡的？",
    "木星由哪些气体组成？",
    "帝企鹅怎样度过冬天？",
    "日食是怎么形成的？",
    "三十年战争以哪个条约结束？",
    "钨的熔点是多少？",
    "亚马孙河有多长？",
    "渡渡鸟为什么灭绝？",
    "蜜蜂怎样告诉同伴花蜜在哪里？",
    "冰川怎样刻出峡湾？",
    "印刷术是什么时候发明的？",
    "土星的卫星是谁发现的？",
    "罗马水道桥怎样保持坡度？",
    "钚的半衰期是多少？",
    "哪种鲸鱼的歌声最长？",
)
"""Like UNRELATED, for notes in Chinese."""
_SHARE_OF_CJK = 0.3
_KNOWN_ITEMS = 24
_WORDS = (4, 12)
"""Fewest and most words of a question that is cut out of a note."""

Ask = Callable[[str], Evidence]


class NoiseQuery(Struct, frozen=True):
    """A question with its evidence, and the chunks (rowids) that answer it; none answer nonsense."""

    evidence: Evidence
    right: frozenset[int] = frozenset()


class Probes(Struct, frozen=True):
    """What was asked: `nonsense`, and `related` questions, whose right chunks labels or the notes themselves tell."""

    nonsense: tuple[NoiseQuery, ...]
    related: tuple[NoiseQuery, ...]
    labelled: bool


def ask_all(
    ask: Ask, labelled: Sequence[NoiseQuery] = (), progress: Callable[[int, int], None] | None = None
) -> Probes:
    """Ask the unrelated questions, and without `labelled` ones lines out of the notes; on a worker thread.

    About fifty searches; with a remote provider each of them embeds a question.
    """
    sample: dict[int, str] = {}
    found = []

    def keeping(question: str) -> Evidence:
        evidence = ask(question)
        sample.update(evidence.texts)
        return evidence

    questions = _unrelated(keeping)
    for question in questions:
        found.append(NoiseQuery(subset(keeping(question))[0]))
        if progress is not None:
            progress(len(found), len(questions) + (0 if labelled else _KNOWN_ITEMS))
    total = len(found) + (0 if labelled else _KNOWN_ITEMS)
    related = list(labelled)
    if not labelled:
        for rowid, question in known_items(sample):
            related.append(NoiseQuery(subset(ask(question))[0], frozenset([rowid])))
            if progress is not None:
                progress(len(found) + len(related), total)
    return Probes(tuple(found), tuple(related), bool(labelled))


def ask_unrelated(ask: Ask) -> Iterator[NoiseQuery]:
    """Ask the unrelated questions, in Chinese where the notes mostly are; one more search than there are of them."""
    for question in _unrelated(ask):
        yield NoiseQuery(subset(ask(question))[0])


def _unrelated(ask: Ask) -> tuple[str, ...]:
    """The unrelated questions in the language of the notes, which one search tells."""
    return UNRELATED_CHINESE if _mostly_cjk(ask(UNRELATED[0]).texts.values()) else UNRELATED


def known_items(texts: dict[int, str]) -> list[tuple[int, str]]:
    """Chunks spread over `texts` (rowid to text), each with a line of its own as a question."""
    usable = [(rowid, question) for rowid in sorted(texts) if (question := _line_of(texts[rowid]))]
    step = max(1, len(usable) // _KNOWN_ITEMS)
    return usable[::step][:_KNOWN_ITEMS]


def _line_of(text: str) -> str:
    """The first words of the line that has most of them; empty where no line has enough."""
    lines = [[found.group() for found in tokens.WORD.finditer(line)] for line in text.split("\n")]
    longest = max(lines, key=lambda line: sum(map(_weight, line)))
    if sum(map(_weight, longest)) < _WORDS[0]:
        return ""
    taken: list[str] = []
    for word in longest:
        if sum(map(_weight, taken)) >= _WORDS[1]:
            break
        taken.append(word[: 2 * _WORDS[1]])
    return " ".join(taken)


def _weight(word: str) -> int:
    """How many words a run of letters counts for: a run of Chinese is a clause."""
    return max(1, len(word) // 2) if tokens.is_cjk(word) else 1


def _mostly_cjk(texts: Iterable[str]) -> bool:
    found = [any(tokens.is_cjk(character) for character in text[:200]) for text in texts]
    return bool(found) and sum(found) / len(found) > _SHARE_OF_CJK


STEP = 0.01
"""Steps of minScore that are looked at."""
_APART = 0.5
"""How much larger a share of what is right than of nonsense has to pass, for minScore to be worth its losses."""
_LET_THROUGH = 0.05
_ORIGIN = "noise floor"


class Trade(Struct, frozen=True):
    """At a minScore: the share of nonsense questions with a hit, and of related ones whose right chunk passes.

    What passes is what the profile lets pass: a relaxed floor for keyword hits counts too.
    """

    min_score: float
    nonsense: float
    related: float

    @property
    def apart(self) -> float:
        """How far the two are apart: 1 keeps out all nonsense and loses nothing (Youden's J)."""
        return self.related - self.nonsense


class NoSuggestion(Struct, frozen=True):
    """No minScore is worth its losses: the `best` one is not far enough apart, or scores are `relative`."""

    relative: bool
    best: Trade


class LevelRates(Struct, frozen=True):
    """How often the level of an answer misleads.

    `false_recalls` is the share of `unrelated` questions whose answer counts as found, `doubted` that of `related` ones
    whose answer does not.
    """

    false_recalls: float
    unrelated: int
    doubted: float
    related: int


NoiseClaim = Trade | NoSuggestion | LevelRates | Doubt
"""Everything that is said of minScore and of levels."""


def sentence(said: NoiseClaim) -> str:
    """What is said of minScore, or of levels, in words."""
    if isinstance(said, Trade):
        return (
            f"minScore {_step(said.min_score)}: {said.nonsense:.0%} of unrelated questions recall something, "
            f"{said.related:.0%} of the right chunks pass"
        )
    if isinstance(said, NoSuggestion):
        relative = "scores are relative to each question's best hit"
        return f"none: {relative if said.relative else 'every minScore loses too much'}"
    if isinstance(said, LevelRates):
        return (
            f"False recalls: {said.false_recalls:.0%} of {said.unrelated} unrelated questions are answered as found; "
            f"{said.doubted:.0%} of {said.related} related ones are doubted."
        )
    return wording.doubt(said)


def _step(value: float) -> str:
    """A minScore by its hundredths, or as it was given where it lies between them."""
    return f"{value:.2f}" if float(f"{value:.2f}") == value else wording.number(value)


class NoiseFloor(Struct, frozen=True):
    """Scores of nonsense and of what is right under one set of knobs, and what minScore does about them.

    `nonsense` has the best score of each unrelated question, `related` that of each right chunk (0: not even a
    candidate), both rising; `cosines` the best cosine of each unrelated question. `suggestion` is the minScore to
    take, or that none is worth its losses. `labelled` tells whether labels say
    what is right; else lines out of the notes were asked.
    """

    nonsense: tuple[float, ...]
    related: tuple[float, ...]
    cosines: tuple[float, ...]
    labelled: bool
    now: Trade
    suggestion: Trade | NoSuggestion
    curve: tuple[Trade, ...]
    doubts: tuple[Doubt, ...]
    levels: LevelRates | None = None
    """How often the level of an answer misleads; None where answers have none."""

    @property
    def suggested(self) -> Trade | None:
        """The minScore to take; None where none is worth its losses."""
        return self.suggestion if isinstance(self.suggestion, Trade) else None

    @property
    def claims(self) -> tuple[NoiseClaim, ...]:
        """Everything that is said, in its order."""
        levels = (self.levels,) if self.levels is not None else ()
        return (self.now, self.suggestion, *levels, *self.doubts)

    def percentile(self, share: float) -> float:
        """The score below which the best hits of `share` of the nonsense questions are."""
        return float(np.quantile(self.nonsense, share)) if self.nonsense else 0.0


BUCKETS = 20


def bucket(score: float) -> int:
    """Which of BUCKETS equal parts of the scores from 0 to 1 holds `score`."""
    return min(BUCKETS - 1, max(0, int(score * BUCKETS + 1e-9)))


def measure(probes: Probes, settings: Settings) -> NoiseFloor:
    """The noise floor under `settings`; milliseconds, for any thread, so that it moves with the knobs."""
    opened = settings.update({"query.minScore": 0.0, "query.hybrid.mmr.enabled": False}, _ORIGIN)
    nonsense = np.sort([_best(probe, opened) for probe in probes.nonsense])
    related = np.sort([_best(probe, opened) for probe in probes.related])
    cosines = sorted(_cosine(probe) for probe in probes.nonsense)

    steps = [round(i * STEP, 6) for i in range(round(1 / STEP) + 1)]
    now_at = settings.number("query.minScore")
    if _selects_otherwise(settings):
        shares = [_passing(one, settings, [*steps, now_at]) for one in (probes.nonsense, probes.related)]
    else:
        shares = [[_share(rising, floor) for floor in (*steps, now_at)] for rising in (nonsense, related)]
    *curve, now = (Trade(*trade) for trade in zip((*steps, now_at), *shares, strict=True))
    relative = profiles.get(settings.word("profile")).vector_score == "share"
    best = _best_trade(curve, labelled=probes.labelled)
    worth = best if best.apart >= _APART and not relative else NoSuggestion(relative, best)
    return NoiseFloor(
        tuple(nonsense.tolist()),
        tuple(related.tolist()),
        tuple(cosines),
        probes.labelled,
        now,
        worth,
        tuple(curve),
        tuple(_doubts(probes, settings, now, best, nonsense, related)),
        level_rates(probes, opened),
    )


def unrelated_evidence(asked: Sequence[NoiseQuery], settings: Settings) -> ByKind:
    """What the unrelated questions that were `asked` reach, each also by its words alone, as where a provider fails.

    One that no chunk shares a word with reaches 0. Nothing where no second stage looks into chunks.
    """
    found: defaultdict[Kind, list[float]] = defaultdict(list)
    for probe in asked if profiles.get(settings.word("profile")).second_stage else ():
        alone = replace(probe.evidence, cosine=None, nearest=probe.evidence.nearest[:0])
        for evidence in (alone,) if probe.evidence.cosine is None else (probe.evidence, alone):
            if (level := rank(evidence, settings).level) is not None:
                found[level.signals.kind].append(level.signals.evidence)
            elif evidence.cosine is None:
                found["pairs alone" if is_cjk(evidence.query) else "words alone"].append(0.0)
    return {
        kind: UnrelatedEvidence.of(reached, asked[0].evidence.generation, asked[0].evidence.indexed)
        for kind, reached in found.items()
    }


def level_rates(probes: Probes, settings: Settings) -> LevelRates | None:
    """How often levels mislead, by what the unrelated questions reach; None where answers have none."""
    if not (here := unrelated_evidence(probes.nonsense, settings)):
        return None
    found = []
    for part in (probes.nonsense, probes.related):
        levels = [rank(replace(probe.evidence, unrelated=here), settings).level for probe in part]
        found.append(sum(level is not None and level.level == "found" for level in levels))
    unrelated, related = len(probes.nonsense), len(probes.related)
    return LevelRates(found[0] / unrelated, unrelated, 1.0 - found[1] / max(1, related) if related else 0.0, related)


def _selects_otherwise(settings: Settings) -> bool:
    """Whether hits below minScore may pass, so that scores alone do not tell who does."""
    profile = profiles.get(settings.word("profile"))
    return profile.relaxed_floor or profile.rescues


def _passing(asked: Sequence[NoiseQuery], settings: Settings, floors: Sequence[float]) -> list[float]:
    """At each of `floors` as minScore the share of questions with a hit, of their right chunks where they have any."""
    tried = [settings.update({"query.minScore": floor, "query.hybrid.mmr.enabled": False}, _ORIGIN) for floor in floors]
    count = np.zeros(len(floors))
    for probe in asked:
        own = [row for row in range(probe.evidence.chunks) if probe.evidence.refs[row].rowid in probe.right]
        passed = Reranking(probe.evidence, own).passing(tried)
        count += [bool(rows.intersection(own) if probe.right else rows) for rows in passed]
    return [float(passed) / max(1, len(asked)) for passed in count]


def _share(rising: Floats, floor: float) -> float:
    """The share of the scores that reach `floor`."""
    return (len(rising) - int(np.searchsorted(rising, floor))) / len(rising) if len(rising) else 0.0


def _best(probe: NoiseQuery, opened: Settings) -> float:
    """The best score of a right chunk, of any chunk where none is right; 0 without one."""
    trace = rank(probe.evidence, opened)
    if not probe.right:
        return trace.recalled[0].score if trace.recalled else 0.0
    hits: Iterator[Candidate] = (c for part in (trace.recalled, trace.lost) for c in part)
    return next((c.score for c in hits if c.chunk.rowid in probe.right), 0.0)


def _cosine(probe: NoiseQuery) -> float:
    evidence = probe.evidence
    return float(evidence.cosine[evidence.nearest[0]]) if evidence.cosine is not None and len(evidence.nearest) else 0.0


def _best_trade(curve: Sequence[Trade], *, labelled: bool) -> Trade:
    """The minScore that tells best apart; of many that do equally, the middle one.

    Without labels the lowest that keeps out 95 % of nonsense, for questions score less than lines out of the notes;
    where that loses too much, the one that tells best apart as well.
    """
    lowest = next((trade for trade in curve if trade.nonsense <= _LET_THROUGH), None)
    if not labelled and lowest is not None and lowest.apart >= _APART:
        return lowest
    top = max(trade.apart for trade in curve)
    best = [trade for trade in curve if trade.apart >= top - 1e-9]
    return best[len(best) // 2]


def _doubts(
    probes: Probes, settings: Settings, now: Trade, best: Trade, nonsense: Floats, related: Floats
) -> Iterator[Doubt]:
    profile = profiles.get(settings.word("profile"))
    rules = Rules.of(settings, "hybrid")
    shut = rules.text_weight < rules.min_score or (
        # r/(1+r) comes near to 1 and never reaches it.
        rules.text_weight == rules.min_score and profile.text_score == "saturated"
    )
    # Where there are no vectors, words have the whole score.
    both = settings.on("query.hybrid.enabled") and any(one.evidence.cosine is not None for one in probes.nonsense)
    one_sided = rules.text_weight and profile.missing_side == "zero" and both
    # A release that rescues hits by words alone lets them follow those over minScore.
    if shut and one_sided and not profile.rescues:
        yield KeywordHitsShut(rules.text_weight, rules.min_score, profile.relaxed_floor)
    if profile.vector_score == "share":
        yield RelativeScores(profile.name)
    elif len(nonsense) and now.nonsense > 0.5:
        yield BelowNoise(now.min_score, float(np.median(nonsense)), now.nonsense)
    if len(related) and now.related < 0.5:
        yield AboveRight(now.min_score, float(np.median(related)), now.related)
    if best.apart < _APART and profile.vector_score != "share":
        yield Inseparable(best.nonsense, best.related)
