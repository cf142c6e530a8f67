"""Indexes for the suites, as ``postgres_named.py`` has vaults: labels for what has none."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.adapters.postgres_named import TENANTS, UNNAMED
from typing_extensions import override

from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.sparse_index import PostgresSparseIndex
from remembrancer.adapters.postgres.vector_indexes import PostgresVectorIndexes
from remembrancer.adapters.postgres.vector_outbox import PostgresVectorOutbox
from remembrancer.adapters.postgres.vector_store import PostgresVectorStore
from remembrancer.application.ports import (
    SparseDocument,
    SparseIndex,
    VectorIndex,
    VectorIndexes,
    VectorMatch,
    VectorOutbox,
    VectorPoint,
    VectorStore,
)
from remembrancer.application.ports.vector_outbox import OutboxErasure, OutboxVector
from remembrancer.application.ports.vector_store import Filter
from remembrancer.domain.embedding_tuple import EmbeddingTuple
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector


class NamedSparseIndex(SparseIndex):
    """Gives labels to what has none; a document may go from one owner to another."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.inner = PostgresSparseIndex(database=database)

    @override
    def upsert_many(self, documents: Sequence[SparseDocument]) -> None:
        latest = {one.id: one._replace(metadata={**UNNAMED, **one.metadata}) for one in documents}
        with self.database.begin():
            whose = {one.id: one.metadata for one in latest.values()}
            for id_ in _moving(self.database, "sparse_documents", whose):
                self.delete(id_)
            self.inner.upsert_many(list(latest.values()))

    @override
    def query(self, text: str, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        with self._for_all():
            return self.inner.query(text, top_k, filter)

    @override
    def delete(self, id: EntryId) -> None:
        for tenant in TENANTS:
            with self.database.acting_for(tenant):
                self.inner.delete(id)

    @override
    def clear(self) -> None:
        for tenant in TENANTS:
            with self.database.acting_for(tenant):
                self.inner.clear()

    @override
    def count(self) -> int:
        with self._for_all():
            return self.inner.count()

    def _for_all(self) -> AbstractContextManager[None]:
        # Only the application's connection sees what its own transaction has written.
        if self.database.in_write:
            return self.database.acting_for("acme")
        return self.database.over_all_tenants()


class NamedVectorStore(VectorStore):
    """Gives labels to what has none; a vector may go from one owner to another."""

    def __init__(self, database: Database, inner: PostgresVectorStore) -> None:
        self.database = database
        self.inner = inner

    @override
    def upsert(self, id: EntryId, vector: Vector, metadata: Mapping[str, str]) -> None:
        self.upsert_many([VectorPoint(id, vector, metadata)])

    @override
    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        named = [one._replace(metadata={**UNNAMED, **one.metadata}) for one in points]
        with self.database.begin():
            whose = {one.id: one.metadata for one in named}
            for id_ in _moving(self.database, "vectors", whose):
                self.delete(id_)
            self.inner.upsert_many(named)

    @override
    def query(self, vector: Vector, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        with self.database.acting_for("acme"):
            return self.inner.query(vector, top_k, filter)

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        with self.database.acting_for("acme"):
            return self.inner.vectors(ids)

    @override
    def delete(self, id: EntryId) -> None:
        with self.database.acting_for("acme"):
            self.inner.delete(id)

    @override
    def clear(self) -> None:
        with self.database.acting_for("acme"):
            self.inner.clear()

    @override
    def count(self) -> int:
        with self.database.acting_for("acme"):
            return self.inner.count()


class NamedVectorIndexes(VectorIndexes):
    def __init__(self, database: Database) -> None:
        self.database = database
        self.inner = PostgresVectorIndexes(database=database)
        self.stores: dict[PostgresVectorStore, NamedVectorStore] = {}

    @override
    def active(self) -> VectorIndex | None:
        return self.inner.active()

    @override
    def all(self) -> list[VectorIndex]:
        return self.inner.all()

    @override
    def begin(self, embedding_tuple: EmbeddingTuple, place: str | None = None) -> VectorIndex:
        return self.inner.begin(embedding_tuple, place)

    @override
    def advance(self, index: VectorIndex, position: int) -> VectorIndex:
        return self.inner.advance(index, position)

    @override
    def activate(self, index: VectorIndex) -> VectorIndex:
        return self.inner.activate(index)

    @override
    def drop(self, index: VectorIndex) -> None:
        self.inner.drop(index)

    @override
    def store(self, index: VectorIndex) -> NamedVectorStore:
        inner = self.inner.store(index)
        return self.stores.setdefault(inner, NamedVectorStore(self.database, inner))


class NamedVectorOutbox(VectorOutbox):
    """Asks for all tenants what carrying over asks for all; acts for one in a transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.inner = PostgresVectorOutbox(database=database)

    @override
    def put(self, index: VectorIndex, vectors: Sequence[OutboxVector]) -> None:
        self.inner.put(index, vectors)

    @override
    def vectors(
        self, index: VectorIndex, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], OutboxVector]:
        with self.database.over_all_tenants():
            return self.inner.vectors(index, wanted)

    @override
    def remove(self, index: VectorIndex, arrived: Sequence[OutboxVector]) -> None:
        self.inner.remove(index, arrived)

    @override
    def erase(self, indexes: Sequence[VectorIndex], erasure: OutboxErasure) -> None:
        self.inner.erase(indexes, erasure)

    @override
    def erasures(self, index: VectorIndex, *, limit: int) -> list[OutboxErasure]:
        with self.database.over_all_tenants():
            return self.inner.erasures(index, limit=limit)

    @override
    def erased(self, index: VectorIndex, arrived: Sequence[OutboxErasure]) -> None:
        self.inner.erased(index, arrived)

    @override
    def count(self, index: VectorIndex) -> tuple[int, int]:
        with self.database.over_all_tenants():
            return self.inner.count(index)

    @override
    def forget(self, index: VectorIndex) -> None:
        with self.database.over_all_tenants():
            self.inner.forget(index)

    @override
    def claim(self, index: VectorIndex, holder: str, *, lease_s: float) -> bool:
        return self.inner.claim(index, holder, lease_s=lease_s)

    @override
    def release(self, index: VectorIndex, holder: str) -> None:
        self.inner.release(index, holder)


def _moving(
    database: Database, table: str, whose: Mapping[EntryId, Mapping[str, str]]
) -> list[EntryId]:
    """Return those ids whose rows are another owner's so far: rows of ours never move."""
    moving = []
    for tenant in TENANTS:
        with database.read(tenant=tenant) as connection:
            rows: Any = connection.execute(
                f"SELECT id, owner FROM {table} WHERE id = ANY(%s)",  # noqa: S608 - our own words
                (list(whose),),
            ).fetchall()
        moving += [
            EntryId(id_)
            for id_, owner in rows
            if (tenant, owner) != (whose[id_]["tenant"], whose[id_]["owner"])
        ]
    return moving
