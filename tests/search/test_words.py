"""What full-text search gives a question: chunks with their bm25, weighed by Lucene's idf."""

import math
import random

import pytest

from memory_tui.search.corpus import Corpus
from memory_tui.search.keyword import Matcher
from tests.support.stores import Made, cut_note, vectors_for

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
    with made.reader() as store, store.snapshot():
        corpus = Corpus.load(store)
        common = 0
        for _ in range(60):
            question = " ".join(rng.choices([*WORDS, "absent"], k=rng.randint(1, 5)))
            matcher = Matcher(store.words, corpus, None, store.words.cut())
            side = matcher.recommended(question, None)
            plan = side.plan
            common += bool(plan.counted)
            expected: dict[int, float] = {}
            for number, word in enumerate((*plan.words, *plan.counted)):
                holding, chunks = store.words.frequency([word], "stemmed")[0], store.words.size("stemmed")
                by_fts5 = max(math.log((chunks - holding + 0.5) / (holding + 0.5)), 1e-6)
                by_lucene = math.log(1 + (chunks - holding + 0.5) / (holding + 0.5))
                found = store.words.match([word], "stemmed", "any")
                for rowid, bm25 in zip(found.rowids.tolist(), found.bm25.tolist(), strict=True):
                    row = int(corpus.rows_of([rowid])[0])
                    if row >= 0 and (row in expected or number < len(plan.words)):
                        expected[row] = expected.get(row, 0.0) + bm25 / by_fts5 * by_lucene
            assert dict(zip(side.postings.rows.tolist(), side.postings.bm25.tolist(), strict=True)) == (
                pytest.approx(expected)
            ), question
        assert common, "no question had a word of most chunks"
