"""The folder of one agent's QMD. It has QMD's configuration and index, and our record of its upkeep."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from msgspec import Struct, to_builtins

from memory_tui import durable
from memory_tui.core.errors import MemoryTuiError

Kind = Literal["program", "version", "approval", "timeout", "exit", "answer", "index", "models"]
_MOST_BYTES = 1 << 20


class QmdFailure(MemoryTuiError):
    """QMD cannot answer; `kind` says at which step it failed."""

    code = "qmd"

    def __init__(self, kind: Kind, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.kind = kind


class UpkeepState(Struct, frozen=True):
    """What upkeep remembers; times are epoch seconds, 0 for never. After `failures` in a row it waits until `again`."""

    updated: float = 0.0
    embedded: float = 0.0
    failures: int = 0
    again: float = 0.0
    error: str = ""


class QmdFolder(Struct, frozen=True):
    """The folder of one agent's QMD."""

    folder: Path
    owned: bool
    """Whether nobody but memory-tui keeps it."""

    @property
    def config(self) -> Path:
        """What QMD takes for its configuration folder."""
        return self.folder / "xdg-config"

    @property
    def index_yml(self) -> Path:
        """QMD's own configuration."""
        return self.config / "index.yml"

    @property
    def index(self) -> Path:
        """QMD's database."""
        return self.folder / "xdg-cache" / "qmd" / "index.sqlite"

    @property
    def models(self) -> Path:
        """Where QMD looks for its models."""
        return self.folder / "xdg-cache" / "qmd" / "models"

    @property
    def fallback(self) -> Path:
        """Where it is written that QMD failed, for every process."""
        return self.folder / "fallback.json"

    @property
    def record(self) -> Path:
        """Where upkeep remembers what it did."""
        return self.folder / "upkeep.json"

    def upkeep(self) -> UpkeepState:
        """What upkeep remembers; nothing where that cannot be read."""
        try:
            with self.record.open("rb") as file:
                fields = json.loads(file.read(_MOST_BYTES))
            return UpkeepState(
                float(fields["updated"]),
                float(fields["embedded"]),
                int(fields["failures"]),
                float(fields["again"]),
                str(fields["error"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            # Nothing was done yet, as far as anybody knows.
            return UpkeepState()

    def remember(self, found: UpkeepState) -> None:
        """Let upkeep remember `found`. Raises QmdFailure."""
        try:
            durable.make_folder(self.folder)
            durable.replace_file(self.record, json.dumps(to_builtins(found)).encode())
        except OSError as error:
            raise QmdFailure(
                "index", f"{self.record} cannot be written: {error.strerror}.", "Make its folder writable."
            ) from error

    @property
    def exported(self) -> Path:
        """Where transcripts are exported to unless a configuration names a folder."""
        return self.folder / "sessions"

    def environment(self) -> dict[str, str]:
        """The environment that QMD runs in: its own folders, no colours, and nothing that moves its index."""
        found = {name: text for name, text in os.environ.items() if name not in ("INDEX_PATH", "CI", "FORCE_COLOR")}
        return {
            **found,
            "XDG_CONFIG_HOME": str(self.config),
            "QMD_CONFIG_DIR": str(self.config),
            "XDG_CACHE_HOME": str(self.folder / "xdg-cache"),
            "NO_COLOR": "1",
        }

    def make(self) -> None:
        """Make the folders; the models that the user has already are shared. Raises QmdFailure."""
        try:
            for folder in (self.config, self.index.parent):
                durable.make_folder(folder)
            usual = Path.home() / ".cache" / "qmd" / "models"
            if usual.is_dir() and not os.path.lexists(self.models):
                durable.calls.symlink(usual, self.models)
        except OSError as error:
            raise QmdFailure(
                "index", f"{self.folder} cannot be made: {error.strerror}.", "Name another folder with --qmd-home."
            ) from error
