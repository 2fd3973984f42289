"""One thing in the notes that somebody should look at: what, where, why, and what can be done about it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal[
    "secret",
    "bad date",
    "exact duplicate",
    "near duplicate",
    "paraphrase",
    "stale date",
    "dead path",
    "over budget",
    "junk",
    "never recalled",
]
Action = Literal["merge", "delete", "demote", "trash note", "rename", "archive note", "keep", "snooze"]

TITLES: Mapping[Kind, str] = MappingProxyType(
    {
        "secret": "looks like a secret",
        "bad date": "a date that cannot be",
        "exact duplicate": "said twice",
        "near duplicate": "said twice in nearly the same words",
        "paraphrase": "perhaps the same in other words",
        "stale date": "a date that has passed",
        "dead path": "names a file that is not there",
        "over budget": "beyond what a session reads",
        "junk": "looks like output of a tool",
        "never recalled": "never recalled so far",
    }
)
"""What a person is told of each kind, the most pressing first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Lines `first` to `last` (from 1) of a note, and what stands there, safe to keep: secrets in it are masked."""

    path: str
    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was found at `place`; `other` is the twin that would stay, None where there is none.

    `digest` is that of the lines as they were seen, so that nothing is changed that was not looked at. The first of
    `actions` is the one proposed.
    """

    kind: Kind
    place: Place
    reason: str
    actions: tuple[Action, ...]
    digest: str
    other: Place | None = None
    new_name: str = ""

    @property
    def id(self) -> str:
        """The same as long as the same is found in the same note, wherever in it."""
        parts = (self.kind, self.place.path, self.digest, self.other.path if self.other else "", self.new_name)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def digest(lines: str) -> str:
    """What tells whether lines are still what they were."""
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:16]
