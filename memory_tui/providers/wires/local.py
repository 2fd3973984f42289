"""The provider `local`: a GGUF model on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_tui.providers.provider_options import ProviderSettings
from memory_tui.providers.provider_row import ProviderRow
from memory_tui.providers.wires import gguf

if TYPE_CHECKING:
    from memory_tui.providers.provider_protocol import Provider


def _make(settings: ProviderSettings) -> Provider:
    from memory_tui.providers.wires.llama_process import Local

    return Local(settings)


LOCAL = ProviderRow(
    "local",
    "a local model",
    make=_make,
    model=gguf.DEFAULT_MODEL,
    auto=1,
    check=lambda settings: gguf.check(settings, on_disk=True),
    asked_model=gguf.asked_model,
)
