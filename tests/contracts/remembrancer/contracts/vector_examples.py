"""Vectors that contract suites store and ask with, and the right answers, the slow way."""

from array import array
from collections.abc import Mapping
from random import Random
from uuid import UUID

from hypothesis import strategies as st

from remembrancer.application.ports.vector_store import (
    Filter,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, cosine, norm

DIMENSIONS = 4
FIRST, SECOND, THIRD, FOURTH = (EntryId(UUID(int=number)) for number in range(1, 5))
EAST, NORTH, WEST, UP = (
    array("f", numbers) for numbers in ([1, 0, 0, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0])
)
NORTH_EAST = array("f", [1, 1, 0, 0])

numbers = st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6, width=32)
vectors_ = (
    st.lists(numbers, min_size=DIMENSIONS, max_size=DIMENSIONS)
    .map(lambda values: array("f", values))
    .filter(lambda vector: norm(vector) > 0)
)
ids_ = st.integers(1, 12).map(lambda number: EntryId(UUID(int=number)))
words_ = st.sampled_from(["a", "b", "c"])
metadata_ = st.dictionaries(st.sampled_from(["owner", "kind"]), words_)
filters_ = st.dictionaries(
    st.sampled_from(["owner", "kind", "other"]),
    words_ | st.lists(words_, max_size=3).map(tuple),
    max_size=2,
)
CHANGES = st.lists(
    st.tuples(ids_, vectors_ | vectors_ | st.none(), metadata_), min_size=1, max_size=25
)
QUERIES = st.lists(
    st.tuples(vectors_, st.integers(1, 9), st.just({}) | filters_), min_size=25, max_size=25
)


def put(store: VectorStore, vectors: Mapping[EntryId, Vector]) -> None:
    """Store vectors without metadata."""
    store.upsert_many([VectorPoint(id_, vector, {}) for id_, vector in vectors.items()])


def random_vectors(count: int, *, dimensions: int = DIMENSIONS) -> dict[EntryId, Vector]:
    """Return vectors that look alike on every run."""
    random = Random(count)  # noqa: S311 - the same on every run, no secret
    return {
        EntryId(UUID(int=random.getrandbits(128))): array(
            "f", [random.gauss() for _ in range(dimensions)]
        )
        for _ in range(count)
    }


def brute_force(
    vectors: Mapping[EntryId, Vector],
    labels: Mapping[EntryId, Mapping[str, str]],
    asked: Vector,
    top_k: int,
    wanted: Filter,
) -> list[VectorMatch]:
    """Return the right answer, the slow way."""
    found = [
        VectorMatch(id_, cosine(asked, vector, norms=norm(asked) * norm(vector)))
        for id_, vector in vectors.items()
        if all(
            labels[id_].get(key) in ((values,) if isinstance(values, str) else values)
            for key, values in wanted.items()
        )
    ]
    return sorted(found, key=lambda match: (-match.score, match.id))[:top_k]
