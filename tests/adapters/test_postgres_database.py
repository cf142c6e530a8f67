"""Transactions, scopes and connections of the PostgreSQL database."""

import os
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.adapters.postgres_server import FreshDatabase, server

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.domain.errors import (
    InvalidInputError,
    SettingsError,
    StoreClosedError,
    StoreForbiddenError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

IMPATIENT = Limits(connections=2, connection_wait_s=0.2, lock_timeout_s=0.2, statement_timeout_s=1)
NOTE = "INSERT INTO stored_snapshots VALUES (%s, %s, gen_random_uuid(), 1, %s, '')"
WRONG = "INSERT INTO stored_snapshots VALUES (%s, %s, gen_random_uuid(), -1, '', '')"


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with server().database() as fresh:
        yield fresh


@pytest.fixture
def database(fresh: FreshDatabase) -> Generator[Database]:
    with Database.open(fresh.app, reader_dsn=fresh.auditor, limits=IMPATIENT) as database:
        yield database


def note(database: Database, text: str, *, tenant: str = "acme", owner: str = "ana") -> None:
    with database.write(tenant=tenant, owner=owner) as connection:
        connection.execute(NOTE, (tenant, owner, text))


def notes(database: Database, *, tenant: str = "acme", owner: str | None = None) -> list[str]:
    with database.read(tenant=tenant, owner=owner) as connection:
        return _texts(connection)


def _texts(connection: Connection) -> list[str]:
    return [
        text for (text,) in connection.execute("SELECT topic FROM stored_snapshots ORDER BY 1")
    ]


# -- For whom ------------------------------------------------------------------


def test_nobody_named_is_refused_before_anything_is_sent(database: Database) -> None:
    with pytest.raises(InvalidInputError, match="name the tenant"), database.read():
        pass
    with pytest.raises(InvalidInputError, match="name the tenant"), database.write():
        pass
    with pytest.raises(InvalidInputError, match="name the owner"), database.write(tenant="acme"):
        pass


def test_a_call_may_name_nobody_else_than_its_block(database: Database) -> None:
    with database.acting_for("acme", "ana"):
        with pytest.raises(InvalidInputError, match="tenant"), database.read(tenant="globex"):
            pass
        with pytest.raises(InvalidInputError, match="owner"), database.write(owner="ben"):
            pass


def test_a_tenants_rows_are_seen_by_owner_or_all(database: Database) -> None:
    note(database, "ana's")
    note(database, "ben's", owner="ben")
    note(database, "another tenant's", tenant="globex")

    with database.acting_for("acme"), database.read() as connection:
        assert _texts(connection) == ["ana's", "ben's"]
    with database.acting_for("acme", "ben"), database.read() as connection:
        assert _texts(connection) == ["ben's"]
    with database.acting_for("acme"), database.read(owner="ana") as connection:
        assert _texts(connection) == ["ana's"]


def test_the_innermost_block_counts_and_ends(database: Database) -> None:
    note(database, "ana's")
    note(database, "another tenant's", tenant="globex", owner="gus")

    with database.acting_for("acme", "ana"):
        with database.acting_for("globex", "gus"), database.read() as connection:
            assert _texts(connection) == ["another tenant's"]
        with database.read() as connection:
            assert _texts(connection) == ["ana's"]


def test_one_transaction_may_write_for_several_owners(database: Database) -> None:
    with database.begin():
        note(database, "ana's")
        note(database, "another tenant's", tenant="globex", owner="gus")

        assert notes(database) == ["ana's"]
    assert notes(database, tenant="globex") == ["another tenant's"]


def test_blocks_belong_to_their_thread(database: Database) -> None:
    with database.acting_for("acme", "ana"), ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(lambda: database.whose)

        assert elsewhere.result() is None


def test_over_all_tenants_everything_is_seen_and_nothing_written(database: Database) -> None:
    note(database, "ana's")
    note(database, "another tenant's", tenant="globex", owner="gus")

    with database.over_all_tenants(), database.read() as connection:
        assert _texts(connection) == ["ana's", "another tenant's"]
    with (
        pytest.raises(StoreReadOnlyError),
        database.over_all_tenants(),
        database.read() as connection,
    ):
        connection.execute("DELETE FROM stored_snapshots")


def test_reading_over_all_tenants_needs_the_auditors_role(fresh: FreshDatabase) -> None:
    with (
        Database.open(fresh.app) as database,
        pytest.raises(SettingsError, match="reader_dsn"),
        database.over_all_tenants(),
    ):
        pass


# -- Transactions --------------------------------------------------------------


def test_another_owner_is_written_for_meanwhile(database: Database) -> None:
    with database.write(tenant="acme", owner="ana"), ThreadPoolExecutor(1) as pool:
        pool.submit(note, database, "ben's", owner="ben").result(5)

    assert notes(database) == ["ben's"]


def test_the_same_owner_is_waited_for_and_not_for_ever(database: Database) -> None:
    with database.write(tenant="acme", owner="ana"), ThreadPoolExecutor(1) as pool:
        other = pool.submit(note, database, "second")

        with pytest.raises(StoreUnavailableError, match="another writer holds it"):
            other.result(5)
    assert notes(database) == []


def test_what_is_sent_together_fails_with_the_same_error(database: Database) -> None:
    """The lock isn't had by the time that another statement is asked for its rows."""

    def write_pipelined() -> None:
        with database.write(tenant="acme", owner="ana", pipelined=True) as connection:
            connection.execute("SELECT 1").fetchall()

    with database.write(tenant="acme", owner="ana"), ThreadPoolExecutor(1) as pool:
        other = pool.submit(write_pipelined)

        with pytest.raises(StoreUnavailableError, match="another writer holds it"):
            other.result(5)


def test_what_is_sent_together_is_rolled_back_together(database: Database) -> None:
    def write_wrongly() -> None:
        with database.write(tenant="acme", owner="ana", pipelined=True) as connection:
            connection.execute(NOTE, ("acme", "ana", "first"))
            connection.execute(WRONG, ("acme", "ana"))
            connection.execute(NOTE, ("acme", "ana", "third"))

    with pytest.raises(psycopg.errors.CheckViolation):
        write_wrongly()

    assert notes(database) == []
    note(database, "after")
    assert notes(database) == ["after"]


def test_who_writes_alone_waits_for_all_and_all_wait_for_it(database: Database) -> None:
    def write_alone() -> None:
        with database.begin(alone=True):
            pass

    refused = pytest.raises(StoreUnavailableError, match="another writer")
    with ThreadPoolExecutor(1) as pool:
        with database.write(tenant="acme", owner="ana"), refused:
            pool.submit(write_alone).result(5)
        with database.begin(alone=True), refused:
            pool.submit(note, database, "meanwhile", owner="ben").result(5)
        pool.submit(note, database, "after", owner="ben").result(5)
    assert notes(database) == ["after"]


def test_an_attempt_that_fails_is_undone_alone(database: Database) -> None:
    with database.write(tenant="acme", owner="ana") as connection:
        connection.execute(NOTE, ("acme", "ana", "kept"))
        with suppress(psycopg.errors.CheckViolation), database.attempt():
            note(database, "undone")
            note(database, "undone as well", owner="ben")
            connection.execute(WRONG, ("acme", "ben"))
        note(database, "ben's", owner="ben")
        note(database, "kept too")

    assert notes(database) == ["ben's", "kept", "kept too"]


def test_a_statement_that_failed_unheard_keeps_the_rest_from_being_committed(
    database: Database,
) -> None:
    """PostgreSQL answers such a COMMIT with ROLLBACK, and no error."""

    def pass_by() -> None:
        with database.write(tenant="acme", owner="ana") as connection:
            connection.execute(NOTE, ("acme", "ana", "first"))
            with suppress(psycopg.errors.UndefinedTable):
                connection.execute("SELECT * FROM nothing_of_ours")

    with pytest.raises(RuntimeError, match="had failed"):
        pass_by()

    assert notes(database) == []


def test_a_write_can_not_begin_inside_a_snapshot(database: Database) -> None:
    with database.snapshot(), pytest.raises(RuntimeError, match="snapshot"):
        note(database, "too late")


def test_a_statement_takes_no_longer_than_it_may(database: Database) -> None:
    with (
        pytest.raises(StoreUnavailableError, match="too long"),
        database.read(tenant="acme", owner="ana") as connection,
    ):
        connection.execute("SELECT pg_sleep(20)")


# -- Connections ---------------------------------------------------------------


def test_there_are_no_more_connections_than_the_limit(database: Database) -> None:
    def hold(inside: threading.Event, done: threading.Event) -> None:
        with database.read(tenant="acme", owner="ana"):
            inside.set()
            done.wait(10)

    done, inside = threading.Event(), [threading.Event(), threading.Event()]
    with ThreadPoolExecutor(2) as pool:
        for one in inside:
            pool.submit(hold, one, done)
            one.wait(10)

        with pytest.raises(StoreUnavailableError, match="all 2 connections are in use"):
            notes(database)
        done.set()


def test_no_setting_outlives_its_transaction(database: Database) -> None:
    """Not even as an empty text that a row's label could equal."""
    note(database, "ana's")
    with database._sessions.app.lent() as connection:
        connection.execute("SET search_path = remembrancer")
        settings = connection.execute(
            "SELECT current_setting('remembrancer.tenant', true),"
            " current_setting('remembrancer.owner', true),"
            " current_setting('remembrancer.reach', true), count(*) FROM stored_snapshots"
        ).fetchone()
        connection.execute("RESET search_path")

    assert settings == ("", "", "", 0)


def test_a_closed_database_says_so(fresh: FreshDatabase) -> None:
    with Database.open(fresh.app) as database:
        pass

    with pytest.raises(StoreClosedError):
        notes(database)


def test_a_malformed_connection_string_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as refused:
        Database(
            "postgresql://app:hunter2@host:port/db with spaces", reader_dsn=None, limits=Limits()
        )

    assert "hunter2" not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_database_is_named_without_its_role_and_password(fresh: FreshDatabase) -> None:
    dsn = f"{fresh.app} password=hunter2"
    database = Database(dsn, reader_dsn=None, limits=Limits())

    assert "hunter2" not in database.name + repr(database)
    assert fresh.name in database.name


def test_a_server_that_can_not_be_reached_is_unavailable(fresh: FreshDatabase) -> None:
    elsewhere = Database.open(make_conninfo(fresh.app, port=1))

    with pytest.raises(StoreUnavailableError, match="no connection") as refused, elsewhere:
        pass

    assert type(refused.value) is StoreUnavailableError


@pytest.mark.parametrize("change", [{"dbname": "nowhere"}, {"user": "nobody"}])
def test_what_the_server_refuses_is_forbidden(
    fresh: FreshDatabase, change: dict[str, str]
) -> None:
    elsewhere = Database.open(make_conninfo(fresh.app, **change))

    with pytest.raises(StoreForbiddenError, match="role, password or database"), elsewhere:
        pass


# -- Forks ---------------------------------------------------------------------


def forked(act: Callable[[], None]) -> int:
    """Run ``act`` in a child of a fork; return its exit code."""
    pid = os.fork()
    if not pid:
        try:
            act()
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_has_connections_of_its_own(database: Database) -> None:
    note(database, "before")

    def act() -> None:
        note(database, "child's")
        database.close()

    code = forked(act)

    assert code == 0
    note(database, "parent's")
    assert notes(database) == ["before", "child's", "parent's"]


def test_a_child_does_not_commit_the_parents_transaction(database: Database) -> None:
    parent = os.getpid()

    def write_and_fork() -> None:
        with database.write(tenant="acme", owner="ana") as connection:
            connection.execute(NOTE, ("acme", "ana", "parent's"))
            pid = os.fork()
            if pid:
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7

    try:
        write_and_fork()
    except StoreUnavailableError as error:
        if os.getpid() != parent:
            os._exit(7 if "forked inside" in str(error) else 8)
        raise
    finally:
        if os.getpid() != parent:
            os._exit(9)

    assert notes(database) == ["parent's"]


def test_a_child_keeps_no_dead_parents_lock(fresh: FreshDatabase) -> None:
    """It has copies of the sockets, by which the server would think the parent alive."""
    with Database.open(fresh.app) as database, database.read_common() as connection:
        copy = Path(f"/proc/self/fd/{connection.fileno()}")
        code = forked(lambda: os._exit(0 if str(copy.readlink()) == os.devnull else 1))

    assert code == 0
