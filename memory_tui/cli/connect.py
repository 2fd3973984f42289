"""Commands that make an agent program use this memory: `connect`, `disconnect`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from memory_tui import plan, profiles
from memory_tui.cli.context import confirmed, names_a_memory, options, passed_on
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.errors import ConfigError, MemoryTuiError, SettingError
from memory_tui.formatting import plural
from memory_tui.hosts import claude_code, connection, openclaw, proof, wiring
from memory_tui.hosts.connection import HostConnection, PlannedFile
from memory_tui.hosts.proof import NoAnswer, Proof
from memory_tui.hosts.wiring import HOSTS, LOG, Host, Scope, ServerStart, Wiring
from memory_tui.recalls import connected_agents
from memory_tui.recalls.recall_log import RecallEntry, moment

# --- connect -------------------------------------------------------------------------------------------------------


def connect(args: argparse.Namespace) -> int:
    """Write what makes a host use this memory, after the difference was shown and its server has answered."""
    if args.status:
        return _status(args)
    row, scope = _host_and_scope(args)
    chosen = _wiring(args, row, scope, log=_log_agreed(args, row.title))
    files = connection.planned(row, chosen)
    changed = [file for file in files if file.now != file.then]
    loss = row.loss()
    report: dict[str, Any] = {
        "host": row.name,
        "scope": scope,
        "command": list(row.start(chosen).words),
        "profile": chosen.profile,
        "log": chosen.log,
        "files": [_file(file) for file in files],
        "written": False,
        "loss": loss,
    }
    if not args.json:
        print_lines(list(connection.difference(files)) or [f"{row.title} has these entries already."])
        print_lines([loss] if loss else [])
    if args.dry_run:
        return show(args, report)
    if changed:
        _require_yes(args, row, len(changed))
    answer = _proof(row.start(chosen), args, row.title)
    link = connection.connect(row, chosen, files)
    report |= {"written": bool(changed), "proof": _record(answer)}
    way = f"To undo it: memory-tui disconnect {link.host}{' --project' if link.scope == 'project' else ''}"
    return show(args, report, [answer.sentence(), f"{row.title} is connected. {row.after}", way])


def _require_yes(args: argparse.Namespace, row: Host, files: int) -> None:
    """Raises ConfigError unless a person agrees that files of the host are written."""
    if not confirmed(f"Write {plural(files, 'file')} of {row.title}?", args):
        raise ConfigError("Nothing was written.", "Use --yes to write without a question.")


def _host_and_scope(args: argparse.Namespace) -> tuple[Host, Scope]:
    """Return the host and the scope that are meant. Raises SettingError."""
    if args.host is None:
        raise SettingError("Which host is meant?", f"Choose one of {', '.join(HOSTS)}.")
    if args.user and args.project:
        raise SettingError("Both --user and --project were given.", "Give one of them.")
    row = wiring.host(args.host)
    scope: Scope = "project" if args.project else "user"
    if scope not in row.scopes:
        raise SettingError(f"{row.title} has no files of a project.", "Leave --project out.")
    return row, scope


def _wiring(args: argparse.Namespace, row: Host, scope: Scope, *, log: bool) -> Wiring:
    """Return what the host is to start for the memory that `args` name. Raises MemoryTuiError."""
    # Where memory-tui is the memory of an agent, its own ranking holds; the profiles of OpenClaw are for comparing.
    args.profile = args.profile or profiles.OWN
    if row.name == "openclaw":
        words = openclaw.arguments(args.profile)
    else:
        memory = claude_code.workspace(Path.cwd()) if row.name == "claude-code" and not names_a_memory(args) else None
        if memory is not None and memory.is_dir():
            args.workspace = str(memory)
        # A memory that is not there is refused before anything is shown or written.
        plan.plan(options(args))
        words = tuple(passed_on(args))
    return Wiring(scope, Path.cwd(), wiring.command(), words, args.profile, log)


def _log_agreed(args: argparse.Namespace, title: str) -> bool:
    """Return whether what the agent asks is written down: as the command line says, else as a person answers."""
    # The switch is the server's; the hooks, which get the other arguments too, do not know it.
    chosen, args.log_recalls = args.log_recalls, False
    if chosen or args.yes or args.json or args.dry_run:
        return bool(chosen)
    return confirmed(f"Write down on this machine what {title} asks and gets, to see why it did not remember?", args)


def _file(file: PlannedFile) -> dict[str, object]:
    return {
        "path": str(file.path),
        "changes": [".".join(change.keys) for change in file.changes],
        "difference": list(connection.difference([file])),
    }


def _question(args: argparse.Namespace, start: ServerStart) -> str:
    """Return what the proof asks: as the command line says, else a line of MEMORY.md."""
    return str(args.question) if args.question is not None else proof.question_of(start)


def _proof(start: ServerStart, args: argparse.Namespace, title: str) -> Proof:
    """Start what the host will start, ask it. Raises NoAnswer."""
    try:
        with waiting("Asking the server"):
            return proof.prove(start, _question(args, start))
    except NoAnswer as error:
        raise NoAnswer(
            f"Nothing was written: the server that {title} would start gives no answer. {error.message}",
            error.next_step,
        ) from error


def _record(answer: Proof) -> dict[str, object]:
    """Return a proof as JSON-ready fields."""
    fields = {**to_builtins(answer), "toolsMs": round(answer.tools_ms, 1), "answerMs": round(answer.answer_ms, 1)}
    return {name: value for name, value in fields.items() if not name.endswith("_ms")}


# --- status --------------------------------------------------------------------------------------------------------


def _status(args: argparse.Namespace) -> int:
    """Tell of every host whether it is connected, and what its server answers now."""
    every = connection.every()
    rows: list[dict[str, object]] = []
    for name in [args.host] if args.host else list(HOSTS):
        title = wiring.host(name).title
        mine = [link for link in every if link.host == name]
        rows += [_row(title, link, args) for link in mine] or [{"host": name, "title": title, "connected": False}]
    failed = any(row.get("error") for row in rows)
    return show(args, {"hosts": rows}, [line for row in rows for line in _lines(row)], int(failed))


def _row(title: str, link: HostConnection, args: argparse.Namespace) -> dict[str, object]:
    row: dict[str, object] = {
        "host": link.host,
        "title": title,
        "scope": link.scope,
        "command": list(link.start.words),
        "profile": link.profile,
        "connected": True,
        "at": link.at,
        "log": LOG in link.start.words,
        **({"project": str(link.project)} if link.scope == "project" else {}),
    }
    if lost := connection.wired(link):
        return {**row, "connected": False, "error": " ".join(lost)}
    try:
        latest, failed = connected_agents.newest(wiring.host(link.host), connected_agents.workspace_of(link))
        row["outdated"] = openclaw.outdated(openclaw.installed_folder()) if link.host == "openclaw" else []
        row |= {"lastQuery": _logged(latest), "lastError": _logged(failed)}
        return {**row, "proof": _record(proof.prove(link.start, _question(args, link.start)))}
    except MemoryTuiError as error:
        return {**row, "error": f"{error.message} {error.next_step}".rstrip()}


def _logged(entry: RecallEntry | None) -> dict[str, object] | None:
    """Return a recall of the log as JSON-ready fields; None for none."""
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
    answer = row["proof"]
    latest, failed, outdated = row["lastQuery"], row["lastError"], ", ".join(row["outdated"])
    return [
        f"{row['title']}{where}: connected, profile {answer['profile'] or row['profile']}, tools in "
        f"{answer['toolsMs']:.0f} ms, {plural(answer['hits'], 'hit')} in {answer['answerMs']:.0f} ms "
        f"for {answer['question']!r}.",
        *([f"  The plug-in is of another version: {outdated}. Run memory-tui connect openclaw."] if outdated else []),
        *([f"  Last query at {moment(latest['at'])}: {latest['query']}"] if latest else []),
        *([f"  Last error at {moment(failed['at'])}: {failed['outcome']}"] if failed else []),
    ]


# --- disconnect ----------------------------------------------------------------------------------------------------


def disconnect(args: argparse.Namespace) -> int:
    """Bring the files of a host back to what they were before `connect`."""
    row, scope = _host_and_scope(args)
    link = connection.recorded(row.name, scope, Path.cwd())
    if link is None:
        raise ConfigError(
            f"{row.title} was not connected by memory-tui {'here' if scope == 'project' else 'on this machine'}.",
            "memory-tui connect --status lists what is connected.",
        )
    files = connection.restorations(link)
    if not args.json:
        print_lines(list(connection.difference(files)))
    if not args.dry_run:
        _require_yes(args, row, sum(file.now != file.then for file in files))
        connection.disconnect(link, files)
    endings = [{"path": str(file.path), "ending": file.ending} for file in files]
    data = {"host": row.name, "scope": scope, "written": not args.dry_run, "files": endings}
    lines = [*(f"{file.path}: {file.ending}." for file in files), f"{row.title} is disconnected."]
    return show(args, data, [] if args.dry_run else lines)
