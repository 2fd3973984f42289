"""Mistral's embedding endpoint."""

from __future__ import annotations

from memory_tui.providers.provider_options import ProviderSettings, Wire
from memory_tui.providers.provider_row import ProviderRow
from memory_tui.providers.wires.openai import compatible


def mistral(settings: ProviderSettings) -> Wire:
    """Mistral. Raises ProviderFailure."""
    return compatible(MISTRAL, settings, lambda _: {}, None)


MISTRAL = ProviderRow(
    "mistral",
    "Mistral",
    wire=mistral,
    base_url="https://api.mistral.ai/v1",
    account="mistral",
    variables=("MISTRAL_API_KEY",),
    model="mistral-embed",
    dims={"mistral-embed": 1024, "codestral-embed": 1536},
    prices={"mistral-embed": 0.10},
    auto=5,
)
