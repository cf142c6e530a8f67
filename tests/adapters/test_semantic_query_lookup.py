"""The lookup over the process's caches: the contract, and its bounds."""

import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from typing_extensions import override

from remembrancer.application.cache_contexts import Surface
from remembrancer.application.ports import Clock
from remembrancer.application.prepared_queries import SURFACES_MAX, PreparedQueries
from remembrancer.contracts.admission_examples import a_configuration
from remembrancer.contracts.clock import FixedClock
from remembrancer.contracts.semantic_query_lookup import (
    CONTEXT,
    QUERY,
    VECTOR,
    SemanticQueryLookupContract,
)
from remembrancer.domain.bounds import CACHE_VECTORS_MAX
from remembrancer.domain.configuration import Configuration
from remembrancer.domain.recall import RecallContext, RecallQuery
from remembrancer.domain.vector import Vector

SECRET = bytes(range(32))
SURFACE = Surface(tenant="acme", owner="ana", surface="cli")
CONFIGURATION = a_configuration(dimensions=len(VECTOR))
OTHER_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "region": {"provider": {"url": CONFIGURATION.provider.url, "region": "ch"}},
    "price": {"pricing": {"usd_per_million_tokens": "0.03", "input_overhead_tokens": 8}},
    "dimensions": {
        "embedding_tuple": CONFIGURATION.embedding_tuple.model_dump() | {"dimensions": 16}
    },
    "guards": {"egress": CONFIGURATION.egress.model_dump() | {"guards_digest": "8" * 64}},
}


def a_cache(clock: Clock | None = None, configuration: Configuration = CONFIGURATION,
            secret: bytes = SECRET) -> PreparedQueries:  # fmt: skip
    return PreparedQueries(clock=clock or FixedClock(), secret=secret, configuration=configuration)


def put(
    cache: PreparedQueries,
    query: RecallQuery = QUERY,
    context: RecallContext = CONTEXT,
    vector: Vector = VECTOR,
    now_s: float = 0.0,
) -> bool:
    surface = Surface(tenant=query.tenant, owner=query.owner, surface=context.surface)
    vectors = cache.bound(surface, context, 1)
    return vectors.insert([(cache.keys.key(query, context), vector)], generation=1, now_s=now_s)


def a_question(number: int) -> RecallQuery:
    return QUERY.model_copy(update={"question": f"question {number}"})


class TestPreparedQueries(SemanticQueryLookupContract):
    @override
    def prepared(
        self, *, query: RecallQuery, context: RecallContext, vector: Vector, clock: Clock
    ) -> PreparedQueries:
        cache = a_cache(clock)
        assert put(cache, query, context, vector, clock.monotonic())
        return cache


def test_an_empty_cache_finds_nothing() -> None:
    assert a_cache().lookup(QUERY, CONTEXT) is None


def test_the_least_recently_used_goes_first() -> None:
    cache = a_cache()
    for number in range(CACHE_VECTORS_MAX):
        put(cache, a_question(number))
    used = cache.lookup(a_question(0), CONTEXT)

    put(cache, a_question(CACHE_VECTORS_MAX))

    assert used is not None
    assert cache.lookup(a_question(0), CONTEXT) is not None
    assert cache.lookup(a_question(1), CONTEXT) is None
    assert cache.lookup(a_question(2), CONTEXT) is not None


def test_a_cache_holds_128_vectors_and_no_more() -> None:
    cache = a_cache()

    for number in range(3 * CACHE_VECTORS_MAX):
        put(cache, a_question(number))

    found = [cache.lookup(a_question(each), CONTEXT) for each in range(3 * CACHE_VECTORS_MAX)]
    assert sum(one is not None for one in found) == CACHE_VECTORS_MAX == 128


def test_a_withdrawal_empties_every_cache_for_good() -> None:
    cache = a_cache()
    put(cache)
    waiting = cache.bound(SURFACE, CONTEXT, 1)

    surfaces = cache.withdraw()

    late = waiting.insert([(cache.keys.key(QUERY, CONTEXT), VECTOR)], generation=1, now_s=0.0)
    assert surfaces == [SURFACE]
    assert not late
    assert not put(cache)
    assert cache.lookup(QUERY, CONTEXT) is None
    assert cache.is_withdrawn


def test_a_new_generation_begins_empty() -> None:
    cache = a_cache()
    put(cache)
    waiting = cache.bound(SURFACE, CONTEXT, 1)

    cache.bound(SURFACE, CONTEXT, 2)

    assert cache.lookup(QUERY, CONTEXT) is None
    assert not waiting.insert([(b"k" * 32, VECTOR)], generation=1, now_s=0.0)


def test_what_was_on_its_way_for_another_context_can_not_get_in() -> None:
    cache = a_cache()
    waiting = cache.bound(SURFACE, CONTEXT, 1)
    other = CONTEXT.model_copy(update={"task_digest": "t2"})

    cache.bound(SURFACE, other, 2)

    assert not waiting.insert([(b"k" * 32, VECTOR)], generation=1, now_s=0.0)


def test_a_surface_that_was_pushed_out_takes_nothing_any_more() -> None:
    cache = a_cache()
    waiting = cache.bound(SURFACE, CONTEXT, 1)

    for number in range(SURFACES_MAX):
        cache.bound(Surface(tenant="acme", owner=f"owner {number}", surface="cli"), CONTEXT, 1)

    assert not waiting.insert([(b"k" * 32, VECTOR)], generation=1, now_s=0.0)
    assert len(cache.withdraw()) == SURFACES_MAX


@pytest.mark.parametrize("part", OTHER_CONFIGURATIONS)
def test_another_configuration_makes_other_keys(part: str) -> None:
    values = CONFIGURATION.model_dump(mode="json") | OTHER_CONFIGURATIONS[part]

    other = a_cache(configuration=Configuration.parse(values))

    assert other.keys.key(QUERY, CONTEXT) != a_cache().keys.key(QUERY, CONTEXT)


def test_another_installation_makes_other_keys() -> None:
    other = a_cache(secret=bytes(32))

    assert other.keys.key(QUERY, CONTEXT) != a_cache().keys.key(QUERY, CONTEXT)


def test_looking_up_leaves_nothing_behind() -> None:
    """No allocation grows with use, neither of hits nor of misses."""
    clock = FixedClock()
    cache = a_cache(clock)
    put(cache)
    questions = [a_question(number) for number in range(200)]
    for each in questions:  # Whatever is made once is made now.
        cache.lookup(each, CONTEXT)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    for _ in range(50):
        for each in questions:
            cache.lookup(each, CONTEXT)
        cache.lookup(QUERY, CONTEXT)

    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000


def test_threads_that_look_up_bind_and_withdraw_meet_no_error() -> None:
    clock = FixedClock()
    cache = a_cache(clock)
    barrier = threading.Barrier(4)
    contexts = [CONTEXT, CONTEXT.model_copy(update={"task_digest": "t2"})]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(number: int) -> None:
        barrier.wait(10)
        for turn in range(300):
            context = contexts[(turn + number) % 2]
            put(cache, a_question(turn % 5), context)
            cache.lookup(a_question(turn % 5), context)
        cache.withdraw()

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)

    assert cache.lookup(a_question(0), CONTEXT) is None


def test_an_expired_vector_is_gone_from_memory_once_it_is_asked_for() -> None:
    clock = FixedClock()
    cache = a_cache(clock)
    put(cache)

    clock.advance(timedelta(seconds=300))
    cache.lookup(QUERY, CONTEXT)

    assert len(cache.bound(SURFACE, CONTEXT, 1)) == 0
