"""Voyage's embedding endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from memory_tui.providers.openai import compatible, input_type
from memory_tui.providers.options import Kind, ProviderSettings, Wire
from memory_tui.providers.registry import ProviderRow

_MOST_BYTES = 120_000
"""Voyage documents 1,000 texts and, for its models of the least, 120,000 tokens a request."""


def voyage(settings: ProviderSettings) -> Wire:
    """Voyage, which is told whether a text is a note or a query. Raises ProviderFailure."""
    size = settings.output_dimensionality

    def more(kind: Kind) -> Mapping[str, object]:
        return {"input_type": kind, **input_type(settings, kind), **({"output_dimension": size} if size else {})}

    return compatible(VOYAGE, settings, more, size, most_items=1_000, most_bytes=_MOST_BYTES)


VOYAGE = ProviderRow(
    "voyage",
    "Voyage",
    wire=voyage,
    base_url="https://api.voyageai.com/v1",
    variables=("VOYAGE_API_KEY",),
    model="voyage-4-large",
    dims={
        "voyage-4-large": 1024,
        "voyage-4": 1024,
        "voyage-4-lite": 1024,
        "voyage-3-large": 1024,
        "voyage-3.5": 1024,
        "voyage-3.5-lite": 1024,
        "voyage-3": 1024,
        "voyage-3-lite": 512,
        "voyage-code-3": 1024,
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
    auto=4,
)
