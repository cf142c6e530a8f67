"""A desk at which a ledger decides and keeps its stream, for the tests of the ledger."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    Reservation,
    ReservationAnswer,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
DAY = UtcDay("2030-01-01")
ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
INVOICE = ReconciliationEvidence(digest="e" * 64, stated_quanta=5, by="operator@acme")


def terms(quanta: int = 100, requests: int = 10) -> SpendTerms:
    return SpendTerms(
        ceilings=Ceilings(quanta_per_day=quanta, requests_per_day=requests),
        mechanism_version="semantic-query@1",
        configuration_digest="0" * 64,
        embedding_tuple_digest="1" * 64,
        pricing_digest="2" * 64,
    )


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


class Desk:
    """A ledger and its whole stream, as a repository would hold them."""

    def __init__(self) -> None:
        self.ledger = ReservationLedger.unused("acme", "ana")
        self.stream: list[Any] = []

    def commit(self) -> None:
        self.stream += self.ledger.collect_events()

    def earlier(self, reservation_id: UUID) -> Reservation | None:
        return reservation_in(self.stream, reservation_id)

    def admit(  # a test names what it is about and leaves the rest
        self,
        reservation_id: UUID = ONE,
        *,
        quanta: int = 40,
        kind: ReservationKind = ReservationKind.QUERY,
        digest: str = "a" * 64,
        at: datetime = AT,
        under: SpendTerms | None = None,
    ) -> ReservationAnswer:
        request = ReservationRequest(
            reservation_id=reservation_id, kind=kind, request_digest=digest, charge_quanta=quanta
        )
        try:
            return self.ledger.admit(
                request, terms=under or terms(), earlier=self.earlier(reservation_id), at=at
            )
        finally:
            self.commit()

    def settle(
        self,
        reservation_id: UUID = ONE,
        *,
        quanta: int = 7,
        usage: int = 90,
        at: datetime = AT,
    ) -> Reservation:
        settled = self.ledger.settle(
            reservation_id,
            charged_quanta=quanta,
            usage_tokens=usage,
            earlier=self.earlier(reservation_id),
            at=at,
        )
        self.commit()
        return settled

    def mark_unknown(self, reservation_id: UUID = ONE, *, at: datetime = AT) -> Reservation:
        marked = self.ledger.mark_unknown(
            reservation_id,
            reason=UnknownReason.TIMEOUT,
            earlier=self.earlier(reservation_id),
            at=at,
        )
        self.commit()
        return marked

    def reconcile(
        self,
        reservation_id: UUID = ONE,
        *,
        quanta: int = 5,
        evidence: ReconciliationEvidence = INVOICE,
        at: datetime = AT,
    ) -> Reservation:
        reconciled = self.ledger.reconcile(
            reservation_id,
            charged_quanta=quanta,
            evidence=evidence,
            earlier=self.earlier(reservation_id),
            at=at,
        )
        self.commit()
        return reconciled
