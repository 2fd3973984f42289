"""Words of questions and chunks, in both ways; keywords as OpenClaw extracts them without vectors."""

import json
import random
import re
import subprocess
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stop_words import AVAILABLE_LANGUAGES, get_stop_words

from memory_tui import demo, tokens
from memory_tui.explain.wording import terms_line
from memory_tui.search.keyword import keywords, pieces, stop_words
from tests.support.npm import CACHE
from tests.support.waiting import LONG
from tests.support.workspace import options_in, put_all, synced

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
    assert pieces("讨论方案") == ["讨", "论", "方", "案", "讨论", "论方", "方案"]
    assert pieces("讨论api方案") == ["讨", "论", "方", "案", "讨论", "论方", "方案"], "Latin letters between are lost"
    assert "的" not in keywords("方案的讨论")


def test_japanese_is_cut_by_script():
    assert pieces("昨日のデプロイapi戦略") == ["昨日", "昨日", "デプロイ", "api", "戦略", "戦略"]
    assert pieces("機械学習の") == ["機械学習", "機械", "械学", "学習"], "one kana alone is dropped"
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
    ours = {language: len(stop_words()[language]) for language in THEIRS}
    assert {language for language in ours if ours[language] != THEIRS[language]} == {"pt", "ar"}
    assert all(ours[language] < THEIRS[language] for language in ("pt", "ar"))


def unseen():
    """Questions that nobody recorded: sentences of the sample notes, and words of many lists in any order."""
    rng = random.Random(9)
    words = {name: " ".join(get_stop_words(name)).split() for name in AVAILABLE_LANGUAGES}
    listed = {name: sorted(set(each)) for name, each in words.items()}
    listed |= {f"own {name}": sorted(stop_words()[name]) for name in THEIRS}
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
    words = [str(nodes[-1]), *words, str(questions)]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LONG)
    assert ran.returncode == 0, ran.stderr
    for trigram, theirs in zip((False, True), json.loads(ran.stdout), strict=True):
        ours = [list(keywords(one, trigram=trigram)) for one in asked]
        assert [(q, a, b) for q, a, b in zip(asked, ours, theirs, strict=True) if a != b] == []


NOTES = {
    "MEMORY.md": "The router vlan is admin-70.\nThe printer stands in the cellar.\n",
    "memory/2020-01-01.md": "Router rebooted.\nRouter firmware router vlan router.\n",
    "memory/2026-11-02.md": "Printer paper ordered; the printer jams.\n",
    "memory/cellar.md": "The cellar key hangs behind the door.\n",
    "memory/garden.md": "Roses and tomatoes were watered on Sunday.\n",
    "memory/kitchen.md": "The oven runs hot by ten degrees.\n",
}


@pytest.fixture
def ask(tmp_path):
    put_all(tmp_path / "notes", NOTES)

    def asked(query, profile, **changes):
        more = [f"{key}={value}" for key, value in changes.items()]
        with synced(options_in(tmp_path, f"profile={profile}", *more, provider="none")) as engine:
            return engine.search.search(query)

    return asked


def test_the_trace_names_what_was_dropped(ask):
    trace = ask("what about the printer", "openclaw-2026.3")
    assert trace.side.plan.words == ("printer",)
    assert trace.side.plan.dropped == ("what", "about", "the")


def test_a_question_without_a_keyword_is_asked_whole(ask):
    trace = ask("by the", "openclaw-2026.3", minScore="0")
    assert trace.side.plan.fts_query == '"by" AND "the"'
    assert trace.side.plan.dropped == ()
    assert [c.chunk.path for c in trace.recalled] == ["memory/kitchen.md"]


def test_a_question_whose_vector_points_nowhere_is_weighed_as_hybrid(tmp_path):
    """The original looks for neighbours of nothing and still gives words their share alone."""
    put_all(tmp_path / "notes", {"MEMORY.md": "Зашёл в кафе §§ §§\n"})
    with synced(options_in(tmp_path, "profile=openclaw-2026.3", provider="scripted")) as engine:
        found = engine.search.gather("!!")
        trace = engine.search.rank(found, engine.plan.settings)
        ours = engine.search.rank(found, engine.plan.with_profile("recommended"))
    assert found.question.pointless
    assert trace.rules.mode == "hybrid"
    assert trace.recalled == ()
    assert ours.rules.mode == "nothing"


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("handle change", "form"), ("handleChange", "form"), ("retry budget", "client"), ("retry_budget", "client"),
        ("http server", "server"), ("HTTPServer2", "server"),
    ],
)  # fmt: skip
def test_names_in_code_are_found_by_their_pieces_and_by_themselves(ask, tmp_path, question, note):
    more = {"form": "`handleChange` runs twice.", "client": "Raise `retry_budget` to 5.", "server": "See HTTPServer2."}
    more |= {"talk": "We change trains, and handle luggage ourselves.", "money": "The budget of the garden is spent."}
    put_all(tmp_path / "notes", {f"memory/{name}.md": f"{text}\n" for name, text in more.items()})
    trace = ask(question, "recommended")
    assert trace.recalled[0].chunk.path == f"memory/{note}.md"
    if question == "http server":
        assert terms_line(more["server"], trace).detail == "http 1x, server 1x"
        assert not ask(question, "openclaw-2026.3").recalled, "OpenClaw knows no pieces"


def test_a_name_of_most_notes_tells_those_apart_that_another_word_finds(ask, tmp_path):
    notes = {f"memory/m{at}.md": f"Mira went home on tram {at}.\n" for at in range(11)}
    notes |= {f"memory/m{at}.md": f"{who} planted kohlrabi by the wall.\n" for at, who in ((11, "Mira"), (12, "Jonas"))}
    put_all(tmp_path / "notes", notes)
    trace = ask("where did Mira plant kohlrabi", "recommended")
    text = {hit.chunk.path: hit.text for hit in trace.recalled}
    assert text["memory/m11.md"] == 1.0 > text["memory/m12.md"] > 0.8
    assert trace.side.plan.common == trace.side.plan.counted == ("mira",)
    assert trace.funnel["text_matches"] == 2, "a word of most notes finds none by itself"
    assert ask("Mira zeppelin", "recommended").funnel["text_matches"] == 12, "but where no other word is in the notes"


def terms(query, frequency):
    words = tokens.split(query)
    return tokens.terms(words, dict.fromkeys(words, frequency), 100)


def test_function_words_of_english_go_and_no_others_however_frequent():
    for frequency in (1, 30):
        assert terms("how is the omada vlan", frequency).searched == ("omada", "vlan")
        assert terms("the name of the home system", frequency).searched == ("name", "home", "system")
        assert terms("What does Calvin do to relax?", frequency).searched == ("calvin", "relax")


def test_english_words_that_mean_something_in_another_language_stay():
    # A need, in German, where English has a function word.
    assert "not" in terms("wie groß ist die not von der schule", 1).searched


def test_chinese_becomes_bigrams_on_both_sides():
    assert terms("路由器 ER605配置", 1).searched == ("er605", "路由", "由器", "配置")
    assert tokens.segmented("路由器ok").split() == ["路由", "由器", "器", "ok"]


NAMES = "handleChange_v2 HTTPServer2 retry_budget 使用loadCache函数"


def test_names_are_indexed_in_pieces_beside_the_whole():
    assert tokens.indexed_form("", NAMES).split()[-6:] == [
        "handle", "Change", "HTTP", "Server", "load", "Cache",
    ]  # fmt: skip
    for word in ("iPhone", "GmbH", "OAuth", "PDFs", "münchenOst", "README", "Router", "ipv4"):
        assert tokens.indexed_form("", word).strip() == word, "it has no two pieces that are words"


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.text("aBC2_ é京"))
def test_stems_are_those_that_are_indexed_each_at_its_place(text):
    cut = tokens.segmented(text)
    stems = tokens.spans(cut)
    assert [stem for _, _, stem in stems] == tokens.tokens(tokens.indexed_form("", text), stemmed=True)
    for start, end, stem in stems:
        assert stem in tokens.tokens(cut.encode()[start:end].decode(), stemmed=True)


@given(st.text(max_size=200))
def test_no_query_breaks_full_text_search(query):
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(body)")
    for expression in (tokens.and_query(tokens.WORD.findall(query)), tokens.or_query(terms(query, 1).searched)):
        if expression:
            db.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)).fetchall()


@given(st.text(alphabet="路由器配置更新a b", min_size=1, max_size=30), st.data())
def test_every_character_and_pair_of_a_chinese_note_is_found(text, data):
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(body)")
    db.execute("INSERT INTO t VALUES (?)", (tokens.segmented(text),))
    runs = [run for run in tokens.CJK_RUN.findall(text) if run]
    if not runs:
        return
    run = data.draw(st.sampled_from(runs))
    start = data.draw(st.integers(0, len(run) - 1))
    piece = run[start : start + data.draw(st.integers(1, 2))]
    expression = tokens.or_query(terms(piece, 1).searched)
    assert db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression,)).fetchall() == [(1,)]


def test_what_is_left_out_is_said_in_words_and_never_in_pairs():
    query = "what about 药物 and 喜欢书"
    assert tokens.left_out(["what", "about", "药物", "喜欢"], query) == ("what", "about", "药物")
    assert tokens.left_out(["喜欢", "欢书"], query) == ("喜欢书",)
