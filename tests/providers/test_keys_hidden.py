"""API keys are sent where they belong and seen nowhere: not on screen, in logs, tracebacks, the index or our files."""

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.plan import Options
from memory_tui.providers.base import Identity
from tests.support.embed import Time
from tests.support.provider_server import Play, echo_headers, html, reset, serving, status, well

KEY, OTHER, HEADER = "sk-hidden-0123456789abcdef", "m-hidden-fedcba9876543210", "team-hidden-55aa55aa55"
HIDDEN = (KEY, OTHER, HEADER)


@pytest.fixture
def play(monkeypatch):
    """A provider elsewhere: the server on loopback is the proxy on the way to any host."""
    with serving(Play()) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        yield server


@pytest.fixture
def options(tmp_path, monkeypatch):
    """A provider with a key in the environment, a header that is one, and a fallback with another key."""
    usual = plan.settings
    monkeypatch.setattr(
        plan,
        "settings",
        lambda choices, approvals: replace(usual(choices, approvals), clock=Time(1_700_000_000.0).clock()),
    )
    monkeypatch.setenv("OPENAI_KEY_OF_MINE", KEY)
    monkeypatch.setenv("MISTRAL_API_KEY", OTHER)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    section = {
        "provider": "openai",
        "fallback": "builtin",
        "remote": {
            "baseUrl": "http://embed.example/v1",
            "apiKey": "${OPENAI_KEY_OF_MINE}",
            "headers": {"X-Team": HEADER},
        },
    }
    path = tmp_path / "openclaw.json"
    path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    return Options(
        workspace=str(notes),
        config=str(path),
        index=str(tmp_path / "index" / "i.sqlite"),
        changes=(("profile", "recommended"),),
    )


COMMANDS = (
    "index --dry-run; index --dry-run --json; provider; index --yes; provider --test; provider --test --json; "
    "status --deep --json; status; search omada --explain; search omada --json; config; config --json; "
    "provider --json --revoke"
)
REPLIES = {
    "well": well,
    "echo 401": echo_headers(401),
    "echo 500": echo_headers(500),
    "reset": reset,
    "html": html(502),
    "words": status(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
}


def content(path):
    """What is in a file; nothing in one that the index removed meanwhile, as it does when its last connection ends."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def words_of(options):
    return ["--workspace", str(options.workspace), "--config", str(options.config), "--index", str(options.index)]


@pytest.mark.parametrize("reply", REPLIES)
def test_no_output_log_or_file_of_ours_holds_a_key(play, options, reply, tmp_path, capsys, caplog):
    play.usual = REPLIES[reply]
    caplog.set_level(logging.DEBUG)
    for command in COMMANDS.split("; "):
        main.main([*command.split(), *words_of(options)])
    assert any(KEY in str(request.headers) for request in play.asked)
    printed = capsys.readouterr()
    seen = printed.out + printed.err + caplog.text + "".join(map(repr, caplog.records))
    files = [path for root in (tmp_path / "index", Path.home()) for path in root.rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite" for path in files)
    for key in HIDDEN:
        assert key not in seen
        assert not [path for path in files if key.encode() in content(path)]


def outcome(action):
    """What came back, or the traceback with every local variable, as crash reporters make them."""
    try:
        return repr(action())
    except MemoryTuiError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


@pytest.mark.parametrize("reply", [reply for reply in REPLIES if reply != "well"])
def test_no_traceback_or_event_holds_a_key(play, options, reply):
    play.usual = REPLIES[reply]
    heard: list[Any] = []
    seen: list[str] = []
    with Engine.open(replace(options, provider="openai"), heard.append) as engine:
        actions: list[Callable[[], object]] = [
            engine.index.sync,
            lambda: engine.search.search("omada"),
            engine.providers.forecast,
            engine.providers.members,
            engine.providers.chain.try_out,
            engine.search.remeasured,
            lambda: engine.status(deep=True),
            engine.notices,
        ]
        provider = engine.providers.chain.of_space(Identity("openai", "", "", 0))
        assert provider is not None
        actions.append(lambda: provider.embed(["a text"], "document"))
        seen += map(outcome, actions)
        seen += [repr(engine.__dict__), repr(engine.providers.chain.__dict__), repr(engine.plan)]
    seen += map(repr, heard)
    for key in HIDDEN:
        assert not [text for text in seen if key in text]
