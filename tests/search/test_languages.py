"""Questions in another language than the notes, and the words of an index."""

import json
import math
import random
from collections import Counter

import pytest

from memory_tui import tokens
from memory_tui.search.corpus import Corpus
from memory_tui.search.keyword import Matcher
from memory_tui.search.question import ParsedQuery
from tests.support.provider_server import Play, serving, shaped, vector
from tests.support.stores import Made, cut_note, vectors_for
from tests.support.workspace import options_in, put_all, synced

MEANINGS = {"香蕉": "banana", "バナナ": "banana", "банан": "banana", "plátano": "banana", "печь": "bake"}
NOTES = {"kitchen": "banana bread needs three ripe ones\n", "network": "the router runs vlan ten\n"}
PROFILES = ("recommended", "openclaw-2026.3", "openclaw-2026.9")


def translating(handler, asked):
    """Answers as a multilingual model: a word has the vector of its meaning, whatever the language."""
    meant = [" ".join(MEANINGS.get(word, word) for word in text.split()) for text in asked.texts]
    handler.json(200, shaped(asked, [vector(text, handler.play.dims) for text in meant]))


@pytest.fixture
def play():
    with serving(Play(usual=translating)) as running:
        yield running


def asked(tmp_path, query, provider, profile, play=None):
    put_all(tmp_path / "notes/memory", {f"{name}.md": text for name, text in NOTES.items()})
    search = {"provider": provider, **({"remote": {"baseUrl": play.url, "apiKey": "a-key-of-a-test"}} if play else {})}
    config = tmp_path / "openclaw.json"
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": search}}}))
    with synced(options_in(tmp_path, f"profile={profile}", "minScore=0.1", config=str(config))) as engine:
        return engine.search.search(query)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("query", ["香蕉", "バナナ", "банан", "plátano"])
def test_a_multilingual_provider_finds_the_note(tmp_path, play, query, profile):
    trace = asked(tmp_path, query, "openai", profile, play)
    (found,) = [hit for hit in trace.recalled if hit.chunk.path == "memory/kitchen.md"]
    assert found.vector_rank == 1
    assert found.cosine > 0.3
    assert "translation" not in {notice.code for notice in trace.notices}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_built_in_vectors_say_that_they_cannot(tmp_path, profile):
    trace = asked(tmp_path, "香蕉 bread", "builtin", profile)
    (said,) = [notice for notice in trace.notices if notice.code == "translation"]
    assert said.message.startswith("No note holds 香蕉, and the built-in vectors do not translate")
    assert "multilingual provider" in said.next_step
    assert not [one for one in asked(tmp_path, "banana", "builtin", profile).notices if one.code == "translation"]


def test_nothing_is_said_of_a_word_that_a_note_holds(tmp_path):
    put_all(tmp_path, {"notes/memory/fruit.md": "今天买了香蕉和苹果\n"})
    for query in ("香蕉", "香蕉 和"):
        assert "translation" not in {notice.code for notice in asked(tmp_path, query, "builtin", "recommended").notices}


def test_function_words_of_a_language_that_few_notes_are_in_are_left_out() -> None:
    held = {"wann": 1, "ist": 4, "der": 8, "termin": 2, "beim": 1, "zahnarzt": 1}
    terms = tokens.terms(tokens.split("Wann ist der Termin beim Zahnarzt?"), held, 200)
    assert terms.searched == ("termin", "beim", "zahnarzt")
    assert terms.stops == ("wann", "ist", "der")
    polish = tokens.terms(tokens.split("Kiedy jest wizyta u dentysty?"), Counter({"jest": 2, "wizyta": 1}), 200)
    assert polish.stops == ("kiedy", "jest")


def test_verbs_that_say_nothing_are_left_out_however_few_notes_hold_them() -> None:
    for query in ("Wann wird der Kessel gewartet", "Quand est le rendez-vous", "Когда был у нас мастер"):
        words = tokens.split(query)
        assert words[1] in tokens.terms(words, dict.fromkeys(words, 40) | {words[1]: 1}, 200).stops


BM25 = "SELECT rowid, bm25(chunks_words) FROM chunks_words WHERE chunks_words MATCH ?"
WORDS = ["a'b", "Ü", "rose", "roses", "garden", "gardens", "tomato", "snake_case", "咖啡店", "the", "of", "and", "oak"]


@pytest.fixture
def made(tmp_path):
    index = Made(tmp_path / "index.sqlite")
    yield index
    index.close()


def write(made, name, text):
    files = [cut_note(f"memory/{name}.md", text)]
    made.add(files, vectors_for(files))


def text(rng):
    lines = [" ".join(rng.choices(WORDS, range(1, len(WORDS) + 1), k=rng.randint(1, 9))) for _ in range(20)]
    return "\n".join(lines[: rng.randint(1, 20)])


def test_a_question_weighs_words_by_lucenes_idf(made):
    rng = random.Random(8)
    for at in range(40):
        write(made, f"n{at}", text(rng))
    made.remove([f"memory/n{at}.md" for at in range(0, 40, 9)])
    with made.reader() as store, store.snapshot():
        corpus = Corpus.load(store)
        common = 0
        for _ in range(60):
            question = " ".join(rng.choices([*WORDS, "absent"], k=rng.randint(1, 5)))
            query = ParsedQuery(question, question)
            side = Matcher(store.words, corpus, corpus.refs.rowids > 0, store.words.cut()).recommended(query)
            plan = side.plan
            common += bool(plan.counted)
            expected: dict[int, float] = {}
            for number, word in enumerate((*plan.words, *plan.counted)):
                holding, chunks = store.words.frequency([word])[0], len(corpus)
                by_fts5 = max(math.log((chunks - holding + 0.5) / (holding + 0.5)), 1e-6)
                by_lucene = math.log(1 + (chunks - holding + 0.5) / (holding + 0.5))
                for rowid, bm25 in store.query(BM25, (tokens.or_query([word]),)):
                    row = int(corpus.rows_of([rowid])[0])
                    if row >= 0 and (row in expected or number < len(plan.words)):
                        expected[row] = expected.get(row, 0.0) + bm25 / by_fts5 * by_lucene
            assert dict(zip(side.postings.rows.tolist(), side.postings.bm25.tolist(), strict=True)) == (
                pytest.approx(expected)
            ), question
        assert common, "no question had a word of most chunks"
