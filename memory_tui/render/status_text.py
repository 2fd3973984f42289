"""The status as lines of text. It covers workspace, index, provider and freshness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line
from memory_tui.engine.status import Status, VectorSearch, WordSearch
from memory_tui.openclaw.trust import TrustReport


def _made_by(value: Status) -> str:
    """Whose vectors the index holds."""
    if value.provider not in ("", "none"):
        return f"{value.provider} {value.model}".rstrip()
    if value.files or value.requested_provider == "none":
        return "no provider, words alone"
    return "no provider yet, nothing is indexed"


def _vectors(value: Status) -> str:
    """Who compares vectors; of those that no question is compared with, that they wait."""
    if value.embedded and not value.who.answers:
        return f"not compared now, {value.vector.engine}"
    return _part(value.vector, value.vector.load_error)


def lines(value: Status) -> Iterator[str]:
    """Yield the state, a label and its words a line, then every note that is not indexed as it is."""
    fresh = value.freshness
    rows = [
        ("Agent", value.agent_id + (f", of {', '.join(value.agents)}" if len(value.agents) > 1 else "")),
        ("Workspace", value.workspace_dir),
        *([("Backend", value.backend_state)] if value.custom is not None else []),
        ("Profile", f"{value.profile} ({value.profile_origin})"),
        ("Provider", f"{value.requested_provider} ({value.provider_origin})"),
        ("Who answers", value.who.sentence),
        ("Index made by", _made_by(value)),
        ("Indexed", f"{value.files}/{fresh.total} files, {plural(value.chunks, 'chunk')}"),
        ("Freshness", _freshness(value)),
        ("Store", f"{value.db_path} ({value.db_bytes / 1e6:.1f} MB; deleting it loses nothing but time)"),
        ("Vector", _vectors(value)),
        ("Text", _part(value.fts, value.fts.error)),
        (
            "Cache",
            f"{plural(value.cache.entries, 'vector')}, {value.cache.bytes / 1e6:.1f} MB, "
            f"{plural(value.cache.hits, 'hit')}",
        ),
        ("Levels", value.levels.sentence),
        ("Configuration", value.config_path or "none"),
        ("Kept by", _keeper(value)),
        *([("Trust", trust_summary(value.trust))] if value.trust and value.trust.ledger else []),
    ]
    for label, words in rows:
        yield f"{label + ':':<16}{one_line(str(words))}"
    for root in value.roots:
        if root.state != "there":
            yield f"  {root.state}: {one_line(root.path)}  {one_line(root.detail)}"
    for state, items in (
        ("pending", fresh.pending),
        ("failed", fresh.failed),
        ("in part", value.in_part),
        ("changed while read", fresh.unsettled),
        ("missing root", fresh.missing),
    ):
        for item in items:
            yield f"  {state}: {one_line(item.path)}  {one_line(item.detail)}"
    for left in fresh.left_out:
        yield f"  left out: {one_line(left.path)}  {one_line(left.reason)}"
    waiting = [link for link in value.links if not link.approved and value.requested_provider == "auto"]
    if waiting:
        yield (
            f"{one_line(waiting[0].name)} at {one_line(waiting[0].host)} needs your approval before it can embed "
            "notes; memory-tui index --dry-run shows what it would get."
        )
    for chunk in value.withheld:
        yield f"  not sent: {one_line(chunk.path)}:{chunk.start_line}-{chunk.end_line}  {one_line(str(chunk))}"
    for refused in value.refused:
        yield (
            f"  no vector: {one_line(refused.path)}:{refused.start_line}-{refused.end_line}  {one_line(str(refused))}"
        )
    for notice in value.notices:
        yield f"Notice: {one_line(notice.message)} {one_line(notice.next_step)}".rstrip()


def trust_summary(value: TrustReport) -> str:
    """How many notes OpenClaw trusts, in one sentence."""
    if value.problem:
        return f"{value.problem} {value.next_step}"
    counts = Counter(file.state for file in value.files)
    words = {"edited": "agent, edited since", "unrecorded": "not recorded yet", "ignored": "a link"}
    counted = ", ".join(f"{count:,} {words.get(state, state)}" for state, count in counts.most_common())
    ledger = "edits made here update the ledger" if value.approved else "the ledger is only read"
    return f"{counted or 'no note is covered'}; {ledger}"


def _freshness(value: Status) -> str:
    fresh = value.freshness
    counts = [
        (fresh.fresh, "fresh"),
        (len(fresh.pending), "pending"),
        (len(fresh.failed), "failed"),
        (len(fresh.left_out), "left out"),
    ]
    counts += [
        (len(items), word)
        for items, word in (
            (value.in_part, "of the fresh in part"),
            (fresh.unsettled, "changed while read"),
            (fresh.missing, "of a missing root"),
        )
        if items
    ]
    return ", ".join(f"{n} {word}" for n, word in counts)


def _keeper(value: Status) -> str:
    who = value.writer or value.keeper
    if who is None:
        return "nobody now; memory-tui index, or the open app, brings it up to date"
    return f"process {who.pid}{', this one' if who.ours else ''}{', writing now' if value.writer else ''}"


def _part(part: VectorSearch | WordSearch, error: str | None) -> str:
    words = "ready" if part.available else "off" if not part.enabled else "unavailable"
    return " ".join(filter(None, (words, part.engine, error)))
