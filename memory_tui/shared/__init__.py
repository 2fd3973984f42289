"""A shared index: a team's workspaces in a PostgreSQL database that the team runs already.

What an engine has of it is here; psycopg is imported where one is configured, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memory_tui.config import config_file as configuration
from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import install_extra
from memory_tui.plan import Plan

if TYPE_CHECKING:
    from memory_tui.index.embedding import TeamVectors
    from memory_tui.index.store import StoreReader
    from memory_tui.shared.publish import Publisher


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
