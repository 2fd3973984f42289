"""What is sent to providers: the forecast of an index run, a person's approval, and the test of a new one."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.approval import Approval, Approvals, cleared
from memory_tui.config.config_file import Config
from memory_tui.config.config_patch import Patch, provider_patch
from memory_tui.engine.index import compares_windows
from memory_tui.errors import ConfigError, ProviderError, SettingError, Unreadable
from memory_tui.index import embedding
from memory_tui.index.index_write import NewFile, cut
from memory_tui.index.store import MOST_WITH_WINDOWS, Store, StoreReader
from memory_tui.index.sync import recipe_of
from memory_tui.plan import Plan
from memory_tui.providers import Identity, registry
from memory_tui.providers.chain import Chain, ChainMember, MemberState, ServingProvider, who
from memory_tui.providers.registry import SECRETS, ProviderRow, on_this_machine
from memory_tui.secrets import Secret
from memory_tui.secrets import finder as secret_finder
from memory_tui.workspace import roots
from memory_tui.workspace.chunking import sealed, windows
from memory_tui.workspace.roots import scan
from memory_tui.workspace.scan import Scan


class Flagged(Struct, frozen=True):
    """A chunk that looks like it holds a secret: where, and of which kinds. The secret itself is not here."""

    path: str
    start_line: int
    end_line: int
    kinds: tuple[str, ...]


class Forecast(Struct, frozen=True):
    """What the next index run would do with the provider that is used, or that waits for the person's word.

    `files` and `chunks` are all there are; of the distinct texts `cached` have a vector already, `waiting` were sent
    with a batch job, `withheld` are kept back, and `send` are left for the provider, with about `tokens` tokens and
    `bytes` UTF-8 bytes. `usd` is their price by the list prices of `prices_of`, None when that is unknown; `batch_usd`
    that of the batch jobs which they would go with, None where they go directly. `elsewhere` tells whether they leave
    this machine, `approved` whether they may. `flagged` look like secrets; with `withholding` they are not sent.
    """

    provider: str
    model: str
    host: str
    elsewhere: bool
    approved: bool
    takes_secrets: bool
    files: int
    chunks: int
    cached: int
    waiting: int
    withheld: int
    send: int
    tokens: int
    bytes: int
    usd: float | None
    usd_per_million: float | None
    batch_usd: float | None
    prices_of: str
    cpu_seconds: float
    withholding: bool
    flagged: tuple[Flagged, ...]
    unreadable: tuple[tuple[str, str], ...]


def forecast(plan: Plan, store: Store, seen: Scan, member: ChainMember) -> Forecast:
    """Read and cut every note, look up what is cached, and look for secrets; seconds for ten thousand chunks.

    Raises ProviderError for what the provider lacks but approval.
    """
    space = member.expected()
    facts, jobs = registry.row(member.name), member.settings.jobs
    notes, unreadable = _cut(plan, seen, space, member.max_input_bytes)
    texts = {chunk.hash: chunk.text for note in notes for chunk in note.chunks}
    # A chunk that repeats an earlier one of its note gets no vector of its own.
    chunks = [(note.path, chunk) for note in notes for chunk in note.chunks if not chunk.occurrence]
    withholding = not member.takes_secrets and plan.settings.on("remote.withholdSecrets")
    known = secret_finder.known_of(texts.values(), cleared(plan.workspace))
    # The kinds of secrets that a text may hold, by its hash; empty where it looks like none.
    kinds = {} if member.takes_secrets else {key: embedding.held_back(text, known) for key, text in texts.items()}
    doubtful = [(path, chunk) for path, chunk in chunks if kinds.get(chunk.hash)]
    flagged = [Flagged(path, chunk.start_line, chunk.end_line, kinds[chunk.hash]) for path, chunk in doubtful]
    withheld = {digest for digest, reasons in kinds.items() if reasons} if withholding else set()
    # Of a provider without batch jobs the price is 0.
    by_batches = jobs.enabled and bool(facts.batch_price)
    if member.is_model and compares_windows(plan.settings) and not by_batches and len(chunks) <= MOST_WITH_WINDOWS:
        texts |= _windows_of(text for digest, text in texts.items() if digest not in withheld)
    cached = set(store.cached(space, list(texts)))
    cached |= embedding.shared_hashes(plan.siblings, space, texts.keys() - cached)
    waiting = store.waiting(space) & (texts.keys() - cached)
    passed_over = cached | waiting | embedding.known_rejected(store, space, list(texts))
    lacking = [digest for digest in texts if digest not in passed_over]
    send = [texts[digest] for digest in lacking if digest not in withheld]
    tokens = sum(map(_tokens, send))
    # Nothing is paid where no text leaves this machine.
    price = facts.price(space.model, member.host) if member.elsewhere else 0.0
    usd = None if price is None else price * tokens / 1e6
    batches = by_batches and len(send) >= jobs.least
    return Forecast(
        provider=space.provider,
        model=space.model,
        host=member.host,
        elsewhere=member.elsewhere,
        approved=not member.lacks_approval,
        takes_secrets=member.takes_secrets,
        files=len(notes),
        chunks=len(chunks),
        cached=len(cached),
        waiting=len(waiting),
        withheld=len(lacking) - len(send),
        send=len(send),
        tokens=tokens,
        bytes=sum(len(text.encode("utf-8", "replace")) for text in send),
        usd=usd,
        usd_per_million=price,
        batch_usd=usd * facts.batch_price if batches and usd is not None else None,
        prices_of=registry.PRICES_AS_OF,
        cpu_seconds=tokens * facts.token_seconds,
        withholding=withholding,
        flagged=tuple(flagged),
        unreadable=tuple(unreadable),
    )


def _windows_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the windows of the chunks with these `texts`, by hash: a run embeds them, too."""
    pieces = (sealed(1, 1, window) for text in texts for window in windows(text))
    return {piece.hash: piece.text for piece in pieces}


def _tokens(text: str) -> int:
    """Return about how many tokens `text` has: a quarter of its ASCII characters, as chunking counts them, and each
    other one whole, which is rather too many than too few.
    """
    ascii_signs = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_signs / 4) + len(text) - ascii_signs


def _cut(plan: Plan, seen: Scan, space: Identity, most_bytes: int) -> tuple[list[NewFile], list[tuple[str, str]]]:
    """Return the notes as they would be indexed, and those that cannot be read, each with why."""
    recipe = recipe_of(plan.roots, plan.settings, space, most_bytes)
    notes, unreadable = [], []
    for note in seen.notes:
        try:
            notes.append(cut(roots.read(note), note.source, recipe, time.time()))
        except Unreadable as error:
            unreadable.append((note.path, error.message))
    return notes, unreadable


class Providers:
    """The providers of one plan; `changed` is called when another one may be used from now on.

    `reader` opens the index, or an empty one while there is none.
    """

    def __init__(
        self, plan: Plan, chain: Chain, approvals: Approvals, changed: Callable[[], None], reader: StoreReader
    ) -> None:
        self.chain = chain
        """The providers in their order: which is in use, and one real call to it."""
        self.approvals = approvals
        """The approvals of this workspace."""
        self._plan = plan
        self._reader = reader
        self._changed = changed

    def probe(self) -> dict[str, Any]:
        """Return one real call, in the documented form: `ok`, and the `error` when it failed."""
        return {key: value for key, value in self.chain.try_out().items() if key in ("ok", "error")}

    def who(self) -> ServingProvider:
        """Return who answers questions by meaning now, and why it is not who was asked for; asks nobody."""
        with self._reader() as store:
            return who(self.chain, store.identity(), hybrid=self._plan.settings.on("query.hybrid.enabled"))

    def retry(self) -> None:
        """Ask the first choice again at once, and bring the index up to date with it."""
        self.chain.restore()
        self._changed()

    def forecast(self) -> Forecast | None:
        """Return what the next index run would send where, and at what price; None when there is no provider for it.

        Reads every note, asks nobody and sends nothing. Raises ProviderError for what the provider lacks.
        """
        member = self.chain.waiting() or self.chain.provider()
        if member is None:
            if (error := self.chain.state().error) is not None:
                raise error
            return None
        with self._reader() as store:
            return forecast(self._plan, store, scan(self._plan.roots), member)

    def waiting(self, name: str = "") -> MemberState | None:
        """Return who may not get the notes before a person approves it: `name`, by default whoever would be used then.

        Raises SettingError for a name that waits for nothing.
        """
        members = self.chain.members()
        if not name:
            return self.chain.proposal
        member = next((member for member in members if member.name == name), None)
        if member is None or member.approved:
            why = f"{name} is not configured here, so there is nothing to approve."
            names = ", ".join(other.name for other in members if not other.approved) or "none"
            raise SettingError(self.why_approved(member) if member else why, f"Waiting for approval: {names}.")
        return member

    def approve(self, name: str = "", how: str = "in the app", *, sync: bool = True) -> Approval | None:
        """Remember that notes may go to whom `waiting` names; None when nobody waits.

        With `sync` the index is brought up to date then, in the background. Raises SettingError, ApprovalUnsaved.
        """
        chosen = self.waiting(name)
        return None if chosen is None else self._approved(chosen.name, chosen.host, how, sync=sync)

    def may_get(self, name: str, host: str) -> str:
        """Return what an approval of the provider `name` at `host` lets it get, as a sentence."""
        secrets = "is withheld" if self._plan.settings.on("remote.withholdSecrets") else "is sent too"
        notes = f"the texts of the notes of {os.path.realpath(self._plan.workspace)}"
        return f"{name} at {host} gets {notes}. Text that looks like a secret {secrets}."

    def says_secrets_stay(self, name: str, how: str) -> Approval:
        """Remember that nothing leaves this machine from the server of `name`. Raises SettingError, ApprovalUnsaved."""
        return self._approved(SECRETS, self.here(name).host, how, sync=False)

    def here(self, name: str) -> MemberState:
        """Return the provider called `name`, whose server has an address of this machine. Raises SettingError."""
        member = next((member for member in self.chain.members() if member.name == name), None)
        if member is None or not member.host or not on_this_machine(member.host):
            at = f"asked at {member.host}" if member and member.host else "asked at no address"
            step = "To send everything to every provider: remote.withholdSecrets false."
            raise SettingError(f"{name} is {at}, which is not this machine.", step)
        return member

    def _approved(self, name: str, host: str, how: str, *, sync: bool) -> Approval:
        """Save an approval, and have the providers chosen anew."""
        approval = self.approvals.approve(name, host, how)
        self.chain.choose_again()
        if sync:
            self._changed()
        return approval

    def why_approved(self, member: MemberState) -> str:
        """Return why nothing has to be approved for `member`, as a sentence."""
        if not member.host and registry.sends(member.name):
            return f"{member.name} cannot be approved before it is complete: {member.error or member.detail}"
        if not member.host:
            return f"{member.name} needs no approval: it runs inside memory-tui, and no note leaves this machine."
        if on_this_machine(member.host):
            secrets = (
                "may get text that looks like a secret"
                if self.approvals.find(SECRETS, member.host)
                else f"gets no text that looks like a secret before memory-tui provider --stays-here {member.name}"
            )
            return f"{member.name} needs no approval: {member.host} is an address of this machine. It {secrets}."
        approval = self.approvals.find(member.name, member.host)
        since = f", since {dt.datetime.fromtimestamp(approval.at).astimezone():%Y-%m-%d %H:%M}" if approval else ""
        return f"{member.name} has your approval to get these notes at {member.host}{since}."

    def revoke(self, name: str = "", *, sync: bool = True) -> tuple[Approval, ...]:
        """Take back the approval of `name`, or all; returns them. Nothing is sent there from now on.

        Raises ApprovalUnsaved.
        """
        withdrawn = self.approvals.revoke(name)
        if withdrawn:
            self.chain.choose_again()
        if withdrawn and sync:
            self._changed()
        return withdrawn


# --- setting one up --------------------------------------------------------------------------------------------------


class ProviderChoice(NamedTuple):
    """A provider as a person describes it; `variable` names the environment variable of its key, empty for none."""

    row: ProviderRow
    address: str = ""
    variable: str = ""
    model: str = ""


class ProviderSetup(NamedTuple):
    """A provider that answered a test, and the patch of the configuration that names it."""

    patch: Patch
    trial: dict[str, Any]

    @property
    def answer(self) -> str:
        """Return what the test came to, as a sentence."""
        where = f" at {self.trial['host']}" if self.trial["host"] else ""
        cost = registry.row(self.trial["provider"]).cost
        answer = f"{self.trial['provider']} {self.trial['model']}{where} answers: {self.trial['dims']:,} dimensions."
        return f"{answer} It takes {cost}." if cost else answer


def usual_variable(row: ProviderRow, address: str) -> str:
    """Return the variable that holds the key of a provider at its usual address; empty elsewhere."""
    return row.variables[0] if row.variables and address == row.base_url else ""


def choice(kind: str, address: str, variable: str, model: str) -> ProviderChoice:
    """Return the provider that these describe. Raises SettingError."""
    row = registry.row(kind)
    if not row.shape:
        # It runs on this machine, inside memory-tui: it has no address and no key.
        return ProviderChoice(row)
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        step = "Name the environment variable, not the key, as in OPENAI_API_KEY."
        raise SettingError("The name of the key's variable is none.", step)
    return ProviderChoice(row, address, variable, model)


def prepare(plan: Plan, chosen: ProviderChoice) -> ProviderSetup:
    """Ask the provider for the vector of a sentence of memory-tui's own, and return what would be written for it.

    Raises ConfigError, ProviderError, SettingError.
    """
    keys = _keys(plan.config, chosen)
    return ProviderSetup(provider_patch(plan.config, keys), _trial(plan, chosen, keys))


def _keys(config: Config, chosen: ProviderChoice) -> dict[str, str]:
    """Return the keys to write: what is not as usual, and whatever the file says otherwise.

    Raises ConfigError where the new provider would get a key or headers that the file has for another address.
    """
    row = chosen.row
    same = config.provider == row.name and (config.value("remote.baseUrl") or row.base_url) == chosen.address
    # What the file has for one server and no other may get; a new key takes the place of that in the file.
    private = {"remote.headers"} if chosen.variable else {"remote.headers", "remote.apiKey"}
    kept = " and ".join(sorted(private & set(config.entries)))
    if row.shape and kept and not same:
        message = f"{config.path} has {kept} for {config.provider or 'another provider'}, and {chosen.address}"
        step = "Take it out of the file, or name the variable of the new key."
        raise ConfigError(f"{message} would get that.", step)
    values = (("model", chosen.model, row.model), ("remote.baseUrl", chosen.address, row.base_url))
    # What is as usual is written where the file has something else, which would win.
    keys = {key: value for key, value, usual in values if value and (value != usual or config.value(key))}
    if chosen.variable and (chosen.variable not in row.variables or "remote.apiKey" in config.entries):
        keys["remote.apiKey"] = f"${{{chosen.variable}}}"
    return {"provider": row.name, **keys}


def _trial(plan: Plan, chosen: ProviderChoice, keys: Mapping[str, str]) -> dict[str, Any]:
    """Ask the provider for one vector, by a chain of its own; return what came back.

    `keys` are what would be written for it: with an API key among them its variable has to be set. Raises
    ProviderError, SettingError.
    """
    name = chosen.row.name
    usual = plans.settings(plan, Approvals(plan.workspace))
    key = usual.env(chosen.variable) if "remote.apiKey" in keys else ""
    if "remote.apiKey" in keys and not key:
        raise SettingError(f"The variable {chosen.variable} is not set here.", "Set it, then run this again.")
    api_keys = (Secret(key),) if key else usual.api_keys
    names = {"requested": name, "model": chosen.model, "base_url": chosen.address}
    # A failure is in the answer below, so nobody has to be told of it.
    chain = Chain(replace(usual, **names, api_keys=api_keys, fallback=""), lambda _error: None)
    try:
        trial = chain.try_out(name)
    finally:
        chain.close()
    if not trial["ok"]:
        raise ProviderError(f"Nothing was written. {trial.get('error')}", trial.get("nextStep", ""))
    return trial
