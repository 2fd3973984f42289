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
from memory_tui.hosts.connection import HOSTS, Host, host
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
    """Return every agent program, once for each connection, or once without. Raises ConfigError, IndexUnavailable."""
    every = connection.every()
    programs: list[AgentProgram] = []
    for name in HOSTS:
        links: list[connection.HostConnection | None] = [link for link in every if link.host == name]
        programs += [_row(host(name), link, plan) for link in links or [None]]
    return tuple(programs)


def wiring_of(plan: plans.Plan, row: Host, scope: wiring.Scope, project: Path, *, log: bool) -> wiring.Wiring:
    """Return what the host `row` is to start to get the memory of `plan`. Raises MemoryTuiError.

    Our own profile ranks its answers, unless the command line of `plan` names another one; `log` has them logged.
    """
    changes = {"profile": OWN_PROFILE, **dict(plan.options.changes)}
    if row.name == "openclaw":
        arguments = openclaw.arguments(changes["profile"])
    else:
        options = replace(plan.options, workspace=str(plan.workspace), changes=tuple(changes.items()))
        arguments = tuple(wiring.words_of(options))
    return wiring.Wiring(scope, project, wiring.command(), arguments, changes["profile"], log)


def _row(row: Host, link: connection.HostConnection | None, plan: plans.Plan) -> AgentProgram:
    """Return how a host stands to the memory of `plan` by its connection `link`.

    Without a connection its `problem` says why it cannot be connected; empty where it can be.
    """
    lost: tuple[str, ...] = ()
    profile = difference = memory = problem = ""
    try:
        if link is None:
            # Called for what it raises: the edits are only planned here, and thrown away.
            row.edits(wiring_of(plan, row, "user", plan.workspace, log=False))
        else:
            lost = tuple(connection.wired(link))
            server_plan = plans.choose(_options(link))
            if server_plan.workspace.resolve() != plan.workspace.resolve():
                memory = str(server_plan.workspace)
            profile = server_plan.settings.word("profile")
            difference = _difference(server_plan.settings, plan.settings)
    except MemoryTuiError as error:
        problem = f"{error.message} {error.next_step}".rstrip()
    _, failed = newest(row, Path(memory) if memory else plan.roots.workspace)
    return AgentProgram(row, link, profile, difference, memory, lost=lost, failed=failed, problem=problem)


def newest(row: Host, workspace: Path) -> tuple[recall_log.RecallEntry | None, recall_log.RecallEntry | None]:
    """Return the newest query of an agent program in the log of `workspace`, and its newest query that failed.

    Either is None where there is no such query. Raises IndexUnavailable when the log cannot be read.
    """
    log = recall_log.read(recall_log.recall_log_path(workspace))
    queries = [entry for entry in log.entries if entry.tool == SEARCH and entry.client.startswith(row.client)]
    failed = [entry for entry in queries if entry.reply == "failed"]
    return queries[-1] if queries else None, failed[-1] if failed else None


def workspace_of(link: connection.HostConnection) -> Path:
    """Return the workspace that a connection's server serves. Raises MemoryTuiError."""
    return plans.choose(_options(link)).workspace


def _options(link: connection.HostConnection) -> plans.Options:
    """Return the options of a connection's server, by the command line that the connection recorded."""
    words = list(link.start.words)
    if link.host == "openclaw" and "--profile" in words:
        # The plugin reads its profile from openclaw.json, where it may have been edited since.
        option = words.index("--profile")
        # The option and its value.
        del words[option : option + 2]
    return wiring.options_of(words)


def _difference(agent: Settings, here: Settings) -> str:
    """Return in words which knobs have other values for an agent than `here`, the profile first; empty for none.

    So many as _NAMED are named by their labels, the rest is counted.
    """
    labels = [BY_KEY[key].label for key in TUNE_KEYS if agent.values[key].value != here.values[key].value]
    more = len(labels) - _NAMED
    return ", ".join(labels[:_NAMED]) + (f" and {more} more" if more > 0 else "")
