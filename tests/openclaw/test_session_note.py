"""What a host gets around a session: the recall section, fresh notes, and the conversation saved as a note."""

import datetime as dt
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from memory_tui import plan
from memory_tui.cli import host_calls
from memory_tui.hosts import claude_code
from memory_tui.notes import edit
from memory_tui.openclaw import agent_sessions
from memory_tui.openclaw.agent_sessions import EndedSession, Message
from memory_tui.plan import Options
from tests.support.curate import curator, entries, journal_of
from tests.support.workspace import put_all

NOW = "2026-11-21T23:30:00Z"


@pytest.fixture
def workspace(tmp_path):
    logs = {"2026-11-21": "today ```code```\n", "2026-11-20": "yesterday\n", "2026-11-19": "too old\n"}
    facts = {"MEMORY.md": "# Lasting\n- likes tea\n"}
    return put_all(tmp_path / "notes", facts | {f"memory/{day}.md": text for day, text in logs.items()})


def test_the_prompt_has_the_notes_of_the_session(workspace, printed):
    base = ("prompt", "--workspace", str(workspace), "--now", NOW)

    def files():
        return [file["path"] for file in json.loads(printed(*base, "--json"))["files"]]

    assert files() == ["MEMORY.md", "memory/2026-11-21.md", "memory/2026-11-20.md"]
    out = printed(*base, "--session", "agent:main:telegram:group:1")
    assert "likes tea" not in out
    assert "yesterday" in out
    assert "````markdown" in out, "a fence inside a note does not end the quotation"
    assert "Citations: off" in printed(*base, "--citations", "off")
    # Blank notes are left out.
    (workspace / "MEMORY.md").write_text("\ufeff \n\n\t\n")
    (workspace / "memory/2026-11-21.md").write_bytes(b"")
    assert files() == ["memory/2026-11-20.md"]
    (workspace / "memory/2026-11-20.md").write_text("\n")
    assert "## Memory Files" not in printed(*base), "nothing to quote"


def test_the_last_messages_are_what_was_said(tmp_path):
    texts = [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "two\nlines"}]
    rows = [("user", "one"), ("assistant", texts), ("toolResult", "no"), ("user", "/new"), ("assistant", "NO_REPLY")]
    rows += [("user", "  "), ("user", "last")]
    records = [{"type": "message", "message": {"role": role, "content": text}} for role, text in rows]
    path = written(tmp_path / "s.jsonl", records)
    path.write_text(path.read_text() + "not json\n")
    said = (Message("user", "one"), Message("assistant", "two\nlines"), Message("user", "last"))
    assert agent_sessions.messages(path) == said
    assert agent_sessions.messages(path, 1) == (Message("user", "last"),)
    assert agent_sessions.messages(tmp_path / "none.jsonl") == ()


def test_the_note_is_as_documented(tmp_path):
    at = dt.datetime(2026, 3, 14, 9, 5, 33, tzinfo=dt.UTC)
    write = writer(tmp_path, tmp_path)
    path = agent_sessions.save(tmp_path, EndedSession(at, "abc", "/new"), "user: hi", write)
    assert path == tmp_path / "memory/2026-03-14-0905.md"
    assert path.read_text().split("---\n")[2] == (
        "# Session: 2026-03-14 09:05:33 UTC\n\n- **Session Key**: unknown\n- **Session ID**: abc\n"
        "- **Reason**: /new\n\n## Conversation Summary\n\nuser: hi\n"
    )
    again = agent_sessions.save(tmp_path, EndedSession(at, "b"), "", write)
    assert again.name == "2026-03-14-0905-2.md"
    assert agent_sessions.save(tmp_path, EndedSession(at, "c"), "x", write).name == "2026-03-14-0905-3.md"
    names = sorted(p.name for p in (tmp_path / "memory").iterdir())
    assert names == ["2026-03-14-0905-2.md", "2026-03-14-0905-3.md", "2026-03-14-0905.md"]


def writer(workspace, folder):
    """What writes a session note, as the hook does: through the journal."""
    return partial(host_calls.write_note, curator(workspace, journal=journal_of(folder)))


@pytest.fixture
def hook(monkeypatch, command):
    def go(given, *more, host="claude-code"):
        monkeypatch.setattr("sys.stdin", io.StringIO(given if isinstance(given, str) else json.dumps(given)))
        code, out, _ = command("hook", host, "--now", NOW, *more)
        return code, (json.loads(out) if out.startswith("{") else {"text": out}) if out else {}

    return go


def called(name, folder, **more):
    return {"hook_event_name": name, "session_id": "c1", "cwd": str(folder), **more}


def test_a_session_of_claude_code_starts_with_fresh_logs_and_no_second_rule(workspace, hook):
    code, answer = hook(called("SessionStart", workspace, source="startup"))
    said = answer["hookSpecificOutput"]
    assert (code, said["hookEventName"]) == (0, "SessionStart")
    assert "## Memory Recall" not in said["additionalContext"], "the server gives the rule, once"
    assert "yesterday" in said["additionalContext"]
    assert "likes tea" not in said["additionalContext"], "Claude Code reads MEMORY.md itself"


@pytest.mark.parametrize(
    ("host", "member", "told"),
    [
        ("claude-code", "text", "memory/2026-11-21.md holds what was written down today"),
        ("codex", "systemMessage", "memory/2026-11-21.md was written today"),
    ],
)
def test_before_a_compaction_the_summary_is_told_what_to_keep(workspace, hook, host, member, told):
    """Claude Code puts the text into the prompt of its summariser; JSON would be noise there."""
    code, answer = hook(called("PreCompact", workspace, trigger="auto"), host=host)
    assert code == 0
    assert told in answer[member]
    assert answer[member].startswith("Keep in the summary") == (host == "claude-code")


def test_at_the_end_the_conversation_is_saved(workspace, tmp_path, hook):
    path = tmp_path / "c1.jsonl"
    records = [
        {"type": "summary", "summary": "x"},
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": "injected"}},
        {"type": "user", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
        {"type": "user", "message": {"role": "user", "content": "fix the build"}},
        {"type": "assistant", "isSidechain": True, "message": {"role": "assistant", "content": "sub-agent"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "done"}]}},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    code, answer = hook(called("SessionEnd", workspace, transcript_path=str(path), reason="clear"))
    assert (code, answer) == (0, {})
    text = (workspace / "memory/2026-11-21-2330.md").read_text()
    assert text.endswith("user: fix the build\nassistant: done\n")
    assert "**Reason**: clear" in text


def test_a_project_without_notes_has_those_of_claude_code(tmp_path, hook, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project = tmp_path / "my.project"
    project.mkdir()
    code, answer = hook(called("SessionStart", project))
    assert code == 0
    assert answer == {}
    assert hook(called("SessionEnd", project)) == (0, {})
    place = claude_code.auto_memory(project)
    assert place.parent.parent == tmp_path / "claude/projects"
    (place / "memory").mkdir(parents=True)
    (place / "memory/2026-11-21.md").write_text("from claude")
    assert "from claude" in json.dumps(hook(called("SessionStart", project))[1])


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"hook_event_name": "Stop"}', '{"hook_event_name": 5}', "\0", "[" * 9999]
)
def test_what_is_no_event_is_an_error_that_stops_nothing(text, hook):
    assert hook(text) == (1, {})


def test_what_claude_code_remembers_can_be_searched(tmp_path, monkeypatch, printed):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)

    def found():
        answer = json.loads(printed("search", "capacitor", "--provider", "none", "--claude-code", "--json"))
        return {Path(hit["path"]).name for hit in answer["results"]}

    printed("search", "anything", "--provider", "none", "--claude-code", code=2)
    memory = claude_code.auto_memory(project)
    put_all(memory, {"MEMORY.md": "- see debugging.md\n", "debugging.md": "# Debugging\nthe flux capacitor is reset\n"})
    assert found() == {"debugging.md"}
    (project / "MEMORY.md").write_text("our own note of the capacitor\n")
    assert found() == {"MEMORY.md", "debugging.md"}
    assert claude_code.is_auto_memory(memory / "MEMORY.md")
    assert not claude_code.is_auto_memory(project / "MEMORY.md")


FACT = "The Omada controller runs on port 8043 in VLAN 20."
ANSWER = json.dumps({"results": [{"path": "MEMORY.md", "startLine": 3, "snippet": f"# Net\n\n- {FACT}\n"}]})


def claude(*said):
    return [{"type": role, "message": {"role": role, "content": text}} for role, text in said]


def recalled_by_claude():
    call = {"type": "tool_use", "id": "t1", "name": "mcp__memory__memory_search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": ANSWER}]}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]


def recalled_by_codex():
    call = {"type": "function_call", "name": "memory_search", "namespace": "mcp__memory", "call_id": "c1"}
    result = {"type": "function_call_output", "call_id": "c1", "output": f"Wall time: 1 s\nOutput:\n{ANSWER}"}
    return [{"type": "response_item", "payload": item} for item in (call, result)]


def codex(*said):
    texts = [[{"type": "output_text" if role == "assistant" else "input_text", "text": text}] for role, text in said]
    messages = zip(said, texts, strict=True)
    items = [{"type": "message", "role": role, "content": content} for (role, _), content in messages]
    return [{"type": "response_item", "payload": item} for item in items]


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_what_was_recalled_or_put_in_by_the_host_is_not_in_the_note(host, tmp_path):
    say, recalled = (claude, recalled_by_claude()) if host == "claude-code" else (codex, recalled_by_codex())
    said = [
        *say(("user", "<environment_context><cwd>/x</cwd></environment_context>")),
        *say(("user", "<system-reminder>\nbe brief\n</system-reminder>Which port has Omada?")),
        *recalled,
        *say(("assistant", "It is this:\n- the  omada controller runs on port 8043\nin VLAN 20. Move it to 9443?")),
        *say(("user", f"Yes. {FACT}")),
        {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "Summary: all of it"}},
        {"type": "attachment", "attachment": {"type": "hook_success", "stdout": "x"}},
        *say(("user", "<local-command-stdout>noise</local-command-stdout>")),
        *say(("developer", "rules")),
    ]
    assert agent_sessions.messages(written(tmp_path / "s.jsonl", said)) == (
        Message("user", "Which port has Omada?"),
        Message("assistant", "It is this:\n- [see MEMORY.md] Move it to 9443?"),
        Message("user", f"Yes. {FACT}"),
    )


def notes_of(workspace):
    return sorted(path.name for path in (workspace / "memory").glob("2026-11-2?-*.md"))


def test_a_session_has_one_note_that_goes_on(workspace, tmp_path, hook):
    path = tmp_path / "abc.jsonl"

    def end(*said, session="abc"):
        written(path, claude(*said))
        assert hook(called("SessionEnd", workspace, transcript_path=str(path), session_id=session))[0] == 0

    first = [("user", f"message {number}") for number in range(12)]
    end(*first)
    os.mkfifo(workspace / "memory" / "pipe.md")
    [name] = notes_of(workspace)
    note = workspace / "memory" / name
    assert note.read_text().startswith("---\nsession: abc\nwritten: ")
    seen = note.stat().st_mtime_ns
    end(*first)
    assert note.stat().st_mtime_ns == seen, "nothing new was said"
    end(*first, *(("user", f"later {number}") for number in range(8)))
    assert notes_of(workspace) == [name]
    lines = note.read_text().split("## Conversation Summary\n\n")[1].splitlines()
    assert lines == [
        f"user: {word} {number}" for word, most in (("message", 12), ("later", 8)) for number in range(most)
    ]
    end(("user", "a new start"))
    assert note.read_text().endswith("user: later 7\nuser: a new start\n")
    end(("user", "of another"), session="other")
    assert len(notes_of(workspace)) == 2
    note.write_text(note.read_text() + "mine\n")
    end(*first, ("user", "the end"))
    assert len(notes_of(workspace)) == 3
    assert note.read_text().endswith("mine\n")


def test_a_line_that_another_program_adds_meanwhile_is_kept(workspace, tmp_path, hook, monkeypatch, printed):
    path = tmp_path / "abc.jsonl"

    def end(*said):
        written(path, claude(*(("user", text) for text in said)))
        assert hook(called("SessionEnd", workspace, transcript_path=str(path), session_id="abc"))[0] == 0

    end("the first message")
    [name] = notes_of(workspace)
    note = workspace / "memory" / name
    before = note.read_bytes()
    end("the first message", "the second message")
    with_second = note.read_bytes()
    printed("undo", "--workspace", str(workspace), "--yes")
    assert note.read_bytes() == before, "going on with a note is a change that can be undone"
    kept = entries(edit.curator(plan.plan(Options(workspace=str(workspace)))), f"memory/{name}")
    assert [entry.kind for entry in kept] == ["undo", "session", "session"], "the record names its own notes"
    continued = agent_sessions._continued

    def meanwhile(*given):
        with note.open("ab") as file:
            file.write(b"what the agent noted\n")
        return continued(*given)

    monkeypatch.setattr(agent_sessions, "_continued", meanwhile)
    end("the first message", "the second message")
    assert note.read_bytes() == before + b"what the agent noted\n"
    [other] = set(notes_of(workspace)) - {name}
    assert (workspace / "memory" / other).read_bytes() == with_second
    assert entries(edit.curator(plan.plan(Options(workspace=str(workspace)))), state="draft") == []


def test_hooks_that_call_at_once_leave_one_note(workspace, tmp_path):
    write = writer(workspace, tmp_path)
    ended = EndedSession(dt.datetime(2026, 11, 22, 9, 30, tzinfo=dt.UTC), session="abc")
    with ThreadPoolExecutor(6) as pool:
        for number in range(6):
            pool.submit(agent_sessions.save, workspace, ended, f"user: {number}", write)
    [name] = notes_of(workspace)
    said = (workspace / "memory" / name).read_text().split("## Conversation Summary\n\n")[1]
    assert sorted(said.split("\n")) == ["", *(f"user: {number}" for number in range(6))]


@pytest.mark.parametrize("file", ["MEMORY.md", "memory/network.md"])
def test_a_fact_stays_before_the_sessions_that_quote_it(file, workspace, tmp_path, hook, printed):
    (workspace / file).write_text(f"# Network\n\n- {FACT}\n")
    for number in range(5):
        said = [
            *claude(("user", f"{number}: which port does the Omada controller run on?")),
            *recalled_by_claude(),
            *claude(("assistant", f"From your notes: {FACT}")),
        ]
        path = written(tmp_path / f"s{number}.jsonl", said)
        hook(called("SessionEnd", workspace, transcript_path=str(path), session_id=f"s{number}"))
    assert len(notes_of(workspace)) == 5
    place = ("--workspace", str(workspace), "--index", str(tmp_path / "i"), "--profile", "recommended", "--now", NOW)
    answer = json.loads(printed("search", "which port does the Omada controller run on?", "--json", *place))
    assert answer["results"][0]["path"] == file
