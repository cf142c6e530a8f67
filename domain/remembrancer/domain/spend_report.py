"""What an owner spent, day by day, read from the ledger's events.

For people and auditors; no decision is made by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import Reservation, ReservationState
from remembrancer.domain.reservation_event import LedgerEvent, ReservationAdmitted

_Name = tuple[str, str, UUID]
"""Tenant, owner and reservation id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendDay:
    """One UTC day of one owner, by day of admission.  Amounts are quanta."""

    tenant: str
    owner: str
    day: UtcDay
    requests: int
    reserved_quanta: int
    """Complete charges of all requests, whatever became of them."""
    charged_quanta: int
    """What counts against the ceiling: settled and reconciled, unknown and pending charges."""
    unknown_quanta: int
    """Of these, charges whose true usage isn't proved."""
    pending_quanta: int
    """Of these, charges of requests that may be out, or whose lease ran out unseen."""
    pending_requests: int
    ceiling_quanta: int
    """In force at the day's last admission."""
    ceiling_requests: int


def spend_days(events: Iterable[object]) -> tuple[SpendDay, ...]:
    """Return the days of the ledgers whose whole streams ``events`` holds, by owner and day."""
    reservations: dict[_Name, Reservation] = {}
    last: dict[tuple[str, str, UtcDay], ReservationAdmitted] = {}
    for fact in events:
        if not isinstance(fact, LedgerEvent):
            continue
        name = (fact.tenant, fact.owner, fact.reservation_id)
        after = fact.reservation_after(reservations.get(name))
        if after is not None:
            reservations[name] = after
        if isinstance(fact, ReservationAdmitted):
            last[fact.tenant, fact.owner, UtcDay(fact.day)] = fact
    by_day: dict[tuple[str, str, UtcDay], list[Reservation]] = {key: [] for key in last}
    for (tenant, owner, _), one in reservations.items():
        by_day[tenant, owner, one.day].append(one)
    return tuple(_day(last[key], by_day[key]) for key in sorted(last))


def _day(last: ReservationAdmitted, reservations: list[Reservation]) -> SpendDay:
    def charged(state: ReservationState) -> int:
        return sum(one.charged_quanta for one in reservations if one.state is state)

    return SpendDay(
        tenant=last.tenant,
        owner=last.owner,
        day=UtcDay(last.day),
        requests=len(reservations),
        reserved_quanta=sum(one.reserved_quanta for one in reservations),
        charged_quanta=sum(one.charged_quanta for one in reservations),
        unknown_quanta=charged(ReservationState.UNKNOWN),
        pending_quanta=charged(ReservationState.PENDING),
        pending_requests=sum(one.state is ReservationState.PENDING for one in reservations),
        ceiling_quanta=last.ceiling_quanta,
        ceiling_requests=last.ceiling_requests,
    )
