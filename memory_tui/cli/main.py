"""The entry of the command line: which command, its arguments, what becomes of an error or a signal, and the app.

The first frame, and `--version`, wait for what is imported here.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memory_tui.cancel import Stopped, exit_status, report_signal, signals_raised
from memory_tui.cli.commands import COMMANDS, command_and_words, command_parser, main_parser
from memory_tui.errors import MemoryTuiError, SettingError, WorkspaceError
from memory_tui.formatting import one_line

if TYPE_CHECKING:
    from memory_tui.plan import Options

_NO_ROOM = "(?i)failed to map segment|cannot allocate memory|can.t start new thread"
"""What the loader of a module, and the start of a thread, say when there is no memory for it."""
_TAKES_TEXT = ("search", "why", "openclaw inject", "remember")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if arguments is None:
        _share_one_heap()
        arguments = sys.argv[1:]
    _speak_utf8()
    words = list(arguments)
    try:
        with signals_raised():
            args = parse(words)
            command = COMMANDS[args.command].load()
            # The start switches the collector off: what is imported by now lives as long as the process.
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            code = command(args)
            # A reader that is gone is met here, where the interpreter does not complain of it.
            if not sys.stdout.closed:
                sys.stdout.flush()
            return code
    except Stopped as stopped:
        if sys.stderr.isatty():
            # The line of progress, or what the terminal shows for ctrl+c, ends here.
            sys.stderr.write("\n")
        report_signal(stopped.number, stopped.more)
        return exit_status(stopped.number)
    except BrokenPipeError:
        # Whoever read the answer has seen enough.
        _drop_output()
        return 0
    except (MemoryTuiError, RuntimeError, MemoryError, ImportError, OSError) as error:
        failure = _as_error(error)
        if failure is None:
            raise
        return _fail(failure, as_json="--json" in words)


def parse(words: list[str]) -> argparse.Namespace:
    """Return the arguments that `words` give, the command as `command`. Raises SettingError."""
    name, rest = command_and_words(words)
    if not name:
        return main_parser().parse_args(rest)
    hint = ""
    # A text such as "-verbose fails" is taken for an option: the error says how to write it.
    if name in _TAKES_TEXT and "--" not in rest:
        dashed = [word for word in rest if re.match(r"-[^\W\d_]{2}", word)]
        hint = f"Write -- before a text that begins with -: memory-tui {name} -- {dashed[0]}. " if dashed else ""
    parser = command_parser(name)
    try:
        args, unknown = parser.parse_known_args(rest)
    except SettingError as error:
        raise SettingError(error.message, hint + error.next_step) from None
    if unknown:
        extra = " ".join(unknown)
        if name == "search" and not any(word.startswith("-") for word in unknown):
            hint = f'Put the query in quotes: memory-tui search "{args.query} {extra}". '
        raise SettingError(f"Unrecognized arguments: {extra}.", f"{hint}{parser.prog} --help shows what it takes.")
    return args


def _as_error(error: BaseException) -> MemoryTuiError | None:
    """Return an error as a person is told it; None for one that is a fault of the program."""
    if isinstance(error, MemoryTuiError):
        return error
    if isinstance(error, OSError) and _is_of_output(error):
        _drop_output()
        why = (error.strerror or str(error)).lower()
        return MemoryTuiError(f"Standard output cannot be written: {why}.", "Send it to a place that has room.")
    if str(error) == "Could not determine home directory.":
        step = "Write the whole path, or ./ before the name of a folder that begins with ~."
        return SettingError("A path begins with ~ and a name that no user of this machine has.", step)
    if isinstance(error, MemoryError) or re.search(_NO_ROOM, str(error)):
        step = "Close other programs, or raise the limit of memory; the next start repairs what was cut off."
        return MemoryTuiError("Not enough memory (RAM).", step)
    return None


def _is_of_output(error: OSError) -> bool:
    """Return whether standard output refused a write: the modules of the command line write nothing else themselves."""
    # The innermost frame is where the error was raised; an error about a file has its name.
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return error.filename is None and str(frame.f_globals["__name__"]).startswith("memory_tui.cli.")


def _drop_output() -> None:
    """Have what is left of the output go nowhere when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _share_one_heap() -> None:
    """Have all threads use one heap of glibc: memory that a thread frees in a heap of its own helps no other thread."""
    with suppress(AttributeError, TypeError):
        # M_ARENA_MAX of malloc.h; musl, macOS and Windows have no mallopt.
        ctypes.CDLL(None).mallopt(-8, 1)


def _speak_utf8() -> None:
    """Print UTF-8 whatever the locale says; a character that is not becomes a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(encoding="utf-8", errors="replace")


def _fail(error: MemoryTuiError, *, as_json: bool) -> int:
    """Tell an error on standard error, and with `--json` on standard output, too; return the exit code."""
    if as_json:
        # Errors of the command line itself come before any output, and --version needs none.
        from memory_tui.cli.output import print_json

        print_json({"error": error.as_dict()})
    next_step = f"  {one_line(error.next_step)}\n" if error.next_step else ""
    sys.stderr.write(f"memory-tui: {one_line(error.message)}\n{next_step}")
    return error.exit_status


# --- the app ----------------------------------------------------------------------------------------------------------


def open_app(args: argparse.Namespace) -> int:
    """Open the app on a workspace."""

    def options() -> Options:
        """Return the options of the engine, when the app needs them."""
        # The thread that opens the engine imports this, when the first frame is there.
        from memory_tui.cli.context import engine_options

        return engine_options(args)

    return show_app(options, args.path or args.workspace or "", args.query or "")


def show_app(
    options: Callable[[], Options], folder: str, query: str, suggestions: Sequence[str] = (), *, demo: bool = False
) -> int:
    """Show the app in this terminal; return the exit code. Raises what opening it raises.

    `options` are called where the workspace is looked for. Where the command line named an existing `folder`, the app
    does that behind its first frame. Else it is done here, because a person may have to be asked for a folder.
    """
    # Textual is heavy, and no other command needs it.
    from memory_tui.tui.run import is_served, run

    # The screen is drawn on stderr.
    has_terminal = is_served() or all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    is_dumb = os.environ.get("TERM") == "dumb"
    is_there = bool(folder) and os.path.isdir(os.path.expanduser(folder))  # noqa: PTH111, PTH112 - no pathlib
    chosen = None
    if not has_terminal or not is_there:
        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        chosen = _with_workspace(options(), asks=has_terminal and not is_dumb and not is_served())
    if not has_terminal or is_dumb:
        message = "The app needs a terminal, and this is not one."
        if has_terminal:
            message = "This terminal cannot show the app: TERM is dumb."
        raise SettingError(message, "Use a command such as memory-tui search; memory-tui --help lists them.")
    return run(lambda: chosen or options(), query, suggestions, demo=demo)


def _with_workspace(options: Options, *, asks: bool) -> Options:
    """Return `options` where they lead to a workspace. Raises WorkspaceError where they do not.

    With `asks`, a person whose command line names no memory is asked to choose one before that.
    """
    from msgspec.structs import replace

    from memory_tui import plan

    try:
        plan.plan(options)
    except WorkspaceError:
        if not asks or options.workspace or options.agent or options.config:
            raise
        from memory_tui.tui.machine import choose_memory

        if (folder := choose_memory()) is None:
            raise
        return replace(options, workspace=str(folder))
    return options
