"""What every provider's row and every provider keeps, over loopback servers that play the wire formats."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_tui import manual
from memory_tui.config import keys
from memory_tui.core.errors import Cancelled, ProviderError
from memory_tui.providers import local, onnx, registry
from memory_tui.providers.base import Provider
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import BatchOptions, ProviderSettings, on_this_machine
from tests.providers.test_local import STAND_IN
from tests.support.batch_server import BatchHandler, BatchPlay
from tests.support.embed import KEY, settings_for
from tests.support.provider_server import Play, hang, serving, status
from tests.support.waiting import LONG

TEXTS = ["the router", "a tomato plant", "the router"]
EMBEDDING = [name for name in registry.NAMES if name != "none"]
REMOTE = [name for name in registry.NAMES if registry.sends(name)]
BATCHING = registry.BATCHING
WIRES = Path(local.__file__).parent


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as running:
        yield running


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of each kind, and a process that answers in place of the software for local models."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"GGUF")
    for row in (local, onnx):
        monkeypatch.setattr(row, "PACKAGE", "json")
        monkeypatch.setattr(row, "SCRIPT", tmp_path / "stand_in.py")
    return tmp_path


def settings(name: str, play: Play, model: Path, **more: Any) -> ProviderSettings:
    path = model / "model.gguf" if name == "local" else model
    if registry.sends(name) and not registry.row(name).model:
        more.setdefault("model", "m1")
    return settings_for(play if registry.sends(name) else None, name, model_path=str(path), **more)


@pytest.fixture(params=registry.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- rows ----------------------------------------------------------------------------------------------------------


def test_a_row_sends_text_or_makes_a_provider(name: str) -> None:
    row = registry.row(name)
    assert (row.wire is None) != (row.make is None)
    assert bool(row.base_url) == bool(row.host) == bool(row.variables)
    assert bool(row.account) == (row.wire is not None)
    assert bool(row.base_url) == (row.wire is not None and name != "openai-compatible")
    assert row.wire is not None or row.batch is None


def test_rows_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from memory_tui.providers import registry\n"
        "assert len(registry.rows()) == len(registry.NAMES)\n"
        "heavy = {'numpy', 'httpx', 'tenacity', 'asyncio', 'tokenizers', 'apsw', 'pydantic', 'textual'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_places_in_auto_are_distinct_and_the_last_one_needs_nothing() -> None:
    places = [row.auto for row in registry.rows() if row.auto]
    assert sorted(places) == list(range(1, len(places) + 1))
    registry.check(registry.automatic()[-1], ProviderSettings(env={}.get))


def test_a_price_is_of_a_model_of_known_length_at_the_providers_own_host(name: str) -> None:
    row = registry.row(name)
    assert set(row.prices) <= set(row.dims)
    for model, usd in row.prices.items():
        assert registry.price_per_million(name, model) == registry.price_per_million(name, model, row.host) == usd > 0
        assert registry.price_per_million(name, model, "elsewhere.example") is None
    assert registry.price_per_million(name, "no such model") is None


@pytest.mark.parametrize("name", REMOTE)
def test_known_lengths_are_those_of_the_providers_own_host(name: str) -> None:
    row = registry.row(name)
    assert row.wire is not None
    for model, dims in row.dims.items():
        assert row.wire(settings_for(None, name, model=model)).dims == dims
        elsewhere = row.wire(settings_for(None, name, model=model, base_url="http://other.example/v1"))
        asks_for_a_length = "outputDimensionality" in str(elsewhere.request(["text"], "document"))
        assert elsewhere.dims == (dims if asks_for_a_length else None)


@pytest.mark.parametrize("name", REMOTE)
def test_each_variable_is_a_key_and_without_one_the_first_is_named(name: str) -> None:
    row = registry.row(name)
    assert row.wire is not None
    given = {"model": row.model or "m1", "base_url": row.base_url or "https://house.example/v1"}
    for variable in row.variables:
        wire = row.wire(ProviderSettings(env={variable: KEY}.get, **given))
        assert [next(iter(one.values())).removeprefix("Bearer ") for one in wire.auth] == [KEY]
    if not row.host or on_this_machine(row.host):
        assert row.wire(ProviderSettings(env={}.get, **given)).auth == ()
    else:
        with pytest.raises(ProviderFailure, match="No API key") as caught:
            row.wire(ProviderSettings(env={}.get, **given))
        assert f"Set {row.variables[0]} or remote.apiKey for {row.label}" in caught.value.next_step


@pytest.mark.parametrize("name", REMOTE)
def test_its_account_is_a_documented_key(name: str) -> None:
    for key in ("baseUrl", "apiKey", "headers"):
        assert f"models.providers.{registry.row(name).account}.{key}" in keys.BY_PATH


def test_the_manual_lists_every_row() -> None:
    def line(name: str) -> str:
        row = registry.row(name)
        key = " or ".join(f"`{variable}`" for variable in row.variables) or "-"
        model = row.model if row.wire else row.model.rpartition("/")[2]
        usual = f"`{model}`" if model else "-"
        host = row.host or ("`remote.baseUrl`" if row.wire else "-")
        return f"| `{name}` | {host} | {key} | {usual} | {'yes' if row.batch else '-'} |"

    page = manual.text("providers")
    table = "\n".join(map(line, registry.NAMES))
    assert table in page, table
    *first, last = [registry.row(one).label for one in registry.automatic()[1:-1]]
    assert f"then {', '.join(first)} or {last} by their key" in " ".join(page.split())
    named = ", ".join(f"`{one}`" for one in BATCHING[:-1]) + f" or `{BATCHING[-1]}`"
    assert f"With `remote.batch.enabled: true` and {named}" in " ".join(page.split())


# --- providers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EMBEDDING)
def test_vectors_are_of_unit_length_in_the_order_of_the_texts(name: str, play: Play, model: Path) -> None:
    provider = registry.create(name, settings(name, play, model))
    for kind in ("document", "query"):
        vectors = provider.embed(TEXTS, kind)  # type: ignore[arg-type]
        assert (vectors.shape, vectors.dtype) == ((3, provider.identity.dims), np.float32)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
        assert (vectors[0] == vectors[2]).all()
        assert (vectors[0] != vectors[1]).any()
    assert provider.embed([], "document").shape[0] == 0
    assert provider.health().ok
    provider.close()


@pytest.mark.parametrize("name", EMBEDDING)
def test_hostile_text_is_embedded_or_has_a_vector_of_zeros(name: str, play: Play, model: Path) -> None:
    provider = registry.create(name, settings(name, play, model))
    vectors = provider.embed(["\ud83d alone", "\x00\x1b[2J", "語" * 3000, "now"], "document")
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.isfinite(vectors).all()
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)
    provider.close()


def test_the_identity_names_the_provider_and_is_foretold(name: str, play: Play, model: Path) -> None:
    chosen = settings(name, play, model)
    foretold = registry.preview(name, chosen)
    provider = registry.create(name, chosen)
    identity = provider.identity
    assert (identity.provider, bool(identity.key)) == (name, True)
    assert foretold[0] == identity.model
    assert foretold[1] in ("", identity.key)
    assert foretold[2] in (0, identity.dims)
    assert foretold[3] == provider.max_input_bytes > 0
    assert registry.model(name, chosen) in ("", identity.model)
    assert bool(registry.host(name, chosen)) == registry.sends(name)
    provider.close()


def test_a_provider_without_vectors_says_so_on_purpose(play: Play, model: Path) -> None:
    provider = registry.create("none", settings("none", play, model))
    assert provider.identity.dims == 0
    with pytest.raises(ProviderError) as caught:
        provider.embed(TEXTS, "query")
    assert caught.value.next_step


def test_closing_twice_is_closing(name: str, play: Play, model: Path) -> None:
    provider = registry.create(name, settings(name, play, model))
    provider.close()
    provider.close()


@pytest.mark.parametrize("name", REMOTE)
@pytest.mark.parametrize(("code", "state"), [(401, Cause.BAD_KEY), (404, Cause.UNKNOWN_MODEL), (503, Cause.SERVER)])
def test_a_failure_has_a_state_a_sentence_and_a_next_step_and_no_key(
    name: str, play: Play, model: Path, code: int, state: Cause
) -> None:
    play.usual = status(code, {"error": {"message": f"not for {KEY}"}})
    provider = registry.create(name, settings(name, play, model))
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(TEXTS, "document")
    assert caught.value.state is state
    assert caught.value.message
    assert caught.value.next_step
    assert KEY not in f"{caught.value.message} {caught.value.next_step} {provider.health().detail}"
    assert not provider.health().ok
    provider.close()


@pytest.mark.parametrize("name", REMOTE)
def test_nothing_is_sent_without_approval(name: str, play: Play, model: Path) -> None:
    from memory_tui.providers.chain import ChainMember

    chosen = settings(
        name, play, model, may_send=lambda provider, host: False, base_url="http://elsewhere.example:9/v1"
    )
    with pytest.raises(ProviderFailure) as caught:
        ChainMember(name, "chosen", chosen, lambda link, error: False).embed(TEXTS, "document")
    assert caught.value.state is Cause.NEEDS_APPROVAL


def ended(provider: Provider, text: str) -> tuple[threading.Thread, list[object]]:
    outcome: list[object] = []

    def ask() -> None:
        try:
            outcome.append(provider.embed([text], "document"))
        except (Cancelled, ProviderError) as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, outcome


@pytest.mark.parametrize("name", REMOTE)
def test_closing_ends_a_call_at_once(name: str, play: Play, model: Path) -> None:
    play.usual = hang
    provider = registry.create(name, settings(name, play, model))
    thread, outcome = ended(provider, "now")
    assert play.hanging.acquire(timeout=LONG)
    provider.close()
    thread.join(LONG)
    assert [type(one) for one in outcome] == [Cancelled]


# --- batch services ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BATCHING)
def test_a_batch_service_brings_the_vectors_that_a_direct_call_brings(name: str, play: Play, model: Path) -> None:
    with serving(BatchPlay(), BatchHandler) as shelf:
        base = f"{shelf.url}/{'v1beta' if name == 'gemini' else 'v1'}"
        service = registry.batch_service(
            name, settings_for(shelf, name, base_url=base, jobs=BatchOptions(enabled=True))
        )
        assert service is not None
        texts = {f"{at}": text for at, text in enumerate(TEXTS)}
        job = service.create(service.upload(list(texts.items())))
        direct = registry.create(name, settings(name, play, model))
        expected = direct.embed(TEXTS, "document")
        for piece in service.fetch(service.status(job), expected.shape[1]):
            assert not piece.errors
            for text_id, vector in piece.vectors.items():
                assert vector == pytest.approx(expected[int(text_id)], abs=1e-6)
                texts.pop(text_id)
        assert texts == {}
        service.close()
        direct.close()


def test_a_provider_without_batch_service_has_none(name: str, play: Play, model: Path) -> None:
    service = registry.batch_service(name, settings(name, play, model))
    assert (service is not None) == (name in BATCHING)
    if service is not None:
        service.close()
