"""What may happen to a reservation: the events of a ledger, and how each changes the record.

Topics and field names are stored format: never rename one.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from eventsourcing.domain import Aggregate
from eventsourcing.utils import resolve_topic

from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    DayTotals,
    Reservation,
    ReservationKind,
    ReservationState,
    UnknownReason,
)

LEDGER_TOPIC = "remembrancer.reservation_ledger"


class LedgerEvent(Aggregate.Event):
    """Base of the facts below; never stored itself."""

    TOPIC = "remembrancer.reservation_ledger.event"
    tenant: str
    owner: str
    reservation_id: UUID
    day: str
    """UTC day of admission, also of events that happen later."""

    def reservation_after(self, earlier: Reservation | None) -> Reservation | None:
        """Return what this event made of the reservation that was ``earlier``."""
        raise NotImplementedError

    def day_change(self) -> DayTotals:
        """Return what this event adds to the day of admission; money may be negative."""
        raise NotImplementedError

    def apply(self, aggregate: Any) -> None:
        """Evolve the ledger."""
        aggregate._evolve(self)  # noqa: SLF001  # its own event


class ReservationAdmitted(LedgerEvent):
    """A complete charge was set aside; only now may the request leave.

    ``kind`` and ``deadline`` came later, with queries.  An indexing event doesn't hold them,
    so that a release from before can read it; here their defaults answer in their place
    (seed BSQ: "index receipts preserve their previous serialized shape").
    """

    TOPIC = "remembrancer.reservation_ledger.reservation_admitted"
    request_digest: str
    reserved_quanta: int
    lease_s: int
    day_quanta_before: int
    day_requests_before: int
    ceiling_quanta: int
    ceiling_requests: int
    mechanism_version: str
    configuration_digest: str
    embedding_tuple_digest: str
    pricing_digest: str
    kind: str = ReservationKind.INDEXING.value
    deadline: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == ReservationKind.INDEXING:
            del vars(self)["kind"], vars(self)["deadline"]

    def mutate(self, aggregate: Any) -> Any:
        """Evolve the ledger; the stream's first event finds none and begins it."""
        if aggregate is None:
            aggregate = resolve_topic(LEDGER_TOPIC).unused(self.tenant, self.owner)
        return super().mutate(aggregate)

    def reservation_after(self, earlier: Reservation | None) -> Reservation:
        """Return the pending reservation."""
        return Reservation(
            reservation_id=self.reservation_id,
            kind=ReservationKind(self.kind),
            request_digest=self.request_digest,
            state=ReservationState.PENDING,
            day=UtcDay(self.day),
            admitted_at=self.timestamp,
            expires_at=self.timestamp + timedelta(seconds=self.lease_s),
            reserved_quanta=self.reserved_quanta,
            charged_quanta=self.reserved_quanta,
        )

    def day_change(self) -> DayTotals:
        """Return the complete charge and one request."""
        return DayTotals(quanta=self.reserved_quanta, requests=1)


class ReservationSettled(LedgerEvent):
    """Validated usage took the place of the complete charge."""

    TOPIC = "remembrancer.reservation_ledger.reservation_settled"
    reserved_quanta: int
    charged_quanta: int
    usage_tokens: int

    def reservation_after(self, earlier: Reservation | None) -> Reservation | None:
        """Return the settled reservation."""
        return earlier and replace(
            earlier,
            state=ReservationState.SETTLED,
            charged_quanta=self.charged_quanta,
            usage_tokens=self.usage_tokens,
        )

    def day_change(self) -> DayTotals:
        """Return the room that was given back, as a negative amount."""
        return DayTotals(quanta=self.charged_quanta - self.reserved_quanta)


class ReservationBecameUnknown(LedgerEvent):
    """The true usage can't be proved; the complete charge stays."""

    TOPIC = "remembrancer.reservation_ledger.reservation_became_unknown"
    charged_quanta: int
    reason: str

    def reservation_after(self, earlier: Reservation | None) -> Reservation | None:
        """Return the unknown reservation, at its complete charge."""
        return earlier and replace(
            earlier,
            state=ReservationState.UNKNOWN,
            unknown_reason=UnknownReason(self.reason),
        )

    def day_change(self) -> DayTotals:
        """Return nothing: the charge stays."""
        return DayTotals()


class ReservationReconciled(LedgerEvent):
    """An operator lowered an unknown charge, with evidence."""

    TOPIC = "remembrancer.reservation_ledger.reservation_reconciled"
    unknown_quanta: int
    charged_quanta: int
    stated_quanta: int
    evidence_digest: str
    reconciled_by: str

    def reservation_after(self, earlier: Reservation | None) -> Reservation | None:
        """Return the reconciled reservation."""
        return earlier and replace(
            earlier, state=ReservationState.RECONCILED, charged_quanta=self.charged_quanta
        )

    def day_change(self) -> DayTotals:
        """Return what the charge was lowered by, as a negative amount."""
        return DayTotals(quanta=self.charged_quanta - self.unknown_quanta)


def reservation_in(
    events: Iterable[object], reservation_id: UUID, *, earlier: Reservation | None = None
) -> Reservation | None:
    """Return what a ledger's ``events`` say of one reservation; None if they never admit it.

    Only the events of that reservation matter: whoever has an index reads just those.
    """
    for fact in events:
        if isinstance(fact, LedgerEvent) and fact.reservation_id == reservation_id:
            earlier = fact.reservation_after(earlier)
    return earlier
