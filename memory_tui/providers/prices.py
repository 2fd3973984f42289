"""List prices of embedding models, for an estimate before anything is sent."""

from __future__ import annotations

from memory_tui.providers import registry

AS_OF = "2026-11-21"
"""The day on which the prices in the providers' rows were looked up."""
CHARACTERS_A_TOKEN = 4
"""As chunking counts them."""


def per_million(provider: str, model: str, host: str = "") -> float | None:
    """US dollars for a million tokens, without free quotas and discounts; None where that is not known.

    Without a `host` the provider's own is meant.
    """
    if provider not in registry.TABLE:
        return None
    row = registry.row(provider)
    return row.prices.get(model) if host in ("", row.host) else None


def tokens(text: str) -> int:
    """About how many tokens `text` has: a quarter of its ASCII characters, and each other one whole, which is rather
    too many than too few.
    """
    others = sum(not sign.isascii() for sign in text) if not text.isascii() else 0
    return -(-(len(text) - others) // CHARACTERS_A_TOKEN) + others
