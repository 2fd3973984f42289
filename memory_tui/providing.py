"""What the choices come to for the embedding provider. Notes are sent to nobody who was not named on the command line.

A configuration that names a remote provider was written for the agent, not for this program: following it silently
would send every note to that host and cost money. So search goes by words until `--provider NAME` allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.config import Config
from memory_tui.embed import registry
from memory_tui.embed.options import Jobs, ProviderSettings
from memory_tui.embed.secret import Secret
from memory_tui.errors import ProviderError
from memory_tui.launch import Choices

if TYPE_CHECKING:
    from memory_tui.embed.chain import Chain
    from memory_tui.embed.provider import Health

NAMED = "--provider"


def withheld(choices: Choices) -> ProviderError | None:
    """Why the provider of the configuration is not used, None when it is."""
    if choices.provider not in registry.REMOTE or choices.provider_origin == NAMED:
        return None
    return ProviderError(
        f"{choices.provider_origin} names {choices.provider}, to which your notes would be sent; that needs your word.",
        f"Run with --provider {choices.provider} to allow it, or --provider builtin for vectors made on this machine.")


def settings(choices: Choices) -> ProviderSettings:
    """The settings of the provider to make: as the configuration has them where it speaks of the same provider."""
    if withheld(choices):
        return ProviderSettings(requested="none")
    config = choices.config
    if config.provider not in ("", "auto", choices.provider):
        return ProviderSettings(requested=choices.provider, env=_lookup(config))
    dims = config.value("outputDimensionality")
    fallback = str(config.value("fallback") or "")
    folder = config.value("local.modelCacheDir")
    return ProviderSettings(
        requested=choices.provider, model=config.model,
        fallback=fallback if fallback in registry.NAMES and fallback not in registry.REMOTE else "",
        base_url=str(config.value("remote.baseUrl") or ""), api_keys=_keys(config),
        headers={name: found.value for name, found in config.headers() if found.known},
        output_dimensionality=dims if isinstance(dims, int) else None,
        jobs=_jobs(config), model_path=str(config.value("local.modelPath") or ""),
        model_cache=Path(folder).expanduser() if isinstance(folder, str) and folder else None, env=_lookup(config))


def health(refused: ProviderError | None, chain: Chain) -> Health:
    """The state of the provider in words, or why the one that was asked for is not used."""
    from memory_tui.embed.provider import Health

    return Health(False, refused.message) if refused else chain.health()


def _jobs(config: Config) -> Jobs:
    """`remote.batch`, with the documented values where it says nothing."""
    usual = Jobs()

    def number(name: str, otherwise: float) -> float:
        value = config.value(f"remote.batch.{name}")
        return float(value) if isinstance(value, int | float) else otherwise

    return Jobs(
        enabled=config.value("remote.batch.enabled") is True, wait=config.value("remote.batch.wait") is not False,
        concurrency=int(number("concurrency", usual.concurrency)),
        poll_seconds=number("pollIntervalMs", usual.poll_seconds * 1000) / 1000,
        timeout_seconds=number("timeoutMinutes", usual.timeout_seconds / 60) * 60)


def _keys(config: Config) -> tuple[Secret, ...]:
    found = config.secret("remote.apiKey")
    return (Secret(found.value),) if found and found.known else ()


def _lookup(config: Config) -> Callable[[str], str | None]:
    def look(name: str) -> str | None:
        found = config.environment.lookup(name)
        return found[0] if found else None

    return look
