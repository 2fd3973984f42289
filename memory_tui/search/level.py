"""The level of an answer tells whether the notes hold what was asked, whatever the best hit scores.

Something is always nearest, so a score that is relative to the best hit says nothing of a question that no note
answers. What does: the share of the question that one window holds, in its words or in like ones, each word weighed by
how rare it is. A word that the built-in table knows whole weighs by its rarity in the language, and is like another by
their cosine; any other word weighs by its rarity in the notes, and is like one that has the same letters. Of Chinese,
Japanese and Korean pairs of characters are words. Where the table knows the words, a window that is far in meaning
holds less. Of Vietnamese pairs of syllables are words. No score and no knob of the ranking changes the level.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.notices import quoted
from memory_tui.settings import Settings

Level = Literal["found", "nearby only", "nothing holds these words"]

# The share from which an answer is found was chosen on German and Russian XQuAD and on MemoryBank: without the words
# that ask, .36 to .39 catch .86 and more in five languages (XQuAD en, de, ru, zh; JSQuAD), and from .37 on MemoryBank
# has more than .10 doubted. That under which nothing holds it was chosen on chats, FriendsQA, the FAQs and MemoryBank.
MEANING = 0.5
"""How much of what the table knows a window loses that is as far as can be in meaning (chats, FriendsQA, FAQs)."""
PAIRS = 0.5
"""What pairs of characters need of what words need: an answer holds few of those of a question (Chinese XQuAD)."""
SYLLABIC = 0.9
"""How much of such a pair that of two syllables is: more of them are of common words (Vietnamese XQuAD)."""
KANA = 0.7
"""How much of a pair of characters one in a Japanese question is: more of them hold sentences together (JSQuAD by
whole articles, JaQuAD)."""
LACKING = 0.5
"""The weight of words of which a window has nothing, and of half a word more, from which on it answers in part: so are
8 to 26 % of right answers, and 42 % and more of the wrong ones that are found (XQuAD, MemoryBank, FriendsQA, FAQs)."""
LIKE = 0.6
"""From this on a word of a window is as good as one that was asked."""
DATED = 0.6
"""What is needed where there are notes of the days that are named, whose words stand in no note (MemoryBank)."""
FUNCTION_PAIRS = 1.0, 0.7, 0.4
"""What a pair weighs with none, one or two characters or syllables that hold sentences together (Chinese XQuAD)."""
_FUNCTION_CHARACTERS = frozenset(
    "我你您他她它们的了着过得地吗呢吧啊是有在被把给让用到去来做说想要能会可以和与或但因为所如果也都就还又再才只什么哪个些怎样多少几谁何时候"
    "年月日天这那一不上下里中曾经对从向于之其此为以及并名字叫次"
)
_HIRAGANA = range(0x3040, 0x30A0)
_JAPANESE = re.compile("[\u3040-\u30ff]")


def pair_weight(pair: str) -> float:
    """Return what a pair of characters weighs beside one that holds no sentence together."""
    return FUNCTION_PAIRS[sum(c in _FUNCTION_CHARACTERS or ord(c) in _HIRAGANA for c in pair)]


def pairs_of(question: str, share: float) -> float:
    """Return what the `share` of pairs of characters in the weight of a question counts as."""
    return share * KANA if _JAPANESE.search(question) else share


class AnswerSignals(Struct, frozen=True):
    """What the best window of the first candidates has of a question.

    It holds the share `held` of the question's weight, of which `known` is of words that the table knows whole, `pairs`
    of pairs of characters. `cosine` is that of the nearest window, None where no meaning was compared. Where it holds
    the words `has` alone, and nothing like the others, which weigh much, those are what it `lacks`.
    """

    held: float
    known: float
    pairs: float
    cosine: float | None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Return what counts: the share that is held, less what the nearest window lacks in meaning; never below 0."""
        return max(0.0, self.held - (0.0 if self.cosine is None else MEANING * self.known * (1.0 - self.cosine)))


_PHRASES = {
    "found": "Found",
    "nearby only": "Nearby only, which may not answer it",
    "nothing holds these words": "Probably nothing answers it",
}


class AnswerLevel(Struct, frozen=True):
    """How an answer is to be taken: its `level`, by `signals` against two bounds.

    It is found from `doubt_below` on, and nothing under `nothing_below`; in all other cases there are notes nearby.
    """

    level: Level
    signals: AnswerSignals
    doubt_below: float
    nothing_below: float

    @property
    def keeps_back(self) -> bool:
        """Return whether an agent gets none of the nearest hits, unless it asks for them."""
        return self.level == "nothing holds these words"

    @property
    def in_part(self) -> str:
        """Return which words of a question that is found its best window has, and which it lacks; empty for none."""
        has, lacks = quoted(self.signals.has, 3), quoted(self.signals.lacks, 3)
        return "" if self.level != "found" or not lacks else f"{has}, not {lacks}" if has else f"words like {lacks}"

    @property
    def sentence(self) -> str:
        """Return the level in words, with what is held."""
        by = "in these words or in like ones" if self.signals.cosine is None else "by words and meaning"
        phrase = f"Found in part ({self.in_part})" if self.in_part else _PHRASES[self.level]
        return f"{phrase}: the best window holds {self.signals.share:.0%} of what was asked, {by}."

    @property
    def explanation(self) -> str:
        """Return the arithmetic of the level, as figures that add up."""
        result = self.signals
        lacks = (
            "" if result.cosine is None else f" - {MEANING:g} x {result.known:.3f} x (1 - cosine {result.cosine:.3f})"
        )
        return (
            f"share {result.share:.3f} = held {result.held:.3f}{lacks}; found from {self.doubt_below:.3f}, "
            f"nothing below {self.nothing_below:.3f}"
        )


def level_of(
    signals: AnswerSignals, settings: Settings, *, of_its_days: bool = False, is_title: bool = False
) -> AnswerLevel:
    """Return the level of an answer by its `signals`; `of_its_days` tells that a note is of the days it names.

    A note whose title or name the question is holds all of it, whatever its text says.
    """
    signals = replace(signals, held=1.0, lacks=()) if is_title else signals
    needs = (1.0 - (1.0 - PAIRS) * signals.pairs) * (DATED if of_its_days else 1.0)
    doubt, nothing = (needs * settings.number(f"answer.{name}Below") for name in ("doubt", "nothing"))
    # A question by a day shares no word with the line that answers it.
    nothing = 0.0 if of_its_days else min(nothing, doubt)
    level: Level = "found" if signals.share >= doubt else "nearby only"
    if signals.share < nothing:
        level = "nothing holds these words"
    return AnswerLevel(level, signals, doubt, nothing)
