"""Providers by name: imported when asked for, and a wrong name is answered with the right ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memory_tui.core.errors import ProviderError
from memory_tui.providers.registry import NAMES, create


@pytest.mark.parametrize("name", ["builtin", "scripted", "none"])
def test_a_provider_answers_to_its_name(name: str) -> None:
    provider = create(name)
    assert provider.identity.provider == name
    assert provider.health().ok
    assert provider.max_input_bytes == 8000
    provider.close()


def test_the_known_names() -> None:
    remote = (
        "openai",
        "gemini",
        "voyage",
        "mistral",
        "ollama",
        "openai-compatible",
        "lmstudio",
        "llama-cpp",
        "deepinfra",
    )
    assert ("builtin", "local", "onnx", *remote, "scripted", "none") == NAMES


@pytest.mark.parametrize("name", ["", "open ai", "Builtin", "../builtin"])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(ProviderError, match=r"builtin, local, onnx, openai, .* scripted, none") as caught:
        create(name)
    assert caught.value.next_step


def test_a_mistyped_name_is_corrected() -> None:
    with pytest.raises(ProviderError) as caught:
        create("biultin")
    assert caught.value.next_step == "Did you mean builtin?"


def test_no_provider_has_no_vectors_and_says_so() -> None:
    provider = create("none")
    assert (provider.identity.model, provider.identity.dims) == ("fts-only", 0)
    with pytest.raises(ProviderError, match="words alone"):
        provider.embed(["text"], "query")


def test_importing_the_registry_loads_nothing_heavy() -> None:
    code = (
        "import sys, memory_tui.providers.registry as registry\n"
        "heavy = {'numpy', 'httpx', 'tenacity', 'asyncio', 'tokenizers', 'textual', 'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "provider = registry.create('builtin')\n"
        "assert not {'tokenizers', 'textual', 'rich'} & set(sys.modules)\n"
        "provider.embed(['now'], 'query')\n"
        "assert not {'tokenizers', 'textual', 'rich'} & set(sys.modules)\n"
        "provider.embed(['schön'], 'query')\n"
        "assert 'tokenizers' in sys.modules and not {'textual', 'rich'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
