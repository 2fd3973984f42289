"""What every command shares: options for the engine, the plan, the engine, and the consent of a person."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.cli.commands import COMMANDS
from memory_tui.cli.output import Progress, print_lines, say
from memory_tui.config.settings import by_option
from memory_tui.errors import ApprovalMissing, ConfigError, EditRefused, SettingError
from memory_tui.formatting import plural
from memory_tui.hosts import claude_code, codex, wiring
from memory_tui.sentences import without_effect

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.notes.edit import Curator

_NOTIFYING = ("search", "status", "index")
"""Commands whose answer holds every notice of the engine."""
_CHANGES = {"--profile": "profile", "--max-results": "query.maxResults"}
_CHANGES |= {"--max-characters": "query.maxCharacters", "--min-score": "query.minScore"}
"""Options that set one setting."""
_SAME_NAMED = ("config", "index", "provider", "read_only", "agent", "backend", "qmd_home", "memories")
"""Options of the engine that are called as on the command line."""
_PASSED_ON = ("citations", "session_key", "max_chars")
"""Options with a value that are passed on to a server, beside those that name the memory."""
_SWITCHES = ("read_only", "log_recalls", "allow_write")
"""Options without a value that are passed on, too."""


# --- consent -------------------------------------------------------------------------------------------------------


def confirmed(question: str, args: argparse.Namespace) -> bool:
    """Return whether a person says yes: by `--yes`, or when asked; without a terminal to ask on it is no."""
    if getattr(args, "yes", False):
        return True
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def agreed(args: argparse.Namespace, lines: Iterable[str], question: str) -> bool:
    """Show what would be written, unless in JSON; return whether it is to be: not with `--dry-run`, nor without a yes.

    An empty `question` asks nothing and means no.
    """
    print_lines(() if args.json else lines)
    return bool(question) and not getattr(args, "dry_run", False) and confirmed(question, args)


def require_written(done: object) -> None:
    """Raise ConfigError where nobody agreed, so that nothing was written."""
    if not done:
        raise ConfigError("Nothing was written.", "Use --yes to write without a question.")


def require_yes(does: str, command: str, args: argparse.Namespace) -> None:
    """Ask a person whether that may be done which the sentence `does` says. Raises ApprovalMissing unless it may."""
    if not confirmed(f"{does} Approve?", args):
        raise ApprovalMissing(f"Nothing was approved. What was asked for: {does}", f"To approve it: {command}.")


# --- options -------------------------------------------------------------------------------------------------------


def engine_options(args: argparse.Namespace) -> plans.Options:
    """Return the options of the engine that `args` ask for. Raises SettingError."""
    changes = []
    for item in args.set:
        key, equals, setting = item.partition("=")
        if not equals:
            raise SettingError(f"--set takes KEY=VALUE, not {item!r}.", "For instance --set query.minScore=0.2.")
        changes.append((key, setting))
    for option, setting_key in _CHANGES.items():
        value = getattr(args, option.removeprefix("--").replace("-", "_"), None)
        # By the name of the option, so that an error names that and not the setting.
        changes += [by_option(option, setting_key, value)] if value is not None else []
    path: str | None = args.path if args.command in ("open", "serve") else None
    if path is not None and args.workspace is not None:
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    workspace, extra = _with_hosts(args, path or args.workspace)
    same_named = {name: getattr(args, name) for name in _SAME_NAMED}
    folder = Path(workspace or "").expanduser().absolute().parent
    if folder.name.startswith(wiring.SAMPLE) and (folder / "config.json").is_file() and not args.config:
        # A demo, or what a killed one has left: with its configuration come its saved questions.
        index = args.index or str(folder / "index.sqlite")
        same_named |= {"config": str(folder / "config.json"), "index": index, "sample": True}
    return plans.Options(
        **same_named,
        workspace=workspace,
        extra=extra,
        now=moment(args),
        changes=tuple(changes),
        projects=tuple(args.active_project),
        once=args.command == "search" and not args.stdin and not args.source,
        answers=COMMANDS[args.command].answers,
    )


def names_a_memory(args: argparse.Namespace) -> bool:
    """Return whether the command line says whose memory is meant."""
    return args.workspace is not None or args.config is not None or bool(args.agent)


def passed_on(args: argparse.Namespace) -> list[str]:
    """Return the options as words for another command line, with whole paths; the workspace is named in any case."""
    options = engine_options(args)
    if not names_a_memory(args):
        options = replace(options, workspace=str(plans.plan(options).workspace))
    words = wiring.words_of(options)
    for name in _PASSED_ON:
        if setting := getattr(args, name, None):
            words += [f"--{name.replace('_', '-')}", str(setting)]
    return words + [f"--{name.replace('_', '-')}" for name in _SWITCHES if getattr(args, name, False)]


def _with_hosts(args: argparse.Namespace, workspace: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the workspace and the extra paths, with what Claude Code and Codex remember where that is asked for.

    Where nothing else names or has notes, such a memory becomes the workspace. Raises SettingError where there is none.
    """
    extra = list(args.extra)
    if args.claude_code:
        project = Path(workspace).expanduser() if workspace else Path.cwd()
        memory = claude_code.auto_memory(project)
        _require_memory("Claude Code", f"anything of {project}", memory)
        extra.append(str(memory))
        notes = claude_code.workspace(project)
        # A project without notes of its own has its memory for a workspace.
        workspace = str(notes) if workspace is None or notes == memory else workspace
    if args.codex or (workspace is not None and codex.is_memory(Path(workspace))):
        memory = codex.memory()
        _require_memory("Codex", "anything", memory)
        extra.append(str(memory))
        if workspace is None and plans.here() is None and not names_a_memory(args):
            workspace = str(memory)
    return workspace, tuple(extra)


def _require_memory(title: str, subject: str, memory: Path) -> None:
    """Raise SettingError where `memory`, which the program called `title` keeps of a `subject`, is not there."""
    if not memory.is_dir():
        option = f"--{title.lower().replace(' ', '-')}"
        raise SettingError(f"{title} does not remember {subject} yet: there is no {memory}.", f"Leave {option} out.")


def moment(args: argparse.Namespace) -> float | None:
    """Return `--now` in epoch seconds, None without it. Raises SettingError."""
    if args.now is None:
        return None
    try:
        at = dt.datetime.fromisoformat(args.now)
    except ValueError:
        next_step = "For instance 2026-11-20T12:00:00Z."
        raise SettingError(f"--now takes an ISO date and time, not {args.now!r}.", next_step) from None
    return at.replace(tzinfo=at.tzinfo or dt.UTC).timestamp()


def user_time(choices: plans.Plan, args: argparse.Namespace) -> dt.datetime:
    """Return the time, in the time zone of the user."""
    at, zone = moment(args), choices.config.time_zone
    now = dt.datetime.now(zone) if at is None else dt.datetime.fromtimestamp(at, dt.UTC)
    return now.astimezone(zone)


# --- the engine ----------------------------------------------------------------------------------------------------


def planned(args: argparse.Namespace) -> plans.Plan:
    """Return the plan of the command; warn where `--extra` names nothing and where `--set` has no effect.

    Raises MemoryTuiError.
    """
    plan = plans.plan(engine_options(args))
    # Whether all notes of a folder without MEMORY.md and memory/ are read: by --whole, else by a person who is asked.
    if args.whole:
        plans.answer_whole(plan, agreed=args.whole == "yes")
        plan = plans.plan(engine_options(args))
    elif note_count := plans.unasked(plan):
        plan = _with_vault(args, plan, note_count)
    if plan.chosen and args.command not in _NOTIFYING:
        for ignored in without_effect(plan.chosen, plan.settings):
            say(ignored.sentence)
    for extra in args.extra:
        path = plan.roots.workspace / os.path.expanduser(extra)  # noqa: PTH111 - an unknown user is no error
        if not path.exists():
            say(f"--extra {extra}: there is nothing at {path}.")
    return plan


def _with_vault(args: argparse.Namespace, plan: plans.Plan, note_count: int) -> plans.Plan:
    """Ask once whether the notes of a folder without MEMORY.md and memory/ are to be indexed.

    Returns the plan by the answer, which is kept; without a terminal to ask on the `plan` stays as it is.
    """
    fact = f"{plan.roots.workspace} has no MEMORY.md and no memory/, but {plural(note_count, 'note')}"
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        say(f"{fact}, and none is indexed. memory-tui index --whole yes indexes them.")
        return plan
    plans.answer_whole(plan, agreed=confirmed(f"{fact}. Index them? Nothing is written into them.", args))
    return plans.plan(engine_options(args))


def opened(args: argparse.Namespace, plan: plans.Plan | None = None) -> Engine:
    """Return an engine for the command, of what was `planned` for it. Raises MemoryTuiError."""
    # What answers without an engine starts in half the time: this import is part of the command's.
    from memory_tui.engine.engine import Engine

    return Engine(plan or planned(args), Progress(each_file=getattr(args, "verbose", False)))


def curator(plan: plans.Plan) -> Curator:
    """Return who changes the notes of `plan`."""
    # An agent waits for the start of a server, and for most hooks, which change no note.
    from memory_tui.notes import edit

    return edit.curator(plan)


def curator_of(args: argparse.Namespace, *, looks: bool = False) -> Curator:
    """Return the curator of the workspace that `args` name, after unfinished changes were `settled`."""
    return settled(curator(plans.plan(engine_options(args))), args, looks=looks)


def settled(notes: Curator, args: argparse.Namespace, *, looks: bool) -> Curator:
    """Finish or take back what an earlier process left half done, say so, and return the curator `notes`.

    Raises EditRefused where that cannot be, unless the command only `looks` at notes.
    """
    try:
        entries = notes.recover()
    except EditRefused:
        if not looks:
            raise
        entries = ()
    if not args.json:
        print_lines(f"{entry.title}: {entry.reason}." for entry in entries)
    return notes
