"""Vector indexes in a dictionary."""

from collections.abc import Callable
from dataclasses import replace

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.adapters.memory.vector_store import MemoryVectorStore
from remembrancer.application.ports.vector_indexes import (
    LOCAL,
    IndexState,
    VectorIndex,
    VectorIndexes,
    require_kept_here,
)
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.errors import StoreUnavailableError


class MemoryVectorIndexes(VectorIndexes):
    """The registry and the stores, by number."""

    def __init__(self, *, transactions: MemoryTransactions) -> None:
        self._transactions = transactions
        self._last_number = 0
        self._indexes: dict[int, VectorIndex] = {}
        self._stores: dict[int, MemoryVectorStore] = {}

    @override
    def active(self) -> VectorIndex | None:
        return self._of_state(IndexState.ACTIVE)

    @override
    def all(self) -> list[VectorIndex]:
        with self._transactions.snapshot():
            return sorted(self._indexes.values(), key=lambda index: index.number)

    @override
    def begin(self, embedding_tuple: EmbeddingTuple, place: str | None = None) -> VectorIndex:
        wanted = (embedding_tuple, place or LOCAL)
        with self._transactions.begin():
            building = self._of_state(IndexState.BUILDING)
            if building is not None:
                if (building.embedding_tuple, building.place) == wanted:
                    return building
                if building.follows:
                    self._put(replace(building, state=IndexState.RETIRED))
                else:
                    self._destroy(building)
            self._last_number += 1  # Also after a rollback: no number is used twice.
            return self._put(
                VectorIndex(
                    number=self._last_number,
                    embedding_tuple=embedding_tuple,
                    state=IndexState.BUILDING,
                    position=0,
                    place=wanted[1],
                )
            )

    @override
    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        with self._transactions.begin():
            found = self._found(index)
            found.require_may_advance()
            return self._put(replace(found, position=position))

    @override
    def activate(self, index: VectorIndex) -> VectorIndex:
        with self._transactions.begin():
            before = self._of_state(IndexState.ACTIVE)
            if before is not None and before.number == index.number:
                return before
            building = self._found(index)
            building.require_building()
            if before is not None:
                self._put(replace(before, state=IndexState.RETIRED))
            return self._put(replace(building, state=IndexState.ACTIVE))

    @override
    def drop(self, index: VectorIndex) -> None:
        with self._transactions.begin():
            found = self._indexes.get(index.number)
            if found is None:
                return
            found.require_may_go()
            self._destroy(found)

    @override
    def store(self, index: VectorIndex) -> MemoryVectorStore:
        require_kept_here(index)
        store = self._stores.get(index.number)
        if store is None:
            # Of two threads that come first at once, both get the one that is kept.
            store = self._stores.setdefault(
                index.number,
                MemoryVectorStore(
                    transactions=self._transactions,
                    number=index.number,
                    dimensions=index.embedding_tuple.dimensions,
                ),
            )
        return store

    def _of_state(self, state: IndexState) -> VectorIndex | None:
        return next((index for index in self.all() if index.state is state), None)

    def _found(self, index: VectorIndex) -> VectorIndex:
        found = self._indexes.get(index.number)
        if found is None:
            raise StoreUnavailableError(
                store=f"vector index {index.number}", problem="it was dropped meanwhile"
            )
        return found

    def _put(self, index: VectorIndex) -> VectorIndex:
        self._transactions.on_rollback(self._restoring(index.number))
        self._indexes[index.number] = index
        return index

    def _destroy(self, index: VectorIndex) -> None:
        if not index.follows:
            self.store(index).drop()
        self._transactions.on_rollback(self._restoring(index.number))
        del self._indexes[index.number]

    def _restoring(self, number: int) -> Callable[[], None]:
        before = self._indexes.get(number)

        def undo() -> None:
            if before is None:
                self._indexes.pop(number, None)
            else:
                self._indexes[number] = before

        return undo
