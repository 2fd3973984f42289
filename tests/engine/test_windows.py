"""The windows of chunks: a model compares them, each is made once, and none says more than its chunk was let say."""

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui.approval import Approvals
from memory_tui.engine.engine import Engine
from memory_tui.index import store as stores
from memory_tui.providers.builtin import hash_vector
from memory_tui.workspace.chunking import WINDOW, windows
from tests.support.embed import ELSEWHERE, configure
from tests.support.local_model import hashed
from tests.support.workspace import options_in, put_all, synced

pytest_plugins = ("tests.support.provided",)
__all__ = ["hashed"]
LINES = [
    f"- the {word} number {at} stands in the {'cellar' if at % 2 else 'attic'}"
    for at, word in enumerate(
        ("router", "walrus", "bread", "garden", "printer", "invoice", "ladder", "piano", "kettle", "violin") * 3
    )
]


@pytest.fixture
def options(tmp_path):
    things = {"memory/2026-01-02.md": "\n".join(["# Things", *LINES, ""])}
    put_all(tmp_path / "notes", {"MEMORY.md": "# Facts\n- Router: Omada ER605\n", **things})
    return options_in(tmp_path, "profile=recommended", "sync.watch=false", provider="local-small")


def notes(asked):
    return [request["text"] for request in asked() if request["kind"] == "document"]


def test_each_window_is_made_once_and_a_short_chunk_is_its_own(options, hashed):
    with Engine.open(options) as engine:
        report = engine.index.sync()
        texts = notes(hashed)
        assert len(texts) == len(set(texts)) == report.embedded
        parts = [text for text in texts if len(text) <= WINDOW]
        assert {text for text in parts if "Omada" in text} == {"# Facts\n- Router: Omada ER605\n"}
        assert len(parts) >= 4
        engine.index.sync()
        engine.index.sync(force=True)
        assert notes(hashed) == texts, "what is known by its hash is not asked for again"
    note = Path(options.workspace or "") / "memory" / "2026-01-02.md"
    note.write_text(f"{note.read_text()}- one more line\n")
    with synced(options) as engine:
        new = notes(hashed)[len(texts) :]
        assert {len(text) <= WINDOW for text in new} == {True, False}, "a chunk, and its last window"
        assert len(new) < len(parts)
        assert engine.search.problems() == ()


def test_the_nearest_window_counts_above_the_median_of_all_notes(options, hashed):
    for at in range(6):
        (Path(options.workspace or "") / "memory" / f"2026-02-0{at + 1}.md").write_text(
            f"- nothing of note, day {at}\n"
        )
    question = "the piano number 7 stands in the cellar"
    with synced(options) as engine:
        evidence = engine.search.gather(question)
        closest = evidence.closest
        trace = engine.search.rank(evidence, engine.plan.settings)

        def cosine(text):
            pair = []
            for words in (text, question):
                vector = hash_vector(words) * 0.4
                vector[0] += 0.9
                pair.append(vector / np.linalg.norm(vector))
            return float(pair[0] @ pair[1])

        with engine.index.reader() as store:
            whole = store.texts(evidence.refs.rowids)
        expected = [max(map(cosine, windows(text))) for text in whole.values()]
        assert sorted(closest.cosine) == pytest.approx(sorted(expected), abs=1e-5)
        assert (closest.median, closest.best) == pytest.approx((np.median(expected), max(expected)), abs=1e-5)
        first = trace.recalled[0]
        assert first.vector == pytest.approx(1.0)
        assert trace.candidates.vector_scale == pytest.approx(closest.best - closest.median)
        # 10 % of the score are the vector's, the rest is divided as ever.
        second, vector = 0.9 * engine.plan.settings.number("secondStage.weight"), trace.rules.vector_weight
        assert first.second.weight / (first.first_share + first.second.weight) == pytest.approx(second)
        assert vector * (1 - second) == pytest.approx(0.1 + 0.4 * (0.9 - second))
        other = engine.search.rank(evidence, engine.plan.with_profile("openclaw-2026.3"))
        every = evidence.cosine.tolist() if evidence.cosine is not None else ()
        assert {hit.cosine for hit in other.recalled} <= set(every)


def test_a_large_index_and_a_profile_that_compares_none_have_no_windows(options, hashed, monkeypatch):
    plain = replace(options, changes=(("profile", "openclaw-2026.3"), ("sync.watch", "false")))
    with Engine.open(plain) as engine:
        chunks = engine.index.sync().chunks
    assert len(notes(hashed)) == chunks
    monkeypatch.setattr(stores, "MOST_WITH_WINDOWS", 1)
    with synced(options) as engine:
        assert len(notes(hashed)) == chunks
    monkeypatch.setattr(stores, "MOST_WITH_WINDOWS", 10_000)
    with synced(options) as engine:
        assert len(notes(hashed)) > chunks, "nothing changed but the profile, and the windows are made"


@pytest.fixture
def asks(options, elsewhere, tmp_path):
    return replace(options, provider=None, config=str(configure(tmp_path, ELSEWHERE)))


def test_windows_are_shown_before_they_are_sent_and_none_of_a_withheld_chunk_is(play, asks, printed):
    secret = "ghp_" + "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX"
    folder = Path(asks.workspace or "")
    (folder / "memory" / "2026-01-03.md").write_text("\n".join(["# Keys", f"token: {secret}", *LINES[:9], ""]))
    places = ["--workspace", str(folder), "--config", str(asks.config), "--index", str(asks.index)]
    shown = json.loads(printed("index", "--dry-run", "--json", "--profile", "recommended", *places))
    assert play.asked == []
    Approvals(folder).approve("openai", "embed.example", "test")
    with Engine.open(asks) as engine:
        assert engine.index.sync().error == ""
    texts = [text for request in play.asked for text in request.texts if text != "memory"]
    assert len(texts) == len(set(texts)) == shown["send"]
    assert sum(map(len, texts)) == shown["bytes"]
    assert not any(secret in text or text.startswith("# Keys") for text in texts)


def test_with_a_batch_service_no_windows_are_sent(play, asks):
    Approvals(Path(asks.workspace or "")).approve("openai", "embed.example", "test")
    file = Path(asks.config or "")
    tree = json.loads(file.read_text())
    tree["agents"]["defaults"]["memorySearch"]["remote"]["batch"] = {"enabled": True, "wait": False}
    file.write_text(json.dumps(tree))
    with Engine.open(asks) as engine:
        report = engine.index.sync()
    assert report.error == ""
    assert {len(text) <= WINDOW for request in play.asked for text in request.texts if "walrus" in text} == {False}
