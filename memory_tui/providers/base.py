"""Define a provider: it turns texts into unit vectors of a space that has an identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_DIMS = 100_000
"""Numbers of the longest vector that an index holds."""
# In quotes, so that to name a provider loads no numpy.
Vectors: TypeAlias = "npt.NDArray[np.float32]"
Kind = Literal["document", "query"]


class Identity(Struct, frozen=True):
    """Which space a vector lives in; vectors of two identities are never compared."""

    provider: str
    model: str
    key: str
    """Fingerprint of endpoint and headers, as hexadecimal SHA-256."""
    dims: int

    @property
    def space(self) -> tuple[str, str, str]:
        """Provider, model and key, by which an index keeps vectors of any length."""
        return self.provider, self.model, self.key


def identity_key(provider: str, model: str) -> str:
    """Return the documented key of a provider without endpoint: SHA-256 of `{"provider","model"}` as JSON."""
    return fingerprint(provider=provider, model=model)


def fingerprint(**fields: object) -> str:
    """Return the SHA-256 of `fields` as JSON in the order given, as JavaScript writes it."""
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


class MediaText(str):
    """The label of a media file, in the place of a text; whoever embeds it sends the file's bytes as well.

    `load` reads type and bytes, no more than `most`. Raises ProviderError where the file is not what was indexed.
    """

    __slots__ = ("load", "most")
    load: Callable[[], tuple[str, bytes]]
    most: int

    def __new__(cls, label: str, most: int, load: Callable[[], tuple[str, bytes]]) -> MediaText:
        """Join `label` and what comes with it."""
        text = super().__new__(cls, label)
        text.most, text.load = most, load
        return text


class Provider:
    """Turns text into vectors. Safe to call from several threads."""

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that is embedded whole; longer chunks are split before they get here."""
        return 8000

    @property
    def identity_known(self) -> bool:
        """Whether `identity` answers without loading a model or asking a server."""
        return True

    @property
    def detail(self) -> str:
        """How it works, in a few words for the screen."""
        return ""

    @property
    def identity(self) -> Identity:
        """The space of its vectors; the first time it may load a model or ask a server how long they are.

        Raises ProviderError when that fails, and Cancelled after `close`.
        """
        raise NotImplementedError

    def expected(self, space: Identity) -> Identity:
        """Return the space as far as can be told without asking anybody, completed by that of an index."""
        del space
        return self.identity

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims): unit vectors, or zeros for a text without any token.

        Raises ProviderError, and Cancelled after `close`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what it holds, and end at once what it does for other threads."""


# --- what an answer holds --------------------------------------------------------------------------------------------


class Malformed(ValueError):
    """An answer that must not be stored; its text completes the sentence "answered with ..."."""


class NoDirection(Malformed):
    """Vectors of the right length that point nowhere; `every` one of the answer, or some of them."""

    def __init__(self, message: str, every: bool) -> None:
        super().__init__(message)
        self.every = every


def members(answer: object, name: str, member: str = "") -> list[object]:
    """Return the list called `name` in an answer, of each row its `member`, by the rows' `index` where they have one.

    Raises Malformed.
    """
    rows = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise Malformed(f"JSON that has no list {name!r}")
    if not member:
        return rows
    indexed = {row["index"]: row for row in rows if isinstance(row, dict) and isinstance(row.get("index"), int)}
    if indexed:
        if set(indexed) != set(range(len(rows))):
            raise Malformed("rows whose indexes are not 0, 1, 2, ...")
        rows = [indexed[at] for at in range(len(rows))]
    if not all(isinstance(row, dict) and member in row for row in rows):
        raise Malformed(f"rows without {member}")
    return [row[member] for row in rows]


def unit_vectors(rows: list[object], count: int, dims: int | None) -> Vectors:
    """Make float32 (count, dims) of unit vectors from rows of numbers. Raises Malformed, NoDirection."""
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
        message = "a vector of zeros only" if np.isfinite(largest).all() else "vectors that hold NaN or infinity"
        raise NoDirection(message, every=not points.any())
    values /= largest
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)


def in_rows(done: Mapping[int, Vectors], count: int, dims: int) -> Vectors:
    """Return the vectors of `done` by position, float32 (count, dims); zeros where there is none."""
    import numpy as np

    vectors = np.zeros((count, dims), np.float32)
    for at, row in done.items():
        vectors[at] = row
    return vectors
