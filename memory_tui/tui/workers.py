"""Workers run engine calls on threads, for coroutines of the screen that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message import Message
from textual.worker import Worker

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.events import Event
from memory_tui.tui.action import READ_ONLY

if TYPE_CHECKING:
    from textual.app import App

    from memory_tui.engine.engine import Engine
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
    """Engine events wait to be fetched."""


@dataclass
class Reported(Message):
    """A sentence for the message line."""

    text: str


T = TypeVar("T")
P = ParamSpec("P")

OpenEngine = Callable[[Callable[[Event], None]], "Engine"]

"""Opens the engine with a listener; called on a worker thread. Raises MemoryTuiError."""


PostPart = Callable[[object], None]
"""Posts to the app what work has come to so far (None: nothing new). Raises Cancelled when nobody wants it any more."""


class Owner(Protocol):
    """A view, a part of one, or the app, as far as a task knows it."""

    def refused(self, error: MemoryTuiError) -> str:
        """Why a task came to nothing, for the message line; empty where it is shown otherwise."""


class Front(Protocol):
    """A view or the app, as far as a task knows it."""

    def show_message(self, sentence: str) -> None:
        """Show a sentence in the message line."""

    def update_hints(self) -> None:
        """Bring the key hints up to date."""


S = TypeVar("S", bound=Owner)


def task(
    group: str, *, exclusive: bool = True
) -> Callable[[Callable[Concatenate[S, P], Coroutine[Any, Any, None]]], Callable[Concatenate[S, P], None]]:
    """Make a coroutine a task of its view, which a call starts and nobody waits for.

    Where it is `exclusive` a newer one of the same group and view takes its place. What it raises is said.
    """

    def decorate(
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, None]],
    ) -> Callable[Concatenate[S, P], None]:
        @wraps(method)
        def start(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            node = node_of(self)
            front = cast("Front", node)

            async def guarded() -> None:
                try:
                    await method(self, *args, **kwargs)
                except Cancelled:
                    return
                except MemoryTuiError as error:
                    if alive(node) and (sentence := self.refused(error)):
                        front.show_message(sentence)
                except NoMatches:
                    # A view that is being left has no panes any more, and nobody sees what a task would show there.
                    if alive(node):
                        raise
                front.update_hints()

            _started: Worker[None] = node.run_worker(guarded, group=group, exclusive=exclusive)

        return cast("Callable[Concatenate[S, P], None]", start)

    return decorate


def node_of(owner: object) -> DOMNode:
    """The node whose tasks end with it: the owner itself, or the view of which it is a part."""
    return owner if isinstance(owner, DOMNode) else cast("DOMNode", owner.view)  # type: ignore[attr-defined]


def alive(node: DOMNode) -> bool:
    """Whether a node still has its panes; they go before its tasks end."""
    return node.is_dom_root or (node.is_attached and not node._pruning)


def stop(owner: object, group: str) -> None:
    """End the tasks of `group`; nobody wants their answers any more."""
    node = node_of(owner)
    node.workers.cancel_group(node, group)


END = object()


class WorkerJobs:
    """Runs the engine's slow calls on worker threads; only the app's thread calls its methods.

    `run`, `write` and `parts` are for tasks: never wait for them in the handler of a message or an action, because
    the next keys of the screen would wait too. A task that is cancelled hears nothing more, and its thread ends when
    it next tells something.
    """

    def __init__(self, app: App[int], opener: OpenEngine) -> None:
        self._app = app
        self._opener = opener
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._events: deque[Event] = deque(maxlen=5000)
        self._announced = False
        self._jobs = 0
        self._awaited = 0
        self._newest = 0
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
        opener, number = self._opener, self._next()

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
        self._start(job)

    def reopen(self, opener: OpenEngine) -> None:
        """Close the engine and open another one; what the first one was still asked is not answered any more."""
        engine, self._engine, self._opener = self._engine, None, opener
        with self._lock:
            self._events.clear()

        def job() -> None:
            if engine is not None:
                engine.close()

        self._start(job)
        self.open()

    def close(self) -> None:
        """Close the engine, within half a second; one that is still being opened closes when it is open."""
        with self._lock:
            self._closed = True
            engine = self._engine
        if engine is not None:
            engine.close()

    def refresh(self) -> None:
        """Gather facts; FactsArrived follows. Calls while that runs lead to one more run, not to a queue."""
        if self._engine is None or self._facts_running:
            self._facts_wanted = self._engine is not None
            return
        self._facts_running, self._facts_wanted = True, False
        engine, number = self._engine, self._next()

        def job() -> None:
            from memory_tui.tui.state import gather

            try:
                self._app.post_message(FactsArrived(number, gather(engine)))
            except Cancelled:
                return
            except MemoryTuiError as error:
                self._app.post_message(FactsArrived(number, None, error))

        self._start(job)

    def refreshed(self) -> None:
        """FactsArrived was handled; gather them once more when somebody asked meanwhile."""
        self._facts_running = False
        if self._facts_wanted:
            self.refresh()

    def current(self, number: int) -> bool:
        """Whether facts of request `number` are the newest ones; those of an engine that was left are not."""
        return number == self._newest

    def _next(self) -> int:
        self._newest += 1
        return self._newest

    # --- for tasks -----------------------------------------------------------------------------------------------

    async def run(self, work: Callable[[Engine], T], stop: Callable[[], object] | None = None) -> T:
        """Do `work` on a worker thread and return what it returns; `stop` is called when nobody waits any more.

        Raises what it raises; Cancelled without an engine.
        """
        engine, lost = self._opened(), Stop()

        def job() -> T:
            if lost.is_set() or self._closed:
                raise Cancelled
            return work(engine)

        with self._wanted(lost, stop):
            return await asyncio.shield(self._thread(job))

    async def attempt(
        self, work: Callable[[Engine], T], *, write: bool = False, stop: Callable[[], object] | None = None
    ) -> T | MemoryTuiError:
        """Do `work` as `run` does, or as `write` does; what goes wrong is returned, not raised."""
        try:
            return await (self.write(work) if write else self.run(work, stop))
        except Cancelled:
            raise
        except MemoryTuiError as error:
            return error

    async def stoppable(self, work: Callable[[Engine, Stop], T]) -> T | MemoryTuiError:
        """Do `work` as `attempt` does; it is given the stop that is set when nobody waits any more."""
        stop = Stop()
        return await self.attempt(lambda engine: work(engine, stop), stop=stop.set)

    async def write(self, work: Callable[[Engine], T]) -> T:
        """Do `work`, which writes, as `run` does, to its end, whether or not somebody still waits for it.

        Raises ReadOnly where nothing may be written.
        """
        engine = self._opened()
        if engine.plan.read_only:
            from memory_tui.notes.changes import ReadOnly

            raise ReadOnly(READ_ONLY)
        with self._wanted(Stop()):
            return await asyncio.shield(self._thread(lambda: work(engine)))

    async def parts(self, work: Callable[[PostPart], object]) -> AsyncIterator[Any]:
        """Do `work` on a worker thread; yields what it tells on the way, then what it returns.

        Raises what it raises.
        """
        loop, lost = asyncio.get_running_loop(), Stop()
        text: asyncio.Queue[object] = asyncio.Queue()

        def post(value: object) -> None:
            if lost.is_set() or self._closed:
                raise Cancelled
            if value is not None:
                loop.call_soon_threadsafe(text.put_nowait, value)

        def job() -> object:
            post(None)
            return work(post)

        with self._wanted(lost):
            done = self._thread(job)
            done.add_done_callback(lambda _: text.put_nowait(END))
            while (value := await text.get()) is not END:
                yield value
            yield done.result()

    async def rest(self, seconds: float) -> None:
        """Wait until keys rest for `seconds`; a newer task of the same group begins again."""
        with self._wanted(Stop()):
            await asyncio.sleep(seconds)

    def report(self, work: Callable[[], str | None]) -> None:
        """Do `work` on a worker thread, to its end, and show the sentence it returns, or its error."""

        def job() -> None:
            try:
                sentence = work() or ""
            except MemoryTuiError as error:
                sentence = f"{error.message} {error.next_step}"
            self._app.post_message(Reported(sentence.strip()))

        self._start(job)

    def _opened(self) -> Engine:
        if self._engine is None:
            raise Cancelled
        return self._engine

    @contextmanager
    def _wanted(self, gone: Stop, stop: Callable[[], object] | None = None) -> Iterator[None]:
        """While inside, a task waits; afterwards its thread finds it `gone`."""
        self._awaited += 1
        try:
            yield
        except asyncio.CancelledError:
            if stop is not None:
                stop()
            raise
        finally:
            gone.set()
            self._awaited -= 1

    def _start(self, job: Callable[[], None]) -> None:
        """Do `job` on a worker thread, to its end; nobody waits for it, but what it fails by ends the app."""
        running = self._thread(job)

        async def waited() -> None:
            await asyncio.shield(running)

        _started: Worker[None] = self._app.run_worker(waited, group="jobs")

    def _thread(self, job: Callable[[], T]) -> asyncio.Future[T]:
        with self._lock:
            self._jobs += 1

        def counted() -> T:
            try:
                return job()
            finally:
                with self._lock:
                    self._jobs -= 1

        running = asyncio.get_running_loop().run_in_executor(None, counted)
        # What a job raises that nobody waits for is no error of the app.
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        return running

    @property
    def busy(self) -> bool:
        """Whether a job is under way, or news wait to be fetched."""
        with self._lock:
            return self._jobs > 0 or self._awaited > 0 or self._announced


FIRST_ASKED = (
    "memory_tui.search.retrieve",
    "memory_tui.explain.why_not",
    "memory_tui.explain.counterfactuals",
    "memory_tui.tui.views.search.search_view",
)
"""What the first question imports, and the view that it is asked in."""


def warm(engine: Engine, stop: Stop) -> None:
    """Import what a first question needs, and ask one. Raises Cancelled."""
    for module in FIRST_ASKED:
        stop.check()
        import_module(module)
    engine.search.warm(stop)
