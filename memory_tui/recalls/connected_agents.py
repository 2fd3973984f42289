"""Connected agents are the agent programs that use this memory. A row says what one gets, what it asked last, and what
failed last.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.config.settings import BY_KEY, OWN_PROFILE, TUNE_KEYS, Settings
from memory_tui.errors import MemoryTuiError
from memory_tui.hosts import connection, openclaw, wiring
from memory_tui.hosts.registry import HOSTS, Host, host
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recalls import recall_log

_NAMED = 3
"""Settings that are named where two rankings differ; the rest is counted."""


class AgentProgram(Struct, frozen=True):
    """One agent program: its connection (None for none), and what its server gets.

    `profile` ranks its answers, empty where that is not known, and `difference` names the settings that differ here.
    `memory` is another workspace that its server serves, empty where it is this one. `lost` names what its files lost,
    `failed` is the newest recall that failed.
    """

    host: Host
    connection: connection.HostConnection | None
    profile: str
    difference: str
    memory: str
    lost: tuple[str, ...]
    failed: recall_log.RecallEntry | None
    problem: str = ""
    """Why it is not known what its server gets, or why it cannot be connected, as sentences."""

    @property
    def logs(self) -> bool:
        """Whether its server writes down what it is asked."""
        return self.connection is not None and wiring.LOG in self.connection.start.words


def rows(plan: plans.Plan) -> tuple[AgentProgram, ...]:
    """Every agent program; a connected one has a row for each connection. Raises ConfigError, IndexUnavailable."""
    every = connection.every()
    reply: list[AgentProgram] = []
    for name in HOSTS:
        mine = [done for done in every if done.host == name]
        reply += [_row(host(name), done, plan) for done in mine] or [_row(host(name), None, plan)]
    return tuple(reply)


def wiring_of(plan: plans.Plan, row: Host, scope: wiring.Scope, project: Path, *, log: bool) -> wiring.Wiring:
    """What `row` is to start to get this memory, ranked as agents get it. Raises MemoryTuiError."""
    changes = {"profile": OWN_PROFILE, **dict(plan.options.changes)}
    query = replace(plan.options, workspace=str(plan.workspace), changes=tuple(changes.items()))
    words = tuple(wiring.words_of(query)) if row.name != "openclaw" else openclaw.arguments(changes["profile"])
    return wiring.Wiring(scope, project, wiring.command(), words, changes["profile"], log)


def _row(row: Host, made: connection.HostConnection | None, plan: plans.Plan) -> AgentProgram:
    """Return how a host stands to this memory: as it was `made` to, or as it would be."""
    lost: tuple[str, ...] = ()
    profile, difference, memory, problem = "", "", "", ""
    try:
        if made is None:
            row.edits(wiring_of(plan, row, "user", plan.workspace, log=False))
        else:
            lost, theirs = tuple(connection.wired(made)), plans.choose(_options(made))
            memory = "" if theirs.workspace.resolve() == plan.workspace.resolve() else str(theirs.workspace)
            profile, difference = theirs.settings.word("profile"), _difference(theirs.settings, plan.settings)
    except MemoryTuiError as error:
        problem = f"{error.message} {error.next_step}".rstrip()
    _, failed = newest(row, Path(memory) if memory else plan.roots.workspace)
    return AgentProgram(row, made, profile, difference, memory, lost=lost, failed=failed, problem=problem)


def newest(row: Host, workspace: Path) -> tuple[recall_log.RecallEntry | None, recall_log.RecallEntry | None]:
    """The newest query of an agent program in the log of `workspace`, and the newest that got no ranking at all.

    Raises IndexUnavailable when the log cannot be read.
    """
    log = recall_log.read(recall_log.recall_log_path(workspace))
    mine = [entry for entry in reversed(log.entries) if entry.tool == SEARCH and entry.client.startswith(row.client)]
    return next(iter(mine), None), next((entry for entry in mine if entry.reply == "failed"), None)


def workspace_of(made: connection.HostConnection) -> Path:
    """The workspace that a connection's server serves. Raises MemoryTuiError."""
    return plans.choose(_options(made)).workspace


def _options(made: connection.HostConnection) -> plans.Options:
    """The options of a connection's server."""
    words = list(made.start.words)
    if made.host == "openclaw":
        # The plugin reads its profile from openclaw.json, where it may have been edited since.
        words = [word for at, word in enumerate(words) if "--profile" not in (word, words[at - 1])]
    return wiring.options_of(words)


def _difference(agent: Settings, here: Settings) -> str:
    """Return the labels of the knobs that have other values, the profile first, some of them by name."""
    labels = [BY_KEY[key].label for key in TUNE_KEYS if agent.values[key].value != here.values[key].value]
    more = len(labels) - _NAMED
    return ", ".join(labels[:_NAMED]) + (f" and {more} more" if more > 0 else "")
