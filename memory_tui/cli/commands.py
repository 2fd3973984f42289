"""The table of commands: the name, the group, the function, a line of help and the options of each."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from memory_tui import __version__
from memory_tui.errors import MemoryTuiError, SettingError
from memory_tui.formatting import install_extra
from memory_tui.sanitize import one_line


class Option(NamedTuple):
    """An option or an argument, as argparse takes it."""

    names: tuple[str, ...]
    keywords: dict[str, Any]


def flag(name: str, words: str) -> Option:
    """Return an option without a value."""
    return Option((name,), {"action": "store_true", "help": words})


def value(names: str, metavar: str, words: str, **keywords: Any) -> Option:  # noqa: ANN401 - as argparse has it
    """Return an option with a value; `names` are apart by spaces."""
    return Option(tuple(names.split()), {"metavar": metavar, "help": words, **keywords})


def word(name: str, words: str, **keywords: Any) -> Option:  # noqa: ANN401 - as argparse has it
    """Return an argument; argparse gives a default that is a text to its type, so that there is none."""
    return Option((name,), {"help": words, **keywords})


def perhaps(names: str, metavar: str, words: str, const: str = "") -> Option:
    """Return an option that may have a value; without one it is `const`."""
    return value(names, metavar, words, nargs="?", const=const)


def repeated(name: str, metavar: str, words: str) -> Option:
    """Return an option that may be given several times; its values are a list."""
    return value(name, metavar, words, action="append", default=[])


# --- types of values -----------------------------------------------------------------------------------------------


def positive(text: str) -> int:
    """Return a whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def at_least(least: float, most: float = sys.float_info.max) -> Callable[[str], float]:
    """Return a type: a finite number from `least` up, at most `most`."""

    def number(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not least <= amount <= most:
            limit = f" to {most:,g}" if most < sys.float_info.max else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:g} up{limit}")
        return amount

    return number


def typed(text: str) -> str:
    """Return what a person typed as UTF-8, also where the locale is ASCII and takes its bytes apart."""
    try:
        return text if text.isascii() else os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return text


# --- the table -----------------------------------------------------------------------------------------------------


class Command(NamedTuple):
    """A command: `run` names its function as `module:function`, which takes the arguments and returns the exit code."""

    run: str
    help: str
    answers: bool = False
    """Whether it answers from the index, so that a provider that hangs is not waited for: words answer."""
    extra: str = ""
    """The extra of this package that it needs."""

    def load(self) -> Callable[[argparse.Namespace], int]:
        """Import the module of the command and return its function. Raises MemoryTuiError without its extra."""
        module, _, name = self.run.partition(":")
        try:
            function: Callable[[argparse.Namespace], int] = getattr(import_module(f"memory_tui.cli.{module}"), name)
        except ModuleNotFoundError:
            if not self.extra:
                raise
            raise MemoryTuiError(f"This needs the extra {self.extra}.", f"{install_extra(self.extra)}.") from None
        return function


_WRITING = (flag("--yes", "write without asking"), flag("--dry-run", "show the difference and write nothing"))
_QUERY = value("--query", "TEXT", "a query to start with", type=typed)
_VERBOSE = flag("--verbose", "name each file as it is indexed, on standard error")
_CITATIONS = ("auto", "on", "off")
_MODES = ("full", "minimal")
_QMD = ("update", "embed", "status", "reset", "approve", "revoke", "probe")
_HOOKS = ("session-memory", "claude-code", "codex", "recall", "capture")
_INBOX = (
    *("merge", "merge-other", "delete", "demote", "trash-note", "rename", "archive-note", "restore", "move-back"),
    *("convert", "edit", "keep", "snooze", "reopen"),
)
_LTM = ("list", "search", "store", "forget", "undo", "approve", "revoke")

GROUPS: dict[str, dict[str, Command]] = {
    "Ask": {
        "search": Command("ask:search", "search the notes as an agent would", answers=True),
        "get": Command("ask:get", "print a note, or some of its lines"),
        "why": Command(
            "explain:why", "why a line was, or was not, recalled; why a file is part of the memory", answers=True
        ),
        "eval": Command("explain:evaluate", "measure recall and noise on labelled queries, or tune the knobs by them"),
    },
    "Notes": {
        "remember": Command("notes:remember", "write a line with the time into today's log"),
        "promote": Command("notes:promote", "copy lines of a log to the right heading of MEMORY.md"),
        "annotate": Command("notes:annotate", "list or set triggers, importance and project of entries"),
        "archive": Command("notes:archive", "move old logs to memory/archive/memory/; a search still finds them"),
        "journal": Command("notes:journal", "what was changed, newest first; --restore brings an earlier text back"),
        "undo": Command("notes:undo", "undo the last change of notes, or another one"),
        "inbox": Command(
            "notes:inbox", "list notes that need a decision: repeats, secrets, passed dates, dead paths", answers=True
        ),
    },
    "Index": {
        "index": Command("admin:index", "bring the index up to date"),
        "status": Command("admin:status", "what is indexed, by what, and what is missing"),
    },
    "Agents": {
        "connect": Command("agents:connect", "make openclaw, claude-code or codex use this memory, and prove it"),
        "disconnect": Command("agents:disconnect", "bring a host's files back to what they were before connect"),
        "mcp": Command("mcp:mcp", "serve memory_search and memory_get to an agent over MCP"),
        "hook": Command("hooks:hook", "answer a host's hook: session-memory, claude-code, codex, recall or capture"),
        "prompt": Command("hooks:prompt", "print what an agent reads about its memory at the start of a session"),
        "recall-log": Command("agents:recalls", "what agents asked, what they got, and what they would get now"),
    },
    "OpenClaw": {
        "config": Command("admin:config", "list every value, its origin and its effect; --write changes the file"),
        "openclaw compare-index": Command(
            "programs:compare_index", "what OpenClaw's own index holds of the notes; it is only read"
        ),
        "openclaw flush": Command("programs:flush", "whether a session should write down now what it knows"),
        "openclaw inject": Command(
            "programs:inject", "which entries OpenClaw 2026.9 puts before its agent for a message", answers=True
        ),
        "openclaw trust": Command("programs:trust", "whether OpenClaw 2026.9 still trusts each note"),
    },
    "Other memories": {
        "qmd": Command("programs:qmd", "QMD as the backend: update, embed, status, reset, approve, revoke, probe"),
        "ltm": Command("memories:ltm", "long-term memories in LanceDB: list, search, store, forget, undo"),
    },
    "Maintenance": {
        "open": Command("admin:open_app", "open the app; the default, so that memory-tui PATH opens a workspace"),
        "demo": Command("admin:demo", "open the app on a copy of the sample workspace"),
        "serve": Command(
            "serve:serve", "open the app in a browser of this machine, read-only unless --allow-write", extra="serve"
        ),
        "doctor": Command("admin:doctor", "examine machine, notes, index, provider and settings", answers=True),
        "provider": Command("provider:provider", "embedding providers: status, data sent, test"),
        "help": Command("admin:show_help", "print a page of the manual, or the completion script of a shell"),
    },
}
"""Every command of one or two words by its group, in the order of --help."""

COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}

_OPTIONS: dict[str, tuple[Option, ...]] = {
    "search": (
        word("query", "the query", nargs="?", type=typed),
        flag("--stdin", 'one query, or {"id","query","options"}, a line; one JSON answer a line'),
        value("-n --max-results", "N", "how many hits", type=positive),
        value("--max-characters", "N", "print passages of so many characters in all, as agents get", type=positive),
        value("--min-score", "F", "what a hit has to score"),
        value("--source", "SOURCE", "only hits of this source", choices=["memory", "sessions"], default=""),
        flag("--full", "on a terminal: the whole text of each hit"),
        flag("--explain", "how each hit got its score, and why others were dropped; with --json, the whole trace"),
    ),
    "get": (
        word("path", "the note"),
        value("--from", "N", "first line", dest="start", type=positive, default=1),
        value("--lines", "N", "how many lines", type=positive),
    ),
    "why": (
        word("query", "the query", nargs="?", type=typed),
        word("place", "a note, a line of it, or a citation such as PATH#L3-L9", nargs="?", metavar="PATH[:LINE]"),
        perhaps("--openclaw-index", "DB", "also look into OpenClaw's own index (default: that of its agent)"),
        perhaps("--never", "PATH[:LINE]", "over past questions: which gates stop a line, or which lines none reached"),
        value("--days", "N", "with --never: of how many days (default: 30)", type=positive, default=30),
        value("--file", "PATH", "why a path is, or is not, part of the memory"),
    ),
    "eval": (
        value("--labels", "FILE", "labelled queries, JSON Lines (default: the workspace's own)"),
        value("--baseline", "FILE", "JSON of an earlier eval; a mean of recall, mrr@10 or ndcg@10 below it fails"),
        value("--tolerance", "F", "how far a mean may be below it", type=at_least(0), default=0.0),
        value("--against", "PROFILE", "compare with the same queries under another profile"),
        repeated("--fail-under", "METRIC=X", "fail when a mean is below X (noise, wrong: above); repeatable"),
        flag("--tune", "search better knobs instead; changes nothing, and may find no evidence"),
        value("--metric", "NAME", "with --tune: what to raise (default: ndcg@10)", default="ndcg@10"),
        value("--seed", "N", "with --tune: which half of the queries is held out", type=int, default=1),
        flag("--presets", "with --tune: choose from a few whole presets, for few labels"),
    ),
    "remember": (word("text", "what to remember; - reads it from standard input", type=typed), *_WRITING),
    "promote": (
        word("place", "the lines; one line stands for its whole list item", metavar="PATH:LINE[-LINE]"),
        value("--to", "HEADING", "the heading, spelled roughly (default: the one that fits)", default=""),
        flag("--move", "take the lines out of the log"),
        *_WRITING,
    ),
    "annotate": (
        word("place", "an entry, or a note to list", nargs="?", metavar="PATH[:LINE]"),
        value("--importance", "N", "1 to 10; 0 takes it away", type=int, choices=range(11)),
        value("--triggers", "PHRASES", "phrases apart by commas; '' takes them away"),
        value("--project", "KEYS", "keys apart by semicolons; '' takes them away"),
        *_WRITING,
    ),
    "archive": (value("--older-than", "DAYS", "logs of more days ago", type=positive, required=True), *_WRITING),
    "journal": (
        word("path", "only changes of this note", nargs="?"),
        value("--show", "ID", "the difference that one change made", type=positive),
        perhaps("--restore", "REF", "list the earlier texts of the note; with REF bring that one back"),
        flag("--lost-lines", "with --restore: only the lost lines, beside what came since"),
        *_WRITING,
    ),
    "undo": (
        word("id", "a change of the journal", nargs="?", type=positive, metavar="ID"),
        flag("--redo", "redo the last undone change, or that one"),
        flag("--merge", "keep what others wrote since, in other lines"),
        *_WRITING,
    ),
    "inbox": (
        value("--do", "ACTION", f"carry out one of {', '.join(_INBOX)}", choices=_INBOX),
        value("--id", "ID", "on the suggestion of this id"),
        value("--days", "N", "snooze: for how long (default: 7)", type=at_least(0.01, 36_500), default=7.0),
        value("--kind", "KIND", "only suggestions of this kind; with --do all of them at once"),
        value("--text", "TEXT", "edit: what the entry says from now on"),
        flag("--yes", "do not ask before a note is changed"),
    ),
    "index": (
        flag("--force", "read every file again"),
        flag("--dry-run", "show what would be sent where, and send nothing"),
        flag("--yes", "approve that the provider gets the notes of this workspace"),
        flag("--approve-extension", "approve that the build of sqlite-vec is run which the configuration names"),
        flag("--accept-shrink", "forget notes that vanished at once"),
        _VERBOSE,
    ),
    "status": (
        flag("--deep", "also embed one text with the provider"),
        flag("--sync", "index what changed first; implies --deep"),
        _VERBOSE,
    ),
    "connect": (
        word("host", "openclaw, claude-code or codex", nargs="?", metavar="HOST"),
        flag("--user", "for everything that you do with the host (the default)"),
        flag("--project", "for the project in this folder alone"),
        flag("--status", "ask every connected host's server, and write nothing"),
        flag("--log-recalls", "write down on this machine what the agent asks and gets; without it you are asked"),
        value("--question", "TEXT", "what the proof asks (default: a line of MEMORY.md)"),
        *_WRITING,
    ),
    "disconnect": (
        word("host", "openclaw, claude-code or codex", nargs="?", metavar="HOST"),
        flag("--user", "for everything that you do with the host (the default)"),
        flag("--project", "for the project in this folder alone"),
        *_WRITING,
    ),
    "mcp": (
        value("--citations", "WHEN", "whether hits name their source: auto, on or off", choices=_CITATIONS),
        value("--session-key", "KEY", "the session that auto goes by, like agent:main:main", default=""),
        value("--max-chars", "N", "most characters of snippets in one answer", type=positive),
        flag("--log-recalls", "write down what agents ask and get, on this machine only (or recall.log=true)"),
        flag("--allow-write", "let the agent store and forget long-term memories, where a table is configured"),
        flag("--no-prompts", "offer no prompts (some hosts make tools of them)"),
        flag("--no-resources", "offer no resources (the same)"),
        flag("--print-config", "print the entry in JSON that a client of MCP takes"),
    ),
    "hook": (
        word("name", "the hook", choices=_HOOKS),
        value("--transcript", "FILE", "session-memory: the conversation"),
        value("--session", "ID", "session-memory: session id"),
        value("--key", "KEY", "session-memory: session key", default="unknown"),
        value("--reason", "TEXT", "session-memory: what ended it, such as /new", default=""),
        value("--messages", "N", "how many messages (default: as configured)", type=positive, default=0),
    ),
    "prompt": (
        value("--mode", "MODE", "minimal is for sub-agents", choices=_MODES, default="full"),
        value("--citations", "WHEN", "auto, on or off (default: as configured)", choices=_CITATIONS),
        value("--session", "KEY", "session key; MEMORY.md is for direct chats only", default=""),
        flag("--no-files", "only the section"),
        flag("--budget", "how much of MEMORY.md the hosts read, and where they cut"),
    ),
    "recall-log": (
        word("id", "one recall, by the start of its id, or last", nargs="?"),
        value("--why", "PATH[:LINE]", "why that recall did, or did not, find this note"),
        value("-n --newest", "N", "how many are listed (default: 20)", type=positive, default=20),
        flag("--clear", "delete the log of this workspace, and the marks of your own recalls"),
    ),
    "config": (
        flag("--write", "write what --set and --profile ask for into openclaw.json, or into our own file"),
        flag("--undo", "undo the last write"),
        *_WRITING,
    ),
    "openclaw compare-index": (word("db", "its database (default: OpenClaw's)", nargs="?", metavar="DB"),),
    "openclaw flush": (
        value("--session", "ID", "session id (default: the name of the transcript)", default=""),
        value("--transcript", "FILE", "its transcript, JSON Lines"),
        value("--tokens", "N", "tokens of the session as the host counts them", type=positive),
        value("--next-tokens", "N", "estimate of the coming message", type=positive, default=0),
        value("--context-window", "N", "default: as configured, else 200000", type=positive, default=0),
        value("--model", "PROVIDER/ID", "a model whose window the configuration knows", default=""),
        value("--compactions", "N", "how often it was compacted", type=int),
        flag("--heartbeat", "it is a heartbeat run"),
        flag("--cli-provider", "the provider manages its own context"),
        flag("--sandboxed", "the workspace cannot be written"),
        flag("--done", "remember that it was flushed in this cycle"),
    ),
    "openclaw inject": (word("message", "a message to the agent", type=typed),),
    "openclaw trust": (
        flag("--approve", "let edits made here update the ledger's hash"),
        flag("--withdraw", "only read the ledger from now on"),
        value("--repair", "PATH", "show a whole note, and trust it again by its name"),
    ),
    "qmd": (
        word(
            "action",
            "reset deletes QMD's index; approve and revoke are for its program",
            choices=_QMD,
            metavar="ACTION",
        ),
        flag("--yes", "agree to run the program, without being asked"),
    ),
    "ltm": (
        word("action", f"one of {', '.join(_LTM)}", choices=_LTM, metavar="ACTION"),
        word("words", "a text, query or id", nargs="*", type=typed, metavar="WORD"),
        value("-n --limit", "N", "how many (default: list 50, search 5)", type=positive),
        value("--min-score", "F", "search: the least score", type=at_least(0)),
        value("--category", "NAME", "preference, fact, decision, entity or other", default=""),
        value("--importance", "F", "store: from 0 to 1", type=at_least(0)),
        flag("--yes", "agree that memory-tui writes this table"),
    ),
    "open": (word("path", "the workspace", nargs="?"), _QUERY),
    "demo": (_QUERY,),
    "serve": (
        word("path", "the workspace", nargs="?"),
        _QUERY,
        value("--port", "N", "port on this machine (default: a free one)", type=positive, default=0),
        flag("--allow-write", "let the page change notes and settings, too"),
    ),
    "doctor": (
        value("--deadline", "S", "seconds for a check (default: 20)", type=at_least(0.1), default=20.0),
        flag("--all", "also show the checks that pass"),
    ),
    "provider": (
        perhaps("--test", "NAME", "make one real call, with a sentence of memory-tui's own"),
        perhaps("--approve", "NAME", "approve a provider, after asking: it gets the notes of this workspace"),
        value("--stays-here", "NAME", "say that a server on this machine keeps what it gets: it gets secrets too"),
        perhaps("--revoke", "NAME", "withdraw the approval of one provider, or of all", "all"),
        flag("--fetch", "show address, size and checksum of each file of the model that local.modelPath names"),
        perhaps("--add", "KIND", "set a provider up: test it, show the file's difference, ask"),
        value("--address", "URL", "with --add: where it is asked (remote.baseUrl)"),
        value("--key-variable", "NAME", "with --add: the variable that holds its key"),
        value("--model", "NAME", "with --add: its model"),
        flag("--yes", "do what --add, --approve, --stays-here or --fetch shows"),
    ),
    "help": (
        word("topic", "a page", nargs="?", metavar="TOPIC"),
        value("--completion", "SHELL", "print the script of bash, zsh or fish", choices=("bash", "zsh", "fish")),
    ),
}
"""What each command takes beside the options of all."""

GLOBAL: tuple[Option, ...] = (
    value("--workspace", "DIR", "folder of the notes (default: this one, or OpenClaw's)"),
    value("--config", "FILE", "an openclaw.json, or a configuration of memory-tui's own"),
    value("--agent", "ID", "an agent of OpenClaw: its workspace and its own settings", default=""),
    repeated("--extra", "PATH", "one more note or folder of notes; repeatable"),
    flag("--claude-code", "also what Claude Code remembers of this project"),
    flag("--codex", "also what Codex remembers; by itself in ~/.codex/memories"),
    value("--index", "FILE", "index file to use (default: in the user's cache folder)"),
    value("--provider", "NAME", "builtin (default), none, or one that gets your notes, like openai", default=""),
    value("--backend", "NAME", "who searches: builtin, or qmd (default: as configured)", default=""),
    value("--qmd-home", "DIR", "folder of QMD's configuration and index (default: beside the index)"),
    value("--memories", "PLACE", "LanceDB table of long-term memories: a folder, or s3://BUCKET/PREFIX", default=""),
    value("--profile", "NAME", "auto, recommended, openclaw-2026.9, openclaw-2026.3 or openclaw-2026.2"),
    repeated("--active-project", "KEY", "a project that the agent works on (2026.9); repeatable"),
    repeated("--set", "KEY=VALUE", "change one setting; repeatable"),
    value("--now", "ISO", "the time that ages are counted from (default: now)"),
    flag("--read-only", "never edit a note; the app then writes nothing but the index"),
    flag("--json", "print JSON"),
)
"""The options of every command."""

EXIT_CODES = """exit codes:
  0  done; an answer without hits is an answer, and so is one by words alone,
     with a notice, where the provider does not answer
  1  failed on the way: the index, the provider or the disk
  2  cannot be done as asked: usage, configuration, workspace, path, value or labels
  3  eval: a mean is under its floor, or below the baseline
  130  stopped by ctrl+c; by another signal, 128 and its number"""
SHARED = "Options of every command, such as --workspace, --config, --set and --json: memory-tui --help lists them."


# --- parsers -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingError(
            f"{message[:1].upper()}{message[1:].rstrip('.')}.", f"{self.prog} --help shows what it takes."
        )


def _extended(parser: argparse.ArgumentParser, options: tuple[Option, ...], *, described: bool = True) -> None:
    for names, keywords in options:
        parser.add_argument(*names, **keywords if described else {**keywords, "help": argparse.SUPPRESS})


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command: its own options, and the shared ones, which its help leaves out."""
    command = COMMANDS[name]
    parser = _Parser(prog=f"memory-tui {name}", description=_sentence(command.help), epilog=SHARED)
    parser.set_defaults(command=name)
    _extended(parser, _OPTIONS.get(name, ()))
    _extended(parser, GLOBAL, described=False)
    return parser


def main_parser() -> argparse.ArgumentParser:
    """Return the parser without a command, whose help lists the commands in their groups."""
    parser = _Parser(
        prog="memory-tui",
        usage="memory-tui [OPTION ...] [COMMAND ...]",
        description="\n".join(["See, search and explain the Markdown memory of an agent.", *_listed()]),
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"memory-tui {__version__}")
    _extended(parser, GLOBAL)
    return parser


def full_parser() -> argparse.ArgumentParser:
    """Return one parser with every command as a below, from which the completion of a shell is made."""
    parser = main_parser()
    parents = {"": parser.add_subparsers(metavar="COMMAND")}
    for name, command in COMMANDS.items():
        first, _, second = name.rpartition(" ")
        if first and first not in parents:
            above = parents[""].choices.get(first) or parents[""].add_parser(first, help="OpenClaw's own files")
            if any(not action.option_strings and action.dest != "help" for action in above._actions):
                continue
            parents[first] = above.add_subparsers(metavar="COMMAND")
        below = parents[first].add_parser(second, help=command.help)
        _extended(below, _OPTIONS.get(name, ()))
        _extended(below, GLOBAL, described=False)
    return parser


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _listed() -> list[str]:
    """List the commands with a line of help each, group by group."""
    lines = []
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<23} {command.help}" for name, command in commands.items())]
    return lines


# --- which command -------------------------------------------------------------------------------------------------

_FLAGS = {"--version", "--help", "-h", *(o.names[0] for o in GLOBAL if o.keywords.get("action") == "store_true")}
_BEFORE = {name: name for name in sorted({"--query", *_FLAGS, *(option.names[0] for option in GLOBAL)})}
"""The options that may stand before a command, or without one."""


def named(words: list[str]) -> tuple[str, list[str]]:
    """Return the command among `words` and the other words, "" where only --help or --version is.

    Without a command it is `open`, so that a bare path opens the app. Raises SettingError.
    """
    skip = False
    for place, text in enumerate(words):
        if skip:
            skip = False
        elif text.startswith("-") and text != "-":
            option = text.partition("=")[0]
            if not any(name.startswith(option) for name in _BEFORE):
                near = _near(option, _BEFORE, "Options of a command follow it; memory-tui --help lists the others.")
                raise SettingError(f"There is no option {one_line(option, 40)} that stands before a command.", near)
            skip = text not in _FLAGS and "=" not in text
        else:
            for count in (2, 1):
                name = " ".join(words[place : place + count])
                if name in COMMANDS:
                    return name, words[:place] + words[place + count :]
            _require_path(text)
            return "open", words
    return ("", words) if {"--version", "--help", "-h"} & set(words) else ("open", words)


def _require_path(text: str) -> None:
    """Raises SettingError for a word that is no command, and no path as far as anybody can see."""
    if os.path.exists(text) or text.startswith("~") or any(letter in text for letter in "/\\."):  # noqa: PTH110
        return
    if second := [name for name in COMMANDS if name.startswith(f"{text} ")]:
        raise SettingError(f"memory-tui {text} needs another word.", f"Choose one of {', '.join(second)}.")
    longs = [
        (name, long)
        for name in reversed(COMMANDS)
        for option in _OPTIONS.get(name, ())
        if (long := option.names[-1]).startswith("--")
    ]
    alike = {key: f"{name} {long}" for name, long in longs for key in (long[2:], _in_order(f"{name}{long}"))}
    alike |= {"help": "--help", "version": "--version"}
    alike |= {key: name for name in COMMANDS for key in (name.rpartition(" ")[2], _in_order(name))}
    near = _near(_in_order(text.lower()), alike, "memory-tui --help lists the commands.")
    raise SettingError(f"There is no command {one_line(text, 40)!r}, and no such folder.", near)


def _near(text: str, among: Mapping[str, str], otherwise: str) -> str:
    """Return what `text` was probably meant for, of the spellings `among`."""
    near = difflib.get_close_matches(text, among, n=1, cutoff=0.7)
    return f"Did you mean {among[near[0]]}?" if near else otherwise


def _in_order(text: str) -> str:
    """Return the words of `text` in alphabetical order: `why-file` is meant by `file why`."""
    return " ".join(sorted(text.replace("-", " ").split()))
