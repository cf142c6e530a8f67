"""Which roles and schemas a memory refuses to be opened on, and what it says (case 17)."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tests.adapters.postgres_server import AUDITOR, OWNER, PASSWORD, FreshDatabase, server

from remembrancer.adapters.postgres.database import Database
from remembrancer.domain.errors import SettingsError, StoreNewerError

ROLE = f"remembrancer_odd_{os.getpid()}"
"""Of this process: roles are for all databases of a server."""


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with server().database() as fresh:
        yield fresh


@pytest.fixture
def role(fresh: FreshDatabase) -> Iterator[str]:
    """Lend a role with the application's rights, to which a test may give any power."""
    _run(fresh, f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}' IN ROLE remembrancer_app")
    yield make_conninfo(fresh.app, user=ROLE)
    _run(fresh, f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def _run(fresh: FreshDatabase, script: str) -> None:
    with psycopg.connect(fresh.superuser) as connection:
        connection.execute(sql.SQL(script))


def refusal(dsn: str, *, reader_dsn: str | None = None) -> str:
    with pytest.raises(SettingsError) as refused, Database.open(dsn, reader_dsn=reader_dsn):
        pass
    return str(refused.value)


def test_a_role_with_the_applications_rights_alone_is_taken(role: str) -> None:
    with Database.open(role) as database, database.write(tenant="acme", owner="ana"):
        pass


@pytest.mark.parametrize(
    ("power", "says"),
    [
        ("SUPERUSER", "is a superuser"),
        ("BYPASSRLS", "has BYPASSRLS"),
        ("CREATEROLE", "has CREATEROLE"),
        ("REPLICATION", "has REPLICATION"),
    ],
)
def test_a_role_that_row_security_does_not_bind_is_refused(
    fresh: FreshDatabase, role: str, power: str, says: str
) -> None:
    _run(fresh, f"ALTER ROLE {ROLE} {power}")

    said = refusal(role)

    assert says in said
    assert "name the application's role" in said


def test_the_owner_of_the_tables_is_refused(fresh: FreshDatabase) -> None:
    assert "owns table" in refusal(fresh.owner)


def test_a_role_that_can_become_one_of_those_is_refused(fresh: FreshDatabase, role: str) -> None:
    """SET ROLE is one statement away."""
    _run(fresh, f"GRANT {OWNER} TO {ROLE}")

    assert f"is a member of role {OWNER}" in refusal(role)


def test_the_auditors_role_is_not_taken_for_the_applications(
    fresh: FreshDatabase, role: str
) -> None:
    assert "every tenant's rows" in refusal(fresh.auditor)

    _run(fresh, f"GRANT {AUDITOR} TO {ROLE}")
    assert "every tenant's rows" in refusal(role)


@pytest.mark.parametrize("which", ["app", "owner", "superuser"])
def test_a_reader_that_may_write_is_refused(fresh: FreshDatabase, which: str) -> None:
    said = refusal(fresh.app, reader_dsn=getattr(fresh, which))

    assert "store.reader_dsn" in said
    assert "name the auditor's role" in said


@pytest.mark.parametrize("how", ["DISABLE ROW LEVEL SECURITY", "NO FORCE ROW LEVEL SECURITY"])
def test_a_table_without_forced_row_security_is_named(fresh: FreshDatabase, how: str) -> None:
    _run(fresh, f"ALTER TABLE remembrancer.stored_events {how}")

    assert "isn't forced on table stored_events" in refusal(fresh.app)


def test_a_database_without_schema_says_what_to_run() -> None:
    empty = server().empty_database()
    try:
        assert "run `remembrancer migrate up`" in refusal(empty.app)
    finally:
        server().drop(empty)


def test_a_schema_that_is_behind_says_what_to_run(fresh: FreshDatabase) -> None:
    _run(fresh, "UPDATE remembrancer.alembic_version SET version_num = '0000'")

    said = refusal(fresh.app)

    assert "is at revision 0000" in said
    assert "run `remembrancer migrate up`" in said


def test_a_schema_of_a_newer_release_is_left_alone(fresh: FreshDatabase) -> None:
    _run(fresh, "UPDATE remembrancer.alembic_version SET version_num = '9999'")

    with pytest.raises(StoreNewerError) as refused, Database.open(fresh.app):
        pass

    assert refused.value.found == 9999


def test_what_is_refused_leaves_no_connection(fresh: FreshDatabase) -> None:
    refusal(fresh.owner)

    with psycopg.connect(fresh.superuser) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND usename = %s",
            (OWNER,),
        ).fetchone()
    assert left == (0,)
