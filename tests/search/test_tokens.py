"""Words of queries and chunks, in both ways."""

import apsw
from hypothesis import given
from hypothesis import strategies as st

from memory_tui import tokens


def terms(query, frequency):
    words = tokens.split(query)
    return tokens.terms(words, dict.fromkeys(words, frequency), 100)


def test_openclaw_joins_every_word_with_and():
    words = tokens.WORD.findall('router "VLAN" foo_bar-baz')
    assert words == ["router", "VLAN", "foo_bar", "baz"]
    assert tokens.and_query(words) == '"router" AND "VLAN" AND "foo_bar" AND "baz"'
    assert tokens.WORD.findall("!!! ??? ---") == []
    assert tokens.and_query([]) == ""


def test_function_words_of_english_go_and_no_others_however_frequent():
    for frequency in (1, 30):
        assert terms("how is the omada vlan", frequency).searched == ("omada", "vlan")
        assert terms("the name of the home system", frequency).searched == ("name", "home", "system")
        assert terms("What does Calvin do to relax?", frequency).searched == ("calvin", "relax")


def test_english_words_that_mean_something_in_another_language_stay():
    # A need, in German, where English has a function word.
    assert "not" in terms("wie groß ist die not von der schule", 1).searched


def test_a_word_of_most_chunks_is_left_out_because_bm25_gives_it_nothing():
    found = tokens.terms(["router", "vlan"], {"router": 80, "vlan": 3}, 100)
    assert found.searched == ("vlan",)
    assert found.common == ("router",)
    assert terms("router", 80).searched == ("router",)


def test_chinese_becomes_bigrams_on_both_sides():
    assert terms("路由器 ER605配置", 1).searched == ("er605", "路由", "由器", "配置")
    assert tokens.segmented("路由器ok").split() == ["路由", "由器", "器", "ok"]


def test_day_and_headings_are_part_of_the_indexed_text():
    above = tokens.words_above("memory/2026-05-02.md", ["# Home", "## Router"])
    form = tokens.indexed_form(above, "swapped it")
    assert form.split("\n") == ["2026-05-02 May Saturday", "# Home", "## Router", "swapped it"]
    assert tokens.words_above("memory/2026-02-30.md", []).startswith("2026-02-30")


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
