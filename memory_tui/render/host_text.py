"""What OpenClaw has on disk, as text. That is its configuration and its own index."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from memory_tui.backends.qmd import QmdAnswer
from memory_tui.formatting import plural
from memory_tui.openclaw import prompt
from memory_tui.openclaw.compare import HostProblem, IndexComparison
from memory_tui.openclaw.prompt import Triggered
from memory_tui.openclaw.trust import TrustReport
from memory_tui.plan import ConfigSummary
from memory_tui.sanitize import one_line, safe

_ERAS: Mapping[str, str] = {
    "own file": "a file of its own, as OpenClaw had it before 2026.7",
    "agent database": "tables in the agent's database, as OpenClaw has it from 2026.7",
}


def statements(value: IndexComparison) -> Iterator[tuple[str, str]]:
    """Yield label and words of everything that is known of the whole index."""

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
    yield "State", value.standing
    yield "Chunks", f"{counts.chunks:,}, {counts.embedded:,} with a vector, {vectors}, {words}"
    yield "Cache", "none" if counts.cached is None else plural(counts.cached, "vector")
    yield "Files", ", ".join(f"{n:,} {word}" for word, n in value.summary.items() if n) or "none"
    if value.revision is not None:
        yield "Revision", str(value.revision)


def objections(value: IndexComparison) -> Iterator[tuple[str, str]]:
    """Yield label and words of what is not as configured, and of what a person has to know besides."""
    for mismatch in value.mismatches:
        yield "Not as configured", f"{mismatch.code} is {mismatch.theirs}, wanted: {mismatch.wanted}"
    for sentence in (*([value.consequence] if value.consequence else []), *value.remarks):
        yield "Notice", sentence


def refusal(value: HostProblem) -> Iterator[tuple[str, str]]:
    """Yield label and words of why there is nothing to compare."""
    yield "Their index", value.path
    yield "State", f"{value.state}: {value.detail} {value.next_step}".rstrip()
    if value.tables:
        yield "Tables", ", ".join(value.tables)


def compared(value: IndexComparison | HostProblem) -> Iterator[str]:
    """Yield what OpenClaw's own index holds of the notes; of one that cannot be compared, its tables."""
    if not isinstance(value, IndexComparison):
        yield from [f"Tables: {', '.join(value.tables)}"] if value.tables else []
        return
    for label, text in statements(value):
        yield f"{label + ':':<16}{one_line(text)}"
    for label, text in objections(value):
        yield f"{label}: {one_line(text)}"
    for file in value.files:
        if file.differences or not file.compared:
            yield f"  {', '.join(file.differences) or 'not compared'}: {file.path}  {one_line(file.detail)}"


def config(value: ConfigSummary) -> Iterator[str]:
    """Yield every documented value of the configuration, with where it came from and what it does."""
    agents = [f"{agent.id} ({'default, ' if agent.default else ''}{agent.workspace})" for agent in value.agents]
    head = [
        ("Configuration", f"{value.path or 'none'}{value.layout and f' ({value.layout})'}"),
        ("Profile", f"{value.profile} ({value.profile_origin})"),
        ("Agent", value.agent),
        *(("Agents" if not i else "", text) for i, text in enumerate(agents)),
        ("Workspace", value.workspace),
        ("Index", value.index),
        ("OpenClaw's index", value.openclaw_index),
    ]
    for label, text in head:
        yield f"{label + ':' if label else '':<18}{one_line(text)}"
    yield from (f"Problem: {one_line(str(problem))}" for problem in value.problems)
    if value.migrations:
        yield "openclaw doctor --fix of 2026.9 would change the file (memory-tui does not):"
    yield from (f"  line {step.place.line}: {one_line(step.sentence)}" for step in value.migrations)
    for row in value.values:
        value_text = (
            "not set"
            if row.value is None
            else row.value
            if isinstance(row.value, str)
            else json.dumps(row.value, ensure_ascii=False)
        )
        yield ""
        yield f"{row.key} = {one_line(value_text, 100)}  ({one_line(row.origin)})"
        effect = "Takes effect" if row.takes_effect else f"Effect: {one_line(row.effect)}"
        retired = f" Retired in 2026.9: {one_line(row.retired)}." if row.retired else ""
        yield f"    {one_line(row.meaning)}. {effect}.{retired}"


def injected(value: Sequence[Triggered]) -> Iterator[str]:
    """Yield what is injected for a message, and why the other entries are not."""
    for each in value:
        entry = each.entry
        if not each.phrase_score:
            continue
        yield f"{each.match:.3f} {each.outcome}: {entry.path}#L{entry.start_line}-L{entry.end_line}"
        yield f"    0.8 x {each.phrase_score:.3f} for {each.phrase!r} + 0.2 x {entry.search:.3f} for the search"
        if each.outcome != "injected":
            yield f"    {one_line(each.reason)}"
    others = sum(not each.phrase_score for each in value)
    yield f"{sum(each.outcome == 'injected' for each in value)} injected; the line is {prompt.LINE}."
    if others:
        yield f"{plural(others, 'entry')} with triggers {'has' if others == 1 else 'have'} no word of the message."


def trust_lines(value: TrustReport) -> Iterator[str]:
    """Yield the trust of every note, and what can be done."""
    yield f"Ledger: {value.ledger}"
    yield f"Trust: {trust_summary(value)}."
    yield from value.remarks
    for file in value.files:
        yield f"  {file.path}: {file.words}"


def trust_summary(value: TrustReport) -> str:
    """Return how many notes OpenClaw trusts, in one sentence."""
    if value.problem:
        return f"{value.problem} {value.next_step}"
    counts = Counter(file.state for file in value.files)
    words = {"edited": "agent, edited since", "unrecorded": "not recorded yet", "ignored": "a link"}
    counted = ", ".join(f"{count:,} {words.get(state, state)}" for state, count in counts.most_common())
    ledger = "edits made here update the ledger" if value.approved else "the ledger is only read"
    return f"{counted or 'no note is covered'}; {ledger}"


# --- QMD -----------------------------------------------------------------------------------------------------------


def qmd_answer(value: QmdAnswer, *, explain: bool) -> dict[str, Any]:
    """Return what `search --json` prints of an answer of QMD."""
    data: dict[str, Any] = {
        "results": [hit.as_dict() for hit in value.hits],
        "backend": "qmd",
        "provider": "qmd",
        "model": "qmd",
        "mode": value.mode,
        "fallback": None,
        "empty": to_builtins(value.empty),
        "notices": [
            {"code": "qmd", "kind": item.kind, "message": item.sentence, "nextStep": ""} for item in value.remarks
        ],
    }
    return {**data, "trace": value.trace()} if explain else data


def qmd_lines(value: QmdAnswer, *, explain: bool) -> Iterator[str]:
    """Yield the hits by QMD's rank, with its number where the answer is to be explained."""
    for hit in value.hits:
        yield f"#{hit.rank} {one_line(hit.as_dict()['citation'])}"
        if explain:
            yield f"    QMD's own score, not comparable: {hit.score:g}; collection {one_line(hit.collection)}"
        yield safe(hit.snippet, keep_newlines=True).strip("\n")
        yield ""
    if not value.hits:
        yield f"No matches. {value.empty.sentence if value.empty is not None else ''}".rstrip()
    if explain:
        yield f"QMD {value.mode}, {value.ms:.0f} ms, collections {', '.join(value.collections) or 'none'}"
        yield f"QMD's index as of {qmd_updated(value.updated)}; {plural(value.behind, 'file')} changed since"


def qmd_updated(at: float) -> str:
    """Return when QMD's index was last updated."""
    return f"{dt.datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}" if at else "never"
