"""The provider `local`: a GGUF model on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.providers.provider_options import ProviderSettings
from memory_tui.providers.registry import ProviderRow
from memory_tui.providers.wires import gguf

if TYPE_CHECKING:
    from memory_tui.providers.provider_protocol import Provider


SCRIPT = Path(__file__).with_name("llama_worker.py")


def _make(settings: ProviderSettings) -> Provider:
    from memory_tui.providers.wires import model_process

    return model_process.Local(
        settings,
        model_process.ModelKind(
            "local",
            SCRIPT,
            gguf.check,
            gguf.asked_model,
            gguf.find,
            gguf.fingerprint_of,
            "Choose another GGUF file that makes embeddings.",
        ),
    )


LOCAL = ProviderRow(
    "local",
    "a local model",
    make=_make,
    model=gguf.DEFAULT_MODEL,
    auto=1,
    check=lambda settings: gguf.check(settings, on_disk=True),
    asked_model=gguf.asked_model,
    files=gguf.sources,
    slow=True,
)
