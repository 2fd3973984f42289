"""The accounts of providers that OpenClaw shares: `models.providers`, auth profiles.

Of the logins in `auth-profiles.json` those of type `api_key` are read, as for embeddings in OpenClaw; a login by OAuth
embeds nothing there either. From 2026.8 on logins can be in OpenClaw's own database, which is not opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field

from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.config.places import expand, state_folder
from memory_tui.config.secret_refs import FoundSecret, word_of
from memory_tui.durable import open_regular
from memory_tui.errors import ConfigError
from memory_tui.providers import registry
from memory_tui.secrets.discreet import Discreet

if TYPE_CHECKING:
    from memory_tui.config.model import Config

_MAX_BYTES = 4 << 20


class SharedProvider(Discreet, frozen=True):
    """A provider's endpoint, keys and headers as everything shares them; `logins` count before its variable, `key`
    after it.
    """

    HIDDEN = ("headers",)

    base_url: str = ""
    logins: tuple[FoundSecret, ...] = ()
    key: FoundSecret | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def shared(config: Config, name: str) -> SharedProvider:
    """What `config` says of the provider called `name`; all empty where it is not OpenClaw's, or says nothing."""
    own_id = registry.ACCOUNTS.get(name, "")
    if not own_id or config.kind != "openclaw" or config.secrets is None:
        return SharedProvider()
    at, login = f"models.providers.{own_id}", config.account if name == config.provider and config.account else own_id
    return SharedProvider(
        str(config.value(f"{at}.baseUrl") or ""),
        tuple(secret for secret in logins(config, login) if secret.exists),
        config.secret(f"{at}.apiKey"),
        {header: secret.value for header, secret in config.headers(f"{at}.headers") if secret.exists},
    )


def logins(config: Config, own_id: str) -> Iterator[FoundSecret]:
    """The API keys of a provider's auth profiles, in the order of `auth.order`, else in that of the file."""
    order = config.tree.get("auth", "order", own_id) if config.tree else None
    order_names = (
        [str(node.value) for node in order.value] if order is not None and isinstance(order.value, list) else []
    )
    for path in _files(config):
        profiles = dict(_profiles(path))
        for name in dict.fromkeys([*filter(profiles.__contains__, order_names), *profiles]):
            entry = profiles[name]
            if word_of(entry.get("type")) != "api_key" or word_of(entry.get("provider")) != own_id:
                continue
            key = entry.get("key") or entry.get("keyRef")
            if key is not None and config.secrets is not None:
                yield config.secrets.read(key)


def _files(config: Config) -> list[Path]:
    """Where the agent's logins are; those of the main agent serve the others too."""
    if named := os.environ.get("OPENCLAW_AGENT_DIR", "").strip():
        return [expand(named) / "auth-profiles.json"]
    agents = dict.fromkeys((config.agent.id, "main"))
    return [state_folder() / "agents" / agent / "agent" / "auth-profiles.json" for agent in agents]


def _profiles(path: Path) -> Iterator[tuple[str, Node]]:
    """Name and content of every login in `path`; none where it is not there or cannot be understood."""
    try:
        with open_regular(path) as file:
            tree = parse_json5(SourceText(path, file.read(_MAX_BYTES).decode("utf-8", "replace")))
    except (OSError, ConfigError):
        # Most people have none, and one that cannot be read is as good as none for looking a key up.
        return
    profiles = tree.get("profiles")
    if profiles is not None:
        yield from profiles.children()
