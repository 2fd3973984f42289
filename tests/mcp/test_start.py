"""The SDK's models, built late, are those the SDK builds itself; where they cannot be, the SDK's own are used."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.support.mcp import Wire, end_all, scripted
from tests.support.waiting import LONG

LATE = "from memory_tui.mcp import sdk\nassert sdk.load()\n"
WHOLE = "import mcp.server.lowlevel\n"

SCHEMAS = """
import hashlib, json
import mcp_types
from mcp_types import methods
from pydantic import BaseModel, TypeAdapter
def digest(kind, mode):
    return hashlib.sha256(json.dumps(TypeAdapter(kind).json_schema(mode=mode), sort_keys=True).encode()).hexdigest()
kinds = {}
for table in sorted(name for name in vars(methods) if name.endswith(("_REQUESTS", "_NOTIFICATIONS", "_RESULTS"))):
    for key, kind in sorted(getattr(methods, table).items(), key=str):
        kinds.setdefault(kind, f"{table} {key}")
for name, kind in vars(mcp_types).items():
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        kinds.setdefault(kind, name)
found = {name: digest(kind, "serialization" if name.startswith("SERVER_") else "validation")
         for kind, name in kinds.items()}
for name in [name for name in vars(mcp_types) if name.endswith("_adapter")]:
    found[name] = hashlib.sha256(json.dumps(getattr(mcp_types, name).json_schema()).encode()).hexdigest()
print(json.dumps(found))
"""

MESSAGES = """
import json
from mcp_types import jsonrpc_message_adapter, methods
from pydantic import ValidationError
client = {"name": "c", "version": "1"}
meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientInfo": client, "io.modelcontextprotocol/clientCapabilities": {}}}
params = [None, {}, {"name": 5}, {"uri": "memory:x", "name": "n", "arguments": {"a": "b"}}, {"arguments": []},
          {"protocolVersion": "2025-06-18", "capabilities": {"roots": 5}, "clientInfo": client},
          {"protocolVersion": "2025-06-18", "capabilities": {"x": 1}, "clientInfo": {**client, "icons": [{}]}, "y": 1},
          meta, {**meta, "name": "n", "arguments": {}}, {**meta, "uri": 5}, {"_meta": []}, {"level": "loud"},
          {"requestId": []}, {"progressToken": "p", "progress": "much"}, {"cursor": 3}]
texts = ["{", "[]", "[1]", '{"jsonrpc":"2.0","id":1.5,"method":"x"}', '{"jsonrpc":"2.0","id":true,"method":"x"}',
         '{"jsonrpc":"1.0","id":1,"method":"x"}', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[1]},"z":1}',
         '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}', '{"jsonrpc":"2.0","method":5}',
         '{"jsonrpc":"2.0","id":"a","result":{}}', '{"jsonrpc":"2.0","id":1,"method":"x","params":[]}']
answers = [{}, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}, {"tools": 5},
           {"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}, "resultType": "complete"},
           {"content": [{"type": "image"}]}, {"contents": [{"uri": "memory:x", "text": "t"}], "more": 1},
           {"messages": [{"role": "user", "content": {"type": "text", "text": "t"}}]}, {"messages": [{"role": "x"}]},
           {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": client},
           {"prompts": [{"name": "p"}], "resources": [], "resourceTemplates": [], "tools": [], "ttlMs": 0,
            "cacheScope": "private", "resultType": "complete"}]
def outcome(run, *given):
    try:
        found = run(*given)
        return found if isinstance(found, dict) else found and found.model_dump(mode="json")
    except ValidationError as error:
        return [(one["type"], [str(part) for part in one["loc"]], one["msg"]) for one in error.errors()]
found = [outcome(jsonrpc_message_adapter.validate_json, text) for text in texts]
found += [outcome(methods.parse_client_request, *key, given) for key in methods.CLIENT_REQUESTS for given in params]
found += [outcome(methods.parse_client_notification, *key, given)
          for key in methods.CLIENT_NOTIFICATIONS for given in params]
found += [outcome(methods.serialize_server_result, *key, given) for key in methods.SERVER_RESULTS for given in answers]
print(json.dumps(found, default=str))
"""


def told(code: str) -> Any:
    """What a child that runs `code` prints."""
    return both(code)[0]


def both(*codes: str) -> list[Any]:
    """What children print that run at the same time."""
    children = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for code in codes
    ]
    ended = [child.communicate() for child in children]
    assert not any(err for _, err in ended)
    return [json.loads(out) for out, _ in ended]


def test_every_model_and_adapter_has_the_schema_it_has_in_the_whole_sdk() -> None:
    late, whole = both(LATE + SCHEMAS, WHOLE + SCHEMAS)
    assert len(whole) > 200
    assert {name: late.get(name) for name in whole} == whole


def test_good_and_bad_messages_are_judged_as_by_the_whole_sdk() -> None:
    late, whole = both(LATE + MESSAGES, WHOLE + MESSAGES)
    assert {type(outcome) for outcome in whole} == {dict, list}
    assert late == whole


def test_models_that_nobody_used_are_not_built() -> None:
    assert told(
        LATE
        + """
import json
import mcp_types, mcp_types._v2025_11_25 as older, mcp_types._v2026_07_28 as newer
from memory_tui.mcp import sdk as late
recorded = [kind for module in (older, newer) for kind in vars(module).values() if isinstance(kind, late.Late)]
print(json.dumps([len(recorded) > 200, len(late._MADE) < 40, mcp_types.CreateMessageRequest.__pydantic_complete__]))
"""
    ) == [True, True, False]


# --- a server with late models, and one with the SDK's own ---------------------------------------------------------

SERVE = "from memory_tui.cli import main as cli\nraise SystemExit(cli.main(['mcp', *sys.argv[1:]]))"
"""After `scripted` has loaded the SDK: whatever it has come to, the server is made of it."""
CLIENT = {"name": "bare", "version": "1"}
NEWER = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(autouse=True)
def _no_server_is_left_behind() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    with Engine.open(
        Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "i.sqlite"), provider="scripted")
    ) as engine:
        engine.indexer.sync()
    return ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]


def conversation(wire: Wire, version: str) -> list[dict[str, Any]]:
    """Good and bad requests of a client that speaks `version`, and what it is answered."""
    envelope: dict[str, Any] = {"_meta": ENVELOPE} if version == NEWER else {}
    found = []
    if version != NEWER:
        found.append(wire.ask(0, "initialize", protocolVersion=5, capabilities={}, clientInfo=CLIENT))
        found.append(wire.ask(1, "tools/list"))
        found.append(wire.ask(2, "initialize", protocolVersion=version, capabilities={}, clientInfo=CLIENT))
        assert found[-1]["result"]["protocolVersion"] == version
        wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    requests: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("tools/list", {"cursor": 5}),
        ("prompts/list", {}),
        ("resources/templates/list", {}),
        ("resources/list", {}),
        ("resources/read", {"uri": "memory:MEMORY.md"}),
        ("resources/read", {"uri": []}),
        ("prompts/get", {"name": "recall", "arguments": {"question": "Which?"}}),
        ("prompts/get", {"name": "recall", "arguments": {"question": 5}}),
        ("tools/call", {"name": "memory_get", "arguments": {"path": "MEMORY.md"}}),
        ("tools/call", {"name": "memory_get", "arguments": []}),
        ("tools/call", {"name": 5}),
        ("tools/call", {}),
        ("logging/setLevel", {"level": "loud"}),
        ("no/such", {}),
        ("ping", {}),
    ]
    for number, (method, params) in enumerate(requests, 10):
        found.append(wire.ask(number, method, **params, **envelope))
        assert found[-1]["id"] == number
    if version == NEWER:
        found.append(wire.ask(50, "tools/list", _meta={**ENVELOPE, "io.modelcontextprotocol/clientInfo": 5}))
    asked = wire.ask(60, "tools/call", name="memory_search", arguments={"query": "omada"}, **envelope)
    assert [hit["path"] for hit in asked["result"]["structuredContent"]["results"]] == ["MEMORY.md"]
    wire.process.communicate(timeout=LONG)
    assert wire.process.returncode == 0
    return found


@pytest.mark.parametrize("version", ["2024-11-05", NEWER])
def test_clients_of_each_era_are_answered_as_by_the_whole_sdk(version: str, arguments: list[str]) -> None:
    whole = conversation(scripted(SERVE, *arguments, before="sdk._models = lambda: 1 / 0"), version)
    late = conversation(Wire(arguments), version)
    assert late == whole
    assert {answer["error"]["code"] for answer in late if "error" in answer} >= {-32602, -32601}


# --- where models cannot be late -----------------------------------------------------------------------------------

OTHERWISE = [
    "late.Late.__new__ = lambda *given: 1 / 0",
    "late.deferred = lambda: 1 / 0",
    "sdk._rehearse = lambda types, methods: 1 / 0",
]


@pytest.mark.parametrize("broken", OTHERWISE)
def test_an_sdk_whose_models_are_built_otherwise_is_imported_as_it_is(broken: str) -> None:
    assert told(f"""
import json, sys
from memory_tui.mcp import sdk as late, sdk
{broken}
loaded = sdk.load()
import pydantic
from memory_tui.mcp import server
from mcp_types import _wire_base, jsonrpc_message_adapter, methods
methods.validate_client_request("tools/call", "2025-11-25", {{"name": "x"}})
print(json.dumps([loaded, "starlette" in sys.modules, pydantic.BaseModel.__module__, _wire_base.WireModel.__class__
    .__name__, jsonrpc_message_adapter.pydantic_complete, server.types.Tool.__pydantic_complete__]))
""") == [False, True, "pydantic.main", "ModelMetaclass", True, True]


def test_a_model_that_cannot_be_made_alone_comes_from_its_module() -> None:
    assert told("""
import json
from memory_tui.mcp import sdk as late, sdk
assert sdk.load()
late._built = lambda kind: None
from mcp_types import methods
from pydantic import ValidationError
call = methods.CLIENT_REQUESTS["tools/call", "2026-07-28"]
refused = 0
for given in ({"name": 5}, {"name": "x", "arguments": []}):
    try:
        methods.validate_client_request("tools/call", "2025-11-25", given)
    except ValidationError:
        refused += 1
methods.validate_client_request("tools/call", "2025-11-25", {"name": "x", "arguments": {}})
made = methods.serialize_server_result("tools/list", "2025-11-25", {"tools": [], "more": 1})
print(json.dumps([refused, made, isinstance(call, late.Late), isinstance(late.model(call), late.Late)]))
""") == [2, {"tools": []}, True, False]


def test_what_pydantic_asks_of_importlib_metadata_is_there_when_it_asks() -> None:
    assert told("""
import json, sys
from memory_tui.mcp import sdk
assert sdk.load()
before = "importlib.metadata" in sys.modules
from pydantic import networks
print(json.dumps([before, networks.version("mcp-types").partition(".")[0]]))
""") == [False, "2"]
