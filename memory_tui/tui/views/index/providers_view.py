"""The providers view lists the embedding providers. It shows state, data sent and approval of each, and tests one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from textual import on

from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import minute, plural
from memory_tui.sanitize import one_line
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.approval import Approval
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.providers import Forecast
    from memory_tui.engine.status import Status
    from memory_tui.providers.chain import MemberState

STATES: Mapping[str, tuple[str, str]] = {
    "in use": ("✓", "good"),
    "waiting": ("○", "muted"),
    "passed over": ("-", "muted"),
    "failing": ("!", "bad"),
    "paused": ("!", "bad"),
    "given up": ("✗", "bad"),
}
"""Glyph and style of each state of a provider."""


class ProvidersListing(Struct, frozen=True):
    """What the view shows, gathered in one go."""

    status: Status
    proposal: MemberState | None
    forecast: Forecast | None
    approvals: tuple[Approval, ...]


class ProvidersView(View):
    """The chain, the forecast and the approvals."""

    PLACE = "providers"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="Providers",
            waiting="Checking the providers and what they would get ...",
            gather=_gathered,
            lines=self._lines,
            arrived=self._choose_used,
        )
        self.parts = (self.listing,)
        self._tried: dict[str, Any] | None = None

    def more_context(self) -> dict[str, bool]:
        """Whether a provider waits for approval."""
        reply = self.listing.found
        return {
            "proposal": reply is not None and reply.proposal is not None,
            "approved": reply is not None and bool(reply.approvals),
        }

    def _choose_used(self, found: ProvidersListing) -> None:
        """Put the cursor on the provider in use."""
        used = next((link.name for link in found.status.links if link.state != "passed over"), None)
        if used is not None and (row := self.listing.rows.row_of(used)) is not None:
            self.listing.rows.go(row)

    # --- actions -------------------------------------------------------------------------------------------------

    def do_again(self) -> None:
        """Ask a provider that failed again; test the one under the cursor, after asking where that sends anything."""
        from memory_tui.tui.views.dialogs import Confirm

        if self.home.engine is not None:
            self.home.engine.providers.retry()
        link = self._link()
        if link is None or link.state == "passed over":
            if link is not None:
                self.show_message(f"{link.name} cannot be asked: {one_line(link.detail)}")
            self.listing.do_again()
        elif link.host and link.state != "in use":
            sent = f"{one_line(link.host)} would get one sentence of memory-tui, no text of the notes."
            Confirm(f"Test {link.name}?", sent, "Send").ask(self.app, lambda _yes: self._try_out(link.name))
        else:
            self._try_out(link.name)

    @task("try out")
    async def _try_out(self, name: str) -> None:
        """One real call, with a sentence of our own, to the provider called `name`."""
        self.show_message(f"Asking {name} ...")
        reply = await self.home.jobs.attempt(lambda engine: engine.providers.chain.try_out(name))
        self._tried = {"ok": False, "error": reply.message} if isinstance(reply, MemoryTuiError) else reply
        self.show_message("The provider answered." if self._tried["ok"] else "The provider failed the test.")
        self.listing.do_again()

    def _link(self) -> MemberState | None:
        reply, key = self.listing.found, self.listing.rows.key
        links = reply.status.links if reply is not None else ()
        return next((link for link in links if link.name == key), None)

    @on(RowList.Chosen)
    def _approve_asked(self) -> None:
        """Let the provider that waits for it have the notes, after asking."""
        from memory_tui.tui.views.dialogs import Confirm

        reply = self.listing.found
        if reply is None or reply.proposal is None:
            return
        name, host = reply.proposal.name, reply.proposal.host
        sent = reply.forecast

        what = "the texts of all notes"
        off = sent is not None and not sent.withholding
        if sent is not None:
            what = f"{sent.send:,} texts, about {sent.tokens:,} tokens, {_price(sent)}"
        Confirm(
            f"Send the notes to {name}?",
            f"{host} would get {what}. Texts that look like secrets are {'sent too' if off else 'kept back'}. The "
            "approval is remembered for this workspace and can be taken back here.",
            "Send",
        ).ask(self.app, lambda _yes: self._approve(lambda engine: engine.providers.approve(name)))

    def do_revoke(self) -> None:
        """Take every approval back, after asking."""
        from memory_tui.tui.views.dialogs import Confirm

        sentence = "No provider elsewhere gets texts of these notes until you approve it again."
        Confirm("Withdraw every approval?", sentence, "Withdraw").ask(
            self.app, lambda _yes: self._approve(lambda engine: engine.providers.revoke())
        )

    @task("consent", exclusive=False)
    async def _approve(self, change: Callable[[Engine], object]) -> None:
        """Change what a provider may get, then look at what there is now."""
        reply = await self.home.jobs.attempt(change, write=True)
        self.show_message(sentence_of(reply) if isinstance(reply, MemoryTuiError) else "Remembered.")
        self.listing.do_again()

    # --- words ---------------------------------------------------------------------------------------------------

    def _lines(self, found: ProvidersListing, width: int) -> list[Line]:
        """The chain, the trial, the forecast, the approvals."""
        status = found.status
        written = text(f"Requested: {status.requested_provider} ({status.provider_origin})", width)
        written += text(one_line(status.who.sentence), width, "" if status.who.fine else "warn")
        for link in status.links:
            written += _link(link, width)
        rest, hits = status.cache.entries, status.cache.hits
        written += text(f"Cache: {rest:,} vectors kept, {hits:,} found so far.", width, "muted")
        if self._tried is not None:
            written += [*text("", width), *text("One real call", width, "head"), *_trial(self._tried, width)]
        if found.forecast is not None:
            written += [*text("", width), *text("The next index run", width, "head"), *_forecast(found.forecast, width)]
        if found.approvals:
            written += [*text("", width), *text("Approved", width, "head")]
            written += [
                line
                for done in found.approvals
                for line in text(
                    f"{done.provider} at {done.host} may get these notes since {minute(done.at)} ({done.how}).", width
                )
            ]
        return written


def _gathered(engine: Engine) -> ProvidersListing:
    """Everything about who makes the vectors."""
    embedding = engine.providers
    return ProvidersListing(
        engine.status(), embedding.chain.proposal, embedding.forecast(), embedding.approvals.every()
    )


def _link(link: MemberState, width: int) -> list[Line]:
    glyph, style = STATES[link.state]
    where = f" at {one_line(link.host)}" if link.host else ""
    model = f", {one_line(link.model)}" if link.model else ""
    written: list[Line] = [
        ([(f" {glyph} ", style), (link.name, "strong"), (f"{where}: {link.state}{model}", "")], link.name)
    ]
    written += text(one_line(link.detail), width, "muted", 3) if link.detail else []
    if link.error and link.error != link.detail:
        written += text(one_line(link.error), width, "bad", 3)
    if link.next_step and link.state != "passed over":
        written += text(one_line(link.next_step), width, style, 3)
    if link.next_try:
        written += text(f"Asked again at {minute(link.next_try)}.", width, "muted", 3)
    if link.calls:
        written += text(
            f"Last call {link.last_ms:.0f} ms; {plural(link.calls, 'call')}, {plural(link.texts, 'text')}.",
            width,
            "muted",
            3,
        )
    return written


def _trial(tried: dict[str, Any], width: int) -> list[Line]:
    if not tried["ok"]:
        why = f"{tried.get('error', 'no answer')} {tried.get('nextStep', '')}"
        return text(f"Failed: {one_line(why)}", width, "bad")
    return text(
        f"{tried['provider']} {tried['model']}: {tried['dims']} dimensions in {tried['ms']:.0f} ms, norm "
        f"{tried['norm']:.4f}, similarity to itself {tried['selfSimilarity']:.4f}.",
        width,
        "good",
    )


def _forecast(found: Forecast, width: int) -> list[Line]:
    where = f"{found.provider} at {one_line(found.host)}" if found.elsewhere else f"{found.provider}, on this machine"
    written = text(
        f"{where}: {plural(found.files, 'file')}, {plural(found.chunks, 'chunk')}, {found.cached:,} cached, "
        f"{found.send:,} to embed, about {found.tokens:,} tokens.",
        width,
    )
    if found.elsewhere:
        written += text(f"Price: {_price(found)}.", width)
    if found.host and not found.takes_secrets:
        rest = (
            f"{plural(found.withheld, 'text')} that look like secrets are kept back."
            if found.withholding
            else "Nothing is withheld: remote.withholdSecrets is off."
        )
        written += text(rest, width, "" if found.withholding else "warn")
    for flagged in found.flagged[:20]:
        written += text(
            f"{one_line(flagged.path)}:{flagged.start_line}-{flagged.end_line} looks like {', '.join(flagged.kinds)}",
            width,
            "warn",
            3,
        )
    return written


def _price(found: Forecast) -> str:
    if found.usd is None:
        return "price unknown"
    return f"about {found.usd:.4f} US dollars (list prices of {found.prices_of})"
