"""Commands that a host calls around a session: prompt, flush, hook."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from memory_tui.cli.common import Command, moment, opened, options, passed_on, positive
from memory_tui.core.errors import MemoryTuiError, PathRefused, SettingError, Unreadable

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.hosts.claude_code import HookCall
    from memory_tui.notes.budget import HostLimit
    from memory_tui.notes.curator import Curator
    from memory_tui.openclaw import flush
    from memory_tui.openclaw.prompt import OpeningNote
    from memory_tui.openclaw.sessions import SessionFacts
    from memory_tui.plan import Choices


def _declare_prompt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode", choices=["full", "minimal"], default="full", help="minimal is for sub-agents: no section, no notes"
    )
    parser.add_argument("--citations", choices=["auto", "on", "off"], help="default: as configured")
    parser.add_argument("--session", metavar="KEY", help="session key; MEMORY.md is for direct chats only")
    parser.add_argument("--no-files", action="store_true", help="only the section")


def _declare_flush(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help="session id (default: the name of the transcript)")
    parser.add_argument("--transcript", metavar="FILE", help="its transcript, JSON Lines")
    parser.add_argument("--tokens", type=positive, metavar="N", help="tokens of the session as the host counts them")
    parser.add_argument("--next-tokens", type=positive, metavar="N", help="estimate of the coming message")
    parser.add_argument("--context-window", type=positive, metavar="N", help="default: as configured, else 200000")
    parser.add_argument("--model", metavar="PROVIDER/ID", help="a model whose window the configuration knows")
    parser.add_argument("--compactions", type=int, metavar="N", help="how often it was compacted")
    parser.add_argument("--heartbeat", action="store_true", help="it is a heartbeat run")
    parser.add_argument("--cli-provider", action="store_true", help="the provider manages its own context")
    parser.add_argument("--sandboxed", action="store_true", help="the workspace cannot be written")
    parser.add_argument("--done", action="store_true", help="remember that it was flushed in this cycle")


def _declare_hook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=["session-memory", "claude-code", "codex", "recall", "capture"])
    parser.add_argument("--transcript", metavar="FILE", help="session-memory: the conversation")
    parser.add_argument("--session", metavar="ID", help="session-memory: session id")
    parser.add_argument("--key", metavar="KEY", help="session-memory: session key")
    parser.add_argument("--reason", metavar="TEXT", help="session-memory: what ended it, such as /new")
    parser.add_argument("--messages", type=positive, metavar="N", help="how many messages (default: as configured)")
    parser.add_argument(
        "--settings",
        action="store_true",
        help="print the hook entries for Claude Code's settings.json or Codex's hooks.json",
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
        as_text.print_json(
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
        as_text.print_lines("\n".join(filter(None, (section, prompts.shown(notes)))).splitlines())
    return 0


def _opening(engine: Engine, given: argparse.Namespace, private: bool) -> tuple[OpeningNote, ...]:
    from msgspec.structs import replace

    from memory_tui.notes import budget
    from memory_tui.openclaw.prompt import opening

    def read(path: str) -> str | None:
        try:
            return engine.notes.read(path).text
        except (PathRefused, Unreadable):
            return None

    host = budget.hosts(engine.plan.config, engine.plan.roots.workspace)[0]
    found = opening(read, _now(engine.plan, given).date(), private=private)
    return tuple(replace(note, text=text, cut=text != note.text) for note in found for text in [_kept(note, host)])


def _kept(note: OpeningNote, host: HostLimit) -> str:
    from memory_tui.notes import budget

    return budget.in_prompt(note.text, host, Path(note.path).name)


def _section(choices: Choices, mode: str, *, minimal: bool = False) -> str:
    """The recall rule; empty where the configuration gives the agent no memory search, which is said on stderr."""
    from memory_tui.openclaw.prompt import recall_section

    if choices.config.disabled:
        sys.stderr.write(f"memory-tui: {choices.config.disabled}\n")
        return ""
    return recall_section(mode, minimal=minimal)


def _now(choices: Choices, given: argparse.Namespace) -> dt.datetime:
    """The time, in the time zone of the user."""
    at = moment(given)
    zone = choices.config.time_zone
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
            as_text.print_json({"session": session, "done": True})
        return 0
    rules = sessions.rules_of(choices.config)
    window = getattr(given, "context_window", 0) or sessions.window_of(choices.config, getattr(given, "model", ""))
    asked = _session(given, kept, transcript, flush.threshold(window, rules))
    may_write = not hasattr(given, "sandboxed") and sessions.writable(choices.config, session)
    run = flush.AgentRun(hasattr(given, "heartbeat"), hasattr(given, "cli_provider"), may_write)
    decision = flush.decide(rules, asked, run, window)
    turn = _turn(rules, choices, given) if decision.flush else None
    if hasattr(given, "json"):
        as_text.print_json({"session": session, **to_builtins(decision), "turn": to_builtins(turn) if turn else None})
    else:
        as_text.print_lines([f"{'Flush' if decision.flush else 'No flush'}: {decision.detail}."])
        as_text.print_lines(["", turn.prompt, "", turn.system_prompt] if turn else ())
    return 0


def _session(given: argparse.Namespace, kept: SessionFacts, transcript: Path | None, limit: int) -> flush.Session:
    from msgspec.structs import replace

    from memory_tui.openclaw import sessions

    if hasattr(given, "compactions"):
        kept = replace(kept, compactions=given.compactions)
    if hasattr(given, "tokens"):
        kept = replace(kept, tokens=given.tokens, fresh=True)
    coming = getattr(given, "next_tokens", 0)
    if transcript is not None:
        return sessions.session_of(transcript, kept, limit, coming)
    return sessions.known_of(kept, coming)


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
        as_text.print_json(
            [
                {
                    "session": one.session,
                    "transcript": str(one.transcript),
                    **to_builtins(one.decision),
                    "flushedAt": one.flushed_at,
                }
                for one in found
            ]
        )
        return 0
    as_text.print_lines(
        [f"{one.session}: {'flush now' if one.decision.flush else 'no flush'}: {one.decision.detail}." for one in found]
        or [f"No sessions in {sessions.folder(choices.agent)}; name one with --transcript."]
    )
    return 0


# --- hooks ---------------------------------------------------------------------------------------------------------


def _hook(given: argparse.Namespace) -> int:
    if given.name in ("recall", "capture"):
        from memory_tui.cli import ltm

        return ltm.hook(given)
    return _session_memory(given) if given.name == "session-memory" else _coding_agent(given)


_ENABLED = "hooks.internal.entries.session-memory.enabled"


def _session_memory(given: argparse.Namespace) -> int:
    from memory_tui.openclaw import session_note
    from memory_tui.render import as_text

    if not hasattr(given, "transcript"):
        raise SettingError("Which conversation?", "Name its transcript with --transcript.")
    transcript = Path(given.transcript).expanduser()
    session_note.require(transcript)
    with opened(given) as engine:
        if given.name == "session-memory" and engine.plan.config.value(_ENABLED) is False:
            why = f"{_ENABLED} is false, so no note was written."
            as_text.print_json({"path": None, "slug": why}) if hasattr(given, "json") else as_text.print_lines([why])
            return 0
        path, why = _saved(
            engine, given, transcript, getattr(given, "session", transcript.stem), getattr(given, "reason", "")
        )
    if hasattr(given, "json"):
        as_text.print_json({"path": str(path) if path else None, "slug": why})
    else:
        as_text.print_lines([f"Wrote {path}." if path else "Nothing was said in this session; no note was written."])
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
    # A coding agent calls at each end of a session that goes on later; OpenClaw once, and its notes are as documented.
    workspace = engine.plan.roots.workspace
    if given.name == "session-memory":
        path = session_note.save(workspace, ended, content, found)
    else:
        path = session_note.keep(workspace, ended, content, found, partial(_go_on, engine.notes.curator))
    return path, f"time: {why}" if why else "model"


def _go_on(curator: Curator, path: str, before: bytes, after: bytes) -> bool:
    """Change a session note from `before` to `after`; False where it holds another text, or somebody has it open."""
    from memory_tui.notes.changes import Busy, Change, Conflict, FileChange

    change = Change("session", f"Go on with the session note {path}", (FileChange(path, before, after),))
    try:
        curator.apply(change, merging=False)
    except Conflict as error:
        # The session gets another note, so that nothing waits for a decision.
        if error.draft:
            curator.forget_draft(error.draft)
        return False
    except Busy:
        return False
    return True


def _coding_agent(given: argparse.Namespace) -> int:
    """A hook of Claude Code, or of Codex, which calls hooks in the same way."""
    from memory_tui.hosts import claude_code
    from memory_tui.render import as_text

    if hasattr(given, "settings"):
        from memory_tui.hosts import codex, wiring

        events = codex.EVENTS if given.name == "codex" else claude_code.EVENTS
        entries = wiring.hook_entries(wiring.command(), events, given.name, passed_on(given))
        as_text.print_json({"hooks": {event: [entry] for event, entry in entries.items()}})
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
        as_text.print_lines([answer])
    elif answer:
        as_text.print_json(answer)
    return 0


def _answered(given: argparse.Namespace, happened: HookCall) -> dict[str, object] | str:
    """What the host is told: a record, or text for the prompt of its summariser."""
    from memory_tui.hosts import claude_code
    from memory_tui.openclaw import prompt as prompts

    if not Path(given.workspace).is_dir():
        # A project of which nothing is remembered yet.
        return {}
    with opened(given) as engine:
        if happened.name == "SessionStart":
            # The rule of recall comes from the server, which alone has the tools that it names.
            fresh = prompts.shown([note for note in _opening(engine, given, private=True) if note.day is not None])
            return claude_code.context(fresh) if fresh else {}
        if happened.name == "PreCompact":
            file = prompts.daily(_now(engine.plan, given).date())
            written = (engine.plan.roots.workspace / file).exists()
            answer = claude_code.reminder if given.name == "codex" else claude_code.kept_in_summary
            return answer(file, written)
        if happened.transcript is not None:
            _saved(engine, given, happened.transcript, happened.session, happened.why)
    return {}


COMMANDS: dict[str, Command] = {
    "prompt": Command(_prompt, _declare_prompt),
    "flush": Command(_flush, _declare_flush),
    "hook": Command(_hook, _declare_hook),
}
