"""What still has to reach indexes kept elsewhere, in dictionaries."""

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.vector_indexes import VectorIndex
from remembrancer.application.ports.vector_outbox import (
    OutboxErasure,
    OutboxVector,
    VectorOutbox,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import checked_vector

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class MemoryVectorOutbox(VectorOutbox):
    """Vectors by (index, entry, version), erasures by (index, entry)."""

    def __init__(self, *, transactions: MemoryTransactions, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock
        self._vectors: dict[tuple[int, EntryId, int], OutboxVector] = {}
        self._erasures: dict[tuple[int, EntryId], OutboxErasure] = {}
        self._leases: dict[int, tuple[str, datetime]] = {}

    @override
    def put(self, index: VectorIndex, vectors: Sequence[OutboxVector]) -> None:
        dimensions = index.embedding_tuple.dimensions
        checked = [
            one
            if one.vector is None
            else replace(one, vector=checked_vector(one.vector, dimensions)[:])
            for one in vectors
        ]
        with self._transactions.begin():
            for one in checked:
                self._set(self._vectors, (index.number, one.entry_id, one.version), one)

    @override
    def vectors(
        self, index: VectorIndex, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], OutboxVector]:
        with self._transactions.snapshot():
            found = {one: self._vectors.get((index.number, *one)) for one in wanted}
        return {one: vector for one, vector in found.items() if vector is not None}

    @override
    def remove(self, index: VectorIndex, arrived: Sequence[OutboxVector]) -> None:
        with self._transactions.begin():
            for one in arrived:
                self._set(self._vectors, (index.number, one.entry_id, one.version), None)

    @override
    def erase(self, indexes: Sequence[VectorIndex], erasure: OutboxErasure) -> None:
        with self._transactions.begin():
            for key in [key for key in self._vectors if key[1] == erasure.entry_id]:
                self._set(self._vectors, key, None)
            for index in indexes:
                place = (index.number, erasure.entry_id)
                before = self._erasures.get(place)
                if before is None or before.versions < erasure.versions:
                    self._set(self._erasures, place, erasure)

    @override
    def erasures(self, index: VectorIndex, *, limit: int) -> list[OutboxErasure]:
        with self._transactions.snapshot():
            return [one for key, one in self._erasures.items() if key[0] == index.number][:limit]

    @override
    def erased(self, index: VectorIndex, arrived: Sequence[OutboxErasure]) -> None:
        with self._transactions.begin():
            for one in arrived:
                self._set(self._erasures, (index.number, one.entry_id), None)

    @override
    def count(self, index: VectorIndex) -> tuple[int, int]:
        with self._transactions.snapshot():
            return (
                sum(key[0] == index.number for key in self._vectors),
                sum(key[0] == index.number for key in self._erasures),
            )

    @override
    def forget(self, index: VectorIndex) -> None:
        with self._transactions.begin():
            for key in [key for key in self._vectors if key[0] == index.number]:
                self._set(self._vectors, key, None)
            for place in [place for place in self._erasures if place[0] == index.number]:
                self._set(self._erasures, place, None)
            self._leases.pop(index.number, None)

    @override
    def claim(self, index: VectorIndex, holder: str, *, lease_s: float) -> bool:
        with self._transactions.begin():
            now, held = self._clock.now(), self._leases.get(index.number)
            if held is not None and held[0] != holder and held[1] > now:
                return False
            self._leases[index.number] = (holder, now + timedelta(seconds=lease_s))
            return True

    @override
    def release(self, index: VectorIndex, holder: str) -> None:
        with self._transactions.begin():
            held = self._leases.get(index.number)
            if held is not None and held[0] == holder:
                del self._leases[index.number]

    def _set(self, kept: MutableMapping[_Key, _Value], key: _Key, value: _Value | None) -> None:
        self._transactions.on_rollback(_restoring(kept, key))
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value


def _restoring(kept: MutableMapping[_Key, _Value], key: _Key) -> Callable[[], None]:
    before = kept.get(key)

    def undo() -> None:
        if before is None:
            kept.pop(key, None)
        else:
            kept[key] = before

    return undo
