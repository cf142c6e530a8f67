"""What still has to reach indexes kept elsewhere, in the SQLite file (adr/0020).

Rows are emptied in place and never made longer, for the reason that adr/0003 gives.
"""

from array import array
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import apsw
from typing_extensions import override

from remembrancer.adapters.sqlite.database import Database
from remembrancer.adapters.sqlite.original_row import to_microseconds
from remembrancer.application.ports.clock import Clock
from remembrancer.application.ports.vector_indexes import VectorIndex
from remembrancer.application.ports.vector_outbox import (
    OutboxErasure,
    OutboxVector,
    VectorOutbox,
)
from remembrancer.domain.identity import EntryId
from remembrancer.domain.vector import checked_vector

_INSERT = (
    "INSERT INTO vector_outbox (index_number, entry_id, version, tenant, owner, vector)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_FIND = (
    "SELECT tenant, owner, vector FROM vector_outbox"
    " WHERE index_number = ? AND entry_id = ? AND version = ?"
)
_EMPTY = (
    "UPDATE vector_outbox SET index_number = NULL, entry_id = NULL, version = NULL,"
    " tenant = NULL, owner = NULL, vector = NULL "
)
_THIS = "WHERE index_number = ? AND entry_id = ? AND version = ?"
_ANY_LEFT = "SELECT EXISTS (SELECT 1 FROM vector_outbox WHERE entry_id IS NOT NULL)"
_INSERT_ERASURE = (
    "INSERT INTO vector_outbox_erasure (index_number, entry_id, versions, tenant, owner)"
    " VALUES (?, ?, ?, ?, ?) ON CONFLICT (index_number, entry_id)"
    " DO UPDATE SET versions = max(versions, excluded.versions)"
)
_ERASURES = (
    "SELECT entry_id, versions, tenant, owner FROM vector_outbox_erasure"
    " WHERE index_number = ? ORDER BY number LIMIT ?"
)
_COUNTS = (
    "SELECT (SELECT count(*) FROM vector_outbox WHERE index_number = ?1),"
    " (SELECT count(*) FROM vector_outbox_erasure WHERE index_number = ?1)"
)
_CLAIM = (
    "INSERT INTO vector_outbox_lease (index_number, holder, until) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (index_number) DO UPDATE SET holder = ?2, until = ?3"
    " WHERE holder = ?2 OR until <= ?4"
)
_RELEASE = "DELETE FROM vector_outbox_lease WHERE index_number = ? AND holder = ?"


class SqliteVectorOutbox(VectorOutbox):
    """Rows of ``vector_outbox.sql``."""

    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @override
    def put(self, index: VectorIndex, vectors: Sequence[OutboxVector]) -> None:
        dimensions = index.embedding_tuple.dimensions
        rows = [
            (
                *_key(index, one),
                one.tenant,
                one.owner,
                None if one.vector is None else checked_vector(one.vector, dimensions).tobytes(),
            )
            for one in vectors
        ]
        with self._database.write() as connection:
            for row in rows:
                connection.execute(_EMPTY + _THIS, row[:3])
                connection.execute(_INSERT, row)

    @override
    def vectors(
        self, index: VectorIndex, wanted: Sequence[tuple[EntryId, int]]
    ) -> dict[tuple[EntryId, int], OutboxVector]:
        found: dict[tuple[EntryId, int], OutboxVector] = {}
        with self._database.read() as connection:
            for entry_id, version in wanted:
                key = (index.number, entry_id.bytes, version)
                for tenant, owner, vector in connection.execute(_FIND, key):
                    found[entry_id, version] = OutboxVector(
                        tenant=tenant,
                        owner=owner,
                        entry_id=entry_id,
                        version=version,
                        vector=None if vector is None else array("f", vector),
                    )
        return found

    @override
    def remove(self, index: VectorIndex, arrived: Sequence[OutboxVector]) -> None:
        with self._database.write() as connection:
            connection.executemany(_EMPTY + _THIS, [_key(index, one) for one in arrived])
            _tidy(connection)

    @override
    def erase(self, indexes: Sequence[VectorIndex], erasure: OutboxErasure) -> None:
        entry_id = erasure.entry_id.bytes
        with self._database.write() as connection:
            connection.execute(_EMPTY + "WHERE entry_id = ?", (entry_id,))
            connection.executemany(
                _INSERT_ERASURE,
                [
                    (index.number, entry_id, erasure.versions, erasure.tenant, erasure.owner)
                    for index in indexes
                ],
            )

    @override
    def erasures(self, index: VectorIndex, *, limit: int) -> list[OutboxErasure]:
        with self._database.read() as connection:
            return [
                OutboxErasure(
                    tenant=tenant,
                    owner=owner,
                    entry_id=EntryId(UUID(bytes=entry_id)),
                    versions=versions,
                )
                for entry_id, versions, tenant, owner in connection.execute(
                    _ERASURES, (index.number, limit)
                )
            ]

    @override
    def erased(self, index: VectorIndex, arrived: Sequence[OutboxErasure]) -> None:
        with self._database.write() as connection:
            connection.executemany(
                "DELETE FROM vector_outbox_erasure WHERE index_number = ? AND entry_id = ?",
                [(index.number, one.entry_id.bytes) for one in arrived],
            )

    @override
    def count(self, index: VectorIndex) -> tuple[int, int]:
        with self._database.read() as connection:
            [(vectors, erasures)] = connection.execute(_COUNTS, (index.number,))
            return vectors, erasures

    @override
    def forget(self, index: VectorIndex) -> None:
        with self._database.write() as connection:
            connection.execute(_EMPTY + "WHERE index_number = ?", (index.number,))
            connection.execute(
                "DELETE FROM vector_outbox_erasure WHERE index_number = ?", (index.number,)
            )
            connection.execute(
                "DELETE FROM vector_outbox_lease WHERE index_number = ?", (index.number,)
            )
            _tidy(connection)

    @override
    def claim(self, index: VectorIndex, holder: str, *, lease_s: float) -> bool:
        with self._database.write() as connection:
            now = self._clock.now()
            until = to_microseconds(now + timedelta(seconds=lease_s))
            connection.execute(_CLAIM, (index.number, holder, until, to_microseconds(now)))
            return connection.changes() > 0

    @override
    def release(self, index: VectorIndex, holder: str) -> None:
        with self._database.write() as connection:
            connection.execute(_RELEASE, (index.number, holder))


def _key(index: VectorIndex, vector: OutboxVector) -> tuple[int, bytes, int]:
    return index.number, vector.entry_id.bytes, vector.version


def _tidy(connection: apsw.Connection) -> None:
    if not connection.execute(_ANY_LEFT).get:
        connection.execute("DELETE FROM vector_outbox")
