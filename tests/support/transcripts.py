"""Transcripts of the three hosts in the shapes that their releases of November 2026 write, made by hand."""

import datetime as dt
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apsw

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SCHEMA = """
CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL,
  updated_at INTEGER NOT NULL);
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
  created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq)) STRICT;
"""
Record = dict[str, Any]


def iso(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def claude(
    key: str,
    name: str,
    args: Record,
    at: float,
    cwd: str,
    result: object = None,
    *,
    session: str = "s1",
    text: str = "done",
    failed: bool = False,
    end: float = 0.0,
) -> list[Record]:
    head = {"sessionId": session, "cwd": cwd, "version": "2.1.332", "isSidechain": False}
    use = {"type": "tool_use", "id": key, "name": name, "input": args}
    answer = {"type": "tool_result", "tool_use_id": key, "content": text, "is_error": failed}
    call = {"type": "assistant", "message": {"role": "assistant", "content": [use]}, "timestamp": iso(at), **head}
    reply = {"type": "user", "message": {"role": "user", "content": [answer]}, "timestamp": iso(end or at + 0.05)}
    return [call, {**reply, **head, "toolUseResult": result}]


def claude_said(role: str, text: str, at: float, cwd: str = "/") -> Record:
    content = text if role == "user" else [{"type": "text", "text": text}]
    record = {"type": role, "message": {"role": role, "content": content}}
    return {**record, "timestamp": iso(at), "sessionId": "s1", "cwd": cwd}


def claude_file(home: Path, lines: Iterable[Record], session: str = "s1", below: str = "") -> Path:
    name = f"{session}.jsonl" if not below else f"{session}/subagents/agent-{below}.jsonl"
    return write(home / ".claude" / "projects" / "-project" / name, lines)


def codex(key: str, args: Record, item: Mapping[str, Any] | None, at: float, *, end: float = 0.0) -> list[Record]:
    """A call of the shell, its answer, and what Codex says of the step; None where it says nothing."""
    call = {"type": "function_call", "name": "exec_command", "arguments": json.dumps(args), "call_id": key}
    answer = {"type": "function_call_output", "call_id": key, "output": "Exit code: 0"}
    end = end or at + 0.2
    lines: list[Record] = [{"timestamp": iso(at), "type": "response_item", "payload": call}]
    if item is not None:
        # The time of the step itself is late.
        times = {"started_at_ms": (at + 0.16) * 1000, "completed_at_ms": end * 1000}
        done = {"type": "item_completed", "thread_id": "t1", "turn_id": "1", "item": {"id": key, **item}, **times}
        lines.append({"timestamp": iso(end), "type": "event_msg", "payload": done})
    return [*lines, {"timestamp": iso(end), "type": "response_item", "payload": answer}]


def codex_file(home: Path, lines: Iterable[Record], at: float, cwd: str, thread: str = "t1") -> Path:
    payload = {"id": thread, "cwd": cwd, "cli_version": "0.171.0"}
    meta = {"timestamp": iso(at), "type": "session_meta", "payload": payload}
    path = home / ".codex" / "sessions" / "2026" / "11" / "28" / f"rollout-2026-11-28T10-00-00-{thread}.jsonl"
    return write(path, [meta, *lines])


def openclaw(
    key: str, name: str, args: Record, at: float, details: Record | None = None, *, failed: bool = False, end: float = 0
) -> list[Record]:
    block = {"type": "toolCall", "id": key, "name": name, "arguments": args}
    answer = {"role": "toolResult", "toolCallId": key, "toolName": name, "isError": failed, "details": details or {}}
    return [
        {"type": "message", "message": {"role": "assistant", "content": [block]}, "timestamp": iso(at)},
        {"type": "message", "message": answer, "timestamp": iso(end or at + 0.05)},
    ]


def openclaw_said(role: str, text: str, at: float) -> Record:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {"type": "message", "message": message, "timestamp": iso(at)}


def openclaw_database(
    home: Path, lines: Iterable[Record], at: float, cwd: str, session: str = "o1", key: str = "agent:main:main"
) -> Path:
    """A database of an agent with one session; long events are compressed, as there."""
    path = home / ".openclaw" / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    if is_new:
        connection.pragma("journal_mode", "wal")
        connection.execute(SCHEMA)
    connection.execute("INSERT INTO session_windows VALUES (?, ?, ?)", (session, key, int(at * 1000)))
    first = {"type": "session", "id": session, "cwd": cwd, "timestamp": iso(at)}
    for number, record in enumerate([first, *lines], 1):
        text = json.dumps(record)
        row = (text, None) if len(text) < 600 else (None, zstd.compress(text.encode()))
        values = (session, number, row[0], int(at * 1000) + number, row[1], len(text))
        connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", values)
    connection.close()
    return path


def write(path: Path, lines: Iterable[Record]) -> Path:
    """A file of JSON lines, one more for each of `lines`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    return path
