"""Long-term memories as lines of text or as JSON-ready data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line

if TYPE_CHECKING:
    from memory_tui.ltm.entry import MemoryEntry
    from memory_tui.ltm.entry_journal import EntryChange
    from memory_tui.ltm.memories import EntrySearch, Forgotten, Memories, StoredEntry
    from memory_tui.ltm.vector_space import SpaceProof
    from memory_tui.recalls.recall_log import RecallEntry


def entry(one: MemoryEntry) -> str:
    """An entry on one line: the start of its id, its day, category, importance, text."""
    return f"{one.id[:8]}  {day(one)}  {one.category:<10}  {one.importance:.1f}  {one_line(one.text)}"


def day(one: MemoryEntry) -> str:
    """The day on which an entry was stored."""
    try:
        return dt.datetime.fromtimestamp(one.created_at / 1000, dt.UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return "no date   "


def page(entries: Sequence[MemoryEntry], total: int, offset: int) -> Iterator[str]:
    """A page of entries, and how many there are."""
    yield from map(entry, entries)
    last = offset + len(entries)
    yield f"{plural(total, 'entry')}" + (f", {offset + 1:,} to {last:,} shown" if entries and last < total else "")


def search_data(found: EntrySearch) -> dict[str, Any]:
    """What `ltm search --json` prints."""
    return {
        "query": found.query,
        "minScore": found.least,
        "results": [hit.as_dict() for hit in found.hits],
        "misses": [miss.as_dict() for miss in found.misses],
        "model": proof_data(found.proof),
    }


def proof_data(proof: SpaceProof) -> dict[str, Any]:
    """How it is known who made the vectors."""
    return {"how": proof.how, "compared": proof.compared, "cosine": round(proof.cosine, 4)}


def search(found: EntrySearch) -> Iterator[str]:
    """Hits with score and distance, then the nearest of the others with the reason."""
    for hit in found.hits:
        yield f"{hit.score:.3f}  (distance {hit.distance:.3f})  {entry(hit.entry)}"
    if not found.hits:
        yield f"No entry reaches the score {found.least:g}."
    if found.misses:
        yield ""
        yield "Not in the answer:"
        yield from (f"{miss.score:.3f}  {entry(miss.entry)}  {miss.why_not}" for miss in found.misses[:5])


def stored(done: StoredEntry) -> Iterator[str]:
    """What became of a text."""
    if done.action == "created":
        yield f"Stored: {entry(done.entry)}"
        yield "To undo: memory-tui ltm undo."
    else:
        yield f"Not stored: it repeats {done.entry.id} (score {done.score:.3f}): {one_line(done.entry.text)}"


def forgotten(done: Forgotten, command: str) -> Iterator[str]:
    """What was forgotten, or what could have been meant; `command` and an id forget one of those."""
    for one in done.entries:
        yield f"Forgotten: {entry(one)}"
    if done.entries:
        yield "To undo: memory-tui ltm undo."
    elif done.candidates:
        yield "Nothing is forgotten. To forget one of these:"
        for near in done.candidates:
            yield f"{near.score:.3f}  {entry(near.entry)}"
            yield f"       {one_line(command)} {near.entry.id}"
    else:
        yield "Nothing is forgotten: no entry is near enough."


def change(done: EntryChange) -> str:
    """A change of entries on one line."""
    at = dt.datetime.fromtimestamp(done.at, dt.UTC).strftime("%Y-%m-%d %H:%M")
    state = "" if done.state == "done" else f" ({done.state})"
    return f"{done.id:>4}  {at}  {done.kind:<6}  {plural(len(done.ids), 'entry')}  {one_line(done.title)}{state}"


def stats_data(memories: Memories) -> dict[str, Any]:
    """What is known of a table and of its entries."""
    import numpy as np

    from memory_tui.ltm import entry as rules
    from memory_tui.ltm import entry_table

    table = memories.table()
    facts = table.facts()
    rows = table.columns((*entry_table.SHOWN, "vector"))
    entries = entry_table.entries_of(rows)
    fine = np.isfinite(entry_table.vectors_of(rows, table.dims)).all(axis=1)
    ids = [one.id for one in entries]
    times = [one.created_at for one in entries if one.created_at > 0]
    return {
        "location": memories.location.shown,
        "namedBy": memories.location.named_by,
        "chosen": memories.rules.chosen,
        "writable": memories.writable,
        "entries": facts.rows,
        "categories": {name: sum(one.category == name for one in entries) for name in rules.CATEGORIES}
        | {"unknown": sum(one.category not in rules.CATEGORIES for one in entries)},
        "oldest": min(times, default=None),
        "newest": max(times, default=None),
        "dimensions": facts.dims,
        "model": dict(table.recorded) or None,
        "keyDeclared": facts.key_declared,
        "columns": list(facts.columns),
        "version": facts.version,
        "bytes": facts.size,
        "files": facts.parts,
        "withoutVector": int((~fine).sum()),
        "withoutId": sum(not rules.is_id(one) for one in ids),
        "repeatedIds": len(ids) - len(set(ids)),
        "changes": len(memories.journal.changes()),
        "journal": str(memories.journal.file),
    }


def stats(found: dict[str, Any]) -> Iterator[str]:
    """The same for a person."""
    yield f"{found['location']} (named by {found['namedBy']})"
    counted = ", ".join(f"{name} {count:,}" for name, count in found["categories"].items() if count)
    yield f"{plural(found['entries'], 'entry')}{': ' if counted else ''}{counted}"
    model = found["model"]
    made = f"{model['provider']} {model['model']}" if model else "an unknown model; a search compares 20 entries first"
    yield f"Vectors of {found['dimensions']:,} numbers, made by {made}"
    yield f"Version {found['version']:,}, {plural(found['files'], 'file')}, {found['bytes']:,} bytes"
    if not found["keyDeclared"]:
        yield "The id is not declared as the key: two programs that write at once may add an entry twice."
    for name, what in (
        ("withoutVector", "no vector"),
        ("withoutId", "no UUID as id"),
        ("repeatedIds", "a repeated id"),
    ):
        if found[name]:
            yield f"{plural(found[name], 'entry')} with {what}"
    yield (
        "memory-tui may write here." if found["writable"] else "Only read. To agree to writing: memory-tui ltm approve."
    )


def recalled_again(logged: RecallEntry, found: EntrySearch) -> Iterator[str]:
    """What an agent got of the long-term memories, and what it would get now: ids with scores."""
    from memory_tui.recalls.recalled_lines import at_place, moment

    yield f"{logged.id}  {moment(logged.at)}  {one_line(logged.client)}".rstrip()
    yield f"Asked the long-term memories: {one_line(logged.query)}"
    if logged.outcome:
        yield f"Outcome: {one_line(logged.outcome)}"
    then = [(hit.path, hit.score) for hit in logged.hits]
    now = [(one.entry.id, one.score) for one in found.hits]
    same = [key for key, _ in then] == [key for key, _ in now]
    yield "The same would come now, in the same order." if same else "Now other memories would come."
    places = [{key: (place, score) for place, (key, score) in enumerate(ranked, 1)} for ranked in (then, now)]
    for key in dict.fromkeys(key for key, _ in (*now, *then)):
        was, became = (at_place(*at[key]) if key in at else "" for at in places)
        yield f"  {one_line(key, 40)}  then {was or 'not delivered'}, now {became or 'not recalled'}"


def recalled_again_data(logged: RecallEntry, found: EntrySearch) -> dict[str, Any]:
    """The same as JSON-ready data."""
    from memory_tui.explain.trace_json import plain

    return {"entry": plain(logged), "now": [{"id": one.entry.id, "score": one.score} for one in found.hits]}
