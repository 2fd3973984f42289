"""Restoring brings back what a note held before. The text comes from the journal, from git, or from what the index last
saw of it.

A daily note that lost lines to another program has an entry of the journal, kind `lost`, with the text that the index
held of it. Nothing takes such an entry back but a restore, which is shown like any other change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import minute, plural
from memory_tui.index.index_write import LastText, lost_lines, shrank
from memory_tui.notes.changes import Change, FileChange, Lines, end_of
from memory_tui.notes.curator import Curator
from memory_tui.notes.git import History
from memory_tui.notes.journal import LOST, Journal, JournalEntry
from memory_tui.notes.merge import changed_spans

_INEXACT = "put together from the index: blank ends of lines, and annotations, may be missing"


class Version(Struct, frozen=True):
    """A text that a note had at `at` (epoch seconds).

    `ref` names it: `12` is the note after change 12 of the journal, `before-12` before it, `git:HASH` at a commit.
    """

    ref: str
    at: float
    title: str


class LostNote(Struct, frozen=True):
    """Lines that a daily note lost and still lacks; `change` is the journal's entry about it, `at` when it was found.

    `is_gone` tells that the note is not there at all.
    """

    path: str
    change: int
    at: float
    lines: tuple[str, ...]
    is_gone: bool


def versions(journal: Journal, git: History, path: str, now: bytes | None) -> list[Version]:
    """List the texts that are known of the note `path`, newest first, each once, without the one it has `now`.

    Raises EditRefused.
    """
    seen = {journal.blob_of(now)}
    rows = []
    for entry in reversed(journal.entries()):
        for file in entry.files if entry.state == "done" else ():
            for name, ref in ((file.after, f"{entry.id}"), (file.before, f"before-{entry.id}")):
                if file.path == path and name and name not in seen:
                    seen.add(name)
                    title = entry.title if ref == str(entry.id) else f"before: {entry.title}"
                    rows.append(Version(ref, entry.at, title))
    if git.top() is not None:
        rows += [Version(f"git:{commit.hash}", commit.at, f"git: {commit.subject}") for commit in git.log(path)]
    return sorted(rows, key=lambda version: -version.at)


def version_text(journal: Journal, git: History, path: str, ref: str) -> bytes:
    """The bytes that the note `path` had at the version `ref`. Raises EditRefused where there is none."""
    if ref.startswith("git:"):
        return git.text(path, ref.removeprefix("git:"))
    for entry in journal.entries():
        for file in entry.files:
            names = {f"{entry.id}": file.after, f"before-{entry.id}": file.before}
            if file.path == path and (data := journal.text(names.get(ref))) is not None:
                return data
    what = f"There is no version {ref} of {path}."
    raise EditRefused(what, f"Run memory-tui journal {path} --restore to list the versions.")


def restored(
    path: str, before: bytes, now: bytes | None, title: str, *, lost_lines: bool = False, note: str = ""
) -> Change:
    """The change that gives the note `path`, which holds `now`, the text `before`.

    With `lost_lines` it only gets the lines of it that it lacks, beside its own. Raises EditRefused where nothing would
    change.
    """
    after = together(before, now) if lost_lines and now is not None else before
    if after == now:
        has = "holds every line" if lost_lines else "has the text"
        raise EditRefused(f"{path} {has} of that version.", "Nothing was changed.")
    return Change("restore", title, (FileChange(path, now, after),), (note,) if note else ())


def together(before: bytes, now: bytes) -> bytes:
    """Return the lines of `now`, with those of `before` that it lacks where they stood. Raises EditRefused."""
    old, new = Lines.of(before), Lines.of(now)
    out: list[str] = []
    at = 0
    for a, b, c, d in changed_spans(old.texts(), new.texts()):
        out += [*new.lines[at:c], *old.lines[a:b], *new.lines[c:d]]
        at = d
    out += new.lines[at:]
    ended = [line if end_of(line) else line + new.end for line in out[:-1]] + out[-1:]
    return Lines(new.bom, tuple(ended)).data


def to_version(curator: Curator, path: str, ref: str, *, lost_lines: bool = False) -> Change:
    """The change that brings the version `ref` of the note `path` back; with `lost_lines` what it lacks of it alone.

    Raises EditRefused, PathRefused, Unreadable.
    """
    before = version_text(curator.journal, curator.git, path, ref)
    at = next((each.at for each in versions(curator.journal, curator.git, path, None) if each.ref == ref), None)
    of = f"{' at the commit' * ref.startswith('git:')}{f' on {minute(at)}' if at is not None else ''}"
    title = f"Bring lost lines back into {path}, which it had{of}" if lost_lines else f"Restore {path} as it was{of}"
    return curator.plan.with_trust(restored(path, before, curator.read(path), title, lost_lines=lost_lines))


# --- lost notes ----------------------------------------------------------------------------------------------------


def keep_lost(journal: Journal, last: LastText, now: bytes | None) -> JournalEntry | None:
    """Write down that a note lost lines which the index still holds; None where it did so by a change made here.

    Raises EditRefused, Busy.
    """
    after = "" if now is None else now.decode("utf-8", "replace")
    if now is not None and not shrank(last.text, after):
        return None
    before: bytes | None = last.text.encode("utf-8", "surrogateescape")
    reason = "the text before is what the index held" if last.exact else _INEXACT
    with journal.locked():
        entries = (each for each in reversed(journal.entries()) if each.state == "done" and last.path in each.paths)
        entry = next(entries, None)
        if entry is not None and entry.at >= last.at:
            # Changed here after the index saw it: what counts is the text that this left.
            before = journal.text(next(file.after for file in entry.files if file.path == last.path))
            reason = f"the text before is that of change {entry.id}"
        text = (before or b"").decode("utf-8", "surrogateescape")
        if before is None or not shrank(text, after):
            return None
        count = plural(len(lost_lines(text, after)), "line")
        what = f"{last.path} vanished, with {count}" if now is None else f"{last.path} lost {count}"
        change = Change(LOST, f"{what}: another program did it", (FileChange(last.path, before, now),))
        return journal.record(change, reason)


def lost_notes(
    journal: Journal, read: Callable[[str], bytes | None], texts: Sequence[tuple[str, str]]
) -> list[LostNote]:
    """List each loss of which lines are still lacking. `read` gives a note as it is, `texts` has path and text of all.

    Lines that stand in another note now were moved, and are not lost. Raises EditRefused.
    """
    losses: list[LostNote] = []
    for entry in reversed(journal.entries()):
        if entry.kind != LOST or entry.state != "done":
            continue
        path = entry.files[0].path
        try:
            before = (journal.text(entry.files[0].before) or b"").decode("utf-8", "surrogateescape")
            now = read(path)
        except MemoryTuiError:
            # What the journal let go, or what became a link, cannot be restored; the list of changes says so.
            continue
        lines = lost_lines(before, "" if now is None else now.decode("utf-8", "replace"))
        newer = [line for note in losses if note.path == path for line in note.lines]
        elsewhere = [text for other, text in texts if other != path]
        if all(lost_lines("\n".join(lines), text) for text in ("\n".join(newer), *elsewhere)):
            losses.append(LostNote(path, entry.id, entry.at, tuple(lines), now is None))
    return losses[::-1]


def bring_back(curator: Curator, path: str, change: int) -> Change:
    """The change that puts what the journal's entry `change` tells of back into the note `path`.

    Raises EditRefused, PathRefused, Unreadable.
    """
    journal, now = curator.journal, curator.read(path)
    before = version_text(journal, curator.git, path, f"before-{change}")
    entry = next(entry for entry in journal.entries() if entry.id == change)
    note = f"The text is {entry.reason}." if entry.reason == _INEXACT else ""
    title = f"Restore {path}: what it lost by {minute(entry.at)}"
    return curator.plan.with_trust(restored(path, before, now, title, lost_lines=True, note=note))
