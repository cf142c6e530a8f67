"""What every place of vectors outside the store promises.

Its stores run ``vector_store`` too.  Enrol an adapter by subclassing
:class:`VectorPlaceContract`::

    class TestMyVectorPlace(VectorPlaceContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[VectorPlace]:
            with MyService.open(folder) as service:
                yield MyVectorPlace(service)
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from remembrancer.application.ports.vector_indexes import IndexState, VectorIndex
from remembrancer.application.ports.vector_place import VectorPlace
from remembrancer.application.ports.vector_store import VectorMatch
from remembrancer.contracts.vector_examples import EAST, FIRST, SECOND, put
from remembrancer.contracts.vector_indexes import ELSEWHERE, OTHER_SPACE, SPACE
from remembrancer.domain.errors import StoreCorruptError, StoreUnavailableError

INDEX = VectorIndex(
    number=1, embedding_tuple=SPACE, state=IndexState.BUILDING, position=0, place=ELSEWHERE
)
SECOND_INDEX = replace(INDEX, number=2)


class VectorPlaceContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[VectorPlace]:
        """Open a place kept in ``folder``, empty at first."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[VectorPlace]:
        with self.opened(tmp_path) as place:
            yield place

    def test_room_that_was_made_is_empty(self, place: VectorPlace) -> None:
        place.make(INDEX)

        assert place.store(INDEX).count() == 0

    def test_it_holds_what_room_was_made_for(self, place: VectorPlace) -> None:
        before = place.holds(INDEX)
        place.make(INDEX)

        assert (before, place.holds(INDEX), place.holds(SECOND_INDEX)) == (False, True, False)

    def test_it_holds_nothing_of_what_was_swept(self, place: VectorPlace) -> None:
        place.make(INDEX)

        place.sweep(set())

        assert not place.holds(INDEX)

    def test_nothing_is_found_where_no_room_was_made(self, place: VectorPlace) -> None:
        store = place.store(INDEX)

        with pytest.raises(StoreUnavailableError):
            store.query(EAST, 5)
        with pytest.raises(StoreUnavailableError):
            store.upsert(FIRST, EAST, {})
        with pytest.raises(StoreUnavailableError):
            store.count()

    def test_room_of_an_index_that_has_come_further_is_left_as_it_is(
        self, place: VectorPlace
    ) -> None:
        place.make(INDEX)
        put(place.store(INDEX), {FIRST: EAST})

        place.make(replace(INDEX, position=7))

        assert place.store(INDEX).count() == 1

    def test_room_of_an_index_that_begins_is_made_anew(self, place: VectorPlace) -> None:
        place.make(INDEX)
        put(place.store(INDEX), {FIRST: EAST})

        place.make(INDEX)

        assert place.store(INDEX).count() == 0

    def test_room_that_is_gone_is_not_made_up(self, place: VectorPlace) -> None:
        with pytest.raises(StoreCorruptError):
            place.make(replace(INDEX, position=7))

    def test_indexes_of_one_space_are_kept_apart(self, place: VectorPlace) -> None:
        place.make(INDEX)
        place.make(SECOND_INDEX)

        put(place.store(INDEX), {FIRST: EAST})
        put(place.store(SECOND_INDEX), {SECOND: EAST})

        assert place.store(INDEX).query(EAST, 5) == [VectorMatch(FIRST, 1.0)]
        assert place.store(SECOND_INDEX).query(EAST, 5) == [VectorMatch(SECOND, 1.0)]

    def test_a_number_that_came_again_for_another_space_is_another_index(
        self, place: VectorPlace
    ) -> None:
        again = replace(INDEX, embedding_tuple=OTHER_SPACE)
        place.make(INDEX)
        put(place.store(INDEX), {FIRST: EAST})

        place.make(again)

        assert place.store(again).count() == 0
        assert place.store(INDEX).count() == 1

    def test_the_same_index_has_one_store(self, place: VectorPlace) -> None:
        store = place.store(INDEX)

        assert place.store(replace(INDEX, position=7, state=IndexState.ACTIVE)) is store

    def test_sweeping_destroys_all_but_the_named(self, place: VectorPlace) -> None:
        place.make(INDEX)
        place.make(SECOND_INDEX)
        put(place.store(SECOND_INDEX), {SECOND: EAST})

        place.sweep({2})

        with pytest.raises(StoreUnavailableError):
            place.store(INDEX).query(EAST, 5)
        assert place.store(SECOND_INDEX).count() == 1

    def test_sweeping_an_empty_place_is_no_error(self, place: VectorPlace) -> None:
        place.sweep({1})

        place.make(INDEX)
        assert place.store(INDEX).count() == 0
