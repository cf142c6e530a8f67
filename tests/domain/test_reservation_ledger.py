"""Who is admitted: the two ceilings, one query at a time, leases, and the same id again."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from tests.domain.ledger_desk import AT, DAY, ONE, THREE, TWO, Desk, after, terms

from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.money import Pricing
from remembrancer.domain.reservation import (
    DayTotals,
    ReservationAnswer,
    ReservationKind,
    ReservationRequest,
    ReservationState,
    SpendTerms,
    UnknownReason,
)
from remembrancer.domain.reservation_event import ReservationBecameUnknown
from remembrancer.domain.reservation_ledger import ReservationLedger
from remembrancer.domain.spend_errors import (
    OverMoneyCeilingError,
    OverRequestCeilingError,
    QueryPendingError,
    ReservationReusedError,
    SpendRefusedError,
)


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
