"""The vector space of a table is that of the model that made its vectors; a query is embedded there, or not at all.

A table that memory-tui made says which model that is. Of any other table it is found out: some of its texts are
embedded again, and the vectors compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import plan as plans
from memory_tui.core.errors import MemoryTuiError, ProviderError
from memory_tui.core.formatting import plural
from memory_tui.core.secret_finder import kinds
from memory_tui.ltm.entry import EntryRefused
from memory_tui.ltm.entry_table import EntryTable
from memory_tui.ltm.location import CONFIG, TableLocation
from memory_tui.plan import NAMED, Choices
from memory_tui.providers import registry
from memory_tui.providers.chain import NONE, Chain
from memory_tui.providers.options import ProviderSettings, Secret, takes_secrets
from memory_tui.state_db import Table

if TYPE_CHECKING:
    from memory_tui.approval import Approvals
    from memory_tui.providers.base import Identity, Provider, Vectors

PROBED = 20
"""So many entries of a table of unknown origin are embedded again."""
ALIKE = 0.99
"""The mean cosine from which on the vectors are of one model."""
_PROVED = Table("ltm_spaces", most=200)


class OtherVectors(MemoryTuiError):
    """The vectors of the table were made with another model, so that nothing can be ranked."""

    code = "other_model"


class SpaceProof(Struct, frozen=True):
    """How it is known that a provider makes the vectors of a table: it is recorded there, or so many were compared."""

    how: Literal["recorded", "probed", "empty"]
    compared: int = 0
    cosine: float = 1.0


class VectorSpace:
    """Embeds texts for one table. Safe for any thread; the first call may load a model."""

    def __init__(self, choices: Choices, approvals: Approvals, location: TableLocation, shared: Chain | None) -> None:
        self._choices, self._approvals, self._location = choices, approvals, location
        self._shared = shared
        self._chain: Chain | None = None
        self._proofs: dict[tuple[str, str, int], SpaceProof] = {}

    def close(self) -> None:
        """Release the provider, unless it is another's."""
        if self._chain is not None and self._chain is not self._shared:
            self._chain.close()

    def identity(self, recorded: Mapping[str, Any]) -> Identity:
        """The space of the provider in use; `recorded` is what the table says of its own. Raises ProviderError."""
        return self._provider(recorded).identity

    def embed(self, texts: Sequence[str], recorded: Mapping[str, Any], *, query: bool = False) -> Vectors:
        """Unit vectors of `texts`. Raises ProviderError, and EntryRefused for a text that may not be sent."""
        provider = self._provider(recorded)
        host = getattr(provider, "host", "")
        if not takes_secrets(host, plans.settings(self._choices, self._approvals)):
            for text in texts:
                if found := kinds(text):
                    raise EntryRefused(
                        f"The text looks like it holds a secret ({found[0]}), and {host} would get it.",
                        "Take it out, or use a provider of this machine: --provider builtin.",
                    )
        return provider.embed(list(texts), "query" if query else "document")

    def prove(self, table: EntryTable) -> SpaceProof:
        """How it is known that the provider in use made the vectors of `table`. Raises OtherVectors, ProviderError."""
        recorded = table.recorded
        identity = self.identity(recorded)
        if identity.dims != table.dims:
            raise OtherVectors(
                f"The memories have vectors of {table.dims:,} numbers; {identity.provider} {identity.model} makes "
                f"{identity.dims:,}. They were made with another model, so nothing can be ranked.",
                "Name the provider that made them: --provider NAME.",
            )
        if recorded:
            if (recorded.get("provider"), recorded.get("model")) != (identity.provider, identity.model):
                raise OtherVectors(
                    f"The memories were made with another model, {recorded.get('provider')} {recorded.get('model')}; "
                    f"{identity.provider} {identity.model} is asked for.",
                    # A provider that has but one model cannot make those of an earlier version.
                    "Have them embedded anew: memory-tui ltm export FILE, move the folder of the memories away, "
                    "memory-tui ltm import FILE."
                    if recorded.get("provider") == identity.provider
                    else "Leave --provider out.",
                )
            return SpaceProof("recorded")
        name = (identity.provider, identity.model, identity.dims)
        if name not in self._proofs:
            self._proofs[name] = self._kept(identity) or self._probe(table, identity)
        return self._proofs[name]

    def _kept(self, identity: Identity) -> SpaceProof | None:
        found = _PROVED.of(self._location.key).read().get(_name(identity))
        if not isinstance(found, dict):
            return None
        return SpaceProof("probed", int(found.get("compared", 0)), float(found.get("cosine", 0.0)))

    def _probe(self, table: EntryTable, identity: Identity) -> SpaceProof:
        """Embed some entries again. Raises OtherVectors."""
        import numpy as np

        entries, vectors = table.vectors()
        lengths = np.linalg.norm(vectors, axis=1) if len(entries) else np.zeros(0)
        whole = np.flatnonzero(lengths > 0)
        if not len(whole):
            return SpaceProof("empty")
        chosen = whole[np.linspace(0, len(whole) - 1, min(PROBED, len(whole))).astype(int)]
        again = self.embed([entries[at].text for at in chosen], {})
        cosines = (again * (vectors[chosen] / lengths[chosen, None])).sum(axis=1)
        mean = float(cosines.mean())
        if mean < ALIKE:
            raise OtherVectors(
                f"The memories were made with another model than {identity.provider} {identity.model}: "
                f"{plural(len(chosen), 'entry')} embedded again have a mean cosine of {mean:.3f}, under {ALIKE}. "
                "Nothing can be ranked.",
                "Name the provider that made them: --provider NAME.",
            )
        _PROVED.of(self._location.key).put(_name(identity), {"compared": len(chosen), "cosine": mean})
        return SpaceProof("probed", len(chosen), mean)

    # --- who embeds --------------------------------------------------------------------------------------------------

    def _provider(self, recorded: Mapping[str, Any]) -> Provider:
        if self._chain is None:
            self._chain = self._made(recorded)
        provider = self._chain.provider()
        if provider is None:
            error = self._chain.error
            raise error or ProviderError(
                "Memories need vectors, and the provider is none.", "Name one: --provider builtin."
            )
        return provider

    def _made(self, recorded: Mapping[str, Any]) -> Chain:
        """The chain: as named on the command line, as the plug-in is configured, as recorded, as for the notes."""
        usual = plans.settings(self._choices, self._approvals)
        asked = usual if self._choices.provider_origin == NAMED else self._configured(usual)
        if asked is None and recorded.get("provider") in registry.NAMES:
            provider, model = str(recorded["provider"]), str(recorded.get("model") or "")
            same = provider == usual.requested
            asked = usual if same and usual.model in ("", model) else _with(usual, provider, model)
        asked = asked or usual
        if self._shared is not None and asked is usual and self._shared.name not in (NONE, ""):
            return self._shared
        return Chain(replace(asked, fallback=""), _unheard)

    def _configured(self, usual: ProviderSettings) -> ProviderSettings | None:
        """As OpenClaw's plug-in is configured; None where it is not."""
        config = self._choices.config
        named = {name: config.value(f"{CONFIG}embedding.{name}") for name in ("provider", "model", "baseUrl")}
        key = config.secret(f"{CONFIG}embedding.apiKey")
        if not any(named.values()) and key is None:
            return None
        dims = config.value(f"{CONFIG}embedding.dimensions")
        made = _with(usual, str(named["provider"] or "openai"), str(named["model"] or ""))
        return replace(
            made,
            base_url=str(named["baseUrl"] or ""),
            api_keys=(Secret(key.value),) if key is not None and key.known else (),
            output_dimensionality=dims if isinstance(dims, int) else None,
        )


def _with(usual: ProviderSettings, provider: str, model: str) -> ProviderSettings:
    return replace(usual.for_provider(provider), requested=provider, model=model)


def record_of(identity: Identity) -> dict[str, Any]:
    """What a new table says of its vectors."""
    return {"provider": identity.provider, "model": identity.model, "dims": identity.dims}


def _name(identity: Identity) -> str:
    return f"{identity.provider} {identity.model} {identity.dims}"


def _unheard(_error: ProviderError) -> None:
    """A failure is raised where it is met; nobody has to be told a second time."""
