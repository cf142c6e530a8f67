"""Rows of ``spend_receipts``: what the events of all ledgers made of each reservation."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import apsw

from remembrancer.application.ports.ledger_repository import SpendOfDay
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    Reservation,
    ReservationKind,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted

FindEarlier = Callable[[UUID], Reservation | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_FIND = (
    "SELECT kind, request_digest, state, day, admitted_at, expires_at, reserved_quanta,"
    " charged_quanta, usage_tokens, unknown_reason FROM spend_receipts"
    " WHERE tenant = ? AND owner = ? AND reservation_id = ?"
)
_ADMIT = (
    "INSERT INTO spend_receipts (tenant, owner, reservation_id, kind, request_digest, state, day,"
    " admitted_at, expires_at, reserved_quanta, charged_quanta, admitted_version, ceiling_quanta,"
    " ceiling_requests) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CHANGE = (
    "UPDATE spend_receipts SET state = ?, charged_quanta = ?, usage_tokens = ?,"
    " unknown_reason = ? WHERE tenant = ? AND owner = ? AND reservation_id = ?"
)
# SQLite takes bare columns from the row that has the max().
_DAYS = (
    "SELECT owner, day, count(*), sum(reserved_quanta), sum(charged_quanta),"
    " sum(iif(state = 'pending', charged_quanta, 0)),"
    " sum(iif(state = 'unknown', charged_quanta, 0)),"
    " sum(state = 'pending'), sum(state = 'unknown'),"
    " ceiling_quanta, ceiling_requests, max(admitted_version) FROM spend_receipts"
    " WHERE tenant = ?1 AND (?2 IS NULL OR owner = ?2) AND day >= ?3"
    " GROUP BY owner, day ORDER BY owner, day"
)


def find(
    connection: apsw.Connection, tenant: str, owner: str, reservation_id: UUID
) -> Reservation | None:
    """Return what became of a reservation, or None."""
    row = connection.execute(_FIND, (tenant, owner, reservation_id.bytes)).fetchone()
    if row is None:
        return None
    kind, digest, state, day, admitted_at, expires_at, reserved, charged, usage, reason = row
    return Reservation(
        reservation_id=reservation_id,
        kind=ReservationKind(kind),
        request_digest=digest,
        state=ReservationState(state),
        day=UtcDay(day),
        admitted_at=_EPOCH + admitted_at * _MICROSECOND,
        expires_at=_EPOCH + expires_at * _MICROSECOND,
        reserved_quanta=reserved,
        charged_quanta=charged,
        usage_tokens=usage,
        unknown_reason=reason and UnknownReason(reason),
    )


def record(connection: apsw.Connection, fact: LedgerEvent) -> None:
    """Let the row of a reservation follow an event, inside the event's transaction."""
    find_one = partial(find, connection, fact.tenant, fact.owner)
    record_all(connection, [(fact, find_one)])


def record_all(
    connection: apsw.Connection, facts: Iterable[tuple[LedgerEvent, FindEarlier]]
) -> None:
    """Let rows follow events, in the events' transaction and order.

    With each event comes how to find what became of its owner's reservations before all of these.
    """
    admitted: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    latest: dict[tuple[str, str, bytes], Reservation | None] = {}
    for fact, find_earlier in facts:
        key = (fact.tenant, fact.owner, fact.reservation_id.bytes)
        if isinstance(fact, ReservationAdmitted):
            latest[key] = one = fact.reservation_after(None)
            admitted.append(_row(key, fact, one))
            continue
        earlier = latest[key] if key in latest else find_earlier(fact.reservation_id)
        latest[key] = after = fact.reservation_after(earlier)
        if after is not None:
            reason = after.unknown_reason and after.unknown_reason.value
            row = (after.state.value, after.charged_quanta, after.usage_tokens, reason, *key)
            changed.append(row)
    if admitted:
        connection.executemany(_ADMIT, admitted)
    if changed:
        connection.executemany(_CHANGE, changed)


def days(
    connection: apsw.Connection, tenant: str, owner: str | None, *, since: UtcDay | None
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
        for row in connection.execute(_DAYS, (tenant, owner, since or ""))
    ]


def _row(
    key: tuple[str, str, bytes], fact: ReservationAdmitted, one: Reservation
) -> tuple[Any, ...]:
    return (
        *key,
        one.kind.value,
        one.request_digest,
        one.state.value,
        one.day,
        (one.admitted_at - _EPOCH) // _MICROSECOND,
        (one.expires_at - _EPOCH) // _MICROSECOND,
        one.reserved_quanta,
        one.charged_quanta,
        fact.originator_version,
        fact.ceiling_quanta,
        fact.ceiling_requests,
    )
