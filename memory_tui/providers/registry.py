"""The table of providers: one line for each, by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct, field

from memory_tui.errors import ProviderError
from memory_tui.providers.base import Provider, fingerprint
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import ProviderSettings, Wire, host_of, listed, variant

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.download import ModelSource


class ProviderRow(Struct, frozen=True):
    """One provider, without anything heavy to import.

    A provider that sends text elsewhere has `wire`, which reads settings, raises ProviderFailure for what they lack,
    and asks nobody; any other one has `make`. `variables` name its API
    keys in the environment, `model` is its usual model. `dims` has the lengths of the vectors, and `prices` US dollars
    for a million tokens, of its own models, of which a
    batch job costs the part `batch_price`. `auto` is its place in what the provider `auto` tries, 0 for never. `check`
    raises ProviderFailure when `auto` cannot choose it, `asked_model` is the model that it will ask for, `files` are
    those of a model that can be fetched, the last one last; all three are for providers without `wire`. `slow` says
    that a call of one takes seconds.
    """

    name: str
    label: str
    wire: Callable[[ProviderSettings], Wire] | None = None
    make: Callable[[ProviderSettings], Provider] | None = None
    base_url: str = ""
    variables: tuple[str, ...] = ()
    model: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    batch_price: float = 1.0
    auto: int = 0
    check: Callable[[ProviderSettings], None] = lambda _: None
    asked_model: Callable[[ProviderSettings], str] = lambda _: ""
    files: Callable[[ProviderSettings], tuple[ModelSource, ...]] | None = None
    slow: bool = False

    def keys(self, settings: ProviderSettings) -> tuple[str, ...]:
        """Return the configured keys, else the one in the environment, else the spare ones.

        Raises ProviderFailure for what cannot be a key.
        """
        first = [key.reveal() for key in settings.api_keys] or [
            settings.env(variable) or "" for variable in self.variables
        ]
        return self.usable_keys(first) or self.usable_keys([key.reveal() for key in settings.spare_keys])

    def usable_keys(self, candidates: Sequence[str]) -> tuple[str, ...]:
        """Return what is not blank of `candidates`, once each. Raises ProviderFailure for what cannot be a key."""
        keys = tuple(dict.fromkeys(key.strip() for key in candidates if key.strip()))
        if not all(key.isascii() and key.isprintable() for key in keys):
            raise ProviderFailure(
                Cause.BAD_KEY,
                f"The API key of {self.name} holds characters that no key has.",
                "Copy it again, without quotes or line breaks.",
            )
        return keys

    def missing_key(self) -> ProviderFailure:
        """Return the error of a provider that has no key."""
        return ProviderFailure(
            Cause.NO_KEY,
            f'No API key found for provider "{self.account}".',
            f"Set {self.variables[0]} or remote.apiKey for {self.label}, or choose another provider.",
        )

    def endpoint(self, settings: ProviderSettings) -> str:
        """The base URL as configured. Raises ProviderFailure for one that cannot be asked, and for unusable headers."""
        base = settings.base_url.strip() or self.base_url
        try:
            parts = urlsplit(base)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            good = False
        if not good or not base.isprintable():
            raise ProviderFailure(
                Cause.REFUSED,
                f"{self.label} cannot be asked: remote.baseUrl names no http or https address.",
                f"Use an address like {self.base_url or 'http://127.0.0.1:8080/v1'}.",
            )
        for name, value in settings.headers.items():
            if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()):
                raise ProviderFailure(
                    Cause.REFUSED,
                    f"A header for {self.label} ({name!r}) holds characters that no header has.",
                    "Correct remote.headers.",
                )
        return base

    def plain_key(self, base: str, model: str, settings: ProviderSettings) -> str:
        """The documented fingerprint `{provider, model}`, and what else makes another space where any of it was set."""
        more: dict[str, object] = {}
        if base != self.base_url:
            more["baseUrl"] = base
        if headers := listed(settings.headers):
            more["headers"] = headers
        return fingerprint(provider=self.name, model=model, **more, **variant(settings))

    @property
    def account(self) -> str:
        """Its id in OpenClaw's files; empty where these have no accounts of it."""
        return ACCOUNTS.get(self.name, "")

    @property
    def host(self) -> str:
        """The provider's own host; empty where none is asked."""
        return host_of(self.base_url)


class ProviderLine(NamedTuple):
    """What is known of a provider without its row: where that stands, as `module:object`, its `account` in OpenClaw's
    files (`models.providers.<id>`), and whether it has a batch service. Every command reads a configuration, which
    may name each of them, and few import a row.
    """

    source: str
    account: str = ""
    batches: bool = False


PRICES_AS_OF = "2026-11-21"
"""The day on which the prices in the providers' rows were looked up."""
_HERE = "memory_tui.providers"
TABLE: Mapping[str, ProviderLine] = MappingProxyType(
    {
        "builtin": ProviderLine(f"{_HERE}.builtin:BUILTIN"),
        "local": ProviderLine(f"{_HERE}.local:LOCAL"),
        "onnx": ProviderLine(f"{_HERE}.local:ONNX"),
        "openai": ProviderLine(f"{_HERE}.openai:OPENAI", "openai", batches=True),
        "gemini": ProviderLine(f"{_HERE}.gemini:GEMINI", "google", batches=True),
        "voyage": ProviderLine(f"{_HERE}.voyage:VOYAGE", "voyage", batches=True),
        "mistral": ProviderLine(f"{_HERE}.mistral:MISTRAL", "mistral"),
        "ollama": ProviderLine(f"{_HERE}.ollama:OLLAMA", "ollama"),
        "openai-compatible": ProviderLine(f"{_HERE}.openai:COMPATIBLE", "openai-compatible"),
        "lmstudio": ProviderLine(f"{_HERE}.openai:LMSTUDIO", "lmstudio"),
        "llama-cpp": ProviderLine(f"{_HERE}.openai:LLAMA_CPP", "llama-cpp"),
        "deepinfra": ProviderLine(f"{_HERE}.openai:DEEPINFRA", "deepinfra"),
        "scripted": ProviderLine(f"{_HERE}.builtin:SCRIPTED"),
        "none": ProviderLine(f"{_HERE}.builtin:NONE"),
    }
)
"""Name -> its line; the row is imported on use. The default comes first."""
NAMES = tuple(TABLE)
ACCOUNTS = MappingProxyType({name: line.account for name, line in TABLE.items() if line.account})
"""The accounts in OpenClaw's files by the names of their providers."""
BATCHING = tuple(name for name, line in TABLE.items() if line.batches)
"""The providers with a batch service."""


@cache
def row(name: str) -> ProviderRow:
    """Return every fact of the provider `name`. Raises ProviderError for a name that is not in NAMES."""
    if name not in TABLE:
        raise _unknown(name)
    module, _, attribute = TABLE[name].source.partition(":")
    facts = getattr(importlib.import_module(module), attribute)
    assert isinstance(facts, ProviderRow)
    return facts


def rows() -> tuple[ProviderRow, ...]:
    """Return the rows of all providers, in the order of NAMES."""
    return tuple(row(name) for name in NAMES)


def automatic() -> tuple[str, ...]:
    """Return what `auto` chooses from: the first that has what it needs."""
    return tuple(one.name for one in sorted(rows(), key=lambda one: one.auto) if one.auto)


def sends(name: str) -> bool:
    """Tell whether `name` is a provider that the text of notes is sent to over HTTP."""
    return name in TABLE and row(name).wire is not None


def _wire(name: str, settings: ProviderSettings) -> Wire | None:
    wire = row(name).wire
    return wire(settings.with_shared(name)) if wire else None


def check(name: str, settings: ProviderSettings) -> None:
    """Raise ProviderError when `auto` cannot choose `name` as `settings` are; loads no client and asks nobody."""
    if _wire(name, settings) is None:
        row(name).check(settings)


def host(name: str, settings: ProviderSettings) -> str:
    """Return where `name` sends text, with the port where one is named; empty when it sends none. Asks nobody.

    Raises ProviderError for what `settings` lack.
    """
    wire = _wire(name, settings) if name in TABLE else None
    return host_of(wire.base_url) if wire else ""


def model(name: str, settings: ProviderSettings) -> str:
    """Return the model that `name` will ask for, as far as is known before it is made; asks nobody."""
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
    provider = create(name, settings)
    if not provider.identity_known:
        return model(name, settings), "", 0, provider.max_input_bytes
    identity = provider.identity
    return identity.model, identity.key, identity.dims, provider.max_input_bytes


def create(name: str, settings: ProviderSettings | None = None) -> Provider:
    """Return the provider called `name`, made as `settings` say; asks nothing of anybody yet.

    Raises ProviderError for a name that is not in NAMES, and for what `settings` lack, a key for instance.
    """
    settings = settings or ProviderSettings(requested=name)
    wire, make = _wire(name, settings), row(name).make
    if wire:
        from memory_tui.providers.http import Remote

        return Remote(wire, settings)
    assert make is not None
    return make(settings)


def model_files(name: str, settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """Return what can be fetched for the provider `name`; asks nobody. Raises ProviderError where there is nothing."""
    files = row(name).files if name in TABLE else None
    if files is None:
        having = " or ".join(one.name for one in rows() if one.files)
        raise ProviderError(f"The provider {name} has no model to fetch.", f"Choose one: --provider {having}.")
    return files(settings)


def batch_service(name: str, settings: ProviderSettings) -> BatchService | None:
    """The batch service of the provider `name`, None where it has none. Raises ProviderError as `create` does."""
    wire = _wire(name, settings) if name in BATCHING else None
    if wire is None:
        return None
    from memory_tui.providers import batch

    return batch.SERVICES[name](wire, settings)


def _unknown(name: str) -> ProviderError:
    import difflib

    names = ", ".join(NAMES)
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Choose one of: {names}."
    return ProviderError(f"There is no embedding provider {name!r}; memory-tui knows {names}.", hint)


CHARACTERS_A_TOKEN = 4
"""As chunking counts them."""


def about_tokens(text: str) -> int:
    """About how many tokens `text` has: a quarter of its ASCII characters, and each other one whole, which is rather
    too many than too few.
    """
    ascii_signs = len(text.encode("ascii", "ignore"))
    return -(-ascii_signs // CHARACTERS_A_TOKEN) + len(text) - ascii_signs


def price_per_million(provider: str, model: str, host: str = "") -> float | None:
    """Return US dollars for a million tokens, without free quotas and discounts; None where that is not known.

    Without a `host` the provider's own is meant.
    """
    if provider not in TABLE:
        return None
    facts = row(provider)
    return facts.prices.get(model) if host in ("", facts.host) else None
