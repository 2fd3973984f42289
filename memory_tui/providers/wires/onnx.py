"""The provider `onnx`: an ONNX model on this machine, which needs no compiler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.providers.provider_options import ProviderSettings
from memory_tui.providers.registry import ProviderRow
from memory_tui.providers.wires import onnx_files

if TYPE_CHECKING:
    from memory_tui.providers.provider_protocol import Provider

SCRIPT = Path(__file__).with_name("onnx_worker.py")
_TEXTS = 16
"""The most texts in one request to the model: a question waits for no more of them."""


def _make(settings: ProviderSettings) -> Provider:
    from memory_tui.providers.wires import model_process

    return model_process.Local(
        settings,
        model_process.ModelKind(
            "onnx",
            SCRIPT,
            onnx_files.check,
            onnx_files.asked_model,
            lambda settings, _: onnx_files.find(settings),
            onnx_files.mark,
            "Choose another ONNX model of sentence-transformers' kind, with its tokenizer.json.",
            _TEXTS,
        ),
    )


ONNX = ProviderRow(
    "onnx",
    "an ONNX model",
    make=_make,
    check=onnx_files.check,
    asked_model=onnx_files.asked_model,
    files=onnx_files.sources,
    slow=True,
)
