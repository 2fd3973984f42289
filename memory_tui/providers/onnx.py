"""The provider `onnx`: an ONNX model on this machine, which needs no compiler."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.core.formatting import install_extra
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.local import DEFAULT_MODEL, fingerprint_of, is_remote, remedy
from memory_tui.providers.options import ProviderSettings
from memory_tui.providers.registry import ProviderRow

if TYPE_CHECKING:
    from memory_tui.providers.base import Provider
    from memory_tui.providers.download import ModelSource

PACKAGE = "onnxruntime"
"""What runs ONNX models."""
_MODELS = "model.onnx", "onnx/model.onnx"
_TOKENIZER = "tokenizer.json"
_SETTINGS = (
    "config.json",
    "tokenizer_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
"""What says how token vectors become one; read where it is there."""
_ENDS_OF_DATA = "_data", ".data"
"""How a file of weights beside the model is called."""
_NAME_ONE = "Set local.modelPath to a folder with model.onnx and tokenizer.json (help providers)."


def check(settings: ProviderSettings) -> None:
    """Raises ProviderFailure when onnxruntime or the model is missing; nothing is fetched for that."""
    from importlib.util import find_spec

    if find_spec(PACKAGE) is None:
        raise ProviderFailure(
            Cause.NOT_INSTALLED,
            "ONNX models need onnxruntime, which is not installed.",
            f"{install_extra('onnx')} (no compiler, no download of a model).",
        )
    find(settings)


def asked_model(settings: ProviderSettings) -> str:
    """The folder, file, `hf:` URI or URL that `local.modelPath` names; without it there is none."""
    # What the key stands for without a value is a model of the provider local.
    return "" if settings.model_path == DEFAULT_MODEL else settings.model_path


def find(settings: ProviderSettings) -> Path:
    """The ONNX file of the model, which has its tokenizer beside or above it. Raises ProviderFailure."""
    source = asked_model(settings)
    if not source:
        raise ProviderFailure(Cause.NO_FILE, "local.modelPath names no ONNX model.", _NAME_ONE)
    if is_remote(source):
        model = _fetched(settings)
        if model.suffix != ".onnx":
            raise _no_onnx(source)
        if not _is_file(model):
            raise ProviderFailure(
                Cause.NO_FILE,
                f"The model {source} is not on this machine.",
                "See addresses, sizes and checksums: memory-tui provider --fetch. To fetch it: the same with --yes.",
            )
        return model
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - an unknown user is no error
    candidates = [path, *(path / name for name in _MODELS)]
    model = next((one for one in candidates if one.suffix == ".onnx" and _is_file(one)), path)
    if model is path and not (path.suffix == ".onnx" and _is_file(path)):
        raise ProviderFailure(Cause.NO_FILE, f"{source!r} is no ONNX model: there is no {_MODELS[0]}.", _NAME_ONE)
    if not _is_file(_folder(model) / _TOKENIZER):
        raise ProviderFailure(
            Cause.NO_FILE,
            f"The model {model.name} has no {_TOKENIZER} beside it.",
            "Copy it from where the model came from; other forms of tokenizers are not read.",
        )
    return model


def fingerprint(model: Path) -> str:
    """Hexadecimal SHA-256 of what decides the vectors: both ends of the model and its weights, tokenizer, settings."""
    folder, digest = _folder(model), hashlib.sha256(fingerprint_of(model).encode())
    for end in _ENDS_OF_DATA:
        if _is_file(weights := model.with_name(model.name + end)):
            digest.update(fingerprint_of(weights).encode())
    for name in (_TOKENIZER, *_SETTINGS):
        if _is_file(path := folder / name):
            digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def sources(settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """Where the files of the model are, the model last: where that is there, all is. Raises ProviderFailure."""
    from memory_tui.providers import download

    text = asked_model(settings)
    if not is_remote(text):
        raise ProviderFailure(Cause.NO_FILE, "local.modelPath names nothing that could be fetched.", _NAME_ONE)
    model = download.source_of(text, download.hub(settings))
    base, _, file = model.url.rpartition("/")
    if not file.endswith(".onnx"):
        raise _no_onnx(text)
    above = base.removesuffix("/onnx")
    folder = _fetched(settings).parent.name
    return (
        *(download.ModelSource(f"{above}/{name}", f"{folder}/{name}", needed=False) for name in _SETTINGS),
        download.ModelSource(f"{above}/{_TOKENIZER}", f"{folder}/{_TOKENIZER}"),
        *(download.ModelSource(model.url + end, f"{folder}/{file}{end}", needed=False) for end in _ENDS_OF_DATA),
        download.ModelSource(model.url, f"{folder}/{file}", model.sha256),
    )


def _no_onnx(source: str) -> ProviderFailure:
    return ProviderFailure(
        Cause.NO_FILE, f"{source} names no ONNX file.", "Write hf:user/repository/onnx/model.onnx, or a URL like it."
    )


def _fetched(settings: ProviderSettings) -> Path:
    """Where the model that was named by an address is kept."""
    from memory_tui.providers import download

    source = download.source_of(asked_model(settings), download.hub(settings))
    folder = source.name.removesuffix(".onnx")
    return download.cache_folder(settings) / folder / Path(source.url.rpartition("/")[2]).name


def _folder(model: Path) -> Path:
    here = model.parent
    return here if here.name != "onnx" or _is_file(here / _TOKENIZER) else here.parent


def _is_file(path: Path) -> bool:
    """Whether there is a regular file: what is opened may not be a pipe that nobody writes to."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


SCRIPT = Path(__file__).with_name("onnx_worker.py")
_TEXTS = 16
"""The most texts in one request to the model: a question waits for no more of them."""


def _make(settings: ProviderSettings) -> Provider:
    from memory_tui.providers import model_process

    return model_process.ModelProcessProvider(
        settings,
        model_process.ModelKind(
            "onnx",
            SCRIPT,
            check,
            asked_model,
            lambda settings, _: find(settings),
            fingerprint,
            remedy(
                asked_model(settings),
                "Choose another ONNX model of sentence-transformers' kind, with its tokenizer.json.",
            ),
            _TEXTS,
        ),
    )


ONNX = ProviderRow(
    "onnx",
    "an ONNX model",
    make=_make,
    check=check,
    asked_model=asked_model,
    files=sources,
    slow=True,
)
