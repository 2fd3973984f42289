"""What one remote provider's wire format is, as data, and what all formats share: keys, endpoints, fingerprints."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from memory_tui.embed.failure import ProviderFailure, State
from memory_tui.embed.options import ProviderSettings

Kind = Literal["document", "query"]
Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wire:
    """How to ask: `request` makes path and body for some texts, `rows` finds the vectors in an answer (Malformed).

    `key` is the fingerprint of the space. `dims` is None where only an answer can tell. `auth` holds the headers of
    each key. `older` is tried instead when the server does not know the path.
    """

    name: str
    label: str
    model: str
    base_url: str = field(repr=False)
    key: str
    dims: int | None
    max_input_bytes: int
    request: Callable[[Sequence[str], Kind], tuple[str, Mapping[str, object]]]
    rows: Callable[[object], list[object]]
    headers: Headers = field(default_factory=dict, repr=False)
    auth: tuple[Headers, ...] = field(default=(), repr=False)
    most_items: int = 2048
    concurrency: int = 64
    query_seconds: float = 60.0
    batch_seconds: float = 120.0
    older: Wire | None = None


def fingerprint(**fields: object) -> str:
    """SHA-256 of `fields` as JSON in the order given, as JavaScript writes it."""
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


_HOLD_A_KEY = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""A new key makes no other vectors, so none of these is in a fingerprint (2026.9.6)."""


def listed(headers: Headers) -> list[list[str]]:
    """`headers` as sorted pairs for a fingerprint, without those that hold a key."""
    kept = [[name, value] for name, value in headers.items() if name.lower() not in _HOLD_A_KEY]
    return sorted(kept, key=lambda pair: (pair[0].lower(), pair[0].swapcase()))


def plain_key(name: str, default_base: str, base: str, model: str, settings: ProviderSettings) -> str:
    """The documented fingerprint `{provider, model}`, and what else makes another space where any of it was set."""
    more: dict[str, object] = {}
    if base != default_base:
        more["baseUrl"] = base
    if own := listed(settings.headers):
        more["headers"] = own
    return fingerprint(provider=name, model=model, **more, **variant(settings))


def variant(settings: ProviderSettings) -> dict[str, object]:
    """What changes the vectors of notes beside the model."""
    said = settings.document_input_type or settings.input_type
    return {
        **({"outputDimensionality": settings.output_dimensionality} if settings.output_dimensionality else {}),
        **({"inputType": said} if said else {}),
    }


def keys(settings: ProviderSettings, name: str, variable: str) -> tuple[str, ...]:
    """The configured keys, else the one in the environment, else the spare ones.

    Raises ProviderFailure for what cannot be a key.
    """
    said = [key.reveal() for key in settings.api_keys] or [settings.env(variable) or ""]
    return usable_keys(name, said) or usable_keys(name, [key.reveal() for key in settings.spare_keys])


def usable_keys(name: str, said: Iterable[str]) -> tuple[str, ...]:
    """What is not blank of `said`, in order and once each. Raises ProviderFailure for what cannot be a key."""
    found = tuple(dict.fromkeys(key.strip() for key in said if key.strip()))
    if not all(key.isascii() and key.isprintable() for key in found):
        raise ProviderFailure(
            State.BAD_KEY,
            f"The API key of {name} holds characters that no key has.",
            "Copy it again, without quotes or line breaks.",
        )
    return found


def missing_key(label: str, name: str, variable: str) -> ProviderFailure:
    """The error of a provider that has no key."""
    return ProviderFailure(
        State.NO_KEY,
        f'No API key found for provider "{name}".',
        f"Set {variable} or remote.apiKey for {label}, or choose another provider.",
    )


def endpoint(settings: ProviderSettings, label: str, default: str) -> str:
    """The base URL as configured. Raises ProviderFailure for one that cannot be asked, and for unusable headers."""
    base = settings.base_url.strip() or default
    try:
        parts = urlsplit(base)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not base.isprintable():
        raise ProviderFailure(
            State.REFUSED,
            f"{label} cannot be asked: remote.baseUrl is not an http or https address.",
            f"Use an address like {default}.",
        )
    for name, value in settings.headers.items():
        if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()):
            raise ProviderFailure(
                State.REFUSED,
                f"A header for {label} ({name!r}) holds characters that no header has.",
                "Correct remote.headers.",
            )
    return base


def host_of(url: str) -> str:
    """The host and port in `url`, without user and password; empty when there is none."""
    try:
        parts = urlsplit(url)
        name = parts.hostname or ""
        return f"{f'[{name}]' if ':' in name else name}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return ""


def on_this_machine(host: str) -> bool:
    """Whether `host`, with a port or without, is this machine's loopback: what is sent there goes to nobody else."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def may_send(name: str, host: str, settings: ProviderSettings) -> bool:
    """Whether notes may be sent to the provider `name` at `host`: always on this machine, else where it was agreed."""
    return not host or on_this_machine(host) or settings.may_send(name, host)


def require_consent(name: str, host: str, settings: ProviderSettings) -> None:
    """Raises ProviderFailure unless notes may be sent to the provider `name` at `host`."""
    if not may_send(name, host, settings):
        raise ProviderFailure(
            State.NO_CONSENT,
            f"Your notes would be sent to {host} ({name}), and you have not agreed to that yet; nothing was sent.",
        )


def without_slash(base: str) -> str:
    """`base` without one trailing slash."""
    return base.removesuffix("/")


def without_prefix(model: str, *prefixes: str) -> str:
    """`model` without the first of `prefixes` that it has."""
    for prefix in prefixes:
        if model.startswith(prefix):
            return model.removeprefix(prefix)
    return model
