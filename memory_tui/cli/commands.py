"""The table of commands: the name, the group, the function, a line of help and the options of each."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from memory_tui import __version__
from memory_tui.errors import MemoryTuiError, SettingError
from memory_tui.formatting import install_extra, one_line

# --- types of values -----------------------------------------------------------------------------------------------


def positive(text: str) -> int:
    """Return a whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def at_least(least: float, most: float = sys.float_info.max) -> Callable[[str], float]:
    """Return a type: a finite number from `least` up, at most `most`."""

    def number(text: str) -> float:
        """Return the number that `text` is. Raises ArgumentTypeError, which argparse tells as a fault of the option."""
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        # True for NaN as well, which is neither below nor above.
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


_TYPES: dict[str, Callable[[str], object]] = {
    **{"N": positive, "INT": int, "F": at_least(0), "S": at_least(0.1), "DAYS": at_least(0.01, 36_500)},
    **dict.fromkeys(("TEXT", "WORD", "query", "text", "message"), typed),
}
"""What reads a value, by the name of the value in the table; a value of any other name is text as it is."""


class Option(NamedTuple):
    """An option or an argument, as argparse takes it."""

    names: tuple[str, ...]
    keywords: dict[str, Any]


def _option(line: str) -> Option:
    """Return the option or argument that a line of the table describes: names, value, then two spaces and its help."""
    spec, help_text = re.split("  +", line.strip(), maxsplit=1)
    words = spec.split()
    # The spellings of an option; an argument has only its name.
    names = [word for word in words if word.startswith("-")] or words[:1]
    # The value may end in its default, as in N@20.
    value, has_default, default = "".join(words[len(names) :]).partition("@")
    keywords: dict[str, Any] = {"help": help_text}
    if names[0].startswith("-") and not value:
        return Option(tuple(names), keywords | {"action": "store_true"})
    # A mark at the end of the name: "!" must be given, "?" and "*" as argparse has them.
    mark = names[-1][-1]
    if mark in "!?*":
        names[-1] = names[-1].removesuffix(mark)
        keywords |= {"required": True} if mark == "!" else {"nargs": mark}
    # "[NAME]=TEXT": the value may be left out, and is TEXT then.
    if optional := re.fullmatch(r"\[(.*)\](?:=(.*))?", value):
        value = optional[1]
        keywords |= {"nargs": "?", "const": optional[2] or ""}
    # An option with such a value may be given several times.
    if value.endswith("..."):
        value = value.removesuffix("...")
        keywords |= {"action": "append", "default": []}
    if kind := _TYPES.get(value or names[-1]):
        keywords["type"] = kind
    if "|" in value:
        keywords["choices"] = value.split("|")
    elif value:
        keywords["metavar"] = value
    if has_default:
        keywords["default"] = int(default) if default.isdigit() else default
    return Option(tuple(names), keywords)


class Command(NamedTuple):
    """A command: `run` names its function as `module:function`, which takes the arguments and returns the exit code."""

    group: str
    run: str
    help: str
    options: list[Option]
    answers: bool
    """Whether it answers from the index, so that a provider that hangs is not waited for: words answer."""
    extra: str
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


def _commands() -> Iterator[tuple[str, Command]]:
    """Read the table: the name of each command, and the command, whose options follow it."""
    group = ""
    options: list[Option] = []
    for line in _TABLE.strip().splitlines():
        if line.startswith("# "):
            group = line.removeprefix("# ")
        elif line.startswith("  "):
            options += WRITING if line == "  (writing)" else [_option(line)]
        else:
            options = []
            name, spec, help_text = re.split("  +", line, maxsplit=2)
            run, *flags = spec.split()
            extra = "".join(flag.removeprefix("extra=") for flag in flags if flag != "answers")
            yield name, Command(group, run, help_text, options, answers="answers" in flags, extra=extra)


# --- the table -----------------------------------------------------------------------------------------------------

_TABLE = """
# Ask
search  ask:search answers  search the notes as an agent would
  query?                              the query
  --stdin                             one query, or {"id","query","options"}, a line; one JSON answer a line
  -n --max-results N                  how many hits
  --max-characters INT                passages of so many characters in all (default: as agents get; 0: 700 a hit)
  --min-score SCORE                   what a hit has to score
  --source memory|sessions@           only hits of this source
  --scope SCOPE@                      of a shared index: OWNER/NAME, group:ROLE or all, several apart by commas
  --full                              on a terminal: all that an agent reads of each hit
  --explain                           how each hit got its score, why others were dropped; with --json, all of it
get  ask:get  print a note, or some of its lines
  path PATH[:LINE[-LINE]]             the note, or lines of it; or a citation, PATH#L3-L9
  --from N@1                          first line
  --lines N                           how many lines, at most 120
why  ask:why answers  why a line was, or was not, recalled; with --file, why a file is part of the memory
  query?                              the query
  place? PATH[:LINE]                  a note, a line of it, or a citation such as PATH#L3-L9
  --scope SCOPE@                      of a shared index, as for search
  --file PATH                         why a path is, or is not, part of the memory
eval  ask:evaluate  measure recall and noise on labelled queries, or tune the knobs by them
  --labels FILE                       labelled queries, JSON Lines (default: the workspace's own)
  --fail-under METRIC=X...            fail when a mean is below X (noise, wrong: above); repeatable
  --tune                              search knobs of a better ndcg@10 instead; changes nothing, may find no evidence
# Notes
remember  notes:remember  write a line with the time into today's log
  text                                what to remember; - reads it from standard input
  --supersedes PATH:LINE              the line that it overtakes, which is marked as superseded
  (writing)
promote  notes:promote  copy lines of a log to the right heading of MEMORY.md
  place PATH:LINE[-LINE]              the lines; one line stands for its whole list item
  --to HEADING@                       the heading, spelled roughly (default: the one that fits)
  --move                              take the lines out of the log
  (writing)
archive  notes:archive  move old logs to memory/archive/memory/; a search still finds them
  --older-than! N                     logs of more days ago
  (writing)
history  notes:history  what became of the notes, by whom, newest first
  path?                               only changes of this note
  --show N                            the difference that one change made
  --by WHO                            only changes of this author: openclaw, claude-code, git, memory-tui, somebody
  --deleted                           only changes that removed a note
  -n --newest N@100                   how many are listed (default: 100)
since  notes:since  what others changed since you last looked, or since a time
  when? WHEN                          a time, or a span like 2h or 3d; without it the next since starts from now
blame  notes:blame  when and by whom each line of a note came
  place PATH[:LINE]                   the note, or one line of it
restore  notes:restore_notes  bring a note, or all, back to what they were
  path?                               the note; without --before its texts are listed
  --before WHEN                       a time, a span like 2h or 3d, or a change of the history
  --all                               every note, as all were before that time or change
  (writing)
undo  notes:undo  undo the last change of notes, or another one
  id? N                               a change of the history
  --redo                              redo the last undone change, or that one
  --merge                             keep what others wrote since, in other lines
  (writing)
inbox  notes:inbox answers  list notes that need a decision: repeats, secrets, lost lines, odd dates
  --quiet                             what was kept silent, with the reason
  --do ACTION                         what to do: an action that is listed, or reopen
  --id ID                             the suggestion or group of this id, with all of its lines
  --days DAYS@7                       snooze: for how long (default: 7)
  --kind KIND                         only suggestions of this kind; with --do all of them at once
  (writing)
# Index
index  admin:index  bring the index up to date
  --force                             read every file again
  --dry-run                           show what would be sent where, and send nothing
  --yes                               approve that the provider gets the notes of this workspace
  --accept-shrink                     forget notes that vanished at once
  --verbose                           name each file as it is indexed, on standard error
status  admin:status  what is indexed, by what, and what is missing
  --deep                              also embed one text with the provider
  --sync                              index what changed first; implies --deep
  --verbose                           name each file as it is indexed, on standard error
# Agents
connect  agents:connect  make openclaw, claude-code or codex use this memory, and prove it
  host? HOST                          openclaw, claude-code or codex
  --project                           for the project in this folder alone
  --status                            ask every connected host's server, and write nothing
  --log-recalls                       write down here what the agent asks and gets; without it you are asked
  (writing)
disconnect  agents:disconnect  bring a host's files back to what they were before connect
  host? HOST                          openclaw, claude-code or codex
  --project                           for the project in this folder alone
  (writing)
mcp  host_calls:mcp  serve memory_search and memory_get to an agent over MCP
  --citations auto|on|off             whether hits name their source: auto, on or off
  --session-key KEY@                  the session that auto goes by, like agent:main:main
  --max-chars N                       most characters of snippets in one answer
  --log-recalls                       write down what agents ask and get, on this machine only (or recall.log=true)
  --allow-write                       let the agent correct lines of notes, and store and forget long-term memories
  --no-prompts --no-resources         changes nothing: files of hosts that an earlier release connected name it
  --print-config                      print the entry in JSON that a client of MCP takes
hook  host_calls:hook  answer a host's hook: claude-code or codex
  name claude-code|codex  the host
prompt  host_calls:prompt  print what an agent reads about its memory at the start of a session
  --citations auto|on|off             auto, on or off (default: as configured)
  --session KEY@                      session key; MEMORY.md is for direct chats only
  --budget                            how much of MEMORY.md the hosts read, and where they cut
recall-log  agents:recalls  what agents asked, what they got, and what they would get now
  id?                                 one recall, by the start of its id, or last
  --why PATH[:LINE]                   why that recall did, or did not, find this note
  --sessions                          from the transcripts of agents: each turn, whether it asked, what it quoted
  --days N@7                          with --sessions: of how many days (default: 7)
  -n --newest N@20                    how many are listed (default: 20)
  --clear                             delete the log of this workspace
memories  agents:memories  list every memory on this machine; bring one after its project that moved
  --move FOLDER                       bring this memory to where its agent looks since its project was moved
  --undo                              take the last such move back
  (writing)
# OpenClaw
config  admin:config  list every value, its origin and its effect; --write changes the file
  --write                             write what --set and --profile ask for into openclaw.json, or into our own file
  --undo                              undo the last write
  (writing)
openclaw compare-index  programs:compare_index  what OpenClaw's own index holds of the notes; it is only read
  db? DB                              its database (default: OpenClaw's)
openclaw flush  programs:flush  whether OpenClaw lets a session write down now what it knows
openclaw inject  programs:inject answers  which entries OpenClaw 2026.9 puts before its agent for a message
  message                             a message to the agent
openclaw trust  programs:trust  whether OpenClaw 2026.9 still trusts each note
# Other memories
qmd  programs:qmd  QMD as the backend: update, status, approve, revoke
  action update|status|approve|revoke  approve and revoke are for its program
  --yes                               agree to run the program, without being asked
ltm  programs:ltm  long-term memories in LanceDB: list, search, store, forget, undo
  action list|search|store|forget|undo|approve|revoke  one of list, search, store, forget, undo, approve, revoke
  words* WORD                         a text, query or id
  -n --limit N                        how many (default: list 50, search 5)
  --min-score F                       search: the least score
  --category NAME@                    store: preference, fact, decision, entity or other
  --importance F                      store: from 0 to 1
  --yes                               agree that memory-tui writes this table
# Shared index
shared init  shared:init extra=postgres  make the tables of a team's index in PostgreSQL, as the owner of the database
  --admit LOGIN...                    a login that may use it; repeatable
  (writing)
shared join  shared:join extra=postgres  agree that this workspace is published there, and say who may read it
  --memory-md                         also MEMORY.md
  --transcripts                       also transcripts of sessions
  --let LOGIN...                      a login or a role that may read it; repeatable
  --unlet LOGIN...                    one that may no longer; repeatable
  --leave                             take it out of the shared index
  --yes                               agree without being asked
shared publish  shared:publish extra=postgres  publish the index now and, with shared.publish, after each change
  --once                              end after the first time
shared mirror  shared:mirror extra=postgres  bring the mirror of a scope up to date, however long that takes
  scope SCOPE                         OWNER/NAME, group:ROLE or all, several apart by commas
shared verify  shared:check extra=postgres  compare what is published with the index
  --against-disk                      also with the notes
# Maintenance
open  main:open_app  open the app; the default, so that memory-tui PATH opens a workspace
  path?                               the workspace
  --query TEXT                        a query to start with
demo  admin:demo  open the app on a copy of the sample workspace
  --query TEXT                        a query to start with
serve  serve:serve extra=serve  open the app in a browser of this machine, read-only unless --allow-write
  path?                               the workspace
  --query TEXT                        a query to start with
  --port N@0                          port on this machine (default: a free one)
  --allow-write                       let the page change notes and settings, too
doctor  admin:doctor answers  examine machine, notes, index, provider and settings
  --deadline S@20                     seconds for a check (default: 20)
  --all                               also show the checks that pass
provider  admin:provider  embedding providers: status, data sent, test
  --test [NAME]                       make one real call, with a sentence of memory-tui's own
  --approve [NAME]                    approve a provider, after asking: it gets the notes of this workspace
  --stays-here NAME                   say that a server on this machine keeps what it gets: it gets secrets too
  --revoke [NAME]=all                 withdraw the approval of one provider, or of all
  --fetch                             show address, size and checksum of each file of the local model
  --add [KIND]                        set a provider up: test it, show the file's difference, ask
  --address URL                       with --add: where it is asked (remote.baseUrl)
  --key-variable NAME                 with --add: the variable that holds its key
  --model NAME                        with --add: its model
  --yes                               do what --add, --approve, --stays-here or --fetch shows
help  admin:show_help  print a page of the manual, or the completion script of a shell
  topic? TOPIC                        a page
  --completion bash|zsh|fish          print the script of bash, zsh or fish
"""
"""Each command of one or two words: its function, flags and help; below it its options.

An option has its names, its value and its help. `NAME@7` has a default, `[NAME]=all` may be left out and is then
`all`, `NAME...` may be repeated, `a|b` is one of these. An argument ends with `?` where it may be missing, with `*`
where there may be many; an option with `!` must be there.
"""
_WRITING = """
--yes                               write without asking
--dry-run                           show the difference and write nothing
"""
_GLOBAL = """
--workspace DIR                     folder of the notes (default: this one, or OpenClaw's)
--config FILE                       an openclaw.json, or a configuration of memory-tui's own
--agent ID@                         an agent of OpenClaw: its workspace and its own settings
--extra PATH...                     one more note or folder of notes; repeatable
--whole yes|no                      whether every note below the workspace is memory; it is remembered
--claude-code                       also what Claude Code remembers of this project
--codex                             also what Codex remembers; by itself in ~/.codex/memories
--index FILE                        index file to use (default: in the user's cache folder)
--provider NAME@                    builtin (default), none, or one that gets your notes, like openai
--backend NAME@                     who searches: builtin, or qmd (default: as configured)
--qmd-home DIR                      folder of QMD's configuration and index (default: beside the index)
--memories PLACE@                   folder of the LanceDB table of long-term memories
--profile NAME                      auto, recommended, openclaw-2026.9, openclaw-2026.3 or openclaw-2026.2
--active-project KEY...             a project that the agent works on (2026.9); repeatable
--set KEY=VALUE...                  change one setting; repeatable
--now ISO                           the time that ages are counted from (default: now)
--read-only                         never edit a note; the app then writes nothing but the index
--json                              print JSON
"""

WRITING = [_option(line) for line in _WRITING.strip().splitlines()]
GLOBAL = [_option(line) for line in _GLOBAL.strip().splitlines()]
"""The options of every command."""
COMMANDS = dict(_commands())
"""Every command of one or two words, in the order of --help."""

EXIT_CODES = """exit codes:
  0  done; an answer without hits is an answer, and so is one by words alone,
     with a notice, where the provider does not answer
  1  failed on the way: the index, the provider or the disk; doctor: a check failed
  2  cannot be done as asked: usage, configuration, workspace, path, value or labels
  3  eval: a mean is under its floor
  130  stopped by ctrl+c; by another signal, 128 and its number"""
SHARED = "Options of every command, such as --workspace, --config, --set and --json: memory-tui --help lists them."


# --- parsers -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that raises SettingError, with a sentence, where argparse would print and leave."""

    def error(self, message: str) -> NoReturn:
        """Raise `message` of argparse as a sentence."""
        sentence = f"{message[:1].upper()}{message[1:].rstrip('.')}."
        raise SettingError(sentence, f"{self.prog} --help shows what it takes.")


def _extended(parser: argparse.ArgumentParser, options: list[Option], *, described: bool = True) -> None:
    """Add `options` to `parser`; those that are not `described` are taken, but left out of its help."""
    for names, keywords in options:
        parser.add_argument(*names, **keywords if described else {**keywords, "help": argparse.SUPPRESS})


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command: its own options, and the shared ones, which its help leaves out."""
    command = COMMANDS[name]
    sentence = f"{command.help[:1].upper()}{command.help[1:]}."
    parser = _Parser(prog=f"memory-tui {name}", description=sentence, epilog=SHARED)
    parser.set_defaults(command=name)
    _extended(parser, command.options)
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
    """Return one parser with every command as a parser below it, from which the completion of a shell is made."""
    parser = main_parser()
    one_word = parser.add_subparsers(metavar="COMMAND")
    # By the first word of a command of two words; a command of one word stands at the top.
    parents = {"": one_word}
    for first_word, help_text in (("openclaw", "OpenClaw's own files"), ("shared", "a team's index")):
        parents[first_word] = one_word.add_parser(first_word, help=help_text).add_subparsers(metavar="COMMAND")
    for name, command in COMMANDS.items():
        first_word, _, last_word = name.rpartition(" ")
        child = parents[first_word].add_parser(last_word, help=command.help)
        _extended(child, command.options)
        _extended(child, GLOBAL, described=False)
    return parser


def _listed() -> list[str]:
    """List the commands with a line of help each, group by group."""
    lines = []
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        listed = [f"  {name:<23} {command.help}" for name, command in COMMANDS.items() if command.group == group]
        lines += ["", f"{group}:", *listed]
    return lines


# --- which command -------------------------------------------------------------------------------------------------

_ABOUT = {"--version", "--help", "-h"}
_FLAGS = _ABOUT | {option.names[0] for option in GLOBAL if option.keywords.get("action") == "store_true"}
"""The options before a command that take no value."""
_BEFORE = {name: name for name in sorted({"--query", *_FLAGS, *(option.names[0] for option in GLOBAL)})}
"""The options that may stand before a command, or without one."""


def command_and_words(words: list[str]) -> tuple[str, list[str]]:
    """Return the command among `words`, and the other words. Raises SettingError.

    Without a command it is `open`, so that a bare path opens the app; with --help or --version alone it is empty.
    """
    # Whether the word is the value of the option before it.
    is_value = False
    for index, word in enumerate(words):
        if is_value:
            is_value = False
        elif word.startswith("-") and word != "-":
            option, has_value, _ = word.partition("=")
            if not any(name.startswith(option) for name in _BEFORE):
                rule = "Options of a command follow it; memory-tui --help lists the others."
                message = f"There is no option {one_line(option, 40)} that stands before a command."
                raise SettingError(message, _suggestion(option, _BEFORE, rule))
            is_value = option not in _FLAGS and not has_value
        else:
            # A command has one word, or two such as "shared join".
            for count in (2, 1):
                name = " ".join(words[index : index + count])
                if name in COMMANDS:
                    return name, words[:index] + words[index + count :]
            _require_path(word)
            return "open", words
    return ("", words) if _ABOUT & set(words) else ("open", words)


def _require_path(word: str) -> None:
    """Raise SettingError for a word that is no command, and no path as far as anybody can see."""
    if os.path.exists(word) or word.startswith("~") or any(letter in word for letter in "/\\."):  # noqa: PTH110
        return
    if longer := [name for name in COMMANDS if name.startswith(f"{word} ")]:
        raise SettingError(f"memory-tui {word} needs another word.", f"Choose one of {', '.join(longer)}.")
    # Later entries replace earlier ones: commands those of options, and options those of later commands.
    spellings: dict[str, str] = {}
    for name, command in reversed(COMMANDS.items()):
        # An option may be typed without its hyphens, or as if it were a word of the command.
        for option in (names[-1] for names, _ in command.options if names[-1].startswith("--")):
            spellings |= dict.fromkeys((option[2:], _sorted_words(f"{name} {option}")), f"{name} {option}")
    spellings |= {"help": "--help", "version": "--version", "journal": "history"}
    for name in COMMANDS:
        spellings |= dict.fromkeys((name.rpartition(" ")[2], _sorted_words(name)), name)
    step = _suggestion(_sorted_words(word.lower()), spellings, "memory-tui --help lists the commands.")
    raise SettingError(f"There is no command {one_line(word, 40)!r}, and no such folder.", step)


def _suggestion(text: str, spellings: Mapping[str, str], otherwise: str) -> str:
    """Return what `text` was probably meant for, by the nearest of `spellings`, as a sentence."""
    nearest = difflib.get_close_matches(text, spellings, n=1, cutoff=0.7)
    return f"Did you mean {spellings[nearest[0]]}?" if nearest else otherwise


def _sorted_words(text: str) -> str:
    """Return the words of `text`, which spaces or hyphens part, in alphabetical order.

    `why-file` and `why --file` become the same text, `file why`, so that one is taken for the other.
    """
    return " ".join(sorted(text.replace("-", " ").split()))
