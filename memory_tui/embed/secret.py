"""Keys and headers that must be sent but never be seen: not in messages, reprs or tracebacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HIDDEN = "[hidden]"
_PUBLIC_HEADERS = frozenset({"content-type", "accept", "user-agent", "accept-encoding"})
_SHORTEST = 4
"""Shorter values are no secrets, and hiding them would make sentences unreadable."""


class Secret:
    """A string that shows itself only to who asks with `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def reveal(self) -> str:
        """The string itself."""
        return self._value


class Redactor:
    """Takes known secrets out of text that comes from outside."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = {part for secret in secrets for part in (secret, *secret.split()) if len(part) >= _SHORTEST}
        # The longest first, so that no part of one secret stays when another one is a piece of it.
        self._secrets = tuple(Secret(part) for part in sorted(found - {"Bearer"}, key=len, reverse=True))

    @classmethod
    def of_headers(cls, *headers: Mapping[str, str]) -> Redactor:
        """One that hides the value of every header that is not known to be public."""
        return cls(value for each in headers for name, value in each.items() if name.lower() not in _PUBLIC_HEADERS)

    def __call__(self, text: str) -> str:
        """`text` with each secret replaced by [hidden]."""
        for secret in self._secrets:
            text = text.replace(secret.reveal(), HIDDEN)
        return text
