"""Deadline, lease, clean-up, withdrawal and cancellation of a preparation, in virtual time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
import pytest
from tests.application.house import a_context, a_query
from tests.application.laboratory import (
    Laboratory,
    VirtualClock,
    admission_of,
    configuration,
)
from tests.application.port_faults import Fault, KilledError, Plan

from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.prepare_queries import PreparationReport
from remembrancer.domain.recall import RecallContext
from remembrancer.domain.reservation import ReservationState, UnknownReason

SURFACE = Surface(tenant="acme", owner="ana", surface="cli")
OTHER_CONTEXT = a_context().model_copy(update={"task_digest": "t2"})


def reasons(report: PreparationReport) -> list[tuple[str, str]]:
    return [(outcome.status.value, outcome.reason) for outcome in report.outcomes]


def state(lab: Laboratory) -> tuple[ReservationState, UnknownReason | None, bool]:
    """Return how the only reservation stands, and whether its charge is complete."""
    one = lab.reservation
    return one.state, one.unknown_reason, one.charged_quanta == one.reserved_quanta


def finds(lab: Laboratory, context: RecallContext | None = None) -> bool:
    return lab.prepared.lookup(a_query(), context or a_context()) is not None


async def never(_: Sequence[str]) -> bytes:
    await anyio.sleep_forever()
    raise AssertionError


@dataclass
class Meanwhile:
    """Something that happens while the request is out."""

    lab: Laboratory
    at_s: float
    deed: Callable[[], object]
    answered_s: float | None = field(default=None, init=False)

    async def __call__(self) -> PreparationReport:
        reports: list[PreparationReport] = []

        async def prepare() -> None:
            reports.append(await self.lab.prepared_by(a_query()))
            self.answered_s = self.lab.clock.monotonic()

        async with anyio.create_task_group() as group:
            group.start_soon(prepare)
            await anyio.sleep(self.at_s)
            self.deed()
        return reports[0]


def meanwhile(
    lab: Laboratory, at_s: float, deed: Callable[[], object]
) -> tuple[PreparationReport, float]:
    """Prepare, do something at a time, and return the report and when it came."""
    work = Meanwhile(lab, at_s, deed)
    report = lab.run(work)
    assert work.answered_s is not None
    return report, work.answered_s


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


# -- Withdrawn and replaced while the request is out ---------------------------------------------


@pytest.mark.parametrize("at_s", [0.001, 0.5, 0.999, 3.25, 7.7])
def test_a_withdrawn_admission_stops_the_request_within_a_second(at_s: float) -> None:
    lab = Laboratory()
    lab.provider.behaviour = never

    report, answered_s = meanwhile(lab, at_s, lambda: setattr(lab.switch, "now", None))

    assert answered_s - at_s <= 1.0
    assert lab.provider.cancelled == 1
    assert reasons(report) == [("unknown", "not_admitted")]
    assert state(lab) == (ReservationState.UNKNOWN, UnknownReason.WITHDRAWN, True)


def test_an_admission_that_can_not_be_read_any_more_stops_the_request() -> None:
    lab = Laboratory()
    lab.ask(a_query("only to count the calls"))
    first_check = lab.plan.calls.index(
        "admission.admitted", lab.plan.calls.index("provider.request")
    )
    lab = Laboratory(plan=Plan(at=first_check, fault=Fault.HANG))
    lab.provider.behaviour = never

    report = lab.ask(a_query("only to count the calls"))

    assert lab.clock.monotonic() == pytest.approx(1.5)
    assert reasons(report) == [("unknown", "check_failed")]
    assert state(lab) == (ReservationState.UNKNOWN, UnknownReason.FAILURE, True)


def test_another_configuration_while_it_is_out_stops_it() -> None:
    lab = Laboratory()
    lab.provider.behaviour = never
    other = admission_of(
        configuration(ceilings={"quanta_per_day": 999_999, "requests_per_day": 500})
    )

    report, answered_s = meanwhile(lab, 2.1, lambda: setattr(lab.switch, "now", other))

    assert answered_s <= 3.1
    assert reasons(report) == [("unknown", "not_admitted")]


def test_a_withdrawal_in_the_very_last_moment_keeps_the_vector_out() -> None:
    lab = Laboratory()

    def withdraw(name: str) -> None:
        if name == "log.append" and "QueryVectorsPrepared" in lab.events:
            lab.prepared.withdraw()

    lab.plan.afterwards = withdraw
    report = lab.ask(a_query())

    assert reasons(report) == [("dropped", "context_changed")]
    assert lab.reservation.state is ReservationState.SETTLED
    assert not finds(lab)


def test_a_lookup_in_another_context_empties_the_cache_and_keeps_the_answer_out() -> None:
    lab = Laboratory()

    report, _ = meanwhile(lab, 1.7, lambda: finds(lab, OTHER_CONTEXT))

    assert reasons(report) == [("dropped", "context_changed")]
    assert report.charged_quanta == lab.reservation.charged_quanta
    assert lab.reservation.state is ReservationState.SETTLED
    assert not finds(lab)


def test_nor_does_it_get_in_when_the_old_context_comes_back_meanwhile() -> None:
    lab = Laboratory()

    def there_and_back() -> None:
        finds(lab, OTHER_CONTEXT)
        generation = lab.contexts.generation(SURFACE)
        lab.prepared.bound(SURFACE, a_context(), generation)

    report, _ = meanwhile(lab, 1.7, there_and_back)

    assert reasons(report) == [("dropped", "context_changed")]
    assert not finds(lab)


def test_a_context_bound_by_another_process_stops_the_request_and_keeps_it_out() -> None:
    lab = Laboratory()
    lab.provider.behaviour = never
    elsewhere = CacheContexts(log=lab.real_log, clock=lab.clock)

    report, answered_s = meanwhile(
        lab,
        2.6,
        lambda: elsewhere.bind(SURFACE, context_digest="a" * 64, configuration_digest="b" * 64),
    )

    assert answered_s <= 3.6
    assert reasons(report) == [("unknown", "context_changed")]
    assert not finds(lab)


def test_a_context_bound_after_settlement_keeps_the_paid_vector_out() -> None:
    lab = Laboratory()
    elsewhere = CacheContexts(log=lab.real_log, clock=lab.clock)

    def replace(name: str) -> None:
        if name == "ledger.decide" and "ReservationSettled" in lab.events:
            elsewhere.bind(SURFACE, context_digest="a" * 64, configuration_digest="b" * 64)

    lab.plan.afterwards = replace
    report = lab.ask(a_query())

    assert reasons(report) == [("dropped", "context_changed")]
    assert "QueryVectorsPrepared" not in lab.events
    assert lab.reservation.state is ReservationState.SETTLED


def test_another_surface_is_another_context() -> None:
    lab = Laboratory()
    chat = a_context().model_copy(update={"surface": "chat"})

    report, _ = meanwhile(lab, 1.7, lambda: finds(lab, chat))

    assert reasons(report) == [("prepared", "prepared")]
    assert finds(lab)


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
