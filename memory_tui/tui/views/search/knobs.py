"""The part of the search view that turns the knobs of the ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from textual.widget import Widget

from memory_tui.sanitize import one_line
from memory_tui.search.trace import Trace
from memory_tui.settings import Scalar
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.tuning import OPENED, Answer, Tuning, summary
from memory_tui.tui.views.view import KnobHistory, Part, View
from memory_tui.tui.widgets.tune_strip import TuneStrip
from memory_tui.tui.widgets.why_rows import Grade, no_grade

if TYPE_CHECKING:
    from memory_tui.backends.qmd import QmdAnswer
    from memory_tui.tune.evaluate import Case


class ShownAnswer:
    """What the search view shows: the answer, and the question that was asked last."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.qmd: QmdAnswer | None = None
        """QMD's answer, which the agent gets; None where the built-in index answered."""
        self.asked = ""
        self.as_written = ""
        """The question of which no word is corrected or read as a time."""
        self.grade: Grade = no_grade
        """What labels of the question make of a chunk."""
        self.cases: Callable[[], tuple[Case, ...]] = tuple
        """The saved questions that were asked already."""

    @property
    def question(self) -> str:
        """The question whose answer is on screen."""
        return self.asked if self.answer is not None else ""

    @property
    def trace(self) -> Trace | None:
        """The ranking on screen."""
        return self.answer.trace if self.answer is not None else None


class Reading(Part):
    """Takes back what a question was read as, before any step that was made earlier; `ask` asks it once more."""

    def __init__(self, view: View, shown: ShownAnswer, ask: Callable[[str], None]) -> None:
        super().__init__(view)
        self._shown, self._ask = shown, ask
        self._knobs = KnobHistory(view)
        self._under: Tuning | None = None

    def answered(self) -> None:
        """An answer came: from here on steps are later than its reading."""
        self._under = self.home.tuning

    @property
    def clause(self) -> str:
        """What was read otherwise than it was written; empty where nothing was."""
        trace = self._shown.trace
        return "; ".join(trace.plan.readings) if trace is not None else ""

    @property
    def _is_last(self) -> bool:
        return self._shown.trace is not None and self.home.tuning is self._under

    @property
    def _taken_back(self) -> bool:
        return bool(self._shown.as_written) and self._shown.as_written == self._shown.question

    def context(self) -> dict[str, bool]:
        """Whether there is a step to undo or to redo."""
        seen = self._knobs.context()
        return {
            "undo": seen["undo"] or (self._is_last and bool(self.clause)),
            "redo": seen["redo"] or (self._is_last and self._taken_back),
        }

    def do_undo(self) -> None:
        """Search the words as they were written; else undo the last step of the knobs."""
        if self._is_last and self.clause:
            self.view.show_message(f"Taken back: {one_line(self.clause)}.")
            self._shown.as_written = self._shown.question
            self._ask(self._shown.question)
        else:
            self._knobs.do_undo()

    def do_redo(self) -> None:
        """Read the question again; else redo the last step of the knobs."""
        if self._is_last and self._taken_back:
            self._shown.as_written = ""
            self._ask(self._shown.question)
        else:
            self._knobs.do_redo()


class Knobs(Part):
    """Turns knobs and sets baselines; `relist` shows the answer that is ranked anew."""

    def __init__(self, view: View, shown: ShownAnswer, relist: Callable[[bool], None]) -> None:
        super().__init__(view)
        self._shown, self._relist = shown, relist

    def compose(self) -> Iterable[Widget]:
        """Compose the strip."""
        yield TuneStrip(self)

    def tuned(self, *, keep: bool = True) -> None:
        """Rank the same evidence under the knobs as they are now."""
        tuning, engine, drawn = self.home.tuning, self.home.engine, self._shown
        if tuning is not None and engine is not None and drawn.answer is not None:
            drawn.answer = Answer.of(engine.search.rank, drawn.answer.evidence, tuning, drawn.answer)
            self._relist(keep)
        else:
            self.show()
            self.view.update_hints()

    def show(self) -> None:
        """Bring the strip up to date."""
        tuning, answer = self.home.tuning, self._shown.answer
        if tuning is None:
            return
        verdict = ""
        if tuning.compared and answer is not None:
            verdict = summary(answer.trace, answer.baseline)
        self.view.query_one(TuneStrip).show(tuning, verdict)

    def context(self) -> dict[str, bool]:
        """Whether knobs were turned or written."""
        tuning = self.home.tuning
        return {"tuned": bool(tuning and tuning.tuned), "written": bool(tuning and tuning.writes)}

    def turn_knob(self, key: str, value: Scalar) -> None:
        """Turn the knob `key` to `value`; a profile sets every knob that was not chosen."""
        tuning, engine = self.home.tuning, self.home.engine
        if tuning is None or engine is None:
            return
        after = tuning.to(engine.plan.with_profile(str(value))) if key == "profile" else tuning.set(key, value)
        self.home.turn(after)
        if after.settings != tuning.settings:
            self.home.step_done("turned")

    def reset_knob(self, key: str) -> None:
        """Turn the knob `key` back to how the app was opened; with the profile, all of them."""
        tuning = self.home.tuning
        if tuning is not None:
            self.home.turn(tuning.reset_all() if key == "profile" else tuning.reset(key))

    def do_reset_all(self) -> None:
        """All knobs as the app was opened."""
        if self.home.tuning is not None:
            self.home.turn(self.home.tuning.reset_all())

    def do_base(self) -> None:
        """Compare with the knobs as they are now from here on, under a name."""
        tuning = self.home.tuning
        if tuning is None:
            return
        from memory_tui.tui.views.dialogs import Prompt

        def take(name: str | None) -> None:
            if name is None or self.home.tuning is None:
                return
            self.home.turn(self.home.tuning.rebase(name))
            base = self.home.tuning.baseline
            self.view.show_message(
                f"Baseline {base.name} is set: {base.title}. The list now compares each "
                f"turn with it; {key_of('undo')} undoes it."
            )

        value = tuning.difference() or tuning.written or OPENED
        title = f"Baseline {tuning.next_letter}: a name for the knobs as they are now"
        self.view.app.push_screen(Prompt(title, "a name", value), take)
