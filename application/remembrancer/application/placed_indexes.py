"""One registry of indexes, and the places where their vectors are kept."""

from collections.abc import Collection, Mapping

from typing_extensions import override

from remembrancer.application.ports import (
    VectorIndex,
    VectorIndexes,
    VectorPlace,
    VectorStore,
)
from remembrancer.application.ports.vector_indexes import LOCAL, require_kept_here
from remembrancer.domain.embedding_tuple import EmbeddingTuple


class PlacedIndexes(VectorIndexes):
    """The store's registry, whose indexes may be kept elsewhere.

    Which index answers is a row of the store's, so switching from one place to another is one
    transaction, as between two indexes of the store.
    """

    def __init__(
        self,
        *,
        registry: VectorIndexes,
        places: Mapping[str, VectorPlace],
        preferred: str = LOCAL,
    ) -> None:
        self._registry = registry
        self._places = places
        self._preferred = preferred

    @override
    def active(self) -> VectorIndex | None:
        return self._registry.active()

    @override
    def all(self) -> list[VectorIndex]:
        return self._registry.all()

    @override
    def begin(self, embedding_tuple: EmbeddingTuple, place: str | None = None) -> VectorIndex:
        return self._registry.begin(embedding_tuple, place or self._preferred)

    @override
    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        return self._registry.advance(index, position)

    @override
    def activate(self, index: VectorIndex) -> VectorIndex:
        return self._registry.activate(index)

    @override
    def drop(self, index: VectorIndex) -> None:
        self._registry.drop(index)

    @override
    def store(self, index: VectorIndex) -> VectorStore:
        place = self._places.get(index.place)
        return self._registry.store(index) if place is None else place.store(index)

    @override
    def prepare(self, index: VectorIndex) -> None:
        place = self._places.get(index.place)
        if place is None:
            require_kept_here(index)
        else:
            place.make(index)

    @override
    def holds(self, index: VectorIndex) -> bool:
        place = self._places.get(index.place)
        return super().holds(index) if place is None else place.holds(index)

    @override
    def sweep(self, dropping: Collection[VectorIndex] = ()) -> None:
        for one in dropping:
            if one.place not in self._places:
                require_kept_here(one)
        numbers = {one.number for one in dropping}
        stay = [one for one in self.all() if one.number not in numbers]
        for name, place in self._places.items():
            place.sweep({one.number for one in stay if one.place == name})
