"""Transactions over PostgreSQL."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.adapters.postgres_acting import ActingTransactions, acting_log
from tests.adapters.postgres_server import server
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.contracts.transactions import Store, TransactionsContract


class TestPostgresTransactions(TransactionsContract):
    durable = True

    @pytest.fixture(autouse=True)
    def _fresh(self) -> Iterator[None]:
        with server().database() as self.fresh:
            yield

    @override
    @contextmanager
    def opened(self, folder: Path) -> Generator[Store]:
        with Database.open(self.fresh.app) as database:
            yield ActingTransactions(database=database), acting_log(database)
