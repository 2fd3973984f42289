"""Keywords of a question, as OpenClaw extracts them when it has no vectors."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
from stop_words import AVAILABLE_LANGUAGES, get_stop_words

from memory_tui import demo
from memory_tui.search.keywords import keywords, stop_words, tokens
from tests.support.npm import CACHE
from tests.support.waiting import LONG

# Distinct entries of the original's own lists.
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
        ("ما هو عنوان الخادم", ("ما", "عنوان", "الخادم")),
        ("c++ + = ++", ("c++",)),
        ("", ()),
        ("the of and 12", ()),
    ],
)
def test_words_are_chosen(query, expected):
    assert keywords(query) == expected


def test_chinese_is_cut_into_characters_and_bigrams():
    assert tokens("讨论方案") == ["讨", "论", "方", "案", "讨论", "论方", "方案"]
    assert tokens("讨论api方案") == ["讨", "论", "方", "案", "讨论", "论方", "方案"], "Latin letters between are lost"
    assert "的" not in keywords("方案的讨论")


def test_japanese_is_cut_by_script():
    assert tokens("昨日のデプロイapi戦略") == ["昨日", "昨日", "デプロイ", "api", "戦略", "戦略"]
    assert tokens("機械学習の") == ["機械学習", "機械", "械学", "学習"], "one kana alone is dropped"
    assert keywords("サーバーについて") == ("サーバー", "について")


def test_korean_particles_are_taken_off_longest_first():
    assert keywords("서버에서") == ("서버에서", "서버")
    assert keywords("배포를") == ("배포를", "배포")
    assert keywords("api를") == ("api를", "api")
    assert keywords("책이") == ("책이",), "a stem of one syllable is not useful"
    assert keywords("은") == ()
    assert keywords("우리는") == (), "a stop word with a particle is one as well"


def test_the_lists_are_as_long_as_those_of_the_original():
    """Portuguese shares words with Spanish, which stand there; of Arabic one is of two words, which no token is."""
    ours = {language: len(stop_words(language)) for language in THEIRS}
    assert {language for language in ours if ours[language] != THEIRS[language]} == {"pt", "ar"}
    assert all(ours[language] < THEIRS[language] for language in ("pt", "ar"))


def unseen():
    """Questions that nobody recorded: sentences of the sample notes, and words of many lists in any order."""
    rng = random.Random(9)
    listed = {
        name: sorted({word for line in get_stop_words(name) for word in line.split()}) for name in AVAILABLE_LANGUAGES
    }
    listed |= {f"own {name}": sorted(stop_words(name)) for name in THEIRS}
    notes = [path.read_text("utf-8") for path in sorted(Path(demo.__file__).parent.rglob("*.md"))]
    found = [line for text in notes for line in re.split("[\\n。？.]", text) if 5 < len(line) < 300]
    for words in listed.values():
        shuffled = rng.sample(words, len(words))
        found += [" ".join(shuffled[at : at + 7]) for at in range(0, len(words), 7)]
    return found


_ASK = """
import { readFileSync } from "node:fs";
const { extractKeywords } = await import(process.argv[1]);
const asked = JSON.parse(readFileSync(process.argv[2], "utf8"));
const of = (ftsTokenizer) => asked.map((one) => extractKeywords(one, { ftsTokenizer }));
console.log(JSON.stringify([of("unicode61"), of("trigram")]));
"""


@pytest.mark.real_host
def test_the_real_program_looks_for_the_same_keywords(tmp_path):
    dist = CACHE / "openclaw-2026.9.6" / "node_modules" / "openclaw" / "dist"
    nodes = sorted(CACHE.glob("node-*/node_modules/node-*/bin/node"))
    if not dist.is_dir() or not nodes:
        pytest.skip(f"OpenClaw 2026.9.6 and a Node for it are not in {CACHE}")
    asked = unseen()
    assert len(asked) > 1000
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps(asked))
    words = ["--input-type=module", "-e", _ASK, str(dist / "plugin-sdk" / "memory-core-host-engine-sessions.js")]
    ran = subprocess.run(
        [str(nodes[-1]), *words, str(questions)], check=False, capture_output=True, text=True, timeout=LONG
    )
    assert ran.returncode == 0, ran.stderr
    for trigram, theirs in zip((False, True), json.loads(ran.stdout), strict=True):
        ours = [list(keywords(one, trigram=trigram)) for one in asked]
        assert [(q, a, b) for q, a, b in zip(asked, ours, theirs, strict=True) if a != b] == []
