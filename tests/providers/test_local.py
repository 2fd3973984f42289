"""Models on this machine: in a process of their own, whose end is not that of the app; and the real thing."""

import base64
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from memory_tui.errors import Cancelled
from memory_tui.providers import Cause, ProviderFailure, local
from memory_tui.providers.chain import create
from tests.support.embed import Time, quick, settings_for
from tests.support.local_model import STAND_IN
from tests.support.paths import MODEL
from tests.support.provider_server import FileHandler, Shelf, refusing, serving
from tests.support.waiting import LONG

REFERENCE = Path(__file__).parent / "embed_reference.json"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Write a file for the stand-in, as if there were software for local models; its path."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setattr(local, "LLAMA_CPP", "json")
    monkeypatch.setattr(local, "SCRIPT", tmp_path / "stand_in.py")

    def file(mode=""):
        path = tmp_path / f"model{mode}.gguf"
        path.write_bytes(b"GGUF" + mode.encode())
        return str(path)

    return file


def fails(provider, *texts):
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(texts, "document")
    assert caught.value.next_step
    return caught.value


def test_vectors_are_of_unit_length_and_blank_texts_have_none(provider, model):
    one = provider("local", None, model_path=model())
    vectors = one.embed(["abcd", " ", "\ud800"], "document")
    assert vectors.tolist() == [pytest.approx([0.6, 0, 0.8]), [0, 0, 0], pytest.approx([0.948, 0, 0.316], abs=1e-3)]
    assert (one.identity.provider, one.identity.dims, one.max_input_bytes) == ("local", 3, 2048)
    path = model()
    Path(path).write_bytes(b"GGUF other")
    other = provider("local", None, model_path=path)
    assert (other.identity.model, other.identity != one.identity) == (one.identity.model, True), "another file"


def test_a_crash_of_native_code_is_a_failure_that_names_its_cause_and_is_left_alone(chain, model):
    clock = Time()
    made, _ = chain("local", None, model_path=model(), time=clock)
    failure = fails(made.provider(), "fine", "abort")
    assert (failure.state, sorted(failure.done)) == (Cause.CRASHED, [0])
    assert "SIGABRT" in failure.message
    assert "GGML_ASSERT(y) failed" in failure.message
    assert made.state().next_try == clock.at + 300
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
def test_a_model_that_makes_no_vector_says_why(provider, model, mode, texts, state, words):
    limits = quick(0.5) if "hang" in texts else quick(LONG)
    one = provider("local", None, model_path=model(mode), batches=limits)
    if not mode:
        _ = one.identity
    failure = fails(one, *texts)
    assert (failure.state, words in failure.message) == (state, True)


@pytest.mark.parametrize("text", ["nan", "zero", "refuse"])
def test_a_text_that_gets_no_vector_costs_the_others_nothing(provider, model, text):
    failure = fails(provider("local", None, model_path=model()), "one", text, "three")
    assert (failure.state, sorted(failure.done)) == (Cause.NO_VECTOR, [0, 2])


@pytest.mark.parametrize(("threads", "used"), [(0, "3"), (2, "2")])
def test_a_model_that_crashed_once_is_started_again_with_its_threads(provider, model, monkeypatch, threads, used):
    monkeypatch.setattr(local, "usual_threads", lambda: 3)
    one = provider("local", None, model_path=model(), threads=threads)
    assert one.embed(["a", "abort once", "b"], "document").any(axis=1).all()
    assert Path(f"{model()}.threads").read_text() == used
    assert one.detail == f"local model, {used} threads"


def test_closing_ends_the_process_at_once(provider, model):
    file = model()
    one, hangs = provider("local", None, model_path=file), Path(f"{file}.hangs")
    call = ThreadPoolExecutor(1).submit(one.embed, ["hang"], "document")
    while not (hangs.exists() and hangs.read_text()):
        assert call.running()
        time.sleep(0.001)
    started = time.monotonic()
    one.close()
    assert isinstance(call.exception(LONG), Cancelled)
    while psutil.pid_exists(int(hangs.read_text())):
        assert time.monotonic() - started < LONG, "the process goes on, or nobody asked how it ended"
        time.sleep(0.001)
    with pytest.raises(Cancelled):
        one.embed(["more"], "document")


def test_a_model_that_was_not_fetched_says_how(provider, model, tmp_path):
    with pytest.raises(ProviderFailure) as caught:
        provider("local", None, model_path="hf:some/repo/model.gguf", model_cache=tmp_path)
    assert (caught.value.state, "provider --fetch --yes" in caught.value.next_step) == (Cause.NO_FILE, True)


def test_a_gguf_file_that_is_not_there_is_refused_and_never_chosen_by_auto(
    provider, chain, model, tmp_path, monkeypatch
):
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
    monkeypatch.setattr(local, "LLAMA_CPP", "no_such_software")
    with pytest.raises(ProviderFailure) as caught:
        provider("local", None, model_path=model())
    assert (caught.value.state, "llama-cpp-python" in caught.value.next_step) == (Cause.NOT_INSTALLED, True)


@pytest.fixture
def shelf():
    with serving(Shelf({"model.gguf": b"GGUF whole model"}), FileHandler) as running:
        yield running


@pytest.fixture
def places(shelf, tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    section = {"modelPath": "hf:some/repo/model.gguf", "modelCacheDir": str(tmp_path / "models")}
    agents = {"agents": {"defaults": {"memorySearch": {"provider": "local", "local": section}}}}
    (tmp_path / "openclaw.json").write_text(json.dumps(agents))
    monkeypatch.setenv("HF_ENDPOINT", shelf.url)
    options = {"--workspace": "notes", "--config": "openclaw.json", "--index": "i.sqlite"}
    return [word for key, name in options.items() for word in (key, str(tmp_path / name))]


def test_nothing_is_fetched_before_a_person_has_seen_what_and_agreed(shelf, places, tmp_path, command, monkeypatch):
    run = partial(command, *places, "provider", "--fetch")
    code, out, _ = run()
    whole = shelf.files["model.gguf"]
    assert (code, (tmp_path / "models").exists(), "Nothing was fetched." in out) == (0, False, True)
    digest = hashlib.sha256(whole).hexdigest()
    assert f"{shelf.url}/some/repo/resolve/main/model.gguf  {len(whole)} bytes, SHA-256 {digest}" in out
    shelf.checksum = "0" * 64
    code, _, err = run("--yes")
    assert (code != 0, "checksum" in err, list((tmp_path / "models").rglob("*.gguf"))) == (True, True, [])
    shelf.checksum = None
    assert run("--yes")[0] == 0
    (model,) = (tmp_path / "models").rglob("*.gguf")
    model.write_bytes(whole[:7])
    assert run("--yes")[0] == 0
    assert (model.name, model.read_bytes()) == ("hf_some_repo_model.gguf", whole)
    assert [file.name for file in model.parent.iterdir()] == [model.name]
    assert {path for path, _ in shelf.asked} == {"/some/repo/resolve/main/model.gguf"}
    code, _, err = run("--provider", "openai")
    assert (code, "no model to fetch" in err) == (1, True)
    shelf.files.clear()
    with refusing() as nobody:
        for hub in (shelf.url, nobody):
            monkeypatch.setenv("HF_ENDPOINT", hub)
            code, _, err = run()
            assert (code, "could not be fetched" in err, "local.modelPath" in err) == (1, True, True)


@pytest.fixture(scope="module")
def small():
    one = create("local-small", settings_for(None, "local-small"))
    yield one
    one.close()


def test_the_small_model_answers_across_languages_by_its_two_prefixes(small):
    notes = ["东京是日本的首都。", "Die Katze schläft auf dem Sofa.", "Buy oat milk and bread.", " "]
    vectors, question = small.embed(notes, "document"), small.embed(["What is the capital of Japan?"], "query")[0]
    cosines = vectors @ question
    assert cosines.argmax() == 0
    assert (cosines[3], vectors[3].any()) == (0.0, False)
    assert np.linalg.norm(vectors[:3], axis=1) == pytest.approx(1.0, abs=1e-6)
    assert small.embed(notes[:1], "query")[0] @ vectors[0] < 0.999, "a note and a question have prefixes of their own"
    space = small.identity
    assert (space.provider, space.model, space.dims) == ("local-small", "multilingual-e5-small", 384)
    assert small.detail.startswith("local model, ")


@pytest.mark.parametrize(
    "text",
    ["\ufdfa" * 100, "cake \0 walrus", "\ud800", "\U0010ffff" * 50, "x" * 3_000, "字" * 600],
    ids=["of 18 letters", "zero", "half a pair", "no character", "one word", "no space"],
)
def test_no_text_ends_the_small_model(small, text):
    """The first one overwrites the engine's memory as it stands."""
    assert np.linalg.norm(small.embed([text], "document")[0]) == pytest.approx(1.0, abs=1e-6)


def test_what_follows_a_zero_is_read(small):
    cut, whole = small.embed(["walrus\0router password", "walrus router password"], "document")
    assert cut @ whole > 0.999


def test_without_its_extra_the_small_model_says_the_line_that_installs_it(provider, monkeypatch):
    monkeypatch.setattr(local, "NANO_E5", "no_such_software")
    with pytest.raises(ProviderFailure) as caught:
        provider("local-small", None)
    assert caught.value.state is Cause.NOT_INSTALLED
    assert "'.[local-small]'" in caught.value.next_step
    assert "91 MB" in caught.value.next_step


@pytest.fixture(scope="module")
def minilm():
    if not MODEL.is_file():
        pytest.skip("the model file is not beside this checkout")
    pytest.importorskip("llama_cpp", reason="uv pip install --no-config llama-cpp-python compiles it, for minutes")
    one = create("local", settings_for(None, "local", model_path=str(MODEL)))
    yield one
    one.close()


@pytest.mark.local_model
def test_vectors_agree_with_the_recorded_reference(minilm):
    """Recorded from the same weights by another implementation: numpy, with the tokens of the `tokenizers` package."""
    recorded = json.loads(REFERENCE.read_text("utf-8"))
    vectors = minilm.embed([one["text"] for one in recorded], "document")
    assert minilm.identity.dims == 384
    for one, vector in zip(recorded, vectors, strict=True):
        expected = np.frombuffer(base64.b64decode(one["vector"]), "<f2").astype(np.float32)
        assert vector @ expected / np.linalg.norm(expected) >= 0.999, one["text"]


@pytest.mark.local_model
def test_text_over_the_models_limit_is_not_cut(minilm):
    text = "red apples and green pears. " * 150
    tax = "The quarterly tax report is due."
    whole, cut, other = minilm.embed([text + f"{tax} " * 60, text, tax], "document")
    assert whole @ other > cut @ other + 0.2
    assert minilm.embed(["x" * 5_000, "字" * 1500], "document").any(axis=1).all()
