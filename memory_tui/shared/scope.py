"""A scope says which workspaces of a shared index are meant."""

from __future__ import annotations

from msgspec import Struct

from memory_tui.errors import SettingError

OWN, ALL, GROUP = "this", "all", "group:"


class Scope(Struct, frozen=True):
    """The workspaces of these names, those that a role of `groups` may read, or `every` one that may be read."""

    names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    every: bool = False

    def __str__(self) -> str:
        return ALL if self.every else ",".join((*self.names, *(GROUP + name for name in self.groups)))

    @classmethod
    def of(cls, text: str, own: str) -> Scope:
        """Read what a person wrote, names apart by commas; `own` is what this workspace is called.

        Raises SettingError.
        """
        words = [own if word == OWN else word for part in text.split(",") if (word := part.strip())]
        names = tuple(sorted({word for word in words if word != ALL and not word.startswith(GROUP)}))
        groups = tuple(sorted({word.removeprefix(GROUP) for word in words if word.startswith(GROUP)}))
        if not words or not all(name.count("/") == 1 for name in names) or "" in groups:
            raise SettingError(
                f"{text!r} names no scope of a shared index.",
                "Write this, OWNER/NAME, group:ROLE or all, several apart by commas.",
            )
        return cls(every=True) if ALL in words else cls(names, groups)


def workspace_of(path: str) -> str:
    """Return the workspace of a path as people see it, `owner/name:path`; empty for a note of one's own."""
    owner, _, rest = path.partition("/")
    name, _, path = rest.partition(":")
    return f"{owner}/{name}" if owner and name and path and "/" not in name else ""
