"""The record of one provider taking another's place, for the screen and for the next process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fallback:
    """That `to` with its own `model` took the place of `source`, the cause as a sentence, and when (epoch seconds).

    `source` is not asked again before `next_try` (epoch seconds; None: when somebody does something about it).
    """

    source: str
    to: str
    model: str
    cause: str
    at: float
    next_try: float | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """JSON-ready: from, to, model, cause, at, nextTry."""
        return {
            "from": self.source,
            "to": self.to,
            "model": self.model,
            "cause": self.cause,
            "at": self.at,
            "nextTry": self.next_try,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Fallback:
        """What `as_dict` gave. Raises KeyError."""
        return cls(fields["from"], fields["to"], fields["model"], fields["cause"], fields["at"], fields["nextTry"])
