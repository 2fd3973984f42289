"""A secret of a configuration is looked up when it is needed. It is never shown, and never run.

A secret is looked up when somebody asks for it, is never part of a repr, a message or a listing, and is never stored.
The forms are those of OpenClaw's secret references: `{source, provider, id}`, `"${NAME}"`, `"$NAME"`, or plain text.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from memory_tui.config.json5 import Node
from memory_tui.config.places import Environment, expand
from memory_tui.durable import open_regular
from memory_tui.secrets.discreet import Discreet

_SHORT = re.compile(
    r"(?:\$\{(?P<a>NAME)\}|\$(?P<b>NAME)|secretref-env:(?P<c>NAME))".replace("NAME", "[A-Z][A-Z0-9_]{0,127}")
)
_MAX_BYTES = 1 << 20
_NEVER = "which memory-tui never runs; put the key into the provider's variable, such as OPENAI_API_KEY"


class FoundSecret(Discreet, frozen=True):
    """Whether a secret is there, from where in words, and if not, why not."""

    HIDDEN = ("value",)

    source: str
    problem: str = ""
    value: str = ""

    @property
    def exists(self) -> bool:
        """Whether there is a value."""
        return bool(self.value)

    def __str__(self) -> str:
        return f"set, from {self.source}" if self.exists else f"not set: {self.problem}"


class Secrets(Discreet, frozen=True):
    """Looks secrets up with the `secrets` section of the configuration `tree`."""

    HIDDEN = ("tree",)

    tree: Node
    environment: Environment

    def read(self, node: Node) -> FoundSecret:
        """The secret that `node` is or refers to; never raises, the reason is in the answer."""
        if isinstance(node.value, str):
            return self._text(node.value.strip())
        source, name = word_of(node.get("source")), word_of(node.get("id"))
        if not isinstance(node.value, dict) or not source or not name:
            return FoundSecret("the file", "it is neither text nor a reference with source and id")
        alias = word_of(node.get("provider")) or word_of(self.tree.get("secrets", "defaults", source)) or "default"
        return self._reference(source, alias, name)

    def _text(self, text: str) -> FoundSecret:
        if short := _SHORT.fullmatch(text):
            return self._variable(str(short[short.lastgroup or 0]))
        plain, missing = self.environment.substitute(text)
        if missing:
            return FoundSecret("the file", _unset(missing[0]))
        return FoundSecret("the file itself", "" if plain else "the text is empty", plain)

    def _reference(self, source: str, alias: str, name: str) -> FoundSecret:
        provider = self.tree.get("secrets", "providers", alias)
        declared = word_of(provider.get("source")) if provider else ""
        if source == "exec":
            command = word_of(provider.get("command")) if provider else ""
            return FoundSecret(
                f"the command {command or alias}", f"it comes from the command {command or alias}, {_NEVER}"
            )
        if source == "store":
            return FoundSecret("OpenClaw's own store", "it is in OpenClaw's own store, which memory-tui does not open")
        if declared and declared != source:
            return FoundSecret(alias, f"secrets.providers.{alias} is of source {declared!r}, not {source!r}")
        if source == "env":
            allowed = provider.get("allowlist") if provider else None
            if allowed is not None and name not in (plain if isinstance(plain := allowed.plain(), list) else []):
                return FoundSecret(alias, f"{name} is not in secrets.providers.{alias}.allowlist")
            return self._variable(name)
        if source == "file" and provider is not None:
            return self._file(provider, name)
        return FoundSecret(alias, f"there is no secrets.providers.{alias} of source {source!r}")

    def _variable(self, name: str) -> FoundSecret:
        value = self.environment.lookup(name)
        return FoundSecret(value[1], "", value[0]) if value else FoundSecret(f"the variable {name}", _unset(name))

    def _file(self, provider: Node, name: str) -> FoundSecret:
        path = expand(self.environment.substitute(word_of(provider.get("path")))[0])
        lax = provider.get("allowInsecurePath")
        text, problem = _private_text(path, lax=lax is not None and lax.value is True)
        if problem:
            return FoundSecret(str(path), problem)
        if word_of(provider.get("mode")) == "singleValue":
            value = re.sub(r"\r?\n\Z", "", text) if name == "value" else ""
            return FoundSecret(str(path), "" if value else "a file of one value has the id 'value'", value)
        try:
            match = _pointer(json.loads(text), name)
        except (ValueError, LookupError, TypeError):
            return FoundSecret(str(path), f"{path} is not JSON with something at {name}")
        if not isinstance(match, str) or not match:
            return FoundSecret(str(path), f"{name} in {path} is not text")
        return FoundSecret(f"{path}, {name}", "", match)


def word_of(node: Node | None) -> str:
    """Return the text of `node` without blanks around it; empty where it is no text."""
    return node.value.strip() if node is not None and isinstance(node.value, str) else ""


def _unset(name: str) -> str:
    return f"the variable {name} is not set"


def _pointer(tree: object, pointer: str) -> object:
    """What an RFC 6901 pointer means in `tree`. Raises LookupError, ValueError or TypeError."""
    if not pointer.startswith("/"):
        raise ValueError(pointer)
    at: Any = tree
    for part in pointer[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        at = at[int(key)] if isinstance(at, list) else at[key]
    return at


def _private_text(path: Path, *, lax: bool) -> tuple[str, str]:
    """The text of a secrets file, or the problem with it; as OpenClaw, a file that others may read is refused."""
    if not path.is_absolute():
        return "", f"{path} is not an absolute path"
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return "", f"{path} is not an ordinary file"
        if os.name == "posix" and not lax and (status.st_mode & 0o077 or status.st_uid != os.getuid()):
            return "", f"{path} may be read or written by others; OpenClaw refuses it too"
        with open_regular(path) as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        return "", f"{path} cannot be read: {error.strerror}"
    if len(raw) > _MAX_BYTES:
        return "", f"{path} is larger than a megabyte"
    return raw.decode("utf-8-sig", "replace"), ""
