"""The network: requests over kept connections, each with a time limit, all ended by one stop."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import closing, contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import certifi
import httpcore

from memory_tui.core.cancel import Stop
from memory_tui.core.discreet import Discreet
from memory_tui.core.errors import Cancelled
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.provider_options import on_this_machine

FAULTS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    zlib.error,
)
"""What can go wrong on the way to an answer."""
_CONNECT_SECONDS = 10.0
_KEPT_SECONDS, _MOST_KEPT = 5.0, 20
_SENT_AT_ONCE = 1 << 14
_SAFE = "!$%&'()*+,;=:@/?~[]"
_PORTS = {"http": 80, "https": 443}
_PROXIES = ("http", "https", "socks5", "socks5h")


class Address:
    """Where a request goes, with the login that the address holds.

    Raises UnsupportedProtocol for what does not begin with http:// or https:// and a host.
    """

    def __init__(self, text: str) -> None:
        try:
            self._take_apart(text)
        except ValueError as error:
            why = str(error)
        else:
            return
        raise httpcore.UnsupportedProtocol(why)

    def __repr__(self) -> str:
        return f"Address({self.host!r})"

    def _take_apart(self, text: str) -> None:
        if any(character < " " or character == "\x7f" for character in text):
            raise ValueError("the address holds a control character")
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        if parts.scheme not in _PORTS or not host:
            raise ValueError("the address does not begin with http:// or https:// and a host")
        if not host.isascii():
            import idna

            host = idna.encode(host).decode()
        path = quote(parts.path or "/", _SAFE) + (f"?{quote(parts.query, _SAFE)}" if parts.query else "")
        self.url = httpcore.URL(scheme=parts.scheme, host=host, port=port, target=path)
        shown = f"[{host}]" if ":" in host else host
        self.host = (shown if port in (None, _PORTS[parts.scheme]) else f"{shown}:{port}").encode()
        user, at, _ = parts.netloc.rpartition("@")
        self.login = b"Basic " + base64.b64encode(_login(user)) if at else b""


class SentHeaders:
    """Headers of a request, which nothing shows. Later ones of `parts` win, whatever the case of their names."""

    def __init__(self, *parts: Mapping[str, str]) -> None:
        self._merged = {name.lower(): (name, value) for each in parts for name, value in each.items()}
        self._lines = [
            (name.encode("utf-8", "replace"), value.encode("utf-8", "replace")) for name, value in self._merged.values()
        ]

    def with_more(self, more: Mapping[str, str]) -> SentHeaders:
        """These and `more`, which win."""
        return SentHeaders(dict(self._merged.values()), more) if more else self

    def lines(self, address: Address, length: int | None) -> list[tuple[bytes, bytes]]:
        """All lines of a request to `address`, with `length` bytes of content."""
        named, lines = self._merged, self._lines
        if address.login:
            lines = [
                *(line for line in lines if line[0].lower() != b"authorization"),
                (b"Authorization", address.login),
            ]
        return [
            *(() if "host" in named else ((b"Host", address.host),)),
            *(() if "accept-encoding" in named else ((b"Accept-Encoding", b"gzip, deflate"),)),
            *lines,
            *(() if length is None or "content-length" in named else ((b"Content-Length", b"%d" % length),)),
        ]


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


class Network:
    """Requests to servers, safe for any thread; those to others may go through the proxies of the environment.

    Whatever a request waits for, it ends when `stop` is set.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._lines = _Lines(stop)
        self._pools: dict[tuple[bytes, bytes], httpcore.ConnectionPool] = {}
        self._making = threading.Lock()

    @contextmanager
    def answer(
        self,
        method: str,
        address: Address,
        headers: SentHeaders,
        content: bytes | None = None,
        *,
        seconds: float,
        in_all: bool = True,
    ) -> Iterator[HttpAnswer]:
        """The answer to one request, within `seconds` in all, or else with no pause that is longer.

        Raises ProviderFailure for what is wrong on this side, FAULTS for the rest, Cancelled.
        """
        pool = self._pool(address)
        limit = _Until(time.monotonic() + seconds) if in_all else seconds
        with self._stop.around(self._lines.cut):
            request = httpcore.Request(
                method,
                address.url,
                headers=headers.lines(address, None if content is None else len(content)),
                content=content,
                extensions={"timeout": {"connect": limit, "read": limit, "write": limit}},
            )
            with closing(pool.handle_request(request)) as response:
                told = {
                    name.decode("latin-1").lower(): value.decode("utf-8", "replace") for name, value in response.headers
                }
                yield HttpAnswer(
                    response.status, told, _unpacked(response.iter_stream(), told.get("content-encoding", ""))
                )

    def close(self) -> None:
        """Close every connection: what is idle now, what is in use as soon as its request has noticed."""
        self._lines.cut()
        for pool in tuple(self._pools.values()):
            for connection in pool.connections:
                if connection.is_idle():
                    connection.close()

    def _pool(self, address: Address) -> httpcore.ConnectionPool:
        """The connections to `address`, and to others on the same way."""
        key = (address.url.scheme, address.host)
        with self._making:
            if key not in self._pools:
                self._pools[key] = self._new_pool(address)
            return self._pools[key]

    def _new_pool(self, address: Address) -> httpcore.ConnectionPool:
        host, encrypted = address.host.decode(), address.url.scheme == b"https"
        # No proxy stands between this machine and itself.
        environment = not on_this_machine(host)
        try:
            proxy = _proxy(address) if environment else None
            return httpcore.ConnectionPool(
                ssl_context=certificates(environment) if encrypted else None,
                proxy=proxy,
                max_connections=None,
                max_keepalive_connections=_MOST_KEPT,
                keepalive_expiry=_KEPT_SECONDS,
                network_backend=self._lines,
            )
        except OSError as error:
            failure = ProviderFailure(
                Cause.BROKEN,
                f"The certificates that {host} is checked with cannot be read: {error.strerror or error}",
                "Check SSL_CERT_FILE and SSL_CERT_DIR.",
            )
        except ValueError as error:
            failure = ProviderFailure(
                Cause.BROKEN,
                f"The proxy on the way to {host} cannot be used: {error}",
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


def _proxy(address: Address) -> httpcore.Proxy | None:
    """The proxy that the environment names for `address`. Raises ValueError, OSError."""
    # Not proxy_bypass, which may look the host up.
    from urllib.request import getproxies, proxy_bypass_environment  # type: ignore[attr-defined]

    named, host = getproxies(), address.host.decode()
    text = named.get(address.url.scheme.decode()) or named.get("all")
    if not text or "*" in named.get("no", "").replace(" ", "").split(",") or proxy_bypass_environment(host):
        return None
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme not in _PROXIES or not parts.hostname:
        raise ValueError(f"its address does not begin with one of {', '.join(_PROXIES)} and a host")
    if parts.scheme.startswith("socks"):
        from importlib.util import find_spec

        if find_spec("socksio") is None:
            raise ValueError("SOCKS needs the package socksio, which is not installed")
    try:
        port = parts.port
    except ValueError:  # It quotes what may be a password.
        raise ValueError("its port is no number") from None
    user, at, _ = parts.netloc.rpartition("@")
    login = _login(user).partition(b":") if at else None
    return httpcore.Proxy(
        httpcore.URL(scheme=parts.scheme, host=parts.hostname, port=port, target="/"),
        auth=(login[0], login[2]) if login else None,
        ssl_context=certificates(True) if parts.scheme == "https" else None,
    )


def _login(userinfo: str) -> bytes:
    """User and password, as `userinfo` of an address holds them."""
    user, _, password = userinfo.partition(":")
    return f"{unquote(user)}:{unquote(password)}".encode()


def _unpacked(parts: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    for name in reversed(encoding.lower().split(",")):
        if name.strip() in ("gzip", "x-gzip", "deflate"):
            parts = _inflated(parts)
    return parts


def _inflated(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes that gzip or deflate packed; some servers send deflate without its header."""
    unpack = None
    for part in filter(None, parts):
        if unpack is None:
            with_header = part[0] == 0x1F or part[0] & 0x0F == zlib.DEFLATED
            unpack = zlib.decompressobj(zlib.MAX_WBITS + 32 if with_header else -zlib.MAX_WBITS)
        yield unpack.decompress(part)


class _Until(float):
    """A moment of `time.monotonic`, in the place of a number of seconds."""


def _left(limit: float | None) -> float | None:
    """Seconds that an operation may take; httpcore hands each limit of a request on as it is."""
    if not isinstance(limit, _Until):
        return limit
    left = limit - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time is over")
    return left


class _Lines(httpcore.NetworkBackend):
    """Makes connections, and cuts those that are open."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._usual = httpcore.SyncBackend()
        self._open: dict[_Line, socket.socket] = {}
        # Reentrant, because a signal can interrupt the thread that holds it, and set the stop.
        self._lock = threading.RLock()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """On a thread of its own that is given up with the stop: a look-up of a host name can hang."""
        made: Future[httpcore.NetworkStream] = Future()
        seconds = min(_left(timeout) or _CONNECT_SECONDS, _CONNECT_SECONDS)

        def connect() -> None:
            try:
                stream = self._usual.connect_tcp(host, port, seconds, local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException, ValueError) as error:
                # ValueError: no host can be called so.
                with suppress(InvalidStateError):
                    made.set_exception(
                        error if not isinstance(error, ValueError) else httpcore.ConnectError(str(error))
                    )
                return
            try:
                made.set_result(stream)
            except InvalidStateError:  # Nobody waits for it any more.
                stream.close()

        # Who called httpcore asks the stop: what is on the way there shows headers.
        with suppress(Cancelled, CancelledError), self._stop.around(made.cancel):
            threading.Thread(target=connect, name="embed-connect", daemon=True).start()
            return self._opened(self._awaited(made, seconds))
        raise httpcore.ConnectError("stopped")

    def cut(self) -> None:
        """End every connection, so that who waits for one goes on. They are closed by those who use them."""
        with self._lock:
            for line in self._open.values():
                with suppress(OSError):  # The other side was faster.
                    line.shutdown(socket.SHUT_RDWR)

    def forget(self, line: _Line) -> None:
        """`line` is closed."""
        with self._lock:
            if handle := self._open.pop(line, None):
                handle.close()

    @staticmethod
    def _awaited(made: Future[httpcore.NetworkStream], seconds: float) -> httpcore.NetworkStream:
        try:
            return made.result(seconds)
        except TimeoutError:
            if not made.cancel():
                return made.result()
        finally:
            made.cancel()
        raise httpcore.ConnectTimeout("no connection in time")

    def _opened(self, stream: httpcore.NetworkStream) -> _Line:
        line = _Line(stream, self, self._stop)
        # A handle of its own: that of the stream is another one after the handshake, which can be waited for as well.
        handle = stream.get_extra_info("socket").dup()
        with self._lock:
            self._open[line] = handle
        if self._stop.is_set():
            line.close()
            raise Cancelled
        return line


class _Line(httpcore.NetworkStream):
    """One connection, whose operations keep to the limit of the request."""

    def __init__(self, inner: httpcore.NetworkStream, lines: _Lines, stop: Stop) -> None:
        self._inner, self._lines, self._stop = inner, lines, stop
        self._unsent = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._unsent:
            # As in httpcore: a server that does not read to the end may have said why.
            with suppress(httpcore.WriteError):
                self._send(timeout)
        data = self._inner.read(max_bytes, _left(timeout))
        if not data and self._stop.is_set():
            raise httpcore.ReadError("stopped")  # What was cut is not the end of the answer.
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Headers and a short body leave together, with the first wish to read."""
        self._unsent += buffer
        if len(self._unsent) > _SENT_AT_ONCE:
            self._send(timeout)

    def _send(self, timeout: float | None) -> None:
        buffer, self._unsent = self._unsent, b""
        for at in range(0, len(buffer), _SENT_AT_ONCE):
            self._inner.write(buffer[at : at + _SENT_AT_ONCE], _left(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            self._inner = self._inner.start_tls(ssl_context, server_hostname, _left(timeout))
        except BaseException:
            self.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as in httpcore
        return self._inner.get_extra_info(info)

    def close(self) -> None:
        self._lines.forget(self)
        self._inner.close()
