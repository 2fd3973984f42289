"""Workers run engine calls on threads; each job posts messages to the app."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from memory_tui.core.errors import Cancelled, IndexUnavailable, MemoryTuiError
from memory_tui.core.events import Event

if TYPE_CHECKING:
    from textual.app import App

    from memory_tui.engine.engine import Engine
    from memory_tui.index.connections import Cancel
    from memory_tui.search.evidence import Evidence
    from memory_tui.search.trace import ChunkRef
    from memory_tui.tui.note_page import Page
    from memory_tui.tui.state import Facts


@dataclass
class EngineOpened(Message):
    """The index is open; the first sync has been started."""

    engine: Engine


@dataclass
class EngineRefused(Message):
    """The index could not be opened."""

    error: MemoryTuiError


@dataclass
class FactsArrived(Message):
    """What the truth bar, the file tree and the index view show."""

    number: int
    facts: Facts | None
    error: MemoryTuiError | None = None


@dataclass
class EventsArrived(Message):
    """Engine events wait in the bridge."""


@dataclass
class Gathered(Message):
    """What request `number` found out, or why it could not."""

    number: int
    evidence: Evidence | None
    error: MemoryTuiError | None


@dataclass
class PageRead(Message):
    """The note of request `number`, ready to show, or why it cannot be."""

    number: int
    page: Page | None
    error: MemoryTuiError | None


@dataclass
class Done(Message):
    """What work of `kind` under `number` returned, or why it could not be done."""

    kind: str
    number: int
    value: object
    error: MemoryTuiError | None = None


@dataclass
class Worked(Message):
    """News of request `number` of some `kind`: `value` on the way, its result when `done`, or why there is none."""

    kind: str
    number: int
    value: object
    done: bool
    error: MemoryTuiError | None = None


@dataclass
class Told(Message):
    """A sentence for the message line."""

    text: str


Opener = Callable[[Callable[[Event], None]], "Engine"]
"""Opens the engine with a listener; called on a worker thread. Raises MemoryTuiError."""

Tell = Callable[[object], None]
"""Tells the app what work has come to so far (None: nothing new). Raises Cancelled when nobody wants it any more."""


def _chunks(engine: Engine, path: str) -> Sequence[ChunkRef]:
    """The chunks of a note; none while there is no index to ask, because the note can be read all the same."""
    try:
        return engine.queries.chunks_of(path)
    except IndexUnavailable:
        return ()


class Bridge:
    """Runs the engine's slow calls beside the app. Its methods return at once; only the app's thread calls them."""

    def __init__(self, app: App[int], opener: Opener) -> None:
        self._app = app
        self._opener = opener
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=5000)
        self._announced = False
        self._jobs = 0
        self.writes = 0
        """How many changes of notes were begun; each has a name of its own, so that none replaces another."""
        self._newest: defaultdict[str, int] = defaultdict(int)
        self._cancel: Cancel | None = None
        self._closed = False
        self._facts_running = False
        self._facts_wanted = False

    # --- engine threads ------------------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """Keep an engine event for the app, and tell the app once until it has fetched them."""
        with self._lock:
            self._events.append(event)
            announce, self._announced = not self._announced, True
        if announce:
            self._app.post_message(EventsArrived())

    # --- app thread ----------------------------------------------------------------------------------------------

    def fetch(self) -> list[Event]:
        """The engine events that came since the last call, oldest first."""
        with self._lock:
            events = list(self._events)
            self._events.clear()
            self._announced = False
        return events

    def open(self) -> None:
        """Open the engine and start it; EngineOpened or EngineRefused follows."""
        opener, number = self._opener, self._next("facts")

        def hear(event: Event) -> None:
            # An engine that is being closed may still have something to say; it is not about the new one.
            if opener is self._opener:
                self.hear(event)

        def job() -> None:
            from memory_tui.tui.state import gather

            try:
                engine = opener(hear)
                with self._lock:
                    self._engine, closed = engine, self._closed
                if closed:
                    engine.close()
                    return
                self._app.post_message(EngineOpened(engine))
                # Before the first sync occupies the writer, so that the screen knows what there is from the start.
                self._app.post_message(FactsArrived(number, gather(engine)))
                engine.start()
            except Cancelled:
                return
            except MemoryTuiError as error:
                self._app.post_message(EngineRefused(error))

        self._facts_running = True
        self._run(job, "open")

    def reopen(self, opener: Opener) -> None:
        """Close the engine and open another one; what the first one was still asked is not answered any more."""
        engine, self._engine, self._opener = self._engine, None, opener
        for kind in self._newest:
            self._next(kind)
        with self._lock:
            self._events.clear()

        def job() -> None:
            if engine is not None:
                engine.close()

        self._run(job, "close")
        self.open()

    def close(self) -> None:
        """Close the engine, within half a second; one that is still being opened closes when it is open."""
        with self._lock:
            self._closed = True
            engine = self._engine
        if engine is not None:
            engine.close()

    def look(self) -> None:
        """Gather facts; FactsArrived follows. Calls while that runs lead to one more run, not to a queue."""
        if self._engine is None or self._facts_running:
            self._facts_wanted = self._engine is not None
            return
        self._facts_running, self._facts_wanted = True, False
        engine, number = self._engine, self._next("facts")

        def job() -> None:
            from memory_tui.tui.state import gather

            try:
                self._app.post_message(FactsArrived(number, gather(engine)))
            except Cancelled:
                return
            except MemoryTuiError as error:
                self._app.post_message(FactsArrived(number, None, error))

        self._run(job, "facts")

    def looked(self) -> None:
        """FactsArrived was handled; look again when somebody asked meanwhile."""
        self._facts_running = False
        if self._facts_wanted:
            self.look()

    def ask(self, query: str) -> int:
        """Gather evidence for `query`; Gathered follows, unless a newer question comes first."""
        number = self._next("search")
        engine = self._engine
        if self._cancel is not None:
            self._cancel.cancel()
        if engine is None:
            return number
        from memory_tui.index.connections import Cancel

        cancel = self._cancel = Cancel()

        def job() -> None:
            if number != self._newest["search"]:
                return
            try:
                self._app.post_message(Gathered(number, engine.queries.gather(query, cancel), None))
            except Cancelled:
                return
            except MemoryTuiError as error:
                self._app.post_message(Gathered(number, None, error))

        self._run(job, "search")
        return number

    def read(self, path: str) -> int:
        """Read the note `path`; PageRead follows, for a long note first with its head."""
        number = self._next("page")
        engine = self._engine

        def job() -> None:
            from memory_tui.tui.note_page import head_of, make_page

            if engine is None or number != self._newest["page"]:
                return
            try:
                document = engine.notes.read(path)
                head = head_of(document)
                if head is not None:
                    self._app.post_message(PageRead(number, head, None))
                self._app.post_message(PageRead(number, make_page(document, _chunks(engine, path)), None))
            except MemoryTuiError as error:
                self._app.post_message(PageRead(number, None, error))

        self._run(job, "page")
        return number

    def work(self, kind: str, work: Callable[[Engine], object]) -> int:
        """Do `work` on a worker thread; Done follows with what it returns or raises, unless newer of its kind begins.

        `work` gets the engine and touches no widget.
        """
        number = self._next(kind)
        engine = self._engine

        def job() -> None:
            if engine is None or number != self._newest[kind]:
                return
            try:
                self._app.post_message(Done(kind, number, work(engine)))
            except Cancelled:
                return
            except MemoryTuiError as error:
                self._app.post_message(Done(kind, number, None, error))

        self._run(job, kind)
        return number

    def follow(self, kind: str, run: Callable[[Tell], object]) -> int:
        """Do `run` on a worker thread; Worked follows for what it tells on the way, and for its result or error.

        A newer request of the same kind stops it, as `drop` does: at the latest when it next tells something.
        """
        number = self._next(kind)

        def wanted() -> None:
            if self._closed or number != self._newest[kind]:
                raise Cancelled

        def tell(value: object) -> None:
            wanted()
            if value is not None:
                self._app.post_message(Worked(kind, number, value, False))

        def job() -> None:
            try:
                wanted()
                self._app.post_message(Worked(kind, number, run(tell), True))
            except Cancelled:
                return
            except MemoryTuiError as error:
                self._app.post_message(Worked(kind, number, None, True, error))

        self._run(job, kind)
        return number

    def drop(self, kind: str) -> None:
        """Nobody wants the newest request of `kind` any more."""
        self._next(kind)

    def current(self, kind: str, number: int) -> bool:
        """Whether request `number` is still the newest of its kind; answers to older ones are dropped."""
        return self._newest[kind] == number

    def tell(self, work: Callable[[], str]) -> None:
        """Do `work` on a worker thread and show the sentence it returns, or its error."""

        def job() -> None:
            try:
                said = work()
            except MemoryTuiError as error:
                said = f"{error.message} {error.next_step}"
            self._app.post_message(Told(said.strip()))

        self._run(job, "tell")

    def _next(self, kind: str) -> int:
        self._newest[kind] += 1
        return self._newest[kind]

    @property
    def busy(self) -> bool:
        """Whether a job is under way, or news wait to be fetched."""
        with self._lock:
            return self._jobs > 0 or self._announced

    def _run(self, job: Callable[[], None], group: str) -> None:
        def counted() -> None:
            try:
                job()
            finally:
                with self._lock:
                    self._jobs -= 1

        with self._lock:
            self._jobs += 1
        # Not exclusive: that would not stop a thread, and numbers tell which answers are wanted.
        self._app.run_worker(counted, group=group, thread=True)
