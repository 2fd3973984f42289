"""A provider behind a network that fails: offline, proxies, certificates; and a download through one of them."""

import base64
import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from dataclasses import dataclass, field

import pytest

from memory_tui.providers import Cause, ProviderFailure
from tests.support.provider_server import Handler, Play, Quiet, refusing, serving, status
from tests.support.waiting import LONG

ELSEWHERE, PASSWORD = "http://embed.example/v1", "very-secret-word"


def fails(provider):
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(["note"], "document")
    assert PASSWORD not in f"{caught.value.message} {caught.value.next_step}"
    return caught.value


def test_a_proxy_is_used_for_others_and_not_for_this_machine(play, provider, monkeypatch):
    with serving(Play()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert provider(base_url=ELSEWHERE).embed(["note"], "document").any()
        assert provider().embed(["note"], "document").any()
        assert [asked.path for asked in proxy.asked] == [f"{ELSEWHERE}/embeddings"]
        assert [asked.path for asked in play.asked] == ["/embeddings"]


def test_a_network_that_is_down_and_a_proxy_that_wants_a_login_are_named(provider, monkeypatch):
    with refusing() as nobody:
        failure = fails(provider(base_url=nobody))
        assert (failure.state, "cannot be reached" in failure.message) == (Cause.NETWORK, True)
        monkeypatch.setenv("HTTP_PROXY", nobody.replace("//", f"//someone:{PASSWORD}@"))
        assert "cannot be reached" in fails(provider(base_url=ELSEWHERE)).message
    with serving(Play(usual=status(407, "Proxy Authentication Required"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", f"//someone:{PASSWORD}@"))
        failure = fails(provider(base_url=ELSEWHERE))
        assert "proxy on the way to embed.example answered 407" in failure.message
        assert "HTTPS_PROXY" in failure.next_step


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("SSL_CERT_FILE", "/nowhere.pem", "certificates"),
        ("HTTPS_PROXY", f"ftp://me:{PASSWORD}@host", "proxy"),
        ("HTTPS_PROXY", f"http://me:{PASSWORD}", "proxy"),
        ("HTTPS_PROXY", f"socks5://me:{PASSWORD}@host", "socksio"),
    ],
)
def test_what_the_environment_names_wrongly_is_named(provider, monkeypatch, variable, value, words):
    monkeypatch.setenv(variable, value)
    failure = fails(provider(base_url="https://embed.example/v1"))
    assert (words in failure.message, variable in failure.next_step) == (True, True)


@contextlib.contextmanager
def encrypting(tmp_path, play, handler):
    """`play` with a certificate that nobody trusts, for this machine and for embed.example."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    files = ("-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=DNS:embed.example")
    subprocess.run([*command.split(), *files], check=True, capture_output=True, timeout=LONG)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Encrypted(handler):
        def setup(self):
            self.request = context.wrap_socket(self.request, server_side=True)
            super().setup()

        def finish(self):
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


class Tunnelling(Quiet):
    play: Tunnel

    def do_CONNECT(self):  # noqa: N802 - the name that http.server calls
        self.play.asked.append((self.path, self.headers.get("Proxy-Authorization", "")))
        with socket.create_connection(("127.0.0.1", self.play.to)) as server:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=self._pass, args=(server, self.connection))
            back.start()
            self._pass(self.connection, server)
            back.join()

    @staticmethod
    def _pass(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def test_encryption_goes_through_a_proxy_to_whom_the_environment_trusts(provider, tmp_path, monkeypatch):
    with contextlib.ExitStack() as stack:
        play = Play()
        stack.enter_context(encrypting(tmp_path, play, Handler))
        tunnel = stack.enter_context(serving(Tunnel(int(play.url.rpartition(":")[2])), Tunnelling))
        monkeypatch.setenv("HTTPS_PROXY", tunnel.url.replace("//", "//me:p%40ss@"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert provider(base_url="https://embed.example/v1").embed(["tea"], "document").any()
        login = base64.b64encode(b"me:p@ss").decode()
        assert set(tunnel.asked) == {("embed.example:443", f"Basic {login}")}
    assert play.asked
    assert all("Proxy-Authorization" not in asked.headers for asked in play.asked)


def test_a_certificate_that_nobody_trusts_gets_no_note(provider, tmp_path):
    with encrypting(tmp_path, Play(), Handler) as encrypted:
        failure = fails(provider(base_url=encrypted.url))
    assert ("CERTIFICATE_VERIFY_FAILED" in failure.message, "SSL_CERT_FILE" in failure.next_step) == (True, True)
    assert encrypted.asked == []
