"""Checkers of what is said of past questions: each goes by whole rankings of each question, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from memory_tui.engine.past_questions import PastQuestions, Unreached
from memory_tui.explain.counterfactuals import turned
from memory_tui.explain.why_never import NeverClaim, NoOneChange, OneChange, Reached, StoppedTimes, WhyNever
from memory_tui.notices import Notice
from memory_tui.search.rank import rank
from memory_tui.settings import Settings
from tests.harness.claims import Case, Report, checks

KINDS = {*get_args(NeverClaim), Unreached}


@dataclass
class PastCase(Case):
    """Past questions over a world; `told` is what is said of one line, `after` the settings that are tried."""

    asked: PastQuestions | None = None
    told: WhyNever | None = None
    after: Settings | None = None

    def fates(self, settings: Settings) -> dict[str, bool]:
        """Whether a chunk of the line is recalled, by question, by asking each anew."""
        assert self.told is not None
        queries, found = self.world.engine.search, {}
        for question, answer in self.told.answers:
            held = {answer.best.chunk.rowid, *(other.chunk.rowid for other in answer.others)} if answer.best else set()
            ranked = rank(queries.gather(question.text, source=question.source), settings)
            found[question.text] = any(hit.chunk.rowid in held for hit in ranked.recalled)
        return found


@checks(Reached)
def _reached(claim: Reached, case: PastCase) -> None:
    assert case.told is not None
    own = [question.text for question, _ in case.told.answers if question.asker == claim.asker]
    now = case.fates(case.settings)
    assert (claim.asked, claim.recalled) == (len(own), sum(now[text] for text in own))


@checks(StoppedTimes)
def _stopped(claim: StoppedTimes, case: PastCase) -> None:
    now = case.fates(case.settings)
    assert claim.questions
    assert not any(now[text] for text in claim.questions)
    assert claim.gate


def under(case: PastCase, key: str, value: Any) -> dict[str, bool]:
    return case.fates(case.settings.update(turned({key: value}), "harness"))


@checks(OneChange)
def _one_change(claim: OneChange, case: PastCase) -> None:
    now, then = case.fates(case.settings), under(case, claim.key, claim.value)
    assert claim.lost == sum(not found for found in now.values())
    assert set(claim.questions) == {text for text, found in then.items() if found and not now[text]}


@checks(NoOneChange)
def _no_one_change(claim: NoOneChange, case: PastCase) -> None:
    now = case.fates(case.settings)
    assert claim.lost == sum(not found for found in now.values())
    for key, value in claim.points[::9]:
        then = under(case, key, value)
        assert not any(found and not now[text] for text, found in then.items()), (key, value)


@checks(Unreached)
def _unreached(claim: Unreached, case: PastCase) -> None:
    assert case.asked is not None
    for lines in claim.lines:
        for entry in case.asked.entries:
            for hit in entry.hits:
                apart = hit.path != lines.path or hit.end_line < lines.first or lines.last < hit.start_line
                assert apart, (lines, hit)
        refs = case.world.engine.search.chunks_of(lines.path)
        assert any(ref.start_line <= lines.first <= ref.end_line for ref in refs)
        there = (case.world.folder / lines.path).read_text().splitlines()
        assert lines.first <= lines.last <= len(there), (lines, len(there))


def check_never(case: PastCase, report: Report) -> None:
    """Everything that is said of one line over many questions."""
    assert case.told is not None
    for claim in case.told.claims:
        report.check(claim, case)
    for question, answer in case.told.answers:
        row = answer.row
        if row is not None and isinstance(answer.fate, Notice):
            report.check(answer.fate, replace(case, row=row, evidence=answer.evidence, trace=answer.trace))
        assert question.text
