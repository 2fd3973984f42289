"""OpenAI's embeddings endpoint, every endpoint that is compatible with it, and its relatives Voyage and Mistral."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from memory_tui.embed.answers import Malformed, field, in_order
from memory_tui.embed.options import ProviderSettings
from memory_tui.embed.wire import (
    Headers,
    Kind,
    Wire,
    endpoint,
    fingerprint,
    host_of,
    keys,
    listed,
    missing_key,
    plain_key,
    variant,
    without_prefix,
    without_slash,
)

_JSON = {"Content-Type": "application/json"}
_OPENAI, _VOYAGE, _MISTRAL = "https://api.openai.com/v1", "https://api.voyageai.com/v1", "https://api.mistral.ai/v1"
_DIMS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "voyage-4-large": 1024,
    "voyage-4": 1024,
    "voyage-4-lite": 1024,
    "voyage-3-large": 1024,
    "voyage-3.5": 1024,
    "voyage-3.5-lite": 1024,
    "voyage-3": 1024,
    "voyage-3-lite": 512,
    "voyage-code-3": 1024,
    "mistral-embed": 1024,
    "codestral-embed": 1536,
}
"""Length of the vectors of each provider's own models, as the providers document it."""
MAX_INPUT_BYTES = 8000
"""Within the limits of all these models, which start at 8,191 tokens."""


def openai(settings: ProviderSettings) -> Wire:
    """OpenAI, or whatever is at `remote.baseUrl`; there a key is optional. Raises ProviderFailure."""
    base = endpoint(settings, "OpenAI", _OPENAI)
    own = host_of(base) == host_of(_OPENAI)
    found = keys(settings, "openai", "OPENAI_API_KEY")
    if not found and own and not _authorised(settings):
        raise missing_key("OpenAI", "openai", "OPENAI_API_KEY")
    size = settings.output_dimensionality
    model = settings.model or "text-embedding-3-small"
    model = without_prefix(model, "openai/") if own else model

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        return "/embeddings", {
            "model": model,
            "input": list(texts),
            **({"dimensions": size} if size else {}),
            **_input_type(settings, kind),
        }

    return Wire(
        name="openai",
        label="OpenAI" if own else "The OpenAI-compatible server",
        model=model,
        base_url=without_slash(base),
        dims=size or _known_dims(model, own),
        max_input_bytes=MAX_INPUT_BYTES,
        key=fingerprint(
            provider="openai",
            baseUrl=base,
            model=model,
            headers=listed({**_JSON, **settings.headers}),
            **variant(settings),
        ),
        headers=settings.headers,
        auth=_bearers(found),
        request=request,
        rows=rows,
    )


def voyage(settings: ProviderSettings) -> Wire:
    """Voyage, which is told whether a text is a note or a question. Raises ProviderFailure."""
    size = settings.output_dimensionality

    def more(kind: Kind) -> dict[str, object]:
        return {"input_type": kind, **_input_type(settings, kind), **({"output_dimension": size} if size else {})}

    return _relative(settings, _Relative("voyage", "Voyage", _VOYAGE, "voyage-4-large", "VOYAGE_API_KEY", more, size))


def mistral(settings: ProviderSettings) -> Wire:
    """Mistral. Raises ProviderFailure."""
    return _relative(
        settings, _Relative("mistral", "Mistral", _MISTRAL, "mistral-embed", "MISTRAL_API_KEY", lambda _: {}, None)
    )


def rows(answer: object) -> list[object]:
    """The vectors in `{data: [{embedding, index}]}`, by index. Raises Malformed."""
    found = in_order(field(answer, "data"))
    if not all(isinstance(row, dict) and "embedding" in row for row in found):
        raise Malformed("rows without an embedding")
    return [row["embedding"] for row in found if isinstance(row, dict)]


class _Relative(NamedTuple):
    name: str
    label: str
    base: str
    model: str
    variable: str
    more: Callable[[Kind], dict[str, object]]
    dims: int | None


def _relative(settings: ProviderSettings, kin: _Relative) -> Wire:
    base = endpoint(settings, kin.label, kin.base)
    found = keys(settings, kin.name, kin.variable)
    if not found and not _authorised(settings):
        raise missing_key(kin.label, kin.name, kin.variable)
    model = without_prefix(settings.model or kin.model, f"{kin.name}/")
    return Wire(
        name=kin.name,
        label=kin.label,
        model=model,
        base_url=without_slash(base),
        dims=kin.dims or _known_dims(model, base == kin.base),
        max_input_bytes=MAX_INPUT_BYTES,
        key=plain_key(kin.name, kin.base, base, model, settings),
        headers=settings.headers,
        auth=_bearers(found),
        request=lambda texts, kind: ("/embeddings", {"model": model, "input": list(texts), **kin.more(kind)}),
        rows=rows,
        most_items=128,
    )


def _known_dims(model: str, own: bool) -> int | None:
    """Another server may call its own model by a known name, so only the provider's own one is believed."""
    return _DIMS.get(model) if own else None


def _authorised(settings: ProviderSettings) -> bool:
    return "authorization" in {name.lower() for name in settings.headers}


def _input_type(settings: ProviderSettings, kind: Kind) -> dict[str, object]:
    said = (settings.query_input_type if kind == "query" else settings.document_input_type) or settings.input_type
    return {"input_type": said} if said else {}


def _bearers(found: Sequence[str]) -> tuple[Headers, ...]:
    return tuple({"Authorization": f"Bearer {key}"} for key in found)
