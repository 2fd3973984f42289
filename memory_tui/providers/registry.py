"""The table of providers: one line for each file of `wires`, by its name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from memory_tui.core.errors import ProviderError
from memory_tui.providers.provider_options import ProviderSettings, host_of
from memory_tui.providers.provider_row import ProviderRow

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.download import ModelSource
    from memory_tui.providers.provider_options import Wire
    from memory_tui.providers.provider_protocol import Provider

PRICES_AS_OF = "2026-11-21"
"""The day on which the prices in the providers' rows were looked up."""
_WIRES = "memory_tui.providers.wires"
TABLE: Mapping[str, str] = MappingProxyType(
    {
        "builtin": f"{_WIRES}.builtin:BUILTIN",
        "local": f"{_WIRES}.local:LOCAL",
        "onnx": f"{_WIRES}.onnx:ONNX",
        "openai": f"{_WIRES}.openai:OPENAI",
        "gemini": f"{_WIRES}.gemini:GEMINI",
        "voyage": f"{_WIRES}.voyage:VOYAGE",
        "mistral": f"{_WIRES}.mistral:MISTRAL",
        "ollama": f"{_WIRES}.ollama:OLLAMA",
        "scripted": f"{_WIRES}.scripted:SCRIPTED",
        "none": f"{_WIRES}.none:NONE",
    }
)
"""Name -> module and object of its row, imported on use; the default first."""
NAMES = tuple(TABLE)


@cache
def row(name: str) -> ProviderRow:
    """Every fact of the provider `name`. Raises ProviderError for a name that is not in NAMES."""
    if name not in TABLE:
        raise _unknown(name)
    module, _, attribute = TABLE[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert isinstance(found, ProviderRow)
    return found


def rows() -> tuple[ProviderRow, ...]:
    """The rows of all providers, in the order of NAMES."""
    return tuple(row(name) for name in NAMES)


def automatic() -> tuple[str, ...]:
    """What `auto` chooses from: the first that has what it needs."""
    return tuple(one.name for one in sorted(rows(), key=lambda one: one.auto) if one.auto)


def batching() -> tuple[str, ...]:
    """The providers with a batch service."""
    return tuple(one.name for one in rows() if one.batch)


def sends(name: str) -> bool:
    """Whether `name` is a provider that the text of notes is sent to over HTTP."""
    return name in TABLE and row(name).wire is not None


def _wire(name: str, settings: ProviderSettings) -> Wire | None:
    wire = row(name).wire
    return wire(settings.with_shared(name)) if wire else None


def check(name: str, settings: ProviderSettings) -> None:
    """Raises ProviderError when `auto` cannot choose `name` as `settings` are; loads no client and asks nobody."""
    if _wire(name, settings) is None:
        row(name).check(settings)


def host(name: str, settings: ProviderSettings) -> str:
    """Where `name` sends text, with the port where one is named; empty when it sends none. Asks nobody.

    Raises ProviderError for what `settings` lack.
    """
    wire = _wire(name, settings) if name in TABLE else None
    return host_of(wire.base_url) if wire else ""


def model(name: str, settings: ProviderSettings) -> str:
    """The model that `name` will ask for, as far as is known before it is made; asks nobody."""
    if name not in TABLE:
        return ""
    try:
        wire = _wire(name, settings)
    except ProviderError:
        return settings.model
    return wire.model if wire else row(name).asked_model(settings)


def preview(name: str, settings: ProviderSettings) -> tuple[str, str, int, int]:
    """Model, key of the space (empty for a local model), dimensions (0 where unknown), and the longest input in bytes.

    Asks nobody. Raises ProviderError as `create` does.
    """
    wire = _wire(name, settings)
    if wire:
        return wire.model, wire.key, wire.dims or 0, wire.max_input_bytes
    made = create(name, settings)
    if not getattr(made, "identity_known", True):
        return model(name, settings), "", 0, made.max_input_bytes
    identity = made.identity
    return identity.model, identity.key, identity.dims, made.max_input_bytes


def create(name: str, settings: ProviderSettings | None = None) -> Provider:
    """The provider called `name`, made as `settings` say; asks nothing of anybody yet.

    Raises ProviderError for a name that is not in NAMES, and for what `settings` lack, a key for instance.
    """
    settings = settings or ProviderSettings(requested=name)
    wire, make = _wire(name, settings), row(name).make
    if wire:
        from memory_tui.providers.http_provider import Remote

        return Remote(wire, settings)
    assert make is not None
    return make(settings)


def model_files(name: str, settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """What can be fetched for the provider `name`; asks nobody. Raises ProviderError where there is nothing."""
    files = row(name).files if name in TABLE else None
    if files is None:
        having = " or ".join(one.name for one in rows() if one.files)
        raise ProviderError(f"The provider {name} has no model to fetch.", f"Choose one: --provider {having}.")
    return files(settings)


def batch_service(name: str, settings: ProviderSettings) -> BatchService | None:
    """The batch service of the provider `name`, None where it has none. Raises ProviderError as `create` does."""
    wire, batch = _wire(name, settings), row(name).batch
    if wire is None or batch is None:
        return None
    from memory_tui.providers.batch import BatchService

    return BatchService(batch(wire), wire, settings)


def _unknown(name: str) -> ProviderError:
    import difflib

    known = ", ".join(NAMES)
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Choose one of: {known}."
    return ProviderError(f"There is no embedding provider {name!r}; memory-tui knows {known}.", hint)


CHARACTERS_A_TOKEN = 4
"""As chunking counts them."""


def about_tokens(text: str) -> int:
    """About how many tokens `text` has: a quarter of its ASCII characters, and each other one whole, which is rather
    too many than too few.
    """
    ascii_signs = len(text.encode("ascii", "ignore"))
    return -(-ascii_signs // CHARACTERS_A_TOKEN) + len(text) - ascii_signs


def price_per_million(provider: str, model: str, host: str = "") -> float | None:
    """US dollars for a million tokens, without free quotas and discounts; None where that is not known.

    Without a `host` the provider's own is meant.
    """
    if provider not in TABLE:
        return None
    found = row(provider)
    return found.prices.get(model) if host in ("", found.host) else None
