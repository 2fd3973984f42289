"""Ask Mistral for embeddings."""

from __future__ import annotations

from memory_tui.providers.openai import compatible
from memory_tui.providers.options import ProviderSettings, Wire
from memory_tui.providers.registry import ProviderRow

_MOST_BYTES = 16_000
"""Mistral refuses more than 16,384 tokens a request."""


def mistral(settings: ProviderSettings) -> Wire:
    """Describe Mistral. Raises ProviderFailure."""
    return compatible(MISTRAL, settings, plain=True, most_items=128, most_bytes=_MOST_BYTES)


MISTRAL = ProviderRow(
    "mistral",
    "Mistral",
    wire=mistral,
    base_url="https://api.mistral.ai/v1",
    variables=("MISTRAL_API_KEY",),
    model="mistral-embed",
    dims={"mistral-embed": 1024, "codestral-embed": 1536},
    prices={"mistral-embed": 0.10},
    auto=5,
)
