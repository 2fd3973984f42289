"""The provider `local`: a GGUF model on this machine."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import ProviderSettings
from memory_tui.providers.registry import ProviderRow

if TYPE_CHECKING:
    from memory_tui.core.cancel import Stop
    from memory_tui.providers.base import Provider
    from memory_tui.providers.download import ModelSource

_MAGIC = b"GGUF"
_END = 1 << 16
DEFAULT_MODEL = "hf:ggml-org/embeddinggemma-300m-qat-q8_0-GGUF/embeddinggemma-300m-qat-Q8_0.gguf"
PACKAGE = "llama_cpp"
"""What runs local models."""


def check(settings: ProviderSettings, on_disk: bool = False) -> None:
    """Raises ProviderFailure when there is no software for local models, or no file at `local.modelPath`.

    What has to be fetched first is refused when it has to be `on_disk`.
    """
    if on_disk and (not settings.model_path or is_remote(settings.model_path)):
        raise ProviderFailure(
            Cause.NO_FILE,
            "local.modelPath names no file on this machine.",
            "Set it to a GGUF file, or choose the provider local to have one fetched.",
        )
    from importlib.util import find_spec

    if find_spec(PACKAGE) is None:
        raise ProviderFailure(Cause.NOT_INSTALLED, "Local models need llama-cpp-python, which is not installed.")
    source = asked_model(settings)
    if not is_remote(source):
        require_gguf(_local(source))


def asked_model(settings: ProviderSettings) -> str:
    """The path, `hf:` URI or URL of the model file."""
    return settings.model_path or DEFAULT_MODEL


def is_remote(source: str) -> bool:
    """Whether `source` names a file elsewhere: an `hf:` URI or a URL."""
    return source.startswith(("hf:", "http:", "https:"))


def _local(source: str) -> Path:
    return Path(os.path.expanduser(source))  # noqa: PTH111 - an unknown user is no error


def require_gguf(path: Path) -> None:
    """Raises ProviderFailure unless there is a GGUF file at `path`."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ProviderFailure(Cause.NO_FILE, f"The model file {path.name} cannot be read: {error.strerror}.") from error
    if magic != _MAGIC:
        raise ProviderFailure(Cause.NO_FILE, f"The model file {path.name} is not in GGUF format.")


def sources(settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """Where the model is when it is named by an address. Raises ProviderFailure."""
    from memory_tui.providers import download

    source = asked_model(settings)
    if not is_remote(source):
        raise ProviderFailure(Cause.NO_FILE, "local.modelPath names nothing that could be fetched.")
    return (download.source_of(source, download.hub(settings))._replace(magic=_MAGIC),)


def find(settings: ProviderSettings, stop: Stop) -> Path:
    """The model file, fetched where it is named by an address. Raises ProviderFailure, Cancelled."""
    source = asked_model(settings)
    if not is_remote(source):
        path = _local(source)
    else:
        from memory_tui.providers.download import fetch

        path = fetch(sources(settings)[0], settings, stop)
    require_gguf(path)
    return path


def fingerprint_of(path: Path) -> str:
    """Hexadecimal SHA-256 of the size and both ends of a file: enough to notice that another model has its name."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_END))
        size = file.seek(0, 2)
        file.seek(max(0, size - _END))
        digest.update(file.read(_END) + str(size).encode())
    return digest.hexdigest()


def remedy(source: str, other: str) -> str:
    """What to do about the model `source` that does not work: `other`, and first to fetch one that was fetched."""
    if not is_remote(source):
        return other
    return f"It may have been cut short: memory-tui provider --fetch --yes fetches it again. {other}"


SCRIPT = Path(__file__).with_name("llama_worker.py")


def _make(settings: ProviderSettings) -> Provider:
    from memory_tui.providers import model_process

    return model_process.ModelProcessProvider(
        settings,
        model_process.ModelKind(
            "local",
            SCRIPT,
            check,
            asked_model,
            find,
            fingerprint_of,
            remedy(asked_model(settings), "Choose another GGUF file that makes embeddings."),
        ),
    )


LOCAL = ProviderRow(
    "local",
    "a local model",
    make=_make,
    model=DEFAULT_MODEL,
    auto=1,
    check=lambda settings: check(settings, on_disk=True),
    asked_model=asked_model,
    files=sources,
    slow=True,
)
