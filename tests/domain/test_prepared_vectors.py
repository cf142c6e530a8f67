import tracemalloc
from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from remembrancer.domain.prepared_vectors import NO_GENERATION, PreparedVectors

VECTOR = array("f", [1.0, 0.5])


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


@pytest.fixture
def cache() -> PreparedVectors:
    cache = PreparedVectors()
    cache.begin(1)
    return cache


def insert(cache: PreparedVectors, *numbers: int, now_s: float = 0.0, generation: int = 1) -> bool:
    vectors = ((key(number), VECTOR) for number in numbers)
    return cache.insert(vectors, generation=generation, now_s=now_s)


def test_what_was_put_in_is_found(cache: PreparedVectors) -> None:
    insert(cache, 1)

    assert cache.lookup(key(1), now_s=1.0) is VECTOR
    assert cache.lookup(key(2), now_s=1.0) is None


def test_a_vector_lives_five_minutes(cache: PreparedVectors) -> None:
    insert(cache, 1, now_s=1000.0)

    assert cache.lookup(key(1), now_s=1299.9) is not None
    assert cache.lookup(key(1), now_s=1300.0) is None
    assert len(cache) == 0


def test_being_used_does_not_lengthen_a_life(cache: PreparedVectors) -> None:
    insert(cache, 1)

    assert cache.lookup(key(1), now_s=299.0) is not None
    assert cache.lookup(key(1), now_s=301.0) is None


def test_preparing_again_begins_a_new_life(cache: PreparedVectors) -> None:
    insert(cache, 1)
    insert(cache, 1, now_s=200.0)

    assert cache.lookup(key(1), now_s=400.0) is not None


def test_the_hundred_and_twenty_ninth_pushes_out_the_least_recently_used(
    cache: PreparedVectors,
) -> None:
    insert(cache, *range(128))
    cache.lookup(key(0), now_s=1.0)

    insert(cache, 128)

    assert len(cache) == 128
    assert cache.lookup(key(0), now_s=2.0) is not None
    assert cache.lookup(key(1), now_s=2.0) is None


def test_another_generation_empties_it(cache: PreparedVectors) -> None:
    insert(cache, 1)

    cache.begin(2)

    assert cache.lookup(key(1), now_s=1.0) is None
    assert cache.generation == 2


def test_the_same_generation_goes_on(cache: PreparedVectors) -> None:
    insert(cache, 1)

    cache.begin(1)

    assert cache.lookup(key(1), now_s=1.0) is not None


def test_a_withdrawal_empties_it_until_a_generation_begins(cache: PreparedVectors) -> None:
    insert(cache, 1)

    cache.clear()

    assert cache.lookup(key(1), now_s=1.0) is None
    assert not insert(cache, 1, generation=1)
    assert not insert(cache, 1, generation=NO_GENERATION)
    assert len(cache) == 0


@pytest.mark.parametrize("generation", [1, 3])
def test_vectors_of_another_generation_do_not_get_in(
    cache: PreparedVectors, generation: int
) -> None:
    cache.begin(2)

    assert not insert(cache, 1, generation=generation)
    assert len(cache) == 0


def test_it_never_shows_a_key_or_a_vector(cache: PreparedVectors) -> None:
    insert(cache, 1)

    assert repr(cache) == "PreparedVectors(generation=1, vectors=1)"


def test_use_does_not_make_it_grow(cache: PreparedVectors) -> None:
    for number in range(2_000):
        insert(cache, number)
        cache.lookup(key(number), now_s=1.0)
    tracemalloc.start()
    try:
        for number in range(2_000, 12_000):
            insert(cache, number)
            cache.lookup(key(number), now_s=1.0)
            cache.lookup(key(0), now_s=1.0)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(cache) == 128
    assert grown < 128 * 1024


def test_threads_that_use_it_at_once_keep_its_bounds(cache: PreparedVectors) -> None:
    def work(thread: int) -> None:
        for step in range(2_000):
            number = (thread * 31 + step) % 300
            insert(cache, number, generation=cache.generation)
            cache.lookup(key(number), now_s=1.0)
            if step % 500 == 499:
                cache.begin(thread * 10_000 + step)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert len(cache) <= 128
