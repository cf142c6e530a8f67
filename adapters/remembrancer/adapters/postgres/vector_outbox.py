"""What still has to reach indexes kept elsewhere, in PostgreSQL (adr/0020).

Leases run by the server's clock: those who compete for one are on several machines.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import override

from remembrancer.adapters.postgres.clearing import note_erasure
from remembrancer.adapters.postgres.connection import Connection
from remembrancer.adapters.postgres.database import Database
from remembrancer.adapters.postgres.owned import owned
from remembrancer.application.ports.vector_indexes import VectorIndex
from remembrancer.application.ports.vector_outbox import (
    OutboxErasure,
    OutboxVector,
    VectorOutbox,
)
from remembrancer.application.whose import places_by_owner
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import Vector, checked_vector

_PUT = (
    "INSERT INTO vector_outbox (index_number, entry_id, version, vector) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (tenant, index_number, entry_id, version)"
    " DO UPDATE SET vector = excluded.vector"
)
_FIND = (
    "SELECT tenant, owner, found.entry_id, found.version, vector FROM vector_outbox AS found"
    " JOIN unnest(%s::uuid[], %s::bigint[]) AS wanted (entry_id, version)"
    " ON found.entry_id = wanted.entry_id AND found.version = wanted.version"
    " WHERE index_number = %s"
)
_REMOVE = (
    "DELETE FROM vector_outbox WHERE tenant = current_setting('remembrancer.tenant')"
    " AND index_number = %s AND entry_id = %s AND version = %s"
)
_ERASE = (
    "DELETE FROM vector_outbox WHERE tenant = current_setting('remembrancer.tenant')"
    " AND entry_id = %s"
)
_NOTE = (
    "INSERT INTO vector_outbox_erasures (index_number, entry_id, versions) VALUES (%s, %s, %s)"
    " ON CONFLICT (tenant, index_number, entry_id)"
    " DO UPDATE SET versions = greatest(vector_outbox_erasures.versions, excluded.versions)"
)
_ERASURES = (
    "SELECT tenant, owner, entry_id, versions FROM vector_outbox_erasures"
    " WHERE index_number = %s ORDER BY number LIMIT %s"
)
_ERASED = (
    "DELETE FROM vector_outbox_erasures WHERE tenant = current_setting('remembrancer.tenant')"
    " AND index_number = %s AND entry_id = %s"
)
_COUNTS = (
    "SELECT (SELECT count(*) FROM vector_outbox WHERE index_number = %(number)s),"
    " (SELECT count(*) FROM vector_outbox_erasures WHERE index_number = %(number)s)"
)
_OWNERS = (
    "SELECT tenant, owner FROM vector_outbox WHERE index_number = %(number)s"
    " UNION SELECT tenant, owner FROM vector_outbox_erasures WHERE index_number = %(number)s"
    " ORDER BY tenant, owner"
)
_FORGET = (
    owned("DELETE FROM vector_outbox WHERE {mine} AND index_number = %s"),
    owned("DELETE FROM vector_outbox_erasures WHERE {mine} AND index_number = %s"),
)
_CLAIM = (
    "INSERT INTO vector_outbox_leases (index_number, holder, until) VALUES (%(number)s,"
    " %(holder)s, clock_timestamp() + make_interval(secs => %(lease_s)s))"
    " ON CONFLICT (index_number) DO UPDATE SET holder = excluded.holder,"
    " until = clock_timestamp() + make_interval(secs => %(lease_s)s)"
    " WHERE vector_outbox_leases.holder = excluded.holder"
    " OR vector_outbox_leases.until <= clock_timestamp()"
)
_RELEASE = "DELETE FROM vector_outbox_leases WHERE index_number = %s AND holder = %s"


class PostgresVectorOutbox(VectorOutbox):
    """Rows of ``migrations/base/vector_outbox.sql``."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    @override
    def put(self, index: VectorIndex, vectors: Sequence[OutboxVector]) -> None:
        dimensions = index.embedding_tuple.dimensions
        stored = [
            None if one.vector is None else _stored(checked_vector(one.vector, dimensions))
            for one in vectors
        ]
        rows = [(*_key(index, one), vector) for one, vector in zip(vectors, stored, strict=True)]
        self._for_each_owner(_PUT, vectors, rows)

    @override
    def vectors(
        self, index: VectorIndex, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], OutboxVector]:
        ids, versions = [one for one, _ in wanted], [version for _, version in wanted]
        with self._database.read() as connection:
            rows: Iterable[Any] = connection.execute(_FIND, (ids, versions, index.number))
            return {
                (EntryId(entry_id), version): OutboxVector(
                    tenant=tenant,
                    owner=owner,
                    entry_id=EntryId(entry_id),
                    version=version,
                    vector=None if vector is None else _read(vector),
                )
                for tenant, owner, entry_id, version, vector in rows
            }

    @override
    def remove(self, index: VectorIndex, arrived: Sequence[OutboxVector]) -> None:
        self._for_each_owner(_REMOVE, arrived, [_key(index, one) for one in arrived])

    @override
    def erase(self, indexes: Sequence[VectorIndex], erasure: OutboxErasure) -> None:
        with self._database.write(tenant=erasure.tenant, owner=erasure.owner) as connection:
            if connection.execute(_ERASE, (erasure.entry_id,)).rowcount:
                note_erasure(connection)
            for index in indexes:
                connection.execute(_NOTE, (index.number, erasure.entry_id, erasure.versions))

    @override
    def erasures(self, index: VectorIndex, *, limit: int) -> list[OutboxErasure]:
        with self._database.read() as connection:
            rows: Iterable[Any] = connection.execute(_ERASURES, (index.number, limit))
            return [
                OutboxErasure(
                    tenant=tenant, owner=owner, entry_id=EntryId(entry_id), versions=versions
                )
                for tenant, owner, entry_id, versions in rows
            ]

    @override
    def erased(self, index: VectorIndex, arrived: Sequence[OutboxErasure]) -> None:
        rows = [(index.number, one.entry_id) for one in arrived]
        self._for_each_owner(_ERASED, arrived, rows)

    @override
    def count(self, index: VectorIndex) -> tuple[int, int]:
        with self._database.read() as connection:
            row: Any = connection.execute(_COUNTS, {"number": index.number}).fetchone()
        return int(row[0]), int(row[1])

    @override
    def forget(self, index: VectorIndex) -> None:
        with self._database.read() as connection:
            found: list[Any] = connection.execute(_OWNERS, {"number": index.number}).fetchall()
        with self._database.begin():
            for tenant, owner in found:
                with self._database.write(tenant=tenant, owner=owner) as connection:
                    _forget(connection, index.number)

    @override
    def claim(self, index: VectorIndex, holder: str, *, lease_s: float) -> bool:
        with self._database.begin() as connection:
            values = {"number": index.number, "holder": holder, "lease_s": lease_s}
            return connection.execute(_CLAIM, values).rowcount > 0

    @override
    def release(self, index: VectorIndex, holder: str) -> None:
        with self._database.begin() as connection:
            connection.execute(_RELEASE, (index.number, holder))

    def _for_each_owner(
        self,
        statement: str,
        owned: Sequence[OutboxVector] | Sequence[OutboxErasure],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """Run a statement for each row, in the name of whose it is."""
        if not owned:
            return
        with self._database.begin():
            for (tenant, owner), places in places_by_owner(owned):
                with (
                    self._database.write(tenant=tenant, owner=owner) as connection,
                    connection.cursor() as cursor,
                ):
                    cursor.executemany(statement, [rows[place] for place in places])


def _forget(connection: Connection, number: int) -> None:
    for statement in _FORGET:
        connection.execute(statement, (number,))
    note_erasure(connection)


def _key(index: VectorIndex, vector: OutboxVector) -> tuple[Any, ...]:
    return index.number, vector.entry_id, vector.version


def _stored(vector: "array[float]") -> bytes:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector.tobytes()


def _read(stored: bytes) -> Vector:
    vector = array("f")
    vector.frombytes(stored)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector
