"""Transactions over everything in one PostgreSQL database."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from typing_extensions import override

from remembrancer.adapters.postgres.clearing import is_cleared
from remembrancer.adapters.postgres.database import Database
from remembrancer.application.ports.transactions import Transactions


class PostgresTransactions(Transactions):
    """What the adapters of one :class:`Database` write together.

    One writes for an owner at a time: the owner's row is locked by the first statement for it.
    Outside of ``snapshot`` and ``begin`` each statement sees what was committed when it began.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    @contextmanager
    def begin(self, *, alone: bool = False) -> Generator[None]:
        with self._database.begin(alone=alone):
            yield

    @override
    def snapshot(self) -> AbstractContextManager[None]:
        return self._database.snapshot()

    @override
    def acting_for(self, tenant: str, owner: str | None = None) -> AbstractContextManager[None]:
        return self._database.acting_for(tenant, owner)

    @override
    def over_all_tenants(self) -> AbstractContextManager[None]:
        return self._database.over_all_tenants()

    @override
    def scrub(self) -> bool:
        """Say whether the files are clear; clearing them takes the owner's role (adr/0027)."""
        return is_cleared(self._database)
