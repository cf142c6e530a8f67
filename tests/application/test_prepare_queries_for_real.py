"""The preparation with real threads, a real file and a real provider on this machine.

What virtual time can't show: asyncio's own cancellation, Control-C, and SQLite's locks; and
whose the vectors in the file are. What the provider answers: ``test_prepare_queries_answers``.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import pytest
from tests.application.house import a_context, a_query
from tests.application.loopback_process import complete, outcome, process
from tests.application.real_process import RealProcess, loopback_configuration, open_process
from typing_extensions import override

from remembrancer.adapters.worker.anyio_worker import AnyioWorker
from remembrancer.application.blocking import run_blocking
from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.loopback_provider import LoopbackProvider, Received
from remembrancer.domain.reservation import ReservationState, UnknownReason

_Result = TypeVar("_Result")
BACKENDS = ("asyncio", "trio")
PATIENCE_S = 10.0
CANCELLED = 50


# -- Whose, and under which circumstances --------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"policy_version": "p2"},
        {"retrieval_policy_version": "r2"},
        {"task_digest": "t2"},
        {"surface": "chat"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_context_is_a_miss(change: dict[str, str], tmp_path: Path) -> None:
    """Case 8."""
    with process(tmp_path) as (one, _):
        outcome(one)

        assert one.prepared.lookup(a_query(), a_context().model_copy(update=change)) is None


@pytest.mark.parametrize(
    ("names", "others"),
    [
        ({"tenant": "acme"}, {"tenant": "acme-corp"}),
        ({"owner": "ana"}, {"owner": "bob"}),
        ({"tenant": "a", "owner": "b_c"}, {"tenant": "a_b", "owner": "c"}),
    ],
    ids=["tenants", "owners", "joined names"],
)
def test_names_that_look_alike_never_meet(
    names: dict[str, str], others: dict[str, str], tmp_path: Path
) -> None:
    """Case 8."""
    with process(tmp_path) as (one, _):
        whose = {"tenant": "acme", "owner": "ana"} | names
        report = anyio.run(
            lambda: one.prepare([a_query(**names)], tenant=whose["tenant"], owner=whose["owner"])
        )

        assert report.outcomes[0].is_usable
        assert one.prepared.lookup(a_query(**names), a_context()) is not None
        assert one.prepared.lookup(a_query(**names | others), a_context()) is None


@pytest.mark.parametrize(
    "change",
    [
        {"embedding_tuple": {"dimensions": 16}},
        {"pricing": {"usd_per_million_tokens": "99"}},
        {"provider": {"region": "local"}, "egress": {"allowed_regions": ["eu", "local"]}},
    ],
    ids=["dimensions", "price", "region"],
)
def test_another_configuration_is_a_miss(change: dict[str, Any], tmp_path: Path) -> None:
    """Case 8."""
    with process(tmp_path) as (one, server):
        outcome(one)
        other = loopback_configuration(server.url, **change)
        with open_process(tmp_path / "memory.db", server.url, other) as another:
            key = one.prepared.keys.key(a_query(), a_context())

            assert another.prepared.keys.key(a_query(), a_context()) != key
            assert another.prepared.lookup(a_query(), a_context()) is None


# -- Cancelled -----------------------------------------------------------------------------------


async def arrived(server: LoopbackProvider) -> None:
    """Wait until the provider has got one more request."""
    assert await anyio.to_thread.run_sync(server.arrived.wait, PATIENCE_S)
    server.arrived.clear()


@pytest.mark.parametrize("backend", BACKENDS)
def test_fifty_cancelled_in_flight_are_fifty_unknown_charges(backend: str, tmp_path: Path) -> None:
    """Case 3."""
    with process(tmp_path, server_side.silent()) as (one, server):

        async def cancel_fifty() -> None:
            for _ in range(CANCELLED):
                async with anyio.create_task_group() as group:
                    group.start_soon(one.prepare, [a_query()])
                    await arrived(server)
                    group.cancel_scope.cancel()

        anyio.run(cancel_fifty, backend=backend)

        assert len(server.requests) == len(one.reservations) == CANCELLED
        assert all(complete(each) for each in one.reservations)
        assert {each.unknown_reason for each in one.reservations} == {UnknownReason.CANCELLED}


class Interrupting(AnyioWorker):
    """Cancels its own caller again, as soon as that begins to clean up."""

    def __init__(self) -> None:
        self.cancels_left = 0

    @override
    async def run(self, call: Callable[[], _Result]) -> _Result:
        if self.cancels_left:
            self.cancels_left -= 1
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return await super().run(call)


@pytest.mark.parametrize("again", [0, 1, 5])
def test_asyncios_own_cancellation_repeated_loses_no_charge(again: int, tmp_path: Path) -> None:
    """A second ``task.cancel()`` goes through every shield."""
    worker = Interrupting()
    with (
        LoopbackProvider(server_side.silent()) as server,
        open_process(
            tmp_path / "memory.db",
            server.url,
            loopback_configuration(server.url),
            altered=lambda name, part: worker if name == "worker" else part,
        ) as one,
    ):

        async def cancel() -> bool:
            task = asyncio.ensure_future(one.prepare([a_query()]))
            await arrived(server)
            worker.cancels_left = again
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()

        assert asyncio.run(cancel())
        assert worker.cancels_left == 0
        assert complete(one.reservation)
        assert outcome_after(one) == "query goes on"


def outcome_after(one: RealProcess) -> str:
    """Say whether the owner's lock is free and nothing is pending."""
    pending = [each for each in one.reservations if each.state is ReservationState.PENDING]
    free = one.ledger.decide("acme", "ana", lambda held: not held.ledger.pending)
    return "query goes on" if free and not pending else "stuck"


def blocking(one: RealProcess) -> object:
    return run_blocking(lambda: one.prepare([a_query()]))


def blocking_within_an_event_loop(one: RealProcess) -> object:
    """As in a notebook; ``asyncio.run`` would only note the interrupt until its loop is free."""

    async def main() -> object:
        return blocking(one)

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def asynchronous(one: RealProcess) -> object:
    return asyncio.run(one.prepare([a_query()]))


@pytest.mark.parametrize("way", [asynchronous, blocking, blocking_within_an_event_loop])
def test_a_keyboard_interrupt_ends_the_call_and_keeps_the_charge(
    way: Callable[[RealProcess], object], tmp_path: Path
) -> None:
    """Case 3: Control-C, sent once the request is there."""

    def interrupt(request: Received) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        server_side.silent()(request)

    with process(tmp_path, interrupt) as (one, _):
        with pytest.raises(KeyboardInterrupt):
            way(one)

        assert complete(one.reservation)
        assert one.reservation.unknown_reason is UnknownReason.CANCELLED
        assert outcome_after(one) == "query goes on"


# -- Private text --------------------------------------------------------------------------------


CANARY = "canarybird"


def test_the_question_is_in_no_file_log_event_or_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    behaviours = (
        server_side.honest(),
        server_side.status(401),
        server_side.raw(b"HTTP/1.1 canarybird\r\n\r\n"),
        server_side.cut_off(),
    )
    queries = [a_query(f"Where is the {CANARY}?", subjects=(f"{CANARY} {n}",)) for n in range(4)]
    with process(tmp_path, *behaviours) as (one, server):
        reports = [anyio.run(one.prepare, [query]) for query in queries]
        sent = [request.texts for request in server.requests]
        events = [repr(each) for each in one.log.follow(after_position=0, limit=1_000)]
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        shown = [repr(one.prepared), repr(one.use_case), repr(reports), repr(one.reservations)]

    assert all(CANARY in text for texts in sent for text in texts)
    assert [report.outcomes[0].status for report in reports] == [
        "prepared",
        "unknown",
        "unknown",
        "unknown",
    ]
    assert b"CacheContext" in files or b"cache_context" in files
    assert CANARY.encode() not in files
    assert CANARY not in "".join([*events, *shown, caplog.text])


# -- The last slot -------------------------------------------------------------------------------


def test_sixteen_threads_with_one_slot_left_send_one_request(tmp_path: Path) -> None:
    """Case 1, within one process; see ``test_prepare_queries_killed`` for several."""
    threads = 16
    ceilings = {"ceilings": {"requests_per_day": 1, "quanta_per_day": 1_000_000}}
    barrier = threading.Barrier(threads)
    with process(tmp_path, **ceilings) as (one, server):

        def prepare(number: int) -> str:
            barrier.wait(PATIENCE_S)
            report = anyio.run(one.prepare, [a_query(f"question {number}")])
            return report.outcomes[0].reason

        with ThreadPoolExecutor(threads) as pool:
            reasons = list(pool.map(prepare, range(threads)))

        assert len(server.requests) == len(one.reservations) == 1
        assert reasons.count("prepared") + reasons.count("context_changed") == 1
        assert set(reasons) - {"prepared", "context_changed"} <= {
            "query_pending",
            "over_request_ceiling",
        }
