"""Fetch the file of a model: go on after a break, check size and checksum."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
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
from memory_tui.providers.http import AGENT, FAULTS, HttpAnswer, Network, SentHeaders, address_of
from memory_tui.providers.options import DownloadProgress, ProviderSettings, host_of

_HUB = "https://huggingface.co"
_HF = re.compile(r"hf:([\w.-]+)/([\w.-]+)/([^#]+\.(?:gguf|onnx))(?:#([\w./-]+))?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(r"[0-9]{1,18}")
_MOST_HOPS = 5
_GOOD = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})
_AT_ONCE = 1 << 23
_SILENCE_SECONDS, _PROGRESS_SECONDS = 60.0, 0.1


class ModelSource(NamedTuple):
    """Where a file of a model is, the name it has on this machine, its SHA-256 where that is known beforehand, how it
    begins, and whether a model is none without it.
    """

    url: str
    name: str
    sha256: str = ""
    magic: bytes = b""
    needed: bool = True


class ServedFile(NamedTuple):
    """What the server says about the file: where it really is, bytes (0: unknown), what tells its version."""

    url: str
    size: int
    tag: str
    sha256: str


class FileToFetch(NamedTuple):
    """A file of a model before it is fetched: bytes (0: unknown), SHA-256 (empty: unknown), and where it will be."""

    source: ModelSource
    size: int
    sha256: str
    path: Path


def source_of(text: str, hub: str = _HUB) -> ModelSource:
    """Return the file that `hf:user/repo/file.gguf#branch` or a URL (with `#sha256=...`) names.

    Raises ProviderFailure.
    """
    if text.startswith("hf:"):
        match = _HF.fullmatch(text)
        if match is None:
            raise ProviderFailure(Cause.NO_FILE, f"{text} names no model file.", "Write hf:user/repository/file.gguf.")
        user, repository, file, branch = match.groups()
        url = f"{hub.rstrip('/')}/{user}/{repository}/resolve/{quote(branch or 'main', safe='')}/{quote(file)}"
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


def hub(settings: ProviderSettings) -> str:
    """Return where `hf:` URIs point to."""
    return settings.env("HF_ENDPOINT") or _HUB


def look_up_all(sources: Sequence[ModelSource], settings: ProviderSettings) -> list[FileToFetch]:
    """Return what servers say about `sources`, without those that are neither there nor needed."""
    folder, files = cache_folder(settings), []
    for source in sources:
        try:
            served = _Fetch(source, settings, Stop(), folder).look_up()
        except ProviderFailure as failure:
            if failure.state is not Cause.NO_FILE or source.needed:
                raise
        else:
            files.append(FileToFetch(source, served.size, served.sha256, folder / source.name))
    return files


def fetch_all(files: Sequence[FileToFetch], settings: ProviderSettings) -> tuple[Path, ...]:
    """Fetch `files` in their order; each has to have the checksum that was shown before. Raises ProviderFailure.

    A file that is there stays where it has the size or checksum that is known; where neither is, it may have been cut
    short, and another takes its place.
    """
    stop = Stop()
    return tuple(
        fetch(file.source._replace(sha256=file.sha256), settings, stop, anew=not _is_whole(file, stop))
        for file in files
    )


def _is_whole(file: FileToFetch, stop: Stop) -> bool:
    if not file.path.is_file() or not (file.size or file.sha256):
        return False
    right = not file.size or file.path.stat().st_size == file.size
    return right and (not file.sha256 or _sha256(file.path, stop) == file.sha256)


def _sha256(path: Path, stop: Stop) -> str:
    """Return the checksum of a file. Raises Cancelled between two pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_AT_ONCE):
            stop.check()
            digest.update(piece)
    return digest.hexdigest()


def fetch(source: ModelSource, settings: ProviderSettings, stop: Stop, *, anew: bool = False) -> Path:
    """Return the file of `source`, fetched into the cache folder unless it is there, with `anew` in its place.

    Raises ProviderFailure, and Cancelled once `stop` is set. An interrupted fetch leaves its part, with which the next
    one goes on. `settings.on_progress` is told how far it is.
    """
    folder, limits, attempt = cache_folder(settings), settings.batches, 1
    target = folder / source.name
    if target.exists() and not anew:
        return target
    try:
        durable.make_folder(target.parent, 0o777)
        while True:
            try:
                _Fetch(source, settings, stop, folder).run(anew=anew)
            except ProviderFailure as failure:
                if failure.state not in RETRIED or attempt >= limits.attempts:
                    raise
            else:
                return target
            settings.clock.pause(stop)(min(limits.first_wait * 2**attempt, limits.longest_wait))
            attempt += 1
    except OSError as error:
        why = f"The model {source.name} cannot be kept in {folder}: {error.strerror or error}."
        raise ProviderFailure(Cause.NO_FILE, why, "Free some space there, or set local.modelCacheDir.") from error


class _Fetch:
    """One attempt at one file."""

    def __init__(self, source: ModelSource, settings: ProviderSettings, stop: Stop, folder: Path) -> None:
        self._source, self._stop, self._folder = source, stop, folder
        self._tell, self._last = settings.on_progress, 0.0
        self._token = settings.env("HF_TOKEN") if "/resolve/" in source.url else None
        self._network = Network(stop)

    def look_up(self) -> ServedFile:
        """Return what the server says about the file."""
        with self._connected():
            return self._look()

    def run(self, *, anew: bool) -> None:
        """Fetch what is missing, check it, and give it its name, with `anew` in the place of what has it."""
        with self._connected():
            served = self._look()
            # The name tells source and version, so that no part of another one is continued.
            version = hashlib.sha256(f"{self._source.url}\n{served.tag}\n{served.size}".encode()).hexdigest()[:16]
            part = self._folder / f"{self._source.name}.{version}.memory-tui-part"
            self._complete(served, part)
        self._check(part, served)
        give = durable.move_file if anew else durable.publish_file
        give(part, self._folder / self._source.name)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Ask the server. Raises ProviderFailure for what is wrong with the way there, Cancelled."""
        try:
            yield
        except FAULTS as error:
            why = str(error) or type(error).__name__
        else:
            return
        finally:
            self._network.close()
        self._stop.check()
        raise ProviderFailure(
            Cause.NETWORK,
            f"The model {self._source.name} could not be fetched from {host_of(self._source.url)}: {why}",
            "Try again: it goes on from where it stopped.",
        )

    @contextmanager
    def _answer(self, url: httpx.URL, headers: Mapping[str, str]) -> Iterator[HttpAnswer]:
        sent = SentHeaders({**AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}, headers)
        with self._network.answer("GET", url, sent, seconds=_SILENCE_SECONDS, in_all=False) as answer:
            yield answer

    def _look(self) -> ServedFile:
        """Follow redirects to the file. The token is for the first host only."""
        url, sha256, size = address_of(self._source.url), self._source.sha256, 0
        for hop in range(_MOST_HOPS):
            token = {"Authorization": f"Bearer {self._token}"} if hop == 0 and self._token else {}
            # Not HEAD, because addresses that are signed for GET refuse it.
            with self._answer(url, {"Range": "bytes=0-0", **token}) as answer:
                headers = answer.headers
            linked = headers.get("x-linked-etag", "").strip('"')
            sha256 = sha256 or (linked if _SHA256.fullmatch(linked) else "")
            size = size or _number(headers.get("x-linked-size", ""))
            if not answer.redirects:
                self._require_good(answer)
                whole = headers.get("content-range", "").rpartition("/")[2] or headers.get("content-length", "")
                tag = sha256 or headers.get("etag", "") or headers.get("last-modified", "")
                return ServedFile(str(url), size or _number(whole), tag, sha256)
            url = _followed(url, headers.get("location", ""))
        raise ProviderFailure(Cause.REFUSED, f"{url.host} redirects without end.")

    def _require_good(self, answer: HttpAnswer) -> None:
        if answer.status in _GOOD:
            return
        state, words, wait = diagnose(answer.status, answer.headers, "")
        raise ProviderFailure(
            Cause.NO_FILE if answer.status == HTTPStatus.NOT_FOUND else state,
            f"{host_of(self._source.url)} answered {answer.status} for {self._source.name}{words and ': '}{words}",
            "Check local.modelPath; a model that asks for consent needs HF_TOKEN.",
            wait,
        )

    def _complete(self, served: ServedFile, part: Path) -> None:
        have = part.stat().st_size if part.exists() else 0
        missing, free = served.size - have, shutil.disk_usage(self._folder).free
        if served.size and missing == 0:
            return
        if missing > free:
            needs = f"needs {missing >> 20} MiB in {self._folder}, where {free >> 20} MiB are free."
            step = "Free some space there, or set local.modelCacheDir."
            raise ProviderFailure(Cause.NO_FILE, f"The model {self._source.name} {needs}", step)
        rest = {"Range": f"bytes={have}-"} if 0 < have < served.size and served.tag else {}
        with self._answer(httpx.URL(served.url), rest) as answer:
            self._require_good(answer)
            goes_on = answer.headers.get("content-range", "").startswith(f"bytes {have}-")
            have = have if goes_on and answer.status == HTTPStatus.PARTIAL_CONTENT else 0
            with durable.growing(part, have) as write:
                for piece in answer.parts:
                    write(piece)
                    have += len(piece)
                    if 0 < served.size < have:
                        # It is not what was announced, and may have no end.
                        break
                    self._progress(have, served.size)
        self._progress(have, served.size, last=True)

    def _progress(self, done: int, total: int, last: bool = False) -> None:
        now = time.monotonic()
        if last or now - self._last >= _PROGRESS_SECONDS:
            self._last = now
            self._tell(DownloadProgress(self._source.name, done, total))

    def _check(self, part: Path, served: ServedFile) -> None:
        """Raise ProviderFailure when the file is not what was announced; remove a wrong one."""
        size = part.stat().st_size
        if served.size and size < served.size:
            raise ProviderFailure(
                Cause.NETWORK,
                f"The model {self._source.name} broke off at {size:,} bytes of {served.size:,}.",
                "Try again: it goes on from where it stopped.",
            )
        digest = _sha256(part, self._stop) if served.sha256 else ""
        with part.open("rb") as file:
            begins = file.read(len(self._source.magic))
        if (served.size and size != served.size) or digest != served.sha256 or begins != self._source.magic:
            durable.remove_file(part)
            raise ProviderFailure(
                Cause.MALFORMED,
                f"What came from {host_of(served.url)} is not the model {self._source.name}: "
                "its size, checksum or format is another.",
                "Try again, or fetch the file by other means.",
            )


def _number(text: str) -> int:
    return int(text) if _SIZE.fullmatch(text) else 0


def _followed(url: httpx.URL, location: str) -> httpx.URL:
    """Return the address that the server at `url` points to. Raises ProviderFailure for what is none of the web."""
    try:
        to = address_of(str(url.join(location)))
    except FAULTS:
        to = None
    if to is None or (to.scheme == "http" and url.scheme == "https"):
        what = "what is no address of the web" if to is None else "an address without encryption"
        raise ProviderFailure(Cause.REFUSED, f"{url.host} points to {what}.")
    return to
