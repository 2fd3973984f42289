"""API keys are sent where they belong and seen nowhere: not on screen, in logs, tracebacks, the index or our files."""

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.providers import Identity
from tests.support.embed import ELSEWHERE, configure, options
from tests.support.provider_server import echo_headers, html, reset, status, well

KEY, OTHER, HEADER = "sk-hidden-0123456789abcdef", "m-hidden-fedcba9876543210", "team-hidden-55aa55aa55"
pytest_plugins = ("tests.support.provided",)
pytestmark = pytest.mark.usefixtures("elsewhere")

HIDDEN = (KEY, OTHER, HEADER)


@pytest.fixture
def chosen(tmp_path, monkeypatch, notes, time):
    """A provider with a key in the environment, a header that is one, and a fallback with another key."""
    monkeypatch.setenv("OPENAI_KEY_OF_MINE", KEY)
    monkeypatch.setenv("MISTRAL_API_KEY", OTHER)
    remote = {"baseUrl": f"{ELSEWHERE}/v1", "apiKey": "${OPENAI_KEY_OF_MINE}", "headers": {"X-Team": HEADER}}
    configure(tmp_path, ELSEWHERE, fallback="builtin", remote=remote)
    return options(tmp_path)


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


@pytest.mark.parametrize("reply", REPLIES)
def test_no_output_log_or_file_of_ours_holds_a_key(play, chosen, reply, tmp_path, run, caplog):
    play.usual = REPLIES[reply]
    caplog.set_level(logging.DEBUG)
    printed = ""
    for command in COMMANDS.split("; "):
        printed += "".join(run(*command.split())[1:])
    assert any(KEY in str(request.headers) for request in play.asked)
    seen = printed + caplog.text + "".join(map(repr, caplog.records))
    roots = (*tmp_path.glob("i.sqlite*"), Path.home())
    files = [path for root in roots for path in (root, *root.rglob("*")) if path.is_file()]
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
def test_no_traceback_or_event_holds_a_key(play, chosen, reply):
    play.usual = REPLIES[reply]
    heard: list[Any] = []
    seen: list[str] = []
    with Engine.open(replace(chosen, provider="openai"), heard.append) as engine:
        actions: list[Callable[[], object]] = [
            engine.index.sync, lambda: engine.search.search("omada"), engine.providers.forecast,
            engine.providers.chain.members, engine.providers.chain.try_out, engine.search.remeasured,
            lambda: engine.status(deep=True), engine.notices,
        ]  # fmt: skip
        provider = engine.providers.chain.provider(Identity("openai", "", "", 0))
        actions.append(lambda: provider.embed(["a text"], "document"))
        seen += map(outcome, actions)
        seen += [repr(engine.__dict__), repr(engine.providers.chain.__dict__), repr(engine.plan)]
    seen += map(repr, heard)
    for key in HIDDEN:
        assert not [text for text in seen if key in text]
