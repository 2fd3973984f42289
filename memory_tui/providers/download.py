"""The download of a model file. It resumes after a break, and checks size and checksum."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import tenacity

from memory_tui import __version__, durable
from memory_tui.core.cancel import Stop
from memory_tui.providers.failures import RETRIED, Cause, ProviderFailure, diagnose
from memory_tui.providers.http import FAULTS, HttpAnswer, Network, SentHeaders, address_of
from memory_tui.providers.options import DownloadProgress, ProviderSettings, host_of

_HUB = "https://huggingface.co"
_HF = re.compile(r"hf:([\w.-]+)/([\w.-]+)/([^#]+\.(?:gguf|onnx))(?:#([\w./-]+))?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(r"[0-9]{1,18}")
_MOST_HOPS = 5
_AGENT = {"User-Agent": f"memory-tui/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
_GOOD = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT})
_HASHED_AT_ONCE = 1 << 23
_SILENCE_SECONDS = 60.0
_PROGRESS_SECONDS = 0.1


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


def source_of(text: str, hub: str = _HUB) -> ModelSource:
    """The file that `hf:user/repo/file.gguf#branch` or a URL (with `#sha256=...`) names. Raises ProviderFailure."""
    if text.startswith("hf:"):
        found = _HF.fullmatch(text)
        if found is None:
            raise ProviderFailure(Cause.NO_FILE, f"{text} names no model file.", "Write hf:user/repository/file.gguf.")
        user, repository, file, branch = found.groups()
        url = f"{hub.rstrip('/')}/{user}/{repository}/resolve/{quote(branch or 'main', safe='')}/{quote(file)}"
        return ModelSource(url, _safe(f"hf_{user}_{repository}_{f'{branch}_' if branch else ''}{file}"))
    url, _, mark = text.partition("#")
    digest = mark.removeprefix("sha256=").lower()
    address = hashlib.sha256(url.encode()).hexdigest()[:8]
    return ModelSource(
        url,
        _safe(f"{address}_{urlsplit(url).path.rpartition('/')[2] or 'model.gguf'}"),
        digest if _SHA256.fullmatch(digest) else "",
    )


def _sha256(path: Path, stop: Stop) -> str:
    """Checksum of a file. Raises Cancelled between two pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_HASHED_AT_ONCE):
            stop.check()
            digest.update(piece)
    return digest.hexdigest()


def _number(text: str) -> int:
    return int(text) if _SIZE.fullmatch(text) else 0


def _followed(url: str, location: str) -> str:
    """The address that the server at `url` points to. Raises ProviderFailure for what is none of the web."""
    try:
        to = urljoin(url, location)
        scheme = urlsplit(to).scheme
    except ValueError:
        to = scheme = ""
    if scheme not in ("http", "https"):
        raise ProviderFailure(Cause.REFUSED, f"{host_of(url)} points to what is no address of the web.")
    if scheme == "http" and urlsplit(url).scheme == "https":
        raise ProviderFailure(Cause.REFUSED, f"{host_of(url)} points to an address without encryption.")
    return to


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)[-200:]


def cache_folder(settings: ProviderSettings) -> Path:
    """Where model files are kept: `local.modelCacheDir`, else below the user's cache folder."""
    if settings.model_cache is not None:
        return settings.model_cache.expanduser()
    import platformdirs

    return platformdirs.user_cache_path("memory-tui", appauthor=False) / "models"


def hub(settings: ProviderSettings) -> str:
    """Where `hf:` URIs point to."""
    return settings.env("HF_ENDPOINT") or _HUB


class FileToFetch(NamedTuple):
    """A file of a model before it is fetched: bytes (0: not told), SHA-256 (empty: not told), and where it will be."""

    source: ModelSource
    size: int
    sha256: str
    path: Path


def look_up_all(sources: Sequence[ModelSource], settings: ProviderSettings) -> list[FileToFetch]:
    """What servers say about `sources`, without those that are not there and not needed. Raises ProviderFailure."""
    folder, found = cache_folder(settings), []
    for source in sources:
        try:
            served = _Fetch(source, settings, Stop(), folder).look_up()
        except ProviderFailure as failure:
            if failure.state is not Cause.NO_FILE or source.needed:
                raise
        else:
            found.append(FileToFetch(source, served.size, served.sha256, folder / source.name))
    return found


def fetch_all(files: Sequence[FileToFetch], settings: ProviderSettings) -> tuple[Path, ...]:
    """Fetch `files` in their order; each has to have the checksum that was told before. Raises ProviderFailure.

    A file that is there stays where its size and checksum are those that were told; where neither was, it may have been
    cut short, and another takes its place.
    """
    stop = Stop()
    return tuple(
        fetch(file.source._replace(sha256=file.sha256), settings, stop, anew=not _is_whole(file, stop))
        for file in files
    )


def _is_whole(file: FileToFetch, stop: Stop) -> bool:
    """Whether the file that is there is the one that the server told of."""
    if not file.path.is_file() or not (file.size or file.sha256):
        return False
    if file.size and file.path.stat().st_size != file.size:
        return False
    return not file.sha256 or _sha256(file.path, stop) == file.sha256


def fetch(source: ModelSource, settings: ProviderSettings, stop: Stop, *, anew: bool = False) -> Path:
    """The file of `source`, fetched into the cache folder unless it is there; with `anew` also then, in its place.

    Raises ProviderFailure, and Cancelled once `stop` is set.

    An interrupted fetch leaves its part, with which the next one goes on. `settings.on_progress` is told how far it is.
    """
    folder = cache_folder(settings)
    target = folder / source.name
    if target.exists() and not anew:
        return target
    attempts = tenacity.Retrying(
        sleep=settings.clock.pause(stop),
        stop=tenacity.stop_after_attempt(settings.batches.attempts),
        wait=tenacity.wait_exponential(settings.batches.first_wait, settings.batches.longest_wait),
        reraise=True,
        retry=tenacity.retry_if_exception(lambda e: isinstance(e, ProviderFailure) and e.state in RETRIED),
    )
    try:
        durable.make_folder(target.parent, 0o777)
        attempts(_Fetch(source, settings, stop, folder, anew=anew).run)
    except OSError as error:
        failure = ProviderFailure(
            Cause.NO_FILE,
            f"The model {source.name} cannot be kept in {folder}: {error.strerror or error}.",
            "Free some space there, or set local.modelCacheDir.",
        )
    else:
        return target
    raise failure


def _asked(network: Network, url: str, headers: Mapping[str, str]) -> AbstractContextManager[HttpAnswer]:
    return network.answer("GET", address_of(url), SentHeaders(_AGENT, headers), seconds=_SILENCE_SECONDS, in_all=False)


class _Fetch:
    """One attempt after the other at one file."""

    def __init__(
        self, source: ModelSource, settings: ProviderSettings, stop: Stop, folder: Path, *, anew: bool = False
    ) -> None:
        self._source, self._stop, self._folder, self._anew = source, stop, folder, anew
        self._tell: Callable[[DownloadProgress], None] = settings.on_progress
        self._told = 0.0
        self._token = settings.env("HF_TOKEN") if "/resolve/" in source.url else None

    def look_up(self) -> ServedFile:
        """What the server says about the file."""
        with self._connected() as network:
            return self._look(network)

    def run(self) -> None:
        """Fetch what is missing, check it, and give it its name."""
        with self._connected() as network:
            found = self._look(network)
            part = self._part(found)
            self._complete(network, found, part)
        self._check(part, found)
        self._publish(part)

    @contextmanager
    def _connected(self) -> Iterator[Network]:
        """Asks the server. Raises ProviderFailure for what is wrong with the way there, Cancelled."""
        network = Network(self._stop)
        try:
            yield network
        except FAULTS as error:
            failure = ProviderFailure(
                Cause.NETWORK,
                f"The model {self._source.name} could not be fetched from {host_of(self._source.url)}: "
                f"{str(error) or type(error).__name__}",
                "Try again: it goes on from where it stopped.",
            )
        else:
            return
        finally:
            network.close()
        self._stop.check()
        raise failure

    def _look(self, network: Network) -> ServedFile:
        """Follow redirects to the file. The token is for the first host only."""
        url, sha256, size = self._source.url, self._source.sha256, 0
        for hop in range(_MOST_HOPS):
            # Not HEAD, because addresses that are signed for GET refuse it.
            asked = {
                "Range": "bytes=0-0",
                **({"Authorization": f"Bearer {self._token}"} if hop == 0 and self._token else {}),
            }
            with _asked(network, url, asked) as answer:
                told = answer.headers
            linked = told.get("x-linked-etag", "").strip('"')
            sha256 = sha256 or (linked if _SHA256.fullmatch(linked) else "")
            size = size or _number(told.get("x-linked-size", ""))
            if not answer.redirects:
                if answer.status not in _GOOD:
                    raise self._refused(answer.status, told, "")
                whole = told.get("content-range", "").rpartition("/")[2] or told.get("content-length", "")
                tag = sha256 or told.get("etag", "") or told.get("last-modified", "")
                return ServedFile(url, size or _number(whole), tag, sha256)
            url = _followed(url, told.get("location", ""))
        raise ProviderFailure(Cause.REFUSED, f"{host_of(self._source.url)} redirects without end.")

    def _refused(self, status: int, headers: Mapping[str, str], text: str) -> ProviderFailure:
        state, words, wait = diagnose(status, headers, text)
        return ProviderFailure(
            Cause.NO_FILE if status == HTTPStatus.NOT_FOUND else state,
            f"{host_of(self._source.url)} answered {status} for {self._source.name}: {words or 'nothing else'}",
            "Check local.modelPath; a model that asks for consent needs HF_TOKEN.",
            wait,
        )

    def _part(self, found: ServedFile) -> Path:
        """The unfinished file; its name tells source and version, so that no part of another one is continued."""
        version = hashlib.sha256(f"{self._source.url}\n{found.tag}\n{found.size}".encode()).hexdigest()[:16]
        return self._folder / f"{self._source.name}.{version}.memory-tui-part"

    def _complete(self, network: Network, found: ServedFile, part: Path) -> None:
        have = part.stat().st_size if part.exists() else 0
        missing = found.size - have
        if found.size and missing == 0:
            return
        free = shutil.disk_usage(self._folder).free
        if missing > free:
            raise ProviderFailure(
                Cause.NO_FILE,
                f"The model {self._source.name} needs {missing >> 20} MiB in {self._folder}, where "
                f"{free >> 20} MiB are free.",
                "Free some space there, or set local.modelCacheDir.",
            )
        wanted = {"Range": f"bytes={have}-"} if 0 < have < found.size and found.tag else {}
        with _asked(network, found.url, wanted) as answer:
            if answer.status not in _GOOD:
                raise self._refused(answer.status, answer.headers, "")
            goes_on = answer.status == HTTPStatus.PARTIAL_CONTENT and answer.headers.get(
                "content-range", ""
            ).startswith(f"bytes {have}-")
            have = have if goes_on else 0
            with durable.growing(part, have) as write:
                for piece in answer.parts:
                    write(piece)
                    have += len(piece)
                    if 0 < found.size < have:
                        # It is not what was announced, and may have no end.
                        break
                    self._progress(have, found.size)
        self._progress(have, found.size, last=True)

    def _progress(self, done: int, total: int, last: bool = False) -> None:
        now = time.monotonic()
        if last or now - self._told >= _PROGRESS_SECONDS:
            self._told = now
            self._tell(DownloadProgress(self._source.name, done, total))

    def _check(self, part: Path, found: ServedFile) -> None:
        """Raises ProviderFailure when the file is not what was announced; a wrong one is removed."""
        size = part.stat().st_size
        if found.size and size < found.size:
            raise ProviderFailure(
                Cause.NETWORK,
                f"The model {self._source.name} broke off at {size:,} bytes of {found.size:,}.",
                "Try again: it goes on from where it stopped.",
            )
        digest = _sha256(part, self._stop) if found.sha256 else ""
        with part.open("rb") as file:
            begins = file.read(len(self._source.magic))
        if (found.size and size != found.size) or digest != found.sha256 or begins != self._source.magic:
            durable.remove_file(part)
            raise ProviderFailure(
                Cause.MALFORMED,
                f"What came from {host_of(found.url)} is not the model {self._source.name}: "
                "its size, checksum or format is another.",
                "Try again, or fetch the file by other means.",
            )

    def _publish(self, part: Path) -> None:
        """Give the file its name, unless one is there that it is not to replace."""
        target = self._folder / self._source.name
        if self._anew:
            durable.move_file(part, target)
        else:
            durable.publish_file(part, target)
