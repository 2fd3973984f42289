"""The table of hosts, and connections: what memory-tui wrote into the files of a host, with the way back.

What a row of the table names stands in the file of the host. What is written is recorded first, in the user's state
folder, with a backup of every file. A file that nobody touched since gets its old bytes back; of another one the
changes alone are taken out, and where one of them was edited the files stay as they are.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import platformdirs
from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from memory_tui.config import config_patch, json5
from memory_tui.config.config_patch import FileWrite, back_up, digest, overtaken, read, remove_empty, write_all
from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.errors import ConfigError, MemoryTuiError, SettingError
from memory_tui.formatting import one_line, plural
from memory_tui.hosts import claude_code, codex, openclaw
from memory_tui.hosts.wiring import PROFILE, PROOF_CLIENT, FileEdit, HostChange, Scope, ServerStart, Wiring
from memory_tui.secrets.finder import masked, redact


class Host(Struct, frozen=True):
    """A row: `edits` plans the files of a connection, `variables` are what the server gets (None: all)."""

    name: str
    title: str
    edits: Callable[[Wiring], tuple[FileEdit, ...]]
    after: str
    """What a person does so that the host reads its files again, as a sentence."""
    client: str
    """How the name begins by which the host introduces itself to a server."""
    loss: Callable[[], str] = str
    """Says what the host does without while it is connected, as sentences; `str()` is empty, for nothing."""
    variables: tuple[str, ...] | None = None
    scopes: tuple[Scope, ...] = ("user", "project")

    def start(self, wiring: Wiring) -> ServerStart:
        """Return what the host starts once it is connected."""
        return ServerStart(wiring.server(), self.variables)


def host(name: str) -> Host:
    """Return the row of the host `name`. Raises SettingError."""
    if name not in HOSTS:
        raise SettingError(f"There is no host {name!r}.", f"Choose one of {', '.join(HOSTS)}.")
    return HOSTS[name]


_ROWS = (
    Host(
        "openclaw",
        "OpenClaw",
        openclaw.edits,
        "Restart the gateway: openclaw gateway restart.",
        "openclaw",
        openclaw.loss,
        scopes=("user",),
    ),
    Host(
        "claude-code",
        "Claude Code",
        claude_code.edits,
        "Start Claude Code again; in a project it asks once whether you trust the folder.",
        "claude",
    ),
    Host(
        "codex",
        "Codex",
        codex.edits,
        "Start Codex again; it asks once about new hooks.",
        "codex",
        variables=codex.VARIABLES,
    ),
)
HOSTS = {row.name: row for row in _ROWS}


# --- what is kept of a connection ----------------------------------------------------------------------------------


class ConnectedFile(Struct, frozen=True):
    """A file that was written: sums of its bytes before and after, empty for no file; `folders` were made for it."""

    path: Path
    backup: str
    before: str
    after: str
    changes: tuple[HostChange, ...]
    folders: tuple[str, ...] = ()


class HostConnection(Struct, frozen=True):
    """A host that is connected: the server that it starts, its profile, when it was connected (epoch seconds)."""

    host: str
    scope: Scope
    project: Path
    start: ServerStart
    profile: str
    at: float
    files: tuple[ConnectedFile, ...]


class PlannedFile(FileWrite, frozen=True):
    """A file as it is, and as it will be with or without a connection.

    `base` is what the file held before it was ever connected, None for no file; the `changes` are made to that.
    `ending` says what becomes of the file when a connection is undone, and is empty when one is made.
    """

    base: bytes | None = None
    changes: tuple[HostChange, ...] = ()
    ending: Literal["", "restored", "removed", "changes taken out", "as before"] = ""


# --- the record ----------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Return where connections are recorded, with backups that hold the keys of the files they are of."""
    return platformdirs.user_state_path("memory-tui", appauthor=False) / "connections"


def _record_path(host: str, scope: Scope, project: Path) -> Path:
    """Return where the connection of a host is recorded: one for the user, and one for each project."""
    return folder() / (f"{host}.json" if scope == "user" else f"{host}-{digest(os.fsencode(project))[:12]}.json")


def recorded(host: str, scope: Scope, project: Path) -> HostConnection | None:
    """Return the connection of a host, None where there is none. Raises ConfigError."""
    return _read(_record_path(host, scope, project))


def every() -> tuple[HostConnection, ...]:
    """Return all connections that are recorded, by host. Raises ConfigError."""
    return tuple(filter(None, map(_read, sorted(folder().glob("*.json")))))


def _read(path: Path) -> HostConnection | None:
    """Return the connection that is recorded at `path`; None where there is no file. Raises ConfigError."""
    data = read(path)
    if data is None:
        return None
    try:
        return convert(json.loads(data), HostConnection, dec_hook=lambda kind, raw: Path(raw) if kind is Path else raw)
    except ValueError as error:
        why = f"The record {path} of a connection cannot be read: {error}."
        raise ConfigError(why, "Undo the connection by hand, delete it.") from error


# --- connecting ----------------------------------------------------------------------------------------------------


def planned(host: Host, wiring: Wiring) -> tuple[PlannedFile, ...]:
    """Return every file that connecting writes, an earlier connection's left out. Raises ConfigError."""
    earlier = recorded(host.name, wiring.scope, wiring.project)
    restored = {file.path: file.then for file in restorations(earlier)} if earlier else {}
    files = []
    for edit in host.edits(wiring):
        path = Path(os.path.realpath(edit.path))
        now = read(path)
        # What an earlier connection wrote is replaced, not written a second time.
        base = restored.pop(path, now)
        after, changes = applied(FileEdit(path, edit.changes), base)
        files.append(PlannedFile(path, now, after if changes else base, base, changes))
    # What is left an earlier connection wrote, and this one does not.
    return (*files, *(PlannedFile(path, read(path), then, base=then) for path, then in restored.items()))


def difference(files: Sequence[PlannedFile]) -> Iterator[str]:
    """Yield the lines of a unified difference of `files`, in which what looks like a secret is masked.

    Copies that are new, which nobody reads as a difference, are counted in one line below it.
    """
    changed = [file for file in files if file.now != file.then]
    copies = [file for file in changed if file.now is None and any(change.kind == "copy" for change in file.changes)]
    if lines := [line for file in changed if file not in copies for line in config_patch.difference(file)]:
        yield from redact(masked("\n".join(lines))).split("\n")
    if copies:
        yield f"{plural(len(copies), 'new file')} in {os.path.commonpath([file.path.parent for file in copies])}"


_EFFECTS = {
    "mcpservers": "{} starts memory-tui mcp, which searches and reads your notes for it.",
    "plugins": "The plug-in memory-tui gets the memory slot of {} and starts memory-tui mcp, which searches the notes.",
    "permissions": "{} may call memory_search and memory_get without asking you each time; both only read.",
    "hooks": "Hooks of {} show it the newest logs at the start of a session, say what a compaction should keep, and "
    "write a session note at the end.",
}
"""What changes below a key of a file come to."""


def effects(host: Host, files: Sequence[PlannedFile]) -> list[str]:
    """Return what the changes of `files` have the host do, as sentences: a difference tells that to few people."""
    changes = (change for file in files if file.now != file.then for change in file.changes)
    # A copy has no keys.
    keys = {change.keys[0].lower().replace("_", "") for change in changes if change.keys}
    return [words.format(host.title) for key, words in _EFFECTS.items() if key in keys]


def connect(host: Host, wiring: Wiring, agreed: Sequence[PlannedFile]) -> HostConnection:
    """Write what a person `agreed` to, and return the connection. Raises ConfigError; then no file was written.

    What others wrote into the files since stays, as long as the changes are the same.
    """
    files = planned(host, wiring)
    record = _record_path(host.name, wiring.scope, wiring.project)
    if [file.changes for file in files] != [file.changes for file in agreed]:
        raise overtaken(files[0].path)
    earlier = _read(record)
    folders = {folder for file in earlier.files for folder in file.folders} if earlier else set()
    written = tuple(_backed_up(file, folders) for file in files if file.changes)
    connection = HostConnection(
        host.name, wiring.scope, wiring.project, host.start(wiring), wiring.profile, at=time.time(), files=written
    )
    entry = PlannedFile(record, read(record), json.dumps(to_builtins(connection, enc_hook=str), indent=1).encode())
    # The record first: whatever is written can be taken back.
    write_all([entry, *files])
    return connection


def _backed_up(file: PlannedFile, earlier: Collection[str]) -> ConnectedFile:
    """Write the backup of a file, and return what the way back needs to know of it. Raises ConfigError.

    `earlier` are the folders that an earlier connection made: they go with this one, like those that it makes itself.
    """
    backup = back_up(folder() / "backups" / f"{digest(file.base)[:16]}-{file.path.name}", file.base)
    folders = tuple(str(parent) for parent in file.path.parents if not parent.exists() or str(parent) in earlier)
    return ConnectedFile(file.path, backup, digest(file.base), digest(file.then), changes=file.changes, folders=folders)


# --- the way back --------------------------------------------------------------------------------------------------


def restorations(connection: HostConnection) -> tuple[PlannedFile, ...]:
    """Return every file of `connection` as it will be without it. Raises ConfigError for a later edit of it."""
    return tuple(map(_restoration, connection.files))


def _restoration(file: ConnectedFile) -> PlannedFile:
    """Return a file as it will be without the connection. Raises ConfigError where that cannot be.

    It gets its old bytes back; where somebody edited it since, or its backup is gone, the changes alone are taken out.
    """
    now = read(file.path)
    if digest(now) == file.before:
        return PlannedFile(file.path, now, now, ending="as before")
    if digest(now) == file.after:
        then = read(Path(file.backup)) if file.backup else None
        if then is not None or not file.backup:
            return PlannedFile(file.path, now, then, ending="restored" if file.backup else "removed")
    return PlannedFile(file.path, now, reverted(FileEdit(file.path, file.changes), now), ending="changes taken out")


def restore_files(connection: HostConnection) -> None:
    """Bring the files back, forget the connection. Raises ConfigError; then every file is as it was."""
    record = _record_path(connection.host, connection.scope, connection.project)
    # The last file first: what names another one goes before it.
    write_all([*reversed(restorations(connection)), PlannedFile(record, read(record), None)])
    remove_empty(Path(path) for file in connection.files for path in file.folders)


def wired(connection: HostConnection) -> list[str]:
    """Return what of `connection` is not in its files any more, as sentences; none where all of it is."""
    lost = []
    for file in connection.files:
        now = read(file.path)
        if now is None:
            lost.append(f"{file.path} is gone.")
        elif digest(now) != file.after and file.changes[0].kind == "copy":
            lost.append(f"{file.path} was edited after memory-tui wrote it.")
        elif digest(now) != file.after:
            # As if they were still to be made: those that would be are missing.
            changes = tuple(replace(change, old=None, there=0) for change in file.changes)
            try:
                _, missing = applied(FileEdit(file.path, changes), now)
                lost += [f"{file.path} lost {'.'.join(change.keys)}." for change in missing]
            except ConfigError as error:
                lost.append(error.message)
    return lost


# --- the changes of one file -----------------------------------------------------------------------------------------

_UNCHANGED, _BY_HAND = "Mend it; nothing was changed.", "Take it out by hand, or bring back what was written."


def applied(edit: FileEdit, before: bytes | None) -> tuple[bytes, tuple[HostChange, ...]]:
    """Return the bytes of a file after its changes, and the changes that were made, with what taking back needs.

    A change that the file has already is not made, and not returned. Raises ConfigError.
    """
    [first, *_] = edit.changes
    if first.kind == "copy":
        return str(first.value).encode(), (first,)
    text = _text(edit.path, before)
    changes = []
    for change in edit.changes:
        add = _with_table if change.kind == "table" else _with
        text, applied_change = add(edit.path, text, change)
        changes.append(applied_change)
    return _encoded(text, before), tuple(filter(None, changes))


def reverted(edit: FileEdit, now: bytes | None) -> bytes | None:
    """Return the bytes of a file without its changes, None where nothing is left. Raises ConfigError."""
    [first, *_] = edit.changes
    if first.kind == "copy":
        if now not in (None, str(first.value).encode()):
            raise ConfigError(f"{edit.path} was edited after memory-tui wrote it.", "Delete it by hand.")
        return None
    if now is None:
        return None
    text = _text(edit.path, now)
    # The last change first, which is the one that was made to the text as it is now.
    for change in reversed(edit.changes):
        take_out = _without_table if change.kind == "table" else _without
        text = take_out(edit.path, text, change)
    return _encoded(text, now)


def _text(path: Path, data: bytes | None) -> str:
    """Return the text of a file, empty for none, without a byte order mark. Raises ConfigError."""
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: byte {error.start}.", _UNCHANGED) from error


def _encoded(text: str, like: bytes | None) -> bytes:
    """Return `text` as bytes, behind a byte order mark where `like` has one."""
    return text.encode("utf-8-sig" if (like or b"").startswith(codecs.BOM_UTF8) else "utf-8")


# --- JSON ----------------------------------------------------------------------------------------------------------


def _tree(path: Path, text: str) -> Node:
    """Return the object that `text` is. Raises ConfigError for anything else."""
    root = parse_json5(SourceText(path, text))
    if not isinstance(root.value, dict):
        raise ConfigError(f"{path} holds no object.", _UNCHANGED)
    return root


def _with(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    """Return `text` with a member or an item, and the change with what was there before.

    The second value is None where the file has the member or the item already.

    Raises ConfigError where something else than an object or a list is in the way.
    """
    text = text if text.strip() else "{\n}\n"
    node = _tree(path, text)
    for depth, key in enumerate(change.keys):
        if not isinstance(node.value, dict):
            raise _no_place(path, node, change.keys[:depth], "object")
        below = node.value.get(key)
        if below is None:
            # All that is missing below goes in at once.
            value: object = [change.value] if change.kind == "item" else change.value
            for missing in reversed(change.keys[depth + 1 :]):
                value = {missing: value}
            return json5.spliced(text, json5.insert(node, {key: value})), replace(change, there=depth)
        node = below
    applied_change = replace(change, there=len(change.keys))
    if change.kind == "item":
        if not isinstance(node.value, list):
            raise _no_place(path, node, change.keys, "list")
        if any(item.plain() == change.value for item in node.value):
            return text, None
        return json5.spliced(text, json5.append(node, change.value)), applied_change
    if node.plain() == change.value:
        return text, None
    splice = json5.Splice(node.start, node.end, json.dumps(change.value, ensure_ascii=False))
    return json5.spliced(text, [splice]), replace(applied_change, old=text[node.start : node.end])


def _no_place(path: Path, node: Node, keys: Sequence[str], kind: str) -> ConfigError:
    """Return the error of a file whose `node`, to which `keys` lead, is not of the `kind` that takes the change."""
    return ConfigError(f"{'.'.join(keys)} is no {kind} (line {node.line} of {path}).", _UNCHANGED)


def _without(path: Path, text: str, change: HostChange) -> str:
    """Return `text` without a member or an item, and without what is empty then and was not there before."""
    node = _tree(path, text).get(*change.keys)
    if node is None:
        return text
    if change.kind == "item":
        items = node.value if isinstance(node.value, list) else []
        item = next((item for item in items if item.plain() == change.value), None)
        if item is None:
            return text
        text = json5.spliced(text, json5.remove(node, item))
        if len(items) > 1:
            return text
    elif node.plain() != change.value:
        named = ".".join(change.keys)
        raise ConfigError(f"{named} was edited after memory-tui wrote it (line {node.line} of {path}).", _BY_HAND)
    elif change.old is not None:
        return json5.spliced(text, [json5.Splice(node.start, node.end, change.old)])
    # From the member itself up to the first of its parents that holds something else, or was there before.
    for depth in range(len(change.keys), change.there, -1):
        root = _tree(path, text)
        node, parent = root.get(*change.keys[:depth]), root.get(*change.keys[: depth - 1])
        if node is None or parent is None or (depth < len(change.keys) and node.value):
            break
        text = json5.spliced(text, json5.remove(parent, node))
    return text


# --- TOML ----------------------------------------------------------------------------------------------------------


def _table(change: HostChange, newline: str) -> str:
    """Return the table of a change; its values are text, truth values and lists of text.

    Text is a basic string of TOML: JSON's, except that it wants DEL escaped as well.
    """
    members = change.value if isinstance(change.value, Mapping) else {}
    rows = [f"{key} = {json.dumps(member, ensure_ascii=False)}" for key, member in members.items()]
    return newline.join([f"[{'.'.join(change.keys)}]", *rows, ""]).replace("\x7f", "\\u007f")


def _value(path: Path, text: str, keys: Sequence[str]) -> object:
    """Return the value that `keys` lead to in a TOML file; None where there is none. Raises ConfigError."""
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", _UNCHANGED) from error
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _with_table(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    """Return `text` with a table at its end, behind a blank line, and the change.

    The second value is None where the file has the table already. Raises ConfigError where it can take no such table.
    """
    if _value(path, text, change.keys) == change.value:
        return text, None
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text.endswith("\n") else newline * 2
    after = f"{text}{gap if text.strip() else ''}{_table(change, newline)}"
    try:
        # A second table of the same name is no TOML.
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        name = ".".join(change.keys)
        by_hand = f"Take {name} out by hand, then connect again; nothing was changed."
        raise ConfigError(f"{path} has a {name} of its own, or in a form that takes no other.", by_hand) from None
    return after, change


def _without_table(path: Path, text: str, change: HostChange) -> str:
    """Return `text` without a table, and without the blank line that sets it off."""
    if _value(path, text, change.keys) is None:
        return text
    # Somebody else may have written with other ends of lines since.
    newline = "\r\n" if _table(change, "\r\n") in text else "\n"
    before, table, after = text.partition(_table(change, newline))
    # Not there as it was written, or there is more of it elsewhere in the file.
    if not table or _value(path, before + after, change.keys) is not None:
        raise ConfigError(f"[{'.'.join(change.keys)}] of {path} was edited after memory-tui wrote it.", _BY_HAND)
    # Where it replaced nothing, it was put behind a blank line.
    if change.old is None and before.endswith(newline * 2):
        before = before.removesuffix(newline)
    return f"{before}{change.old or ''}{after}"


# --- proof ------------------------------------------------------------------------------------------------------------

SECONDS = 60.0
"""How long a server may take for its answer: the first one may wait for the first index."""
_QUESTION = "What was decided?"
_WORD = re.compile(r"[^\W\d_]{3,}")
_LEAST_WORDS, _MOST_WORDS = 3, 8
_AGAIN, _DOCTOR = "Run memory-tui connect again.", "Run memory-tui doctor."


class NoAnswer(MemoryTuiError):
    """The server that a host starts gave no answer."""

    code = "no_answer"


class Proof(Struct, frozen=True, rename="camel"):
    """Who answered: milliseconds until the tools were listed and for the question, hits, the first one's place."""

    server: str
    version: str
    tools_ms: float
    answer_ms: float
    profile: str
    provider: str
    question: str
    hits: int
    first: str

    def sentence(self) -> str:
        """Return what a person is told."""
        place = f", the first is {self.first}" if self.first else ""
        return (
            f"{self.server} {self.version} listed its tools in {self.tools_ms:.0f} ms and answered "
            f"{self.question!r} in {self.answer_ms:.0f} ms with profile {self.profile or 'unknown'}: "
            f"{plural(self.hits, 'hit')}{place}."
        )


def _question_of(start: ServerStart) -> str:
    """Return what the server that `start` names is asked: the first line of its MEMORY.md with at least three words."""
    words = start.words
    # The word behind the option, if it is not the last one.
    folder = Path(words[words.index("--workspace") + 1]) if "--workspace" in words[:-1] else Path()
    # A memory without that note, or one that the server itself looks for, is asked something else.
    with suppress(OSError):
        for line in (folder / "MEMORY.md").read_text("utf-8", "replace").splitlines():
            words_of_line = _WORD.findall(line)[:_MOST_WORDS]
            # No heading, no comment, no rule.
            if not line.lstrip().startswith(("#", "<", "---")) and len(words_of_line) >= _LEAST_WORDS:
                return one_line(" ".join(words_of_line), 80)
    return _QUESTION


def prove(start: ServerStart, seconds: float = SECONDS) -> Proof:
    """Start the server, ask it for a line of its notes, end it. Raises NoAnswer."""
    variables = os.environ if start.variables is None else start.variables
    environment = {name: os.environ[name] for name in variables if name in os.environ}
    with tempfile.TemporaryFile() as log:
        try:
            pipe = subprocess.PIPE
            process = subprocess.Popen(start.words, stdin=pipe, stdout=pipe, stderr=log, env=environment)
        except OSError as error:
            raise NoAnswer(f"{start.words[0]} cannot be started: {error.strerror or error}.", _AGAIN) from error
        # A server that hangs is killed, which ends the line that is waited for.
        late = threading.Timer(seconds, process.kill)
        late.daemon = True
        late.start()
        try:
            return _proof(partial(_answer, process, log, late), _question_of(start))
        finally:
            late.cancel()
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                # What the server did not take is written once more here; its end was reported.
                with suppress(BrokenPipeError):
                    if stream is not None:
                        stream.close()


def _proof(ask: Callable[[str, dict[str, Any]], dict[str, Any]], question: str) -> Proof:
    """Speak MCP with a server and return who answered the `question`, and how fast. Raises NoAnswer.

    `ask` sends a method with its parameters, and returns the result.
    """
    client = {"name": PROOF_CLIENT, "version": "1"}
    began = time.perf_counter()
    greeting = ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    tools = ask("tools/list", {}).get("tools", ())
    listed = time.perf_counter()
    if "memory_search" not in {tool.get("name") for tool in tools}:
        raise NoAnswer("The server offers no memory_search.", _AGAIN)
    result = ask("tools/call", {"name": "memory_search", "arguments": {"query": question}, "_meta": {PROFILE: True}})
    answered = time.perf_counter()
    info, answer = greeting.get("serverInfo") or {}, result.get("structuredContent") or {}
    if result.get("isError") or answer.get("disabled"):
        reason = str(answer.get("error") or "The memory cannot be searched.")
        raise NoAnswer(one_line(reason, 300), one_line(str(answer.get("action") or _DOCTOR), 300))
    hits = answer.get("results") or []
    return Proof(
        server=str(info.get("name", "")),
        version=str(info.get("version", "")),
        tools_ms=round((listed - began) * 1000, 1),
        answer_ms=round((answered - listed) * 1000, 1),
        profile=str((result.get("_meta") or {}).get(PROFILE, "")),
        provider=str(answer.get("provider", "")),
        question=question,
        hits=len(hits),
        first=f"{hits[0]['path']}:{hits[0]['startLine']}" if hits else "",
    )


def _answer(
    process: subprocess.Popen[bytes], log: IO[bytes], late: threading.Timer, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Send the request `method`, and return its result. Raises NoAnswer.

    `late` ends a process that takes too long, `log` has its standard error.
    """
    # Each method is asked once, so that its name can be the id of the request.
    messages: list[dict[str, Any]] = [{"id": method, "method": method, "params": params}]
    if method == "tools/list":
        # The second request: MCP wants to be told before that the greeting was understood.
        messages.insert(0, {"method": "notifications/initialized"})
    # A server that has ended takes nothing; what it said is read below.
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **item}).encode() + b"\n" for item in messages)
            process.stdin.flush()
    for line in process.stdout or ():
        try:
            message = json.loads(line)
        except ValueError:
            raise NoAnswer(f"The server wrote what is no message: {one_line(repr(line), 120)}.", "") from None
        if message.get("id") == method:
            if "error" in message:
                raise NoAnswer(one_line(str(message["error"].get("message")), 300), _DOCTOR)
            result: dict[str, Any] = message["result"]
            return result
    # A timer is finished once it has ended the process; nobody has cancelled it yet.
    if late.finished.is_set():
        raise NoAnswer(f"The server did not answer {method} in time.", _DOCTOR)
    process.wait(5)
    log.seek(0)
    lines = [text for text in log.read()[-4000:].decode("utf-8", "replace").split("\n") if text.strip()]
    reason = one_line(lines[-1], 300).rstrip(".") if lines else "it said nothing"
    raise NoAnswer(f"The server ended: {reason}.", "Mend what it says, then connect again.")
