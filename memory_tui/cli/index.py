"""Commands about the index: bring it up to date, and tell what it holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from memory_tui.cancel import Stopped
from memory_tui.cli import provider
from memory_tui.cli.context import opened
from memory_tui.cli.output import print_lines, say, show, tell, waiting
from memory_tui.engine.engine import Engine
from memory_tui.engine.status import Status, VectorSearch, WordSearch
from memory_tui.explain import trace_json
from memory_tui.formatting import plural
from memory_tui.index.sync import SyncReport
from memory_tui.render import host_text
from memory_tui.sanitize import one_line


def index(args: argparse.Namespace) -> int:
    """Bring the index up to date, or show what that would send."""
    with opened(args) as engine:
        engine.plan.require_enabled()
        if args.dry_run:
            return provider.dry_run(engine, as_json=args.json)
        if args.approve_extension:
            library, named_by = engine.index.opener.approve_extension("index --approve-extension")
            say(
                f"{library} is run as sqlite-vec, which {named_by} names: approved. "
                "To withdraw: memory-tui provider --revoke sqlite-vec."
            )
        approved = provider.approve_for_index(engine, args)
        if approved is not None and not args.json:
            does = engine.providers.may_get(approved.provider, approved.host)
            print_lines([f"Approved: {does} To withdraw: memory-tui provider --revoke."])
        outcome = _synced(engine, accepts=args.accept_shrink, force=args.force)
        data = {**trace_json.plain(outcome), "fallback": engine.providers.who().instead}
        show(args, data, [_done(engine, outcome)])
        if not args.json:
            for path, reason in outcome.failed:
                sys.stderr.write(f"  {one_line(path)}: {one_line(reason)}\n")
            for remark in engine.notices():
                tell(remark)
            for text in dict.fromkeys(filter(None, (outcome.error, outcome.postponed, outcome.unshared))):
                say(text)
        return 1 if outcome.error or outcome.failed else 0


def _synced(engine: Engine, *, accepts: bool = False, force: bool = False) -> SyncReport:
    """Bring the index up to date; whoever stops it is told what becomes of the work."""
    try:
        with waiting("Indexing"):
            if not accepts:
                return engine.index.sync(force=force, reason="cli")
            outcome = engine.index.sync(reason="accept", accept_shrink=True)
            return engine.index.sync(force=True, reason="cli") if force else outcome
    except Stopped as stopped:
        stopped.more = "What is indexed so far stays; memory-tui index goes on from there."
        raise


def _done(engine: Engine, outcome: SyncReport) -> str:
    """Return what an index run did, as a sentence."""
    done = [f"{plural(outcome.indexed, 'file')} indexed"]
    done += [f"{n} {word}" for n, word in ((outcome.removed, "removed"), (len(outcome.failed), "failed")) if n]
    done.append(f"{plural(outcome.embedded, 'text')} embedded")
    if outcome.shared and engine.plan.sibling is not None:
        done.append(f"{plural(outcome.shared, 'vector')} reused from {engine.plan.sibling.name}")
    return f"{', '.join(done)} in {outcome.seconds:.1f} s."


def status(args: argparse.Namespace) -> int:
    """Tell what is indexed, by what, and what is missing."""
    with opened(args) as engine:
        outcome = _synced(engine) if args.sync else None
        now = engine.status(deep=args.sync or args.deep)
        show(args, lambda: trace_json.plain(now), status_lines(now))
        if outcome and outcome.error:
            say(outcome.error)
    return 1 if outcome and (outcome.error or outcome.failed) else 0


# --- the status in words -------------------------------------------------------------------------------------------


def _made_by(value: Status) -> str:
    """Return whose vectors the index holds."""
    if value.provider not in ("", "none"):
        return f"{value.provider} {value.model}".rstrip()
    if value.files or value.requested_provider == "none":
        return "no provider, words alone"
    return "no provider yet, nothing is indexed"


def _vectors(value: Status) -> str:
    """Return who compares vectors, or that no question is compared with them now."""
    if value.embedded and not value.who.answers:
        return f"not compared now, {value.vector.engine}"
    return _part(value.vector, value.vector.load_error)


def status_lines(value: Status) -> Iterator[str]:
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
        *([("Trust", host_text.trust_summary(value.trust))] if value.trust and value.trust.ledger else []),
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
