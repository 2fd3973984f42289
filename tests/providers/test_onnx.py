"""ONNX models on this machine, run by the real onnxruntime; and how their files get here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.providers import local, onnx, registry
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.onnx_worker import OnnxModel, limit_of, pooling_of, prompts_of
from tests.support.embed import settings_for
from tests.support.onnx_model import ROWS, WORDS, model_bytes, tokenizer, write
from tests.support.provider_server import FileHandler, Shelf, serving

CLS, SEP = ROWS[2], ROWS[3]
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


def rows(text: str) -> Any:
    """The token vectors of `text`, worked out from the table."""
    return np.stack([CLS, *(ROWS[WORDS.index(word) if word in WORDS else 1] for word in text.split()), SEP])


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


def failure_of(path: Path | str) -> ProviderFailure:
    with pytest.raises(ProviderFailure) as caught:
        registry.create("onnx", settings_for(None, "onnx", model_path=str(path))).embed(["cake"], "query")
    assert caught.value.next_step
    return caught.value


# --- what the model makes ------------------------------------------------------------------------------------------


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
    texts = ["cake", "walrus cake router", "walrus " * 5]
    for text, vector in zip(texts, model.embed(texts, "document"), strict=True):
        assert unit(vector) == pytest.approx(unit(expected(rows(text))), abs=1e-6), text


def test_an_export_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", model_bytes(output="sentence_embedding"), modules=[{"type": "x.models.Dense"}])
    assert OnnxModel(folder / "model.onnx", 1).dims == 3


def test_a_text_over_the_limit_is_not_cut_and_costs_the_others_nothing(tmp_path: Path) -> None:
    model = OnnxModel(write(tmp_path / "m", sentence_bert_config={"max_seq_length": 10}) / "model.onnx", 1)
    half = "walrus walrus walrus walrus "
    both, first, *_ = model.embed([half + "cake " * 6, half, "x" * 300], "document")
    assert unit(both)[1] > unit(first)[1] + 0.3
    assert np.isfinite(both).all()


def test_a_question_and_a_note_begin_as_the_model_says(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query ", "document": ""}}
    model = OnnxModel(write(tmp_path / "m", config_sentence_transformers=prompts) / "model.onnx", 1)
    asked, plain = model.embed(["cake"], "query")[0], model.embed(["cake"], "document")[0]
    assert unit(asked) == pytest.approx(unit(rows("query cake").mean(0)), abs=1e-6)
    assert unit(plain) == pytest.approx(unit(rows("cake").mean(0)), abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, 512),
        ({"sentence_bert_config": {"max_seq_length": 128}, "config": {"max_position_embeddings": 512}}, 128),
        ({"config": {"max_position_embeddings": 514, "model_type": "xlm-roberta"}}, 512),
        ({"config": {"max_position_embeddings": 66, "model_type": "roberta"}}, 64),
        ({"tokenizer_config": {"model_max_length": 1000000000000000019884624838656}}, 512),
        ({"sentence_bert_config": {"max_seq_length": -5}, "tokenizer_config": {"model_max_length": True}}, 512),
        ({"sentence_bert_config": {"max_seq_length": None}, "config": {"max_position_embeddings": "many"}}, 512),
    ],
)
def test_the_limit_is_the_least_that_the_models_files_tell(tmp_path: Path, settings: Any, limit: int) -> None:
    assert limit_of(write(tmp_path / "m", **settings)) == limit


def test_only_prompts_of_notes_and_questions_count(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", config_sentence_transformers={"prompts": ["query"]})
    assert prompts_of(folder) == {"query": "", "document": ""}


@pytest.mark.parametrize(
    "pooling",
    [{"pooling_mode_weightedmean_tokens": True}, {"a": 1}, {**MEAN, "pooling_mode_cls_token": True}, [1], "{", "null "],
)
def test_pooling_that_is_not_supported_is_refused(tmp_path: Path, pooling: Any) -> None:
    folder = write(tmp_path / "m", pooling=pooling)
    if pooling == "null ":
        assert pooling_of(folder) == "mean"
        return
    with pytest.raises(ValueError, match=r"pools by|config\.json"):
        pooling_of(folder)


# --- the provider --------------------------------------------------------------------------------------------------


def test_the_real_thing_answers_in_a_process_of_its_own(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", pooling=MEAN)
    provider = registry.create("onnx", settings_for(None, "onnx", model_path=str(folder), threads=1))
    texts = [f"{'cake ' * (n % 7)}walrus" for n in range(40)]
    texts[3] = " "
    vectors = provider.embed(texts, "document")
    for text, vector in zip(texts, vectors, strict=True):
        expected = unit(rows(text).mean(0)) if text.strip() else np.zeros(3)
        assert vector == pytest.approx(expected, abs=1e-6), text
    assert (provider.identity.provider, provider.identity.dims) == ("onnx", 3)
    assert provider.health().detail == "local model, 1 thread"
    provider.close()


def test_what_decides_the_vectors_is_in_the_key_of_the_index(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", pooling=MEAN)
    seen = {onnx.fingerprint(folder / "model.onnx")}
    other = tokenizer()
    other["model"]["vocab"]["cake"] = 6
    for name, text in (
        ("1_Pooling/config.json", json.dumps({"pooling_mode_cls_token": True})),
        ("tokenizer.json", json.dumps(other)),
        ("model.onnx_data", "weights"),
        ("config_sentence_transformers.json", "{}"),
    ):
        (folder / name).write_text(text)
        mark = onnx.fingerprint(folder / "model.onnx")
        assert mark not in seen, name
        seen.add(mark)


def test_a_model_below_onnx_has_its_tokenizer_above(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", pooling=MEAN)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    for named in (folder, folder / "onnx" / "model.onnx"):
        assert onnx.find(settings_for(None, "onnx", model_path=str(named))) == folder / "onnx" / "model.onnx"
    assert OnnxModel(folder / "onnx" / "model.onnx", 1).dims == 3


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        pytest.param(b"not a model", {}, "INVALID_PROTOBUF", id="not a model"),
        pytest.param(model_bytes()[:90], {}, "INVALID_PROTOBUF", id="cut off"),
        pytest.param(model_bytes(inputs=("pixel_values",)), {}, "asks for pixel_values", id="of pictures"),
        pytest.param(model_bytes(inputs=("attention_mask",)), {}, "takes no input_ids", id="of no text"),
        pytest.param(model_bytes(weights="../../outside"), {}, "escapes", id="weights elsewhere"),
        (None, {"tokenizer": "{"}, "tokenizer.json cannot be read"),
        (None, {"tokenizer": {"model": 1}}, "tokenizer.json is damaged"),
        pytest.param(None, {"config": "[" * 9_000}, "config.json cannot be read", id="config of brackets"),
        (None, {"modules": [{"type": "sentence_transformers.models.Dense"}]}, "Dense"),
        (None, {"pooling": {"pooling_mode_weightedmean_tokens": True}}, "pools by"),
    ],
)
def test_a_model_that_cannot_be_used_says_why(tmp_path: Path, model: bytes | None, settings: Any, said: str) -> None:
    (tmp_path / "outside").write_bytes(ROWS.tobytes())
    with pytest.raises(ValueError, match=said):
        OnnxModel(write(tmp_path / "a" / "m", model, **settings) / "model.onnx", 1)


def test_the_provider_passes_on_why_a_model_cannot_be_used(tmp_path: Path) -> None:
    failure = failure_of(write(tmp_path / "m", b"not a model"))
    assert (failure.state, "model.onnx cannot be used: " in failure.message) == (Cause.BROKEN, True)
    assert "another ONNX model" in failure.next_step


@pytest.mark.parametrize("path", ["", "absent", "\0", "x" * 5_000, "~nobody-of-that-name/m", "pipe.onnx", "page.onnx"])
def test_a_path_that_names_no_model_is_refused_before_anything_runs(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "page.onnx").write_text("<html>")
    assert failure_of(path).state is Cause.NO_FILE


@pytest.mark.parametrize("path", [local.DEFAULT_MODEL, "hf:a/b/c.gguf", "https://host.example/model"])
def test_an_address_of_another_kind_of_model_is_refused_without_asking_for_it(path: str) -> None:
    failure = failure_of(path)
    assert (failure.state, "--fetch" in failure.next_step) == (Cause.NO_FILE, False)


def test_without_the_software_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "PACKAGE", "no_such_software")
    failure = failure_of(write(tmp_path / "m"))
    assert failure.state is Cause.NOT_INSTALLED
    assert "'.[onnx]'" in failure.next_step


# --- how it gets here ----------------------------------------------------------------------------------------------


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    files = {"model.onnx": model_bytes(), "tokenizer.json": json.dumps(tokenizer()).encode()}
    with serving(Shelf(files), FileHandler) as running:
        yield running


@pytest.fixture
def options(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("walrus cake\n")
    (tmp_path / "openclaw.json").write_text(
        json.dumps(
            {
                "agents": {
                    "defaults": {
                        "memorySearch": {
                            "provider": "onnx",
                            "local": {
                                "modelPath": "hf:some/repo/onnx/model.onnx",
                                "modelCacheDir": str(tmp_path / "models"),
                            },
                        }
                    }
                }
            }
        )
    )
    monkeypatch.setenv("HF_ENDPOINT", shelf.url)
    return Options(
        workspace=str(notes),
        config=str(tmp_path / "openclaw.json"),
        index=str(tmp_path / "i.sqlite"),
        changes=(("profile", "recommended"), ("sync.watch", "false")),
    )


def test_nothing_is_fetched_before_a_person_has_seen_what_and_agreed(
    shelf: Shelf, options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str]:
        places = ("--workspace", options.workspace, "--config", options.config, "--index", options.index)
        code = main.main(["provider", *words, *map(str, places)])
        return code, capsys.readouterr().out

    with Engine.open(options) as engine:
        engine.index.sync()
        assert engine.search.search("walrus").mode == "keywords only"
        who = engine.providers.who()
        assert (who.standing, "not on this machine" in who.reason) == ("failed", True)
        assert "memory-tui provider --fetch" in who.next_step
    assert shelf.asked == []

    code, shown = run("--fetch")
    digest = hashlib.sha256(model_bytes()).hexdigest()
    assert (code, (tmp_path / "models").exists()) == (0, False)
    assert (
        f"{shelf.url}/some/repo/resolve/main/onnx/model.onnx  {len(model_bytes()):,} bytes, SHA-256 {digest}" in shown
    )
    assert f"{shelf.url}/some/repo/resolve/main/tokenizer.json" in shown
    assert "pytorch" not in shown
    assert "Nothing was fetched." in shown

    code, shown = run("--fetch", "--yes")
    assert code == 0, shown
    asked = len(shelf.asked)
    shelf.files.clear()
    with Engine.open(options) as engine:
        engine.index.sync()
        assert engine.search.search("walrus").mode == "hybrid"
        assert (engine.providers.who().standing, engine.providers.who().answers) == ("ok", "onnx")
    assert len(shelf.asked) == asked, "what is here asks nobody"


def test_a_model_that_was_cut_short_says_so_and_the_next_fetch_replaces_it(
    shelf: Shelf, options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch = ["provider", "--fetch", "--yes", "--workspace", str(options.workspace), "--config", str(options.config)]
    assert main.main([*fetch, "--index", str(options.index)]) == 0
    (model,) = (tmp_path / "models").rglob("*.onnx")
    model.write_bytes(model_bytes()[:200])
    with Engine.open(options) as engine:
        tried = engine.providers.chain.try_out("")
        assert tried["ok"] is False
        assert "memory-tui provider --fetch --yes fetches it again" in tried["nextStep"]
    assert main.main([*fetch, "--index", str(options.index)]) == 0
    assert model.read_bytes() == model_bytes()
    with Engine.open(options) as engine:
        assert engine.providers.chain.try_out("")["ok"] is True


def test_what_differs_from_what_was_told_is_not_kept(
    shelf: Shelf, options: Options, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf.checksum = "0" * 64
    places = ("--workspace", options.workspace, "--config", options.config, "--index", options.index)
    assert main.main(["provider", "--fetch", "--yes", *map(str, places)]) != 0
    assert "checksum" in capsys.readouterr().err
    assert not list((tmp_path / "models").rglob("*.onnx"))


def test_a_provider_without_a_model_has_nothing_to_fetch() -> None:
    with pytest.raises(Exception, match="no model to fetch"):
        registry.model_files("openai", settings_for(None, "openai"))
