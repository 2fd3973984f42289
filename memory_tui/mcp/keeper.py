"""The keeper of an index answers questions for the other processes over it, as they would by themselves.

Who asks says what its settings come to. The keeper refuses unless its own come to the same, so both would give one
answer, and refuses where something happened to it alone, as when its provider failed. Who is refused answers by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_tui import __version__
from memory_tui import plan as plans
from memory_tui.approval import Approvals
from memory_tui.config import places
from memory_tui.core import errors, locks
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.state_db import default_path
from memory_tui.index.schema import SCHEMA_VERSION
from memory_tui.mcp import keeper_socket
from memory_tui.mcp.keeper_socket import KeeperRefusal, KeeperReply, KeeperSocket, Patience
from memory_tui.mcp.questions import AgentQuestion, Answered, answered
from memory_tui.providers import registry
from memory_tui.providers.provider_options import ProviderSettings, Secret

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Plan
    from memory_tui.render.as_text import SearchCommand, Written

VERSION = f"{__version__} {SCHEMA_VERSION}"
"""What has to be the same for two processes to speak with each other: the release, and the schema of the index."""
ANSWER_SECONDS = 10.0
"""How long an agent's question may take in the keeper, before who asked answers it by itself."""
COMMAND_PATIENCE = Patience(0.05, 2.0)
"""How long a command waits, which answers by itself in less than a second of CPU."""
_VARIABLES = (
    *("HOME", "TZ", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "MEMORY_TUI_DISABLE", "OLLAMA_HOST", "SSL_CERT_FILE"),
    *(f"{prefix}_{name}" for prefix in ("OPENCLAW", "CLAWDBOT") for name in ("STATE_DIR", "CONFIG_PATH")),
    *(f"OPENCLAW_{name}" for name in ("PROFILE", "HOME", "WORKSPACE_DIR", "AGENT_DIR")),
    *(name for proxy in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (proxy, proxy.upper())),
)
"""Variables of the environment that an answer can depend on, beside those of keys."""


def path_of(plan: Plan) -> Path | None:
    """Where the keeper of the index of `plan` listens; None where it cannot, for a sample, or where another program
    searches.
    """
    # QMD is a program that each process starts, with the environment of its own. A sample goes with its process, so
    # nobody would replace the socket of a demo that was killed.
    if plan.backend != "builtin" or plan.asked.sample:
        return None
    return keeper_socket.socket_path(plan.index, VERSION, default_path().parent)


# --- what the settings of a process come to ------------------------------------------------------------------------


def settings_digests(plan: Plan) -> dict[str, str]:
    """Everything that an answer under `plan` depends on beside the notes and the clock, as a digest for each part."""
    config, approvals = plan.config, Approvals(plan.workspace)
    provider, approved = plans.settings(plan, approvals), [(one.provider, one.host) for one in approvals.every()]
    package = Path(__file__).parent.parent
    found: dict[str, object] = {
        "program": (VERSION, str(package), sys.version, sys.prefix, sys.getfilesystemencoding()),
        "index": (os.path.realpath(plan.index), str(default_path())),
        "notes": (plan.roots, os.path.realpath(plan.workspace), plan.agent.id, plan.projects),
        "options": (plan.read_only, plan.now, plan.asked.sample, plan.chosen, plan.provider, plan.provider_origin),
        "settings": (plan.settings, plan.own),
        "configuration": (
            config.path,
            config.kind,
            {key: (entry.value, entry.places) for key, entry in config.entries.items()},
            config.found,
        ),
        "provider": (
            provider,
            approved,
            [(row.name, provider.shared(row.name)) for row in registry.rows()],
            [
                (name, provider.env(name))
                for row in registry.rows()
                if _may_be_asked(row.name, provider, {plan.provider, provider.fallback, *(one for one, _ in approved)})
                for name in row.variables
            ],
        ),
        "environment": (
            [(name, os.environ.get(name)) for name in _VARIABLES],
            [places.state_folder(), places.openclaw_path(), places.own_path()],
        ),
    }
    return {part: hashlib.sha256(json.dumps(_plain(value)).encode()).hexdigest()[:32] for part, value in found.items()}


def _may_be_asked(name: str, settings: ProviderSettings, named: Collection[str]) -> bool:
    """Whether the provider `name` may embed a question, so that its key counts: of most no person ever approved."""
    # At an address of this machine it needs no approval.
    return name in named or bool(settings.base_url or settings.shared(name).base_url)


def _plain(value: object) -> object:
    """`value` as JSON in which what is equal looks equal; functions are left out."""
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Struct):
        return [type(value).__name__, *((name, _plain(getattr(value, name))) for name in value.__struct_fields__)]
    if isinstance(value, Mapping):
        return sorted((str(key), _plain(member)) for key, member in value.items())
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, tuple | list):
        return [_plain(member) for member in value]
    if callable(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


# --- who asks ------------------------------------------------------------------------------------------------------


class KeeperClient:
    """The keeper of the index of `plan`, as another process sees it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._path = path_of(plan)
        self._settings = settings_digests(plan) if self._path is not None else {}

    def lives(self) -> bool:
        """Whether there is a process that keeps the index."""
        return locks.living(self.plan.index, "keeper") is not None

    def greet(self) -> KeeperReply | KeeperRefusal:
        """Whether a question would be answered, without asking one."""
        return self._send({}, Patience(keeper_socket.TAKEN_SECONDS, keeper_socket.TAKEN_SECONDS), Stop())

    def ask(self, question: AgentQuestion, stop: Stop) -> Answered | KeeperRefusal:
        """The answer of the keeper. Raises what the keeper raised, and Cancelled when `stop` is set."""
        began = time.perf_counter()
        reply = self._send(question.as_dict(), Patience(keeper_socket.TAKEN_SECONDS, ANSWER_SECONDS), stop)
        if isinstance(reply, KeeperRefusal):
            return reply
        if isinstance(failed := reply.value.get("error"), dict):
            raise _error(failed)
        try:
            return Answered.from_dict(reply.value, (time.perf_counter() - began) * 1000)
        except (TypeError, KeyError, AttributeError):
            return KeeperRefusal("malformed")

    def search(self, asked: SearchCommand) -> Sequence[Written] | None:
        """What a command writes of `asked`; None where the keeper does not answer. Raises what the keeper raised.

        What limits this answer alone is in `asked`, not in the plan.
        """
        reply = self._send({"search": asked._asdict()}, COMMAND_PATIENCE, Stop())
        if isinstance(reply, KeeperRefusal):
            return None
        if isinstance(failed := reply.value.get("error"), dict):
            raise _error(failed)
        from memory_tui.render.as_text import Written

        try:
            return [Written(str(text), bool(aside)) for text, aside in reply.value["written"]]
        except (TypeError, KeyError, ValueError):
            return None

    def _send(self, question: Mapping[str, Any], patience: Patience, stop: Stop) -> KeeperReply | KeeperRefusal:
        # Where nobody listens, or this user may not ask, no socket is made.
        if self._path is None or not os.access(self._path, os.W_OK):
            return KeeperRefusal("absent")
        return keeper_socket.ask(self._path, VERSION, self._settings, question, patience, stop)


def answering(plan: Plan) -> dict[str, Any]:
    """Which process answers the questions of servers with the settings of `plan`, JSON-ready, with a sentence."""
    found = KeeperClient(plan).greet()
    if isinstance(found, KeeperReply):
        return {
            "by": "keeper",
            "pid": found.pid,
            "sentence": f"of servers and of memory-tui search with these settings process {found.pid} answers",
        }
    why = f"{found.sentence[:1].lower()}{found.sentence[1:]}".rstrip(".")
    sentence = f"each server, and each memory-tui search, answers by itself: {why}"
    return {"by": "itself", "code": found.code, "sentence": sentence}


def _error(failed: Mapping[str, Any]) -> MemoryTuiError:
    """The error that the keeper met; one that is not in `errors` is told as the general one."""
    kind = getattr(errors, str(failed.get("name")), MemoryTuiError)
    if not (isinstance(kind, type) and issubclass(kind, MemoryTuiError)) or kind is errors.Cancelled:
        kind = MemoryTuiError
    return kind(str(failed.get("message", "")), str(failed.get("nextStep", "")))


# --- who keeps -----------------------------------------------------------------------------------------------------


def serve(memory: Engine) -> None:
    """Have `memory` answer other processes for as long as it keeps its index; call it before it starts."""
    path = path_of(memory.plan)
    if path is None:
        return
    # A configuration that is read anew later does not change what this engine was opened with.
    settings = settings_digests(memory.plan)

    def answer(question: Mapping[str, Any], stop: Stop) -> Mapping[str, Any] | KeeperRefusal:
        return _answer(memory, question, stop)

    memory.indexer.leadership.serve_with(lambda: KeeperSocket(path, VERSION, settings, answer))


def _answer(memory: Engine, given: Mapping[str, Any], stop: Stop) -> Mapping[str, Any] | KeeperRefusal:
    """What `memory` answers. Raises MemoryTuiError."""
    if not given:
        return {}
    if given.keys() == {"search"}:
        return _written(memory, given["search"], stop)
    question = AgentQuestion.from_dict(given)
    if question is None:
        return KeeperRefusal("malformed")
    found = answered(memory, question, stop)
    return KeeperRefusal("unwell", why) if (why := next(_unwell(memory, question, found), "")) else found.as_dict()


def _written(memory: Engine, sent: object, stop: Stop) -> Mapping[str, Any] | KeeperRefusal:
    """What `memory` writes where a command is asked that. Raises MemoryTuiError."""
    from memory_tui.render.as_text import SearchCommand, searched
    from memory_tui.workspace import root_state

    asked = SearchCommand.from_dict(sent)
    if asked is None:
        return KeeperRefusal("malformed")
    if not memory.indexer.is_current():
        return KeeperRefusal("behind")
    trace, evidence = memory.queries.ranked(asked.query, memory.plan.limited(asked.limits).settings, stop, asked.source)
    written = [*searched(memory, asked, trace, evidence)]
    if trace.who is not None and trace.who.instead:
        return KeeperRefusal("unwell", "its provider failed")
    if memory.indexer.opener.notices or root_state.lost(memory.indexer.root_watch.states()):
        return KeeperRefusal("unwell")
    return {"written": written}


def _unwell(memory: Engine, question: AgentQuestion, found: Answered) -> Iterator[str]:
    """What happened to this process alone, which another one may not meet."""
    # What is asked late says by it that only words were looked for.
    if "fallback" in found.answer and not question.late:
        yield "its provider failed"
    if found.answer.get("unavailable"):
        yield str(found.answer.get("error", ""))
    if memory.indexer.opener.notices:
        yield memory.indexer.opener.notices[0].message
