"""Where a text holds a key or a password: the formats of known keys, the finder, and records that do not show them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

_PUBLIC_HEADERS = frozenset({"content-type", "accept", "user-agent", "accept-encoding"})
_SHORTEST_SECRET = 4
"""Shorter values are no secrets, and hiding them would make sentences unreadable."""


class Discreet(Struct, frozen=True):
    """A record whose repr does not show the fields that are `HIDDEN`: they are secret, or too long to read."""

    HIDDEN: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = (name for name in self.__struct_fields__ if name not in self.HIDDEN)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"


class Secret(Discreet, frozen=True):
    """A string that is not shown."""

    HIDDEN = ("value",)

    value: str


class Redactor:
    """Takes the value of each of `headers` that is not known to be public out of text that comes from outside."""

    def __init__(self, *headers: Mapping[str, str]) -> None:
        pairs = [pair for mapping in headers for pair in mapping.items()]
        secrets = [value for name, value in pairs if name.lower() not in _PUBLIC_HEADERS]
        # Of "Bearer KEY" the key alone is a secret too.
        parts = {part for secret in secrets for part in (secret, *secret.split()) if len(part) >= _SHORTEST_SECRET}
        # The longest first, so that no part of one secret stays when another one is a piece of it.
        self._secrets = tuple(Secret(part) for part in sorted(parts - {"Bearer"}, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        """Return `text` with each secret replaced by [hidden]."""
        for secret in self._secrets:
            text = text.replace(secret.value, "[hidden]")
        return text


@cache
def tables(name: str) -> dict[str, Any]:
    """Return the tables of patterns in the file `name` beside this module, read once."""
    # Late, because most questions look for no secret.
    import tomllib

    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))
