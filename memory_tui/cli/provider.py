"""The command `provider` lists embedding providers, sets one up, tests or approves it."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from collections.abc import Iterator
from typing import Any

from memory_tui import plan
from memory_tui.approval import Approval
from memory_tui.cli.context import answered, confirmed, engine_options, opened, require_yes
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.engine import provider_setup
from memory_tui.engine.engine import Engine
from memory_tui.engine.provider_setup import ProviderChoice
from memory_tui.engine.providers import Forecast, Providers
from memory_tui.errors import ConfigError, SettingError
from memory_tui.explain import trace_json
from memory_tui.formatting import plural
from memory_tui.providers import registry
from memory_tui.providers.chain import Chain, MemberState

_COMMAND = "memory-tui provider --add openai-compatible --address http://127.0.0.1:1234/v1 --model NAME"


def _add(args: argparse.Namespace) -> int:
    """Set up the provider that `args` describes, or that a person describes when asked. Returns the exit code."""
    choices, chosen = plan.choose(engine_options(args)), _chosen(args)
    with waiting(f"Asking {chosen.address or chosen.row.name}"):
        patch, trial = setup = provider_setup.prepare(choices, chosen)
    if not args.json:
        print_lines([setup.answer, "", *(patch.diff().splitlines() or [f"{patch.target} says so already."])])
    agreed = bool(patch.files) and confirmed(f"Write to {patch.target}?", args)
    if patch.files and not agreed:
        raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
    backups = [file.backup for file in patch.write()] if agreed else []
    data = {"target": str(patch.target), "diff": patch.diff(), "written": agreed, "backups": backups, "test": trial}
    return show(args, data, ["Written. To undo it: memory-tui config --undo. To use it: memory-tui index."] * agreed)


def _chosen(args: argparse.Namespace) -> ProviderChoice:
    """Return what the command line says, and a person on a terminal about the rest. Raises SettingError."""
    asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(value: str | None, question: str, usual: str) -> str:
        return value if value is not None else answered(question, usual) if asks else usual

    kind = answer(args.add or None, f"Kind ({', '.join(registry.NAMES)})", "openai" if asks else "")
    if not kind:
        raise SettingError("No kind of provider is named.", f"For instance: {_COMMAND}.")
    row = registry.row(kind)
    if not row.shape:
        return ProviderChoice(row)
    address = answer(args.address, "Address", row.base_url)
    usual = provider_setup.usual_variable(row, address)
    variable = answer(args.key_variable, "Variable of the key, empty for none", usual)
    return provider_setup.choice(kind, address, variable, answer(args.model, "Model", row.model))


_ALL = "all"
"""What `--revoke` names by itself."""
_MAY = {
    "qmd": "may be run",
    "sqlite-vec": "may be run",
    "ltm": "may be written",
    "secrets": "may be sent: nothing leaves this machine there",
}
"""What was approved, where it is not that a provider gets the notes."""


def provider(args: argparse.Namespace) -> int:
    """List, test, approve or set up embedding providers."""
    if args.add is not None:
        return _add(args)
    with opened(args) as engine:
        providers, chain = engine.providers, engine.providers.chain
        if args.fetch:
            return _fetch(chain, args)
        revoked: tuple[Approval, ...] = ()
        if args.revoke is not None:
            revoked = providers.revoke("" if args.revoke == _ALL else args.revoke, sync=False)
        approved = _approved(providers, args)
        with waiting("Asking the provider"):
            test = chain.try_out(args.test) if args.test is not None else None
        who, links, approvals = providers.who(), providers.members(), providers.approvals.every()
        data = {
            "requested": engine.plan.provider,
            "origin": engine.plan.provider_origin,
            "links": trace_json.plain(links),
            "who": who.as_dict(),
            "fallback": who.instead,
            "approvals": trace_json.plain(approvals),
            "approved": trace_json.plain(approved) if approved else None,
            "revoked": trace_json.plain(revoked),
            "test": test,
        }
        lines = [f"Requested: {engine.plan.provider} ({engine.plan.provider_origin})", f"Answers: {who.sentence}"]
        for link in links:
            lines += _link(link)
        if who.fallback is not None and who.retry_at and who.retry_at > time.time():
            lines.append(f"{who.fallback.source} is asked again at {_time(who.retry_at)}.")
        lines += [f"Approval withdrawn: {approval.provider} at {approval.host}." for approval in revoked]
        for approval in approvals:
            may = _MAY.get(approval.provider, "may get these notes")
            since = f"since {_time(approval.at)} ({approval.how}){', just now' if approval == approved else ''}"
            lines.append(f"Approved: {approval.provider} at {approval.host} {may}, {since}.")
        if (proposal := chain.proposal) is not None:
            dry_run = f"{engine.plan.index_command} --dry-run shows what would be sent."
            lines.append(f"{proposal.name} needs your approval before it can embed notes: {dry_run}")
        if args.approve is not None and approved is None:
            lines += [providers.why_approved(link) for link in links if link.approved]
        lines += _tested(test) if test is not None else []
        return show(args, data, lines, 1 if test is not None and not test["ok"] else 0)


def _link(link: MemberState) -> Iterator[str]:
    where = f" at {link.host}" if link.host else ""
    yield f"{link.name}{where}: {link.state}{f', {link.model}' if link.model else ''}. {link.detail}"
    if link.error and link.error != link.detail:
        yield f"    {link.error}"
    if link.next_step and link.state != "passed over":
        yield f"    {link.next_step}"
    if link.next_try:
        yield f"    Asked again at {_time(link.next_try)}."
    if link.calls:
        yield f"    Last call {link.last_ms:.0f} ms; {link.calls:,} calls, {link.texts:,} texts."


def _approved(providers: Providers, args: argparse.Namespace) -> Approval | None:
    """Return what a person agreed to; None where nothing was asked for, or nobody waits. Raises ApprovalMissing."""
    if args.stays_here is not None:
        member, how = providers.here(args.stays_here), "provider --stays-here"
        does = f"{member.name} at {member.host} gets text that looks like a secret: nothing leaves this machine there."
        require_yes(does, f"memory-tui {how} {member.name} --yes", args)
        return providers.says_secrets_stay(member.name, how)
    if args.approve is None or (waiting := providers.waiting(args.approve)) is None:
        return None
    how = "provider --approve"
    require_yes(providers.may_get(waiting.name, waiting.host), f"memory-tui {how} {waiting.name} --yes", args)
    return providers.approve(waiting.name, how, sync=False)


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
    from memory_tui.providers import download

    with waiting("Asking where the model is"):
        file = download.look_up(registry.model_file(chain.name, chain.settings), chain.settings)
    fetched = download.fetch_shown(file, chain.settings) if args.yes else None
    model, listed = chain.settings.model_path, {"url": file.source.url, "size": file.size, "sha256": file.sha256}
    data = {
        "provider": chain.name,
        "model": model,
        "files": [{**listed, "path": str(file.path)}],
        "fetched": [str(fetched)] if fetched else [],
    }
    size = plural(file.size, "byte") if file.size else "size not told"
    there = ", is there" if file.path.exists() else ""
    use = f"memory-tui index --provider {chain.name}"
    lines = [
        f"Model of {chain.name}: {model}",
        f"  {file.source.url}  {size}, SHA-256 {file.sha256 or 'not told'}{there}",
        f"Fetched into {fetched.parent}. To search with it: {use}"
        if fetched
        else "Nothing was fetched. To fetch it: memory-tui provider --fetch --yes.",
    ]
    return show(args, data, lines)


def _tested(test: dict[str, Any]) -> list[str]:
    if not test["ok"]:
        return [
            f"Test of {test.get('provider', 'the provider')} failed: {test.get('error', 'there is none')}",
            f"    {test.get('nextStep', '')}".rstrip(),
        ]
    where = f" at {test['host']}" if test["host"] else ""
    return [
        f"Test of {test['provider']} {test['model']}{where}: {test['dims']} dimensions in {test['ms']:.0f} ms, "
        f"norm {test['norm']:.4f}, similarity to itself {test['selfSimilarity']:.4f}."
    ]


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def dry_run(engine: Engine, args: argparse.Namespace) -> int:
    """Print what an index run would send where; send nothing. Returns the exit code."""
    forecast = engine.providers.forecast()
    if forecast is None:
        return show(args, None, ["No provider is configured: nothing is sent, and search uses words alone."])
    return show(args, trace_json.plain(forecast), _forecast(forecast, engine.plan.index_command))


def _forecast(costs: Forecast, command: str) -> Iterator[str]:
    where = f"{costs.provider} {costs.model}".rstrip() + (f" at {costs.host}" if costs.host else "")
    here = ", an address of this machine" if costs.host else ", on this machine: nothing leaves it"
    yield f"Provider:  {where}{'' if costs.elsewhere else here}"
    yield f"Notes:     {plural(costs.files, 'file')}, {plural(costs.chunks, 'chunk')}"
    yield f"Cached:    {plural(costs.cached, 'text')} with a vector already"
    if costs.waiting:
        yield f"Waiting:   {plural(costs.waiting, 'text')} sent with a batch job"
    size = f"about {plural(costs.tokens, 'token')}, {plural(costs.bytes, 'byte')}"
    yield f"To embed:  {plural(costs.send, 'text')}, {size}"
    if costs.elsewhere:
        yield f"Price:     {_price(costs)}"
    if costs.cpu_seconds:
        yield f"CPU:       about {costs.cpu_seconds:,.0f} s of one core"
    if costs.batch_usd is not None and costs.usd is not None:
        saving = _dollars(costs.usd - costs.batch_usd)
        yield f"Batch:     {_dollars(costs.batch_usd)} by the batch service, which saves {saving} and may take a day"
    if costs.host:
        stays = "you said that nothing leaves this machine there"
        why = stays if costs.takes_secrets else "remote.withholdSecrets is off"
        count = f"{plural(costs.withheld, 'text')}, for looking like a secret"
        yield f"Withheld:  {count if costs.withholding else f'none, because {why}'}"
    for chunk in costs.flagged:
        fate = "withheld" if costs.withholding else "WOULD BE SENT"
        yield f"  {fate}: {chunk.path}:{chunk.start_line}-{chunk.end_line}  {', '.join(chunk.kinds)}"
    yield from (f"  cannot be read: {path}  {reason}" for path, reason in costs.unreadable)
    if costs.elsewhere:
        approve = f"To approve this provider: {command} --yes."
        yield f"Nothing was sent. {'You approved this provider and host.' if costs.approved else approve}"


def _dollars(usd: float) -> str:
    return f"about ${usd:,.2f}" if usd >= 0.01 else "less than $0.01"


def _price(costs: Forecast) -> str:
    if costs.usd is None or costs.usd_per_million is None:
        return "unknown for this model and host"
    each = f"list price ${costs.usd_per_million:g} a million tokens, looked up {costs.prices_of}"
    return f"{_dollars(costs.usd)} ({each}; what you pay may differ)"
