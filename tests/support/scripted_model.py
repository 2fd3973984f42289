"""A model on loopback that does as it is told: search the memory, read the first hit, quote both.

Speaks OpenAI's Chat Completions, streamed or not. A prompt with a line `RECALL: question` makes it call memory_search,
then memory_get on the first hit; several such lines make it search for each at once. Every request is kept. Hosts that
hide tools behind a search for tools are called through their `tool_call`.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.provider_server import Quiet, listening

MODEL = "scripted-1"
MARK = "RECALL:"
SEARCH, GET = "memory_search", "memory_get"
Call = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Model:
    """The requests so far; `before_get` runs between the answer of a search and the call that reads its first hit."""

    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    before_get: Callable[[], None] | None = None
    max_results: int | None = None
    tokens: int = 100
    """What a turn is said to have cost: a large number makes a host flush its memory."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def results(self, *questions: str) -> list[str]:
        """What the tools gave to the last turn that asked `questions`, as the model read it."""
        for body in reversed(self.requests):
            asked, results = conversation(body["messages"])
            if asked == list(questions) and results:
                return results
        return []

    def reply(self, body: dict[str, Any]) -> list[Call] | str:
        """The tools to call, or the last words of the turn."""
        names = [tool["function"]["name"] for tool in body.get("tools") or ()]
        questions, results = conversation(body["messages"])
        if not questions:
            return "Nothing was asked."
        limit = {} if self.max_results is None else {"maxResults": self.max_results}
        if not results:
            return _calls(names, [(SEARCH, {"query": question, **limit}) for question in questions])
        if len(questions) == len(results) == 1 and (hits := data(results[0]).get("results")):
            if self.before_get is not None:
                self.before_get()
            return _calls(names, [(GET, {"path": hits[0]["path"], "from": hits[0]["startLine"], "lines": 6})])
        return "ANSWER " + " ".join(results)[:2000]


def _calls(names: list[str], wanted: list[Call]) -> list[Call] | str:
    if all(tool in names for tool, _ in wanted):
        return wanted
    if "tool_call" in names:
        return [("tool_call", {"id": tool, "args": given}) for tool, given in wanted]
    return f"NO TOOL {wanted[0][0]} among {', '.join(names)}"


def conversation(messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The questions that are asked last, none where there are none, and the results of tools after them."""
    questions: list[str] = []
    results: list[str] = []
    for message in messages:
        text = flat(message.get("content"))
        if message["role"] == "user":
            # Hosts put messages of their own after the user's.
            if asked := [line.partition(MARK)[2].strip() for line in text.split("\n") if MARK in line]:
                questions, results = asked, []
        elif message["role"] == "tool":
            results.append(text)
    return questions, results


def flat(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(flat(part.get("text") if isinstance(part, dict) else part) for part in content)
    return content if isinstance(content, str) else ""


def data(result: str) -> dict[str, Any]:
    """The answer of a tool of the memory, taken out of what the host put around it; empty where it is none."""
    try:
        given = json.loads(result)
    except ValueError:
        return {}
    for inner in _inside(given):
        if isinstance(inner, dict) and ("results" in inner or inner.get("status") in ("ok", "not_found", "error")):
            return inner
    return {}


def _inside(given: Any) -> Iterator[Any]:
    yield given
    if isinstance(given, str):
        try:
            yield from _inside(json.loads(given))
        except ValueError:
            return
    for part in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        if isinstance(part, dict | list) or (isinstance(part, str) and part.lstrip().startswith("{")):
            yield from _inside(part)


class _Handler(Quiet):
    model: Model

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        self._send(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.model.requests.append(body)
        said = self.model.reply(body)
        name = f"call_{len(self.model.requests)}"
        delta: dict[str, Any] = {"role": "assistant", "content": said}
        if not isinstance(said, str):
            asked = [{"name": tool, "arguments": json.dumps(given, ensure_ascii=False)} for tool, given in said]
            calls = [
                {"index": at, "id": f"{name}_{at}", "type": "function", "function": each}
                for at, each in enumerate(asked)
            ]
            delta = {"role": "assistant", "content": None, "tool_calls": calls}
        end = "stop" if isinstance(said, str) else "tool_calls"
        tokens = self.model.tokens
        usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
        head = {"id": name, "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        if not body.get("stream"):
            choice = {"index": 0, "message": delta, "finish_reason": end}
            self._send(json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}).encode())
            return
        chunks = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {**head, "choices": [], "usage": usage},
        ]
        lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks] + ["[DONE]"]
        self._send("".join(f"data: {line}\n\n" for line in lines).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str = "application/json") -> None:
        self.raw(200, data, {"content-type": kind})


@contextmanager
def answering() -> Iterator[Model]:
    model = Model()
    with listening(type("Handler", (_Handler,), {"model": model})) as model.port:
        yield model
