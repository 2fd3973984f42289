"""`memory-tui eval`: numbers on labelled questions, a gate for scripts, and the search for better knobs."""

import datetime as dt
import json
import random
from functools import partial
from pathlib import Path

import pytest
from msgspec import to_builtins

from memory_tui import demo, tune
from memory_tui.cli import ask
from memory_tui.engine.engine import Engine
from memory_tui.search.rank import rank
from memory_tui.tune import FEWEST, Better, Case, Label, NoEvidence, Query, better_settings, beyond_chance
from tests.support.search import evidence, settings
from tests.support.workspace import options_in

TODAY = dt.date(2026, 11, 20)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    out = tmp_path_factory.mktemp("eval")
    demo.materialize(out / "notes", TODAY)
    with (out / "labels.jsonl").open("w", encoding="utf-8") as file:
        for query in demo.labelled_queries(TODAY):
            labels = [to_builtins(label) for label in query.relevant]
            fields = {"id": query.id, "query": query.text, "unanswerable": query.unanswerable, "relevant": labels}
            file.write(json.dumps(fields) + "\n")
    return out


@pytest.fixture
def run(place, command):
    where = ["--workspace", str(place / "notes"), "--index", str(place / "index.sqlite")]
    return partial(command, *where, "--now", "2026-11-20T12:00:00Z")


def measured(run, place, *arguments):
    code, out, err = run("eval", "--labels", str(place / "labels.jsonl"), "--json", *arguments)
    assert all("ctrl+c stops" in line for line in err.splitlines()), "how far a slow machine is, and nothing else"
    return {**json.loads(out), "code": code}


@pytest.fixture
def usual(run, place):
    """What the sample measures without any choice, measured once: nothing changes the notes or the labels."""
    kept = place / "usual.json"
    if not kept.exists():
        kept.write_text(json.dumps(measured(run, place)), "utf-8")
    return json.loads(kept.read_text("utf-8"))


def test_the_numbers_are_those_of_real_searches(usual, place):
    found = usual
    assert found["code"] == 0
    assert set(found["metrics"]) == set(tune.NAMES)
    labels = tune.load(place / "labels.jsonl")
    now = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
    with Engine.open(options_in(place, now=now)) as engine:
        for row in found["queries"][:8]:
            query = labels.find(row["query"])
            hits = [c.chunk for c in rank(engine.search.gather(query.text), engine.plan.settings).recalled]
            assert row["hits"] == [ref.citation for ref in hits]
            assert row["metrics"] == pytest.approx(tune.measure(query, hits))
    mean = sum(row["metrics"]["recall"] for row in found["queries"]) / len(found["queries"])
    assert found["metrics"]["recall"] == pytest.approx(mean)
    assert found["questions"] == len(found["queries"]) > 15


def test_floors_and_ceilings(run, usual, place):
    found = usual["metrics"]
    limits = ("recall=0.999", "noise=0.1", f"wrong={found['wrong']}", f"mrr@10={found['mrr@10']}")
    missed = measured(run, place, *(word for limit in limits for word in ("--fail-under", limit)))
    assert missed["code"] == 3
    assert [item["metric"] for item in missed["failed"]] == ["recall", "noise"]
    assert run("eval", "--labels", str(place / "labels.jsonl"), "--fail-under", "beauty=1")[0] == 2
    assert run("eval", "--labels", str(place / "labels.jsonl"), "--fail-under", "recall=high")[0] == 2


def test_without_labels_there_is_a_sentence_and_no_number(run, tmp_path):
    code, out, err = run("eval")
    assert (code, out) == (2, "")
    assert "No query has a label" in err
    (tmp_path / "bad.jsonl").write_text("{")
    assert run("eval", "--labels", str(tmp_path / "bad.jsonl"))[0] == 2
    assert run("eval", "--labels", str(tmp_path / "none.jsonl"))[0] == 2


def test_the_notebook_of_the_workspace_is_the_default(run, usual, place):
    tune.save(tune.notebook_path(place / "notes"), tune.load(place / "labels.jsonl"))
    code, out, _ = run("eval", "--json")
    assert code == 0
    assert json.loads(out)["metrics"] == usual["metrics"]
    assert "without one answered as found" in run("eval")[1]


def test_tune_says_what_it_found_and_on_which_half(run, usual, place):
    labels = ("--labels", str(place / "labels.jsonl"), "--profile", "openclaw-2026.3")
    code, out, _ = run("eval", "--tune", *labels, "--json")
    found = json.loads(out)
    assert code == 0
    assert {"evidence", "reason", "changes", "heldOut", "sentence", "questions"} <= set(found)
    assert found["questions"] == usual["questions"]
    assert found["evidence"] == (found["heldOut"] is not None and found["heldOut"]["low"] > 0)


def test_tune_with_few_labels_claims_nothing(run, place, tmp_path):
    few = "".join((place / "labels.jsonl").read_text("utf-8").splitlines(keepends=True)[:5])
    (tmp_path / "few.jsonl").write_text(few, "utf-8")
    code, out, _ = run("eval", "--tune", "--labels", str(tmp_path / "few.jsonl"))
    assert code == 0
    assert out.startswith("No evidence: 5 queries")


def test_labels_of_notes_and_lines_that_are_not_there_are_named(run, tmp_path):
    labels = tmp_path / "labels.jsonl"
    rows = [{"path": path, "line": line} for path, line in (("MEMORY.md", 1), ("MEMORY.md", 999), ("gone.md", 1))]
    labels.write_text(json.dumps({"query": "omada", "relevant": rows}), "utf-8")
    code, out, _ = run("eval", "--labels", str(labels))
    said = "Labels of notes and lines that cannot be read count as not found: MEMORY.md:999, gone.md."
    assert (code, said in out) == (0, True)
    assert json.loads(run("eval", "--labels", str(labels), "--json")[1])["absent"] == ["MEMORY.md:999", "gone.md"]


def test_the_labels_of_the_sample_are_refused_until_their_dates_are_filled_in(run):
    code, _, err = run("eval", "--labels", str(Path(demo.__file__).with_name("queries.jsonl")))
    assert code == 2
    assert "The labels are a template: there is no note memory/{date-11}.md." in err


OPENCLAW = "openclaw-2026.3"
WEIGHT = "query.hybrid.vectorWeight"
CHUNKS = 24


def saturating(score):
    """The bm25 whose text score is `score` in OpenClaw."""
    return -score / (1 - score)


def planted(number):
    """The right chunk is good in both ways, and the wrong ones are best in one: neither weight alone finds it."""
    rng = random.Random(number)

    def near(value):
        return value + rng.uniform(-0.03, 0.03)

    right = rng.randrange(CHUNKS)
    by_meaning = [row % 2 == 0 for row in range(CHUNKS)]
    cosines = [near(0.5) if row == right else near(0.9 if by_meaning[row] else 0.05) for row in range(CHUNKS)]
    bm25 = {
        row: saturating(near(0.6)) if row == right else saturating(near(0.9))
        for row in range(CHUNKS)
        if row == right or not by_meaning[row]
    }
    query = Query(f"planted {number}", (Label(f"memory/{right}.md", 2),))
    return Case(query, evidence(cosines, bm25))


def accidental(seed):
    """Questions whose right chunk was drawn by lot."""
    rng = random.Random(seed)
    cases = []
    for number in range(50):
        cosines = [rng.uniform(0.1, 0.9) for _ in range(CHUNKS)]
        bm25 = {row: -rng.uniform(0.1, 9) for row in rng.sample(range(CHUNKS), 10)}
        query = Query(f"{seed} {number}", (Label(f"memory/{rng.randrange(CHUNKS)}.md", 2),))
        cases.append(Case(query, evidence(cosines, bm25)))
    return cases


@pytest.mark.parametrize("weight", [0.95, 0.05])
def test_a_planted_optimum_is_found(weight):
    now = settings(OPENCLAW, vectorWeight=weight, textWeight=1 - weight, maxResults=3, candidateMultiplier=20)
    found = better_settings([planted(number) for number in range(40)], now)
    assert isinstance(found, Better)
    assert 0.36 < found.changes[WEIGHT] < 0.62
    assert found.held_out.low > 0.3
    assert found.after["ndcg@10"] > found.before["ndcg@10"] + 0.4
    assert found.after["ndcg@10"] > 0.9
    assert set(found.changes) <= {WEIGHT, "query.hybrid.textWeight"}, "no knob is turned that does not earn it"


def test_random_labels_give_no_evidence():
    """Not even where a lower minScore finds more of anything; nor does what may be chance name no gain."""
    for seed in range(2):
        outcome = better_settings(accidental(seed), settings("openclaw-2026.2", minScore=0.7), seed=seed)
        assert isinstance(outcome, NoEvidence)
        assert outcome.reason in ("within chance", "nothing better")
        assert "this needs" not in ask.verdict(outcome)


def test_neither_more_hits_nor_fewer_are_a_gain_beyond_chance():
    cases = accidental(1)
    narrow = settings("openclaw-2026.2", minScore=0.8, vectorWeight=1, textWeight=0)
    wide = narrow.set("query.minScore", 0.0, "test")
    few, many = (
        tune.mean([tune.measure(case.query, case.hits(one)) for case in cases])["recall"] for one in (narrow, wide)
    )
    assert many > few + 0.05, "by itself it looks like a gain"
    more = beyond_chance(cases, narrow, wide, "recall", 1)
    assert more.low < 0 < more.high
    assert beyond_chance(cases, wide, narrow, "recall", 1).mean <= few - many + 1e-9 < 0


def test_few_labels_give_no_evidence_however_good():
    now = settings(OPENCLAW, vectorWeight=0.95, textWeight=0.05, maxResults=3)
    found = better_settings([planted(number) for number in range(FEWEST - 1)], now)
    assert found == NoEvidence("few labels", FEWEST - 1)
