"""Ledgers in memory and in SQLite."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import UUID

import apsw
import pytest
from eventsourcing.domain import AggregateEvent
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.ledger_repository import MemoryLedgerRepository
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.ledger_repository import SNAPSHOT_EVERY, SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.application.ports.event_log import EventLog, Recorded
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.ledger_repository import LedgerRepositoryContract
from remembrancer.contracts.ledger_repository_durable import DurableLedgerRepositoryContract
from remembrancer.contracts.spending import (
    FIRST_ID,
    MORNING,
    SECOND_ID,
    LedgerStore,
    Spender,
    admission,
    recorded,
    terms,
)
from remembrancer.domain.errors import StoreCorruptError
from remembrancer.domain.ledger_snapshot import ledger_snapshot

ROOMY = terms(quanta=10**9, requests=10**6)


class TestMemoryLedgerRepository(LedgerRepositoryContract):
    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[LedgerStore]:
        transactions = MemoryTransactions()
        log = RecordedEventLog(recorder=MemoryRecorder(transactions=transactions))
        ledgers = MemoryLedgerRepository(transactions=transactions, log=log, clock=clock)
        yield LedgerStore(ledgers, log, transactions, clock)


class TestSqliteLedgerRepository(DurableLedgerRepositoryContract):
    tiny_requests = 100

    @override
    @contextmanager
    def opened(self, folder: Path, clock: FixedClock) -> Generator[LedgerStore]:
        with Database.open(folder / "memory.db", busy_timeout_s=60) as database:
            log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
            ledgers = SqliteLedgerRepository(database=database, log=log, clock=clock)
            yield LedgerStore(ledgers, log, SqliteTransactions(database=database), clock)


class CountingLog(EventLog):
    """Counts the events that are read from it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.read_events = 0

    @override
    def append(self, events: Sequence[AggregateEvent]) -> None:
        self._log.append(events)

    @override
    def read(self, stream_id: UUID, *, after_version: int = 0) -> Iterator[AggregateEvent]:
        for event in self._log.read(stream_id, after_version=after_version):
            self.read_events += 1
            yield event

    @override
    def follow(self, *, after_position: int, limit: int) -> list[Recorded]:
        return self._log.follow(after_position=after_position, limit=limit)

    @override
    def event_of(self, stream_id: UUID, version: int, topic: str, state: bytes) -> AggregateEvent:
        return self._log.event_of(stream_id, version, topic, state)

    @override
    def position(self) -> int:
        return self._log.position()


class Bench:
    """A SQLite repository whose parts a test can look at."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FixedClock(MORNING)
        self.log = CountingLog(
            RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
        )
        self.begin_afresh()

    def begin_afresh(self) -> None:
        """Remember nothing, as a process that has just been started."""
        self.ledgers = SqliteLedgerRepository(
            database=self.database, log=self.log, clock=self.clock
        )
        self.ana = Spender(self.ledgers)
        self.log.read_events = 0

    def spend(self, first: int, count: int) -> None:
        """Record ``count`` past reservations, some at a time."""
        for start in range(first, first + count, 100):
            numbers = range(start, min(start + 100, first + count))
            self.ledgers.decide("acme", "ana", partial(_spent, numbers))

    def execute(self, statement: str) -> None:
        with self.database.write() as connection:
            connection.execute(statement)


def _spent(numbers: range, held: HeldLedger) -> None:
    for number in numbers:
        admission(UUID(int=number), under=ROOMY)(held)
        held.ledger.settle(
            UUID(int=number), charged_quanta=3, usage_tokens=7, earlier=None, at=held.now
        )


@pytest.fixture
def bench(tmp_path: Path) -> Generator[Bench]:
    with Database.open(tmp_path / "memory.db") as database:
        yield Bench(database)


# -- Loading -----------------------------------------------------------------


@pytest.mark.parametrize("past", [10, 1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_loading_reads_as_little_however_long_the_stream(bench: Bench, past: int) -> None:
    bench.spend(10, past - 10)
    for number in range(10):
        bench.ana.admit(UUID(int=number), under=ROOMY)
        bench.ana.settle(UUID(int=number))

    bench.begin_afresh()
    bench.ana.admit(UUID(int=past), under=ROOMY)

    assert bench.log.read_events <= SNAPSHOT_EVERY
    assert bench.ana.days()[0].requests == past + 1


def test_a_known_ledger_reads_only_what_others_have_added(bench: Bench) -> None:
    bench.ana.admit(FIRST_ID)
    other = SqliteLedgerRepository(database=bench.database, log=bench.log, clock=bench.clock)
    Spender(other).admit(SECOND_ID)
    bench.log.read_events = 0

    bench.ana.settle(FIRST_ID)

    assert bench.log.read_events == 1
    assert bench.ana.days()[0].requests == 2


def test_a_known_ledger_needs_no_reading_while_nobody_else_commits(bench: Bench) -> None:
    for number in range(3):
        bench.ana.admit(UUID(int=number))
    statements: list[str] = []

    def note(_: apsw.Cursor, statement: str, __: object) -> bool:
        statements.append(statement.split(maxsplit=1)[0])
        return True

    bench.database.connection().exec_trace = note
    bench.ana.settle(UUID(int=2))

    assert statements == ["BEGIN", "INSERT", "UPDATE", "COMMIT"]


def test_what_another_connection_commits_is_read(bench: Bench) -> None:
    bench.ana.admit(FIRST_ID)
    with Database.open(bench.database.path) as beside:
        log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=beside))
        other = SqliteLedgerRepository(database=beside, log=log, clock=bench.clock)
        Spender(other).settle(FIRST_ID, charge=2)

    bench.ana.admit(SECOND_ID)

    assert [one.charged_quanta for one in bench.ana.days()] == [12]
    assert len(recorded(bench.log)) == 3


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM ledger_snapshots",
        "UPDATE ledger_snapshots SET state = x'00'",
        "UPDATE ledger_snapshots SET state = x'', version = 1000000",
    ],
)
def test_a_snapshot_that_can_not_be_read_is_made_again(bench: Bench, damage: str) -> None:
    bench.spend(0, 50)
    bench.execute(damage)

    bench.begin_afresh()
    bench.ana.admit(UUID(int=50), under=ROOMY)

    assert bench.log.read_events == 100
    bench.begin_afresh()
    bench.ana.admit(UUID(int=51), under=ROOMY)
    assert bench.log.read_events <= SNAPSHOT_EVERY
    assert bench.ana.days()[0].charged_quanta == 50 * 3 + 20


def test_a_snapshot_is_the_fold_of_the_stream(bench: Bench) -> None:
    bench.spend(0, SNAPSHOT_EVERY)

    version, state = (
        bench.database.connection()
        .execute("SELECT version, state FROM ledger_snapshots")
        .fetchall()[0]
    )

    ledger = None
    for event in recorded(bench.log):
        ledger = event.mutate(ledger)
    assert ledger is not None
    assert (version, state) == (ledger.version, ledger_snapshot(ledger))


# -- Trouble -----------------------------------------------------------------


@pytest.mark.parametrize("table", ["ledger_snapshots", "spend_receipts"])
def test_a_missing_table_is_the_stores_error(bench: Bench, table: str) -> None:
    bench.execute(f"DROP TABLE {table}")

    with pytest.raises(StoreCorruptError):
        bench.ana.admit(FIRST_ID)

    assert recorded(bench.log) == []
