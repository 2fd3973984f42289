"""Commands that show memory-tui to others: report, completion, man."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from memory_tui.cli.common import Command, opened, query_of, spoken, waiting
from memory_tui.core.errors import QueryError

SHELLS = ("bash", "zsh", "fish")


def _declare_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=spoken, help="the query")
    parser.add_argument("--out", metavar="FILE", help="write FILE.html or FILE.md (default: print Markdown)")
    parser.add_argument(
        "--with-text", action="store_true", help="also the text of the notes that the agent reads; secrets are masked"
    )


def _report(given: argparse.Namespace) -> int:
    from memory_tui.doctor import runner
    from memory_tui.render import as_text, report

    query = query_of(given)
    if query is None:
        raise QueryError("There is no query.", 'For instance: memory-tui report "router vlan" --out report.html.')
    out = Path(given.out).expanduser() if hasattr(given, "out") else None
    if out is not None:
        report.require_kind(out)
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        with waiting("Asking, comparing the profiles, examining"):
            checks = runner.unusual(engine)
            made = report.make(engine, query, engine.plan.settings, checks, with_text=hasattr(given, "with_text"))
    if out is None:
        sys.stdout.write(report.markdown(made))
        return 0
    report.save(made, out, replace=True)
    if hasattr(given, "json"):
        as_text.print_json({"file": str(out), "bytes": out.stat().st_size})
    else:
        text = "with the text of notes" if hasattr(given, "with_text") else "without the text of notes"
        as_text.print_lines([f"{out} written, {text}."])
    return 0


def _declare_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell whose script is printed")


def _completion(given: argparse.Namespace) -> int:
    from memory_tui.cli import shell_words

    sys.stdout.write(shell_words.script(given.shell))
    return 0


def _man(given: argparse.Namespace) -> int:
    from memory_tui.cli import shell_words

    del given
    sys.stdout.write(shell_words.man_page())
    return 0


COMMANDS: dict[str, Command] = {
    "report": Command(_report, _declare_report),
    "completion": Command(_completion, _declare_completion),
    "man": Command(_man),
}
