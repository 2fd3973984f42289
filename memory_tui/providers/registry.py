"""The registry creates a provider by its name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_tui.core.errors import ProviderError
from memory_tui.providers.provider_options import BUILTIN_MODEL, DEFAULT_MODEL_PATH, ProviderSettings

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.protocol import Provider
    from memory_tui.providers.provider_options import Wire


def _builtin(_: ProviderSettings) -> Provider:
    from memory_tui.providers.wires.builtin import Builtin

    return Builtin()


def _local(settings: ProviderSettings) -> Provider:
    from memory_tui.providers.wires.local import Local

    return Local(settings)


def _scripted(_: ProviderSettings) -> Provider:
    from memory_tui.providers.wires.scripted import Scripted

    return Scripted()


def _none(_: ProviderSettings) -> Provider:
    from memory_tui.providers.wires.none import Absent

    return Absent()


def _openai(settings: ProviderSettings) -> Wire:
    from memory_tui.providers.wires.openai import openai

    return openai(settings)


def _gemini(settings: ProviderSettings) -> Wire:
    from memory_tui.providers.wires.gemini import gemini

    return gemini(settings)


def _voyage(settings: ProviderSettings) -> Wire:
    from memory_tui.providers.wires.openai import voyage

    return voyage(settings)


def _mistral(settings: ProviderSettings) -> Wire:
    from memory_tui.providers.wires.openai import mistral

    return mistral(settings)


def _ollama(settings: ProviderSettings) -> Wire:
    from memory_tui.providers.wires.ollama import ollama

    return ollama(settings)


_WIRES: dict[str, Callable[[ProviderSettings], Wire]] = {
    "openai": _openai,
    "gemini": _gemini,
    "voyage": _voyage,
    "mistral": _mistral,
    "ollama": _ollama,
}
_MAKERS: dict[str, Callable[[ProviderSettings], Provider]] = {
    "builtin": _builtin,
    "local": _local,
    "scripted": _scripted,
    "none": _none,
}

NAMES = ("builtin", "local", *_WIRES, "scripted", "none")
"""Every provider's name, the default first."""
REMOTE = tuple(_WIRES)
"""Those that the text of notes is sent to."""
AUTOMATIC = ("local", "openai", "gemini", "voyage", "mistral", "builtin")
"""What `auto` chooses from: the first that has what it needs."""


def _wire(name: str, settings: ProviderSettings) -> Wire:
    return _WIRES[name](settings.with_shared(name))


def check(name: str, settings: ProviderSettings) -> None:
    """Raises ProviderError when `auto` cannot choose `name` as `settings` are; loads no client and asks nobody."""
    if name in _WIRES:
        _wire(name, settings)
    elif name == "local":
        from memory_tui.providers.wires import gguf

        gguf.check(settings, on_disk=True)
    elif name not in _MAKERS:
        raise _unknown(name)


def host(name: str, settings: ProviderSettings) -> str:
    """Where `name` sends text, with the port where one is named; empty when it sends none. Asks nobody.

    Raises ProviderError for what `settings` lack.
    """
    from memory_tui.providers.provider_options import host_of

    return host_of(_wire(name, settings).base_url) if name in _WIRES else ""


def model(name: str, settings: ProviderSettings) -> str:
    """The model that `name` will ask for, as far as is known before it is made; asks nobody."""
    if name in _WIRES:
        try:
            return _wire(name, settings).model
        except ProviderError:
            return settings.model
    if name == "local":
        return settings.model_path or DEFAULT_MODEL_PATH
    return BUILTIN_MODEL if name == "builtin" else ""


def outlook(name: str, settings: ProviderSettings) -> tuple[str, str, int, int]:
    """Model, key of the space (empty for a local model), dimensions (0 where unknown), and the longest input in bytes.

    Asks nobody. Raises ProviderError as `create` does.
    """
    if name in _WIRES:
        wire = _wire(name, settings)
        return wire.model, wire.key, wire.dims or 0, wire.max_input_bytes
    made = create(name, settings)
    if name == "local":
        return model(name, settings), "", 0, made.max_input_bytes
    identity = made.identity
    return identity.model, identity.key, identity.dims, made.max_input_bytes


def create(name: str, settings: ProviderSettings | None = None) -> Provider:
    """The provider called `name`, made as `settings` say; asks nothing of anybody yet.

    Raises ProviderError for a name that is not in NAMES, and for what `settings` lack, a key for instance.
    """
    settings = settings or ProviderSettings(requested=name)
    if name in _WIRES:
        from memory_tui.providers.http_provider import Remote

        return Remote(_wire(name, settings), settings)
    if name in _MAKERS:
        return _MAKERS[name](settings)
    raise _unknown(name)


def batch_service(name: str, settings: ProviderSettings) -> BatchService | None:
    """The batch service of the provider `name`, None where it has none. Raises ProviderError as `create` does."""
    from memory_tui.providers.batch import BatchService

    if name == "gemini":
        from memory_tui.providers.wires.gemini import GeminiBatches

        return BatchService(GeminiBatches(wire := _wire(name, settings)), wire, settings)
    if name in ("openai", "voyage"):
        from memory_tui.providers.wires.openai import OpenAiBatches

        return BatchService(OpenAiBatches(wire := _wire(name, settings), name == "voyage"), wire, settings)
    return None


def _unknown(name: str) -> ProviderError:
    known = ", ".join(NAMES)
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Choose one of: {known}."
    return ProviderError(f"There is no embedding provider {name!r}; memory-tui knows {known}.", hint)
