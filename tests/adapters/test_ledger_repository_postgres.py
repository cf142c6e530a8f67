"""Ledgers in PostgreSQL."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.adapters.postgres_server import FreshDatabase, server
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.eventlog.mapper import ListedMapper
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.ledger_repository import PostgresLedgerRepository
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.adapters.postgres.transactions import PostgresTransactions
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.ledger_repository_durable import DurableLedgerRepositoryContract
from remembrancer.contracts.spending import LedgerStore

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
