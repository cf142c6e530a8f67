"""The preparation over PostgreSQL: real processes, a real server, a real provider."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import anyio
import pytest
from tests.adapters.postgres_server import server
from tests.application.house import a_context, a_query
from tests.application.loopback_process import complete, outcome
from tests.application.real_process import loopback_configuration, open_process
from tests.application.test_prepare_queries_for_real import arrived, outcome_after
from tests.application.test_prepare_queries_killed import LEFT_BEHIND, begun, go

from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.loopback_provider import LoopbackProvider, Received
from remembrancer.domain.reservation import ReservationState, UnknownReason

PROCESSES, THREADS_EACH = 8, 2
CANCELLED = 10
ROOMY = {"ceilings": {"requests_per_day": 10, "quanta_per_day": 1_000_000}}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Return the file by which processes find a database of their own."""
    with server().database() as fresh:
        place = tmp_path / "memory.dsn"
        place.write_text(fresh.app)
        yield place


def test_a_question_is_prepared_paid_for_and_found(place: Path) -> None:
    with (
        LoopbackProvider() as provider,
        open_process(place, provider.url, loopback_configuration(provider.url)) as one,
    ):
        assert outcome(one) == [("prepared", "prepared")]

        assert one.prepared.lookup(a_query(), a_context()) is not None
        assert one.reservation.state is ReservationState.SETTLED
        assert one.reservation.charged_quanta < one.reservation.reserved_quanta
        assert len(provider.requests) == 1


@pytest.mark.parametrize("step", LEFT_BEHIND)
def test_a_process_killed_at_any_step_leaves_a_whole_charge_and_no_lock(
    place: Path, step: str
) -> None:
    state, requests = LEFT_BEHIND[step]
    children = list[Popen[str]]()

    def behave(request: Received) -> None:
        if step == "in flight" and len(provider.requests) == 1:
            children[0].kill()
        server_side.honest()(request)

    with LoopbackProvider(behave) as provider:
        children.append(begun(place, provider.url, "10", "1", step))
        go(children[0])
        children[0].communicate(timeout=60)
        with open_process(
            place, provider.url, loopback_configuration(provider.url, **ROOMY)
        ) as one:
            left = one.reservations

            assert [each.state for each in left] == ([] if state is None else [state])
            assert len(provider.requests) == requests
            [(_, reason)] = outcome(one, "question of the next process")
            assert reason == ("query_pending" if state is ReservationState.PENDING else "prepared")


def test_the_last_slot_goes_out_once(place: Path) -> None:
    """Case 1, over PostgreSQL and with eight processes."""
    with LoopbackProvider() as provider:
        children = [begun(place, provider.url, "1", str(THREADS_EACH)) for _ in range(PROCESSES)]
        for child in children:
            go(child)
        reasons = Counter(
            reason for child in children for reason in json.loads(child.communicate()[0])
        )

        assert reasons["prepared"] == len(provider.requests) == 1
        assert sum(reasons.values()) == PROCESSES * THREADS_EACH


def test_cancelled_in_flight_is_an_unknown_charge_and_no_stuck_lock(place: Path) -> None:
    with (
        LoopbackProvider(server_side.silent()) as provider,
        open_process(place, provider.url, loopback_configuration(provider.url)) as one,
    ):

        async def cancel_some() -> None:
            for _ in range(CANCELLED):
                async with anyio.create_task_group() as group:
                    group.start_soon(one.prepare, [a_query()])
                    await arrived(provider)
                    group.cancel_scope.cancel()

        anyio.run(cancel_some)

        assert len(one.reservations) == CANCELLED
        assert all(complete(each) for each in one.reservations)
        assert {each.unknown_reason for each in one.reservations} == {UnknownReason.CANCELLED}
        assert outcome_after(one) == "query goes on"
