"""The command that writes settings into a configuration: shown first, with a backup, and taken back by --undo."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memory_tui.cli.common import Declare, Run, agreed, options
from memory_tui.errors import ConfigError

if TYPE_CHECKING:
    from memory_tui.tune.patch import Patch


def add(command: Declare) -> None:
    """Declare the command."""
    writes = command("write-config", "write what --set and --profile ask for into openclaw.json, or into our own file")
    writes.add_argument("--dry-run", action="store_true", help="show the difference and write nothing")
    writes.add_argument("--yes", action="store_true", help="write without asking")
    writes.add_argument("--undo", action="store_true", help="take back the last write")


def _write_config(given: argparse.Namespace) -> int:
    from memory_tui import launch
    from memory_tui.tune.patch import patch

    if hasattr(given, "undo"):
        return _undo(given)
    choices = launch.choose(options(given))
    found = patch(choices.config, choices.settings, choices.as_written())
    as_json = hasattr(given, "json")
    if not as_json:
        _show(found)
    wanted = bool(found.files) and not hasattr(given, "dry_run")
    written = found.write() if wanted and agreed(f"Write to {found.target}?", given) else ()
    if as_json:
        _json(found, bool(written), [one.backup for one in written])
    elif written:
        _say("Written; memory-tui write-config --undo takes it back.")
    elif wanted:
        raise ConfigError("Nothing was written.", "Say --yes to write without being asked.")
    return 0


def _undo(given: argparse.Namespace) -> int:
    from memory_tui import report
    from memory_tui.config import writing

    last = writing.last()
    if last is None:
        raise ConfigError("No configuration was written that could be taken back.", "")
    if not hasattr(given, "dry_run"):
        writing.undo(last)
    if hasattr(given, "json"):
        report.data({"path": last.path, "undone": not hasattr(given, "dry_run"), "backup": last.backup})
    else:
        _say(f"{last.path} {'would be' if hasattr(given, 'dry_run') else 'is'} as it was before.")
    return 0


def _show(found: Patch) -> None:
    from memory_tui import report
    from memory_tui.tune.patch import summary

    _say(
        "\n".join(
            ["Nothing differs from what is written already."]
            if not found.changes
            else [f"{summary(change)}   at {change.place}" for change in found.changes]
        )
    )
    report.text([f"not written: {key}: {reason}." for key, reason in found.left])
    report.text(found.notes if found.changes else ())
    report.text(found.diff().splitlines())


def _json(found: Patch, written: bool, backups: list[str]) -> None:
    from memory_tui import report

    data: dict[str, Any] = {
        "target": str(found.target),
        "changes": [asdict(change) for change in found.changes],
        "left": [{"key": key, "reason": reason} for key, reason in found.left],
        "notes": found.notes,
        "diff": found.diff(),
        "written": written,
        "backups": backups,
    }
    report.data(data)


def _say(text: str) -> None:
    from memory_tui import report

    report.text(text.split("\n"))


RUN: dict[str, Run] = {"write-config": _write_config}
