"""A provider behind a network that fails: offline, proxy, TLS, a model cut off; and vectors that never mix."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.engine.engine import Engine
from memory_tui.index.store import Store
from memory_tui.plan import Options
from memory_tui.providers import local
from memory_tui.providers.failures import ProviderFailure
from memory_tui.providers.options import RequestLimits
from memory_tui.search.trace import Trace
from tests.providers.test_download import MODEL, URI, get
from tests.support.embed import Time
from tests.support.local_model import STAND_IN
from tests.support.provider_server import FileHandler, Handler, Play, Shelf, refusing, serving, status, well
from tests.support.waiting import LONG

KEY = "sk-network-0123456789"


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """Time that passes when a test says so; no attempt waits for the next one, and one attempt is enough."""
    usual, found = plan.settings, Time()
    monkeypatch.setattr(
        plan,
        "settings",
        lambda choices, approvals: replace(
            usual(choices, approvals), clock=found.clock(), batches=replace(RequestLimits(), attempts=1)
        ),
    )
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return found


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as server:
        yield server


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes" / "memory"
    folder.mkdir(parents=True)
    (folder.parent / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    (folder / "2026-01-02.md").write_text("The walrus likes cake.\n")
    Approvals(tmp_path / "notes").approve("openai", "embed.example", "test")
    return folder


def options(tmp_path: Path, **section: Any) -> Options:
    path = tmp_path / "openclaw.json"
    path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": {"provider": "openai", **section}}}}))
    return Options(
        workspace=str(tmp_path / "notes"),
        config=str(path),
        index=str(tmp_path / "i.sqlite"),
        provider=str(section.get("provider", "openai")),
        changes=(("profile", "recommended"), ("sync.watch", "false")),
    )


def at(url: str, **more: Any) -> dict[str, Any]:
    return {"model": "small", "remote": {"baseUrl": url, "apiKey": KEY, **more}}


def by_words(engine: Engine) -> Trace:
    trace = engine.search.search("walrus")
    assert (trace.mode, trace.recalled[0].chunk.path) == ("keywords only", "memory/2026-01-02.md")
    return trace


# --- offline, proxy, TLS -------------------------------------------------------------------------------------------


def test_offline_at_the_first_start_words_answer_and_meaning_follows(
    play: Play, notes: Path, tmp_path: Path, time: Time
) -> None:
    with refusing() as nobody, Engine.open(options(tmp_path, **at(nobody))) as engine:
        engine.index.sync()
        by_words(engine)
        who = engine.providers.who()
        assert (who.standing, who.retry_at) == ("failed", time.at + 30)
        assert "cannot be reached" in who.reason
        assert "network" in who.next_step
    with Engine.open(options(tmp_path, **at(play.url))) as engine:
        engine.index.sync()
        assert engine.search.search("walrus").mode == "hybrid"
        assert engine.providers.who().standing == "ok"


def test_a_proxy_is_used_for_others_and_not_for_this_machine(
    play: Play, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Play()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with Engine.open(options(tmp_path, **at("http://embed.example/v1"))) as engine:
            engine.index.sync()
            assert engine.search.search("walrus").mode == "hybrid"
            assert engine.providers.who().answers == "openai"
        assert {asked.path for asked in proxy.asked} == {"http://embed.example/v1/embeddings"}
        asked = len(proxy.asked)
        with Engine.open(options(tmp_path, **at(play.url))) as engine:
            engine.index.sync()
            assert engine.search.search("walrus").mode == "hybrid"
        assert len(proxy.asked) == asked


def test_a_proxy_that_wants_a_login_or_is_not_there_is_named(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Play(usual=status(407, "Proxy Authentication Required"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//someone:very-secret-word@"))
        with Engine.open(options(tmp_path, **at("http://embed.example/v1"))) as engine:
            engine.index.sync()
            by_words(engine)
            who = engine.providers.who()
            assert "proxy on the way to embed.example answered 407" in who.reason
            assert "HTTPS_PROXY" in who.next_step
            assert "very-secret-word" not in json.dumps(who.as_dict())
    with refusing() as nobody:
        monkeypatch.setenv("HTTP_PROXY", nobody.replace("//", "//someone:very-secret-word@"))
        with Engine.open(options(tmp_path, **at("http://embed.example/v1"))) as engine:
            engine.index.sync(force=True)
            by_words(engine)
            assert "cannot be reached" in engine.providers.who().reason
            assert "very-secret-word" not in json.dumps(engine.providers.who().as_dict())


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[Play]:
    with encrypting(tmp_path, Play(), Handler) as running:
        yield running


@contextlib.contextmanager
def encrypting(tmp_path: Path, play: Any, handler: type[BaseHTTPRequestHandler]) -> Iterator[Any]:
    """`play` with a certificate that nobody trusts, for this machine and for embed.example."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=DNS:embed.example"),
        ],
        check=True,
        capture_output=True,
        timeout=LONG,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Encrypted(handler):  # type: ignore[valid-type, misc]
        def setup(self) -> None:
            self.request = context.wrap_socket(self.request, server_side=True)
            super().setup()

        def finish(self) -> None:
            super().finish()
            self.request.close()

    with serving(play, Encrypted) as running:
        running.url = running.url.replace("http:", "https:")
        yield running


@dataclass
class Tunnel:
    """A proxy that leads each CONNECT to one server."""

    to: int
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""
    ended: threading.Event = field(default_factory=threading.Event)


class Tunnelling(BaseHTTPRequestHandler):
    play: Tunnel

    def do_CONNECT(self) -> None:
        self.play.asked.append((self.path, self.headers.get("Proxy-Authorization", "")))
        with socket.create_connection(("127.0.0.1", self.play.to)) as server:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=self._pass, args=(server, self.connection))
            back.start()
            self._pass(self.connection, server)
            back.join()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_encryption_goes_through_a_proxy_to_whom_the_environment_trusts_and_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(serving(Shelf({"tiny.gguf": MODEL}), FileHandler))
        hub = Shelf({"tiny.gguf": MODEL})
        stack.enter_context(encrypting(tmp_path, hub, FileHandler))
        tunnel = stack.enter_context(serving(Tunnel(int(hub.url.rpartition(":")[2])), Tunnelling))
        monkeypatch.setenv("HTTPS_PROXY", tunnel.url.replace("//", "//me:p%40ss@"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        folder = tmp_path / "models"
        assert get(URI, hub, folder, HF_ENDPOINT="https://embed.example").read_bytes() == MODEL
        login = base64.b64encode(b"me:p@ss").decode()
        assert set(tunnel.asked) == {("embed.example:443", f"Basic {login}")}
        assert all("Proxy-Authorization" not in headers for _, headers in hub.asked)
        hub.leads_to = f"{plain.url}/files"
        with pytest.raises(ProviderFailure, match="without encryption"):
            get(URI, hub, tmp_path / "others", HF_ENDPOINT="https://embed.example")
    assert (plain.asked, list((tmp_path / "others").glob("*.gguf"))) == ([], [])


def test_a_certificate_that_nobody_trusts_gets_no_note(encrypted: Play, notes: Path, tmp_path: Path) -> None:
    with Engine.open(options(tmp_path, **at(encrypted.url))) as engine:
        engine.index.sync()
        by_words(engine)
        who = engine.providers.who()
        assert who.standing == "failed"
        assert "CERTIFICATE_VERIFY_FAILED" in who.reason
        assert "SSL_CERT_FILE" in who.next_step
    assert encrypted.asked == []


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SSL_CERT_FILE", "/nowhere.pem", "certificates"),
        ("HTTPS_PROXY", "ftp://me:hush-hush@host", "proxy"),
        ("HTTPS_PROXY", "http://me:hush-hush", "proxy"),
        ("HTTPS_PROXY", "socks5://me:hush-hush@host", "socksio"),
    ],
)
def test_what_the_environment_names_wrongly_is_told(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, notes: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, value)
    with Engine.open(options(tmp_path, **at("https://embed.example/v1"))) as engine:
        engine.index.sync()
        by_words(engine)
        who = engine.providers.who()
    assert (who.standing, said in who.reason, variable in who.next_step) == ("failed", True, True)
    assert "hush" not in who.reason


# --- a model that is fetched ---------------------------------------------------------------------------------------


def test_a_model_that_breaks_off_leaves_words_and_goes_on_where_it_was(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: Time
) -> None:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN.replace('open(model, errors="replace").read()[4:]', "''"))
    monkeypatch.setattr(local, "LLAMA_CPP", "json")
    monkeypatch.setattr(local, "SCRIPT", script)
    digest = hashlib.sha256(MODEL).hexdigest()
    with serving(Shelf({"tiny.gguf": MODEL}), FileHandler) as shelf:
        section = {
            "modelPath": f"{shelf.url}/files/tiny.gguf#sha256={digest}",
            "modelCacheDir": str(tmp_path / "models"),
        }
        shelf.break_after = 400_000
        asked = options(tmp_path, provider="local", local=section)
        with Engine.open(asked) as engine:
            engine.index.sync()
            by_words(engine)
            assert (engine.providers.who().standing, engine.providers.who().mode) == ("failed", "keywords only")
            assert "goes on from where it stopped" in engine.providers.who().next_step
        (part,) = (tmp_path / "models").iterdir()
        have = part.stat().st_size
        assert 0 < have <= 400_000
        time.at += 1000
        with Engine.open(asked) as engine:
            assert engine.providers.who().standing == "failed"
            engine.index.sync()
            assert engine.search.search("walrus").mode == "hybrid"
            assert (engine.providers.who().standing, engine.providers.who().answers) == ("ok", "local")
        assert shelf.asked[-1][1]["Range"] == f"bytes={have}-"
    (model,) = (tmp_path / "models").glob("*.gguf")
    assert model.read_bytes() == MODEL


# --- spaces that never mix -----------------------------------------------------------------------------------------


def spaces(tmp_path: Path) -> set[str]:
    store = Store.open(tmp_path / "i.sqlite", read_only=True)
    try:
        found = store.query("SELECT DISTINCT e.provider FROM chunks c JOIN embedding_cache e ON e.id = c.embedding_id")
        return {row[0] for row in found}
    finally:
        store.close()


def test_a_provider_that_fails_half_way_leaves_no_vector_among_the_fallbacks(
    play: Play, notes: Path, tmp_path: Path
) -> None:
    """Both make vectors of 256 numbers, so that nothing but their identity tells them apart."""
    for number in range(120):
        (notes / f"n{number}.md").write_text(f"Note {number}: {'cake and tea ' * 400}\n")
    play.say(well, well)
    play.usual = status(500, {"error": {"message": "overloaded"}})
    with Engine.open(options(tmp_path, fallback="builtin", **at(play.url))) as engine:
        assert engine.index.sync().error == ""
        assert len(play.asked) >= 3
        trace = engine.search.search("walrus")
        assert (trace.mode, trace.provider) == ("hybrid", "builtin")
        assert engine.status().embedded == engine.status().chunks
        assert (engine.providers.who().standing, engine.providers.who().answers) == ("fallback", "builtin")
    assert spaces(tmp_path) == {"builtin"}


def test_a_question_is_never_compared_with_vectors_of_another(play: Play, notes: Path, tmp_path: Path) -> None:
    with Engine.open(options(tmp_path, fallback="builtin", **at(play.url))) as engine:
        engine.index.sync()
        assert spaces(tmp_path) == {"openai"}
        engine.index.pause()
        play.usual = status(401, {"error": {"message": "Incorrect API key"}})
        for _ in range(3):
            evidence = engine.search.gather("walrus")
            assert evidence.cosine is None
            assert engine.search.rank(evidence, engine.plan.settings).mode == "keywords only"
        assert spaces(tmp_path) == {"openai"}
        engine.index.resume()
        assert engine.index.writer.wait_idle(LONG)
        trace = engine.search.search("walrus")
        assert (trace.mode, trace.provider) == ("hybrid", "builtin")
    assert spaces(tmp_path) == {"builtin"}


def test_a_process_that_only_reads_compares_with_who_made_the_index(play: Play, notes: Path, tmp_path: Path) -> None:
    play.usual = status(401, {"error": {"message": "Incorrect API key"}})
    asked = options(tmp_path, fallback="builtin", **at(play.url))
    with Engine.open(asked) as engine:
        engine.index.sync()
    sent = len(play.asked)
    with Engine.open(replace(asked, changes=(*asked.changes, ("sync.onSearch", "false")))) as engine:
        trace = engine.search.search("walrus")
        assert (trace.mode, trace.provider) == ("hybrid", "builtin")
        assert trace.who is not None
        assert (trace.who.standing, trace.who.answers) == ("fallback", "builtin")
        assert engine.status().freshness.rebuild == ()
    assert len(play.asked) == sent
