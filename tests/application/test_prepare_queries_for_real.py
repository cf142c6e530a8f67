"""The preparation with real threads, a real file and a real provider on this machine.

What virtual time can't show: asyncio's own cancellation, HTTP, and SQLite's locks.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import pytest
from tests.application.house import a_context, a_query
from tests.application.real_process import RealProcess, loopback_configuration, open_process
from typing_extensions import override

from remembrancer.adapters.worker.anyio_worker import AnyioWorker
from remembrancer.application.blocking import run_blocking
from remembrancer.contracts import loopback_provider as server_side
from remembrancer.contracts.loopback_provider import Behaviour, LoopbackProvider, Received
from remembrancer.domain.reservation import Reservation, ReservationState, UnknownReason

_Result = TypeVar("_Result")

BACKENDS = ("asyncio", "trio")
PATIENCE_S = 10.0
CANCELLED = 50


@contextmanager
def process(
    folder: Path, *behaviours: Behaviour, **changes: Any
) -> Generator[tuple[RealProcess, LoopbackProvider]]:
    with LoopbackProvider(*behaviours) as server:
        configuration = loopback_configuration(server.url, **changes)
        with open_process(folder / "memory.db", server.url, configuration) as one:
            yield one, server


def outcome(one: RealProcess, *questions: str) -> list[tuple[str, str]]:
    queries = [a_query(question) for question in questions or ("invoice",)]
    report = anyio.run(one.prepare, queries)
    return [(each.status.value, each.reason) for each in report.outcomes]


def complete(reservation: Reservation) -> bool:
    return (
        reservation.state is ReservationState.UNKNOWN
        and reservation.charged_quanta == reservation.reserved_quanta
    )


# -- Answers -------------------------------------------------------------------------------------


def usage(tokens: object) -> Behaviour:
    def change(answer: dict[str, Any]) -> None:
        answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}

    return server_side.honest(change=change)


def without_usage(answer: dict[str, Any]) -> None:
    del answer["usage"]


BAD_USAGE = {
    "absent": (server_side.honest(change=without_usage), "usage_missing"),
    "null": (usage(None), "usage_invalid"),
    "zero": (usage(0), "usage_invalid"),
    "negative": (usage(-5), "usage_invalid"),
    "NaN": (usage(float("nan")), "answer_not_json"),
    "a string": (usage("7"), "usage_invalid"),
    "true": (usage(True), "usage_invalid"),
    "over the bound": (usage(14), "usage_over_bound"),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage_is_never_free(case: str, tmp_path: Path) -> None:
    """Case 4."""
    behaviour, reason = BAD_USAGE[case]
    with process(tmp_path, behaviour) as (one, server):
        assert outcome(one) == [("unknown", reason)]
        assert len(server.requests) == 1
        assert complete(one.reservation)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (server_side.status(429), "status_429"),
        (server_side.status(500), "status_500"),
        (server_side.status(408), "status_408"),
        (server_side.reset(), "connection"),
        (server_side.cut_off(), "malformed"),
    ],
    ids=["429", "500", "408", "reset", "cut off"],
)
def test_one_attempt(behaviour: Behaviour, reason: str, tmp_path: Path) -> None:
    """Case 5."""
    with process(tmp_path, behaviour) as (one, server):
        assert outcome(one) == [("unknown", reason)]
        assert len(server.requests) == server.connections == 1
        assert complete(one.reservation)
        assert one.reservation.unknown_reason is UnknownReason.PROVIDER_ERROR


@pytest.mark.parametrize("code", [302, 307])
def test_a_redirect_is_not_followed(code: int, tmp_path: Path) -> None:
    """Case 19."""
    with (
        LoopbackProvider() as elsewhere,
        process(tmp_path, server_side.redirect(code, elsewhere.url)) as (one, server),
    ):
        assert outcome(one) == [("unknown", "redirect")]
        assert len(server.requests) == 1
        assert elsewhere.connections == 0
        assert complete(one.reservation)


def reordered(*indexes: int) -> Callable[[dict[str, Any]], None]:
    def change(answer: dict[str, Any]) -> None:
        answer["data"] = [
            answer["data"][place] | {"index": index} for place, index in enumerate(indexes)
        ]

    return change


def shuffled(answer: dict[str, Any]) -> None:
    answer["data"] = [answer["data"][index] for index in (2, 0, 3, 1)]


QUESTIONS = ("one", "two", "three", "four")


def test_a_shuffled_answer_is_mapped_by_index(tmp_path: Path) -> None:
    """Case 9."""
    with process(tmp_path, server_side.honest(change=shuffled)) as (one, server):
        outcome(one, *QUESTIONS)

        for question, text in zip(QUESTIONS, server.requests[0].texts, strict=True):
            found = one.prepared.lookup(a_query(question), a_context())
            assert found is not None
            assert list(found) == pytest.approx(server_side.vector_for(text, 8))


@pytest.mark.parametrize(
    ("indexes", "reason"),
    [((0, 1, 2), "answer_wrong_count"), ((0, 0, 1, 2), "answer_wrong_order")],
    ids=["one short", "one twice"],
)
def test_a_doubtful_answer_is_refused_as_a_whole(
    indexes: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    """Case 9."""
    with process(tmp_path, server_side.honest(change=reordered(*indexes))) as (one, _):
        assert outcome(one, *QUESTIONS) == [("unknown", reason)] * 4
        assert not any(one.prepared.lookup(a_query(each), a_context()) for each in QUESTIONS)
        assert complete(one.reservation)


@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf"), 1e39, True])
def test_impossible_vectors_are_refused(number: float, tmp_path: Path) -> None:
    """Case 10."""

    def change(answer: dict[str, Any]) -> None:
        answer["data"][0]["embedding"] = [number] * 8

    with process(tmp_path, server_side.honest(change=change)) as (one, _):
        [(status, reason)] = outcome(one)

        assert status == "unknown"
        assert reason in {"answer_impossible_vector", "answer_not_json"}
        assert complete(one.reservation)


def test_another_dimension_is_refused(tmp_path: Path) -> None:
    """Case 10."""
    with process(tmp_path, server_side.honest(dimensions=7)) as (one, _):
        assert outcome(one) == [("unknown", "answer_wrong_dimensions")]


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


# -- Provider away -------------------------------------------------------------------------------


def test_a_provider_that_is_down_costs_the_complete_charge_and_no_exception(
    tmp_path: Path,
) -> None:
    """Case 15."""
    with LoopbackProvider() as gone:
        url = gone.url
    with open_process(tmp_path / "memory.db", url, loopback_configuration(url)) as one:
        assert outcome(one) == [("unknown", "connection")]
        assert complete(one.reservation)


def test_a_text_that_may_not_leave_reserves_nothing(tmp_path: Path) -> None:
    """Case 15: a credential, and 4,097 bytes that end inside a character."""
    key = "AK" + "IA" + "QWERTYUIOP234567"
    with process(tmp_path) as (one, server):
        found = outcome(one, f"Where is {key} used?", "x" + "é" * 2_046)

        assert found == [("withheld", "credential"), ("withheld", "too_long")]
        assert server.connections == 0
        assert one.reservations == []


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


@contextmanager
def control_c() -> Generator[None]:
    """Let SIGINT interrupt, also in a process that was begun in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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

    with process(tmp_path, interrupt) as (one, _), control_c():
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
