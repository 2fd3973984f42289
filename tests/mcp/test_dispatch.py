"""The protocol as the official SDK speaks it: the same codes and results, in both eras, and no SDK at run time."""

import json
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.mcp import wire
from memory_tui.plan import Options
from tests.support.commands import alone
from tests.support.mcp import Wire
from tests.support.sdk_server import SdkServer
from tests.support.workspace import put, synced

CLIENT = {"name": "bare", "version": "1"}
NEWER = wire.STATELESS
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def places(tmp_path):
    put(tmp_path / "notes", "MEMORY.md", text="# Facts\n- Router: Omada ER605\n")
    found = (str(tmp_path / "notes"), str(tmp_path / "i.sqlite"))
    with synced(Options(workspace=found[0], index=found[1], provider="scripted")):
        return found


def ours(places, *more):
    return Wire(["--workspace", places[0], "--index", places[1], "--provider", "scripted", *more])


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/list", {"cursor": 5}),
    ("tools/list", {"cursor": "x"}),
    ("prompts/list", {}),
    ("resources/templates/list", {}),
    ("resources/list", {}),
    ("resources/read", {"uri": "memory:MEMORY.md"}),
    ("prompts/get", {"name": "recall", "arguments": {"question": "Which?"}}),
    ("tools/call", {"name": "memory_get", "arguments": {"path": "MEMORY.md"}}),
    ("tools/call", {"name": "memory_get", "arguments": {"path": "../x.md"}}),
    ("tools/call", {"name": "memory_get", "arguments": {"path": 5}}),
    ("tools/call", {"name": "memory_search", "arguments": {"query": "omada", "maxResults": "2"}}),
    ("tools/call", {"name": "memory_get", "arguments": []}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "nope"}),
    ("tools/call", {}),
    ("logging/setLevel", {"level": "info"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "recall"}, "argument": {"name": "question", "value": "a"}},
    ),
    ("resources/subscribe", {"uri": "memory:MEMORY.md"}),
    ("no/such", {}),
    ("ping", {}),
]
"""Good and bad requests. What is not offered is answered as unknown, whatever its parameters are."""

BAD_ENVELOPES: list[dict[str, Any]] = [
    {},
    {"_meta": []},
    {"_meta": {"progressToken": 1}},
    {"_meta": {"io.modelcontextprotocol/protocolVersion": NEWER}},
    {"_meta": {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": 5}},
    {"_meta": {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}},
    {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientInfo": 5}},
    {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientInfo": {"name": 1}}},
    {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": 5}},
]


def handshake(server, version):
    found = [
        ("early", server.ask(1, "tools/list")),
        ("early ping", server.ask(2, "ping")),
        ("early unknown", server.ask(3, "no/such")),
        ("bad", server.ask(4, "initialize", protocolVersion=5, capabilities={}, clientInfo=CLIENT)),
        ("bad", server.ask(5, "initialize", protocolVersion=version, capabilities=5, clientInfo=CLIENT)),
        ("bad", server.ask(6, "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "x"})),
        ("initialize", server.ask(7, "initialize", protocolVersion=version, capabilities={}, clientInfo=CLIENT)),
    ]
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number, (method, params) in enumerate(REQUESTS, 10):
        found.append((method, server.ask(number, method, **params)))
    found.append(("enveloped", server.ask(90, "tools/list", _meta=ENVELOPE)))
    found.append(("initialize", server.ask(91, "initialize", protocolVersion="x", capabilities={}, clientInfo=CLIENT)))
    return found


def stateless(server):
    found = [("server/discover", server.ask(1, "server/discover", _meta=ENVELOPE))]
    for number, (method, params) in enumerate(REQUESTS, 10):
        found.append((method, server.ask(number, method, **params, _meta=ENVELOPE)))
    for number, params in enumerate(BAD_ENVELOPES, 60):
        found.append((f"envelope {number}", server.ask(number, "tools/list", **params)))
    late = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    found.append(("late", server.ask(90, "initialize", **late)))
    return found


def judged(answer):
    """What has to be the same: the id, and the result or the code and data of the error that clients act on."""
    if "error" not in answer:
        return answer
    error = answer["error"]
    acted_on = error.get("data") if error["code"] == wire.UNSUPPORTED_VERSION else None
    return (answer["id"], error["code"], acted_on)


@pytest.mark.parametrize("version", [*wire.HANDSHAKES, "1999-01-01", NEWER])
def test_clients_of_each_era_are_answered_as_by_the_sdk(version, places):
    talk = stateless if version == NEWER else lambda server: handshake(server, version)
    found = []
    for server in (ours(places), SdkServer(*places)):
        try:
            found.append([(name, judged(answer)) for name, answer in talk(server)])
        finally:
            server.end()
    for mine, other in zip(*found, strict=True):
        assert mine == other
    assert {name for name, answer in found[0] if isinstance(answer, dict)} >= {"tools/list", "tools/call"}


def test_tools_alone_are_announced_by_the_words_of_an_earlier_release(places):
    server = ours(places, "--no-prompts", "--no-resources")
    greeting = server.ask(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=CLIENT)
    assert greeting["result"]["capabilities"] == {"tools": {"listChanged": False}}
    for number, method in enumerate(("prompts/list", "resources/list", "resources/templates/list"), 1):
        assert server.ask(number, method)["error"]["code"] == wire.METHOD_NOT_FOUND
    assert [tool["name"] for tool in server.ask(9, "tools/list")["result"]["tools"]] == ["memory_search", "memory_get"]
    server.end()


def test_tools_are_listed_before_anything_is_imported_that_opens_a_memory():
    """The same code that answers, in one process: after the tools, nothing heavy is there; after a question, it is."""
    code = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from memory_tui.cli import main as cli
from memory_tui.mcp import server
from memory_tui.mcp.wire import Connection
HEAVY = {"asyncio", "numpy", "pydantic", "httpx", "anyio", "mcp", "mcp_types", "textual", "tokenizers",
         "memory_tui.engine.engine", "memory_tui.search.rank", "memory_tui.explain.wording", "memory_tui.mcp.tools"}
sent = []
answers = server.Handlers(server.ServedMemory(lambda: 1 / 0, server.ServerOptions())).interface()
with ThreadPoolExecutor() as pool:
    connection = Connection(answers, sent.append, lambda method: None, pool)
    for number, (method, params) in enumerate([("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"}}), ("tools/list", {}), ("prompts/list", {})]):
        connection.hear(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
print(json.dumps([len(sent), sorted(HEAVY & set(sys.modules))]))
"""
    assert json.loads(alone(code)) == [3, []]


class NoThread(Executor):
    """A pool that takes a job and cannot start a thread for it."""

    def submit(self, *_, **__):
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("pool", [ThreadPoolExecutor(1), NoThread()], ids=["answered", "no thread"])
def test_a_request_counts_as_running_until_its_answer_is_out(pool):
    """A server whose input has ended waits for the requests that run, and for no other."""
    running: list[bool] = []
    interface = wire.ServerInterface({"name": "x", "version": "1"}, "", {"slow": lambda params, caller: {}})

    def send(answer):
        running.append("id" in answer and bool(connection.running))
        answers.append(answer)

    answers: list[dict[str, Any]] = []
    connection = wire.Connection(interface, send, lambda method: None, pool)
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    for number, (method, content) in enumerate((("initialize", params), ("slow", {}))):
        line = {"jsonrpc": "2.0", "id": number, "method": method, "params": content}
        connection.hear(json.dumps(line).encode())
    pool.shutdown(wait=True)
    assert [answer["id"] for answer in answers] == [0, 1]
    assert not connection.running
    assert running == [False, "result" in answers[1]]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "jsonrpc", "method", "params", "x"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@given(VALUES | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": VALUES, "method": VALUES, "params": VALUES}))
def test_every_line_of_json_is_a_message_or_has_an_answer(value):
    line = json.dumps(value).encode() + b"\n"
    refused: wire.Refusal | None = None
    found: wire.Request | None = None
    try:
        found = wire.read_line(line)
    except wire.Refusal as refusal:
        refused = refusal
    assert refused is None or refused.code in (wire.INVALID_REQUEST, wire.PARSE_ERROR)
    assert found is None or isinstance(found.params, dict)
    assert all(type(each.id) in (str, int, type(None)) for each in (found, refused) if each is not None)


def test_the_tool_that_writes_is_offered_and_answers_only_where_writing_was_allowed(places):
    given = {"text": "The router is an ER7206.", "supersedes": "MEMORY.md:2"}
    for allowed, more in ((False, ()), (True, ("--allow-write",)), (False, ("--allow-write", "--read-only"))):
        server = ours(places, *more).greet()
        names = {tool["name"] for tool in server.ask(1, "tools/list")["result"]["tools"]}
        assert ("memory_correct" in names) is allowed
        answer = server.ask(2, "tools/call", name="memory_correct", arguments=given)
        assert ("result" in answer) is allowed
        server.end()
    assert (Path(places[0]) / "MEMORY.md").read_text().count("(superseded") == 1
