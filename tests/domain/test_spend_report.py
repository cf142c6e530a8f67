from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    Ceilings,
    ReconciliationEvidence,
    ReservationKind,
    ReservationRequest,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import reservation_in
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.spend_report import SpendDay, spend_days

AT = datetime(2030, 1, 1, 23, 59, 50, tzinfo=UTC)
INVOICE = ReconciliationEvidence(digest="e" * 64, stated_quanta=5, by="operator")


def admit(ledger: ReservationLedger, number: int, *, at: datetime, quanta: int = 1_000) -> None:
    ledger.admit(
        ReservationRequest(
            reservation_id=UUID(int=number),
            kind=ReservationKind.INDEXING,
            request_digest="a" * 64,
            charge_quanta=40,
        ),
        terms=SpendTerms(
            ceilings=Ceilings(quanta_per_day=quanta, requests_per_day=10),
            mechanism_version="semantic-query@1",
            configuration_digest="0" * 64,
            embedding_tuple_digest="1" * 64,
            pricing_digest="2" * 64,
        ),
        earlier=None,
        at=at,
    )


def a_stream(owner: str) -> list[Any]:
    """One settled, one unknown, one reconciled and one pending; the last on the next day."""
    ledger = ReservationLedger.unused("acme", owner)
    for number in (1, 2, 3):
        admit(ledger, number, at=AT)
    ledger.settle(UUID(int=1), charged_quanta=7, usage_tokens=9, earlier=None, at=AT)
    for number in (2, 3):
        ledger.mark_unknown(UUID(int=number), reason=UnknownReason.TIMEOUT, earlier=None, at=AT)
    admit(ledger, 4, at=AT + timedelta(seconds=12), quanta=2_000)
    ledger.reconcile(
        UUID(int=3),
        charged_quanta=5,
        evidence=INVOICE,
        earlier=reservation_in(ledger.pending_events, UUID(int=3)),
        at=AT + timedelta(seconds=13),
    )
    return list(ledger.collect_events())


def test_each_day_shows_what_its_requests_became() -> None:
    first, second = spend_days(a_stream("ana"))

    assert first == SpendDay(
        tenant="acme",
        owner="ana",
        day=UtcDay("2030-01-01"),
        requests=3,
        reserved_quanta=120,
        charged_quanta=7 + 40 + 5,
        unknown_quanta=40,
        pending_quanta=0,
        pending_requests=0,
        ceiling_quanta=1_000,
        ceiling_requests=10,
    )
    assert (second.day, second.pending_quanta, second.pending_requests) == ("2030-01-02", 40, 1)
    assert second.ceiling_quanta == 2_000


def test_owners_are_shown_apart() -> None:
    days = spend_days([*a_stream("bea"), *a_stream("ana")])

    assert [(day.owner, day.day) for day in days] == [
        ("ana", "2030-01-01"),
        ("ana", "2030-01-02"),
        ("bea", "2030-01-01"),
        ("bea", "2030-01-02"),
    ]


def test_other_events_are_passed_over() -> None:
    assert spend_days([object(), *a_stream("ana")]) == spend_days(a_stream("ana"))
    assert spend_days([]) == ()
