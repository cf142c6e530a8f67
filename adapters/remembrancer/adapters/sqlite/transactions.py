"""Transactions over everything in one SQLite file."""

from contextlib import AbstractContextManager, nullcontext

from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.application.ports.transactions import Transactions

_ANYBODY = nullcontext()


class SqliteTransactions(Transactions):
    """What the adapters of one :class:`Database` write together.

    A block that raises dooms the whole, even if the error is caught further out; see
    :meth:`Database.write`.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def begin(self, *, alone: bool = False) -> AbstractContextManager[object]:
        del alone  # One transaction writes at a time anyway.
        return self._database.write()

    @override
    def snapshot(self) -> AbstractContextManager[object]:
        return self._database.read()

    @override
    def acting_for(self, tenant: str, owner: str | None = None) -> AbstractContextManager[None]:
        return _ANYBODY  # A file has no row security.

    @override
    def over_all_tenants(self) -> AbstractContextManager[None]:
        return _ANYBODY

    @override
    def scrub(self) -> bool:
        return self._database.scrub()
