"""Models on this machine: in a process of their own, whose end is not that of the app; and the real thing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled
from memory_tui.plan import Options
from memory_tui.providers import local, registry
from memory_tui.providers.base import Provider
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.worker import OnnxModel
from tests.support.embed import Time, quick, settings_for
from tests.support.llama_cpp import importable
from tests.support.local_model import STAND_IN
from tests.support.onnx_model import ROWS, WORDS, model_bytes, tokenizer, write
from tests.support.paths import MODEL
from tests.support.provider_server import FileHandler, Shelf, serving
from tests.support.waiting import LONG

Make = Callable[..., Provider]
REFERENCE = Path(__file__).parent / "embed_reference.json"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a file for the stand-in, as if there were software for local models; its path."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setattr(local, "LLAMA_CPP", "json")
    monkeypatch.setattr(local, "SCRIPT", tmp_path / "stand_in.py")

    def file(mode: str = "") -> str:
        path = tmp_path / f"model{mode}.gguf"
        path.write_bytes(b"GGUF" + mode.encode())
        return str(path)

    return file


def fails(provider: Provider, *texts: str) -> ProviderFailure:
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(texts, "document")
    assert caught.value.next_step
    return caught.value


# --- a process of its own --------------------------------------------------------------------------------------------


def test_vectors_are_of_unit_length_and_blank_texts_have_none(provider: Make, model: Any) -> None:
    one = provider("local", None, model_path=model())
    vectors = one.embed(["abcd", " ", "\ud800"], "document")
    assert vectors.tolist() == [pytest.approx([0.6, 0, 0.8]), [0, 0, 0], pytest.approx([0.948, 0, 0.316], abs=1e-3)]
    assert (one.identity.provider, one.identity.dims, one.max_input_bytes) == ("local", 3, 2048)
    path = model()
    Path(path).write_bytes(b"GGUF other")
    other = provider("local", None, model_path=path)
    assert (other.identity.model, other.identity != one.identity) == (one.identity.model, True), "another file"


def test_a_crash_of_native_code_is_a_failure_that_names_its_cause_and_is_left_alone(chain: Any, model: Any) -> None:
    clock = Time()
    made, _ = chain("local", None, model_path=model(), time=clock)
    failure = fails(made.provider(), "fine", "abort")
    assert (failure.state, sorted(failure.done)) == (Cause.CRASHED, [0])
    assert "SIGABRT" in failure.message
    assert "GGML_ASSERT(y) failed" in failure.message
    assert made.state().next_try == failure.next_try == clock.at + 300
    with pytest.raises(ProviderFailure, match="asked again at"):
        made.provider().embed(["fine"], "query")
    clock.at += 301
    assert made.provider().embed(["fine"], "query").any()


@pytest.mark.parametrize(
    ("mode", "texts", "state", "words"),
    [
        ("broken", ["a"], Cause.BROKEN, "unknown architecture"),
        ("aborts", ["a"], Cause.CRASHED, "GGML_ASSERT"),
        ("", ["nan"], Cause.MALFORMED, "no direction"),
        ("", ["zero"], Cause.MALFORMED, "no direction"),
        ("", ["refuse"], Cause.BROKEN, "no room"),
        ("", ["hang"], Cause.TIMEOUT, "0.5 s"),
    ],
)
def test_a_model_that_makes_no_vector_says_why(
    provider: Make, model: Any, mode: str, texts: list[str], state: Cause, words: str
) -> None:
    limits = quick(0.5) if "hang" in texts else quick(LONG)
    one = provider("local", None, model_path=model(mode), batches=limits)
    if not mode:
        _ = one.identity
    failure = fails(one, *texts)
    assert (failure.state, words in failure.message) == (state, True)


@pytest.mark.parametrize("text", ["nan", "zero", "refuse"])
def test_a_text_that_gets_no_vector_costs_the_others_nothing(provider: Make, model: Any, text: str) -> None:
    failure = fails(provider("local", None, model_path=model()), "one", text, "three")
    assert (failure.state, sorted(failure.done)) == (Cause.NO_VECTOR, [0, 2])


@pytest.mark.parametrize(("threads", "used"), [(0, "3"), (2, "2")])
def test_a_model_that_crashed_once_is_started_again_with_its_threads(
    provider: Make, model: Any, monkeypatch: pytest.MonkeyPatch, threads: int, used: str
) -> None:
    monkeypatch.setattr(local, "usual_threads", lambda: 3)
    one = provider("local", None, model_path=model(), threads=threads)
    assert one.embed(["a", "abort once", "b"], "document").any(axis=1).all()
    assert Path(f"{model()}.threads").read_text() == used
    assert one.detail == f"local model, {used} threads"


def test_the_usual_threads_are_the_physical_cores_less_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in range(8):
        (tmp_path / f"cpu{cpu}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}/topology/thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    monkeypatch.setattr(local, "_TOPOLOGY", tmp_path)
    # The last one is a processor of which nobody says with which others it shares a core.
    for allowed, threads in (({*range(8)}, 3), ({0, 4}, 1), ({0, 1}, 1), ({0, 1, 2, 6}, 2), ({0, 4, 1, 99}, 2)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, allowed=allowed: allowed, raising=False)
        assert local.usual_threads() == threads


def test_closing_ends_the_process_at_once(provider: Make, model: Any) -> None:
    file = model()
    one, ended = provider("local", None, model_path=file), []

    def call() -> None:
        try:
            one.embed(["hang"], "document")
        except Cancelled:
            ended.append("cancelled")

    caller = threading.Thread(target=call)
    caller.start()
    hangs = Path(f"{file}.hangs")
    while not (hangs.exists() and hangs.read_text()):
        assert caller.is_alive()
        time.sleep(0.001)
    started = time.monotonic()
    one.close()
    caller.join(LONG)
    assert ended == ["cancelled"]
    while psutil.pid_exists(int(hangs.read_text())):
        assert time.monotonic() - started < LONG, "the process goes on, or nobody asked how it ended"
        time.sleep(0.001)
    with pytest.raises(Cancelled):
        one.embed(["more"], "document")


def test_a_gguf_file_that_is_not_there_is_refused_and_never_chosen_by_auto(
    provider: Make, chain: Any, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page.gguf").write_text("<html>")
    for name in ("absent.gguf", "page.gguf"):
        with pytest.raises(ProviderFailure, match=name) as caught:
            provider("local", None, model_path=str(tmp_path / name))
        assert caught.value.state is Cause.NO_FILE
    chosen = {}
    for path in ("", "hf:a/b/c.gguf", str(tmp_path / "absent.gguf"), model()):
        made, _ = chain("auto", None, api_keys=(), model_path=path)
        chosen[path.rpartition("/")[2]] = next(one.name for one in made.members() if one.state == "in use")
    assert chosen == {"": "builtin", "c.gguf": "builtin", "absent.gguf": "builtin", "model.gguf": "local"}
    for name, package, words in (("local", "LLAMA_CPP", "llama-cpp-python"), ("onnx", "ONNX_RUNTIME", "'.[onnx]'")):
        monkeypatch.setattr(local, package, "no_such_software")
        with pytest.raises(ProviderFailure) as caught:
            provider(name, None, model_path=model())
        assert (caught.value.state, words in caught.value.next_step) == (Cause.NOT_INSTALLED, True)


# --- what an onnx model makes ----------------------------------------------------------------------------------------

CLS, SEP = ROWS[2], ROWS[3]
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


def rows(text: str) -> Any:
    """The token vectors of `text`, worked out from the table."""
    return np.stack([CLS, *(ROWS[WORDS.index(word) if word in WORDS else 1] for word in text.split()), SEP])


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (None, lambda found: found.mean(0)),
        (MEAN, lambda found: found.mean(0)),
        ({"pooling_mode": "mean"}, lambda found: found.mean(0)),
        ({"pooling_mode_cls_token": True}, lambda found: found[0]),
        ({"pooling_mode_max_tokens": True}, lambda found: found.max(0)),
        ({"pooling_mode_lasttoken": True}, lambda found: found[-1]),
    ],
)
def test_token_vectors_are_pooled_as_the_model_says(tmp_path: Path, pooling: Any, expected: Any) -> None:
    folder = write(tmp_path / "m", **({} if pooling is None else {"pooling": pooling}))
    model = OnnxModel(folder / "model.onnx", 1)
    for text in ("cake", "walrus cake router", "walrus " * 5):
        assert unit(model.embed(text)) == pytest.approx(unit(expected(rows(text))), abs=1e-6), text


def test_an_export_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", model_bytes(output="sentence_embedding"), modules=[{"type": "x.models.Dense"}])
    assert OnnxModel(folder / "model.onnx", 1).dims == 3


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, 512),
        ({"sentence_bert_config": {"max_seq_length": 128}, "config": {"max_position_embeddings": 512}}, 128),
        ({"sentence_bert_config": {"max_seq_length": -5}, "tokenizer_config": {"model_max_length": 10**30}}, 512),
        ({"config_sentence_transformers": {"prompts": ["query"]}, "config": {"max_position_embeddings": "many"}}, 512),
    ],
)
def test_the_limit_is_the_least_that_the_models_files_tell(tmp_path: Path, settings: Any, limit: int) -> None:
    model = OnnxModel(write(tmp_path / "m", **settings) / "model.onnx", 1)
    assert (model.limit, model.prompts["query"]) == (limit, "")


def test_a_text_over_the_limit_is_not_cut(tmp_path: Path) -> None:
    model = OnnxModel(write(tmp_path / "m", sentence_bert_config={"max_seq_length": 10}) / "model.onnx", 1)
    half = "walrus walrus walrus walrus "
    assert unit(model.embed(half + "cake " * 6))[1] > unit(model.embed(half))[1] + 0.3
    assert np.isfinite(model.embed("x" * 300)).all()


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        pytest.param(b"not a model", {}, "INVALID_PROTOBUF", id="not a model"),
        pytest.param(model_bytes(inputs=("pixel_values",)), {}, "asks for pixel_values", id="of pictures"),
        pytest.param(model_bytes(inputs=("attention_mask",)), {}, "takes no input_ids", id="of no text"),
        pytest.param(model_bytes(weights="../../outside"), {}, "escapes", id="weights elsewhere"),
        (None, {"tokenizer": "{"}, "tokenizer.json cannot be read"),
        pytest.param(None, {"config": "[" * 9_000}, "config.json cannot be read", id="config of brackets"),
        (None, {"modules": [{"type": "sentence_transformers.models.Dense"}]}, "Dense"),
        (None, {"pooling": {"pooling_mode_weightedmean_tokens": True}}, "pools by"),
        (None, {"pooling": {**MEAN, "pooling_mode_cls_token": True}}, "pools by"),
    ],
)
def test_a_model_that_cannot_be_used_says_why(tmp_path: Path, model: bytes | None, settings: Any, words: str) -> None:
    (tmp_path / "outside").write_bytes(ROWS.tobytes())
    with pytest.raises(Exception, match=words):
        OnnxModel(write(tmp_path / "a" / "m", model, **settings) / "model.onnx", 1)


def test_the_real_onnxruntime_answers_in_a_process_of_its_own(provider: Make, tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query ", "document": ""}}
    folder = write(tmp_path / "m", pooling=MEAN, config_sentence_transformers=prompts)
    # A model below `onnx` has its tokenizer above.
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    one = provider("onnx", None, model_path=str(folder), threads=1)
    texts = [f"{'cake ' * (n % 7)}walrus" for n in range(40)]
    texts[3] = " "
    for text, vector in zip(texts, one.embed(texts, "document"), strict=True):
        expected = unit(rows(text).mean(0)) if text.strip() else np.zeros(3)
        assert vector == pytest.approx(expected, abs=1e-6), text
    assert one.embed(["cake"], "query")[0] == pytest.approx(unit(rows("query cake").mean(0)), abs=1e-6)
    assert (one.identity.provider, one.identity.dims, one.detail) == ("onnx", 3, "local model, 1 thread")
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    failure = fails(provider("onnx", None, model_path=str(folder / "onnx" / "model.onnx")), "cake")
    assert (failure.state, "model.onnx cannot be used: " in failure.message) == (Cause.BROKEN, True)
    assert "another ONNX model" in failure.next_step


def test_what_decides_the_vectors_is_in_the_key_of_the_index(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", pooling=MEAN)
    seen = {local.file_key("onnx", folder / "model.onnx")}
    other = tokenizer()
    other["model"]["vocab"]["cake"] = 6
    for name, text in (
        ("1_Pooling/config.json", json.dumps({"pooling_mode_cls_token": True})),
        ("tokenizer.json", json.dumps(other)),
        ("model.onnx_data", "weights"),
        ("config_sentence_transformers.json", "{}"),
    ):
        (folder / name).write_text(text)
        seen.add(local.file_key("onnx", folder / "model.onnx"))
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("path", "fetch"),
    [
        *((path, False) for path in ("", "absent", "\0", "x" * 5_000, "~nobody-of-that-name/m", "pipe.onnx")),
        *((path, False) for path in (local.DEFAULT_MODEL, "hf:a/b/c.gguf", "https://host.example/model")),
        ("hf:a/b/c.onnx", True),
    ],
)
def test_a_path_that_names_no_onnx_model_is_refused_before_anything_runs(
    provider: Make, tmp_path: Path, path: str, fetch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(ProviderFailure) as caught:
        provider("onnx", None, model_path=path, model_cache=tmp_path)
    assert (caught.value.state, "--fetch" in caught.value.next_step) == (Cause.NO_FILE, fetch)


# --- how an onnx model gets here -------------------------------------------------------------------------------------


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    files = {"model.onnx": model_bytes(), "tokenizer.json": json.dumps(tokenizer()).encode()}
    with serving(Shelf(files), FileHandler) as running:
        yield running


@pytest.fixture
def options(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("walrus cake\n")
    model = {"modelPath": "hf:some/repo/onnx/model.onnx", "modelCacheDir": str(tmp_path / "models")}
    section = {"provider": "onnx", "local": model}
    (tmp_path / "openclaw.json").write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    monkeypatch.setenv("HF_ENDPOINT", shelf.url)
    return Options(
        workspace=str(tmp_path / "notes"),
        config=str(tmp_path / "openclaw.json"),
        index=str(tmp_path / "i.sqlite"),
        changes=(("profile", "recommended"), ("sync.watch", "false")),
    )


def test_nothing_is_fetched_before_a_person_has_seen_what_and_agreed(
    shelf: Shelf, options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        places = ("--workspace", options.workspace, "--config", options.config, "--index", options.index)
        return main.main(["provider", "--fetch", *words, *map(str, places)]), *capsys.readouterr()

    with Engine.open(options) as engine:
        engine.index.sync()
        assert engine.search.search("walrus").mode == "keywords only"
        who = engine.providers.who()
        assert (who.standing, "not on this machine" in who.reason) == ("failed", True)
        assert "memory-tui provider --fetch" in who.next_step
    assert shelf.asked == []
    code, out, _ = run()
    digest = hashlib.sha256(model_bytes()).hexdigest()
    assert (code, (tmp_path / "models").exists(), "Nothing was fetched." in out) == (0, False, True)
    assert f"{shelf.url}/some/repo/resolve/main/onnx/model.onnx  {len(model_bytes()):,} bytes, SHA-256 {digest}" in out
    assert f"{shelf.url}/some/repo/resolve/main/tokenizer.json" in out
    shelf.checksum = "0" * 64
    code, _, err = run("--yes")
    assert (code != 0, "checksum" in err, list((tmp_path / "models").rglob("*.onnx"))) == (True, True, [])
    shelf.checksum = None
    assert run("--yes")[0] == 0
    (model,) = (tmp_path / "models").rglob("*.onnx")
    model.write_bytes(model_bytes()[:200])
    with Engine.open(options) as engine:
        tried = engine.providers.chain.try_out("")
        assert tried["ok"] is False
        assert "memory-tui provider --fetch --yes fetches it again" in tried["nextStep"]
    assert run("--yes")[0] == 0
    assert model.read_bytes() == model_bytes()
    count = len(shelf.asked)
    shelf.files.clear()
    with Engine.open(options) as engine:
        engine.index.sync()
        assert engine.search.search("walrus").mode == "hybrid"
        assert (engine.providers.who().standing, engine.providers.who().answers) == ("ok", "onnx")
    assert len(shelf.asked) == count, "what is here asks nobody"
    with pytest.raises(Exception, match="no model to fetch"):
        registry.model_files("openai", settings_for(None, "openai"))


# --- the real llama cpp ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Iterator[Provider]:
    if not MODEL.is_file():
        pytest.skip("the model file is not beside this checkout")
    with importable():
        one = registry.create("local", settings_for(None, "local", model_path=str(MODEL)))
        yield one
        one.close()


@pytest.mark.local_model
def test_vectors_agree_with_the_recorded_reference(minilm: Provider) -> None:
    """Recorded from the same weights by another implementation: numpy, with the tokens of the `tokenizers` package."""
    recorded = json.loads(REFERENCE.read_text("utf-8"))
    vectors = minilm.embed([one["text"] for one in recorded], "document")
    assert minilm.identity.dims == 384
    for one, vector in zip(recorded, vectors, strict=True):
        expected = np.frombuffer(base64.b64decode(one["vector"]), "<f2").astype(np.float32)
        assert vector @ expected / np.linalg.norm(expected) >= 0.999, one["text"]


@pytest.mark.local_model
def test_text_over_the_models_limit_is_not_cut(minilm: Provider) -> None:
    text = "red apples and green pears. " * 150
    whole, cut, other = minilm.embed(
        [text + "The quarterly tax report is due. " * 60, text, "The quarterly tax report is due."], "document"
    )
    assert whole @ other > cut @ other + 0.2
    assert minilm.embed(["x" * 5_000, "字" * 1500], "document").any(axis=1).all()
