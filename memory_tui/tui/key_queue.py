"""Keys wait here: each until the key before it is done, then the app gets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen

from memory_tui.tui.colours import LATE_SECONDS, LateAnswer
from memory_tui.tui.key_meanings import MEANINGS

if TYPE_CHECKING:
    from textual.app import App

LOOKS_AGAIN = 0.25
"""Seconds between two looks at whether the pane that holds a key up is still there."""


PART_SECONDS = 0.2
"""How long a key that may begin an answer of the terminal waits for the rest of it."""
HELD_SECONDS = 3.0
"""How long keys wait at most for a screen that is not ready for them yet."""
LEAVING = ("escape", "ctrl+c", *MEANINGS["quit"].keys)
"""Keys that act at once."""


Step = Callable[[], Awaitable[None]]
"""What a key does."""


class KeyQueue:
    """Gives keys and pastes to the panes one by one.

    Textual hands a key to the pane in focus when the key arrives, and runs its action only when the key came back up
    to the app. So `enter` and what is typed right after it would land in the same box. Here a mark follows each key
    through the same queues; the next key goes when the mark came through. Only the app's own thread comes here.
    """

    def __init__(self, app: App[int], strike: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app, self._strike = app, strike
        self._waiting: deque[events.Event | Step] = deque()
        self._taken_back: Callable[[], None] | None = None
        self._busy = False
        self._looking = False
        self._moving = 0
        self._marks = 0
        self._at: MessagePump | None = None
        self._held: Screen[Any] | None = None
        self._due = False
        self._go_on: Callable[[], None] = self._release
        self._late: LateAnswer | None = None
        self._tell_answer: Callable[[str], None] = lambda _: None

    @property
    def resting(self) -> bool:
        """Whether every key has been carried out."""
        return not self._busy and not self._waiting

    def expect_answer(self, told: Callable[[str], None]) -> None:
        """Take a late answer of the terminal for what it is, not for keys, and have it `told`."""
        self._late, self._tell_answer = LateAnswer(), told
        self._app.set_timer(LATE_SECONDS, self._answer_no_more)

    def type_early(self, typed: str) -> None:
        """Carry out what was typed before the app had the terminal."""
        from textual._xterm_parser import XTermParser

        for event in XTermParser().feed(typed):
            self._app.post_message(event)

    def _without_answer(self, event: events.Event) -> Sequence[events.Event]:
        """The keys that somebody typed by now."""
        if self._late is None or not isinstance(event, events.Key):
            return [event]
        answer = self._late.take(event)
        if answer is None:
            return self._late.release()
        if answer:
            self._late = None
            self._tell_answer(answer)
        else:
            self._app.set_timer(PART_SECONDS, self._let_go_typed)
        return []

    def _let_go_typed(self) -> None:
        """What may have been the beginning of an answer was typed: no more of it came."""
        for key in self._late.release() if self._late is not None else ():
            self._app.call_later(self._queue, key)

    def _answer_no_more(self) -> None:
        self._let_go_typed()
        self._late = None

    async def take(self, event: events.Event) -> None:
        """Carry `event` out now, or after those that came before it."""
        for row in self._without_answer(event):
            await self._queue(row)

    async def _queue(self, event: events.Event) -> None:
        leaving = event.key if isinstance(event, events.Key) and event.key in LEAVING else ""
        if leaving and self._taken_back is not None:
            self._take_back(self._taken_back)
            if leaving == "escape":
                return
        self._waiting.append(event)
        if leaving and self._held is not None:
            self.let_go(self._held)
        if not self._busy and len(self._waiting) == 1:
            await self._next()

    def when_drawn(self, move: Callable[[], object]) -> None:
        """Call `move`, which sets the focus, when the screen is drawn; the keys typed until then wait for it."""
        self._moving += 1

        def moved() -> None:
            self._moving -= 1
            move()

        self._app.call_after_refresh(moved)

    def hold(self, screen: Screen[Any]) -> None:
        """Keep keys for `screen`, which is not ready for them, until `let_go`, or for a few seconds."""
        self._held = screen
        self._app.set_timer(HELD_SECONDS, lambda: self.let_go(screen))

    def let_go(self, screen: Screen[Any]) -> None:
        """Let the keys that waited for `screen` go."""
        if self._held is screen:
            self._held = None
            if self._due:
                self._release()

    def postpone(self, step: Step, taken_back: Callable[[], None]) -> None:
        """Keep `step`, and the keys after it, until `resume`; a key that leaves drops them, and `taken_back` is called.

        There is no end to it by the clock: letters that were meant for a box must not act as keys of a list.
        """
        if self._taken_back is None:
            self._taken_back = taken_back
            self._waiting.appendleft(step)
        else:
            self._waiting.append(step)

    def resume(self) -> None:
        """Carry out what was postponed, then the keys after it."""
        if self._taken_back is not None:
            self._taken_back = None
            self._app.call_later(self._next)

    def _take_back(self, taken_back: Callable[[], None]) -> None:
        """Drop what was postponed, with the keys after it."""
        self._taken_back = None
        self._waiting.clear()
        taken_back()

    async def _next(self) -> None:
        if self._busy or not self._waiting or self._taken_back is not None:
            return
        self._busy = True
        screen, path = self._app.screen, self._path()
        step = self._waiting.popleft()
        await (self._strike(step) if isinstance(step, events.Event) else step())
        if not self._looking:
            self._looking = True
            self._app.set_timer(LOOKS_AGAIN, self._look)
        # Once for the key itself, then once more for what its action told the panes.
        self._through(path, lambda: self._through(self._path(), lambda: self._settle(screen)))

    def _path(self) -> Sequence[MessagePump]:
        """The nodes that a key passes on its way up, and the app once more: it sets the focus a message later."""
        screen = self._app.screen
        return [*(screen.focused or screen).ancestors_with_self, self._app]

    def _through(self, path: Sequence[MessagePump], then: Callable[[], None]) -> None:
        """Call `then` when the nodes of `path`, one after the other, have handled what is in their queues now."""
        if not path:
            then()
        elif not path[0].call_later(self._mark(path[0], lambda: self._through(path[1:], then))):
            self._through(path[1:], then)

    def _mark(self, node: MessagePump, then: Callable[[], None]) -> Callable[[], None]:
        """`then`, to be called once only: by `node`, or when `node` is gone."""
        self._marks += 1
        mark = self._marks

        def arrived() -> None:
            if mark == self._marks:
                self._marks += 1
                then()

        self._at, self._go_on = node, arrived
        return arrived

    def _settle(self, before: Screen[Any]) -> None:
        """Let the next key go; where another screen came to the front, once that is drawn and has its focus."""
        screen = self._app.screen
        if screen is before and not self._moving:
            self._release()
        else:
            self._app.call_later(self._app.call_after_refresh, self._mark(screen, lambda: self._drawn(screen)))

    def _drawn(self, screen: Screen[Any]) -> None:
        if screen is self._app.screen:
            self._app.call_later(self._mark(self._app, self._release))
        else:
            self._settle(screen)

    def _release(self) -> None:
        self._due = self._held is not None and self._held is self._app.screen
        if self._due:
            return
        self._busy = False
        if self._waiting:
            self._app.call_later(self._next)

    def _look(self) -> None:
        """Go on where a mark was lost with a pane that went away; a screen behind others calls nobody back."""
        # While the app ends there is no screen any more.
        self._looking = self._busy and bool(self._app.screen_stack)
        if not self._looking:
            return
        behind = isinstance(self._at, Screen) and self._at is not self._app.screen
        if self._at is None or not self._at.is_running or behind:
            self._go_on()
        self._app.set_timer(LOOKS_AGAIN, self._look)
