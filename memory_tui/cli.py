"""The engine without a screen: text for people, `--json` for programs, and documented exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from memory_tui import __version__, inquire
from memory_tui.errors import MemoryTuiError, QueryError, SettingError

if TYPE_CHECKING:
    from memory_tui.engine import Engine, Options

EXIT_CODES = """exit codes:
  0  done; an answer without hits is an answer
  1  failed on the way: the index, the provider or the disk
  2  cannot be done as asked: usage, configuration, workspace, path, value or labels
  3  eval: a mean is under its floor, or below the baseline
  130  stopped by the keyboard"""

_GLOBAL: tuple[tuple[tuple[str, ...], dict[str, object]], ...] = (
    (("--workspace",), {"metavar": "DIR", "help": "folder of the notes (default: this one, or OpenClaw's)"}),
    (("--config",), {"metavar": "FILE", "help": "an openclaw.json, or a configuration of memory-tui's own"}),
    (("--agent",), {"metavar": "ID", "help": "an agent of OpenClaw: its workspace and its own settings"}),
    (("--index",), {"metavar": "FILE", "help": "index file to use (default: in the user's cache folder)"}),
    (("--provider",), {"metavar": "NAME", "help": "builtin (default), none, or one that gets your notes, like openai"}),
    (("--profile",), {"metavar": "NAME", "help": "auto, recommended, openclaw-2026.3 or openclaw-2026.2"}),
    (("--set",), {"metavar": "KEY=VALUE", "action": "append", "help": "change one setting; may be repeated"}),
    (("--now",), {"metavar": "ISO", "help": "the time that ages are counted from (default: now)"}),
    (("--read-only",), {"action": "store_true", "help": "never edit a note (the index is still kept up to date)"}),
    (("--json",), {"action": "store_true", "help": "print JSON"}),
)
_FLAGS = {"--read-only", "--json", "--version", "--help", "-h"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"memory-tui: {message}\n")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """The command line; every global option may stand before or after the command."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    for names, keywords in _GLOBAL:
        shared.add_argument(*names, **keywords)  # type: ignore[arg-type]
    parser = _Parser(prog="memory-tui", parents=[shared], epilog=EXIT_CODES, argument_default=argparse.SUPPRESS,
                     description="See, search and explain the Markdown memory of an agent.",
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"memory-tui {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[shared],
                                   argument_default=argparse.SUPPRESS)

    opened = command("open", "open the app; the default, so that `memory-tui PATH` opens a workspace")
    opened.add_argument("path", nargs="?", help="the workspace")
    opened.add_argument("--query", help="a question to start with")
    command("demo", "open the app on a copy of the sample workspace")
    index = command("index", "bring the index up to date")
    index.add_argument("--force", action="store_true", help="read every file again")
    status = command("status", "what is indexed, by what, and what is missing")
    status.add_argument("--deep", action="store_true", help="also embed one text with the provider")
    search = command("search", "ask a question")
    search.add_argument("query", nargs="?", help="the question")
    search.add_argument("--stdin", action="store_true",
                        help='one question, or {"id","query"}, a line; one JSON answer a line')
    search.add_argument("-n", "--max-results", type=_positive, metavar="N", help="how many hits")
    search.add_argument("--min-score", metavar="F", help="what a hit has to score")
    search.add_argument("--source", choices=["memory", "sessions"], help="only hits of this source")
    search.add_argument("--explain", action="store_true", help="show the arithmetic of each hit and who lost why")
    get = command("get", "print a note, or some of its lines")
    get.add_argument("path")
    get.add_argument("--from", dest="start", type=_positive, metavar="N", help="first line")
    get.add_argument("--lines", type=_positive, metavar="N", help="how many lines")
    command("config", "every value of the configuration, where it is from and what it does; nothing is changed")
    why = command("why-file", "why a path is, or is not, part of the memory")
    why.add_argument("path")
    compared = command("compare-index", "what OpenClaw's own index holds of the notes; it is only read")
    compared.add_argument("db", nargs="?", metavar="DB", help="its database (default: that of OpenClaw's agent)")
    inquire.add(command)
    return parser


def _with_command(arguments: Sequence[str]) -> list[str]:
    """`arguments` with `open` in front when no command is among them, so that a bare path opens the app."""
    commands = {"open", "demo", "index", "status", "search", "get", "config", "why-file", "compare-index",
                *inquire.NAMES}
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            skip = word not in _FLAGS and "=" not in word
        elif word in commands:
            return list(arguments)
        else:
            _mistyped(word, commands)
            return ["open", *arguments]
    return list(arguments) if {"--version", "--help", "-h"} & set(arguments) else ["open", *arguments]


def _mistyped(word: str, commands: Iterable[str]) -> None:
    """Raises SettingError for a word that is no path but nearly a command."""
    import difflib
    from pathlib import Path

    near = difflib.get_close_matches(word, commands, n=1, cutoff=0.7)
    if near and not Path(word).exists():
        raise SettingError(f"There is no command {word!r}, and no such folder.", f"Did you mean {near[0]}?")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _speak_utf8()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        given = build_parser().parse_args(_with_command(words))
        return _COMMANDS[given.command](given)
    except MemoryTuiError as error:
        return _fail(error, as_json="--json" in words)
    except BrokenPipeError:
        # Whoever read the answer has seen enough.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130


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


def _options(given: argparse.Namespace) -> Options:
    from memory_tui.engine import Options

    changes = []
    for item in getattr(given, "set", ()):
        key, equals, value = item.partition("=")
        if not equals:
            raise SettingError(f"--set takes KEY=VALUE, not {item!r}.", "For instance --set query.minScore=0.2.")
        changes.append((key, value))
    if hasattr(given, "profile"):
        changes.append(("profile", given.profile))
    if hasattr(given, "max_results"):
        changes.append(("query.maxResults", str(given.max_results)))
    if hasattr(given, "min_score"):
        changes.append(("query.minScore", given.min_score))
    return Options(
        workspace=named if (named := getattr(given, "path", "")) and given.command == "open" else getattr(
            given, "workspace", None),
        config=getattr(given, "config", None), index=getattr(given, "index", None),
        provider=getattr(given, "provider", ""), read_only=hasattr(given, "read_only"),
        now=_now(given), changes=tuple(changes), agent=getattr(given, "agent", ""),
        once=given.command == "search" and not {"stdin", "source"} & vars(given).keys())


def _now(given: argparse.Namespace) -> float | None:
    import datetime as dt

    if not hasattr(given, "now"):
        return None
    try:
        moment = dt.datetime.fromisoformat(given.now)
    except ValueError:
        raise SettingError(f"--now takes an ISO date and time, not {given.now!r}.",
                           "For instance 2026-11-20T12:00:00Z.") from None
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp()


def _engine(given: argparse.Namespace) -> Engine:
    from memory_tui.engine import Engine

    return Engine.open(_options(given))


def _index(given: argparse.Namespace) -> int:
    from memory_tui import report

    with _engine(given) as engine:
        engine.plan.require_enabled()
        outcome = engine.sync(force=hasattr(given, "force"), reason="cli")
        report.sync(engine, outcome, as_json=hasattr(given, "json"))
        return 1 if outcome.error else 0


def _status(given: argparse.Namespace) -> int:
    from memory_tui import report

    with _engine(given) as engine:
        report.status(engine.status(deep=hasattr(given, "deep")), as_json=hasattr(given, "json"))
    return 0


def _search(given: argparse.Namespace) -> int:
    from memory_tui import report

    as_json, source = hasattr(given, "json"), getattr(given, "source", "")
    with _engine(given) as engine:
        engine.plan.require_enabled()
        if hasattr(given, "stdin"):
            engine.catch_up()
            for key, query, problem in _questions(sys.stdin):
                report.line(engine, key, query, problem, source)
            return 0
        if not hasattr(given, "query"):
            raise QueryError("What is the question?", 'For instance: memory-tui search "router vlan".')
        engine.catch_up()
        report.search(engine, given.query, source, as_json=as_json, explain=hasattr(given, "explain"))
    return 0


def _questions(lines: Iterator[str] | Sequence[str]) -> Iterator[tuple[object, str, str]]:
    """Each line as (id, query, problem): a JSON object with `query`, or a plain question."""
    import json

    for text in lines:
        text = text.rstrip("\r\n")
        if not text.lstrip().startswith("{"):
            if text.strip():
                yield None, text, ""
            continue
        try:
            item = json.loads(text)
        except ValueError as error:
            yield None, "", f"not valid JSON: {error}"
            continue
        query = item.get("query")
        asked = isinstance(query, str)
        yield item.get("id"), query if asked else "", "" if asked else "it has no query"


def _get(given: argparse.Namespace) -> int:
    from memory_tui import report

    with _engine(given) as engine:
        report.note(engine.get(given.path, getattr(given, "start", 1), getattr(given, "lines", None)),
                    as_json=hasattr(given, "json"))
    return 0


def _config(given: argparse.Namespace) -> int:
    from memory_tui import launch, report

    report.config(launch.choose(_options(given)).survey(), as_json=hasattr(given, "json"))
    return 0


def _why_file(given: argparse.Namespace) -> int:
    from memory_tui import report

    with _engine(given) as engine:
        report.path(engine.why_file(given.path), as_json=hasattr(given, "json"))
    return 0


def _compare_index(given: argparse.Namespace) -> int:
    from pathlib import Path

    from memory_tui import launch, report
    from memory_tui.index import compare

    plan = launch.plan(_options(given))
    path = Path(given.db).expanduser() if hasattr(given, "db") else compare.database(plan.config)
    outcome = compare.compare_workspace(plan.roots, path, compare.wanted(plan.config, plan.settings, plan.roots))
    report.comparison(outcome, as_json=hasattr(given, "json"))
    return {"ok": 0, "missing": 2}.get(outcome.state, 1)


def _inquire(given: argparse.Namespace) -> int:
    with _engine(given) as engine:
        engine.plan.require_enabled()
        return inquire.run(given, engine)


def _open(given: argparse.Namespace) -> int:
    if hasattr(given, "path") and hasattr(given, "workspace"):
        raise SettingError("Both a path and --workspace were given.", "Give one of them.")
    return _run(_options(given), getattr(given, "query", ""))


def _demo(given: argparse.Namespace) -> int:
    import datetime as dt
    import tempfile
    from dataclasses import replace
    from pathlib import Path

    from memory_tui import demo

    if hasattr(given, "workspace") or hasattr(given, "config"):
        raise SettingError("The demo has its own workspace and configuration.", "Leave --workspace and --config out.")
    moment = _now(given)
    today = dt.datetime.fromtimestamp(moment).date() if moment is not None else dt.date.today()  # noqa: DTZ
    with tempfile.TemporaryDirectory(prefix="memory-tui-demo-") as folder:
        workspace = demo.materialize(Path(folder) / "workspace", today)
        options = replace(_options(given), workspace=str(workspace))
        if options.index is None:
            options = replace(options, index=str(Path(folder) / "index.sqlite"))
        return _run(options, "", demo.SUGGESTED)


def _run(options: Options, query: str, suggestions: Sequence[str] = ()) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise MemoryTuiError("The app needs a terminal, and this is not one.",
                             "Use a command such as memory-tui search; memory-tui --help lists them.")
    from memory_tui.tui.app import run

    return run(options, query, suggestions)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "open": _open, "demo": _demo, "index": _index, "status": _status, "search": _search, "get": _get,
    "config": _config, "why-file": _why_file, "compare-index": _compare_index,
    **dict.fromkeys(inquire.NAMES, _inquire),
}
