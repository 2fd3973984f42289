"""Commands of a shared index: init, join, publish, mirror, verify."""

from __future__ import annotations

import argparse
import shlex
import threading
from collections.abc import Iterator

from memory_tui import plan as plans
from memory_tui.cli.context import agreed, engine_options, opened, require_yes
from memory_tui.cli.output import say, show, waiting
from memory_tui.config import config_file as configuration
from memory_tui.errors import ApprovalMissing, SettingError
from memory_tui.explain.trace_json import plain
from memory_tui.formatting import plural
from memory_tui.shared import publish as publishing
from memory_tui.shared.connection import Access, access, connect, joined, make_schema, schema_statements, unbound
from memory_tui.shared.publish import MEMORY, NOTES, SESSIONS, Preview, Published

_OPTIONS = {MEMORY: "--memory-md", SESSIONS: "--transcripts"}
"""The option of `join` by which each kind of notes is published that is not without it."""


def init(args: argparse.Namespace) -> int:
    """Make the schema of the shared index, or bring it up to date, after showing it."""
    there = access(plans.choose(engine_options(args)))
    with connect(there) as connection:
        statements = schema_statements(connection, there, tuple(args.admit))
        lines = [line for statement in statements for line in statement.split("\n")]
        written = agreed(args, lines, f"Run this in {there.where}?")
        if written:
            make_schema(connection, there, tuple(args.admit))
        elif not args.dry_run:
            raise ApprovalMissing("Nothing was run.", "memory-tui shared init --yes.")
    data = {"database": there.where, "statements": statements, "written": written}
    return show(args, data, [f"The shared index in {there.where} is ready. Next: memory-tui shared join."] * written)


def join(args: argparse.Namespace) -> int:
    """Agree that a workspace is published, after a preview, and say who may read it; with `--leave` take it out."""
    with opened(args) as engine:
        there = _access_by_name(engine.plan)
        if args.leave:
            publishing.leave(engine.plan, there)
            return show(args, {"left": there.name}, [f"{there.name} is no longer in {there.where}."])
        # Before anybody is asked for consent, it is sure that the database takes it.
        publishing.rehearse(there, args.let)
        consent = publishing.consent(engine.plan, there)
        with engine.index.reader() as store, waiting("Looking for secrets"):
            preview = publishing.preview(store, consent.cleared)
    wanted = {NOTES: True, MEMORY: args.memory_md, SESSIONS: args.transcripts}
    kinds = [kind for kind, is_wanted in wanted.items() if is_wanted]
    lines = list(_previewed(preview, [*kinds, *consent.kinds]))
    if not consent.kinds.issuperset(kinds):
        does = f"{there.where} gets as {there.name}, for whom you let read it: {' '.join(lines)}"
        options = [option for kind, option in _OPTIONS.items() if kind in kinds]
        options += [f"--let {shlex.quote(login)}" for login in args.let]
        options += [f"--unlet {shlex.quote(login)}" for login in args.unlet]
        require_yes(does, " ".join(["memory-tui shared join", *options, "--yes"]), args)
    publishing.join(engine.plan, there, kinds, "shared join --yes" if args.yes else "shared join")
    for login in args.let:
        publishing.allow(there, login, reads=True)
    for login in args.unlet:
        publishing.allow(there, login, reads=False)
    with joined(there) as connection:
        if warning := unbound(connection, there):
            say(warning)
    data = {"name": there.name, "database": there.where, "approved": kinds, "preview": plain(preview)}
    return show(args, data | {"let": args.let, "unlet": args.unlet}, [*lines, "Next: memory-tui shared publish."])


def _access_by_name(plan: plans.Plan) -> Access:
    """Return how the shared index of `plan` is reached. Raises SettingError where the workspace has no name in it."""
    if not (there := access(plan)).name:
        raise SettingError("This workspace has no name in the shared index.", "Set shared.name to OWNER/NAME.")
    return there


def _previewed(preview: dict[str, Preview], kinds: list[str]) -> Iterator[str]:
    """Yield for each kind of notes how much is published, and how much is held back; `kinds` are agreed to."""
    titles = {NOTES: "notes", MEMORY: "MEMORY.md", SESSIONS: "transcripts"}
    for kind, sums in preview.items():
        if kind not in kinds:
            yield f"{titles[kind]}: nothing without {_OPTIONS[kind]}."
        elif sums.files:
            kept = f", without {plural(sums.withheld, 'passage')} that may hold a secret" if sums.withheld else ""
            yield f"{titles[kind]}: {plural(sums.passages, 'passage')} of {plural(sums.files, 'file')}{kept}."


def publish(args: argparse.Namespace) -> int:
    """Publish the index once, or after each change until stopped."""
    with opened(args) as engine:
        there = _access_by_name(engine.plan)
        consent = publishing.consent(engine.plan, there)
        with waiting("Indexing"):
            engine.index.catch_up()
        with engine.index.reader() as store, waiting("Publishing"):
            report = publishing.publish(store, there, consent)
        show(args, plain(report), _published(report, there))
        if not args.once and configuration.own(engine.plan.config).value("shared.publish") is True:
            engine.start()
            # The engine publishes after each sync; nothing ends this wait but a signal.
            threading.Event().wait()
    return 0


def _published(report: Published, there: Access) -> Iterator[str]:
    """Yield what was published, then what was not, and why."""
    done = f"{plural(report.files, 'note')} published, {report.removed:,} removed"
    yield f"{there.name}: {done}; generation {report.generation:,} of {there.where}."
    if report.withheld:
        yield f"Not published, as it may hold a secret: {plural(report.withheld, 'passage')}."
    for kind, count in report.left.items():
        option = _OPTIONS[MEMORY if kind == MEMORY else SESSIONS]
        yield f"Not published without your consent: {plural(count, 'file')}. memory-tui shared join {option}."


def mirror(args: argparse.Namespace) -> int:
    """Bring the mirror of a scope up to date."""
    with opened(args) as engine:
        engine.index.catch_up()
        with waiting("Fetching"):
            standing = engine.scopes.fill(args.scope)
    return show(args, standing.as_dict(), [standing.sentence])


def check(args: argparse.Namespace) -> int:
    """Compare what is published of this workspace with itself, with the index, and with the notes on disk."""
    with opened(args) as engine:
        there = _access_by_name(engine.plan)
        consent = publishing.consent(engine.plan, there)
        with engine.index.reader() as store, waiting("Comparing"):
            roots = engine.plan.roots if args.against_disk else None
            problems = publishing.verify(there, store, consent, roots)
    lines = problems or [f"{there.name} is published as it is indexed."]
    return show(args, {"name": there.name, "problems": problems}, lines, 1 if problems else 0)
