"""Commands that change notes: each change is shown first; `undo` reverses it."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui.cli.common import Command, confirmed, options, positive, spoken
from memory_tui.core.errors import EditRefused, QueryError
from memory_tui.workspace.roots import named_lines

if TYPE_CHECKING:
    from memory_tui.notes.changes import Change
    from memory_tui.notes.curator import AppliedChange, Curator
    from memory_tui.notes.journal import JournalEntry
    from memory_tui.openclaw.trust import Trust


def _declare_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--dry-run", action="store_true", help="show the difference and write nothing")


def _declare_remember(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", type=spoken, help="what to remember; - reads it from standard input")
    _declare_writing(parser)


def _declare_promote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="PATH:LINE[-LINE]", help="the lines; one line stands for its whole list item")
    parser.add_argument("--to", metavar="HEADING", help="the heading, spelled roughly (default: the one that fits)")
    parser.add_argument("--move", action="store_true", help="take the lines out of the log")
    _declare_writing(parser)


def _declare_undo(parser: argparse.ArgumentParser) -> None:
    # argparse would give its mark for "no default" to the type.
    parser.add_argument("id", nargs="?", type=positive, metavar="ID", default=None, help="a change of the journal")
    parser.add_argument("--merge", action="store_true", help="keep what others wrote since, in other lines")
    _declare_writing(parser)


def _declare_journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", help="only changes of this note")
    parser.add_argument("--show", type=positive, metavar="ID", help="the difference that one change made")


def _declare_annotate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", nargs="?", metavar="PATH[:LINE]", default=None, help="an entry, or a note to list")
    parser.add_argument("--importance", type=int, choices=range(11), metavar="N", help="1 to 10; 0 takes it away")
    parser.add_argument("--triggers", metavar="PHRASES", help="phrases apart by commas; '' takes them away")
    parser.add_argument("--project", metavar="KEYS", help="keys apart by semicolons; '' takes them away")
    _declare_writing(parser)


def _declare_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="the note, which need not be there any more")
    parser.add_argument("--version", metavar="REF", help="the text to bring back, as the list names it")
    parser.add_argument(
        "--lost-lines", action="store_true", help="bring only the lost lines back, beside what came since"
    )
    _declare_writing(parser)


def _declare_archive(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", type=positive, metavar="DAYS", required=True, help="logs of more days ago")
    _declare_writing(parser)


def _curator(given: argparse.Namespace) -> Curator:
    """The curator, after what an earlier process left half done is settled."""
    from memory_tui import plan
    from memory_tui.notes.curator import curator
    from memory_tui.render import as_text

    found = curator(plan.plan(options(given)))
    try:
        settled = found.recover()
    except EditRefused:
        if given.command not in ("journal", "budget"):
            raise
        # Who only looks is shown what is there; the journal names the change that was cut off.
        settled = ()
    if not hasattr(given, "json"):
        as_text.print_lines(f"{entry.title}: {entry.reason}." for entry in settled)
    return found


def _remember(given: argparse.Namespace) -> int:
    curator = _curator(given)
    text = sys.stdin.read() if given.text == "-" else given.text
    return make(curator, curator.plan.remember(text), given)


def _promote(given: argparse.Namespace) -> int:
    path, first, last = named_lines(given.place)
    if first is None:
        raise QueryError(f"{given.place!r} names no lines.", "For instance memory/2026-01-12.md:12 or :12-14.")
    curator = _curator(given)
    spot = curator.plan.spot(path, first, last)
    return make(curator, curator.plan.promote(spot, to=getattr(given, "to", ""), move=hasattr(given, "move")), given)


def _annotate(given: argparse.Namespace) -> int:
    from memory_tui.notes.annotate import annotate, described, entries
    from memory_tui.render import as_text
    from memory_tui.workspace.annotations import annotations_of

    curator = _curator(given)
    asked = {name: getattr(given, name) for name in ("importance", "triggers", "project") if hasattr(given, name)}
    named, line, _ = named_lines(given.place or "")
    if bool(asked) != (line is not None):
        raise QueryError("An entry and its annotations belong together.", "For instance: MEMORY.md:12 --importance 8.")
    path = named or curator.plan.memory()
    data = curator.read(path)
    known = entries(data, path)
    if line is not None:
        entry = next((one for one in known if one.first <= line <= one.last), None)
        if entry is None:
            raise EditRefused(f"{given.place} is in no entry.", f"memory-tui annotate {path} lists the entries.")
        was = entry.said._asdict() | asked
        said = annotations_of(was["importance"], was["triggers"], was["project"])
        return make(curator, annotate(curator.plan, path, data, {entry.first: said}), given)
    if hasattr(given, "json"):
        as_text.print_json([to_builtins(one) | {"said": one.said._asdict()} for one in known])
    else:
        as_text.print_lines(f"{path}:{one.first}  {one.words[:60]}  ({described(one.said)})" for one in known)
        as_text.print_lines(
            [] if known else [f"{path} has no entries: lines of MEMORY.md or USER.md that begin with “- ”."]
        )
    return 0


def _restore(given: argparse.Namespace) -> int:
    import datetime as dt

    from memory_tui.notes import restore
    from memory_tui.render import as_text
    from memory_tui.workspace.roots import NoteMissing

    curator = _curator(given)
    if hasattr(given, "version"):
        lost_lines = hasattr(given, "lost_lines")
        return make(curator, restore.to_version(curator, given.path, given.version, lost_lines=lost_lines), given)
    now = curator.read(given.path)
    found = restore.versions(curator.journal, curator.git, given.path, now)
    if now is None and not found:
        raise NoteMissing(f"There is no note {given.path}, and no text of one is kept.", "Check its name.")
    if hasattr(given, "json"):
        as_text.print_json([to_builtins(version) for version in found])
        return 0
    width = max((len(version.ref) for version in found), default=0)
    as_text.print_lines(
        f"{version.ref:<{width}}  {dt.datetime.fromtimestamp(version.at).astimezone():%Y-%m-%d %H:%M}  {version.title}"
        for version in found
    )
    none = f"Neither the journal nor git has another text of {given.path}."
    as_text.print_lines(
        [f"memory-tui restore {given.path} --version REF shows what one would change." if found else none]
    )
    return 0


def _archive(given: argparse.Namespace) -> int:
    curator = _curator(given)
    return make(curator, curator.plan.archive(given.older_than), given)


def _undo(given: argparse.Namespace) -> int:
    curator = _curator(given)
    number, merging = given.id, hasattr(given, "merge")
    run = curator.undo if given.command == "undo" else curator.redo
    planned = curator.planned_undo(number) if given.command == "undo" else curator.planned_redo(number)
    if not _wanted(planned, given, curator.read_only):
        return _finish(planned, None, given)
    return _finish(planned, run(number, merging=merging), given)


def make(curator: Curator, change: Change, given: argparse.Namespace) -> int:
    """Show `change`, ask, and make it. Raises EditRefused."""
    if not _wanted(change, given, curator.read_only):
        return _finish(change, None, given)
    return _finish(change, curator.apply(change), given)


def _wanted(change: Change, given: argparse.Namespace, read_only: str = "") -> bool:
    """Show the change, and whether it is to be made."""
    from memory_tui.notes import diff
    from memory_tui.render import as_text

    if not hasattr(given, "json"):
        as_text.print_lines([change.title, *change.notes, *diff.text(change).splitlines()])
    if hasattr(given, "dry_run"):
        return False
    if read_only or confirmed("Write this?", given):
        return True
    as_text.problem(
        "Nothing was written, because nobody agreed. A script adds --yes, or --dry-run to see the difference."
    )
    return False


def _finish(change: Change, done: AppliedChange | None, given: argparse.Namespace) -> int:
    from memory_tui.notes import diff
    from memory_tui.render import as_text

    if hasattr(given, "json"):
        shown = change if done is None else done.change
        as_text.print_json(
            {
                "kind": shown.kind,
                "title": shown.title,
                "paths": list(shown.paths),
                "notes": list(change.notes),
                "diff": diff.text(shown),
                "made": done is not None,
                "id": done.entry.id if done else 0,
                "merged": list(done.merged) if done else [],
                "trust": list(done.entry.trust) if done else [],
                "untold": done.untold if done else "",
            }
        )
    elif done is not None:
        kept = f" Lines that others wrote meanwhile are kept: {', '.join(done.merged)}." if done.merged else ""
        way = f"memory-tui undo {done.entry.id} undoes it."
        again = {"undo": "memory-tui redo redoes it.", "redo": "memory-tui undo undoes it."}
        as_text.print_lines([f"Written as change {done.entry.id}; {again.get(change.kind, way)}{kept}"])
        as_text.print_lines([done.untold] if done.untold else [])
    return 0 if done is not None or hasattr(given, "dry_run") else 2


def _journal(given: argparse.Namespace) -> int:
    from memory_tui.notes import diff
    from memory_tui.render import as_text

    curator = _curator(given)
    if hasattr(given, "show"):
        entry = next((entry for entry in curator.journal.entries() if entry.id == given.show), None)
        if entry is None:
            raise EditRefused(f"The journal has no change {given.show}.", "Run memory-tui journal to list them.")
        change = curator.journal.change_of(entry)
        if hasattr(given, "json"):
            as_text.print_json({**_row(entry, _undoable(curator)), "diff": diff.text(change)})
        else:
            as_text.print_lines([_line(entry, _undoable(curator)), *diff.text(change).splitlines()])
        return 0
    path = given.path if hasattr(given, "path") else None
    entries = [entry for entry in reversed(curator.journal.entries()) if path is None or path in entry.paths]
    undoable = _undoable(curator)
    if hasattr(given, "json"):
        as_text.print_json(
            {"folder": str(curator.journal.folder), "changes": [_row(entry, undoable) for entry in entries]}
        )
    else:
        nothing = f"{path} was not changed with memory-tui." if path else "No note was changed yet."
        as_text.print_lines([_line(entry, undoable) for entry in entries] or [nothing])
    return 0


def _undoable(curator: Curator) -> set[int]:
    return {entry.id for entry in curator.undoable()}


def _row(entry: JournalEntry, undoable: set[int]) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": entry.at,
        "state": entry.state,
        "kind": entry.kind,
        "title": entry.title,
        "paths": list(dict.fromkeys(entry.paths)),
        "undoes": entry.undoes,
        "redoes": entry.redoes,
        "undoable": entry.id in undoable,
        "reason": entry.reason,
    }


def _line(entry: JournalEntry, undoable: set[int]) -> str:
    import datetime as dt

    from memory_tui.notes.journal import LOST

    when = dt.datetime.fromtimestamp(entry.at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    state = {"intent": " (cut off)", "refused": " (not made)", "draft": " (draft that was not written)"}.get(
        entry.state, ""
    )
    if entry.state == "done" and not (entry.undoes or entry.redoes or entry.kind == LOST or entry.id in undoable):
        state = " (undone)"
    return f"{entry.id:>4}  {when}  {entry.title}{state}{f': {entry.reason}' if entry.reason else ''}"


def _budget(given: argparse.Namespace) -> int:
    from msgspec import to_builtins

    from memory_tui import plan
    from memory_tui.notes import budget
    from memory_tui.render import as_text

    curator = _curator(given)
    name, found = curator.plan.memory(), curator.plan.budget()
    prompt = budget.prompt_of(plan.plan(options(given)), curator.trust, curator.plan.clock())
    if hasattr(given, "json"):
        hosts = [{**to_builtins(each), "sentence": each.sentence} for each in found]
        as_text.print_json({"path": name, "hosts": hosts, "prompt": to_builtins(prompt) if prompt else None})
    else:
        first = found[0]
        as_text.print_lines(
            [
                f"{name}: {first.lines:,} lines, {first.bytes:,} bytes, about {first.tokens:,} tokens",
                *(f"{each.sentence} The limit is of {each.host.origin}." for each in found),
                *([prompt.sentence, *(f"  {file.sentence}" for file in prompt.files)] if prompt else []),
            ]
        )
    return 0


def _declare_trust(parser: argparse.ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--approve", action="store_true", help="let edits made here update the ledger's hash")
    one.add_argument("--withdraw", action="store_true", help="only read the ledger from now on")
    one.add_argument("--repair", metavar="PATH", help="show a whole note, and trust it again by its name")


def _trust(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text, host_text
    from memory_tui.workspace.roots import scan

    curator = _curator(given)
    trust, now = curator.trust, curator.plan.clock()
    if trust is None or (trust.ledger(now).absent and not hasattr(given, "withdraw")):
        raise EditRefused("OpenClaw keeps no ledger of these notes.", "It does from 2026.8 on, in its state folder.")
    if not {"repair", "approve", "withdraw"}.isdisjoint(vars(given)) and curator.read_only:
        raise EditRefused(curator.read_only, "Start without --read-only to change the ledger.")
    if hasattr(given, "repair"):
        return _repair(trust, curator, given)
    if hasattr(given, "approve"):
        trust.approve("trust --approve")
    if hasattr(given, "withdraw"):
        trust.withdraw()
    found = trust.report((note.path for note in scan(curator.roots).found), now)
    if hasattr(given, "json"):
        as_text.print_json(to_builtins(found))
    else:
        as_text.print_lines(host_text.trust_lines(found))
    return 1 if found.problem else 0


def _repair(trust: Trust, curator: Curator, given: argparse.Namespace) -> int:
    """Write the class agent back for one note, after its whole text was shown and its name typed."""
    from memory_tui.render import as_text

    path = given.repair
    found, data = trust.of(path, curator.plan.clock()), curator.read(path)
    if found is None or data is None:
        raise EditRefused(f"OpenClaw's ledger does not cover a note {path}.", "memory-tui trust lists the notes.")
    if found.state not in ("untrusted", "edited"):
        raise EditRefused(f"{path} needs no repair: {found.words}.", "Nothing was changed.")
    as_text.print_lines([f"{path}: {found.words}.", "", *data.decode("utf-8", "replace").split("\n")])
    as_text.print_lines([f"Everything above goes into the agent's prompt again. To trust it, type its name: {path}"])
    if sys.stdin.readline().strip() != path:
        raise EditRefused("Nothing was changed: the name was not typed.", f"It is {path}.")
    number = curator.repair(path, data).id
    as_text.print_lines([f"{path} is trusted again (agent); memory-tui undo {number} undoes it."])
    return 0


def _dreaming(given: argparse.Namespace) -> int:
    from memory_tui import plan
    from memory_tui.config import places
    from memory_tui.openclaw import dreaming
    from memory_tui.render import as_text, host_text

    made = plan.plan(options(given))
    now = time.time() if made.now is None else made.now
    found = dreaming.promotions(made.roots.workspace, places.state_database(), now)
    if hasattr(given, "json"):
        as_text.print_json({"problem": found.problem, "passages": [to_builtins(one) for one in found.passages]})
    else:
        as_text.print_lines(host_text.promotions(found))
    return 1 if found.problem else 0


COMMANDS: dict[str, Command] = {
    "dreaming": Command(_dreaming),
    "trust": Command(_trust, _declare_trust),
    "remember": Command(_remember, _declare_remember),
    "promote": Command(_promote, _declare_promote),
    "undo": Command(_undo, _declare_undo),
    "redo": Command(_undo, _declare_undo),
    "journal": Command(_journal, _declare_journal),
    "budget": Command(_budget),
    "annotate": Command(_annotate, _declare_annotate),
    "restore": Command(_restore, _declare_restore),
    "archive": Command(_archive, _declare_archive),
}
