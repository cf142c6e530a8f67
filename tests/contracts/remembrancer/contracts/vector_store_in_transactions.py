"""What a vector store promises whose writes join transactions.

Enrol an adapter by subclassing :class:`VectorStoreInTransactionsContract`, beside
:class:`~remembrancer.contracts.vector_store.VectorStoreContract`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from remembrancer.application.ports.transactions import Transactions
from remembrancer.application.ports.vector_store import VectorMatch, VectorPoint, VectorStore
from remembrancer.contracts.rollback import rolled_back
from remembrancer.contracts.vector_examples import (
    EAST,
    FIRST,
    FOURTH,
    NORTH,
    SECOND,
    THIRD,
    WEST,
    put,
    random_vectors,
)

_Result = TypeVar("_Result")


class VectorStoreInTransactionsContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened_with_transactions(
        self, folder: Path
    ) -> AbstractContextManager[tuple[VectorStore, Transactions]]:
        """Open a store of four dimensions, empty at first, and its transactions."""

    @pytest.fixture
    def both(self, tmp_path: Path) -> Iterator[tuple[VectorStore, Transactions]]:
        with self.opened_with_transactions(tmp_path) as both:
            yield both

    @pytest.fixture
    def joined(self, both: tuple[VectorStore, Transactions]) -> VectorStore:
        return both[0]

    @pytest.fixture
    def transactions(self, both: tuple[VectorStore, Transactions]) -> Transactions:
        return both[1]

    @pytest.mark.parametrize("asked_before", [False, True])
    def test_a_transaction_sees_its_own_writes(
        self, joined: VectorStore, transactions: Transactions, *, asked_before: bool
    ) -> None:
        put(joined, {FIRST: EAST, SECOND: EAST})
        if asked_before:
            joined.query(EAST, 5)

        with transactions.begin():
            put(joined, {THIRD: EAST})
            joined.delete(SECOND)
            seen = joined.query(EAST, 5), joined.count(), set(joined.vectors([SECOND, THIRD]))

        assert seen == ([VectorMatch(FIRST, 1.0), VectorMatch(THIRD, 1.0)], 2, {THIRD})

    @pytest.mark.parametrize("asked_before", [False, True])
    @pytest.mark.parametrize("asked_inside", [False, True])
    def test_a_rollback_leaves_nothing(
        self,
        joined: VectorStore,
        transactions: Transactions,
        *,
        asked_before: bool,
        asked_inside: bool,
    ) -> None:
        put(joined, {FIRST: EAST, SECOND: NORTH})
        if asked_before:
            joined.query(EAST, 5)

        with rolled_back(transactions):
            put(joined, {FIRST: WEST, THIRD: EAST})
            joined.delete(SECOND)
            if asked_inside:
                joined.query(EAST, 5)

        assert joined.query(EAST, 5) == [VectorMatch(FIRST, 1.0), VectorMatch(SECOND, 0.0)]
        assert joined.count() == 2

    def test_what_follows_a_rollback_is_not_mistaken_for_it(
        self, joined: VectorStore, transactions: Transactions
    ) -> None:
        put(joined, {FIRST: EAST})
        with rolled_back(transactions):
            put(joined, {SECOND: EAST})
            joined.delete(FIRST)
            joined.query(EAST, 5)

        put(joined, {THIRD: EAST, FOURTH: NORTH})
        joined.delete(FOURTH)

        assert joined.query(EAST, 5) == [VectorMatch(FIRST, 1.0), VectorMatch(THIRD, 1.0)]

    def test_a_rolled_back_clearing_leaves_all(
        self, joined: VectorStore, transactions: Transactions
    ) -> None:
        put(joined, random_vectors(40))
        before = joined.query(EAST, 40)

        with rolled_back(transactions):
            joined.clear()
            assert joined.query(EAST, 40) == []

        assert joined.query(EAST, 40) == before

    def test_half_a_batch_is_never_seen(
        self, joined: VectorStore, transactions: Transactions
    ) -> None:
        points = [VectorPoint(id_, vector, {}) for id_, vector in random_vectors(30).items()]

        with rolled_back(transactions):
            joined.upsert_many(points[:15])
            joined.upsert_many(points[15:])

        assert joined.count() == 0

    def test_another_threads_write_is_seen_by_the_next_query(self, joined: VectorStore) -> None:
        put(joined, {FIRST: EAST})
        joined.query(EAST, 5)

        in_another_thread(lambda: put(joined, {FIRST: NORTH, SECOND: EAST}))

        assert joined.query(EAST, 5) == [VectorMatch(SECOND, 1.0), VectorMatch(FIRST, 0.0)]

    def test_threads_ask_and_write_side_by_side(self, joined: VectorStore) -> None:
        vectors = random_vectors(200)
        ids = sorted(vectors)

        def work(number: int) -> None:
            for id_ in ids[number::4]:
                joined.upsert(id_, vectors[id_], {"thread": str(number)})
                [found] = joined.query(vectors[id_], 1, {"thread": str(number)})
                assert found.id == id_
                joined.delete(id_)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))

        assert joined.query(EAST, 5) == []

    def test_a_snapshot_keeps_its_answer_or_makes_writers_wait(
        self, joined: VectorStore, transactions: Transactions
    ) -> None:
        put(joined, {FIRST: EAST, SECOND: EAST})
        with ThreadPoolExecutor(1) as other, transactions.snapshot():
            before = joined.query(EAST, 5)
            writing = other.submit(self._change_and_ask, joined)

            after = joined.query(EAST, 5)

        assert after == before
        assert writing.result() == [VectorMatch(SECOND, 1.0), VectorMatch(THIRD, 1.0)]

    @staticmethod
    def _change_and_ask(joined: VectorStore) -> list[VectorMatch]:
        joined.delete(FIRST)
        put(joined, {THIRD: EAST})
        return joined.query(EAST, 5)


def in_another_thread(work: Callable[[], _Result]) -> _Result:
    """Run ``work`` in a thread of its own and return what it returns."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()
