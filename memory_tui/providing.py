"""What the choices come to for the embedding providers: which, how they are asked, and who agreed to what.

A configuration that names a remote provider was written for the agent, and a key in the environment for another
program: following them silently would send every note to that host and cost money. So nothing is sent before a person
has agreed once, for this workspace, provider and host; `--provider NAME` on the command line is such a word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from memory_tui.config import Config, providers
from memory_tui.consent import Consents
from memory_tui.embed import registry
from memory_tui.embed.options import Batches, Jobs, ProviderSettings, Shared
from memory_tui.embed.secret import Secret
from memory_tui.launch import Choices

NAMED = "--provider"


def settings(choices: Choices, consents: Consents) -> ProviderSettings:
    """The settings of the providers to make: as the configuration has them where it speaks of the same provider."""
    config = choices.config
    may_send = _may_send(choices, consents)
    if config.provider not in ("", "auto", choices.provider):
        return ProviderSettings(
            requested=choices.provider,
            env=_lookup(config),
            may_send=may_send,
            batches=_batches(choices),
            shared=_shared(config),
        )
    dims = config.value("outputDimensionality")
    fallback = str(config.value("fallback") or "")
    folder = config.value("local.modelCacheDir")
    return ProviderSettings(
        requested=choices.provider,
        model=config.model,
        fallback=fallback if fallback in registry.NAMES else "",
        base_url=str(config.value("remote.baseUrl") or ""),
        api_keys=_keys(config),
        headers={name: found.value for name, found in config.headers() if found.known},
        output_dimensionality=dims if isinstance(dims, int) else None,
        input_type=str(config.value("inputType") or ""),
        query_input_type=str(config.value("queryInputType") or ""),
        document_input_type=str(config.value("documentInputType") or ""),
        jobs=_jobs(config),
        model_path=str(config.value("local.modelPath") or ""),
        model_cache=Path(folder).expanduser() if isinstance(folder, str) and folder else None,
        env=_lookup(config),
        may_send=may_send,
        batches=_batches(choices),
        shared=_shared(config),
    )


def _may_send(choices: Choices, consents: Consents) -> Callable[[str, str], bool]:
    named = choices.provider if choices.provider_origin == NAMED else ""

    def may_send(provider: str, host: str) -> bool:
        return provider == named or consents.given(provider, host) is not None

    return may_send


def _batches(choices: Choices) -> Batches:
    seconds = choices.config.value("sync.embeddingBatchTimeoutSeconds")
    return Batches(
        concurrency=choices.settings.whole("remote.concurrency"),
        batch_seconds=float(seconds) if isinstance(seconds, int) else None,
    )


def _jobs(config: Config) -> Jobs:
    """`remote.batch`, with the documented values where it says nothing."""
    usual = Jobs()

    def number(name: str, otherwise: float) -> float:
        value = config.value(f"remote.batch.{name}")
        return float(value) if isinstance(value, int | float) else otherwise

    return Jobs(
        enabled=config.value("remote.batch.enabled") is True,
        wait=config.value("remote.batch.wait") is not False,
        concurrency=int(number("concurrency", usual.concurrency)),
        poll_seconds=number("pollIntervalMs", usual.poll_seconds * 1000) / 1000,
        timeout_seconds=number("timeoutMinutes", usual.timeout_seconds / 60) * 60,
    )


def _keys(config: Config) -> tuple[Secret, ...]:
    found = config.secret("remote.apiKey")
    return (Secret(found.value),) if found and found.known else ()


def _shared(config: Config) -> Callable[[str], Shared]:
    """What OpenClaw is told of a provider, looked up once for each."""

    @cache
    def shared(name: str) -> Shared:
        found = providers.shared(config, name)
        return Shared(
            found.base_url,
            tuple(Secret(login.value) for login in found.logins),
            (Secret(found.key.value),) if found.key is not None and found.key.known else (),
            found.headers,
        )

    return shared


def _lookup(config: Config) -> Callable[[str], str | None]:
    def look(name: str) -> str | None:
        found = config.environment.lookup(name)
        return found[0] if found else None

    return look
