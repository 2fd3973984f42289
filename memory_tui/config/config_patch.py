"""Tuned knobs as a patch of the configuration, comments kept."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from memory_tui import profiles
from memory_tui.config import config_write, json5_edit, release
from memory_tui.config import load as configuration
from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.config.keys import OWN_KEYS
from memory_tui.config.model import Config
from memory_tui.config.places import own_path
from memory_tui.errors import ConfigError
from memory_tui.secrets.discreet import Discreet
from memory_tui.secrets.finder import redact
from memory_tui.settings import BY_KEY, Scalar, Settings, Value, show

_OURS_ALONE = frozenset(key.path for key in OWN_KEYS)
_WITHOUT_A_PLACE = {"profile": "beside OpenClaw's configuration it is asked for at each start: --profile NAME"}


class KeyChange(Struct, frozen=True):
    """One value: `before` is what holds without the patch, `place` where in the file it goes."""

    key: str
    before: Scalar
    after: Scalar
    place: str


class FilePatch(Discreet, frozen=True):
    """A whole file before (None: it is not there yet) and after; never shown by repr, it may hold keys."""

    HIDDEN = ("before", "after")

    path: Path
    before: bytes | None
    after: bytes


class Patch(Discreet, frozen=True):
    """What would be written: `left` are tuned values that have no place there, each with the reason, and `notes`
    what a person should know before saying yes."""

    HIDDEN = ("secrets",)

    target: Path
    changes: tuple[KeyChange, ...]
    files: tuple[FilePatch, ...]
    left: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def diff(self) -> str:
        """A unified difference of every file, with keys masked; empty when nothing would change."""
        text = "".join(_difference(file) for file in self.files)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return redact(text)

    def write(self) -> tuple[config_write.ConfigWrite, ...]:
        """Write every file, each with a backup. Raises ConfigError; a file that was changed meanwhile is left alone."""
        return tuple(config_write.write(file.path, file.before, file.after) for file in self.files)


def patch(config: Config, tuned: Settings, written: Settings) -> Patch:
    """The patch that makes `tuned` hold, where `written` is what holds without it. Raises ConfigError.

    Values tuned under OpenClaw's rules go into its configuration; those of our own rules, which OpenClaw would read
    otherwise, into memory-tui's.
    """
    of_openclaw = config.kind == "openclaw" and tuned.word("profile") != profiles.OWN
    configured = config.values.get("profile")
    named = str(configured.value) if configured else "auto"
    if release.meant(named, config).profile != tuned.word("profile"):
        written = Settings({**written.values, "profile": Value(named, "configuration")})
    values = {key: value.value for key, value in tuned.values.items() if value.value != written.values[key].value}
    if not of_openclaw:
        return _own_patch(config, values, written)
    fixed = profiles.get(tuned.word("profile")).fixed
    values = {key: value for key, value in values.items() if key not in fixed}
    left = [
        (key, _WITHOUT_A_PLACE.get(key, f"OpenClaw has no {BY_KEY[key].label}")) for key in values if key in _OURS_ALONE
    ]
    placed = {key: value for key, value in values.items() if key not in _OURS_ALONE}
    notes = []
    if len(config.agents) > 1 and config.sections and config.sections[-1][0] == config.layout:
        notes.append(f"{config.layout} holds for every agent that has no value of its own.")
    notes.append("OpenClaw reads it when its gateway starts or reloads.")
    return _into(config, placed, _values(written), tuple(left), tuple(notes))


def provider_patch(config: Config, values: Mapping[str, Scalar]) -> Patch:
    """The patch that names a provider, by documented keys, in the configuration that is read. Raises ConfigError."""
    notes = () if config.kind != "openclaw" else ("OpenClaw reads it when its gateway starts or reloads.",)
    values = {key: value for key, value in values.items() if config.value(key) != value or key == "remote.apiKey"}
    before = {key: str(config.value(key) or "") for key in values if key != "remote.apiKey"}
    return _into(_empty(own_path()) if config.kind == "none" else config, values, before, (), notes)


def _own_patch(config: Config, values: Mapping[str, Scalar], written: Settings) -> Patch:
    notes = []
    if config.kind == "openclaw":
        notes.append(
            "These values belong to memory-tui's own rules, and hold where they are asked for (--profile "
            f"{profiles.OWN}); the agent itself keeps recalling by OpenClaw's."
        )
        values = {key: value for key, value in values.items() if key != "profile"}
        config = _empty(own_path())
    elif config.kind == "none":
        config = _empty(own_path())
    if config.path == own_path():
        notes.append("This file holds for every workspace that is opened without --config.")
    return _into(config, values, _values(written), (), tuple(notes))


def _values(settings: Settings) -> dict[str, Scalar]:
    return {key: value.value for key, value in settings.values.items()}


def _empty(path: Path) -> Config:
    """Our own configuration as it is on disk, or one that holds nothing yet."""
    if path.is_file():
        return configuration.load(str(path), None)
    return Config(path=path, kind="own", tree=parse_json5(SourceText(path, "{}\n")), sections=())


def _into(
    config: Config,
    values: Mapping[str, Scalar],
    before: Mapping[str, Scalar],
    left: tuple[tuple[str, str], ...],
    notes: tuple[str, ...],
) -> Patch:
    path, root = config.path, config.tree
    if path is None or root is None:
        raise ConfigError("There is no configuration to write to.", "Name one with --config.")
    sources: dict[Path, SourceText] = {}
    splices: dict[Path, list[json5_edit.Splice]] = {}
    changes = []
    prefix, section = config.sections[-1] if config.sections else (config.layout, root)
    missing: dict[int, tuple[Node, dict[str, object]]] = {}
    for key, value in sorted(values.items()):
        below = key.split(".") if config.sections else [*filter(None, prefix.split(".")), *key.split(".")]
        node = section.get(*below)
        changes.append(KeyChange(key, before.get(key, ""), value, f"{prefix}.{key}" if prefix else key))
        if node is not None:
            sources[node.source.path] = node.source
            splices.setdefault(node.source.path, []).append(json5_edit.replace(node, value))
        else:
            _note_missing(section, below, value, missing)
    for parent, members in missing.values():
        sources[parent.source.path] = parent.source
        splices.setdefault(parent.source.path, []).extend(json5_edit.insert(parent, members))
    files = tuple(_file(sources[file], splices[file]) for file in sources)
    return Patch(path, tuple(changes), files, left, notes, tuple(_secrets(config)))


def _secrets(config: Config) -> Iterator[str]:
    """The keys and headers that the file holds for any provider, as they are written there."""
    nodes = [entry.node for key in ("remote.apiKey", "remote.headers") if (entry := config.entries.get(key))]
    providers = config.tree.get("models", "providers") if config.tree else None
    for _, provider in providers.children() if providers else ():
        nodes += [node for name in ("apiKey", "headers") if (node := provider.get(name)) is not None]
    while nodes:
        node = nodes.pop()
        nodes += [child for _, child in node.children()]
        if isinstance(node.value, str) and node.value:
            yield node.value


def _note_missing(
    section: Node, below: list[str], value: Scalar, missing: dict[int, tuple[Node, dict[str, object]]]
) -> None:
    """Remember a member to be made, below the deepest object that is there."""
    parent, rest = section, list(below)
    while len(rest) > 1 and (deeper := parent.get(rest[0])) is not None and isinstance(deeper.value, dict):
        parent, rest = deeper, rest[1:]
    if parent.get(rest[0]) is not None:
        raise ConfigError(
            f"{rest[0]} in line {parent.line} of {parent.source.path} is not an object.",
            "Mend that line first; nothing was changed.",
            parent.line,
            parent.column,
        )
    members: dict[str, Any] = missing.setdefault(id(parent), (parent, {}))[1]
    for name in rest[:-1]:
        members = members.setdefault(name, {})
    members[rest[-1]] = value


def _file(source: SourceText, splices: list[json5_edit.Splice]) -> FilePatch:
    before = config_write.read(source.path)
    if before is not None and before.decode("utf-8", "replace") != source.text:
        raise ConfigError(f"{source.path} was changed since it was read.", "Open the workspace again.")
    if before is not None and source.text.encode() != before:
        raise ConfigError(
            f"{source.path} is not valid UTF-8, so that it cannot be written back as it is.",
            "Change the values by hand.",
        )
    after = json5_edit.spliced(source.text, splices)
    parse_json5(SourceText(source.path, after))
    return FilePatch(source.path, before, after.encode())


def _difference(file: FilePatch) -> str:
    before = (file.before or b"").decode().splitlines(keepends=True)
    after = file.after.decode().splitlines(keepends=True)
    name = str(file.path)
    lines = difflib.unified_diff(before, after, name if file.before is not None else "nothing yet", name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def summary(change: KeyChange) -> str:
    """A change in words: `minScore 0.35 -> 0.2`."""
    knob = BY_KEY[change.key]
    return f"{knob.label} {show(knob, change.before)} -> {show(knob, change.after)}"
