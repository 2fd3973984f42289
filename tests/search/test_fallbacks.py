"""What is left without meaning, vectors or words, and which faults of OpenClaw an answer names."""

import json

import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.mcp.tools import memory_search
from memory_tui.providers import Identity, builtin, fingerprint
from memory_tui.providers.builtin import Scripted
from memory_tui.sentences import language_label
from tests.support.workspace import options_in, options_of, put, put_all, synced

NOTES = {
    "MEMORY.md": "The router vlan is admin-70.\nThe printer stands in the cellar.\n",
    "memory/2026-11-02.md": "Printer paper ordered; 100% recycled, file_name.txt\n",
    "memory/garden.md": "Roses and tomatoes were watered on Sunday.\n",
    "memory/会議.md": "昨日の会議でデプロイ戦略を決めた。ルータの設定。\n",
}


@pytest.fixture
def place(tmp_path):
    put_all(tmp_path / "notes", NOTES)
    return tmp_path


def opened(place, provider="scripted", profile="openclaw-2026.3", **changes):
    changes = (("profile", profile), ("minScore", "0"), *changes.items())
    return Engine.open(options_of(place / "notes", place / "index.sqlite", *changes, provider=provider))


def paths(trace):
    return [hit.chunk.path for hit in trace.recalled]


def codes(trace):
    return {notice.code for notice in trace.notices}


def test_meaning_counts_by_how_much_of_a_question_the_table_knows(place):
    with opened(place, provider="builtin", profile="recommended") as engine:
        engine.index.sync()
        found = engine.search.search("私の犬の名前は")
    (said,) = (notice for notice in found.notices if notice.kind == "language_unknown")
    assert language_label(*said.fields.values()) == "MOSTLY WORDS (Japanese)"
    assert 0.15 <= said.fields["known"] < 0.5
    assert found.recalled
    assert found.rules.vector_weight == pytest.approx(0.4 * said.fields["known"])
    assert found.rules.text_weight == pytest.approx(1 - 0.4 * said.fields["known"])


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("喜欢什么书", "Chinese"), ("わたしのいぬのなまえは", "Japanese"), ("내 개 이름이 뭐야", "Korean"),
        ("Где стоит принтер", "Cyrillic"), ("مرحبا كلبي", "Arabic"), ("what router", ""),
        ("Wie heißt mein Hund?", ""), ("LanceDB 的 schema 是什么", ""),
    ],
)  # fmt: skip
def test_a_language_the_table_does_not_know_is_searched_by_words_alone(place, question, language):
    (place / "notes" / "memory" / "书.md").write_text("他在周末喜欢读书和散步。\n昨天买了苹果。\n")
    with opened(place, provider="builtin", profile="recommended") as engine:
        engine.index.sync()
        found = engine.search.search(question)
        theirs = engine.search.rank(engine.search.gather(question), engine.plan.with_profile("openclaw-2026.3"))
    said = [notice for notice in found.notices if notice.kind == "language_unknown"]
    assert [language_label(*one.fields.values()) for one in said] == ([f"WORDS ONLY ({language})"] if language else [])
    assert all(not hit.vector_points for hit in found.recalled) or not language
    if language == "Chinese":
        assert paths(found)[0] == "memory/书.md"
        assert "does not know this language" in wording.explain(found.recalled[0], found)[0].detail
    assert theirs.rules.mode == "hybrid", "a release counts the vector whatever the language"
    assert not any(notice.kind == "language_unknown" for notice in theirs.notices)


@pytest.mark.parametrize("dims", [256, 64])
def test_vectors_of_another_model_are_off_until_the_index_is_made_again(place, monkeypatch, dims):
    """Fault row 37: another model, of the same or of other dimensions."""
    with opened(place) as engine:
        engine.index.sync()
        assert engine.search.search("router vlan").rules.mode == "hybrid"
    other = Identity("scripted", "other", fingerprint(provider="scripted", model="other"), dims)
    monkeypatch.setattr(Scripted, "identity", other)
    monkeypatch.setattr(Scripted, "known", other)
    real = builtin.hash_vector

    monkeypatch.setattr(builtin, "hash_vector", lambda text: real(text)[::-1])
    monkeypatch.setattr(builtin, "DIMS", dims)
    with opened(place, **{"sync.onSearch": "off"}) as engine:
        trace = engine.search.search("router vlan")
        assert trace.rules.mode != "hybrid"
        assert "model_mismatch" in codes(trace)
        assert all(hit.cosine is None for hit in trace.recalled)
        assert engine.index.sync().rebuilt
        after = engine.search.search("router vlan")
        assert after.rules.mode == "hybrid"
        assert codes(after) == set()


def test_words_too_short_for_trigrams_are_looked_for_in_the_text(place):
    trigram = {"store.fts.tokenizer": "trigram"}
    with opened(place, provider="none", **trigram) as engine:
        engine.index.sync()
        trace = engine.search.search("会議")
    assert paths(trace) == ["memory/会議.md"]
    assert trace.side.plan.fts_query == 'text LIKE "%会議%"'
    assert trace.recalled[0].score == 1.0
    with opened(place, **trigram) as engine:  # one short and one long word, both needed
        engine.index.sync()
        found = engine.search.search("router is")
        assert found.side.plan.fts_query == '"router" AND text LIKE "%is%"'
        assert [found.ref(at).path for at in found.pool("text_rank")] == ["MEMORY.md"]
        assert engine.search.search("router zz").pool("text_rank") == []


def test_another_tokenizer_makes_the_index_again_and_keeps_its_vectors(place):
    with opened(place) as engine:
        first = engine.index.sync()
    with opened(place, **{"store.fts.tokenizer": "trigram"}) as engine:
        second = engine.index.sync()
        assert engine.status().fts.tokenizer == "trigram"
        assert not engine.index.sync().rebuilt
    assert (first.embedded, second.embedded) == (4, 0)
    assert second.rebuilt
    with opened(place) as engine:
        assert engine.index.sync().rebuilt
        assert engine.status().fts.tokenizer == "unicode61"


def codes_of(engine, question="router", **options):
    settings = engine.plan.with_profile(options["profile"]) if options else engine.plan.settings
    return [notice.code for notice in engine.search.rank(engine.search.gather(question), settings).notices]


@pytest.fixture
def options(tmp_path):
    put_all(tmp_path / "notes", {"MEMORY.md": "The router is an Omada ER605\n", "memory/punct.md": "---\n***\n...\n"})
    return options_in(tmp_path, "profile=openclaw-2026.3", provider="scripted")


def test_a_vector_of_zeros_scores_nothing_and_the_trace_says_so(options):
    with synced(options) as engine:
        trace = engine.search.search("router")
        assert "zero_vector" in [notice.code for notice in trace.notices]
        every = [*trace.recalled, *trace.lost]
        assert next(hit for hit in every if hit.chunk.path == "memory/punct.md").score == 0


def test_without_a_provider_words_are_searched_and_the_trace_says_what_openclaw_would_do(options):
    with synced(replace(options, provider="none")) as engine:
        assert "openclaw_emptied" in codes_of(engine)
        assert "openclaw_emptied" not in codes_of(engine, profile="recommended")


def test_the_first_search_of_a_new_index_finds_its_notes_and_says_what_openclaw_would_do(options):
    with Engine.open(options) as engine:
        engine.index.catch_up()
        assert "openclaw_first_search" in codes_of(engine)
        assert "openclaw_first_search" not in codes_of(engine)
    with Engine.open(options) as engine:
        engine.index.catch_up()
        assert "openclaw_first_search" not in codes_of(engine)


def test_the_command_line_tells_them_only_where_the_arithmetic_is_asked_for(options, command, printed):
    place = ["--workspace", str(options.workspace), "--index", str(options.index)]
    shared = [*place, "--profile", "openclaw-2026.3", "--provider", "none"]
    assert "would find nothing" not in command(*shared, "search", "router")[2]
    assert "would find nothing" in command(*shared, "search", "router", "--explain")[2]
    told = json.loads(printed(*shared, "search", "router", "--json"))["notices"]
    assert [notice["code"] for notice in told] == ["openclaw_emptied"]


def test_faults_of_2026_9_are_named_and_not_copied(options, tmp_path):
    put(tmp_path / "notes", "memory/open.md", text="- the router stands in the hall <!-- project: house\n")
    with synced(replace(options, changes=(("profile", "openclaw-2026.9"),))) as engine:
        trace = engine.search.rank(engine.search.gather("router"), engine.plan.settings)
    told = {notice.code: notice.message for notice in trace.notices}
    assert told["zero_vector"].endswith("OpenClaw 2026.9.6 loses its whole vector side by one of them.")
    assert "memory/open.md#L1-L2" in told["unreadable_project"]
    assert [hit.chunk.path for hit in trace.recalled] == ["MEMORY.md"]
    assert trace.recalled[0].cosine


NOT_THEIRS = "vectors of the built-in table, not OpenClaw's"


def test_every_ranking_by_a_release_says_that_the_vectors_are_not_its_own(options, tmp_path, command):
    labels, index = tmp_path / "labels.jsonl", str(tmp_path / "builtin.sqlite")
    label = {"query": "router", "relevant": [{"path": "MEMORY.md", "line": 1, "grade": 2}]}
    labels.write_text(json.dumps(label) + "\n")
    where = ["--workspace", str(options.workspace), "--index", index, "--provider", "builtin"]
    for profile, says in (("openclaw-2026.3", True), ("recommended", False)):
        asks = [["search", "router"], ["search", "router", "--json"], ["why", "router", "MEMORY.md:1", "--json"]]
        for words in (*asks, ["status"], ["eval", "--labels", str(labels)]):
            code, out, err = command(*where, "--profile", profile, *words)
            assert (code, NOT_THEIRS in " ".join((out + err).split())) == (0, says), (profile, words)
        changes = (("profile", profile),)
        with Engine.open(replace(options, provider="builtin", index=index, changes=changes)) as engine:
            assert (NOT_THEIRS in json.dumps(memory_search(engine, {"query": "router"}).answer)) == says
