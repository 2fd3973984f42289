"""List prices of embedding models, for an estimate before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping

AS_OF = "2026-11-21"
"""The day on which the prices were looked up."""

_HOSTS = {
    "openai": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
    "voyage": "api.voyageai.com",
    "mistral": "api.mistral.ai",
}
_PRICES: Mapping[tuple[str, str], float] = {
    ("openai", "text-embedding-3-small"): 0.02,
    ("openai", "text-embedding-3-large"): 0.13,
    ("openai", "text-embedding-ada-002"): 0.10,
    ("gemini", "gemini-embedding-001"): 0.15,
    ("voyage", "voyage-4-large"): 0.12,
    ("voyage", "voyage-4"): 0.06,
    ("voyage", "voyage-4-lite"): 0.02,
    ("voyage", "voyage-3.5"): 0.06,
    ("voyage", "voyage-3.5-lite"): 0.02,
    ("voyage", "voyage-3-large"): 0.18,
    ("voyage", "voyage-code-3"): 0.18,
    ("mistral", "mistral-embed"): 0.10,
}
CHARACTERS_A_TOKEN = 4
"""As chunking counts them."""


def per_million(provider: str, model: str, host: str = "") -> float | None:
    """US dollars for a million tokens, without free quotas and discounts; None where that is not known.

    Without a `host` the provider's own is meant.
    """
    return _PRICES.get((provider, model)) if host in ("", _HOSTS.get(provider)) else None


def tokens(text: str) -> int:
    """About how many tokens `text` has: a quarter of its ASCII characters, and each other one whole, which is rather
    too many than too few.
    """
    others = sum(not sign.isascii() for sign in text) if not text.isascii() else 0
    return -(-(len(text) - others) // CHARACTERS_A_TOKEN) + others
