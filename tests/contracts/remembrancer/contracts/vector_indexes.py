"""What every registry of vector indexes promises.

Enrol an adapter by subclassing :class:`VectorIndexesContract`::

    class TestMyVectorIndexes(VectorIndexesContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[tuple[VectorIndexes, Transactions]]:
            with MyStore.open(folder) as store:
                yield MyVectorIndexes(store), MyTransactions(store)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from remembrancer.application.ports.transactions import Transactions
from remembrancer.application.ports.vector_indexes import (
    LOCAL,
    IndexState,
    VectorIndex,
    VectorIndexes,
)
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.contracts.rollback import rolled_back
from remembrancer.contracts.vector_examples import EAST, FIRST, NORTH, SECOND, put
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import (
    ImpossibleVectorError,
    InvalidInputError,
    Retry,
    StoreUnavailableError,
)

SPACE = EmbeddingTuple(
    provider="test", model="old", model_revision="1", dimensions=4, input_preparation="plain@1"
)
ELSEWHERE = "elsewhere"
OTHER_SPACE = SPACE.model_copy(update={"model": "new", "dimensions": 3})


class VectorIndexesContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    place: ClassVar[str] = LOCAL
    """Where it keeps an index that is begun without a word."""
    durable: ClassVar[bool] = False
    """Whether opening the same folder again must find the indexes."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[tuple[VectorIndexes, Transactions]]:
        """Open a registry kept in ``folder``, empty at first, and its store's transactions."""

    @pytest.fixture
    def both(self, tmp_path: Path) -> Iterator[tuple[VectorIndexes, Transactions]]:
        with self.opened(tmp_path) as both:
            yield both

    @pytest.fixture
    def indexes(self, both: tuple[VectorIndexes, Transactions]) -> VectorIndexes:
        return both[0]

    @pytest.fixture
    def transactions(self, both: tuple[VectorIndexes, Transactions]) -> Transactions:
        return both[1]

    def test_at_first_there_is_none(self, indexes: VectorIndexes) -> None:
        assert indexes.active() is None
        assert indexes.all() == []

    def test_a_begun_index_is_building_and_empty(self, indexes: VectorIndexes) -> None:
        index = begun(indexes, SPACE)

        assert (index.state, index.position) == (IndexState.BUILDING, 0)
        assert index.embedding_tuple == SPACE
        assert index.number >= 1
        assert indexes.all() == [index]
        assert indexes.active() is None
        assert indexes.store(index).count() == 0

    def test_beginning_again_resumes(self, indexes: VectorIndexes) -> None:
        index = begun(indexes, SPACE)
        put(indexes.store(index), {FIRST: EAST})
        advanced = indexes.advance(index, 17)

        resumed = begun(indexes, SPACE)

        assert resumed == advanced
        assert resumed.position == 17
        assert indexes.store(resumed).count() == 1

    def test_beginning_another_tuple_drops_what_was_being_built(
        self, indexes: VectorIndexes
    ) -> None:
        old = begun(indexes, SPACE)
        put(indexes.store(old), {FIRST: EAST})

        new = begun(indexes, OTHER_SPACE)

        indexes.sweep([one for one in indexes.all() if one != new])
        for one in indexes.all():
            if one != new:  # Kept elsewhere.
                indexes.drop(one)
        assert indexes.all() == [new]
        assert new.number != old.number
        assert indexes.store(new).count() == 0

    def test_an_index_takes_vectors_of_its_own_dimensions(self, indexes: VectorIndexes) -> None:
        store = indexes.store(begun(indexes, OTHER_SPACE))

        store.upsert(FIRST, [1, 0, 0], {})

        with pytest.raises(ImpossibleVectorError):
            store.upsert(SECOND, EAST, {})

    def test_an_activated_index_answers(self, indexes: VectorIndexes) -> None:
        index = indexes.advance(begun(indexes, SPACE), 5)

        activated = indexes.activate(index)

        assert activated.state is IndexState.ACTIVE
        assert activated.position == 5
        assert indexes.active() == activated

    def test_activating_retires_the_one_before(self, indexes: VectorIndexes) -> None:
        old = indexes.activate(begun(indexes, SPACE))

        new = indexes.activate(begun(indexes, OTHER_SPACE))

        assert indexes.active() == new
        assert [(one.number, one.state) for one in indexes.all()] == [
            (old.number, IndexState.RETIRED),
            (new.number, IndexState.ACTIVE),
        ]

    def test_activating_twice_is_no_error(self, indexes: VectorIndexes) -> None:
        active = indexes.activate(begun(indexes, SPACE))

        assert indexes.activate(active) == active

    def test_a_retired_index_does_not_come_back(self, indexes: VectorIndexes) -> None:
        old = indexes.activate(begun(indexes, SPACE))
        indexes.activate(begun(indexes, OTHER_SPACE))

        with pytest.raises(InvalidInputError):
            indexes.activate(old)

    def test_only_a_building_index_advances(self, indexes: VectorIndexes) -> None:
        active = indexes.activate(indexes.begin(SPACE, LOCAL))

        with pytest.raises(InvalidInputError):
            indexes.advance(active, 3)

    def test_an_index_is_kept_where_it_was_set_up_to_be(self, indexes: VectorIndexes) -> None:
        here = indexes.begin(SPACE)

        assert (here.place, here.follows) == (self.place, self.place != LOCAL)

    def test_an_index_that_is_kept_elsewhere_is_one_of_all(self, indexes: VectorIndexes) -> None:
        here = indexes.activate(indexes.begin(SPACE))

        there = indexes.begin(SPACE, ELSEWHERE)

        assert (there.place, there.follows) == (ELSEWHERE, True)
        assert indexes.all() == [here, there]
        assert indexes.begin(SPACE, ELSEWHERE) == there

    @pytest.mark.parametrize(
        ("space", "place"), [(SPACE, LOCAL), (SPACE, "further"), (OTHER_SPACE, ELSEWHERE)]
    )
    def test_beginning_another_retires_what_was_being_built_elsewhere(
        self, indexes: VectorIndexes, space: EmbeddingTuple, place: str
    ) -> None:
        """Its vectors are there, and what isn't in the registry any more no erasure reaches."""
        there = indexes.begin(SPACE, ELSEWHERE)

        new = indexes.begin(space, place)

        assert indexes.all() == [replace(there, state=IndexState.RETIRED), new]
        assert (new.state, new.place) == (IndexState.BUILDING, place)
        assert new.number != there.number

    def test_an_active_index_elsewhere_goes_on_following(self, indexes: VectorIndexes) -> None:
        there = indexes.activate(indexes.advance(indexes.begin(SPACE, ELSEWHERE), 3))

        advanced = indexes.advance(there, 8)

        assert (advanced.state, advanced.position) == (IndexState.ACTIVE, 8)
        assert indexes.active() == advanced

    def test_a_retired_index_elsewhere_follows_no_more(self, indexes: VectorIndexes) -> None:
        there = indexes.activate(indexes.begin(SPACE, ELSEWHERE))
        indexes.activate(indexes.begin(SPACE, LOCAL))

        with pytest.raises(InvalidInputError):
            indexes.advance(there, 8)

    def test_an_index_elsewhere_is_dropped_as_others_are(self, indexes: VectorIndexes) -> None:
        there = indexes.begin(SPACE, ELSEWHERE)

        indexes.drop(there)

        assert indexes.all() == []

    def test_has_no_vectors_of_what_nobody_here_keeps(self, indexes: VectorIndexes) -> None:
        there = indexes.begin(SPACE, "nowhere")

        with pytest.raises(StoreUnavailableError, match="set it up as it was") as refused:
            indexes.store(there).count()
        assert refused.value.retry is Retry.NEVER

    def test_the_active_tuple_can_be_built_anew_beside_it(self, indexes: VectorIndexes) -> None:
        active = indexes.activate(begun(indexes, SPACE))
        put(indexes.store(active), {FIRST: EAST})

        building = begun(indexes, SPACE)
        put(indexes.store(building), {SECOND: EAST})

        assert building.number != active.number
        assert indexes.store(active).query(EAST, 5) == [VectorMatch(FIRST, 1.0)]
        assert indexes.store(building).query(EAST, 5) == [VectorMatch(SECOND, 1.0)]

    def test_the_same_index_has_one_store(self, indexes: VectorIndexes) -> None:
        index = begun(indexes, SPACE)

        store = indexes.store(index)

        assert indexes.store(indexes.activate(indexes.advance(index, 2))) is store

    def test_the_active_index_is_not_dropped(self, indexes: VectorIndexes) -> None:
        active = indexes.activate(begun(indexes, SPACE))

        with pytest.raises(InvalidInputError):
            indexes.drop(active)

        assert indexes.active() == active

    def test_a_dropped_index_is_gone_and_its_number_is_not_used_again(
        self, indexes: VectorIndexes
    ) -> None:
        index = begun(indexes, SPACE)

        indexes.drop(index)

        assert indexes.all() == []
        assert begun(indexes, SPACE).number > index.number

    def test_dropping_twice_is_no_error(self, indexes: VectorIndexes) -> None:
        index = begun(indexes, SPACE)
        indexes.drop(index)

        indexes.drop(index)

        assert indexes.all() == []

    def test_a_dropped_index_is_neither_advanced_nor_activated(
        self, indexes: VectorIndexes
    ) -> None:
        index = begun(indexes, SPACE)
        indexes.drop(index)

        with pytest.raises(StoreUnavailableError):
            indexes.advance(index, 1)
        with pytest.raises(StoreUnavailableError):
            indexes.activate(index)

    def test_the_store_of_a_dropped_index_refuses(self, indexes: VectorIndexes) -> None:
        index = begun(indexes, SPACE)
        store = indexes.store(index)
        put(store, {FIRST: EAST})
        store.query(EAST, 1)

        indexes.drop(index)
        indexes.sweep()

        with pytest.raises(StoreUnavailableError):
            store.query(EAST, 1)
        with pytest.raises(StoreUnavailableError):
            store.upsert(FIRST, EAST, {})
        with pytest.raises(StoreUnavailableError):
            store.count()

    def test_a_rollback_takes_everything_back(
        self, indexes: VectorIndexes, transactions: Transactions
    ) -> None:
        active = indexes.activate(begun(indexes, SPACE))
        put(indexes.store(active), {FIRST: EAST})
        before = indexes.all()

        with rolled_back(transactions):
            new = indexes.activate(begun(indexes, OTHER_SPACE))
            indexes.drop(active)
            indexes.store(new).upsert(FIRST, [1, 0, 0], {})

        assert indexes.all() == before
        assert indexes.store(active).query(EAST, 5) == [VectorMatch(FIRST, 1.0)]

    def test_what_follows_a_rollback_is_not_mistaken_for_it(
        self, indexes: VectorIndexes, transactions: Transactions
    ) -> None:
        with rolled_back(transactions):
            lost = indexes.store(begun(indexes, OTHER_SPACE))
            lost.upsert(FIRST, [1, 0, 0], {})
            lost.query([1, 0, 0], 1)

        store = indexes.store(begun(indexes, SPACE))
        put(store, {SECOND: NORTH})

        assert store.query(NORTH, 5) == [VectorMatch(SECOND, 1.0)]

    def test_building_resumes_after_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            # The flag says so: what ends with its process can't be opened again.
            pytest.skip("this adapter does not promise durability")
        with self.opened(tmp_path) as (indexes, _):
            active = indexes.activate(begun(indexes, SPACE))
            building = indexes.advance(begun(indexes, OTHER_SPACE), 9)
            put(indexes.store(active), {FIRST: EAST})

        with self.opened(tmp_path) as (indexes, _):
            found = indexes.active(), begun(indexes, OTHER_SPACE)
            matches = indexes.store(active).query(EAST, 5)

        assert found == (active, building)
        assert matches == [VectorMatch(FIRST, 1.0)]


def begun(indexes: VectorIndexes, space: EmbeddingTuple) -> VectorIndex:
    """Begin an index, and make room for it where it is kept elsewhere."""
    index = indexes.begin(space)
    indexes.prepare(index)
    return index
