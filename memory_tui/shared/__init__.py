"""A shared index: a team's workspaces in a PostgreSQL database that the team runs already.

A scope says which workspaces are meant; a standing, how the mirror of one stands, in words. What an engine has of it is
here; psycopg is imported where one is configured, and nowhere else.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from memory_tui import durable
from memory_tui.config import config_file as configuration
from memory_tui.errors import IndexUnavailable, MemoryTuiError, SettingError
from memory_tui.formatting import install_extra, one_line, plural
from memory_tui.plan import Plan

if TYPE_CHECKING:
    from memory_tui.index.embedding import TeamVectors
    from memory_tui.index.store import StoreReader
    from memory_tui.shared.publish import Publisher

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
        words = [own if word == OWN else word for word in map(str.strip, text.split(",")) if word]
        names = tuple(sorted({word for word in words if word != ALL and not word.startswith(GROUP)}))
        groups = tuple(sorted({word.removeprefix(GROUP) for word in words if word.startswith(GROUP)}))
        if not words or not all(name.count("/") == 1 for name in names) or "" in groups:
            step = "Write this, OWNER/NAME, group:ROLE or all, several apart by commas."
            raise SettingError(f"{text!r} names no scope of a shared index.", step)
        return cls(every=True) if ALL in words else cls(names, groups)


def workspace_of(path: str) -> str:
    """Return the workspace of a path as people see it, `owner/name:path`; empty for a note of one's own."""
    owner, _, rest = path.partition("/")
    name, _, path = rest.partition(":")
    return f"{owner}/{name}" if owner and name and path and "/" not in name else ""


# --- how its mirror stands -------------------------------------------------------------------------------------------

State = Literal["live", "behind", "unreachable", "newer"]


class MirrorFilling(IndexUnavailable):
    """A mirror has nothing to answer from yet, and is being filled."""


class Record(Struct, frozen=True, rename="camel"):
    """What is kept beside the mirror of `scope`: when it was complete last, and since when no database can be reached.

    `silent` are publishers that were not heard of then, with the seconds; `missing` are names that may not be read.
    `elsewise` are workspaces that are cut or embedded otherwise than here, `unsound` those with rows that make no
    sense. `newer`: the schema is of a newer program; `lag`: by how many seconds a replica was behind its primary.
    """

    scope: str = ""
    as_of: float = 0.0
    lost_since: float = 0.0
    newer: bool = False
    lag: float = 0.0
    silent: dict[str, float] = {}
    missing: tuple[str, ...] = ()
    elsewise: tuple[str, ...] = ()
    unsound: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Record:
        """Return the record at `path`; an empty one where there is none."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            return cls()

    def write(self, path: Path) -> None:
        """Put the record at `path`."""
        durable.replace_file(path, msgspec.json.encode(self))


class Standing(Struct, frozen=True):
    """What is said of a mirror beside its answers."""

    scope: str
    state: State
    as_of: float
    words: tuple[str, ...]
    workspaces: tuple[str, ...]

    @property
    def trouble(self) -> str:
        """Return what is amiss, empty for nothing."""
        return "; ".join(word for word in self.words if word != "live")

    @property
    def sentence(self) -> str:
        """Return all of it in one line."""
        return one_line(f"Shared index, {self.scope}: {'; '.join(self.words)}.")

    def as_dict(self) -> dict[str, Any]:
        """Return it as data."""
        at = dt.datetime.fromtimestamp(self.as_of, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        lists = {"words": [*map(one_line, self.words)], "workspaces": [*map(one_line, self.workspaces)]}
        return {"scope": one_line(self.scope), "state": self.state, "asOf": at, **lists}


def standing(scope: str, record: Record, failure: MemoryTuiError | None, *, answered: bool) -> Standing:
    """Return what is to be said of the mirror of `scope`, of which `record` is kept.

    `answered` tells whether the shared index has just told everything that is new; `failure` is why it has not, None
    where it has, or is still being asked.
    """
    state, words = _state(record, answered=answered)
    if failure:
        words.append(failure.message.rstrip("."))
    if record.lag >= 1:
        words.append(f"replica {_span(record.lag)} behind its primary")
    words += [f"publisher of {name} silent for {_span(seconds)}" for name, seconds in record.silent.items()]
    words += [f"no right to read {name}" for name in record.missing]
    words += [f"{name} is cut or embedded otherwise, and not searched" for name in record.elsewise]
    words += [f"what is new of {name} makes no sense, and was left out" for name in record.unsound]
    return Standing(scope, state, record.as_of, tuple(words), record.workspaces)


def _state(record: Record, *, answered: bool) -> tuple[State, list[str]]:
    """Return the state of a mirror, and the words for it."""
    mirror = f"mirror of {_clock(record.as_of)} answers"
    if record.newer:
        return "newer", [f"schema newer than this program, {mirror}"]
    if record.lost_since:
        return "unreachable", [f"store unreachable since {_clock(record.lost_since)}, {mirror}"]
    if answered:
        return "live", ["live"]
    return "behind", [f"{_span(time.time() - record.as_of)} behind" if record.as_of else "being filled"]


def _clock(at: float) -> str:
    """Return a time of today as a clock has it, an older one with its day."""
    when = dt.datetime.fromtimestamp(at).astimezone()
    is_today = when.date() == dt.datetime.now().astimezone().date()
    return when.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M")


def _span(seconds: float) -> str:
    """Return a time as whole days, hours, minutes or seconds, the largest that it fills: `2 days`, `5 min`."""
    for unit, name in ((86_400, "day"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return plural(int(seconds // unit), name) if name == "day" else f"{int(seconds // unit)} {name}"
    return f"{max(0, int(seconds))} s"


# --- what an engine has of it ----------------------------------------------------------------------------------------


def team_vectors(plan: Plan) -> TeamVectors | None:
    """Return what looks up vectors that the team has of texts; None where a person agreed to share no notes."""
    if not (configuration.own(plan.config).value("shared.url") and find_spec("psycopg")):
        return None
    from memory_tui.shared import connection, publish

    try:
        access = connection.access(plan)
    except MemoryTuiError:
        # Whoever publishes to the shared index, or searches it, is told why; a sync goes on without.
        return None
    return partial(publish.vectors_of, access) if publish.consent(plan, access).kinds else None


def publisher_of(
    plan: Plan, reader: StoreReader, keeps: Callable[[], bool], tell: Callable[[str], None]
) -> Publisher | None:
    """Return what publishes the index of `plan`; None where the configuration does not ask for it."""
    if configuration.own(plan.config).value("shared.publish") is not True:
        return None
    if not find_spec("psycopg"):
        tell(f"Nothing is published without the extra postgres. {install_extra('postgres')}.")
        return None
    from memory_tui.shared.publish import Publisher

    return Publisher(plan, reader, keeps, tell)
