"""What a reservation costs on SQLite, against bare durable commits of the same bytes."""

import os
import statistics
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from uuid import UUID, uuid4

import apsw
from tests.benchmarks.row import Row, interleaved

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.ledger_repository import SqliteLedgerRepository
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.application.ports.ledger_repository import HeldLedger
from remembrancer.contracts.spending import Spender, admission, terms
from remembrancer.domain.reservation import ReservationKind

ROUNDS = 300
OWNERS = 16
PAIRS_EACH = 40
REPEATS = 11
RECEIPT_BYTES = 200
PAST = (10, 1_000, 100_000)
ROOMY = terms(quanta=10**12, requests=10**8)


def measure() -> list[Row]:
    """Admit and settle: one after the other, side by side, and behind a long history."""
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        return [*_pair(Path(folder)), *_side_by_side(Path(folder)), *_history(Path(folder))]


def _pair(folder: Path) -> list[Row]:
    with _ledgers(folder / "pair.db") as (database, ledgers), _bare(folder / "bare.db") as commit:
        owner = Spender(ledgers)
        _spend(owner)
        admitted, settled = _recorded_bytes(database)

        def two_commits() -> None:
            commit(admitted)
            commit(settled)

        ours, bare = interleaved([partial(_spend, owner), two_commits], rounds=ROUNDS)
    return [
        Row(
            what="ledger: admit and settle, SQLite",
            ours=ours,
            baseline=bare,
            against="two bare durable commits",
            at_most=1.5,
        )
    ]


def _side_by_side(folder: Path) -> list[Row]:
    """Compare rounds that follow each other at once: the disk's speed changes by the minute."""
    ratios, throughputs, tails = list[float](), list[float](), list[float]()
    with _ledgers(folder / "many.db") as (_, ledgers):
        for _ in range(REPEATS):
            alone, _latencies = _throughput(ledgers, owners=1, pairs=PAIRS_EACH * 4)
            together, latencies = _throughput(ledgers, owners=OWNERS, pairs=PAIRS_EACH)
            ratios.append(together / alone)
            throughputs.append(together)
            tails.append(latencies[int(len(latencies) * 0.99)] / statistics.median(latencies))
    return [
        Row(
            what=f"ledger: pairs, {OWNERS} owners", ours=statistics.median(throughputs), unit="/s"
        ),
        Row(
            what=f"ledger: throughput of {OWNERS} owners to one's",
            ours=statistics.median(ratios),
            unit="",
            at_least=2,
        ),
        Row(
            what=f"ledger: p99 to median, {OWNERS} owners",
            ours=statistics.median(tails),
            unit="",
            at_most=6,
        ),
    ]


def _history(folder: Path) -> list[Row]:
    """Load afresh behind each length of history, by a process that knows nothing yet."""
    rows = list[Row]()
    with _ledgers(folder / "past.db") as (database, ledgers):
        done, first = 0, 0.0
        for past in PAST:
            for start in range(done, past, 100):
                numbers = range(start, min(start + 100, past))
                ledgers.decide("acme", "ana", partial(_spent, numbers))
            done = past
            took = statistics.median(_load_s(database) for _ in range(ROUNDS // 10))
            first = first or took
            rows.append(
                Row(
                    what=f"ledger: load behind {past:,} reservations",
                    ours=took,
                    baseline=first,
                    against=f"behind {PAST[0]}",
                    at_most=2.0,
                )
            )
    return rows


def _spend(owner: Spender) -> None:
    reservation_id = uuid4()
    owner.admit(reservation_id, kind=ReservationKind.QUERY, under=ROOMY)
    owner.settle(reservation_id)


def _spent(numbers: range, held: HeldLedger) -> None:
    for number in numbers:
        admission(UUID(int=number), under=ROOMY)(held)
        held.ledger.settle(
            UUID(int=number), charged_quanta=3, usage_tokens=7, earlier=None, at=held.now
        )


def _throughput(
    ledgers: SqliteLedgerRepository, *, owners: int, pairs: int
) -> tuple[float, list[float]]:
    """Return pairs a second, and each pair's time, sorted."""
    begun, taken = list[float](), list[float]()
    together = Barrier(owners, action=lambda: begun.append(time.perf_counter()))

    def spends(number: int) -> None:
        owner = Spender(ledgers, f"owner-{number}")
        _spend(owner)  # The first pair of a thread begins with more than a pair.
        together.wait()
        for _ in range(pairs):
            began = time.perf_counter()
            _spend(owner)
            taken.append(time.perf_counter() - began)

    with ThreadPoolExecutor(owners) as pool:
        list(pool.map(spends, range(owners)))
        return owners * pairs / (time.perf_counter() - begun[0]), sorted(taken)


def _load_s(database: Database) -> float:
    ledgers = _repository(database)
    began = time.perf_counter()
    ledgers.decide("acme", "ana", lambda held: held.ledger.version)
    return time.perf_counter() - began


def _recorded_bytes(database: Database) -> list[int]:
    """Return the bytes of an admission's and a settlement's rows: event, hashes, receipt."""
    statement = "SELECT 32 + 32 + 16 + length(topic) + length(state) FROM stored_events"
    with database.read() as connection:
        sizes = [row[0] for row in connection.execute(statement)]
    return [sizes[0] + RECEIPT_BYTES, sizes[1] + RECEIPT_BYTES]


@contextmanager
def _ledgers(path: Path) -> Generator[tuple[Database, SqliteLedgerRepository]]:
    with Database.open(path, busy_timeout_s=60) as database:
        yield database, _repository(database)


def _repository(database: Database) -> SqliteLedgerRepository:
    log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
    return SqliteLedgerRepository(database=database, log=log, clock=SystemClock())


@contextmanager
def _bare(path: Path) -> Generator[Callable[[int], None]]:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, data BLOB)")

    def commit(size: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare (data) VALUES (?)", (os.urandom(size),))
        connection.execute("COMMIT")

    yield commit
    connection.close()
