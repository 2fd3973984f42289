"""Ask Voyage for embeddings."""

from __future__ import annotations

from memory_tui.providers.openai import compatible
from memory_tui.providers.options import ProviderSettings, Wire
from memory_tui.providers.registry import ProviderRow

_MOST_BYTES = 120_000
"""Voyage documents 1,000 texts and, for its models of the least, 120,000 tokens a request."""


def voyage(settings: ProviderSettings) -> Wire:
    """Describe Voyage, which is told whether a text is a note or a query. Raises ProviderFailure."""
    return compatible(
        VOYAGE, settings, size_name="output_dimension", typed=True, most_items=1_000, most_bytes=_MOST_BYTES
    )


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
    batch_price=0.67,
    auto=4,
)
