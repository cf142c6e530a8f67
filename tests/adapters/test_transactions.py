"""Transactions in memory and over SQLite."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.recorder import SqliteApplicationRecorder
from remembrancer.adapters.sqlite.transactions import SqliteTransactions
from remembrancer.contracts.event_log_examples import history
from remembrancer.contracts.transactions import Store, TransactionsContract


class TestMemoryTransactions(TransactionsContract):
    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[Store]:
        transactions = MemoryTransactions()
        yield transactions, RecordedEventLog(recorder=MemoryRecorder(transactions=transactions))


class TestSqliteTransactions(TransactionsContract):
    durable = True

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[Store]:
        with Database.open(folder / "memory.db") as database:
            log = RecordedEventLog(recorder=SqliteApplicationRecorder(database=database))
            yield SqliteTransactions(database=database), log

    def test_scrubbing_waits_for_a_readers_snapshot(self, tmp_path: Path) -> None:
        reading, done = threading.Event(), threading.Event()

        with self.opened(tmp_path) as (transactions, log):
            log.append(history(1, corrections=0))

            def read() -> None:
                with transactions.snapshot():
                    log.position()
                    reading.set()
                    done.wait(10)

            reader = threading.Thread(target=read)
            reader.start()
            reading.wait(10)
            log.append(history(2, corrections=0))
            pending = transactions.scrub()
            done.set()
            reader.join()

            assert not pending
            assert transactions.scrub()
            assert (tmp_path / "memory.db-wal").stat().st_size == 0
