"""Noise: how often unrelated questions are answered as found, and related ones are doubted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import profiles, tokens
from memory_tui.core.settings import Settings
from memory_tui.explain.why_not import subset
from memory_tui.search.answer_level import ByKind, Kind, UnrelatedEvidence, is_cjk
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank

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


class LevelRates(Struct, frozen=True):
    """How often the level of an answer misleads.

    `false_recalls` is the share of `unrelated` questions whose answer counts as found, `doubted` that of `related` ones
    whose answer does not.
    """

    false_recalls: float
    unrelated: int
    doubted: float
    related: int


def sentence(rates: LevelRates) -> str:
    """Say how often levels mislead."""
    return (
        f"False recalls: {rates.false_recalls:.0%} of {rates.unrelated} unrelated questions are answered as found; "
        f"{rates.doubted:.0%} of {rates.related} related ones are doubted."
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
