"""A provider is set up: it is tested, then its keys become a patch of the configuration, which a person agrees to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.approval import Approvals
from memory_tui.config.config_patch import Patch, provider_patch
from memory_tui.config.model import Config
from memory_tui.errors import ConfigError, ProviderError, SettingError
from memory_tui.plan import Plan
from memory_tui.providers import registry
from memory_tui.providers.chain import Chain
from memory_tui.providers.options import ProviderRow, Secret


class ProviderChoice(NamedTuple):
    """A provider as a person describes it; `variable` names the environment variable of its key, empty for none."""

    row: ProviderRow
    address: str = ""
    variable: str = ""
    model: str = ""


class ProviderSetup(NamedTuple):
    """A provider that answered a test, and the patch of the configuration that names it."""

    patch: Patch
    trial: dict[str, Any]

    @property
    def answer(self) -> str:
        """Return what the test came to, as a sentence."""
        where = f" at {self.trial['host']}" if self.trial["host"] else ""
        cost = registry.row(self.trial["provider"]).cost
        answer = f"{self.trial['provider']} {self.trial['model']}{where} answers: {self.trial['dims']:,} dimensions."
        return f"{answer} It takes {cost}." if cost else answer


def usual_variable(row: ProviderRow, address: str) -> str:
    """Return the variable that holds the key of a provider at its usual address; empty elsewhere."""
    return row.variables[0] if row.variables and address == row.base_url else ""


def choice(kind: str, address: str, variable: str, model: str) -> ProviderChoice:
    """Return the provider that these describe. Raises SettingError."""
    row = registry.row(kind)
    if not row.shape:
        return ProviderChoice(row)
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise SettingError(
            "The name of the key's variable is none.",
            "Name the environment variable, not the key, as in OPENAI_API_KEY.",
        )
    return ProviderChoice(row, address, variable, model)


def prepare(plan: Plan, chosen: ProviderChoice) -> ProviderSetup:
    """Ask the provider for the vector of a sentence of memory-tui's own, and return what would be written for it.

    Raises ConfigError, ProviderError, SettingError.
    """
    keys = _keys(plan.config, chosen)
    patch = provider_patch(plan.config, keys)
    return ProviderSetup(patch, _trial(plan, chosen, keys))


def _keys(config: Config, chosen: ProviderChoice) -> dict[str, str]:
    """Return the keys to write: what is not as usual, and whatever the file says otherwise.

    Raises ConfigError where the new provider would get a key or headers that the file has for another address.
    """
    row = chosen.row
    same = config.provider == row.name and (config.value("remote.baseUrl") or row.base_url) == chosen.address
    left = {"remote.headers", *(() if chosen.variable else ("remote.apiKey",))} & set(config.entries)
    if row.shape and left and not same:
        raise ConfigError(
            f"{config.path} has {' and '.join(sorted(left))} for {config.provider or 'another provider'}, and "
            f"{chosen.address} would get that.",
            "Take it out of the file, or name the variable of the new key.",
        )
    values = (("model", chosen.model, row.model), ("remote.baseUrl", chosen.address, row.base_url))
    keys = {key: value for key, value, usual in values if value and (value != usual or config.value(key))}
    if chosen.variable and (chosen.variable not in row.variables or "remote.apiKey" in config.entries):
        keys["remote.apiKey"] = f"${{{chosen.variable}}}"
    return {"provider": row.name, **keys}


def _trial(plan: Plan, chosen: ProviderChoice, keys: Mapping[str, str]) -> dict[str, Any]:
    """Return what came back for one sentence. Raises ProviderError, SettingError."""
    usual, name = plans.settings(plan, Approvals(plan.workspace)), chosen.row.name
    key = usual.env(chosen.variable) if "remote.apiKey" in keys else ""
    if "remote.apiKey" in keys and not key:
        raise SettingError(f"The variable {chosen.variable} is not set here.", "Set it, then run this again.")
    api_keys = (Secret(key),) if key else usual.api_keys
    trying = replace(usual, requested=name, model=chosen.model, base_url=chosen.address, api_keys=api_keys, fallback="")
    chain = Chain(trying, lambda _error: None)
    try:
        trial = chain.try_out(name)
    finally:
        chain.close()
    if not trial["ok"]:
        raise ProviderError(f"Nothing was written: {trial.get('error')}", trial.get("nextStep", ""))
    return trial
