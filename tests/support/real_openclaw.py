"""The real OpenClaw from npm: installed once into a cache folder, run with a home of its own, asked over HTTP.

Nothing of it reaches the developer's own home, and the only model it knows is the scripted one on loopback.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
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

import pytest

from tests.support.scripted_model import MARK, MODEL, Model
from tests.support.waiting import LONG

NEWEST, OLDEST = "2026.9.6", "2026.3.13"
"""The releases between which the plugin runs."""
# Read before a test changes its home: the packages are fetched once for all runs.
CACHE = Path(os.environ.get("MEMORY_TUI_TEST_CACHE") or Path.home() / ".cache" / "memory-tui-tests")
_INSTALL_SECONDS = 240
_NODE = (24, 16)
"""What 2026.9.6 asks for; 2026.3.13 runs on it too."""
# One of its dependencies is fetched by git over ssh, which a machine that builds need not have; a chat app needs it.
_OVERRIDES = {OLDEST: {"libsignal": "6.0.0"}}
TOKEN = "of-a-test"
FEW_PLUGINS = MappingProxyType({"allow": ["memory-core", "memory-tui"]})
"""Others take OpenClaw minutes to load on a busy machine; memory-core goes on dreaming beside the slot's owner."""


def node() -> str:
    """A Node that is new enough: the machine's, else one from npm. Skips the test, with the reason, without one."""
    found = shutil.which("node")
    if found is not None and _version_of(found) >= _NODE:
        return found
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "")
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    if not system or not machine:
        pytest.skip(f"no Node {_NODE[0]} here, and npm has none for {platform.system()} {platform.machine()}")
    package = f"node-{system}-{machine}"
    return str(_installed("node-24", {package: "24"}, {}) / "node_modules" / package / "bin" / "node")


def openclaw(version: str) -> list[str]:
    """The command of OpenClaw `version`. Skips the test, with the reason, where npm cannot install it."""
    folder = _installed(f"openclaw-{version}", {"openclaw": version}, _OVERRIDES.get(version, {}))
    return [node(), str(folder / "node_modules" / "openclaw" / "openclaw.mjs")]


def _version_of(program: str) -> tuple[int, int]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LONG, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _installed(name: str, packages: Mapping[str, str], overrides: Mapping[str, str]) -> Path:
    folder = CACHE / name
    wanted = {"private": True, "dependencies": dict(packages), "overrides": dict(overrides)}
    done = folder / "whole.json"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Tests run in several processes, and one installs.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.is_file() and json.loads(done.read_text()) == wanted:
            return folder
        if shutil.which("npm") is None:
            pytest.skip(f"{name} is not installed: there is no npm")
        (folder / "package.json").write_text(json.dumps(wanted))
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]
        try:
            run = subprocess.run(
                ["npm", "install", *flags],
                check=False,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name} is not installed: npm took more than {_INSTALL_SECONDS} seconds")
        if run.returncode != 0:
            pytest.skip(f"{name} is not installed: {' '.join(run.stderr.split())[-300:]}")
        done.write_text(json.dumps(wanted))
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


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
        places = {name: str(self.home / f".{name.lower()}") for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {
            **kept,
            **places,
            "XDG_STATE_HOME": str(self.home / ".state"),
            "XDG_DATA_HOME": str(self.home / ".data"),
            "HOME": str(self.home),
            "OPENCLAW_STATE_DIR": str(self.home / ".openclaw"),
            "OPENCLAW_CONFIG_PATH": str(self.config_path),
            "OPENCLAW_SKIP_CHANNELS": "1",
            "NO_COLOR": "1",
        }

    def configure(self, plugins: Mapping[str, Any] = FEW_PLUGINS) -> None:
        """Write an openclaw.json that knows of no memory plug-in, with the section `plugins`."""
        free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        scripted = {"id": MODEL, "name": MODEL, "contextWindow": 200_000, "maxTokens": 8192, "input": ["text"]}
        provider = {
            "baseUrl": self.model.url,
            "apiKey": "none",
            "api": "openai-completions",
            "models": [{**scripted, "reasoning": False, "cost": free}],
        }
        tree = {
            "gateway": {
                "mode": "local",
                "port": self.port,
                "bind": "loopback",
                "auth": {"mode": "token", "token": TOKEN},
                "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
            },
            "agents": {
                "defaults": {
                    "workspace": str(self.workspace),
                    "model": {"primary": f"scripted/{MODEL}"},
                    "skipBootstrap": True,
                }
            },
            "models": {"mode": "replace", "providers": {"scripted": provider}},
            "plugins": dict(plugins),
        }
        self.config_path.parent.mkdir(parents=True, exist_ok=True)
        self.config_path.write_text(json.dumps(tree, indent=2))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of OpenClaw to its end."""
        return subprocess.run(
            [*openclaw(self.version), *words],
            check=False,
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=2 * LONG,
        )

    @contextmanager
    def gateway(self) -> Iterator[Gateway]:
        """A running gateway; its children end with it."""
        log = self.home / "gateway.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*openclaw(self.version), "gateway", "run"],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
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
    """A gateway that runs, and the file it logs to."""

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


def main() -> None:
    """Install what the tests need, and print where it is, or why it is not there."""
    for version in (NEWEST, OLDEST):
        try:
            print(f"OpenClaw {version}: {openclaw(version)[-1]}")
        except pytest.skip.Exception as reason:
            print(f"OpenClaw {version}: {reason}")


if __name__ == "__main__":
    main()
