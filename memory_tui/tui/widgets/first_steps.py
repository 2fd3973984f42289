"""First steps: five things to do once, each ended by doing it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.tui.key_meanings import key_of


class Step(Struct, frozen=True):
    """What to do and why; it is done when all of the `deeds` were: told by who did them, not by who asked for them."""

    title: str
    sentence: str
    how: str
    deeds: frozenset[str]


STEPS: Sequence[Step] = (
    Step(
        "Ask",
        "An agent finds what you ask for in your own words, by meaning and by words.",
        f"Press {key_of('ask')} and type: how is the omada vlan set up. Then press enter.",
        frozenset({"asked"}),
    ),
    Step(
        "See why",
        "Each hit has a score. Bars show what meaning and words gave; underlined words matched.",
        f"Press {key_of('why')} on a hit to see its sum; {key_of('down')} goes to the next hit.",
        frozenset({"why"}),
    ),
    Step(
        "Turn",
        "The knobs decide what the agent gets. Turning one ranks again at once and writes nothing.",
        f"Press {key_of('tune')}, then {key_of('more')} for a step more. {key_of('undo')} undoes it.",
        frozenset({"turned"}),
    ),
    Step(
        "Promote, and undo",
        "What an agent should always know belongs in MEMORY.md. Every change is shown first.",
        f"In a daily log ({key_of('view 1')}, {key_of('down')}): {key_of('next pane')}, "
        f"{key_of('down')} to a line, {key_of('promote')}, enter. Then {key_of('undo')}.",
        frozenset({"promote", "undo"}),
    ),
    Step(
        "Look into the inbox",
        "Repeats, secrets and dead links in the notes wait there, each with what could be done.",
        f"Press {key_of('view 4')}.",
        frozenset({"inbox"}),
    ),
)


class FirstSteps(Struct, frozen=True):
    """Where somebody stands: at step number `at` (from 0), of whose deeds some are `done`."""

    at: int = 0
    done: frozenset[str] = frozenset()

    @property
    def step(self) -> Step:
        """The step to do now."""
        return STEPS[self.at]

    def after(self, deed: str) -> FirstSteps | None:
        """Where one stands when `deed` was done; None behind the last step."""
        if deed not in self.step.deeds:
            return self
        done = self.done | {deed}
        if done < self.step.deeds:
            return replace(self, done=done)
        return FirstSteps(self.at + 1) if self.at + 1 < len(STEPS) else None

    def head(self) -> str:
        """Which step it is, how many there are, and how to end them."""
        dots = " ".join("●" if at <= self.at else "○" for at in range(len(STEPS)))
        return f" Step {self.at + 1} of {len(STEPS)}   {self.step.title}   {dots}   {key_of('back')} ends "

    def lines(self, *, low: bool) -> list[tuple[str, str]]:
        """What stands below the view: (text, role); where the screen is `low`, what to do alone."""
        return [*([] if low else [(f" {self.step.sentence}", "")]), (f" {self.step.how}", "key")]
