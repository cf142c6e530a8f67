"""The schema: how it is made, written down, found, and what it forbids whom."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql
from tests.adapters.postgres_server import (
    APPLICATION,
    AUDITOR,
    OWNER,
    FreshDatabase,
    server,
)

from remembrancer.adapters.postgres.migrations import migrate
from remembrancer.adapters.postgres.migrations.head import HEAD
from remembrancer.adapters.postgres.migrations.rights import COMMON, OWNED, SECRET
from remembrancer.adapters.postgres.migrations.row_security import Roles
from remembrancer.domain.errors import MigrationRefusedError, SettingsError, StoreForbiddenError

ROLES = Roles(application=APPLICATION, auditor=AUDITOR)
TABLES = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'remembrancer'::regnamespace AND relkind IN ('r', 'p')
"""
POLICIES = """
    SELECT tablename::text, policyname::text, roles::text[], cmd, qual, with_check FROM pg_policies
    WHERE schemaname = 'remembrancer' ORDER BY 1, 2
"""
SHAPE = """
    SELECT format('%I.%I %s %s %s %s', relname, attname, format_type(atttypid, atttypmod),
        attnotnull, relrowsecurity AND relforcerowsecurity, relacl)
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'remembrancer'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'remembrancer'::regnamespace
    UNION ALL
    SELECT pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger
    JOIN pg_class ON tgrelid = pg_class.oid
    WHERE relnamespace = 'remembrancer'::regnamespace AND NOT tgisinternal
    ORDER BY 1
"""


@pytest.fixture
def empty() -> Iterator[FreshDatabase]:
    empty = server().empty_database()
    yield empty
    server().drop(empty)


@pytest.fixture(scope="module")
def made() -> Iterator[psycopg.Connection]:
    """As superuser, in a database with all migrations applied; nothing is written there."""
    with server().database() as fresh, psycopg.connect(fresh.superuser) as connection:
        yield connection


def test_the_schema_is_made_once(empty: FreshDatabase) -> None:
    before = migrate.status(empty.owner)
    migrate.up(empty.owner, roles=ROLES)
    migrate.up(empty.owner, roles=ROLES)

    assert before == migrate.Status(None, HEAD)
    assert migrate.status(empty.owner) == migrate.Status(HEAD, HEAD)


def test_two_migrations_at_once_make_it_once(empty: FreshDatabase) -> None:
    with ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(migrate.up, empty.owner, roles=ROLES) for _ in range(4)]:
            one.result()

    assert migrate.status(empty.owner).found == HEAD


def test_what_is_written_down_makes_the_same(
    empty: FreshDatabase, made: psycopg.Connection
) -> None:
    script = io.StringIO()
    migrate.write_down(script, roles=ROLES)
    with psycopg.connect(empty.owner, autocommit=True) as connection:
        connection.execute(script.getvalue())

        assert connection.execute(SHAPE).fetchall() == made.execute(SHAPE).fetchall()
    assert migrate.status(empty.owner).found == HEAD


def test_the_head_is_the_last_revision() -> None:
    assert migrate.script_directory().get_heads() == [HEAD]


def test_revisions_form_one_line_of_numbers() -> None:
    """They are compared as numbers when a schema turns out to be older or newer."""
    revisions = [one.revision for one in migrate.script_directory().walk_revisions()]

    assert revisions == [f"{number:04}" for number in range(len(revisions), 0, -1)]


def test_an_unknown_revision_is_refused(empty: FreshDatabase) -> None:
    with pytest.raises(SettingsError, match="revision"):
        migrate.up(empty.owner, roles=ROLES, to="9999")
    assert migrate.status(empty.owner).found is None


def test_a_role_that_may_not_make_a_schema_is_refused(empty: FreshDatabase) -> None:
    with pytest.raises(StoreForbiddenError):
        migrate.up(empty.app, roles=ROLES)


def test_a_role_that_can_not_be_made_is_named(empty: FreshDatabase) -> None:
    with pytest.raises(MigrationRefusedError, match="role nobody_here is missing"):
        migrate.up(empty.owner, roles=Roles(application="nobody_here", auditor=AUDITOR))

    assert migrate.status(empty.owner).found is None


def test_missing_roles_are_made_by_who_may(empty: FreshDatabase) -> None:
    """Such names need quoting, and none of them may do more than connect."""
    roles = Roles(application='o"dd %app:x', auditor="odd {auditor}")
    try:
        migrate.up(empty.superuser, roles=roles)

        with psycopg.connect(empty.superuser) as connection:
            made = connection.execute(
                "SELECT rolname, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb"
                " OR rolreplication FROM pg_roles WHERE rolname IN (%s, %s)",
                (roles.application, roles.auditor),
            ).fetchall()
        assert sorted(made) == [(roles.application, False), (roles.auditor, False)]
    finally:
        for role in (roles.application, roles.auditor):
            with psycopg.connect(empty.superuser) as connection:
                name = sql.Identifier(role)
                connection.execute(sql.SQL("DROP OWNED BY {}").format(name))
                connection.execute(sql.SQL("DROP ROLE {}").format(name))


# -- What is forbidden whom ----------------------------------------------------


def test_every_table_is_listed(made: psycopg.Connection) -> None:
    tables = {name for (name,) in made.execute(TABLES)}

    assert tables == OWNED.keys() | COMMON.keys()
    assert not OWNED.keys() & COMMON.keys()


@pytest.mark.parametrize("table", OWNED)
def test_row_security_is_forced_on_an_owned_table(made: psycopg.Connection, table: str) -> None:
    forced = made.execute(
        "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE oid = %s::regclass",
        (f"remembrancer.{table}",),
    ).fetchone()
    policies = [row[1:4] for row in made.execute(POLICIES) if row[0] == table]

    assert forced == (True,)
    assert policies == [
        ("application", [APPLICATION], "ALL"),
        ("auditor", [AUDITOR], "SELECT"),
    ]


def test_all_owned_tables_have_the_same_policies(made: psycopg.Connection) -> None:
    assert len({row[1:] for row in map(_hashable, made.execute(POLICIES))}) == 2


@pytest.mark.parametrize("table", OWNED)
def test_keys_of_an_owned_table_begin_with_the_tenant(
    made: psycopg.Connection, table: str
) -> None:
    """So that a unique violation tells of nobody else, and a table can be spread by tenant."""
    firsts = made.execute(
        "SELECT attname::text FROM pg_index JOIN pg_attribute"
        " ON attrelid = indrelid AND attnum = indkey[0]"
        " WHERE indrelid = %s::regclass AND indisunique",
        (f"remembrancer.{table}",),
    ).fetchall()

    assert firsts
    assert set(firsts) == {("tenant",)}


@pytest.mark.parametrize("table", [*OWNED, *COMMON])
def test_an_auditor_reads_all_but_secrets_and_writes_nothing(
    made: psycopg.Connection, table: str
) -> None:
    reads, writes = made.execute(
        "SELECT has_table_privilege(%(role)s, %(table)s, 'SELECT'),"
        " has_table_privilege(%(role)s, %(table)s, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')"
        " OR has_any_column_privilege(%(role)s, %(table)s, 'INSERT, UPDATE')",
        {"role": AUDITOR, "table": f"remembrancer.{table}"},
    ).fetchone() or (None, None)

    assert (reads, writes) == (table not in SECRET, False)


def test_the_vector_index_that_answers_is_not_dropped() -> None:
    """Reindexing drops others with the application's role, and so needs the right to."""
    adding = (
        "INSERT INTO remembrancer.vector_indexes (embedding_tuple, state, position, place)"
        " VALUES ('{}', %s, 0, 'local')"
    )
    with server().database() as fresh, psycopg.connect(fresh.app, autocommit=True) as application:
        for state in ("active", "building"):
            application.execute(adding, (state,))

        with pytest.raises(psycopg.errors.RestrictViolation, match="answers"):
            application.execute("DELETE FROM remembrancer.vector_indexes")
        application.execute("DELETE FROM remembrancer.vector_indexes WHERE state = 'building'")
        left = application.execute("SELECT state FROM remembrancer.vector_indexes").fetchall()

    assert left == [("active",)]


def test_nobody_else_may_do_anything(made: psycopg.Connection) -> None:
    """Whatever rights there are: to the three roles."""
    granted = made.execute(
        "SELECT DISTINCT pg_get_userbyid(grantee)::text FROM pg_class, aclexplode(relacl)"
        " WHERE relnamespace = 'remembrancer'::regnamespace"
    ).fetchall()

    assert {role for (role,) in granted} <= {OWNER, APPLICATION, AUDITOR}


def _hashable(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
