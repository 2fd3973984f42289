"""Commands that make an agent program use this memory: `connect`, `disconnect`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui.cli.common import Command, confirmed, options, passed_on, waiting
from memory_tui.core.errors import ConfigError, MemoryTuiError, SettingError

if TYPE_CHECKING:
    from memory_tui.hosts.connection import HostConnection, PlannedFile
    from memory_tui.hosts.proof import Proof
    from memory_tui.hosts.wiring import Host, Scope, ServerStart, Wiring
    from memory_tui.recalls.recall_log import RecallEntry


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host", nargs="?", metavar="HOST", help="openclaw, claude-code or codex")
    parser.add_argument("--user", action="store_true", help="for everything that you do with the host (the default)")
    parser.add_argument("--project", action="store_true", help="for the project in this folder alone")
    parser.add_argument("--dry-run", action="store_true", help="show the difference of every file and write nothing")
    parser.add_argument("--yes", action="store_true", help="write without asking")


def _declare_connect(parser: argparse.ArgumentParser) -> None:
    _declare(parser)
    parser.add_argument("--status", action="store_true", help="ask every connected host's server, and write nothing")
    parser.add_argument(
        "--log-recalls",
        action="store_true",
        help="write down on this machine what the agent asks and gets; without it you are asked",
    )
    parser.add_argument("--question", metavar="TEXT", help="what the proof asks (default: a line of MEMORY.md)")


# --- connect -------------------------------------------------------------------------------------------------------


def _connect(given: argparse.Namespace) -> int:
    from memory_tui.hosts import connection
    from memory_tui.render import as_text

    if hasattr(given, "status"):
        return _status(given)
    row, scope = _asked(given)
    wiring = _wiring(given, row, scope, log=_log_wanted(given, row.title))
    files = connection.planned(row, wiring)
    changed = [file for file in files if file.now != file.then]
    loss = row.loss()
    report: dict[str, Any] = {
        "host": row.name,
        "scope": scope,
        "command": list(row.start(wiring).words),
        "profile": wiring.profile,
        "log": wiring.log,
        "files": [_file(file) for file in files],
        "written": False,
        "loss": loss,
    }
    as_json, dry = hasattr(given, "json"), hasattr(given, "dry_run")
    if not as_json:
        as_text.print_lines(list(connection.difference(files)) or [f"{row.title} has these entries already."])
        as_text.print_lines([loss] if loss else [])
    if not dry:
        if changed and not confirmed(f"Write {_count(len(changed))} of {row.title}?", given):
            raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
        proof = _proof(row.start(wiring), given, row.title)
        made = connection.connect(row, wiring, files)
        report["written"] = bool(changed)
        report["proof"] = _record(proof)
        if not as_json:
            as_text.print_lines(
                [
                    proof.sentence(),
                    f"{row.title} is connected. {row.after}",
                    f"To undo it: memory-tui {_way_back(made)}",
                ]
            )
    if as_json:
        as_text.print_json(report)
    return 0


def _asked(given: argparse.Namespace) -> tuple[Host, Scope]:
    """The host and the scope that are meant. Raises SettingError."""
    from memory_tui.hosts.wiring import HOSTS, host

    if not hasattr(given, "host") or given.host is None:
        raise SettingError("Which host is meant?", f"Choose one of {', '.join(HOSTS)}.")
    if hasattr(given, "user") and hasattr(given, "project"):
        raise SettingError("Both --user and --project were given.", "Give one of them.")
    row = host(given.host)
    scope: Scope = "project" if hasattr(given, "project") else "user"
    if scope not in row.scopes:
        raise SettingError(f"{row.title} has no files of a project.", "Leave --project out.")
    return row, scope


def _wiring(given: argparse.Namespace, row: Host, scope: Scope, *, log: bool) -> Wiring:
    """What the host is to start for the memory that `given` names. Raises MemoryTuiError."""
    from memory_tui import plan
    from memory_tui.core import profiles
    from memory_tui.hosts import claude_code, openclaw, wiring

    named = bool({"workspace", "agent", "config"} & vars(given).keys())
    # Where memory-tui is the memory of an agent, its own ranking holds; the profiles of OpenClaw are for comparing.
    given.profile = getattr(given, "profile", profiles.OWN)
    if row.name == "openclaw":
        words = openclaw.arguments(given.profile)
    else:
        if row.name == "claude-code" and not named and (own := claude_code.workspace(Path.cwd())).is_dir():
            given.workspace = str(own)
        # A memory that is not there is refused before anything is shown or written.
        plan.plan(options(given))
        words = tuple(passed_on(given))
    return wiring.Wiring(scope, Path.cwd(), wiring.command(), words, given.profile, log)


def _log_wanted(given: argparse.Namespace, title: str) -> bool:
    """Whether what the agent asks is written down: as said on the command line, else as a person answers."""
    # The switch is the server's; the hooks, which get the other arguments too, do not know it.
    if vars(given).pop("log_recalls", False):
        return True
    if {"yes", "json", "dry_run"} & vars(given).keys():
        return False
    return confirmed(f"Write down on this machine what {title} asks and gets, to see why it did not remember?", given)


def _file(file: PlannedFile) -> dict[str, object]:
    from memory_tui.hosts import connection

    return {
        "path": str(file.path),
        "changes": [".".join(change.keys) for change in file.changes],
        "difference": list(connection.difference([file])),
    }


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"


def _way_back(made: HostConnection) -> str:
    return f"disconnect {made.host}{' --project' if made.scope == 'project' else ''}"


def _question(given: argparse.Namespace, start: ServerStart) -> str:
    """What the proof asks: as given, else a line of MEMORY.md."""
    from memory_tui.hosts.proof import question_of

    return str(given.question) if hasattr(given, "question") else question_of(start)


def _proof(start: ServerStart, given: argparse.Namespace, title: str) -> Proof:
    """Start what the host will start, ask it. Raises NoAnswer."""
    from memory_tui.hosts.proof import NoAnswer, prove

    try:
        with waiting("Asking the server"):
            return prove(start, _question(given, start))
    except NoAnswer as error:
        raise NoAnswer(
            f"Nothing was written: the server that {title} would start gives no answer. {error.message}",
            error.next_step,
        ) from error


def _record(found: Proof) -> dict[str, object]:
    """A proof as JSON-ready fields."""
    fields = {**to_builtins(found), "toolsMs": round(found.tools_ms, 1), "answerMs": round(found.answer_ms, 1)}
    return {name: value for name, value in fields.items() if not name.endswith("_ms")}


# --- status --------------------------------------------------------------------------------------------------------


def _status(given: argparse.Namespace) -> int:
    """Every host in a row: whether it is connected, and what its server answers now."""
    from memory_tui.hosts import connection
    from memory_tui.hosts.wiring import HOSTS, host
    from memory_tui.render import as_text

    wanted = [given.host] if getattr(given, "host", None) else list(HOSTS)
    every = connection.every()
    rows: list[dict[str, object]] = []
    for name in wanted:
        title = host(name).title
        mine = [made for made in every if made.host == name]
        rows += [_row(title, made, given) for made in mine] or [{"host": name, "title": title, "connected": False}]
    if hasattr(given, "json"):
        as_text.print_json({"hosts": rows})
    else:
        as_text.print_lines([line for row in rows for line in _lines(row)])
    return int(any(row.get("error") for row in rows))


def _row(title: str, made: HostConnection, given: argparse.Namespace) -> dict[str, object]:
    from memory_tui.engine import connected_agents
    from memory_tui.hosts import connection, openclaw
    from memory_tui.hosts.proof import prove
    from memory_tui.hosts.wiring import LOG, host

    row: dict[str, object] = {
        "host": made.host,
        "title": title,
        "scope": made.scope,
        "command": list(made.start.words),
        "profile": made.profile,
        "connected": True,
        "at": made.at,
        "log": LOG in made.start.words,
        **({"project": str(made.project)} if made.scope == "project" else {}),
    }
    if lost := connection.wired(made):
        return {**row, "connected": False, "error": " ".join(lost)}
    try:
        asked, failed = connected_agents.newest(host(made.host), connected_agents.workspace_of(made))
        row["outdated"] = openclaw.outdated(openclaw.installed_folder()) if made.host == "openclaw" else []
        row |= {"lastQuery": _logged(asked), "lastError": _logged(failed)}
        return {**row, "proof": _record(prove(made.start, _question(given, made.start)))}
    except MemoryTuiError as error:
        return {**row, "error": f"{error.message} {error.next_step}".rstrip()}


def _logged(entry: RecallEntry | None) -> dict[str, object] | None:
    """A recall of the log as JSON-ready fields; None for none."""
    if entry is None:
        return None
    return {
        "query": entry.query,
        "at": entry.at,
        "ms": round(entry.ms, 1),
        "hits": len(entry.hits),
        "outcome": entry.outcome or None,
    }


def _lines(row: dict[str, Any]) -> list[str]:
    if "scope" not in row:
        return [f"{row['title']}: not connected. memory-tui connect {row['host']} connects it."]
    where = f" ({row['project']})" if "project" in row else ""
    if "error" in row:
        return [f"{row['title']}{where}: {row['error']}"]
    proof = row["proof"]
    hits = "1 hit" if proof["hits"] == 1 else f"{proof['hits']} hits"
    asked, failed, outdated = row["lastQuery"], row["lastError"], ", ".join(row["outdated"])
    return [
        f"{row['title']}{where}: connected, profile {proof['profile'] or row['profile']}, tools in "
        f"{proof['toolsMs']:.0f} ms, {hits} in {proof['answerMs']:.0f} ms for {proof['question']!r}.",
        *([f"  The plug-in is of another version: {outdated}. Run memory-tui connect openclaw."] if outdated else []),
        *([f"  Last query at {_moment(asked)}: {asked['query']}"] if asked else []),
        *([f"  Last error at {_moment(failed)}: {failed['outcome']}"] if failed else []),
    ]


def _moment(logged: dict[str, Any]) -> str:
    from memory_tui.recalls.recalled_lines import moment

    return moment(logged["at"])


# --- disconnect ----------------------------------------------------------------------------------------------------


def _disconnect(given: argparse.Namespace) -> int:
    from memory_tui.hosts import connection
    from memory_tui.render import as_text

    row, scope = _asked(given)
    made = connection.recorded(row.name, scope, Path.cwd())
    if made is None:
        raise ConfigError(
            f"{row.title} was not connected by memory-tui {'here' if scope == 'project' else 'on this machine'}.",
            "memory-tui connect --status lists what is connected.",
        )
    files = connection.restorations(made)
    as_json, dry = hasattr(given, "json"), hasattr(given, "dry_run")
    if not as_json:
        as_text.print_lines(list(connection.difference(files)))
    if not dry:
        if not confirmed(f"Write {_count(sum(file.now != file.then for file in files))} of {row.title}?", given):
            raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
        connection.disconnect(made, files)
    if as_json:
        told = [{"path": str(file.path), "ending": file.ending} for file in files]
        as_text.print_json({"host": row.name, "scope": scope, "written": not dry, "files": told})
    elif not dry:
        as_text.print_lines([*(f"{file.path}: {file.ending}." for file in files), f"{row.title} is disconnected."])
    return 0


COMMANDS: dict[str, Command] = {
    "connect": Command(_connect, _declare_connect),
    "disconnect": Command(_disconnect, _declare),
}
