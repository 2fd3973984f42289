"""The engine without a screen: text for people, `--json` for programs, and documented exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

from memory_tui import __version__, stop_signals
from memory_tui.cli import agent, app, basic, configure, curate, doctor, hooks, inbox, inquire, manual, provider
from memory_tui.cli.common import Run
from memory_tui.errors import MemoryTuiError, SettingError

_GROUPS = (app, basic, inquire, configure, curate, agent, hooks, doctor, inbox, provider, manual)
_RUN: dict[str, Run] = {name: run for group in _GROUPS for name, run in group.RUN.items()}

EXIT_CODES = """exit codes:
  0  done; an answer without hits is an answer
  1  failed on the way: the index, the provider or the disk
  2  cannot be done as asked: usage, configuration, workspace, path, value or labels
  3  eval: a mean is under its floor, or below the baseline
  130  stopped by ctrl+c; by another signal, 128 and its number"""

_GLOBAL: tuple[tuple[tuple[str, ...], dict[str, object]], ...] = (
    (("--workspace",), {"metavar": "DIR", "help": "folder of the notes (default: this one, or OpenClaw's)"}),
    (("--config",), {"metavar": "FILE", "help": "an openclaw.json, or a configuration of memory-tui's own"}),
    (("--agent",), {"metavar": "ID", "help": "an agent of OpenClaw: its workspace and its own settings"}),
    (("--extra",), {"metavar": "PATH", "action": "append", "help": "one more note or folder of notes; repeatable"}),
    (("--claude-code",), {"action": "store_true", "help": "also what Claude Code remembers of this project"}),
    (("--index",), {"metavar": "FILE", "help": "index file to use (default: in the user's cache folder)"}),
    (("--provider",), {"metavar": "NAME", "help": "builtin (default), none, or one that gets your notes, like openai"}),
    (("--profile",), {"metavar": "NAME", "help": "auto, recommended, openclaw-2026.3 or openclaw-2026.2"}),
    (("--set",), {"metavar": "KEY=VALUE", "action": "append", "help": "change one setting; may be repeated"}),
    (("--now",), {"metavar": "ISO", "help": "the time that ages are counted from (default: now)"}),
    (("--read-only",), {"action": "store_true", "help": "never edit a note (the index is still kept up to date)"}),
    (("--json",), {"action": "store_true", "help": "print JSON"}),
)
_FLAGS = {"--read-only", "--claude-code", "--json", "--version", "--help", "-h"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingError(
            f"{message[:1].upper()}{message[1:].rstrip('.')}.", f"{self.prog} --help shows what it takes."
        )


def build_parser() -> argparse.ArgumentParser:
    """The command line; every global option may stand before or after the command."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    for names, keywords in _GLOBAL:
        shared.add_argument(*names, **keywords)  # type: ignore[arg-type]
    parser = _Parser(
        prog="memory-tui",
        parents=[shared],
        epilog=EXIT_CODES,
        argument_default=argparse.SUPPRESS,
        description="See, search and explain the Markdown memory of an agent.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"memory-tui {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=text, description=text, parents=[shared], argument_default=argparse.SUPPRESS
        )

    for group in _GROUPS:
        group.add(command)
    return parser


def _with_command(arguments: Sequence[str]) -> list[str]:
    """`arguments` with `open` in front when no command is among them, so that a bare path opens the app."""
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            skip = word not in _FLAGS and "=" not in word
        elif word in _RUN:
            return list(arguments)
        else:
            _mistyped(word, _RUN)
            return ["open", *arguments]
    return list(arguments) if {"--version", "--help", "-h"} & set(arguments) else ["open", *arguments]


def _mistyped(word: str, commands: Iterable[str]) -> None:
    """Raises SettingError for a word that is no command, and no path as far as anybody can see."""
    import difflib
    from pathlib import Path

    if Path(word).exists() or word.startswith("~") or set(word) & set("/\\."):
        return
    options = {"help": "--help", "version": "--version"}
    near = difflib.get_close_matches(word.lower(), [*commands, *options], n=1, cutoff=0.7)
    raise SettingError(
        f"There is no command {word!r}, and no such folder.",
        f"Did you mean {options.get(near[0], near[0])}?" if near else "memory-tui --help lists the commands.",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _speak_utf8()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with stop_signals.raised():
            given = build_parser().parse_args(_with_command(words))
            return _RUN[given.command](given)
    except stop_signals.Stopped as stopped:
        if sys.stderr.isatty():
            # The line of progress, or what the terminal shows for ctrl+c, ends here.
            sys.stderr.write("\n")
        stop_signals.say(stopped.number, stopped.more)
        return stop_signals.exit_status(stopped.number)
    except MemoryTuiError as error:
        return _fail(error, as_json="--json" in words)
    except BrokenPipeError:
        # Whoever read the answer has seen enough.
        sys.stderr.close()
        return 0
    except MemoryError:
        return _fail(
            MemoryTuiError(
                "There is not enough memory for this.",
                "Close other programs, or raise the limit of memory; the next start settles what was cut off.",
            ),
            as_json="--json" in words,
        )


def _speak_utf8() -> None:
    """Answers are UTF-8 whatever the locale says; a character that is not becomes a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


def _fail(error: MemoryTuiError, *, as_json: bool) -> int:
    from memory_tui.text.display import one_line

    if as_json:
        from memory_tui.report import dumps

        print(dumps({"error": error.as_dict()}, 2))  # noqa: T201

    print(f"memory-tui: {one_line(error.message)}", file=sys.stderr)  # noqa: T201
    if error.next_step:
        print(f"  {one_line(error.next_step)}", file=sys.stderr)  # noqa: T201
    return error.exit_status
