"""Restoring brings back what a note held before, by the record or by git; it is shown like any other change.

What notes lost to another program is a reading of the record, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import minute, plural
from memory_tui.notes.changes import Change, FileChange, Lines, end_of
from memory_tui.notes.curator import Curator
from memory_tui.notes.git import History
from memory_tui.notes.history import title_of, who
from memory_tui.notes.journal import Journal
from memory_tui.notes.merge import changed_spans
from memory_tui.notes.record import EDITOR, Edit
from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.days import is_daily

_MOST_LOSSES = 5000
"""So many changes are looked through for lines that others took out."""
_MANY_LINES, _OVERWRITTEN = 10, 0.8
"""What is no log is overwritten where more than this share of so many lines goes."""


class Version(Struct, frozen=True):
    """A text that a note had at `at` (epoch seconds).

    `ref` names it: `12` is the note after change 12 of the journal, `before-12` before it, `git:HASH` at a commit.
    """

    ref: str
    at: float
    title: str


class LostNote(Struct, frozen=True):
    """Lines that a note lost and still lacks; `change` is the journal's entry about it, `at` when it was found.

    `is_gone` tells that the note is not there at all.
    """

    path: str
    change: int
    at: float
    lines: tuple[str, ...]
    is_gone: bool
    by: str


def versions(journal: Journal, git: History, path: str, now: bytes | None) -> list[Version]:
    """List the texts that are known of the note `path`, newest first, each once, without the one it has `now`.

    Raises EditRefused.
    """
    seen, listed = {journal.blob_of(now), None}, []
    for edit in journal.edits(path):
        title = title_of(edit)
        before = edit.before, f"before-{edit.id}", f"before: {title}"
        for blob, ref, words in ((edit.after, f"{edit.id}", title), before):
            if blob not in seen:
                seen.add(blob)
                listed.append(Version(ref, edit.at, words))
    if git.top() is not None:
        listed += [Version(f"git:{commit.hash}", commit.at, f"git: {commit.subject}") for commit in git.log(path)]
    return sorted(listed, key=lambda version: -version.at)


def version_text(journal: Journal, git: History, path: str, ref: str) -> bytes:
    """The bytes that the note `path` had at the version `ref`. Raises EditRefused where there is none."""
    if ref.startswith("git:"):
        return git.text(path, ref.removeprefix("git:"))
    number, before = ref.removeprefix("before-"), ref.startswith("before-")
    blobs = journal.blobs_of(path, int(number)) if number.isascii() and number.isdigit() else (None, None)
    data = journal.text(blobs[0 if before else 1])
    if data is None:
        what = f"There is no version {ref} of {path}."
        raise EditRefused(what, f"memory-tui restore {path} lists the versions.")
    return data


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


def lost_lines(before: str, after: str) -> list[str]:
    """List the lines of `before` that `after` lacks; blanks at their ends, blank lines and annotations do not count."""
    left = Counter(_said(after))
    lost = []
    for line in _said(before):
        if left[line]:
            left[line] -= 1
        else:
            lost.append(line)
    return lost


def shrank(before: str, after: str) -> bool:
    """Say whether a note lost lines: it has fewer than before, or more than half of them are other ones."""
    lost, old = len(lost_lines(before, after)), len(_said(before))
    return lost > 0 and (len(_said(after)) < old or 2 * lost > old)


def _said(text: str) -> list[str]:
    return [line.strip() for line in without_markers(text).split("\n") if line.strip()]


def is_loss(journal: Journal, edit: Edit) -> bool:
    """Return whether another program removed a note, or took lines out of a daily one, or most of many out of another.

    What git removes it has. Raises EditRefused.
    """
    if edit.kind or not edit.minus or edit.author == EDITOR:
        return False
    if edit.after is None:
        return edit.author is None or edit.author.host != "git"
    if not is_daily(edit.path) and edit.minus < _MANY_LINES:
        return False
    before, after = text_of(journal, edit.before), text_of(journal, edit.after)
    if is_daily(edit.path):
        return shrank(before, after)
    lost, old = len(lost_lines(before, after)), len(_said(before))
    return old >= _MANY_LINES and lost > _OVERWRITTEN * old


def text_of(journal: Journal, blob: int | None) -> str:
    """Return a text of the record as lines are counted in it. Raises EditRefused."""
    return (journal.text(blob) or b"").decode("utf-8", "surrogateescape")


def lost_notes(
    journal: Journal, read: Callable[[str], bytes | None], texts: Sequence[tuple[str, str]]
) -> list[LostNote]:
    """List each loss of which lines are still lacking. `read` gives a note as it is, `texts` has path and text of all.

    Lines that stand in another note now were moved, and are not lost. Raises EditRefused.
    """
    losses: list[LostNote] = []
    for edit in journal.edits(most=_MOST_LOSSES):
        try:
            if not is_loss(journal, edit):
                continue
            now = read(edit.path)
            before = text_of(journal, edit.before)
        except MemoryTuiError:
            # What the journal let go, or what became a link, cannot be restored; the list of changes says so.
            continue
        lines = lost_lines(before, "" if now is None else now.decode("utf-8", "replace"))
        newer = [line for note in losses if note.path == edit.path for line in note.lines]
        elsewhere = [text for other, text in texts if other != edit.path]
        if all(lost_lines("\n".join(lines), text) for text in ("\n".join(newer), *elsewhere)):
            losses.append(LostNote(edit.path, edit.id, edit.at, tuple(lines), now is None, who(edit)))
    return losses[::-1]


def bring_back(curator: Curator, losses: Sequence[tuple[str, int]]) -> Change:
    """The change that puts what changes took out of notes back into them; each loss has its path and its number.

    Raises EditRefused, PathRefused, Unreadable.
    """
    files: dict[str, FileChange] = {}
    for path, number in losses:
        before = version_text(curator.journal, curator.git, path, f"before-{number}")
        file = files.get(path) or FileChange(path, now := curator.read(path), now)
        after = before if file.after is None else together(before, file.after)
        files[path] = replace(file, after=after)
    changed = tuple(file for file in files.values() if file.before != file.after)
    if not changed:
        raise EditRefused("The notes hold every line of then.", "Nothing was changed.")
    what = changed[0].path if len(changed) == 1 else plural(len(changed), "note")
    return curator.plan.with_trust(Change("restore", f"Bring back what {what} lost", changed))
