"""Vectors in pgvector: exact up to a size, then as the settings say (adr/0028)."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from psycopg import errors as states
from typing_extensions import override

from remembrancer.adapters.postgres.clearing import note_erasure
from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.labels import (
    Whose,
    columns,
    conditions,
    in_order,
    marks,
    whose,
)
from remembrancer.adapters.postgres.nearest import Searched, nearest, nearest_roughly
from remembrancer.adapters.postgres.owned import owned
from remembrancer.adapters.postgres.vector_wire import (
    EXTENSION,
    from_wire,
    to_wire,
    vectors_cursor,
)
from remembrancer.application.ports.vector_store import (
    Filter,
    VectorMatch,
    VectorPoint,
    VectorStore,
)
from remembrancer.domain.errors import InvalidInputError, SettingsError, StoreUnavailableError
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, checked_vector, norm

ORDINARY = (2.0**-40, 2.0**40)
"""Lengths of vectors that float32 can square; pgvector's distance of others means nothing."""

_HERE = "SELECT FROM vector_indexes WHERE number = %s"
_UPSERT = (
    "INSERT INTO vectors (index_number, id, embedding, extreme, scope, kind, sensitivity, state,"
    " marks) VALUES (%s, %s, %s::{vector}.vector, %s, %s, %s, %s, %s, %s::uuid[])"
    " ON CONFLICT (tenant, index_number, id) DO UPDATE SET embedding = excluded.embedding,"
    " extreme = excluded.extreme, scope = excluded.scope, kind = excluded.kind,"
    " sensitivity = excluded.sensitivity, state = excluded.state, marks = excluded.marks"
)
_VECTORS = "SELECT id, embedding FROM vectors WHERE index_number = %s AND id = ANY(%s)"
_PRESENT = "SELECT id FROM vectors WHERE index_number = %s AND id = ANY(%s)"
_WHOSE = (
    "SELECT DISTINCT tenant, owner FROM vectors WHERE index_number = %s AND id = ANY(%s)"
    " ORDER BY tenant, owner"
)
_OWNERS = (
    "SELECT DISTINCT tenant, owner FROM vectors WHERE index_number = %s ORDER BY tenant, owner"
)
_DELETE = owned("DELETE FROM vectors WHERE {mine} AND index_number = %s AND id = ANY(%s)")
_CLEAR = owned("DELETE FROM vectors WHERE {mine} AND index_number = %s")
_COUNT = "SELECT count(*) FROM vectors WHERE index_number = %s"


class VectorSearch(StrEnum):
    """How vectors are looked for."""

    EXACT = "exact"
    """Always by all vectors that pass the filter."""
    AUTO = "auto"
    """By an approximate index, where one was made and an owner has more vectors than are quickly
    read."""


class PostgresVectorStore(VectorStore):
    """The vectors of one index.

    A vector belongs to whom its metadata names, else to whom the thread acts for.  Every call
    raises StoreUnavailableError once the index was dropped: ask the registry which one is active.
    """

    def __init__(
        self, *, database: Database, number: int, dimensions: int, search: VectorSearch
    ) -> None:
        self._database = database
        self._number = number
        self._dimensions = dimensions
        self._search = search
        self._extension: str | None = None

    @override
    def upsert(self, id: EntryId, vector: Vector, metadata: Mapping[str, str]) -> None:
        self.upsert_many([VectorPoint(id, vector, metadata)])

    @override
    def upsert_many(self, points: Sequence[VectorPoint]) -> None:
        groups: dict[Whose, list[tuple[Any, ...]]] = {}
        for point in {point.id: point for point in points}.values():
            groups.setdefault(whose(point.metadata), []).append(self._row(point))
        for point in points:  # Also those that a later one of the same id replaces.
            checked_vector(point.vector, self._dimensions)
        if not groups:
            return
        with self._database.begin():
            for (tenant, owner), rows in in_order(groups):
                with self._writing(tenant, owner) as connection:
                    statement = _UPSERT.format(vector=self._schema(connection))
                    vectors_cursor(connection).executemany(statement, rows)

    @override
    def query(self, vector: Vector, top_k: int, filter: Filter | None = None) -> list[VectorMatch]:
        asked = checked_vector(vector, self._dimensions)
        if top_k < 1:
            raise InvalidInputError(field="top_k", problem="is below 1")
        reach = conditions(filter or {})
        with self._reading(*(reach or (None, None))[:2]) as connection:
            if reach is None:
                return []
            searched = Searched(
                connection=connection,
                schema=self._schema(connection),
                number=self._number,
                asked=asked,
                top_k=top_k,
                reach=reach,
            )
            roughly = nearest_roughly(searched) if self._search is VectorSearch.AUTO else None
            return nearest(searched) if roughly is None else roughly

    @override
    def vectors(self, ids: Sequence[EntryId]) -> dict[EntryId, Vector]:
        with self._reading() as connection:
            rows = vectors_cursor(connection).execute(_VECTORS, (self._number, list(ids)))
            return {EntryId(id_): from_wire(stored) for id_, stored in rows}

    @override
    def present(self, ids: Sequence[EntryId]) -> set[EntryId]:
        with self._reading() as connection:
            rows: Any = connection.execute(_PRESENT, (self._number, list(ids)))
            return {EntryId(id_) for (id_,) in rows}

    @override
    def delete(self, id: EntryId) -> None:
        self.delete_many([id])

    @override
    def delete_many(self, ids: Sequence[EntryId]) -> None:
        self._erase(_WHOSE, _DELETE, self._number, list(ids))

    @override
    def clear(self) -> None:
        self._erase(_OWNERS, _CLEAR, self._number)

    @override
    def count(self) -> int:
        with self._reading() as connection:
            row: Any = connection.execute(_COUNT, (self._number,)).fetchone()
            return int(row[0])

    def _row(self, point: VectorPoint) -> tuple[Any, ...]:
        vector = checked_vector(point.vector, self._dimensions)
        shortest, longest = ORDINARY
        return (
            self._number,
            point.id,
            to_wire(vector),
            not shortest < norm(vector) < longest,
            *columns(point.metadata),
            marks(point.metadata),
        )

    def _erase(self, whose_they_are: str, statement: str, *values: Any) -> None:
        with self._reading() as connection:
            found: list[Any] = connection.execute(whose_they_are, values).fetchall()
        for tenant, owner in found:
            with self._writing(tenant, owner) as connection:
                connection.execute(statement, values)
                note_erasure(connection)

    def _schema(self, connection: Connection) -> str:
        if self._extension is None:
            row: Any = connection.execute(EXTENSION).fetchone()
            if row is None:
                raise SettingsError(
                    setting="store.dsn",
                    problem="the database has no extension vector; let an administrator create it",
                )
            self._extension = str(row[0])
        return self._extension

    @contextmanager
    def _reading(
        self, tenant: str | None = None, owner: str | None = None
    ) -> Generator[Connection]:
        with self._database.read(tenant=tenant, owner=owner) as connection:
            if connection.execute(_HERE, (self._number,)).rowcount == 0:
                raise self._dropped()
            yield connection

    @contextmanager
    def _writing(self, tenant: str | None, owner: str | None) -> Generator[Connection]:
        with self._database.write(tenant=tenant, owner=owner) as connection:
            try:
                yield connection
            except states.ForeignKeyViolation as error:
                raise self._dropped() from error

    def _dropped(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            store=f"vector index {self._number}",
            problem="it was dropped; ask which one is active",
        )
