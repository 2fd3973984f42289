"""Every provider of the table: its row, what it is sent with which key, the spaces that come back, its end."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_tui import manual
from memory_tui.config import keys
from memory_tui.errors import Cancelled, ProviderError
from memory_tui.providers import local, registry
from memory_tui.providers.base import Provider
from memory_tui.providers.chain import ChainMember
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import ProviderSettings, Secret, Wire, on_this_machine
from memory_tui.providers.registry import wire
from tests.support.embed import KEY, provider_for, settings_for
from tests.support.local_model import STAND_IN
from tests.support.provider_server import Play, hang, status, vector
from tests.support.waiting import LONG

TEXTS = ["the router", "a tomato plant", "the router"]


def wire_of(name: str, settings: ProviderSettings) -> Wire:
    return wire(registry.row(name), settings)


def openai(settings: ProviderSettings) -> Wire:
    return wire_of("openai", settings)


def gemini(settings: ProviderSettings) -> Wire:
    return wire_of("gemini", settings)


def voyage(settings: ProviderSettings) -> Wire:
    return wire_of("voyage", settings)


EMBEDDING = [name for name in registry.NAMES if name != "none"]
REMOTE = [name for name in registry.NAMES if registry.sends(name)]
Make = Callable[..., Provider]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of each kind, and a process that answers in place of the software for local models."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    for name in ("model.gguf", "model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"GGUF")
    for name in ("LLAMA_CPP", "ONNX_RUNTIME"):
        monkeypatch.setattr(local, name, "json")
    monkeypatch.setattr(local, "SCRIPT", tmp_path / "stand_in.py")
    return tmp_path


def settings(name: str, play: Play, model: Path, **more: Any) -> ProviderSettings:
    path = model / "model.gguf" if name == "local" else model
    if registry.sends(name) and not registry.row(name).model:
        more.setdefault("model", "m1")
    return settings_for(play if registry.sends(name) else None, name, model_path=str(path), **more)


@pytest.fixture(params=registry.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_row_sends_text_or_makes_a_provider(name: str) -> None:
    row = registry.row(name)
    assert (row.name, bool(row.label)) == (name, True)
    assert (
        bool(row.base_url) == bool(row.host) == bool(row.variables) == (bool(row.shape) and name[6:] != "-compatible")
    )
    assert bool(row.account) == (bool(row.shape))
    assert bool(row.shape) or name not in registry.BATCHING
    for key in ("baseUrl", "apiKey", "headers") if row.shape else ():
        assert f"models.providers.{row.account}.{key}" in keys.BY_PATH
    assert set(row.prices) <= set(row.dims)
    for model, usd in row.prices.items():
        assert registry.price_per_million(name, model) == registry.price_per_million(name, model, row.host) == usd > 0
        assert registry.price_per_million(name, model, "elsewhere.example") is None
    assert registry.price_per_million(name, "no such model") is None


def test_the_names_are_known_and_a_wrong_one_is_corrected() -> None:
    remote = ("openai", "gemini", "voyage", "mistral", "ollama", "openai-compatible", "lmstudio", "llama-cpp")
    assert ("builtin", "local", "onnx", *remote, "deepinfra", "scripted", "none") == registry.NAMES
    for wrong in ("", "open ai", "Builtin", "../builtin"):
        with pytest.raises(ProviderError, match=r"builtin, local, onnx, openai, .* scripted, none") as caught:
            registry.create(wrong)
        assert caught.value.next_step
    with pytest.raises(ProviderError) as caught:
        registry.create("biultin")
    assert caught.value.next_step == "Did you mean builtin?"


def test_places_in_auto_are_distinct_and_the_last_one_needs_nothing() -> None:
    places = [row.auto for row in registry.ROWS.values() if row.auto]
    assert sorted(places) == list(range(1, len(places) + 1))
    registry.check(registry.AUTOMATIC[-1], ProviderSettings(env={}.get))


def test_rows_and_chains_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from memory_tui.providers import registry\n"
        "from memory_tui.providers.chain import Chain\n"
        "from memory_tui.providers.options import ProviderSettings\n"
        "assert len(registry.ROWS) == len(registry.NAMES)\n"
        "assert Chain(ProviderSettings(env={}.get), print).members()[-1].name == 'builtin'\n"
        "heavy = {'numpy', 'httpx', 'asyncio', 'tokenizers', 'pydantic', 'textual', 'rich', 'llama_cpp'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "provider = registry.create('builtin')\n"
        "provider.embed(['now'], 'query')\n"
        "assert 'tokenizers' not in sys.modules\n"
        "provider.embed(['sch\u00f6n'], 'query')\n"
        "assert 'tokenizers' in sys.modules and not {'textual', 'rich'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_manual_lists_every_row() -> None:
    def line(name: str) -> str:
        row = registry.row(name)
        key = " or ".join(f"`{variable}`" for variable in row.variables) or "-"
        model = row.model if row.shape else row.model.rpartition("/")[2]
        usual = f"`{model}`" if model else "-"
        host = row.host or ("`remote.baseUrl`" if row.shape else "-")
        return f"| `{name}` | {host} | {key} | {usual} | {'yes' if name in registry.BATCHING else '-'} |"

    page = manual.text("providers")
    table = "\n".join(map(line, registry.NAMES))
    assert table in page, table
    *first, last = [registry.row(one).label for one in registry.AUTOMATIC[1:-1]]
    assert f"then {', '.join(first)} or {last} by their key" in " ".join(page.split())


@pytest.mark.parametrize("name", REMOTE)
def test_known_lengths_are_those_of_the_providers_own_host(name: str) -> None:
    row = registry.row(name)
    for model, dims in row.dims.items():
        assert wire(row, settings_for(None, name, model=model)).dims == dims
        elsewhere = wire(row, settings_for(None, name, model=model, base_url="http://other.example/v1"))
        asks_for_a_length = "outputDimensionality" in str(elsewhere.request(["text"], "document"))
        assert elsewhere.dims == (dims if asks_for_a_length else None)


@pytest.mark.parametrize("name", REMOTE)
def test_each_variable_is_a_key_and_without_one_the_first_is_named(name: str) -> None:
    row = registry.row(name)
    more = {"model": row.model or "m1", "base_url": row.base_url or "https://house.example/v1"}
    for variable in row.variables:
        asks = wire(row, ProviderSettings(env={variable: KEY}.get, **more))
        assert [next(iter(one.values())).removeprefix("Bearer ") for one in asks.auth] == [KEY]
    if not row.host or on_this_machine(row.host):
        assert wire(row, ProviderSettings(env={}.get, **more)).auth == ()
    else:
        with pytest.raises(ProviderFailure, match="No API key") as caught:
            wire(row, ProviderSettings(env={row.variables[0]: "  "}.get, **more))
        assert f"Set {row.variables[0]} or remote.apiKey for {row.label}" in caught.value.next_step
    with pytest.raises(ProviderFailure) as caught:
        wire(row, settings_for(None, name, api_keys=(Secret("sk-\nsecret-part"),), **more))
    assert (caught.value.state, "secret-part" in str(caught.value)) == (Cause.BAD_KEY, False)


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(
    "address", ["ftp://host", "host/v1", "http://", "http://[::1", "http://h:99999", "http://h\nx"]
)
def test_an_address_that_cannot_be_asked_is_refused(name: str, address: str) -> None:
    with pytest.raises(ProviderFailure, match=r"remote\.baseUrl"):
        registry.create(name, settings_for(None, name, base_url=address))


# --- what every provider keeps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EMBEDDING)
def test_vectors_are_of_unit_length_in_the_order_of_the_texts(name: str, play: Play, model: Path) -> None:
    chosen = settings(name, play, model)
    member = ChainMember(name, "chosen", chosen, lambda member, error, known: False)
    space, provider = member.space(), registry.create(name, chosen)
    for kind in ("document", "query"):
        vectors = provider.embed(TEXTS, kind)  # type: ignore[arg-type]
        assert (vectors.shape, vectors.dtype) == ((3, provider.identity.dims), np.float32)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
        assert ((vectors[0] == vectors[2]).all(), (vectors[0] != vectors[1]).any()) == (True, True)
    assert (provider.embed([], "document").shape[0], bool(provider.detail)) == (0, True)
    hostile = provider.embed(["\ud83d alone", "\x00\x1b[2J", "語" * 3000, "now"], "document")
    lengths = np.linalg.norm(hostile, axis=1)
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)
    identity = provider.identity
    assert (identity.provider, bool(identity.key), space.model) == (name, True, identity.model)
    assert (space.key in ("", identity.key), space.dims in (0, identity.dims)) == (True, True)
    assert member.max_input_bytes == provider.max_input_bytes > 0
    member.close()
    assert registry.model(name, chosen) in ("", identity.model)
    assert bool(registry.host(name, chosen)) == registry.sends(name)
    provider.close()
    provider.close()


def test_a_provider_without_vectors_says_so_on_purpose() -> None:
    provider = registry.create("none")
    assert (provider.identity.model, provider.identity.dims) == ("fts-only", 0)
    with pytest.raises(ProviderError, match="words alone") as caught:
        provider.embed(TEXTS, "query")
    assert caught.value.next_step


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(("code", "state"), [(401, Cause.BAD_KEY), (404, Cause.UNKNOWN_MODEL), (503, Cause.SERVER)])
def test_a_failure_has_a_state_a_sentence_and_a_next_step_and_no_key(
    name: str, play: Play, model: Path, code: int, state: Cause
) -> None:
    play.usual = status(code, {"error": {"message": f"not for {KEY}"}})
    provider = registry.create(name, settings(name, play, model))
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(TEXTS, "document")
    assert (caught.value.state, bool(caught.value.message), bool(caught.value.next_step)) == (state, True, True)
    assert KEY not in f"{caught.value.message} {caught.value.next_step} {provider.detail}"
    provider.close()


@pytest.mark.parametrize("name", REMOTE)
def test_nothing_is_sent_without_approval(name: str, play: Play, model: Path) -> None:
    chosen = settings(
        name, play, model, may_send=lambda provider, host: False, base_url="http://elsewhere.example:9/v1"
    )
    with pytest.raises(ProviderFailure) as caught:
        ChainMember(name, "chosen", chosen, lambda member, error, known: False).embed(TEXTS, "document")
    assert caught.value.state is Cause.NEEDS_APPROVAL


@pytest.mark.parametrize("name", REMOTE)
def test_closing_ends_a_call_at_once(name: str, play: Play, model: Path) -> None:
    play.usual, outcome = hang, []
    provider = registry.create(name, settings(name, play, model))

    def ask() -> None:
        try:
            provider.embed(["now"], "document")
        except (Cancelled, ProviderError) as error:
            outcome.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    assert play.hanging.acquire(timeout=LONG)
    provider.close()
    thread.join(LONG)
    assert outcome == [Cancelled]


# --- what is sent ----------------------------------------------------------------------------------------------------


def asked(play: Play, name: str, kind: str, texts: list[str], **more: Any) -> tuple[str, dict[str, str], Any]:
    provider = provider_for(play, name, **more)
    vectors = provider.embed(texts, kind)
    provider.close()
    for at, text in enumerate(texts):
        if more.get("model", "").startswith("gemini-embedding-2") or (name == "ollama" and kind == "query"):
            break
        assert vectors[at] @ (np.array(vector(text)) / 3) == pytest.approx(1, abs=1e-5)
    one = play.asked[-1]
    return one.path, one.headers, one.body


def test_openai(play: Play) -> None:
    path, headers, body = asked(play, "openai", "document", ["a", "b"])
    assert (path, body) == ("/embeddings", {"model": "text-embedding-3-small", "input": ["a", "b"]})
    assert (headers["Authorization"], headers["Content-Type"]) == (f"Bearer {KEY}", "application/json")


def test_openai_with_dimensions_and_input_types(play: Play) -> None:
    more = {"output_dimensionality": 256, "input_type": "passage", "query_input_type": "query"}
    assert asked(play, "openai", "query", ["a"], **more)[2] == {
        "model": "text-embedding-3-small",
        "input": ["a"],
        "dimensions": 256,
        "input_type": "query",
    }
    assert asked(play, "openai", "document", ["a"], **more)[2]["input_type"] == "passage"


def test_another_server_keeps_the_models_prefix_and_openai_does_not(play: Play) -> None:
    assert asked(play, "openai", "query", ["a"], model="openai/nano")[2]["model"] == "openai/nano"
    own = openai(settings_for(None, model="openai/text-embedding-3-large"))
    assert (own.model, own.dims) == ("text-embedding-3-large", 3072)


def test_a_compatible_server_needs_no_key(play: Play) -> None:
    _, headers, _ = asked(play, "openai", "query", ["a"], api_keys=())
    assert "Authorization" not in headers


def test_own_headers_win_whatever_their_case(play: Play) -> None:
    _, headers, _ = asked(play, "openai", "query", ["a"], headers={"authorization": "Token t0ken", "X-Org": "o"})
    named = {name.lower(): value for name, value in headers.items()}
    assert (named["authorization"], named["x-org"]) == ("Token t0ken", "o")


def test_another_key_makes_no_other_vectors() -> None:
    def key(**headers: str) -> str:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return openai(settings_for(None, headers=named)).key

    assert key(api_key="one", X_Api_Key="one", Authorization="one") == key(api_key="two") == key()
    assert key(X_Org="one") != key(X_Org="two")


def test_one_trailing_slash_of_the_address_is_dropped(play: Play) -> None:
    assert asked(play, "openai", "query", ["a"], base_url=f"{play.url}/v1/")[0] == "/v1/embeddings"


def test_voyage_is_told_the_input_type(play: Play) -> None:
    path, headers, body = asked(play, "voyage", "query", ["a"], model="voyage/voyage-4")
    assert (path, body) == ("/embeddings", {"model": "voyage-4", "input": ["a"], "input_type": "query"})
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert asked(play, "voyage", "document", ["a"])[2] == {
        "model": "voyage-4-large",
        "input": ["a"],
        "input_type": "document",
    }


def test_ollamas_vectors_are_cut_to_the_size_that_was_asked_for(play: Play) -> None:
    provider = provider_for(play, "ollama", output_dimensionality=64)
    (made,) = provider.embed(["one two three"], "document")
    whole = np.array(vector("one two three"), np.float32)[:64]
    assert made == pytest.approx(whole / np.linalg.norm(whole), abs=1e-6)
    assert provider.identity.dims == 64
    provider.close()
    provider = provider_for(play, "ollama", output_dimensionality=512)
    with pytest.raises(ProviderFailure, match="256 numbers where 512"):
        provider.embed(["one"], "document")
    provider.close()


def test_mistral(play: Play) -> None:
    path, headers, body = asked(play, "mistral", "document", ["a"])
    assert (path, body) == ("/embeddings", {"model": "mistral-embed", "input": ["a"]})
    assert headers["Authorization"] == f"Bearer {KEY}"


def test_gemini_001_has_task_types(play: Play) -> None:
    path, headers, body = asked(play, "gemini", "query", ["a"], model="models/gemini-embedding-001")
    assert path == "/models/gemini-embedding-001:embedContent"
    assert body == {"content": {"parts": [{"text": "a"}]}, "taskType": "RETRIEVAL_QUERY"}
    assert headers["x-goog-api-key"] == KEY
    assert "Authorization" not in headers
    path, _, body = asked(
        play, "gemini", "document", ["a", "b"], model="google/gemini-embedding-001", output_dimensionality=256
    )
    assert path == "/models/gemini-embedding-001:batchEmbedContents"
    assert body["requests"][1] == {
        "content": {"parts": [{"text": "b"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 256,
        "model": "models/gemini-embedding-001",
    }


def test_gemini_2_has_prefixes_and_a_size(play: Play) -> None:
    more = {"model": "gemini-embedding-2", "output_dimensionality": 256}
    body = asked(play, "gemini", "query", ["a"], **more)[2]
    assert body == {"content": {"parts": [{"text": "task: search result | query: a"}]}, "outputDimensionality": 256}
    body = asked(play, "gemini", "document", ["a"], **more)[2]
    assert body["requests"][0]["content"] == {"parts": [{"text": "title: none | text: a"}]}
    assert "taskType" not in body["requests"][0]
    assert gemini(settings_for(None, model="gemini-embedding-2")).dims == 3072


@pytest.mark.parametrize("size", [1, 127, 3073])
def test_gemini_refuses_a_size_that_it_cannot_make(size: int) -> None:
    with pytest.raises(ProviderFailure, match="128 to 3072"):
        gemini(settings_for(None, output_dimensionality=size))


def test_geminis_address_for_openai_clients_is_cut(play: Play) -> None:
    path, _, _ = asked(play, "gemini", "query", ["a"], base_url=f"{play.url}/v1beta/openai/")
    assert path == "/v1beta/models/gemini-embedding-001:embedContent"


def test_a_gemini_key_that_is_a_token_is_sent_as_one(play: Play) -> None:
    _, headers, _ = asked(play, "gemini", "query", ["a"], api_keys=(Secret('{"token": "tok", "projectId": "p"}'),))
    assert headers["Authorization"] == "Bearer tok"
    assert "x-goog-api-key" not in headers


def test_gemini_keys_come_from_the_environment_and_take_turns_when_one_is_spent(play: Play) -> None:
    env = {"GEMINI_API_KEY": "first-key", "GEMINI_API_KEYS": "second-key, third-key"}
    play.say(status(429, "spent"), status(429, "spent"))
    provider = provider_for(play, "gemini", api_keys=(), env=env.get)
    provider.embed(["a"], "query")
    provider.embed(["a"], "query")
    used = [one.headers["x-goog-api-key"] for one in play.asked]
    assert used == ["first-key", "second-key", "third-key", "third-key"]
    provider.close()


def test_a_configured_key_may_name_geminis_variable(play: Play) -> None:
    _, headers, _ = asked(
        play,
        "gemini",
        "query",
        ["a"],
        api_keys=(Secret("GOOGLE_API_KEY"),),
        env={"GOOGLE_API_KEY": "from-env", "GEMINI_API_KEY": "other"}.get,
    )
    assert headers["x-goog-api-key"] == "from-env"


def test_ollama(play: Play) -> None:
    path, headers, body = asked(play, "ollama", "document", ["a", "b"], base_url=f"{play.url}/V1/", api_keys=())
    assert (path, body) == ("/api/embed", {"model": "nomic-embed-text", "input": ["a", "b"], "truncate": False})
    assert "Authorization" not in headers
    assert asked(play, "ollama", "query", ["a"])[2]["input"] == ["search_query: a"]
    assert asked(play, "ollama", "query", ["{} a"], model="ollama/mxbai-embed-large:latest")[2]["input"] == [
        "Represent this sentence for searching relevant passages: {} a"
    ]
    assert asked(play, "ollama", "query", ["a"], model="all-minilm")[2]["input"] == ["a"]


def test_a_model_that_ollama_lacks_is_unknown(play: Play) -> None:
    play.usual = status(404, {"error": 'model "x" not found, try pulling it first'})
    provider = provider_for(play, "ollama", model="x")
    with pytest.raises(ProviderFailure, match="try pulling") as caught:
        provider.embed(["a"], "query")
    assert caught.value.state is Cause.UNKNOWN_MODEL
    assert len(play.asked) == 1
    provider.close()


def sha(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def test_fingerprints_are_the_documented_ones() -> None:
    assert openai(settings_for(None)).key == "c03eebd0dbf911b9e937d66411651b4976ddde97fb3a820da68c2176068e449d"
    assert openai(
        settings_for(None, base_url="https://h/v1/", headers={"X-b": "2", "authorization": "s", "a": "1"})
    ).key == sha(
        {
            "provider": "openai",
            "baseUrl": "https://h/v1/",
            "model": "text-embedding-3-small",
            "headers": [["a", "1"], ["Content-Type", "application/json"], ["X-b", "2"]],
        }
    )
    assert gemini(settings_for(None, output_dimensionality=768, model="gemini-embedding-2")).key == sha(
        {
            "provider": "gemini",
            "baseUrl": "https://generativelanguage.googleapis.com/v1beta",
            "model": "gemini-embedding-2",
            "outputDimensionality": 768,
            "headers": [],
        }
    )
    assert voyage(settings_for(None)).key == sha({"provider": "voyage", "model": "voyage-4-large"})


def test_another_endpoint_model_or_size_is_another_space() -> None:
    keys = [
        make(settings_for(None, **more)).key
        for make in (openai, voyage)
        for more in (
            {},
            {"base_url": "http://h/v1"},
            {"headers": {"x": "1"}},
            {"model": "m"},
            {"output_dimensionality": 512},
            {"document_input_type": "passage"},
        )
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", REMOTE)
def test_the_length_of_an_unknown_model_takes_one_call(play: Play, name: str) -> None:
    provider = provider_for(play, name, model="strange")
    assert provider.identity.dims == provider.identity.dims == 256
    assert len(play.asked) == 1
    provider.close()
