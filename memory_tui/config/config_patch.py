"""Tuned knobs become a patch of the configuration, comments kept; it is written with a backup that undo restores."""

from __future__ import annotations

import difflib
import errno
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from memory_tui import durable
from memory_tui.config import config_file as configuration
from memory_tui.config import json5
from memory_tui.config.config_file import Config
from memory_tui.config.openclaw_release import release_meant
from memory_tui.config.places import own_path
from memory_tui.config.settings import BY_KEY, OWN_KEYS, OWN_PROFILE, Scalar, Settings, profile_named, show
from memory_tui.errors import ConfigError, ConfigUnsaved
from memory_tui.secrets import Discreet
from memory_tui.secrets.finder import redact

_OURS_ALONE = frozenset(key.path for key in OWN_KEYS)
_NO_PROFILE = "beside OpenClaw's configuration it is asked for at each start: --profile NAME"
_RELOADS = "OpenClaw reads it when its gateway starts or reloads."
_ALL_WORKSPACES = "This file holds for every workspace that is opened without --config."
_OWN_RULES = (
    "These values belong to memory-tui's own rules, and hold where they are asked for (--profile "
    f"{OWN_PROFILE}); the agent itself keeps recalling by OpenClaw's."
)


class KeyChange(msgspec.Struct, frozen=True):
    """One value: `before` is what holds without the patch, `place` where in the file it goes."""

    key: str
    before: Scalar
    after: Scalar
    place: str


class FileWrite(Discreet, frozen=True):
    """A whole file as it is, and as it will be; None for no file. Never shown by repr, it may hold keys."""

    HIDDEN = ("now", "then")

    path: Path
    now: bytes | None
    then: bytes | None


class Patch(Discreet, frozen=True):
    """What would be written: `left` are tuned values that have no place there, each with the reason, and `notes`
    what a person should know before saying yes."""

    HIDDEN = ("secrets",)

    target: Path
    changes: tuple[KeyChange, ...]
    files: tuple[FileWrite, ...]
    left: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def diff(self) -> str:
        """Return a unified difference of every file, with keys masked; empty when nothing would change."""
        text = "".join(f"{line}\n" for file in self.files for line in difference(file))
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return redact(text)

    def write(self) -> tuple[ConfigWrite, ...]:
        """Write every file, each with a backup. Raises ConfigError; a file that was changed meanwhile is left alone."""
        return tuple(write(file.path, file.now, file.then or b"") for file in self.files)


def patch(config: Config, tuned: Settings, written: Settings) -> Patch:
    """Return the patch that makes `tuned` hold, where `written` is what holds without it. Raises ConfigError.

    Values tuned under OpenClaw's rules go into its configuration; those of our own rules, which OpenClaw would read
    otherwise, into memory-tui's.
    """
    before = {key: value.value for key, value in written.values.items()}
    # Settings hold a profile by its name; a file may say "auto", which is left alone where it comes to that profile.
    profile = tuned.word("profile")
    configured = config.values.get("profile")
    configured_profile = str(configured.value) if configured else "auto"
    if release_meant(configured_profile, config).profile != profile:
        before["profile"] = configured_profile
    values = {key: value.value for key, value in tuned.values.items() if value.value != before[key]}
    notes: list[str] = []
    if config.kind == "openclaw" and profile != OWN_PROFILE:
        ours = sorted(_OURS_ALONE & values.keys())
        left = [(key, _NO_PROFILE if key == "profile" else f"OpenClaw has no {BY_KEY[key].label}") for key in ours]
        # A value that the release fixed it does not read from the file either.
        left_out = {*ours, *profile_named(profile).fixed}
        values = {key: value for key, value in values.items() if key not in left_out}
        # Where the section that counts most is the general one, not that of the agent.
        if len(config.agents) > 1 and config.sections and config.sections[-1][0] == config.layout:
            notes.append(f"{config.layout} holds for every agent that has no value of its own.")
        return _into(config, values, before, left, [*notes, _RELOADS])
    if config.kind == "openclaw":
        notes.append(_OWN_RULES)
        # Our file would give our rules to every workspace; they hold where they are asked for.
        values.pop("profile", None)
    target = config if config.kind == "own" else _own_config()
    if target.path == own_path():
        notes.append(_ALL_WORKSPACES)
    return _into(target, values, before, (), notes)


def provider_patch(config: Config, values: Mapping[str, Scalar]) -> Patch:
    """Return the patch that names a provider, by documented keys, in the configuration that is read.

    Raises ConfigError.
    """
    # A key cannot be compared, because a configuration holds no value of it.
    changed = {key: value for key, value in values.items() if config.value(key) != value or key == "remote.apiKey"}
    before = {key: config.text(key) for key in changed if key != "remote.apiKey"}
    notes = [_RELOADS] if config.kind == "openclaw" else []
    return _into(_own_config() if config.kind == "none" else config, changed, before, (), notes)


def _own_config() -> Config:
    """Return our own configuration as it is on disk, or one that holds nothing yet."""
    if own_path().is_file():
        return configuration.load(str(own_path()), None)
    return Config(path=own_path(), kind="own", tree=json5.parse_json5(json5.SourceText(own_path(), "{}\n")))


def _into(
    config: Config,
    values: Mapping[str, Scalar],
    before: Mapping[str, Scalar],
    left: Iterable[tuple[str, str]],
    notes: Iterable[str],
) -> Patch:
    """Return the patch that sets `values` where they stand, or where they belong. Raises ConfigError.

    `before` has the values without the patch, for showing; `left` and `notes` are those of the patch.
    """
    if config.path is None or config.tree is None:
        raise ConfigError("There is no configuration to write to.", "Name one with --config.")
    # Without a section for these values, one is made below the top of the file, by the keys of `layout`.
    prefix, section = config.sections[-1] if config.sections else (config.layout, config.tree)
    section_keys = [] if config.sections or not prefix else prefix.split(".")
    splices: dict[Path, list[json5.Splice]] = {}
    sources: dict[Path, json5.SourceText] = {}
    # New members by the identity of the object that gets them, so that all of one object go in at once.
    missing: dict[int, tuple[json5.Node, dict[str, Any]]] = {}
    changes: list[KeyChange] = []
    for key, value in sorted(values.items()):
        changes.append(KeyChange(key, before.get(key, ""), value, f"{prefix}.{key}" if prefix else key))
        keys = [*section_keys, *key.split(".")]
        node = section.get(*keys)
        if node is not None:
            sources[node.source.path] = node.source
            splices.setdefault(node.source.path, []).append(json5.replace(node, value))
            continue
        parent, (*inner_keys, last_key) = _deepest(section, keys)
        _, members = missing.setdefault(id(parent), (parent, {}))
        for name in inner_keys:
            members = members.setdefault(name, {})
        members[last_key] = value
    for parent, members in missing.values():
        sources[parent.source.path] = parent.source
        splices.setdefault(parent.source.path, []).extend(json5.insert(parent, members))
    files = tuple(_file(sources[path], splices[path]) for path in sources)
    return Patch(config.path, tuple(changes), files, tuple(left), tuple(notes), tuple(_secrets(config)))


def _deepest(section: json5.Node, keys: list[str]) -> tuple[json5.Node, list[str]]:
    """Return the innermost object that is there on the way of `keys` to a missing value, and the keys below it.

    Raises ConfigError where something else than an object is in the way.
    """
    parent = section
    while (child := parent.get(keys[0])) is not None:
        if not isinstance(child.value, dict):
            message = f"{keys[0]} in line {parent.line} of {parent.source.path} is not an object."
            raise ConfigError(message, "Mend that line first; nothing was changed.", *parent.source.at(parent.start))
        parent, keys = child, keys[1:]
    return parent, keys


def _secrets(config: Config) -> Iterator[str]:
    """Yield the keys and headers that the file holds for any provider, as they are written there."""
    nodes = [config.entries[key].node for key in ("remote.apiKey", "remote.headers") if key in config.entries]
    providers = config.tree.get("models", "providers") if config.tree else None
    for _, provider in providers.children() if providers else ():
        nodes += [node for name, node in provider.children() if name in ("apiKey", "headers")]
    while nodes:
        node = nodes.pop()
        nodes += [child for _, child in node.children()]
        if isinstance(node.value, str) and node.value:
            # As the difference shows it, in which it is masked: without its quotes, but with its escapes.
            yield node.source.text[node.start + 1 : node.end - 1]


def _file(source: json5.SourceText, splices: list[json5.Splice]) -> FileWrite:
    """Return the file of `source` as it is, and with `splices`. Raises ConfigError where it was changed meanwhile."""
    before = read(source.path)
    if before is not None and source.text.encode() != before:
        step = "Open the workspace again, or change the values by hand."
        raise ConfigError(f"{source.path} was changed since it was read, or is not valid UTF-8.", step)
    after = json5.spliced(source.text, splices)
    # Called for what it raises: what is no JSON5 any more is never written.
    json5.parse_json5(json5.SourceText(source.path, after))
    return FileWrite(source.path, before, after.encode())


def difference(file: FileWrite) -> Iterable[str]:
    """Return the lines of a unified difference of a file, in which keys are not masked."""
    before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (file.now, file.then))
    old_name, new_name = ("no file" if data is None else str(file.path) for data in (file.now, file.then))
    return difflib.unified_diff(before, after, old_name, new_name, lineterm="")


def summary(change: KeyChange) -> str:
    """Return a change in words: `minScore 0.35 -> 0.2`."""
    knob = BY_KEY[change.key]
    return f"{knob.label} {show(knob, change.before)} -> {show(knob, change.after)}"


# --- writing it, and taking it back --------------------------------------------------------------------------------


class ConfigWrite(msgspec.Struct, frozen=True):
    """One write that can be undone: `backup` holds what was there, empty where there was no file; times in seconds."""

    path: str
    backup: str
    before: str
    after: str
    at: float


def backups() -> Path:
    """Return the folder of backups; configurations hold keys, so nobody else may read it."""
    return platformdirs.user_state_path("memory-tui", appauthor=False) / "config-backups"


def read(path: Path) -> bytes | None:
    """Return the bytes of a file, None where there is none. Raises ConfigError."""
    try:
        return durable.read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.", "Check its permissions.") from error


def digest(data: bytes | None) -> str:
    """Return the SHA-256 of `data`, empty for no file."""
    return hashlib.sha256(data).hexdigest() if data is not None else ""


def write(path: Path, before: bytes | None, after: bytes) -> ConfigWrite:
    """Put `after` in the place of `before`, keeping a backup. Raises ConfigError when the file is another by now."""
    real = Path(os.path.realpath(path))
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    require_same(real, before)
    backup = back_up(backups() / f"{real.stem}-{stamp}-{digest(before)[:8]}{real.suffix}", before)
    done = ConfigWrite(str(real), backup, digest(before), digest(after), time.time())
    try:
        durable.make_folder(backups())
        # First the way back: a line about a write that was not made after all is passed over by `last`.
        durable.append_line(backups() / "log.jsonl", json.dumps(msgspec.to_builtins(done)).encode("ascii") + b"\n")
        durable.make_folder(real.parent)
    except OSError as error:
        raise _unwritten(real, error) from error
    write_all([FileWrite(real, before, after)])
    return done


def require_same(path: Path, before: bytes | None) -> None:
    """Raise ConfigError where a file does not hold what it held `before`."""
    if read(path) != before:
        raise overtaken(path)


def overtaken(path: Path) -> ConfigError:
    """Return the error for a file that another program changed since its difference was shown."""
    message = f"{path} was changed by somebody else in the meantime; nothing was written."
    return ConfigError(message, "Look at the new difference and try again.")


def back_up(path: Path, data: bytes | None) -> str:
    """Keep `data` at `path`, and return that; empty for no data. Raises ConfigError."""
    if data is None:
        return ""
    try:
        durable.make_folder(path.parent)
        durable.replace_file(path, data)
    except OSError as error:
        raise _unwritten(path, error) from error
    return str(path)


def write_all(files: Sequence[FileWrite]) -> None:
    """Write every file, or none. Raises ConfigError."""
    done: list[FileWrite] = []
    folders: list[Path] = []
    for file in files:
        try:
            require_same(file.path, file.now)
            # Folders that the write makes, the innermost in front, so that each is empty when it is removed.
            folders[:0] = [parent for parent in file.path.parents if not parent.exists()]
            _put(file.path, file.now, file.then)
        except (OSError, ConfigError) as error:
            _take_back(done, folders)
            raise error if isinstance(error, ConfigError) else _unwritten(file.path, error) from error
        # The newest first, which is the order of taking back.
        done.insert(0, file)


def _take_back(done: Sequence[FileWrite], folders: Sequence[Path]) -> None:
    """Bring files and folders back to what they were before the writes `done`, of which the last one comes first.

    Raises ConfigUnsaved where that cannot be; then the record of a connection, written first, is still there.
    """
    for file in done:
        try:
            if read(file.path) != file.then:
                # Told below, like any other reason for which the file cannot be put back.
                raise OSError(errno.EBUSY, "Somebody else wrote it meanwhile")
            _put(file.path, file.then, file.now)
        except OSError as error:
            message = f"Writing failed, and {file.path} cannot be put back: {error.strerror or error}."
            raise ConfigUnsaved(message, "memory-tui disconnect HOST takes out what was written.") from error
    remove_empty(folders)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders that hold nothing. Raises ConfigUnsaved."""
    for path in folders:
        try:
            durable.remove_empty_folder(path)
        except OSError as error:
            reason = f"{path} cannot be removed: {error.strerror or error}."
            raise ConfigUnsaved(reason, "Delete it by hand.") from error


def _put(path: Path, now: bytes | None, then: bytes | None) -> None:
    """Let `path`, which holds `now`, hold `then`; None stands for no file. Raises OSError."""
    if then is None and now is not None:
        durable.remove_file(path)
    elif then is not None and now != then:
        durable.make_folder(path.parent, 0o755)
        durable.replace_file(path, then, path.stat().st_mode & 0o777 if path.exists() else durable.PRIVATE)


def _unwritten(path: Path, error: OSError) -> ConfigError:
    """Return the error of a file that could not be written, after which nothing is changed."""
    message = f"{path} cannot be written: {error.strerror or error}."
    return ConfigUnsaved(message, "Nothing was changed; check permissions and space.")


def last() -> ConfigWrite | None:
    """Return the newest write that was not undone. Raises ConfigError.

    A file that holds what it held before a write does not count as written: that write was cut off, or taken back.
    """
    # Each line is a write, the newest at the end.
    for line in reversed((read(backups() / "log.jsonl") or b"").split(b"\n")):
        try:
            done = msgspec.json.decode(line, type=ConfigWrite)
        except msgspec.MsgspecError:
            # A line that was cut off, or that an earlier release wrote about an undo.
            continue
        if digest(read(Path(done.path))) != done.before:
            return done
    return None


def undo(done: ConfigWrite) -> None:
    """Bring back what was there before. Raises ConfigError when the file was changed since."""
    path = Path(done.path)
    current = read(path)
    backup = read(Path(done.backup)) if done.backup else None
    if digest(current) != done.after:
        step = f"What it was before is in {done.backup}." if done.backup else "Change it by hand."
        raise ConfigError(f"{path} was changed after memory-tui wrote it; nothing was undone.", step)
    if digest(backup) != done.before:
        raise ConfigError(f"The backup {done.backup} is gone or was changed; nothing was undone.", "Change it by hand.")
    write_all([FileWrite(path, current, backup)])
