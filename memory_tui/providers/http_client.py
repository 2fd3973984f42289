"""The HTTP client posts JSON to a provider; a failure never shows a secret."""

from __future__ import annotations

import base64
import json
import os
import queue
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType
from typing import BinaryIO
from urllib.parse import unquote

import certifi
import httpx
import msgspec

from memory_tui import __version__
from memory_tui.core.cancel import Stop
from memory_tui.core.discreet import Discreet
from memory_tui.providers.failures import Cause, ProviderFailure, diagnose
from memory_tui.providers.provider_options import Redactor, host_of, on_this_machine

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
