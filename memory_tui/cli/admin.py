"""Commands about the index, the app, the configuration and the manual."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import shtab
from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui import demo as sample
from memory_tui import durable, manual, plan
from memory_tui.cancel import Stopped
from memory_tui.cli import provider
from memory_tui.cli.commands import full_parser
from memory_tui.cli.context import agreed, engine_options, moment, opened, workspace_named
from memory_tui.cli.output import print_lines, say, show, tell, waiting
from memory_tui.config import config_patch
from memory_tui.config.config_patch import patch, summary
from memory_tui.doctor import checks_of, examine, verdict
from memory_tui.engine import machine
from memory_tui.engine.engine import Engine
from memory_tui.engine.status import Status, VectorSearch, WordSearch
from memory_tui.errors import ConfigError, SettingError, WorkspaceError
from memory_tui.explain.trace_json import plain
from memory_tui.formatting import plural
from memory_tui.index.store import Rejected, Withheld
from memory_tui.index.sync import SyncReport
from memory_tui.plan import Options
from memory_tui.render import host_text
from memory_tui.sanitize import one_line
from memory_tui.workspace.roots import beside

# --- index, status -------------------------------------------------------------------------------------------------


def index(args: argparse.Namespace) -> int:
    """Bring the index up to date, or show what that would send."""
    with opened(args) as engine:
        engine.plan.require_enabled()
        if args.dry_run:
            return provider.dry_run(engine, args)
        if args.approve_extension:
            library, named_by = engine.index.opener.approve_extension("index --approve-extension")
            say(
                f"{library} is run as sqlite-vec, which {named_by} names: approved. "
                "To withdraw: memory-tui provider --revoke sqlite-vec."
            )
        approved = provider.approve_for_index(engine, args)
        if approved is not None and not args.json:
            does = engine.providers.may_get(approved.provider, approved.host)
            print_lines([f"Approved: {does} To withdraw: memory-tui provider --revoke."])
        if args.accept_shrink:
            outcome = _synced(engine, reason="accept", accept_shrink=True)
        if not args.accept_shrink or args.force:
            outcome = _synced(engine, force=args.force)
        show(args, {**plain(outcome), "fallback": engine.providers.who().instead}, [_done(engine, outcome)])
        if not args.json:
            for path, reason in outcome.failed:
                sys.stderr.write(f"  {one_line(path)}: {one_line(reason)}\n")
            for remark in engine.notices():
                tell(remark)
            for text in dict.fromkeys(filter(None, (outcome.error, outcome.postponed, outcome.unshared))):
                say(text)
        return 1 if outcome.error or outcome.failed else 0


def _synced(engine: Engine, *, reason: str = "cli", force: bool = False, accept_shrink: bool = False) -> SyncReport:
    """Bring the index up to date; whoever stops it is told what becomes of the work."""
    try:
        with waiting("Indexing"):
            return engine.index.sync(force=force, reason=reason, accept_shrink=accept_shrink)
    except Stopped as stopped:
        stopped.more = "What is indexed so far stays; memory-tui index goes on from there."
        raise


def _done(engine: Engine, outcome: SyncReport) -> str:
    """Return what an index run did, as a sentence."""
    done = [f"{plural(outcome.indexed, 'file')} indexed"]
    done += [f"{n} {word}" for n, word in ((outcome.removed, "removed"), (len(outcome.failed), "failed")) if n]
    done.append(f"{plural(outcome.embedded, 'text')} embedded")
    if outcome.shared and engine.plan.sibling is not None:
        done.append(f"{plural(outcome.shared, 'vector')} reused from {engine.plan.sibling.name}")
    return f"{', '.join(done)} in {outcome.seconds:.1f} s."


def status(args: argparse.Namespace) -> int:
    """Tell what is indexed, by what, and what is missing."""
    with opened(args) as engine:
        outcome = _synced(engine) if args.sync else None
        now = engine.status(deep=args.sync or args.deep)
        others = beside(engine.plan.roots)
    aside = f"{plural(others, 'Markdown file')} of this folder are no memory: --whole yes reads them."
    show(args, plain(now), [*status_lines(now), *([aside] if others else [])])
    if outcome and outcome.error:
        say(outcome.error)
    return 1 if outcome and (outcome.error or outcome.failed) else 0


_ALWAYS = ("pending", "failed", "left out")
"""States whose notes are counted also where there are none."""


def status_lines(value: Status) -> Iterator[str]:
    """Yield the state, a label and its words a line, then every note that is not indexed as it is."""
    fresh, who, cache = value.freshness, value.writer or value.keeper, value.cache
    vectors = _part(value.vector, value.vector.load_error)
    if value.embedded and not value.who.answers:
        vectors = f"not compared now, {value.vector.engine}"
    maker = f"{value.provider} {value.model}".rstrip()
    if value.provider in ("", "none"):
        words_alone = value.files or value.requested_provider == "none"
        maker = "no provider, words alone" if words_alone else "no provider yet, nothing is indexed"
    keeper = "nobody now; memory-tui index, or the open app, brings it up to date"
    if who is not None:
        keeper = f"process {who.pid}{', this one' if who.ours else ''}{', writing now' if value.writer else ''}"
    of_agents = f", of {', '.join(value.agents)}" if len(value.agents) > 1 else ""
    trust = value.trust if value.trust and value.trust.ledger else None
    groups = (
        ("pending", [(item.path, item.detail) for item in fresh.pending]),
        ("failed", [(item.path, item.detail) for item in fresh.failed]),
        ("left out", [(item.path, item.reason) for item in fresh.left_out]),
        ("in part", [(item.path, item.detail) for item in value.in_part]),
        ("changed while read", [(item.path, item.detail) for item in fresh.unsettled]),
        ("missing root", [(item.path, item.detail) for item in fresh.missing]),
    )
    counts = [f"{len(items)} {state}" for state, items in groups if items or state in _ALWAYS]
    rows = {
        "Agent": f"{value.agent_id}{of_agents}",
        "Workspace": value.workspace_dir,
        "Backend": value.backend_state if value.custom is not None else "",
        "Profile": f"{value.profile} ({value.profile_origin})",
        "Provider": f"{value.requested_provider} ({value.provider_origin})",
        "Who answers": value.who.sentence,
        "Index made by": maker,
        "Indexed": f"{value.files}/{fresh.total} files, {plural(value.chunks, 'chunk')}",
        "Freshness": ", ".join([f"{fresh.fresh} fresh", *counts]),
        "Store": f"{value.db_path} ({value.db_bytes / 1e6:.1f} MB; deleting it loses nothing but time)",
        "Vector": vectors,
        "Text": _part(value.fts, value.fts.error),
        "Cache": f"{plural(cache.entries, 'vector')}, {cache.bytes / 1e6:.1f} MB, {plural(cache.hits, 'hit')}",
        "Configuration": value.config_path or "none",
        "Kept by": keeper,
        "Trust": host_text.trust_summary(trust) if trust else "",
    }
    yield from (f"{label + ':':<16}{one_line(words)}" for label, words in rows.items() if words)
    away = [root for root in value.roots if root.state != "there"]
    yield from (f"  {root.state}: {root.path}  {one_line(root.detail)}" for root in away)
    for state, items in groups:
        yield from (f"  {state}: {path}  {one_line(detail)}" for path, detail in items)
    unapproved = [link for link in value.links if not link.approved and value.requested_provider == "auto"]
    for link in unapproved[:1]:
        does = f"{link.name} at {link.host} needs your approval before it can embed notes"
        yield f"{does}; memory-tui index --dry-run shows what it would get."
    chunks: list[Withheld | Rejected] = [*value.withheld, *value.refused]
    for chunk in chunks:
        state = "not sent" if isinstance(chunk, Withheld) else "no vector"
        yield f"  {state}: {chunk.path}:{chunk.start_line}-{chunk.end_line}  {one_line(str(chunk))}"
    yield from (f"Notice: {one_line(f'{notice.message} {notice.next_step}')}" for notice in value.notices)


def _part(part: VectorSearch | WordSearch, error: str | None) -> str:
    words = "ready" if part.available else "off" if not part.enabled else "unavailable"
    return " ".join(filter(None, (words, part.engine, error)))


_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL", "skipped": "-   ", "no answer": "????"}


def doctor(args: argparse.Namespace) -> int:
    """Examine machine, notes, index, provider and settings; exit code 1 when something failed."""
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


# --- the app -------------------------------------------------------------------------------------------------------


def open_app(args: argparse.Namespace) -> int:
    """Open the app on a workspace."""
    workspace_named(args)
    return _run(engine_options(args), args.query or "")


def demo(args: argparse.Namespace) -> int:
    """Open the app on a copy of the sample workspace."""
    if args.workspace is not None or args.config is not None:
        raise SettingError("The demo has its own workspace and configuration.", "Leave --workspace and --config out.")
    now = moment(args)
    today = dt.datetime.fromtimestamp(now).date() if now is not None else dt.date.today()
    with sample.own_folder() as folder:
        workspace, config = sample.materialize(folder / sample.WORKSPACE, today, more=True), folder / "config.json"
        durable.create_file(config, b"{}\n")
        facts = sample.surround(folder, workspace, today)
        # The ledger of the demo is read, and nothing of the person's own OpenClaw.
        for name in [name for name in os.environ if name.startswith(("OPENCLAW_", "CLAWDBOT_"))]:
            del os.environ[name]
        os.environ["OPENCLAW_STATE_DIR"] = str(sample.state_folder(folder))
        sample.keep_queries(workspace, config, today)
        sample.keep_recalls(workspace, today)
        chosen = replace(engine_options(args), workspace=str(workspace), config=str(config), sample=True)
        index = chosen.index or str(folder / "index.sqlite")
        chosen = replace(chosen, extra=(*chosen.extra, str(facts)), index=index)
        return _run(chosen, args.query or "", sample.SUGGESTED, leads=True)


def _run(chosen: Options, query: str, suggestions: Sequence[str] = (), *, leads: bool = False) -> int:
    # Textual is heavy, and no other command needs it.
    from memory_tui.tui.machine import choose_memory
    from memory_tui.tui.run import is_served, run

    # The screen is drawn on stderr.
    terminal = is_served() or (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty())
    if not terminal or (chosen.workspace and not Path(chosen.workspace).expanduser().is_dir()):
        # What is wrong with the workspace comes first: nobody needs a terminal to be told.
        plan.plan(chosen)
    if not terminal or os.environ.get("TERM") == "dumb":
        raise SettingError(
            "This terminal cannot show the app: TERM is dumb."
            if terminal
            else "The app needs a terminal, and this is not one.",
            "Use a command such as memory-tui search; memory-tui --help lists them.",
        )
    if not (chosen.workspace or chosen.agent or chosen.config or is_served()):
        try:
            plan.plan(chosen)
        except WorkspaceError:
            # None is meant by where the program runs: a person chooses.
            if (folder := choose_memory(machine.memories())) is None:
                raise
            chosen = replace(chosen, workspace=str(folder))
    code = run(chosen, query, suggestions, leads=leads)
    if not (code or leads):
        machine.remember(plan.choose(chosen).workspace)
    return code


# --- the configuration ---------------------------------------------------------------------------------------------


def config(args: argparse.Namespace) -> int:
    """List every value of the configuration, write what the command line chooses, or undo that."""
    if args.undo:
        return _undo(args)
    choices = plan.choose(engine_options(args))
    if not args.write:
        listing = choices.summary()
        return show(args, plain(listing), host_text.config(listing))
    change = patch(choices.config, choices.settings, choices.as_written())
    changes = [f"{summary(each)}   at {each.place}" for each in change.changes]
    lines = [
        *(changes or ["The configuration already has these values."]),
        *(f"not written: {key}: {reason}." for key, reason in change.left),
        *(change.notes if changes else ()),
        *change.diff().splitlines(),
    ]
    written = change.write() if agreed(args, lines, f"Write to {change.target}?" if change.files else "") else ()
    if change.files and not written and not args.dry_run and not args.json:
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


def _undo(args: argparse.Namespace) -> int:
    last = config_patch.last()
    if last is None:
        raise ConfigError("memory-tui wrote no configuration, so there is nothing to undo.", "")
    if not args.dry_run:
        config_patch.undo(last)
    line = f"{last.path} {'would be' if args.dry_run else 'is'} as it was before."
    return show(args, {"path": last.path, "undone": not args.dry_run, "backup": last.backup}, [line])


# --- help ----------------------------------------------------------------------------------------------------------


def show_help(args: argparse.Namespace) -> int:
    """List the pages of the manual, print one, or print the completion script of a shell."""
    if args.completion is not None:
        sys.stdout.write(f"{shtab.complete(full_parser(), args.completion)}\n")
        return 0
    if args.topic is not None:
        text = manual.text(args.topic)
        return show(args, {"topic": args.topic, "text": text}, text.removesuffix("\n").split("\n"))
    pages = manual.topics()
    lines = ["memory-tui help TOPIC prints a page of the manual:", ""]
    return show(args, {"topics": pages}, [*lines, *(f"  {name:<14} {title}" for name, title in pages.items())])
