"""Vectors in sqlite-vec, found exactly and fast through a resident copy (adr/0007).

The table is the truth.  What a query needs in memory is a fraction of it and follows it: see
:mod:`remembrancer.adapters.sqlite.resident_vectors`.  Nothing here imports numpy before the first
query.
"""

import os
from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

import apsw
import msgspec.json
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.vector_tables import VectorTables
from remembrancer.application.ports.vector_store import (
    Filter,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.domain.errors import InvalidInputError, StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, checked_vector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remembrancer.adapters.sqlite.resident_vectors import ResidentVectors

_spelt = msgspec.json.Encoder(order="sorted").encode
"""Canonical JSON of strings: the same bytes as ``domain.canonical_json`` writes, in a tenth."""


class SqliteVectorStore(VectorStore):
    """The vectors of one index.

    Every call raises StoreUnavailableError once the index was dropped: ask the registry which one
    is active now.
    """

    def __init__(self, *, database: Database, tables: VectorTables, dimensions: int) -> None:
        self._database = database
        self._tables = tables
        self._dimensions = dimensions
        # By process: a forked child can't know whether a thread of its parent was changing it.
        self._copies: dict[int, ResidentVectors] = {}

    @override
    def upsert(self, id: EntryId, vector: Vector, metadata: "Mapping[str, str]") -> None:
        self.upsert_many([VectorPoint(id, vector, metadata)])

    @override
    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        spelt = _Spelling()
        new = {
            point.id.bytes: (
                checked_vector(point.vector, self._dimensions).tobytes(),
                spelt[tuple(point.metadata.items())],
            )
            for point in points
        }
        if not new:
            return
        with self._writing() as connection:
            tables = self._tables
            tables.retire(connection, list(tables.ids(connection, new).values()))
            first = tables.state(connection).last_id + 1
            tables.add(
                connection,
                [
                    (number, key, metadata)
                    for number, (key, (_, metadata)) in enumerate(new.items(), first)
                ],
                [vector for vector, _ in new.values()],
            )

    @override
    def query(
        self,
        vector: Vector,
        top_k: int,
        filter: Filter | None = None,
    ) -> list[VectorMatch]:
        asked = checked_vector(vector, self._dimensions)
        if top_k < 1:
            raise InvalidInputError(field="top_k", problem="is below 1")
        with self._reading() as connection:
            return self._copy().query(
                connection, asked, top_k, filter or {}, private=self._database.in_write
            )

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        asked = {id_.bytes: id_ for id_ in ids}
        with self._reading() as connection:
            here = self._tables.ids(connection, asked)
            found = self._tables.vectors(connection, here.values())
        return {asked[key]: array("f", vector) for key, vector in zip(here, found, strict=True)}

    @override
    def delete(self, id: EntryId) -> None:
        with self._writing() as connection:
            here = self._tables.ids(connection, [id.bytes])
            self._tables.retire(connection, list(here.values()))

    @override
    def clear(self) -> None:
        with self._writing() as connection:
            self._tables.retire(connection, self._tables.all_ids(connection))

    @override
    def count(self) -> int:
        with self._reading() as connection:
            return self._tables.count(connection)

    def let_go(self) -> None:
        """Free the resident copy; a query would make it anew."""
        self._copies.clear()

    def _copy(self) -> "ResidentVectors":
        process = os.getpid()
        copy = self._copies.get(process)
        if copy is None:
            # Here, because it imports numpy, which a process that never asks can do without.
            from remembrancer.adapters.sqlite.resident_vectors import (  # noqa: PLC0415
                ResidentVectors,
            )

            for other in self._copies.keys() - {process}:
                self._copies.pop(other, None)
            # Of two threads that come first at once, both get the one that is kept.
            copy = self._copies.setdefault(
                process, ResidentVectors(tables=self._tables, dimensions=self._dimensions)
            )
        return copy

    def _reading(self) -> "_InIndex":
        return _InIndex(self._database.read(), self._tables)

    def _writing(self) -> "_InIndex":
        return _InIndex(self._database.write(), self._tables)


class _InIndex:
    """A transaction's block in which an SQL error may come of the index's having been dropped."""

    __slots__ = ("_block", "_connection", "_tables")

    def __init__(
        self, block: AbstractContextManager[apsw.Connection], tables: VectorTables
    ) -> None:
        self._block = block
        self._tables = tables

    def __enter__(self) -> apsw.Connection:
        self._connection = self._block.__enter__()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, apsw.SQLError) and not self._tables.exist(self._connection):
            dropped = StoreUnavailableError(
                store=f"vector index {self._tables.number}",
                problem="it was dropped; ask which one is active",
            )
            self._block.__exit__(type(dropped), dropped, traceback)
            raise dropped from error
        self._block.__exit__(kind, error, traceback)


class _Spelling(dict[tuple[tuple[str, str], ...], str]):
    """Metadata in canonical JSON; most points of a batch share theirs with others."""

    def __missing__(self, items: tuple[tuple[str, str], ...]) -> str:
        spelt = self[items] = _spelt(dict(items)).decode()
        return spelt
