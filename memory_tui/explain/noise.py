"""Noise: how often unrelated questions are answered as found, and related ones are doubted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.explain.reranking import subset
from memory_tui.search.evidence import Evidence
from memory_tui.search.level import ByKind, Kind, UnrelatedEvidence, is_cjk
from memory_tui.search.rank import rank
from memory_tui.settings import Settings

UNRELATED, UNRELATED_CHINESE = (
    tuple(part.splitlines()) for part in Path(__file__).with_name("unrelated.txt").read_text("utf-8").split("\n\n")
)
"""General knowledge that nobody's notes are about; and the like for notes in Chinese."""
_SHARE_OF_CJK = 0.3


class LevelRates(Struct, frozen=True):
    """How often the level of an answer misleads.

    `false_recalls` is the share of `unrelated` questions whose answer counts as found, `doubted` that of `related` ones
    whose answer does not.
    """

    false_recalls: float
    unrelated: int
    doubted: float
    related: int


def ask_unrelated(ask: Callable[[str], Evidence]) -> Iterator[Evidence]:
    """Ask the unrelated questions, in Chinese where the notes mostly are; one more search than there are of them."""
    texts = [text[:200] for text in ask(UNRELATED[0]).texts.values()]
    mostly_cjk = sum(map(is_cjk, texts)) > _SHARE_OF_CJK * len(texts)
    for question in UNRELATED_CHINESE if mostly_cjk else UNRELATED:
        yield subset(ask(question))[0]


def unrelated_evidence(evidence: Sequence[Evidence], settings: Settings) -> ByKind:
    """Return what the unrelated questions of `evidence` reach, each also by its words alone, as without a provider.

    One that no chunk shares a word with reaches 0. Nothing where no second stage looks into chunks.
    """
    by_kind: defaultdict[Kind, list[float]] = defaultdict(list)
    for whole in evidence if profiles.get(settings.word("profile")).second_stage else ():
        alone = replace(whole, cosine=None, nearest=whole.nearest[:0])
        for each in (alone,) if whole.cosine is None else (whole, alone):
            if (level := rank(each, settings).level) is not None:
                by_kind[level.signals.kind].append(level.signals.evidence)
            elif each.cosine is None:
                by_kind["pairs alone" if is_cjk(each.query) else "words alone"].append(0.0)
    return {
        kind: UnrelatedEvidence.of(reached, evidence[0].generation, evidence[0].indexed)
        for kind, reached in by_kind.items()
    }


def level_rates(unrelated: Sequence[Evidence], related: Sequence[Evidence], settings: Settings) -> LevelRates | None:
    """Return how often levels mislead, by what the unrelated questions reach; None where answers have none."""
    if not (here := unrelated_evidence(unrelated, settings)):
        return None
    counts = []
    for part in (unrelated, related):
        levels = [rank(replace(evidence, unrelated=here), settings).level for evidence in part]
        counts.append(sum(level is not None and level.level == "found" for level in levels))
    doubted = 1.0 - counts[1] / len(related) if related else 0.0
    return LevelRates(counts[0] / len(unrelated), len(unrelated), doubted, len(related))


def sentence(rates: LevelRates) -> str:
    """Say how often levels mislead."""
    return (
        f"False recalls: {rates.false_recalls:.0%} of {rates.unrelated} unrelated questions are answered as found; "
        f"{rates.doubted:.0%} of {rates.related} related ones are doubted."
    )
