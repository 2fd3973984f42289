"""The hosts: what each starts, which of its files change so that it does, and what it keeps that a person should know.

OpenClaw takes a plugin for its memory slot, which starts one server for each workspace; the plugin's folder is copied
out of the package, so that OpenClaw still starts when the Python environment is gone. Claude Code and Codex start the
server by an entry, and call hooks around a session.

Codex's own memory is a folder that it writes by itself, of what earlier sessions came to. It rewrites all of it: what a
person adds or corrects is a note of its own in extensions/ad_hoc/notes, which Codex reads when it next makes its memory
(source: the instructions in Codex 0.169.0).
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.config import json5, places
from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.config.model import PLUGIN, Config, installed_release, release_by_files
from memory_tui.durable import read_regular
from memory_tui.errors import ConfigError, SettingError
from memory_tui.hosts import claude_code
from memory_tui.plan import Options
from memory_tui.settings import NEWEST_OPENCLAW, OWN_PROFILE

_UNCHANGED = "Mend it; nothing was changed."
_BY_HAND = "Take it out by hand, or bring back what was written."


class HostChange(Struct, frozen=True):
    """One change: `keys` lead to a member of an object, a list that gets an item, a table of TOML; none for a copy.

    Once applied, `old` is the text that stood in its place, and `there` counts the keys that were there before.
    """

    kind: Literal["member", "item", "table", "copy"]
    keys: tuple[str, ...]
    value: object
    old: str | None = None
    there: int = 0


class FileEdit(Struct, frozen=True):
    """The changes of one file."""

    path: Path
    changes: tuple[HostChange, ...]


def applied(edit: FileEdit, before: bytes | None) -> tuple[bytes, tuple[HostChange, ...]]:
    """Return the bytes of a file after its changes, and the changes as taking back needs them. Raises ConfigError."""
    [first, *_] = edit.changes
    if first.kind == "copy":
        return str(first.value).encode(), (first,)
    text, done = _text(edit.path, before), list[HostChange]()
    for change in edit.changes:
        text, applied_change = (_with_table if change.kind == "table" else _with)(edit.path, text, change)
        done += [applied_change] if applied_change is not None else []
    return _encoded(text, before), tuple(done)


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
    for change in reversed(edit.changes):
        text = (_without_table if change.kind == "table" else _without)(edit.path, text, change)
    return _encoded(text, now)


def _text(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: byte {error.start}.", _UNCHANGED) from error


def _encoded(text: str, like: bytes | None) -> bytes:
    return (b"\xef\xbb\xbf" if (like or b"").startswith(b"\xef\xbb\xbf") else b"") + text.encode()


# --- JSON ----------------------------------------------------------------------------------------------------------


def _tree(path: Path, text: str) -> Node:
    root = parse_json5(SourceText(path, text))
    if not isinstance(root.value, dict):
        raise ConfigError(f"{path} holds no object.", _UNCHANGED)
    return root


def _with(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    """Return `text` with a member or an item, and the change as it was made; None where it is there already."""
    text = text if text.strip() else "{\n}\n"
    node, keys, there = _tree(path, text), change.keys, 0
    while there < len(keys):
        if not isinstance(node.value, dict):
            raise _no_place(path, node, keys[:there], "object")
        if (below := node.value.get(keys[there])) is None:
            value: object = [change.value] if change.kind == "item" else change.value
            for key in reversed(keys[there + 1 :]):
                value = {key: value}
            splices = json5.insert(node, {keys[there]: value})
            return json5.spliced(text, splices), replace(change, there=there)
        node, there = below, there + 1
    if change.kind == "item":
        if not isinstance(node.value, list):
            raise _no_place(path, node, keys, "list")
        if any(item.plain() == change.value for item in node.value):
            return text, None
        return json5.spliced(text, json5.append(node, change.value)), replace(change, there=there)
    if node.plain() == change.value:
        return text, None
    splice = json5.Splice(node.start, node.end, json.dumps(change.value, ensure_ascii=False))
    return json5.spliced(text, [splice]), replace(change, old=text[node.start : node.end], there=there)


def _no_place(path: Path, node: Node, keys: Sequence[str], kind: str) -> ConfigError:
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
    for depth in range(len(change.keys), change.there, -1):
        root = _tree(path, text)
        below, above = root.get(*change.keys[:depth]), root.get(*change.keys[: depth - 1])
        if below is None or above is None or (depth < len(change.keys) and below.value):
            break
        text = json5.spliced(text, json5.remove(above, below))
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
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", _UNCHANGED) from error
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _with_table(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    """Return `text` with a table at its end, and the change as it was made; None where it is there already."""
    value, named = _value(path, text, change.keys), ".".join(change.keys)
    if value == change.value:
        return text, None
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    after = f"{text}{gap}{_table(change, newline)}"
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        by_hand = f"Take {named} out by hand, then connect again; nothing was changed."
        raise ConfigError(f"{path} has a {named} of its own, or in a form that takes no other.", by_hand) from None
    return after, change


def _without_table(path: Path, text: str, change: HostChange) -> str:
    """Return `text` without a table, and without the blank line that sets it off."""
    if _value(path, text, change.keys) is None:
        return text
    # Somebody else may have written with other ends of lines since.
    newline = "\r\n" if _table(change, "\r\n") in text else "\n"
    before, table, after = text.partition(_table(change, newline))
    if not table or _value(path, before + after, change.keys) is not None:
        raise ConfigError(f"[{'.'.join(change.keys)}] of {path} was edited after memory-tui wrote it.", _BY_HAND)
    if change.old is None and before.endswith(newline * 2):
        before = before.removesuffix(newline)
    return f"{before}{change.old or ''}{after}"


# --- what a host starts ----------------------------------------------------------------------------------------------

Scope = Literal["user", "project"]
SERVER = "memory"
"""The name of the server in the files of a host."""
PROFILE = "memory-tui/profile"
"""Member of `_meta`: a question asks by it for the profile that ranks its answer, which tells it there."""
PROOF_CLIENT = "memory-tui connect"
"""Who asks a server to see that it answers; its question is none of an agent."""
LOG = "--log-recalls"
"""Switch of the server that writes down what agents ask."""


class ServerStart(Struct, frozen=True):
    """A server as its host starts it: the command line, the variables that it gets (None: all)."""

    words: tuple[str, ...]
    variables: tuple[str, ...] | None = None


class Wiring(Struct, frozen=True):
    """What a host is to start: `program` with what comes before a command, `arguments` that choose the memory.

    `project` is the folder that a project's files lie in; `profile` ranks the answers; `log` writes down what is asked.
    """

    scope: Scope
    project: Path
    program: tuple[str, ...]
    arguments: tuple[str, ...]
    profile: str
    log: bool = False

    def server(self) -> tuple[str, ...]:
        """Return the command line of the server."""
        return (*self.program, "mcp", *((LOG,) if self.log else ()), *self.arguments)


def command() -> tuple[str, ...]:
    """Return how this program is started, by its whole path: agents often start programs without the user's PATH."""
    here = Path(sys.argv[0])
    if here.name == "memory-tui" and here.is_file():
        return (str(here.absolute()),)
    program = shutil.which("memory-tui", path=str(Path(sys.executable).parent)) or shutil.which("memory-tui")
    return (program,) if program else (sys.executable, "-m", "memory_tui")


_PATHS = ("workspace", "config", "index", "qmd_home")
_SINGLE = (*_PATHS, "agent", "provider", "backend", "memories")
_SEVERAL = ("active_project", "extra")


def words_of(options: Options) -> list[str]:
    """Return the arguments, with whole paths, for a program that runs in any folder."""
    pairs = [(name, getattr(options, name)) for name in _SINGLE]
    pairs += [("profile", value) if key == "profile" else ("set", f"{key}={value}") for key, value in options.changes]
    pairs += [("active_project", project) for project in options.projects]
    words: list[str] = []
    for name, value in [*pairs, *(("extra", path) for path in options.extra)]:
        option, text = f"--{name.replace('_', '-')}", value
        if value and name in (*_PATHS, "extra"):
            text = str(Path(os.path.expanduser(value)).absolute())  # noqa: PTH111 - an unknown user is no error
        if text:
            # A word of its own that begins with a hyphen would be taken for the next option.
            words += [f"{option}={text}"] if text.startswith("-") else [option, text]
    return words


def options_of(words: Sequence[str]) -> Options:
    """Return the options that a server with the command line `words` takes; other words are passed over."""
    pairs: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word, joined, value = rest.pop(0).removeprefix("--").partition("=")
        name = word.replace("-", "_")
        if name in (*_SINGLE, *_SEVERAL, "profile", "set") and (joined or rest):
            pairs.append((name, value if joined else rest.pop(0)))
    settings = (
        f"profile={value}" if name == "profile" else value for name, value in pairs if name in ("profile", "set")
    )
    changes = tuple((key, value) for key, _, value in (setting.partition("=") for setting in settings))
    projects, extra = (tuple(value for name, value in pairs if name == each) for each in _SEVERAL)
    single = {name: value for name, value in pairs if name in _SINGLE}
    return replace(Options(changes=changes, projects=projects, extra=extra), **single)


def of_agent(options: Options, workspace: Path) -> Options:
    """Return `options` for an agent's server: the memory of `workspace`, by our own profile where none was chosen."""
    usual = () if "profile" in dict(options.changes) else (("profile", OWN_PROFILE),)
    return replace(options, workspace=str(workspace), changes=(*options.changes, *usual))


# --- a host ----------------------------------------------------------------------------------------------------------


class Host(Struct, frozen=True):
    """A row: `edits` plans the files of a connection, `variables` are what the server gets (None: all)."""

    name: str
    title: str
    scopes: tuple[Scope, ...]
    edits: Callable[[Wiring], tuple[FileEdit, ...]]
    after: str
    """What a person does so that the host reads its files again, as a sentence."""
    client: str
    """How the name begins by which the host introduces itself to a server."""
    loss: Callable[[], str] = str
    """What the host does without while it is connected, as sentences; empty for nothing."""
    variables: tuple[str, ...] | None = None

    def start(self, wiring: Wiring) -> ServerStart:
        """Return what the host starts once it is connected."""
        return ServerStart(wiring.server(), self.variables)


def host(name: str) -> Host:
    """Return the row of the host `name`. Raises SettingError."""
    if name not in HOSTS:
        raise SettingError(f"There is no host {name!r}.", f"Choose one of {', '.join(HOSTS)}.")
    return HOSTS[name]


def _require(title: str, program: str, place: Path) -> None:
    """Raises ConfigError where an agent program is not on this machine: neither `program`, nor what it keeps."""
    if shutil.which(program) is None and not place.exists():
        raise ConfigError(
            f"{title} is not installed here: there is no {program} on the PATH and no {place}.",
            f"Install {title} and start it once.",
        )


def _hooks(wiring: Wiring, host: str) -> tuple[HostChange, ...]:
    """Return the entries that call the hook of `host` at each event; Claude Code's and Codex's have one shape.

    Where the program was uninstalled the call does nothing, instead of failing in each session.
    """
    words = shlex.join((*wiring.program, "hook", host, *wiring.arguments))
    call = {"type": "command", "command": f"test ! -x {shlex.quote(wiring.program[0])} || {words}"}
    return tuple(HostChange("item", ("hooks", event), {"hooks": [call]}) for event in claude_code.EVENTS)


# --- Claude Code ---------------------------------------------------------------------------------------------------

_TOOLS = ("memory_search", "memory_get")


def _claude_edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    user_file = (claude_code.named_folder("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"
    _require("Claude Code", "claude", user_file)
    program, *words = wiring.server()
    # With `alwaysLoad` Claude Code waits for the server before the first turn, up to 5 s, instead of going on without
    # its tools where the machine is busy, and puts both tools before the model.
    entry = {"type": "stdio", "command": program, "args": words, "alwaysLoad": True}
    server = HostChange("member", ("mcpServers", SERVER), entry)
    # Both tools only read, so that an agent need not ask each time.
    allowed = tuple(HostChange("item", ("permissions", "allow"), f"mcp__{SERVER}__{tool}") for tool in _TOOLS)
    changes = (*allowed, *_hooks(wiring, "claude-code"))
    if wiring.scope == "user":
        return FileEdit(user_file, (server,)), FileEdit(claude_code.home() / "settings.json", changes)
    enabled = HostChange("item", ("enabledMcpjsonServers",), SERVER)
    # What holds on one machine alone, such as a whole path, has no place in the file that a team shares.
    local = wiring.project / ".claude" / "settings.local.json"
    return FileEdit(wiring.project / ".mcp.json", (server,)), FileEdit(local, (*changes, enabled))


# --- Codex ---------------------------------------------------------------------------------------------------------

_FORWARDED = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Variables by which the server finds the index and the state that the app uses."""
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Variables that Codex gives every server; it gives others only where they are named."""
_MOST_SLUG = 80


def _codex_edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    home = codex_memory().parent
    _require("Codex", "codex", home)
    folder = home if wiring.scope == "user" else wiring.project / ".codex"
    program, *words = wiring.server()
    # It is not `required`: without it Codex still starts.
    entry = {"command": program, "args": words, "env_vars": list(_FORWARDED)}
    table = HostChange("table", ("mcp_servers", SERVER), entry)
    return FileEdit(folder / "config.toml", (table,)), FileEdit(folder / "hooks.json", _hooks(wiring, "codex"))


def codex_memory() -> Path:
    """Return where Codex keeps its memory, whether it is there or not: below CODEX_HOME, else ~/.codex."""
    return (claude_code.named_folder("CODEX_HOME") or Path.home() / ".codex") / "memories"


def is_codex_memory(workspace: Path) -> bool:
    """Return whether a workspace is Codex's memory."""
    return workspace.name == "memories" and os.path.realpath(workspace) == os.path.realpath(codex_memory())


def codex_note(text: str, at: dt.datetime) -> str:
    """Return the stored path of a note that adds `text` to Codex's memory: Codex takes no other form of name."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    slug = "-".join(re.findall(r"[a-z0-9]+", first.casefold()))[:_MOST_SLUG].strip("-") or "note"
    return f"extensions/ad_hoc/notes/{at:%Y-%m-%dT%H-%M-%S}-{slug}.md"


# --- OpenClaw ------------------------------------------------------------------------------------------------------

_DREAMING = (
    "memory-core goes on dreaming at night and may write MEMORY.md. It counts the recalls of its own tool alone, "
    "so what the agent recalls through memory-tui counts for no promotion. plugins.entries.memory-core.enabled false "
    "stops it."
)


def plugin_folder() -> Path:
    """Return the folder of the plugin's files in this package."""
    return Path(__file__).parent / "openclaw_plugin"


def installed_folder() -> Path:
    """Return where the copy lies that OpenClaw loads."""
    return platformdirs.user_data_path("memory-tui", appauthor=False) / "openclaw_plugin"


def _plugin_files(folder: Path) -> dict[Path, Path]:
    """Return each file of the plugin, with its place in the copy in `folder`."""
    packaged = plugin_folder()
    files = sorted(file for file in packaged.rglob("*") if file.is_file())
    return {file: folder / file.relative_to(packaged) for file in files}


def outdated_plugin(folder: Path) -> list[str]:
    """Return the files of the plugin in `folder` that are not as this version ships them."""
    copies = _plugin_files(folder).items()
    old = [copy for file, copy in copies if not copy.is_file() or copy.read_bytes() != file.read_bytes()]
    return [str(copy.relative_to(folder)) for copy in old]


def openclaw_arguments(profile: str) -> tuple[str, ...]:
    """Return the words with which the plugin starts the server of the default agent. Raises ConfigError."""
    return ("--workspace", str(_openclaw_plan(("profile", profile)).workspace.absolute()), "--profile", profile)


def _openclaw_plan(*changes: tuple[str, str]) -> plan.Plan:
    path = places.openclaw_path()
    if not path.is_file():
        raise ConfigError(f"OpenClaw is not set up here: there is no {path}.", "Run openclaw onboard first.")
    return plan.plan(Options(config=str(path), changes=changes))


def _openclaw_edits(wiring: Wiring) -> tuple[FileEdit, ...]:
    path, folder = places.openclaw_path(), installed_folder()
    files = _plugin_files(folder).items()
    copies = [FileEdit(copy, (HostChange("copy", (), file.read_text("utf-8")),)) for file, copy in files]
    command: dict[str, object] = {"command": wiring.program[0], "profile": wiring.profile}
    command |= {"args": list(wiring.program[1:])} if wiring.program[1:] else {}
    command |= {"logRecalls": True} if wiring.log else {}
    changes = [
        HostChange("item", ("plugins", "load", "paths"), str(folder)),
        HostChange("member", ("plugins", "entries", PLUGIN), {"enabled": True, "config": command}),
        HostChange("member", ("plugins", "slots", "memory"), PLUGIN),
    ]
    try:
        allowed = parse_json5(SourceText(path, read_regular(path).decode("utf-8-sig"))).get("plugins", "allow")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", "Check its permissions and that it is UTF-8.") from error
    # Without a list of plugins that may run, each one may.
    if allowed is not None and allowed.value:
        changes.append(HostChange("item", ("plugins", "allow"), PLUGIN))
    # The files first: OpenClaw does not start with a slot that nothing fills.
    return (*copies, FileEdit(path, tuple(changes)))


def dreams(config: Config) -> bool:
    """Return whether memory-core dreams beside this memory."""
    core = ("entries", "memory-core")
    switches = (plugin_value(config, *core, "enabled"), plugin_value(config, *core, "config", "dreaming", "enabled"))
    return False not in switches and (installed_release() or release_by_files(config)).profile == NEWEST_OPENCLAW


def plugin_value(config: Config, *keys: str) -> object:
    """Return the value below `plugins`; None where there is none."""
    node = config.tree.get("plugins", *keys) if config.tree is not None else None
    return node.value if node is not None else None


# --- the rows ------------------------------------------------------------------------------------------------------

_BOTH: tuple[Scope, ...] = ("user", "project")
_ROWS = (
    Host(
        "openclaw",
        "OpenClaw",
        ("user",),
        _openclaw_edits,
        "Restart the gateway: openclaw gateway restart.",
        "openclaw",
        lambda: _DREAMING if dreams(_openclaw_plan().config) else "",
    ),
    Host(
        "claude-code",
        "Claude Code",
        _BOTH,
        _claude_edits,
        "Start Claude Code again; in a project it asks once whether you trust the folder.",
        "claude",
    ),
    Host(
        "codex",
        "Codex",
        _BOTH,
        _codex_edits,
        "Start Codex again; it asks once about new hooks.",
        "codex",
        variables=(*_PASSED_ON, *_FORWARDED),
    ),
)
HOSTS = {row.name: row for row in _ROWS}
