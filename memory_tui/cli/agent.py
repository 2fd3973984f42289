"""Commands for agents: the MCP server, the recall log, the prompt, the flush, the host's hooks."""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Declare, Run, moment, opened, options, positive
from memory_tui.core.errors import MemoryTuiError, PathRefused, QueryError, SettingError, Unreadable

if TYPE_CHECKING:
    from memory_tui.curate.budget import Host
    from memory_tui.engine.engine import Engine
    from memory_tui.hosts.claude_code import HookCall
    from memory_tui.openclaw import flush
    from memory_tui.openclaw.prompt import OpeningNote
    from memory_tui.plan import Choices
    from memory_tui.recalls.recall_log import Log, RecallEntry
    from memory_tui.recalls.rerun import Rerun

_PASSED = ("workspace", "config", "agent", "index", "provider", "profile")
_SWITCHES = ("read_only", "log_recalls", "no_prompts", "no_resources")


def add_server(command: Declare) -> None:
    """Declare the commands."""
    served = command("mcp", "serve memory_search and memory_get to an agent (MCP over standard input and output)")
    served.add_argument(
        "--citations",
        choices=["auto", "on", "off"],
        help="whether hits name their source (default: memory.citations; auto: in direct chats)",
    )
    served.add_argument("--session-key", metavar="KEY", help="the session that auto goes by, like agent:main:main")
    served.add_argument(
        "--max-chars",
        type=positive,
        metavar="N",
        help="most characters of snippets in one answer (default: recall.maxInjectedChars)",
    )
    served.add_argument(
        "--log-recalls",
        action="store_true",
        help="write down what agents ask and get, on this machine only (or recall.log=true)",
    )
    served.add_argument("--no-prompts", action="store_true", help="offer no prompts (some hosts make tools of them)")
    served.add_argument("--no-resources", action="store_true", help="offer no resources (the same)")
    served.add_argument(
        "--print-config",
        nargs="?",
        const="claude-code",
        metavar="CLIENT",
        help="print the entry for claude-code, codex or openclaw, and serve nothing",
    )
    logged = command("recall-log", "what agents asked, what they got, and what they would get now")
    logged.add_argument("id", nargs="?", help="one recall, by the start of its id, or last")
    logged.add_argument("--why", metavar="PATH[:LINE]", help="why that recall did, or did not, find this note")
    logged.add_argument("-n", "--newest", type=positive, metavar="N", help="how many are listed (default: 20)")
    logged.add_argument(
        "--clear", action="store_true", help="delete the log of this workspace, and the marks of your own recalls"
    )


# --- the server ----------------------------------------------------------------------------------------------------


def _mcp(given: argparse.Namespace) -> int:
    if hasattr(given, "print_config"):
        return _print_config(given)
    if sys.stdin.isatty():
        sys.stderr.write(
            "memory-tui: an agent starts this and speaks MCP to it; --print-config prints the entry for "
            "yours. Ctrl+C ends it.\n"
        )
    from memory_tui.mcp.host import ServedMemory, ServerOptions
    from memory_tui.mcp.server import serve

    def open_memory() -> Engine:
        from memory_tui.engine.engine import Engine

        return Engine.open(options(given))

    serve(
        ServedMemory(
            open_memory,
            ServerOptions(
                citations=getattr(given, "citations", None),
                session_key=getattr(given, "session_key", ""),
                max_injected_chars=getattr(given, "max_chars", None),
                log=True if hasattr(given, "log_recalls") else None,
                prompts=not hasattr(given, "no_prompts"),
                resources=not hasattr(given, "no_resources"),
                disabled=_disabled(given),
            ),
        )
    )
    return 0


def _disabled(given: argparse.Namespace) -> str:
    """Why the configuration gives the agent no memory search; what is wrong with it is told at the first question."""
    from memory_tui import plan

    try:
        return plan.choose(options(given)).config.disabled
    except MemoryTuiError:
        return ""


def _print_config(given: argparse.Namespace) -> int:
    from memory_tui.hosts import client_entries
    from memory_tui.render import as_text

    if given.print_config not in client_entries.CLIENTS:
        raise SettingError(
            f"There is no entry for {given.print_config!r}.", f"Choose one of {', '.join(client_entries.CLIENTS)}."
        )
    as_text.text(client_entries.entry(given.print_config, _arguments(given)).split("\n"))
    return 0


def _arguments(given: argparse.Namespace) -> list[str]:
    """What was said on this command line, with whole paths, for another one; the workspace is named in any case."""
    from pathlib import Path

    from memory_tui import plan

    words: list[str] = []
    if not {"workspace", "agent", "config"} & vars(given).keys():
        words += ["--workspace", str(plan.plan(options(given)).workspace.absolute())]
    for name in (*_PASSED, "citations", "session_key", "max_chars"):
        if hasattr(given, name):
            value = str(getattr(given, name))
            is_path = name in ("workspace", "config", "index")
            words += [f"--{name.replace('_', '-')}", str(Path(value).expanduser().absolute()) if is_path else value]
    for item in getattr(given, "set", ()):
        words += ["--set", item]
    for extra in options(given).extra:
        words += ["--extra", str(Path(extra).expanduser().absolute())]
    return words + [f"--{name.replace('_', '-')}" for name in _SWITCHES if hasattr(given, name)]


# --- the log -------------------------------------------------------------------------------------------------------


def _recall_log(given: argparse.Namespace) -> int:
    from memory_tui import plan
    from memory_tui.explain.trace_json import plain
    from memory_tui.recalls import recall_log, recalled_lines
    from memory_tui.render import as_text

    workspace = plan.choose(options(given)).workspace
    place, marked = recall_log.recall_log_path(workspace), recalled_lines.marks_path(workspace)
    if hasattr(given, "clear"):
        # The log last: whoever is told that something failed still has it.
        marks = ["The marks of your own recalls are deleted."] if recall_log.clear(marked) else []
        as_text.text([*marks, "The recall log is deleted." if recall_log.clear(place) else "There is no recall log."])
        return 0
    log = recall_log.read(place)
    if hasattr(given, "id"):
        return _one(given, _found(log, given.id))
    if hasattr(given, "why"):
        raise QueryError("Which recall is meant?", "Name it: memory-tui recall-log last --why PATH.")
    newest = log.entries[-getattr(given, "newest", 20) :]
    if hasattr(given, "json"):
        as_text.data({"path": str(place), "recalls": plain(newest), "total": len(log.entries), "unread": log.unread})
    else:
        as_text.text(recalled_lines.listing(newest, log, place))
    return 0


def _found(log: Log, name: str) -> RecallEntry:
    entry = log.find(name)
    if entry is None and not log.entries:
        raise QueryError(
            "No recall is logged.", "Start the server with memory-tui mcp --log-recalls to have them written down."
        )
    if entry is None:
        raise QueryError(f"No recall in the log has an id like {name!r}.", "memory-tui recall-log lists them.")
    return entry


def _one(given: argparse.Namespace, entry: RecallEntry) -> int:
    """One recall: what it got, what it would get now, and why a note is, or is not, in it."""
    from memory_tui.openclaw.prompt import SEARCH
    from memory_tui.recalls import recalled_lines, rerun
    from memory_tui.render import as_text

    if entry.tool != SEARCH:
        raise QueryError(f"{entry.id} read {entry.query}; it asked nothing.", "Name a recall that is a search.")
    asked = options(given)
    from memory_tui.engine.engine import Engine

    # Ages are counted from the moment of the question, unless another one was asked for.
    with Engine.open(asked if asked.now is not None else dataclasses.replace(asked, now=entry.at)) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        found = rerun.replay(entry, engine.plan.settings, engine.queries.gather)
        if hasattr(given, "why"):
            return _why(given, engine, found)
        if hasattr(given, "json"):
            as_text.data(rerun.record(found))
        else:
            as_text.text(recalled_lines.replayed(found))
    return 0


def _why(given: argparse.Namespace, engine: Engine, found: Rerun) -> int:
    from memory_tui.explain import trace_json, why_not
    from memory_tui.explain.counterfactuals import flips, of_answer
    from memory_tui.render import as_text

    path, line = why_not.parse(given.why)
    answer = engine.queries.why(found.evidence, path, line, found.settings)
    changes = (
        None if answer.row is None else flips(answer.evidence, found.settings, answer.row, engine.plan.with_profile)
    )
    questions = of_answer(engine.queries.gather, answer)
    if hasattr(given, "json"):
        as_text.data(trace_json.why(answer, changes, questions))
    else:
        as_text.text(as_text.answer(answer, changes, questions))
    return 0


RUN_SERVER: dict[str, Run] = {"mcp": _mcp, "recall-log": _recall_log}


def add_hooks(command: Declare) -> None:
    """Declare the commands."""
    prompt = command("prompt", "print what an agent is told about its memory, and the notes a session starts with")
    prompt.add_argument(
        "--mode", choices=["full", "minimal"], default="full", help="minimal is for sub-agents: no section, no notes"
    )
    prompt.add_argument("--citations", choices=["auto", "on", "off"], help="default: as configured")
    prompt.add_argument("--session", metavar="KEY", help="session key; MEMORY.md is for direct chats only")
    prompt.add_argument("--no-files", action="store_true", help="only the section")
    flushed = command("flush", "whether a session should write down what it knows now, and the turn that does it")
    flushed.add_argument("--session", metavar="ID", help="session id (default: the name of the transcript)")
    flushed.add_argument("--transcript", metavar="FILE", help="its transcript, JSON Lines")
    flushed.add_argument("--tokens", type=positive, metavar="N", help="tokens of the session as the host counts them")
    flushed.add_argument("--next-tokens", type=positive, metavar="N", help="estimate of the coming message")
    flushed.add_argument("--context-window", type=positive, metavar="N", help="default: as configured, else 200000")
    flushed.add_argument("--model", metavar="PROVIDER/ID", help="a model whose window the configuration knows")
    flushed.add_argument("--compactions", type=int, metavar="N", help="how often it was compacted")
    flushed.add_argument("--heartbeat", action="store_true", help="it is a heartbeat run")
    flushed.add_argument("--cli-provider", action="store_true", help="the provider manages its own context")
    flushed.add_argument("--sandboxed", action="store_true", help="the workspace cannot be written")
    flushed.add_argument("--done", action="store_true", help="remember that it was flushed in this cycle")
    hook = command("hook", "answer a host's hook: session-memory, claude-code or codex")
    hook.add_argument("name", choices=["session-memory", "claude-code", "codex"])
    hook.add_argument("--transcript", metavar="FILE", help="session-memory: the conversation")
    hook.add_argument("--session", metavar="ID", help="session-memory: session id")
    hook.add_argument("--key", metavar="KEY", help="session-memory: session key")
    hook.add_argument("--reason", metavar="TEXT", help="session-memory: what ended it, such as /new")
    hook.add_argument("--messages", type=positive, metavar="N", help="how many messages (default: as configured)")
    hook.add_argument(
        "--settings", action="store_true", help="print what settings.json of Claude Code, hooks.json of Codex needs"
    )


# --- prompt --------------------------------------------------------------------------------------------------------


def _prompt(given: argparse.Namespace) -> int:
    from memory_tui.openclaw import prompt as prompts
    from memory_tui.recalls import recalled_lines
    from memory_tui.render import as_text

    with opened(given) as engine:
        mode = getattr(given, "citations", "") or recalled_lines.mode_of(engine.plan.config.value("memory.citations"))
        private = recalled_lines.chat(getattr(given, "session", "")) == "direct"
        minimal = given.mode == "minimal"
        section = _section(engine.plan, mode, minimal=minimal)
        notes = () if minimal or hasattr(given, "no_files") else _opening(engine, given, private)
    if hasattr(given, "json"):
        as_text.data(
            {
                "section": section,
                "citations": mode,
                "mode": given.mode,
                "private": private,
                "disabled": engine.plan.config.disabled,
                "files": [{"path": note.path, "text": note.text, "cut": note.cut} for note in notes],
            }
        )
    else:
        as_text.text("\n".join(filter(None, (section, prompts.shown(notes)))).splitlines())
    return 0


def _opening(engine: Engine, given: argparse.Namespace, private: bool) -> tuple[OpeningNote, ...]:
    from dataclasses import replace

    from memory_tui.curate import budget
    from memory_tui.openclaw.prompt import opening

    def read(path: str) -> str | None:
        try:
            return engine.notes.read(path).text
        except (PathRefused, Unreadable):
            return None

    host = budget.hosts(engine.plan.config)[0]
    found = opening(read, _now(engine.plan, given).date(), private=private)
    return tuple(replace(note, text=text, cut=text != note.text) for note in found for text in [_kept(note, host)])


def _kept(note: OpeningNote, host: Host) -> str:
    from memory_tui.curate import budget

    return budget.kept(note.text, host, Path(note.path).name)


def _section(choices: Choices, mode: str, *, minimal: bool = False) -> str:
    """The recall rule; empty where the configuration gives the agent no memory search, which is said on stderr."""
    from memory_tui.openclaw.prompt import recall_section

    if choices.config.disabled:
        sys.stderr.write(f"memory-tui: {choices.config.disabled}\n")
        return ""
    return recall_section(mode, minimal=minimal)


def _now(choices: Choices, given: argparse.Namespace) -> dt.datetime:
    """The time, in the time zone of the user."""
    from memory_tui.openclaw.session_note import time_zone

    at = moment(given)
    zone = time_zone(choices.config)
    return (
        dt.datetime.now(zone).astimezone(zone) if at is None else dt.datetime.fromtimestamp(at, dt.UTC).astimezone(zone)
    )


# --- flush ---------------------------------------------------------------------------------------------------------


def _flush(given: argparse.Namespace) -> int:
    from memory_tui import plan
    from memory_tui.openclaw import flush, sessions
    from memory_tui.render import as_text

    choices = plan.choose(options(given))
    transcript = Path(given.transcript).expanduser() if hasattr(given, "transcript") else None
    session = getattr(given, "session", "") or (transcript.stem if transcript else "")
    if not session:
        return _every(choices, given)
    kept = sessions.facts_of(choices.agent, session, transcript)
    if hasattr(given, "done"):
        sessions.FlushMarks(choices.agent.id).done(session, getattr(given, "compactions", kept.compactions))
        if hasattr(given, "json"):
            as_text.data({"session": session, "done": True})
        return 0
    rules = sessions.rules_of(choices.config)
    window = getattr(given, "context_window", 0) or sessions.window_of(choices.config, getattr(given, "model", ""))
    asked = _session(given, kept, transcript, flush.threshold(window, rules))
    may_write = not hasattr(given, "sandboxed") and sessions.writable(choices.config, session)
    run = flush.AgentRun(hasattr(given, "heartbeat"), hasattr(given, "cli_provider"), may_write)
    decision = flush.decide(rules, asked, run, window)
    turn = _turn(rules, choices, given) if decision.flush else None
    if hasattr(given, "json"):
        as_text.data({"session": session, **asdict(decision), "turn": asdict(turn) if turn else None})
    else:
        as_text.text([f"{'Flush' if decision.flush else 'No flush'}: {decision.detail}."])
        as_text.text(["", turn.prompt, "", turn.system_prompt] if turn else ())
    return 0


def _session(given: argparse.Namespace, kept: object, transcript: Path | None, limit: int) -> flush.Session:
    from dataclasses import replace

    from memory_tui.openclaw import flush, sessions

    known = kept if isinstance(kept, sessions.SessionFacts) else sessions.SessionFacts()
    if hasattr(given, "compactions"):
        known = replace(known, compactions=given.compactions)
    if hasattr(given, "tokens"):
        known = replace(known, tokens=given.tokens, fresh=True)
    coming = getattr(given, "next_tokens", 0)
    if transcript is not None:
        return sessions.session_of(transcript, known, limit, coming)
    return flush.Session(
        total_tokens=known.tokens,
        fresh=known.fresh,
        next_tokens=coming,
        compactions=known.compactions,
        flushed_in=known.flushed_in,
    )


def _turn(rules: flush.FlushRules, choices: Choices, given: argparse.Namespace) -> flush.Turn:
    from memory_tui.openclaw import flush

    now = _now(choices, given)
    return flush.turn(rules, f"{now:%Y-%m-%d}", f"{now:%Y-%m-%d %H:%M %Z}".strip())


def _every(choices: Choices, given: argparse.Namespace) -> int:
    """How near every session of the agent is to its flush."""
    from memory_tui.openclaw import sessions
    from memory_tui.render import as_text

    found = sessions.near(choices.config)
    if hasattr(given, "json"):
        as_text.data(
            [
                {
                    "session": one.session,
                    "transcript": str(one.transcript),
                    **asdict(one.decision),
                    "flushedAt": one.flushed_at,
                }
                for one in found
            ]
        )
        return 0
    as_text.text(
        [f"{one.session}: {'flush now' if one.decision.flush else 'no flush'}: {one.decision.detail}." for one in found]
        or [f"No sessions in {sessions.folder(choices.agent)}; name one with --transcript."]
    )
    return 0


# --- hooks ---------------------------------------------------------------------------------------------------------


def _hook(given: argparse.Namespace) -> int:
    return _session_memory(given) if given.name == "session-memory" else _coding_agent(given)


def _session_memory(given: argparse.Namespace) -> int:
    from memory_tui.openclaw import session_note
    from memory_tui.render import as_text

    if not hasattr(given, "transcript"):
        raise SettingError("Which conversation?", "Name its transcript with --transcript.")
    transcript = Path(given.transcript).expanduser()
    session_note.require(transcript)
    with opened(given) as engine:
        path, why = _saved(
            engine, given, transcript, getattr(given, "session", transcript.stem), getattr(given, "reason", "")
        )
    if hasattr(given, "json"):
        as_text.data({"path": str(path) if path else None, "slug": why})
    else:
        as_text.text([f"Wrote {path}." if path else "Nothing was said in this session; no note was written."])
    return 0


def _saved(
    engine: Engine, given: argparse.Namespace, transcript: Path, session: str, reason: str
) -> tuple[Path | None, str]:
    """Write the note of a session; its path (None when nothing was said), and where its name is from."""
    from memory_tui.openclaw import session_note

    if engine.plan.read_only:
        raise MemoryTuiError("The workspace is read-only here.", "Leave --read-only out.")
    configured = engine.plan.config.value("hooks.internal.entries.session-memory.messages")
    count = getattr(given, "messages", 0) or (configured if isinstance(configured, int) else session_note.MESSAGES)
    content = session_note.conversation(session_note.messages(transcript, count))
    if not content:
        return None, ""
    found, why = session_note.ask(content)
    ended = session_note.EndedSession(_now(engine.plan, given), getattr(given, "key", "unknown"), session, reason)
    return session_note.save(engine.plan.roots.workspace, ended, content, found), f"time: {why}" if why else "model"


def _coding_agent(given: argparse.Namespace) -> int:
    """A hook of Claude Code, or of Codex, which calls hooks in the same way."""
    from memory_tui.hosts import claude_code
    from memory_tui.render import as_text

    if hasattr(given, "settings"):
        from memory_tui.hosts import client_entries, codex

        events = codex.EVENTS if given.name == "codex" else claude_code.EVENTS
        as_text.data(client_entries.hooks(events, given.name, _arguments(given)))
        return 0
    try:
        happened = claude_code.event(sys.stdin.read())
        if not hasattr(given, "workspace"):
            given.workspace = str(claude_code.workspace(happened.folder))
        answer = _answered(given, happened)
    except MemoryTuiError as error:
        # Exit code 2 would stop what the host was about to do; a note that cannot be read is no reason for that.
        print(f"memory-tui: {error.message}", file=sys.stderr)  # noqa: T201
        return 1
    if isinstance(answer, str):
        as_text.text([answer])
    elif answer:
        as_text.data(answer)
    return 0


def _answered(given: argparse.Namespace, happened: HookCall) -> dict[str, object] | str:
    """What the host is told: a record, or text for the prompt of its summariser."""
    from memory_tui.hosts import claude_code
    from memory_tui.openclaw import prompt as prompts
    from memory_tui.recalls import recalled_lines

    if not Path(given.workspace).is_dir():
        # A project of which nothing is remembered yet.
        return claude_code.context(prompts.recall_section("auto")) if happened.name == "SessionStart" else {}
    with opened(given) as engine:
        if happened.name == "SessionStart":
            mode = recalled_lines.mode_of(engine.plan.config.value("memory.citations"))
            fresh = tuple(note for note in _opening(engine, given, private=True) if note.day is not None)
            return claude_code.context("\n".join(filter(None, (_section(engine.plan, mode), prompts.shown(fresh)))))
        if happened.name == "PreCompact":
            file = prompts.daily(_now(engine.plan, given).date())
            written = (engine.plan.roots.workspace / file).exists()
            answer = claude_code.reminder if given.name == "codex" else claude_code.kept_in_summary
            return answer(file, written)
        if happened.transcript is not None:
            _saved(engine, given, happened.transcript, happened.session, happened.why)
    return {}


RUN_HOOKS: dict[str, Run] = {"prompt": _prompt, "flush": _flush, "hook": _hook}
