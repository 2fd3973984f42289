"""The HTTP client posts JSON to a provider; a failure never shows a secret."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import json
import os
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, BinaryIO, TypeVar
from urllib.parse import unquote, urlsplit

import httpx

from memory_tui import __version__
from memory_tui.core.errors import Cancelled
from memory_tui.providers.failures import Cause, ProviderFailure, diagnose
from memory_tui.providers.provider_options import Redactor, host_of, on_this_machine

_MOST_BYTES = 64 << 20
"""A longer answer is none that a request can have."""
_CONNECT_SECONDS = 10.0
_USUAL = {"User-Agent": f"memory-tui/{__version__}", "Accept": "application/json", "Content-Type": "application/json"}
_NEXT_KEY = frozenset({Cause.RATE_LIMIT, Cause.QUOTA, Cause.BAD_KEY})
_NONE: Mapping[str, str] = MappingProxyType({})


_CERTIFICATE = (
    "The server's certificate is not trusted. Name the authority that signed it in SSL_CERT_FILE, or check "
    "remote.baseUrl."
)


class Http:
    """One endpoint. `auth` holds a set of headers for each key; the next is used when one is refused. `headers` win.

    To be used on one event loop. Redirects are not followed, because key and text would go along.
    """

    def __init__(
        self,
        label: str,
        base_url: str,
        headers: Mapping[str, str] = _NONE,
        auth: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.label = label
        self.host = host_of(base_url)
        self._base = base_url
        self._redact = Redactor.of_headers(headers, *auth, _userinfo(base_url))
        # No proxy stands between this machine and itself.
        self._proxies = not on_this_machine(self.host)
        self._headers = [_merged(_USUAL, one, headers) for one in auth or ({},)]
        self._made: list[httpx.AsyncClient] = []
        self._urls: dict[str, httpx.URL] = {}

    async def post(self, path: str, body: object, seconds: float) -> object:
        """The JSON answer to `body`, within `seconds` in all. Raises ProviderFailure."""
        content = json.dumps(body, ensure_ascii=False).encode()
        failure = None
        clients = self._clients()
        for _ in range(len(clients)):
            client = clients[0]
            try:
                return await self.ask("POST", path, seconds, content)
            except ProviderFailure as error:
                if error.state not in _NEXT_KEY:
                    raise
                failure = error
                # Of several requests that met the same refusal only one turns to the next key.
                if client is clients[0]:
                    clients.append(clients.pop(0))
        assert failure is not None
        raise failure

    async def close(self) -> None:
        """Close every connection."""
        for client in self._made:
            await client.aclose()

    async def ask(
        self, method: str, path: str, seconds: float, content: bytes = b"", headers: Mapping[str, str] = _NONE
    ) -> object:
        """The JSON answer to one request with the key in use; `headers` are for this one. Raises ProviderFailure."""
        reach = httpx.Timeout(None, connect=min(_CONNECT_SECONDS, seconds))
        client = self._clients()[0]
        try:
            async with (
                asyncio.timeout(seconds),
                client.stream(
                    method, self._url(path), content=content, timeout=reach, headers=dict(headers)
                ) as response,
            ):
                # An answer may repeat what it was sent, so nothing that a traceback shows holds it as it came.
                text = self._redact((await _read(response)).decode("utf-8", "replace"))
        except TimeoutError:
            failure = ProviderFailure(Cause.TIMEOUT, f"{self.label} ({self.host}) did not answer in {seconds:g} s.")
        except (httpx.RequestError, httpx.InvalidURL) as error:
            failure = self._transport(error)
        else:
            return self._answer(response, text)
        raise failure

    async def save(self, path: str, into: BinaryIO, seconds: float) -> None:
        """Write the body at `path` to `into`, of any size; no two pieces may be `seconds` apart.

        One redirect is followed, without key and headers: files are often kept at another host. Raises ProviderFailure.
        """
        client = self._clients()[0]
        plain = httpx.AsyncClient(
            follow_redirects=False, trust_env=client.trust_env, verify=certificates(client.trust_env)
        )
        try:
            url = self._url(path)
            for hop in (client, plain):
                async with hop.stream("GET", url, timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS)) as response:
                    if response.is_redirect and hop is client:
                        url = response.url.join(response.headers.get("location", ""))
                        continue
                    if response.status_code != 200:
                        self._answer(response, self._redact((await _read(response)).decode("utf-8", "replace")))
                    async for part in response.aiter_bytes():
                        into.write(part)
                    return
        except httpx.TimeoutException:
            failure = ProviderFailure(Cause.TIMEOUT, f"{self.label} ({self.host}) sent nothing for {seconds:g} s.")
        except (httpx.RequestError, httpx.InvalidURL) as error:
            failure = self._transport(error)
        finally:
            await plain.aclose()
        raise failure

    def hidden(self, text: str) -> str:
        """`text` without any secret of this endpoint."""
        return self._redact(text)

    def _clients(self) -> list[httpx.AsyncClient]:
        """A client for each key, made for the first request: reading the certificates takes longer than the rest.

        Raises ProviderFailure.
        """
        if self._made:
            return self._made
        try:
            self._made = [
                httpx.AsyncClient(
                    headers=one,
                    timeout=None,
                    follow_redirects=False,
                    trust_env=self._proxies,
                    verify=certificates(self._proxies),
                )
                for one in self._headers
            ]
        except OSError as error:
            failure = ProviderFailure(
                Cause.BROKEN,
                f"The certificates that {self.label} is checked with cannot be read: {error.strerror or error}",
                "Check SSL_CERT_FILE and SSL_CERT_DIR.",
            )
        except (ValueError, httpx.InvalidURL) as error:
            failure = ProviderFailure(
                Cause.BROKEN,
                f"The proxy on the way to {self.host} cannot be used: {self._redact(str(error))}",
                "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY.",
            )
        else:
            return self._made
        raise failure

    def _url(self, path: str) -> httpx.URL:
        """Where `path` is; that of the questions is taken apart once. Raises httpx.InvalidURL."""
        found = self._urls.get(path)
        if found is None:
            found = httpx.URL(path if path.startswith(("http://", "https://")) else self._base + path)
            self._urls = {path: found}
        return found

    def _transport(self, error: httpx.RequestError | httpx.InvalidURL) -> ProviderFailure:
        why = self._redact(str(error)) or type(error).__name__
        if isinstance(error, httpx.DecodingError):
            return ProviderFailure(Cause.MALFORMED, f"{self.label} answered with something that cannot be read: {why}")
        if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            return ProviderFailure(Cause.REFUSED, f"{self.label} cannot be asked: {why}")
        step = _CERTIFICATE if "CERTIFICATE_VERIFY_FAILED" in why else ""
        failure = ProviderFailure(Cause.NETWORK, f"{self.label} ({self.host}) cannot be reached: {why}", step)
        failure.broke_off = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
        return failure

    def _answer(self, response: httpx.Response, text: str) -> object:
        status = response.status_code
        if response.is_redirect:
            to = host_of(str(response.headers.get("location", ""))) or self.host
            raise ProviderFailure(
                Cause.REFUSED,
                f"{self.label} answered {status} and points to {to}, where key and text were not sent.",
                "If that address is right, make it the remote.baseUrl.",
            )
        if status == httpx.codes.PROXY_AUTHENTICATION_REQUIRED:
            raise ProviderFailure(
                Cause.NETWORK,
                f"The proxy on the way to {self.host} answered {status}: it wants a login.",
                "Put user and password into HTTPS_PROXY (or HTTP_PROXY), or name the host in NO_PROXY.",
            )
        if status != 200:
            state, words, wait = diagnose(status, response.headers, text)
            raise ProviderFailure(state, f"{self.label} answered {status}: {words or 'nothing else'}", retry_after=wait)
        if len(text) >= _MOST_BYTES:
            raise ProviderFailure(Cause.MALFORMED, f"{self.label} answered with more than {_MOST_BYTES >> 20} MiB.")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "").split(";")[0] or "something"
        raise ProviderFailure(Cause.MALFORMED, f"{self.label} ({self.host}) answered with {kind} that is not JSON.")


def certificates(environment: bool) -> ssl.SSLContext:
    """Whom a server's certificate may be signed by, read once; as the `environment` says where that counts.

    Raises OSError.
    """
    return _certificates(environment, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(environment: bool, _file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=environment)


async def _read(response: httpx.Response) -> bytes:
    """The body, or as much of it as the limit allows."""
    parts, size = [], 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size >= _MOST_BYTES:
            break
    return b"".join(parts)


def _merged(*headers: Mapping[str, str]) -> httpx.Headers:
    """Later ones win, whatever the case of their names."""
    merged = httpx.Headers()
    for each in headers:
        merged.update(each)
    return merged


def _userinfo(url: str) -> dict[str, str]:
    """User and password in `url`, plain and as they are sent, for the Redactor."""
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    sent = base64.b64encode(unquote(user).encode()).decode()
    return {"userinfo": f"{user.replace(':', ' ')} {sent}" if at else ""}


T = TypeVar("T")
_GOODBYE_SECONDS = 0.2


class _Daemons(concurrent.futures.ThreadPoolExecutor):
    """Runs each job on a daemon thread, because a look-up of a host name that hangs must not delay the end of the app.

    asyncio accepts no other executor than a ThreadPoolExecutor, whose own threads are waited for at the end.
    """

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            # From here on it cannot be cancelled, so its end is nobody's error.
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except (OSError, UnicodeError, ValueError) as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=work, name="embed-lookup", daemon=True).start()
        return future


async def _nothing() -> None:
    pass


class Background:
    """Runs coroutines for other threads; `at_end` is awaited last. The thread starts at the first `run`."""

    def __init__(self, at_end: Callable[[], Awaitable[None]] = _nothing) -> None:
        self._at_end = at_end
        self._lock = threading.Lock()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the coroutine that `make` makes. Raises Cancelled as soon as `close` is called."""
        with self._lock:
            if self._closed:
                raise Cancelled
            future = asyncio.run_coroutine_threadsafe(make(), self._started())
        with contextlib.suppress(concurrent.futures.CancelledError):
            return future.result()
        raise Cancelled

    def close(self) -> None:
        """Cancel everything that runs; returns within 0.2 s, whatever it waits for."""
        with self._lock:
            self._closed = True
            loop, stop, thread = self._loop, self._stop, self._thread
        if loop is None or stop is None or thread is None:
            return
        with contextlib.suppress(RuntimeError):  # The loop has ended, which is what is wanted.
            loop.call_soon_threadsafe(stop.set)
        thread.join(_GOODBYE_SECONDS)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(_Daemons())
            self._stop = asyncio.Event()
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop, self._stop), name="embed-http", daemon=True
            )
            self._thread.start()
        return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._until(stop))
            loop.run_until_complete(loop.shutdown_asyncgens())  # A body that was being read when it was cancelled.
        finally:
            loop.close()

    async def _until(self, stop: asyncio.Event) -> None:
        await stop.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._at_end()
