"""The protocol of a provider. It turns texts into unit vectors, has an identity, and gives its health as a value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_DIMS = 100_000
"""Numbers of the longest vector that an index holds."""

# In quotes, so that to name a provider loads no numpy.
Vectors: TypeAlias = "npt.NDArray[np.float32]"


class Identity(Struct, frozen=True):
    """Which space a vector lives in; vectors of two identities are never compared."""

    provider: str
    model: str
    key: str
    """Fingerprint of endpoint and headers, as hexadecimal SHA-256."""
    dims: int


def identity_key(provider: str, model: str) -> str:
    """The documented provider key of a provider without endpoint: SHA-256 of `{"provider","model"}` as JSON."""
    text = json.dumps({"provider": provider, "model": model}, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Health(Struct, frozen=True):
    """Whether a provider works, in words for the screen; `last_ms` is the time of its last call."""

    ok: bool
    detail: str
    last_ms: float = 0.0


class MediaText(str):
    """The label of a media file, in the place of a text; whoever embeds it sends the file's bytes as well.

    `load` reads type and bytes, no more than `most`. Raises ProviderError where the file is not what was indexed.
    """

    __slots__ = ("load", "most")
    load: Callable[[], tuple[str, bytes]]
    most: int

    def __new__(cls, label: str, most: int, load: Callable[[], tuple[str, bytes]]) -> MediaText:
        """`label` with what comes with it."""
        made = super().__new__(cls, label)
        made.most, made.load = most, load
        return made


class Provider(Protocol):
    """Turns text into vectors. Safe to call from several threads."""

    @property
    def identity(self) -> Identity:
        """The space of this provider's vectors.

        The first time it may load a model or ask a server how long its vectors are, so it is read on a worker thread.
        Raises ProviderError when that fails, and Cancelled after `close`.
        """
        ...

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that is embedded whole; longer chunks are split before they get here."""
        ...

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Float32 array (len(texts), dims) of unit vectors, or zeros for a text without any token.

        Raises ProviderError, and Cancelled after `close`.
        """
        ...

    def health(self) -> Health:
        """The provider's state after its last call; makes no call."""
        ...

    def close(self) -> None:
        """Release what the provider holds, and end at once what it does for other threads."""
        ...
