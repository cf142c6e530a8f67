"""A preparation withdrawn or replaced while its request is out, in virtual time."""

import pytest
from tests.application.house import a_context, a_query
from tests.application.laboratory import Laboratory, admission_of, configuration
from tests.application.meanwhile import finds, meanwhile, never, reasons, state
from tests.application.port_faults import Fault, Plan

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.domain.reservation import ReservationState, UnknownReason

SURFACE = Surface(tenant="acme", owner="ana", surface="cli")
OTHER_CONTEXT = a_context().model_copy(update={"task_digest": "t2"})


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
    elsewhere = CacheContexts(log=lab.real_log, transactions=MemoryTransactions(), clock=lab.clock)

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
    elsewhere = CacheContexts(log=lab.real_log, transactions=MemoryTransactions(), clock=lab.clock)

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
