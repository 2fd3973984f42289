"""What a person sees and does about embeddings: who makes the vectors, what would be sent where, and their word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_tui.engine.supply import cache_hits, fallback_in, who_answers
from memory_tui.errors import ProviderError, SettingError
from memory_tui.workspace.roots import scan

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from memory_tui.consent import Agreement, Consents
    from memory_tui.embed.chain import Chain
    from memory_tui.embed.fallback import Fallback
    from memory_tui.embed.links import LinkState
    from memory_tui.embed.who import Who
    from memory_tui.forecast import Estimate, Forecast
    from memory_tui.index.store import Store
    from memory_tui.launch import Plan
    from memory_tui.overview import Supplied


class Embedding:
    """The providers of one plan; `changed` is called when another one may be used from now on."""

    def __init__(
        self,
        plan: Plan,
        chain: Chain,
        consents: Consents,
        changed: Callable[[], None],
        looking: Callable[[], AbstractContextManager[Store]],
    ) -> None:
        self._plan = plan
        self._chain = chain
        self._looking = looking
        self._consents = consents
        self._changed = changed

    def links(self) -> tuple[LinkState, ...]:
        """Every provider that was looked at, in order, with its state; asks nobody."""
        self._chain.provider()
        return self._chain.links()

    def fallback(self) -> Fallback | None:
        """What took the place of the first choice: in this engine, else when the index was last made."""
        with self._looking() as store:
            return fallback_in(store, self._chain)

    def supplied(self, store: Store) -> Supplied:
        """Who makes the vectors, for `status`."""
        from memory_tui.overview import Supplied

        return Supplied(self.links(), who_answers(store, self._chain, self._plan.settings), cache_hits(store))

    def who(self) -> Who:
        """Who answers questions by meaning now, and why it is not who was asked for; asks nobody."""
        with self._looking() as store:
            return who_answers(store, self._chain, self._plan.settings)

    def try_out(self, name: str = "") -> dict[str, Any]:
        """One real call, now, with a sentence of the program's own, to the provider in use or the one called `name`.

        `ok`, provider, model, dims, ms, norm, selfSimilarity and host, or `error`, `nextStep` and `state`. May block
        for as long as the provider's time-out.
        """
        return self._chain.try_out(name)

    def retry(self) -> None:
        """Ask the first choice again at once, and bring the index up to date with it."""
        self._chain.restore()
        self._changed()

    @property
    def proposal(self) -> LinkState | None:
        """The provider that waits for the person's word; None when nobody does."""
        return self._chain.proposal

    def forecast(self) -> Forecast | None:
        """What the next index run would send where, and at what price; None when there is no provider for it.

        Reads every note, asks nobody and sends nothing. Raises ProviderError for what the provider lacks.
        """
        from memory_tui.forecast import forecast

        outlook = self._chain.outlook()
        if outlook is None:
            if (error := self._chain.error) is not None:
                raise error
            return None
        with self._looking() as store:
            return forecast(self._plan, store, scan(self._plan.roots), outlook)

    def estimate(self, speed: float | None) -> Estimate:
        """What making the whole index anew would cost at `speed` texts a second; reads no note and asks nobody."""
        from memory_tui.forecast import estimate

        try:
            outlook = self._chain.outlook()
        except ProviderError:
            # As it is, it would embed nothing.
            outlook = None
        known = self._chain.known_identity()
        with self._looking() as store:
            return estimate(self._plan, store, scan(self._plan.roots), outlook, known or store.identity(), speed)

    def agreements(self) -> tuple[Agreement, ...]:
        """What was agreed about this workspace, the oldest first."""
        return self._consents.every()

    def agree(self, name: str = "", how: str = "in the app", *, sync: bool = True) -> Agreement | None:
        """Remember that notes may go to `name`, by default whoever waits for it; None when nobody does.

        With `sync` the index is brought up to date then, in the background. Raises SettingError for a provider that
        waits for nothing, ConsentUnsaved.
        """
        waiting = [link for link in self.links() if not link.agreed]
        chosen = next((link for link in waiting if link.name == name), None) if name else self._chain.proposal
        if name and chosen is None:
            raise SettingError(
                f"{name} does not wait for your word.",
                f"Those who do: {', '.join(link.name for link in waiting) or 'none'}.",
            )
        if chosen is None:
            return None
        made = self._consents.agree(chosen.name, chosen.host, how)
        self._chain.choose_again()
        if sync:
            self._changed()
        return made

    def revoke(self, name: str = "", *, sync: bool = True) -> tuple[Agreement, ...]:
        """Take back what was agreed about `name`, or everything; returns it. Nothing is sent there from now on.

        Raises ConsentUnsaved.
        """
        gone = self._consents.revoke(name)
        if gone:
            self._chain.choose_again()
        if gone and sync:
            self._changed()
        return gone
