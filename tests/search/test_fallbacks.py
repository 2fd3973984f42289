"""What is left of meaning in languages that the table does not know, and with vectors of another model; trigrams."""

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.notices import language_label
from memory_tui.providers import builtin
from memory_tui.providers.base import Identity, fingerprint
from memory_tui.providers.builtin import Scripted
from tests.support.workspace import options_of

NOTES = {
    "MEMORY.md": "The router vlan is admin-70.\nThe printer stands in the cellar.\n",
    "memory/2026-11-02.md": "Printer paper ordered; 100% recycled, file_name.txt\n",
    "memory/garden.md": "Roses and tomatoes were watered on Sunday.\n",
    "memory/会議.md": "昨日の会議でデプロイ戦略を決めた。ルータの設定。\n",
}


@pytest.fixture
def place(tmp_path):
    for path, text in NOTES.items():
        note = tmp_path / "notes" / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(text)
    return tmp_path


def opened(place, provider="scripted", profile="openclaw-2026.3", index="index.sqlite", **changes):
    return Engine.open(
        options_of(
            place / "notes", place / index, ("profile", profile), ("minScore", "0"), *changes.items(), provider=provider
        )
    )


def asked(place, query, **options):
    with opened(place, **options) as engine:
        engine.index.sync()
        return engine.search.search(query)


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
    for hit in found.recalled:
        assert hit.vector_weight == pytest.approx(0.4 * said.fields["known"])
        assert hit.text_weight == pytest.approx(1 - 0.4 * said.fields["known"])


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
        shown = wording.explain(found.recalled[0], found)
        assert "does not know this language" in shown[0].detail
    assert theirs.mode == "hybrid", "a release counts the vector whatever the language"
    assert not any(notice.kind == "language_unknown" for notice in theirs.notices)


@pytest.mark.parametrize("dims", [256, 64])
def test_vectors_of_another_model_are_off_until_the_index_is_made_again(place, monkeypatch, dims):
    """Fault row 37: another model, of the same or of other dimensions."""
    with opened(place) as engine:
        engine.index.sync()
        before = engine.search.search("router vlan")
        assert before.mode == "hybrid"
    other = Identity("scripted", "other", fingerprint(provider="scripted", model="other"), dims)
    monkeypatch.setattr(Scripted, "identity", other)
    monkeypatch.setattr(Scripted, "known", other)
    real = builtin.hash_vector

    monkeypatch.setattr(builtin, "hash_vector", lambda text: real(text)[::-1])
    monkeypatch.setattr(builtin, "DIMS", dims)
    monkeypatch.setattr(builtin, "_axis", builtin._axis.__wrapped__)
    with opened(place, **{"sync.onSearch": "off"}) as engine:
        trace = engine.search.search("router vlan")
        assert trace.mode != "hybrid"
        assert "model_mismatch" in codes(trace)
        assert all(hit.cosine is None for hit in trace.recalled)
        assert engine.index.sync().rebuilt
        after = engine.search.search("router vlan")
        assert after.mode == "hybrid"
        assert codes(after) == set()


def test_words_too_short_for_trigrams_are_looked_for_in_the_text(place):
    trigram = {"store.fts.tokenizer": "trigram"}
    trace = asked(place, "会議", provider="none", **trigram)
    assert paths(trace) == ["memory/会議.md"]
    assert trace.plan.fts_query == 'text LIKE "%会議%"'
    assert trace.recalled[0].score == 1.0
    with opened(place, **trigram) as engine:  # one short and one long word, both needed
        engine.index.sync()
        found = engine.search.search("router is")
        assert found.plan.fts_query == '"router" AND text LIKE "%is%"'
        assert [found.chunks[at].path for at in found.pool("text_rank")] == ["MEMORY.md"]
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
