"""The formats of secret keys, as their makers document them, in formats.toml beside this module."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple


class KeyFormat(NamedTuple):
    """How the keys of a maker look: a match holds one of `holds`, in lower case; group 1, or all of it, is the key.

    A key begins where a word does, unless it is so telling that it counts `anywhere`.
    """

    kind: str
    holds: tuple[str, ...]
    pattern: str
    anywhere: bool = False


BASIC = "Basic Auth Credentials"
TOKEN = "JSON Web Token"
PRIVATE = "Private Key"


@cache
def formats() -> tuple[KeyFormat, ...]:
    """Return every format, read once."""
    tables = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
    return tuple(
        KeyFormat(kind, tuple(holds), pattern, name == "anywhere")
        for name in ("at_words", "anywhere")
        for kind, holds, pattern in tables[name]
    )
