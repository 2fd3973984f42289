"""Edits of notes as remedies, in words. They say what each adds, and what it does to this question and to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from memory_tui.core.formatting import plural
from memory_tui.curate import diff
from memory_tui.curate.note_edits import NoteEdit
from memory_tui.engine.edit_trials import EditRemedy, EditsFound, NoEdit
from memory_tui.explain import trace_json, wording

_NAMED = 3
"""Hits and questions that are named; the others are counted."""


def remedy(found: EditRemedy) -> str:
    """What is to be done, and where the line comes then, for a list."""
    return f"{found.edit.change.title}: would be recalled ({wording.ordinal(found.place)})"


def details(found: EditRemedy) -> Iterator[str]:
    """What else is to be known of an edit, a clause each."""
    yield from _words(found.edit)
    if found.alone:
        yield f"none of {plural(len(found.alone), 'single edit')} that were tried gets the line recalled"
    for verb, refs in (("brings in", found.comes_in), ("pushes out", found.drops_out)):
        if refs:
            yield f"{verb} {_few([ref.citation for ref in refs])}"
    if found.lost > 1:
        yield f"recalled for {len(found.mended):,} of {plural(found.lost, 'question')} of the line that lose it now"
    if found.asked:
        broken = f": {_few(list(found.broken))}" if found.broken else ""
        yield (
            f"{plural(found.asked, 'other question')} asked again: {found.moved:,} "
            f"{'gets' if found.moved == 1 else 'get'} other hits, {len(found.broken):,} "
            f"{'loses what it' if len(found.broken) == 1 else 'lose what they'} had{broken}"
        )
    if found.without_vector:
        yield (
            f"{plural(found.without_vector, 'new text')} judged by words alone: the provider of vectors gets new text "
            "when the note is saved"
        )


def _words(edit: NoteEdit) -> Iterator[str]:
    """Whose words an edit adds; of a pair those behind the line, and those above it or of the name."""
    if edit.kind == "day" and edit.first is None:
        return
    if edit.first is None:
        one = len(edit.words) == 1
        own, question = ("the word stands", "the word comes") if one else ("the words stand", "the words come")
        yield f"{own} on line {edit.words_at:,} already" if edit.words_at else f"{question} from the question"
        return
    own = f"stand on line {edit.words_at:,} already" if edit.words_at else "come from the question"
    if edit.kind == "heading" and not edit.words_at:
        yield "the words of both come from the question"
        return
    yield "the words behind the line come from the question"
    if edit.kind != "day":
        yield f"the words of the {'heading' if edit.kind == 'heading' else 'name'} {own}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def claim(said: EditRemedy | NoEdit) -> str:
    """What is said of edits, as a sentence."""
    match said:
        case EditRemedy():
            return f"{'; '.join([remedy(said), *details(said)])}."
        case NoEdit():
            two = sum(edit.first is not None for edit in said.tried)
            pairs = f", nor of {plural(two, 'pair')} of them," if two else ""
            single = plural(len(said.tried) - two, "edit")
            return f"None of {single} of the note that were tried{pairs} gets the line recalled."
        case _ as never:
            assert_never(never)


def lines(found: EditsFound) -> Iterator[str]:
    """All of it for a terminal, the edits numbered as `--apply` takes them."""
    for number, one in enumerate(found.found, 1):
        yield f"Edit {number}: {remedy(one)}"
        yield from (f"        {clause}" for clause in details(one))
    if found.none is not None:
        yield claim(found.none)


def data(found: EditsFound) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {
        "found": [
            {
                "kind": one.edit.kind,
                "title": one.edit.change.title,
                "notes": list(one.edit.change.notes),
                "path": one.edit.path,
                "line": one.edit.line,
                "words": list(one.edit.words),
                "wordsAt": one.edit.words_at or None,
                "characters": one.edit.size,
                "pairWith": list(one.edit.first.words) if one.edit.first else None,
                "place": one.place,
                "mended": list(one.mended),
                "lost": one.lost,
                "comesIn": [trace_json.chunk(ref) for ref in one.comes_in],
                "dropsOut": [trace_json.chunk(ref) for ref in one.drops_out],
                "othersAsked": one.asked,
                "othersBroken": list(one.broken),
                "othersMoved": one.moved,
                "withoutVector": one.without_vector,
                "diff": diff.text(one.edit.change),
                "sentence": claim(one),
            }
            for one in found.found
        ],
        "tried": [edit.change.title for edit in found.none.tried] if found.none else None,
        "sentence": claim(found.none) if found.none else "",
    }
