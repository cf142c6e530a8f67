"""How a reservation ends: settled, unknown or reconciled, and what each leaves charged."""

from datetime import timedelta
from typing import Any

import pytest
from tests.domain.ledger_desk import AT, DAY, INVOICE, ONE, TWO, Desk, after

from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import UtcDay
from remembrancer.domain.reservation import (
    DayTotals,
    ReconciliationEvidence,
    ReservationState,
    UnknownReason,
)
from remembrancer.domain.reservation_event import ReservationReconciled
from remembrancer.domain.spend_errors import (
    ChargeNotLoweredError,
    ReservationNotPendingError,
    ReservationNotUnknownError,
    ReservationUnknownError,
)


def test_settlement_gives_back_what_was_not_used(desk: Desk) -> None:
    desk.admit(ONE, quanta=100)

    settled = desk.settle(ONE, quanta=7, usage=90)

    assert (settled.state, settled.charged_quanta) == (ReservationState.SETTLED, 7)
    assert settled.usage_tokens == 90
    assert desk.ledger.totals(DAY) == DayTotals(quanta=7, requests=1)


@pytest.mark.parametrize("quanta", [41, 0, -1, True, 7.0])
def test_a_settlement_that_raises_or_is_no_amount_is_refused(desk: Desk, quanta: Any) -> None:
    desk.admit(ONE, quanta=40)

    with pytest.raises(ChargeNotLoweredError):
        desk.settle(ONE, quanta=quanta)

    assert desk.ledger.totals(DAY).quanta == 40


@pytest.mark.parametrize("usage", [0, -1, True, 7.0, float("nan"), "7", None])
def test_usage_that_is_no_number_of_tokens_lowers_nothing(desk: Desk, usage: Any) -> None:
    desk.admit(ONE, quanta=40)

    with pytest.raises(InvalidInputError):
        desk.settle(ONE, quanta=7, usage=usage)

    assert desk.ledger.totals(DAY).quanta == 40


def test_settling_again_alike_changes_nothing(desk: Desk) -> None:
    desk.admit(ONE)
    settled = desk.settle(ONE, quanta=7, usage=90)

    assert desk.settle(ONE, quanta=7, usage=90, at=after(60)) == settled
    assert len(desk.stream) == 2


def test_settling_again_otherwise_is_refused(desk: Desk) -> None:
    desk.admit(ONE)
    desk.settle(ONE, quanta=7)

    with pytest.raises(ReservationNotPendingError) as refusal:
        desk.settle(ONE, quanta=6)

    assert refusal.value.state == "settled"


def test_settling_what_was_never_admitted_is_refused(desk: Desk) -> None:
    with pytest.raises(ReservationNotPendingError) as refusal:
        desk.settle(ONE)

    assert refusal.value.state == "absent"


def test_a_late_settlement_of_an_unknown_reservation_changes_nothing(desk: Desk) -> None:
    desk.admit(ONE)
    desk.mark_unknown(ONE)
    before = (list(desk.stream), desk.ledger.totals(DAY))

    with pytest.raises(ReservationUnknownError) as refusal:
        desk.settle(ONE)

    assert refusal.value.charged_quanta == 40
    assert (desk.stream, desk.ledger.totals(DAY)) == before
    assert desk.ledger.pending_events == []


def test_a_settlement_after_the_lease_changes_nothing(desk: Desk) -> None:
    desk.admit(ONE)

    with pytest.raises(ReservationUnknownError):
        desk.settle(ONE, at=after(15))

    assert desk.ledger.totals(DAY).quanta == 40


def test_unknown_keeps_the_complete_charge(desk: Desk) -> None:
    desk.admit(ONE)

    marked = desk.mark_unknown(ONE)

    assert (marked.charged_quanta, marked.unknown_reason) == (40, UnknownReason.TIMEOUT)
    assert desk.mark_unknown(ONE) == marked
    assert len(desk.stream) == 2


def test_a_settled_reservation_does_not_become_unknown(desk: Desk) -> None:
    desk.admit(ONE)
    desk.settle(ONE)

    with pytest.raises(ReservationNotPendingError):
        desk.mark_unknown(ONE)


def test_reconciling_lowers_an_unknown_charge_on_its_day(desk: Desk) -> None:
    desk.admit(ONE)
    desk.mark_unknown(ONE)

    reconciled = desk.reconcile(ONE, quanta=5)

    assert (reconciled.state, reconciled.charged_quanta) == (ReservationState.RECONCILED, 5)
    assert desk.ledger.totals(DAY) == DayTotals(quanta=5, requests=1)


def test_reconciling_long_after_stays_on_the_day_of_admission(desk: Desk) -> None:
    desk.admit(ONE)
    desk.mark_unknown(ONE)
    later = AT + timedelta(days=30)
    desk.admit(TWO, quanta=90, at=later)

    desk.reconcile(ONE, quanta=5, at=later)

    event = desk.stream[-1]
    assert isinstance(event, ReservationReconciled)
    assert (event.day, event.unknown_quanta, event.charged_quanta) == ("2030-01-01", 40, 5)
    assert (event.evidence_digest, event.reconciled_by) == ("e" * 64, "operator@acme")
    assert desk.ledger.totals(UtcDay("2030-01-31")) == DayTotals(quanta=90, requests=1)


@pytest.mark.parametrize("quanta", [40, 41, 4, -1, True])
def test_reconciling_lowers_and_not_below_the_evidence(desk: Desk, quanta: Any) -> None:
    desk.admit(ONE, quanta=40)
    desk.mark_unknown(ONE)

    with pytest.raises(ChargeNotLoweredError) as refusal:
        desk.reconcile(ONE, quanta=quanta)

    assert refusal.value.least_quanta == 5
    assert desk.ledger.totals(DAY).quanta == 40


def test_evidence_that_nothing_was_charged_frees_the_charge_but_not_the_request(
    desk: Desk,
) -> None:
    desk.admit(ONE)
    desk.mark_unknown(ONE)

    desk.reconcile(
        ONE,
        quanta=0,
        evidence=ReconciliationEvidence(digest="e" * 64, stated_quanta=0, by="operator@acme"),
    )

    assert desk.ledger.totals(DAY) == DayTotals(quanta=0, requests=1)


@pytest.mark.parametrize(
    "changed",
    [{"digest": "e"}, {"stated_quanta": -1}, {"stated_quanta": 4.5}, {"by": " "}],
    ids=str,
)
def test_evidence_without_digest_amount_or_name_is_none(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        ReconciliationEvidence(**INVOICE.model_dump() | changed)


def test_reconciling_comes_once(desk: Desk) -> None:
    desk.admit(ONE)
    desk.mark_unknown(ONE)
    reconciled = desk.reconcile(ONE, quanta=10)

    with pytest.raises(ReservationNotUnknownError) as refusal:
        desk.reconcile(ONE, quanta=9)

    assert refusal.value.state == "reconciled"
    assert desk.reconcile(ONE, quanta=10) == reconciled
    assert len(desk.stream) == 3


@pytest.mark.parametrize("state", ["absent", "pending", "settled"])
def test_only_an_unknown_charge_is_reconciled(desk: Desk, state: str) -> None:
    if state != "absent":
        desk.admit(ONE)
    if state == "settled":
        desk.settle(ONE)

    with pytest.raises(ReservationNotUnknownError) as refusal:
        desk.reconcile(ONE)

    assert refusal.value.state == state


def test_a_reservation_whose_lease_ran_out_unseen_can_be_reconciled(desk: Desk) -> None:
    desk.admit(ONE)

    assert desk.reconcile(ONE, at=after(16)).charged_quanta == 5


def test_a_reconciled_reservation_is_not_settled(desk: Desk) -> None:
    desk.admit(ONE)
    desk.mark_unknown(ONE)
    desk.reconcile(ONE)

    with pytest.raises(ReservationNotPendingError):
        desk.settle(ONE)
