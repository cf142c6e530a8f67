"""Transactions over every SQLite adapter that shares one database."""

from collections.abc import Generator
from contextlib import contextmanager

from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.ports.transactions import Transactions


class SqliteTransactions(Transactions):
    """The port's face of :class:`Database`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    @contextmanager
    def begin(self) -> Generator[None]:
        with self._database.write():
            yield

    @override
    @contextmanager
    def snapshot(self) -> Generator[None]:
        with self._database.read():
            yield

    @override
    def scrub(self) -> bool:
        return self._database.scrub()
