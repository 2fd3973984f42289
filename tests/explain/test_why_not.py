"""Why not: for every chunk and every gate, the verdict is what really happened; and what a list says of a hit."""

import datetime as dt
import json
import os
import time

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json, why_not
from memory_tui.explain.hit_text import body_of, date_name
from memory_tui.explain.why_not import LISTED, Inquest
from memory_tui.explain.wording import MatchedWords
from memory_tui.formatting import age_words
from memory_tui.index.sync import FileState
from memory_tui.mcp.tools import memory_search
from memory_tui.plan import Options
from memory_tui.search.rank import rank
from memory_tui.search.trace import QueryPlan
from memory_tui.sentences import notice, why_empty
from memory_tui.workspace.notes import title_of
from tests.harness.claims import STILL, adversarial, open_world
from tests.support.provider_server import Play, serving
from tests.support.search import evidence as made
from tests.support.search import settings as chosen
from tests.support.workspace import FACTS, options_in, options_of, put, put_all, synced

OPENCLAW = "openclaw-2026.3"


@pytest.fixture(scope="module", params=["builtin", "none"])
def world(request, tmp_path_factory):
    """Notes of odd kinds, by words and vectors or by words alone."""
    out = tmp_path_factory.mktemp("whynot")
    adversarial(out / "notes")
    questions = ["router", "anna router", "ticket7 of omada", "路由器 密码是什么"]
    opened = open_world("adversarial", out / "notes", out / "i.sqlite", "recommended", request.param, questions)
    yield opened
    opened.engine.close()


def test_numbers_of_a_chunk_outside_the_pools_are_those_it_has_as_a_candidate(world):
    """Where the profile computes both sides for every candidate, a wider pool must give the very same numbers."""
    compared = 0
    base = world.engine.plan.with_profile(OPENCLAW)
    pools = ({"query.maxResults": 2, "query.hybrid.candidateMultiplier": 2}, {"query.maxResults": 50})
    narrow, wide = (base.update(pool, "test") for pool in pools)
    for query in world.questions:
        evidence = world.engine.search.gather(query)
        inquest, wider = Inquest(evidence, narrow, {}), rank(evidence, wide)
        for real in (*wider.recalled, *wider.lost):
            row = why_not.row_of(evidence, real.chunk.rowid)
            assert row is not None
            account = inquest.account(row, world.texts[real.chunk.rowid])
            supposed = account.candidate
            if account.proposed or supposed is None:
                continue
            assert (supposed.cosine, supposed.bm25) == (real.cosine, real.bm25)
            if real.vector_rank and (real.text_rank or real.bm25 is None):
                assert (supposed.hybrid, supposed.score) == (real.hybrid, real.score)
                assert supposed.vector_rank == real.vector_rank
                compared += 1
    assert compared or world.engine.plan.provider == "none"


@pytest.mark.parametrize(
    ("cosines", "lost", "kind", "said"),
    [
        ([0.9, float("nan")], (), "no_vector", "it lacks"),
        (None, (notice("other_model", made_with="model X", asked_with="Y"),), "model_mismatch", "made with model X"),
        (None, (notice("meaning_off", cause="Timed out.", remedy=""),), "no_vector", "Timed out"),
    ],
    ids=["not embedded", "another model", "a provider that failed"],
)
def test_a_chunk_without_a_vector(cosines, lost, kind, said):
    found = replace(made(cosines, {0: -1.0}, texts=["word", "other"]), notices=lost)
    if cosines is not None:
        found = replace(found, nearest=np.array([0]))
    inquest = Inquest(found, chosen(OPENCLAW), {})
    assert inquest.account(0, "word").fate.kind == "recalled"
    fate = inquest.account(1, "other").fate
    assert (fate.kind, fate.fields["text"].kind) == (kind, "not_matched")
    assert said in fate.message


@pytest.fixture
def notes(tmp_path):
    """A workspace, and a function that tells the fate of a line in it for the question "router"."""
    texts = {"MEMORY.md": FACTS["MEMORY.md"], "memory/2026-11-18.md": "Moved the printer\n\nPlanted garlic\n"}
    folder, long_ago = put_all(tmp_path / "notes", texts), time.time() - 3600
    for path in folder.rglob("*.md"):
        os.utime(path, (long_ago, long_ago))
    with synced(options_in(tmp_path, "sync.onSearch=off", f"profile={OPENCLAW}", provider="scripted")) as engine:
        yield folder, lambda path, line=None: engine.search.why(engine.search.gather("router"), path, line).fate


def test_file_gates_in_their_order(notes):
    folder, fate = notes
    (folder / "memory" / "link.md").symlink_to(folder / "MEMORY.md")
    (folder / "memory" / "picture.png").write_bytes(b"x")
    (folder / "memory" / "new.md").write_text("router\n")
    (folder.parent / "elsewhere.md").write_text("router\n")
    with (folder / "memory" / "big.md").open("wb") as big:
        big.truncate(33 * 1024 * 1024)
    assert fate("MEMORY.md", 2).kind == "recalled"
    for path, kind, rule in (
        ("/etc/hostname", "outside_roots", ""),
        ("../elsewhere.md", "outside_roots", ""),
        ("memory/link.md", "excluded", "symlink"),
        ("memory/picture.png", "excluded", ""),
        ("memory", "excluded", ""),
        ("memory/nothing.md", "no_such_file", ""),
        ("memory/big.md", "unreadable_file", "too big"),
    ):
        verdict = fate(path)
        assert verdict.kind == kind, path
        assert not rule or verdict.fields["rule"] == rule
        assert verdict.message.endswith(".")
    assert fate("memory/new.md", 1) == notice("changed_since_indexed", change="new")
    assert fate("MEMORY.md", 9) == notice("in_no_chunk", line=9, lines=2)


def test_a_changed_note_is_judged_by_the_line(notes):
    folder, fate = notes
    (folder / "MEMORY.md").write_text("# News\n# Facts\n- Router: Omada ER605\n- Switch: none\n")
    assert fate("MEMORY.md", 4) == notice("changed_since_indexed", change="changed"), "this line is in no indexed chunk"
    assert fate("MEMORY.md", 3).kind == "recalled", "this one moved, and the agent is still given it"
    (folder / "MEMORY.md").unlink()
    assert fate("MEMORY.md", 2).kind == "recalled", "the index has not forgotten it yet"


def test_a_long_note_is_explained_by_its_best_chunks(tmp_path):
    folder = tmp_path / "notes"
    put(folder, "MEMORY.md", text="".join(f"line {i} about gardens and coffee\n" for i in range(3000)) + "router\n")
    with synced(Options(workspace=str(folder), index=str(tmp_path / "i.sqlite"), provider="scripted")) as engine:
        answer = engine.search.why(engine.search.gather("router"), "MEMORY.md")
        assert answer.recalled
        assert answer.best.chunk == answer.trace.recalled[0].chunk
        assert len(answer.others) == LISTED - 1
        assert answer.more == len(engine.search.chunks_of("MEMORY.md")) - LISTED > 20
        places = [each.fate.fields["place"] for each in (answer.best, *answer.others) if each.fate.kind == "recalled"]
        assert places == sorted(places)
        assert trace_json.why(answer)["recalled"] is True


TODAY = dt.date(2026, 3, 20)
NOTE = """# 2026-03-06 (Friday)

## Morning
- Coffee, no sugar.

## VLANs on the Omada router ##
- [x] Created under Settings.
- The guest VLAN is 30.
| a | b |
|---|---|
"""


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (None, "never fades"), (-2.0, "in 2 days"), (-0.5, "today"), (0.4, "today"), (1.0, "1 day"), (50.9, "50 days"),
        (300.0, "10 months"), (730.9, "24 months"), (731.0, "2 years"), (1500.0, "4 years"),
    ],
)  # fmt: skip
def test_ages_are_words(days, words):
    assert age_words(days) == words


def test_a_day_has_its_year_only_where_it_is_far():
    assert date_name("2026-03-06", TODAY) == "6 Mar"
    assert date_name("2025-03-06", TODAY) == "6 Mar 2025"
    assert (date_name("2026-W10", TODAY), date_name("2025-W01", TODAY)) == ("week 10", "week 01 2025")
    assert date_name("2026-02", TODAY) == "February"


def test_the_title_is_the_nearest_heading_and_the_text_begins_where_it_answers():
    lines, words = NOTE.split("\n"), MatchedWords(QueryPlan(("guest",), (), ""), "recommended")
    title = title_of("memory/2026-03-06.md", NOTE, 7)
    assert title == "VLANs on the Omada router"
    assert title_of("memory/2026-03-06.md", NOTE, 0) == "", "a date is no title"
    assert body_of(lines, words, 7, title) == "The guest VLAN is 30. a | b"
    assert body_of(lines, words, 6, title).startswith("Created under Settings.")
    items = ["- [x] Restore drill", "", "## Biscuit", "- Vet: Southville Vets.", "- Food is in the hall"]
    assert body_of(items, words, 0) == "Restore drill / Biscuit: Vet: Southville Vets. Food is in the hall"
    bold = "**Backups.** Do them in 2026. Then > rest"
    assert body_of([bold], words, 0) == bold
    assert body_of(["It is read", "to the end", "- once"], words, 0) == "It is read to the end / once"
    long = ["word " * 60 + "guest " + "more " * 20]
    assert body_of(long, words, 0).startswith("… ")
    assert "guest" in body_of(long, words, 0)[:40], "what matched is in sight"


@pytest.fixture
def unasked(tmp_path):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return put_all(tmp_path / "notes", {"MEMORY.md": "# Facts\n- Router: Omada ER605\n"}) / "memory"


def options(tmp_path, profile, provider="none"):
    return options_of(tmp_path / "notes", tmp_path / "i.sqlite", ("profile", profile), *STILL, provider=provider)


def sentence(trace):
    return why_empty(trace.empty, trace.rules.profile.name)[0]


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
def test_a_word_is_said_to_be_in_no_indexed_note_and_notes_that_wait_are_named(unasked, tmp_path, profile):
    with synced(options(tmp_path, profile)) as engine:
        (unasked / "new.md").write_text("The Walrus likes cake.\n")
        engine.status()
        assert sentence(engine.search.search("walrus")) == 'The word "walrus" was found in no indexed note.'
        assert "memory/new.md" in memory_search(engine, {"query": "walrus"}).answer["warning"]


def test_a_changed_endpoint_is_a_reason_to_rebuild_before_anybody_is_asked(unasked, tmp_path):
    path = tmp_path / "openclaw.json"

    def configured(url):
        section = {"provider": "ollama", "model": "m", "remote": {"baseUrl": url}}
        path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
        return replace(options(tmp_path, "recommended", ""), config=str(path))

    with serving(Play()) as play:
        with synced(configured(play.url)) as engine:
            assert engine.status().freshness.rebuild == ()
        asked = len(play.asked)
        with Engine.open(configured(f"{play.url}/other")) as engine:
            (why,) = engine.status().freshness.rebuild
            assert why.startswith("endpoint: ")
            assert engine.providers.who().standing == "other model"
            assert "another address" in engine.providers.who().reason
        assert len(play.asked) == asked


def test_a_session_below_the_threshold_is_not_said_to_be_indexed_now(unasked, tmp_path):
    state = tmp_path / "state"
    sessions = state / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    path = tmp_path / "openclaw.json"
    section = {"sources": ["memory", "sessions"], "experimental": {"sessionMemory": True}, "provider": "none"}
    path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    asked = options_in(tmp_path, "profile=recommended", "sync.watch=false", config=str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_STATE_DIR", str(state))
        with synced(asked) as engine:
            line = {"type": "message", "message": {"role": "user", "content": "the giraffe came"}}
            (sessions / "s1.jsonl").write_text(json.dumps(line) + "\n")
            engine.index.sync(reason="search")
            engine.status()
            answer = memory_search(engine, {"query": "omada"}).answer
            assert answer["stale"] is True
            assert "being indexed: ask" not in answer["action"]
            assert "after 100,000 bytes or 50 lines" in answer["action"]
            assert "new, with" in answer["action"]
            (waits,) = engine.status().freshness.pending
            assert "it is indexed by itself after" in waits.detail


def test_notes_that_cannot_be_read_are_not_no_notes(unasked, tmp_path):
    (unasked.parent / "MEMORY.md").write_text("")
    with synced(options(tmp_path, "recommended")) as engine:
        failed = FileState("a.md", "failed", "permission denied")
        evidence = replace(engine.search.gather("walrus"), unsearchable=(failed,))
        trace = engine.search.rank(evidence, engine.plan.settings)
        assert sentence(trace) == "Nothing is indexed: 1 file could not be read."
