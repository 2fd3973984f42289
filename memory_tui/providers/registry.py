"""The table of providers, and what can be told of each without asking anybody."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from memory_tui.errors import ProviderError
from memory_tui.providers.base import Provider
from memory_tui.providers.options import DEFAULT_MODEL, ProviderSettings, host_of
from memory_tui.providers.services import ProviderRow, Wire, wire

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.download import ModelSource

PRICES_AS_OF = "2026-11-21"
"""The day on which the prices were looked up."""
_ROWS = (
    ProviderRow("builtin", "the built-in table", model="minilm-trained-256", dims={"minilm-trained-256": 256}, auto=6),
    ProviderRow("local", "a local model", model=DEFAULT_MODEL, auto=1, slow=True),
    ProviderRow("onnx", "an ONNX model", slow=True),
    ProviderRow(
        "openai",
        "OpenAI",
        shape="openai",
        base_url="https://api.openai.com/v1",
        variables=("OPENAI_API_KEY",),
        account="openai",
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
        account="voyage",
        model="voyage-4-large",
        dims={
            **dict.fromkeys(("voyage-4-large", "voyage-4", "voyage-4-lite", "voyage-3-large", "voyage-3.5"), 1024),
            **dict.fromkeys(("voyage-3.5-lite", "voyage-3", "voyage-code-3"), 1024),
            "voyage-3-lite": 512,
        },
        prices={
            "voyage-4-large": 0.12,
            "voyage-4": 0.06,
            "voyage-4-lite": 0.02,
            "voyage-3.5": 0.06,
            "voyage-3.5-lite": 0.02,
            "voyage-3-large": 0.18,
            "voyage-code-3": 0.18,
        },
        batch_price=0.67,
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
        account="mistral",
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
        account="ollama",
        model="nomic-embed-text",
        most_items=64,
        most_bytes=8_000,
    ),
    ProviderRow(
        "openai-compatible",
        "The OpenAI-compatible server",
        shape="openai",
        account="openai-compatible",
        keyless=True,
    ),
    ProviderRow(
        "lmstudio",
        "LM Studio",
        shape="openai",
        base_url="http://localhost:1234/v1",
        variables=("LM_API_TOKEN",),
        account="lmstudio",
        model="text-embedding-nomic-embed-text-v1.5",
        keyless=True,
    ),
    ProviderRow(
        "llama-cpp",
        "llama-server",
        shape="openai",
        base_url="http://127.0.0.1:8080/v1",
        variables=("LLAMA_SERVER_API_KEY",),
        account="llama-cpp",
        keyless=True,
    ),
    ProviderRow(
        "deepinfra",
        "DeepInfra",
        shape="openai",
        base_url="https://api.deepinfra.com/v1/openai",
        variables=("DEEPINFRA_API_KEY",),
        account="deepinfra",
        model="BAAI/bge-m3",
        dims={"BAAI/bge-m3": 1024},
    ),
    ProviderRow("scripted", "scripted vectors"),
    ProviderRow("none", "no provider"),
)
ROWS: Mapping[str, ProviderRow] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows by their names; the default comes first."""
NAMES = tuple(ROWS)
ACCOUNTS = MappingProxyType({row.name: row.account for row in _ROWS if row.account})
"""The accounts in OpenClaw's files by the names of their providers."""
BATCHING = tuple(row.name for row in _ROWS if row.batch_price)
"""The providers with a batch service."""
AUTOMATIC = tuple(row.name for row in sorted(_ROWS, key=lambda row: row.auto) if row.auto)
"""What `auto` chooses from: the first that has what it needs."""


def row(name: str) -> ProviderRow:
    """Return every fact of the provider `name`. Raises ProviderError for a name that is not in NAMES."""
    if name in ROWS:
        return ROWS[name]
    names, near = ", ".join(NAMES), difflib.get_close_matches(name, NAMES, n=1)
    step = f"Did you mean {near[0]}?" if near else f"Choose one of: {names}."
    raise ProviderError(f"There is no embedding provider {name!r}; memory-tui knows {names}.", step)


def sends(name: str) -> bool:
    """Tell whether `name` is a provider that the text of notes is sent to over HTTP."""
    return name in ROWS and bool(ROWS[name].shape)


def wire_of(name: str, settings: ProviderSettings) -> Wire | None:
    """Return how `name` is asked, None where it embeds here. Raises ProviderError for what `settings` lack."""
    facts = row(name)
    return wire(facts, settings.with_shared(name)) if facts.shape else None


def check(name: str, settings: ProviderSettings) -> None:
    """Raise ProviderError when `auto` cannot choose `name` as `settings` are; load no client and ask nobody."""
    if wire_of(name, settings) is None and ROWS[name].slow:
        from memory_tui.providers import local

        local.check(name, settings, on_disk=True)


def host(name: str, settings: ProviderSettings) -> str:
    """Return where `name` sends text, with the port where one is named; empty when it sends none, or lacks too much."""
    try:
        answer = wire_of(name, settings)
    except ProviderError:
        return ""
    return host_of(answer.base_url) if answer else ""


def model(name: str, settings: ProviderSettings) -> str:
    """Return the model that `name` will ask for, as far as is known before it is made."""
    try:
        answer = wire_of(name, settings)
    except ProviderError:
        return settings.model if name in ROWS else ""
    if answer:
        return answer.model
    if ROWS[name].slow:
        from memory_tui.providers import local

        return local.model_of(name, settings)
    return ROWS[name].model


def create(name: str, settings: ProviderSettings | None = None) -> Provider:
    """Return the provider called `name`, made as `settings` say; ask nothing of anybody yet.

    Raises ProviderError for a name that is not in NAMES, and for what `settings` lack, a key for instance.
    """
    settings = settings or ProviderSettings(requested=name)
    if answer := wire_of(name, settings):
        from memory_tui.providers.http import Remote

        return Remote(answer, settings)
    if ROWS[name].slow:
        from memory_tui.providers.local import LocalModel

        return LocalModel(name, settings)
    from memory_tui.providers import builtin

    return builtin.PROVIDERS[name]()


def model_files(name: str, settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """Return what can be fetched for the provider `name`. Raises ProviderError where there is nothing."""
    if name not in ROWS or not ROWS[name].slow:
        having = " or ".join(row.name for row in _ROWS if row.slow)
        raise ProviderError(f"The provider {name} has no model to fetch.", f"Choose one: --provider {having}.")
    from memory_tui.providers import local

    return local.sources(name, settings)


def batch_service(name: str, settings: ProviderSettings) -> BatchService | None:
    """Return the batch service of the provider `name`, None where it has none. Raises ProviderError as `create`."""
    answer = wire_of(name, settings) if name in BATCHING else None
    if answer is None:
        return None
    from memory_tui.providers.batch import BatchService

    return BatchService(answer, settings)


CHARACTERS_A_TOKEN = 4
"""As chunking counts them."""


def about_tokens(text: str) -> int:
    """Return about how many tokens `text` has: a quarter of its ASCII characters, and each other one whole, which is
    rather too many than too few.
    """
    ascii_signs = len(text.encode("ascii", "ignore"))
    return -(-ascii_signs // CHARACTERS_A_TOKEN) + len(text) - ascii_signs


def price_per_million(provider: str, model: str, host: str = "") -> float | None:
    """Return US dollars for a million tokens, without free quotas and discounts; None where that is not known.

    Without a `host` the provider's own is meant.
    """
    facts = ROWS.get(provider)
    return facts.prices.get(model) if facts and host in ("", facts.host) else None
