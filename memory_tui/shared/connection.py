"""Connects to the database of a shared index; what goes wrong is one of `FAULTS`, with a sentence and a next step."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg
from msgspec import Struct
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg.rows import TupleRow, namedtuple_row
from psycopg.types import TypeInfo

from memory_tui.config import config_file as configuration
from memory_tui.errors import MemoryTuiError
from memory_tui.plan import Plan
from memory_tui.secrets import Discreet

# What psycopg logs beside an error, which is told, would come upon the screen.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
Connection = psycopg.Connection[TupleRow]
VERSION = 3
"""Of the schema that this program reads and writes."""
OLDEST_SERVER, OLDEST_PGVECTOR = 15, (0, 7)
MEMBERS = "memory_tui_member"
"""The role of everybody who may use a shared index."""


# --- faults --------------------------------------------------------------------------------------------------------


class Fault(NamedTuple):
    """What can be wrong: how it is known, by SQLSTATEs or by words of a message, and what is said of it.

    A server tells a client that it does not let in no SQLSTATE, so its words have to do.
    """

    code: str
    states: list[str]
    words: str
    text: str
    next_step: str


_TABLE = """
password  28P01  password authentication failed|no password supplied|authentication failed
  The database {where} does not take the login {login}.
  Check login and password: PGPASSWORD, PGPASSFILE or shared.password.
certificate  -  certificate|not support SSL|SSL error
  The connection to {where} is not safe, so nothing was sent: {detail}
  Have the server use TLS with a certificate of its name; a private authority goes into sslrootcert=FILE.
not_let_in  28000  pg_hba.conf|no such user|role .* (does not exist|is not permitted)
  The database {where} does not let {login} in: {detail}
  Ask its owner to let this login in from here.
database  3D000  database .* does not exist
  There is no database as {where} names it.
  Check shared.url, or make it: createdb.
connections  53300  too many (clients|connections)|connection slots
  The database {where} has no free connection.
  Try again later, or raise its max_connections.
disk  53100  No space left
  The disk of the database {where} is full.
  Make room there.
host  -  resolve host|translate host name|Name or service not known
  There is no host as {where} names it.
  Check shared.url and this machine's network.
read_only  25006  -
  The database {where} can only be read: it is a replica, or read-only.
  Name the primary in shared.url.
slow  57014  -
  The database {where} took too long.
  Try again, or raise shared.askTimeoutMs.
no_right  42501  -
  The login {login} may not do that in {where}: {detail}
  Ask the owner: memory-tui shared init --admit {login}.
no_extension  0A000,58P01  -
  The database {where} has no pgvector 0.7 or newer: {detail}
  Install it on the server, then as a superuser: create extension vector; (or alter extension vector update).
nothing  -  -
  The shared index has nothing to read for {detail}
  Ask who publishes it: shared join --let {login}, the same provider and chunking, then shared publish.
fenced  MT001  -
  Another process publishes this workspace now: {detail}
  It goes on there.
taken  MT002  -
  Another machine publishes this workspace: {detail}
  Give this machine another shared.name, or wait until the other one is silent for shared.silentAfterSeconds.
name  MT003  -
  The shared index does not take this name: {detail}
  A workspace is OWNER/NAME, where OWNER is the login or a role that it has; a reader is a login or a role.
not_joined  MT004  -
  {detail}
  memory-tui shared join.
altered  42P01,42P02,42703,42704,42883,42804,23502,3F000  -
  The schema memory_tui in {where} is not as memory-tui made it: {detail}
  memory-tui shared init, as the owner of the database; else drop the schema, and publish again.
no_schema  -  -
  The database {where} has no shared index.
  memory-tui shared init, as the owner of the database.
old_schema  -  -
  The shared index in {where} is of an older version.
  memory-tui shared init, as the owner of the database.
new_schema  -  -
  The shared index in {where} is of a newer version.
  Update memory-tui.
old_server  -  -
  {where} is PostgreSQL {detail}.
  Use PostgreSQL 15 or newer.
pooled  -  -
  {where} gives {login} the rights of another login, as a pool does: everybody would have the same.
  Name the database itself, or a pool that logs in as each person.
unreachable  57P01,57P02,57P03,08000,08001,08003,08006  -
  The database {where} cannot be reached: {detail}
  See that it runs, and that host and port are right.
"""
"""Code, SQLSTATEs and words of each fault, then its sentence and the next step; a dash for none."""


def _faults() -> Iterator[Fault]:
    """Read `_TABLE`: three lines a fault."""
    lines = _TABLE.strip().split("\n")
    for head, text, next_step in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        # Two blanks part its columns, and - stands for nothing.
        code, states, words = head.split("  ")
        yield Fault(code, states.split(","), words.strip("-"), text.strip(), next_step.strip())


FAULTS = tuple(_faults())


class SharedUnavailable(MemoryTuiError):
    """The shared index cannot be used; `fault` is a code of FAULTS, or `setting`."""

    code = "shared"

    def __init__(self, fault: str, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.fault, self.code = fault, f"shared_{fault}"


def failure(access: Access, code: str, detail: str = "") -> SharedUnavailable:
    """Return the fault with this code as an error."""
    fields = {"where": access.where, "login": access.login, "detail": detail}
    fault = next(fault for fault in FAULTS if fault.code == code)
    return SharedUnavailable(code, fault.text.format(**fields), fault.next_step.format(**fields))


def explained(error: psycopg.Error, access: Access) -> SharedUnavailable:
    """Return `error` as the first fault that its SQLSTATE or, without one, its words fit; else as unreachable."""
    state = error.sqlstate or ""
    detail = " ".join((error.diag.message_primary or str(error)).split())
    for fault in FAULTS:
        if state in fault.states:
            return failure(access, fault.code, detail)
        if not state and fault.words and re.search(fault.words, detail):
            return failure(access, fault.code, detail)
    return failure(access, "unreachable", detail)


@contextmanager
def explaining(access: Access) -> Iterator[None]:
    """Raise SharedUnavailable for an error of the database."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None and not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            # No server said it: it is a mistake of this program.
            raise
        raise explained(error, access) from error


# --- where, and as whom --------------------------------------------------------------------------------------------


class Access(Discreet, frozen=True):
    """The database of a shared index, as libpq takes it; `where` names it without login and password."""

    HIDDEN = ("password",)

    parameters: Mapping[str, str]
    password: str
    where: str
    tenant: str
    name: str
    silent_seconds: int
    timeout_ms: int

    @property
    def login(self) -> str:
        """Return who logs in, as far as shared.url or the environment says."""
        return self.parameters.get("user") or os.environ.get("PGUSER") or os.environ.get("USER", "")


def _setting(message: str, next_step: str) -> SharedUnavailable:
    """Return the error for a value of the configuration that cannot be used."""
    return SharedUnavailable("setting", message, next_step)


def access(plan: Plan) -> Access:
    """Return where the shared index of `plan` is. Raises SharedUnavailable, ConfigError."""
    own = configuration.own(plan.config)
    url = str(own.value("shared.url") or "")
    secret = own.secret("shared.password")
    if not url:
        step = "Set shared.url to postgresql://LOGIN@HOST/DATABASE, and shared.name."
        raise _setting("No shared index is configured.", step)
    try:
        parameters = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except psycopg.Error:
        # What libpq says quotes the address, which may hold a password.
        raise _setting("shared.url is no address of PostgreSQL.", "Write postgresql://LOGIN@HOST/DATABASE.") from None
    if "password" in parameters:
        raise _setting("shared.url holds a password.", "Take it out: PGPASSWORD, PGPASSFILE or shared.password has it.")
    if "service" in parameters or os.environ.get("PGSERVICE"):
        raise _setting("shared.url names a service.", "Write host and database into shared.url, and unset PGSERVICE.")
    hosts = parameters.get("host") or os.environ.get("PGHOST", "")
    database = parameters.get("dbname") or os.environ.get("PGDATABASE") or parameters.get("user", "")
    return Access(
        parameters=_safe(parameters),
        password=secret.value if secret else "",
        where=f"{hosts or 'localhost'}:{parameters.get('port') or os.environ.get('PGPORT', '5432')}/{database}",
        tenant=str(own.value("shared.tenant")),
        name=str(own.value("shared.name") or ""),
        silent_seconds=own.whole("shared.silentAfterSeconds"),
        timeout_ms=own.whole("shared.askTimeoutMs"),
    )


def _safe(parameters: dict[str, str]) -> dict[str, str]:
    """Return `parameters` with TLS and a proof of the server's name, unless nothing leaves this machine.

    Raises SharedUnavailable for one that asks for less.
    """
    # Each may be a list, and libpq takes the address where both are set.
    names = [parameters.get(key) or os.environ.get(f"PG{key.upper()}", "") for key in ("host", "hostaddr")]
    if all(_here(host) for name in names for host in name.split(",")):
        return parameters
    mode = parameters.get("sslmode") or os.environ.get("PGSSLMODE") or "verify-full"
    if mode != "verify-full":
        raise _setting(f"sslmode is {mode}, which does not prove whose server it is.", "Leave sslmode out.")
    usual = Path("~/.postgresql/root.crt").expanduser()
    root = os.environ.get("PGSSLROOTCERT") or (str(usual) if usual.exists() else "system")
    return {"sslrootcert": root, **parameters, "sslmode": "verify-full", "gssencmode": "disable"}


def _here(host: str) -> bool:
    """Tell whether `host` is a socket, or an address of this machine alone."""
    try:
        # A path is a socket, and so is a name after `@`, which Linux keeps outside the file system.
        return host in ("", "localhost") or host[0] in "/@" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- connecting ----------------------------------------------------------------------------------------------------


class Vector(Struct, frozen=True):
    """A vector as float32 bytes of this machine, which pgvector takes and gives in the order of the network."""

    data: bytes


class _VectorDumper(Dumper):
    """Writes vectors as pgvector receives them."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> bytes:
        """Return what pgvector receives: the dims as 16 bits, 16 unused bits, the numbers in the network's order."""
        numbers = np.frombuffer(obj.data, "<f4")
        return len(numbers).to_bytes(2, "big") + b"\0\0" + numbers.astype(">f4").tobytes()


class _VectorLoader(Loader):
    """Reads vectors as pgvector sends them."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """Return the vector as float32 bytes of this machine; the first 4 bytes are the dims, and unused."""
        return np.frombuffer(data, ">f4", offset=4).astype("<f4").tobytes()


_USUAL = {
    "connect_timeout": "10",
    # A network that went away is noticed, not waited for.
    "tcp_user_timeout": "30000",
    "keepalives_idle": "30",
    "application_name": "memory-tui",
}
_FACTS = """
select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
    current_user <> session_user as is_pooled, r.rolsuper or r.rolbypassrls as is_unbound,
    (select extversion from pg_extension where extname = 'vector') as pgvector,
    exists (select from pg_namespace n where n.nspname = 'memory_tui') as has_schema
from pg_roles r where r.rolname = session_user
"""


def connect(access: Access) -> Connection:
    """Return a connection that commits each statement, to a server that can hold a shared index.

    Nothing is prepared on the server: a pool that gives each transaction to another session knows no statements.
    Raises SharedUnavailable.
    """
    secret: dict[str, Any] = {"password": access.password} if access.password else {}
    parameters = {**_USUAL, **access.parameters, **secret}
    with explaining(access):
        connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
    try:
        with explaining(access):
            facts = _facts(connection)
            if facts.major < OLDEST_SERVER:
                raise failure(access, "old_server", facts.version)
            if facts.is_pooled:
                raise failure(access, "pooled")
            if facts.pgvector:
                register(connection)
                if tuple(map(int, facts.pgvector.split(".")[:2])) < OLDEST_PGVECTOR:
                    raise failure(access, "no_extension", f"it has {facts.pgvector}.")
    except BaseException:
        connection.close()
        raise
    return connection


def _facts(connection: Connection) -> Any:  # noqa: ANN401 - a row with the names of `_FACTS`
    """Return what matters of a server and the login there."""
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute(_FACTS).fetchone()


def register(connection: Connection) -> None:
    """Have `connection` know pgvector's type; nothing is done where the database has no pgvector."""
    if (info := TypeInfo.fetch(connection, "vector")) is None:
        return
    info.register(connection)
    # psycopg takes the number of the type from the class, and each database has another one.
    dumper = type("VectorDumper", (_VectorDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(Vector, dumper)
    connection.adapters.register_loader(info.oid, _VectorLoader)


@contextmanager
def joined(access: Access) -> Iterator[Connection]:
    """Yield a connection to a shared index of this program's version. Raises SharedUnavailable."""
    with connect(access) as connection, explaining(access):
        if not _facts(connection).has_schema:
            raise failure(access, "no_schema")
        row = connection.execute("select version from memory_tui.about").fetchone()
        if row is None or row[0] != VERSION:
            raise failure(access, "new_schema" if row and row[0] > VERSION else "old_schema")
        yield connection


def unbound(connection: Connection, access: Access) -> str:
    """Return what a person should know of a login that no row right binds; empty for any other one."""
    if not _facts(connection).is_unbound:
        return ""
    return f"{access.login} reads everything in {access.where}: it is a superuser, or has BYPASSRLS. Use another login."


# --- the schema ------------------------------------------------------------------------------------------------------

MIGRATIONS: dict[int, str] = {}
"""What an older schema needs before `schema.sql` is run again, by the version that it leads to."""
_LOCK = 0x6D747569
"""Of two that make the schema at once, one waits."""


def schema_statements(connection: Connection, access: Access, admitted: tuple[str, ...] = ()) -> list[str]:
    """Return what `make_schema` would run now; the logins `admitted` may use the shared index.

    Raises SharedUnavailable.
    """
    with explaining(access):
        # The schema of the extension vector, whether the role of members is there, who owns our schema, who asks, the
        # table that has its version, and those of the logins that are not there.
        row = connection.execute(
            "select (select extnamespace::regnamespace::text from pg_extension where extname = 'vector'), "
            "exists (select from pg_roles where rolname = %s), "
            "(select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'memory_tui'), current_user, "
            "to_regclass('memory_tui.about')::text, "
            "(select string_agg(name, ', ') from unnest(%s::text[]) name where to_regrole(quote_ident(name)) is null)",
            (MEMBERS, list(admitted)),
        ).fetchone()
        assert row is not None
        vector, has_role, owner, user, about, unknown_logins = row
        if unknown_logins:
            raise failure(access, "name", f"there is no login or role {unknown_logins}.")
        if owner not in (None, user):
            raise failure(access, "no_right", f"the schema memory_tui belongs to {owner}.")
        version = connection.execute("select version from memory_tui.about").fetchone() if about else None
    if version and version[0] > VERSION:
        raise failure(access, "new_schema")
    # A schema that is made now needs no migration.
    old_version = version[0] if version else VERSION
    text = files("memory_tui.shared").joinpath("schema.sql").read_text("utf-8")
    text = text.replace("{vector}", vector or "public").replace("{version}", str(VERSION))
    return [
        *(() if vector else ("create extension vector schema public;",)),
        *(() if has_role else (f"create role {MEMBERS} nologin;",)),
        *(MIGRATIONS[step] for step in range(old_version + 1, VERSION + 1) if step in MIGRATIONS),
        text,
        *(
            sql.SQL("grant {} to {};").format(sql.Identifier(MEMBERS), sql.Identifier(login)).as_string(connection)
            for login in admitted
        ),
    ]


def make_schema(connection: Connection, access: Access, admitted: tuple[str, ...] = ()) -> None:
    """Make the schema, or bring it up to date, all or nothing. Raises SharedUnavailable."""
    with explaining(access), connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        for statement in schema_statements(connection, access, admitted):
            # Without parameters several statements go at once, as the owner could paste them.
            connection.execute(statement.encode())
    register(connection)
