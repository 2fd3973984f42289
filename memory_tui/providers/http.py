"""Ask a provider over HTTP: requests within a deadline, in groups, halved where they are too large, and batch jobs.

One that failed is repeated within its call, as far as that may help; pauses between calls are `chain.py`'s. A batch
service turns a file of texts into a file of vectors within hours, at a lower price. The index remembers the job
(`memory_tui/index/embedding.py`). A call blocks on the network; `close` ends it at once, and the job goes on at the
provider.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import BinaryIO
from urllib.parse import unquote

import httpx
import msgspec
import numpy as np
from msgspec import Struct

from memory_tui import __version__, providers
from memory_tui.cancel import Stop
from memory_tui.jsstring import well_formed
from memory_tui.providers import Cause, Identity, Kind, Provider, ProviderFailure, Vectors, registry
from memory_tui.providers.registry import Headers, ProviderSettings, Wire, host_of, on_this_machine
from memory_tui.secrets import Redactor

_MOST_BYTES = 64 << 20
"""A longer answer is none that a request can have."""
_LONGEST_OBEYED = {"document": 60.0, "query": 8.0}
"""Seconds of Retry-After that are waited for within a call; after longer ones the call fails and names the time."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
"""Seconds between two attempts of a call: doubled with each attempt up to the second."""
_NEXT_KEY = frozenset({Cause.RATE_LIMIT, Cause.QUOTA, Cause.BAD_KEY})
_NONE: Headers = {}
CONNECT_SECONDS = 10.0
"""How long a connection may take to be made."""
_CERTIFICATE = (
    "The server's certificate is not trusted. Name the authority that signed it in SSL_CERT_FILE, or check "
    "remote.baseUrl."
)


# --- one request -----------------------------------------------------------------------------------------------------


class SentHeaders(dict[str, str]):
    """Headers of a request by their names in one spelling, which nothing shows."""

    def __repr__(self) -> str:
        return "[hidden]"

    def with_more(self, *more: Headers) -> SentHeaders:
        """Return these and those of `more`; later ones win."""
        return SentHeaders({**self, **{name.title(): value for part in more for name, value in part.items()}})


PLAIN = SentHeaders().with_more({"Accept-Encoding": "gzip, deflate", "User-Agent": f"memory-tui/{__version__}"})


Take = Callable[[httpx.Response, Iterator[bytes]], str]
"""What is done with an answer and the parts of its body, unpacked; returns the text that is judged."""


class _AbandonedError(Exception):
    """Nobody waits for the answer any more."""


class _Exchange(threading.Thread):
    """One request, on a thread of its own because a look-up of a host name can hang.

    Whoever waits for it may abandon it at any time; from then on no text is sent.
    """

    def __init__(self, client: httpx.Client, request: httpx.Request, take: Take) -> None:
        super().__init__(name="embed-request", daemon=True)
        self._client, self._request, self._take = client, request, take
        request.extensions["trace"] = self._look_before
        self._abandoned, self._over = threading.Event(), threading.Event()
        self._parts = 0
        """How many parts of the answer have come, its headers included."""
        self._outcome: tuple[httpx.Response, str] | Exception = httpx.ReadTimeout("the time is over")
        """The answer with its text, or what went wrong; a timeout until one of them is there."""

    def run(self) -> None:
        """Take the answer in, or what went wrong."""
        try:
            with closing(self._client.send(self._request, stream=True)) as response:
                self._parts = 1
                self._outcome = response, self._take(response, self._body(response))
        except _AbandonedError:
            # `abandon` woke who waited already.
            return
        except Exception as error:  # noqa: BLE001 - raised again by who waits
            # The frames of a traceback hold headers, which may be shown.
            self._outcome = error.with_traceback(None)
        self._over.set()

    def wait(self, seconds: float, ends: float) -> None:
        """Wait until it is over, no longer than `seconds` for each part, and not beyond `ends`."""
        parts_before = -1
        # Once more after each wait in which a part came.
        while parts_before < self._parts and time.monotonic() < ends:
            parts_before = self._parts
            if self._over.wait(min(seconds, max(0.0, ends - time.monotonic()))):
                return

    def outcome(self) -> tuple[httpx.Response, str]:
        """Return the answer and the text that was made of it. Raises what went wrong."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def abandon(self) -> None:
        """Send nothing more and take no more; wake who waits."""
        self._abandoned.set()
        self._over.set()

    def _body(self, response: httpx.Response) -> Iterator[bytes]:
        """Yield the parts of the body, and count them for `wait`. Raises _AbandonedError."""
        for part in response.iter_bytes():
            if self._abandoned.is_set():
                raise _AbandonedError
            self._parts += 1
            yield part

    def _look_before(self, event: str, _about: object) -> None:
        """Stop before anything is sent: httpx calls this at each step of a request."""
        # To connect takes time, after which nobody may wait for the answer any more.
        if event.endswith(".send_request_headers.started") and self._abandoned.is_set():
            raise _AbandonedError


def _new_client(url: httpx.URL, *, environment: bool) -> httpx.Client:
    """Make a client that keeps no cookies. Raises ProviderFailure."""
    try:
        # Nothing is to be checked where neither server nor proxy is asked with encryption.
        is_encrypted = environment or url.scheme == "https"
        return httpx.Client(
            verify=httpx.create_ssl_context(trust_env=environment) if is_encrypted else False,
            trust_env=environment,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0),
        )
    except OSError as error:
        why = f"The certificates that {url.host} is checked with cannot be read: {error.strerror or error}"
        step = "Check SSL_CERT_FILE and SSL_CERT_DIR."
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        # The text of the error is not shown: it quotes the address of the proxy, which may hold a password.
        reason = "SOCKS needs the package socksio" if isinstance(error, ImportError) else "it is no address of a proxy"
        why = f"The proxy on the way to {url.host} cannot be used: {reason}."
        step = "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY."
    raise ProviderFailure(Cause.BROKEN, why, step)


class Http:
    """One endpoint, safe for any thread; other hosts than this machine may be asked through the proxies of the
    environment. `auth` holds a set of headers for each key; the next is used when one is refused. `headers` win.
    Whatever a call waits for, it ends with Cancelled once `stop` is set.

    Redirects are not followed, because key and text would go along. A failure never shows a secret.
    """

    def __init__(
        self, label: str, base_url: str, stop: Stop, headers: Headers = _NONE, auth: Sequence[Headers] = ()
    ) -> None:
        self.label, self.host = label, host_of(base_url)
        self._base, self._stop = base_url, stop
        # USER:PASSWORD of an address, which a server gets in base64 and may repeat; spaces part what is hidden.
        login = base_url.partition("//")[2].partition("/")[0].rpartition("@")[0]
        encoded = base64.b64encode(unquote(login).encode()).decode()
        self.hidden = Redactor(headers, *auth, {"login": f"{login.replace(':', ' ')} {encoded}"})
        """Takes every secret of this endpoint out of a text."""
        json_alone = {"Accept": "application/json", "Content-Type": "application/json"}
        # All headers of a request, once for each key; a server without a key has one set.
        self._keys = [PLAIN.with_more(json_alone, key, headers) for key in auth or ({},)]
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, bool], httpx.Client] = {}
        """The open ones, by the scheme of an address and whether it is another machine's."""

    def post(self, path: str, body: object, seconds: float) -> object:
        """Return the JSON answer to `body`, within `seconds` in all. Raises ProviderFailure, Cancelled."""
        return self.ask("POST", path, seconds, json.dumps(body, ensure_ascii=False).encode())

    def ask(
        self, method: str, path: str, seconds: float, content: bytes | None = None, headers: Headers = _NONE
    ) -> object:
        """Return the JSON answer to one request; `headers` are for this one. Raises ProviderFailure, Cancelled."""
        refusal = None
        # As many attempts as there are keys; the first of them is the one in use.
        for _ in self._keys:
            key = self._keys[0]
            try:
                answer, text = self._sent(method, path, key.with_more(headers), body=content, seconds=seconds)
                return self._value(answer, text)
            except ProviderFailure as failure:
                if failure.state not in _NEXT_KEY:
                    raise
                refusal = failure
                # Of several requests that met the same refusal only one turns to the next key.
                with self._lock:
                    if key is self._keys[0]:
                        self._keys = [*self._keys[1:], key]
        assert refusal is not None
        raise refusal

    def save(self, path: str, into: BinaryIO, seconds: float) -> None:
        """Write the body at `path` to `into`, of any size; no two pieces may be `seconds` apart.

        One redirect is followed, without key and headers: files are often kept at another host. Raises
        ProviderFailure, Cancelled.
        """

        def take(answer: httpx.Response, parts: Iterator[bytes]) -> str:
            """Write the body into the file; of a refusal return the text of it, which `_value` judges."""
            if answer.status_code != HTTPStatus.OK:
                return self._text(answer, parts)
            into.writelines(parts)
            return ""

        # With the key at first, without it where the first answer points to.
        for headers in (self._keys[0], PLAIN):
            answer, text = self._sent("GET", path, headers, body=None, seconds=seconds, file=take)
            if answer.status_code == HTTPStatus.OK:
                return
            if not answer.is_redirect:
                break
            # An address that cannot be read leaves the redirect as the answer, which `_value` refuses.
            with suppress(httpx.InvalidURL):
                path = str(self.address(path).join(answer.headers.get("location", "")))
        self._value(answer, text)

    def _sent(
        self, method: str, path: str, headers: SentHeaders, body: bytes | None, seconds: float, file: Take | None = None
    ) -> tuple[httpx.Response, str]:
        """Send one request; return its answer and the text of it.

        The request has `seconds` in all. With `file`, which takes the body of any size and returns the text, it has
        `seconds` for each part of the body. Raises ProviderFailure, Cancelled.
        """
        ends = time.monotonic() + seconds
        url = self.address(path)
        client, take = self._client(url), file or self._text
        limit = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS), pool=None)
        # A request in a name of this frame would show its address, with a password, in a traceback.
        exchange = _Exchange(
            client, client.build_request(method, url, headers=headers, content=body, timeout=limit), take
        )
        with self._stop.around(exchange.abandon):
            exchange.start()
            exchange.wait(seconds, math.inf if file else ends)
            # An outcome that is there stays; without one it is a timeout from now on.
            exchange.abandon()
            # A stop abandoned it too, and then it is no failure of the provider.
            self._stop.check()
            try:
                return exchange.outcome()
            except (httpx.RequestError, httpx.InvalidURL) as error:
                # Parts of a file are waited for once there is a connection, which has a shorter time to be made.
                is_late = not isinstance(error, httpx.ConnectTimeout) if file else time.monotonic() >= ends
                if not isinstance(error, httpx.TimeoutException) or not is_late:
                    raise self._fault(error) from None
                why = f"sent nothing for {seconds:g} s." if file else f"did not answer in {seconds:.3g} s."
                raise ProviderFailure(Cause.TIMEOUT, f"{self.label} ({self.host}) {why}") from None

    def address(self, path: str) -> httpx.URL:
        """Return where `path` is, whose repr hides a password. Raises ProviderFailure for what is no address."""
        try:
            return httpx.URL(path if "://" in path else self._base + path)
        except httpx.InvalidURL as error:
            failure = self._fault(error)
        raise failure

    def close(self) -> None:
        """Close every connection that is idle now; others end with their request."""
        for client in tuple(self._clients.values()):
            client.close()

    def _client(self, url: httpx.URL) -> httpx.Client:
        """Return the client for addresses like `url`: of this machine, where no proxy stands between, or of others."""
        elsewhere = not on_this_machine(url.netloc.decode("ascii"))
        key = (url.scheme, elsewhere)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = _new_client(url, environment=elsewhere)
            return self._clients[key]

    def _text(self, _answer: httpx.Response, parts: Iterator[bytes]) -> str:
        """Return the body, or as much of it as the limit allows, without secrets: it may repeat what it was sent."""
        body = bytearray()
        for part in parts:
            body += part
            if len(body) >= _MOST_BYTES:
                break
        return self.hidden(body.decode("utf-8", "replace"))

    def _fault(self, error: Exception) -> ProviderFailure:
        """Return `error` as a failure, with a sentence that holds no secret.

        Its `broke_off` tells whether there was a connection, which then broke.
        """
        why = self.hidden(str(error)) or type(error).__name__
        if isinstance(error, httpx.DecodingError):
            return ProviderFailure(Cause.MALFORMED, f"{self.label} answered with something that cannot be read: {why}")
        if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.InvalidURL):
            return ProviderFailure(Cause.REFUSED, f"{self.label} cannot be asked: {why}")
        step = _CERTIFICATE if "CERTIFICATE_VERIFY_FAILED" in why else ""
        if "refused" in why and on_this_machine(self.host):
            step = "Start it, or correct the address (remote.baseUrl)."
        failure = ProviderFailure(Cause.NETWORK, f"{self.label} ({self.host}) cannot be reached: {why}", step)
        failure.broke_off = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
        return failure

    def _value(self, answer: httpx.Response, text: str) -> object:
        """Return the JSON value of an answer. Raises ProviderFailure."""
        status = answer.status_code
        if answer.is_redirect:
            to = host_of(answer.headers.get("location", "")) or self.host
            why = f"{self.label} answered {status} and points to {to}, where key and text were not sent."
            raise ProviderFailure(Cause.REFUSED, why, "If that address is right, make it the remote.baseUrl.")
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            why = f"The proxy on the way to {self.host} answered {status}: it wants a login."
            step = "Put user and password into HTTPS_PROXY (or HTTP_PROXY), or name the host in NO_PROXY."
            raise ProviderFailure(Cause.NETWORK, why, step)
        if status != HTTPStatus.OK:
            state, words, wait = providers.diagnose(status, answer.headers, text)
            raise ProviderFailure(state, f"{self.label} answered {status}: {words or 'nothing else'}", retry_after=wait)
        if len(text) >= _MOST_BYTES:
            raise ProviderFailure(Cause.MALFORMED, f"{self.label} answered with more than {_MOST_BYTES >> 20} MiB.")
        with suppress(ValueError, RecursionError):
            try:
                return msgspec.json.decode(text)
            except msgspec.DecodeError:
                # Some servers write NaN.
                return json.loads(text)
        kind = answer.headers.get("content-type", "").split(";")[0] or "something"
        raise ProviderFailure(Cause.MALFORMED, f"{self.label} ({self.host}) answered with {kind} that is not JSON.")


# --- the provider ----------------------------------------------------------------------------------------------------

_FAILURES_TO_SEQUENTIAL, _SUCCESSES_TO_CONCURRENT = 2, 32
_SHORTEST = 32
"""Characters of a text so short that it is not cut any more."""
_SMALL_BYTES = 8_000
"""A request that every provider takes, and can answer in time on a slow machine."""
_MAYBE_TOO_LARGE = frozenset({Cause.RATE_LIMIT, Cause.SERVER, Cause.TIMEOUT})
_PROBE = "memory"


def groups(texts: Sequence[str], positions: Sequence[int], most_bytes: int, most_items: int) -> list[list[int]]:
    """Cut `positions`, which point into `texts`, into runs, one for each request.

    The texts of a run have at most `most_bytes` of UTF-8 together, and are at most `most_items`. A text that is longer
    by itself goes alone.
    """
    runs: list[list[int]] = []
    size = 0
    for position in positions:
        text = texts[position]
        length = len(text.encode("utf-8", "replace"))
        if isinstance(text, providers.MediaText):
            # The bytes of the file are sent in base64.
            length += math.ceil(text.most / 3) * 4
        if not runs or size + length > most_bytes or len(runs[-1]) >= most_items:
            runs.append([])
            size = 0
        runs[-1].append(position)
        size += length
    return runs


def _halves(text: str) -> list[str]:
    """Cut `text` in two, at the white space nearest to its middle; empty for one that is too short, or a file."""
    if isinstance(text, providers.MediaText) or len(text) < 2 * _SHORTEST:
        return []
    middle = len(text) // 2
    spaces = [position for position in range(middle // 2, middle + middle // 2) if text[position].isspace()]
    cut = min(spaces, key=lambda position: abs(position - middle), default=middle)
    return [part for part in (text[:cut], text[cut:]) if part.strip()]


class Remote(Provider):
    """One remote provider. `embed` and `identity` block on the network, so both belong on a worker thread."""

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self._wire, self._limits, self._clock = wire, settings.batches, settings.clock
        self.known = wire.identity(wire.dims) if wire.dims else None
        self._most_items = wire.row.most_items
        self._most_bytes = self._limits.most_bytes or wire.row.most_bytes
        self._proven = False
        """Whether it ever made a good vector: then one that points nowhere is about its text."""
        self._stop = Stop()
        self._http = Http(wire.row.label, wire.base_url, self._stop, wire.headers, wire.auth)
        self._concurrency = max(1, min(self._limits.concurrency, wire.row.concurrency))
        self._troubles = self._successes = 0
        """Failures that may pass, and good answers since the last one; so many good ones in a row forget the failures.

        After some failures notes are sent one by one.
        """
        # Each lets one thread at a time ask for the space, judge an answer, or send notes when they go one by one.
        self._probing, self._checking, self._turn = (threading.Lock() for _ in range(3))

    @property
    def identity(self) -> Identity:
        """The space of the vectors. Their length comes from what is known of the model, else from one call of `embed`
        when it is first asked for: that blocks, and raises ProviderFailure or Cancelled.
        """
        with self._probing:
            if self.known is None:
                self.embed([_PROBE], self._limits.probe)
            assert self.known is not None
            return self.known

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that is surely within the model's limit."""
        return self._wire.max_input_bytes

    @property
    def detail(self) -> str:
        """Where it is, and whether it is asked with care."""
        if not self._proven:
            return f"ready, {self._http.host}, not asked yet"
        is_slowed = self._concurrency > 1 and self._one_at_a_time()
        return f"{self._http.host}{', one request at a time' if is_slowed else ''}"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims) of unit vectors; blank texts are not sent and have zeros.

        A text over the model's limit is embedded in parts, whose mean it gets. Raises ProviderFailure, with the
        vectors that were made before it, and Cancelled once `close` is called.
        """
        self._stop.check()
        done: dict[int, Vectors] = {}
        sent = [text if isinstance(text, providers.MediaText) else well_formed(text) for text in texts]
        filled = [position for position, text in enumerate(sent) if text.strip()]
        runs = groups(sent, filled, self._most_bytes, self._most_items)
        failures: list[ProviderFailure] = []

        def work(run: list[int]) -> None:
            """Embed the texts of a run, unless the provider has failed already."""
            # A question does not queue behind notes.
            with self._turn if kind == "document" and self._one_at_a_time() else nullcontext():
                self._stop.check()
                if all(failure.state in providers.OF_THE_TEXT for failure in failures):
                    try:
                        self._embed_run(run, sent, kind, done)
                    except ProviderFailure as failure:
                        failures.append(failure)

        if len(runs) <= 1 or self._one_at_a_time():
            for run in runs:
                work(run)
        else:
            with ThreadPoolExecutor(self._concurrency, "embed-helper") as pool:
                # A list, so that what `work` raises is raised here.
                list(pool.map(work, runs))
        if failures:
            # What is wrong with the provider (False sorts first) matters more than what is wrong with a text.
            failure = min(failures, key=lambda failure: failure.state in providers.OF_THE_TEXT)
            failure.done = done
            raise failure
        return providers.in_rows(done, len(texts), self.known.dims if self.known else 0)

    def close(self) -> None:
        """Give up every call that is under way, at once."""
        self._stop.set()
        self._http.close()

    def _one_at_a_time(self) -> bool:
        """Tell whether one request at a time may run: after two failures, until things went well for a while."""
        return self._concurrency == 1 or self._troubles >= _FAILURES_TO_SEQUENTIAL

    def _embed_run(self, run: Sequence[int], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> None:
        """Put the vectors of the texts at the positions `run` into `done`.

        A run is cut and sent in pieces where it is refused, breaks the connection, or may be too large to be answered.
        A text that gets no vector costs the others nothing: the last failure of a text is raised after all were sent.
        Other failures are raised at once.
        """
        middle = (len(run) + 1) // 2
        smaller: Sequence[Sequence[int]] = (run[:middle], run[middle:])
        # Another thread may have learnt since that so many are too many.
        if len(run) <= self._most_items:
            try:
                vectors = self._persistent([texts[position] for position in run], kind)
                done.update(zip(run, vectors, strict=True))
                return
            except ProviderFailure as failure:
                of_the_text = failure.state in providers.OF_THE_TEXT
                if of_the_text and len(run) == 1:
                    done[run[0]] = self._in_parts(texts[run[0]], kind, failure)
                    return
                small = self._small_runs(run, texts, kind, failure)
                worth_cutting = of_the_text or (failure.broke_off and len(run) > 1)
                if not small and not worth_cutting:
                    raise
                if failure.state is Cause.TOO_LARGE:
                    self._most_items = min(self._most_items, middle)
                # Requests of a size that every provider takes, or else halves.
                smaller = small or smaller
        last_failure = None
        for part in smaller:
            try:
                self._embed_run(part, texts, kind, done)
            except ProviderFailure as failure:
                if failure.state not in providers.OF_THE_TEXT:
                    raise
                last_failure = failure
        if last_failure is not None:
            raise last_failure

    def _small_runs(
        self, run: Sequence[int], texts: Sequence[str], kind: Kind, failure: ProviderFailure
    ) -> list[list[int]]:
        """Cut `run` into small requests, where one so large may be why a provider does not answer for now.

        From then on all requests are small. Empty where there is nothing to be won by it.
        """
        if failure.state not in _MAYBE_TOO_LARGE or (failure.retry_after or 0) > _LONGEST_OBEYED[kind]:
            return []
        runs = groups(texts, run, _SMALL_BYTES, self._most_items)
        if len(runs) == 1:
            return []
        self._most_bytes = min(self._most_bytes, _SMALL_BYTES)
        return runs

    def _in_parts(self, text: str, kind: Kind, refusal: ProviderFailure) -> Vectors:
        """Return the unit vector of a text that is refused as a whole: the mean of its halves, weighed by their length.

        Raises the `refusal` of one that is too short to be cut.
        """
        halves = _halves(text)
        if not halves:
            raise refusal
        vectors: dict[int, Vectors] = {}
        for position in range(len(halves)):
            self._embed_run([position], halves, kind, vectors)
        # Lengths (halves,) by vectors (halves, dims); a mean of opposite vectors has no length, and stays zeros.
        mean = np.array(list(map(len, halves)), np.float32) @ providers.in_rows(vectors, len(halves), len(vectors[0]))
        return np.asarray(mean / (np.linalg.norm(mean) or 1), np.float32)

    def _persistent(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Make one request, again after a failure that may pass; all attempts of a question share its time limit."""
        attempt = 1
        seconds = self._wire.row.seconds(kind, self._limits)
        # Notes may take their time limit anew with each attempt.
        ends = time.monotonic() + seconds if kind == "query" else math.inf
        path, body = self._wire.request(texts, kind)
        while True:
            try:
                vectors = self._checked(self._http.post(path, body, seconds), len(texts))
            except ProviderFailure as failure:
                if failure.state in providers.PASSING:
                    self._troubles += 1
                    self._successes = 0
                wait = _wait_within(failure, kind, attempt, self._clock)
                if wait is None or attempt >= self._limits.attempts or time.monotonic() + wait >= ends:
                    raise
            else:
                self._successes += 1
                if self._successes >= _SUCCESSES_TO_CONCURRENT:
                    self._troubles = 0
                return vectors
            self._clock.pause(self._stop, wait)
            seconds = min(seconds, ends - time.monotonic())
            attempt += 1

    def _checked(self, answer: object, count: int) -> Vectors:
        """Return the `count` unit vectors of an answer; the first answer tells how long they are.

        Vectors without direction are a fault of the texts, once the model has made a good one. Raises ProviderFailure.
        """
        try:
            with self._checking:
                dims = self.known.dims if self.known else None
                vectors = providers.unit_vectors(self._wire.rows(answer), count, dims)
                self.known = self._wire.identity(vectors.shape[1])
                self._proven = True
                return vectors
        except providers.Malformed as error:
            state, why = Cause.MALFORMED, str(error)
            if isinstance(error, providers.NoDirection):
                self._proven = self._proven or not error.every
                if self._proven:
                    state, why = Cause.NO_VECTOR, f"{why} for a text"
        raise ProviderFailure(state, f"{self._wire.row.label} ({self._http.host}) answered with {why}.")


def _wait_within(failure: ProviderFailure, kind: Kind, attempt: int, clock: registry.RetryClock) -> float | None:
    """Return the seconds until a request is sent again within its call; None where it is not sent again.

    `attempt` is the number of the attempt that failed, from 1 on.
    """
    wait = failure.retry_after or 0
    if failure.state not in providers.RETRIED or wait > _LONGEST_OBEYED[kind]:
        return None
    # Doubled with each attempt, with up to a fifth more so that many clients do not come back at the same moment.
    return max(min(_FIRST_WAIT * 2.0 ** (attempt - 1) * (1 + 0.2 * clock.jitter()), _LONGEST_WAIT), wait)


# --- the batch service -----------------------------------------------------------------------------------------------

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_UPLOAD_SECONDS, _CALL_SECONDS, _LONGEST_LINE = 600.0, 60.0, 4 << 20
_ENDED = {"completed", "succeeded", "failed", "expired", "cancelled", "canceled"}
"""States in which a job has ended; in all others (validating, in_progress, finalizing ...) it runs."""
_ERRORS = ("error.message", "response.error.message", "response.body.error.message", "error", "response.body.error")


class JobStatus(Struct, frozen=True):
    """How far a job is: `phase` is "running", "completed" or the word for a bad end, of which `why` is the reason;
    `files` hold results or errors once it has ended.
    """

    phase: str
    files: tuple[str, ...] = ()
    why: str = ""


def pick(tree: object, *paths: str) -> object:
    """Return what stands below `tree` at the first of `paths` that leads to something, such as "data.0.message"."""
    for path in paths:
        node = tree
        for step in path.split("."):
            if isinstance(node, list):
                is_index = step.isdigit() and int(step) < len(node)
                node = node[int(step)] if is_index else None
            else:
                node = node.get(step) if isinstance(node, dict) else None
        if node:
            return node
    return None


def _text(tree: object, *paths: str) -> str:
    """Return the text that `pick` finds; empty where it is no text, or there is none."""
    value = pick(tree, *paths)
    return value if isinstance(value, str) else ""


class BatchService:
    """The batch service of OpenAI or Gemini. Only the first key is used: a job belongs to its account.

    Every call raises ProviderFailure, and Cancelled after `close`.
    """

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self.settings, self.jobs, self.label = settings, settings.jobs, wire.row.label
        self.space = (wire.row.name, wire.model, wire.key)
        """Provider, model and key of the vectors' space."""
        self._wire, self._stop = wire, Stop()
        self._gemini = wire.row.name == "gemini"
        """Whether it is Gemini's, whose addresses and fields are other ones than those of OpenAI."""
        self._http = Http(self.label, wire.base_url, self._stop, wire.headers, auth=wire.auth[:1])

    def _line(self, text_id: str, text: str) -> Mapping[str, object]:
        """Return the request for one text, a line of the file; `text_id` comes back with its answer."""
        _, body = self._wire.request([text], "document")
        if self._gemini:
            return {"key": text_id, "request": pick(body, "requests.0")}
        return {"custom_id": text_id, "method": "POST", "url": "/v1/embeddings", "body": {**body, "input": text}}

    def upload(self, texts: Sequence[tuple[str, str]]) -> str:
        """Send a file of (id, text) as two parts, of which the first says what the second is; return its name there."""
        registry.require_approval(self._wire.row.name, self._http.host, self.settings)
        lines = (json.dumps(self._line(text_id, well_formed(text)), ensure_ascii=False) for text_id, text in texts)
        content = "\n".join(lines).encode()
        digest = hashlib.sha256(content).hexdigest()
        # Of the content, so that the line between the parts cannot stand in it by accident.
        name, boundary = f"memory-tui-{digest[:32]}", f"memory-tui-{digest}"
        if self._gemini:
            path = f"{self._wire.base_url.replace('/v1beta', '/upload/v1beta')}/files?uploadType=multipart"
            kind = "related"
            about_head = "Content-Type: application/json; charset=UTF-8"
            about = json.dumps({"file": {"displayName": name, "mimeType": "application/jsonl"}}).encode()
            content_head = "Content-Type: application/jsonl"
        else:
            path, kind = "/files", "form-data"
            about_head, about = 'Content-Disposition: form-data; name="purpose"', b"batch"
            disposition = f'Content-Disposition: form-data; name="file"; filename="{name}.jsonl"'
            content_head = f"{disposition}\r\nContent-Type: application/jsonl"
        parts = ((about_head, about), (content_head, content))
        pieces = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + part for head, part in parts]
        data = b"\r\n".join([*pieces, f"--{boundary}--\r\n".encode()])
        headers = {"Content-Type": f"multipart/{kind}; boundary={boundary}"}
        return self._name(_text(self._http.ask("POST", path, _UPLOAD_SECONDS, data, headers), "file.name", "id"))

    def create(self, file_id: str) -> str:
        """Make a job of the file; return what it is called there."""
        if self._gemini:
            path = f"/models/{self._wire.model}:asyncBatchEmbedContent"
            about = {"displayName": f"memory-tui-{file_id}", "inputConfig": {"file_name": f"files/{file_id}"}}
            return self._name(_text(self._http.post(path, {"batch": about}, _CALL_SECONDS), "name"))
        body = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
        return self._name(_text(self._http.post("/batches", body, _CALL_SECONDS), "id"))

    def find(self, file_id: str) -> str:
        """Return the job that was made of the file, empty when there is none: after an answer of `create` got lost."""
        answer = self._http.ask("GET", f"/batches?{'pageSize' if self._gemini else 'limit'}=100", _CALL_SECONDS)
        jobs = pick(answer, "operations" if self._gemini else "data")
        for job in jobs if isinstance(jobs, list) else ():
            file = _text(job, "input_file_id", "metadata.displayName", "displayName")
            if file.removeprefix("memory-tui-") == file_id:
                return self._name(_text(job, "id", "name"))
        return ""

    def status(self, job_id: str) -> JobStatus:
        """Return what a job is doing."""
        job = self._http.ask("GET", f"/batches/{job_id}", _CALL_SECONDS)
        # Gemini writes BATCH_STATE_SUCCEEDED or JOB_STATE_SUCCEEDED, where OpenAI writes completed.
        state = _text(job, "status", "metadata.state", "state").upper().rpartition("STATE_")[2].lower()
        if not state:
            raise self._malformed("a job without a state")
        responses = _text(job, "metadata.output.responsesFile", "response.responsesFile", "output.responsesFile")
        files = (_text(job, "output_file_id"), _text(job, "error_file_id"), responses)
        return JobStatus(
            phase=state.replace("succeeded", "completed") if state in _ENDED else "running",
            files=tuple(self._name(file) for file in files if file),
            why=str(pick(job, "errors.data.0.message", "error.message") or ""),
        )

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end a job."""
        self._http.ask("POST", f"/batches/{job_id}{':' if self._gemini else '/'}cancel", _CALL_SECONDS, b"{}")

    def fetch(self, status: JobStatus, dims: int) -> tuple[dict[str, Vectors], dict[str, str]]:
        """Return the unit vectors that a job brought, and why other texts have none, both by the ids of the texts."""
        vectors: dict[str, Vectors] = {}
        errors: dict[str, str] = {}
        for name in status.files:
            path = f"/files/{name}:download?alt=media" if self._gemini else f"/files/{name}/content"
            with tempfile.TemporaryFile() as file:
                try:
                    self._http.save(path, file, _CALL_SECONDS)
                except OSError as error:
                    why = f"The results of {self.label} cannot be put on disk: {error.strerror}."
                    step = "Free some space; they are fetched again at the next start."
                    raise ProviderFailure(Cause.BROKEN, why, step) from error
                file.seek(0)
                while raw := file.readline(_LONGEST_LINE):
                    self._take(raw, dims, vectors, errors)
        return vectors, {text_id: why for text_id, why in errors.items() if text_id not in vectors}

    def _take(self, raw: bytes, dims: int, vectors: dict[str, Vectors], errors: dict[str, str]) -> None:
        """Put what a line of results says of its text into `vectors` or `errors`.

        Of several lines about one text the first with a good vector counts. A line that is no JSON, or names no text,
        is ignored.
        """
        try:
            line = json.loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        text_id = _text(line, "custom_id", "key")
        if not text_id or text_id in vectors:
            return
        vector = pick(line, "response.body.data.0.embedding", "response.embedding.values")
        error = pick(line, *_ERRORS)
        try:
            if error or not vector:
                raise providers.Malformed(str(error or "no vector came back"))
            vectors[text_id] = providers.unit_vectors([vector], 1, dims)[0]
        except providers.Malformed as why:
            errors[text_id] = self._http.hidden(str(why))

    def discard(self, files: Sequence[str]) -> str:
        """Delete the files of a finished job, which hold notes; return why some stay, else nothing. Tries once."""
        try:
            for name in files:
                self._http.ask("DELETE", f"/files/{name}", _CALL_SECONDS)
        except ProviderFailure as failure:
            return f"files of the job stay at {self.label}: {failure.message}"
        return ""

    def wait(self, seconds: float) -> None:
        """Let time pass. Raises Cancelled once `close` is called."""
        self.settings.clock.pause(self._stop, seconds)

    def close(self) -> None:
        """Give up every call and every wait, at once. Jobs go on."""
        self._stop.set()
        self._http.close()

    def _name(self, text: str) -> str:
        """Return the name of a job or file without its folder. Raises ProviderFailure where it could lead elsewhere."""
        name = text.removeprefix("files/").removeprefix("batches/")
        if not _ID.fullmatch(name):
            raise self._malformed("a name that is none")
        return name

    def _malformed(self, why: str) -> ProviderFailure:
        """Return the error of an answer that cannot be used."""
        return ProviderFailure(Cause.MALFORMED, f"{self.label} ({self._http.host}) answered with {why}.")
