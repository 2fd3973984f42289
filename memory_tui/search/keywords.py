"""The keywords of a query, chosen as OpenClaw chooses them without vectors.

Scripts are told apart by segment: Japanese by its kana, Chinese, Korean, and everything else as it stands. The stop
words are those that OpenClaw itself leaves out, because they decide what is looked for.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from memory_tui import jsstring

FEWEST_LETTERS = 3
"""Letters of the shortest keyword that is written in ASCII (OpenClaw)."""

_STOPS: Mapping[str, str] = MappingProxyType(
    {
        # Articles and pronouns; auxiliaries; prepositions; conjunctions and question words; times; things and requests.
        "en": """
            a an the this that these those i me my we our you your he she it they them
            is are was were be been being have has had do does did will would could should can may might
            in on at to for of with by from about into through during before after above below between under over
            and or but if then because as while when where what which who how why
            yesterday today tomorrow earlier later recently ago just now
            thing things stuff something anything everything nothing please help find show get tell give
        """,
        # Articles and pronouns; prepositions; conjunctions and question words; auxiliaries; times; requests.
        "es": """
            el la los las un una unos unas este esta ese esa yo me mi nosotros nosotras tu tus usted ustedes ellos ellas
            de del a en con por para sobre entre y o pero si porque como
            que qué cuándo cuando dónde donde cómo porqué quê
            es son fue fueron ser estar haber tener hacer
            ayer hoy mañana antes después ahora recientemente favor ayuda
        """,
        "pt": """
            o os as um uma uns umas esse essa eu meu minha nós nos você vocês ele ela eles elas
            do da em com e ou mas se quando onde como porquê é são foi foram ter fazer
            ontem hoje amanhã antes depois agora recentemente ajuda
        """,
        # One-letter prefixes; pronouns; prepositions; conjunctions and question words; verbs of being; times; help.
        "ar": """
            ال و ب ل ك أنا نحن هو هي هم هذا هذه ذلك تلك هنا هناك من إلى الى في على عن مع بين قبل بعد
            أو ثم لكن بل ماذا متى أين كيف لماذا هل كان كانت يكون تكون صار أصبح يمكن
            اليوم امس بالأمس غدا الآن مؤخرا ساعد فضلا ممكن
        """,
        # Pronouns and places; particles and auxiliaries; prepositions and conjunctions; questions; times; requests.
        "zh": """
            我 我们 你 你们 他 她 它 他们 这 那 这个 那个 这些 那些
            的 了 着 过 得 地 吗 呢 吧 啊 呀 嘛 啦 是 有 在 被 把 给 让 用 到 去 来 做 说 看 找 想 要 能 会 可以
            和 与 或 但 但是 因为 所以 如果 虽然 而 也 都 就 还 又 再 才 只
            什么 哪个 哪些 怎么 为什么 多少
            今天 昨天 明天 最近 刚才 现在 之前 之后 以前 以后 东西 事情 事 请 帮 帮忙 告诉
        """,
        # Particles; pronouns and places; things; verbs; adverbs and conjunctions; questions; times; requests.
        "ko": """
            은 는 이 가 을 를 의 에 에서 로 으로 와 과 도 만 까지 부터 한테 에게 께 처럼 같이 보다 마다 밖에 대로
            나 나는 내가 나를 너 우리 저 저희 그 그녀 그들 이것 저것 그것 여기 저기 거기
            것 거 등 수 때 곳 중 분 있다 없다 하다 되다 이다 아니다 주다 가다 오다 잘 더 또 매우 정말 아주 많이 너무 좀
            그리고 하지만 그래서 그런데 그러나 또는 그러면 왜 어떻게 뭐 언제 어디 누구 무엇 어떤
            어제 오늘 내일 최근 지금 아까 나중 전에 제발 부탁
        """,
        # Demonstratives; verbs; particles and conjunctions; questions; times.
        "ja": """
            これ それ あれ この その あの ここ そこ あそこ する した して です ます いる ある なる できる
            の こと もの ため そして しかし また でも から まで より だけ なぜ どう 何 いつ どこ 誰 どれ
            今日 昨日 明日 最近 今 さっき 前 後
        """,
    }
)
"""Words that say nothing, by language, as OpenClaw 2026.9.6 answers for each (the same since 2026.2.22)."""

STOP_LANGUAGES = tuple(_STOPS)
"""A word listed in any of these is not searched for."""

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
def stop_words(language: str) -> frozenset[str]:
    """The words of a two-letter `language` that OpenClaw leaves out; one of two languages stands in the first alone."""
    return frozenset(_STOPS[language].split())


@functools.cache
def _every_stop_word() -> frozenset[str]:
    return frozenset().union(*map(stop_words, STOP_LANGUAGES))


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
    if token in _every_stop_word() or _DIGITS.fullmatch(token):
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
