"""One record of who answers: first line, State, status, provider, doctor, index, search and MCP never disagree."""

import contextlib
import json
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.doctor import CHECKS, examine
from memory_tui.engine.engine import Engine
from memory_tui.events import ProviderChanged
from memory_tui.explain.wording import answered_by, terms_line
from memory_tui.mcp.tools import memory_search
from memory_tui.providers.registry import RequestLimits
from memory_tui.sentences import why_empty
from memory_tui.tokens import as_asked
from memory_tui.tui.first_line import lamp
from memory_tui.tui.session import Session
from memory_tui.tui.views.notes import provider_pane
from tests.support.embed import KEY, configure, options
from tests.support.provider_server import Reply, hang, refusing, status, well
from tests.support.tui import NOW, SMALL, Window, make_app
from tests.support.waiting import LONG
from tests.support.workspace import options_of, put_all, synced

pytest_plugins = ("tests.support.provided",)

QUESTION = "walrus"


def refusal(http, message, **fields):
    return status(http, {"error": {"message": message, **fields}})


@dataclass(frozen=True)
class Case:
    """A state of the provider: how the server answers, what is configured, and what everybody has to say of it."""

    standing: str
    words: str = ""
    reply: Reply = well
    answers: str = ""
    config: tuple[tuple[str, Any], ...] = ()
    nobody_listens: bool = False


CASES: dict[str, Case] = {
    "ok": Case("ok", answers="openai"),
    "401": Case("failed", "Incorrect API key", refusal(401, "Incorrect API key provided")),
    "403": Case("failed", "no access", refusal(403, "Project has no access to embeddings")),
    "404 model": Case("failed", "does not exist", refusal(404, "The model `small` does not exist")),
    "429 exhausted": Case(
        "failed", "current quota", refusal(429, "You exceeded your current quota", code="insufficient_quota")
    ),
    "5xx": Case("failed", "overloaded", refusal(503, "overloaded")),
    "timeout": Case("failed", "", hang),
    "refused connection": Case("failed", nobody_listens=True),
    "not approved": Case(
        "needs approval", "embed.example", config=(("remote", {"baseUrl": "http://embed.example/v1", "apiKey": KEY}),)
    ),
    "no key": Case("failed", "No API key", config=(("provider", "voyage"), ("remote", {}))),
    "not there": Case(
        "failed", config=(("provider", "local"), ("remote", {}), ("local", {"modelPath": "/nowhere/model.gguf"}))
    ),
    "fallback": Case(
        "fallback", "Incorrect API key", refusal(401, "Incorrect API key"), "builtin", (("fallback", "builtin"),)
    ),
    "fallback fails too": Case(
        "failed", "No API key", refusal(401, "Incorrect API key"), config=(("fallback", "mistral"),)
    ),
    "none": Case("off", config=(("provider", "none"),)),
}


def told(found):
    """What a record of a fallback says, without its times."""
    return (found["from"], found["to"], found["reason"]) if found else None


def agree(engine, who):
    """Everything that the app, the doctor and an agent are told says what `who` says."""
    report = engine.status()
    screen = Session(lambda _: engine, engine=engine, status=report)
    assert {"hybrid": "words + meaning"}.get(who.mode, "words only") in lamp(screen).plain
    assert ("●" if who.fine else "▲") == lamp(screen).plain[0]
    assert who.fine or who.reason in provider_pane(screen).plain
    assert (report.who, report.provider_state, report.fallback) == (who, who.sentence, who.instead)
    trace = engine.search.search(QUESTION)
    assert (trace.who, trace.rules.mode) == (who, who.mode)
    assert trace.recalled[0].chunk.path == "memory/2026-01-02.md"
    answer = memory_search(engine, {"query": QUESTION}).answer
    assert answer["mode"] == {"hybrid": "hybrid", "keywords only": "fts-only"}[who.mode]
    assert told(answer.get("fallback")) == told(who.instead)
    assert (who.sentence in [notice.message for notice in engine.notices()]) == (not who.fine)
    assert any(notice.startswith(who.sentence) for notice in answer.get("notices", ())) == (not who.fine)
    wanted = [check for check in CHECKS if check.key in ("provider", "vectors")]
    found = {result.check: result for result in examine(engine, wanted)}
    assert (found["provider"].state in ("ok", "skipped")) == who.fine
    if not who.fine:
        assert who.sentence in found["provider"].evidence
    if who.answers:
        assert "index." not in " ".join(finding.fix for finding in found.values())


@pytest.mark.parametrize("name", CASES)
def test_nobody_disagrees_about_who_answers(name, play, notes, tmp_path, time, run):
    case = CASES[name]
    play.usual = case.reply
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(refusing()) if case.nobody_listens else play.url
        configure(tmp_path, url, **dict(case.config))
        with synced(options(tmp_path)) as engine:
            who = engine.providers.who()
            assert (who.standing, who.answers) == (case.standing, case.answers)
            assert case.words in who.reason
            assert KEY not in json.dumps(who.as_dict())
            agree(engine, who)
        by_commands(run, who)


def by_commands(run, who):
    """Processes that have asked nobody yet say the same of what the last index run met, and so do those that ask."""
    report = json.loads(run("status", "--json")[1])
    supply = json.loads(run("provider", "--json")[1])
    fresh = ("ok", "not asked") if who.standing == "ok" else (who.standing,)
    for found in (report["who"], supply["who"]):
        assert (found["requested"], found["answers"], found["mode"]) == (who.requested, who.answers, who.mode)
        assert found["standing"] in fresh
        assert (found["reason"], told(found["fallback"])) == (who.reason, told(who.instead))
    assert told(report["fallback"]) == told(supply["fallback"]) == told(who.instead)
    if not who.fine:
        # No row of the table says of a provider what the record denies.
        at_work = [link["name"] for link in supply["links"] if link["state"] == "in use"]
        assert at_work == ([who.answers] if who.answers else [])
    answer = json.loads(run("search", "--json", QUESTION)[1])
    assert (answer["mode"], told(answer["fallback"])) == (who.mode, told(who.instead))
    assert told(json.loads(run("index", "--json")[1])["fallback"]) == told(who.instead)
    if who.fine:
        return
    _, out, _ = run("status")
    assert who.sentence in out
    _, out, _ = run("provider")
    assert who.sentence in out
    for command in (("index",), ("search", QUESTION)):
        _, _, err = run(*command)
        assert who.sentence in err, command


def test_a_question_that_fails_is_told_of_by_the_same_record(play, notes, tmp_path, time):
    configure(tmp_path, play.url)
    with synced(options(tmp_path)) as engine:
        assert engine.providers.who().standing == "ok"
        play.usual = refusal(401, "Incorrect API key provided")
        trace = engine.search.search(QUESTION)
        assert trace.rules.mode == "keywords only"
        assert (trace.who.standing, trace.who.mode) == ("failed", "keywords only")
        agree(engine, engine.providers.who())


def test_while_the_index_is_still_of_the_first_choice_the_fallback_only_starts(play, notes, tmp_path, time):
    configure(tmp_path, play.url, fallback="builtin")
    with synced(options(tmp_path)) as engine:
        engine.index.pause()
        play.usual = refusal(401, "Incorrect API key provided")
        trace = engine.search.search(QUESTION)
        assert (trace.who.standing, trace.who.answers, trace.rules.mode) == ("fallback starts", "", "keywords only")
        agree(engine, engine.providers.who())


def test_an_index_of_another_model_is_told_before_anybody_is_asked(play, notes, tmp_path, time):
    configure(tmp_path, play.url)
    with synced(options(tmp_path)):
        configure(tmp_path, play.url, model="large")
    with Engine.open(options(tmp_path, changes=(("profile", "recommended"), ("sync.onSearch", "false")))) as engine:
        who = engine.providers.who()
        assert (who.standing, who.mode, who.answers) == ("other model", "keywords only", "")
        assert "openai small" in who.reason
        agree(engine, who)
        assert engine.status().freshness.rebuild == ("model: small is now large",)


def test_the_log_and_the_doctor_name_who_answered(play, notes, tmp_path, time):
    configure(tmp_path, play.url, fallback="builtin")
    play.usual = refusal(401, "Incorrect API key provided")
    heard: list[ProviderChanged] = []
    with Engine.open(options(tmp_path)) as engine:
        engine.listen(lambda event: heard.append(event) if isinstance(event, ProviderChanged) else None)
        engine.index.sync()
        assert (heard[-1].name, heard[-1].ok) == ("builtin", True)
        assert "instead of openai" in heard[-1].detail
    with Engine.open(options(tmp_path)) as engine:
        wanted = [check for check in CHECKS if check.key == "self-similarity"]
        (result,) = examine(engine, wanted)
        assert result.state == "ok", "vectors of the fallback are compared with the fallback"


@pytest.mark.parametrize("fallback", ["none", "builtin"])
def test_a_test_call_that_works_ends_the_pause_of_every_process(play, notes, tmp_path, time, run, fallback):
    configure(tmp_path, play.url, fallback=fallback)
    assert run("index")[0] == 0
    back = Event()

    def is_back(event):
        return isinstance(event, ProviderChanged) and event.name == "openai" and event.ok

    with Engine.open(options(tmp_path)) as engine:
        engine.listen(lambda event: is_back(event) and back.set())
        # Its clock asks again for a sync that met another process at its writing.
        engine.start()
        play.usual = refusal(401, "Incorrect API key provided")
        assert engine.search.search(QUESTION).rules.mode == "keywords only"
        time.at += 10
        run("search", QUESTION)
        # A sync that the engine asked for meanwhile fails by the clock of now; a test counts that passes after it.
        assert engine.index.writer.wait_idle(LONG)
        back.clear()
        time.at += 1
        play.usual = well
        assert json.loads(run("provider", "--json")[1])["who"]["standing"] != "ok"
        found = json.loads(run("provider", "--test", "openai", "--json")[1])
        (openai, *_) = found["links"]
        assert (openai["state"], found["test"]["ok"]) == ("in use", True)
        if fallback != "none":
            assert back.wait(LONG)
        assert engine.providers.who().fine
        assert engine.search.search(QUESTION).rules.mode == "hybrid"
    assert json.loads(run("status", "--json")[1])["who"]["standing"] == "not asked"
    code, _, err = run("search", QUESTION)
    assert (code, err) == (0, "")


def test_a_host_that_is_down_costs_one_command_its_wait_and_the_outage_keeps_its_beginning(
    play, notes, tmp_path, time, run
):
    configure(tmp_path, play.url)
    play.usual = refusal(503, "overloaded")
    first = json.loads(run("search", "--json", QUESTION)[1])["fallback"]
    assert first["to"] == "none"
    assert time.at < first["retryAt"]
    asked, began = len(play.asked), time.at
    time.at = first["retryAt"] - 1
    code, out, err = run("search", QUESTION)
    assert (code, "walrus likes cake" in out) == (0, True)
    assert "overloaded" in err
    assert len(play.asked) == asked
    # When its time has come it is asked again, and the outage is still the same one.
    time.at = first["retryAt"] + 1
    again = json.loads(run("search", "--json", QUESTION)[1])["fallback"]
    assert len(play.asked) > asked
    assert (first["since"], again["since"]) == (began, began)
    assert again["retryAt"] > first["retryAt"]
    # A person who asks for it has the provider asked at once, and then it answers questions again.
    play.usual = well
    assert run("index")[0] == 0
    assert json.loads(run("search", "--json", QUESTION)[1])["fallback"] is None


def test_nothing_is_called_ready_or_advised_that_does_not_work(play, notes, tmp_path, time, run):
    configure(tmp_path, play.url, provider="builtin")
    assert run("index")[0] == 0
    play.usual = refusal(503, "overloaded")
    configure(tmp_path, play.url, fallback="none")
    out = "".join(run("index")[1:])
    assert "overloaded" in out
    said = run("status")[1]
    lines = {label: text.strip() for label, colon, text in (line.partition(":") for line in said.split("\n")) if colon}
    assert lines["Provider"].startswith("openai (")
    assert lines["Index made by"].startswith("builtin ")
    assert lines["Vector"].startswith("not compared now")
    assert "rebuild starts when the provider answers" in lines["Notice"] + said
    assert "Run memory-tui index." not in said + out
    play.usual = well
    time.at += 10_000
    assert run("index")[0] == 0
    said = run("status")[1]
    assert "Vector:         ready" in said
    assert "Index made by:  openai small" in said


@pytest.mark.parametrize(("indexed", "changed", "reply"), [(1, 0, well), (1, 0, hang), (1, 1, hang), (0, 1, hang)])
def test_a_search_waits_for_its_question_alone_and_asks_no_test_text(
    play, notes, tmp_path, run, monkeypatch, indexed, changed, reply
):
    usual, limits = plan.settings, RequestLimits(query_seconds=1.2, batch_seconds=LONG)

    def quick(choices, approvals):
        found = usual(choices, approvals)
        return replace(found, batches=replace(limits, probe=found.batches.probe))

    monkeypatch.setattr(plan, "settings", quick)
    configure(tmp_path, play.url)
    if indexed:
        assert run("index")[0] == 0
    if changed:
        (notes / "memory" / "2026-01-03.md").write_text("The walrus moved.\n")
    play.usual, asked, began = reply, len(play.asked), monotonic()
    code, out, err = run("search", QUESTION)
    assert (code, monotonic() - began < LONG / 2, "walrus" in out) == (0, True, True)
    assert (err == "") is (reply is well)
    assert "did not answer in 1.2 s" in err or reply is well
    assert len(play.asked) == asked + 1
    assert changed or play.asked[-1].texts == [QUESTION]


CHINESE = "喜欢什么书"
UNKNOWN = "the embedding model knows no word of the query"


@pytest.fixture
def bilingual(tmp_path):
    day = "# Thursday\n\n- vlan for the printer\n- 喜欢乌龙茶\n"
    facts = "# Facts\n\n- 喜欢读书\n- the router is an Omada\n"
    return put_all(tmp_path / "notes", {"MEMORY.md": facts, "memory/2026-03-19.md": day})


@pytest.mark.parametrize(
    ("question", "provider", "changes", "by"),
    [
        ("omada router", "builtin", {}, ("by words and vectors", "")),
        (CHINESE, "builtin", {}, ("WORDS ONLY (Chinese)", "the built-in table does not know this language")),
        (CHINESE, "builtin", {"profile": "openclaw-2026.3"}, ("by words only", UNKNOWN)),
        ("omada router", "none", {}, ("by words only", "the index has no vectors")),
        ("omada router", "scripted", {"query.hybrid.enabled": "false"}, ("by vectors only", "hybrid is off")),
        ("dentist appointment", "builtin", {}, ("by vectors only", "no word of the query was found in a note")),
        ("?", "none", {}, ("by nothing", "no word to look for")),
    ],
)
def test_each_question_says_what_answered_it(tmp_path, bilingual, question, provider, changes, by):
    options = options_of(bilingual, tmp_path / "index.sqlite", *changes.items(), provider=provider, now=NOW)
    with synced(options) as engine:
        mode, reason = answered_by(engine.search.search(question))
    assert mode == by[0]
    assert reason.startswith(by[1])


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
@pytest.mark.parametrize("question", [CHINESE, "麻婆豆腐要放什么酱？", "学校で何を食べましたか", "한국어 좋아하는 책"])
def test_no_pair_of_characters_is_called_a_word(tmp_path, bilingual, profile, question):
    options = options_of(bilingual, tmp_path / "index.sqlite", ("profile", profile), provider="builtin", now=NOW)
    with synced(options) as engine:
        trace = engine.search.search(question)
        why = engine.search.why(engine.search.gather(question), "MEMORY.md", 3)
    said = [why.fate.message, terms_line("喜欢读书", trace).detail]
    said += why_empty(trace.empty, trace.rules.profile.name) if trace.empty is not None else []
    runs = set(as_asked(trace.side.plan.words, question))
    for pair in set(trace.side.plan.words) - runs:
        for sentence in said:
            for run in runs:
                sentence = sentence.replace(run, "")
            assert f'"{pair}"' not in sentence, sentence
            assert f" {pair} " not in f"{sentence},".replace(",", " ").replace(";", " "), sentence


def test_the_mode_of_the_question_stands_beside_it(bilingual):
    with Window(make_app(bilingual, provider="builtin"), SMALL) as window:
        assert "meaning does not know" not in window.ask("omada router").text
        window.press("slash", "ctrl+u").type(CHINESE).press("enter")
        assert "meaning does not know Chinese" in window.text
        assert "喜欢读书" in window.text
