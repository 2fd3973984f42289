"""The HTTP client posts JSON to a provider; a failure never shows a secret."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import os
import queue
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache, partial
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType
from typing import BinaryIO
from urllib.parse import unquote

import certifi
import httpx
import msgspec
import numpy as np

from memory_tui import __version__
from memory_tui.core.cancel import Stop
from memory_tui.core.discreet import Discreet
from memory_tui.core.jsstring import well_formed
from memory_tui.providers.base import Health, Identity, Malformed, MediaText, NoDirection, Vectors, unit_vectors
from memory_tui.providers.failures import OF_THE_TEXT, PASSING, RETRIED, Cause, ProviderFailure, diagnose
from memory_tui.providers.options import Kind, ProviderSettings, Redactor, Wire, host_of, on_this_machine

FAULTS = (httpx.RequestError, httpx.InvalidURL)
"""What can go wrong on the way to an answer."""
_MOST_BYTES = 64 << 20
"""A longer answer is none that a request can have."""
_USUAL = {"User-Agent": f"memory-tui/{__version__}", "Accept": "application/json", "Content-Type": "application/json"}
_PLAIN = {"User-Agent": f"memory-tui/{__version__}", "Accept": "*/*"}
_NEXT_KEY = frozenset({Cause.RATE_LIMIT, Cause.QUOTA, Cause.BAD_KEY})
_NONE: Mapping[str, str] = MappingProxyType({})
_CONNECT_SECONDS = 10.0
_AHEAD = 64
"""Pieces of an answer that wait for who takes it."""
_FULL_SECONDS = 0.1

_CERTIFICATE = (
    "The server's certificate is not trusted. Name the authority that signed it in SSL_CERT_FILE, or check "
    "remote.baseUrl."
)


def address_of(text: str) -> httpx.URL:
    """`text` as an address, whose repr hides a password. Raises UnsupportedProtocol, InvalidURL for what is none."""
    if not text.startswith(("http://", "https://")) or not host_of(text):
        raise httpx.UnsupportedProtocol("the address does not begin with http:// or https:// and a host")
    return httpx.URL(text)


class SentHeaders:
    """Headers of a request, which nothing shows. Later ones of `parts` win, whatever the case of their names."""

    def __init__(self, *parts: Mapping[str, str]) -> None:
        self._merged = {name.lower(): (name, value) for each in parts for name, value in each.items()}

    def with_more(self, more: Mapping[str, str]) -> SentHeaders:
        """These and `more`, which win."""
        return SentHeaders(dict(self._merged.values()), more) if more else self

    def lines(self) -> list[tuple[bytes, bytes]]:
        """All lines of a request, but for those about its address and content."""
        usual = {"accept-encoding": ("Accept-Encoding", "gzip, deflate")}
        return [(name.encode(), value.encode("utf-8", "replace")) for name, value in {**usual, **self._merged}.values()]


class HttpAnswer(Discreet, frozen=True):
    """Status, headers by their names in lower case, and the body in `parts`, unpacked."""

    HIDDEN = ("headers",)

    status: int
    headers: Mapping[str, str]
    parts: Iterator[bytes]

    @property
    def redirects(self) -> bool:
        """Whether it points to another address."""
        return 300 <= self.status < 400


class _LeftError(Exception):
    """Nobody waits for the answer any more."""


class _Exchange(threading.Thread):
    """One request on a thread of its own, because a look-up of a host name can hang. Who waits for it may leave at any
    time; from then on no text is sent.
    """

    def __init__(
        self,
        client: httpx.Client,
        method: str,
        url: httpx.URL,
        headers: SentHeaders,
        content: bytes | None,
        seconds: float,
    ) -> None:
        super().__init__(name="embed-request", daemon=True)
        self._client = client
        self._left = threading.Event()
        self._items: queue.Queue[httpx.Response | bytes | Exception | None] = queue.Queue(_AHEAD)
        self._request = client.build_request(
            method,
            url,
            headers=headers.lines(),
            content=content,
            timeout=httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS), pool=None),
            extensions={"trace": self._look_before},
        )

    def run(self) -> None:
        """Hand over the answer, its pieces and None, or what went wrong."""
        try:
            with closing(self._client.send(self._request, stream=True)) as response:
                self._hand(response)
                for part in response.iter_bytes():
                    self._hand(part)
            self._hand(None)
        except _LeftError:
            return
        except Exception as error:  # noqa: BLE001 - raised again by who waits
            # What is on the way there shows headers.
            with suppress(_LeftError):
                self._hand(error.with_traceback(None))

    def take(self, seconds: float) -> httpx.Response | bytes | Exception | None:
        """What is handed over next. Raises ReadTimeout after `seconds`."""
        try:
            return self._items.get(timeout=max(0.0, seconds))
        except queue.Empty:
            pass
        raise httpx.ReadTimeout("the time is over")

    def leave(self) -> None:
        """Send nothing more and take no more; wake who waits."""
        self._left.set()
        with suppress(queue.Full):
            self._items.put_nowait(None)

    def _hand(self, item: httpx.Response | bytes | Exception | None) -> None:
        while True:
            self._look()
            with suppress(queue.Full):
                self._items.put(item, timeout=_FULL_SECONDS)
                return

    def _look(self) -> None:
        if self._left.is_set():
            raise _LeftError

    def _look_before(self, event: str, _about: object) -> None:
        # A connection may be there only when nobody waits for it any more.
        if event.endswith(".send_request_headers.started"):
            self._look()


class Network:
    """Requests to servers, safe for any thread; those to others may go through the proxies of the environment.

    Whatever a request waits for, it ends when `stop` is set.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._clients: dict[tuple[str, bool], httpx.Client] = {}
        self._making = threading.Lock()

    @contextmanager
    def answer(
        self,
        method: str,
        url: httpx.URL,
        headers: SentHeaders,
        content: bytes | None = None,
        *,
        seconds: float,
        in_all: bool = True,
    ) -> Iterator[HttpAnswer]:
        """The answer to one request, within `seconds` in all, or else with no pause that is longer.

        Redirects are not followed. Raises ProviderFailure for what is wrong on this side, FAULTS for the rest,
        Cancelled.
        """
        ends = time.monotonic() + seconds
        exchange = _Exchange(self._client(url), method, url, headers, content, seconds)

        def following() -> Iterator[httpx.Response | bytes]:
            while True:
                item = exchange.take(ends - time.monotonic() if in_all else seconds)
                self._stop.check()
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item

        with self._stop.around(exchange.leave):
            exchange.start()
            try:
                items = following()
                response = next(items)
                assert isinstance(response, httpx.Response)
                told = {
                    name.decode("latin-1").lower(): value.decode("utf-8", "replace")
                    for name, value in response.headers.raw
                }
                yield HttpAnswer(response.status_code, told, (part for part in items if isinstance(part, bytes)))
            finally:
                exchange.leave()

    def close(self) -> None:
        """Close every connection that is idle now; others end with their request."""
        for client in tuple(self._clients.values()):
            client.close()

    def _client(self, url: httpx.URL) -> httpx.Client:
        """The client for addresses like `url`: of this machine, where no proxy stands between, or of others."""
        key = (url.scheme, not on_this_machine(url.netloc.decode("ascii")))
        with self._making:
            if key not in self._clients:
                self._clients[key] = _new_client(url, environment=key[1])
            return self._clients[key]


def _new_client(url: httpx.URL, *, environment: bool) -> httpx.Client:
    """A client that keeps no cookies. Raises ProviderFailure."""
    try:
        return httpx.Client(
            # Nothing is to be checked where neither server nor proxy is asked with encryption.
            verify=certificates(environment) if environment or url.scheme == "https" else False,
            trust_env=environment,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0),
        )
    except OSError as error:
        failure = ProviderFailure(
            Cause.BROKEN,
            f"The certificates that {url.host} is checked with cannot be read: {error.strerror or error}",
            "Check SSL_CERT_FILE and SSL_CERT_DIR.",
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        # Another error than the first quotes what may be a password.
        why = "SOCKS needs the package socksio" if isinstance(error, ImportError) else "it is no address of a proxy"
        failure = ProviderFailure(
            Cause.BROKEN,
            f"The proxy on the way to {url.host} cannot be used: {why}.",
            "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY.",
        )
    raise failure


def certificates(environment: bool) -> ssl.SSLContext:
    """Whom a server's certificate may be signed by, read once; as the `environment` says where that counts.

    Raises OSError.
    """
    told = os.environ if environment else {}
    return trusted(told.get("SSL_CERT_FILE", ""), told.get("SSL_CERT_DIR", ""))


@cache
def trusted(file: str, folder: str) -> ssl.SSLContext:
    """Whom `file` or else `folder` names, or else the usual authorities. Raises OSError."""
    if folder and not file:
        return ssl.create_default_context(capath=folder)
    return ssl.create_default_context(cafile=file or certifi.where())


class Http:
    """One endpoint, safe for any thread. `auth` holds a set of headers for each key; the next is used when one is
    refused. `headers` win. Every call ends with Cancelled once `stop` is set.

    Redirects are not followed, because key and text would go along.
    """

    def __init__(
        self,
        label: str,
        base_url: str,
        stop: Stop,
        headers: Mapping[str, str] = _NONE,
        auth: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.label = label
        self.host = host_of(base_url)
        self._base = base_url
        self._stop = stop
        self._redact = Redactor.of_headers(headers, *auth, _userinfo(base_url))
        self._keys = [SentHeaders(_USUAL, one, headers) for one in auth or ({},)]
        self._turning = threading.Lock()
        self._network = Network(stop)

    def post(self, path: str, body: object, seconds: float) -> object:
        """The JSON answer to `body`, within `seconds` in all. Raises ProviderFailure, Cancelled."""
        content = json.dumps(body, ensure_ascii=False).encode()
        failure = None
        for _ in self._keys:
            key = self._keys[0]
            try:
                return self._ask("POST", path, seconds, content, key)
            except ProviderFailure as error:
                if error.state not in _NEXT_KEY:
                    raise
                failure = error
                # Of several requests that met the same refusal only one turns to the next key.
                with self._turning:
                    if key is self._keys[0]:
                        self._keys = [*self._keys[1:], key]
        assert failure is not None
        raise failure

    def ask(
        self, method: str, path: str, seconds: float, content: bytes | None = None, headers: Mapping[str, str] = _NONE
    ) -> object:
        """The JSON answer to one request with the key in use; `headers` are for this one.

        Raises ProviderFailure, Cancelled.
        """
        return self._ask(method, path, seconds, content, self._keys[0].with_more(headers))

    def save(self, path: str, into: BinaryIO, seconds: float) -> None:
        """Write the body at `path` to `into`, of any size; no two pieces may be `seconds` apart.

        One redirect is followed, without key and headers: files are often kept at another host. Raises
        ProviderFailure, Cancelled.
        """
        address = self._address(path)
        answer, text = self._exchange("GET", address, self._keys[0], None, seconds, into)
        if answer.redirects:
            address = self._address(str(address.join(answer.headers.get("location", ""))))
            answer, text = self._exchange("GET", address, SentHeaders(_PLAIN), None, seconds, into)
        if answer.status != HTTPStatus.OK:
            self._told(answer, text)

    def hidden(self, text: str) -> str:
        """`text` without any secret of this endpoint."""
        return self._redact(text)

    def close(self) -> None:
        """Close every connection."""
        self._network.close()

    def _ask(self, method: str, path: str, seconds: float, content: bytes | None, headers: SentHeaders) -> object:
        return self._told(*self._exchange(method, self._address(path), headers, content, seconds))

    def _exchange(
        self,
        method: str,
        address: httpx.URL,
        headers: SentHeaders,
        content: bytes | None,
        seconds: float,
        into: BinaryIO | None = None,
    ) -> tuple[HttpAnswer, str]:
        """An answer and its text without secrets, within `seconds` in all.

        The body of a good one goes `into` a file instead, with no pause of more than `seconds`.
        """
        ends = time.monotonic() + seconds
        try:
            with self._network.answer(
                method, address, headers, content, seconds=seconds, in_all=into is None
            ) as answer:
                if into is None or answer.status != HTTPStatus.OK:
                    # An answer may repeat what it was sent, so nothing that a traceback shows holds it as it came.
                    return answer, self._redact(_whole(answer.parts).decode("utf-8", "replace"))
                for part in answer.parts:
                    into.write(part)
                return answer, ""
        except httpx.TimeoutException as error:
            why = f"did not answer in {seconds:.3g} s." if into is None else f"sent nothing for {seconds:g} s."
            failure = ProviderFailure(Cause.TIMEOUT, f"{self.label} ({self.host}) {why}")
            if into is None and time.monotonic() < ends:
                failure = self._fault(error)
        except FAULTS as error:
            failure = self._fault(error)
        self._stop.check()
        raise failure

    def _address(self, path: str) -> httpx.URL:
        """Where `path` is. Raises ProviderFailure."""
        try:
            return address_of(path if path.startswith(("http://", "https://")) else self._base + path)
        except FAULTS as error:
            failure = self._fault(error)
        raise failure

    def _fault(self, error: Exception) -> ProviderFailure:
        why = self._redact(str(error)) or type(error).__name__
        if isinstance(error, httpx.DecodingError):
            return ProviderFailure(Cause.MALFORMED, f"{self.label} answered with something that cannot be read: {why}")
        if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.InvalidURL):
            return ProviderFailure(Cause.REFUSED, f"{self.label} cannot be asked: {why}")
        step = _CERTIFICATE if "CERTIFICATE_VERIFY_FAILED" in why else ""
        failure = ProviderFailure(Cause.NETWORK, f"{self.label} ({self.host}) cannot be reached: {why}", step)
        failure.broke_off = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
        return failure

    def _told(self, answer: HttpAnswer, text: str) -> object:
        status = answer.status
        if answer.redirects:
            to = host_of(answer.headers.get("location", "")) or self.host
            raise ProviderFailure(
                Cause.REFUSED,
                f"{self.label} answered {status} and points to {to}, where key and text were not sent.",
                "If that address is right, make it the remote.baseUrl.",
            )
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise ProviderFailure(
                Cause.NETWORK,
                f"The proxy on the way to {self.host} answered {status}: it wants a login.",
                "Put user and password into HTTPS_PROXY (or HTTP_PROXY), or name the host in NO_PROXY.",
            )
        if status != HTTPStatus.OK:
            state, words, wait = diagnose(status, answer.headers, text)
            raise ProviderFailure(state, f"{self.label} answered {status}: {words or 'nothing else'}", retry_after=wait)
        if len(text) >= _MOST_BYTES:
            raise ProviderFailure(Cause.MALFORMED, f"{self.label} answered with more than {_MOST_BYTES >> 20} MiB.")
        try:
            return _parsed(text)
        except (ValueError, RecursionError):
            kind = answer.headers.get("content-type", "").split(";")[0] or "something"
        raise ProviderFailure(Cause.MALFORMED, f"{self.label} ({self.host}) answered with {kind} that is not JSON.")


def _parsed(text: str) -> object:
    """The value of a JSON text. Raises ValueError, RecursionError."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Some servers write NaN.
        return json.loads(text)


def _whole(parts: Iterable[bytes]) -> bytes:
    """The body, or as much of it as the limit allows."""
    taken, size = [], 0
    for part in parts:
        taken.append(part)
        size += len(part)
        if size >= _MOST_BYTES:
            break
    return b"".join(taken)


def _userinfo(url: str) -> dict[str, str]:
    """User and password in `url`, plain and as they are sent, for the Redactor."""
    user, at, _ = url.partition("//")[2].partition("/")[0].rpartition("@")
    sent = base64.b64encode(unquote(user).encode()).decode()
    return {"userinfo": f"{user.replace(':', ' ')} {sent}" if at else ""}


_FAILURES_TO_SEQUENTIAL = 2
_SUCCESSES_TO_CONCURRENT = 32
_SHORTEST = 32
_SMALL_BYTES = 8_000
"""A request that every provider takes, and can answer in time on a slow machine."""
_MAYBE_TOO_LARGE = frozenset({Cause.RATE_LIMIT, Cause.SERVER, Cause.TIMEOUT})
_SPACE = re.compile(r"\s")


def groups(texts: Sequence[str], at: Sequence[int], most_bytes: int, most_items: int) -> list[list[int]]:
    """The positions `at` in runs of at most `most_bytes` of UTF-8 and `most_items` texts; a longer text goes alone."""
    found: list[list[int]] = []
    size = 0
    for position in at:
        text = texts[position]
        length = len(text.encode("utf-8", "replace"))
        if isinstance(text, MediaText):
            length += -(-text.most // 3) * 4
        if not found or size + length > most_bytes or len(found[-1]) >= most_items:
            found.append([])
            size = 0
        found[-1].append(position)
        size += length
    return found


def halves(text: str) -> tuple[str, str] | None:
    """`text` in two, at the white space nearest to its middle; None when it is too short to be cut."""
    if len(text) < 2 * _SHORTEST:
        return None
    middle = len(text) // 2
    spaces = [found.start() for found in _SPACE.finditer(text, middle // 2, middle + middle // 2)]
    cut = min(spaces, key=lambda at: abs(at - middle), default=middle)
    return text[:cut], text[cut:]


class _Helper(threading.Thread):
    """Does some work beside its caller, who gets what it raises. The end of the app does not wait for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="embed-helper", daemon=True)
        self._work = work
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            self._error = error

    def result(self) -> None:
        """Wait for the end. Raises what the work raised."""
        self.join()
        if self._error is not None:
            raise self._error


def at_once(work: Callable[[int], None], count: int) -> None:
    """Do `work` of the numbers below `count`, the first one on this thread. Raises what one of them raised."""
    helpers = [_Helper(partial(work, number)) for number in range(1, count)]
    for helper in helpers:
        helper.start()
    if count:
        work(0)
    for helper in helpers:
        helper.result()


class Width:
    """How many requests may run at once: `most`, or one after two failures, until things went well for a while."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures = 0
        self._successes = 0
        self._running = 0
        self._free = threading.Condition()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until one more request may run, whichever call it belongs to."""
        with self._free:
            self._free.wait_for(lambda: self._running < self.now)
            self._running += 1
        try:
            yield
        finally:
            with self._free:
                self._running -= 1
                self._free.notify(max(0, self.now - self._running))

    @property
    def now(self) -> int:
        """Requests that may run at once."""
        return 1 if self._failures >= _FAILURES_TO_SEQUENTIAL else self._most

    def failed(self) -> None:
        """An attempt failed for a reason that has to do with load or network."""
        with self._free:
            self._failures += 1
            self._successes = 0

    def worked(self) -> None:
        """An attempt was answered."""
        with self._free:
            self._successes += 1
            if self._successes >= _SUCCESSES_TO_CONCURRENT:
                self._failures = 0


_FIRST_SECONDS, _LONGEST_SECONDS, _LASTING_SECONDS = 30.0, 600.0, 300.0
_MOST_DOUBLINGS = 5


class Breaker:
    """Open from a failed call until `next_try` (epoch seconds, None while closed). Safe for any thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._failure: ProviderFailure | None = None
        self._row = 0
        self.opened_at = 0.0
        self.next_try: float | None = None

    def check(self) -> None:
        """Raises the failure that opened it, with the time of the next try, while that is not reached."""
        with self._lock:
            failure, until = self._failure, self.next_try
        if failure is None or until is None or self._now() >= until:
            return
        at = dt.datetime.fromtimestamp(until).astimezone().strftime("%H:%M:%S")
        again = ProviderFailure(
            failure.state, f"{failure.message} It is asked again at {at}.", failure.next_step, failure.retry_after
        )
        again.next_try = until
        raise again

    def failed(self, failure: ProviderFailure) -> None:
        """Open it, unless the failure was about the text. Sets `next_try` of `failure` as well."""
        if failure.state in OF_THE_TEXT:
            return
        with self._lock:
            usual = _LASTING_SECONDS
            if failure.state in PASSING:
                usual = min(_FIRST_SECONDS * 2 ** min(self._row, _MOST_DOUBLINGS), _LONGEST_SECONDS)
            self._row += 1
            self._failure, self.opened_at = failure, self._now()
            self.next_try = failure.next_try = self.opened_at + max(usual, failure.retry_after or 0)

    def leave(self, failure: ProviderFailure, until: float, since: float) -> None:
        """Open it until `until`: an earlier process met `failure` at `since`."""
        with self._lock:
            self._failure, self.next_try, self.opened_at = failure, until, since
            self._row = max(1, self._row)

    def worked(self) -> None:
        """Close it."""
        with self._lock:
            self._failure, self._row, self.next_try = None, 0, None


class GuardedProvider:
    """A provider that is left alone for a while after a failure. Safe for any thread."""

    def __init__(self, now: Callable[[], float], detail: str) -> None:
        self.breaker = Breaker(now)
        self._health = Health(True, detail)

    def health(self) -> Health:
        """The state after the last call."""
        return self._health

    def worked(self, detail: str, started: float) -> None:
        """A call that began at `started` (`time.perf_counter`) was answered."""
        self.breaker.worked()
        self._health = Health(True, detail, (time.perf_counter() - started) * 1000)

    def failed(self, failure: ProviderFailure, started: float | None = None) -> None:
        """A call failed; one that failed for its text says nothing about the provider."""
        self.breaker.failed(failure)
        if failure.state not in OF_THE_TEXT:
            took = 0.0 if started is None else (time.perf_counter() - started) * 1000
            self._health = Health(False, failure.message, took)


def in_rows(done: Mapping[int, Vectors], count: int, dims: int) -> Vectors:
    """The vectors of `done` by position, float32 (count, dims); zeros where there is none."""
    vectors = np.zeros((count, dims), np.float32)
    for at, row in done.items():
        vectors[at] = row
    return vectors


_LONGEST_OBEYED = {"document": 60.0, "query": 8.0}
"""Seconds of Retry-After that are waited for within a call; after longer ones the call fails and names the time."""
_PROBE = "memory"


class Remote(GuardedProvider):
    """One remote provider. `embed` and `identity` block on the network, so both belong on a worker thread."""

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self._wire = wire
        self._settings, self._batches, self._clock = settings, settings.batches, settings.clock
        self._dims = wire.dims
        self._most_items = wire.most_items
        self._most_bytes = settings.batches.most_bytes or wire.most_bytes
        self._proven = False
        """Whether it ever made a good vector: then one that points nowhere is about its text."""
        super().__init__(settings.clock.now, f"ready, {host_of(wire.base_url)}, not asked yet")
        self._stop = Stop()
        self._http = Http(wire.label, wire.base_url, self._stop, wire.headers, wire.auth)
        self._width = Width(max(1, min(settings.batches.concurrency, wire.concurrency)))
        self._probing, self._checking = threading.Lock(), threading.Lock()

    @property
    def identity(self) -> Identity:
        """The space of the vectors. Their length comes from what is known of the model, else from one call of `embed`
        when it is first asked for: that blocks, and raises ProviderFailure or Cancelled.
        """
        with self._probing:
            if self._dims is None:
                self.embed([_PROBE], self._batches.probe)
            assert self._dims is not None
            return Identity(self._wire.name, self._wire.model, self._wire.key, self._dims)

    @property
    def identity_known(self) -> bool:
        """Whether `identity` answers without a call."""
        return self._dims is not None

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that is surely within the model's limit."""
        return self._wire.max_input_bytes

    @property
    def host(self) -> str:
        """Where the text goes."""
        return self._http.host

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Float32 array (len(texts), dims) of unit vectors; blank texts are not sent and have zeros.

        A text over the model's limit is embedded in parts, whose mean it gets. Raises ProviderFailure, with the
        vectors that were made before it, and Cancelled once `close` is called.
        """
        self._stop.check()
        self.breaker.check()
        done: dict[int, Vectors] = {}
        sent = [text if isinstance(text, MediaText) else well_formed(text) for text in texts]
        started = time.perf_counter()
        failure = self._all(sent, kind, done)
        if failure is not None:
            failure.done = done
            self.failed(failure, started)
            raise failure
        width = "" if self._width.now > 1 or self._batches.concurrency == 1 else ", one request at a time"
        self.worked(f"{self._http.host}{width}", started)
        return in_rows(done, len(texts), self._dims or 0)

    def close(self) -> None:
        """Give up every call that is under way, at once."""
        self._stop.set()
        self._http.close()

    def _all(self, texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> ProviderFailure | None:
        """Fill `done` with the vectors of `texts` by position; the first failure, when there is one."""
        wanted = [at for at, text in enumerate(texts) if text.strip()]
        waiting = deque(groups(texts, wanted, self._most_bytes, self._most_items))
        failures: list[ProviderFailure] = []

        def work(number: int) -> None:
            while number < self._width.now and all(one.state in OF_THE_TEXT for one in failures):
                try:
                    group = waiting.popleft()
                except IndexError:
                    return
                # A question does not queue behind notes.
                with self._width.slot() if kind == "document" else nullcontext():
                    self._stop.check()
                    try:
                        self._fill(group, texts, kind, done)
                    except ProviderFailure as failure:
                        failures.append(failure)

        at_once(work, min(self._width.now, len(waiting)))
        # What is wrong with the provider matters more than what is wrong with a text.
        return min(failures, key=lambda one: one.state in OF_THE_TEXT, default=None)

    def _fill(self, at: Sequence[int], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]) -> None:
        """Put the vectors of the texts `at` into `done`; they are halved for as long as they are refused together, or
        break the connection.
        """
        refused = None
        if len(at) <= self._most_items:
            try:
                done.update(zip(at, self._persistent([texts[one] for one in at], kind), strict=True))
                return
            except ProviderFailure as failure:
                if smaller := self._smaller(at, texts, kind, failure):
                    for part in smaller:
                        self._fill(part, texts, kind, done)
                    return
                if failure.state not in OF_THE_TEXT and not (failure.broke_off and len(at) > 1):
                    raise
                refused = failure
        middle = (len(at) + 1) // 2
        if refused is not None and len(at) == 1:
            done[at[0]] = self._in_parts(texts[at[0]], kind, refused)
            return
        if refused is not None and refused.state is Cause.TOO_LARGE:
            self._most_items = min(self._most_items, middle)
        self._fill_both((at[:middle], at[middle:]), texts, kind, done)

    def _smaller(
        self, at: Sequence[int], texts: Sequence[str], kind: Kind, failure: ProviderFailure
    ) -> list[list[int]]:
        """The texts `at` in small requests, where one so large may be why a provider does not answer for now.

        From then on all requests are small. Empty where there is nothing to be won by it.
        """
        if failure.state not in _MAYBE_TOO_LARGE or (failure.retry_after or 0) > _LONGEST_OBEYED[kind]:
            return []
        parts = groups(texts, at, _SMALL_BYTES, self._most_items)
        if len(parts) > 1:
            self._most_bytes = min(self._most_bytes, _SMALL_BYTES)
        return parts if len(parts) > 1 else []

    def _fill_both(
        self, both: Sequence[Sequence[int]], texts: Sequence[str], kind: Kind, done: dict[int, Vectors]
    ) -> None:
        """Like `_fill`, of two halves: a text in one that gets no vector costs the other one nothing."""
        refused = None
        for half in both:
            try:
                self._fill(half, texts, kind, done)
            except ProviderFailure as failure:
                if failure.state not in OF_THE_TEXT:
                    raise
                refused = failure
        if refused is not None:
            raise refused

    def _in_parts(self, text: str, kind: Kind, refused: ProviderFailure) -> Vectors:
        """The unit vector of a text that is refused as a whole: the mean of its parts by their length."""
        parts = [] if isinstance(text, MediaText) else [part for part in halves(text) or () if part.strip()]
        if not parts:
            raise refused
        found: dict[int, Vectors] = {}
        for at in range(len(parts)):
            self._fill([at], parts, kind, found)
        mean = np.array([len(part) for part in parts], np.float32) @ np.stack([found[at] for at in range(len(parts))])
        return np.asarray(mean / (np.linalg.norm(mean) or 1), np.float32)

    def _persistent(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One request, asked again after a failure that may pass; of a question all attempts share its time limit."""
        batches, clock, attempt = self._batches, self._clock, 1
        seconds = batches.batch_seconds or self._wire.batch_seconds
        ends = math.inf
        if kind == "query":
            seconds = batches.query_seconds or self._wire.query_seconds
            ends = time.monotonic() + seconds
        while True:
            try:
                return self._once(texts, kind, seconds)
            except ProviderFailure as failure:
                asked = failure.retry_after or 0
                usual = batches.first_wait * 2 ** (attempt - 1) * (1 + 0.2 * clock.jitter())
                wait = max(min(usual, batches.longest_wait), asked)
                if (
                    time.monotonic() + wait >= ends
                    or attempt >= batches.attempts
                    or failure.state not in RETRIED
                    or asked > _LONGEST_OBEYED[kind]
                ):
                    raise
            clock.pause(self._stop)(wait)
            seconds = min(seconds, ends - time.monotonic())
            attempt += 1

    def _once(self, texts: Sequence[str], kind: Kind, seconds: float) -> Vectors:
        wire = self._wire
        path, body = wire.request(texts, kind)
        try:
            answer = self._http.post(path, body, seconds)
            vectors = self._checked(answer, len(texts))
        except ProviderFailure as failure:
            if wire.older is not None and failure.state is Cause.UNKNOWN_MODEL and "model" not in failure.message:
                self._wire, self._most_items = wire.older, wire.older.most_items
                if len(texts) <= self._most_items:
                    return self._once(texts, kind, seconds)
                failure = ProviderFailure(Cause.TOO_LARGE, failure.message)
            if failure.state in PASSING:
                self._width.failed()
            raise failure
        self._width.worked()
        return vectors

    def _checked(self, answer: object, count: int) -> Vectors:
        state = Cause.MALFORMED
        try:
            with self._checking:
                vectors = unit_vectors(self._wire.rows(answer), count, self._dims)
                self._dims, self._proven = vectors.shape[1], True
        except NoDirection as error:
            self._proven = self._proven or not error.every
            why = str(error)
            if self._proven:
                state, why = Cause.NO_VECTOR, f"{why} for a text"
        except Malformed as error:
            why = str(error)
        else:
            return vectors
        raise ProviderFailure(state, f"{self._wire.label} ({self._http.host}) answered with {why}.")
