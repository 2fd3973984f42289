"""What a person sees and does about embeddings: who makes the vectors, what would be sent where, and their word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory_tui.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_tui.consent import Agreement, Consents
    from memory_tui.embed.chain import Chain
    from memory_tui.embed.links import LinkState


class Embedding:
    """The providers of one plan; `changed` is called when another one may be used from now on."""

    def __init__(self, chain: Chain, consents: Consents, changed: Callable[[], None]) -> None:
        self._chain = chain
        self._consents = consents
        self._changed = changed

    def links(self) -> tuple[LinkState, ...]:
        """Every provider that was looked at, in order, with its state; asks nobody."""
        self._chain.provider()
        return self._chain.links()

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
            raise SettingError(f"{name} does not wait for your word.",
                               f"Those who do: {', '.join(link.name for link in waiting) or 'none'}.")
        if chosen is None:
            return None
        made = self._consents.agree(chosen.name, chosen.host, how)
        self._chain.choose_again()
        if sync:
            self._changed()
        return made

    def revoke(self, name: str = "") -> tuple[Agreement, ...]:
        """Take back what was agreed about `name`, or everything; returns it. Nothing is sent there from now on.

        Raises ConsentUnsaved.
        """
        gone = self._consents.revoke(name)
        if gone:
            self._chain.choose_again()
            self._changed()
        return gone
