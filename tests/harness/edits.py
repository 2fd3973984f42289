"""Checkers of what is said of edits: each makes the edit in a copy of the notes, indexes it, and searches."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from memory_tui.curate.changes import Change
from memory_tui.curate.note_edits import NoteEdit
from memory_tui.engine.edit_trials import EditRemedy, NoEdit
from memory_tui.engine.engine import Engine
from memory_tui.engine.past_questions import PastQuestions
from memory_tui.plan import Options
from memory_tui.search.trace import ChunkRef
from tests.harness.claims import NOW, STILL, Case, checks

KINDS = {EditRemedy, NoEdit}
Answers = list[list[ChunkRef]]


@dataclass
class EditCase(Case):
    """A line under a question, and the past questions that edits are measured on."""

    asked: PastQuestions = field(default_factory=lambda: PastQuestions(0, (), None, (), 0))  # type: ignore[arg-type]

    def answers(self, changes: Sequence[Change], questions: Sequence[str]) -> list[Answers]:
        """The hits of `questions` as the notes are, and after each of `changes`, each in an own copy of the notes."""
        found = []
        for change in (None, *changes):
            with self._copy(change) as engine:
                hits = [engine.queries.search(one, self.settings).recalled for one in questions]
                found.append([[hit.chunk for hit in own] for own in hits])
        return found

    @contextmanager
    def _copy(self, change: Change | None) -> Iterator[Engine]:
        with tempfile.TemporaryDirectory() as place:
            notes = Path(place) / "notes"
            shutil.copytree(self.world.folder, notes)
            profile = self.settings.word("profile")
            options = Options(
                workspace=str(notes),
                index=str(Path(place) / "i.sqlite"),
                provider="builtin",
                now=NOW,
                changes=(("profile", profile), *STILL),
            )
            with Engine.open(options) as engine:
                engine.indexer.sync()
                for file in change.files if change is not None else ():
                    assert file.after is not None
                    target = notes / file.path
                    assert (target.read_bytes() if target.exists() else None) == file.before
                    target.write_bytes(file.after)
                engine.indexer.sync()
                yield engine


def place_of(hits: Sequence[ChunkRef], path: str, line: int) -> int:
    return next((i for i, ref in enumerate(hits, 1) if ref.path == path and ref.start_line <= line <= ref.end_line), 0)


def others(refs: Sequence[ChunkRef], edit: NoteEdit) -> set[str]:
    """Hits of the notes that an edit leaves alone."""
    return {ref.citation for ref in refs if ref.path not in edit.change.paths}


def check_pair(claim: EditRemedy, case: EditCase) -> None:
    """A pair stands only where no single edit does, its first one among them."""
    first = claim.edit.first
    assert bool(claim.alone) == (first is not None)
    if first is not None:
        assert all(one.first is None for one in claim.alone)
        assert first.kind in {one.kind for one in claim.alone}
        assert set(first.words) <= set(re.findall(r"\w+", case.evidence.query.lower()))
        _none(NoEdit((*claim.alone, first)), case)


def check_smallest(claim: EditRemedy, case: EditCase) -> None:
    """Each word that is put behind the line or above it is needed, of a pair those of either edit."""
    edit = claim.edit
    (file,) = (one for one in edit.change.files if one.path == edit.path)
    lines = (file.after or b"").decode().split("\n")
    for words, form, between in _added(edit):
        at = edit.line - 1
        while form.format(between.join(words)) not in lines[at]:
            at -= 1
        for word in words:
            rest = between.join(one for one in words if one != word)
            less = lines[at].replace(form.format(between.join(words)), form.format(rest) if rest else "")
            after = replace(file, after="\n".join([*lines[:at], less, *lines[at + 1 :]]).encode())
            change = replace(edit.change, files=tuple(after if one is file else one for one in edit.change.files))
            (_, (hits,)) = case.answers([change], [case.evidence.query])
            assert not place_of(hits, edit.path, edit.line), f"{word} is not needed"


def _added(edit: NoteEdit) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Words behind the line and above it, the form in which they stand there, and what stands between them.

    Where a single edit adds one word, nothing can go; a heading of one word in a pair goes as a whole in `check_pair`.
    """
    alias = edit.first or (edit if edit.kind == "alias" and len(edit.words) > 1 else None)
    if alias is not None:
        yield alias.words, " ({})", ", "
    if edit.kind == "heading" and len(edit.words) > 1:
        yield edit.words, "# {}", " "


@checks(EditRemedy)
def _remedy(claim: EditRemedy, case: EditCase) -> None:
    edit = claim.edit
    check_pair(claim, case)
    check_smallest(claim, case)
    rest = [one.text for one in case.asked.questions if one.text != case.evidence.query]
    texts = [case.evidence.query, *rest]
    before, after = case.answers([edit.change], texts)
    assert not place_of(before[0], *edit.was)
    assert place_of(after[0], edit.path, edit.line) == claim.place
    assert others(claim.drops_out, edit) == others(before[0], edit) - others(after[0], edit)
    assert others(claim.comes_in, edit) == others(after[0], edit) - others(before[0], edit)
    assert case.evidence.query in claim.mended
    for text, was, then in zip(texts, before, after, strict=True):
        if text in claim.mended:
            assert not place_of(was, *edit.was)
            assert place_of(then, edit.path, edit.line)
        elif was and not then:
            assert text in claim.broken
    moved = sum(others(was, edit) != others(then, edit) for was, then in zip(before[1:], after[1:], strict=True))
    assert len(claim.broken) <= claim.moved
    assert moved <= claim.moved + len(claim.mended)
    if claim.edit.words_at:
        source = next(file.before for file in edit.change.files if file.path == edit.was[0]) or b""
        own = source.decode().split("\n")[claim.edit.words_at - 1].lower()
        assert all(word.lower() in own for word in edit.words)


@checks(NoEdit)
def _none(claim: NoEdit, case: EditCase) -> None:
    _, *after = case.answers([edit.change for edit in claim.tried], [case.evidence.query])
    assert len(after) == len(claim.tried) > 0
    for edit, answers in zip(claim.tried, after, strict=True):
        assert not place_of(answers[0], edit.path, edit.line), edit.change.title
