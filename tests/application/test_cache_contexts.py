"""Which generation of a surface's context is current, over the log."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from eventsourcing.domain import AggregateEvent
from typing_extensions import override

from remembrancer.adapters.eventlog.event_log import RecordedEventLog
from remembrancer.adapters.memory.event_log import MemoryRecorder
from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.cache_contexts import CacheContexts, Surface
from remembrancer.application.ports import EventLog
from remembrancer.contracts.clock import FixedClock
from remembrancer.domain.errors import StoreUnavailableError
from remembrancer.domain.spend_errors import StaleGenerationError

SURFACE = Surface(tenant="acme", owner="ana", surface="cli")
CHAT = Surface(tenant="acme", owner="ana", surface="chat")
ONE, OTHER = "1" * 64, "2" * 64
CONFIGURATION = "c" * 64
REQUEST = UUID(int=7)


def a_log() -> EventLog:
    return RecordedEventLog(recorder=MemoryRecorder(transactions=MemoryTransactions()))


@pytest.fixture
def log() -> EventLog:
    return a_log()


def contexts_over(log: EventLog) -> CacheContexts:
    return CacheContexts(log=log, transactions=MemoryTransactions(), clock=FixedClock())


def bind(contexts: CacheContexts, context: str = ONE, surface: Surface = SURFACE) -> int:
    return contexts.bind(surface, context_digest=context, configuration_digest=CONFIGURATION)


def events(log: EventLog) -> list[str]:
    return [type(one.event).__name__ for one in log.follow(after_position=0, limit=10_000)]


def test_the_first_context_begins_generation_one(log: EventLog) -> None:
    contexts = contexts_over(log)

    assert contexts.generation(SURFACE) == 0
    assert bind(contexts) == 1
    assert contexts.generation(SURFACE) == 1


def test_the_same_context_goes_on_and_records_nothing(log: EventLog) -> None:
    contexts = contexts_over(log)
    bind(contexts)

    assert bind(contexts) == 1
    assert events(log) == ["CacheContextBound"]


def test_another_context_begins_the_next_generation(log: EventLog) -> None:
    contexts = contexts_over(log)
    bind(contexts)

    assert [bind(contexts, OTHER), bind(contexts, ONE)] == [2, 3]


def test_surfaces_have_contexts_of_their_own(log: EventLog) -> None:
    contexts = contexts_over(log)
    bind(contexts)

    assert bind(contexts, OTHER, CHAT) == 1
    assert contexts.generation(SURFACE) == 1


def test_another_process_sees_the_same_generation(log: EventLog) -> None:
    mine, theirs = contexts_over(log), contexts_over(log)
    bind(mine)

    bind(theirs, OTHER)

    assert mine.generation(SURFACE) == theirs.generation(SURFACE) == 2


def test_vectors_of_an_older_generation_are_not_recorded(log: EventLog) -> None:
    mine, theirs = contexts_over(log), contexts_over(log)
    begun = bind(mine)
    bind(theirs, OTHER)

    with pytest.raises(StaleGenerationError):
        mine.record_prepared(SURFACE, begun, reservation_id=REQUEST, vectors=1)
    assert events(log) == ["CacheContextBound", "CacheContextReplaced"]


def test_a_withdrawal_leaves_no_generation_and_can_be_followed_by_the_next(log: EventLog) -> None:
    contexts = contexts_over(log)
    bind(contexts)

    contexts.withdraw(SURFACE, reason="evidence_revoked")
    contexts.withdraw(SURFACE, reason="evidence_revoked")

    assert contexts.generation(SURFACE) == 0
    assert bind(contexts) == 3
    assert events(log).count("AdmissionWithdrawn") == 1


def test_what_was_not_committed_is_not_taken_for_the_logs_word() -> None:
    class Full(RecordedEventLog):
        full = False

        @override
        def append(self, events: Sequence[AggregateEvent]) -> None:
            if self.full:
                raise StoreUnavailableError(store="log", problem="a test says so")
            super().append(events)

    log = Full(recorder=MemoryRecorder(transactions=MemoryTransactions()))
    contexts = contexts_over(log)
    bind(contexts)
    log.full = True

    with pytest.raises(StoreUnavailableError):
        bind(contexts, OTHER)

    assert contexts.generation(SURFACE) == 1


def test_a_thread_that_looks_sees_no_context_before_it_is_committed() -> None:
    committing, looked = threading.Event(), threading.Event()

    class Slow(RecordedEventLog):
        slow = False

        @override
        def append(self, events: Sequence[AggregateEvent]) -> None:
            if self.slow:
                committing.set()
                looked.wait(10)
            super().append(events)

    log = Slow(recorder=MemoryRecorder(transactions=MemoryTransactions()))
    contexts = contexts_over(log)
    bind(contexts)
    log.slow = True

    with ThreadPoolExecutor(1) as pool:
        bound = pool.submit(bind, contexts, OTHER)
        committing.wait(10)
        seen_before = contexts.generation(SURFACE)
        looked.set()

        assert seen_before == 1
        assert bound.result() == 2


def test_many_threads_that_bind_at_once_agree(log: EventLog) -> None:
    contexts = contexts_over(log)
    barrier = threading.Barrier(8)

    def work(number: int) -> int:
        barrier.wait(10)
        return bind(contexts, (ONE, OTHER)[number % 2])

    with ThreadPoolExecutor(8) as pool:
        generations = list(pool.map(work, range(8)))

    assert max(generations) == contexts.generation(SURFACE) == len(events(log))
