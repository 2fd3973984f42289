"""Of every chunk: its verdict is that of a fresh search, each change that is named turns it; no claim is untrue."""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from memory_tui.config.settings import BY_KEY, Scalar, Settings
from memory_tui.explain import hit_text, trace_json, wording
from memory_tui.explain.counterfactuals import FLOOR, RESULTS, TEXT, WEIGHT, flips
from memory_tui.mcp.tools import memory_search
from memory_tui.search.rank import Trace
from memory_tui.search.trace import Candidate
from tests.explain.test_shares import check as check_sum
from tests.harness.claims import DECAY, MMR, NOW, STILL, Case, World, adversarial, check_claim, open_world, run
from tests.support.local_model import hashed
from tests.support.workspace import options_of, put_all, synced

__all__ = ["hashed"]
QUESTIONS = ("ticket7 of omada", "我想看《出租车司机》", "memory/long.md")
WORLDS = [("recommended", provider) for provider in ("builtin", "none", "local-small")]
WORLDS += [("openclaw-2026.9", "builtin"), ("openclaw-2026.3", "none")]
"""Profiles and providers: each rule of ranking, by words and vectors and by words alone."""
MULTIPLIER, LAMBDA = "query.hybrid.candidateMultiplier", "query.hybrid.mmr.lambda"
TIGHT: Mapping[str, Scalar] = {RESULTS: 3, FLOOR: 0.3, MULTIPLIER: 2, DECAY: True, MMR: True, LAMBDA: 0.3}
"""Knobs under which every gate closes for somebody."""
WIDEST: Mapping[str, Scalar] = {key: type(BY_KEY[key].default)(BY_KEY[key].high) for key in (RESULTS, MULTIPLIER)}


@dataclass
class Asked:
    """One question under one set of knobs; a fresh search is made once for each set of changes."""

    world: World
    query: str
    base: Settings
    answers: dict[tuple[tuple[str, Scalar], ...], tuple[Trace, dict[int, Candidate]]] = field(default_factory=dict)

    def fresh(self, changes=None):
        """Ask anew under `changes`: the answer, and all its candidates by rowid."""
        changes, engine = changes or {}, self.world.engine
        if (key := tuple(sorted(changes.items()))) not in self.answers:
            profile = changes.get("profile")
            settings = engine.plan.with_profile(str(profile)) if profile else self.base.update(changes, "test")
            answer = engine.search.search(self.query, settings)
            self.answers[key] = answer, {one.chunk.rowid: one for one in (*answer.recalled, *answer.lost)}
        return self.answers[key]

    def hits(self, changes=None):
        """Return the places of those that a fresh search under `changes` recalls, by rowid."""
        return {hit.chunk.rowid: at for at, hit in enumerate(self.fresh(changes)[0].recalled, 1)}


def check_candidate(account, asked):
    """The verdict on a candidate, by the scores and the hits of fresh searches."""
    (answer, every), rowid, fate = asked.fresh(), account.chunk.rowid, account.fate
    own, rules, lowest = every[rowid], answer.rules.profile, asked.base.number(FLOOR)
    enough = any(one.score >= lowest for one in every.values())
    assert (account.proposed, account.candidate and account.candidate.score) == (True, own.score)
    assert asked.hits().get(rowid) == (fate.fields["place"] if fate.kind == "recalled" else None)
    told = fate.fields
    match fate.kind:
        case "recalled":
            assert (own.score < lowest) == ((told["relaxed"] and not enough) or told["rescued"])
            assert told["kept_back"] == (answer.level is not None and answer.level.level == "nothing holds these words")
        case "below_min_score" | "lowered_by_decay":
            floor = told["floor"]
            assert told["margin"] == floor - own.score > 0
            assert (floor < lowest and not enough) if told["relaxed"] else floor == lowest
            by_age = own.age_factor < 1 and own.score / own.age_factor >= floor
            assert (fate.kind == "lowered_by_decay") == by_age
            assert not by_age or DECAY in rules.fixed or asked.fresh({DECAY: False})[1][rowid].score >= floor
        case "beyond_limit" | "displaced_by_mmr":
            assert told["place"] > asked.base.whole(RESULTS) == told["limit"] == len(answer.recalled)
            assert own.score >= lowest or not enough or rules.rescues
            assert fate.kind == "beyond_limit" or MMR in rules.fixed or rowid in asked.hits({MMR: False})
        case _:
            pytest.fail(f"{fate} of a candidate")


def check_outsider(account, answer, row, asked):
    """The gate of the pools that stopped a chunk, by its text, the raw findings and the widest pools."""
    fresh, fate = asked.fresh()[0], account.fate
    assert not account.proposed
    check_claim(fate, Case(asked.world, answer.trace.evidence, asked.base, fresh, row))
    outside = [one for one in (fate, fate.fields.get("text")) if one and one.kind.startswith("outside_")]
    for gate in outside:
        by_one_word = answer.trace.evidence.keywords is not None and gate.kind == "outside_text_pool"
        pool = asked.base.whole(RESULTS) * asked.base.whole(MULTIPLIER) if by_one_word else 0
        assert gate.fields["pool"] == (pool or fresh.funnel[gate.kind.removeprefix("outside_")])
    assert (account.chunk.rowid in asked.fresh(WIDEST)[1]) == bool(outside)


def check_chunks(asked, step=1):
    """Check every chunk, or some of them, with the sum of its score; gives the kinds of the verdicts."""
    search, (fresh, every) = asked.world.engine.search, asked.fresh()
    places = sorted(one.verdict.fields["place"] for one in every.values() if "place" in one.verdict.fields)
    assert places == list(range(1, fresh.funnel["over_gate"] + 1))
    evidence = search.gather(asked.query)
    for row in range(0, len(evidence.refs), step):
        ref = evidence.refs[row]
        answer = search.why(evidence, ref.path, ref.start_line, asked.base)
        accounts = [one for one in (answer.best, *answer.others) if one is not None]
        account = next(one for one in accounts if one.chunk.rowid == ref.rowid)
        assert answer.recalled == any(one.chunk.rowid in asked.hits() for one in accounts)
        if ref.rowid in every:
            check_candidate(account, asked)
            check_sum(every[ref.rowid], fresh)
        else:
            check_outsider(account, answer, row, asked)
        yield account.fate.kind


def changes_of(turns):
    changes = {one.key: one.value for one in turns}
    return changes | ({TEXT: round(1 - float(changes[WEIGHT]), 6)} if WEIGHT in changes else {})


def check_flips(rowid, answer, asked):
    """Check that every change turns the verdict of a fresh search as it says, and needs each of its turns."""
    now = asked.hits()
    assert answer.recalled == (rowid in now)
    for change in (*answer.singles, *answer.sets):
        after = asked.hits(changes_of([*change.turns]))
        assert (rowid in after) != answer.recalled, change
        assert (change.place, change.changes) == (after.get(rowid), changes_of([*change.turns]))
        assert {ref.rowid for ref in change.comes_in} == after.keys() - now.keys() - {rowid}
        assert {ref.rowid for ref in change.drops_out} == now.keys() - after.keys() - {rowid}
        for turn in change.turns:
            rest = changes_of([one for one in change.turns if one is not turn])
            assert (rowid in asked.hits(rest)) == answer.recalled, (change, turn)
        yield "a set" if len(change.turns) > 1 else change.turns[0].key


@pytest.fixture(params=WORLDS, ids="-".join)
def world(request, tmp_path, hashed):
    """Notes of odd kinds under one profile, by words and vectors or by words alone."""
    adversarial(folder := tmp_path / "notes")
    opened = open_world("adversarial", folder, tmp_path / "i.sqlite", *request.param, list(QUESTIONS))
    yield opened
    opened.engine.close()


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_all_that_is_said_of_every_chunk_is_true(world, every):
    """The changes of a chunk are tried for one of the questions, or for all of them."""
    kinds, changed, plan = Counter[str](), Counter[str](), world.engine.plan
    for number, query in enumerate(QUESTIONS):
        kinds.update(check_chunks(Asked(world, query, plan.settings.update(TIGHT, "test"))))
        kinds.update(check_chunks(asked := Asked(world, query, plan.settings)))
        evidence = world.engine.search.gather(query)
        for row in range(number % every, len(evidence.refs), every):
            answer = flips(evidence, plan.settings, row, plan.with_profile)
            changed.update(check_flips(evidence.refs[row].rowid, answer, asked))
    assert kinds["recalled"]
    assert len(kinds) >= 2
    assert len(changed) >= 2


@pytest.fixture
def small(tmp_path):
    questions = adversarial(tmp_path / "notes")
    with ExitStack() as engines:

        def opened(profile, provider):
            index = tmp_path / f"{profile}.{provider}.sqlite"
            world = open_world("adversarial", tmp_path / "notes", index, profile, provider, questions)
            engines.enter_context(world.engine)
            return world

        yield opened


@pytest.mark.parametrize(
    ("profile", "provider"),
    [
        ("openclaw-2026.3", "none"),
        ("openclaw-2026.3", "builtin"),
        ("recommended", "builtin"),
        ("openclaw-2026.9", "none"),
    ],
)
def test_nothing_untrue_is_said_of_odd_notes(small, profile, provider):
    counts = run(small(profile, provider))
    assert sum(counts.values()) > 50
    assert len(counts) >= 2


def test_json_carries_the_claims_with_their_evidence(small):
    engine = small("openclaw-2026.3", "none").engine
    assert trace_json.answer(engine.search.search("密码"))["empty"] == {
        "kind": "nothing_matched",
        "missing": ["密码"],
        "join": "OR",
        "sentence": 'The word "密码" was found in no indexed note.',
        "nextStep": "Try other words, or try the profile recommended.",
    }
    evidence = engine.search.gather("did anna move 42")
    said = trace_json.why(engine.search.why(evidence, "MEMORY.md", 1))["claims"]
    assert "words_left_out" in {claim["kind"] for claim in said}


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def opened(notes, tmp_path):
    with ExitStack() as engines:

        def made(profile, provider="none"):
            index, changes = tmp_path / f"{profile}.{provider}.sqlite", (("profile", profile), *STILL)
            return engines.enter_context(synced(options_of(notes, index, *changes, provider=provider, now=NOW)))

        yield made


def test_a_word_that_was_left_out_says_why(notes, opened):
    for day in range(1, 11):
        (notes / "memory" / f"2026-11-{day:02}.md").write_text(f"anna and the router, ticket{day}\n")
    trace = opened("recommended", "builtin").search.search("did anna change the router for ticket3")
    text = "anna and the router, ticket3\n"
    said = wording.terms_line(text, trace).detail
    assert "anna, router (in over half of the chunks: counted with others)" in said
    assert "(stop words)" in said
    theirs = opened("openclaw-2026.3").search.search("did anna change 42 of it")
    said = wording.terms_line(text, theirs).detail
    assert "42 (numbers alone)" in said
    assert "of, it (too short)" in said


@pytest.fixture
def diary(notes):
    """Logs of three days, of which no line says a word of what is asked."""
    logs = {f"memory/2026-11-{day}.md": f"- The plumber mended tap number {day}.\n" for day in (16, 17, 19)}
    return put_all(notes, {"MEMORY.md": "The router is an Omada ER605.\n", **logs})


def test_an_agent_gets_the_notes_of_the_day_that_it_asks_for(diary, opened):
    """Its words stand in no note, but the day is that of a note: that is not nothing."""
    del diary
    engine = opened("recommended", "builtin")
    for question in ("what happened yesterday", "yesterday"):
        found = engine.search.search(question)
        assert found.recalled[0].chunk.path == "memory/2026-11-19.md"
        assert found.level.level == "nearby only"
        answer = memory_search(engine, {"query": question}).answer
        assert answer["results"][0]["path"] == "memory/2026-11-19.md"
    unrelated = engine.search.search("what happened on 2026-11-02")
    assert unrelated.level.level == "nothing holds these words", "no note is of that day"


def test_no_hit_is_said_to_be_recalled_that_an_agent_does_not_get(diary, opened):
    del diary
    engine = opened("recommended", "builtin")
    question = "what happened on 2026-11-02"
    first = engine.search.search(question).recalled[0]
    assert memory_search(engine, {"query": question}).answer["results"] == []
    answer = engine.search.why(engine.search.gather(question), first.chunk.path, first.chunk.start_line)
    said = [*hit_text.answer(answer), *(line.detail for line in wording.explain(first, answer.trace))]
    assert wording.label(answer.fate) == "NEAREST 1st, kept back"
    assert not [line for line in said if "recalled" in line.lower()]
    assert answer.trace.keeps_back
