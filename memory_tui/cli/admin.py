"""Commands about the index, the app, the configuration, providers and the manual."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from msgspec import to_builtins

from memory_tui import durable, manual, plan
from memory_tui.approval import Approval
from memory_tui.cancel import Stopped
from memory_tui.cli.commands import full_parser
from memory_tui.cli.context import agreed, confirmed, engine_options, moment, opened, require_written, require_yes
from memory_tui.cli.main import show_app
from memory_tui.cli.output import dumps, print_lines, say, show, waiting
from memory_tui.config import config_patch
from memory_tui.config.config_file import Config
from memory_tui.config.settings import BACKEND, FILE_KEYS, OWN_KEYS, PROVIDERS, QMD, SEARCH_KEYS, Key, Settings, retired
from memory_tui.engine import sending
from memory_tui.engine.engine import Engine
from memory_tui.engine.status import Status, VectorSearch, WordSearch
from memory_tui.errors import ConfigError, IndexRefused, IndexUnavailable, MemoryTuiError, ProviderError, SettingError
from memory_tui.explain.trace_json import plain
from memory_tui.formatting import one_line, plural, second
from memory_tui.index.sync import SyncReport
from memory_tui.openclaw.trust import trust_summary
from memory_tui.providers import registry
from memory_tui.providers.chain import Chain, MemberState
from memory_tui.workspace.roots import beside

# --- index, status -------------------------------------------------------------------------------------------------


_COMMAND = "memory-tui provider --add openai-compatible --address http://127.0.0.1:1234/v1 --model NAME"


def _add(args: argparse.Namespace) -> int:
    """Set up the provider that `args` describes, after one test call and a yes; return the exit code."""
    chosen = _chosen(args)
    with waiting(f"Asking {chosen.address or chosen.row.name}"):
        # Both are fields of the setup, whose `answer` is a sentence of the test call.
        patch, trial = setup = sending.prepare(plan.choose(engine_options(args)), chosen)
    lines = [setup.answer, "", *(patch.diff().splitlines() or [f"{patch.target} says so already."])]
    may = agreed(args, lines, f"Write to {patch.target}?" if patch.files else "")
    require_written(may or not patch.files)
    backups = [file.backup for file in patch.write()] if may else []
    data = {"target": str(patch.target), "diff": patch.diff(), "written": may, "backups": backups, "test": trial}
    written = "Written. To undo it: memory-tui config --undo. To use it: memory-tui index."
    return show(args, data, [written] if may else [])


def _chosen(args: argparse.Namespace) -> sending.ProviderChoice:
    """Return the provider that the command line describes; what it leaves out is as usual. Raises SettingError."""
    if not args.add:
        raise SettingError("No kind of provider is named.", f"For instance: {_COMMAND}.")
    try:
        row = registry.row(args.add)
    except ProviderError as error:
        raise SettingError(error.message, error.next_step) from None
    if not row.shape:
        return sending.ProviderChoice(row)
    address = row.base_url if args.address is None else args.address
    variable = sending.usual_variable(row, address) if args.key_variable is None else args.key_variable
    return sending.choice(row.name, address, variable, row.model if args.model is None else args.model)


_MAY = {"qmd": "may be run", "ltm": "may be written", "sqlite-vec": "is not run any more"}
_MAY["secrets"] = "may be sent: nothing leaves this machine there"
"""What was approved, where it is not that a provider gets the notes."""


def provider(args: argparse.Namespace) -> int:
    """List, test, approve or set up embedding providers."""
    if args.add is not None:
        return _add(args)
    with opened(args) as engine:
        providers, chain = engine.providers, engine.providers.chain
        if args.fetch:
            return _fetch(chain, args)
        # An empty name withdraws every approval.
        name = "" if args.revoke == "all" else args.revoke
        revoked = providers.revoke(name, sync=False) if args.revoke is not None else ()
        approved = _approved(providers, args)
        with waiting("Asking the provider"):
            test = chain.try_out(args.test) if args.test is not None else None
        who = providers.who()
        links, approvals = providers.chain.members(), providers.approvals.every()
        data = {"requested": engine.plan.provider, "origin": engine.plan.provider_origin, "links": plain(links)}
        data |= {"who": who.as_dict(), "fallback": who.instead, "approvals": plain(approvals)}
        data |= {"approved": plain(approved), "revoked": plain(revoked), "test": test}
        lines = [f"Requested: {engine.plan.provider} ({engine.plan.provider_origin})", f"Answers: {who.sentence}"]
        lines += (line for link in links for line in _link(link))
        if who.fallback is not None and who.retry_at and who.retry_at > time.time():
            lines.append(f"{who.fallback.source} is asked again at {second(who.retry_at)}.")
        lines += [f"Approval withdrawn: {approval.provider} at {approval.host}." for approval in revoked]
        if args.revoke is not None and not revoked:
            whose = "no provider" if args.revoke == "all" else args.revoke
            lines.append(f"Nothing was withdrawn: {whose} had no approval here.")
        for approval in approvals:
            may = _MAY.get(approval.provider, "may get these notes")
            since = f"since {second(approval.at)} ({approval.how}){', just now' if approval == approved else ''}"
            lines.append(f"Approved: {approval.provider} at {approval.host} {may}, {since}.")
        if (proposal := chain.proposal) is not None:
            dry_run = f"{engine.plan.index_command} --dry-run shows what would be sent."
            lines.append(f"{proposal.name} needs your approval before it can embed notes: {dry_run}")
        if args.approve is not None and approved is None:
            lines += [providers.why_approved(link) for link in links if link.approved]
        lines += _tested(test) if test is not None else []
        return show(args, data, lines, 1 if test is not None and not test["ok"] else 0)


def _link(link: MemberState) -> Iterator[str]:
    """Yield how a member of the chain of providers stands, what is wrong with it, and what to do."""
    where = f" at {link.host}" if link.host else ""
    yield f"{link.name}{where}: {link.state}{f', {link.model}' if link.model else ''}. {link.detail}"
    if link.error and link.error != link.detail:
        yield f"    {link.error}"
    if link.next_step and link.state != "passed over":
        yield f"    {link.next_step}"
    if link.next_try:
        yield f"    Asked again at {second(link.next_try)}."


def _approved(providers: sending.Providers, args: argparse.Namespace) -> Approval | None:
    """Return what a person agreed to; None where nothing was asked for, or nobody waits. Raises ApprovalMissing."""
    if args.stays_here is not None:
        member = providers.here(args.stays_here)
        how = "provider --stays-here"
        does = f"{member.name} at {member.host} gets text that looks like a secret: nothing leaves this machine there."
        require_yes(does, f"memory-tui {how} {member.name} --yes", args)
        return providers.says_secrets_stay(member.name, how)
    # None waits where the provider was approved before.
    if args.approve is None or (waiting := providers.waiting(args.approve)) is None:
        return None
    does = providers.may_get(waiting.name, waiting.host)
    require_yes(does, f"memory-tui provider --approve {waiting.name} --yes", args)
    return providers.approve(waiting.name, "provider --approve", sync=False)


def approve_for_index(engine: Engine, args: argparse.Namespace) -> Approval | None:
    """Approve the provider that waits, if a person says yes; None where none waits, or nobody agreed."""
    waiting = engine.providers.waiting()
    # On a terminal nobody is asked about a provider that nobody named: words and the built-in table answer.
    if waiting is None or (engine.plan.provider == "auto" and not args.yes):
        return None
    if not confirmed(f"{engine.providers.may_get(waiting.name, waiting.host)} Approve?", args):
        return None
    return engine.providers.approve(waiting.name, "index --yes" if args.yes else "index", sync=False)


def _fetch(chain: Chain, args: argparse.Namespace) -> int:
    """Show what is to be fetched for the model of `chain`, and fetch it if a person agreed. Raises ProviderError."""
    # Late, because it loads the HTTP client.
    from memory_tui.providers import local

    if chain.name != "local":
        reason = f"The provider {chain.name} has no model to fetch."
        raise ProviderError(reason, "Choose the one that has: --provider local.")
    model = chain.settings.model_path or registry.row(chain.name).model
    with waiting("Asking where the model is"):
        file = local.look_up(model, chain.settings)
    fetched = local.fetch(model, file, chain.settings) if args.yes else None
    files = [{"url": file.url, "size": file.size, "sha256": file.sha256, "path": str(file.path)}]
    fetched_files = [str(fetched)] if fetched else []
    data = {"provider": chain.name, "model": model, "files": files, "fetched": fetched_files}
    size = plural(file.size, "byte") if file.size else "size not told"
    there = ", is there" if file.path.exists() else ""
    outcome = "Nothing was fetched. To fetch it: memory-tui provider --fetch --yes."
    if fetched:
        outcome = f"Fetched into {fetched.parent}. To search with it: memory-tui index --provider {chain.name}"
    details = f"  {file.url}  {size}, SHA-256 {file.sha256 or 'not told'}{there}"
    return show(args, data, [f"Model of {chain.name}: {model}", details, outcome])


def _tested(test: dict[str, Any]) -> list[str]:
    """Return lines for the outcome of a test call."""
    if not test["ok"]:
        return [
            f"Test of {test.get('provider', 'the provider')} failed: {test.get('error', 'there is none')}",
            f"    {test.get('nextStep', '')}".rstrip(),
        ]
    where = f" at {test['host']}" if test["host"] else ""
    return [f"Test of {test['provider']} {test['model']}{where}: {test['dims']} dimensions in {test['ms']:.0f} ms."]


def _forecast(costs: sending.Forecast, command: str) -> Iterator[str]:
    """Yield what an index run would send, a label and its words a line, then the texts that look like a secret."""
    where = f"{costs.provider} {costs.model}".rstrip() + (f" at {costs.host}" if costs.host else "")
    # Only a provider that is asked over an address has a host.
    here = ", an address of this machine" if costs.host else ", on this machine: nothing leaves it"
    size = f"about {plural(costs.tokens, 'token')}, {plural(costs.bytes, 'byte')}"
    batch = ""
    if costs.batch_usd is not None and costs.usd is not None:
        saving = _dollars(costs.usd - costs.batch_usd)
        batch = f"{_dollars(costs.batch_usd)} by the batch service, which saves {saving} and may take a day"
    if costs.withholding:
        withheld = f"{plural(costs.withheld, 'text')}, for looking like a secret"
    elif costs.takes_secrets:
        withheld = "none, because you said that nothing leaves this machine there"
    else:
        withheld = "none, because remote.withholdSecrets is off"
    rows = {
        "Provider": where if costs.elsewhere else f"{where}{here}",
        "Notes": f"{plural(costs.files, 'file')}, {plural(costs.chunks, 'chunk')}",
        "Cached": f"{plural(costs.cached, 'text')} with a vector already",
        "Waiting": f"{plural(costs.waiting, 'text')} sent with a batch job" if costs.waiting else "",
        "To embed": f"{plural(costs.send, 'text')}, {size}",
        "Price": _price(costs) if costs.elsewhere else "",
        "CPU": f"about {costs.cpu_seconds:,.0f} s of one core" if costs.cpu_seconds else "",
        "Batch": batch,
        "Withheld": withheld if costs.host else "",
    }
    yield from (f"{label + ':':<11}{words}" for label, words in rows.items() if words)
    fate = "withheld" if costs.withholding else "WOULD BE SENT"
    for chunk in costs.flagged:
        yield f"  {fate}: {chunk.path}:{chunk.start_line}-{chunk.end_line}  {', '.join(chunk.kinds)}"
    yield from (f"  cannot be read: {path}  {reason}" for path, reason in costs.unreadable)
    if costs.elsewhere:
        approve = f"To approve this provider: {command} --yes."
        yield f"Nothing was sent. {'You approved this provider and host.' if costs.approved else approve}"


def _dollars(usd: float) -> str:
    """Return an amount of US dollars in words."""
    return f"about ${usd:,.2f}" if usd >= 0.01 else "less than $0.01"


def _price(costs: sending.Forecast) -> str:
    """Return what an index run costs by the provider's list of prices, in words."""
    if costs.usd is None or costs.usd_per_million is None:
        return "unknown for this model and host"
    each = f"list price ${costs.usd_per_million:g} a million tokens, looked up {costs.prices_of}"
    return f"{_dollars(costs.usd)} ({each}; what you pay may differ)"


def index(args: argparse.Namespace) -> int:
    """Bring the index up to date, or show what that would send."""
    with opened(args) as engine:
        engine.plan.require_enabled()
        if args.dry_run:
            forecast = engine.providers.forecast()
            none = ["No provider is configured: nothing is sent, and search uses words alone."]
            return show(args, plain(forecast), _forecast(forecast, engine.plan.index_command) if forecast else none)
        approved = approve_for_index(engine, args)
        if approved is not None and not args.json:
            does = engine.providers.may_get(approved.provider, approved.host)
            print_lines([f"Approved: {does} To withdraw: memory-tui provider --revoke."])
        # The sync that accepts a loss of notes forces nothing: with both options there are two.
        if args.accept_shrink:
            outcome = _synced(engine, reason="accept", accept_shrink=True)
        if not args.accept_shrink or args.force:
            outcome = _synced(engine, force=args.force)
        show(args, {**plain(outcome), "fallback": engine.providers.who().instead}, [_done(outcome)])
        if not args.json:
            for path, reason in outcome.failed:
                sys.stderr.write(f"  {one_line(path)}: {one_line(reason)}\n")
            for remark in engine.notices():
                say(remark.sentence)
            for text in dict.fromkeys(filter(None, (outcome.error, outcome.postponed, outcome.unshared))):
                say(text)
        return 1 if outcome.error or outcome.failed else 0


def _synced(engine: Engine, *, reason: str = "cli", force: bool = False, accept_shrink: bool = False) -> SyncReport:
    """Bring the index up to date, and return the report; whoever stops it is told what becomes of the work."""
    try:
        with waiting("Indexing"):
            return engine.index.sync(force=force, reason=reason, accept_shrink=accept_shrink)
    except Stopped as stopped:
        stopped.more = "What is indexed so far stays; memory-tui index goes on from there."
        raise


def _done(outcome: SyncReport) -> str:
    """Return what an index run did, as a sentence; counts of 0 that say little are left out."""
    counts = [f"{plural(outcome.indexed, 'file')} indexed"]
    counts += [f"{outcome.removed} removed"] if outcome.removed else []
    counts += [f"{len(outcome.failed)} failed"] if outcome.failed else []
    counts += [f"{plural(outcome.embedded, 'text')} embedded"]
    counts += [f"{plural(outcome.shared, 'vector')} reused from another ranking's index"] if outcome.shared else []
    return f"{', '.join(counts)} in {outcome.seconds:.1f} s."


def status(args: argparse.Namespace) -> int:
    """Tell what is indexed, by what, and what is missing."""
    with opened(args) as engine:
        outcome = _synced(engine) if args.sync else None
        now = engine.status(deep=args.sync or args.deep)
        others = len(beside(engine.plan.roots))
        shared = _shared(engine)
    data = plain(now) | {"beside": others} | ({"shared": shared} if shared else {})
    lines = [*status_lines(now)]
    if others:
        verb = "is" if others == 1 else "are"
        lines.append(f"{plural(others, 'other Markdown file')} {verb} no memory. memory-tui --whole yes reads all.")
    lines += [shared["sentence"]] if shared else []
    show(args, data, lines)
    if outcome and outcome.error:
        say(outcome.error)
    return 1 if outcome and (outcome.error or outcome.failed) else 0


def _shared(engine: Engine) -> dict[str, Any]:
    """Return how the mirror of a shared index stands, with a sentence; nothing where there is none."""
    state = engine.mirrored()
    if isinstance(state, MemoryTuiError):
        return {"sentence": one_line(f"{state.message} {state.next_step}"), "error": state.as_dict()}
    return {"sentence": state.sentence, **state.as_dict()} if state else {}


def status_lines(value: Status) -> Iterator[str]:
    """Yield the state, a label and its words a line, then every note that is not indexed as it is."""
    fresh, cache = value.freshness, value.cache
    process = value.writer or value.keeper
    vectors = _search_state(value.vector, value.vector.load_error)
    if value.embedded and not value.who.answers:
        vectors = f"not compared now, {value.vector.engine}"
    maker = f"{value.provider} {value.model}".rstrip()
    if value.provider in ("", "none"):
        words_alone = value.files or value.requested_provider == "none"
        maker = "no provider, words alone" if words_alone else "no provider yet, nothing is indexed"
    keeper = "nobody now; memory-tui index, or the open app, brings it up to date"
    if process is not None:
        keeper = f"process {process.pid}{', this one' if process.here else ''}{', writing now' if value.writer else ''}"
    of_agents = f", of {', '.join(value.agents)}" if len(value.agents) > 1 else ""
    groups = (
        ("pending", [(item.path, item.detail) for item in fresh.pending]),
        ("failed", [(item.path, item.detail) for item in fresh.of("failed")]),
        ("left out", [(item.path, item.reason) for item in fresh.left_out]),
        ("in part", [(item.path, item.detail) for item in value.in_part]),
        ("changed while read", [(item.path, item.detail) for item in fresh.of("changed while read")]),
        ("missing root", [(item.path, item.detail) for item in fresh.of("missing root")]),
    )
    # Three of the counts are told in any case, the others only where they are not 0.
    counts = [f"{len(items)} {state}" for state, items in groups if items or state in ("pending", "failed", "left out")]
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
        "Text": _search_state(value.fts, value.fts.error),
        "Cache": f"{plural(cache.entries, 'vector')}, {cache.bytes / 1e6:.1f} MB, {plural(cache.hits, 'hit')}",
        "Configuration": value.config_path or "none",
        "Kept by": keeper,
        "Trust": trust_summary(value.trust) if value.trust and value.trust.ledger else "",
    }
    yield from (f"{label + ':':<16}{one_line(words)}" for label, words in rows.items() if words)
    away = [root for root in value.roots if root.state != "there"]
    yield from (f"  {root.state}: {root.path}  {one_line(root.detail)}" for root in away)
    for state, items in groups:
        yield from (f"  {state}: {path}  {one_line(detail)}" for path, detail in items)
    unapproved = [link for link in value.links if not link.approved]
    if unapproved and value.requested_provider == "auto":
        need = f"{unapproved[0].name} at {unapproved[0].host} needs your approval before it can embed notes"
        yield f"{need}; memory-tui index --dry-run shows what it would get."
    for state, chunks in (("not sent", value.withheld), ("no vector", value.refused)):
        for chunk in chunks:
            yield f"  {state}: {chunk.path}:{chunk.start_line}-{chunk.end_line}  {one_line(str(chunk))}"
    yield from (f"Notice: {one_line(notice.sentence)}" for notice in value.notices)


def _search_state(side: VectorSearch | WordSearch, error: str | None) -> str:
    """Return in words whether a side of the search works, by which engine, and why not."""
    state = "unavailable" if side.enabled else "off"
    return " ".join(filter(None, ("ready" if side.available else state, side.engine, error)))


_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL", "skipped": "-   ", "no answer": "????"}


def doctor(args: argparse.Namespace) -> int:
    """Examine machine, notes, index, provider and settings; exit code 1 when something failed."""
    # Late, as in demo and show_help: what these need takes longer to load than a status takes.
    from memory_tui.doctor import checks_of, examine, verdict

    with opened(args) as engine:
        try:
            engine.index.catch_up()
        except IndexRefused:
            # A person has to decide first; any other trouble of the index is what the checks below tell of.
            raise
        except IndexUnavailable as error:
            say(error.message)
        checks = checks_of(engine)
        with waiting("Examining"):
            order = [check.key for check in checks]
            results = sorted(examine(engine, checks, args.deadline), key=lambda result: order.index(result.check))
    # Not 0 where a check failed.
    code = verdict(results)
    counts = {state: sum(result.state == state for result in results) for state in _MARKS}
    data = {"ok": not code, "counts": counts, "checks": plain(results)}
    lines = []
    for result in results:
        if args.all or result.state not in ("ok", "skipped"):
            lines += [f"{_MARKS[result.state]} {result.title}", f"     {result.evidence}"]
            lines += [f"     Fix: {result.fix}"] if result.fix else []
    tally = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    lines.append(f"{len(results)} checks: {tally}.")
    return show(args, data, lines if args.all else [*lines, "Run memory-tui doctor --all to see all of them."], code)


# --- the demo -------------------------------------------------------------------------------------------------------


def demo(args: argparse.Namespace) -> int:
    """Open the app on a copy of the sample workspace."""
    from memory_tui import demo as sample

    if args.workspace is not None or args.config is not None:
        raise SettingError("The demo has its own workspace and configuration.", "Leave --workspace and --config out.")
    now = moment(args)
    today = dt.datetime.fromtimestamp(now).date() if now is not None else dt.date.today()
    with sample.own_folder() as folder:
        config = folder / "config.json"
        durable.create_file(config, b"{}\n")
        workspace = sample.materialize(folder / sample.WORKSPACE, today, more=True)
        with suppress(OSError, MemoryTuiError):
            # Where the state folder cannot be written, no agent has asked.
            sample.keep_recalls(workspace, today)
        # Nothing of the person's own OpenClaw is read.
        # As a list, because the loop takes away from what it goes through.
        for variable in [name for name in os.environ if name.startswith(("OPENCLAW_", "CLAWDBOT_"))]:
            del os.environ[variable]
        os.environ["OPENCLAW_STATE_DIR"] = str(folder / "openclaw")
        sample.keep_queries(workspace, config, today)
        args.workspace = str(workspace)
        return show_app(lambda: engine_options(args), args.workspace, args.query or "", sample.SUGGESTED, demo=True)


# --- the configuration ---------------------------------------------------------------------------------------------


def config(args: argparse.Namespace) -> int:
    """List every value of the configuration, write what the command line chooses, or undo that."""
    if args.undo:
        return _undo(args)
    choices = plan.choose(engine_options(args))
    if not args.write:
        return show(args, listing(choices), configured(choices))
    change = config_patch.patch(choices.config, choices.settings, choices.as_written())
    summaries = [f"{config_patch.summary(value)}   at {value.place}" for value in change.changes]
    lines = [
        *(summaries or ["The configuration already has these values."]),
        *(f"not written: {key}: {reason}." for key, reason in change.left),
        *(change.notes if summaries else ()),
        *change.diff().splitlines(),
    ]
    # Without a question the answer is no.
    written = change.write() if agreed(args, lines, f"Write to {change.target}?" if change.files else "") else ()
    is_shown_only = args.dry_run or args.json
    # Where nothing was to be written, or only to be shown, no consent is missing.
    require_written(written or not change.files or is_shown_only)
    left = [{"key": key, "reason": reason} for key, reason in change.left]
    data = {"target": str(change.target), "changes": to_builtins(change.changes), "left": left, "notes": change.notes}
    data |= {"diff": change.diff(), "written": bool(written), "backups": [file.backup for file in written]}
    return show(args, data, ["Written. To undo it: memory-tui config --undo."] if written else [])


def _undo(args: argparse.Namespace) -> int:
    """Take back the last write of a configuration, or with `--dry-run` say which. Raises ConfigError."""
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
    if args.completion is not None and args.json:
        raise SettingError("--completion prints a script, not JSON.", "Leave --json out.")
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


# --- the configuration in words --------------------------------------------------------------------------------------


def listing(choices: plan.Plan) -> dict[str, Any]:
    """Return what a configuration comes to, JSON-ready; `path` is empty where there is no file."""
    config = choices.config
    profile = choices.settings.values["profile"]
    data: dict[str, Any] = {"path": str(config.path or ""), "kind": config.kind, "layout": config.layout}
    data |= {"profile": profile.value, "profileOrigin": profile.origin}
    data |= {"agent": choices.agent.id, "agents": plain(config.agents), "workspace": str(choices.workspace)}
    data |= {"index": str(choices.index), "openclawIndex": str(choices.openclaw_index)}
    return data | {"values": plain([*rows(config, choices.settings)]), "problems": plain(config.problems)}


def configured(choices: plan.Plan) -> Iterator[str]:
    """Yield every documented value of the configuration, with where it came from and what it does."""
    config = choices.config
    profile = choices.settings.values["profile"]
    agents = [f"{agent.id} ({'default, ' if agent.default else ''}{agent.workspace})" for agent in config.agents]
    head = [
        ("Configuration", f"{config.path or 'none'} {f'({config.layout})' if config.layout else ''}".rstrip()),
        ("Profile", f"{profile.value} ({profile.origin})"),
        ("Agent", choices.agent.id),
        *(("Agents" if number == 0 else "", agent) for number, agent in enumerate(agents)),
        ("Workspace", choices.workspace),
        ("Index", choices.index),
        ("OpenClaw's index", choices.openclaw_index),
    ]
    for label, text in head:
        yield f"{label + ':' if label else '':<18}{one_line(str(text))}"
    # What OpenClaw 2026.9's doctor would change in the file; memory-tui never does.
    yield from (f"Problem: {one_line(str(problem))}" for problem in config.problems)
    for row in rows(config, choices.settings):
        value = "not set" if row["value"] is None else row["value"]
        text = value if isinstance(value, str) else dumps(value)
        yield ""
        yield f"{row['key']} = {one_line(text, 100)}  ({one_line(row['origin'])})"
        effect = "Takes effect" if row["takesEffect"] else f"Effect: {one_line(row['effect'])}"
        retired = f" Retired in 2026.9: {row['retired']}." if row["retired"] else ""
        yield f"    {row['meaning']}. {effect}.{retired}"


def rows(config: Config, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield each documented key: the value that counts, what may be seen of it, and what it does.

    `settings` are those in force. `origin` is in words, `places` where the file has it. `effect` is "takes effect" or
    why the value changes nothing. `retired` is what OpenClaw 2026.9 always does in the place of a key that it took
    away, empty for the others.
    """
    own_keys = [key for key in OWN_KEYS if config.kind != "openclaw" or key.kind == "knob"]
    for key in (*SEARCH_KEYS, *FILE_KEYS, *own_keys):
        effect = _effect(key, config, settings)
        entry = config.entries.get(key.path)
        places = entry.places if entry else ()
        written_in = " and ".join(map(str, places)) or "default"
        setting = settings.values.get(key.path)
        value, origin = (setting.value, setting.origin) if setting else (_visible(key, config), written_in)
        row = {"key": key.path, "value": value, "default": key.default, "written": entry is not None}
        row |= {"origin": origin, "places": places, "meaning": key.meaning}
        row |= {"takesEffect": not effect, "effect": effect or "takes effect"}
        yield row | {"retired": retired(key.path) if key not in FILE_KEYS else ""}


_CREDENTIALS = re.compile(
    r"(?<=//)[^/@\s]+@|(?<=[?&])([\w-]*(?:key|token|secret|password|sig)[\w-]*=)[^&#\s]+", re.IGNORECASE
)


def _visible(key: Key, config: Config) -> object:
    """Return the value of a key that is no knob, as far as it may be seen: no secret is in it."""
    entry = config.entries.get(key.path)
    if key.path == "store.path":
        return str(config.store_path)
    if entry is None:
        return key.default
    if key.kind == "secret":
        return str(config.secret(key.path))
    if key.kind == "headers":
        return {name: str(secret) for name, secret in config.headers(key.path)}
    if key.kind == "any":
        # What a plug-in is told may hold secrets that nobody here knows of.
        return "set"
    if key.kind == "text":
        # As it is written: what stands behind a variable may be a secret.
        return _CREDENTIALS.sub(lambda secret: f"{secret[1] or ''}***", str(entry.node.value))
    return to_builtins(entry.value)


def _effect(key: Key, config: Config, settings: Settings) -> str:
    """Return why the value changes nothing here; empty where it takes effect."""
    if key.path == "provider" and config.provider not in ("", *PROVIDERS):
        instead = "words alone are searched, unless fallback names another"
        return f"none: memory-tui does not ask {config.provider!r}; {instead}"
    if key.effect:
        return key.effect
    if key.path.startswith(QMD) and config.value(BACKEND) != "qmd":
        return "none while memory.backend is builtin; --backend qmd asks QMD"
    setting = settings.values.get(key.path)
    if setting is None:
        return ""
    if why := settings.profile.ignores.get(key.path):
        return f"none under profile {settings.profile.name}: {why}"
    entry = config.entries.get(key.path)
    if entry is not None and entry.value != setting.value and key.path != "profile":
        return f"none: {entry.places[-1]} says {entry.value}, but {setting.origin} says {setting.value}"
    return ""
