"""Ask OpenAI, and every server with its format, for embeddings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memory_tui.providers.base import Kind, fingerprint, members
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import (
    OTHERS_BYTES,
    ProviderSettings,
    Wire,
    authorised,
    bearers,
    host_of,
    listed,
    variant,
    without_prefix,
)
from memory_tui.providers.registry import ProviderRow

_MOST_BYTES = 300_000
"""OpenAI documents 2,048 texts and 300,000 tokens a request."""


def compatible(
    row: ProviderRow,
    settings: ProviderSettings,
    *,
    keyless: bool = False,
    size_name: str = "dimensions",
    typed: bool = False,
    plain: bool = False,
    prefixed: bool = True,
    most_items: int = 2048,
    most_bytes: int = OTHERS_BYTES,
) -> Wire:
    """Describe a provider with OpenAI's format.

    Only a `keyless` one is asked without a key. The length of vectors is asked for as `size_name`; a `typed` one is
    told whether a text is a note or a query, a `plain` one gets nothing
    beside model and texts. Models of a `prefixed` one may bear its name. Raises ProviderFailure.
    """
    base = row.endpoint(settings)
    keys = row.keys(settings)
    if not keys and not keyless and not authorised(settings):
        raise row.missing_key()
    model = settings.model or row.model
    if prefixed:
        model = without_prefix(model, f"{row.name}/")
    if not model:
        message = f"{row.label} is asked for a model by its name, and none is set."
        raise ProviderFailure(Cause.REFUSED, message, "Set model beside provider.")
    size = None if plain else settings.output_dimensionality

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        body: dict[str, object] = {"model": model, "input": list(texts)}
        if size:
            body[size_name] = size
        named = (settings.query_input_type if kind == "query" else settings.document_input_type) or settings.input_type
        if not plain and (named or typed):
            body["input_type"] = named or kind
        return "/embeddings", body

    return Wire(
        name=row.name,
        label=row.label,
        model=model,
        base_url=base.removesuffix("/"),
        # Another server may call its own model by a known name.
        dims=size or (row.dims.get(model) if host_of(base) == row.host else None),
        # Within the limits of all these models, which start at 8,191 tokens.
        max_input_bytes=8000,
        key=row.plain_key(base, model, settings),
        headers=settings.headers,
        auth=bearers(keys),
        request=request,
        rows=lambda answer: members(answer, "data", "embedding"),
        most_items=most_items,
        most_bytes=most_bytes,
    )


def openai(settings: ProviderSettings) -> Wire:
    """Describe OpenAI, or whatever is at `remote.baseUrl`; there a key is optional. Raises ProviderFailure."""
    base = OPENAI.endpoint(settings)
    official = host_of(base) == OPENAI.host
    wire = compatible(
        OPENAI,
        settings,
        keyless=not official,
        prefixed=official,
        most_bytes=_MOST_BYTES if official else OTHERS_BYTES,
    )
    headers = listed({"Content-Type": "application/json", **settings.headers})
    key = fingerprint(provider="openai", baseUrl=base, model=wire.model, headers=headers, **variant(settings))
    return replace(wire, label="OpenAI" if official else "The OpenAI-compatible server", key=key)


def lmstudio(settings: ProviderSettings) -> Wire:
    """Describe LM Studio, whose address may be written with `/v1`, `/api/v1`, or neither. Raises ProviderFailure."""
    base = (settings.base_url.strip() or LMSTUDIO.base_url).rstrip("/")
    base = re.sub(r"(/api)?/v1$", "", base, flags=re.IGNORECASE) + "/v1"
    return compatible(LMSTUDIO, replace(settings, base_url=base), keyless=True)


OPENAI = ProviderRow(
    "openai",
    "OpenAI",
    wire=openai,
    base_url="https://api.openai.com/v1",
    variables=("OPENAI_API_KEY",),
    model="text-embedding-3-small",
    dims={"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536},
    prices={"text-embedding-3-small": 0.02, "text-embedding-3-large": 0.13, "text-embedding-ada-002": 0.10},
    batch_price=0.5,
    auto=2,
)
COMPATIBLE: ProviderRow = ProviderRow(
    "openai-compatible",
    "The OpenAI-compatible server",
    wire=lambda settings: compatible(COMPATIBLE, settings, keyless=True),
)
LMSTUDIO: ProviderRow = ProviderRow(
    "lmstudio",
    "LM Studio",
    wire=lmstudio,
    base_url="http://localhost:1234/v1",
    variables=("LM_API_TOKEN",),
    model="text-embedding-nomic-embed-text-v1.5",
)
LLAMA_CPP: ProviderRow = ProviderRow(
    "llama-cpp",
    "llama-server",
    wire=lambda settings: compatible(LLAMA_CPP, settings, keyless=True),
    base_url="http://127.0.0.1:8080/v1",
    variables=("LLAMA_SERVER_API_KEY",),
)
DEEPINFRA: ProviderRow = ProviderRow(
    "deepinfra",
    "DeepInfra",
    wire=lambda settings: compatible(DEEPINFRA, settings),
    base_url="https://api.deepinfra.com/v1/openai",
    variables=("DEEPINFRA_API_KEY",),
    model="BAAI/bge-m3",
    dims={"BAAI/bge-m3": 1024},
)
