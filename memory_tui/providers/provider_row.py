"""A provider row holds every fact of one provider. It has hosts, key variables, models, prices and wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.provider_options import Headers, ProviderSettings, Wire, fingerprint, host_of, listed, variant

if TYPE_CHECKING:
    from memory_tui.providers.batch_format import BatchFormat
    from memory_tui.providers.download import ModelSource
    from memory_tui.providers.provider_protocol import Provider


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One provider, without anything heavy to import.

    A provider that sends text elsewhere has `wire`, which reads settings, raises ProviderFailure for what they lack,
    and asks nobody; any other one has `make`. `batch` gives the format of its batch service. `account` is its id in
    OpenClaw's files (`models.providers.<id>`), `variables` name its API keys in the environment, `model` is its usual
    model. `dims` has the lengths of the vectors, and `prices` US dollars for a million tokens, of its own models.
    `auto` is its place in what the provider `auto` tries, 0 for never. `check` raises ProviderFailure when `auto`
    cannot choose it, `asked_model` is the model that it will ask for, `files` are those of a model that can be fetched,
    the last one last; all three are for providers without `wire`. `slow` says that a call of one takes seconds.
    """

    name: str
    label: str
    wire: Callable[[ProviderSettings], Wire] | None = None
    make: Callable[[ProviderSettings], Provider] | None = None
    batch: Callable[[Wire], BatchFormat] | None = None
    base_url: str = ""
    account: str = ""
    variables: tuple[str, ...] = ()
    model: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    auto: int = 0
    check: Callable[[ProviderSettings], None] = lambda _: None
    asked_model: Callable[[ProviderSettings], str] = lambda _: ""
    files: Callable[[ProviderSettings], tuple[ModelSource, ...]] | None = None
    slow: bool = False

    def keys(self, settings: ProviderSettings) -> tuple[str, ...]:
        """The configured keys, else the one in the environment, else the spare ones.

        Raises ProviderFailure for what cannot be a key.
        """
        found = [key.reveal() for key in settings.api_keys] or [
            settings.env(variable) or "" for variable in self.variables
        ]
        return self.usable_keys(found) or self.usable_keys([key.reveal() for key in settings.spare_keys])

    def usable_keys(self, found: Sequence[str]) -> tuple[str, ...]:
        """What is not blank of `found`, in order and once each. Raises ProviderFailure for what cannot be a key."""
        keys = tuple(dict.fromkeys(key.strip() for key in found if key.strip()))
        if not all(key.isascii() and key.isprintable() for key in keys):
            raise ProviderFailure(
                Cause.BAD_KEY,
                f"The API key of {self.name} holds characters that no key has.",
                "Copy it again, without quotes or line breaks.",
            )
        return keys

    def missing_key(self) -> ProviderFailure:
        """The error of a provider that has no key."""
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
                f"{self.label} cannot be asked: remote.baseUrl is not an http or https address.",
                f"Use an address like {self.base_url}.",
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
        if own := listed(settings.headers):
            more["headers"] = own
        return fingerprint(provider=self.name, model=model, **more, **variant(settings))

    @property
    def host(self) -> str:
        """The provider's own host; empty where none is asked."""
        return host_of(self.base_url)


def authorised(settings: ProviderSettings, *names: str) -> bool:
    """Whether the configured headers name a key themselves, in `Authorization` or one of `names` (lower case)."""
    return not {"authorization", *names}.isdisjoint(name.lower() for name in settings.headers)


def bearers(keys: Sequence[str]) -> tuple[Headers, ...]:
    """The headers of each key, as most providers want it."""
    return tuple({"Authorization": f"Bearer {key}"} for key in keys)
