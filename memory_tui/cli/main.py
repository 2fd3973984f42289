"""The table of commands: one row for each, with the module below that has it."""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from memory_tui import __version__
from memory_tui.cli.common import Command, moment, options, spoken
from memory_tui.core.cancel import Stopped, exit_status, report_signal, signals_raised
from memory_tui.core.errors import MemoryTuiError, SettingError

if TYPE_CHECKING:
    from memory_tui.plan import Options


def _declare_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", help="the workspace")
    parser.add_argument("--query", metavar="TEXT", type=spoken, help="a query to start with")


def _declare_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", metavar="TEXT", type=spoken, help="a query to start with")


def _open(given: argparse.Namespace) -> int:
    if hasattr(given, "path") and hasattr(given, "workspace"):
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    return _run(options(given), getattr(given, "query", ""))


def _demo(given: argparse.Namespace) -> int:
    import datetime as dt
    import os

    from msgspec.structs import replace

    from memory_tui import demo, durable

    if hasattr(given, "workspace") or hasattr(given, "config"):
        raise SettingError("The demo has its own workspace and configuration.", "Leave --workspace and --config out.")
    now = moment(given)
    today = dt.datetime.fromtimestamp(now).date() if now is not None else dt.date.today()
    with demo.own() as folder:
        workspace, config = demo.materialize(folder / demo.WORKSPACE, today, more=True), folder / "config.json"
        durable.create_file(config, b"{}\n")
        facts = demo.surround(folder, workspace, today)
        # The ledger of the demo is read, and nothing of the person's own OpenClaw.
        for name in [name for name in os.environ if name.startswith(("OPENCLAW_", "CLAWDBOT_"))]:
            del os.environ[name]
        os.environ["OPENCLAW_STATE_DIR"] = str(demo.state_folder(folder))
        demo.keep_queries(workspace, config, today)
        demo.keep_recalls(workspace, today)
        chosen = replace(options(given), workspace=str(workspace), config=str(config), sample=True)
        chosen = replace(chosen, extra=(*chosen.extra, str(facts)))
        if chosen.index is None:
            chosen = replace(chosen, index=str(folder / "index.sqlite"))
        return _run(chosen, getattr(given, "query", ""), demo.SUGGESTED, leads=True)


def _run(chosen: Options, query: str, suggestions: Sequence[str] = (), *, leads: bool = False) -> int:
    from pathlib import Path

    from memory_tui.tui import signals

    # The screen is drawn on stderr.
    terminal = signals.is_served() or (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty())
    if not terminal or (chosen.workspace and not Path(chosen.workspace).expanduser().is_dir()):
        from memory_tui import plan

        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        plan.plan(chosen)
    if not terminal:
        raise SettingError(
            "The app needs a terminal, and this is not one.",
            "Use a command such as memory-tui search; memory-tui --help lists them.",
        )
    if os.environ.get("TERM") == "dumb":
        raise SettingError(
            "This terminal cannot show the app: TERM is dumb.",
            "Use a command such as memory-tui search, or another terminal.",
        )
    from memory_tui.config import places
    from memory_tui.tui import key_meanings

    doubt = key_meanings.load_keys(places.own_path().with_name("keys.toml"))
    from memory_tui.tui.app import run

    return run(chosen, query, suggestions, leads=leads, doubt=doubt)


def _declare_help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", metavar="TOPIC")


def _help(given: argparse.Namespace) -> int:
    from memory_tui import manual

    topic = getattr(given, "topic", None)
    if topic:
        body = manual.text(topic)
        if hasattr(given, "json"):
            from memory_tui.render import as_text

            as_text.print_json({"topic": topic, "text": body})
        else:
            sys.stdout.write(body)
        return 0
    pages = manual.topics()
    if hasattr(given, "json"):
        from memory_tui.render import as_text

        as_text.print_json({"topics": pages})
        return 0
    sys.stdout.write("memory-tui help TOPIC prints a page of the manual:\n\n")
    for name, title in pages.items():
        sys.stdout.write(f"  {name:<14} {title}\n")
    return 0


OWN: dict[str, Command] = {
    "open": Command(_open, _declare_open),
    "demo": Command(_demo, _declare_demo),
    "help": Command(_help, _declare_help),
}


class Row(NamedTuple):
    """A command in the table: where its `Command` stands as `module:table`, a line of help."""

    source: str
    help: str

    def load(self, name: str) -> Command:
        """Import the module of the command `name`; returns the command."""
        module, _, table = self.source.partition(":")
        found: dict[str, Command] = getattr(import_module(module), table)
        return found[name]


_ASK, _MEASURE = "memory_tui.cli.ask:COMMANDS", "memory_tui.cli.measure:COMMANDS"
_AGENT, _HOOK = "memory_tui.cli.agent:COMMANDS", "memory_tui.cli.hooks:COMMANDS"
_CURATE, _ADMIN = "memory_tui.cli.curate:COMMANDS", "memory_tui.cli.admin:COMMANDS"
_PROVIDER, _HERE = "memory_tui.cli.provider:COMMANDS", "memory_tui.cli.main:OWN"
_PAST = "memory_tui.cli.past:COMMANDS"
_CONNECT, _QMD = "memory_tui.cli.connect:COMMANDS", "memory_tui.cli.qmd:COMMANDS"
_LTM = "memory_tui.cli.ltm:COMMANDS"
_SERVE = "memory_tui.cli.serve:COMMANDS"

COMMANDS: dict[str, Row] = {
    "open": Row(_HERE, "open the app; the default, so that `memory-tui PATH` opens a workspace"),
    "demo": Row(_HERE, "open the app on a copy of the sample workspace"),
    "serve": Row(_SERVE, "open the app in a browser: on this machine alone, read-only unless --allow-write"),
    "index": Row(_ASK, "bring the index up to date"),
    "status": Row(_ASK, "what is indexed, by what, and what is missing"),
    "search": Row(_ASK, "search the notes as an agent would"),
    "get": Row(_ASK, "print a note, or some of its lines"),
    "config": Row(_ASK, "list every value of the configuration, its origin and its effect"),
    "why-file": Row(_ASK, "why a path is, or is not, part of the memory"),
    "compare-index": Row(_ASK, "what OpenClaw's own index holds of the notes; it is only read"),
    "inject": Row(_ASK, "which entries OpenClaw 2026.9 puts before its agent for a message, and why not the others"),
    "why": Row(_PAST, "why a line of a note was, or was not, recalled for a query"),
    "why-never": Row(_PAST, "over many questions, which gate stops a line how often; or which lines none reached"),
    "eval": Row(_MEASURE, "measure recall, MRR, nDCG and noise on labelled queries"),
    "tune": Row(_MEASURE, "search the knobs by labelled queries; changes nothing, and may find no evidence"),
    "write-config": Row(_ADMIN, "write what --set and --profile ask for into openclaw.json, or into our own file"),
    "remember": Row(_CURATE, "write a line with the time into today's log"),
    "promote": Row(_CURATE, "copy lines of a log to the right heading of MEMORY.md, with their source"),
    "undo": Row(_CURATE, "undo the last change of notes, or another one"),
    "redo": Row(_CURATE, "redo the last undone change"),
    "journal": Row(_CURATE, "what was changed, newest first"),
    "budget": Row(_CURATE, "how much of MEMORY.md its hosts read, and where they cut"),
    "trust": Row(_CURATE, "whether OpenClaw 2026.9 still trusts each note, and what keeps it so"),
    "dreaming": Row(_CURATE, "what OpenClaw 2026.9 promotes next into MEMORY.md, and which gate holds the rest"),
    "annotate": Row(_CURATE, "triggers, importance and project of the entries of MEMORY.md and USER.md"),
    "restore": Row(_CURATE, "list the texts that a note had, by journal and git, and bring one back"),
    "archive": Row(_CURATE, "move old logs to memory/archive/memory/, where they are still found and still age"),
    "mcp": Row(_AGENT, "serve memory_search and memory_get to an agent (MCP over standard input and output)"),
    "recall-log": Row(_AGENT, "what agents asked, what they got, and what they would get now"),
    "prompt": Row(_HOOK, "print what an agent reads about its memory, and the notes a session starts with"),
    "flush": Row(_HOOK, "whether a session should write down what it knows now, and the turn that does it"),
    "hook": Row(_HOOK, "answer a host's hook: session-memory, claude-code or codex"),
    "doctor": Row(_ADMIN, "examine machine, notes, index, provider and settings; exit code 1 when something failed"),
    "inbox": Row(
        "memory_tui.cli.inbox:COMMANDS",
        "list notes that need a decision: repeats, secrets, contradictions, passed dates, dead paths, junk",
    ),
    "connect": Row(_CONNECT, "make an agent use this memory: openclaw, claude-code or codex; proves that it answers"),
    "disconnect": Row(_CONNECT, "bring a host's files back to what they were before connect"),
    "qmd": Row(_QMD, "QMD as the backend: update, embed, status, reset, approve"),
    "compare-qmd": Row(_QMD, "the answers of QMD beside those of the built-in index, and why they differ"),
    "ltm": Row(_LTM, "long-term memories in LanceDB: list, search, store, forget, undo"),
    "provider": Row(_PROVIDER, "embedding providers: status, data sent, test"),
    "completion": Row(_ADMIN, "print the completion script of bash, zsh or fish"),
    "help": Row(_HERE, "list the pages of the manual, or print one"),
}
"""Every command in the order of --help; only the one that is asked for is imported."""

EXIT_CODES = """exit codes:
  0  done; an answer without hits is an answer, and so is one by words alone,
     with a notice, where the provider does not answer
  1  failed on the way: the index, the provider or the disk
  2  cannot be done as asked: usage, configuration, workspace, path, value or labels
  3  eval: a mean is under its floor, or below the baseline
  130  stopped by ctrl+c; by another signal, 128 and its number"""


ALSO = "Options of every command, such as --workspace, --config, --set and --json: memory-tui --help lists them."
"""The last sentence of a command's help."""


class _Repeated(argparse.Action):
    """An option of a list of values: those before the command come before those behind it, and none is lost."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:  # noqa: ANN401 - as argparse has it
        super().__init__(option_strings, dest, **more)
        self._values: list[object] = []

    def __call__(self, _parser: object, namespace: argparse.Namespace, value: object, _option: object = None) -> None:
        # The parser of a command begins with an empty namespace, which then replaces what the one before it found.
        self._values.append(value)
        setattr(namespace, self.dest, list(self._values))


GLOBAL: tuple[tuple[tuple[str, ...], dict[str, object]], ...] = (
    (("--workspace",), {"metavar": "DIR", "help": "folder of the notes (default: this one, or OpenClaw's)"}),
    (("--config",), {"metavar": "FILE", "help": "an openclaw.json, or a configuration of memory-tui's own"}),
    (("--agent",), {"metavar": "ID", "help": "an agent of OpenClaw: its workspace and its own settings"}),
    (("--extra",), {"metavar": "PATH", "action": _Repeated, "help": "one more note or folder of notes; repeatable"}),
    (("--claude-code",), {"action": "store_true", "help": "also what Claude Code remembers of this project"}),
    (("--codex",), {"action": "store_true", "help": "also what Codex remembers; by itself in ~/.codex/memories"}),
    (("--index",), {"metavar": "FILE", "help": "index file to use (default: in the user's cache folder)"}),
    (("--provider",), {"metavar": "NAME", "help": "builtin (default), none, or one that gets your notes, like openai"}),
    (
        ("--backend",),
        {"metavar": "NAME", "help": "who searches: builtin, or qmd, a program of its own (default: as configured)"},
    ),
    (
        ("--qmd-home",),
        {"metavar": "DIR", "help": "folder of QMD's configuration and index (default: beside the index)"},
    ),
    (
        ("--memories",),
        {"metavar": "PLACE", "help": "LanceDB table of long-term memories: a folder, or s3://BUCKET/PREFIX"},
    ),
    (
        ("--profile",),
        {"metavar": "NAME", "help": "auto, recommended, openclaw-2026.9, openclaw-2026.3 or openclaw-2026.2"},
    ),
    (
        ("--active-project",),
        {"metavar": "KEY", "action": _Repeated, "help": "a project that the agent works on (2026.9); repeatable"},
    ),
    (("--set",), {"metavar": "KEY=VALUE", "action": _Repeated, "help": "change one setting; may be repeated"}),
    (("--now",), {"metavar": "ISO", "help": "the time that ages are counted from (default: now)"}),
    (
        ("--read-only",),
        {"action": "store_true", "help": "never edit a note; the app then writes nothing but the index"},
    ),
    (("--json",), {"action": "store_true", "help": "print JSON"}),
)
_FLAGS = {"--read-only", "--claude-code", "--codex", "--json", "--version", "--help", "-h"}
_BEFORE = sorted({"--query", *_FLAGS, *(name for names, _ in GLOBAL for name in names)})
"""The options that may stand before a command, or without one."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingError(
            f"{message[:1].upper()}{message[1:].rstrip('.')}.", f"{self.prog} --help shows what it takes."
        )


class _CommandParser(_Parser):
    """A command, whose help leaves the global options to `memory-tui --help`; it takes them all the same."""

    def format_help(self) -> str:
        """The help with the options of the command alone."""
        shared = {name for names, _ in GLOBAL for name in names}
        kept = [(action, action.help) for action in self._actions if shared & set(action.option_strings)]
        try:
            for action, _ in kept:
                action.help = argparse.SUPPRESS
            return super().format_help()
        finally:
            for action, words in kept:
                action.help = words


def build_parser(asked: str | None = None, *, alone: bool = False) -> argparse.ArgumentParser:
    """Build the command line; every global option may stand before or after the command.

    Only the command `asked` gets its arguments, or every command where none is named; if `alone`, the others are left
    out, because argparse takes half a millisecond for each.
    """
    shared = _CommandParser(add_help=False, argument_default=argparse.SUPPRESS)
    for names, keywords in GLOBAL:
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
    # With its name, which argparse would else take from a usage that it lays out for the terminal.
    commands = parser.add_subparsers(prog=parser.prog, dest="command", metavar="COMMAND", parser_class=_CommandParser)
    for name, row in COMMANDS.items():
        declared = asked in (None, name)
        if alone and not declared:
            continue
        found = commands.add_parser(
            name,
            help=row.help,
            description=row.help,
            epilog=ALSO,
            parents=[shared] if declared else [],
            argument_default=argparse.SUPPRESS,
        )
        if declared:
            row.load(name).declare(found)
    return parser


def _with_command(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command among `arguments`, empty where only --help or --version is; and the arguments with it.

    Without one it is `open`, so that a bare path opens the app.
    """
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            _unknown_option(word)
            skip = word not in _FLAGS and "=" not in word
        elif word in COMMANDS:
            return word, list(arguments)
        else:
            _mistyped(word, COMMANDS)
            return "open", ["open", *arguments]
    if {"--version", "--help", "-h"} & set(arguments):
        return "", list(arguments)
    return "open", ["open", *arguments]


def _unknown_option(word: str) -> None:
    """Raises SettingError for what is no option, nor the beginning of one, before a command."""
    name = word.partition("=")[0]
    if any(known.startswith(name) for known in _BEFORE):
        return
    import difflib

    near = difflib.get_close_matches(name, _BEFORE, n=1, cutoff=0.7)
    raise SettingError(
        f"There is no option {name} that stands before a command.",
        f"Did you mean {near[0]}?" if near else "Options of a command follow it; memory-tui --help lists the others.",
    )


def _mistyped(word: str, commands: Iterable[str]) -> None:
    """Raises SettingError for a word that is no command, and no path as far as anybody can see."""
    from pathlib import Path

    if Path(word).exists() or word.startswith("~") or set(word) & set("/\\."):
        return
    import difflib

    options = {"help": "--help", "version": "--version"}
    near = difflib.get_close_matches(word.lower(), [*commands, *options], n=1, cutoff=0.7)
    raise SettingError(
        f"There is no command {word!r}, and no such folder.",
        f"Did you mean {options.get(near[0], near[0])}?" if near else "memory-tui --help lists the commands.",
    )


_NO_ROOM = re.compile("failed to map segment|cannot allocate memory", re.IGNORECASE)
"""What the loader of a module says when there is no memory for it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if arguments is None:
        _share_one_heap()
        arguments = sys.argv[1:]
    return _run_command(list(arguments))


def _run_command(words: list[str]) -> int:
    _speak_utf8()
    try:
        with signals_raised():
            given = _parsed(words)
            code = COMMANDS[given.command].load(given.command).run(given)
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
    except MemoryTuiError as error:
        return _fail(error, as_json="--json" in words)
    except BrokenPipeError:
        # Whoever read the answer has seen enough. What is left goes nowhere when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RuntimeError as error:
        if str(error) != "Could not determine home directory.":
            raise
        return _fail(
            SettingError(
                "A path begins with ~ and a name that no user of this machine has.",
                "Write the whole path, or ./ before the name of a folder that begins with ~.",
            ),
            as_json="--json" in words,
        )
    except (MemoryError, ImportError, OSError) as error:
        if not isinstance(error, MemoryError) and not _NO_ROOM.search(str(error)):
            raise
        return _fail(
            MemoryTuiError(
                "Not enough memory (RAM).",
                "Close other programs, or raise the limit of memory; the next start repairs what was cut off.",
            ),
            as_json="--json" in words,
        )


_TEXTS = ("search", "why", "report", "inject", "remember", "noise")
"""Commands that take a text."""
_DASHED = re.compile(r"-[^\W\d_]{2}")


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """What `words` ask for. Raises SettingError, which names the help of the command."""
    asked, words_of_it = _with_command(words)
    dashed = next((word for word in words if asked in _TEXTS and "--" not in words and _DASHED.match(word)), "")
    behind = f"Write -- before a text that begins with -: memory-tui {asked} -- {dashed}. " if dashed else ""
    parser = build_parser(asked, alone=asked in COMMANDS and not {"--help", "-h"} & set(words))
    try:
        given, unknown = parser.parse_known_args(words_of_it)
    except SettingError:
        # Said by the parser that knows every command.
        parser = build_parser(asked)
        try:
            given, unknown = parser.parse_known_args(words_of_it)
        except SettingError as error:
            raise SettingError(error.message, behind + error.next_step) from None
    if unknown:
        shown, command = " ".join(unknown), getattr(given, "command", "")
        quoted = command == "search" and not any(word.startswith("-") for word in unknown)
        raise SettingError(
            f"Unrecognized arguments: {shown}.",
            (f'Put the query in quotes: memory-tui search "{given.query} {shown}". ' if quoted else behind)
            + f"{parser.prog} {command} --help shows what it takes.",
        )
    return given


def _share_one_heap() -> None:
    """Have all threads use one heap (glibc): what a thread gave back to a heap of its own no other thread gets."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            # M_ARENA_MAX of malloc.h; musl has one heap and no mallopt.
            ctypes.CDLL(None).mallopt(-8, 1)


def _speak_utf8() -> None:
    """Answers are UTF-8 whatever the locale says; a character that is not becomes a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")


def _fail(error: MemoryTuiError, *, as_json: bool) -> int:
    from memory_tui.core.sanitize import one_line

    if as_json:
        from memory_tui.render.as_text import dumps

        print(dumps({"error": error.as_dict()}, 2))  # noqa: T201

    print(f"memory-tui: {one_line(error.message)}", file=sys.stderr)  # noqa: T201
    if error.next_step:
        print(f"  {one_line(error.next_step)}", file=sys.stderr)  # noqa: T201
    return error.exit_status
