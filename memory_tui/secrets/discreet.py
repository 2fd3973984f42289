"""The base of records whose repr leaves out what is secret, or too long to read."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Discreet(Struct, frozen=True):
    """A record whose repr does not show the fields that are `HIDDEN`."""

    HIDDEN: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = (name for name in self.__struct_fields__ if name not in self.HIDDEN)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"
