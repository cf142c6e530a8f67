"""Ledgers in PostgreSQL."""

import re
import signal
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from tests.adapters.postgres_ledgers import LedgerBench, ledger_bench
from tests.adapters.postgres_server import FreshDatabase, server
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.ledger_repository import (
    SNAPSHOT_EVERY,
    PostgresLedgerRepository,
)
from remembrancer.adapters.postgres.limits import Limits
from remembrancer.adapters.postgres.positions import LOCK_LAST
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts import ledger_repository_durable
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.ledger_repository import ZONES
from remembrancer.contracts.ledger_repository_durable import DurableLedgerRepositoryContract
from remembrancer.contracts.spending import (
    FIRST_ID,
    MORNING,
    QUERY,
    SECOND_ID,
    THIRD_ID,
    LedgerStore,
    Spender,
    admission,
    recorded,
    terms,
)
from remembrancer.domain.errors import StaleStreamError
from remembrancer.domain.money import utc_day
from remembrancer.domain.spend_errors import QueryPendingError

ROOMY = terms(quanta=10**9, requests=10**6)
PLACE = "dsn"
"""The file by which other processes find a folder's database."""


class TestPostgresLedgerRepository(DurableLedgerRepositoryContract):
    tiny_requests = 100

    @pytest.fixture(autouse=True)
    def _databases(self, tmp_path: Path) -> Iterator[None]:
        self.made = list[FreshDatabase]()
        self._make(tmp_path)
        yield
        for one in self.made:
            server().drop(one)

    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[LedgerStore]:
        if not (folder / PLACE).exists():
            self._make(folder)
        with Database.open((folder / PLACE).read_text()) as database:
            recorder = PostgresApplicationRecorder(database=database, tenant="acme")
            yield LedgerStore(
                PostgresLedgerRepository(database=database, mapper=ListedMapper(), clock=clock),
                RecordedEventLog(recorder=recorder),
                PostgresTransactions(database=database),
                clock,
            )

    def _make(self, folder: Path) -> None:
        self.made.append(server().fresh_database())
        (folder / PLACE).write_text(self.made[-1].app)

    def test_eight_processes_get_the_last_slot_once(
        self, tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ledger_repository_durable, "PROCESSES", 8)
        monkeypatch.setattr(ledger_repository_durable, "THREADS_EACH", 2)
        with self.opened(tmp_path, clock) as store:
            Spender(store.ledgers).admit(UUID(int=99), charge=90)

        admitted = self.raced(tmp_path, "queries")

        assert sorted(admitted) == [False] * 15 + [True]
        with self.opened(tmp_path, clock) as store:
            assert len(recorded(store.log)) == 2
            assert Spender(store.ledgers).days()[0].charged_quanta == 100


@pytest.fixture
def bench() -> Iterator[LedgerBench]:
    with ledger_bench() as bench:
        yield bench


# -- Time ---------------------------------------------------------------------------


@pytest.mark.parametrize("zone", [*ZONES, "Etc/GMT+12"])
def test_time_and_day_are_utc_in_every_session_time_zone(bench: LedgerBench, zone: str) -> None:
    bench.execute(
        f"ALTER ROLE remembrancer_app IN DATABASE {bench.fresh.name} SET TimeZone = '{zone}'"
    )
    bench.execute(
        f"ALTER ROLE remembrancer_app IN DATABASE {bench.fresh.name} SET DateStyle = 'German'"
    )
    with ledger_bench(bench.fresh) as there:
        before = datetime.now(UTC)
        by_the_server = there.by_the_server().admit(FIRST_ID).reservation
        after = datetime.now(UTC)
        there.clock.set(datetime(2035, 1, 1, 23, 59, 59, 900_000, tzinfo=UTC))
        late = there.ana.admit(SECOND_ID).reservation
        there.clock.set(datetime(2035, 1, 2, 0, 0, 0, 500_000, tzinfo=UTC))
        settled = there.ana.settle(SECOND_ID)

        assert before <= by_the_server.admitted_at <= after
        assert by_the_server.day == utc_day(by_the_server.admitted_at)
        assert there.ana.receipt(FIRST_ID) is not None
        assert (late.day, settled.day) == ("2035-01-01", "2035-01-01")
        assert there.ana.receipt(SECOND_ID) == settled
        assert [day.day for day in there.ana.days()][1:] == ["2035-01-01"]


def test_the_time_is_read_when_the_lock_has_been_had(bench: LedgerBench) -> None:
    ana = bench.by_the_server()
    ana.admit(FIRST_ID)
    with psycopg.connect(bench.fresh.superuser) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SELECT 1 FROM remembrancer.owners FOR UPDATE")
        waiting = pool.submit(ana.admit, SECOND_ID)
        while not bench.execute("SELECT 1 FROM pg_locks WHERE NOT granted"):
            pass
        [(held_until,)] = other.execute("SELECT clock_timestamp()").fetchall()
        other.commit()

        assert waiting.result().reservation.admitted_at > held_until


def test_a_server_whose_clock_was_set_back_does_not_go_back_for_an_owner(
    bench: LedgerBench,
) -> None:
    bench.clock.set(datetime.now(UTC) + timedelta(days=400))
    bench.ana.admit(FIRST_ID, kind=QUERY)

    found = bench.by_the_server().admit(SECOND_ID).reservation

    assert found.admitted_at == bench.clock.now()


# -- What stands behind the rules ------------------------------------------------------


def test_two_pending_queries_are_refused_by_the_index_as_by_the_rule(bench: LedgerBench) -> None:
    """A row that no event admitted stands for a writer that broke the rule."""
    bench.ana.admit(THIRD_ID)
    until = MORNING + timedelta(hours=1)
    bench.execute(
        "INSERT INTO spend_receipts SELECT tenant, owner, %s, request_digest, state, day,"
        " admitted_at, lease_s, reserved_quanta, charged_quanta, NULL, NULL, ceiling_quanta,"
        " ceiling_requests, ledger_id, 7, 'query', %s FROM spend_receipts",
        FIRST_ID,
        until,
    )

    with pytest.raises(QueryPendingError) as refused:
        bench.ana.admit(SECOND_ID, kind=QUERY)

    assert (refused.value.reservation_id, refused.value.expires_at) == (FIRST_ID, until)
    assert len(recorded(bench.log)) == 1
    assert not bench.ana.admit(SECOND_ID).repeated


def test_a_writer_without_the_lock_is_found_out_by_the_stream(bench: LedgerBench) -> None:
    bench.ana.admit(FIRST_ID)

    def decides(held: HeldLedger) -> None:
        admission(SECOND_ID)(held)
        bench.execute(
            "INSERT INTO stored_events (tenant, owner, originator_id, originator_version, topic,"
            " state, predecessor_hash, event_hash) SELECT tenant, owner, originator_id, 2, topic,"
            " state, event_hash, event_hash FROM stored_events"
        )

    with pytest.raises(StaleStreamError):
        bench.ledgers.decide("acme", "ana", decides)

    assert bench.ana.receipt(SECOND_ID) is None


def test_an_interrupt_while_waiting_for_the_lock_leaves_none(bench: LedgerBench) -> None:
    bench.ana.admit(FIRST_ID)
    with psycopg.connect(bench.fresh.superuser) as other:
        other.execute("SELECT 1 FROM remembrancer.owners FOR UPDATE")
        threading.Thread(target=_interrupt_once_it_waits, args=[bench]).start()

        with pytest.raises(KeyboardInterrupt):
            bench.ana.admit(SECOND_ID)

    assert not bench.ana.admit(SECOND_ID).repeated
    assert len(recorded(bench.log)) == 2


def _interrupt_once_it_waits(bench: LedgerBench) -> None:
    while not bench.execute("SELECT 1 FROM pg_locks WHERE NOT granted"):
        pass
    signal.raise_signal(signal.SIGINT)


# -- The log that others follow ------------------------------------------------------------


def test_followers_are_told_of_a_decision(bench: LedgerBench) -> None:
    told = threading.Event()
    bench.database.bell.follow(told)
    told.clear()

    bench.ana.admit(FIRST_ID)

    assert told.wait(10)
    assert [type(one.event).__name__ for one in bench.log.follow(after_position=0, limit=9)] == [
        "ReservationAdmitted"
    ]


def test_a_decision_takes_its_positions_behind_the_lock_that_followers_look_at(
    bench: LedgerBench,
) -> None:
    [(definition,)] = bench.execute(
        "SELECT string_agg(prosrc, '') FROM pg_proc WHERE proname LIKE 'record\\_%%'"
    )
    taken = LOCK_LAST.split("SELECT ")[1].split(" FROM")[0]

    assert definition.count(f"PERFORM {taken} FROM event_positions") == 2


# -- Loading --------------------------------------------------------------------------------


def _spent(numbers: range, held: HeldLedger) -> None:
    for number in numbers:
        admission(UUID(int=number), under=ROOMY)(held)
        held.ledger.settle(
            UUID(int=number), charged_quanta=3, usage_tokens=7, earlier=None, at=held.now
        )


@pytest.mark.parametrize("past", [10, 1_000])
def test_loading_reads_as_little_however_long_the_stream(bench: LedgerBench, past: int) -> None:
    bench.ledgers.decide("acme", "ana", partial(_spent, range(10, past)))
    for number in range(10):
        bench.ana.admit(UUID(int=number), under=ROOMY)
        bench.ana.settle(UUID(int=number))

    bench.afresh()
    bench.ana.admit(UUID(int=past), under=ROOMY)

    assert bench.mapper.read_events <= SNAPSHOT_EVERY
    assert bench.ana.days()[0].requests == past + 1


@pytest.mark.parametrize("afresh", [False, True])
@pytest.mark.parametrize("analysed", [False, True])
def test_deciding_reads_no_more_rows_the_longer_the_stream(
    *, analysed: bool, afresh: bool
) -> None:
    """A plan that was made for the first decisions is that of all others of its session."""
    rows = (
        "SELECT sum(idx_tup_read)::integer FROM pg_stat_user_indexes"
        " WHERE relname IN ('stored_events', 'spend_receipts')"
    )
    read = list[int]()
    with ledger_bench(limits=Limits(connections=1)) as bench:
        for first in range(0, 400, 100):
            for number in range(first, first + 100):
                bench.ana.admit(UUID(int=number), under=ROOMY)
                bench.ana.settle(UUID(int=number))
                if afresh:
                    bench.afresh()
            with bench.database.read_common() as connection:
                connection.execute("SELECT pg_stat_force_next_flush()")
            with bench.database.read_common():
                pass
            read.append(bench.execute(rows)[0][0])
            if analysed:
                bench.execute("ANALYZE")

    deltas = [after - before for before, after in pairwise(read)]
    assert max(deltas) <= 2 * min(deltas)


def test_a_known_ledger_reads_only_what_others_have_added(bench: LedgerBench) -> None:
    bench.ana.admit(FIRST_ID)
    other = PostgresLedgerRepository(
        database=bench.database, mapper=ListedMapper(), clock=bench.clock
    )
    Spender(other).admit(SECOND_ID)
    bench.mapper.read_events = 0

    bench.ana.settle(FIRST_ID)

    assert bench.mapper.read_events == 1
    assert bench.ana.days()[0].requests == 2


def test_a_known_ledger_that_is_not_the_stored_one_is_read_again(bench: LedgerBench) -> None:
    """As after the database was put back to an earlier state under a running process."""
    bench.ana.admit(FIRST_ID)
    bench.ana.admit(SECOND_ID)
    bench.execute("ALTER TABLE stored_events DISABLE TRIGGER USER")
    bench.execute("DELETE FROM stored_events WHERE originator_version = 2")
    bench.execute("DELETE FROM spend_receipts WHERE admitted_version = 2")

    assert not bench.ana.admit(SECOND_ID).repeated
    assert [one.originator_version for one in recorded(bench.log)] == [1, 2]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM ledger_snapshots",
        r"UPDATE ledger_snapshots SET state = '\x00'",
        r"UPDATE ledger_snapshots SET state = '', version = 1000000",
    ],
)
def test_a_snapshot_that_can_not_be_read_is_made_again(bench: LedgerBench, damage: str) -> None:
    bench.ledgers.decide("acme", "ana", partial(_spent, range(50)))
    bench.execute(damage)

    bench.afresh()
    bench.ana.admit(UUID(int=50), under=ROOMY)

    assert bench.mapper.read_events == 100
    for number in range(51, 51 + SNAPSHOT_EVERY):
        bench.ana.admit(UUID(int=number), under=ROOMY)
    bench.afresh()
    bench.ana.admit(UUID(int=99), under=ROOMY)
    assert bench.mapper.read_events <= SNAPSHOT_EVERY


def test_nothing_stays_prepared_behind_a_pooler() -> None:
    """It gives each transaction another session."""
    with ledger_bench(limits=Limits(connections=1, prepare_after=None)) as bench:
        bench.ana.admit(FIRST_ID)
        bench.ana.settle(FIRST_ID)

        with bench.database.read(tenant="acme") as connection:
            prepared = connection.execute("SELECT name FROM pg_prepared_statements").fetchall()

    assert prepared == []


def test_a_session_that_has_forgotten_what_was_prepared_is_told_again(bench: LedgerBench) -> None:
    """As the driver lets it, after a transaction that was rolled back."""
    bench.ana.admit(FIRST_ID)
    with bench.database.read(tenant="acme") as connection:
        connection.execute("DEALLOCATE ALL")

    bench.ana.settle(FIRST_ID)

    assert len(recorded(bench.log)) == 2


@pytest.mark.parametrize("afresh", [False, True])
def test_two_round_trips_decide(
    bench: LedgerBench, monkeypatch: pytest.MonkeyPatch, *, afresh: bool
) -> None:
    """A lock is held as long as a network's answers take."""
    monkeypatch.setattr(bench.database.bell, "ring", lambda: None)  # It is heard as well.
    bench.ana.admit(FIRST_ID)
    if afresh:
        bench.afresh()
    bench.relay.heard = ""

    bench.ana.admit(SECOND_ID, kind=QUERY)
    bench.ana.settle(SECOND_ID)

    assert len(re.findall("c+s+", bench.relay.heard)) == 4
