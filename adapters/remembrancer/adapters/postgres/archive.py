"""What PostgreSQL has recorded, read by whose it is, and taken in from another store."""

import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from psycopg import errors as states
from typing_extensions import override

from remembrancer.adapters.postgres import spend_receipts
from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.original_row import COLUMNS, to_original
from remembrancer.adapters.postgres.recorder import PostgresApplicationRecorder
from remembrancer.application.ports.archive import (
    Archive,
    ArchivedEvent,
    ArchivedSession,
    Counts,
    Part,
)
from remembrancer.application.ports.entry_vault import Original
from remembrancer.domain.canonical_json import canonical_json
from remembrancer.domain.errors import MalformedRecordError
from remembrancer.domain.hash_chain import GENESIS, Link, check_chain, check_next
from remembrancer.domain.identity import EntryId
from remembrancer.domain.reservation import ReservationKind
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted

ROWS_AT_ONCE = 500
"""Rows that are fetched in one round trip."""

_OF_RESERVATION = [
    "remembrancer.reservation_ledger.reservation_admitted",
    "remembrancer.reservation_ledger.reservation_settled",
    "remembrancer.reservation_ledger.reservation_became_unknown",
    "remembrancer.reservation_ledger.reservation_reconciled",
    "remembrancer.cache_context.query_vectors_prepared",
]
_EVENTS = """
    SELECT e.position, e.tenant, e.owner, e.originator_id, e.originator_version, e.topic, e.state,
        e.predecessor_hash, e.event_hash, before.event_hash
    FROM stored_events AS e
    LEFT JOIN stored_events AS before ON before.tenant = e.tenant
        AND before.originator_id = e.originator_id
        AND before.originator_version = e.originator_version - 1
    WHERE {} ORDER BY e.position {} LIMIT %s
"""
_NEWEST = "SELECT * FROM ({}) AS newest ORDER BY 1"
_SESSION = (
    "(e.tenant, e.originator_id) IN (SELECT one.tenant, one.originator_id"
    " FROM stored_events AS one WHERE one.tenant = %s AND one.session_key = %s)"
)
_COUNT_EVENTS = "SELECT count(*) FROM stored_events AS e WHERE {}"
_WHOSE = (
    "(%(tenant)s::text IS NULL OR k.tenant = %(tenant)s)"
    " AND (%(owner)s::text IS NULL OR k.owner = %(owner)s)"
)
# Of constants alone.
_COUNT_ORIGINALS = f"SELECT count(*) FROM originals AS k WHERE {_WHOSE}"  # noqa: S608
_COUNT_SESSIONS = f"SELECT count(*) FROM session_keys AS k WHERE {_WHOSE}"  # noqa: S608
_ORIGINALS = f"SELECT {COLUMNS} FROM originals AS k WHERE {_WHOSE}"  # noqa: S608
_ORIGINALS += " ORDER BY tenant, entry_id, version"
_SESSIONS = (
    "SELECT k.selection_id, k.tenant, k.owner, k.session, k.key, i.number, i.items"
    " FROM session_keys AS k LEFT JOIN session_items AS i"
    " ON i.tenant = k.tenant AND i.selection_id = k.selection_id"
)
_SESSIONS += f" WHERE {_WHOSE} ORDER BY k.tenant, k.selection_id, i.number"
_HAS_ANYTHING = (
    "SELECT EXISTS (SELECT FROM stored_events) OR EXISTS (SELECT FROM originals)"
    " OR EXISTS (SELECT FROM session_keys) OR EXISTS (SELECT FROM erased_entries)"
)
_HEAD = (
    "SELECT originator_version, event_hash FROM stored_events WHERE tenant = %s"
    " AND originator_id = %s ORDER BY originator_version DESC LIMIT 1"
)
_ADD_ERASED = "INSERT INTO erased_entries (entry_id) VALUES (%s) ON CONFLICT DO NOTHING"
_ADMIT = (
    "INSERT INTO spend_receipts (tenant, owner, reservation_id, request_digest, state, day,"
    " admitted_at, lease_s, reserved_quanta, charged_quanta, ceiling_quanta, ceiling_requests,"
    " ledger_id, admitted_version, kind, deadline)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_CHANGE = (
    "UPDATE spend_receipts SET state = %s, charged_quanta = %s, usage_tokens = %s,"
    " unknown_reason = %s WHERE tenant = %s AND owner = %s AND reservation_id = %s"
)


class PostgresArchive(Archive):
    """Reads as whom the thread acts for; takes in for one owner at a time."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._recorder = PostgresApplicationRecorder(database=database)

    @override
    def counts(self, part: Part) -> Counts:
        conditions, values = _conditions(part)
        whose = {"tenant": part.tenant, "owner": part.owner}
        with self._database.read(tenant=part.tenant, owner=part.owner) as connection:
            return Counts(
                events=_number(connection, _COUNT_EVENTS.format(conditions), values),
                originals=_number(connection, _COUNT_ORIGINALS, whose),
                sessions=_number(connection, _COUNT_SESSIONS, whose),
            )

    @override
    def events(
        self,
        part: Part,
        *,
        after_position: int = 0,
        limit: int | None = None,
        newest: bool = False,
    ) -> Generator[ArchivedEvent]:
        conditions, values = _conditions(part)
        statement = _EVENTS.format(
            f"{conditions} AND e.position > %s AND e.position <= %s", "DESC" if newest else ""
        )
        if newest:
            statement = _NEWEST.format(statement)
        with self._database.read(tenant=part.tenant, owner=part.owner) as connection:
            bound = self._database.last_settled(connection)
            rows = self._rows(connection, statement, (*values, after_position, bound, limit))
            for row in rows:
                if _names(row[6], part.reservation_id):
                    yield _event(*row)

    @override
    def originals(self, part: Part) -> Iterator[Original]:
        whose = {"tenant": part.tenant, "owner": part.owner}
        with self._database.read(tenant=part.tenant, owner=part.owner) as connection:
            for row in self._rows(connection, _ORIGINALS, whose):
                yield to_original(row, store=self._database.name)

    @override
    def sessions(self, part: Part) -> Iterator[ArchivedSession]:
        whose = {"tenant": part.tenant, "owner": part.owner}
        with self._database.read(tenant=part.tenant, owner=part.owner) as connection:
            rows = self._rows(connection, _SESSIONS, whose)
            for (stored, tenant, owner, session, key), of_one in groupby(
                rows, lambda row: row[:5]
            ):
                yield ArchivedSession(
                    selection_id=stored,
                    tenant=tenant,
                    owner=owner,
                    session=session,
                    key=key,
                    items=tuple((row[5], row[6]) for row in of_one if row[5] is not None),
                )

    @override
    def is_empty(self) -> bool:
        with self._database.read() as connection:
            row: Any = connection.execute(_HAS_ANYTHING).fetchone()
            return not row[0]

    @override
    def take_events(self, events: Sequence[ArchivedEvent]) -> None:
        heads: dict[UUID, Link | None] = {}
        whose = events[0] if events else None
        if whose is None:
            return
        with self._database.write(tenant=whose.tenant, owner=whose.owner) as connection:
            for one in events:
                stream_id = one.stream_id
                if stream_id not in heads:
                    heads[stream_id] = _head(connection, whose.tenant, stream_id)
                link = Link(one.version, one.topic, one.state, one.predecessor, one.own)
                check_next(stream_id, link, head=heads[stream_id])
                heads[stream_id] = link
            # Hashes are made anew there, of the same bytes behind the same predecessors.
            self._recorder.insert_events(
                [StoredEvent(one.stream_id, one.version, one.topic, one.state) for one in events]
            )

    @override
    def take_erased(self, entries: Sequence[EntryId], *, tenant: str, owner: str) -> None:
        with self._database.write(tenant=tenant, owner=owner) as connection:
            for entry_id in entries:
                connection.execute(_ADD_ERASED, (entry_id,))

    @override
    def take_receipts(self, facts: Sequence[LedgerEvent]) -> None:
        for fact in facts:
            try:
                with self._database.write(tenant=fact.tenant, owner=fact.owner) as connection:
                    _record(connection, fact)
            except states.UniqueViolation as error:
                raise MalformedRecordError(
                    stream_id=fact.originator_id,
                    version=fact.originator_version,
                    problem="no receipt can follow it: its reservation was admitted before",
                ) from error

    def _rows(self, connection: Connection, statement: str, values: Any) -> Iterator[Any]:
        """Iterate over rows that the server keeps until they are fetched."""
        with connection.cursor(name="archive") as cursor:
            cursor.itersize = ROWS_AT_ONCE
            yield from cursor.execute(statement, values, binary=True)


def _conditions(part: Part) -> tuple[str, list[Any]]:
    conditions, values = ["true"], list[Any]()
    for column, value in (
        ("tenant", part.tenant),
        ("owner", part.owner),
        ("originator_id", part.stream_id),
    ):
        if value is not None:
            conditions.append(f"e.{column} = %s")
            values.append(value)
    if part.session is not None:
        conditions.append(_SESSION)
        values += [part.tenant, hashlib.sha256(canonical_json(part.session)).digest()]
    if part.reservation_id is not None:
        conditions.append("e.topic = ANY(%s) AND position(%s::bytea IN e.state) > 0")
        values += [_OF_RESERVATION, part.reservation_id.hex.encode()]
    return " AND ".join(conditions), values


def _names(state: bytes, reservation_id: UUID | None) -> bool:
    """Say whether an event names this reservation, and doesn't only hold its digits."""
    if reservation_id is None:
        return True
    try:
        named = json.loads(state)["reservation_id"]["_data_"]
    except (KeyError, TypeError, ValueError):
        return False
    return bool(named == reservation_id.hex)


def _event(
    number: int, tenant: str, owner: str, stream_id: UUID, version: int, *rest: Any
) -> ArchivedEvent:
    topic, state, predecessor, own, before = rest
    last = None if before is None else Link(version - 1, "", b"", GENESIS, before)
    check_chain(stream_id, [Link(version, topic, state, predecessor, own)], before=last)
    return ArchivedEvent(
        position=number,
        tenant=tenant,
        owner=owner,
        stream_id=stream_id,
        version=version,
        topic=topic,
        state=state,
        predecessor=predecessor,
        own=own,
    )


def _head(connection: Connection, tenant: str, stream_id: UUID) -> Link | None:
    row = connection.execute(_HEAD, (tenant, stream_id), binary=True).fetchone()
    return None if row is None else Link(row[0], "", b"", GENESIS, row[1])


def _record(connection: Connection, fact: LedgerEvent) -> None:
    """Let the row of a reservation follow an event that is in the log."""
    key = (fact.tenant, fact.owner, fact.reservation_id)
    if isinstance(fact, ReservationAdmitted):
        one = fact.reservation_after(None)
        is_query = one.kind is ReservationKind.QUERY
        admitted = (
            *(one.request_digest, one.state.value, one.day, one.admitted_at, fact.lease_s),
            *(one.reserved_quanta, one.charged_quanta, fact.ceiling_quanta, fact.ceiling_requests),
            *(fact.originator_id, fact.originator_version),
            *((one.kind.value, fact.deadline) if is_query else (None, None)),
        )
        connection.execute(_ADMIT, (*key, *admitted))
        return
    found = connection.execute(*spend_receipts.finding(*key)).fetchone()
    after = fact.reservation_after(spend_receipts.reservation_of(found, fact.reservation_id))
    if after is not None:
        reason = after.unknown_reason and after.unknown_reason.value
        changed = (after.state.value, after.charged_quanta, after.usage_tokens, reason)
        connection.execute(_CHANGE, (*changed, *key))


def _number(connection: Connection, statement: str, values: Any) -> int:
    row: Any = connection.execute(statement, values).fetchone()
    return int(row[0])
