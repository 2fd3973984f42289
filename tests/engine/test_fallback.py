"""When the provider fails: keywords or the named fallback, said in the first line, recorded, and left again."""

import json
import threading

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.providers import chain
from tests.support import embed
from tests.support.embed import KEY, configure
from tests.support.index import run_sql
from tests.support.provider_server import hang, status, well
from tests.support.waiting import LONG
from tests.support.workspace import synced

pytest_plugins = ("tests.support.provided",)
DOWN = status(500, {"error": {"message": "overloaded"}})


def options(tmp_path, play, fallback="none", **more):
    configure(tmp_path, play.url, fallback=fallback)
    return embed.options(tmp_path, **more)


def spaces(tmp_path):
    sql = "SELECT DISTINCT e.provider FROM chunks c JOIN embedding_cache e ON e.id = c.embedding_id"
    return {provider for (provider,) in run_sql(tmp_path / "i.sqlite", sql)}


@pytest.mark.parametrize("first", [0, 2])
def test_the_fallback_makes_the_index_and_says_so(play, notes, tmp_path, time, first):
    """Both make vectors of 256 numbers, so that nothing but their identity tells them apart half way."""
    for number in range(60 * first):
        (notes / "memory" / f"n{number}.md").write_text(f"Note {number}: {'cake and tea ' * 400}\n")
    play.say(*[well] * first)
    play.usual = DOWN
    with synced(options(tmp_path, play, "builtin")) as engine:
        assert engine.search.search("walrus").rules.mode == "hybrid"
        state = engine.status()
        assert (state.provider, state.model, state.embedded) == ("builtin", "minilm-trained-256", state.chunks)
        wanted = {"from": "openai", "to": "builtin", "model": "minilm-trained-256", "reason": ""}
        assert {**state.fallback, "reason": ""} == {**wanted, "since": time.at, "retryAt": time.at + 30}
        assert "overloaded" in state.fallback["reason"]
        assert KEY not in json.dumps(state.fallback)
    assert spaces(tmp_path) == {"builtin"}


def test_a_question_that_cannot_be_embedded_brings_the_fallback(play, notes, tmp_path, time):
    with synced(options(tmp_path, play, "builtin")) as engine:
        assert engine.status().provider == "openai"
        play.usual = DOWN
        engine.index.pause()
        assert engine.search.gather("walrus").cosine is None
        engine.index.resume()
        trace = engine.search.search("walrus")
        assert trace.rules.mode == "keywords only"
        assert any("overloaded" in notice.message for notice in trace.notices)
        assert engine.index.writer.wait_idle(LONG)
        assert engine.search.search("walrus").rules.mode == "hybrid"
        assert engine.status().fallback["from"] == "openai"
    assert spaces(tmp_path) == {"builtin"}


@pytest.mark.parametrize("how", ["in its process", "in the next", "because a person asks"])
def test_the_first_choice_comes_back_when_it_answers_again(play, notes, tmp_path, time, how):
    play.usual = DOWN
    engine = Engine.open(options(tmp_path, play, "builtin"))
    engine.index.sync()
    if how == "in the next":
        engine.close()
        asked = len(play.asked)
        engine = Engine.open(options(tmp_path, play, "builtin"))
        engine.index.catch_up()
        assert (engine.search.search("walrus").rules.mode, engine.status().fallback["to"]) == ("hybrid", "builtin")
        assert len(play.asked) == asked, "nobody asks before the time has come"
    play.usual = well
    if how == "because a person asks":
        engine.providers.retry()
        assert engine.index.writer.wait_idle(LONG)
    else:
        time.at += 31
        engine.index.sync()
    state = engine.status()
    assert (state.provider, state.fallback) == ("openai", None)
    engine.close()
    assert spaces(tmp_path) == {"openai"}


def test_a_first_choice_that_is_still_down_costs_nothing_that_is_there(play, notes, tmp_path, time):
    play.usual = DOWN
    with synced(options(tmp_path, play, "builtin")) as engine:
        time.at += 31
        asked, generation = len(play.asked), engine.status().generation
        report = engine.index.sync()
        assert len(play.asked) > asked
        assert (report.rebuilt, report.error) == (False, "")
        assert engine.status().generation == generation or not report.changed
        assert engine.search.search("walrus").rules.mode == "hybrid"


def test_it_is_asked_again_by_itself_when_its_time_has_come(play, notes, tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "_LASTING_PAUSE", 0.1)
    play.say(status(401, {"error": {"message": "not yet"}}))
    with Engine.open(options(tmp_path, play)) as engine:
        heard: list[str] = []
        errors: list[str] = []
        back = threading.Event()

        def listen(event):
            heard.append(type(event).__name__)
            errors.append(getattr(event, "error", ""))
            if getattr(event, "ok", False):
                back.set()

        engine.listen(listen)
        engine.start()
        assert engine.index.writer.wait_idle(LONG)
        assert any("not yet" in error for error in errors)
        assert back.wait(LONG)
        assert engine.index.writer.wait_idle(LONG)
        assert engine.search.search("walrus").rules.mode == "hybrid"


def test_the_cache_is_counted_so_that_status_can_tell(play, notes, tmp_path, time):
    with synced(options(tmp_path, play)) as engine:
        assert engine.status().cache.hits == 0
        engine.index.sync(force=True)
        assert engine.status().cache.hits == engine.status().chunks
    with Engine.open(options(tmp_path, play)) as engine:
        assert engine.status().cache.hits == engine.status().chunks


def test_words_find_a_note_while_a_provider_never_answers(play, notes, tmp_path):
    play.usual = hang
    with Engine.open(options(tmp_path, play)) as engine:
        engine.start()
        assert play.hanging.acquire(timeout=LONG)
        trace = engine.search.rank(engine.search.gather("walrus", by_words=True), engine.plan.settings)
        assert trace.recalled[0].chunk.path == "memory/2026-01-02.md"
        assert engine.status().embedded == 0


def test_no_more_requests_run_at_once_than_is_set(play, notes, tmp_path):
    for number in range(150):
        (notes / "memory" / f"n{number}.md").write_text(f"Note {number} " + "word " * 300)
    met, early = threading.Barrier(2), threading.Semaphore(2)

    def together(handler, asked):
        if asked.texts != ["memory"] and early.acquire(blocking=False):
            met.wait(LONG)
        well(handler, asked)

    play.usual = together
    with Engine.open(options(tmp_path, play, changes=(("remote.concurrency", "2"),))) as engine:
        assert engine.index.sync().error == ""
        assert engine.status().embedded == engine.status().chunks
    assert play.most_at_once == 2


def test_what_was_sent_when_indexing_is_paused_is_kept_and_not_sent_again(play, notes, tmp_path):
    for number in range(300):
        (notes / "memory" / f"n{number}.md").write_text(f"Note {number} " + "word " * 300)
    let, begun = threading.Event(), threading.Event()

    def later(handler, asked):
        if asked.texts != ["memory"]:
            begun.set()
            let.wait(LONG)
        well(handler, asked)

    play.usual = later
    with Engine.open(options(tmp_path, play)) as engine:
        engine.index.request_sync()
        assert begun.wait(LONG)
        engine.index.pause()
        let.set()
        assert engine.index.writer.wait_idle(LONG)
        engine.index.resume()
        assert engine.index.sync().error == ""
        assert engine.status().embedded == 302
    texts = [text for request in play.asked for text in request.texts if text != "memory"]
    assert len(texts) == len(set(texts)) >= 302  # The parts of each text are sent too.
