from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import Pricing, UtcDay
from remembrancer.domain.reservation import (
    Ceilings,
    DayTotals,
    ReconciliationEvidence,
    Reservation,
    ReservationAnswer,
    ReservationKind,
    ReservationRequest,
    ReservationState,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import (
    ReservationBecameUnknown,
    ReservationReconciled,
    ReservationSettled,
    reservation_in,
)
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.spend_errors import (
    ChargeNotLoweredError,
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
    ReservationNotPendingError,
    ReservationNotUnknownError,
    ReservationReusedError,
    ReservationUnknownError,
    SpendRefusedError,
)

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


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_admission_sets_the_complete_charge_aside(desk: Desk) -> None:
    answer = desk.admit(quanta=40)

    assert not answer.repeated
    assert answer.reservation.state is ReservationState.PENDING
    assert answer.reservation.expires_at == after(15)
    assert desk.ledger.totals(DAY) == DayTotals(quanta=40, requests=1)


def test_the_last_slot_goes_to_one_request(desk: Desk) -> None:
    desk.admit(ONE, quanta=60, kind=ReservationKind.INDEXING)

    with pytest.raises(OverMoneyCeilingError) as refusal:
        desk.admit(TWO, quanta=41)

    assert (refusal.value.asked_quanta, refusal.value.used_quanta) == (41, 60)
    assert refusal.value.ceiling_quanta == 100
    assert desk.admit(THREE, quanta=40).reservation.day == DAY


def test_requests_are_counted_whatever_they_cost(desk: Desk) -> None:
    desk.admit(ONE, quanta=1, under=terms(requests=1))
    desk.settle(ONE, quanta=1)

    with pytest.raises(OverRequestCeilingError) as refusal:
        desk.admit(TWO, quanta=1, under=terms(requests=1))

    assert (refusal.value.used_requests, refusal.value.ceiling_requests) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ReservationKind.INDEXING, ReservationKind.QUERY),
        (ReservationKind.QUERY, ReservationKind.INDEXING),
    ],
)
def test_both_kinds_share_the_money_in_both_directions(
    desk: Desk, first: ReservationKind, second: ReservationKind
) -> None:
    desk.admit(ONE, quanta=70, kind=first)

    with pytest.raises(OverMoneyCeilingError):
        desk.admit(TWO, quanta=31, kind=second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ReservationKind.INDEXING, ReservationKind.QUERY),
        (ReservationKind.QUERY, ReservationKind.INDEXING),
    ],
)
def test_both_kinds_share_the_requests_in_both_directions(
    desk: Desk, first: ReservationKind, second: ReservationKind
) -> None:
    desk.admit(ONE, kind=first, under=terms(requests=1))

    with pytest.raises(OverRequestCeilingError):
        desk.admit(TWO, kind=second, under=terms(requests=1))


def test_one_query_at_a_time(desk: Desk) -> None:
    desk.admit(ONE, quanta=1)

    with pytest.raises(QueryPendingError) as refusal:
        desk.admit(TWO, quanta=1)

    assert (refusal.value.reservation_id, refusal.value.expires_at) == (ONE, after(15))


def test_indexing_goes_on_beside_a_pending_query_and_beside_itself(desk: Desk) -> None:
    desk.admit(ONE, quanta=1)
    desk.admit(TWO, quanta=1, kind=ReservationKind.INDEXING)
    desk.admit(THREE, quanta=1, kind=ReservationKind.INDEXING)

    assert [one.reservation_id for one in desk.ledger.pending] == [ONE, TWO, THREE]


def test_killed_after_commit_the_lease_lives_at_fourteen_seconds(desk: Desk) -> None:
    desk.admit(ONE)

    with pytest.raises(QueryPendingError):
        desk.admit(TWO, at=after(14))

    assert len(desk.stream) == 1


def test_killed_after_commit_the_old_one_is_unknown_at_sixteen_seconds(desk: Desk) -> None:
    desk.admit(ONE, quanta=60)

    desk.admit(TWO, quanta=40, at=after(16))

    old = desk.earlier(ONE)
    assert old is not None
    assert (old.state, old.unknown_reason) == (ReservationState.UNKNOWN, UnknownReason.EXPIRED)
    assert old.charged_quanta == 60
    assert desk.ledger.totals(DAY) == DayTotals(quanta=100, requests=2)


def test_an_expired_one_becomes_unknown_also_when_the_new_one_is_refused(desk: Desk) -> None:
    desk.admit(ONE, quanta=60)

    with pytest.raises(OverMoneyCeilingError):
        desk.admit(TWO, quanta=41, at=after(16))

    assert isinstance(desk.stream[-1], ReservationBecameUnknown)
    assert desk.ledger.pending == ()


def test_a_lease_ends_at_its_end(desk: Desk) -> None:
    desk.admit(ONE)

    assert desk.ledger.expire(at=after(14.999_999)) == ()
    assert [one.reservation_id for one in desk.ledger.expire(at=after(15))] == [ONE]


def test_indexing_expires_too(desk: Desk) -> None:
    desk.admit(ONE, kind=ReservationKind.INDEXING)

    [expired] = desk.ledger.expire(at=after(15))

    assert (expired.state, expired.charged_quanta) == (ReservationState.UNKNOWN, 40)


def test_the_same_id_with_the_same_request_gives_the_first_outcome(desk: Desk) -> None:
    first = desk.admit(ONE)

    again = desk.admit(ONE, at=after(3))

    assert again == ReservationAnswer(reservation=first.reservation, repeated=True)
    assert len(desk.stream) == 1


def test_the_first_outcome_is_found_long_after(desk: Desk) -> None:
    desk.admit(ONE)
    settled = desk.settle(ONE)

    again = desk.admit(ONE, at=AT + timedelta(days=400))

    assert again == ReservationAnswer(reservation=settled, repeated=True)


def test_repeating_an_expired_reservation_shows_it_unknown(desk: Desk) -> None:
    desk.admit(ONE)

    again = desk.admit(ONE, at=after(20))

    assert (again.repeated, again.reservation.state) == (True, ReservationState.UNKNOWN)


@pytest.mark.parametrize(
    "other",
    [{"digest": "b" * 64}, {"quanta": 39}, {"kind": ReservationKind.INDEXING}],
    ids=["request", "charge", "kind"],
)
def test_the_same_id_with_another_request_is_refused(desk: Desk, other: dict[str, Any]) -> None:
    desk.admit(ONE)

    with pytest.raises(ReservationReusedError):
        desk.admit(ONE, **other)


def test_an_id_refused_for_want_of_room_may_come_again(desk: Desk) -> None:
    with pytest.raises(OverMoneyCeilingError):
        desk.admit(ONE, quanta=101)

    assert not desk.admit(ONE, quanta=101, under=terms(quanta=101)).repeated


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


@pytest.mark.parametrize("hours", [9, -8, 14], ids=["Tokyo", "Los Angeles", "Kiritimati"])
def test_settled_after_midnight_it_counts_for_the_day_of_admission(desk: Desk, hours: int) -> None:
    here = timezone(timedelta(hours=hours))
    before = datetime(2030, 1, 1, 23, 59, 59, 900_000, tzinfo=UTC).astimezone(here)
    desk.admit(ONE, quanta=100, at=before)

    settled = desk.settle(ONE, quanta=7, at=before + timedelta(seconds=0.6))

    assert settled.day == "2030-01-01"
    assert isinstance(desk.stream[-1], ReservationSettled)
    assert desk.stream[-1].day == "2030-01-01"
    assert desk.ledger.totals(UtcDay("2030-01-02")) == DayTotals()


def test_the_new_day_has_its_whole_room_while_the_old_one_is_pending(desk: Desk) -> None:
    midnight = datetime(2030, 1, 2, tzinfo=UTC)
    desk.admit(
        ONE, quanta=100, kind=ReservationKind.INDEXING, at=midnight - timedelta(seconds=0.1)
    )

    desk.admit(TWO, quanta=100, at=midnight)
    desk.settle(ONE, quanta=1, at=midnight + timedelta(seconds=0.5))

    assert desk.ledger.totals(UtcDay("2030-01-02")) == DayTotals(quanta=100, requests=1)


def test_a_pending_query_of_yesterday_still_is_the_one(desk: Desk) -> None:
    midnight = datetime(2030, 1, 2, tzinfo=UTC)
    desk.admit(ONE, at=midnight - timedelta(seconds=1))

    with pytest.raises(QueryPendingError):
        desk.admit(TWO, at=midnight + timedelta(seconds=1))


def test_a_clock_set_back_brings_no_room_and_no_lease_back(desk: Desk) -> None:
    desk.admit(ONE, quanta=100, at=AT)
    desk.mark_unknown(ONE, at=after(20))

    with pytest.raises(OverMoneyCeilingError):
        desk.admit(TWO, quanta=1, at=AT - timedelta(days=1))

    assert desk.ledger.not_before(AT) == after(20)


def test_a_changed_ceiling_does_not_reset_what_was_spent(desk: Desk) -> None:
    desk.admit(ONE, quanta=100)
    desk.settle(ONE, quanta=100)

    with pytest.raises(OverMoneyCeilingError) as refusal:
        desk.admit(TWO, quanta=1, under=terms(quanta=50))

    assert refusal.value.used_quanta == 100
    assert desk.admit(TWO, quanta=100, under=terms(quanta=200)).reservation.charged_quanta == 100


@pytest.mark.parametrize("closed", [terms(quanta=0), terms(requests=0)])
def test_a_ceiling_of_zero_stops_everything(desk: Desk, closed: SpendTerms) -> None:
    with pytest.raises(SpendRefusedError):
        desk.admit(ONE, quanta=1, under=closed)


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


def test_several_decisions_before_a_commit_see_each_other(desk: Desk) -> None:
    ledger = desk.ledger
    request = ReservationRequest(
        reservation_id=ONE, kind=ReservationKind.QUERY, request_digest="a" * 64, charge_quanta=40
    )
    ledger.admit(request, terms=terms(), earlier=None, at=AT)
    ledger.settle(ONE, charged_quanta=7, usage_tokens=9, earlier=None, at=AT)

    again = ledger.admit(request, terms=terms(), earlier=None, at=AT)

    assert (again.repeated, again.reservation.charged_quanta) == (True, 7)


def test_tiny_requests_add_up_to_whole_quanta(desk: Desk) -> None:
    pricing = Pricing(usd_per_million_tokens="0.1", input_overhead_tokens=0)
    wide = terms(quanta=10**9, requests=10**6)
    for number in range(500):
        reservation_id = UUID(int=number + 1)
        complete = pricing.complete_charge([64])
        desk.ledger.admit(
            ReservationRequest(
                reservation_id=reservation_id,
                kind=ReservationKind.QUERY,
                request_digest="a" * 64,
                charge_quanta=complete,
            ),
            terms=wide,
            earlier=None,
            at=AT,
        )
        desk.ledger.settle(
            reservation_id,
            charged_quanta=pricing.settled_charge(3, [64]),
            usage_tokens=3,
            earlier=None,
            at=AT,
        )
        desk.commit()

    assert desk.ledger.totals(DAY) == DayTotals(quanta=500, requests=500)


def test_a_naive_time_is_refused_before_anything_is_recorded(desk: Desk) -> None:
    with pytest.raises(InvalidInputError):
        desk.admit(ONE, at=datetime(2030, 1, 1))  # noqa: DTZ001  # the point of the test

    assert desk.stream == []


@pytest.mark.parametrize("charge", [0, -1, True, 1.0, "7", 10**15])
def test_a_request_without_a_whole_charge_is_refused(charge: Any) -> None:
    with pytest.raises(InvalidInputError):
        ReservationRequest(
            reservation_id=ONE,
            kind=ReservationKind.QUERY,
            request_digest="a" * 64,
            charge_quanta=charge,
        )


def test_owners_that_look_alike_have_ledgers_of_their_own() -> None:
    create_id = ReservationLedger.create_id

    assert create_id("a", "b_c") != create_id("a_b", "c")
    assert create_id("acme", "ana") != create_id("acme-corp", "ana")
