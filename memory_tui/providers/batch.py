"""The calls to a batch service: submit, look, fetch, cancel; what may pass is tried again, and nothing is paid twice.

Each blocks on the network, so they belong on a thread of their own; `close` lets them go at once. A job goes on where
it runs whoever looks.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import tenacity

from memory_tui.embed.answers import Malformed
from memory_tui.embed.background import Background
from memory_tui.embed.failure import PASSING, RETRIED, ProviderFailure, State
from memory_tui.embed.http import Http
from memory_tui.embed.wire import require_consent
from memory_tui.text.js import well_formed

if TYPE_CHECKING:
    from memory_tui.embed.batch import BatchApi, Look
    from memory_tui.embed.batch_lines import Results
    from memory_tui.embed.options import ProviderSettings
    from memory_tui.embed.wire import Wire

T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.3, 2.0
_LONGEST_OBEYED = 60.0
_UPLOAD_SECONDS, _CALL_SECONDS = 600.0, 60.0
_LONGEST_PAUSE = 60.0
_PATIENCE = 1 / 20
UNSURE = PASSING - {State.RATE_LIMIT}
"""After these it is not known whether a job was made."""
_NO_LIST = frozenset({State.UNKNOWN_MODEL, State.REFUSED})


def pause(interval: float, waited: float) -> float:
    """Seconds until a job that has run for `waited` seconds is asked for again: a twentieth, from `interval` to 60."""
    return max(interval, min(waited * _PATIENCE, _LONGEST_PAUSE))


class BatchService:
    """The batch service of one provider. Only the first key is used: a job belongs to the account that made it."""

    def __init__(self, api: BatchApi, wire: Wire, settings: ProviderSettings) -> None:
        self.settings = settings
        self.jobs = settings.jobs
        self.label = wire.label
        self.space = (wire.name, wire.model, wire.key)
        """Provider, model and key of the vectors' space."""
        self._api = api
        self._http = Http(wire.label, wire.base_url, wire.headers, wire.auth[:1])
        self._background = Background(self._http.close)

    def upload(self, texts: Sequence[tuple[str, str]]) -> str:
        """Send a file of (id, text); returns what it is called there. Raises ProviderFailure, Cancelled."""
        require_consent(self.space[0], self._http.host, self.settings)
        content = b"\n".join(
            json.dumps(self._api.line(text_id, well_formed(text)), ensure_ascii=False).encode()
            for text_id, text in texts
        )
        file = self._api.upload(content, f"memory-tui-{hashlib.sha256(content).hexdigest()[:32]}")

        async def once() -> str:
            answer = await self._http.ask(
                "POST", file.path, _UPLOAD_SECONDS, file.content, {"Content-Type": file.content_type}
            )
            return self._read(self._api.file_id, answer)

        return self._run(once)

    def create(self, file_id: str) -> str:
        """Make a job of the file; returns what it is called there. Raises ProviderFailure, Cancelled.

        After an attempt that may have made one, the provider's list of jobs is asked before the next.
        """
        path, body = self._api.create(file_id)
        content = json.dumps(body, ensure_ascii=False).encode()
        unsure = False

        async def once() -> str:
            nonlocal unsure
            if unsure and (made := await self._made(file_id)):
                return made
            try:
                return self._read(self._api.job_id, await self._http.ask("POST", path, _CALL_SECONDS, content))
            except ProviderFailure as failure:
                unsure = unsure or failure.state in UNSURE
                raise

        return self._run(once)

    def find(self, file_id: str) -> str:
        """The job that was made of the file, empty when there is none. Raises ProviderFailure, Cancelled."""
        return self._run(lambda: self._made(file_id))

    def look(self, job_id: str) -> Look:
        """What a job is doing. Raises ProviderFailure, Cancelled."""

        async def once() -> Look:
            return self._read(self._api.look, await self._http.ask("GET", self._api.job(job_id), _CALL_SECONDS))

        return self._run(once)

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end a job. Raises ProviderFailure, Cancelled."""
        self._run(lambda: self._http.ask("POST", self._api.cancel(job_id), _CALL_SECONDS, b"{}"))

    def fetch(self, look: Look, dims: int) -> Iterator[Results]:
        """The results of a job that has ended, piece by piece, from files without a name. Raises as the others do."""
        from memory_tui.embed import batch_lines

        def files() -> Iterator[BinaryIO]:
            for name in look.files:
                with tempfile.TemporaryFile() as file:
                    self._save(name, file)
                    yield file

        for piece in batch_lines.results(files(), self._api.result, dims):
            piece.errors = {text_id: self._http.hidden(said) for text_id, said in piece.errors.items()}
            yield piece

    def discard(self, files: Sequence[str]) -> str:
        """Delete the files of a finished job, which hold notes; empty, or why some stay. Tries once."""

        async def all_of_them() -> None:
            for name in filter(None, files):
                await self._http.ask("DELETE", self._api.file(name), _CALL_SECONDS)

        try:
            self._background.run(all_of_them)
        except ProviderFailure as failure:
            return f"files of the job stay at {self.label}: {failure.message}"
        return ""

    def wait(self, seconds: float) -> None:
        """Let time pass. Raises Cancelled once `close` is called."""

        async def sleep() -> None:
            await self.settings.clock.sleep(seconds)

        self._background.run(sleep)

    def close(self) -> None:
        """Give up every call and every wait, at once. Jobs go on."""
        self._background.close()

    def _save(self, name: str, file: BinaryIO) -> None:
        async def once() -> None:
            file.seek(0)
            file.truncate()
            try:
                await self._http.save(self._api.content(name), file, _CALL_SECONDS)
            except OSError as error:
                why = error.strerror
            else:
                return
            raise ProviderFailure(
                State.BROKEN,
                f"The results of {self.label} cannot be put on disk: {why}.",
                "Free some space; they are fetched again at the next start.",
            )

        self._run(once)
        file.seek(0)

    async def _made(self, file_id: str) -> str:
        try:
            return self._read(
                lambda answer: self._api.find(answer, file_id),
                await self._http.ask("GET", self._api.recent(), _CALL_SECONDS),
            )
        except ProviderFailure as failure:
            if failure.state in _NO_LIST:
                return ""
            raise

    def _read(self, how: Callable[[object], T], answer: object) -> T:
        try:
            return how(answer)
        except Malformed as error:
            why = str(error)
        raise ProviderFailure(State.MALFORMED, f"{self.label} ({self._http.host}) answered with {why}.")

    def _run(self, once: Callable[[], Awaitable[T]]) -> T:
        """What `once` gives, asked again after a failure that may pass."""
        clock = self.settings.clock

        def wait(state: tenacity.RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked = failure.retry_after if isinstance(failure, ProviderFailure) else None
            usual = min(_FIRST_WAIT * 2 ** (state.attempt_number - 1), _LONGEST_WAIT) * (1 + 0.2 * clock.jitter())
            return float(max(usual, asked or 0))

        def again(error: BaseException) -> bool:
            return (
                isinstance(error, ProviderFailure)
                and error.state in RETRIED
                and (error.retry_after or 0) <= _LONGEST_OBEYED
            )

        attempts = tenacity.AsyncRetrying(
            sleep=clock.sleep,
            stop=tenacity.stop_after_attempt(self.jobs.attempts),
            wait=wait,
            retry=tenacity.retry_if_exception(again),
            reraise=True,
        )

        async def attempt() -> T:
            return await once()

        async def persistent() -> T:
            result: T = await attempts(attempt)
            return result

        made: Callable[[], Coroutine[Any, Any, T]] = persistent
        return self._background.run(made)
