"""The HTTP client posts JSON to a provider; a failure never shows a secret."""

from __future__ import annotations

import base64
import json
import threading
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import BinaryIO
from urllib.parse import unquote, urljoin

import httpcore
import msgspec

from memory_tui import __version__
from memory_tui.core.cancel import Stop
from memory_tui.providers.failures import Cause, ProviderFailure, diagnose
from memory_tui.providers.network import FAULTS, Address, HttpAnswer, Network, SentHeaders
from memory_tui.providers.provider_options import Redactor, host_of

_MOST_BYTES = 64 << 20
"""A longer answer is none that a request can have."""
_USUAL = {"User-Agent": f"memory-tui/{__version__}", "Accept": "application/json", "Content-Type": "application/json"}
_PLAIN = {"User-Agent": f"memory-tui/{__version__}", "Accept": "*/*"}
_NEXT_KEY = frozenset({Cause.RATE_LIMIT, Cause.QUOTA, Cause.BAD_KEY})
_NONE: Mapping[str, str] = MappingProxyType({})

_CERTIFICATE = (
    "The server's certificate is not trusted. Name the authority that signed it in SSL_CERT_FILE, or check "
    "remote.baseUrl."
)


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
        self._addresses: dict[str, Address] = {}

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
            address = self._address(urljoin(bytes(address.url).decode(), answer.headers.get("location", "")))
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
        address: Address,
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
        except httpcore.TimeoutException as error:
            why = f"did not answer in {seconds:.3g} s." if into is None else f"sent nothing for {seconds:g} s."
            failure = ProviderFailure(Cause.TIMEOUT, f"{self.label} ({self.host}) {why}")
            if into is None and time.monotonic() < ends:
                failure = self._fault(error)
        except FAULTS as error:
            failure = self._fault(error)
        self._stop.check()
        raise failure

    def _address(self, path: str) -> Address:
        """Where `path` is; that of the questions is taken apart once. Raises ProviderFailure."""
        found = self._addresses.get(path)
        if found is not None:
            return found
        try:
            found = Address(path if path.startswith(("http://", "https://")) else self._base + path)
        except httpcore.UnsupportedProtocol as error:
            failure = self._fault(error)
        else:
            self._addresses = {path: found}
            return found
        raise failure

    def _fault(self, error: Exception) -> ProviderFailure:
        why = self._redact(str(error)) or type(error).__name__
        if isinstance(error, zlib.error):
            return ProviderFailure(Cause.MALFORMED, f"{self.label} answered with something that cannot be read: {why}")
        if isinstance(error, httpcore.UnsupportedProtocol | httpcore.LocalProtocolError):
            return ProviderFailure(Cause.REFUSED, f"{self.label} cannot be asked: {why}")
        step = _CERTIFICATE if "CERTIFICATE_VERIFY_FAILED" in why else ""
        failure = ProviderFailure(Cause.NETWORK, f"{self.label} ({self.host}) cannot be reached: {why}", step)
        failure.broke_off = isinstance(error, httpcore.ReadError | httpcore.WriteError | httpcore.RemoteProtocolError)
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
