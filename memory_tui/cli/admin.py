"""Commands for the app, the configuration and the manual: open, demo, config, doctor, help."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui import durable, manual, plan
from memory_tui.cli.commands import full_parser
from memory_tui.cli.context import confirmed, moment, opened, options, workspace_named
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.config import config_patch, places
from memory_tui.config.config_patch import Patch, patch, summary
from memory_tui.errors import ConfigError, SettingError
from memory_tui.explain import trace_json
from memory_tui.plan import Options
from memory_tui.render import host_text

# --- the app -------------------------------------------------------------------------------------------------------


def open_app(args: argparse.Namespace) -> int:
    """Open the app on a workspace."""
    workspace_named(args)
    return _run(options(args), args.query or "")


def demo(args: argparse.Namespace) -> int:
    """Open the app on a copy of the sample workspace."""
    from memory_tui import demo as sample

    if args.workspace is not None or args.config is not None:
        raise SettingError("The demo has its own workspace and configuration.", "Leave --workspace and --config out.")
    now = moment(args)
    today = dt.datetime.fromtimestamp(now).date() if now is not None else dt.date.today()
    with sample.own() as folder:
        workspace, config = sample.materialize(folder / sample.WORKSPACE, today, more=True), folder / "config.json"
        durable.create_file(config, b"{}\n")
        facts = sample.surround(folder, workspace, today)
        # The ledger of the demo is read, and nothing of the person's own OpenClaw.
        for name in [name for name in os.environ if name.startswith(("OPENCLAW_", "CLAWDBOT_"))]:
            del os.environ[name]
        os.environ["OPENCLAW_STATE_DIR"] = str(sample.state_folder(folder))
        sample.keep_queries(workspace, config, today)
        sample.keep_recalls(workspace, today)
        chosen = replace(options(args), workspace=str(workspace), config=str(config), sample=True)
        chosen = replace(chosen, extra=(*chosen.extra, str(facts)))
        if chosen.index is None:
            chosen = replace(chosen, index=str(folder / "index.sqlite"))
        return _run(chosen, args.query or "", sample.SUGGESTED, leads=True)


def _run(chosen: Options, query: str, suggestions: Sequence[str] = (), *, leads: bool = False) -> int:
    # Textual is heavy, and no other command needs it.
    from memory_tui.tui import signals

    # The screen is drawn on stderr.
    terminal = signals.is_served() or (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty())
    if not terminal or (chosen.workspace and not Path(chosen.workspace).expanduser().is_dir()):
        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        plan.plan(chosen)
    if not terminal:
        raise SettingError(
            "The app needs a terminal, and this is not one.",
            "Use a command such as memory-tui search; memory-tui --help lists them.",
        )
    if os.environ.get("TERM") == "dumb":
        raise SettingError(
            "This terminal cannot show the app: TERM is dumb.",
            "Use a command such as memory-tui search, or another terminal.",
        )
    from memory_tui.tui import key_meanings

    doubt = key_meanings.load_keys(places.own_path().with_name("keys.toml"))
    from memory_tui.tui.app import run

    return run(chosen, query, suggestions, leads=leads, doubt=doubt)


# --- the configuration ---------------------------------------------------------------------------------------------


def config(args: argparse.Namespace) -> int:
    """List every value of the configuration, write what the command line chooses, or undo that."""
    if args.undo:
        return _undo(args)
    if args.write:
        return _write(args)
    listing = plan.choose(options(args)).summary()
    return show(args, lambda: trace_json.plain(listing), host_text.config(listing))


def _write(args: argparse.Namespace) -> int:
    choices = plan.choose(options(args))
    change = patch(choices.config, choices.settings, choices.as_written())
    if not args.json:
        print_lines(_patch_lines(change))
    asks = bool(change.files) and not args.dry_run
    written = change.write() if asks and confirmed(f"Write to {change.target}?", args) else ()
    if asks and not written and not args.json:
        raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
    data = {
        "target": str(change.target),
        "changes": [to_builtins(each) for each in change.changes],
        "left": [{"key": key, "reason": reason} for key, reason in change.left],
        "notes": change.notes,
        "diff": change.diff(),
        "written": bool(written),
        "backups": [each.backup for each in written],
    }
    return show(args, data, ["Written. To undo it: memory-tui config --undo."] if written else [])


def _patch_lines(change: Patch) -> list[str]:
    changes = [f"{summary(each)}   at {each.place}" for each in change.changes]
    return [
        *(changes or ["The configuration already has these values."]),
        *(f"not written: {key}: {reason}." for key, reason in change.left),
        *(change.notes if change.changes else ()),
        *change.diff().splitlines(),
    ]


def _undo(args: argparse.Namespace) -> int:
    last = config_patch.last()
    if last is None:
        raise ConfigError("memory-tui wrote no configuration, so there is nothing to undo.", "")
    if not args.dry_run:
        config_patch.undo(last)
    line = f"{last.path} {'would be' if args.dry_run else 'is'} as it was before."
    return show(args, {"path": last.path, "undone": not args.dry_run, "backup": last.backup}, [line])


# --- doctor --------------------------------------------------------------------------------------------------------

_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL", "skipped": "-   ", "no answer": "????"}


def doctor(args: argparse.Namespace) -> int:
    """Examine machine, notes, index, provider and settings; exit code 1 when something failed."""
    # The checks need numpy, which the other commands here do without.
    from memory_tui.doctor.checks import checks_of
    from memory_tui.doctor.examine import examine, verdict

    with opened(args) as engine:
        engine.index.catch_up()
        checks = checks_of(engine)
        with waiting("Examining"):
            results = sorted(examine(engine, checks, args.deadline), key=lambda r: checks.index(r.check))
    code = verdict(results)
    counts = {state: sum(result.finding.state == state for result in results) for state in _MARKS}
    data = {"ok": not code, "counts": counts, "checks": [result.as_dict() for result in results]}
    lines = []
    for check, finding in [(result.check, result.finding) for result in results]:
        if args.all or finding.state not in ("ok", "skipped"):
            lines += [f"{_MARKS[finding.state]} {check.title}", f"     {finding.evidence}"]
            lines += [f"     Fix: {finding.fix}"] if finding.fix else []
    tally = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    lines.append(f"{len(results)} checks: {tally}.")
    return show(args, data, lines if args.all else [*lines, "Run memory-tui doctor --all to see all of them."], code)


# --- help ----------------------------------------------------------------------------------------------------------


def show_help(args: argparse.Namespace) -> int:
    """List the pages of the manual, print one, or print the completion script of a shell."""
    if args.completion is not None:
        import shtab

        sys.stdout.write(f"{shtab.complete(full_parser(), args.completion)}\n")
        return 0
    if args.topic is not None:
        text = manual.text(args.topic)
        return show(args, {"topic": args.topic, "text": text}, text.removesuffix("\n").split("\n"))
    pages = manual.topics()
    lines = ["memory-tui help TOPIC prints a page of the manual:", ""]
    return show(args, {"topics": pages}, [*lines, *(f"  {name:<14} {title}" for name, title in pages.items())])
