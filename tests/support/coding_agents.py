"""The real Claude Code and Codex from npm, and a model on loopback that does as it is told.

Both are single programs that need no Node. They are installed once into a cache folder; nothing of a run reaches the
developer's own home. A prompt with `RECALL: question` makes the model call memory_search, then memory_get on the first
hit, then quote both; one with `CALLS: [[tool, arguments]]` makes it call these. It speaks Anthropic's Messages and
OpenAI's Responses, streamed. Every request is kept.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.npm import installed
from tests.support.provider_server import Quiet, listening

VERSIONS = {"@anthropic-ai/claude-code": "2.1.330", "@openai/codex": "0.169.0"}
_RUN_SECONDS = 60


def program(package: str) -> str:
    """The program of `package`. Skips the test, with the reason, where npm cannot install it."""
    system, machine = platform.system().lower(), {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "")
    if system != "linux" or not machine:
        pytest.skip(f"{package} is only installed on Linux, and this is {system} {platform.machine()}")
    version = VERSIONS[package]
    folder = installed(f"{package.rpartition('/')[2]}-{version}", {package: version}) / "node_modules"
    found = list((folder / "@anthropic-ai" / f"claude-code-linux-{machine}").glob("claude"))
    found += (folder / "@openai" / f"codex-linux-{machine}" / "vendor").glob("*/bin/codex")
    if len(found) != 1:
        pytest.skip(f"{package} {version} from npm has no program for linux-{machine}")
    return str(found[0])


@dataclass(slots=True)
class CodingAgent:
    """A real host with a home of its own, whose model is `model`."""

    words: list[str]
    home: Path
    project: Path
    model: ScriptedModel
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """No folder of the developer's, no key, and no network but loopback."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        places = {f"XDG_{name}_HOME": str(self.home / name.lower()) for name in ("CACHE", "CONFIG", "DATA", "STATE")}
        return {**kept, **places, "HOME": str(self.home), **self.more}

    def run(self, *words: str) -> str:
        """What the host prints; a failure fails the test with all that it said."""
        places = {"cwd": self.project, "env": self.environment, "stdin": subprocess.DEVNULL}
        done = subprocess.run(
            [*self.words, *words], check=False, capture_output=True, text=True, timeout=_RUN_SECONDS, **places
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


Call = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class ScriptedModel:
    """The requests so far, as (path, body)."""

    url: str = ""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def asked(self) -> list[dict[str, Any]]:
        """The requests that hold a question for the memory."""
        return [body for _, body in self.requests if "RECALL:" in json.dumps(body)]


def _reply(prompt: str, results: list[str], tools: list[str]) -> Call | str:
    if calls := re.findall(r"CALLS: (\[.*\])", prompt):
        wanted = json.loads(calls[-1])
        return tuple(wanted[len(results)]) if len(results) < len(wanted) else "DONE"
    questions = re.findall(r"RECALL: ([^\n<]+)", prompt)
    if not questions:
        return "OK"
    search = next((tool for tool in tools if tool.endswith("memory_search")), None)
    get = next((tool for tool in tools if tool.endswith("memory_get")), None)
    if search is None or get is None:
        return f"NO TOOLS {' '.join(tools)}"
    if not results:
        return search, {"query": questions[-1].strip(), "maxResults": 5}
    if len(results) == 1 and (place := re.search(r'"path":\s*"([^"]+)",\s*"startLine":\s*(\d+)', results[0])):
        return get, {"path": place[1], "from": int(place[2]), "lines": 6}
    return "ANSWER " + " ".join(results)[:3000]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(block) for block in content)
    return _text(content.get("text", content.get("content", ""))) if isinstance(content, dict) else ""


def _messages(body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    prompt, results = "", []
    for message in body.get("messages", ()):
        blocks = message["content"] if isinstance(message["content"], list) else [message["content"]]
        for block in blocks if message["role"] == "user" else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                results.append(_text(block))
            else:
                prompt += _text(block) + "\n"
    reply = _reply(prompt, results, [tool.get("name", "") for tool in body.get("tools") or ()])
    usage = {"input_tokens": 10, "output_tokens": 5}
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"), "content": []}
    if isinstance(reply, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": reply}
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": reply[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply[1])}
    stop = "end_turn" if isinstance(reply, str) else "tool_use"
    return [
        {"type": "message_start", "message": {**start, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses(body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    spaces: dict[str, tuple[str, str]] = {}
    for tool in body.get("tools") or ():
        for inner in tool.get("tools") or ():
            spaces[f"{tool.get('name')}::{inner.get('name')}"] = (tool["name"], inner["name"])
    prompt, results = "", []
    for item in body.get("input") or ():
        if item.get("type") == "function_call_output":
            results.append(_text(item.get("output")))
        elif item.get("role") == "user":
            prompt += _text(item) + "\n"
    reply = _reply(prompt, results, [tool.get("name") or "" for tool in body.get("tools") or ()] + list(spaces))
    item: dict[str, Any]
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": []}]
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        item |= {"status": "completed", "content": content}
    else:
        space, name = spaces.get(reply[0], (None, reply[0]))
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        item |= {"arguments": json.dumps(reply[1]), "status": "completed", **({"namespace": space} if space else {})}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    base = {"id": f"resp_{number}", "object": "response", "model": body.get("model"), "output": []}
    return [
        {"type": "response.created", "response": {**base, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**base, "status": "completed", "output": [item], "usage": usage}},
    ]


@contextmanager
def scripted_model() -> Iterator[ScriptedModel]:
    model, lock = ScriptedModel(), threading.Lock()

    class Handler(Quiet):
        def answer(self, kind: str, data: bytes) -> None:
            self.raw(200, data, {"content-type": kind})

        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            self.answer("application/json", b'{"data": [], "models": [], "object": "list"}')

        def do_HEAD(self) -> None:  # noqa: N802 - the name that http.server calls
            self.do_GET()

        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            path = self.path.partition("?")[0]
            with lock:
                model.requests.append((path, body))
                number = len(model.requests)
            made = {"/messages": _messages, "/responses": _responses}.get(path[path.rfind("/") :])
            if made is None:
                self.answer("application/json", b'{"input_tokens": 10}')
                return
            events = made(body, number)
            lines = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
            self.answer("text/event-stream", "".join(lines).encode())

    with listening(Handler) as port:
        model.url = f"http://127.0.0.1:{port}"
        yield model
