"""OpenAI's embedding endpoints, which compatible providers share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from memory_tui.providers.base import Malformed, field, in_order
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import (
    OTHERS_BYTES,
    Kind,
    ProviderSettings,
    Wire,
    fingerprint,
    host_of,
    listed,
    variant,
    without_prefix,
    without_slash,
)
from memory_tui.providers.registry import ProviderRow, authorised, bearers

_MOST_BYTES = 300_000
"""OpenAI documents 2,048 texts and 300,000 tokens a request."""
_JSON = {"Content-Type": "application/json"}
MAX_INPUT_BYTES = 8000
"""Within the limits of all these models, which start at 8,191 tokens."""


def openai(settings: ProviderSettings) -> Wire:
    """OpenAI, or whatever is at `remote.baseUrl`; there a key is optional. Raises ProviderFailure."""
    base = OPENAI.endpoint(settings)
    own = host_of(base) == OPENAI.host
    found = OPENAI.keys(settings)
    if not found and own and not authorised(settings):
        raise OPENAI.missing_key()
    size = settings.output_dimensionality
    model = settings.model or OPENAI.model
    model = without_prefix(model, "openai/") if own else model

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        return "/embeddings", {
            "model": model,
            "input": list(texts),
            **({"dimensions": size} if size else {}),
            **input_type(settings, kind),
        }

    return Wire(
        name="openai",
        label="OpenAI" if own else "The OpenAI-compatible server",
        model=model,
        base_url=without_slash(base),
        # Another server may call its own model by a known name.
        dims=size or (OPENAI.dims.get(model) if own else None),
        max_input_bytes=MAX_INPUT_BYTES,
        key=fingerprint(
            provider="openai",
            baseUrl=base,
            model=model,
            headers=listed({**_JSON, **settings.headers}),
            **variant(settings),
        ),
        headers=settings.headers,
        auth=bearers(found),
        request=request,
        rows=rows,
        most_bytes=_MOST_BYTES if own else OTHERS_BYTES,
    )


def compatible(
    row: ProviderRow,
    settings: ProviderSettings,
    more: Callable[[Kind], Mapping[str, object]],
    dims: int | None,
    *,
    most_items: int,
    most_bytes: int,
    keyless: bool = False,
) -> Wire:
    """A provider with OpenAI's format; `more` is what a request holds besides, `dims` the length asked for.

    Only a `keyless` one is asked without a key. Raises ProviderFailure.
    """
    base = row.endpoint(settings)
    found = row.keys(settings)
    if not found and not keyless and not authorised(settings):
        raise row.missing_key()
    model = without_prefix(settings.model or row.model, f"{row.name}/")
    if not model:
        raise ProviderFailure(
            Cause.REFUSED,
            f"{row.label} is asked for a model by its name, and none is set.",
            "Set model beside provider.",
        )
    return Wire(
        name=row.name,
        label=row.label,
        model=model,
        base_url=without_slash(base),
        dims=dims or (row.dims.get(model) if base == row.base_url else None),
        max_input_bytes=MAX_INPUT_BYTES,
        key=row.plain_key(base, model, settings),
        headers=settings.headers,
        auth=bearers(found),
        request=lambda texts, kind: ("/embeddings", {"model": model, "input": list(texts), **more(kind)}),
        rows=rows,
        most_items=most_items,
        most_bytes=most_bytes,
    )


def rows(answer: object) -> list[object]:
    """The vectors in `{data: [{embedding, index}]}`, by index. Raises Malformed."""
    found = in_order(field(answer, "data"))
    if not all(isinstance(row, dict) and "embedding" in row for row in found):
        raise Malformed("rows without an embedding")
    return [row["embedding"] for row in found if isinstance(row, dict)]


def input_type(settings: ProviderSettings, kind: Kind) -> dict[str, object]:
    """What the settings call an embedded text of this kind; empty where they say nothing."""
    found = (settings.query_input_type if kind == "query" else settings.document_input_type) or settings.input_type
    return {"input_type": found} if found else {}


OPENAI = ProviderRow(
    "openai",
    "OpenAI",
    wire=openai,
    base_url="https://api.openai.com/v1",
    variables=("OPENAI_API_KEY",),
    model="text-embedding-3-small",
    dims={"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536},
    prices={"text-embedding-3-small": 0.02, "text-embedding-3-large": 0.13, "text-embedding-ada-002": 0.10},
    auto=2,
)


def _wire(row: ProviderRow, settings: ProviderSettings, *, keyless: bool = True) -> Wire:
    size = settings.output_dimensionality

    def more(kind: Kind) -> dict[str, object]:
        return {**({"dimensions": size} if size else {}), **input_type(settings, kind)}

    return compatible(row, settings, more, size, most_items=2048, most_bytes=OTHERS_BYTES, keyless=keyless)


def _lmstudio(settings: ProviderSettings) -> Wire:
    """LM Studio, whose address may be written with `/v1`, with `/api/v1`, or without either. Raises ProviderFailure."""
    base = (settings.base_url.strip() or LMSTUDIO.base_url).rstrip("/")
    return _wire(LMSTUDIO, replace(settings, base_url=re.sub(r"(/api)?/v1$", "", base, flags=re.IGNORECASE) + "/v1"))


COMPATIBLE: ProviderRow = ProviderRow(
    "openai-compatible", "The OpenAI-compatible server", wire=lambda settings: _wire(COMPATIBLE, settings)
)
LMSTUDIO: ProviderRow = ProviderRow(
    "lmstudio",
    "LM Studio",
    wire=_lmstudio,
    base_url="http://localhost:1234/v1",
    variables=("LM_API_TOKEN",),
    model="text-embedding-nomic-embed-text-v1.5",
)
LLAMA_CPP: ProviderRow = ProviderRow(
    "llama-cpp",
    "llama-server",
    wire=lambda settings: _wire(LLAMA_CPP, settings),
    base_url="http://127.0.0.1:8080/v1",
    variables=("LLAMA_SERVER_API_KEY",),
)
DEEPINFRA: ProviderRow = ProviderRow(
    "deepinfra",
    "DeepInfra",
    wire=lambda settings: _wire(DEEPINFRA, settings, keyless=False),
    base_url="https://api.deepinfra.com/v1/openai",
    variables=("DEEPINFRA_API_KEY",),
    model="BAAI/bge-m3",
    dims={"BAAI/bge-m3": 1024},
)
