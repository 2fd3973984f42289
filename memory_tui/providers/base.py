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


class Malformed(ValueError):
    """An answer that must not be stored; its text completes the sentence "answered with ..."."""


class NoDirection(Malformed):
    """Vectors of the right length that point nowhere; `every` one of the answer, or some of them."""

    def __init__(self, message: str, every: bool) -> None:
        super().__init__(message)
        self.every = every


def field(tree: object, name: str) -> list[object]:
    """The list called `name` in the object `tree`. Raises Malformed."""
    found = tree.get(name) if isinstance(tree, dict) else None
    if not isinstance(found, list):
        raise Malformed(f"JSON that has no list {name!r}")
    return found


def in_order(rows: list[object]) -> list[object]:
    """`rows` sorted by their `index` where they have one. Raises Malformed when the indexes are not 0, 1, 2, ..."""
    indexes = [row.get("index") if isinstance(row, dict) else None for row in rows]
    if all(index is None for index in indexes):
        return rows
    places = {index: row for index, row in zip(indexes, rows, strict=True) if isinstance(index, int)}
    if sorted(places) != list(range(len(rows))):
        raise Malformed("rows whose indexes are not 0, 1, 2, ...")
    return [places[at] for at in range(len(rows))]


def unit_vectors(rows: list[object], count: int, dims: int | None) -> Vectors:
    """Float32 array (count, dims) of unit vectors from rows of numbers. Raises Malformed, NoDirection."""
    # Late, because the rows of providers import this module, and numpy is not needed to read them.
    import numpy as np

    if len(rows) != count:
        raise Malformed(f"{len(rows)} vectors for {count} texts")
    lengths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise Malformed("rows that are not vectors of one length")
    if max(lengths) > MOST_DIMS:
        raise Malformed(f"vectors of {max(lengths):,} numbers, where an index holds at most {MOST_DIMS:,}")
    if dims is not None and lengths != {dims}:
        raise Malformed(f"vectors of {lengths.pop()} numbers where {dims} were expected")
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Malformed("vectors that are not made of numbers") from error
    largest = np.abs(values).max(axis=1, keepdims=True)
    points = (largest > 0) & (largest < np.inf)
    if not points.all():
        raise NoDirection(
            "a vector of zeros only" if np.isfinite(largest).all() else "vectors that hold NaN or infinity",
            every=not points.any(),
        )
    values /= largest
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)
