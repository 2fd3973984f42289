"""What every command shares: options for the engine, the plan, the engine, and the consent of a person."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.cli.commands import COMMANDS
from memory_tui.cli.output import Progress, say, tell
from memory_tui.errors import ApprovalMissing, SettingError
from memory_tui.hosts import claude_code, codex, wiring
from memory_tui.notices import without_effect
from memory_tui.plan import Options, Plan
from memory_tui.sanitize import one_line

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

_NOTIFYING = ("search", "status", "index")
"""Commands whose answer holds every notice of the engine."""
_CHANGES = {
    "profile": "profile",
    "max_results": "query.maxResults",
    "max_characters": "query.maxCharacters",
    "min_score": "query.minScore",
}
"""Options that set one setting."""
_PASSED_ON = ("citations", "session_key", "max_chars")
_SWITCHES = ("read_only", "log_recalls", "allow_write", "no_prompts", "no_resources")


def confirmed(question: str, args: argparse.Namespace) -> bool:
    """Return whether a person says yes: by `--yes`, or when asked; without a terminal to ask on it is no."""
    if args.yes:
        return True
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def answered(question: str, usual: str) -> str:
    """Return what a person on a terminal answers; `usual` for an empty line."""
    sys.stderr.write(f"{question} [{usual}]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or usual


def require_yes(does: str, command: str, args: argparse.Namespace) -> None:
    """Ask a person whether that may be done which the sentence `does` says. Raises ApprovalMissing unless it may."""
    if not confirmed(f"{does} Approve?", args):
        raise ApprovalMissing(f"Nothing was approved. What was asked for: {does}", f"To approve it: {command}.")


def workspace_named(args: argparse.Namespace) -> str | None:
    """Return the workspace that is named, as `--workspace` or as the path of the app. Raises SettingError."""
    path: str | None = args.path if args.command in ("open", "serve") else None
    if path is not None and args.workspace is not None:
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    return path or args.workspace


def options(args: argparse.Namespace) -> Options:
    """Return the options of the engine that `args` ask for. Raises SettingError."""
    changes = []
    for item in args.set:
        key, equals, setting = item.partition("=")
        if not equals:
            raise SettingError(f"--set takes KEY=VALUE, not {item!r}.", "For instance --set query.minScore=0.2.")
        changes.append((key, setting))
    for name, key in _CHANGES.items():
        if (number := getattr(args, name, None)) is not None:
            changes.append((key, str(number)))
    workspace, extra = _with_hosts(args, workspace_named(args))
    return Options(
        workspace=workspace,
        extra=extra,
        config=args.config,
        index=args.index,
        provider=args.provider,
        read_only=args.read_only,
        now=moment(args),
        changes=tuple(changes),
        agent=args.agent,
        projects=tuple(args.active_project),
        backend=args.backend,
        qmd_home=args.qmd_home,
        memories=args.memories,
        once=args.command == "search" and not args.stdin and not args.source,
        answers=COMMANDS[args.command].answers,
    )


def names_a_memory(args: argparse.Namespace) -> bool:
    """Return whether the command line says whose memory is meant."""
    return args.workspace is not None or args.config is not None or bool(args.agent)


def passed_on(args: argparse.Namespace) -> list[str]:
    """Return the options as words for another command line, with whole paths; the workspace is named in any case."""
    chosen = options(args)
    if not names_a_memory(args):
        chosen = replace(chosen, workspace=str(plans.plan(chosen).workspace))
    words = wiring.words_of(chosen)
    for name in _PASSED_ON:
        if setting := getattr(args, name, None):
            words += [f"--{name.replace('_', '-')}", str(setting)]
    return words + [f"--{name.replace('_', '-')}" for name in _SWITCHES if getattr(args, name, False)]


def _with_hosts(args: argparse.Namespace, workspace: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the workspace and the extra paths, with what Claude Code and Codex remember where that is asked for."""
    extra = tuple(args.extra)
    if args.claude_code:
        project = Path(workspace).expanduser() if workspace else Path.cwd()
        memory = claude_code.auto_memory(project)
        if not memory.is_dir():
            raise SettingError(
                f"Claude Code remembers nothing of {project}: there is no {memory}.",
                "Run memory-tui in the folder of a project that it knows, or leave --claude-code out.",
            )
        notes = claude_code.workspace(project)
        workspace, extra = str(notes) if workspace is None or notes == memory else workspace, (*extra, str(memory))
    if args.codex:
        memory = codex.folder()
        if not memory.is_dir():
            raise SettingError(
                f"Codex remembers nothing yet: there is no {memory}.",
                "Switch its memories on first, or leave --codex out.",
            )
        here = any((Path.cwd() / sign).exists() for sign in ("MEMORY.md", "memory.md", "memory"))
        if workspace is None and not here and not names_a_memory(args):
            workspace = str(memory)
        return workspace, (*extra, str(memory))
    if workspace is not None and Path(workspace).name == "memories" and codex.is_memory(Path(workspace)):
        extra = (*extra, str(codex.folder()))
    return workspace, extra


def moment(args: argparse.Namespace) -> float | None:
    """Return `--now` in epoch seconds, None without it. Raises SettingError."""
    if args.now is None:
        return None
    try:
        at = dt.datetime.fromisoformat(args.now)
    except ValueError:
        raise SettingError(
            f"--now takes an ISO date and time, not {args.now!r}.", "For instance 2026-11-20T12:00:00Z."
        ) from None
    return at.replace(tzinfo=at.tzinfo or dt.UTC).timestamp()


def planned(args: argparse.Namespace) -> Plan:
    """Return what the command works with; warn where `--extra` names nothing and where `--set` has no effect.

    Raises MemoryTuiError.
    """
    plan = plans.plan(options(args))
    if plan.chosen and args.command not in _NOTIFYING:
        for ignored in without_effect(plan.chosen, plan.settings):
            tell(ignored)
    for named in args.extra:
        place = plan.roots.workspace / os.path.expanduser(named)  # noqa: PTH111 - an unknown user is no error
        if not place.exists():
            say(f"--extra {one_line(named)}: there is nothing at {one_line(str(place))}.")
    return plan


def opened(args: argparse.Namespace, plan: Plan | None = None) -> Engine:
    """Return an engine for the command, of what was `planned` for it. Raises MemoryTuiError."""
    # What answers without an engine starts in half the time.
    from memory_tui.engine.engine import Engine

    return Engine(plan or planned(args), Progress(each_file=getattr(args, "verbose", False)))


def user_time(choices: Plan, args: argparse.Namespace) -> dt.datetime:
    """Return the time, in the time zone of the user."""
    at, zone = moment(args), choices.config.time_zone
    now = dt.datetime.now(zone) if at is None else dt.datetime.fromtimestamp(at, dt.UTC)
    return now.astimezone(zone)
