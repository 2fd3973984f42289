"""What a host calls around a session: its hooks, what an agent reads first, and the server for its questions.

A host waits for each of them: none imports the index, or what changes notes, before it needs that. The memory is opened
by the server, behind its first answer.
"""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.cli.context import curator, curator_of, engine_options, passed_on, planned, user_time
from memory_tui.cli.output import print_json, print_lines, say, show
from memory_tui.config import config_file as configuration
from memory_tui.errors import MemoryTuiError, PathRefused, Unreadable
from memory_tui.hosts import claude_code, wiring
from memory_tui.mcp.server import ServedMemory, ServerOptions, serve
from memory_tui.notes import budget
from memory_tui.notes.changes import Busy, Change, Conflict, FileChange
from memory_tui.openclaw import agent_sessions
from memory_tui.openclaw import prompt as prompts
from memory_tui.workspace.roots import document

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.edit import Curator

# --- prompt --------------------------------------------------------------------------------------------------------


def prompt(args: argparse.Namespace) -> int:
    """Print what an agent reads about its memory, and the notes a session starts with."""
    if args.budget:
        return _budget(args)
    chosen = planned(args)
    citations = args.citations or prompts.mode_of(chosen.config.value("memory.citations"))
    private = prompts.is_direct(args.session)
    if disabled := chosen.config.disabled:
        say(disabled)
    section = "" if disabled else f"{prompts.recall_rule(citations)}\n"
    notes = _opening(chosen, args, private)
    files = [{"path": note.path, "text": note.text, "cut": note.cut} for note in notes]
    data = {"section": section, "citations": citations, "private": private, "disabled": disabled, "files": files}
    return show(args, data, "\n".join(filter(None, (section, prompts.quoted(notes)))).splitlines())


def _opening(chosen: plan.Plan, args: argparse.Namespace, private: bool) -> tuple[prompts.OpeningNote, ...]:
    """Return the notes that a session starts with, as far as the host reads them."""

    def read(path: str) -> str | None:
        """Return the text of a note; None where it is not there or cannot be read."""
        try:
            return document(chosen.roots, path).text
        except (PathRefused, Unreadable):
            return None

    # OpenClaw comes first of the hosts: its limits are those by which these notes are cut.
    host = budget.hosts(chosen.config, chosen.roots.workspace)[0]
    notes = prompts.opening(read, user_time(chosen, args).date(), private=private)
    texts = [budget.in_prompt(note.text, host, Path(note.path).name) for note in notes]
    return tuple(replace(note, text=text, cut=text != note.text) for note, text in zip(notes, texts, strict=True))


def _budget(args: argparse.Namespace) -> int:
    """Tell how much of MEMORY.md its hosts read, and where they cut."""
    notes = curator_of(args, looks=True)
    name, hosts = notes.plan.memory(), notes.plan.budget()
    data = {"path": name, "hosts": [{**to_builtins(share), "sentence": share.sentence} for share in hosts]}
    lines = [f"{name}: {hosts[0].lines:,} lines, about {hosts[0].tokens:,} tokens"]
    lines += [f"{share.sentence} The limit is of {share.host.origin}." for share in hosts]
    return show(args, data, lines)


# --- hook ----------------------------------------------------------------------------------------------------------

_MESSAGES = "hooks.internal.entries.session-memory.messages"
"""The key of the configuration that says how many messages a session note holds."""


def write_note(curator: Curator, path: str, before: bytes | None, after: bytes) -> bool:
    """Change a session note from `before` (None: it is new) to `after`; False where it could not be changed.

    That is where it holds another text by now, or somebody has it open. Raises Busy for a new note.
    """
    title = f"{'Write' if before is None else 'Go on with'} the session note {path}"
    try:
        curator.apply(Change("session", title, (FileChange(path, before, after),)), merging=False)
    except Conflict as error:
        # The session gets another note, so that nothing waits for a decision.
        if error.draft:
            curator.forget_draft(error.draft)
        return False
    except Busy:
        if before is None:
            raise
        return False
    return True


def hook(args: argparse.Namespace) -> int:
    """Answer a hook of Claude Code, or of Codex, which calls hooks in the same way."""
    try:
        call = claude_code.event(sys.stdin.read())
        if args.workspace is None:
            args.workspace = str(claude_code.workspace(Path(call.cwd)))
        answer = _answer(args, call)
    except MemoryTuiError as error:
        # Exit code 2 would stop what the host was about to do; a note that cannot be read is no reason for that.
        say(error.message)
        return 1
    if isinstance(answer, str):
        print_lines([answer])
    elif answer:
        print_json(answer)
    return 0


def _answer(args: argparse.Namespace, call: claude_code.HookCall) -> dict[str, object] | str:
    """Return what the host is told at an event: a record of JSON, or text for the prompt of its summariser.

    An empty record tells nothing. At the end of a session its note is saved. Raises MemoryTuiError.
    """
    if not Path(args.workspace).is_dir():
        # A project of which nothing is remembered yet.
        return {}
    chosen = planned(args)
    if call.name == "SessionStart":
        # The rule of recall comes from the server, which alone has the tools that it names.
        logs = prompts.quoted([note for note in _opening(chosen, args, private=True) if note.day is not None])
        return claude_code.context(logs) if logs else {}
    if call.name == "PreCompact":
        log = prompts.daily(user_time(chosen, args).date())
        remind = claude_code.reminder if args.name == "codex" else claude_code.kept_in_summary
        return remind(log, (chosen.roots.workspace / log).exists())
    if call.transcript is None:
        return {}
    if chosen.options.read_only:
        raise MemoryTuiError("The workspace is read-only here.", "Leave --read-only out.")
    messages = agent_sessions.messages(call.transcript, chosen.config.whole(_MESSAGES))
    if content := agent_sessions.conversation(messages):
        ended = agent_sessions.EndedSession(user_time(chosen, args), call.session, call.why)
        agent_sessions.save(chosen.roots.workspace, ended, content, functools.partial(write_note, curator(chosen)))
    return {}


# --- mcp --------------------------------------------------------------------------------------------------------------


def mcp(args: argparse.Namespace) -> int:
    """Serve until standard input ends, or print the entry of a client."""
    if args.print_config:
        program, *words = wiring.command()
        entry = {"type": "stdio", "command": program, "args": [*words, "mcp", *passed_on(args)]}
        print_json({"mcpServers": {wiring.SERVER: entry}})
        return 0
    if sys.stdin.isatty():
        say("an agent starts this and speaks MCP to it; memory-tui connect writes its entry. Ctrl+C ends it.")
    try:
        choices = plan.choose(engine_options(args))
    except MemoryTuiError:
        # What is wrong, the answer to the first question tells.
        choices = None
    server = ServerOptions(
        citations=args.citations,
        session_key=args.session_key,
        max_injected_chars=args.max_chars,
        # Without the switch the configuration decides.
        log=args.log_recalls or None,
        entries=choices is not None and choices.recalls_entries,
        allow_write=args.allow_write and not args.read_only,
        disabled=choices.config.disabled if choices is not None else "",
        shared=choices is not None and bool(configuration.own(choices.config).value("shared.url")),
    )

    def engine() -> Engine:
        """Open the memory, when the server first needs it."""
        # Imported while the server already answers.
        from memory_tui.engine.engine import Engine

        return Engine.open(engine_options(args))

    serve(ServedMemory(engine, server))
    return 0
