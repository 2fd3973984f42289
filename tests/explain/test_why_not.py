"""Why not: for every chunk and every gate, the verdict is what really happened."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui import demo
from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json, why_not, wording
from memory_tui.explain.reranking import subset
from memory_tui.explain.why_not import LISTED, Fate, Inquest
from memory_tui.notices import notice
from memory_tui.plan import Options
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank
from memory_tui.search.trace import Recalled
from memory_tui.settings import Settings
from tests.support.search import evidence as made
from tests.support.search import settings as chosen

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
OPENCLAW = "openclaw-2026.3"


@dataclass
class Asked:
    """An indexed workspace, questions about it, and the text of every chunk by rowid."""

    engine: Engine
    questions: list[str]
    texts: dict[int, str]


def opened(folder: Path, place_: Path, questions: list[str], provider: str = "builtin") -> Asked:
    engine = Engine.open(
        Options(
            workspace=str(folder),
            index=str(place_ / "index.sqlite"),
            provider=provider,
            now=NOW,
            changes=(("sync.onSearch", "off"),),
        )
    )
    engine.index.sync()
    found = engine.search.gather(questions[0])
    with engine.search.reader() as store:
        texts = store.texts([found.refs[row].rowid for row in range(found.chunks)])
    return Asked(engine, questions, texts)


def generated(folder: Path) -> list[str]:
    """120 notes of random words in three kinds, with twins, and questions of rare and frequent words."""
    rng = random.Random(5)
    known = [f"{a}{b}" for a in ("ka", "re", "mo", "ti", "su", "na", "lo") for b in ("vi", "ra", "de", "po", "nu")]
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n\nvira kavi is the router\n")
    for number in range(120):
        day = dt.date(2026, 11, 19) - dt.timedelta(days=number * 3)
        rng.seed(number // 2 if number % 10 < 2 else number)
        lines = [" ".join(rng.choices(known, [1 / (i + 1) for i in range(len(known))], k=9)) for _ in range(12)]
        (folder / "memory" / f"{day}.md").write_text("\n".join(lines) + "\n")
    rng.seed(1)
    return [" ".join(rng.sample(known, rng.randint(1, 4))) for _ in range(16)]


@pytest.fixture(scope="module", params=["demo", "oracle", "generated", "keywords only", "no fts"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Three corpora, one of them also without vectors, and without full-text search."""
    out = tmp_path_factory.mktemp("whynot")
    if request.param == "demo":
        folder = demo.materialize(out / "notes", dt.date(2026, 11, 20))
        questions = [labelled.text for labelled in demo.labelled_queries(dt.date(2026, 11, 20))][:20]
    elif request.param == "oracle":
        folder = request.getfixturevalue("oracle_workspace")
        recorded = request.getfixturevalue("oracle_data") / "2026.3.13" / "default" / "queries.jsonl"
        every = [json.loads(line)["query"] for line in recorded.read_text("utf-8").split("\n") if line]
        questions = [query for query in every if query.strip()][:: max(1, len(every) // 16)][:16]
    else:
        folder = out / "notes"
        questions = generated(folder)
    provider = {"oracle": "scripted", "keywords only": "none", "no fts": "none"}.get(request.param, "builtin")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "no fts":
            patch.setenv("MEMORY_TUI_DISABLE", "fts5")
        found = opened(folder, out, questions if provider != "none" else questions[:6], provider)
    yield found
    found.engine.close()


@pytest.fixture(autouse=True)
def _without_what_the_index_lacks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index without full-text search is asked without it, and no other one is, whatever the order of the tests."""
    if "asked" in request.fixturenames and request.node.callspec.params["asked"] == "no fts":
        monkeypatch.setenv("MEMORY_TUI_DISABLE", "fts5")


def kind_of(fate: Fate) -> str:
    return wording.as_notice(fate).kind


def variants(engine: Engine) -> list[Settings]:
    """Settings under which every gate of ranking closes for somebody."""
    ours, theirs = engine.plan.with_profile("recommended"), engine.plan.with_profile(OPENCLAW)
    decay = {"query.hybrid.temporalDecay.enabled": True, "query.hybrid.temporalDecay.halfLifeDays": 20}
    mmr = {"query.hybrid.mmr.enabled": True, "query.hybrid.mmr.lambda": 0.3, "query.minScore": 0.1}
    return [
        ours,
        theirs,
        engine.plan.with_profile("openclaw-2026.2").update({"query.maxResults": 2}, "test"),
        theirs.update({**decay, **mmr, "query.maxResults": 4}, "test"),
        theirs.update({"query.hybrid.enabled": False}, "test"),
        ours.update({"query.hybrid.mmr.enabled": True, "query.minScore": 0.3}, "test"),
    ]


def test_numbers_of_a_chunk_outside_the_pools_are_those_it_has_as_a_candidate(asked: Asked) -> None:
    """Where the profile computes both sides for every candidate, a wider pool must give the very same numbers."""
    compared = 0
    for query in asked.questions[:5]:
        evidence = asked.engine.search.gather(query)
        narrow = asked.engine.plan.with_profile(OPENCLAW).update(
            {"query.maxResults": 2, "query.hybrid.candidateMultiplier": 2}, "test"
        )
        wide = narrow.update({"query.maxResults": 10, "query.hybrid.candidateMultiplier": 20}, "test")
        inquest, wider = Inquest(evidence, narrow, {}), rank(evidence, wide)
        for real in (*wider.recalled, *wider.lost):
            row = why_not.row_of(evidence, real.chunk.rowid)
            assert row is not None
            account = inquest.account(row, asked.texts[real.chunk.rowid])
            if account.proposed or account.candidate is None:
                continue
            supposed = account.candidate
            assert (supposed.cosine, supposed.bm25) == (real.cosine, real.bm25)
            if real.vector_rank and (real.text_rank or real.bm25 is None):
                assert (supposed.hybrid, supposed.age_points, supposed.score) == (
                    real.hybrid,
                    real.age_points,
                    real.score,
                )
                assert supposed.vector_rank == real.vector_rank
                compared += 1
    assert compared or asked.engine.plan.provider == "none"


def test_a_subset_ranks_as_the_whole(asked: Asked) -> None:
    for query in asked.questions[:6]:
        evidence = asked.engine.search.gather(query)
        small, rows = subset(evidence, range(0, evidence.chunks, 7))
        assert {evidence.refs[row].rowid for row in rows.tolist()} == {ref.rowid for ref in small.refs}
        for settings in variants(asked.engine):
            one, other = rank(evidence, settings), rank(small, settings)
            assert [(c.chunk, c.score, c.verdict) for c in one.recalled] == [
                (c.chunk, c.score, c.verdict) for c in other.recalled
            ]
            assert [(c.chunk, c.score, c.verdict) for c in one.lost] == [
                (c.chunk, c.score, c.verdict) for c in other.lost
            ]


# --- gates that take something special -----------------------------------------------------------------------------


def fate_of(evidence: Evidence, settings: Settings, row: int) -> Fate:
    return Inquest(evidence, settings, {}).account(row, evidence.texts[row]).fate


def test_a_chunk_without_a_vector() -> None:
    found = replace(made([0.9, float("nan")], {0: -1.0}), nearest=np.array([0]))
    fate = fate_of(found, chosen(OPENCLAW), 1)
    assert kind_of(fate) == "no_vector"
    assert kind_of(fate.fields["text"]) == "not_matched"


def test_vectors_of_another_model() -> None:
    found = replace(
        made(None, {0: -1.0}, texts=["word", "other"]),
        notices=(notice("other_model", made_with="model X", asked_with="model Y"),),
    )
    fate = fate_of(found, chosen(OPENCLAW), 1)
    assert kind_of(fate) == "model_mismatch"
    assert "made with model X" in wording.sentence(fate)
    assert isinstance(fate_of(found, chosen(OPENCLAW), 0), Recalled)


def test_a_provider_that_failed() -> None:
    found = replace(
        made(None, {0: -1.0}, texts=["word", "other"]), notices=(notice("meaning_off", cause="Timed out.", remedy=""),)
    )
    fate = fate_of(found, chosen("recommended"), 1)
    assert kind_of(fate) == "no_vector"
    assert "Timed out" in fate.fields["cause"]


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[tuple[Path, Callable[..., Fate]]]:
    """A workspace, and a function that tells the fate of a line in it for the question "router"."""
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    (folder / "memory" / "2026-11-18.md").write_text("Moved the printer\n\nPlanted garlic\n")
    long_ago = time.time() - 3600
    for path in folder.rglob("*.md"):
        os.utime(path, (long_ago, long_ago))
    engine = Engine.open(
        Options(
            workspace=str(folder),
            index=str(tmp_path / "index.sqlite"),
            provider="scripted",
            changes=(("sync.onSearch", "off"), ("profile", OPENCLAW)),
        )
    )
    engine.index.sync()
    yield folder, lambda path, line=None: engine.search.why(engine.search.gather("router"), path, line).fate
    engine.close()


def test_file_gates_in_their_order(notes: tuple[Path, Callable[..., Fate]]) -> None:
    folder, fate = notes
    (folder / "memory" / "link.md").symlink_to(folder / "MEMORY.md")
    (folder / "memory" / "picture.png").write_bytes(b"x")
    (folder / "memory" / "new.md").write_text("router\n")
    assert isinstance(fate("MEMORY.md", 2), Recalled)
    assert kind_of(fate("/etc/hostname")) == "outside_roots"
    (folder.parent / "elsewhere.md").write_text("router\n")
    assert kind_of(fate("../elsewhere.md", 1)) == "outside_roots"
    link, picture = fate("memory/link.md"), fate("memory/picture.png")
    assert kind_of(link) == "excluded"
    assert link.fields["rule"] == "symlink"
    assert kind_of(picture) == "excluded"
    assert kind_of(fate("memory")) == "excluded"
    assert kind_of(fate("memory/nothing.md")) == "no_such_file"
    assert fate("memory/new.md", 1) == notice("changed_since_indexed", change="new")
    assert fate("MEMORY.md", 9) == notice("in_no_chunk", line=9, lines=2)
    assert wording.sentence(notice("in_no_chunk", line=1, lines=0)) == "The note holds no text."
    for path in ("/etc/hostname", "memory/link.md", "memory/nothing.md", "memory/new.md", "memory"):
        assert wording.sentence(fate(path)).endswith(".")


def test_a_changed_note_is_judged_by_the_line(notes: tuple[Path, Callable[..., Fate]]) -> None:
    folder, fate = notes
    (folder / "MEMORY.md").write_text("# News\n# Facts\n- Router: Omada ER605\n- Switch: none\n")
    assert fate("MEMORY.md", 4) == notice("changed_since_indexed", change="changed"), "this line is in no indexed chunk"
    assert isinstance(fate("MEMORY.md", 3), Recalled), "this one moved, and the agent is still given it"
    (folder / "MEMORY.md").unlink()
    assert isinstance(fate("MEMORY.md", 2), Recalled), "the index has not forgotten it yet"


def test_a_note_that_is_too_big(notes: tuple[Path, Callable[..., Fate]]) -> None:
    folder, fate = notes
    with (folder / "memory" / "big.md").open("wb") as big:
        big.truncate(33 * 1024 * 1024)
    found = fate("memory/big.md", 1)
    assert kind_of(found) == "unreadable_file"
    assert found.fields["rule"] == "too big"


def test_the_best_chunk_speaks_and_the_others_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text(
        "".join(f"line {i} about {'router' if i > 90 else 'gardens'}\n" * 2 for i in range(150))
    )
    with Engine.open(
        Options(
            workspace=str(folder),
            index=str(tmp_path / "i.sqlite"),
            provider="scripted",
            changes=(("query.maxResults", "1"),),
        )
    ) as engine:
        engine.index.sync()
        answer = engine.search.why(engine.search.gather("router"), "MEMORY.md")
        assert answer.recalled
        assert answer.best is not None
        assert answer.best.chunk == answer.trace.recalled[0].chunk
        assert len(answer.others) == len(engine.search.chunks_of("MEMORY.md")) - 1
        said = trace_json.why(answer)
        assert said["recalled"] is True
        assert [other["verdict"]["kind"] for other in said["others"]].count("recalled") == 0


def test_a_long_note_is_explained_by_its_best_chunks(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("".join(f"line {i} about gardens and coffee\n" for i in range(6000)) + "router\n")
    with Engine.open(Options(workspace=str(folder), index=str(tmp_path / "i.sqlite"), provider="scripted")) as engine:
        engine.index.sync()
        evidence = engine.search.gather("router")
        answer = engine.search.why(evidence, "MEMORY.md")
        assert answer.recalled
        assert len(answer.others) == LISTED - 1
        assert answer.more == len(engine.search.chunks_of("MEMORY.md")) - LISTED > 50
        places = [a.fate.place for a in (answer.best, *answer.others) if a and isinstance(a.fate, Recalled)]
        assert places == sorted(places)
