"""A secret of a configuration is looked up when it is needed. It is never shown, and never run.

A secret is looked up when somebody asks for it, is never part of a repr, a message or a listing, and is never stored.
The forms are those of OpenClaw's secret references: `{source, provider, id}`, `"${NAME}"`, `"$NAME"`, or plain text.
"""

from __future__ import annotations

import json
import os
import re
import stat
from functools import cached_property
from pathlib import Path
from typing import Any

from memory_tui.config.json5 import Node
from memory_tui.config.places import expand, state_folder
from memory_tui.durable import open_regular
from memory_tui.secrets.discreet import Discreet

_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_SHORT = re.compile(
    r"(?:\$\{(?P<a>NAME)\}|\$(?P<b>NAME)|secretref-env:(?P<c>NAME))".replace("NAME", "[A-Z][A-Z0-9_]{0,127}")
)
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"|([^#\n]*))",
    re.MULTILINE,
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
        """Tell whether there is a value."""
        return bool(self.value)

    def __str__(self) -> str:
        return f"set, from {self.source}" if self.exists else f"not set: {self.problem}"


class Environment(Discreet, frozen=True, dict=True):
    """Looks variables and secrets up in OpenClaw's order; the first place that has one counts, an empty value is none.

    The .env file of the state folder is only read when the process itself does not have the variable. A variable of
    the login shell, which OpenClaw can import too, is not known here: nothing is run to read a configuration.
    """

    HIDDEN = ("tree",)

    tree: Node | None = None

    def lookup(self, name: str) -> tuple[str, str] | None:
        """Return the value of `name` and where it is from, in words; None when nothing says it."""
        if value := os.environ.get(name):
            return value, f"the environment variable {name}"
        if value := self._env_file.get(name):
            return value, f"{name} in {state_folder() / '.env'}"
        if value := self._section.get(name):
            return value, f"{name} in the env section"
        return None

    def substitute(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return `text` with each `${NAME}` replaced, and the names without a value; `$${NAME}` stands for itself."""
        missing: list[str] = []

        def replace(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:]
            value = self.lookup(match[2])
            if value is None:
                missing.append(match[2])
            return value[0] if value else match[0]

        return _REFERENCE.sub(replace, text) if "${" in text else text, tuple(missing)

    def secret(self, node: Node) -> FoundSecret:
        """Return the secret that `node` is or refers to; never raises, the reason is in the answer."""
        if isinstance(node.value, str):
            text = node.value.strip()
            if short := _SHORT.fullmatch(text):
                return self._variable(str(short[short.lastgroup or 0]))
            plain, missing = self.substitute(text)
            if missing:
                return FoundSecret("", f"the variable {missing[0]} is not set")
            return FoundSecret("the file itself", "" if plain else "the text is empty", plain)
        source, name = word_of(node.get("source")), word_of(node.get("id"))
        if not source or not name:
            return FoundSecret("", "it is neither text nor a reference with source and id")
        return self._reference(source, word_of(node.get("provider")), name)

    def _reference(self, source: str, alias: str, name: str) -> FoundSecret:
        section = self.tree.get("secrets") if self.tree else None
        alias = alias or word_of(section.get("defaults", source) if section else None) or "default"
        provider = section.get("providers", alias) if section else None
        declared = word_of(provider.get("source")) if provider else ""
        if source == "exec":
            command = word_of(provider.get("command")) if provider else ""
            return FoundSecret("", f"it comes from the command {command or alias}, {_NEVER}")
        if source == "store":
            return FoundSecret("", "it is in OpenClaw's own store, which memory-tui does not open")
        if declared and declared != source:
            return FoundSecret("", f"secrets.providers.{alias} is of source {declared!r}, not {source!r}")
        if source == "env":
            allowed = provider.get("allowlist") if provider else None
            if allowed is not None and name not in (plain if isinstance(plain := allowed.plain(), list) else []):
                return FoundSecret("", f"{name} is not in secrets.providers.{alias}.allowlist")
            return self._variable(name)
        if source != "file" or provider is None:
            return FoundSecret("", f"there is no secrets.providers.{alias} of source {source!r}")
        path = expand(self.substitute(word_of(provider.get("path")))[0])
        try:
            return FoundSecret(f"{path}, {name}", "", _in_file(path, provider, name))
        except OSError as error:
            return FoundSecret("", f"{path} cannot be read: {error.strerror}")
        except ValueError as error:
            return FoundSecret("", str(error))

    def _variable(self, name: str) -> FoundSecret:
        value, source = self.lookup(name) or ("", "")
        return FoundSecret(source, "" if value else f"the variable {name} is not set", value)

    @cached_property
    def _env_file(self) -> dict[str, str]:
        try:
            with open_regular(state_folder() / ".env") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            # Most people have none, and one that may not be read is as good as none for looking a variable up.
            return {}
        return {
            m[1]: m[2] or re.sub(r"\\(.)", r"\1", m[3] or "") or (m[4] or "").strip()
            for m in _ASSIGNMENT.finditer(text)
        }

    @cached_property
    def _section(self) -> dict[str, str]:
        section = self.tree.get("env") if self.tree else None
        nested = section.get("vars") if section else None
        named = [*(section.children() if section else ()), *(nested.children() if nested else ())]
        return {key: node.value for key, node in named if isinstance(node.value, str) and node.value.strip()}


def word_of(node: Node | None) -> str:
    """Return the text of `node` without blanks around it; empty where it is no text."""
    return node.value.strip() if node is not None and isinstance(node.value, str) else ""


def _in_file(path: Path, provider: Node, name: str) -> str:
    """Return what a secrets file has at `name`. Raises OSError, and ValueError with the reason.

    As in OpenClaw, a file that others may read is refused; `name` is an RFC 6901 pointer.
    """
    if not path.is_absolute():
        raise ValueError(f"{path} is not an absolute path")
    status, lax = path.lstat(), provider.get("allowInsecurePath")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not an ordinary file")
    shared = os.name == "posix" and (status.st_mode & 0o077 or status.st_uid != os.getuid())
    if shared and (lax is None or lax.value is not True):
        raise ValueError(f"{path} may be read or written by others; OpenClaw refuses it too")
    if status.st_size > _MAX_BYTES:
        raise ValueError(f"{path} is larger than a megabyte")
    with open_regular(path) as file:
        text = file.read(_MAX_BYTES).decode("utf-8-sig", "replace")
    if word_of(provider.get("mode")) == "singleValue":
        if name != "value" or not text.strip():
            raise ValueError("a file of one value has the id 'value'")
        return re.sub(r"\r?\n\Z", "", text)
    try:
        at: Any = json.loads(text)
        if not name.startswith("/"):
            raise LookupError(name)
        for part in name[1:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            at = at[int(key)] if isinstance(at, list) else at[key]
    except (ValueError, LookupError, TypeError):
        raise ValueError(f"{path} is not JSON with something at {name}") from None
    if not isinstance(at, str) or not at:
        raise ValueError(f"{name} in {path} is not text")
    return at
