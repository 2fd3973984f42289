"""A provider for tests: vectors are hashes of words."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from memory_tui.core.jsstring import well_formed
from memory_tui.providers.base import Health, Identity, Vectors, identity_key
from memory_tui.providers.registry import ProviderRow

DIMS = 256
MODEL = "hash-256"
MAX_INPUT_BYTES = 8000

_TOKEN = re.compile(r"[a-z0-9_]+|[^\x00-\x7f]")


@lru_cache(maxsize=65_536)
def _axis(token: str) -> tuple[int, float]:
    """The axis that `token` counts on, and in which direction."""
    n = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")
    return n % DIMS, 1.0 if n >> 63 == 0 else -1.0


def hash_vector(text: str) -> Vectors:
    """Float32 unit vector (256,) of `text`, or zeros when it holds no token."""
    import numpy as np

    vector = np.zeros(DIMS)
    for token in _TOKEN.findall(well_formed(text).lower()):
        if not token.isspace():
            axis, sign = _axis(token)
            vector[axis] += sign
    length = np.sqrt(vector @ vector)
    return (vector / length if length > 0 else vector).astype(np.float32)


class Scripted:
    """The provider "scripted": shared words make texts alike, and nothing else does."""

    def __init__(self) -> None:
        self._last_ms = 0.0

    @property
    def identity(self) -> Identity:
        """The space of the hash vectors."""
        return Identity("scripted", MODEL, identity_key("scripted", MODEL), DIMS)

    @property
    def max_input_bytes(self) -> int:
        """A limit on chunks, as other providers have; longer text is embedded whole too."""
        return MAX_INPUT_BYTES

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:  # noqa: ARG002
        """Float32 array (len(texts), 256) of unit vectors, or zeros for a text without any token."""
        import numpy as np

        start = time.perf_counter()
        vectors = np.zeros((len(texts), DIMS), np.float32)
        for at, text in enumerate(texts):
            vectors[at] = hash_vector(text)
        self._last_ms = (time.perf_counter() - start) * 1000
        return vectors

    def health(self) -> Health:
        """Always well."""
        return Health(True, "hash vectors, no model", self._last_ms)

    def close(self) -> None:
        """Nothing to release."""


SCRIPTED = ProviderRow("scripted", "scripted vectors", make=lambda _: Scripted())
