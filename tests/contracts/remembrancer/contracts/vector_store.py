"""What every vector store promises.

Enrol an adapter by subclassing :class:`VectorStoreContract`::

    class TestMyVectorStore(VectorStoreContract):
        @contextmanager
        def opened(self, folder: Path) -> Generator[VectorStore]:
            with MyStore.open(folder, dimensions=DIMENSIONS) as store:
                yield store

A store whose writes join the transactions of a :class:`Transactions` port subclasses
:class:`VectorStoreInTransactionsContract` as well, in ``vector_store_in_transactions``.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remembrancer.application.ports.vector_store import (
    Filter,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.contracts.vector_examples import (
    CHANGES,
    EAST,
    FIRST,
    FOURTH,
    NORTH,
    NORTH_EAST,
    QUERIES,
    SECOND,
    THIRD,
    UP,
    WEST,
    brute_force,
    put,
    random_vectors,
)
from remembrancer.domain.errors import ImpossibleVectorError, InvalidInputError
from remembrancer.domain.identity import EntryId

NAN, INFINITY, TOO_LARGE = float("nan"), float("inf"), 1e39
IMPOSSIBLE: list[Sequence[float]] = [
    [0, 0, 0, 0],
    [1, 0, NAN, 0],
    [INFINITY, 0, 0, 0],
    [TOO_LARGE, 0, 0, 0],
    [1, 0, 0],
    [1, 0, 0, 0, 0],
    [],
]
SIZES_AROUND_THE_CUT = (1, 3, 4, 5, 6, 20)


class VectorStoreContract(ABC):
    """Subclass, name the subclass ``Test…``, and say how to open the adapter."""

    durable: ClassVar[bool] = False
    """Whether opening the same folder again must find what was put before."""

    @abstractmethod
    def opened(self, folder: Path) -> AbstractContextManager[VectorStore]:
        """Open a store of four dimensions kept in ``folder``; empty at first."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[VectorStore]:
        with self.opened(tmp_path) as store:
            yield store

    # -- Finding -----------------------------------------------------------

    def test_an_empty_store_finds_nothing(self, store: VectorStore) -> None:
        assert store.query(EAST, 5) == []
        assert store.count() == 0

    def test_finds_the_most_alike_first(self, store: VectorStore) -> None:
        put(store, {FIRST: WEST, SECOND: NORTH, THIRD: EAST})

        found = store.query(EAST, 3)

        assert found == [
            VectorMatch(THIRD, 1.0),
            VectorMatch(SECOND, 0.0),
            VectorMatch(FIRST, -1.0),
        ]

    def test_length_makes_no_difference(self, store: VectorStore) -> None:
        put(store, {FIRST: NORTH, SECOND: array("f", [3e38, 0, 0, 0])})
        put(store, {THIRD: array("f", [1e-44, 0, 0, 0])})

        found = store.query(array("f", [1e-30, 0, 0, 0]), 2)

        assert found == [VectorMatch(SECOND, 1.0), VectorMatch(THIRD, 1.0)]

    def test_scores_are_those_of_the_domain_to_the_last_bit(self, store: VectorStore) -> None:
        vectors = random_vectors(400)
        put(store, vectors)

        found = store.query(NORTH_EAST, 100)

        assert found == brute_force(vectors, {}, NORTH_EAST, 100, {})

    def test_returns_no_more_than_asked_for(self, store: VectorStore) -> None:
        put(store, random_vectors(20))

        assert len(store.query(EAST, 7)) == 7

    def test_returns_all_where_more_are_asked_for(self, store: VectorStore) -> None:
        put(store, random_vectors(20))

        assert len(store.query(EAST, 1_000_000)) == 20

    @pytest.mark.parametrize("top_k", SIZES_AROUND_THE_CUT)
    def test_ties_come_by_id_also_at_the_cut(self, store: VectorStore, top_k: int) -> None:
        ties = [EntryId(UUID(int=number)) for number in (7, 3, 9, 5, 1, 8)]
        put(store, dict.fromkeys(ties[:3], NORTH))
        put(store, dict.fromkeys(ties[3:], array("f", [0, 2.0**-40, 0, 0])))
        put(store, {EntryId(UUID(int=100 + number)): WEST for number in range(10)})

        found = store.query(NORTH, top_k)

        assert [match.id for match in found][:6] == sorted(ties)[:top_k]

    def test_thousands_of_ties_are_cut_by_id(self, store: VectorStore) -> None:
        ids = [EntryId(UUID(int=number)) for number in range(1, 5_001)]
        Random(1).shuffle(ids)  # noqa: S311 - the same order on every run, no secret
        put(store, dict.fromkeys(ids, NORTH_EAST))

        found = store.query(EAST, 3)

        assert [match.id for match in found] == sorted(ids)[:3]

    @pytest.mark.parametrize("top_k", [0, -1])
    def test_refuses_to_find_less_than_one(self, store: VectorStore, top_k: int) -> None:
        put(store, {FIRST: EAST})

        with pytest.raises(InvalidInputError):
            store.query(EAST, top_k)

    # -- Filters -----------------------------------------------------------

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (None, {FIRST, SECOND, THIRD, FOURTH}),
            ({}, {FIRST, SECOND, THIRD, FOURTH}),
            ({"owner": "ana"}, {FIRST, SECOND}),
            ({"owner": ("ana",)}, {FIRST, SECOND}),
            ({"owner": ("ana", "ben")}, {FIRST, SECOND, THIRD}),
            ({"owner": ("ben", "nobody", "ben")}, {THIRD}),
            ({"owner": "ana", "kind": "note"}, {FIRST}),
            ({"kind": ("note", "rule"), "owner": ("ben", "ana")}, {FIRST, THIRD}),
            ({"owner": ()}, set()),
            ({"owner": "ana", "kind": ()}, set()),
            ({"owner": "an"}, set()),
            ({"owner": "ANA"}, set()),
            ({"owner": ""}, set()),
            ({"missing": "ana"}, set()),
            ({"kind": "note"}, {FIRST, THIRD}),
            ({"subject:a'b\"c": "1"}, {FOURTH}),
        ],
    )
    def test_a_filter_keeps_what_matches_all_of_it(
        self, store: VectorStore, wanted: Filter | None, expected: set[EntryId]
    ) -> None:
        store.upsert(FIRST, EAST, {"owner": "ana", "kind": "note"})
        store.upsert(SECOND, EAST, {"owner": "ana"})
        store.upsert(THIRD, EAST, {"owner": "ben", "kind": "note"})
        store.upsert(FOURTH, EAST, {"subject:a'b\"c": "1"})

        found = store.query(EAST, 10, wanted)

        assert {match.id for match in found} == expected

    @pytest.mark.parametrize(
        "wanted", [{"owner": "b"}, {"owner": "b", "scope": "s1"}, {"owner": ("b", "c")}]
    )
    @pytest.mark.parametrize("top_k", [5, 5_000])
    def test_a_crowd_of_nearer_neighbours_hides_nobody(
        self, store: VectorStore, wanted: Filter, top_k: int
    ) -> None:
        """Case 11: the filter is applied before the best are taken, at any k."""
        crowd = [EntryId(UUID(int=number)) for number in range(1, 5_001)]
        few = [EntryId(UUID(int=10_000 + number)) for number in range(5)]
        store.upsert_many([VectorPoint(id_, EAST, {"owner": "a", "scope": "s1"}) for id_ in crowd])
        store.upsert_many([VectorPoint(id_, NORTH, {"owner": "b", "scope": "s1"}) for id_ in few])

        found = store.query(EAST, top_k, wanted)

        assert [match.id for match in found] == few

    def test_finds_more_than_4096(self, store: VectorStore) -> None:
        vectors = random_vectors(6_000)
        put(store, vectors)

        found = store.query(UP, 5_000)

        assert found == brute_force(vectors, {}, UP, 5_000, {})

    # -- Replacing and removing --------------------------------------------

    def test_an_upsert_replaces_vector_and_metadata(self, store: VectorStore) -> None:
        store.upsert(FIRST, EAST, {"owner": "ana", "kind": "note"})

        store.upsert(FIRST, NORTH, {"owner": "ben"})

        assert store.count() == 1
        assert store.query(NORTH, 5, {"owner": "ben"}) == [VectorMatch(FIRST, 1.0)]
        assert store.query(NORTH, 5, {"owner": "ana"}) == []
        assert store.query(NORTH, 5, {"kind": "note"}) == []

    def test_the_last_of_a_repeated_id_stands(self, store: VectorStore) -> None:
        store.upsert_many(
            [
                VectorPoint(FIRST, EAST, {"owner": "ana"}),
                VectorPoint(SECOND, WEST, {"owner": "ana"}),
                VectorPoint(FIRST, NORTH, {"owner": "ben"}),
            ]
        )

        assert store.count() == 2
        assert store.query(NORTH, 1) == [VectorMatch(FIRST, 1.0)]
        assert store.query(NORTH, 5, {"owner": "ben"}) == [VectorMatch(FIRST, 1.0)]

    def test_upserting_nothing_changes_nothing(self, store: VectorStore) -> None:
        put(store, {FIRST: EAST})

        store.upsert_many([])

        assert store.count() == 1

    def test_the_callers_later_changes_do_not_reach_the_store(self, store: VectorStore) -> None:
        vector, metadata = array("f", EAST), {"owner": "ana"}
        store.upsert(FIRST, vector, metadata)

        vector[0], vector[1] = 0.0, 1.0
        metadata["owner"] = "ben"

        assert store.query(EAST, 1, {"owner": "ana"}) == [VectorMatch(FIRST, 1.0)]

    def test_gives_back_the_stored_float32_numbers(self, store: VectorStore) -> None:
        put(store, {FIRST: [0.1, 0.2, 3e38, -1e-44], SECOND: EAST})

        found = store.vectors([FIRST, THIRD])

        assert {id_: list(vector) for id_, vector in found.items()} == {
            FIRST: list(array("f", [0.1, 0.2, 3e38, -1e-44]))
        }

    def test_a_deleted_vector_is_not_found(self, store: VectorStore) -> None:
        put(store, {FIRST: EAST, SECOND: EAST})
        assert len(store.query(EAST, 5)) == 2

        store.delete(FIRST)

        assert store.query(EAST, 5) == [VectorMatch(SECOND, 1.0)]
        assert store.vectors([FIRST]) == {}
        assert store.count() == 1

    def test_a_deleted_id_can_be_put_again(self, store: VectorStore) -> None:
        put(store, {FIRST: EAST})
        store.delete(FIRST)

        put(store, {FIRST: NORTH})

        assert store.query(NORTH, 5) == [VectorMatch(FIRST, 1.0)]

    def test_deleting_an_unknown_id_is_no_error(self, store: VectorStore) -> None:
        put(store, {FIRST: EAST})

        store.delete(SECOND)

        assert store.count() == 1

    def test_a_cleared_store_is_empty_and_takes_new_vectors(self, store: VectorStore) -> None:
        put(store, random_vectors(50))
        assert len(store.query(EAST, 100)) == 50

        store.clear()

        assert store.count() == 0
        assert store.query(EAST, 5) == []
        put(store, {FIRST: EAST})
        assert store.query(EAST, 5) == [VectorMatch(FIRST, 1.0)]

    # -- Impossible vectors ------------------------------------------------

    @pytest.mark.parametrize("vector", IMPOSSIBLE)
    def test_refuses_an_impossible_vector_and_keeps_the_old(
        self, store: VectorStore, vector: Sequence[float]
    ) -> None:
        """Case 10."""
        put(store, {FIRST: EAST})

        with pytest.raises(ImpossibleVectorError):
            store.upsert(FIRST, vector, {})

        assert store.query(EAST, 5) == [VectorMatch(FIRST, 1.0)]

    @pytest.mark.parametrize("vector", IMPOSSIBLE)
    def test_one_impossible_vector_refuses_all(
        self, store: VectorStore, vector: Sequence[float]
    ) -> None:
        points = [VectorPoint(FIRST, EAST, {}), VectorPoint(SECOND, vector, {})]

        with pytest.raises(ImpossibleVectorError):
            store.upsert_many(points)

        assert store.count() == 0

    @pytest.mark.parametrize("vector", IMPOSSIBLE)
    def test_refuses_to_ask_with_an_impossible_vector(
        self, store: VectorStore, vector: Sequence[float]
    ) -> None:
        put(store, {FIRST: EAST})

        with pytest.raises(ImpossibleVectorError):
            store.query(vector, 5)

    def test_shows_no_vector_in_its_repr(self, store: VectorStore) -> None:
        put(store, {FIRST: [0.1234567, 0, 0, 0]})

        assert "0.12345" not in repr(store)

    # -- Time --------------------------------------------------------------

    def test_survives_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            # The flag says so: what ends with its process can't be opened again.
            pytest.skip("this adapter does not promise durability")
        with self.opened(tmp_path) as store:
            put(store, {FIRST: EAST, SECOND: NORTH, THIRD: EAST})
            store.delete(THIRD)

        with self.opened(tmp_path) as store:
            found = store.query(EAST, 5)

        assert found == [VectorMatch(FIRST, 1.0), VectorMatch(SECOND, 0.0)]

    # Each enrolled adapter runs this method of its base class, with examples of its own.
    @settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])
    @given(data=st.data())
    def test_answers_as_brute_force_does(self, data: st.DataObject) -> None:
        changes, queries = data.draw(CHANGES), data.draw(QUERIES)
        vectors: dict[EntryId, Sequence[float]] = {}
        labels: dict[EntryId, Mapping[str, str]] = {}
        with TemporaryDirectory() as folder, self.opened(Path(folder)) as store:
            for (id_, vector, metadata), (asked, top_k, wanted) in zip(
                changes, queries, strict=False
            ):
                if vector is None:
                    store.delete(id_)
                    vectors.pop(id_, None)
                else:
                    store.upsert(id_, vector, metadata)
                    vectors[id_], labels[id_] = vector, metadata

                found = store.query(asked, top_k, wanted)

                assert found == brute_force(vectors, labels, asked, top_k, wanted)
