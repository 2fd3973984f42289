"""The provider `none`: no vectors on purpose; search uses words alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from memory_tui.core.errors import ProviderError
from memory_tui.providers.base import Health, Identity, Vectors, identity_key
from memory_tui.providers.registry import ProviderRow

MODEL = "fts-only"
"""OpenClaw's name for the model of an index without vectors."""


class NoProvider:
    """The provider that has no vectors: zero dimensions, and every call of `embed` is refused."""

    @property
    def identity(self) -> Identity:
        """Provider "none", model "fts-only", no dimensions."""
        return Identity("none", MODEL, identity_key("none", MODEL), 0)

    @property
    def max_input_bytes(self) -> int:
        """The limit that other providers have, so that chunks are the same with and without vectors."""
        return 8000

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:  # noqa: ARG002
        """Raises ProviderError, always."""
        raise ProviderError(
            "No embedding provider is chosen, so there are no vectors; search goes by words alone.",
            "Use `--provider builtin` for vectors.",
        )

    def health(self) -> Health:
        """Well: having no vectors was the choice."""
        return Health(True, "no vectors, search by words alone")

    def close(self) -> None:
        """Nothing to release."""


NONE = ProviderRow("none", "no provider", make=lambda _: NoProvider())
