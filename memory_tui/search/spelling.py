"""Spelling: a word that no note holds is searched as the word that was meant.

A word of 5 to 64 letters, or of 4 that lacks one, is corrected to the nearest word of the index, of equally near ones
the most frequent: an edit away (a letter too much, too few, another one but for the first, two in the wrong order),
from eight letters on two where the first letter is the same. A word that the token table knows as a whole is no error,
nor is one on a list of stop words, nor any of a question in another language than the notes: "wann" is no "want".
Compounds keep their hyphen, their space or neither in one note and lose it in the next, so that "pihole", "Pi-hole" and
"Pi hole" find each other. German notes are left alone: their compounds and endings are an edit apart and mean other
things (560 words of 1,190 questions would have been changed).

A name in another script than the one that is asked in is found by how it is spelled, letter by letter: "Moskva" and
"Москва". That needs no dictionary, and knows none: "Moscow" is left as it is. Of Chinese, Japanese and Korean a name of
two characters finds its Latin form ("北京", "Beijing"), not the reverse, as the index has no words of these; a Japanese
one is read as Chinese.

Optimal string alignment, a restricted form of Damerau (1964).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from memory_tui import tokens

FEWEST_LETTERS, FEWEST_MISSPELLED = 4, 5
MOST_LETTERS = 64
"""Letters of a word that may be misspelled, or be two that were written as one: each place to split it is tried."""
TWO_EDITS_FROM = 8
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]{2,}")
_LINKED = re.compile(rf"(?<!\w)([^\W_]{{2,{MOST_LETTERS}}})(-| )(?=([^\W_]{{2,{MOST_LETTERS}}})(?!\w))")
_GERMAN, _ENGLISH = ("der", "und", "die", "nicht"), ("the", "and", "of", "not")


class Correction(Struct, frozen=True):
    """What was `asked`, and the words that are searched instead of it, or as well as it where notes hold both."""

    asked: str
    searched: tuple[str, ...]
    also: bool = False


class Vocabulary(Struct, frozen=True, dict=True):
    """The words of an index in lower case, and how many chunks hold each."""

    chunks_of: Mapping[str, int]

    @cached_property
    def _by_letter(self) -> Mapping[str, Sequence[str]]:
        """Return the words of letters alone, which may be what was meant, by their first letter."""
        words = defaultdict[str, list[str]](list)
        for word in self.chunks_of:
            if len(word) >= FEWEST_LETTERS - 1 and _WORD.fullmatch(word) and not tokens.is_cjk(word):
                words[word[0]].append(word)
        return words

    @cached_property
    def is_german(self) -> bool:
        """Return whether more chunks hold German function words than English ones."""
        german, english = (sum(self.chunks_of.get(word, 0) for word in words) for words in (_GERMAN, _ENGLISH))
        return german > english

    @cached_property
    def language(self) -> str:
        """Return the language whose function words most chunks hold."""
        return tokens.language_of(self.chunks_of)

    @cached_property
    def _by_sound(self) -> Mapping[str, str]:
        """The words in other scripts than the Latin one by their spelling in it; of equal ones the most frequent."""
        other = (word for word in self.chunks_of if not word.isascii() and _OTHER_SCRIPT.fullmatch(word))
        foreign = [word for word in other if not tokens.is_cjk(word)]
        return {_in_latin(word): word for word in sorted(foreign, key=self.chunks_of.__getitem__)} if foreign else {}

    def in_another_script(self, word: str) -> str:
        """Return the word that is spelled as `word` is, in another script; empty where none is."""
        if _OTHER_SCRIPT.fullmatch(word):
            spelled = _in_latin(word)
            return spelled if len(spelled) >= FEWEST_LETTERS and spelled in self.chunks_of else ""
        return self._by_sound.get(word.lower(), "") if len(word) >= FEWEST_LETTERS else ""

    def nearest(self, word: str) -> str:
        """Return the word that was meant; empty where none is near enough."""
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        most = 1 if len(word) < TWO_EDITS_FROM else 2
        words = self._by_letter
        near = process.extract(word, words.get(word[0], ()), scorer=OSA.distance, score_cutoff=most, limit=None)
        edits_of = {other: int(edits) for other, edits, _ in near}
        # Two edits with another first letter are another word, and that alone is in a short one: "scolding" is no
        # "holding", "floss" no "gloss".
        rests = (word, word[1:]) if most > 1 else (word,)
        turned = word[1:], word[1::-1] + word[2:], *(letter + rest for letter in words for rest in rests)
        there = (other for other in turned if other[0] != word[0] and other in self.chunks_of)
        edits_of |= {other: 1 for other in there if other in words.get(other[0], ())}
        # A short word may lack a letter; with another one in its place it is too often another word.
        shortest = len(word) - most if len(word) >= FEWEST_MISSPELLED else len(word) + 1
        places = ((edits, -self.chunks_of[other], other) for other, edits in edits_of.items() if len(other) >= shortest)
        return min(places, default=(0, 0, ""))[2]


def _in_latin(word: str) -> str:
    # Its tables are read when the first such word is met.
    from anyascii import anyascii

    return anyascii(word).lower()


def corrections(
    query: str,
    searched: Sequence[str],
    frequency: Callable[[str], int],
    vocabulary: Callable[[], Vocabulary],
    is_word: Callable[[str], bool],
) -> tuple[Correction, ...]:
    """Return what `searched` words were meant to be; `frequency` tells in how many chunks a word, or two, stand.

    `vocabulary` is only read where a word is not held; `is_word` tells words that are no error.
    """
    result = list(_joined(query, frozenset(searched), frequency))
    if result and vocabulary().is_german:
        return ()
    for word in searched:
        if len(word) > MOST_LETTERS or not _WORD.fullmatch(word):
            continue
        if (word.isascii() and len(word) < FEWEST_LETTERS) or frequency(word):
            continue
        words = vocabulary()
        if same := words.in_another_script(word):
            result.append(Correction(word, (same,)))
            continue
        if len(word) < FEWEST_LETTERS or tokens.is_cjk(word) or words.is_german or is_word(word):
            continue
        language = tokens.language_of(dict.fromkeys(tokens.WORD.findall(query.lower()), 1))
        foreign = tokens.is_listed(word) or (language != "en" and words.language != language)
        if parts := _parts(word, words, frequency):
            result.append(Correction(word, parts))
        elif not foreign and (meant := words.nearest(word)):
            result.append(Correction(word, (meant,)))
    return tuple(result)


def _joined(query: str, words: frozenset[str], frequency: Callable[[str], int]) -> Sequence[Correction]:
    """Return two words of the question that notes write as one."""
    result = []
    for match in _LINKED.finditer(query.lower()):
        item, other = match[1], match[3]
        # Between spaces both must be words that count: "in to" is no "into".
        if match[2] == " " and not {item, other} <= words:
            continue
        if frequency(item + other):
            is_apart = bool(frequency(f"{item} {other}"))
            result.append(Correction(f"{item}{match[2]}{other}", (item + other,), also=is_apart))
    return result


def _parts(word: str, words: Vocabulary, frequency: Callable[[str], int]) -> tuple[str, ...]:
    """Return the two words, one behind the other, that notes write a word as; empty where there are none."""
    splits = [(word[:at], word[at:]) for at in range(2, len(word) - 1)]
    there = [pair for pair in splits if all(words.chunks_of.get(part) for part in pair)]
    return max((pair for pair in there if frequency(" ".join(pair))), key=lambda pair: len(pair[0]), default=())
