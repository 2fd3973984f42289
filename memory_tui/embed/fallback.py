"""The records of one provider taking another's place, and of one that failed, for the screen and the next process."""

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
        """JSON-ready: from, to, model, reason, since, retryAt."""
        return {
            "from": self.source,
            "to": self.to,
            "model": self.model,
            "reason": self.cause,
            "since": self.at,
            "retryAt": self.next_try,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Fallback:
        """What `as_dict` gave. Raises KeyError."""
        return cls(fields["from"], fields["to"], fields["model"], fields["reason"], fields["since"], fields["retryAt"])


@dataclass(frozen=True, slots=True)
class LastFailure:
    """That the last index run got no vectors from `provider` at `host`: its own sentence, what to do, and when.

    `at` and `next_try` are in epoch seconds; `state` is a value of `failure.State`.
    """

    provider: str
    model: str
    host: str
    state: str
    message: str
    next_step: str
    at: float
    next_try: float | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """JSON-ready fields, for the index's notes about itself."""
        return {
            "provider": self.provider,
            "model": self.model,
            "host": self.host,
            "state": self.state,
            "message": self.message,
            "nextStep": self.next_step,
            "at": self.at,
            "nextTry": self.next_try,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> LastFailure:
        """What `as_dict` gave. Raises KeyError."""
        return cls(
            fields["provider"],
            fields["model"],
            fields["host"],
            fields["state"],
            fields["message"],
            fields["nextStep"],
            fields["at"],
            fields["nextTry"],
        )
