"""A comparison with OpenClaw's own index in words: the same statements for the command line and the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memory_tui.explain import wording

if TYPE_CHECKING:
    from memory_tui.index.compare import Comparison
    from memory_tui.index.their_record import TheirProblem

_ERAS: Mapping[str, str] = {
    "own file": "a file of its own, as OpenClaw had it before 2026.7",
    "agent database": "tables in the agent's database, as OpenClaw has it from 2026.7",
}


def statements(value: Comparison) -> Iterator[tuple[str, str]]:
    """Label and words of everything that is known of the whole index."""
    identity, counts = value.identity, value.counts
    yield "Their index", value.path
    yield "Layout", _ERAS[value.era]
    if identity is not None:
        version = f", version {identity.chunking_version}" if identity.chunking_version else ""
        yield "Provider", identity.provider or "unknown"
        yield "Model", identity.model or "unknown"
        yield "Sources", ", ".join(identity.sources)
        yield "Chunking", f"{identity.chunk_tokens} tokens, overlap {identity.chunk_overlap}{version}"
    vectors = "no vec0 table" if counts.vectors is None else f"{counts.vectors:,} in vec0 ({counts.vector_dims} dims)"
    words = "no full text" if counts.keyword_rows is None else f"{counts.keyword_rows:,} in full text"
    yield "Chunks", f"{counts.chunks:,}, {counts.embedded:,} with a vector, {vectors}, {words}"
    yield "Cache", "none" if counts.cached is None else wording.plural(counts.cached, "vector")
    yield "Files", ", ".join(f"{n:,} {word}" for word, n in value.summary.items() if n) or "none"
    if value.revision is not None:
        yield "Revision", str(value.revision)


def objections(value: Comparison) -> Iterator[tuple[str, str]]:
    """Label and words of what is not as the configuration asks, and of what a person has to know besides."""
    for mismatch in value.mismatches:
        yield "Not as configured", f"{mismatch.code} is {mismatch.theirs}, wanted: {mismatch.wanted}"
    for sentence in (*([value.consequence] if value.consequence else []), *value.remarks):
        yield "Notice", sentence


def refusal(value: TheirProblem) -> Iterator[tuple[str, str]]:
    """Label and words of why there is nothing to compare."""
    yield "Their index", value.path
    yield "State", f"{value.state}: {value.detail} {value.next_step}".rstrip()
    if value.tables:
        yield "Tables", ", ".join(value.tables)
