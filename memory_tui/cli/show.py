"""Commands that show memory-tui to others: report, completion, man."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cli.common import Command, opened, query_of, spoken
from memory_tui.core.errors import QueryError, SettingError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import Trace

SHELLS = ("bash", "zsh", "fish")


def _declare_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=spoken, help="the query")
    parser.add_argument("--out", metavar="FILE", help="write FILE.html or FILE.md (default: print Markdown)")
    parser.add_argument(
        "--with-text", action="store_true", help="also the text of the notes that the agent reads; secrets are masked"
    )


def _report(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text, report

    query = query_of(given)
    if query is None:
        raise QueryError("There is no query.", 'For instance: memory-tui report "router vlan" --out report.html.')
    out = Path(given.out).expanduser() if hasattr(given, "out") else None
    if out is not None and out.suffix.lower() not in (".html", ".md"):
        raise SettingError(f"{out} is neither HTML nor Markdown.", "End the name in .html or .md.")
    with opened(given) as engine:
        engine.plan.require_enabled()
        engine.indexer.catch_up()
        workspace = engine.plan.roots.workspace.name
        with as_text.waiting("Asking, comparing the profiles, examining"):
            evidence = engine.queries.gather(query)
            trace = engine.queries.rank(evidence, engine.plan.settings)
            sides, checks = _profiles(engine, evidence, trace), _checks(engine)
    head = report.heading(trace, workspace)
    found = report.sections(trace, evidence, sides, checks, with_text=hasattr(given, "with_text"))
    if out is None:
        sys.stdout.write(report.markdown(head, found))
        return 0
    from memory_tui.core import atomic

    written = report.page(head, found) if out.suffix.lower() == ".html" else report.markdown(head, found)
    try:
        atomic.replace_file(out, written.encode("utf-8", "replace"))
    except OSError as error:
        raise SettingError(f"{out} cannot be written: {error.strerror}.", "Name a file in a folder of yours.") from None
    if hasattr(given, "json"):
        as_text.data({"file": str(out), "bytes": out.stat().st_size})
    else:
        text = "with the text of notes" if hasattr(given, "with_text") else "without the text of notes"
        as_text.text([f"{out} written, {text}."])
    return 0


def _profiles(engine: Engine, evidence: Evidence, trace: Trace) -> Mapping[str, Trace]:
    """The same question under each profile, the one in force first; by other chunks only where these are indexed."""
    from memory_tui.core import profiles
    from memory_tui.engine.openclaw_answer import by_newest
    from memory_tui.search.rank import can_rank

    found = {trace.profile: trace}
    for name in profiles.PROFILES:
        if name != trace.profile and can_rank(evidence, name):
            found[name] = engine.queries.rank(evidence, engine.plan.with_profile(name))
        elif name != trace.profile and engine.plan.sibling is not None and engine.plan.sibling.exists():
            with by_newest(engine) as other:
                found[name] = other.queries.search(evidence.query)
    return found


def _checks(engine: Engine) -> list[tuple[str, str, str]]:
    """What the doctor found; of what is in order only the count."""
    from memory_tui.doctor import runner

    results = list(runner.examine(engine))
    told = [one for one in results if one.finding.state not in ("ok", "skipped")]
    rows = [(one.finding.state, one.check.title, f"{one.finding.evidence} {one.finding.fix}".strip()) for one in told]
    return [*rows, ("ok", f"{len(results) - len(told)} other checks", "")]


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
