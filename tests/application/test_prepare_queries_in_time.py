"""Deadline, lease, clean-up, suspension and cancellation of a preparation, in virtual time."""

from collections.abc import Sequence
from datetime import timedelta

import anyio
import pytest
from tests.application.house import a_query
from tests.application.laboratory import Laboratory, VirtualClock, admission_of, configuration
from tests.application.meanwhile import finds, meanwhile, never, reasons, state
from tests.application.port_faults import Fault, KilledError, Plan

from remembrancer.domain.reservation import ReservationState, UnknownReason

# -- Deadline, lease and clean-up ----------------------------------------------------------------


def test_a_silent_provider_is_given_up_after_ten_seconds() -> None:
    lab = Laboratory()
    lab.provider.behaviour = never

    report = lab.ask(a_query())

    assert lab.clock.monotonic() == pytest.approx(10.0)
    assert reasons(report) == [("unknown", "timeout")]
    assert state(lab) == (ReservationState.UNKNOWN, UnknownReason.TIMEOUT, True)
    assert lab.provider.cancelled == 1


def test_the_provider_is_told_how_much_time_is_left() -> None:
    lab = Laboratory()
    lab.worker.delay_s = 0.5

    lab.ask(a_query())

    # Admission, guards, context, reservation and the last look took half a second each.
    assert lab.provider.timeouts_s == [pytest.approx(7.5)]


@pytest.mark.parametrize("answer_s", [9.999, 10.001])
def test_ten_seconds_are_exact(answer_s: float) -> None:
    lab = Laboratory()

    async def answer(texts: Sequence[str]) -> bytes:
        await anyio.sleep(answer_s - 2.3)
        return await lab.provider.honest(texts)

    lab.provider.behaviour = answer
    [(status, _)] = reasons(lab.ask(a_query()))

    assert status == ("prepared" if answer_s < 10 else "unknown")


def test_clean_up_takes_three_seconds_at_most() -> None:
    """The store hangs from the moment at which the answer is to be settled."""
    lab = Laboratory()
    lab.ask(a_query("only to count the calls"))
    settling = [i for i, name in enumerate(lab.plan.calls) if name == "ledger.decide"][1]
    lab = Laboratory(plan=Plan(at=settling, fault=Fault.STORE_HANGS))

    report = lab.ask(a_query("only to count the calls"))

    assert lab.clock.monotonic() == pytest.approx(13.0)
    assert reasons(report) == [("unknown", "timeout")]
    assert lab.reservation.state is ReservationState.PENDING


def test_a_pending_reservation_of_a_dead_process_lives_for_fifteen_seconds() -> None:
    """Case 2: killed after the commit, before sending."""
    lab = Laboratory()
    lab.ask(a_query("only to count the calls"))
    sending = lab.plan.calls.index("provider.request")
    lab = Laboratory(plan=Plan(at=sending, fault=Fault.CRASH))
    with pytest.raises(KilledError):
        lab.ask(a_query())
    following = lab.another_process()

    following.clock.suspend(14)
    at_14 = reasons(following.ask(a_query()))
    following.clock.suspend(2)
    at_16 = reasons(following.ask(a_query()))

    assert lab.provider.requests == []
    assert at_14 == [("refused", "query_pending")]
    assert at_16 == [("prepared", "prepared")]
    old, new = following.reservations
    assert (old.state, old.unknown_reason) == (ReservationState.UNKNOWN, UnknownReason.EXPIRED)
    assert old.charged_quanta == old.reserved_quanta
    assert new.state is ReservationState.SETTLED


def test_the_old_charge_still_counts_for_the_one_that_replaces_it() -> None:
    """Case 2: a new one may be admitted only if both fit."""
    ceilings = {"quanta_per_day": 2_599, "requests_per_day": 500}
    lab = Laboratory(admitted=admission_of(configuration(ceilings=ceilings)))
    lab.provider.behaviour = never
    lab.ask(a_query())

    assert reasons(lab.ask(a_query())) == [("refused", "over_money_ceiling")]


def test_what_is_settled_after_midnight_counts_for_the_day_before() -> None:
    """Case 6: reserved two seconds before midnight, settled after it."""
    lab = Laboratory()
    lab.clock.skew = timedelta(hours=11, minutes=59, seconds=58)

    lab.ask(a_query("before midnight"))
    lab.ask(a_query("after midnight"))

    first, second = lab.real_ledger.days("acme")
    assert [(first.day, first.requests), (second.day, second.requests)] == [
        ("2030-01-01", 1),
        ("2030-01-02", 1),
    ]
    assert first.charged_quanta == second.charged_quanta == 200


# -- A process that was suspended ----------------------------------------------------------------


@pytest.mark.parametrize("asleep_s", [10, 16, 3_600])
@pytest.mark.parametrize("call", ["ledger.decide", "admission.admitted", "ledger.receipt"])
def test_a_process_suspended_between_commit_and_send_sends_nothing(
    asleep_s: int, call: str
) -> None:
    lab = Laboratory()

    def suspend(name: str) -> None:
        if name == call and lab.reservations:
            lab.clock.suspend(asleep_s)

    lab.plan.afterwards = suspend
    report = lab.ask(a_query())

    assert lab.provider.requests == []
    [(status, reason)] = reasons(report)
    assert status == "unknown"
    assert reason in {"lease_lost", "timeout"}
    assert lab.reservation.charged_quanta == lab.reservation.reserved_quanta


@pytest.mark.parametrize("asleep_s", [11, 16])
def test_a_process_suspended_on_its_very_way_to_the_provider_sends_nothing(
    asleep_s: int,
) -> None:
    lab = Laboratory()
    lab.ask(a_query())
    sending = lab.plan.calls.index("provider.request")
    lab = Laboratory()

    def suspend(_: str) -> None:
        # After the last look, before the task of the request has begun.
        if len(lab.plan.calls) == sending - 2:
            lab.clock.suspend(asleep_s)

    lab.plan.afterwards = suspend
    report = lab.ask(a_query())

    assert lab.provider.requests == []
    assert reasons(report) == [("unknown", "timeout")]


def test_a_reservation_that_another_process_has_ended_is_not_sent_for() -> None:
    lab = Laboratory()

    def end(name: str) -> None:
        if name == "log.read" and lab.reservations:
            lab.real_ledger.decide(
                "acme", "ana", lambda held: held.ledger.expire(at=held.now + timedelta(minutes=1))
            )

    lab.plan.afterwards = end
    report = lab.ask(a_query())

    assert lab.provider.requests == []
    assert reasons(report) == [("unknown", "lease_lost")]


def test_a_reservation_that_ends_elsewhere_while_the_request_is_out_stops_it() -> None:
    lab = Laboratory()
    lab.provider.behaviour = never

    def expire() -> None:
        lab.real_ledger.decide(
            "acme", "ana", lambda held: held.ledger.expire(at=held.now + timedelta(minutes=1))
        )

    report, answered_s = meanwhile(lab, 3.2, expire)

    assert reasons(report) == [("unknown", "lease_lost")]
    assert 3.2 < answered_s <= 4.2


@pytest.mark.parametrize("back", [timedelta(seconds=1), timedelta(hours=30)])
def test_a_store_whose_clock_steps_back_neither_frees_room_nor_revives_a_lease(
    back: timedelta,
) -> None:
    ceilings = {"quanta_per_day": 1_000_000, "requests_per_day": 2}
    lab = Laboratory(
        admitted=admission_of(configuration(ceilings=ceilings)), store_clock=VirtualClock()
    )
    assert lab.store_clock is not None
    lab.ask(a_query("one"))
    lab.store_clock.skew = -back

    second, third = lab.ask(a_query("two")), lab.ask(a_query("three"))

    assert reasons(second) == [("prepared", "prepared")]
    assert reasons(third) == [("refused", "over_request_ceiling")]
    assert len({one.day for one in lab.reservations}) == 1


# -- Cancelled -----------------------------------------------------------------------------------


async def cancelled_at(lab: Laboratory, at_s: float) -> bool:
    """Prepare, and cancel; return whether the cancellation came through."""
    scope = anyio.CancelScope(deadline=anyio.current_time() + at_s)
    with scope:
        await lab.prepared_by(a_query())
    return scope.cancelled_caught


def test_a_cancelled_preparation_keeps_the_charge_and_cancels_on() -> None:
    lab = Laboratory()
    lab.provider.behaviour = never

    assert lab.run(lambda: cancelled_at(lab, 4.2))
    assert lab.clock.monotonic() == pytest.approx(4.2)
    assert lab.provider.cancelled == 1
    assert state(lab) == (ReservationState.UNKNOWN, UnknownReason.CANCELLED, True)


def test_fifty_cancelled_preparations_are_fifty_unknown_charges() -> None:
    """Case 3."""
    lab = Laboratory()
    lab.provider.behaviour = never

    async def fifty() -> list[bool]:
        return [await cancelled_at(lab, 0.01 + number / 10) for number in range(50)]

    assert all(lab.run(fifty))
    assert len(lab.reservations) == 50
    for one in lab.reservations:
        assert one.state is ReservationState.UNKNOWN
        assert one.charged_quanta == one.reserved_quanta
    lab.provider.behaviour = lab.provider.honest
    assert reasons(lab.ask(a_query())) == [("prepared", "prepared")]


def test_an_answer_that_comes_after_the_cancellation_changes_nothing() -> None:
    lab = Laboratory()

    async def deaf(texts: Sequence[str]) -> bytes:
        shield = anyio.CancelScope(shield=True)
        with shield:
            return await lab.provider.honest(texts)
        raise AssertionError

    lab.provider.behaviour = deaf
    lab.run(lambda: cancelled_at(lab, 1.0))
    before = lab.reservation
    lab.run(lambda: anyio.sleep(5))

    assert state(lab) == (ReservationState.UNKNOWN, UnknownReason.CANCELLED, True)
    assert lab.reservation == before
    assert not finds(lab)
