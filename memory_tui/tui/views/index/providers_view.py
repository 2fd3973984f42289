"""The providers view: state, data sent, approval, test of each embedding provider."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType

from memory_tui.core.sanitize import one_line
from memory_tui.tui.draw import plural
from memory_tui.tui.keymap import bindings
from memory_tui.tui.views.index.index_details import ListingView
from memory_tui.tui.widgets.rowlist import Line, Rows, text
from memory_tui.tui.workers import Done

if TYPE_CHECKING:
    from memory_tui.approval import Agreement
    from memory_tui.engine.costs import Forecast
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import Status
    from memory_tui.providers.chain_member import LinkState

STATES: Mapping[str, tuple[str, str]] = {
    "in use": ("✓", "good"),
    "waiting": ("○", "muted"),
    "passed over": ("-", "muted"),
    "failing": ("!", "bad"),
    "paused": ("!", "bad"),
    "given up": ("✗", "bad"),
}
"""Glyph and style of each state of a provider."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What the view shows, gathered in one go."""

    status: Status
    proposal: LinkState | None
    forecast: Forecast | None
    agreements: tuple[Agreement, ...]


class SupplyView(ListingView):
    """The chain, the forecast and the agreements."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("supply"))
    PLACE = "supply"
    TITLE_WORDS = "Providers"
    WAITING = "Looking at the providers and what they would get ..."

    def __init__(self) -> None:
        super().__init__()
        self._tried: dict[str, Any] | None = None

    @staticmethod
    def gather(engine: Engine) -> Supply:
        """Everything about who makes the vectors."""
        embedding = engine.providers
        return Supply(engine.status(), embedding.chain.proposal, embedding.forecast(), embedding.approvals.every())

    def more_context(self) -> dict[str, bool]:
        """Whether a provider waits for the person's word."""
        found = self._found
        return {
            "proposal": isinstance(found, Supply) and found.proposal is not None,
            "agreed": isinstance(found, Supply) and bool(found.agreements),
        }

    # --- actions -------------------------------------------------------------------------------------------------

    def do_try_out(self) -> None:
        """One real call, with a sentence of our own, to the provider under the cursor or the one in use."""
        link = self._link()
        if link is not None and link.state == "passed over":
            self.say(f"{link.name} cannot be asked: {one_line(link.detail)}")
            return
        name = "" if link is None else link.name
        self.say(f"Asking {name or 'the provider'} ...")
        self.home.bridge.work("try out", lambda engine: engine.providers.chain.try_out(name))

    def _link(self) -> LinkState | None:
        found, key = self._found, self.query_one(Rows).key
        links = found.status.links if isinstance(found, Supply) else ()
        return next((link for link in links if link.name == key), None)

    def do_agree(self) -> None:
        """Let the provider that waits for it have the notes, after asking."""
        from memory_tui.tui.views.dialogs import Confirm

        found = self._found
        if not isinstance(found, Supply) or found.proposal is None:
            return
        name, host = found.proposal.name, found.proposal.host
        sent = found.forecast

        def answer(yes: bool | None) -> None:
            if yes:
                self.home.bridge.work("consent", lambda engine: engine.providers.approve(name))

        what = "the texts of all notes"
        if sent is not None:
            what = f"{sent.send:,} texts, about {sent.tokens:,} tokens, {_price(sent)}"
        self.app.push_screen(
            Confirm(
                f"Send the notes to {name}?",
                f"{host} would get {what}. Texts that look like secrets are kept back. The "
                "agreement is remembered for this workspace and can be taken back here.",
                "Send",
            ),
            answer,
        )

    def do_revoke(self) -> None:
        """Take every agreement back."""
        self.home.bridge.work("consent", lambda engine: engine.providers.revoke())

    def do_again(self) -> None:
        """Ask a provider that failed again now, and look again."""
        if self.home.engine is not None:
            self.home.engine.providers.retry()
        self.look()

    def work_done(self, done: Done, /) -> None:
        """News of a call, of an agreement, or of everything."""
        if done.kind == "try out":
            self._tried = (
                done.value
                if isinstance(done.value, dict)
                else {"ok": False, "error": done.error.message if done.error else "no answer"}
            )
            self.say("The provider answered." if self._tried["ok"] else "The provider did not answer as it should.")
            self.show()
        elif done.kind == "consent":
            self.say(f"{done.error.message} {done.error.next_step}".strip() if done.error else "Remembered.")
            self.look()
        fresh = self._found is None
        super().work_done(done)
        if fresh and isinstance(self._found, Supply):
            used = next((link.name for link in self._found.status.links if link.state != "passed over"), None)
            rows = self.query_one(Rows)
            if used is not None and (row := rows.row_of(used)) is not None:
                rows.go(row)

    # --- words ---------------------------------------------------------------------------------------------------

    def lines(self, found: object, width: int) -> list[Line]:
        """The chain, the trial, the forecast, the agreements."""
        if not isinstance(found, Supply):
            return []
        status = found.status
        written = text(f"Asked for: {status.requested_provider} ({status.provider_origin})", width)
        written += text(one_line(status.who.sentence), width, "" if status.who.fine else "warn")
        for link in status.links:
            written += _link(link, width)
        kept, hits = status.cache["entries"], status.cache.get("hits", 0)
        written += text(f"Cache: {kept:,} vectors kept, {hits:,} found so far.", width, "muted")
        if self._tried is not None:
            written += [*text("", width), *text("One real call", width, "head"), *_trial(self._tried, width)]
        if found.forecast is not None:
            written += [*text("", width), *text("The next index run", width, "head"), *_forecast(found.forecast, width)]
        if found.agreements:
            written += [*text("", width), *text("Agreed", width, "head")]
            written += [
                line
                for made in found.agreements
                for line in text(
                    f"{made.provider} at {made.host} may get these notes since {_when(made.at)} ({made.how}).", width
                )
            ]
        return written


def _link(link: LinkState, width: int) -> list[Line]:
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
        written += text(f"Asked again at {_when(link.next_try)}.", width, "muted", 3)
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
        kept = (
            f"{plural(found.withheld, 'text')} that look like secrets are kept back."
            if found.withholding
            else "Nothing is kept back: remote.withholdSecrets is off."
        )
        written += text(kept, width, "" if found.withholding else "warn")
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


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
