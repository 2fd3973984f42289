"""Keywords of a question, as OpenClaw extracts them when it has no vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.core.keywords import STOP_LANGUAGES, keywords, stop_words, tokens

# Distinct entries of the original's own lists, and of the maintained lists that stand in for them.
THEIRS = {"en": 97, "es": 65, "pt": 61, "ar": 53, "ko": 94, "ja": 45, "zh": 88}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What was the VLAN of the router?", ("vlan", "router")),
        ("router ROUTER Router", ("router",)),
        ("api_key rotation", ("api", "key", "rotation")),  # the underscore is punctuation here, though not in FTS
        ("go to DB 42 x9 2026-03-01", ("x9",)),  # short ASCII words and bare numbers say too little
        ("¿Qué pasó con el servidor?", ("pasó", "servidor")),
        ("o que aconteceu com o servidor", ("aconteceu", "servidor")),
        ("ما هو عنوان الخادم", ("عنوان", "الخادم")),
        ("c++ + = ++", ("c++",)),
        ("", ()),
        ("the of and 12", ()),
    ],
)
def test_words_are_chosen(query: str, expected: tuple[str, ...]) -> None:
    assert keywords(query) == expected


def test_chinese_is_cut_into_characters_and_bigrams() -> None:
    assert tokens("讨论方案") == ["讨", "论", "方", "案", "讨论", "论方", "方案"]
    assert tokens("讨论api方案") == ["讨", "论", "方", "案", "讨论", "论方", "方案"], "Latin letters between are lost"
    assert "的" not in keywords("方案的讨论")


def test_japanese_is_cut_by_script() -> None:
    assert tokens("昨日のデプロイapi戦略") == ["昨日", "昨日", "デプロイ", "api", "戦略", "戦略"]
    assert tokens("機械学習の") == ["機械学習", "機械", "械学", "学習"], "one kana alone is dropped"
    assert keywords("サーバーについて") == ("サーバー", "について")


def test_korean_particles_are_taken_off_longest_first() -> None:
    assert keywords("서버에서") == ("서버에서", "서버")
    assert keywords("배포를") == ("배포를", "배포")
    assert keywords("api를") == ("api를", "api")
    assert keywords("책이") == ("책이",), "a stem of one syllable is not useful"
    assert keywords("은") == ()
    assert keywords("우리는") == (), "a stop word with a particle is one as well"


def test_trigrams_need_no_bigrams() -> None:
    assert tokens("讨论api方案", trigram=True) == ["讨论方案"]
    assert tokens("機械学習のデプロイ", trigram=True) == ["機械学習", "デプロイ"]
    assert tokens("서버에서", trigram=True) == ["서버에서", "서버"]


def test_the_lists_differ_from_the_original_in_size() -> None:
    """The stand-in lists are longer and so drop more words (a trace shows which); only Japanese is one shorter."""
    ours = {language: len(stop_words(language)) for language in STOP_LANGUAGES}
    assert {language for language in ours if ours[language] < THEIRS[language]} <= {"ja"}
    assert ours["ja"] >= THEIRS["ja"] - 1
    assert ours["en"] < 1.3 * THEIRS["en"], "the English list is of the original's size"


def test_known_differences_are_words_with_a_meaning() -> None:
    """Function words go in both; the lists of other languages still drop a few English words with a meaning."""
    assert keywords("what is this about and how does that do with them") == ()
    assert keywords("computer system page changes") == ("computer", "system", "page", "changes")
    assert keywords("router vlan backup deploy password") == ("router", "vlan", "backup", "deploy", "password")


@given(st.text(max_size=60))
def test_any_text_has_distinct_lower_case_keywords(text: str) -> None:
    found = keywords(text)
    assert len(found) == len(set(found))
    assert all(word and word == word.lower() for word in found)
    assert set(found) <= set(tokens(text))
