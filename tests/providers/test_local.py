"""Local models: in a process of their own, whose end is not the app's; and, where installed, the real thing."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from memory_tui.core.errors import Cancelled
from memory_tui.providers import llama_worker, model_process, registry
from memory_tui.providers import local as local_row
from memory_tui.providers.chain import Chain
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.model_process import ModelProcessProvider
from memory_tui.providers.options import ProviderSettings
from tests.support.embed import Time, quick, settings_for
from tests.support.llama_cpp import importable
from tests.support.paths import MODEL
from tests.support.waiting import LONG

HERE = Path(__file__).parent
REFERENCE = HERE / "embed_reference.json"

# A stand-in for the worker that keeps to its protocol: what it does is told by the text.
STAND_IN = """
import array, json, os, sys, time
def say(header, data=b""):
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\\n" + data)
    sys.stdout.buffer.flush()
mode = open(sys.argv[1]).read()[4:]
if mode == "broken":
    say({"error": "unknown architecture"}); sys.exit()
if mode == "aborts":
    sys.stderr.write("noise\\nGGML_ASSERT(x) failed\\n"); sys.stderr.flush(); os.abort()
say({"dims": 3, "limit": 512})
for line in sys.stdin:
    out = []
    for text in json.loads(line)["texts"]:
        if text == "abort" or (text == "abort once" and not os.path.exists(sys.argv[1] + ".died")):
            open(sys.argv[1] + ".died", "w").close()
            sys.stderr.write("GGML_ASSERT(y) failed\\n"); sys.stderr.flush(); os.abort()
        if text == "hang":
            open(sys.argv[1] + ".hangs", "w").close()
            time.sleep(60)
        if text == "refuse":
            break
        out += {"nan": [float("nan"), 0, 0], "zero": [0, 0, 0]}.get(text, [3.0, 0.0, len(text)])
    else:
        say({"dims": 3}, array.array("f", out).tobytes())
        continue
    say({"error": "no room"})
"""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were software for local models; the stand-in needs none."""
    monkeypatch.setattr(local_row, "PACKAGE", "json")


@pytest.fixture
def script(tmp_path: Path, installed: None) -> Path:
    path = tmp_path / "stand_in.py"
    path.write_text(STAND_IN)
    return path


def local(tmp_path: Path, script: Path, mode: str = "", **more: Any) -> ModelProcessProvider:
    model = tmp_path / f"model{mode}.gguf"
    model.write_bytes(b"GGUF" + mode.encode())
    return make(settings_for(None, "local", model_path=str(model), **more), script)


def make(settings: ProviderSettings, script: Path = local_row.SCRIPT) -> ModelProcessProvider:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_row, "SCRIPT", script)
        return registry.create("local", settings)


def fails(provider: ModelProcessProvider, *texts: str) -> ProviderFailure:
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(texts, "document")
    return caught.value


def test_vectors_are_of_unit_length_and_blank_texts_have_none(tmp_path: Path, script: Path) -> None:
    provider = local(tmp_path, script)
    vectors = provider.embed(["abcd", " ", "\ud800"], "document")
    assert vectors.tolist() == [pytest.approx([0.6, 0, 0.8]), [0, 0, 0], pytest.approx([0.948, 0, 0.316], abs=1e-3)]
    assert vectors.dtype == np.float32
    assert (provider.identity.provider, provider.identity.dims, provider.max_input_bytes) == ("local", 3, 2048)
    assert provider.health().ok
    provider.close()


def test_another_file_of_the_same_name_is_another_space(tmp_path: Path, script: Path) -> None:
    first = local(tmp_path, script)
    before = first.identity
    first.close()
    (tmp_path / "model.gguf").write_bytes(b"GGUF other")
    second = make(settings_for(None, "local", model_path=str(tmp_path / "model.gguf")), script)
    assert second.identity.model == before.model
    assert second.identity != before
    second.close()


def test_a_crash_of_native_code_is_a_failure_that_names_its_cause(tmp_path: Path, script: Path) -> None:
    time = Time()
    provider = local(tmp_path, script, time=time)
    failure = fails(provider, "fine", "abort")
    assert failure.state is Cause.CRASHED
    assert "SIGABRT" in failure.message
    assert "GGML_ASSERT(y) failed" in failure.message
    assert sorted(failure.done) == [0]
    assert provider.breaker.next_try == failure.next_try == time.at + 300
    with pytest.raises(ProviderFailure, match="asked again at"):
        provider.embed(["fine"], "query")
    time.at += 301
    assert provider.embed(["fine"], "query").any()
    provider.close()


def test_a_model_that_crashed_once_is_started_again(tmp_path: Path, script: Path) -> None:
    provider = local(tmp_path, script)
    assert provider.embed(["a", "abort once", "b"], "document").any(axis=1).all()
    assert provider.health().ok
    provider.close()


@pytest.mark.parametrize(
    ("mode", "state", "words"),
    [("broken", Cause.BROKEN, "unknown architecture"), ("aborts", Cause.CRASHED, "GGML_ASSERT")],
)
def test_a_model_that_cannot_be_loaded_says_why(
    tmp_path: Path,
    script: Path,
    mode: str,
    state: Cause,
    words: str,
) -> None:
    provider = local(tmp_path, script, mode)
    with pytest.raises(ProviderFailure, match=words) as caught:
        _ = provider.identity
    assert caught.value.state is state
    assert not provider.health().ok
    provider.close()


@pytest.mark.parametrize(
    ("text", "state"), [("nan", Cause.MALFORMED), ("zero", Cause.MALFORMED), ("refuse", Cause.BROKEN)]
)
def test_an_answer_that_is_no_vector_is_not_kept(tmp_path: Path, script: Path, text: str, state: Cause) -> None:
    provider = local(tmp_path, script)
    assert fails(provider, text).state is state
    provider.close()


@pytest.mark.parametrize("text", ["nan", "zero", "refuse"])
def test_a_text_that_gets_no_vector_costs_the_others_nothing(tmp_path: Path, script: Path, text: str) -> None:
    provider = local(tmp_path, script)
    failure = fails(provider, "one", text, "three")
    assert failure.state is Cause.NO_VECTOR
    assert sorted(failure.done) == [0, 2]
    assert provider.health().ok
    assert provider.breaker.next_try is None
    provider.close()


def test_a_text_that_takes_too_long_ends_the_process(tmp_path: Path, script: Path) -> None:
    provider = local(tmp_path, script, batches=quick(0.3))
    _ = provider.identity
    assert fails(provider, "hang").state is Cause.TIMEOUT
    provider.close()


@pytest.mark.parametrize(("asked", "given"), [(0, "3"), (2, "2")])
def test_it_runs_with_the_threads_that_were_asked_for(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch, asked: int, given: str
) -> None:
    monkeypatch.setattr(model_process, "usual_threads", lambda: 3)
    noted = "import sys; open(sys.argv[1] + '.threads', 'w').write(sys.argv[2])"
    script.write_text(f"{noted}\n{STAND_IN}")
    provider = local(tmp_path, script, threads=asked)
    provider.embed(["a"], "document")
    assert (tmp_path / "model.gguf.threads").read_text() == given
    assert f"{given} threads" in provider.health().detail
    provider.close()


def test_the_usual_threads_are_the_physical_cores_less_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu, siblings in enumerate(("0,4", "1,5", "2,6", "3,7") * 2):
        (tmp_path / f"cpu{cpu}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}/topology/thread_siblings_list").write_text(f"{siblings}\n")
    monkeypatch.setattr(model_process, "_TOPOLOGY", tmp_path)
    for allowed, threads in (({*range(8)}, 3), ({0, 4}, 1), ({0, 1}, 1), ({0, 1, 2, 6}, 2)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, allowed=allowed: allowed, raising=False)
        assert model_process.usual_threads() == threads
    monkeypatch.setattr(model_process, "_TOPOLOGY", tmp_path / "elsewhere")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert model_process.usual_threads() == 3, "where nobody says which processors share a core, each is one"


def test_closing_ends_the_process_at_once(tmp_path: Path, script: Path) -> None:
    provider = local(tmp_path, script)
    _ = provider.identity
    assert provider._worker is not None
    process = psutil.Process(provider._worker.pid)
    ended: list[str] = []

    def call() -> None:
        try:
            provider.embed(["hang"], "document")
        except Cancelled:
            ended.append("cancelled")

    caller = threading.Thread(target=call)
    caller.start()
    while not (tmp_path / "model.gguf.hangs").exists():
        assert caller.is_alive()
        time.sleep(0.001)
    started = time.monotonic()
    provider.close()
    caller.join(LONG)
    assert time.monotonic() - started < LONG, "it waited for the answer"
    assert ended == ["cancelled"]
    while process.is_running():
        assert time.monotonic() - started < LONG, "the process goes on"
        time.sleep(0.001)
    with pytest.raises(Cancelled):
        provider.embed(["more"], "document")


def test_a_process_that_dies_slowly_is_not_waited_for_and_not_forgotten(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_process, "_GOODBYE_SECONDS", 0.0)
    provider = local(tmp_path, script)
    _ = provider.identity
    assert provider._worker is not None
    process = provider._worker._process
    provider.close()
    end = time.monotonic() + LONG
    while process.returncode is None:
        assert time.monotonic() < end, "nobody asked how it ended"
        time.sleep(0.001)


def test_a_path_without_a_model_is_refused(tmp_path: Path, installed: None) -> None:
    (tmp_path / "page.gguf").write_text("<html>")
    for name in ("absent.gguf", "page.gguf"):
        with pytest.raises(ProviderFailure) as caught:
            make(settings_for(None, "local", model_path=str(tmp_path / name)))
        assert caught.value.state is Cause.NO_FILE
        assert name in caught.value.message


def test_without_the_software_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_row, "PACKAGE", "no_such_software")
    with pytest.raises(ProviderFailure) as caught:
        make(settings_for(None, "local", model_path=str(tmp_path / "a.gguf")))
    assert caught.value.state is Cause.NOT_INSTALLED
    assert "llama-cpp-python" in caught.value.next_step


def test_auto_takes_a_local_model_only_when_its_file_is_there(tmp_path: Path, installed: None) -> None:
    (tmp_path / "real.gguf").write_bytes(b"GGUF")
    chosen = {}
    for path in ("", "hf:a/b/c.gguf", str(tmp_path / "absent.gguf"), str(tmp_path / "real.gguf")):
        chain = Chain(settings_for(None, "auto", api_keys=(), model_path=path), lambda _: None)
        chosen[path.rpartition("/")[2]] = next(link.name for link in chain.members() if link.state == "in use")
    assert chosen == {"": "builtin", "c.gguf": "builtin", "absent.gguf": "builtin", "real.gguf": "local"}


# --- the real thing ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Iterator[ModelProcessProvider]:
    if not MODEL.is_file():
        pytest.skip("the model file is not beside this checkout")
    with importable():
        provider = make(settings_for(None, "local", model_path=str(MODEL)))
        provider.embed(["warm"], "query")
        yield provider
        provider.close()


@pytest.mark.local_model
def test_vectors_agree_with_the_recorded_reference(minilm: ModelProcessProvider) -> None:
    """Recorded from the same weights by another implementation: numpy, with the tokens of the `tokenizers` package."""
    recorded = json.loads(REFERENCE.read_text("utf-8"))
    vectors = minilm.embed([one["text"] for one in recorded], "document")
    for one, vector in zip(recorded, vectors, strict=True):
        expected = np.frombuffer(base64.b64decode(one["vector"]), "<f2").astype(np.float32)
        assert vector @ expected / np.linalg.norm(expected) >= 0.999, one["text"]


@pytest.mark.local_model
def test_text_over_the_models_limit_is_not_cut(minilm: ModelProcessProvider) -> None:
    text = "red apples and green pears. " * 150
    whole, cut, other = minilm.embed(
        [text + "The quarterly tax report is due. " * 60, text, "The quarterly tax report is due."], "document"
    )
    assert whole @ other > cut @ other + 0.2
    assert minilm.embed(["x" * 5_000, "字" * 1500], "document").any(axis=1).all()


@pytest.mark.parametrize(("refused", "asked"), [((), [True]), ((True,), [True, False])])
def test_flash_attention_is_used_where_there_is_code_for_it(
    monkeypatch: pytest.MonkeyPatch, refused: tuple[bool, ...], asked: list[bool]
) -> None:
    wishes: list[bool] = []

    class Llama:
        _model = SimpleNamespace(n_ctx_train=lambda: 256)

        def __init__(self, path: str, *, flash_attn: bool, **options: object) -> None:
            wishes.append(flash_attn)
            if flash_attn in refused:
                raise ValueError("no code for it")

        def pooling_type(self) -> int:
            return 1

        def n_embd(self) -> int:
            return 384

    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=Llama))
    model = llama_worker.load("model.gguf", 1)
    assert wishes == asked
    assert (model.dims, model.limit) == (384, 256)
