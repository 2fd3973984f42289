"""The notebook keeps what is marked, in a file that other tools can read; metrics over it are worked by hand."""

import json
import random

import pytest

from memory_tui import plan as plans
from memory_tui import tune
from memory_tui.errors import LabelError, Unreadable
from memory_tui.plan import Options
from memory_tui.search.trace import ChunkRef
from memory_tui.tune import ANSWERS, HELPS, WRONG, Label, Notebook, Query, gain, mean, measure
from memory_tui.workspace.notes import Document

CHUNK = ChunkRef(1, "id", "memory/a.md", "memory", 3, 9)


def test_marking_keeps_the_question_and_replaces_an_older_mark():
    notes = Notebook().put(Query("router?").mark(Label("MEMORY.md", 3, HELPS)))
    notes = notes.put(notes.find(" router? ").mark(Label("MEMORY.md", 3, WRONG)))
    assert notes == Notebook((Query("router?", (Label("MEMORY.md", 3, WRONG),)),))
    assert not notes.queries[0].judged, "only what is wrong is known"
    again = notes.put(notes.queries[0].mark(Label("memory/a.md", 9, ANSWERS)))
    assert again.judged[0].relevant == (Label("memory/a.md", 9, ANSWERS),)
    assert again.without("router?") == Notebook()
    assert again.queries[0].unmark("memory/a.md", 9).relevant == ()


def test_a_chunk_has_the_best_grade_of_its_lines():
    marks = ((2, ANSWERS), (3, WRONG), (9, HELPS))
    query = Query("q", tuple(Label("memory/a.md", line, grade) for line, grade in marks))
    assert query.grade(CHUNK) == HELPS
    assert Query("q", (Label("memory/a.md", 4, WRONG),)).grade(CHUNK) == WRONG
    assert Query("q", (Label("memory/b.md", 4, WRONG),)).grade(CHUNK) is None


def test_the_file_is_one_question_a_line_and_keeps_what_it_does_not_know(tmp_path):
    path = tmp_path / "labels" / "x.jsonl"
    line = '{"id": "q1", "query": "vlan?", "relevant": [{"path": "a.md", "line": 2}], "colour": "red"}'
    notes = tune.parse(line)
    notes = notes.put(Query("会议?", (Label("memory/a b.md", 3, WRONG), Label("x%20y.md", 1, 3, "garlic"))))
    notes = notes.put(Query("nothing?", unanswerable=True))
    notes = notes.put(Query("second").mark(Label("b.md", 1)))
    tune.save(path, notes)
    rows = [json.loads(row) for row in path.read_text("utf-8").splitlines()]
    assert [row["query"] for row in rows] == ["vlan?", "会议?", "nothing?", "second"]
    assert rows[0]["colour"] == "red"
    assert rows[0]["relevant"] == [{"path": "a.md", "line": 2, "grade": 1}]
    assert tune.load(path) == notes
    assert list(path.parent.iterdir()) == [path], "nothing is left behind"


def test_other_files_of_labels_are_read():
    notes = tune.parse(
        '{"question": "q1", "evidence": [{"path": "a.md", "line": 2}]}\n\n'
        '{"query": "q2", "path": "a.md", "line": 3, "grade": 2}\n'
        '{"query": "q2", "path": "b.md", "line": 1, "grade": 0}\n'
    )
    assert [len(query.labels) for query in notes.queries] == [1, 2]
    assert notes.queries[1].labels[0] == Label("a.md", 3, 2)


def test_a_missing_file_is_an_empty_notebook_and_a_broken_one_says_where(tmp_path):
    assert tune.load(tmp_path / "none.jsonl") == Notebook()
    for bad in (
        '{"query": "a"}\n{broken',
        '\n{"relevant": []}',
        '\n{"query": "b", "path": "x", "line": 0}',
        '{"query": "a"}\n{"query": "b", "relevant": [{"path": "x"}]}',
        '{"query": "a"}\n[2]',
    ):
        with pytest.raises(LabelError, match=r"line 2, is no labelled query\.$"):
            tune.parse(bad)


def test_workspaces_have_notebooks_of_their_own(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert tune.notebook_path(tmp_path / "a") == tune.notebook_path(tmp_path / "link")
    assert tune.notebook_path(tmp_path / "a") != tune.notebook_path(tmp_path / "b")
    assert tune.notebook_path(tmp_path / "a").parent.name == "labels"


def test_a_notebook_lies_beside_the_configuration_that_was_named_unless_it_is_in_the_usual_place(tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "own_path", lambda: tmp_path / "user" / "config.json")
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    config = tmp_path / "demo" / "config.json"
    config.parent.mkdir()
    config.write_text("{}\n", "utf-8")
    plan = plans.plan(Options(workspace=str(tmp_path / "notes"), config=str(config)))
    assert plan.own_named == config
    assert tune.notebook_path(plan.workspace, plan.own_named).parent == tmp_path / "demo" / "labels"
    usual = tune.notebook_path(plan.workspace, plans.plan(Options(workspace=str(tmp_path / "notes"))).own_named)
    assert usual.parent == tmp_path / "user" / "labels"
    tune.save(usual, Notebook())
    assert tune.notebook_path(plan.workspace, plan.own_named) == usual


def test_a_label_follows_its_line():
    rows = (Label("a.md", 2, 1, "garlic"), Label("a.md", 9, 1, "gone"), Label("b.md", 1, 1, "x"), Label("a.md", 7))
    query = Query("q", rows)

    def read(path):
        if path == "b.md":
            raise Unreadable("It is gone.", "")
        return Document(path, "new\nnew\nnew\nplanted garlic\n\ngarlic again", "", 0, 0, 0, 0)

    assert [label.line for label in tune.settled(Notebook((query,)), read).queries[0].labels] == [4, 9, 1, 7]


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def hit(path, start, end):
    return ChunkRef(0, "", path, "memory", start, end)


A, B, C = hit("a.md", 1, 9), hit("b.md", 1, 9), hit("c.md", 1, 9)


def test_by_hand():
    query = Query("q", (Label("a.md", 3), Label("b.md", 3), Label("b.md", 4), Label("c.md", 1, 0)))
    found = measure(query, [C, A, B])
    assert found["recall@1"] == 0
    assert found["recall@3"] == found["recall"] == 1
    assert found["mrr@10"] == 0.5
    gained = 1 / 1.584962500721156 + 2 / 2
    assert found["ndcg@10"] == pytest.approx(gained / (1 + 1 / 1.584962500721156 + 1 / 2))
    assert (found["noise"], found["wrong"]) == (1, 1)


def test_grades_count_and_novelty_is_what_counts():
    query = Query("q", (Label("a.md", 3, 2), Label("b.md", 3, 1)))
    best, worse = measure(query, [A, B]), measure(query, [B, A])
    assert best["ndcg@10"] == 1
    assert worse["ndcg@10"] < 1
    assert measure(query, [A, hit("a.md", 2, 5), B])["ndcg@10"] < 1, "the same line twice is no news"


def test_a_question_that_the_notes_cannot_answer_wants_an_empty_answer():
    query = Query("q", unanswerable=True)
    assert measure(query, [])["ndcg@10"] == 1
    assert measure(query, [])["noise"] == 0
    assert measure(query, [A, B])["recall"] == 0
    assert measure(query, [A, B])["noise"] == 2


def test_the_numbers_are_those_of_the_scorer(judge):
    rng = random.Random(3)
    compared = 0
    for asked in judge.load_queries("en"):
        evidence = [*asked["evidence"], {"path": asked["evidence"][0]["path"], "line": rng.randint(1, 30)}]
        starts = rng.choices(range(1, 25), k=rng.randint(0, 25))
        answers = [hit(rng.choice(evidence)["path"], start, start + rng.randint(0, 12)) for start in starts]
        answers += [hit("memory/other.md", 1, 9)] * rng.randint(0, 4)
        rng.shuffle(answers)
        hits = [{"path": ref.path, "startLine": ref.start_line, "endLine": ref.end_line} for ref in answers]
        theirs = judge.judge("en", {**asked, "evidence": evidence}, hits, 700)
        query = Query(asked["question"], tuple(Label(e["path"], e["line"]) for e in evidence))
        ours = measure(Query(query.text, tuple(dict.fromkeys(query.labels))), answers)
        for name in ("recall@1", "recall@6", "recall@10", "recall@20", "mrr@10", "ndcg@10"):
            assert ours[name] == pytest.approx(theirs[name], abs=1e-12), (asked["id"], name)
            compared += ours[name] > 0
    assert compared > 100


def test_the_mean_is_over_questions():
    one, two = measure(Query("q", (Label("a.md", 1),)), [A]), measure(Query("q", (Label("a.md", 1),)), [B])
    assert mean([one, two])["recall"] == 0.5
    assert measure(Query("q", (Label("a.md", 1),)), []) == dict.fromkeys(tune.NAMES, 0.0), "an empty answer"
    assert mean([]) == {}


def test_the_interval_of_a_gain():
    rng = random.Random(1)
    noise = [rng.random() for _ in range(60)]
    same = gain(noise, rng.sample(noise, 60))
    assert same.low < 0 < same.high
    better = gain(noise, [value + 0.2 + rng.random() / 10 for value in noise])
    assert 0.2 < better.low < better.mean < better.high < 0.3
    assert gain(noise, noise) == tune.Gain(0.0, 0.0, 0.0)
    json.dumps(better.mean)
