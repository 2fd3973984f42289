"""Fetch the file of a model from Hugging Face by its own library, and check its checksum."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from memory_tui import durable
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import ProviderSettings

_HF = re.compile(r"hf:([\w.-]+)/([\w.-]+)/([^#]+\.gguf)(?:#([\w./-]+))?")


class ModelFile(NamedTuple):
    """A file of a model before it is fetched: where it is, bytes, SHA-256 (empty: unknown) and where it will be."""

    url: str
    size: int
    sha256: str
    path: Path


def cache_folder(settings: ProviderSettings) -> Path:
    """Return where model files are kept: `local.modelCacheDir`, else below the user's cache folder."""
    if settings.model_cache is not None:
        return settings.model_cache.expanduser()
    return platformdirs.user_cache_path("memory-tui", appauthor=False) / "models"


def _place(model: str, settings: ProviderSettings) -> dict[str, Any]:
    """Return where `hf:user/repo/file.gguf#branch` is. Raises ProviderFailure."""
    match = _HF.fullmatch(model)
    if match is None:
        raise ProviderFailure(Cause.NO_FILE, f"{model} names no model file.", "Write hf:user/repository/file.gguf.")
    user, repository, file, branch = match.groups()
    hub = settings.env("HF_ENDPOINT") or "https://huggingface.co"
    return {"repo_id": f"{user}/{repository}", "filename": file, "revision": branch or "main", "endpoint": hub}


def path_of(model: str, settings: ProviderSettings) -> Path:
    """Return where the file of an `hf:` model is on this machine, once it is fetched. Raises ProviderFailure."""
    place = _place(model, settings)
    branch = "" if place["revision"] == "main" else f"{place['revision']}_"
    name = f"hf_{place['repo_id']}_{branch}{place['filename']}"
    return cache_folder(settings) / re.sub(r"[^\w.-]", "_", name)[-200:]


def look_up(model: str, settings: ProviderSettings) -> ModelFile:
    """Return what the server says about a model. Raises ProviderFailure."""
    place = _place(model, settings)
    with _told(model):
        import huggingface_hub

        url = huggingface_hub.hf_hub_url(**place)
        told = huggingface_hub.get_hf_file_metadata(url, token=settings.env("HF_TOKEN") or False)
    etag = told.etag or ""
    return ModelFile(url, told.size or 0, etag if len(etag) == 64 else "", path_of(model, settings))


def fetch(model: str, file: ModelFile, settings: ProviderSettings) -> Path:
    """Fetch `file`, which has to have the checksum that was shown before. Raises ProviderFailure."""
    if file.path.is_file() and file.sha256 == _sha256(file.path):
        return file.path
    try:
        durable.make_folder(file.path.parent, 0o777)
        with _told(model), tempfile.TemporaryDirectory(dir=file.path.parent) as folder:
            import huggingface_hub

            token = settings.env("HF_TOKEN") or False
            fetched = Path(huggingface_hub.hf_hub_download(**_place(model, settings), local_dir=folder, token=token))
            with fetched.open("rb") as opened:
                good = opened.read(4) == b"GGUF"
            if not good or file.sha256 not in ("", _sha256(fetched)):
                why = f"What came from {file.url} is not the model: its checksum or format is another."
                raise ProviderFailure(Cause.MALFORMED, why, "Try again, or fetch the file by other means.")
            durable.move_file(fetched, file.path)
    except OSError as error:
        why = f"The model cannot be kept in {file.path.parent}: {error.strerror or error}."
        raise ProviderFailure(Cause.NO_FILE, why, "Free some space there, or set local.modelCacheDir.") from error
    return file.path


@contextmanager
def _told(model: str) -> Iterator[None]:
    """Turn what the library raises into a sentence. Raises ProviderFailure."""
    # Read once, when it is loaded: what is no model is no business of the hub's.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import httpx
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except (HfHubHTTPError, httpx.HTTPError, ValueError) as error:
        why = f"The model {model} could not be fetched: {(str(error).strip() or 'no answer').splitlines()[0]}"
        step = "Check the network and local.modelPath; a model that asks for consent needs HF_TOKEN."
        raise ProviderFailure(Cause.NETWORK, why, step) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
