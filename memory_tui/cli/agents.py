"""Commands about the agents that use this memory, and the others: connect, disconnect, recall-log, memories."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui import agents, plan, recall_log
from memory_tui.cli.context import agreed, confirmed, engine_options, names_a_memory, opened, passed_on, require_written
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.config.settings import OWN_PROFILE
from memory_tui.engine import machine
from memory_tui.engine.engine import Engine
from memory_tui.errors import ConfigError, MemoryTuiError, QueryError, SettingError
from memory_tui.explain import hit_text, trace_json
from memory_tui.explain.counterfactuals import remedies
from memory_tui.formatting import one_line, plural
from memory_tui.hosts import claude_code, connection, openclaw, wiring
from memory_tui.hosts.connection import HOSTS, Host, HostConnection, NoAnswer, PlannedFile, Proof
from memory_tui.openclaw.prompt import GET
from memory_tui.search.corpus import DAY_SECONDS
from memory_tui.search.excerpts import excerpts
from memory_tui.workspace.roots import named_lines

# --- connect -------------------------------------------------------------------------------------------------------


def connect(args: argparse.Namespace) -> int:
    """Write what makes a host use this memory, after the difference was shown and its server has answered."""
    if args.status:
        return _status(args)
    row, scope = _host_and_scope(args)
    log = _log_agreed(args, row.title)
    chosen = wiring.Wiring(scope, Path.cwd(), wiring.command(), _arguments(args, row), args.profile, log)
    files, lines = _planned(args, row, chosen)
    start = row.start(chosen)
    loss = row.loss()
    # Of a host that is connected already nothing may be left to write; its server is asked all the same.
    changed = sum(file.now != file.then for file in files)
    report: dict[str, Any] = {"host": row.name, "scope": scope, "command": list(start.words), "profile": chosen.profile}
    report |= {"log": log, "files": [*map(_file, files)], "written": False, "loss": loss}
    lines += [wiring.SAMPLE_GOES] if any(wiring.SAMPLE in word for word in start.words) else []
    lines += connection.difference(files) if changed else [f"{row.title} has these entries already."]
    lines += [*connection.effects(row, files), *([loss] if loss else [])]
    may = agreed(args, lines, f"Write {plural(changed, 'file')} of {row.title}?" if changed else "")
    if args.dry_run:
        return show(args, report, [_DRY])
    require_written(may or not changed)
    try:
        answer = _proof(start)
    except NoAnswer as error:
        message = f"Nothing was written: the server that {row.title} would start gives no answer. {error.message}"
        raise NoAnswer(message, error.next_step) from error
    link = connection.connect(row, chosen, files)
    report |= {"written": bool(changed), "proof": to_builtins(answer)}
    way_back = f"To undo it: memory-tui disconnect {link.host}{' --project' if link.scope == 'project' else ''}"
    return show(args, report, [answer.sentence(), f"{row.title} is connected. {row.after}", way_back])


def _file(file: PlannedFile) -> dict[str, Any]:
    """Return what is to change in a file as JSON-ready data."""
    changes = [".".join(change.keys) for change in file.changes]
    return {"path": str(file.path), "changes": changes, "difference": list(connection.difference([file]))}


def _planned(args: argparse.Namespace, row: Host, chosen: wiring.Wiring) -> tuple[Sequence[PlannedFile], list[str]]:
    """Return the files that connecting writes, and lines to be shown before them. Raises ConfigError.

    With `--dry-run` a host need not be installed: then a line says that it is not.
    """
    try:
        return connection.planned(row, chosen), []
    except ConfigError:
        if not args.dry_run:
            raise
        files = connection.planned(row, replace(chosen, preview=True))
        return files, [f"{row.title} is not installed here; this is what connecting would write."]


_DRY = "Nothing was written: --dry-run only shows what would be."


def _host_and_scope(args: argparse.Namespace) -> tuple[Host, wiring.Scope]:
    """Return the host and the scope that are meant. Raises SettingError."""
    if args.host is None:
        raise SettingError("Which host is meant?", f"Choose one of {', '.join(HOSTS)}.")
    row = connection.host(args.host)
    scope: wiring.Scope = "project" if args.project else "user"
    if scope not in row.scopes:
        raise SettingError(f"{row.title} has no files of a project.", "Leave --project out.")
    return row, scope


def _arguments(args: argparse.Namespace, row: Host) -> tuple[str, ...]:
    """Return the words that name the memory of `args` to the host's server. Raises MemoryTuiError.

    Sets the profile in `args`, and for Claude Code, whose memory belongs to a project, the workspace.
    """
    # Where memory-tui is the memory of an agent, its own ranking holds; the profiles of OpenClaw are for comparing.
    args.profile = args.profile or OWN_PROFILE
    if row.name == "openclaw":
        return openclaw.arguments(args.profile)
    if row.name == "claude-code" and not names_a_memory(args):
        memory = claude_code.workspace(Path.cwd())
        args.workspace = str(memory) if memory.is_dir() else None
    # Called for what it raises: a memory that is not there is refused before anything is shown or written.
    plan.plan(engine_options(args))
    return tuple(passed_on(args))


def _log_agreed(args: argparse.Namespace, title: str) -> bool:
    """Return whether what the agent asks is written down: as the command line says, else as a person answers."""
    is_wanted = bool(args.log_recalls)
    # The switch is the server's; the hooks, which get the other arguments too, do not know it.
    args.log_recalls = False
    if is_wanted or args.yes or args.json or args.dry_run:
        return is_wanted
    return confirmed(f"Write down on this machine what {title} asks and gets, to see why it did not remember?", args)


def _proof(start: wiring.ServerStart) -> Proof:
    """Start what the host will start, and ask it; return its answer. Raises NoAnswer."""
    with waiting("Asking the server"):
        return connection.prove(start)


def _status(args: argparse.Namespace) -> int:
    """Tell of every host whether it is connected, and what its server answers now."""
    links = connection.every()
    rows: list[dict[str, Any]] = []
    for name in [args.host] if args.host else list(HOSTS):
        host = connection.host(name)
        connected = [_state(host, link) for link in links if link.host == name]
        rows += connected or [{"host": name, "title": host.title, "connected": False}]
    failed = any(row.get("error") for row in rows)
    return show(args, {"hosts": rows}, [line for row in rows for line in _status_lines(row)], int(failed))


def _state(host: Host, link: HostConnection) -> dict[str, Any]:
    """Return a row of the status: what is recorded of a connection, then what its server answers now.

    Where something is wrong with it, `error` says what, and the row has no answer.
    """
    words = list(link.start.words)
    row: dict[str, Any] = {"host": link.host, "title": host.title, "scope": link.scope, "command": words}
    row |= {"profile": link.profile, "connected": True, "at": link.at, "log": wiring.LOG in words}
    if link.scope == "project":
        row["project"] = str(link.project)
    if lost := connection.wired(link):
        return {**row, "connected": False, "error": " ".join(lost)}
    try:
        query, failure = agents.newest(host, agents.workspace_of(link))
        row["outdated"] = openclaw.outdated_plugin(openclaw.installed_folder()) if link.host == "openclaw" else []
        row |= {"lastQuery": _logged(query), "lastError": _logged(failure)}
        return {**row, "proof": to_builtins(_proof(link.start))}
    except MemoryTuiError as error:
        return {**row, "error": f"{error.message} {error.next_step}".rstrip()}


def _logged(entry: recall_log.RecallEntry | None) -> dict[str, object] | None:
    """Return what the status tells of a recall, JSON-ready; None where there is none."""
    if entry is None:
        return None
    figures = {"query": entry.query, "at": entry.at, "ms": round(entry.ms, 1), "hits": len(entry.hits)}
    return {**figures, "outcome": entry.outcome or None}


def _status_lines(row: dict[str, Any]) -> list[str]:
    """Return a row of the status as text: the connection, then what needs attention."""
    # Only the row of a recorded connection has a scope.
    if "scope" not in row:
        return [f"{row['title']}: not connected. memory-tui connect {row['host']} connects it."]
    where = f"{row['title']} ({row['project']})" if "project" in row else row["title"]
    if "error" in row:
        return [f"{where}: {row['error']}"]
    proof = row["proof"]
    speed = f"tools in {proof['toolsMs']:.0f} ms, {plural(proof['hits'], 'hit')} in {proof['answerMs']:.0f} ms"
    lines = [f"{where}: connected, profile {proof['profile'] or row['profile']}, {speed} for {proof['question']!r}."]
    if outdated := ", ".join(row["outdated"]):
        lines.append(f"  The plug-in is of another version: {outdated}. Run memory-tui connect openclaw.")
    if query := row["lastQuery"]:
        lines.append(f"  Last query at {recall_log.moment(query['at'])}: {query['query']}")
    if failure := row["lastError"]:
        lines.append(f"  Last error at {recall_log.moment(failure['at'])}: {failure['outcome']}")
    return lines


def disconnect(args: argparse.Namespace) -> int:
    """Bring the files of a host back to what they were before `connect`."""
    row, scope = _host_and_scope(args)
    link = connection.recorded(row.name, scope, Path.cwd())
    if link is None:
        where = "here" if scope == "project" else "on this machine"
        step = "memory-tui connect --status lists what is connected."
        raise ConfigError(f"{row.title} was not connected by memory-tui {where}.", step)
    files = connection.restorations(link)
    changed = sum(file.now != file.then for file in files)
    may = agreed(args, connection.difference(files), f"Write {plural(changed, 'file')} of {row.title}?")
    if not args.dry_run:
        require_written(may)
        connection.restore_files(link)
    endings = [{"path": str(file.path), "ending": file.ending} for file in files]
    data = {"host": row.name, "scope": scope, "written": not args.dry_run, "files": endings}
    lines = [*(f"{file.path}: {file.ending}." for file in files), f"{row.title} is disconnected."]
    return show(args, data, [_DRY] if args.dry_run else lines)


# --- recall-log ----------------------------------------------------------------------------------------------------


def recalls(args: argparse.Namespace) -> int:
    """List what agents asked, or tell of one recall, or delete the log."""
    workspace = plan.choose(engine_options(args)).workspace
    path = recall_log.recall_log_path(workspace)
    if args.clear:
        # Releases up to 0.2 kept beside it which lines a person's own questions recalled.
        if recall_log.clear_log(recall_log.log_path(workspace, "marks")):
            print_lines(["The marks of your own recalls are deleted."])
        print_lines(["The recall log is deleted." if recall_log.clear_log(path) else "There is no recall log."])
        return 0
    if args.sessions:
        return _sessions(args)
    log = recall_log.read(path)
    if args.id is not None:
        return _recall(args, _entry(log, args.id))
    if args.why is not None:
        raise QueryError("Which recall is meant?", "Name it: memory-tui recall-log last --why PATH.")
    newest = log.entries[-args.newest :]
    entries = [{**trace_json.plain(entry), "reply": entry.reply or None} for entry in newest]
    data = {"path": str(path), "recalls": entries, "total": len(log.entries)}
    data |= {"unread": log.unread, "replies": log.replies}
    return show(args, data, _listing(newest, log, path))


def _listing(entries: Sequence[recall_log.RecallEntry], log: recall_log.Log, path: Path) -> Iterator[str]:
    """Yield a line for each of `entries`, the newest last, and where they are kept."""
    for entry in entries:
        subject = f"read {entry.query}" if entry.tool == GET else entry.query
        cells = [entry.id, recall_log.moment(entry.at), one_line(subject, 60), one_line(recall_log.replied(entry), 60)]
        yield "  ".join([*cells, f"{entry.ms:.0f} ms", one_line(entry.program)]).rstrip()
    if not log.entries:
        yield f"No recall is logged. {recall_log.LOG_RECALLS}"
    else:
        yield f"{plural(len(log.entries), 'recall')} in {path}"
        if log.tally:
            yield f"{plural(sum(log.replies.values()), 'question')}: {log.tally}."
    if log.unread:
        yield f"{plural(log.unread, 'line')} of it could not be read."


def _sessions(args: argparse.Namespace) -> int:
    """List the turns of agents that have this memory, and what it knew where they did not ask."""
    with opened(args) as engine:
        engine.index.catch_up()
        since = engine.plan.clock() - args.days * DAY_SECONDS
        sessions, problems = agents.sessions(engine.plan.roots.workspace, since)
        sessions = [engine.notes.with_known(session) for session in sessions]
    data = {"sessions": trace_json.plain(sessions), "problems": problems}
    lines = agents.listing(sessions, problems)
    return show(args, data, lines if sessions or problems else ["No agent with this memory has a transcript."])


def _entry(log: recall_log.Log, name: str) -> recall_log.RecallEntry:
    """Return the recall whose id begins with `name`, or the `last` one. Raises QueryError unless it is a search."""
    if not log.entries:
        raise QueryError("No recall is logged.", recall_log.LOG_RECALLS)
    entry = log.find(name)
    if entry is None:
        raise QueryError(f"No recall in the log has an id like {name!r}.", "Run memory-tui recall-log to list them.")
    if entry.subject == "memories":
        reason = f"{entry.id} asked the long-term memories, not the notes."
        raise QueryError(reason, "memory-tui ltm search asks again.")
    if not entry.subject:
        raise QueryError(f"{entry.id} read {entry.query}; it asked nothing.", "Name a recall that is a search.")
    return entry


def _recall(args: argparse.Namespace, entry: recall_log.RecallEntry) -> int:
    """Tell of one recall what it got, what it would get now, and why a note is, or is not, in it."""
    with Engine.open(engine_options(args)) as engine:
        engine.plan.require_enabled()
        engine.index.catch_up()
        again = recall_log.replay(entry, engine.plan.settings, engine.search.gather)
        if args.why is not None:
            # Needs the engine, which the rest does not.
            return _why(args, engine, again)
    passages = excerpts(again.now)
    data = {"entry": trace_json.plain(again.entry), "same": again.same, "since": list(again.since)}
    data |= {"changes": trace_json.plain(again.changes), "now": trace_json.answer(again.now, passages)}
    return show(args, data, recall_log.replayed(again))


def _why(args: argparse.Namespace, engine: Engine, again: recall_log.Rerun) -> int:
    """Tell why a note, or a line of it, is or is not recalled now, and whether the agent got it then."""
    path, line, _ = named_lines(args.why)
    answer = engine.search.why(again.now.evidence, path, line, again.now.settings)
    place, sentence = recall_log.delivered(again.entry, answer.place.path, answer.place.line)
    changes = None if answer.recalled else remedies(answer, engine.plan.with_profile, engine.search.gather)
    log = {"delivered": place, "sentence": sentence, "since": list(again.since)}
    data = {**trace_json.why(answer, changes), "log": log}
    lines = [sentence, *([f"Since then: {'; '.join(again.since)}."] if again.since else [])]
    return show(args, data, [*lines, *hit_text.answer(answer, changes)])


# --- memories ------------------------------------------------------------------------------------------------------


def memories(args: argparse.Namespace) -> int:
    """List every memory on this machine, bring one after its project, or take that back."""
    if args.undo:
        # Moved back: from where it is to where it was.
        new, old = machine.last_move()
    elif args.move is None:
        every = machine.memories()
        data = [{**trace_json.plain(memory), "folder": str(memory.folder)} for memory in every]
        return show(args, {"memories": data}, machine.lines(every))
    else:
        old = Path(args.move).expanduser().absolute()
        moves = {memory.folder: memory.moved_to for memory in machine.memories() if memory.moved_to}
        if old not in moves:
            step = "memory-tui memories lists them, and those whose project has moved."
            raise SettingError(f"{args.move} is no memory that can be moved.", step)
        new = moves[old]
    may = agreed(args, [f"{old} -> {new}"], "Move this memory?")
    require_written(may or args.dry_run)
    lines = [machine.move(old, new, back=args.undo)] if may else []
    return show(args, {"written": may, "from": str(old), "to": str(new)}, lines)
