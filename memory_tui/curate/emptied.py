"""Taking lines out of a note, and with them the headings that would be left with nothing below."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory_tui.curate.lines import Lines, Section, sections


def without(note: Lines, gone: Collection[int], kept: Collection[int] = ()) -> tuple[Lines, tuple[str, ...]]:
    """`note` without the lines `gone` (from 1), and the titles of the headings that go because nothing is left below.

    A heading that had nothing below it before stays, and so does the title of the note, and any heading among `kept`.
    """
    texts = note.texts()
    empty = _emptied(texts, set(gone), set(kept))
    whole = {number for section in empty for number in range(section.line, section.last + 1)}
    runs: list[list[int]] = []
    for number in sorted(whole.union(gone)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    if runs and runs[-1][1] == len(texts) and whole.intersection(range(runs[-1][0], len(texts) + 1)):
        # What stood between this heading and the text above it would be blank lines at the end.
        while runs[-1][0] > 1 and not texts[runs[-1][0] - 2].strip():
            runs[-1][0] -= 1
    for first, last in reversed(runs):
        note = note.delete(first, last)
    return note, tuple(section.title for section in empty)


def said(titles: Sequence[str]) -> tuple[str, ...]:
    """What a person should know of headings that go."""
    return tuple(f"Nothing is left below the heading {title}, so it goes too." for title in titles)


def _emptied(texts: Sequence[str], gone: set[int], kept: set[int]) -> list[Section]:
    """The headings below which there was something and is nothing when `gone` is, in order; the lowest decide first."""
    found = sections(texts)[1:]
    empty: set[int] = set()
    for at in reversed(range(len(found))):
        section = found[at]
        if section.line in gone or section.line in kept or _is_title(found, at):
            continue
        own = {number for number in range(section.line + 1, section.last + 1) if texts[number - 1].strip()}
        parts = _below(found, at)
        going = [part for part in parts if part in empty or found[part].line in gone]
        if (own or going) and own <= gone and len(going) == len(parts):
            empty.add(at)
    return [found[at] for at in sorted(empty)]


def _below(found: Sequence[Section], at: int) -> list[int]:
    """Where the headings below heading `at` are."""
    end = next((n for n in range(at + 1, len(found)) if found[n].level <= found[at].level), len(found))
    return list(range(at + 1, end))


def _is_title(found: Sequence[Section], at: int) -> bool:
    """Whether heading `at` names the whole note: the first one, of level 1 or above all others."""
    return at == 0 and (found[0].level == 1 or len(_below(found, 0)) == len(found) - 1)
