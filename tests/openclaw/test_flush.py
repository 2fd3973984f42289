"""The flush before compaction: every reason for and against it, the tokens it counts, and the turn it asks for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.cli import main
from memory_tui.config import load as configuration
from memory_tui.config import model
from memory_tui.openclaw import flush, sessions
from memory_tui.openclaw.flush import AgentRun, FlushRules, Session, decide

pytest_plugins = ["tests.support.config"]

BIG = Session(total_tokens=176_000, fresh=True)


def test_a_session_at_the_threshold_is_flushed() -> None:
    assert flush.threshold(200_000, FlushRules()) == 176_000
    found = decide(FlushRules(), BIG, AgentRun(), 200_000)
    assert (found.flush, found.cause, found.tokens, found.left) == (True, "tokens", 176_000, 0)
    below = decide(FlushRules(), replace(BIG, total_tokens=175_999), AgentRun(), 200_000)
    assert (below.flush, below.cause, below.left) == (False, "below threshold", 1)


@pytest.mark.parametrize(
    ("rules", "session", "run", "window", "cause"),
    [
        (FlushRules(enabled=False), BIG, AgentRun(), 200_000, "disabled"),
        (FlushRules(), BIG, AgentRun(heartbeat=True), 200_000, "heartbeat"),
        (FlushRules(), BIG, AgentRun(cli_provider=True), 200_000, "cli provider"),
        (FlushRules(), BIG, AgentRun(writable=False), 200_000, "read-only sandbox"),
        (FlushRules(), replace(BIG, compactions=2, flushed_in=2), AgentRun(), 200_000, "already flushed"),
        (FlushRules(), BIG, AgentRun(), 24_000, "window too small"),
        (FlushRules(), Session(), AgentRun(), 200_000, "tokens unknown"),
        (FlushRules(), replace(BIG, fresh=False), AgentRun(), 200_000, "tokens unknown"),
        (FlushRules(), Session(total_tokens=5, fresh=True), AgentRun(), 200_000, "below threshold"),
    ],
)
def test_every_reason_not_to_has_a_name(
    rules: FlushRules, session: Session, run: AgentRun, window: int, cause: str
) -> None:
    found = decide(rules, session, run, window)
    assert (found.flush, found.cause) == (False, cause)
    assert found.detail


def test_a_flush_of_an_earlier_cycle_does_not_count() -> None:
    assert decide(FlushRules(), replace(BIG, compactions=3, flushed_in=2), AgentRun(), 200_000).flush


@pytest.mark.parametrize("window", [200_000, 10_000])
def test_a_large_transcript_is_flushed_whatever_the_tokens_say(window: int) -> None:
    large = Session(transcript_bytes=2_097_152)
    assert decide(FlushRules(), large, AgentRun(), window).cause == "transcript size"
    assert not decide(FlushRules(), replace(large, transcript_bytes=2_097_151), AgentRun(), window).flush
    assert not decide(FlushRules(force_bytes=0), large, AgentRun(), window).flush
    assert not decide(FlushRules(), replace(large, flushed_in=0), AgentRun(), window).flush


@given(st.integers(0, 300_000), st.booleans(), st.integers(0, 300_000), st.integers(0, 9000), st.integers(0, 9000))
def test_the_larger_count_is_projected_to_the_next_turn(
    kept: int, fresh: bool, prompt: int, out: int, coming: int
) -> None:
    found = flush.projected(
        Session(
            total_tokens=kept or None, fresh=fresh, prompt_tokens=prompt or None, output_tokens=out, next_tokens=coming
        )
    )
    snapshot = max(kept if fresh else 0, prompt)
    assert found == (snapshot + out + coming if snapshot else None)


def test_a_transcript_is_read_only_when_it_can_matter() -> None:
    fresh = Session(total_tokens=100_000, fresh=True)
    assert not flush.reads_transcript(fresh, 176_000)
    assert flush.reads_transcript(replace(fresh, fresh=False), 176_000)
    assert flush.reads_transcript(replace(fresh, total_tokens=176_000 - 8_192), 176_000)


# --- the turn ------------------------------------------------------------------------------------------------------


def test_the_turn_names_the_one_file_and_lets_the_agent_be_silent() -> None:
    turn = flush.turn(FlushRules(), "2026-11-21", "2026-11-21 23:00 UTC")
    assert turn.file == "memory/2026-11-21.md"
    assert "memory/2026-11-21.md" in turn.prompt
    assert "YYYY-MM-DD.md" not in turn.prompt
    assert "Current time: 2026-11-21 23:00 UTC" in turn.prompt
    assert flush.SILENT in turn.prompt
    assert flush.SILENT in turn.system_prompt


def test_a_prompt_of_ones_own_keeps_its_words_and_gets_what_it_lacks() -> None:
    turn = flush.turn(
        FlushRules(prompt="Write it down. Current time: noon", system_prompt="Be brief."), "2026-01-02", "now"
    )
    assert turn.prompt.startswith("Write it down. Current time: noon\n\nStore durable memories only in memory/2026-01")
    assert turn.prompt.count("Current time:") == 1
    assert turn.system_prompt.startswith("Be brief.\n\n")
    whole = flush.turn(FlushRules(prompt=flush.turn(FlushRules(), "YYYY-MM-DD", "t").prompt), "2026-01-02", "now")
    assert whole.prompt.count("append to it") == 1


# --- transcripts and what is kept ----------------------------------------------------------------------------------


def lines(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def said(tokens: int, out: int = 10) -> dict:
    return {
        "type": "message",
        "message": {"role": "assistant", "content": "x", "usage": {"input": tokens - 5, "cacheRead": 5, "output": out}},
    }


def test_the_last_usage_is_found_from_the_end(tmp_path: Path) -> None:
    long = {"type": "message", "message": {"role": "user", "content": "y" * 200_000}}
    path = lines(
        tmp_path / "a.jsonl",
        said(100),
        long,
        said(300, 20),
        {"type": "message", "message": {"role": "assistant", "usage": {"input": 0}}},
    )
    assert flush.last_usage(path) == flush.Usage(300, 20)
    claude = {
        "type": "assistant",
        "message": {
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 7,
                "output_tokens": 9,
            }
        },
    }
    assert flush.last_usage(lines(tmp_path / "b.jsonl", claude)) == flush.Usage(50, 9)
    assert flush.last_usage(lines(tmp_path / "c.jsonl")) is None
    (tmp_path / "d.jsonl").write_bytes(b'{"usage"\xff\n[1]\nnull\n')
    assert flush.last_usage(tmp_path / "d.jsonl") is None
    (tmp_path / "e.jsonl").write_text('{"usage": {"input": 1e999, "output_tokens": 7.5}}\n')
    assert flush.last_usage(tmp_path / "e.jsonl") == flush.Usage(0, 7)


@pytest.mark.parametrize(("value", "number"), [(3, 3), (2.9, 2), (0, 0), (-1, None), (True, None), ("4", None)])
def test_a_number_of_json_is_whole_from_0_up_or_none(value: object, number: int | None) -> None:
    assert flush.whole(value) == number
    assert flush.whole(math.inf) is flush.whole(math.nan) is flush.whole(None) is None


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=9), max_size=30))
def test_lines_come_backwards_whole(texts: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes("\n".join(texts).encode())
        before, flush.BLOCK = flush.BLOCK, 7
        try:
            assert list(flush._backwards(path))[::-1] == "\n".join(texts).encode().split(b"\n")
        finally:
            flush.BLOCK = before


def test_compactions_are_counted(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        said(1),
        {"type": "compaction"},
        {"type": "system", "subtype": "compact_boundary"},
        {"type": "message", "message": {"role": "user", "content": "let us compact it"}},
    )
    assert flush.compactions(path) == 2


def test_the_settings_are_those_of_the_configuration(write: Callable[[object], Path]) -> None:
    config = configuration.load(
        str(
            write(
                {
                    "agents": {
                        "defaults": {
                            "contextTokens": 50_000,
                            "compaction": {
                                "reserveTokensFloor": 1000,
                                "memoryFlush": {
                                    "softThresholdTokens": 500,
                                    "forceFlushTranscriptBytes": "3mb",
                                    "prompt": "P",
                                },
                            },
                        }
                    },
                    "models": {"providers": {"acme": {"models": [{"id": "m1", "contextWindow": 9000}]}}},
                }
            )
        ),
        None,
    )
    rules = sessions.rules_of(config)
    assert (rules.reserve_floor, rules.soft_threshold, rules.prompt) == (1000, 500, "P")
    assert rules.force_bytes == 3 * 1024 * 1024
    assert sessions.window_of(config) == 50_000
    assert sessions.window_of(config, "acme/m1") == 9000
    assert sessions.window_of(config, "acme/other") == 50_000
    assert sessions.window_of(model.Config()) == 200_000


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_host_asks_runs_and_reports(
    write: Callable[[object], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write({})
    path = lines(tmp_path / "s1.jsonl", said(180_000), {"type": "compaction"})
    found = run(capsys, "openclaw", "flush", "--transcript", str(path))
    assert (found["flush"], found["cause"], found["session"]) == (True, "tokens", "s1")
    assert found["turn"]["file"].startswith("memory/")
    run(capsys, "openclaw", "flush", "--transcript", str(path), "--done")
    assert run(capsys, "openclaw", "flush", "--transcript", str(path))["cause"] == "already flushed"
    path.write_text(path.read_text() + '{"type": "compaction"}\n')
    assert run(capsys, "openclaw", "flush", "--transcript", str(path))["flush"] is True
    assert run(capsys, "openclaw", "flush", "--session", "other", "--tokens", "100")["cause"] == "below threshold"
    assert (
        run(capsys, "openclaw", "flush", "--session", "x", "--tokens", "190000", "--heartbeat")["cause"] == "heartbeat"
    )
    assert main.main(["openclaw", "flush", "--transcript", str(tmp_path / "none.jsonl")]) == 1


def test_all_sessions_are_listed_with_what_their_host_keeps(
    home: Path,
    write: Callable[[object], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write({})
    folder = home / ".openclaw/agents/main/sessions"
    lines(folder / "one.jsonl", said(10))
    lines(folder / "two.jsonl", said(10))
    (folder / "sessions.json").write_text(
        json.dumps(
            {
                "agent:main:main": {
                    "sessionId": "one",
                    "totalTokens": 199_000,
                    "compactionCount": 1,
                    "memoryFlushCompactionCount": 0,
                    "memoryFlushAt": 1000,
                },
                "agent:main:stale": {"sessionId": "two", "totalTokens": 199_000, "totalTokensFresh": False},
            }
        )
    )
    found = {one["session"]: one for one in run(capsys, "openclaw", "flush")}
    assert (found["one"]["flush"], found["one"]["flushedAt"]) == (True, 1.0)
    assert found["two"]["cause"] == "below threshold"
    reads, read = [], sessions.read_regular
    monkeypatch.setattr(sessions, "read_regular", lambda path: reads.append(path.name) or read(path))
    assert run(capsys, "openclaw", "flush")
    assert reads.count("sessions.json") == 1, "however many transcripts there are"
    (folder / "sessions.json").write_text("{half")
    assert {one["cause"] for one in run(capsys, "openclaw", "flush")} == {"below threshold"}
