"""What every command shares. It reads arguments and options, opens the engine, and says what a command waits for."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from memory_tui.core.errors import ApprovalMissing, SettingError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line

if TYPE_CHECKING:
    from memory_tui.core.events import Event, SyncProgress
    from memory_tui.core.settings import Settings
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Options, Plan

_NOTIFYING = ("search", "status", "index")
"""Commands whose answer holds every notice of the engine."""
_SWITCHES = ("read_only", "log_recalls", "allow_write", "no_prompts", "no_resources")


class Command(NamedTuple):
    """A command: `run` carries it out and returns the exit code, `declare` adds its arguments to its parser."""

    run: Callable[[argparse.Namespace], int]
    declare: Callable[[argparse.ArgumentParser], object] = lambda _parser: None


def positive(text: str) -> int:
    """A whole number from 1, as an argument's type."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def at_least(least: float) -> Callable[[str], float]:
    """A finite number from `least` up, as an argument's type."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:g} up")
        return value

    return number


def spoken(text: str) -> str:
    """What a person typed, as an argument's type: UTF-8 where the locale is ASCII and takes its bytes apart."""
    try:
        # What argparse passes for an argument that is not there has to stay the very same object.
        return text if text.isascii() else os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return text


def query_of(given: argparse.Namespace) -> str | None:
    """The query, or None where there is none, or a blank one."""
    query: str = getattr(given, "query", "")
    return query if query.strip() else None


def confirmed(question: str, given: argparse.Namespace) -> bool:
    """Whether a person says yes: by `--yes`, or when asked; nothing, and no terminal to ask on, is no."""
    if hasattr(given, "yes"):
        return True
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def typed(question: str, usual: str) -> str:
    """What a person on a terminal answers; `usual` for an empty line."""
    print(f"{question} [{usual}]: ", end="", file=sys.stderr, flush=True)  # noqa: T201
    return sys.stdin.readline().strip() or usual


def require_yes(does: str, command: str, given: argparse.Namespace) -> None:
    """Ask a person whether that may be done which the sentence `does` says. Raises ApprovalMissing unless it may."""
    if not confirmed(f"{does} Approve?", given):
        raise ApprovalMissing(f"Nothing was approved. What was asked for: {does}", f"To approve it: {command}.")


_ANSWERS = frozenset({"search", "why", "why-never", "doctor", "inbox", "inject", "compare-qmd"})
"""Commands that answer from the index: one that hangs on a provider answers by words."""


def options(given: argparse.Namespace) -> Options:
    """The options of the engine that `given` asks for. Raises SettingError."""
    from memory_tui.plan import Options

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
    if hasattr(given, "max_characters"):
        changes.append(("query.maxCharacters", str(given.max_characters)))
    if hasattr(given, "min_score"):
        changes.append(("query.minScore", given.min_score))
    named = getattr(given, "path", "") if given.command in ("open", "serve") else ""
    workspace, extra = _with_codex(given, *_with_claude_code(given, named or getattr(given, "workspace", None)))
    return Options(
        workspace=workspace,
        extra=extra,
        config=getattr(given, "config", None),
        index=getattr(given, "index", None),
        provider=getattr(given, "provider", ""),
        read_only=hasattr(given, "read_only"),
        now=moment(given),
        changes=tuple(changes),
        agent=getattr(given, "agent", ""),
        projects=tuple(getattr(given, "active_project", ())),
        backend=getattr(given, "backend", ""),
        qmd_home=getattr(given, "qmd_home", None),
        memories=getattr(given, "memories", ""),
        once=given.command == "search" and not {"stdin", "source"} & vars(given).keys(),
        answers=given.command in _ANSWERS,
    )


def passed_on(given: argparse.Namespace) -> list[str]:
    """What was said on this command line, with whole paths, for another one; the workspace is named in any case."""
    from msgspec.structs import replace

    from memory_tui import plan
    from memory_tui.hosts import wiring

    asked = options(given)
    if not {"workspace", "agent", "config"} & vars(given).keys():
        asked = replace(asked, workspace=str(plan.plan(asked).workspace))
    words = wiring.words_of(asked)
    for name in ("citations", "session_key", "max_chars"):
        if hasattr(given, name):
            words += [f"--{name.replace('_', '-')}", str(getattr(given, name))]
    return words + [f"--{name.replace('_', '-')}" for name in _SWITCHES if hasattr(given, name)]


def _with_claude_code(given: argparse.Namespace, workspace: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The workspace and the extra paths; with `--claude-code` what it remembers of the project is among them."""
    extra = tuple(getattr(given, "extra", ()))
    if not hasattr(given, "claude_code"):
        return workspace, extra
    from pathlib import Path

    from memory_tui.hosts import claude_code

    project = Path(workspace).expanduser() if workspace else Path.cwd()
    memory = claude_code.auto_memory(project)
    if not memory.is_dir():
        raise SettingError(
            f"Claude Code remembers nothing of {project}: there is no {memory}.",
            "Run memory-tui in the folder of a project that it knows, or leave --claude-code out.",
        )
    own = claude_code.workspace(project)
    return str(own) if workspace is None or own == memory else workspace, (*extra, str(memory))


def _with_codex(
    given: argparse.Namespace, workspace: str | None, extra: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The workspace and the extra paths with Codex's memory, where `--codex` asks for it or it is the workspace."""
    from pathlib import Path

    if not hasattr(given, "codex"):
        if workspace is None or Path(workspace).name != "memories":
            return workspace, extra
        from memory_tui.hosts import codex

        return workspace, (*extra, str(codex.folder())) if codex.is_memory(Path(workspace)) else extra
    from memory_tui.hosts import codex

    memory = codex.folder()
    if not memory.is_dir():
        raise SettingError(
            f"Codex remembers nothing yet: there is no {memory}.", "Switch its memories on first, or leave --codex out."
        )
    own = any((Path.cwd() / sign).exists() for sign in ("MEMORY.md", "memory.md", "memory"))
    if workspace is None and not own and not {"agent", "config"} & vars(given).keys():
        workspace = str(memory)
    return workspace, (*extra, str(memory))


def moment(given: argparse.Namespace) -> float | None:
    """`--now` in epoch seconds, None when it was not given. Raises SettingError."""
    import datetime as dt

    if not hasattr(given, "now"):
        return None
    try:
        at = dt.datetime.fromisoformat(given.now)
    except ValueError:
        raise SettingError(
            f"--now takes an ISO date and time, not {given.now!r}.", "For instance 2026-11-20T12:00:00Z."
        ) from None
    return at.replace(tzinfo=at.tzinfo or dt.UTC).timestamp()


def warn_ignored(keys: Iterable[str], settings: Settings) -> None:
    """Say on standard error which of `keys`, that were set for this run, have no effect."""
    from memory_tui.notices import without_effect

    for notice in without_effect(keys, settings):
        sys.stderr.write(f"memory-tui: {one_line(notice.message)} {one_line(notice.next_step)}".rstrip() + "\n")


def planned(given: argparse.Namespace) -> Plan:
    """What the command works with; a warning where `--extra` names nothing and where `--set` has no effect.

    Raises MemoryTuiError.
    """
    from memory_tui import plan as plans

    found = plans.plan(options(given))
    if found.chosen and given.command not in _NOTIFYING:
        warn_ignored(found.chosen, found.settings)
    for named in getattr(given, "extra", ()):
        place = found.roots.workspace / os.path.expanduser(named)  # noqa: PTH111 - an unknown user is no error
        if not place.exists():
            sys.stderr.write(f"memory-tui: --extra {one_line(named)}: there is nothing at {one_line(str(place))}.\n")
    return found


def opened(given: argparse.Namespace, plan: Plan | None = None) -> Engine:
    """An engine for the command, of what was `planned` for it. Raises MemoryTuiError."""
    from memory_tui.engine.engine import Engine

    return Engine(plan or planned(given), CommandProgress(each_file=hasattr(given, "verbose")))


QUIET = 0.7
"""Seconds for which indexing says nothing: most of it is done by then."""
REDRAWN = 0.1
"""Seconds between two drawings of the line of progress."""


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


class CommandProgress:
    """What a command that waits hears: batch jobs line by line, and on a terminal how far the indexing is, on stderr.

    The progress is one line that is drawn again and goes away at the end; a pipe or a dumb terminal gets none. With
    `each_file` every file that is indexed has a line.
    """

    def __init__(self, each_file: bool = False) -> None:
        self._each_file = each_file
        self.live = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        """Whether somebody sees it."""
        self._since = time.monotonic()
        self._drawn = 0.0

    def __call__(self, event: Event) -> None:
        """Tell `event`, on the thread that made it."""
        from memory_tui.core.events import (
            BatchNews,
            FileFailed,
            FileIndexed,
            FileRemoved,
            ModelFetching,
            SyncFinished,
            SyncProgress,
            VectorsMade,
        )

        match event:
            case BatchNews():
                self.clear()
                _say(
                    f"batch {event.stage}: {event.done:,} of {plural(event.total, 'text')}"
                    f"{event.detail and ', '}{one_line(event.detail)}"
                )
            case SyncProgress():
                self.draw(progress(event))
            case VectorsMade():
                pace = f", {event.pace}" if event.pace else ""
                self.draw(f"Embedding {event.done:,} of {event.total:,} chunks{pace}; ctrl+c stops")
            case ModelFetching():
                self.draw(f"Fetching the model {event.name}: {event.progress}; ctrl+c stops, the next run goes on")
            case SyncFinished():
                self.clear()
            case FileIndexed() if self._each_file:
                self._line(f"indexed {event.path}: {plural(event.chunks, 'chunk')}, {event.embedded:,} embedded")
            case FileRemoved() if self._each_file:
                self._line(f"removed {event.path}")
            case FileFailed() if self._each_file:
                self._line(f"failed {event.path}: {event.reason}")
            case _:
                pass

    def _line(self, line: str) -> None:
        self.clear()
        _say(one_line(line))

    def draw(self, line: str) -> None:
        """Show `line` in place of the one before."""
        now = time.monotonic()
        if self.live and now - self._since > QUIET and now - self._drawn > REDRAWN:
            self._drawn = now
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r{one_line(line)[:width]}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line of progress away."""
        if self._drawn:
            self._drawn = 0.0
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def waiting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Say on a terminal's stderr that `what` is under way, and for how long; what it yields hears done and total.

    Nothing is said in the first moment, and to a pipe never.
    """
    import threading

    shown, over, began, words = CommandProgress(), threading.Event(), time.monotonic(), [what]

    def update(done: int, total: int) -> None:
        words[0] = f"{what}: {done:,} of {total:,}"

    def draw() -> None:
        while not over.wait(QUIET / 2):
            shown.draw(f"{words[0]}, {time.monotonic() - began:.0f} s; ctrl+c stops")

    thread = threading.Thread(target=draw, daemon=True, name="progress")
    if shown.live:
        thread.start()
    try:
        yield update
    finally:
        over.set()
        if shown.live:
            thread.join()
            shown.clear()


def progress(event: SyncProgress) -> str:
    """How far the indexing is: `Indexing 1,200 of 3,001 files, 410 files/s, 4 s left`."""
    parts = [f"{'Rebuilding the index: ' if event.rebuilding else 'Indexing '}{event.done:,} of {event.total:,} files"]
    parts += [f"{event.rate:,.0f} files/s"] if event.rate >= 1 else []
    parts += [f"{event.seconds_left:,.0f} s left"] if event.seconds_left is not None else []
    return f"{', '.join(parts)}; ctrl+c stops"
