"""What a person chose about embeddings: provider, model, keys, endpoint, batches. Decided before anything is made."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from memory_tui.embed.secret import Secret

DEFAULT_MODEL_PATH = "hf:ggml-org/embeddinggemma-300m-qat-q8_0-GGUF/embeddinggemma-300m-qat-Q8_0.gguf"

BUILTIN_MODEL = "minilm-static-256"


async def _sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time comes from: `now` in epoch seconds, `jitter` from 0 to 1, and the `sleep` before a retry."""

    now: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = _sleep


@dataclass(frozen=True, slots=True)
class Batches:
    """How texts are sent: UTF-8 bytes of a request, requests at once, attempts, seconds allowed (None: as usual for
    the provider), and the first and longest wait between attempts in seconds.
    """

    most_bytes: int = 8000
    concurrency: int = 4
    attempts: int = 3
    query_seconds: float | None = None
    batch_seconds: float | None = None
    first_wait: float = 0.5
    longest_wait: float = 8.0


@dataclass(frozen=True, slots=True)
class Jobs:
    """Whether many texts go to the provider's batch service, which is slow and cheap (`remote.batch`).

    `wait`: whether a command stays until the job is done. `concurrency` jobs at once, a look at each every
    `poll_seconds` at first, and given up `timeout_seconds` after it was submitted. Fewer texts than `least` are sent
    directly: a job takes minutes at best.
    """

    enabled: bool = False
    wait: bool = True
    concurrency: int = 2
    poll_seconds: float = 2.0
    timeout_seconds: float = 3600.0
    least: int = 256
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """A model file on its way: bytes that are there, and bytes it will have (0 when unknown)."""

    name: str
    done: int
    total: int


def nobody(provider: str, host: str) -> bool:
    """Who may be sent notes as long as nobody has agreed to anything: no provider at any host."""
    del provider, host
    return False


def no_progress(progress: Progress) -> None:
    """The listener of those who do not listen."""
    del progress


@dataclass(frozen=True, slots=True)
class Shared:
    """Settings of one provider for all who use it: `logins` come before its variable, `spare_keys` after it."""

    base_url: str = field(default="", repr=False)
    logins: tuple[Secret, ...] = ()
    spare_keys: tuple[Secret, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def nothing_shared(provider: str) -> Shared:
    """Settings of providers where the configuration has none."""
    del provider
    return Shared()


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Everything that decides which vectors there are; keys as documented below `memorySearch`.

    `requested` is a provider's name, or auto. `model` is the requested provider's; a fallback has its own default.
    `api_keys` come before the environment, and are tried in turn where the provider allows several. `env` looks a
    variable up, `spare_keys` are used where it has none. `shared` holds the settings of a provider for everything that
    uses it. `may_send` tells whether a person agreed that notes go to a provider at a host; it is asked before
    each call, and not about this machine.
    """

    requested: str = "auto"
    model: str = ""
    fallback: str = ""
    base_url: str = field(default="", repr=False)
    api_keys: tuple[Secret, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    spare_keys: tuple[Secret, ...] = ()
    shared: Callable[[str], Shared] = field(default=nothing_shared, repr=False)
    output_dimensionality: int | None = None
    input_type: str = ""
    query_input_type: str = ""
    document_input_type: str = ""
    model_path: str = ""
    model_cache: Path | None = None
    threads: int = 1
    batches: Batches = Batches()
    jobs: Jobs = Jobs()
    env: Callable[[str], str | None] = field(default=os.environ.get, repr=False)
    may_send: Callable[[str, str], bool] = field(default=nobody, repr=False)
    on_progress: Callable[[Progress], None] = field(default=no_progress, repr=False)
    clock: Clock = Clock()

    @property
    def automatic(self) -> bool:
        """Whether nobody chose a provider."""
        return self.requested in ("", "auto")

    def with_shared(self, name: str) -> ProviderSettings:
        """These settings, completed by those that the provider `name` has for everything."""
        said = self.shared(name)
        return replace(
            self,
            base_url=self.base_url.strip() or said.base_url,
            api_keys=self.api_keys or said.logins,
            spare_keys=said.spare_keys,
            headers={**said.headers, **self.headers},
        )

    def for_provider(self, name: str) -> ProviderSettings:
        """The settings of another provider: its own model and endpoint; what was said about this one stays here."""
        return replace(
            self,
            requested=name,
            model="",
            fallback="",
            base_url="",
            api_keys=(),
            headers={},
            output_dimensionality=None,
            input_type="",
            query_input_type="",
            document_input_type="",
        )
