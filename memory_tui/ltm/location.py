"""The location of a table is a folder or an address of an object store, as a person or a configuration names it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from memory_tui.config import keys, places
from memory_tui.core.discreet import Discreet
from memory_tui.core.errors import SettingError
from memory_tui.ltm import entry
from memory_tui.plan import Choices

CONFIG = keys.LANCEDB
ENTRIES = "memories"
"""The name of the table, as OpenClaw has it."""
_OPTIONS = "--memories"
_REMOTE = re.compile(r"(?:s3|gs|az)://[\w.-]+(?:/|\Z)", re.ASCII)
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")
_SECRET = re.compile("key|secret|token|password|sas|credential", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")


class TableLocation(Discreet, frozen=True):
    """Where a table is, and how its store is reached; `named_by` says who named it."""

    HIDDEN = ("options",)

    uri: str
    named_by: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    table: str = ENTRIES

    @property
    def remote(self) -> bool:
        """Whether it is in an object store."""
        return "://" in self.uri

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        return _CREDENTIALS.sub("***@", self.uri)

    @property
    def host(self) -> str:
        """What an approval names: the store with its bucket, or the folder."""
        endpoint = self.options.get("endpoint") or self.options.get("aws_endpoint") or os.environ.get("AWS_ENDPOINT")
        endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL", "")
        return f"{self.shown} at {endpoint}" if self.remote and endpoint else self.shown

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        found = [value for name, value in self.options.items() if _SECRET.search(name)]
        found += [value for name, value in os.environ.items() if name.startswith("AWS_") and _SECRET.search(name)]
        return tuple(value for value in found if value)

    @property
    def key(self) -> str:
        """A short name for what is kept about this table elsewhere; two names of one folder share it."""
        name = self.uri.rstrip("/") if self.remote else os.path.realpath(self.uri)
        return hashlib.sha256(os.fsencode(f"{name}\0{self.table}")).hexdigest()[:16]


class EntryRules(Struct, frozen=True):
    """What the configuration of the plug-in says of recall and capture."""

    chosen: bool
    """Whether they are the agent's memory."""
    auto_recall: bool
    auto_capture: bool
    capture_characters: int
    recall_characters: int
    triggers: tuple[str, ...]

    @classmethod
    def of(cls, choices: Choices) -> EntryRules:
        """The rules of what was chosen."""

        def value(name: str) -> Any:  # noqa: ANN401 - values of any kind
            return choices.config.value(CONFIG + name)

        triggers = value("customTriggers")
        return cls(
            chosen=choices.recalls_entries,
            auto_recall=value("autoRecall") is not False,
            auto_capture=value("autoCapture") is True,
            capture_characters=_whole(value("captureMaxChars"), entry.MOST_CAPTURED),
            recall_characters=_whole(value("recallMaxChars"), 1000),
            triggers=tuple(str(word)[:100] for word in triggers[:50]) if isinstance(triggers, Sequence) else (),
        )


def _whole(value: object, otherwise: int) -> int:
    return int(value) if isinstance(value, int | float) else otherwise


def of_choices(choices: Choices) -> TableLocation:
    """The table: as `--memories` says, else as configured, else OpenClaw's usual one. Raises SettingError."""
    config = choices.config
    options = {name: found.value for name, found in config.headers(f"{CONFIG}storageOptions") if found.known}
    if choices.asked.memories:
        return at(choices.asked.memories, _OPTIONS, options)
    if choices.asked.sample:
        return TableLocation(str(choices.workspace.parent / "memories"), "default", options)
    named = config.entries.get(f"{CONFIG}dbPath")
    if named is not None and str(named.value or "").strip():
        return at(str(named.value), str(named.places[-1]), options)
    return TableLocation(str(places.state_folder() / "memory" / "lancedb"), "default", options)


def at(
    text: str, named_by: str, options: Mapping[str, str] = MappingProxyType({}), table: str = ENTRIES
) -> TableLocation:
    """The location that `text` names. Raises SettingError."""
    text = text.strip()
    if "://" in text and not text.startswith("file://"):
        if not _REMOTE.match(text):
            raise SettingError(
                f"{_CREDENTIALS.sub('***@', text)!r} is no place for a LanceDB table.",
                "Name a folder, or s3://BUCKET/PREFIX.",
            )
        return TableLocation(text.rstrip("/"), named_by, MappingProxyType(dict(options)), table)
    if not text or "\0" in text:
        raise SettingError("A LanceDB table needs a place.", "Name a folder, or s3://BUCKET/PREFIX.")
    folder = places.expand(text.removeprefix("file://"))
    return TableLocation(str(Path(os.path.abspath(folder))), named_by, MappingProxyType(dict(options)), table)  # noqa: PTH100
