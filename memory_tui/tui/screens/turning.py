"""The part of the search view that turns knobs: every step re-ranks what the last question gathered."""

from __future__ import annotations

from memory_tui.search.trace import Trace
from memory_tui.settings import Scalar
from memory_tui.tui.screens.base import View
from memory_tui.tui.session import OPENED, Answer, Tuning, brought, changes, summary
from memory_tui.tui.widgets.tune_strip import TuneStrip


class Turning(View):
    """Knobs, undo and baselines; subclasses keep the answer and list it."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer | None:
        """What was found, and how it ranks."""
        return self._answer

    @property
    def trace(self) -> Trace | None:
        """The ranking on screen."""
        return self._answer.trace if self._answer else None

    def relist(self, *, keep: bool) -> None:
        """List the answer anew; with `keep` the cursor stays on its chunk."""
        raise NotImplementedError

    def explain(self) -> None:
        """Explain the hit under the cursor."""
        raise NotImplementedError

    def ask_again(self, question: str) -> None:
        """Put `question` into the box and ask it."""
        raise NotImplementedError

    def tuned(self, *, keep: bool = True) -> None:
        """Rank the same evidence under the knobs as they are now."""
        tuning, engine = self.home.tuning, self.home.engine
        if tuning is not None and engine is not None and self._answer is not None:
            self._answer = Answer.of(engine.rank, self._answer.evidence, tuning, self._answer)
            self.relist(keep=keep)
        else:
            self.show_knobs()
            self.update_hints()

    def show_knobs(self) -> None:
        """Bring the strip up to date."""
        tuning = self.home.tuning
        if tuning is None:
            return
        verdict = ""
        if tuning.compared and self._answer is not None:
            verdict = summary(changes(self._answer.trace, self._answer.baseline))
        self.query_one(TuneStrip).show(tuning, verdict)

    def turn_knob(self, key: str, value: Scalar) -> None:
        """Turn the knob `key` to `value`; a profile sets every knob that was not chosen."""
        tuning, engine = self.home.tuning, self.home.engine
        if tuning is None or engine is None:
            return
        if key == "profile":
            self.home.turn(tuning.to(engine.with_profile(str(value))))
        else:
            self.home.turn(tuning.set(key, value))

    def reset_knob(self, key: str) -> None:
        """Turn the knob `key` back to how the app was opened; with the profile, all of them."""
        tuning = self.home.tuning
        if tuning is not None:
            self.home.turn(tuning.reset_all() if key == "profile" else tuning.reset(key))

    def _turn(self, step: str) -> None:
        if self.home.tuning is not None:
            found: Tuning = getattr(self.home.tuning, step)()
            self.home.turn(found)

    def do_undo(self) -> None:
        """Undo the last step: a knob, a change that was applied, the date or the baseline."""
        self.take_back()

    def do_redo(self) -> None:
        """Redo it."""
        before = self.home.tuning
        if before is not None and before.future:
            self._turn("redo")
            self.say(f"Made again: {brought(before.stand, before.future[0])}.")

    def do_reset_all(self) -> None:
        """All knobs as the app was opened."""
        self._turn("reset_all")

    def do_base(self) -> None:
        """Compare with the knobs as they are now from here on, under a name."""
        tuning = self.home.tuning
        if tuning is None:
            return
        from memory_tui.tui.screens.prompt import Prompt

        def take(name: str | None) -> None:
            if name is None or self.home.tuning is None:
                return
            self.home.turn(self.home.tuning.rebase(name))
            base = self.home.tuning.baseline
            self.say(f"Baseline {base.name} is set: {base.title}. Further turns are compared with it; u takes it back.")

        value = tuning.difference() or tuning.written or OPENED
        title = f"Baseline {tuning.next_letter}: a name for the knobs as they are now"
        self.app.push_screen(Prompt(title, "a name", value), take)

    def do_tune(self) -> None:
        """Go to the knobs."""
        self.query_one(TuneStrip).focus()
