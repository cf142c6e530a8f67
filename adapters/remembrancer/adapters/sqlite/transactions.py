"""Transactions over everything in one SQLite file."""

from collections.abc import Generator
from contextlib import contextmanager

from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.ports.transactions import Transactions


class SqliteTransactions(Transactions):
    """What the adapters of one :class:`Database` write together.

    A block that raises dooms the whole, even if the error is caught further out; see
    :meth:`Database.write`.
    """

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
