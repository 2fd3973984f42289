"""What is read of OpenClaw's index: plain values, and the record it keeps of how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from memory_tui.index import schema

T = TypeVar("T")
Era = Literal["own file", "agent database"]
Failure = Literal["missing", "locked", "damaged", "unknown schema", "unreadable"]
"""Every way in which their index can be out of reach; a comparison has the state ok."""
Key = tuple[str, str]
"""Source (memory or sessions) and stored path of a file."""


@dataclass(frozen=True, slots=True)
class TheirProblem:
    """Why their index cannot be compared; an unknown schema is shown by the names of its `tables`."""

    path: str
    state: Failure
    detail: str
    next_step: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TheirIdentity:
    """What they recorded to have made the index with; empty or None where they did not."""

    provider: str
    model: str
    provider_key: str
    sources: tuple[str, ...]
    scope_hash: str
    chunk_tokens: int | None
    chunk_overlap: int | None
    vector_dims: int | None
    fts_tokenizer: str
    chunking_version: int | None
    provenance_version: int | None

    @property
    def embeds(self) -> bool:
        """Whether chunks are meant to have vectors."""
        return bool(self.provider) and self.provider != schema.KEYWORDS_ONLY[0]


class TheirFile(NamedTuple):
    """A file row: SHA-256 of the text (empty when it waits to be indexed again), size in bytes."""

    hash: str
    size: int


class TheirChunk(NamedTuple):
    """A chunk row: whether it holds an embedding, and whether the vec0 table has it (None without that table)."""

    chunk_id: str
    start_line: int
    end_line: int
    hash: str
    model: str
    embedded: bool
    in_vec0: bool | None


@dataclass(frozen=True, slots=True)
class TheirCounts:
    """How much is in their index; None for a table that is not there.

    `sources` maps a source to its files, `embedded` counts chunks with an embedding, `vectors` rows of the vec0
    table of `vector_dims`, `keyword_rows` those of the full-text table, `cached` embeddings in the cache.
    """

    sources: Mapping[str, int]
    files: int
    chunks: int
    embedded: int
    vectors: int | None
    vector_dims: int | None
    keyword_rows: int | None
    cached: int | None


@dataclass(frozen=True, slots=True)
class TheirIndex:
    """Their whole index at one moment; `revision` counts its changes, where they count them."""

    path: str
    era: Era
    identity: TheirIdentity | None
    files: Mapping[Key, TheirFile]
    chunks: Mapping[Key, tuple[TheirChunk, ...]]
    counts: TheirCounts
    revision: int | None
    user_version: int
    remarks: tuple[str, ...]


def identity(text: object, remarks: list[str]) -> TheirIdentity | None:
    """The record in `text`; what cannot be understood is told in `remarks`."""
    try:
        fields = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        remarks.append(f"Its record of how it was made ({schema.RECIPE}) cannot be understood.")
        return None

    def checked(name: str, kind: type[T]) -> T | None:
        value = fields.get(name)
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        if value is not None:
            remarks.append(f"Its record says {json.dumps(value)[:40]} as {name}, which cannot be.")
        return None

    sources: list[Any] = checked("sources", list) or []
    return TheirIdentity(
        provider=checked("provider", str) or "",
        model=checked("model", str) or "",
        provider_key=checked("providerKey", str) or "",
        sources=tuple(map(str, sources)),
        scope_hash=checked("scopeHash", str) or "",
        chunk_tokens=checked("chunkTokens", int),
        chunk_overlap=checked("chunkOverlap", int),
        vector_dims=checked("vectorDims", int),
        fts_tokenizer=checked("ftsTokenizer", str) or "",
        chunking_version=checked("chunkingVersion", int),
        provenance_version=checked("provenanceVersion", int),
    )
