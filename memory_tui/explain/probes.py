"""Questions that say where nonsense scores, and where what is really in the notes does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memory_tui.explain.proposed import subset
from memory_tui.search.evidence import Evidence
from memory_tui.text import words

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
"""General knowledge that nobody's notes are about."""
_SHARE_OF_CJK = 0.3
_KNOWN_ITEMS = 24
_WORDS = (4, 12)
"""Fewest and most words of a question that is cut out of a note."""

Ask = Callable[[str], Evidence]


@dataclass(frozen=True, slots=True)
class Probe:
    """A question with its evidence, and the chunks (rowids) that answer it; none answer nonsense."""

    evidence: Evidence
    right: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Probes:
    """What was asked: `nonsense`, and `related` questions, whose right chunks labels or the notes themselves tell."""

    nonsense: tuple[Probe, ...]
    related: tuple[Probe, ...]
    labelled: bool


def ask_all(ask: Ask, labelled: Sequence[Probe] = (), progress: Callable[[int, int], None] | None = None) -> Probes:
    """Ask the unrelated questions, and without `labelled` ones lines out of the notes; on a worker thread.

    About fifty searches; with a remote provider each of them embeds a question.
    """
    first = ask(UNRELATED[0])
    chinese = _mostly_cjk(first.texts.values())
    questions = UNRELATED_CHINESE if chinese else UNRELATED
    found, sample = [], dict(first.texts)
    total = len(questions) + (0 if labelled else _KNOWN_ITEMS)
    for question in questions:
        evidence = ask(question)
        sample.update(evidence.texts)
        found.append(Probe(subset(evidence)[0]))
        if progress is not None:
            progress(len(found), total)
    related = list(labelled)
    if not labelled:
        for rowid, question in known_items(sample):
            related.append(Probe(subset(ask(question))[0], frozenset([rowid])))
            if progress is not None:
                progress(len(found) + len(related), total)
    return Probes(tuple(found), tuple(related), bool(labelled))


def known_items(texts: dict[int, str]) -> list[tuple[int, str]]:
    """Chunks spread over `texts` (rowid to text), each with a line of its own as a question."""
    usable = [(rowid, question) for rowid in sorted(texts) if (question := _line_of(texts[rowid]))]
    step = max(1, len(usable) // _KNOWN_ITEMS)
    return usable[::step][:_KNOWN_ITEMS]


def _line_of(text: str) -> str:
    """The first words of the line that has most of them; empty where no line has enough."""
    lines = [[found.group() for found in words.WORD.finditer(line)] for line in text.split("\n")]
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
    return max(1, len(word) // 2) if words.is_cjk(word) else 1


def _mostly_cjk(texts: Iterable[str]) -> bool:
    found = [any(words.is_cjk(character) for character in text[:200]) for text in texts]
    return bool(found) and sum(found) / len(found) > _SHARE_OF_CJK
