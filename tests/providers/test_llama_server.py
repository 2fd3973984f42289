"""The OpenAI wire against a server that nobody here wrote: that of llama-cpp-python, with the real model."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.providers import registry
from memory_tui.providers.chain import Chain
from tests.support.embed import settings_for
from tests.support.llama_cpp import importable
from tests.support.paths import MODEL

HERE = Path(__file__).parent
pytestmark = pytest.mark.local_model


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A running server's address."""
    if not MODEL.is_file():
        pytest.skip("the model file is not beside this checkout")
    with importable():
        yield from _served()


def _served() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "llama_cpp.server",
            "--model",
            str(MODEL),
            "--embedding",
            "true",
            "--n_ctx",
            "512",
            "--n_batch",
            "512",
            "--n_ubatch",
            "512",
            "--port",
            str(port),
            "--verbose",
            "false",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        _wait_for(base, process)
        yield f"{base}/v1"
    finally:
        process.kill()
        process.wait()


def _wait_for(base: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{base}/v1/models", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    pytest.fail(f"the server did not start: {process.poll()}")


def asked(url: str, **more: Any) -> Any:
    return registry.create("openai", settings_for(None, "openai", base_url=url, api_keys=(), model="minilm", **more))


def test_its_vectors_agree_with_the_recorded_reference(url: str) -> None:
    recorded = json.loads((HERE / "embed_reference.json").read_text("utf-8"))
    provider = asked(url)
    vectors = provider.embed([one["text"] for one in recorded], "document")
    assert provider.identity.dims == 384
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for one, vector in zip(recorded, vectors, strict=True):
        expected = np.frombuffer(base64.b64decode(one["vector"]), "<f2").astype(np.float32)
        assert vector @ expected / np.linalg.norm(expected) >= 0.999, one["text"]
    provider.close()


def test_many_texts_come_back_in_their_order(url: str) -> None:
    provider = asked(url)
    texts = [f"Note {n}: {word}" for n, word in enumerate(["apple", "bridge", "cloud", "dragon", "ember"] * 4)]
    together = provider.embed(texts, "document")
    for at in (0, 7, 19):
        assert together[at] @ provider.embed([texts[at]], "document")[0] > 0.999
    provider.close()


def test_a_try_tells_what_it_is(url: str) -> None:
    chain = Chain(settings_for(None, "openai", base_url=url, api_keys=(), model="minilm"), lambda error: None)
    found = chain.try_out()
    assert (found["ok"], found["dims"], found["model"]) == (True, 384, "minilm")
    assert found["norm"] == pytest.approx(1)
    assert found["selfSimilarity"] == pytest.approx(1)
    chain.close()


def test_notes_are_found_by_their_meaning(url: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    (notes / "a.md").write_text("The car is at the garage because of its brakes.\n")
    (notes / "b.md").write_text("Grandmother's recipe for plum cake.\n")
    config = tmp_path / "openclaw.json"
    section = {"provider": "openai", "model": "minilm", "remote": {"baseUrl": url}}
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    options = Options(
        workspace=str(notes.parent),
        config=str(config),
        index=str(tmp_path / "i"),
        changes=(("profile", "recommended"),),
    )
    with Engine.open(options) as engine:
        assert engine.index.sync().error == ""
        trace = engine.search.search("dessert with fruit")
        assert (trace.mode, trace.recalled[0].chunk.path) == ("hybrid", "memory/b.md")
