"""The real OpenClaw from npm: installed once into a cache folder, run with a home of its own, asked over HTTP.

Nothing of it reaches the developer's own home, and the only model it knows is the scripted one on loopback.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.npm import installed, node
from tests.support.provider_server import free_port
from tests.support.scripted_model import MARK, MODEL, Model
from tests.support.waiting import LONG

NEWEST, OLDEST = "2026.9.6", "2026.3.13"
"""The releases between which the plugin runs."""
# One of its dependencies is fetched by git over ssh, which a machine that builds need not have; a chat app needs it.
_OVERRIDES = {OLDEST: {"libsignal": "6.0.0"}}
TOKEN = "of-a-test"
_CHATS = {"agents": ["main"], "allowedChatTypes": ["direct", "group", "channel"]}
FEW_PLUGINS = MappingProxyType({"allow": ["memory-core", "memory-tui"]})
"""Others take OpenClaw minutes to load on a busy machine; memory-core goes on dreaming beside the slot's owner."""
WITH_TRIGGERS = MappingProxyType(
    {
        "allow": ["memory-core", "memory-tui", "active-memory"],
        "entries": {"active-memory": {"enabled": True, "config": _CHATS}},
    }
)
"""The same with the plug-in of 2026.9 that recalls by triggers."""


def openclaw(version: str) -> list[str]:
    """The command of OpenClaw `version`. Skips the test, with the reason, where npm cannot install it."""
    folder = installed(f"openclaw-{version}", {"openclaw": version}, _OVERRIDES.get(version, {}))
    return [node(), str(folder / "node_modules" / "openclaw" / "openclaw.mjs")]


@dataclass(slots=True)
class OpenClaw:
    """One installation with a home of its own, whose agent's model is `model`."""

    version: str
    home: Path
    workspace: Path
    model: Model
    port: int = field(default_factory=free_port)

    @property
    def config_path(self) -> Path:
        return self.home / ".openclaw" / "openclaw.json"

    @property
    def environment(self) -> dict[str, str]:
        """No folder of the developer's, no key, and no network but loopback is needed."""
        places = {
            f"XDG_{name}_HOME": str(self.home / f".{name.lower()}") for name in ("CACHE", "CONFIG", "STATE", "DATA")
        }
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        own = {"OPENCLAW_STATE_DIR": str(self.home / ".openclaw"), "OPENCLAW_CONFIG_PATH": str(self.config_path)}
        return {**kept, **places, **own, "HOME": str(self.home), "OPENCLAW_SKIP_CHANNELS": "1", "NO_COLOR": "1"}

    def configure(self, plugins: Mapping[str, Any] = FEW_PLUGINS) -> None:
        """Write an openclaw.json that knows of no memory plug-in, with the section `plugins`."""
        free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        scripted = {"id": MODEL, "name": MODEL, "contextWindow": 200_000, "maxTokens": 8192, "input": ["text"]}
        models = [{**scripted, "reasoning": False, "cost": free}]
        provider = {"baseUrl": self.model.url, "apiKey": "none", "api": "openai-completions", "models": models}
        gateway = {"mode": "local", "port": self.port, "bind": "loopback", "auth": {"mode": "token", "token": TOKEN}}
        agent = {"workspace": str(self.workspace), "model": {"primary": f"scripted/{MODEL}"}, "skipBootstrap": True}
        tree = {
            "gateway": gateway | {"http": {"endpoints": {"chatCompletions": {"enabled": True}}}},
            "agents": {"defaults": agent},
            "models": {"mode": "replace", "providers": {"scripted": provider}},
            "plugins": dict(plugins),
        }
        self.config_path.parent.mkdir(parents=True, exist_ok=True)
        self.config_path.write_text(json.dumps(tree, indent=2))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        places = {"env": self.environment, "cwd": self.home, "timeout": 2 * LONG}
        return subprocess.run([*openclaw(self.version), *words], check=False, capture_output=True, text=True, **places)

    @contextmanager
    def gateway(self) -> Iterator[Gateway]:
        """A running gateway; its children end with it."""
        log = self.home / "gateway.log"
        with log.open("wb") as out:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
            words, places = [*openclaw(self.version), "gateway", "run"], {"env": self.environment, "cwd": self.home}
            process = subprocess.Popen(words, **pipes, **places, start_new_session=True)
            try:
                running = Gateway(self, process, log)
                running.wait()
                yield running
            finally:
                process.terminate()
                try:
                    process.wait(LONG / 4)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


@dataclass(slots=True)
class Gateway:
    openclaw: OpenClaw
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Return when it takes requests. Raises AssertionError with its log when it ends before."""
        end = time.monotonic() + 2 * LONG
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.openclaw.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"the gateway does not start:\n{self.log.read_text()[-3000:]}")

    def say(self, text: str, user: str = "") -> str:
        """What the agent answers to a message; those of one `user` are one session."""
        body: dict[str, Any] = {"model": "openclaw", "messages": [{"role": "user", "content": text}]}
        if user:
            body["user"] = user
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.openclaw.port}/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=2 * LONG) as answer:
                found: str = json.load(answer)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.read()[:500]!r}\n{self.log.read_text()[-3000:]}") from error
        return found

    def ask(self, *questions: str) -> list[str]:
        """What the tools of the memory gave to the agent that was told to ask `questions`, as its model read it."""
        said = self.say("\n".join(f"{MARK} {question}" for question in questions))
        results = self.openclaw.model.results(*questions)
        assert results, f"{said}\n{self.log.read_text()[-3000:]}"
        return results
