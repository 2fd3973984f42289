"""The keywords of a query, chosen as OpenClaw chooses them without vectors.

Scripts are told apart by segment: Japanese by its kana, Chinese, Korean, and everything else as it stands. The stop
words of seven languages come from the package `stop-words`, whose lists are longer than those of the original.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

from memory_tui.core import jsstring
from memory_tui.core import tokens as core_tokens

STOP_LANGUAGES = ("en", "es", "pt", "ar", "zh", "ko", "ja")
"""A word listed in any of these is not searched for (OpenClaw from 2026.2.22)."""

FEWEST_LETTERS = 3
"""Letters of the shortest keyword that is written in ASCII (OpenClaw)."""

# The nominal particles of Korean; of two that fit, the longer one is taken off.
_PARTICLES = (
    "에서",
    "으로",
    "에게",
    "한테",
    "처럼",
    "같이",
    "보다",
    "까지",
    "부터",
    "마다",
    "밖에",
    "대로",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "의",
    "에",
    "로",
    "와",
    "과",
    "도",
    "만",
)
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7af\u3131-\u3163]")
_SYLLABLE = re.compile("[\uac00-\ud7af]")
_JAPANESE = re.compile("[a-z0-9_]+|[\u30a0-\u30ffー]+|[\u4e00-\u9fff]+|[\u3040-\u309f]{2,}")
_ASCII_STEM = re.compile(r"[a-z0-9_]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[A-Za-z]+")


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """The maintained list of a two-letter `language`, in lower case; phrases in it never equal a single word.

    English is lunr's short list: the long one of `stop-words` holds hundreds of words that the original searches for.
    """
    if language == "en":
        return core_tokens.function_words()
    from stop_words import get_stop_words

    return frozenset(word.lower() for word in get_stop_words(language))


@functools.cache
def _every_stop_word() -> frozenset[str]:
    return frozenset().union(*map(stop_words, STOP_LANGUAGES))


def keywords(query: str, *, trigram: bool = False) -> tuple[str, ...]:
    """The keywords of `query` in their order, lower-cased, without repeats; possibly none (OpenClaw 2026.2.22 on).

    With `trigram` a run of Chinese characters stays whole, because trigrams find its parts by themselves.
    """
    return tuple(dict.fromkeys(word for word in tokens(query, trigram=trigram) if is_keyword(word)))


def tokens(query: str, *, trigram: bool = False) -> list[str]:
    """What `keywords` chooses from: segments between spaces and punctuation, cut further by their script."""
    return [token for segment in _segments(jsstring.trim(query.lower())) for token in _cut(segment, trigram)]


def is_keyword(token: str, stops: frozenset[str] | None = None) -> bool:
    """Whether `token` says enough to be searched for; `stops` are the words that do not, by default every list."""
    if token in (_every_stop_word() if stops is None else stops) or token in _PARTICLES or _DIGITS.fullmatch(token):
        return False
    if len(token) < FEWEST_LETTERS and _LETTERS.fullmatch(token):
        return False
    return not all(unicodedata.category(character)[0] in "PS" for character in token)


def _segments(text: str) -> Iterator[str]:
    start = 0
    for at, character in enumerate(text):
        if character in jsstring.WHITESPACE or unicodedata.category(character)[0] == "P":
            if at > start:
                yield text[start:at]
            start = at + 1
    if start < len(text):
        yield text[start:]


def _cut(segment: str, trigram: bool) -> Iterator[str]:
    if segment.isascii():
        yield segment
    elif _KANA.search(segment):
        for part in _JAPANESE.findall(segment):
            yield part
            if _HAN.match(part) and not trigram:
                yield from _bigrams(part)
    elif characters := _HAN.findall(segment):
        # Letters between the characters are lost, as in the original.
        if trigram:
            yield "".join(characters)
        else:
            yield from characters
            yield from _bigrams("".join(characters))
    elif _HANGUL.search(segment):
        yield from _korean(segment)
    else:
        yield segment


def _bigrams(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def _korean(segment: str) -> Iterator[str]:
    """A Korean word and its stem without a particle, each only where it is no stop word."""
    stops = stop_words("ko")
    stem = next((segment.removesuffix(end) for end in _PARTICLES if segment.endswith(end) and segment != end), "")
    stemmed_to_stop = bool(stem) and stem in stops
    if segment not in stops and not stemmed_to_stop:
        yield segment
    if stem and not stemmed_to_stop and _useful(stem):
        yield stem


def _useful(stem: str) -> bool:
    return (len(stem) >= 2 and _SYLLABLE.search(stem) is not None) or _ASCII_STEM.fullmatch(stem) is not None
