"""The preparation's rules (seed BSQ; design 4.4 and 6), in virtual time."""

import json
from collections.abc import Sequence

import anyio
import pytest
from tests.application.asking import INJECTION, finds, in_context, outcomes
from tests.application.house import a_context, a_query
from tests.application.laboratory import ANSWER_TAKES_S, Laboratory, admission_of, configuration

from remembrancer.domain.configuration import Configuration
from remembrancer.domain.eligibility import QueryStatus
from remembrancer.domain.errors import InvalidInputError
from remembrancer.domain.reservation import ReservationState, UnknownReason

# -- The two that the seed asks for first --------------------------------------------------------


def test_no_request_reaches_the_provider_before_its_reservation_is_committed() -> None:
    """Fails without durable query admission."""
    lab = Laboratory()
    seen: list[tuple[ReservationState, str]] = []

    async def look(texts: Sequence[str]) -> bytes:
        seen.append((lab.reservation.state, lab.events[-1]))
        return await lab.provider.honest(texts)

    lab.provider.behaviour = look
    lab.ask(a_query())

    assert seen == [(ReservationState.PENDING, "ReservationAdmitted")]
    assert lab.provider.unreserved == 0


def test_a_prepared_query_is_found_by_the_lookup() -> None:
    """Fails without query population."""
    lab = Laboratory()
    found_before = finds(lab, a_query())

    lab.ask(a_query())

    assert not found_before
    assert finds(lab, a_query())


# -- What is sent --------------------------------------------------------------------------------


def test_the_text_that_leaves_is_the_array_of_question_and_subjects() -> None:
    lab = Laboratory()

    lab.ask(a_query('What did "Ana" say?\n', subjects=("Ana", "Zoë")))

    assert lab.provider.requests == [('["What did \\"Ana\\" say?\\n","Ana","Zoë"]',)]


def test_nothing_else_leaves() -> None:
    lab = Laboratory()
    query = a_query(principal="agent-77", scopes=("project/secretplan",), limit=77)

    lab.ask(query, context=in_context(task_digest="t-77", policy_version="p-77"))

    sent = json.dumps(lab.provider.requests)
    assert sent == '[["[\\"invoice\\"]"]]'


def test_four_queries_make_one_request() -> None:
    lab = Laboratory()
    queries = [a_query(f"question {number}") for number in range(4)]

    report = lab.ask(*queries)

    assert [outcome.status for outcome in report.outcomes] == [QueryStatus.PREPARED] * 4
    assert [len(request) for request in lab.provider.requests] == [4]
    assert all(finds(lab, query) for query in queries)


def test_five_queries_are_an_error_and_nothing_is_done() -> None:
    lab = Laboratory()

    with pytest.raises(InvalidInputError):
        lab.ask(*[a_query(f"question {number}") for number in range(5)])

    assert lab.events == []
    assert lab.plan.calls == []


def test_no_queries_are_an_empty_report() -> None:
    lab = Laboratory()

    report = lab.run(lambda: lab.prepare([], a_context(), tenant="acme", owner="ana"))

    assert (report.outcomes, report.reservation_id, report.charged_quanta) == ((), None, 0)
    assert lab.events == []


# -- What needs no sending -----------------------------------------------------------------------


def test_a_query_that_is_cached_is_not_sent_again() -> None:
    lab = Laboratory()
    lab.ask(a_query())

    report = lab.ask(a_query())

    assert [outcome.status for outcome in report.outcomes] == [QueryStatus.CACHED]
    assert (report.reservation_id, report.charged_quanta) == (None, 0)
    assert len(lab.provider.requests) == len(lab.reservations) == 1


def test_a_query_that_stands_twice_is_sent_once() -> None:
    lab = Laboratory()

    found = outcomes(lab, a_query("one"), a_query("two"), a_query("one"))

    assert [status for status, _ in found] == ["prepared", "prepared", "duplicate"]
    assert lab.provider.requests == [('["one"]', '["two"]')]


def test_a_mixed_call_has_an_outcome_for_each_in_order() -> None:
    lab = Laboratory()
    lab.ask(a_query("old"))

    found = outcomes(lab, a_query(owner="bob"), a_query(INJECTION), a_query("old"), a_query("new"))

    assert [status for status, _ in found] == ["ineligible", "withheld", "cached", "prepared"]
    assert lab.provider.requests[-1] == ('["new"]',)


def test_when_all_are_settled_beforehand_nothing_is_reserved() -> None:
    lab = Laboratory()

    report = lab.ask(a_query(owner="bob"), a_query(INJECTION))

    assert report.reservation_id is None
    assert lab.reservations == []


# -- What refuses --------------------------------------------------------------------------------


def test_nothing_is_done_without_an_admission() -> None:
    lab = Laboratory()
    lab.switch.now = None

    assert outcomes(lab, a_query()) == [("refused", "not_admitted")]
    assert lab.events == []


def test_what_only_looks_admitted_is_not() -> None:
    class Lookalike:
        configuration = configuration()
        digest = configuration.digest

    lab = Laboratory()
    lab.switch.now = Lookalike()  # type: ignore[assignment]  # that is the attack

    assert outcomes(lab, a_query()) == [("refused", "not_admitted")]


def test_another_configuration_than_the_caches_is_not_used() -> None:
    lab = Laboratory()
    lab.switch.now = admission_of(
        configuration(pricing={"usd_per_million_tokens": "99", "input_overhead_tokens": 2})
    )

    assert outcomes(lab, a_query()) == [("refused", "not_admitted")]
    assert lab.events == []


def with_ceilings(**ceilings: int) -> Configuration:
    return configuration(ceilings={"quanta_per_day": 1_000_000, "requests_per_day": 5} | ceilings)


def test_a_used_up_day_refuses_before_anything_leaves() -> None:
    lab = Laboratory(admitted=admission_of(with_ceilings(requests_per_day=1)))
    lab.ask(a_query("one"))

    report = lab.ask(a_query("two"))

    assert [(each.status, each.reason) for each in report.outcomes] == [
        ("refused", "over_request_ceiling")
    ]
    assert (report.reservation_id, report.charged_quanta) == (None, 0)
    assert len(lab.provider.requests) == len(lab.reservations) == 1


def test_a_charge_that_does_not_fit_refuses_before_anything_leaves() -> None:
    lab = Laboratory(admitted=admission_of(with_ceilings(quanta_per_day=1_299)))

    assert outcomes(lab, a_query()) == [("refused", "over_money_ceiling")]
    assert lab.provider.requests == []
    assert lab.reservations == []


def test_a_complete_charge_that_just_fits_is_admitted() -> None:
    # ["invoice"]: 11 bytes and 2 tokens of overhead, at 100 quanta each.
    lab = Laboratory(admitted=admission_of(with_ceilings(quanta_per_day=1_300)))

    assert outcomes(lab, a_query()) == [("prepared", "prepared")]
    assert lab.reservation.reserved_quanta == 1_300


def test_while_one_is_out_another_is_refused() -> None:
    lab = Laboratory()
    reports = {}

    async def both() -> None:
        async def first() -> None:
            reports["first"] = await lab.prepared_by(a_query("one"))

        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await anyio.sleep(1)
            reports["second"] = await lab.prepared_by(a_query("two"))

    lab.run(both)

    assert reports["first"].outcomes[0].status is QueryStatus.PREPARED
    assert reports["second"].outcomes[0].reason == "query_pending"
    assert lab.provider.requests == [('["one"]',)]


# -- What comes back -----------------------------------------------------------------------------


def test_the_report_says_what_was_charged() -> None:
    lab = Laboratory()

    report = lab.ask(a_query("what was it?"))

    assert report.reservation_id == lab.reservation.reservation_id
    assert report.charged_quanta == lab.reservation.charged_quanta == 300
    assert lab.reservation.reserved_quanta == 1_800
    assert lab.reservation.state is ReservationState.SETTLED


def test_vectors_are_recorded_after_settlement_in_their_generation() -> None:
    lab = Laboratory()

    lab.ask(a_query())

    assert lab.events == [
        "CacheContextBound",
        "ReservationAdmitted",
        "ReservationSettled",
        "QueryVectorsPrepared",
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "answer_not_json"),
        (b"[]", "answer_wrong_shape"),
        (b'{"model": "other", "data": []}', "answer_wrong_model"),
        (b'{"model": "small", "data": []}', "answer_wrong_count"),
    ],
)
def test_an_unusable_answer_keeps_the_complete_charge(body: bytes, reason: str) -> None:
    lab = Laboratory()

    async def answer(_: Sequence[str]) -> bytes:
        return body

    lab.provider.behaviour = answer
    report = lab.ask(a_query())

    assert [(each.status, each.reason) for each in report.outcomes] == [("unknown", reason)]
    assert report.charged_quanta == lab.reservation.charged_quanta == 1_300
    assert lab.reservation.unknown_reason is UnknownReason.UNUSABLE_ANSWER
    assert not finds(lab, a_query())


def test_the_second_call_pays_for_the_new_query_alone() -> None:
    lab = Laboratory()
    lab.ask(a_query("one"))

    report = lab.ask(a_query("one"), a_query("two"))

    assert [outcome.status for outcome in report.outcomes] == ["cached", "prepared"]
    assert lab.provider.requests[-1] == ('["two"]',)


def test_a_vector_dies_after_five_minutes() -> None:
    lab = Laboratory()
    lab.ask(a_query())

    lab.clock.suspend(299.9)
    before = finds(lab, a_query())
    lab.clock.suspend(0.1)
    after = finds(lab, a_query())

    assert (before, after) == (True, False)


def test_a_report_shows_no_text() -> None:
    lab = Laboratory()

    report = lab.ask(
        a_query("canarybird", subjects=("canarybird",)), a_query(f"canarybird {INJECTION}")
    )

    assert "canarybird" not in f"{report!r} {report}"


def test_an_answer_takes_its_time_and_no_more() -> None:
    lab = Laboratory()

    lab.ask(a_query())

    assert lab.clock.monotonic() == pytest.approx(ANSWER_TAKES_S)
