"""Each fault at each port call of a preparation: what must hold afterwards, whatever happened."""

from collections.abc import Iterator
from dataclasses import dataclass

import anyio
import pytest
from tests.application.house import a_context, a_query
from tests.application.laboratory import Laboratory
from tests.application.port_faults import CANCELS, CRASHES, LASTING, Fault, KilledError, Plan

from remembrancer.application.prepare_queries import PreparationReport
from remembrancer.domain.bounds import CLEANUP_S, DEADLINE_S, LEASE_S
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.eligibility import QueryOutcome, QueryStatus
from remembrancer.domain.recall import RecallQuery
from remembrancer.domain.reservation import Reservation, ReservationState, UnknownReason

CANARY = "canarybird"
QUERIES = (
    a_query(f"where does the {CANARY} sleep?", subjects=("Ana",)),
    a_query(f"who feeds the {CANARY}?"),
)
TICK_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What a preparation with a fault left behind."""

    lab: Laboratory
    report: PreparationReport | None
    """None where the caller was cancelled or killed."""
    took_s: float
    reservations: list[Reservation]


def calls_of_a_good_run() -> list[str]:
    lab = Laboratory()
    lab.ask(*QUERIES)
    return lab.plan.calls


CALLS = calls_of_a_good_run()


def points(fault: Fault) -> Iterator[int]:
    return (number for number in range(len(CALLS)) if Plan().applies(number, fault, CALLS))


def after(fault: Fault, at: int) -> Aftermath:
    """Prepare with a fault at one call; then let abandoned threads come to their ends."""
    lab = Laboratory(plan=Plan(at=at, fault=fault))
    began_s = lab.clock.monotonic()
    reports: list[PreparationReport] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:
            lab.plan.cancel = scope.cancel
            reports.append(await lab.prepared_by(*QUERIES))

    try:
        lab.run(main)
    except KilledError:
        assert fault in CRASHES
    took_s = lab.clock.monotonic() - began_s
    for ghost in lab.plan.ghosts:
        ghost()
    assert lab.plan.over, "the fault did not happen"
    return Aftermath(
        lab=lab,
        report=reports[0] if reports else None,
        took_s=took_s,
        reservations=lab.reservations,
    )


def looked_up(lab: Laboratory, query: RecallQuery) -> bool:
    lab.plan.killed = False
    lab.plan.over = True
    lab.plan.fault = None
    return lab.prepared.lookup(query, a_context()) is not None


def assert_every_query_has_one_outcome(one: Aftermath, fault: Fault) -> None:
    if one.report is None:
        assert fault in CANCELS | CRASHES
        return
    assert len(one.report.outcomes) == len(QUERIES)
    assert all(isinstance(outcome, QueryOutcome) for outcome in one.report.outcomes)
    assert CANARY not in f"{one.report!r} {one.report}"


def assert_nothing_left_unreserved(one: Aftermath) -> None:
    assert one.lab.provider.unreserved == 0
    assert len(one.lab.provider.requests) <= len(one.reservations) <= 1


def assert_charges_are_lowered_by_proof_alone(one: Aftermath, fault: Fault) -> None:
    for reservation in one.reservations:
        if reservation.state is ReservationState.SETTLED:
            assert reservation.usage_tokens is not None
            assert reservation.charged_quanta == 100 * reservation.usage_tokens
            assert one.lab.provider.requests
        else:
            assert reservation.charged_quanta == reservation.reserved_quanta
        if reservation.state is ReservationState.PENDING:
            # Nobody was left, or no store was there, to end it.
            assert fault in CRASHES | LASTING


def assert_the_report_is_of_what_the_ledger_has(one: Aftermath, fault: Fault) -> None:
    if one.report is None:
        return
    charged = sum(reservation.charged_quanta for reservation in one.reservations)
    ids = [reservation.reservation_id for reservation in one.reservations]
    assert one.report.charged_quanta >= charged
    if fault not in LASTING:
        assert one.report.charged_quanta == charged
        assert one.report.reservation_id == (ids[0] if ids else None)


def assert_statuses_say_what_happened(one: Aftermath, fault: Fault) -> None:
    if one.report is None:
        return
    stands = {reservation.state for reservation in one.reservations}
    for outcome in one.report.outcomes:
        if outcome.status in {QueryStatus.PREPARED, QueryStatus.DROPPED}:
            assert stands == {ReservationState.SETTLED}
        elif outcome.status is QueryStatus.UNKNOWN:
            assert fault in LASTING or stands == {ReservationState.UNKNOWN}
        elif len(one.report.outcomes) == len({each.status for each in one.report.outcomes}):
            continue  # One was withheld, and the other went on without it.
        else:
            assert one.lab.provider.requests == []
            assert ReservationState.SETTLED not in stands


def assert_vectors_are_found_only_where_the_log_says_so(one: Aftermath) -> None:
    found = [looked_up(one.lab, query) for query in QUERIES]
    if one.report is not None:
        assert found == [outcome.is_usable for outcome in one.report.outcomes]
    if any(found):
        assert [each.state for each in one.reservations] == [ReservationState.SETTLED]
        stream = CacheContext.create_id("acme", "ana", "cli")
        events = list(one.lab.real_log.read(stream))
        assert isinstance(events[-1], CacheContext.QueryVectorsPrepared)
        assert events[-1].reservation_id == one.reservations[0].reservation_id


def assert_it_took_no_longer_than_it_may(one: Aftermath) -> None:
    given_up = any(each.state is not ReservationState.SETTLED for each in one.reservations)
    may_clean_up = given_up or (one.report is not None and one.report.reservation_id is not None)
    assert one.took_s <= DEADLINE_S + (CLEANUP_S if may_clean_up else 0) + TICK_S


def assert_the_next_process_can_go_on(one: Aftermath) -> None:
    """At once, unless a reservation is pending; then as soon as its lease has run out."""
    following = one.lab.another_process()
    if any(each.state is ReservationState.PENDING for each in one.reservations):
        refused = following.ask(*QUERIES)
        assert {outcome.reason for outcome in refused.outcomes} == {"query_pending"}
        following.clock.suspend(LEASE_S)
    report = following.ask(*QUERIES)
    assert [outcome.status for outcome in report.outcomes] == [QueryStatus.PREPARED] * 2
    for before in one.reservations:
        [now] = [
            each for each in following.reservations if each.reservation_id == before.reservation_id
        ]
        if before.state is ReservationState.PENDING:
            assert now.state is ReservationState.UNKNOWN
            assert now.unknown_reason is UnknownReason.EXPIRED
        assert now.charged_quanta == before.charged_quanta
    [day] = following.real_ledger.days("acme")
    assert day.charged_quanta == sum(each.charged_quanta for each in following.reservations)
    assert day.pending == 0


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_any_port_call_leaves_everything_accounted_for(fault: Fault) -> None:
    tried = 0

    for at in points(fault):
        one = after(fault, at)
        try:
            assert_every_query_has_one_outcome(one, fault)
            assert_nothing_left_unreserved(one)
            assert_charges_are_lowered_by_proof_alone(one, fault)
            assert_the_report_is_of_what_the_ledger_has(one, fault)
            assert_statuses_say_what_happened(one, fault)
            assert_vectors_are_found_only_where_the_log_says_so(one)
            assert_it_took_no_longer_than_it_may(one)
            assert_the_next_process_can_go_on(one)
        except BaseException as failure:
            failure.add_note(f"call {at} ({CALLS[at]}) {fault}: {one}")
            raise
        tried += 1

    print(f"{tried} of {len(CALLS)} calls: {fault}")  # noqa: T201  # shown by -s or -rP
    assert tried > len(CALLS) // 2


def test_the_campaign_reaches_every_port(capsys: pytest.CaptureFixture[str]) -> None:
    total = sum(len(list(points(fault))) for fault in Fault)

    with capsys.disabled():
        print(f"\n{total} faults at {len(CALLS)} port calls")  # noqa: T201  # the brief figure
    assert {name.split(".")[0] for name in CALLS} == {
        "admission",
        "clock",
        "guards",
        "ledger",
        "log",
        "provider",
        "randomness",
        "worker",
    }
    assert total > 600
