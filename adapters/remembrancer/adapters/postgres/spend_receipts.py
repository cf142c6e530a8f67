"""Rows of ``spend_receipts``: what the events of all ledgers made of each reservation.

Receipts of index requests are written as they were before queries were paid for, column by column;
those of queries also have ``kind`` and ``deadline`` (adr/0026).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.exchange import Call
from remembrancer.adapters.postgres.statements import Statement
from remembrancer.application.ports.ledger_repository import SpendOfDay
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    Reservation,
    ReservationKind,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted

ONE_PENDING_QUERY = "spend_receipts_one_pending_query"
"""The index behind the domain's rule that one query is pending at a time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# Microseconds, because a timestamp would come in whatever zone the session has.
_FIND = """
    SELECT kind, request_digest, state, day, (extract(epoch FROM admitted_at) * 1000000)::bigint,
        lease_s, reserved_quanta, charged_quanta, usage_tokens, unknown_reason
    FROM spend_receipts WHERE tenant = %s AND owner = %s AND reservation_id = %s
"""
# An event, and with it the row of its reservation; the first eight values are the event's.
_ADMISSION = (
    "SELECT remembrancer.record_admission($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,"
    " $14, $15, $16, $17, $18, $19, $20)"
)
_CHANGE = (
    "SELECT remembrancer.record_change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
)
_PENDING_QUERY = """
    SELECT reservation_id, (extract(epoch FROM deadline) * 1000000)::bigint FROM spend_receipts
    WHERE tenant = %s AND owner = %s AND state = 'pending' AND kind = 'query'
"""
_DAYS = """
    SELECT owner, day, count(*), sum(reserved_quanta)::bigint, sum(charged_quanta)::bigint,
        coalesce(sum(charged_quanta) FILTER (WHERE state = 'pending'), 0)::bigint,
        coalesce(sum(charged_quanta) FILTER (WHERE state = 'unknown'), 0)::bigint,
        count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'unknown'),
        (array_agg(ceiling_quanta ORDER BY admitted_version DESC))[1],
        (array_agg(ceiling_requests ORDER BY admitted_version DESC))[1]
    FROM spend_receipts
    WHERE tenant = %s AND (%s::text IS NULL OR owner = %s) AND day >= %s
    GROUP BY owner, day ORDER BY owner, day
"""


def moment(microseconds: int) -> datetime:
    """Return a time that was read as microseconds since 1970."""
    return _EPOCH + microseconds * _MICROSECOND


def finding(tenant: str, owner: str, reservation_id: UUID) -> Statement:
    """Return what reads a reservation's row, for :func:`reservation_of`."""
    return _FIND, (tenant, owner, reservation_id)


def reservation_of(row: tuple[Any, ...] | None, reservation_id: UUID) -> Reservation | None:
    """Return what became of a reservation, or None."""
    if row is None:
        return None
    kind, digest, state, day, admitted_at, lease_s, reserved, charged, usage, reason = row
    admitted = moment(admitted_at)
    return Reservation(
        reservation_id=reservation_id,
        kind=ReservationKind.INDEXING if kind is None else ReservationKind(kind),
        request_digest=digest,
        state=ReservationState(state),
        day=UtcDay(day),
        admitted_at=admitted,
        expires_at=admitted + timedelta(seconds=lease_s),
        reserved_quanta=reserved,
        charged_quanta=charged,
        usage_tokens=usage,
        unknown_reason=reason and UnknownReason(reason),
    )


def recording(event: tuple[Any, ...], fact: LedgerEvent, after: Reservation | None) -> Call:
    """Return what records an event and lets the row of its reservation follow.

    Args:
        event: its row.
        fact: the event.
        after: what it made of its reservation.
    """
    if after is None:
        raise AssertionError("a ledger changes what it admitted, and nothing else")
    if not isinstance(fact, ReservationAdmitted):
        reason = after.unknown_reason and after.unknown_reason.value
        changed = (after.state.value, after.charged_quanta, after.usage_tokens, reason)
        values = (*event, after.reservation_id, *changed)
        return Call("remembrancer_change", _CHANGE, values)
    is_query = after.kind is ReservationKind.QUERY
    receipt = (
        after.reservation_id,
        after.request_digest,
        after.state.value,
        after.day,
        after.admitted_at,
        fact.lease_s,
        after.reserved_quanta,
        after.charged_quanta,
        fact.ceiling_quanta,
        fact.ceiling_requests,
        after.kind.value if is_query else None,
        fact.deadline if is_query else None,
    )
    return Call("remembrancer_admission", _ADMISSION, (*event, *receipt))


def pending_query(connection: Connection, tenant: str, owner: str) -> tuple[UUID, datetime] | None:
    """Return the id and the deadline of an owner's pending query, or None."""
    row = connection.execute(_PENDING_QUERY, (tenant, owner)).fetchone()
    return None if row is None else (row[0], moment(row[1]))


def days(
    connection: Connection, tenant: str, owner: str | None, *, since: UtcDay | None
) -> Sequence[SpendOfDay]:
    """Return the sums by owner and day."""
    return [
        SpendOfDay(
            tenant=tenant,
            owner=row[0],
            day=UtcDay(row[1]),
            requests=row[2],
            reserved_quanta=row[3],
            charged_quanta=row[4],
            pending_quanta=row[5],
            unknown_quanta=row[6],
            pending=row[7],
            unknown=row[8],
            ceiling_quanta=row[9],
            ceiling_requests=row[10],
        )
        for row in connection.execute(_DAYS, (tenant, owner, owner, since or ""))
    ]
