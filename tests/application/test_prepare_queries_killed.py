"""Processes that are killed at each step, and processes that race for the last slot."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.application.house import a_context, a_query
from tests.application.preparing_process import STEPS
from tests.application.real_process import RealProcess, loopback_configuration, open_process
from typing_extensions import override

from remembrancer.adapters.clock.clock import SystemClock
from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.loopback_provider import LoopbackProvider, Received
from remembrancer.domain.cache_context import CacheContext
from remembrancer.domain.reservation import ReservationState, UnknownReason

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60
ROOMY = {"ceilings": {"requests_per_day": 10, "quanta_per_day": 1_000_000}}

NOTHING, PENDING, SETTLED = None, ReservationState.PENDING, ReservationState.SETTLED
LEFT_BEHIND = {
    "before reserving": (NOTHING, 0),
    "reserving, before the commit": (NOTHING, 0),
    "after the reservation": (PENDING, 0),
    "before sending": (PENDING, 0),
    "in flight": (PENDING, 1),
    "after the answer": (PENDING, 1),
    "settling, before the commit": (PENDING, 1),
    "after the settlement": (SETTLED, 1),
    "before the cache": (SETTLED, 1),
}
"""State of the reservation, and requests at the provider."""


class Later(SystemClock):
    """A machine's clock, some time on."""

    def __init__(self, by: timedelta) -> None:
        self._by = by

    @override
    def now(self) -> datetime:
        return super().now() + self._by


def begun(path: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    """Begin a process that prepares; it waits until it is told to go."""
    one = subprocess.Popen(
        [sys.executable, "-m", "tests.application.preparing_process", str(path), url, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert one.stdout is not None
    assert one.stdout.readline() == "ready\n"
    return one


def go(one: subprocess.Popen[str]) -> None:
    assert one.stdin is not None
    one.stdin.write("go\n")
    one.stdin.flush()


def ask(one: RealProcess) -> str:
    return anyio.run(one.prepare, [a_query("question of the next process")]).outcomes[0].reason


def test_the_steps_are_all_known() -> None:
    assert tuple(LEFT_BEHIND) == STEPS


@pytest.mark.parametrize("step", STEPS)
def test_the_next_process_sees_what_a_killed_one_left(step: str, tmp_path: Path) -> None:
    state, requests = LEFT_BEHIND[step]
    path = tmp_path / "memory.db"
    children: list[subprocess.Popen[str]] = []

    def behave(request: Received) -> None:
        if step == "in flight" and len(server.requests) == 1:
            os.kill(children[0].pid, signal.SIGKILL)
        server_side.honest()(request)

    with LoopbackProvider(behave) as server:
        children.append(begun(path, server.url, "10", "1", step))
        go(children[0])
        children[0].communicate(timeout=PATIENCE_S)

        assert children[0].returncode == -signal.SIGKILL
        assert len(server.requests) == requests
        configuration = loopback_configuration(server.url, **ROOMY)
        with open_process(path, server.url, configuration) as following:
            assert [one.state for one in following.reservations] == ([state] if state else [])
            assert_no_vector_without_settlement(following)
            reason = ask(following)
            assert reason == ("query_pending" if state is PENDING else "prepared")
        if state is PENDING:
            assert_the_lease_ends_it(path, server)


def assert_no_vector_without_settlement(following: RealProcess) -> None:
    """The cache dies with its process; the log may say that vectors could have entered it."""
    stream = CacheContext.create_id("acme", "ana", a_context().surface)
    recorded = [type(one) for one in following.log.read(stream)]
    if CacheContext.QueryVectorsPrepared in recorded:
        assert following.reservation.state is SETTLED


def assert_the_lease_ends_it(path: Path, server: LoopbackProvider) -> None:
    """Case 2: it lives for 15 s, then it is recorded unknown at its whole charge."""
    configuration = loopback_configuration(server.url, **ROOMY)
    requests = len(server.requests)
    # To the second in virtual time (``test_prepare_queries_in_time``); here a busy machine may
    # have spent some of the fifteen already.
    with open_process(
        path, server.url, configuration, clock=Later(timedelta(seconds=10))
    ) as following:
        assert ask(following) == "query_pending"
    with open_process(
        path, server.url, configuration, clock=Later(timedelta(seconds=16))
    ) as following:
        assert ask(following) == "prepared"
        old, new = following.reservations
    assert (old.state, old.unknown_reason) == (ReservationState.UNKNOWN, UnknownReason.EXPIRED)
    assert old.charged_quanta == old.reserved_quanta
    assert new.state is SETTLED
    assert len(server.requests) == requests + 1


def race(folder: Path, *, processes: int, threads: int) -> None:
    """Case 1: room for one request; everybody asks at the same moment."""
    path = folder / "memory.db"
    with LoopbackProvider() as server:
        children = [begun(path, server.url, "1", str(threads)) for _ in range(processes)]
        for one in children:
            go(one)
        reasons: Counter[str] = Counter()
        for one in children:
            said, _ = one.communicate(timeout=PATIENCE_S)
            assert one.returncode == 0
            reasons.update(json.loads(said))

        assert len(server.requests) == server.connections == 1
        assert reasons["prepared"] == 1
        assert reasons["query_pending"] + reasons["over_request_ceiling"] == (
            processes * threads - 1
        )
        ceilings = {"ceilings": {"requests_per_day": 1, "quanta_per_day": 1_000_000}}
        configuration = loopback_configuration(server.url, **ceilings)
        with open_process(path, server.url, configuration) as following:
            assert following.reservation.state is SETTLED
            [day] = following.ledger.days("acme")
            assert (day.requests, day.pending) == (1, 0)


@pytest.mark.parametrize("processes", [2, 4])
def test_sixteen_threads_race_for_the_last_slot_and_one_request_is_made(
    processes: int, tmp_path: Path
) -> None:
    race(tmp_path, processes=processes, threads=16 // processes)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(25))
def test_they_race_again_and_again(number: int, tmp_path: Path) -> None:
    race(tmp_path, processes=2 + 2 * (number % 2), threads=16 // (2 + 2 * (number % 2)))
