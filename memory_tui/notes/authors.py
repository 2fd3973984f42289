"""Who changed a note: an agent by its transcript or by OpenClaw's ledger, git by its reflog, else nobody knows.

A claim counts where the call succeeded and its time fits, and only when it is held against the bytes of the note before
and after. Where two sessions fit, or nothing does, the author is unknown: a guess is worth less than none. Exact bytes
that somebody else writes into a transcript while the note changes cannot be told from the agent's own.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.errors import EditRefused
from memory_tui.formatting import one_line, plural
from memory_tui.hosts import transcripts
from memory_tui.hosts.transcripts import HostSession, ToolUse
from memory_tui.notes.changes import FileChange
from memory_tui.notes.journal import OTHERS, Author, Edit, Journal
from memory_tui.openclaw.trust import LedgerRow, Trust, text_hash
from memory_tui.secrets.finder import masked
from memory_tui.workspace.roots import Roots

_EARLY, _SLACK, _SHORT = 0.012, 0.003, 0.6
"""Seconds before the start of an act, and after its end, in which a change may still be its work; and how long a
command that moves or removes notes may run, for during a longer one somebody else may do so.

The clock of a file is some milliseconds slow and never fast: what changed after a tool had answered is not its work.
"""
_LEDGER = 1.0
"""Seconds between a change and the time of the ledger's row about it."""
_GIT_BEFORE, _GIT_AFTER, _LONGEST_MOVE = 1.0, 3.0, 60.0
"""Seconds around the line that git writes at the end of a move, and that a move of many files may take."""
_CHAIN, _LONGEST_CHAIN = 600.0, 50
"""Seconds that several acts may take to make one change, and how many they may be."""
Bytes = bytes | None
"""What a note holds; None where it is not there."""


class NoteChange(FileChange, frozen=True):
    """One change of the note at the absolute `path`, at `at` by the clock of its file.

    `since` is when the text before it was there already. Times are in epoch seconds. `twins` are the absolute paths of
    other notes that have, or had, the text that came; of one that is gone, the text that went.
    """

    at: float = 0.0
    since: float = 0.0
    twins: frozenset[str] = frozenset()


HOSTS = (*get_args(transcripts.Host), "git")
"""Who may be named."""
UNKNOWN = Author("", "", "none")
"""Nobody is known to have made a change, and it was asked."""


class Claim(Struct, frozen=True):
    """What a tool says that it did to one file: the new `text`, `edits` of the old one, or that it is gone."""

    path: str
    kind: Literal["write", "edit", "delete"]
    text: str = ""
    edits: tuple[Replacement, ...] = ()


class Replacement(Struct, frozen=True):
    """The text `new` in the place of `old`: where that stands, from `line` (from 1) on where that is known."""

    old: str
    new: str
    line: int = 0
    everywhere: bool = False


class Act(Struct, frozen=True):
    """A call with its session, and what it claims; a command, run in the folder `cwd`, claims nothing."""

    session: HostSession
    use: ToolUse
    claims: tuple[Claim, ...] = ()
    command: str = ""
    cwd: str = ""

    @property
    def owner(self) -> tuple[str, str]:
        """Return the host and its session."""
        return self.session.host, self.session.id


class Authors:
    """The authors of changes that are asked for in the order of their times.

    `made` tells whether one of git's `moves` made a change; `ledger` has OpenClaw's rows by absolute path.
    """

    def __init__(
        self,
        sessions: Iterable[HostSession],
        moves: Iterable[Move] = (),
        made: Callable[[Move, FileChange], bool] = lambda *_: False,
        ledger: Mapping[str, LedgerRow] | None = None,
    ) -> None:
        acts = [_act(session, use) for session in sessions for use in session.items if isinstance(use, ToolUse)]
        self._commands = sorted((act for act in acts if act.command), key=lambda act: act.use.at)
        # No command ran longer: what began earlier than this before a change need not be looked at.
        self._longest = max((act.use.end - act.use.at for act in self._commands), default=0.0) + _SLACK
        self._claims: dict[str, list[tuple[Act, Claim]]] = {}
        """What tools that succeeded say they did to the file at an absolute path, in the order of their ends."""
        for act in sorted(acts, key=lambda act: act.use.end):
            for claim in act.claims if act.use.succeeded else ():
                self._claims.setdefault(claim.path, []).append((act, claim))
        self._moves, self._made, self._ledger = tuple(moves), made, ledger or {}
        # What explained a change of a note so far: an act, or a row of the ledger, with the path of the note.
        self._used: set[frozenset[str]] = set()

    def of(self, change: NoteChange) -> Author:
        """Return who made `change`: the first that the bytes, the ledger, git or a command name; UNKNOWN for nobody."""
        if acts := self._by_bytes(change):
            return self._only(change, acts, "bytes")
        if author := self._by_ledger(change) or self._by_git(change):
            return author
        # A command whose steps make exactly the text after, or one that removed the note, or moved or copied it.
        acts = [act for act in self._running(change) if _wrote(act, change) or _took(act, change)]
        return self._only(change, acts, "command")

    def _only(self, change: NoteChange, acts: list[Act], rule: str) -> Author:
        """Return the session that all of `acts` belong to.

        UNKNOWN where they belong to several or to none, or where every act explained a change of this note before.
        """
        # A list, because each act has to be marked, not only the first that is new.
        fresh = [self._explains(act.use.id, change.path) for act in acts]
        owners = {act.owner for act in acts}
        return Author(*owners.pop(), rule) if any(fresh) and len(owners) == 1 else UNKNOWN

    def _explains(self, *key: str) -> bool:
        """Mark that an act explains a change of a note; `key` is the act and the path of the note.

        False where it explained one before: then somebody else brought the same text back.
        """
        is_new = frozenset(key) not in self._used
        self._used.add(frozenset(key))
        return is_new

    # --- the rules ---------------------------------------------------------------------------------------------------

    def _by_bytes(self, change: NoteChange) -> list[Act]:
        """Return the acts that can have made the bytes after `change` of those before it.

        Each made them by itself, or is the last of several acts of one session that made them together.
        """
        since = max(change.since, change.at - _CHAIN)
        claims = self._claims.get(change.path, ())
        ended = [(act, claim) for act, claim in claims if since <= act.use.end + _SLACK]
        near = [(act, claim) for act, claim in ended if act.use.at - _EARLY <= change.at][-_LONGEST_CHAIN:]
        acts = []
        # Session by session, told apart by identity: acts of two sessions make no change together.
        for session in {id(act.session) for act, _ in near}:
            # What the note may hold after the claims of one session so far. The text before the change is always among
            # it, because any claim may be the first that was part of the change.
            states: set[Bytes] = {change.before}
            for act, claim in near:
                if id(act.session) == session:
                    states = {after for state in states for after in _results(claim, state)} | {change.before}
                    if change.after in states and change.at <= act.use.end + _SLACK:
                        acts.append(act)
        return acts

    def _by_ledger(self, change: NoteChange) -> Author | None:
        """Return whom OpenClaw's ledger names for this text at this time; None where it has no such row.

        UNKNOWN where the row explained an earlier change: then somebody else brought the same text back.
        """
        row = self._ledger.get(change.path)
        if row is None or change.after is None or row.file_hash != text_hash(change.after):
            return None
        # The ledger has milliseconds.
        if abs(row.observed_at / 1000 - change.at) > _LEDGER:
            return None
        is_new = self._explains(f"ledger {row.observed_at}", change.path)
        return Author("openclaw", row.session_key or row.session_id, "ledger") if is_new else UNKNOWN

    def _by_git(self, change: NoteChange) -> Author | None:
        """Return git, or the agent whose command ran it; None where none of git's moves made the change.

        It is git where no command with the word "git" ran then, or those of several agents did.
        """
        for move in self._moves:
            if move.since - _GIT_BEFORE <= change.at <= move.at + _GIT_AFTER and self._made(move, change):
                owners = {act.owner for act in self._running(change) if re.search(r"\bgit\b", act.command)}
                # An agent's command ran git: it is the agent's doing.
                return Author(*owners.pop(), "git") if len(owners) == 1 else Author("git", move.what, "git")
        return None

    def _running(self, change: NoteChange) -> list[Act]:
        """Return the commands that ran when the note changed; `_commands` is sorted by when they began."""
        first = bisect_left(self._commands, change.at - self._longest, key=lambda act: act.use.at)
        last = bisect_left(self._commands, change.at + _EARLY, key=lambda act: act.use.at)
        return [act for act in self._commands[first:last] if act.use.succeeded and change.at <= act.use.end + _SLACK]


# --- what a call claims ----------------------------------------------------------------------------------------------


def _act(session: HostSession, use: ToolUse) -> Act:
    """Return what a call did, as far as it tells: a command of a shell, or claims about files, or neither."""
    args = use.args
    command = args.get("command", args.get("cmd"))
    if use.name in ("Bash", "exec", "exec_command", "shell") and command:
        # A list has the shell and its options before the script.
        command = str(command[-1]) if isinstance(command, list) else str(command)
        cwd = os.path.normpath(Path(use.cwd) / str(args.get("workdir") or ""))
        # A path cannot have NUL in it, so the steps of such a command are not looked at.
        return Act(session, use, (), "" if "\0" in command else command, cwd)
    try:
        # A transcript may hold anything: convert raises a ValueError where a field is of another type.
        claims = [to_builtins(claim) for claim in _claimed(use.name, args, use.details, use.cwd)]
        return Act(session, use, convert(claims, tuple[Claim, ...]))
    except (AttributeError, LookupError, TypeError, ValueError):
        # A transcript of another shape than the known ones claims nothing.
        return Act(session, use)


def _claimed(name: str, args: Mapping[str, Any], details: Mapping[str, Any], cwd: str) -> Iterator[Claim]:
    """Yield the claims of a tool that writes files. Raises AttributeError, LookupError, TypeError, ValueError."""
    path = _real(Path(cwd) / str(args.get("file_path") or args.get("path") or ""))
    # Claude Code has Write, Edit and MultiEdit, OpenClaw write and edit, Codex and OpenClaw apply_patch.
    if name in ("Write", "write"):
        # Into its own memory Claude Code writes more than the model said: the answer has the text that was written.
        yield Claim(path, "write", details.get("content", args.get("content")))
    elif name in ("Edit", "MultiEdit"):
        edits = (
            Replacement(edit["old_string"], edit["new_string"], everywhere=bool(edit.get("replace_all")))
            for edit in args.get("edits") or [args]
        )
        yield Claim(path, "edit", edits=tuple(edits))
    elif name == "edit":
        yield Claim(path, "edit", edits=tuple(Replacement(edit["oldText"], edit["newText"]) for edit in args["edits"]))
    elif name == "apply_patch" and "changes" in details:
        # The answer tells what the patch did: path -> how it changed the file there.
        for place, change in details["changes"].items():
            if change["type"] == "add":
                yield Claim(_real(place), "write", change["content"])
            elif change["type"] == "delete" or change.get("move_path"):
                yield Claim(_real(place), "delete")
            else:
                hunks = _hunks(change["unified_diff"].removesuffix("\n").split("\n"))
                yield Claim(_real(place), "edit", edits=tuple(hunks))
    elif name == "apply_patch":
        yield from _of_patch(str(args["input"]), cwd)


def _of_patch(patch: str, cwd: str) -> Iterator[Claim]:
    """Yield the claims of a patch as a model writes it: `*** Update File: path`, and below it the lines of its hunks.

    Of a note that it moves only the old path is claimed, as one that is gone.
    """
    for part in re.split(r"^\*\*\* (?=Add|Update|Delete)", patch, flags=re.MULTILINE)[1:]:
        head, *lines = part.split("\n")
        verb, _, name = head.partition(" File: ")
        path = _real(Path(cwd) / name.strip())
        if verb == "Add":
            yield Claim(path, "write", "".join(f"{line[1:]}\n" for line in lines if line.startswith("+")))
        elif verb == "Delete" or any(line.startswith("*** Move to: ") for line in lines):
            yield Claim(path, "delete")
        else:
            yield Claim(path, "edit", edits=tuple(_hunks(lines)))


def _hunks(lines: Sequence[str]) -> Iterator[Replacement]:
    """Yield each hunk of a unified diff as what its old lines are replaced by."""
    old: list[str] = []
    new: list[str] = []
    line = 0
    while lines and lines[0].startswith(("--- ", "+++ ")):
        lines = lines[1:]
    # The head of a hunk ends the one before it, so one more is put behind the last.
    for text in [*lines, "@@"]:
        if text.startswith("@@"):
            if old or new:
                yield Replacement("".join(old), "".join(new), line)
            old, new = [], []
            head = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", text)
            # Lines are numbered as in the new text, for the hunks above are replaced by then. Of a hunk without new
            # lines it is the number of the line above. 0 is a head without numbers, as a model writes it.
            line = int(head[1]) + (1 if head[2] == "0" else 0) if head else 0
        # Any other line is a remark, such as that the last line has no end.
        elif text[:1] in (" ", "-", "+"):
            old += [f"{text[1:]}\n"] if text[:1] != "+" else []
            new += [f"{text[1:]}\n"] if text[:1] != "-" else []


def _results(claim: Claim, before: Bytes) -> tuple[Bytes, ...]:
    """Return what a note that held `before` may hold after a claim: no text at all where the claim does not fit it.

    A patch does not tell whether the last line has a line end, so both texts are returned.
    """
    if claim.kind == "write":
        return (claim.text.encode("utf-8", "replace"),)
    if before is None:
        return ()
    if claim.kind == "delete":
        return (None,)
    text = before.decode("utf-8", "surrogateescape")
    is_patch = any(edit.line or edit.old.endswith("\n") for edit in claim.edits)
    # A hunk without a number is looked for from the one before it on.
    search_from = 0
    # The hunks of a patch have whole lines: a last line without an end is tried with one, too.
    for source in [text, f"{text}\n"] if is_patch and not text.endswith("\n") else [text]:
        after: str | None = source
        for edit in claim.edits:
            if after is not None:
                after, search_from = _edited(after, edit, search_from)
        if after is not None:
            results = (after, after.removesuffix("\n")) if is_patch else (after,)
            return tuple(result.encode("utf-8", "surrogateescape") for result in results)
    return ()


def _edited(text: str, edit: Replacement, search_from: int) -> tuple[str | None, int]:
    """Return `text` after one edit, and from where on the old text of the next edit is looked for.

    The text is None where it does not hold what is replaced. What has no number is looked for from `search_from` on,
    then everywhere.
    """
    if edit.everywhere:
        return (text.replace(edit.old, edit.new) if edit.old and edit.old in text else None), 0
    if edit.line:
        line_start = sum(len(line) + 1 for line in text.split("\n")[: edit.line - 1])
        start = line_start if text.startswith(edit.old, line_start) else -1
    elif edit.old:
        start = text.find(edit.old, search_from)
        start = start if start >= 0 else text.find(edit.old)
    else:
        # New lines that replace none go to the end.
        start = len(text)
    if start < 0:
        return None, 0
    # The hunks of a patch with numbers stand in order, so that the next one is below this one.
    return text[:start] + edit.new + text[start + len(edit.old) :], start + len(edit.new) if edit.line else 0


# --- what a command does ---------------------------------------------------------------------------------------------

_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n(.*?)^[ \t]*\2$", re.MULTILINE | re.DOTALL)
_OPERATORS = ";|&<>()\n"
_LONGEST_COMMAND = 1 << 17
_SED = re.compile(r"(?:s([/|,#])(?P<old>.+?)\1(?P<new>.*)\1(?P<flag>g?)|/(?P<gone>.+)/d)")
_MISSED = re.compile(r"\bcannot (?:stat|remove)\b|No such file|2>|&>")
"""What rm, mv and cp say where somebody was faster, or what keeps that from being read."""


class Step(Struct, frozen=True):
    """One program of a command: its words, the folder that it runs in, what it reads, and the file that it fills."""

    words: tuple[str, ...]
    folder: str
    text: str | None
    target: str
    appends: bool

    @property
    def args(self) -> list[str]:
        """Return its words without its name and options."""
        return [word for word in self.words[1:] if word[:1] != "-"]

    @property
    def options(self) -> str:
        """Return its options in a row."""
        return "".join(word for word in self.words[1:] if word[:1] == "-")

    def at(self, word: str) -> str:
        """Return the path that a word means."""
        return os.path.join(self.folder, os.path.expanduser(word.replace("$HOME", "~", 1)))  # noqa: PTH111, PTH118


@lru_cache(1000)
def _steps(command: str, cwd: str) -> tuple[Step, ...]:
    """Return the programs of a command, in the order in which they stand; none where it cannot be read."""
    # The search for the end of a heredoc may go through all that follows, so less is read the more of them there are.
    # A backslash at the end of a line joins it with the next.
    command = command[: _LONGEST_COMMAND // (1 + command.count("<<"))].replace("\\\n", " ")
    bodies = (match[4] for match in _HEREDOC.finditer(command))
    lexer = shlex.shlex(_HEREDOC.sub(r"<< \3", command), posix=True, punctuation_chars=_OPERATORS)
    # A line end is an operator, no blank; "#" begins no comment, for it may stand in a word.
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    steps, words, folder = list[Step](), list[str](), cwd
    text, target, appends = None, "", False
    try:
        # An operator ends a program, so one is put behind the last.
        tokens = iter([*lexer, ";"])
        for token in tokens:
            if not set(token) <= set(_OPERATORS):
                words.append(token)
            elif token == "<<":
                text = next(bodies)
            elif token in (">", ">>") and words[-1:] != ["2"]:
                target, appends = next(tokens), token == ">>"
            elif set(token) & set("<>"):
                # Another redirection: the file behind it, and the 2 of `2>` before it, are no words of the program.
                words = words[:-1] if words[-1:] == ["2"] else words
                next(tokens)
            else:
                step = Step(tuple(words), folder, text, target, appends)
                folder = os.path.normpath(step.at(step.args[0])) if words[:1] == ["cd"] and step.args else folder
                steps += [step] if words else []
                # What goes through a pipe is read by the next program.
                text = _printed(step) if token == "|" and not target else None
                words, target, appends = [], "", False
    except (ValueError, LookupError, StopIteration):
        return ()
    return tuple(steps)


def _printed(step: Step, *, escapes: bool = False) -> str | None:
    """Return what a step prints, None where that is not known; `escapes` is for shells whose echo reads `\\n`."""
    # A step may have no words, as in "> file": its name is empty then.
    name, *words = step.words or ("",)
    if name == "cat" and not words:
        return step.text
    if name == "echo":
        # Of the options of echo n alone changes what is printed: no line end.
        options = words[:1] if words and re.fullmatch("-[neE]+", words[0]) else []
        line = " ".join(words[len(options) :]) + "\n" * ("n" not in "".join(options))
        return _unescaped(line) if escapes else line
    if name != "printf":
        return None
    form, *values = (words[1:] if words[:1] == ["--"] else words) or ["%"]
    count = form.count("%s")
    # printf repeats the form until all values are printed, and prints one without "%s" once. Other forms are not known.
    if form.count("%") > count or len(values) % (count or 1) or (values and not count):
        return None
    texts = iter(values)
    return re.sub("%s", lambda _: next(texts, ""), _unescaped(form) * max(1, len(values) // (count or 1)))


def _unescaped(text: str) -> str:
    """Return a text with line end, tab and backslash for what stands for them behind a backslash."""
    return re.sub(r"\\([nt\\])", lambda match: {"n": "\n", "t": "\t"}.get(match[1], "\\"), text)


def _wrote(act: Act, change: NoteChange) -> bool:
    """Tell whether the steps of a command, run on what the note held before `change`, make what it held after."""
    steps = _steps(act.command, act.cwd)
    # Whether echo reads escapes depends on the shell, which is not known.
    return any(change.after == _after(steps, change, escapes=escapes) for escapes in (False, True))


def _took(act: Act, change: NoteChange) -> bool:
    """Tell whether a command removed or moved the note, or brought another one to its path.

    It has to be so quick that nobody else can have done so while it ran.
    """
    # Where the command tells that something was missing, or hides it, somebody else may have been faster.
    is_quick = act.use.at <= change.at and act.use.end - act.use.at <= _SHORT
    steps = () if _MISSED.search(f"{act.command}\n{act.use.text}") else _steps(act.command, act.cwd)
    return is_quick and any(_moves(step, change) for step in steps)


def _after(steps: Iterable[Step], change: NoteChange, *, escapes: bool) -> Bytes:
    """Return what the note of `change` holds after `steps`: those of tee, sed -i, and of programs with known output.

    `escapes` tells whether the shell is one whose echo reads `\\n`.
    """
    now = change.before
    for step in steps:
        is_tee = step.words[0] == "tee"
        text = step.text if is_tee else _printed(step, escapes=escapes)
        targets = step.args if is_tee else [step.target] if step.target else []
        if text is not None and any(_real(step.at(target)) == change.path for target in targets):
            appends = "a" in step.options if is_tee else step.appends
            now = ((now or b"") if appends else b"") + text.encode("utf-8", "replace")
        # `sed -i script file ...` changes the files themselves.
        is_sed = step.words[0] == "sed" and step.options.startswith("-i") and len(step.args) > 1
        if is_sed and now is not None and any(_is_at(change.path, step.at(word)) for word in step.args[1:]):
            now = _after_sed(step.args[0], now)
    return now


def _after_sed(script: str, before: bytes) -> bytes:
    """Return `before` after a script of sed, unchanged where the script is neither s/old/new/ nor /gone/d.

    `old` and `gone` are taken as plain text, not as patterns.
    """
    if (match := _SED.fullmatch(script)) is None:
        return before
    old, new, gone = ((match[name] or "").encode("utf-8", "replace") for name in ("old", "new", "gone"))
    lines = before.splitlines(keepends=True)
    if gone:
        return b"".join(line for line in lines if gone not in line)
    return b"".join(line.replace(old, new, -1 if match["flag"] else 1) for line in lines)


def _moves(step: Step, change: NoteChange) -> bool:
    """Tell whether a step can have made `change`: it removes the note by name, or moves or copies it to or from a twin.

    `rm -f` says nothing where somebody was faster, and of what lies in a folder, or fits a pattern, nobody knows.
    """
    name = step.words[0]
    is_gone = change.after is None
    if name in ("rm", "unlink"):
        return is_gone and not step.options and change.path in {_real(step.at(word)) for word in step.args}
    if name not in (("mv",) if is_gone else ("mv", "cp", "install", "rsync")) or len(step.args) < 2:
        return False
    *sources, last = map(step.at, step.args)
    # From where to where the text may have been moved: a twin is a note that has, or had, the same text.
    pairs = [(change.path, twin) if is_gone else (twin, change.path) for twin in change.twins]
    # The last word is the new path, or the folder that gets a file of the same name.
    fitting = [source for source, target in pairs if _real(last) in _ways_to(target, Path(source).name)]
    return any(_is_at(source, word) for source in fitting for word in sources)


def _ways_to(path: str, name: str) -> list[str]:
    """Return what a command that moves a file called `name` to `path` may have as its last word."""
    return [path, str(Path(path).parent)] if Path(path).name == name else [path]


def _is_at(path: str, word: str) -> bool:
    """Tell whether a word of the shell, which may be a pattern, means `path`."""
    pattern = _real(word)
    return path == pattern or (path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern))


@lru_cache(10_000)
def _real(path: str | Path) -> str:
    """Return a path with its folder where that really lies; the file itself may be a link, or gone."""
    folder, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - a name may be a pattern


# --- the record ------------------------------------------------------------------------------------------------------

_LATE = 90.0
"""Seconds after a change by which every transcript has what a tool did, and a command in the background has ended."""
_CONTEXT = 200
"""Changes before the first one that is asked for: what brings their bytes back is nobody's."""


def name_authors(journal: Journal, roots: Roots, now: float) -> list[str]:
    """Write down who made those changes for which no author was looked for yet. Raises EditRefused.

    Returns a sentence for each transcript, reflog or ledger that cannot be read.
    """
    pending = {(edit.id, edit.place): edit for edit in journal.without_author()}
    if not pending:
        return []
    since = min(edit.at for edit in pending.values()) - _CHAIN
    context = max(0, min(number for number, _ in pending) - _CONTEXT)
    edits = sorted(journal.edits(since=context), key=lambda edit: (edit.at, edit.id))
    sessions, problems = transcripts.sessions(since)
    history = Repository(roots.workspace)
    try:
        moves = history.moves(since)
    except GitFailed as error:
        moves = []
        problems.append(error.message)

    # Each text that a note holds now, or held before an edit, and the paths of those notes.
    holders = defaultdict[int | None, set[str]](set)
    heads = [(path, head.blob) for path, head in journal.heads().items()]
    for path, blob in [*heads, *((edit.path, edit.before) for edit in edits)]:
        holders[blob].add(path)

    def change_of(edit: Edit, since: float = 0.0) -> NoteChange | None:
        """Return an edit with its texts; None where one is gone. `since` is when its note changed last before it."""
        try:
            before, after = journal.text(edit.before), journal.text(edit.after)
        except EditRefused:
            # A text that is gone proves nothing.
            return None
        twin_paths = holders[edit.before if edit.after is None else edit.after] - {edit.path}
        twins = frozenset(_real(roots.workspace / path) for path in twin_paths)
        return NoteChange(_real(roots.workspace / edit.path), before, after, at=edit.at, since=since, twins=twins)

    def fits(move: Move, edit: Edit) -> bool:
        """Tell whether `move` made an edit."""
        change = change_of(edit)
        return change is not None and history.made(move, change)

    moves = [_with_start(move, edits, fits) for move in moves]
    ledger = Trust(roots.workspace, places.state_database(), expected=False).ledger()
    problems += [ledger.problem] if ledger.problem else []
    rows = {_real(roots.workspace / row.relative_path): row for row in ledger.rows.values() if row is not None}
    authors = Authors(sessions, moves, history.made, rows)
    # When each note changed last before the edit that is looked at.
    last_times: dict[str, float] = {}
    named = []
    with journal.kept():
        for edit in edits:
            change = change_of(edit, last_times.get(edit.path, 0.0)) if edit.kind == OTHERS else None
            last_times[edit.path] = edit.at
            author = authors.of(change) if change is not None else UNKNOWN
            # Before every transcript has what a tool did, an author may still be found.
            if (edit.id, edit.place) in pending and (author.host or edit.at < now - _LATE):
                named.append((edit.id, edit.place, author))
    journal.set_authors(named)
    return problems


def _with_start(move: Move, edits: Sequence[Edit], made: Callable[[Move, Edit], bool]) -> Move:
    """Return `move` with the time at which it wrote its first file; git tells only when it was done.

    From its end backwards, each edit that it made is its start so far; one shortly before that may be its work, too.
    """
    # A reset or a rebase may find the new text there, as a person wrote it, or bring it back in no time.
    is_forced = move.what.startswith("reset") or "rebase" in move.what
    for edit in () if is_forced else reversed(edits):
        is_near = move.since - _GIT_BEFORE <= edit.at < move.since and edit.at > move.at - _LONGEST_MOVE
        if is_near and edit.kind == OTHERS and made(move, edit):
            move = replace(move, since=edit.at)
    return move


def words(author: Author | None) -> str:
    """Say who made a change, and by what that is known."""
    if author is None or not author.host:
        return "unknown"
    if author.host == "git":
        return one_line(f"git ({author.session}, by its reflog)")
    proof = {"ledger": "its ledger", "git": "its transcript and git's reflog"}.get(author.rule, "its transcript")
    session = f"session {author.session}, " if author.session else ""
    return one_line(f"{author.host} ({session}by {proof})")


def sentence(author: Author | None) -> str:
    """Say who made a change, as a sentence."""
    return f"By {words(author)}." if author is not None and author.host else "Nobody knows who made it."


def unknown_share(changes: Iterable[tuple[Author | None, int]]) -> str:
    """Say of how many changes by others nobody knows who made them; empty where there is none.

    `changes` has the authors, each with the number of changes.
    """
    counts = list(changes)
    total = sum(count for _, count in counts)
    unknown = sum(count for author, count in counts if author is None or not author.host)
    changed = plural(total, "change")
    if not unknown:
        return f"Of {changed} by others each has a known author." if total else ""
    part = f"{unknown:,} of {changed} by others ({unknown / total:.0%})" if unknown < total else changed
    return f"The author of {part} is unknown."


# --- git -------------------------------------------------------------------------------------------------------------

# A repository may come with a workspace that somebody else packed, and its configuration names programs: filters,
# hooks, differs, a monitor of files, a place to fetch missing objects from. Only commands that read commits and trees
# are used: they run none of the first, and for the last no protocol is allowed.

_GIT_SECONDS = 20.0
_MOST_GIT_BYTES = 32 * 1024 * 1024
"""How long git may take, and how many bytes it may answer."""
_GIT_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""The environment in which git reads no settings but the repository's, asks nobody and fetches nothing."""
_MOST_MOVES = 1000
_MOVE = re.compile(r"(?P<old>[0-9a-f]+) (?P<new>[0-9a-f]+) .*> (?P<at>\d+) [+-]\d{4}\t(?P<what>.*)")


class GitFailed(EditRefused):
    """git is not there, or did not do what it was asked to; the message has its words."""

    code = "git"
    exit_status = 1


class Move(Struct, frozen=True):
    """A line of the reflog that may have changed files: when (epoch seconds), from which commit to which, by what.

    git writes the line when the files are written; `since` is when the first of them was, as far as that is known.
    """

    at: float
    old: str
    new: str
    what: str
    since: float


class Repository:
    """The repository that holds `workspace`; paths are those under which notes are stored."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._trees: dict[str, dict[str, str]] = {}
        """Of each commit that was read: path from the top of the repository -> hash of the file."""

    def top(self) -> Path | None:
        """Return the folder of the repository around the workspace, on its file system; None without one or git."""
        with suppress(OSError):
            device = self._workspace.stat().st_dev
            for folder in (self._workspace, *self._workspace.parents) if shutil.which("git") else ():
                if folder.stat().st_dev != device:
                    break
                if (folder / ".git").exists():
                    return folder
        return None

    def root(self) -> str:
        """Return the first commit of the repository, of several the last that git lists. Raises GitFailed.

        Empty where there is no repository.
        """
        top = self.top()
        return "" if top is None else _git(top, "rev-list", "--max-parents=0", "HEAD").decode().split()[-1]

    def moves(self, since: float) -> list[Move]:
        """Return what moved HEAD after `since` and may have written files; a commit writes none. Raises GitFailed.

        They come in the order of the reflog, oldest first.
        """
        if (top := self.top()) is None:
            return []
        where = os.fsdecode(_git(top, "rev-parse", "--git-path", "logs/HEAD")).strip()
        try:
            lines = (top / where).read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        rows = [row for line in lines[-_MOST_MOVES:] if (row := _MOVE.fullmatch(line))]
        moves = [Move(at := float(row["at"]), row["old"], row["new"], masked(row["what"]), since=at) for row in rows]
        return [move for move in moves if move.at >= since and not move.what.startswith("commit")]

    def made(self, move: Move, change: FileChange) -> bool:
        """Tell whether a move made a change of a note; what a reset overwrote is known to nobody."""
        try:
            fits = self._holds(move.new, change.path, change.after)
            return fits and (move.what.startswith("reset") or self._holds(move.old, change.path, change.before))
        except GitFailed:
            # A commit that is gone since made nothing that can be proved.
            return False

    def _holds(self, commit: str, path: str, data: bytes | None) -> bool:
        """Tell whether a commit has the note `path` with the bytes `data`, or lacks it where they are None.

        A reflog names no commit by zeros: then there is no note.
        """
        if not commit.strip("0"):
            return data is None
        top = self.top() or self._workspace
        if commit not in self._trees:
            # A row is mode, kind and hash, then a tab and the path.
            rows = os.fsdecode(_git(top, "ls-tree", "-r", "-z", "--full-tree", commit)).split("\0")
            pairs = (row.partition("\t") for row in rows if row)
            self._trees[commit] = {name: words.split()[-1] for words, _, name in pairs}
        name = Path(os.path.relpath(self._workspace / path, top)).as_posix()
        if data is None:
            return name not in self._trees[commit]
        # Git names a file by the hash of this head and its bytes.
        blob = b"blob %d\0" % len(data) + data
        digest = hashlib.sha1(blob, usedforsecurity=False) if len(commit) == 40 else hashlib.sha256(blob)
        return self._trees[commit].get(name) == digest.hexdigest()


def _git(folder: Path, *words: str) -> bytes:
    """Run git in `folder` and return what it prints. Raises GitFailed.

    A folder that another user owns is read all the same (safe.directory): nothing that its settings name is run.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["git", "--no-pager", "--no-optional-locks", "-c", "safe.directory=*", *words],
            cwd=folder,
            env=environment | _GIT_ALONE,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git cannot be run: {error}.", "Install git, or look at the journal instead.") from None
    if answer.returncode or len(answer.stdout) > _MOST_GIT_BYTES:
        problem = answer.stderr.decode("utf-8", "replace").strip() or answer.returncode
        raise GitFailed(f"git {words[0]}: {problem}.", "Look at the repository with git.")
    return answer.stdout
