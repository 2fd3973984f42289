"""Commands for set-up: write-config, doctor, completion."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui.cli.common import Command, at_least, confirmed, opened, options, waiting
from memory_tui.core.errors import ConfigError

if TYPE_CHECKING:
    from memory_tui.config.config_patch import Patch
    from memory_tui.doctor.check import Result


SHELLS = ("bash", "zsh", "fish")


def _declare_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell whose script is printed")


def _completion(args: argparse.Namespace) -> int:
    import shtab

    from memory_tui.cli.main import build_parser

    sys.stdout.write(f"{shtab.complete(build_parser(), args.shell)}\n")
    return 0


def _declare_write_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the difference and write nothing")
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--undo", action="store_true", help="undo the last write")


def _write_config(given: argparse.Namespace) -> int:
    from memory_tui import plan
    from memory_tui.config.config_patch import patch

    if hasattr(given, "undo"):
        return _undo(given)
    choices = plan.choose(options(given))
    found = patch(choices.config, choices.settings, choices.as_written())
    as_json = hasattr(given, "json")
    if not as_json:
        _show(found)
    wanted = bool(found.files) and not hasattr(given, "dry_run")
    written = found.write() if wanted and confirmed(f"Write to {found.target}?", given) else ()
    if as_json:
        _json(found, bool(written), [one.backup for one in written])
    elif written:
        _say("Written. To undo it: memory-tui write-config --undo.")
    elif wanted:
        raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
    return 0


def _undo(given: argparse.Namespace) -> int:
    from memory_tui.config import config_write
    from memory_tui.render import as_text

    last = config_write.last()
    if last is None:
        raise ConfigError("memory-tui wrote no configuration, so there is nothing to undo.", "")
    if not hasattr(given, "dry_run"):
        config_write.undo(last)
    if hasattr(given, "json"):
        as_text.print_json({"path": last.path, "undone": not hasattr(given, "dry_run"), "backup": last.backup})
    else:
        _say(f"{last.path} {'would be' if hasattr(given, 'dry_run') else 'is'} as it was before.")
    return 0


def _show(found: Patch) -> None:
    from memory_tui.config.config_patch import summary
    from memory_tui.render import as_text

    _say(
        "\n".join(
            ["The configuration already has these values."]
            if not found.changes
            else [f"{summary(change)}   at {change.place}" for change in found.changes]
        )
    )
    as_text.print_lines([f"not written: {key}: {reason}." for key, reason in found.left])
    as_text.print_lines(found.notes if found.changes else ())
    as_text.print_lines(found.diff().splitlines())


def _json(found: Patch, written: bool, backups: list[str]) -> None:
    from memory_tui.render import as_text

    data: dict[str, Any] = {
        "target": str(found.target),
        "changes": [to_builtins(change) for change in found.changes],
        "left": [{"key": key, "reason": reason} for key, reason in found.left],
        "notes": found.notes,
        "diff": found.diff(),
        "written": written,
        "backups": backups,
    }
    as_text.print_json(data)


def _say(text: str) -> None:
    from memory_tui.render import as_text

    as_text.print_lines(text.split("\n"))


_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL", "skipped": "-   ", "no answer": "????"}


def _declare_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deadline",
        type=at_least(0.1),
        default=20.0,
        metavar="S",
        help="seconds after which a check is given up (default: 20)",
    )
    parser.add_argument("--all", action="store_true", help="also show the checks that pass")


def _doctor(given: argparse.Namespace) -> int:
    from memory_tui.doctor import runner
    from memory_tui.render import as_text

    with opened(given) as engine:
        engine.indexer.catch_up()
        with waiting("Examining"):
            examined = list(runner.examine(engine, deadline=given.deadline))
        results = sorted(
            examined,
            key=lambda result: [check.key for check in runner.checks_of(engine)].index(result.check.key),
        )
    code = runner.verdict(results)
    if hasattr(given, "json"):
        as_text.print_json(
            {"ok": not code, "counts": _counts(results), "checks": [result.as_dict() for result in results]}
        )
        return code
    shown = (
        results
        if hasattr(given, "all")
        else [result for result in results if result.finding.state not in ("ok", "skipped")]
    )
    for result in shown:
        as_text.print_lines(_lines(result))
    counts = ", ".join(f"{number} {state}" for state, number in _counts(results).items() if number)
    as_text.print_lines(
        [f"{len(results)} checks: {counts}."]
        + ([] if hasattr(given, "all") else ["Run memory-tui doctor --all to see all of them."])
    )
    return code


def _lines(result: Result) -> list[str]:
    finding = result.finding
    lines = [f"{_MARKS[finding.state]} {result.check.title}", f"     {finding.evidence}"]
    return [*lines, f"     Fix: {finding.fix}"] if finding.fix else lines


def _counts(results: list[Result]) -> dict[str, int]:
    return {state: sum(result.finding.state == state for result in results) for state in _MARKS}


COMMANDS: dict[str, Command] = {
    "write-config": Command(_write_config, _declare_write_config),
    "doctor": Command(_doctor, _declare_doctor),
    "completion": Command(_completion, _declare_completion),
}
