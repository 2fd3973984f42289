"""Fetch the file of a model: go on after a break, check size and checksum."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import httpx
import platformdirs

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.providers.failures import RETRIED, Cause, ProviderFailure, diagnose
from memory_tui.providers.http import PLAIN, Answer, Http
from memory_tui.providers.options import DownloadProgress, ProviderSettings, host_of

_HF = re.compile(r"hf:([\w.-]+)/([\w.-]+)/([^#]+\.gguf)(?:#([\w./-]+))?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(r"[0-9]{1,18}")
_MOST_HOPS = 5
_GOOD = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})
_AT_ONCE = 1 << 23
_SILENCE_SECONDS, _PROGRESS_SECONDS = 60.0, 0.1
_ROOM = "Free some space there, or set local.modelCacheDir."
_HEADERS = PLAIN.with_more({"Accept": "*/*", "Accept-Encoding": "identity"})


class ModelSource(NamedTuple):
    """Where the file of a model is, its name here, its SHA-256 where that is known beforehand, and how it begins."""

    url: str
    name: str
    sha256: str = ""
    magic: bytes = b""


class ModelFile(NamedTuple):
    """A file of a model before it is fetched: bytes (0: unknown), SHA-256 (empty: unknown) and where it will be; where
    it really is, and what tells its version.
    """

    source: ModelSource
    size: int
    sha256: str
    path: Path
    url: str = ""
    tag: str = ""


def source_of(text: str, settings: ProviderSettings) -> ModelSource:
    """Return the file that `hf:user/repo/file.gguf#branch` or a URL (with `#sha256=...`) names.

    Raises ProviderFailure.
    """
    if text.startswith("hf:"):
        match = _HF.fullmatch(text)
        if match is None:
            raise ProviderFailure(Cause.NO_FILE, f"{text} names no model file.", "Write hf:user/repository/file.gguf.")
        user, repository, file, branch = match.groups()
        hub = (settings.env("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        url = f"{hub}/{user}/{repository}/resolve/{quote(branch or 'main', safe='')}/{quote(file)}"
        return ModelSource(url, _safe(f"hf_{user}_{repository}_{f'{branch}_' if branch else ''}{file}"))
    url, _, mark = text.partition("#")
    digest, address = mark.removeprefix("sha256=").lower(), hashlib.sha256(url.encode()).hexdigest()[:8]
    name = _safe(f"{address}_{urlsplit(url).path.rpartition('/')[2] or 'model.gguf'}")
    return ModelSource(url, name, digest if _SHA256.fullmatch(digest) else "")


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)[-200:]


def cache_folder(settings: ProviderSettings) -> Path:
    """Return where model files are kept: `local.modelCacheDir`, else below the user's cache folder."""
    if settings.model_cache is not None:
        return settings.model_cache.expanduser()
    return platformdirs.user_cache_path("memory-tui", appauthor=False) / "models"


def look_up(source: ModelSource, settings: ProviderSettings) -> ModelFile:
    """Return what the server says about `source`. Raises ProviderFailure."""
    with _server(source, Stop()) as http:
        return _look_up(http, source, settings)


def fetch_shown(file: ModelFile, settings: ProviderSettings) -> Path:
    """Fetch `file`, which has to have the checksum that was shown before. Raises ProviderFailure.

    A file that is there stays where it has the size or checksum that is known; where neither is, it may have been cut
    short, and another takes its place.
    """
    stop = Stop()
    whole = file.path.is_file() and bool(file.size or file.sha256)
    whole = whole and file.size in (0, file.path.stat().st_size)
    whole = whole and file.sha256 in ("", _sha256(file.path, stop))
    return fetch(file.source._replace(sha256=file.sha256), settings, stop, anew=not whole)


def fetch(source: ModelSource, settings: ProviderSettings, stop: Stop, *, anew: bool = False) -> Path:
    """Return the file of `source`, fetched into the cache folder unless it is there, with `anew` in its place.

    Raises ProviderFailure, and Cancelled once `stop` is set. An interrupted fetch leaves its part, with which the next
    one goes on. `settings.on_progress` is told how far it is.
    """
    target, limits, attempt = cache_folder(settings) / source.name, settings.batches, 1
    if target.exists() and not anew:
        return target
    try:
        durable.make_folder(target.parent, 0o777)
        while True:
            try:
                with _server(source, stop) as http:
                    file = _look_up(http, source, settings)
                    # The name tells source and version, so that no part of another one is continued.
                    version = hashlib.sha256(f"{source.url}\n{file.tag}\n{file.size}".encode()).hexdigest()[:16]
                    part = target.with_name(f"{target.name}.{version}.memory-tui-part")
                    _complete(http, file, part, settings)
                    _check(file, part, stop)
                durable.move_file(part, target)
                return target
            except ProviderFailure as failure:
                if failure.state not in RETRIED or attempt >= limits.attempts:
                    raise
            settings.clock.pause(stop, min(limits.first_wait * 2**attempt, limits.longest_wait))
            attempt += 1
    except OSError as error:
        why = f"The model {source.name} cannot be kept in {target.parent}: {error.strerror or error}."
        raise ProviderFailure(Cause.NO_FILE, why, _ROOM) from error


@contextmanager
def _server(source: ModelSource, stop: Stop) -> Iterator[Http]:
    """Ask the server of `source`. Raises ProviderFailure, Cancelled."""
    http = Http("its server", source.url, stop)
    try:
        yield http
    except ProviderFailure as failure:
        if failure.state not in (Cause.NETWORK, Cause.TIMEOUT):
            raise
        why = f"The model {source.name} could not be fetched: {failure.message}"
        raise ProviderFailure(Cause.NETWORK, why, "Try again: it goes on from where it stopped.") from None
    finally:
        http.close()


@contextmanager
def _answer(http: Http, url: str, source: ModelSource, **headers: str) -> Iterator[Answer]:
    with http.answer("GET", url, _HEADERS.with_more(headers), seconds=_SILENCE_SECONDS, in_all=False) as (
        answer,
        parts,
    ):
        status = answer.status_code
        if status not in _GOOD and not answer.is_redirect:
            state, words, wait = diagnose(status, answer.headers, "")
            raise ProviderFailure(
                Cause.NO_FILE if status == HTTPStatus.NOT_FOUND else state,
                f"{host_of(source.url)} answered {status} for {source.name}{words and ': '}{words}",
                "Check local.modelPath; a model that asks for consent needs HF_TOKEN.",
                wait,
            )
        yield answer, parts


def _look_up(http: Http, source: ModelSource, settings: ProviderSettings) -> ModelFile:
    """Follow redirects to the file, and return what is said about it. The token is for the first host only."""
    url, sha256, size = source.url, source.sha256, 0
    token = settings.env("HF_TOKEN") if "/resolve/" in url else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    for _ in range(_MOST_HOPS):
        # Not HEAD, because addresses that are signed for GET refuse it.
        with _answer(http, url, source, Range="bytes=0-0", **headers) as (answer, _):
            fields = answer.headers
        linked = fields.get("x-linked-etag", "").strip('"')
        sha256 = sha256 or (linked if _SHA256.fullmatch(linked) else "")
        size = size or _number(fields.get("x-linked-size", ""))
        if not answer.is_redirect:
            whole = fields.get("content-range", "").rpartition("/")[2] or fields.get("content-length", "")
            tag = sha256 or fields.get("etag", "") or fields.get("last-modified", "")
            path = cache_folder(settings) / source.name
            return ModelFile(source, size or _number(whole), sha256, path, url, tag)
        url, headers = _followed(http, url, fields.get("location", "")), {}
    raise ProviderFailure(Cause.REFUSED, f"{host_of(url)} redirects without end.")


def _number(text: str) -> int:
    return int(text) if _SIZE.fullmatch(text) else 0


def _followed(http: Http, url: str, location: str) -> str:
    """Return the address that the server at `url` points to. Raises ProviderFailure for what is none of the web."""
    here = http.address(url)
    try:
        to = http.address(str(here.join(location)))
    except (ProviderFailure, ValueError, httpx.InvalidURL):
        to = None
    if to is None or (to.scheme == "http" and here.scheme == "https"):
        what = "what is no address of the web" if to is None else "an address without encryption"
        raise ProviderFailure(Cause.REFUSED, f"{here.host} points to {what}.")
    return str(to)


def _complete(http: Http, file: ModelFile, part: Path, settings: ProviderSettings) -> None:
    """Fetch what `part` lacks of the file."""
    have = part.stat().st_size if part.exists() else 0
    if file.size and file.size == have:
        return
    rest = {"Range": f"bytes={have}-"} if 0 < have < file.size and file.tag else {}
    last = 0.0
    with _answer(http, file.url, file.source, **rest) as (answer, parts):
        goes_on = answer.headers.get("content-range", "").startswith(f"bytes {have}-")
        have = have if goes_on and answer.status_code == HTTPStatus.PARTIAL_CONTENT else 0
        with durable.growing(part, have) as write:
            for piece in parts:
                write(piece)
                have += len(piece)
                if 0 < file.size < have:
                    # It is not what was announced, and may have no end.
                    break
                if time.monotonic() - last >= _PROGRESS_SECONDS:
                    last = time.monotonic()
                    settings.on_progress(DownloadProgress(file.source.name, have, file.size))
    settings.on_progress(DownloadProgress(file.source.name, have, file.size))


def _check(file: ModelFile, part: Path, stop: Stop) -> None:
    """Raise ProviderFailure when `part` is not what was announced; remove a wrong one."""
    size = part.stat().st_size
    if size < file.size:
        raise ProviderFailure(Cause.NETWORK, f"it broke off at {size:,} bytes of {file.size:,}.")
    digest = _sha256(part, stop) if file.sha256 else ""
    with part.open("rb") as opened:
        begins = opened.read(len(file.source.magic))
    if (file.size and size != file.size) or digest != file.sha256 or begins != file.source.magic:
        durable.remove_file(part)
        why = f"What came from {host_of(file.url)} is not the model {file.source.name}: "
        why += "its size, checksum or format is another."
        raise ProviderFailure(Cause.MALFORMED, why, "Try again, or fetch the file by other means.")


def _sha256(path: Path, stop: Stop) -> str:
    """Return the checksum of a file. Raises Cancelled between two pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_AT_ONCE):
            stop.check()
            digest.update(piece)
    return digest.hexdigest()
