"""Vectors in a dictionary, compared one by one: the plain meaning of the port."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from typing_extensions import override

from remembrancer.adapters.memory.transactions import MemoryTransactions
from remembrancer.application.ports.vector_store import (
    Filter,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.domain.errors import InvalidInputError, StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, checked_vector, cosine, norm


@dataclass(frozen=True, slots=True)
class _Stored:
    """A vector with what a comparison needs of it."""

    vector: Vector = field(repr=False)
    norm: float = field(repr=False)
    metadata: Mapping[str, str] = field(repr=False)


class MemoryVectorStore(VectorStore):
    """The vectors of one index; each query looks at all that match its filter."""

    def __init__(self, *, transactions: MemoryTransactions, number: int, dimensions: int) -> None:
        self._transactions = transactions
        self._number = number
        self._dimensions = dimensions
        self._stored: dict[EntryId, _Stored] = {}
        self._dropped = False

    @override
    def upsert(self, id: EntryId, vector: Vector, metadata: Mapping[str, str]) -> None:
        self.upsert_many([VectorPoint(id, vector, metadata)])

    @override
    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        new: dict[EntryId, _Stored] = {}
        for point in points:
            vector = checked_vector(point.vector, self._dimensions)[:]
            new[point.id] = _Stored(vector, norm(vector), dict(point.metadata))
        with self._writing():
            for id_, stored in new.items():
                self._put(id_, stored)

    @override
    def query(self, vector: Vector, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        asked = checked_vector(vector, self._dimensions)
        if top_k < 1:
            raise InvalidInputError(field="top_k", problem="is below 1")
        length = norm(asked)
        with self._reading():
            found = [
                VectorMatch(id_, cosine(asked, one.vector, norms=length * one.norm))
                for id_, one in self._stored.items()
                if _matches(one.metadata, filter or {})
            ]
        found.sort(key=lambda match: (-match.score, match.id))
        return found[:top_k]

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        with self._reading():
            return {id_: self._stored[id_].vector[:] for id_ in ids if id_ in self._stored}

    @override
    def delete(self, id: EntryId) -> None:
        with self._writing():
            self._put(id, None)

    @override
    def clear(self) -> None:
        with self._writing():
            for id_ in list(self._stored):
                self._put(id_, None)

    @override
    def count(self) -> int:
        with self._reading():
            return len(self._stored)

    def drop(self) -> None:
        """Refuse every call from now on, unless the open transaction is rolled back."""
        self.clear()
        self._set_dropped(dropped=True)
        self._transactions.on_rollback(lambda: self._set_dropped(dropped=False))

    def _set_dropped(self, *, dropped: bool) -> None:
        self._dropped = dropped

    def _put(self, id_: EntryId, stored: _Stored | None) -> None:
        before = self._stored.get(id_)
        self._transactions.on_rollback(lambda: self._set(id_, before))
        self._set(id_, stored)

    def _set(self, id_: EntryId, stored: _Stored | None) -> None:
        if stored is None:
            self._stored.pop(id_, None)
        else:
            self._stored[id_] = stored

    @contextmanager
    def _writing(self) -> Generator[None]:
        with self._transactions.begin():
            self._require_here()
            yield

    @contextmanager
    def _reading(self) -> Generator[None]:
        with self._transactions.snapshot():
            self._require_here()
            yield

    def _require_here(self) -> None:
        if self._dropped:
            raise StoreUnavailableError(
                store=f"vector index {self._number}",
                problem="it was dropped; ask which one is active",
            )


def _matches(metadata: Mapping[str, str], wanted: Filter) -> bool:
    return all(
        key in metadata
        and (metadata[key] == value if isinstance(value, str) else metadata[key] in value)
        for key, value in wanted.items()
    )
