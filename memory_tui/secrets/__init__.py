"""Where a text holds a key or a password: the formats of known keys, the finder, and records that do not show them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct


class Discreet(Struct, frozen=True):
    """A record whose repr does not show the fields that are `HIDDEN`: they are secret, or too long to read."""

    HIDDEN: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = (name for name in self.__struct_fields__ if name not in self.HIDDEN)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"


@cache
def tables(name: str) -> dict[str, Any]:
    """Return the tables of patterns in the file `name` beside this module, read once."""
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))
