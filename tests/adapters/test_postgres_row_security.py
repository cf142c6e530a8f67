"""Row security, attacked with the application's own role and password.

What it doesn't guard against is a host that acts for whom it shouldn't: the application says for
whom it acts, and is believed (adr/0018).
"""

from collections.abc import Generator, Iterator
from uuid import UUID

import psycopg
import pytest
from eventsourcing.persistence import StoredEvent
from psycopg import sql
from tests.adapters.postgres_server import (
    APPLICATION,
    AUDITOR,
    OWNER,
    FreshDatabase,
    server,
)

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.migrations.rights import OWNED, SEQUENCES
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.domain.errors import InvalidInputError, StoreForbiddenError

CANARY = b"canary of another tenant"
THEIRS = UUID(int=1)
MINE = UUID(int=2)
ACTING = (
    "SELECT set_config('remembrancer.tenant', 'acme', false),"
    " set_config('remembrancer.owner', 'ana', false), set_config('remembrancer.reach', %s, false),"
    " set_config('search_path', 'remembrancer, pg_temp', false)"
)
PLANT = (
    "INSERT INTO stored_events (tenant, owner, originator_id, originator_version, topic, state,"
    " predecessor_hash, event_hash) VALUES (%s, %s, %s, %s, 't', 's',"
    " decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'))"
)


@pytest.fixture(scope="module")
def fresh() -> Iterator[FreshDatabase]:
    """Lend a database where two tenants have an event, an owner and a snapshot each."""
    with server().database() as fresh, Database.open(fresh.app) as database:
        for tenant, owner, stream, state in (
            ("globex", "gus", THEIRS, CANARY),
            ("acme", "ben", UUID(int=3), CANARY),
            ("acme", "ana", MINE, b"mine"),
        ):
            recorder = PostgresApplicationRecorder(database=database, tenant=tenant, owner=owner)
            recorder.insert_events([StoredEvent(stream, 1, "t", state)])
            with database.write(tenant=tenant, owner=owner) as connection:
                connection.execute(
                    "INSERT INTO stored_snapshots VALUES (%s, %s, %s, 1, 't', %s)",
                    (tenant, owner, stream, state),
                )
        yield fresh


@pytest.fixture
def attacker(fresh: FreshDatabase) -> Generator[psycopg.Connection]:
    """Return a session of the application's role that acts for ana of acme."""
    with psycopg.connect(fresh.app, autocommit=True) as connection:
        connection.execute(ACTING, ("",))
        yield connection


@pytest.fixture
def stranger(fresh: FreshDatabase) -> Generator[psycopg.Connection]:
    """Return a session of the application's role that has said nothing."""
    with psycopg.connect(fresh.app, autocommit=True) as connection:
        connection.execute("SET search_path = remembrancer")
        yield connection


@pytest.fixture
def database(fresh: FreshDatabase) -> Generator[Database]:
    with Database.open(fresh.app) as database:
        yield database


def count(connection: psycopg.Connection, table: str) -> int:
    rows = connection.execute(sql.SQL("SELECT FROM {}").format(sql.Identifier(table)))
    return rows.rowcount


# -- Who says nothing ----------------------------------------------------------


@pytest.mark.parametrize("table", OWNED)
def test_who_says_nothing_sees_nothing(stranger: psycopg.Connection, table: str) -> None:
    assert count(stranger, table) == 0


@pytest.mark.parametrize("value", ["", " ", "acme,globex", "%", "acme' OR 'a'='a"])
def test_odd_names_are_nobodys(stranger: psycopg.Connection, value: str) -> None:
    stranger.execute("SELECT set_config('remembrancer.tenant', %s, false)", (value,))
    stranger.execute("SELECT set_config('remembrancer.reach', 'tenant', false)")

    assert count(stranger, "stored_events") == 0


def test_a_transactions_settings_leave_nothing_that_opens_a_row(
    stranger: psycopg.Connection,
) -> None:
    """They read as empty texts afterwards, which are nobody's name."""
    with stranger.transaction():
        stranger.execute(
            "SELECT set_config('remembrancer.tenant', 'acme', true),"
            " set_config('remembrancer.reach', 'tenant', true)"
        )
        inside = count(stranger, "stored_events")

    left = stranger.execute("SELECT current_setting('remembrancer.tenant', true)").fetchone()
    assert (inside, left) == (2, ("",))
    assert count(stranger, "stored_events") == 0


@pytest.mark.parametrize(("tenant", "owner"), [("", ""), ("acme", ""), ("", "ana")])
def test_a_row_of_nobody_can_not_be_planted(
    stranger: psycopg.Connection, tenant: str, owner: str
) -> None:
    """One with empty labels would match settings that are over."""
    for name, value in (("tenant", tenant), ("owner", owner)):
        stranger.execute("SELECT set_config(%s, %s, false)", (f"remembrancer.{name}", value))

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        stranger.execute(PLANT, (tenant, owner, UUID(int=9), 1))


# -- Reading what is another's -------------------------------------------------


def test_only_ones_own_rows_are_seen(attacker: psycopg.Connection) -> None:
    rows = attacker.execute("SELECT tenant, owner FROM stored_events").fetchall()

    assert rows == [("acme", "ana")]


def test_the_reach_of_a_tenant_ends_with_it(attacker: psycopg.Connection) -> None:
    attacker.execute(ACTING, ("tenant",))

    rows = attacker.execute("SELECT tenant, owner FROM stored_events ORDER BY 2").fetchall()
    assert rows == [("acme", "ana"), ("acme", "ben")]


def test_a_function_in_the_condition_is_not_shown_others_rows(
    attacker: psycopg.Connection,
) -> None:
    """As cheap as it pretends to be: the policy is asked first."""
    noticed = list[str]()
    attacker.add_notice_handler(lambda notice: noticed.append(str(notice.message_primary)))
    attacker.execute(
        "CREATE FUNCTION pg_temp.spy(bytea) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
        " AS $$ BEGIN RAISE NOTICE '%', encode($1, 'escape'); RETURN true; END $$"
    )

    attacker.execute("SELECT FROM stored_events WHERE pg_temp.spy(state)")

    assert noticed == ["mine"]


def test_a_function_can_not_pretend_to_leak_nothing(attacker: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="leakproof"):
        attacker.execute(
            "CREATE FUNCTION pg_temp.spy(bytea) RETURNS boolean LANGUAGE sql LEAKPROOF"
            " AS 'SELECT true'"
        )


def test_an_error_in_the_condition_tells_of_ones_own_rows_alone(
    attacker: psycopg.Connection,
) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as told:
        attacker.execute("SELECT FROM stored_events WHERE encode(state, 'escape')::int > 0")

    assert "mine" in str(told.value)
    assert "canary" not in str(told.value)


def test_copying_out_copies_ones_own_rows(attacker: psycopg.Connection) -> None:
    with attacker.cursor().copy("COPY stored_snapshots TO STDOUT") as copy:
        lines = list(copy)

    assert len(lines) == 1


def test_the_plan_shows_nothing_of_others_rows(attacker: psycopg.Connection) -> None:
    plan = attacker.execute(
        "EXPLAIN (ANALYZE, VERBOSE, BUFFERS) SELECT * FROM stored_events WHERE state = %s",
        (CANARY,),
        prepare=False,
    ).fetchall()

    assert "globex" not in str(plan)
    assert "gus" not in str(plan)


def test_statistics_of_the_columns_are_hidden(
    fresh: FreshDatabase, attacker: psycopg.Connection
) -> None:
    with psycopg.connect(fresh.superuser, autocommit=True) as superuser:
        superuser.execute("ANALYZE remembrancer.stored_events")

    shown = attacker.execute("SELECT * FROM pg_stats WHERE tablename = 'stored_events'").fetchall()

    assert shown == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.execute("SELECT * FROM pg_statistic")


def test_security_that_is_turned_off_closes_the_table(attacker: psycopg.Connection) -> None:
    attacker.execute("SET row_security = off")

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        attacker.execute("SELECT * FROM stored_events")


def test_a_unique_key_tells_nothing_of_another_tenant(attacker: psycopg.Connection) -> None:
    """It isn't said to be there already: it isn't, for this tenant."""
    with attacker.transaction(force_rollback=True):
        attacker.execute(PLANT, ("acme", "ana", THEIRS, 1))


# -- Writing what is another's -------------------------------------------------


@pytest.mark.parametrize(
    ("tenant", "owner"), [("globex", "gus"), ("globex", "ana"), ("acme", "ben")]
)
@pytest.mark.parametrize("reach", ["", "tenant"])
def test_nothing_can_be_planted_with_anothers_name(
    attacker: psycopg.Connection, tenant: str, owner: str, reach: str
) -> None:
    attacker.execute(ACTING, (reach,))

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        attacker.execute(PLANT, (tenant, owner, UUID(int=9), 1))


def test_a_row_can_not_be_given_away(attacker: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        attacker.execute("UPDATE owners SET tenant = 'globex'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        attacker.execute("UPDATE owners SET owner = 'ben' || owner")


def test_deleting_deletes_ones_own_rows(attacker: psycopg.Connection) -> None:
    with attacker.transaction(force_rollback=True):
        assert attacker.execute("DELETE FROM stored_snapshots").rowcount == 1


def test_copying_in_is_refused(attacker: psycopg.Connection) -> None:
    copying = attacker.cursor().copy("COPY stored_snapshots FROM STDIN")

    with pytest.raises(psycopg.errors.FeatureNotSupported, match="row-level security"), copying:
        pass


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stored_events SET state = ''",
        "DELETE FROM stored_events",
        "TRUNCATE stored_events",
        "UPDATE stored_events SET position = 1",
        "INSERT INTO stored_events (position) VALUES (1)",
        "ALTER TABLE stored_events DISABLE TRIGGER ALL",
        "ALTER TABLE stored_events DISABLE ROW LEVEL SECURITY",
        "DROP POLICY application ON stored_events",
        "CREATE POLICY mine ON stored_events USING (true)",
        "DROP TABLE stored_events",
        "CREATE TRIGGER mine BEFORE INSERT ON stored_events EXECUTE FUNCTION refuse_change()",
        "CREATE TABLE remembrancer.mine ()",
        "CREATE FUNCTION remembrancer.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "SELECT setval('event_positions', 1)",
        "ALTER SEQUENCE event_positions RESTART",
        "SET session_replication_role = replica",
        "UPDATE alembic_version SET version_num = '0000'",
        f"SET ROLE {OWNER}",
        f"SET ROLE {AUDITOR}",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "COPY stored_events TO PROGRAM 'cat'",
        "SELECT pg_read_file('PG_VERSION')",
    ],
)
def test_the_application_may_not(attacker: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.execute(sql.SQL(statement))


def test_the_log_is_kept_even_from_its_owner(fresh: FreshDatabase) -> None:
    """A trigger, since an owner has all rights; by hand it can be taken away."""
    with psycopg.connect(fresh.superuser, autocommit=True) as superuser:
        for statement in ("UPDATE {} SET state = ''", "DELETE FROM {}", "TRUNCATE {}"):
            with pytest.raises(psycopg.errors.RestrictViolation, match="never changed"):
                superuser.execute(
                    sql.SQL(statement).format(sql.Identifier("remembrancer", "stored_events"))
                )


def test_the_owner_sees_no_row(fresh: FreshDatabase) -> None:
    with psycopg.connect(fresh.owner, autocommit=True) as owner:
        owner.execute(ACTING, ("tenant",))

        assert [count(owner, table) for table in OWNED] == [0] * len(OWNED)
        owner.execute("SET row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            count(owner, "stored_events")


# -- Names that lead astray ----------------------------------------------------


def test_a_temporary_table_is_not_taken_for_ours(database: Database) -> None:
    recorder = PostgresApplicationRecorder(database=database, tenant="acme", owner="ana")
    with database._sessions.app.lent() as connection:
        connection.execute("CREATE TEMP TABLE stored_events (LIKE remembrancer.stored_events)")

    found = recorder.select_events(MINE)

    assert [one.state for one in found] == [b"mine"]


def test_the_schema_has_no_function_that_acts_for_its_owner(fresh: FreshDatabase) -> None:
    with psycopg.connect(fresh.superuser) as superuser:
        found = superuser.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'remembrancer'::regnamespace"
            " AND (prosecdef OR proleakproof)"
        ).fetchall()

    assert found == []


def test_the_schema_has_no_view_that_reads_for_its_owner(fresh: FreshDatabase) -> None:
    with psycopg.connect(fresh.superuser) as superuser:
        found = superuser.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'remembrancer'::regnamespace"
            " AND relkind IN ('v', 'm')"
            " AND NOT coalesce('security_invoker=true' = ANY (reloptions), false)"
        ).fetchall()

    assert found == []


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_can_not_be_set_back(fresh: FreshDatabase, sequence: str) -> None:
    with psycopg.connect(fresh.superuser) as superuser:
        may = superuser.execute(
            "SELECT has_sequence_privilege(%s, %s, 'UPDATE')",
            (APPLICATION, f"remembrancer.{sequence}"),
        ).fetchone()

    assert may == (False,)


# -- Through the adapters ------------------------------------------------------


def test_another_tenants_stream_is_an_empty_one(database: Database) -> None:
    recorder = PostgresApplicationRecorder(database=database)

    with database.acting_for("acme", "ana"):
        assert recorder.select_events(THEIRS) == []
        assert recorder.select_events(UUID(int=3)) == []
        assert [one.originator_id for one in recorder.select_notifications(None, 9)] == [MINE]


def test_who_acts_for_one_tenant_may_not_name_another(database: Database) -> None:
    recorder = PostgresApplicationRecorder(database=database, tenant="globex", owner="gus")

    with database.acting_for("acme", "ana"), pytest.raises(InvalidInputError):
        recorder.select_events(THEIRS)


def test_a_row_with_anothers_name_is_refused_in_our_words(database: Database) -> None:
    """What no adapter should try: it is caught, and the message has nothing of the row."""
    with (
        pytest.raises(StoreForbiddenError) as refused,
        database.write(tenant="acme", owner="ana") as connection,
    ):
        connection.execute(PLANT, ("globex", "gus", UUID(int=9), 1))

    assert "globex" not in str(refused.value) + str(refused.value.__cause__)


def test_an_auditor_reads_all_and_writes_nothing(fresh: FreshDatabase) -> None:
    with psycopg.connect(fresh.auditor, autocommit=True) as auditor:
        auditor.execute(ACTING, ("",))

        assert count(auditor, "stored_events") == 3
        for statement in ("DELETE FROM stored_events", "DELETE FROM owners"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                auditor.execute(sql.SQL(statement))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            auditor.execute(PLANT, ("acme", "ana", UUID(int=9), 1))
