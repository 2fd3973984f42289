"""Makes the schema of a shared index, or brings it up to date, as the owner of the database."""

from __future__ import annotations

from importlib.resources import files

from psycopg import sql

from memory_tui.shared.connection import MEMBERS, VERSION, Access, Connection, explaining, failure, register

MIGRATIONS: dict[int, str] = {}
"""What an older schema needs before `schema.sql` is run again, by the version that it leads to."""
_LOCK = 0x6D747569
"""Of two that make the schema at once, one waits."""


def statements(connection: Connection, access: Access, admitted: tuple[str, ...] = ()) -> list[str]:
    """Return what `init` would run now; the logins `admitted` may use the shared index. Raises SharedUnavailable."""
    with explaining(access):
        row = connection.execute(
            "select (select extnamespace::regnamespace::text from pg_extension where extname = 'vector'), "
            "exists (select from pg_roles where rolname = %s), "
            "(select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'memory_tui'), current_user, "
            "to_regclass('memory_tui.about')::text, "
            "(select string_agg(name, ', ') from unnest(%s::text[]) name where to_regrole(quote_ident(name)) is null)",
            (MEMBERS, list(admitted)),
        ).fetchone()
        assert row is not None
        vector, has_role, owner, user, about, strangers = row
        if strangers:
            raise failure(access, "name", f"there is no login or role {strangers}.")
        if owner not in (None, user):
            raise failure(access, "no_right", f"the schema memory_tui belongs to {owner}.")
        version = connection.execute("select version from memory_tui.about").fetchone() if about else None
    if version and version[0] > VERSION:
        raise failure(access, "new_schema")
    has = version[0] if version else VERSION
    text = files("memory_tui.shared").joinpath("schema.sql").read_text("utf-8")
    text = text.replace("{vector}", vector or "public").replace("{version}", str(VERSION))
    return [
        *(() if vector else ("create extension vector schema public;",)),
        *(() if has_role else (f"create role {MEMBERS} nologin;",)),
        *(MIGRATIONS[step] for step in range(has + 1, VERSION + 1) if step in MIGRATIONS),
        text,
        *(
            sql.SQL("grant {} to {};").format(sql.Identifier(MEMBERS), sql.Identifier(login)).as_string(connection)
            for login in admitted
        ),
    ]


def init(connection: Connection, access: Access, admitted: tuple[str, ...] = ()) -> None:
    """Make the schema, or bring it up to date, all or nothing. Raises SharedUnavailable."""
    with explaining(access), connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        for statement in statements(connection, access, admitted):
            # Without parameters several statements go at once, as the owner could paste them.
            connection.execute(statement.encode())
    register(connection)
