"""The words of queries as full-text search needs them, for every profile.

OpenClaw's way wraps every run of letters and digits in quotes and joins them with AND. Ours (`recommended`) drops stop
words, cuts Chinese, Japanese and Korean runs into bigrams, and joins with OR; SQLite's porter tokenizer stems.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import cast

import apsw
from msgspec import Struct

WORD = re.compile(r"\w+")
"""Runs of letters, digits and underscore: the same characters as JavaScript's `[\\p{L}\\p{N}_]+`."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
CJK_RUN = re.compile(f"[{CJK}]+")
STOP_SHARE = 0.1
"""A word of a long list is a stop word only where it stands in more than this share of the chunks of its language."""

MOST_WORDS = 1_000
"""Different words of a question that are looked for where all are needed, or one by one."""
MOST_ALTERNATIVES = 256
"""Different words of a question of which any is enough: FTS5 weighs each place of each word against all of them."""

_STOP_LANGUAGES = ("en", "es", "pt", "fr", "de", "it", "nl", "ru", "pl")
_UNSPACED = "zh", "ja", "ko"


def lowered(text: str) -> str:
    """Return `text` composed (NFC) and in lower case, as OpenClaw 2026.9 compares words."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).lower()


def words_of(text: str) -> frozenset[str]:
    """Return the distinct words of `text` in lower case, as OpenClaw 2026.9 counts them."""
    return frozenset(WORD.findall(lowered(text)))


def quoted(word: str) -> str:
    """Return `word` as an FTS5 string, whatever it contains."""
    return '"' + word.replace('"', '""') + '"'


def and_query(words: Iterable[str]) -> str:
    """Return OpenClaw's FTS5 expression that matches all of `words`: `"a" AND "b"`, empty without any word."""
    return " AND ".join(quoted(word) for word in words)


# --- our own way ---------------------------------------------------------------------------------------------------


def _bigrams(match: re.Match[str]) -> str:
    """Return the pairs of characters of a matched run, with a space around each."""
    run = match.group()
    # The last character stands alone once more, so that a query of one character finds every place as a prefix.
    return " " + " ".join(run[start : start + 2] for start in range(len(run))) + " "


def segmented(text: str) -> str:
    """Return `text` with every Chinese, Japanese or Korean run replaced by its bigrams, so that FTS5 sees words."""
    return text if text.isascii() else CJK_RUN.sub(_bigrams, text)


_MONTHS = "January February March April May June July August September October November December"
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"


def spelled(day: dt.date) -> str:
    """Return `day` in figures and words, the same whatever the locale: `2026-05-02 May Saturday`."""
    return f"{day.isoformat()} {_MONTHS.split()[day.month - 1]} {_WEEKDAYS.split()[day.weekday()]}"


_NAME = re.compile(r"(?<![^\W_])[A-Za-z\d]{0,64}?(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})[A-Za-z\d]*(?![^\W_])")
"""A name in camel case; what joins its parts by `_` FTS5 cuts by itself."""
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HUMP = re.compile("[A-Z](?<=[A-Za-z].)(?:(?<=[a-z].)|[a-z]{2})")
"""Without one of these a text holds no such name, and most texts hold none: capitals are few, and found at once."""


APART = re.compile(r"[^\w\s]+|_+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_LETTER = re.compile(r"[^\W\d]")


def letters_of(text: str) -> str:
    """Return `text` as trigrams see it: lower case, words one space apart, a space at both ends."""
    return f" {' '.join(APART.sub(' ', text.lower()).split())} "


def _pieces(text: str) -> list[tuple[int, int]]:
    """Return start and end of the pieces of names in camel case: "HTTP" and "Server" of HTTPServer2, none of iPhone.

    A name of which fewer than two pieces have two letters and more is not cut.
    """
    result: list[tuple[int, int]] = []
    for name in _NAME.finditer(text) if _HUMP.search(text) else ():
        # `finditer` looks between start and end of the name alone.
        pieces = [piece.span() for piece in _PIECE.finditer(text, *name.span()) if len(piece[0]) > 1]
        result += pieces if len(pieces) > 1 else []
    return result


def words_above(path: str, headings: Sequence[str]) -> str:
    """Return what full-text search sees above a chunk's text: its file name, the day there in words, the headings.

    MEMORY.md is called that whatever it holds, and a name that is a heading too is there already.
    """
    date = _DAY.search(path)
    day = date[0] if date else ""
    # A date that does not exist, as 2026-02-31, stays in figures, and no date at all stays empty.
    with suppress(ValueError):
        day = spelled(dt.date(*map(int, day.split("-"))))
    name = letters_of(_DAY.sub(" ", path.rpartition("/")[2].rpartition(".")[0])).strip()
    names = {"memory", *(letters_of(heading).strip() for heading in headings)}
    if not _LETTER.search(name) or name in names:
        return "\n".join((day, *headings))
    return "\n".join((day, name, *headings))


def indexed_form(above: str, text: str) -> str:
    """Return what full-text search sees of a chunk: the words above it, its text.

    Behind them the pieces of names, as in `spans`, so that words beside a name stay neighbours.
    """
    whole = segmented(f"{above}\n{text}")
    return " ".join((whole, *(whole[start:end] for start, end in _pieces(whole))))


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the maintained stop-word list of a two-letter `language`, cut at apostrophes as queries are."""
    from stop_words import get_stop_words

    return frozenset(WORD.findall("\n".join(get_stop_words(language)).lower()))


@functools.cache
def words_by_use() -> Mapping[str, Mapping[str, str]]:
    """Return the words of questions by their use, and of each use by language, as alternatives of an expression."""
    result: dict[str, dict[str, str]] = {}
    for row in Path(__file__).with_name("words.txt").read_text("utf-8").splitlines():
        if not row.startswith("#"):
            # USE LANGUAGE: WORD|WORD
            use, language, words = row.split(" ", 2)
            result.setdefault(use, {})[language.rstrip(":")] = words
    return result


def either(use: str) -> str:
    """Return a regular expression of all words of a `use` in any language; only some scripts have ends of words."""
    by_language = words_by_use()[use]
    spaced = "|".join(words for language, words in by_language.items() if language not in _UNSPACED)
    return "|".join((rf"\b(?:{spaced})\b", *(by_language[name] for name in _UNSPACED if name in by_language)))


@functools.cache
def _own_function_words() -> frozenset[str]:
    """Return what our own way leaves out of an English question: the short list and Snowball's (BSD licence)."""
    return function_words() | frozenset(words_by_use()["snowball"]["en"].split("|"))


@functools.cache
def function_words() -> frozenset[str]:
    """Return the English words that never carry meaning: 119 stop words of lunr (MIT licence, Oliver Nightingale)."""
    return frozenset(words_by_use()["lunr"]["en"].split("|"))


def language_of(count_of: Mapping[str, int]) -> str:
    """Return the language whose stop words count most in `count_of`; English for a word or two, which tell none."""
    if len(count_of) < 3:
        return "en"
    words = frozenset(count_of)
    known = {name: sum(map(count_of.__getitem__, words & stop_words(name))) for name in _STOP_LANGUAGES}
    return max(known, key=known.__getitem__)


def is_listed(word: str) -> bool:
    """Return whether a word is on the stop list of any language."""
    return any(word in stop_words(name) for name in _STOP_LANGUAGES)


@functools.lru_cache(maxsize=8_000)
def only_asks(word: str) -> bool:
    """Return whether `word` of a question asks how things are now or compare: lines are not compared by it."""
    return re.fullmatch(f"{either('now')}|{either('compares')}", word, re.IGNORECASE) is not None


def _stops_among(count_of: Mapping[str, int], chunks: int) -> Set[str]:
    """Return the words that are left out of a question, also such as are not in it.

    `count_of` has its words, and in how many of the `chunks` each of them stands.
    """
    # Each word counts once for the language, however frequent it is in the notes.
    language = language_of(dict.fromkeys(count_of, 1))
    if language == "en":
        return _own_function_words()
    english, listed = _own_function_words(), stop_words(language)
    # Notes are in several languages: about twice as many as hold its most frequent word are taken for this language.
    most = max((count for word, count in count_of.items() if word in listed), default=0)
    frequent = {word for word, count in count_of.items() if count > STOP_SHARE * chunks}
    frequent |= {word for word in listed & count_of.keys() if count_of[word] > STOP_SHARE * min(chunks, 2 * most)}
    # English is in notes of every language: its function words go where they are frequent, or on the language's list.
    use = words_by_use()
    always = (english & listed).union(use["is"][language].split("|"), use["asks"][language].split("|"))
    return ((english | listed) & frequent) | always


def split(query: str) -> list[str]:
    """Return the words of `query` in lower case without repeats: those between CJK runs, then pairs of the runs."""
    words: dict[str, None] = {}
    pairs: dict[str, None] = {}
    for word in WORD.findall(query.lower()):
        if word.isascii():
            words[word] = None
            continue
        words.update(dict.fromkeys(CJK_RUN.sub(" ", word).split()))
        for run in CJK_RUN.findall(word):
            pairs.update(dict.fromkeys(_pairs(run)))
    return list(words)[:MOST_WORDS] + list(pairs)[:MOST_WORDS]


def _pairs(run: str) -> list[str]:
    """Return each two characters of `run` that follow one another; a lone character as it is."""
    return [run[start : start + 2] for start in range(max(1, len(run) - 1))]


class Terms(Struct, frozen=True):
    """The words of a query after our own way: `searched` for search, `stops` and `common` words left out."""

    searched: tuple[str, ...]
    stops: tuple[str, ...] = ()
    common: tuple[str, ...] = ()


def terms(every: list[str], frequency: Mapping[str, int], chunks: int) -> Terms:
    """Return the search terms among `every` word of a query, by their `frequency` in an index of so many `chunks`.

    Function words of the question's own language go. Of languages other than English there are only long stop-word
    lists, which hold many words that carry meaning: a word of theirs goes where it is frequent. A word of more than
    half the chunks goes because bm25 gives it no weight, but not where notes hold no other word of the question.
    Something is always left. Of more than 256 different words the rarest are searched.
    """
    words = [word for word in every if not is_cjk(word)]
    if len(every) > MOST_ALTERNATIVES:
        # Words that no note holds would be the rarest of all: they are not among these.
        rarest = set(sorted((word for word in every if frequency[word]), key=frequency.__getitem__)[:MOST_ALTERNATIVES])
        words = [word for word in words if word in rarest] or words[:1]
        # Where notes hold none of them, one stays, so that something is asked.
        every = [word for word in every if word in rarest] or every[:1]
    dropped = _stops_among({word: frequency[word] for word in words}, chunks)
    stops = tuple(word for word in words if word in dropped)
    # bm25 weighs a word of more than half the chunks by nothing.
    common = tuple(word for word in every if word not in stops and frequency[word] > chunks / 2)
    if not any(frequency[word] for word in every if word not in stops and word not in common):
        common = ()
    # A question of stop words alone is searched with all of them.
    searched = tuple(word for word in every if word not in stops and word not in common)
    return Terms(searched, stops, common) if searched else Terms(tuple(every))


def or_query(searched: Iterable[str]) -> str:
    """Return the FTS5 expression of any of `searched`; a lone CJK character matches as the start of a bigram."""
    return " OR ".join(f"{quoted(word)}*" if len(word) == 1 and is_cjk(word) else quoted(word) for word in searched)


# --- tokens, exactly as FTS5 makes them ----------------------------------------------------------------------------

RAW_TOKENIZER = ("unicode61",)
"""FTS5 tokenizer of OpenClaw's table."""
STEM_TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2")
"""FTS5 tokenizer of ours."""


@functools.lru_cache(maxsize=64)
def _tokenizer(_thread: int, name: str, *arguments: str) -> apsw.FTS5Tokenizer:
    """Return FTS5's tokenizer of this name and these arguments, made once for each thread."""
    # One for each thread (`_thread` is the key alone): unicode61 folds every word into one buffer of its tokenizer, and
    # another thread can run before it is read, during a collection of garbage.
    return apsw.Connection(":memory:").fts5_tokenizer(name, list(arguments))


@functools.lru_cache(maxsize=8_000)
def word_stems(word: str) -> tuple[str, ...]:
    """Return the porter stems of a word of a question, which is compared with many texts."""
    return tuple(tokens(word, stemmed=True))


def spans(text: str, *, stemmed: bool = True) -> list[tuple[int, int, str]]:
    """Return the tokens of `text` as `tokens` finds them, each behind the start and end of its word in UTF-8 bytes.

    Where stemmed, those of the pieces of names follow behind all others, as in `indexed_form`.
    """
    tokenizer = _tokenizer(threading.get_ident(), *(STEM_TOKENIZER if stemmed else RAW_TOKENIZER))
    every = cast(
        "list[tuple[int, int, str]]",
        tokenizer(text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False),
    )
    for start, end in _pieces(text) if stemmed else ():
        # A piece is ASCII, so that its bytes are its characters; what stands before it may not be.
        byte = start if text.isascii() else len(text[:start].encode("utf-8", "replace"))
        every += [(byte, byte + end - start, stem) for stem in word_stems(text[start:end])]
    return every


def tokens(text: str, *, stemmed: bool) -> list[str]:
    """Return the tokens that FTS5 finds in `text`, with porter stems or plain."""
    tokenizer = _tokenizer(threading.get_ident(), *(STEM_TOKENIZER if stemmed else RAW_TOKENIZER))
    options = {"include_offsets": False, "include_colocated": False}
    return cast("list[str]", tokenizer(text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None, **options))


_SYLLABIC = re.compile("[\u01a1\u01b0\u1ea0-\u1ef9]")
"""Letters of Vietnamese alone."""


def syllable_pairs(text: str) -> list[str]:
    """Return each two neighbouring words of a text in Vietnamese, once; nothing for a text in another language.

    Vietnamese writes a word as separate syllables, most often two.
    """
    # Two words with its letters tell the language.
    words = [] if text.isascii() else WORD.findall(text.lower())
    if sum(_SYLLABIC.search(word) is not None for word in words) < 2:
        return []
    return list(dict.fromkeys(map(" ".join, itertools.pairwise(words))))


def is_cjk(word: str) -> bool:
    """Return whether `word` is made of Chinese, Japanese or Korean characters alone."""
    return not word.isascii() and CJK_RUN.fullmatch(word) is not None


def as_asked(words: Iterable[str], query: str) -> tuple[str, ...]:
    """Return `words` as a person wrote them in `query`, without repeats.

    Chinese, Japanese and Korean are searched as pairs of characters, most of which are no words: the whole run of such
    characters stands for each of its pairs.
    """
    runs = CJK_RUN.findall(query)
    # A word of other characters is in no run, and stands as it is.
    whole = (next((run for run in runs if word in run), word) for word in words)
    return tuple(dict.fromkeys(whole))


def left_out(words: Iterable[str], query: str) -> tuple[str, ...]:
    """Return `words`, which are not searched for, as a person wrote them in `query`.

    A run of Chinese, Japanese or Korean characters is left out where each of its pairs is; a pair alone is no word.
    """
    listed = dict.fromkeys(words)
    runs = (run for run in CJK_RUN.findall(query.lower()) if listed.keys() >= set(_pairs(run)))
    return tuple(dict.fromkeys([*(word for word in listed if not is_cjk(word)), *runs]))
