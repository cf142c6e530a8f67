"""Ledgers in the SQLite file: events, receipts and snapshots, in one commit for several owners.

The owner's lock is the file's write lock.  This process's threads share it group by group
(:mod:`remembrancer.adapters.sqlite.group_commit`); ``BEGIN IMMEDIATE`` keeps other processes out.
"""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar
from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite import spend_receipts
from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.group_commit import GroupCommit
from remembrancer.application.load import append, evolved
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.event_log import EventLog
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.domain.errors import MalformedRecordError, RefusedError
from remembrancer.domain.ledger_snapshot import ledger_from_snapshot, ledger_snapshot
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation
from remembrancer.domain.reservation_event import LedgerEvent
from remembrancer.domain.reservation_ledger import ReservationLedger

SNAPSHOT_EVERY = 16
"""Events from one snapshot to the next: about the most that loading reads behind one."""
LEDGERS_KNOWN_MAX = 1_024
"""Owners whose ledger this process remembers, to read only what others have added since."""

_SNAPSHOT_VERSION = "SELECT version FROM ledger_snapshots WHERE tenant = ? AND owner = ?"
_SNAPSHOT = "SELECT state FROM ledger_snapshots WHERE tenant = ? AND owner = ?"
_KEEP_SNAPSHOT = (
    "INSERT INTO ledger_snapshots (tenant, owner, version, state) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (tenant, owner) DO UPDATE SET version = excluded.version, state = excluded.state"
)

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
        answer = self._group.run(partial(self._decided, tenant, owner, decision))
        if isinstance(answer, _Refused):
            raise answer.refusal
        return answer.result

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
        self._group = GroupCommit(database=self._database)
        self._known = _KnownLedgers()

    def _decided(
        self,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        connection: apsw.Connection,
    ) -> "_Given[_Result] | _Refused":
        """Run one decision inside the open transaction and write what it recorded."""
        ledger, snapshot_version = self._loaded(connection, tenant, owner)
        held = HeldLedger(
            ledger=ledger,
            now=ledger.not_before(self._clock.now()),
            find=partial(spend_receipts.find, connection, tenant, owner),
        )
        answer: _Given[_Result] | _Refused
        try:
            answer = _Given(decision(held))
        except RefusedError as refusal:
            answer = _Refused(refusal)
        with self._database.attempt():
            self._record(connection, ledger, snapshot_version)
            self._database.after_commit(partial(self._known.put, ledger))
        return answer

    def _loaded(
        self, connection: apsw.Connection, tenant: str, owner: str
    ) -> tuple[ReservationLedger, int]:
        """Return the ledger, and the version of the snapshot that others would begin from."""
        snapshot_version: int = connection.execute(_SNAPSHOT_VERSION, (tenant, owner)).get or 0
        ledger = self._known.take(tenant, owner)
        if ledger is None or ledger.version < snapshot_version:
            ledger = _from_snapshot(connection, tenant, owner)
            snapshot_version = ledger.version
        for event in self._log.read(ledger.id, after_version=ledger.version):
            evolved(ledger, event)
        return ledger, snapshot_version

    def _record(
        self, connection: apsw.Connection, ledger: ReservationLedger, snapshot_version: int
    ) -> None:
        facts = list(ledger.pending_events)
        if not facts:
            return
        append(self._log, ledger)
        for fact in facts:
            if isinstance(fact, LedgerEvent):
                spend_receipts.record(connection, fact)
        if ledger.version - snapshot_version >= SNAPSHOT_EVERY:
            state = ledger_snapshot(ledger)
            connection.execute(
                _KEEP_SNAPSHOT, (ledger.tenant, ledger.owner, ledger.version, state)
            )


@dataclass(frozen=True, slots=True)
class _Given(Generic[_Result]):
    result: _Result


@dataclass(frozen=True, slots=True)
class _Refused:
    """A refusal to be raised once what the ledger recorded nevertheless is committed."""

    refusal: RefusedError


class _KnownLedgers:
    """Committed ledgers by owner, each lent to one decision at a time, the latest used kept.

    A ledger is taken out before it decides and put back after the commit.  So what was rolled
    back is never met again, and what other processes have added since is read from the log.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_owner: dict[tuple[str, str], ReservationLedger] = {}

    def take(self, tenant: str, owner: str) -> ReservationLedger | None:
        with self._lock:
            return self._by_owner.pop((tenant, owner), None)

    def put(self, ledger: ReservationLedger) -> None:
        with self._lock:
            self._by_owner[ledger.tenant, ledger.owner] = ledger
            if len(self._by_owner) > LEDGERS_KNOWN_MAX:
                del self._by_owner[next(iter(self._by_owner))]


def _from_snapshot(connection: apsw.Connection, tenant: str, owner: str) -> ReservationLedger:
    state: bytes | None = connection.execute(_SNAPSHOT, (tenant, owner)).get
    if state is not None:
        try:
            return ledger_from_snapshot(state, tenant=tenant, owner=owner)
        except MalformedRecordError:
            pass  # Not readable by this release: the stream tells it all.
    return ReservationLedger.unused(tenant, owner)
