"""What agents recalled, turn by turn, from the transcripts of three hosts."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from memory_tui import agents, recall_log
from memory_tui.recall_log import RecallEntry
from tests.support.ledger import HostLedger
from tests.support.transcripts import (
    Record,
    claude,
    claude_file,
    claude_said,
    codex_file,
    iso,
    openclaw,
    openclaw_database,
    openclaw_said,
)
from tests.support.workspace import put

STOPCOCK = "The stopcock is under the stairs behind the blue door."
PUMP = "The pump of the cellar is switched on in April by hand."
HITS: list[Record] = [
    {"path": "MEMORY.md", "startLine": 3, "endLine": 4, "score": 0.9, "snippet": STOPCOCK},
    {"path": "memory/2026-11-01.md", "startLine": 1, "endLine": 1, "score": 0.5, "snippet": PUMP},
]
ANSWER: Record = {"results": HITS, "mode": "fts-only", "answerLevel": {"level": "found"}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a workspace that knows where the stopcock is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "notes", "MEMORY.md", text=f"# House\n\n- {STOPCOCK}\n")
    return tmp_path


def asked(home: Path, at: float, said: str, answer: str, reply: Record = ANSWER, query: str = "stopcock") -> None:
    """A session of Claude Code with one turn that asked the memory."""
    name, cwd = "mcp__memory__memory_search", str(home / "notes")
    call = claude(f"m{at}", name, {"query": query}, at + 1, cwd, text=json.dumps(reply))
    claude_file(home, [claude_said("user", said, at, cwd), *call, claude_said("assistant", answer, at + 2, cwd)])


def turns(home: Path, at: float) -> list[agents.SessionTurns]:
    sessions, problems = agents.sessions(home / "notes", at - 60)
    assert problems == []
    return sessions


def test_a_transcript_tells_that_an_answer_was_found_in_part(home):
    at = time.time() + 1
    level = {"level": "found", "sentence": 'Found in part ("water", not "stopcock"): the best window holds 60%.'}
    asked(home, at, "Where is the stopcock?", "No idea.", {**ANSWER, "answerLevel": level})
    [session] = turns(home, at)
    assert [recall.entry.reply for turn in session.turns for recall in turn.recalls] == ["found in part"]


def test_three_hosts_tell_what_was_asked_and_what_came_back(home):
    at, cwd = time.time() + 1, str(home / "notes")
    asked(home, at, "Where do I turn the water off?", "Behind the blue door, under the stairs.")
    item = {"type": "McpToolCall", "id": "x1", "server": "memory", "tool": "memory_search", "status": "completed"}
    item |= {"arguments": {"query": "stopcock"}, "result": {"content": [], "structuredContent": ANSWER}}
    step = {"type": "item_completed", "item": item, "started_at_ms": at * 1000, "completed_at_ms": at * 1000 + 9}
    codex_file(home, [{"timestamp": iso(at), "type": "event_msg", "payload": step}], at, cwd)
    within = {"tool": {"name": "memory_search"}, "result": {"content": [], "details": ANSWER}}
    wrapped = openclaw("o1", "tool_call", {"id": "memory_search", "args": {"query": "stopcock"}}, at, within)
    nested = {"role": "custom", "customType": "openclaw.nested-tool.v1", "details": {"toolName": "memory_search"}}
    lines = [openclaw_said("user", "Water?", at), *wrapped]
    lines += [{"type": "message", "message": nested, "timestamp": iso(at + 1)}]
    openclaw_database(home, lines, at, cwd)
    told = {
        session.host: [(recall.entry.query, len(recall.entry.hits), recall.entry.reply) for recall in turn.recalls]
        for session in turns(home, at)
        for turn in session.turns
    }
    assert told == {host: [("stopcock", 2, "found")] for host in ("claude-code", "codex", "openclaw")}


@pytest.mark.parametrize(
    ("answer", "use", "hits"),
    [
        ("It is under the stairs behind the blue door.", "quoted MEMORY.md#L3-L4", HITS),
        ("I do not know.", "not quoted", HITS),
        ("You said turn the water off.", "not quoted", HITS),
        ("Switched on in April by hand; under the stairs.", "quoted memory/2026-11-01.md#L1", HITS),
        (
            "It is under the stairs behind the blue door.",
            "quoted one of 2 hits",
            [HITS[0], {**HITS[0], "path": "b.md"}],
        ),
    ],
)
def test_a_hit_was_quoted_by_words_that_it_alone_has(answer, use, hits, home):
    at = time.time() + 1
    asked(home, at, "Where do I turn the water off?", answer, {"results": hits})
    ((recall,),) = [turn.recalls for session in turns(home, at) for turn in session.turns]
    assert recall.use == use


def test_the_log_gives_the_knobs_of_then(home):
    at = time.time() + 1
    asked(home, at, "Water?", "Hm.")
    path = recall_log.recall_log_path(home / "notes")
    entry = RecallEntry("memory_search", "stopcock", at + 1.02, settings={"profile": "recommended"}, level="found")
    recall_log.append_recall(path, RecallEntry("memory_search", "stopcock", at - 50))
    logged = recall_log.append_recall(path, entry)
    ((recall,),) = [turn.recalls for session in turns(home, at) for turn in session.turns]
    assert recall.entry.id == logged.id
    assert "ranked by recommended" in agents.recall_words(recall)


@pytest.mark.parametrize(
    ("query", "after", "workspace", "confirmed"),
    [
        ("stopcock", 1.04, "notes", True),
        ("stopcock", 60, "notes", False),
        ("valve", 1.04, "notes", False),
        ("stopcock", 1.04, "elsewhere", False),
    ],
)
def test_the_journal_of_openclaws_own_memory_confirms_a_recall(query, after, workspace, confirmed, home):
    at, cwd = time.time() + 1, str(home / "notes")
    call = openclaw("o1", "memory_search", {"query": "stopcock"}, at, ANSWER)
    openclaw_database(home, [openclaw_said("user", "Water?", at), *call], at, cwd)
    ledger = HostLedger.make(home / ".openclaw", home / workspace)
    ledger.recalled(1, {"type": "memory.recall.recorded", "timestamp": iso(at + after), "query": query})
    ledger.recalled(2, "[]")
    ((recall,),) = [turn.recalls for session in turns(home, at) for turn in session.turns]
    assert recall.confirmed == confirmed == ("(confirmed)" in agents.recall_words(recall))


def test_a_journal_that_cannot_be_read_is_a_sentence(home):
    at, cwd = time.time() + 1, str(home / "notes")
    call = openclaw("o1", "memory_search", {"query": "stopcock"}, at, ANSWER)
    openclaw_database(home, [openclaw_said("user", "Water?", at), *call], at, cwd)
    HostLedger.make(home / ".openclaw", home / "notes").database.write_bytes(b"no database " * 900)
    ((session,), (problem,)) = agents.sessions(home / "notes", at - 60)
    assert "openclaw.sqlite" in problem
    assert not session.turns[0].recalls[0].confirmed


def test_sessions_of_another_memory_are_not_listed(home):
    at = time.time() + 1
    claude_file(home, [claude_said("user", "Hello.", at, "/elsewhere")])
    assert turns(home, at) == []


def test_a_secret_in_a_question_is_masked(home):
    at = time.time() + 1
    key = "sk-ant-api03-" + "a1B2c3D4e5" * 9
    asked(home, at, f"My key is {key}.", "Thanks.", query=f"key {key}")
    assert key not in repr(turns(home, at))


def test_the_command_says_who_should_have_asked(home, printed):
    at = time.time() + 1
    asked(home, at, "Where do I turn the water off?", "Under the stairs behind the blue door.")
    claude_file(home, [claude_said("user", "Where is the stopcock behind the blue door?", at + 5)])
    claude_file(home, [claude_said("user", "Refactor the parser of invoices.", at + 6)])
    words = ["recall-log", "--sessions", "--workspace", str(home / "notes"), "--provider", "none"]
    out = printed(*words)
    assert "3 turns: 1 asked the memory, 1 quoted it, 1 should have asked" in out
    assert "did not ask; MEMORY.md#L1-L3 answers it" in out
    notes = {"MEMORY.md: recalled 1 time, quoted 1", "memory/2026-11-01.md: recalled 1 time, quoted never"}
    assert set(out.splitlines()[-2:]) == notes
    data: dict[str, Any] = json.loads(printed(*words, "--json"))
    assert [bool(turn["knew"]) for turn in data["sessions"][0]["turns"]] == [False, True, False]
