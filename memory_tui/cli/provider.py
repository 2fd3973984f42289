"""The command `provider` lists embedding providers, sets one up, tests or approves it."""

from __future__ import annotations

import argparse
import datetime as dt
import re
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_tui.cli.context import answered, confirmed, opened, options, require_yes
from memory_tui.cli.output import print_json, print_lines, waiting
from memory_tui.core.errors import ConfigError, ProviderError, SettingError

if TYPE_CHECKING:
    from memory_tui.approval import Approval
    from memory_tui.engine.costs import Forecast
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.provider_setup import Providers
    from memory_tui.plan import Choices
    from memory_tui.providers.chain import Chain, MemberState, ServingProvider
    from memory_tui.providers.registry import ProviderRow


_COMMAND = "memory-tui provider --add openai-compatible --address http://127.0.0.1:1234/v1 --model NAME"


class _Answers(NamedTuple):
    """A provider as a person describes it; `variable` names the environment variable of its key, empty for none."""

    kind: str
    address: str
    variable: str
    model: str


def _add(args: argparse.Namespace) -> int:
    """Set up the provider that `args` describes, or that a person describes when asked. Returns the exit code."""
    from memory_tui import plan
    from memory_tui.config.config_patch import provider_patch
    from memory_tui.providers import registry

    choices = plan.choose(options(args))
    answers = _answers(args)
    row = registry.row(answers.kind)
    _require_no_foreign_key(choices, answers, row)
    wanted = _wanted(choices, answers, row)
    found = provider_patch(choices.config, wanted)
    tried = _trial(choices, answers, wanted)
    as_json, agreed = args.json, False
    if not as_json:
        where = f" at {tried['host']}" if tried["host"] else ""
        print_lines([f"{tried['provider']} {tried['model']}{where} answers: {tried['dims']:,} dimensions.", ""])
        print_lines(found.diff().splitlines() or [f"{found.target} says so already."])
    if found.files:
        agreed = confirmed(f"Write to {found.target}?", args)
        if not agreed:
            raise ConfigError("Nothing was written.", "Use --yes to write without a question.")
    written = found.write() if agreed else ()
    if as_json:
        backups = [one.backup for one in written]
        print_json(
            {"target": str(found.target), "diff": found.diff(), "written": agreed, "backups": backups, "test": tried}
        )
    elif written:
        print_lines(["Written. To undo it: memory-tui config --undo. To use it: memory-tui index."])
    return 0


def _answers(args: argparse.Namespace) -> _Answers:
    """What the command line says, and what a person on a terminal answers about the rest. Raises SettingError."""
    from memory_tui.providers import registry

    asks = not args.yes and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(name: str, question: str, usual: str) -> str:
        if getattr(args, name) is not None:
            return str(getattr(args, name))
        return answered(question, usual) if asks else usual

    kind = args.add or (answered(f"Kind ({', '.join(registry.NAMES)})", "openai") if asks else "")
    if not kind:
        raise SettingError("No kind of provider is named.", f"For instance: {_COMMAND}.")
    row = registry.row(kind)
    if row.wire is None:
        return _Answers(kind, "", "", "")
    address = answer("address", "Address", row.base_url)
    usual = row.variables[0] if row.variables and address == row.base_url else ""
    variable = answer("key_variable", "Variable of the key, empty for none", usual)
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise SettingError(
            "The name of the key's variable is none.", "Name the variable, not the key: --key-variable NAME."
        )
    return _Answers(kind, address, variable, answer("model", "Model", row.model))


def _wanted(choices: Choices, answers: _Answers, row: ProviderRow) -> dict[str, str]:
    """The keys to write: what is not as usual, and whatever the file says otherwise."""
    config = choices.config
    said = (("model", answers.model, row.model), ("remote.baseUrl", answers.address, row.base_url))
    wanted = {key: value for key, value, usual in said if value and (value != usual or config.value(key))}
    if answers.variable and (answers.variable not in row.variables or "remote.apiKey" in config.entries):
        wanted["remote.apiKey"] = f"${{{answers.variable}}}"
    return {"provider": answers.kind, **wanted}


def _require_no_foreign_key(choices: Choices, answers: _Answers, row: ProviderRow) -> None:
    """Raises ConfigError where the new provider would get a key or headers that the file has for another address."""
    config = choices.config
    same = config.provider == answers.kind and (config.value("remote.baseUrl") or row.base_url) == answers.address
    left = {"remote.headers", *(() if answers.variable else ("remote.apiKey",))} & set(config.entries)
    if row.wire is not None and left and not same:
        raise ConfigError(
            f"{config.path} has {' and '.join(sorted(left))} for {config.provider or 'another provider'}, and "
            f"{answers.address} would get that.",
            "Take it out of the file, or name the new key: --key-variable NAME.",
        )


def _trial(choices: Choices, answers: _Answers, wanted: Mapping[str, str]) -> dict[str, Any]:
    """What came back for one sentence of memory-tui's own. Raises ProviderError, SettingError."""
    from msgspec.structs import replace

    from memory_tui import plan
    from memory_tui.approval import Approvals
    from memory_tui.providers.chain import Chain
    from memory_tui.providers.options import Secret

    usual = plan.settings(choices, Approvals(choices.workspace))
    written = "remote.apiKey" in wanted
    key = usual.env(answers.variable) if written else ""
    if written and not key:
        raise SettingError(f"The variable {answers.variable} is not set here.", "Set it, then run this again.")
    settings = replace(
        usual,
        requested=answers.kind,
        model=answers.model,
        base_url=answers.address,
        api_keys=(Secret(key),) if key else usual.api_keys,
        fallback="",
    )
    chain = Chain(settings, lambda _error: None)
    try:
        with waiting(f"Asking {answers.address or answers.kind}"):
            found = chain.try_out(answers.kind)
    finally:
        chain.close()
    if not found["ok"]:
        raise ProviderError(f"Nothing was written: {found.get('error')}", found.get("nextStep", ""))
    return found


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
    from memory_tui.explain import trace_json

    if args.add is not None:
        return _add(args)
    with opened(args) as engine:
        if args.fetch:
            return _fetch(engine.providers.chain, agreed=args.yes, as_json=args.json)
        embedding = engine.providers
        revoked = (
            embedding.revoke("" if args.revoke == _ALL else args.revoke, sync=False) if args.revoke is not None else ()
        )
        approved = _approved(embedding, args)
        with waiting("Asking the provider"):
            tried = embedding.chain.try_out(args.test) if args.test is not None else None
        approvals, who = embedding.approvals.every(), embedding.who()
        links = embedding.members()
        if args.json:
            print_json(
                {
                    "requested": engine.plan.provider,
                    "origin": engine.plan.provider_origin,
                    "links": [trace_json.plain(link) for link in links],
                    "who": who.as_dict(),
                    "fallback": who.instead,
                    "approvals": [trace_json.plain(made) for made in approvals],
                    "approved": trace_json.plain(approved) if approved else None,
                    "revoked": [trace_json.plain(made) for made in revoked],
                    "test": tried,
                }
            )
        else:
            print_lines(_lines(engine, who, links, approvals, revoked, approved))
            if args.approve is not None and approved is None:
                print_lines(embedding.why_approved(link) for link in links if link.approved)
            if tried is not None:
                print_lines(_tried(tried))
        return 1 if tried is not None and not tried["ok"] else 0


def _approved(providers: Providers, args: argparse.Namespace) -> Approval | None:
    """What a person agreed to; None where nothing was asked for, or nobody waits. Raises ApprovalMissing."""
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


def _fetch(chain: Chain, *, agreed: bool, as_json: bool) -> int:
    """Show what is to be fetched for the model of `chain`, and fetch it if a person `agreed`. Raises ProviderError."""
    from memory_tui.core.formatting import plural
    from memory_tui.providers import download, registry

    with waiting("Asking where the model is"):
        found = download.look_up_all(registry.model_files(chain.name, chain.settings), chain.settings)
    fetched = download.fetch_all(found, chain.settings) if agreed else ()
    if as_json:
        print_json(
            {
                "provider": chain.name,
                "model": chain.settings.model_path,
                "files": [
                    {"url": file.source.url, "size": file.size, "sha256": file.sha256, "path": str(file.path)}
                    for file in found
                ],
                "fetched": [str(path) for path in fetched],
            }
        )
        return 0
    lines = [f"Model of {chain.name}: {chain.settings.model_path}"]
    for file in found:
        size = plural(file.size, "byte") if file.size else "size not told"
        there = ", is there" if file.path.exists() else ""
        lines.append(f"  {file.source.url}  {size}, SHA-256 {file.sha256 or 'not told'}{there}")
    if fetched:
        lines.append(f"Fetched into {fetched[-1].parent}. To search with it: memory-tui index --provider {chain.name}")
    else:
        lines.append("Nothing was fetched. To fetch these files: memory-tui provider --fetch --yes.")
    print_lines(lines)
    return 0


def _lines(
    engine: Engine,
    who: ServingProvider,
    links: tuple[MemberState, ...],
    approvals: tuple[Approval, ...],
    revoked: tuple[Approval, ...],
    approved: Approval | None,
) -> list[str]:
    lines = [f"Requested: {engine.plan.provider} ({engine.plan.provider_origin})", f"Answers: {who.sentence}"]
    for link in links:
        where = f" at {link.host}" if link.host else ""
        lines.append(f"{link.name}{where}: {link.state}{f', {link.model}' if link.model else ''}. {link.detail}")
        if link.error and link.error != link.detail:
            lines.append(f"    {link.error}")
        if link.next_step and link.state != "passed over":
            lines.append(f"    {link.next_step}")
        if link.next_try:
            lines.append(f"    Asked again at {_time(link.next_try)}.")
        if link.calls:
            lines.append(f"    Last call {link.last_ms:.0f} ms; {link.calls:,} calls, {link.texts:,} texts.")
    if who.fallback is not None and who.retry_at and who.retry_at > time.time():
        lines.append(f"{who.fallback.source} is asked again at {_time(who.retry_at)}.")
    lines += [f"Approval withdrawn: {made.provider} at {made.host}." for made in revoked]
    for made in approvals:
        may = _MAY.get(made.provider, "may get these notes")
        new = ", just now" if made == approved else ""
        lines.append(f"Approved: {made.provider} at {made.host} {may}, since {_time(made.at)} ({made.how}){new}.")
    waiting = engine.providers.chain.proposal
    if waiting is not None:
        lines.append(
            f"{waiting.name} needs your approval before it can embed notes: {engine.plan.index_command} --dry-run "
            "shows what would be sent."
        )
    return lines


def _tried(found: dict[str, Any]) -> list[str]:
    if not found["ok"]:
        return [
            f"Test of {found.get('provider', 'the provider')} failed: {found.get('error', 'there is none')}",
            f"    {found.get('nextStep', '')}".rstrip(),
        ]
    where = f" at {found['host']}" if found["host"] else ""
    return [
        f"Test of {found['provider']} {found['model']}{where}: {found['dims']} dimensions in {found['ms']:.0f} ms, "
        f"norm {found['norm']:.4f}, similarity to itself {found['selfSimilarity']:.4f}."
    ]


def _time(at: float) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def dry_run(engine: Engine, *, as_json: bool) -> int:
    """Print what an index run would send where; sends nothing. Returns the exit code."""
    from memory_tui.explain import trace_json

    found = engine.providers.forecast()
    if as_json:
        print_json(trace_json.plain(found) if found else None)
    elif found is None:
        print_lines(["No provider is configured: nothing is sent, and search uses words alone."])
    else:
        print_lines(_forecast(found, engine.plan.index_command))
    return 0


def _forecast(found: Forecast, command: str) -> list[str]:
    from memory_tui.core.formatting import plural

    where = f"{found.provider} {found.model}".rstrip() + (f" at {found.host}" if found.host else "")
    here = ", an address of this machine" if found.host else ", on this machine: nothing leaves it"
    lines = [
        f"Provider:  {where}{'' if found.elsewhere else here}",
        f"Notes:     {plural(found.files, 'file')}, {plural(found.chunks, 'chunk')}",
        f"Cached:    {plural(found.cached, 'text')} with a vector already",
        *([f"Waiting:   {plural(found.waiting, 'text')} sent with a batch job"] if found.waiting else []),
        f"To embed:  {plural(found.send, 'text')}, about {plural(found.tokens, 'token')}, "
        f"{plural(found.bytes, 'byte')}",
    ]
    if found.elsewhere:
        lines.append(f"Price:     {_price(found)}")
    if found.host:
        why = (
            "you said that nothing leaves this machine there"
            if found.takes_secrets
            else "remote.withholdSecrets is off"
        )
        lines.append(
            f"Withheld:  {plural(found.withheld, 'text')}, for looking like a secret"
            if found.withholding
            else f"Withheld:  none, because {why}"
        )
    for chunk in found.flagged:
        fate = "withheld" if found.withholding else "WOULD BE SENT"
        lines.append(f"  {fate}: {chunk.path}:{chunk.start_line}-{chunk.end_line}  {', '.join(chunk.kinds)}")
    lines += [f"  cannot be read: {path}  {reason}" for path, reason in found.unreadable]
    if found.elsewhere:
        lines.append(
            "Nothing was sent. You approved this provider and host."
            if found.approved
            else f"Nothing was sent. To approve this provider: {command} --yes."
        )
    return lines


def _price(found: Forecast) -> str:
    if found.usd is None or found.usd_per_million is None:
        return "unknown for this model and host"
    price = f"about ${found.usd:,.2f}" if found.usd >= 0.01 else "less than $0.01"
    return (
        f"{price} (list price ${found.usd_per_million:g} a million tokens, looked up "
        f"{found.prices_of}; what you pay may differ)"
    )
