"""Providers against the scripted server: no waiting before a retry, and the waits that would have been."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.plan import Options
from memory_tui.providers.registry import ProviderSettings, RequestLimits, RetryClock
from memory_tui.secrets import Secret
from tests.support.provider_server import Play

KEY = "sk-test-0123456789abcdef"
REMOTE = ("openai", "gemini", "voyage", "mistral", "ollama")


@dataclass
class Time:
    """A clock that stands still until it is told; sleeping takes no time and is noted."""

    at: float = 1_800_000_000.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> RetryClock:
        def sleep(stop: Stop, seconds: float) -> None:
            self.slept.append(seconds)

        return RetryClock(now=lambda: self.at, jitter=lambda: 0.5, sleep=sleep)


def settings_for(play: Play | None, name: str = "openai", **more: Any) -> ProviderSettings:
    """Settings for `name` at the server `play`, with an environment of its own and no real waiting."""
    batches = more.pop("batches", RequestLimits(most_bytes=8000))
    clock = more.pop("clock", None) or (more.pop("time", None) or Time()).clock()
    usual = {"requested": name, "api_keys": (Secret(KEY),), "env": {}.get, "batches": batches, "clock": clock}
    usual |= {"may_send": lambda provider, host: True, **({"base_url": play.url} if play else {})}
    return ProviderSettings(**{**usual, **more})


def quick(seconds: float = 0.15, **more: Any) -> RequestLimits:
    return replace(RequestLimits(most_bytes=8000), query_seconds=seconds, batch_seconds=seconds, **more)


ELSEWHERE = "http://embed.example"
PLACES = {"workspace": "notes", "config": "openclaw.json", "index": "i.sqlite"}


def configure(tmp_path: Path, url: str, **more: Any) -> Path:
    """Write a configuration that names OpenAI at `url`, or what `more` says."""
    remote = {"baseUrl": f"{url}/v1", "apiKey": KEY}
    section: dict[str, Any] = {"provider": "openai", "model": "small", "remote": remote, **more}
    if section["provider"] != "openai":
        del section["model"]
    path = tmp_path / "openclaw.json"
    path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    return path


def options(tmp_path: Path, **more: Any) -> Options:
    changes = (("profile", "recommended"), ("sync.watch", "false"))
    places = {name: str(tmp_path / file) for name, file in PLACES.items()}
    return Options(**{**places, "changes": changes, **more})
