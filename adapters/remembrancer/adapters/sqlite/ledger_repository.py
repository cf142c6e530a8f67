"""Ledgers in the SQLite file: events, receipts and snapshots, in one commit for several owners.

The owner's lock is the file's write lock.  This process's threads share it group by group
(:mod:`remembrancer.adapters.sqlite.group_commit`); ``BEGIN IMMEDIATE`` keeps other processes out.
"""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from typing_extensions import override

from remembrancer.adapters.sqlite import spend_receipts
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.group_commit import GroupCommit
from remembrancer.adapters.sqlite.ledger_batch import SNAPSHOT_EVERY, LedgerBatch
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation

__all__ = ["SNAPSHOT_EVERY", "SqliteLedgerRepository"]

_Result = TypeVar("_Result")


class SqliteLedgerRepository(LedgerRepository):
    """One for each :class:`Database`; threads, processes and forked children may share the file.

    The store's time is ``clock``'s, read once for each decision while the write lock is held.
    """

    def __init__(self, *, database: Database, log: EventLog, clock: Clock) -> None:
        self._database = database
        self._log = log
        self._clock = clock
        self._begin_anew()

    @override
    def decide(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        *,
        about: UUID | None = None,
    ) -> _Result:
        if self._pid != os.getpid():
            self._begin_anew()
        batch = self._batch
        answer = self._group.run(lambda _: batch.decide(tenant, owner, decision))
        return answer.given()

    @override
    def receipt(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        with self._database.read() as connection:
            return spend_receipts.find(connection, tenant, owner, reservation_id)

    @override
    def days(
        self, tenant: str, owner: str | None = None, *, since: UtcDay | None = None
    ) -> Sequence[SpendOfDay]:
        with self._database.read() as connection:
            return spend_receipts.days(connection, tenant, owner, since=since)

    def _begin_anew(self) -> None:
        # A forked child inherits locks that the parent's threads may have held.
        self._pid = os.getpid()
        self._batch = LedgerBatch(database=self._database, log=self._log, clock=self._clock)
        self._group = GroupCommit(database=self._database, batch=self._batch)
