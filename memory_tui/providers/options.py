"""The options of a provider. They are endpoint, model, headers, and secrets that are never shown."""

from __future__ import annotations

import functools
import ipaddress
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.providers.base import Cause, Identity, Kind, ProviderFailure
from memory_tui.secrets import Discreet, Secret

DEFAULT_MODEL = "hf:ggml-org/embeddinggemma-300m-qat-q8_0-GGUF/embeddinggemma-300m-qat-Q8_0.gguf"
"""What `local.modelPath` stands for without a value."""
SMALL, SMALL_MODEL = "local-small", "multilingual-e5-small"
"""The provider whose model comes with its software, and the model. The extra that installs both is called like it."""
SMALL_COST = "91 MB, no key, no compiler, 0.1 CPU seconds for 100 tokens"


class RetryClock(Struct, frozen=True):
    """Where time comes from: `now` in epoch seconds, `jitter` from 0 to 1, and the `sleep` before a retry, which ends
    with a stop.
    """

    now: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    sleep: Callable[[Stop, float], object] = Stop.wait

    def pause(self, stop: Stop, seconds: float) -> None:
        """Let `seconds` pass. Raises Cancelled once `stop` is set."""
        self.sleep(stop, seconds)
        stop.check()


class RequestLimits(Struct, frozen=True):
    """How texts are sent: UTF-8 bytes of a request, requests at once, attempts, and seconds allowed. Where bytes or
    seconds are None those of the provider count. `probe` says whose limit a test text has: a command that asks once
    waits no longer for it than for its question.
    """

    most_bytes: int | None = None
    concurrency: int = 4
    attempts: int = 3
    query_seconds: float | None = None
    batch_seconds: float | None = None
    probe: Kind = "document"


class BatchOptions(Struct, frozen=True):
    """Whether many texts go to the provider's batch service, which is slow and cheap (`remote.batch`).

    `wait`: whether a command stays until the job is done. It is looked at every `poll_seconds` at first, and given
    up `timeout_seconds` after it was submitted. Fewer texts than `least` are sent directly: a job takes minutes at
    best.
    """

    enabled: bool = False
    wait: bool = True
    poll_seconds: float = 2.0
    timeout_seconds: float = 3600.0
    least: int = 256


class Shared(Discreet, frozen=True):
    """Settings of one provider for all who use it: `logins` come before its variable, `spare_keys` after it."""

    HIDDEN = ("base_url", "headers")

    base_url: str = ""
    logins: tuple[Secret, ...] = ()
    spare_keys: tuple[Secret, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


_OF_ONE_PROVIDER = (
    *("requested", "model", "fallback", "base_url", "api_keys", "headers"),
    *("output_dimensionality", "input_type", "query_input_type", "document_input_type"),
)


class ProviderSettings(Discreet, frozen=True):
    """Everything that decides which vectors there are; keys as documented below `memorySearch`.

    `requested` is a provider's name, or auto. Processes of one `scope` know what any of them met of a provider. `model`
    is the requested provider's; a fallback has its own default. `api_keys` come before the environment, and are tried
    in turn where the provider allows several. `env` looks a variable up, `spare_keys` are used where it has none.
    `shared` holds the settings of a provider for everything that uses it. `may_send` tells whether a person approved
    that a provider at a host gets notes; it is asked before each call, and not about this machine.
    """

    HIDDEN = ("base_url", "headers", "shared", "env", "may_send")

    requested: str = "auto"
    scope: str = ""
    model: str = ""
    fallback: str = ""
    base_url: str = ""
    api_keys: tuple[Secret, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    spare_keys: tuple[Secret, ...] = ()
    shared: Callable[[str], Shared] = lambda _: Shared()
    output_dimensionality: int | None = None
    input_type: str = ""
    query_input_type: str = ""
    document_input_type: str = ""
    model_path: str = ""
    model_cache: Path | None = None
    threads: int = 0
    """Of a local model; 0 for their usual number."""
    batches: RequestLimits = RequestLimits()
    jobs: BatchOptions = BatchOptions()
    env: Callable[[str], str | None] = os.environ.get
    may_send: Callable[[str, str], bool] = lambda *_: False
    once: bool = False
    """Whether a command asks once and ends."""
    index_command: str = "memory-tui index"
    """What a person runs to see and to approve what would be sent."""
    clock: RetryClock = RetryClock()

    @property
    def automatic(self) -> bool:
        """Whether nobody chose a provider."""
        return self.requested in ("", "auto")

    def with_shared(self, name: str) -> ProviderSettings:
        """Return these settings, completed by those that the provider `name` has for everything."""
        shared, base = self.shared(name), self.base_url.strip()
        if base and shared.base_url and host_of(base) != host_of(shared.base_url):
            # What is shared has keys and headers of another host, which must not be sent to this one.
            return self
        return replace(
            self,
            base_url=base or shared.base_url,
            api_keys=self.api_keys or shared.logins,
            spare_keys=shared.spare_keys,
            headers={**shared.headers, **self.headers},
        )

    def for_provider(self, name: str) -> ProviderSettings:
        """Return the settings for another provider: without model, endpoint and keys, which are of this one alone."""
        defaults = ProviderSettings(requested=name)
        return replace(self, **{field: getattr(defaults, field) for field in _OF_ONE_PROVIDER})


def model_of(name: str, settings: ProviderSettings) -> str:
    """Return the path or `hf:` URI that `local.modelPath` names, or the name of the small model."""
    return SMALL_MODEL if name == SMALL else settings.model_path or DEFAULT_MODEL


def host_of(url: str) -> str:
    """Return the host and port in `url`, without user and password; empty when there is none."""
    try:
        parts = urlsplit(url)
        name = parts.hostname or ""
        # An address of IPv6 stands in brackets, so that its colons begin no port.
        name = f"[{name}]" if ":" in name else name
        return f"{name}:{parts.port}" if parts.port else name
    except ValueError:
        return ""


@functools.lru_cache(maxsize=64)
def on_this_machine(host: str) -> bool:
    """Whether `host`, with a port or without, is this machine's loopback: what is sent there goes to nobody else."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def may_send(name: str, host: str, settings: ProviderSettings) -> bool:
    """Whether notes may be sent to the provider `name` at `host`: always on this machine, else with an approval."""
    return not host or on_this_machine(host) or settings.may_send(name, host)


def require_approval(name: str, host: str, settings: ProviderSettings) -> None:
    """Raise ProviderFailure unless notes may be sent to the provider `name` at `host`."""
    if not may_send(name, host, settings):
        why = f"Your notes would be sent to {host} ({name}), and you have not approved that yet; nothing was sent."
        command = settings.index_command
        step = f"See what would be sent: {command} --dry-run. To approve: {command} --yes."
        raise ProviderFailure(Cause.NEEDS_APPROVAL, why, step)


SECRETS = "secrets"
"""What a person approves who says that nothing leaves this machine from a server at one of its addresses."""


def takes_secrets(host: str, settings: ProviderSettings) -> bool:
    """Whether text that looks like a secret may be sent to `host`, which is empty for a provider without a server.

    A server on this machine may pass it on, so it gets such text only where a person said that it does not.
    """
    return not host or (on_this_machine(host) and settings.may_send(SECRETS, host))


Headers = Mapping[str, str]
OTHERS_BYTES = 200_000
"""Bytes of a request to a server whose limits nobody documents; of one that is refused the halves are sent."""


class ProviderRow(Struct, frozen=True):
    """One provider. With a `shape` text is sent to it; any other embeds on this machine, `slow` where a call takes
    seconds.

    `variables` name its API keys in the environment, one that ends in `_KEYS` several; a `keyless` one is asked without
    any too. `account` is its id in OpenClaw's files, where that is not its name. `model` is its usual model, `dims` has
    the lengths of the vectors and `prices` US dollars for a million tokens, of its own models, of which a batch job
    costs the part `batch_price`, 0 where it has none. `cost` says what a model on this machine takes, `token_seconds`
    are CPU seconds a token. `auto` is its place in what the provider `auto` tries, 0 for never. The length of vectors
    is asked for as `size_name`, where it has one; a `typed` one is told whether a text is a note or a query. A request
    holds at most `most_items` texts and `most_bytes` of UTF-8 (a token is a byte at least, so that a limit in tokens
    holds too), and may take `batch_seconds`; at most `concurrency` run at once. A question waits `query_seconds`.
    """

    name: str
    label: str
    shape: str = ""
    base_url: str = ""
    variables: tuple[str, ...] = ()
    account: str = ""
    model: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    batch_price: float = 0.0
    auto: int = 0
    slow: bool = False
    cost: str = ""
    token_seconds: float = 0.0
    keyless: bool = False
    size_name: str = "dimensions"
    typed: bool = False
    most_items: int = 2048
    most_bytes: int = OTHERS_BYTES
    concurrency: int = 64
    query_seconds: float = 10.0
    batch_seconds: float = 120.0

    @property
    def host(self) -> str:
        """The provider's own host; empty where none is asked."""
        return host_of(self.base_url)

    def price(self, model: str, host: str) -> float | None:
        """Return US dollars for a million tokens, without free quotas and discounts; None where that is not known."""
        return self.prices.get(model) if host == self.host else None

    def seconds(self, kind: Kind, limits: RequestLimits) -> float:
        """Return how long a question, or a request with notes, may take: by `limits`, else by the row."""
        if kind == "query":
            return limits.query_seconds or self.query_seconds
        return limits.batch_seconds or self.batch_seconds


class Wire(Discreet, frozen=True):
    """How `row` is asked: `request` makes path and body for some texts, `rows` finds the vectors in an answer
    (Malformed). `key` is the fingerprint of the space. `dims` is None where only an answer can tell. `auth` holds the
    headers of each key.
    """

    HIDDEN = ("base_url", "headers", "auth")

    row: ProviderRow
    model: str
    base_url: str
    key: str
    dims: int | None
    request: Callable[[Sequence[str], Kind], tuple[str, Mapping[str, object]]]
    rows: Callable[[object], list[object]]
    auth: tuple[Headers, ...]
    max_input_bytes: int = 8000
    headers: Headers = field(default_factory=dict)

    def identity(self, dims: int) -> Identity:
        """Return the space of its vectors."""
        return Identity(self.row.name, self.model, self.key, dims)
