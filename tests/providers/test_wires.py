"""The wire formats: what is sent where, with which key, and the fingerprints of the spaces that come back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memory_tui.providers import registry
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.gemini import gemini
from memory_tui.providers.openai import openai
from memory_tui.providers.options import ProviderSettings, Secret
from memory_tui.providers.voyage import voyage
from tests.support.embed import KEY, REMOTE, provider_for, settings_for
from tests.support.provider_server import Play, serving, status, vector, well


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as running:
        yield running


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


def test_ollama_embeds_a_text_over_its_context_in_parts_and_cuts_nothing(play: Play) -> None:
    def limited(handler: object, asked: object) -> None:
        long = max(len(text) for text in asked.texts) > 100
        reply = status(400, {"error": "the input length exceeds the context length"}) if long else well
        reply(handler, asked)

    play.usual = limited
    provider = provider_for(play, "ollama")
    assert provider.embed(["one two three four " * 10, "short"], "document").any(axis=1).all()
    sent = " ".join(text for one in play.asked for text in one.texts if len(text) <= 100)
    assert sent.count("four") == 10
    provider.close()


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


def test_an_older_ollama_is_asked_one_text_at_a_time(play: Play) -> None:
    play.say(status(404, "404 page not found"))
    provider = provider_for(play, "ollama")
    vectors = provider.embed(["a", "b", "c"], "document")
    assert [one.path for one in play.asked] == ["/api/embed", *["/api/embeddings"] * 3]
    assert play.asked[-1].body == {"model": "nomic-embed-text", "prompt": "c"}
    assert vectors[2] @ (np.array(vector("c")) / 3) == pytest.approx(1, abs=1e-5)
    provider.close()


def test_a_model_that_ollama_lacks_is_unknown(play: Play) -> None:
    play.usual = status(404, {"error": 'model "x" not found, try pulling it first'})
    provider = provider_for(play, "ollama", model="x")
    with pytest.raises(ProviderFailure, match="try pulling") as caught:
        provider.embed(["a"], "query")
    assert caught.value.state is Cause.UNKNOWN_MODEL
    assert len(play.asked) == 1
    provider.close()


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("voyage", "VOYAGE_API_KEY"),
        ("mistral", "MISTRAL_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("gemini", "GOOGLE_API_KEY"),
    ],
)
def test_a_key_is_needed_and_may_come_from_the_environment(name: str, variable: str) -> None:
    with pytest.raises(ProviderFailure, match="No API key found for provider") as caught:
        registry.create(name, ProviderSettings(env={variable: "  "}.get))
    assert caught.value.state is Cause.NO_KEY
    assert "_API_KEY" in caught.value.next_step
    registry.create(name, ProviderSettings(env={variable: "a-key"}.get)).close()


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(
    "address", ["ftp://host", "host/v1", "http://", "http://[::1", "http://h:99999", "http://h\nx"]
)
def test_an_address_that_cannot_be_asked_is_refused(name: str, address: str) -> None:
    with pytest.raises(ProviderFailure, match=r"remote\.baseUrl"):
        registry.create(name, settings_for(None, name, base_url=address))


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


def test_the_key_is_no_part_of_the_fingerprint() -> None:
    assert openai(settings_for(None)).key == openai(settings_for(None, api_keys=(Secret("another-key"),))).key


@pytest.mark.parametrize(("name", "dims"), [("openai", 1536), ("gemini", 3072), ("voyage", 1024), ("mistral", 1024)])
def test_the_length_of_a_known_model_is_known_without_asking(name: str, dims: int) -> None:
    provider = registry.create(name, settings_for(None, name))
    assert (provider.identity.provider, provider.identity.dims) == (name, dims)
    provider.close()


@pytest.mark.parametrize("name", REMOTE)
def test_the_length_of_an_unknown_model_takes_one_call(play: Play, name: str) -> None:
    provider = provider_for(play, name, model="strange")
    assert provider.identity.dims == provider.identity.dims == 256
    assert len(play.asked) == 1
    provider.close()


def test_an_identity_that_cannot_be_found_out_says_why(play: Play) -> None:
    play.usual = status(403, {"error": {"message": "not for you"}})
    provider = provider_for(play)
    with pytest.raises(ProviderFailure, match="403: not for you") as caught:
        _ = provider.identity
    assert caught.value.state is Cause.BAD_KEY
    provider.close()
