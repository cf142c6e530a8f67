"""Ledgers in PostgreSQL: the owner's row lock, the database's time, two round trips (adr/0026).

The first round trip begins the transaction, takes the owner's lock and, in later statements, reads
the time and what the ledger was; Python decides by the domain's rules; the second writes events,
receipts and commits.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from eventsourcing.domain import AggregateEvent
from eventsourcing.persistence import Mapper, StoredEvent
from typing_extensions import override

from remembrancer.adapters.postgres import spend_receipts
from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.exchange import Call
from remembrancer.adapters.postgres.known_ledgers import KnownLedger, KnownLedgers
from remembrancer.adapters.postgres.statements import settings
from remembrancer.adapters.postgres.thread_state import Transaction
from remembrancer.application.load import evolved
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.ledger_repository import (
    HeldLedger,
    LedgerRepository,
    SpendOfDay,
)
from remembrancer.domain.errors import (
    MalformedRecordError,
    RefusedError,
    StaleStreamError,
    StoreUnavailableError,
)
from remembrancer.domain.hash_chain import GENESIS, Link, check_chain, event_hash
from remembrancer.domain.ledger_snapshot import ledger_from_snapshot, ledger_snapshot
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.spend_errors import QueryPendingError

SNAPSHOT_EVERY = 16
"""Events from one snapshot to the next: about the most that loading reads behind one."""

# Its sentences are in migrations/query_receipts/functions.sql.
_OPEN = "SELECT * FROM remembrancer.open_ledger($1, $2, $3, $4, $5, $6, $7, $8)"
_ALL_EVENTS = """
    SELECT originator_version, topic, state, predecessor_hash, event_hash FROM stored_events
    WHERE tenant = %s AND originator_id = %s ORDER BY originator_version
"""
_KEEP_SNAPSHOT = (
    "INSERT INTO ledger_snapshots AS kept (tenant, owner, version, state) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (tenant, owner) DO UPDATE SET version = excluded.version, state = excluded.state"
)

_Result = TypeVar("_Result")


class PostgresLedgerRepository(LedgerRepository):
    """One for each :class:`Database`; threads, processes and machines share the ledgers."""

    def __init__(
        self, *, database: Database, mapper: Mapper[UUID], clock: Clock | None = None
    ) -> None:
        """Decide by the database's clock.

        Args:
            database: where the ledgers are.
            mapper: of the log's events.
            clock: read instead of the database's, for the suites; machines don't agree on one.
        """
        self._database = database
        self._mapper = mapper
        self._clock = clock
        limits = settings(database.limits)[1]
        self._settings = tuple(limits[1:])
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
        if self._database.in_write:
            raise RuntimeError("what is inside a transaction can't be committed by itself")
        if self._pid != os.getpid():
            self._begin_anew()

        def decide(known: KnownLedger | None) -> _Result | _Refused:
            return self._decided(known, tenant, owner, decision, about)

        wait_s = self._database.limits.lock_timeout_s
        answer = self._known.in_turn(tenant, owner, decide, wait_s=wait_s)
        if isinstance(answer, _Refused):
            raise answer.refusal
        return answer

    @override
    def receipt(self, tenant: str, owner: str, reservation_id: UUID) -> Reservation | None:
        with self._database.read(tenant=tenant, owner=owner) as connection:
            statement, values = spend_receipts.finding(tenant, owner, reservation_id)
            row = connection.execute(statement, values).fetchone()
            return spend_receipts.reservation_of(row, reservation_id)

    @override
    def days(
        self, tenant: str, owner: str | None = None, *, since: UtcDay | None = None
    ) -> list[SpendOfDay]:
        with self._database.read(tenant=tenant, owner=owner) as connection:
            return list(spend_receipts.days(connection, tenant, owner, since=since))

    def _decided(
        self,
        known: KnownLedger | None,
        tenant: str,
        owner: str,
        decision: Callable[[HeldLedger], _Result],
        about: UUID | None,
    ) -> "_Result | _Refused":
        """Decide and record in a transaction, in this owner's turn."""
        if known is not None and _is_pending(known, about):
            about = None  # Its row says no more, unless others have settled it meanwhile.

        def work(tx: Transaction) -> _Result | _Refused:
            desk = self._desk(tx, known, tenant, owner, about)
            held = HeldLedger(desk.ledger, desk.ledger.not_before(desk.at), desk.find)
            answer: _Result | _Refused
            try:
                answer = decision(held)
            except RefusedError as refusal:
                answer = _Refused(refusal)  # What it has noticed before is kept.
            self._record(desk)
            return answer

        opening = self._opening(known, tenant, owner, about)
        try:
            return self._database.write_by(opening, work, tenant=tenant, owner=owner)
        except psycopg.Error as error:
            self._raise_refusal(error, tenant, owner)
            raise

    # -- Reading, behind the lock ------------------------------------------

    def _begin_anew(self) -> None:
        # A forked child inherits locks that the parent's threads may have held.
        self._pid = os.getpid()
        self._known = KnownLedgers(store=self._database.name)

    def _opening(
        self, known: KnownLedger | None, tenant: str, owner: str, about: UUID | None
    ) -> Call:
        """Return what locks and reads a ledger, and its time."""
        if known is not None:
            ledger_id, version = known.ledger.id, known.ledger.version
        else:
            ledger_id, version = ReservationLedger.create_id(tenant, owner), 0
        values = (tenant, owner, ledger_id, version, about, *self._settings)
        return Call("remembrancer_open", _OPEN, values)

    def _desk(
        self,
        tx: Transaction,
        known: KnownLedger | None,
        tenant: str,
        owner: str,
        about: UUID | None,
    ) -> "_Desk":
        """Take what was read; bring the ledger up to it."""
        assert tx.opening_row is not None  # noqa: S101 - it began by the call that reads
        row = _Opened(*tx.opening_row()[3:])
        links = [Link(*one) for one in zip(*row.links, strict=True)] if row.versions else []
        copy = known
        newest = row.snapshot_version or 0
        if row.snapshot_version is None and known is not None:
            newest = known.snapshot_version
        if row.snapshot is not None:
            copy = KnownLedger(_from_snapshot(row.snapshot, tenant, owner), head=None)
        if copy is None or not _continues(copy, links):
            copy, newest = KnownLedger(ReservationLedger.unused(tenant, owner), head=None), 0
            if known is not None or row.snapshot_version is not None:
                links = self._all_links(tx.connection, tenant, copy.ledger.id)
        ledger, head = self._brought_up(copy.ledger, links)
        desk = _Desk(
            tx,
            ledger=ledger,
            head=head,
            at=self._clock.now() if self._clock else spend_receipts.moment(row.at_us),
            snapshot_version=newest,
        )
        if about is not None:
            found = spend_receipts.reservation_of(row.receipt, about) if row.has_receipt else None
            desk.seen.setdefault(about, found)
        return desk

    @staticmethod
    def _all_links(connection: Connection, tenant: str, stream_id: UUID) -> list[Link]:
        rows = connection.execute(_ALL_EVENTS, (tenant, stream_id), binary=True)
        return [Link(*row) for row in rows]

    def _brought_up(
        self, ledger: ReservationLedger, links: list[Link]
    ) -> tuple[ReservationLedger, bytes]:
        """Apply what follows a copy of a ledger; return it with the hash of its last event."""
        before = links.pop(0) if ledger.version else None
        check_chain(ledger.id, links, before=before)
        for one in links:
            evolved(ledger, self._event(ledger.id, one))
        last = links[-1] if links else before
        return ledger, GENESIS if last is None else last.own

    def _event(self, stream_id: UUID, link: Link) -> AggregateEvent:
        event = self._mapper.to_domain_event(
            StoredEvent(stream_id, link.version, link.topic, link.state)
        )
        assert isinstance(event, AggregateEvent)  # noqa: S101 - the mapper's listed events are
        return event

    # -- Writing -----------------------------------------------------------

    def _record(self, desk: "_Desk") -> None:
        """Send events, receipts and snapshot; the commit goes with them."""
        ledger = desk.ledger
        facts = [one for one in ledger.pending_events if isinstance(one, LedgerEvent)]
        calls = list[Call]()
        for fact in facts:
            record = self._mapper.to_stored_event(fact)
            predecessor = desk.head
            desk.head = event_hash(predecessor, record.topic, record.state)
            is_new = isinstance(fact, ReservationAdmitted)
            after = fact.reservation_after(None if is_new else desk.find(fact.reservation_id))
            desk.seen[fact.reservation_id] = after
            event = (
                ledger.tenant,
                ledger.owner,
                ledger.id,
                record.originator_version,
                record.topic,
                record.state,
                predecessor,
                desk.head,
            )
            calls.append(spend_receipts.recording(event, fact, after))
        ledger.collect_events()
        if ledger.version - desk.snapshot_version >= SNAPSHOT_EVERY:
            kept = (ledger.tenant, ledger.owner, ledger.version, ledger_snapshot(ledger))
            calls.append(Call("remembrancer_keep", _KEEP_SNAPSHOT, kept))
            desk.snapshot_version = ledger.version
        desk.tx.closing = calls
        if facts:
            desk.tx.calls.append(self._database.bell.ring)
        committed = KnownLedger(ledger, desk.head, desk.snapshot_version)
        desk.tx.calls.append(partial(self._known.put, committed))

    def _raise_refusal(self, error: psycopg.Error, tenant: str, owner: str) -> None:
        """Say in the domain's words what stands behind its rules; return if it isn't that."""
        if isinstance(error, psycopg.errors.UniqueViolation):
            if error.diag.constraint_name == spend_receipts.ONE_PENDING_QUERY:
                raise self._query_pending(tenant, owner) from error
            if error.diag.table_name == "stored_events":
                raise StaleStreamError(ReservationLedger.create_id(tenant, owner)) from error
        if isinstance(error, (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction)):
            problem = "its schema was taken back meanwhile; run `remembrancer migrate up`"
            raise StoreUnavailableError(store=self._database.name, problem=problem) from error

    def _query_pending(self, tenant: str, owner: str) -> RefusedError | StoreUnavailableError:
        with self._database.read(tenant=tenant, owner=owner) as connection:
            found = spend_receipts.pending_query(connection, tenant, owner)
        if found is None:
            problem = "it gave way to another writer"
            return StoreUnavailableError(store=self._database.name, problem=problem)
        return QueryPendingError(reservation_id=found[0], expires_at=found[1])


class _Refused(NamedTuple):
    """The answer of a decision that refused."""

    refusal: RefusedError


@dataclass(slots=True)
class _Desk:
    """One ledger while it is decided upon, and what of its receipts was read."""

    tx: Transaction
    ledger: ReservationLedger
    head: bytes
    """Hash of its last event."""
    at: Any
    snapshot_version: int
    """Of the snapshot that others would begin from."""
    seen: dict[UUID, Reservation | None] = field(init=False)

    def __post_init__(self) -> None:
        self.seen = {one.reservation_id: one for one in self.ledger.pending}

    def find(self, reservation_id: UUID) -> Reservation | None:
        if reservation_id not in self.seen:
            statement, values = spend_receipts.finding(
                self.ledger.tenant, self.ledger.owner, reservation_id
            )
            row = self.tx.connection.execute(statement, values).fetchone()
            self.seen[reservation_id] = spend_receipts.reservation_of(row, reservation_id)
        return self.seen[reservation_id]


class _Opened(NamedTuple):
    """What ``open_ledger`` answers behind the transaction's identity."""

    at_us: int
    snapshot_version: int | None
    snapshot: bytes | None
    versions: list[int] | None
    topics: list[str] | None
    states: list[bytes] | None
    predecessors: list[bytes] | None
    hashes: list[bytes] | None
    has_receipt: bool | None
    kind: str | None = None
    request_digest: str | None = None
    state: str | None = None
    day: str | None = None
    admitted_us: int | None = None
    lease_s: int | None = None
    reserved_quanta: int | None = None
    charged_quanta: int | None = None
    usage_tokens: int | None = None
    unknown_reason: str | None = None

    @property
    def links(self) -> tuple[Any, ...]:
        """The columns of the events."""
        return self[3:8]

    @property
    def receipt(self) -> tuple[Any, ...]:
        """The row of the reservation that was asked for."""
        return self[9:]


def _is_pending(copy: KnownLedger, reservation_id: UUID | None) -> bool:
    return any(one.reservation_id == reservation_id for one in copy.ledger.pending)


def _continues(copy: KnownLedger, links: list[Link]) -> bool:
    """Say whether a stream has the event that a copy ends with, at its place."""
    return (
        bool(links)
        and links[0].version == copy.ledger.version
        and copy.head in {None, links[0].own}
    )


def _from_snapshot(state: bytes | None, tenant: str, owner: str) -> ReservationLedger:
    if state is not None:
        try:
            return ledger_from_snapshot(state, tenant=tenant, owner=owner)
        except MalformedRecordError:
            pass  # Not readable by this release: the stream tells it all.
    return ReservationLedger.unused(tenant, owner)
