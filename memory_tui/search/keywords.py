"""The keywords of a query, chosen as OpenClaw chooses them without vectors.

Scripts are told apart by segment: Japanese by its kana, Chinese, Korean, and everything else as it stands. The stop
words are those that OpenClaw itself leaves out, because they decide what is looked for.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from memory_tui import jsstring

FEWEST_LETTERS = 3
"""Letters of the shortest keyword that is written in ASCII (OpenClaw)."""


@functools.cache
def _lists() -> Mapping[str, frozenset[str]]:
    """Return the words that say nothing, by two-letter language; one of two languages stands in the first alone."""
    words: dict[str, frozenset[str]] = {}
    for row in Path(__file__).with_name("keywords.txt").read_text("utf-8").splitlines():
        if not row.startswith("#"):
            language, _, listed = row.partition(": ")
            words[language] = words.get(language, frozenset()) | {*listed.split()}
    return words


def stop_words(language: str) -> frozenset[str]:
    """Return the words of a two-letter `language` that OpenClaw leaves out."""
    return _lists()[language]


# The nominal particles of Korean; of two that fit, the longer one is taken off.
_PARTICLES = "에서 으로 에게 한테 처럼 같이 보다 까지 부터 마다 밖에 대로 은 는 이 가 을 를 의 에 로 와 과 도 만"
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7af\u3131-\u3163]")
_SYLLABLE = re.compile("[\uac00-\ud7af]")
_JAPANESE = re.compile("[a-z0-9_]+|[\u30a0-\u30ffー]+|[\u4e00-\u9fff]+|[\u3040-\u309f]{2,}")
_ASCII_STEM = re.compile(r"[a-z0-9_]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[A-Za-z]+")


@functools.cache
def every_stop_word() -> frozenset[str]:
    """Return the words that are left out in any language."""
    return frozenset().union(*_lists().values())


def keywords(query: str, *, trigram: bool = False) -> tuple[str, ...]:
    """The keywords of `query` in their order, lower-cased, without repeats; possibly none (OpenClaw 2026.2.22 on).

    With `trigram` a run of Chinese characters stays whole, because trigrams find its parts by themselves.
    """
    return tuple(dict.fromkeys(word for word in tokens(query, trigram=trigram) if is_keyword(word)))


def tokens(query: str, *, trigram: bool = False) -> list[str]:
    """Return what `keywords` chooses from: segments between spaces and punctuation, cut further by their script."""
    return [token for segment in _segments(jsstring.trim(query.lower())) for token in _cut(segment, trigram)]


def is_keyword(token: str) -> bool:
    """Return whether `token` says enough to be searched for."""
    if token in every_stop_word() or _DIGITS.fullmatch(token):
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
    """Yield a Korean word and its stem without a particle, each only where it is no stop word."""
    stops = stop_words("ko")
    stem = next(
        (segment.removesuffix(end) for end in _PARTICLES.split() if segment.endswith(end) and segment != end), ""
    )
    stemmed_to_stop = bool(stem) and stem in stops
    if segment not in stops and not stemmed_to_stop:
        yield segment
    if stem and not stemmed_to_stop and _useful(stem):
        yield stem


def _useful(stem: str) -> bool:
    return (len(stem) >= 2 and _SYLLABLE.search(stem) is not None) or _ASCII_STEM.fullmatch(stem) is not None
