"""Providers against the scripted server: no waiting before a retry, and the waits that would have been."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.providers import registry
from memory_tui.providers.options import ProviderSettings, RequestLimits, RetryClock, Secret
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
    base = {"base_url": play.url} if play else {}
    return ProviderSettings(
        **{
            "requested": name,
            "api_keys": (Secret(KEY),),
            "env": {}.get,
            "batches": batches,
            "clock": clock,
            "may_send": lambda provider, host: True,
            **base,
            **more,
        }
    )


def provider_for(play: Play, name: str = "openai", **more: Any) -> Any:
    return registry.create(name, settings_for(play, name, **more))


def quick(seconds: float = 0.15, **more: Any) -> RequestLimits:
    """Batches whose calls may take `seconds`."""
    return replace(RequestLimits(most_bytes=8000), query_seconds=seconds, batch_seconds=seconds, **more)
