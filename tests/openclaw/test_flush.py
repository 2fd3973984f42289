"""The flush before compaction and recall by triggers: every reason for and against, by the documented arithmetic."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.config import config_file
from memory_tui.config import config_file as configuration
from memory_tui.openclaw import agent_sessions, flush
from memory_tui.openclaw.flush import FlushRules, Session, decide
from memory_tui.openclaw.prompt import LINE, MOST, MOST_UNITS, CuratedEntry, triggered
from memory_tui.workspace.notes import Annotations
from tests.support.workspace import put, put_all

BIG = Session(total_tokens=176_000, fresh=True)
LARGE = Session(transcript_bytes=2_097_152)


@pytest.mark.parametrize(
    ("rules", "session", "run", "window", "cause"),
    [
        (FlushRules(enabled=False), BIG, {}, 200_000, "disabled"),
        (FlushRules(), BIG, {"writable": False}, 200_000, "read-only sandbox"),
        (FlushRules(), replace(BIG, compactions=2, flushed_in=2), {}, 200_000, "already flushed"),
        (FlushRules(), replace(BIG, compactions=3, flushed_in=2), {}, 200_000, "tokens"),
        (FlushRules(), BIG, {}, 200_000, "tokens"),
        (FlushRules(), replace(BIG, total_tokens=175_999), {}, 200_000, "below threshold"),
        (FlushRules(), BIG, {}, 24_000, "window too small"),
        (FlushRules(), Session(), {}, 200_000, "tokens unknown"),
        (FlushRules(), replace(BIG, fresh=False), {}, 200_000, "tokens unknown"),
        (FlushRules(), LARGE, {}, 200_000, "transcript size"),
        (FlushRules(), LARGE, {}, 10_000, "transcript size"),
        (FlushRules(), replace(LARGE, transcript_bytes=2_097_151), {}, 200_000, "tokens unknown"),
        (FlushRules(force_bytes=0), LARGE, {}, 200_000, "tokens unknown"),
        (FlushRules(), replace(LARGE, flushed_in=0), {}, 200_000, "already flushed"),
    ],
)
def test_every_reason_for_and_against_has_a_name(rules, session, run, window, cause):
    decision = decide(rules, session, window, **run)
    assert (decision.flush, decision.cause) == (cause in ("tokens", "transcript size"), cause)
    assert decision.detail
    assert "{" not in decision.detail
    counted = session.total_tokens if session.fresh else None
    left = None if counted is None or window < 24_001 else max(0, 176_000 - counted)
    assert (decision.tokens, decision.left) == (counted, left)


@pytest.mark.parametrize(
    ("session", "tokens"),
    [
        (Session(total_tokens=100, fresh=True, usage=(90, 5)), 105),
        (Session(total_tokens=100, usage=(90, 5)), 95),
        (Session(total_tokens=80, fresh=True, usage=(90, 0)), 90),
        (Session(total_tokens=100, usage=(0, 5)), None),
    ],
)
def test_the_larger_count_and_the_answer_are_counted(session, tokens):
    assert session.tokens == tokens


def lines(path, *records):
    put(path.parent, path.name, text="".join(json.dumps(record) + "\n" for record in records))
    return path


def usage(**counts):
    return {"type": "message", "message": {"role": "assistant", "content": "x", "usage": counts}}


def said(tokens):
    return usage(input=tokens - 5, cacheRead=5, output=10)


LONG = {"type": "message", "message": {"role": "user", "content": "y" * 200_000}}


@pytest.mark.parametrize(
    ("records", "last"),
    [
        ([said(100), LONG, usage(input=295, cacheRead=5, output=20), LONG, usage(input=0)], (300, 20)),
        ([usage(input_tokens=3, cache_read_input_tokens=40, cache_creation_input_tokens=7, output_tokens=9)], (50, 9)),
        ([], None),
        ([[1], None, {"usage": 3}], None),
        ([{"usage": {"input": math.inf, "output_tokens": 7.5}}], (0, 7)),
        ([{"usage": {"input": -1, "output": True}}], None),
    ],
)
def test_the_last_usage_is_read_from_the_end(tmp_path, records, last):
    path = lines(tmp_path / "a.jsonl", *records)
    path.write_bytes(path.read_bytes() + b'{"usage"\xff\n')
    assert agent_sessions.usage_in(reversed(agent_sessions.tail(path))) == last


def test_the_settings_are_those_of_the_configuration(write):
    flushing = {"softThresholdTokens": 500, "forceFlushTranscriptBytes": "3mb"}
    compaction = {"reserveTokensFloor": 1000, "memoryFlush": flushing}
    tree = {"agents": {"defaults": {"contextTokens": 50_000, "compaction": compaction}}}
    config = configuration.load(str(write(tree)), None)
    assert flush.rules_of(config) == FlushRules(True, 1000, 500, 3 * 1024 * 1024)
    assert flush.window_of(config) == 50_000
    assert flush.window_of(config_file.Config()) == 200_000


def test_all_sessions_are_listed_with_what_their_host_keeps(home, write, printed, monkeypatch):
    def listed():
        return json.loads(printed("openclaw", "flush", "--json"))

    write({})
    folder = home / ".openclaw/agents/main/sessions"
    lines(folder / "one.jsonl", said(10))
    lines(folder / "two.jsonl", said(10))
    done = {"compactionCount": 1, "memoryFlushCompactionCount": 0, "memoryFlushAt": 1000}
    entries = {
        "agent:main:main": {"sessionId": "one", "totalTokens": 199_000, **done},
        "agent:main:stale": {"sessionId": "two", "totalTokens": 199_000, "totalTokensFresh": False},
    }
    (folder / "sessions.json").write_text(json.dumps(entries))
    answer = {each["session"]: each for each in listed()}
    assert (answer["one"]["flush"], answer["one"]["flushedAt"]) == (True, 1.0)
    assert answer["two"]["cause"] == "below threshold"
    reads, read = [], flush.read_regular
    monkeypatch.setattr(flush, "read_regular", lambda path: reads.append(path.name) or read(path))
    assert listed()
    assert reads.count("sessions.json") == 1, "however many transcripts there are"
    (folder / "sessions.json").write_text("{half")
    assert {each["cause"] for each in listed()} == {"below threshold"}
    (folder / "three.jsonl").symlink_to("gone")
    printed("openclaw", "flush", code=1)


def entry(triggers="tea", text="- tea", **more):
    project = str(more.pop("project", ""))
    return CuratedEntry("MEMORY.md", 1, 1, text, Annotations(0, triggers, project), **more)


@pytest.mark.parametrize(
    ("message", "one", "match", "outcome"),
    [
        ("Which TEA?", entry(), 0.68, "injected"),
        ("Which tea?", entry(search=0.5), 0.78, "injected"),
        ("Which tea?", entry(search=7.0), 0.88, "injected"),
        ("Which tea?", entry("tea oolong kettle"), 0.8 * (0.8 / 3 + 0.1), "below the line"),
        ("Which tea?", entry(trusted=False), 0.68, "untrusted"),
        ("Which tea?", entry(project="site"), 0.68, "other project"),
        ("Which tea?", entry(project="site; other"), 0.68, "other project"),
        ("Which tea?", entry(project="other"), 0.68, "injected"),
        ("Which tea?", entry(text="x" * 1801), 0.68, "no room"),
        ("Which tea?", entry("coffee; Tea"), 0.68, "injected"),
        ("teapot", entry(), 0.0, "no phrase fits"),
        ("a b", entry("a"), 0.0, "no phrase fits"),
        ("plan the trip to Rome", entry("trip planning"), 0.8 * (0.8 / 2 + 0.2 / 2), "below the line"),
        ("plan the trip to Rome", entry("trip rome"), 0.8, "injected"),
    ],
)
def test_what_becomes_of_an_entry(message, one, match, outcome):
    (found,) = triggered(message, [one], active=("other",))
    assert (found.match, found.outcome) == (pytest.approx(match), outcome)


def test_what_fits_no_phrase_stands_last_whatever_search_says():
    found = triggered("tea", [entry("coffee", search=1.0), entry("tea oolong kettle pot")])
    assert [one.outcome for one in found] == ["below the line", "no phrase fits"]
    assert all(str(LINE) in one.reason for one in found[:1])
    assert triggered("tea", [entry(triggers="")]) == []


@given(st.lists(st.tuples(st.floats(-1, 2), st.integers(0, 900), st.booleans()), max_size=8))
def test_never_more_than_three_nor_too_long_nor_untrusted(rows):
    entries = [entry(text="x" * size, search=search, trusted=trusted) for search, size, trusted in rows]
    chosen = [one for one in triggered("tea", entries) if one.outcome == "injected"]
    assert len(chosen) <= MOST
    assert sum(len(one.entry.text) for one in chosen) <= MOST_UNITS
    assert all(one.entry.trusted and one.match >= LINE for one in chosen)


def test_the_command_decides_it_from_the_index(tmp_path, printed):
    facts = "- oolong in the morning <!-- trigger: tea -->\n- Rome in May <!-- trigger: trip planning hotel -->\n"
    notes = put_all(tmp_path / "notes", {"MEMORY.md": f"# Facts\n{facts}"})
    shared = ["--workspace", str(notes), "--index", str(tmp_path / "i.sqlite"), "--provider", "none"]
    newest = [*shared, "--profile", "openclaw-2026.9"]
    found = json.loads(printed(*newest, "--json", "openclaw", "inject", "Which tea on the trip?"))
    assert [(one["entry"]["start_line"], one["outcome"]) for one in found] == [(2, "injected"), (3, "below the line")]
    assert "1 injected; the line is 0.65." in printed(*newest, "openclaw", "inject", "Which tea on the trip?")
    printed(*shared, "--profile", "openclaw-2026.3", "openclaw", "inject", "tea", code=2)
