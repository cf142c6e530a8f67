"""What is answered when the connection breaks: the truth, or that it can't be known (case 18)."""

import re
from collections.abc import Generator, Iterator
from uuid import UUID

import psycopg
import pytest
from eventsourcing.persistence import StoredEvent
from tests.adapters.cutting_relay import Cut, CuttingRelay, relay_before
from tests.adapters.postgres_acting import OWNER, TENANT, ActingTransactions, acting_log
from tests.adapters.postgres_server import FreshDatabase, OwnServer, server

from remembrancer.adapters.postgres.connection import together
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.contracts.event_log_examples import history
from remembrancer.domain.errors import OutcomeUnknownError, StoreUnavailableError

LIMITS = Limits(outcome_wait_s=1.5, connections=3)
EVENT = StoredEvent(UUID(int=1), 1, "topic", b"state")


@pytest.fixture
def fresh() -> Iterator[FreshDatabase]:
    with server().database() as fresh:
        yield fresh


@pytest.fixture
def relay(fresh: FreshDatabase) -> Iterator[CuttingRelay]:
    with relay_before(fresh.app) as relay:
        yield relay


@pytest.fixture
def database(fresh: FreshDatabase, relay: CuttingRelay) -> Generator[Database]:
    with Database.open(relay.through(fresh.app), limits=LIMITS) as database:
        yield database


def test_a_commit_that_got_lost_changed_nothing(database: Database, relay: CuttingRelay) -> None:
    log = acting_log(database)
    relay.next_cut = Cut.COMMIT

    with pytest.raises(StoreUnavailableError, match="before the commit") as refused:
        log.append(history(1, corrections=0))

    assert type(refused.value) is StoreUnavailableError
    assert log.position() == 0
    log.append(history(1, corrections=0))
    assert list(log.read(history(1, corrections=0)[0].originator_id)) == history(1, corrections=0)


def test_a_commit_whose_answer_got_lost_is_a_success(
    database: Database, relay: CuttingRelay
) -> None:
    log = acting_log(database)
    relay.next_cut = Cut.ANSWER

    log.append(history(1, corrections=2))

    assert relay.next_cut is None
    assert [one.event for one in log.follow(after_position=0, limit=9)] == history(
        1, corrections=2
    )


def test_positions_are_known_though_their_answer_got_lost(
    database: Database, relay: CuttingRelay
) -> None:
    recorder = PostgresApplicationRecorder(database=database, tenant=TENANT, owner=OWNER)
    relay.next_cut = Cut.ANSWER

    positions = recorder.insert_events([EVENT, StoredEvent(EVENT.originator_id, 2, "t", b"s")])

    assert relay.next_cut is None
    assert positions == [one.id for one in recorder.select_notifications(1, limit=9)]


def test_what_is_called_after_a_commit_is_called_when_its_answer_got_lost(
    database: Database, relay: CuttingRelay
) -> None:
    called = list[str]()
    with ActingTransactions(database=database).begin():
        acting_log(database).append(history(1, corrections=0))
        database.after_commit(lambda: called.append("called"))
        relay.next_cut = Cut.ANSWER

    assert called == ["called"]


def test_a_server_that_has_not_noticed_keeps_no_owner_waiting(
    database: Database, relay: CuttingRelay
) -> None:
    """The transaction is in progress there, with the owner's lock, until its backend is ended."""
    log = acting_log(database)
    relay.next_cut = Cut.SILENCE

    with pytest.raises(StoreUnavailableError, match="before the commit"):
        log.append(history(1, corrections=0))

    log.append(history(1, corrections=0))
    assert len(log.follow(after_position=0, limit=9)) == 1


@pytest.mark.parametrize("cut", [Cut.COMMIT, Cut.ANSWER])
def test_what_can_not_be_found_out_is_said_to_be_unknown(
    database: Database, relay: CuttingRelay, cut: Cut
) -> None:
    log = acting_log(database)
    relay.next_cut, relay.stays_cut = cut, True

    with pytest.raises(OutcomeUnknownError):
        log.append(history(1, corrections=0))

    relay.stays_cut = False
    there = len(list(log.read(history(1, corrections=0)[0].originator_id)))
    assert there == (cut is Cut.ANSWER)


def test_a_killed_backend_changed_nothing(fresh: FreshDatabase, database: Database) -> None:
    log, transactions = acting_log(database), ActingTransactions(database=database)

    def kill_in_the_middle() -> None:
        with transactions.begin():
            log.append(history(1, corrections=0))
            with psycopg.connect(fresh.superuser) as superuser:
                superuser.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE usename = 'remembrancer_app' AND datname = current_database()"
                )
            log.append(history(2, corrections=0))

    with pytest.raises(StoreUnavailableError, match="connection was lost"):
        kill_in_the_middle()

    assert log.position() == 0
    log.append(history(1, corrections=0))


def test_what_needs_no_answer_goes_in_one_round_trip(
    database: Database, relay: CuttingRelay
) -> None:
    """The log's lock with the stream's head; then the event."""
    log = acting_log(database)
    with ActingTransactions(database=database).begin():
        relay.heard = ""
        log.append(history(1, corrections=0))
        inside = relay.heard

    assert len(re.findall("c+s+", inside)) == 2


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_killed_backend_is_told_by_its_error_alone(
    fresh: FreshDatabase,
    database: Database,
    caplog: pytest.LogCaptureFixture,
    *,
    pipelined: bool,
) -> None:
    """Not by a line of the driver's on standard error as well."""

    def write() -> None:
        with database.write(tenant="acme", owner="ana", pipelined=pipelined) as connection:
            _kill(fresh)
            with together(connection):
                connection.execute("SELECT 1")
                connection.execute("SELECT 2").fetchone()

    with pytest.raises(StoreUnavailableError):
        write()

    assert caplog.records == []


def _kill(fresh: FreshDatabase) -> None:
    with psycopg.connect(fresh.superuser) as superuser:
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE usename = 'remembrancer_app' AND datname = current_database()"
        )


def test_a_backend_killed_before_the_commit_changed_nothing(
    fresh: FreshDatabase, database: Database
) -> None:
    log = acting_log(database)

    def kill_at_the_end() -> None:
        with ActingTransactions(database=database).begin():
            log.append(history(1, corrections=0))
            _kill(fresh)

    with pytest.raises(StoreUnavailableError) as refused:
        kill_at_the_end()

    assert type(refused.value) is StoreUnavailableError
    assert log.position() == 0


def test_a_restarted_server_is_found_again() -> None:
    own = OwnServer()
    try:
        with Database.open(own.fresh_database().app, limits=LIMITS) as database:
            log, transactions = acting_log(database), ActingTransactions(database=database)
            log.append(history(1, corrections=0))

            own.restart()
            log.append(history(2, corrections=0))  # Nothing was open: nobody is told.

            def restart_in_the_middle() -> None:
                with transactions.begin():
                    log.append(history(3, corrections=0))
                    own.restart()

            with pytest.raises(StoreUnavailableError):
                restart_in_the_middle()
            assert len(log.follow(after_position=0, limit=9)) == 2
    finally:
        own.stop()
